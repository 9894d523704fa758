"""Cases of a hostile review: one record, or emptiness, decided between error and release."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ellipsum import (
    Ellipsoid,
    ExactSum,
    GaussianShape,
    PrivateMean,
    PrivateSum,
    estimate_covariance,
)

BALL = Ellipsoid.ball(1.0, d=2)


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_a_null_among_booleans_is_a_row_like_any_other(make):
    whole = ExactSum(BALL).add(make({"a": [True, True], "b": [True, False]}))
    holed = ExactSum(BALL).add(make({"a": [True, None], "b": [True, False]}))
    first = ExactSum(BALL).add(np.array([[1.0, 1.0]]))
    assert whole.count == holed.count == 2
    assert (holed.integers() == first.integers()).all()


def test_an_iterator_takes_any_item_that_is_no_batch_as_one_record():
    run = PrivateSum(BALL, mu=1.0)
    for odd in (None, {}, "ab", 7, np.zeros(3), object()):
        assert run(iter([[1.0, 2.0], odd])).n == 2
    assert run(iter([np.zeros((5, 2)), None])).n == 6
    for odd in ([], [1, {}], [[1, 2], [3, 4]], [[1, 2]], (), ((), ())):
        assert run(iter([[1.0, 2.0], odd])).n == run(iter([odd, odd])).n == 2


def test_one_iterator_for_all_passes_is_refused_before_anything_is_drawn(monkeypatch):
    drawn = []
    monkeypatch.setattr("ellipsum.noise.rounded_gaussian", lambda *a, **k: drawn.append(a))
    box = {"lower": [-1, -1], "upper": [2, 2], "mu": 1.0}
    for neighbors in ("replace", "add-remove"):
        for rows in ([], [[0.5, 0.5]]):
            same = iter(rows)
            with pytest.raises(TypeError, match="read only once"):
                PrivateMean(**box, neighbors=neighbors)(lambda same=same: same)
    assert not drawn


def test_a_function_is_called_once_for_each_pass():
    calls = []
    box = {"lower": [-1, -1], "upper": [2, 2], "mu": 1.0}
    release = PrivateMean(**box)(lambda: calls.append(1) or iter(np.ones((50, 2))))
    assert len(calls) == release.plan.passes + 1  # and one to count the rows


def test_one_number_is_told_from_no_number_by_nothing_but_its_row():
    line = Ellipsoid.ball(1.0, d=1)
    for n in (0, 1, 2, 3):
        release = PrivateMean(line, mu=1.0, neighbors="add-remove")(np.ones(n))
        assert release.value.shape == (1,)
    for nothing in (np.array([]), np.empty((0, 2)), []):
        PrivateMean(BALL, mu=1.0, neighbors="add-remove")(nothing)


def test_batches_that_can_be_read_once_are_not_counted_away():
    table = pa.table({"a": np.ones(100), "b": np.ones(100)})
    shape = GaussianShape([1.0, 1.0])
    release = PrivateSum(shape.at(), mu=1.0)([table.slice(0, 7), table.to_reader()])
    assert release.n == 107
    reader = table.to_reader()
    with pytest.raises(ValueError, match="cannot be counted"):
        PrivateSum(shape, mu=1.0)([table.slice(0, 7), reader])
    assert len(reader.read_all()) == 100
    box = {"lower": [-1, -1], "upper": [2, 2], "mu": 1.0}
    with pytest.raises(TypeError, match="read only once"):
        PrivateMean(**box, neighbors="add-remove")([table.to_reader()])


def test_the_counts_of_two_methods_have_keys_of_their_own():
    """Under one key and two levels, (c1 s2 - c2 s1) / (s2 - s1) would be the number of rows."""
    ball = {"center": np.zeros(2), "radius": 3.0, "neighbors": "add-remove", "seed": 7}
    budget = {"epsilon": 1.0, "delta": 1e-6}
    keys = set()
    for method in ("gaussian", "wishart"):
        drawn: list[bytes] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "ellipsum.noise.noisy_count", lambda n, sd, *, key, to=drawn: to.append(key) or 50.0
            )
            estimate_covariance(np.ones((50, 2)), method=method, **ball, **budget)
        keys.update(drawn)
    assert len(keys) == 2


LONG = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from ellipsum import Ellipsoid, PrivateSum, open_rows
release = PrivateSum(Ellipsoid.ball(1.0, d=2), mu=1.0)(open_rows("long.csv", header=False))
print(release.n)
"""


def test_a_long_line_with_an_open_quote_is_one_record(tmp_path):
    """It took a hundred bytes of memory for each character, and raised MemoryError."""
    (tmp_path / "long.csv").write_bytes(b'0.5,0.5\n"' + b"1" * (30 << 20) + b"\n0.5,0.5\n")
    run = [sys.executable, "-c", LONG]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


def test_an_item_whose_dimensions_are_no_number_is_one_record():
    class Odd:
        ndim = np.array([2, 2])

        def __array__(self, *_args, **_options):
            return np.array([1.0, 2.0])

    with np.errstate(all="raise"):
        assert ExactSum(BALL).add([[0.0, 1.0], Odd(), [1.0, 0.0]]).count == 3


def test_the_label_of_a_pandas_row_is_not_told():
    for data in (row := pd.Series([1, "x"], name="canary"), [row]):
        with pytest.raises(TypeError, match="data has dtype object") as caught:
            ExactSum(BALL).add(data)
        assert "canary" not in str(caught.value)


@pytest.mark.parametrize("other", [np.longdouble(0.5), 0.5, 1, True, np.float32(1), 10**400, "x"])
def test_a_masked_cell_of_a_list_is_the_same_beside_any_record(other):
    masked = [[np.ma.masked, 0.5]] * 9  # as list(row) of a masked array gives it
    alone = ExactSum(BALL).add([[other, 0.0]]).integers()
    both = ExactSum(BALL).add([*masked, [other, 0.0]])
    holes = ExactSum(BALL).add(masked).integers()
    assert (both.integers() == alone + holes).all()
    assert holes[0] == 0 and holes[1] > 0


def test_an_iterator_among_the_records_of_a_list_is_one_record():
    """It would have made the plan refuse the list, and the shape count no rows (claim rows-2)."""
    records = [[0.1, 0.2]] * 500
    box = {"lower": [0, 0], "upper": [1, 1], "epsilon": 1, "delta": 1e-6}
    assert PrivateMean(**box)([*records, iter([1, 2])]).n == 501
    mechanism = PrivateMean(GaussianShape(np.ones(2)), rho=0.5)
    with_one, without = mechanism([*records[1:], iter([1])]), mechanism(records)
    assert (with_one.sd == without.sd).all()
    with pytest.raises(TypeError, match="only once"):  # batches that can be read once
        PrivateMean(**box)([pa.table({"a": [0.1], "b": [0.2]}).to_reader()])


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, GeneratorExit])
def test_whatever_a_records_own_code_raises_makes_it_not_a_number(error):
    class Raising:
        def __float__(self):
            raise error("canary")

        def __array__(self, *_args, **_options):
            raise error("canary")

    total = ExactSum(BALL).add([[0.5, 0.5], [Raising(), 0.5], Raising()])
    assert total.count == 3 and total.integers()[0] == ExactSum(BALL).add([[0.5, 0]]).integers()[0]
