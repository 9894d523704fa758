"""Columns of integers and truth values, converted where the kernels take them: the sums of their
doubles, whatever holds them, on every target and task."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from clip_cases import NONE, Region
from ellipsum import Ellipsoid, ExactGroupSum, ExactSum, PrivateMean
from ellipsum.kernel_parts import kernel_parts
from ellipsum.rows.arrow_columns import ArrowBlock
from ellipsum.rows.batches import kernel_batches
from ellipsum.rows.columns import ColumnBlock

pa = pytest.importorskip("pyarrow")

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
TYPES = [*INTEGERS, "?"]
KINDS = ["ball", "box", "halves", "matrix", "low rank", "distances"]


def numbers_of(dtype, n, rng):
    """Small ones, and the ends of the type, with those about 2^53 that are rounded."""
    if dtype == "?":
        return rng.random(n) < 0.4
    ends = np.iinfo(dtype)
    few = rng.integers(max(ends.min, -100), min(ends.max, 100), n, endpoint=True).astype(dtype)
    hard = [ends.min, ends.max, ends.max - 1, ends.max // 2 + 1, 0]
    hard += [x for k in (53, 54, 62) for x in (2**k + 1, 2**k + 2 ** (k - 52) + 1) if x <= ends.max]
    at = rng.integers(0, n, n // 8)
    few[at] = np.array(hard, dtype)[rng.integers(0, len(hard), len(at))]
    return few


def columns_of(n, d, seed, types=TYPES):
    rng = np.random.default_rng(seed)
    return [numbers_of(types[(j + seed) % len(types)], n, rng) for j in range(d)]


def as_doubles(columns):
    return np.column_stack([c.astype(np.float64) for c in columns])


def in_box(kernels, region, rows, lower, upper):
    shape, partial = (region.center, region.scale, region.matrix), np.zeros(region.width, np.int64)
    ends = {"lower": lower, "upper": upper}
    if "distances" in region.kind:
        kernels.distance_counts(rows, *shape, region.edges, partial, 1, **ends)
        return partial.tolist()
    return kernels.clip_sum(rows, *shape, NONE, region.radius, partial, 1, True, **ends), (
        partial.tolist()
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 7, 13, 40, 700])
def test_the_integers_are_those_of_the_doubles(kernels, kind, d):
    """Also in stretches, of which the last is short, and by several threads."""
    for n in (0, 1, 7, 600) if d == 700 else (0, 1, 8, 9, 63, 1700, 40_000 // d):
        if d > 40 and kind in ("matrix", "low rank"):
            continue
        columns, region = columns_of(n, d, seed=n + d), Region(kind, d)
        wanted = region.sums_and_holes(kernels, as_doubles(columns))
        for threads in (1, 3):
            assert region.sums_and_holes(kernels, ColumnBlock(columns), threads) == wanted


@pytest.mark.parametrize("kind", ["halves", "distances"])
def test_cells_are_moved_into_a_box_after_they_are_doubles(kernels, kind):
    for n, d in [(5, 3), (3000, 5), (700, 300)]:
        columns, region = columns_of(n, d, seed=d), Region(kind, d)
        box = region.center - 3, region.center + 2
        wanted = in_box(kernels, region, as_doubles(columns), *box)
        assert in_box(kernels, region, ColumnBlock(columns), *box) == wanted


@pytest.mark.parametrize("offset", [0, 1, 5, 8, 13, 64, 71])
def test_arrow_columns_of_every_type_with_nulls_wherever_they_begin(kernels, offset):
    """What lies below a null, and before the first number, counts for nothing."""
    for n in (1, 7, 8, 9, 200, 9000):
        rng = np.random.default_rng(n + offset)
        d = len(TYPES) + 2
        columns = [*columns_of(offset + n, len(TYPES), seed=n), *rng.normal(size=(2, offset + n))]
        columns[-1] = columns[-1].astype(np.float32)
        null = rng.random((d, offset + n)) < 0.2
        null[::3] = False
        arrays = [
            pa.array(c, mask=m if m.any() else None) for c, m in zip(columns, null, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, [f"c{j}" for j in range(d)])[offset:]
        (block,) = kernel_batches(batch, d)
        assert isinstance(block, ArrowBlock)
        rows = np.where(null.T, np.nan, as_doubles(columns))[offset:]
        for kind in ("ball", "box", "distances"):
            region = Region(kind, d)
            wanted = region.sums_and_holes(kernels, np.ascontiguousarray(rows))
            assert region.sums_and_holes(kernels, block) == wanted
            arrays = ColumnBlock(block.columns, block.valid, block.first_bits)
            assert region.sums_and_holes(kernels, arrays) == wanted
        np.testing.assert_array_equal(np.asarray(block), rows)


def test_one_column_of_truth_values_within_a_byte(kernels):
    truth = np.random.default_rng(1).random(100) < 0.5
    for start in range(20):
        (block,) = kernel_batches(pa.table({"a": truth})[start:], 1)
        partial = np.zeros(1, np.int64)
        kernels.clip_sum(block, np.zeros(1), np.ones(1), NONE, NONE, 1e6, partial, 1)
        assert partial[0] == truth[start:].sum()


def test_bytes_that_are_no_truth_value_of_numpy_are_true(kernels):
    odd = np.array([0, 1, 2, 255] * 40, np.uint8).view(np.bool_)
    partial = np.zeros(2, np.int64)
    block = ColumnBlock([odd, odd])
    kernels.clip_sum(block, np.zeros(2), np.ones(2), NONE, NONE, 1e6, partial, 1)
    assert partial.tolist() == [120, 120]


def frames():
    rng = np.random.default_rng(0)
    for n in (0, 3, 9000):
        whole = pd.DataFrame(rng.integers(-9, 9, (n, 6)))
        yield whole
        yield whole > 0
        yield whole.astype("i4")
        mixed = whole.astype({0: "f8", 1: "f4", 2: "?", 3: "u1", 4: "i2"})
        yield mixed
        yield mixed[[5, 3, 1, 0, 2, 4]]
        yield whole[::2]
        yield pd.DataFrame(np.asfortranarray(whole.to_numpy()))


@pytest.mark.parametrize("frame", list(frames()))
def test_frames_of_numbers_are_their_doubles(kernel_set, frame):
    region = Ellipsoid.ball(11.5, center=[0.25] * 6)
    rows = frame.to_numpy(np.float64) if len(frame) else np.empty((0, 6))
    wanted = ExactSum(region).add(np.ascontiguousarray(rows)).integers()
    assert (ExactSum(region).add(frame).integers() == wanted).all()


OWN = ["Int64", "UInt8", "Float32", "Float64", "boolean", "UInt64"]
ARROW = ["int64", "uint8", "float", "double", "bool", "uint64"]


@pytest.mark.parametrize("share", [0.3, 0.0])
@pytest.mark.parametrize("n", [3, 5000, 9000])
@pytest.mark.parametrize("kinds", [OWN, [f"{kind}[pyarrow]" for kind in ARROW]])
def test_pandas_own_numbers_with_nulls_are_the_same_in_few_rows_and_in_many(
    kernel_set, n, kinds, share
):
    """Few are copied, many go by Arrow, or lie in their columns where there is no null; the ends of
    a type are rounded alike."""
    rng = np.random.default_rng(n)
    columns = {}
    for j, kind in enumerate(kinds):
        numbers = numbers_of("?" if kind.startswith("bool") else "i8" if j == 0 else "u1", n, rng)
        series = pd.Series(numbers).astype(kind)
        series[rng.random(n) < share] = pd.NA
        columns[f"c{j}"] = series
    frame = pd.DataFrame(columns)
    frame["plain"] = rng.normal(size=n)
    for missing in ("center", "ignore"):
        region = Ellipsoid.ball(60.5, center=[0.25] * 7)
        totals = [ExactSum(region, missing=missing) for _ in range(2)]
        totals[0].add(frame)
        totals[1].add(pa.Table.from_pandas(frame, preserve_index=False))
        assert totals[0].to_bytes() == totals[1].to_bytes()


@pytest.mark.parametrize(
    "kind",
    ["Float64", "Float32", "Int64", "Int8", "UInt64", "mixed", "whole", "table", "large", "single"],
)
@pytest.mark.parametrize("n", [0, 3, 5000, 9000])
def test_few_rows_of_polars_are_those_that_go_by_arrow(kernel_set, n, kind):
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(n)
    rows = rng.integers(-99, 99, (n, 5))
    if kind in ("Int64", "UInt64"):  # the ends of the type, and what is rounded
        rows = np.column_stack([numbers_of(kind[0].lower() + "8", n, rng) for _ in range(5)])
    if kind == "table":
        rows[:, 1] = numbers_of("i8", n, rng)
    if kind == "large":  # beyond half of its type
        rows = np.array(rows, object)
        rows[:, 1] = numbers_of("u8", n, rng)
    rows = (abs(rows) if kind == "whole" else rows).tolist()
    holed = [[None if rng.random() < 0.1 else x for x in row] for row in rows]
    several = {"mixed": ["Float64", "Float32"], "whole": ["Int8", "UInt64", "Int64", "UInt8"]}
    several |= {"table": ["Float64", "Int64", "Float32", "Int8"], "single": ["Float32", "Int32"]}
    several |= {"large": ["Float64", "UInt64", "Float32", "Int16"]}
    given = several.get(kind, [kind])
    names, kinds = list("abcde"), [getattr(polars, given[j % len(given)]) for j in range(5)]
    schema = dict(zip(names, kinds, strict=True))
    frame = polars.DataFrame(holed, schema=schema, orient="row")
    region = Ellipsoid.ball(60.5, center=dict.fromkeys(names, 0.25))
    for missing in ("center", "ignore"):
        totals = [ExactSum(region, missing=missing) for _ in range(2)]
        totals[0].add(frame).add(frame[::2].select(names[::-1])).add(frame[1:])
        turned = frame[::2].select(names[::-1])
        for part in (frame, turned, frame[1:]):
            totals[1].add(
                pa.Table.from_batches(part.to_arrow().to_batches(), part.to_arrow().schema)
            )
        assert totals[0].to_bytes() == totals[1].to_bytes()
    with pytest.raises(ValueError, match="'f'"):
        ExactSum(region).add(frame.rename({"a": "f"}))


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]"])
def test_a_pandas_that_cannot_copy_such_numbers_quotes_none(monkeypatch, kind):
    frame = pd.DataFrame({"a": pd.Series([987654321, None], dtype=kind)})

    def unable(*_given, **_options):
        raise ValueError("cannot convert 987654321")

    monkeypatch.setattr(pd.DataFrame, "to_numpy", unable)
    (block,) = kernel_batches(frame, 1)
    np.testing.assert_array_equal(np.asarray(block), [[987654321.0], [np.nan]])


@pytest.mark.parametrize("dtype", [*TYPES, ">i4", "f2"])
def test_arrays_of_numbers_by_columns_are_their_doubles(kernel_set, dtype):
    rows = np.random.default_rng(2).integers(0, 2, (300, 5)).astype(dtype)
    by_columns = np.asfortranarray(rows)
    region = Ellipsoid.ball(1.5, center=[0.25] * 5)
    wanted = ExactSum(region).add(rows.astype(np.float64)).integers()
    assert (ExactSum(region).add(by_columns).integers() == wanted).all()
    converted = np.dtype(dtype).isnative and np.dtype(dtype).kind != "f"
    assert isinstance(next(kernel_parts(by_columns)), ColumnBlock) == converted
    table = ExactGroupSum(region).add(by_columns, rows[:, 0].astype(np.int64))
    assert (sum(table.integers()) == wanted).all()


def test_a_plan_reads_integers_as_it_reads_their_doubles():
    rows = np.random.default_rng(3).integers(0, 100, (20_000, 3))
    frame = pd.DataFrame(rows, columns=list("abc"))
    mean = PrivateMean(lower=[0] * 3, upper=[100] * 3, rho=0.1)
    values = [mean(data, seed=7).value for data in (frame, frame.astype(float))]
    np.testing.assert_array_equal(*values)
