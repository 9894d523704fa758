"""Record independence: a record gives one row, the same one alone and in any company.

Every container and reader (`containers`), every odd record (`odd_records`). The bound on what one
record adds to a sum is of use only if this holds: see docs/guarantees/rows.md.

ELLIPSUM_PROPERTY_SECONDS=600 goes on drawing examples for as long.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections import Counter

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from containers import CONTAINERS, CSV, Container, D
from ellipsum.cli.main import main
from ellipsum.rows.batches import as_batches
from odd_records import OBJECTS

SECONDS = float(os.environ.get("ELLIPSUM_PROPERTY_SECONDS", "0"))
EXAMPLES = 400
NAMED = pytest.mark.parametrize("container", CONTAINERS, ids=lambda c: c.name)


def rows(container: Container, records, folder) -> Counter:
    """The rows that the records give, counted; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        blocks = list(container.read(records, folder))
    assert all(block.ndim == 2 and block.shape[1] == D for block in blocks)
    with np.errstate(over="ignore"):  # a long double, which the kernels are given as a double
        doubles = [np.asarray(block, np.float64) for block in blocks]
    return Counter(as_bytes(row) for block in doubles for row in block)


def as_bytes(row: np.ndarray) -> bytes:
    return np.where(np.isnan(row), np.nan, row).tobytes()


def surplus(container: Container, folder) -> Counter:
    """Rows that the container has without a record, as the one that ends a batch."""
    return rows(container, [], folder)


@NAMED
def test_every_odd_record_gives_the_row_that_it_gives_alone(container, tmp_path, capfd):
    extra = surplus(container, tmp_path)
    together = rows(container, [*container.good, *container.odd, *container.good], tmp_path)
    want = extra.copy()
    for record in container.odd:
        alone = rows(container, [record], tmp_path) - extra
        assert alone.total() == 1
        want += alone
    for record in container.good:
        for key, count in (rows(container, [record], tmp_path) - extra).items():
            want[key] += 2 * count
    assert together == want
    assert capfd.readouterr() == ("", "")


@st.composite
def companies(draw: st.DrawFn) -> tuple[Container, list, int]:
    container = draw(st.sampled_from(CONTAINERS))
    few = draw(st.lists(st.sampled_from(range(len(container.odd))), min_size=1, max_size=3))
    records = [container.odd[k] for k in few]
    records += [container.good[k % len(container.good)] for k in range(draw(st.integers(0, 5)))]
    order = draw(st.permutations(range(len(records))))
    return container, [records[k] for k in order], draw(st.integers(0, len(records) - 1))


def check(company: tuple[Container, list, int], folder) -> None:
    container, records, place = company
    extra = surplus(container, folder)
    alone = [rows(container, [record], folder) - extra for record in records]
    assert all(row.total() == 1 for row in alone)
    assert rows(container, records, folder) == sum(alone, extra)
    without = records[:place] + records[place + 1 :]
    rest = sum(alone[:place] + alone[place + 1 :], extra)
    assert rows(container, without, folder) == rest
    good = container.good[0]
    replaced = [*records[:place], good, *records[place + 1 :]]
    assert rows(container, replaced, folder) == rest + (rows(container, [good], folder) - extra)


def test_records_of_any_company_are_read_each_by_itself(tmp_path, capfd):
    end, k = time.monotonic() + SECONDS, 0
    quick = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    while k == 0 or time.monotonic() < end:
        seed(k)(quick(given(companies())(lambda company: check(company, tmp_path))))()
        k += 1
    out, err = capfd.readouterr()
    assert err == "" and "CANARY" not in out


# ---- the command line --------------------------------------------------------------------


@pytest.mark.parametrize("container", CSV, ids=lambda c: c.name)
def test_no_record_of_a_csv_shows_in_what_the_command_line_says(container, tmp_path, capfd):
    seen = set()
    for records in ([], *([*container.good, odd] for odd in container.odd[::3])):
        path, options = container.path(records, tmp_path)
        arguments = ["sum", str(path), *options, "--mu", "1", "--neighbors", "add-remove"]
        code = main([*arguments, "--ball", "1", "--dim", str(D), "--json"])
        out, err = capfd.readouterr()
        found = json.loads(out)
        seen.add((code, err, tuple(found), tuple(found["columns"]), len(found["value"])))
    assert len(seen) == 1
    assert next(iter(seen))[:2] == (0, "")


# ---- what is refused is refused by its type ------------------------------------------------


def refusal(data, d=D) -> str:
    with pytest.raises(TypeError) as caught:
        list(as_batches(data, d))
    assert "CANARY" not in str(caught.value)
    return str(caught.value)


def test_arrays_and_columns_of_objects_are_refused_whatever_a_record_is():
    arrays, frames = set(), set()
    for record in ([1, 2], *(x for x in OBJECTS if isinstance(x, (int, str, float, type(None))))):
        cells = np.empty((3, 2), object)
        cells[:] = 1.5
        cells[1, 1] = record
        arrays.add(refusal(cells))
        frames.add(refusal(pandas.DataFrame({"a": cells[:, 0], "b": [1.0, 2, 3]})))
    assert len(arrays) == len(frames) == 1


@pytest.mark.parametrize("mask", [False, True])
def test_masked_arrays_are_refused_whatever_they_mask(mask):
    assert "masked" in refusal(np.ma.masked_array(np.ones((2, D)), [[mask, False]] * 2))
