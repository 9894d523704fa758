"""The protocol that engines implement, on an engine of lists that can fail, repeat and shuffle."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ellipsum import ExactSum, PrivateMean
from ellipsum.adaptive.part_pass import PartTask, Tally
from ellipsum.engines.engine_rows import EngineError, EngineRows, engine, withheld
from engine_cases import (
    BOX,
    EDGES,
    FRAME,
    REGION,
    D,
    assert_same_passes,
    assert_same_releases,
    odd_rows,
    want,
)


class Lists(EngineRows):
    """Parts in this process, each read with numbers of its own; ``again`` are delivered twice."""

    d = D

    def __init__(self, parts, *, again=(), order=None):
        self.parts, self.again = parts, again
        self.order = range(len(parts)) if order is None else order

    def gather(self, task):
        for k in [*self.order, *self.again]:
            yield f"part {k}", task(iter(np.array_split(self.parts[k], 2)))


def split(rows, seed):
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(rows) + 1, size=6))
    return np.split(rows, cuts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_pass_gives_the_same_integers_as_one_array(dtype):
    rows = odd_rows(dtype)
    assert_same_passes(Lists(split(rows, 1)), rows)
    assert_same_releases(Lists(split(rows, 2)), rows)


@pytest.mark.parametrize("seed", range(20))
def test_any_split_order_and_repeated_delivery_gives_the_same_bytes(seed):
    rows, rng = odd_rows(), np.random.default_rng(seed)
    parts = split(rows, seed)
    lists = Lists(parts, again=rng.integers(0, len(parts), size=4), order=rng.permutation(7))
    assert lists.exact_sum(REGION).to_bytes() == want(rows)
    assert lists.histogram(FRAME, EDGES).sum() == len(rows)


def test_holes_are_counted_in_every_part():
    rows = odd_rows()
    total = Lists(split(rows, 4), again=[1]).exact_sum(REGION, missing="ignore")
    assert total.to_bytes() == ExactSum(REGION, missing="ignore").add(rows).to_bytes()
    release = PrivateMean(REGION, mu=1.0, missing="ignore")(Lists(split(rows, 5)), seed=2)
    assert (
        release.integers == PrivateMean(REGION, mu=1.0, missing="ignore")(rows, seed=2).integers
    ).all()


def test_a_part_that_comes_again_with_other_rows_is_refused():
    class Unsteady(Lists):
        def gather(self, task):
            yield from super().gather(task)
            yield "part 0", task(iter([self.parts[1]]))

    with pytest.raises(ValueError, match="twice with other bytes"):
        Unsteady(split(odd_rows(), 1)).exact_sum(REGION)


def test_rows_that_change_between_two_passes_are_refused():
    class Growing(Lists):
        def gather(self, task):
            yield from super().gather(task)
            self.parts = [*self.parts, self.parts[0]]
            self.order = range(len(self.parts))

    with pytest.raises(ValueError, match="changed between two passes"):
        PrivateMean(**BOX, mu=5.0)(Growing([odd_rows()]), seed=1)


def test_no_part_at_all_is_no_row():
    assert Lists([]).count_rows() == 0
    assert (
        Lists([]).exact_sum(REGION).to_bytes() == ExactSum(REGION).add(np.empty((0, D))).to_bytes()
    )
    with pytest.raises(ValueError, match="no rows"):
        PrivateMean(REGION, mu=1)(Lists([]))


@pytest.mark.parametrize("fan", [2, 3, 7])
def test_a_tree_of_merges_gives_the_same_bytes(fan):
    rows = odd_rows()
    for method, arguments in (("exact_sum", (REGION,)), ("halves", (FRAME, 1e6))):
        task = PartTask(D, method, arguments)
        level = [task(iter([part])) for part in split(rows, 3)]
        while len(level) > 1:
            level = [task.merge(level[k : k + fan]) for k in range(0, len(level), fan)]
        assert level == [task(iter([rows]))]


def test_results_of_another_pass_and_damaged_ones_are_refused():
    halves, counted = PartTask(D, "halves", (FRAME, 1.0)), PartTask(D, "count_rows")
    with pytest.raises(ValueError, match="another pass"):
        halves.tallied([counted(iter(()))])
    raw = Tally(3, [-(2**127), 2**127 - 1, 0]).to_bytes()
    assert Tally.from_bytes(raw) == Tally(3, [-(2**127), 2**127 - 1, 0])
    for k in range(len(raw)):
        damaged = raw[:k] + bytes([raw[k] ^ 1]) + raw[k + 1 :]
        for bad in (damaged, raw[:k]):
            with pytest.raises(ValueError, match="truncated or altered"):
                Tally.from_bytes(bad)


def test_an_engines_error_leaves_without_its_text_and_its_cause():
    def job():
        raise ValueError("cannot cast '4711' to DOUBLE")

    with pytest.raises(EngineError) as caught:
        withheld("Spark", job)
    error = caught.value
    assert "4711" not in str(error) and "ValueError" in str(error)
    assert error.__cause__ is None and error.__context__ is None


def test_workers_without_the_package_are_told_of():
    def job():
        raise RuntimeError("ModuleNotFoundError: No module named 'ellipsum' while reading 4711")

    with pytest.raises(EngineError, match="install it there") as caught:
        withheld("Spark", job)
    assert "4711" not in str(caught.value)


def test_an_engine_that_is_missing_is_named_with_its_extra():
    with pytest.raises(ImportError, match=r'pip install "ellipsum\[spark\]"'):
        engine("no_such_engine.sql", "spark")


def test_the_package_imports_no_engine():
    code = (
        "import sys, ellipsum, ellipsum.engines.engine_rows\n"
        "assert not {'pyspark', 'apache_beam', 'dask'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["pyspark.sql.dataframe", "dask.array.core", "apache_beam.pvalue"])
def test_rows_that_are_elsewhere_are_not_pulled_here(name):
    def pulled(*_):
        raise AssertionError("the rows came to this process")

    kind = "PCollection" if "beam" in name else "DataFrame" if "spark" in name else "Array"
    methods = {"__arrow_c_stream__": pulled, "__array__": pulled, "__iter__": pulled}
    far = type(kind, (), {**methods, "__module__": name, "shape": (5, D)})()
    for use in (PrivateMean(REGION, mu=1), PrivateMean(**BOX, mu=1), ExactSum(REGION).add):
        with pytest.raises(TypeError, match=r"ellipsum\.engines\."):
            use(far)
