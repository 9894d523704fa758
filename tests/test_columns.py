"""Columns read where they are: the bits of the same rows, whatever the types, gaps and slices."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ellipsum import Ellipsoid, ExactSum, PrivateMean
from ellipsum.kernels.backend import kernels
from ellipsum.rows.batches import as_batches, kernel_batches
from ellipsum.rows.columns import ColumnBlock

N = 1003  # no whole number of vectors, tiles or bytes of a bitmap


def mixed_rows(d, seed=0, holes=True):
    """Rows (N, d) whose even columns are float32; NaN in some cells, an infinity, a huge number."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(N, d))
    rows[:, ::2] = rows[:, ::2].astype(np.float32)
    rows[17, d // 2], rows[700, 0] = np.inf, 2.0**126
    if holes:
        rows[rng.random((N, d)) < 0.1] = np.nan
        rows[5] = np.nan
    return rows


def arrow_table(rows, types, gaps):
    """NaN as nulls in the columns that ``gaps`` names, and a buffer of garbage below them."""
    columns = []
    for j, kind in enumerate(types):
        column = rows[:, j].astype(kind)
        null = np.isnan(column) if j in gaps else None
        if null is not None:
            column[null] = 12345.0  # what lies below a null is nobody's number
        columns.append(pa.array(column, mask=null))
    return pa.table(columns, names=[f"x{j}" for j in range(len(types))])


def region_of(shape, d):
    center = np.linspace(-0.2, 0.2, d)
    if shape == "box":
        return Ellipsoid.box(center - 0.7, center + 0.9)
    if shape == "matrix":
        return Ellipsoid.for_covariance(np.eye(d) + 0.3, center, 0.4)
    return Ellipsoid.ball(np.sqrt(d), center)


def bits(data, region, **options):
    return ExactSum(region, **options).add(data).to_bytes()


@pytest.mark.parametrize("gaps", ["none", "some", "all"])
@pytest.mark.parametrize("types", ["single", "double", "mixed"])
@pytest.mark.parametrize("d", [1, 3, 8, 16, 41])
def test_arrow_columns_have_the_bits_of_rows(kernel_set, d, types, gaps):
    rows = mixed_rows(d, d)
    kinds = {"single": ["f4"] * d, "double": ["f8"] * d, "mixed": ["f4", "f8"] * d}[types][:d]
    rows = np.column_stack([rows[:, j].astype(kinds[j]).astype("f8") for j in range(d)])
    with_gaps = {"none": (), "some": range(1, d, 3), "all": range(d)}[gaps]
    table = arrow_table(rows, kinds, with_gaps)
    for shape in ("ball", "box", "matrix"):
        region = region_of(shape, d)
        assert bits(table, region) == bits(rows, region)
        assert bits(table, region, threads=3) == bits(rows, region)
    stretched = {"missing": "ignore"}
    assert bits(table, region_of("ball", d), **stretched) == bits(
        rows, region_of("ball", d), **stretched
    )


@pytest.mark.parametrize("start, stop", [(0, 5), (1, N), (7, 640), (13, 13), (999, N)])
def test_slices_of_columns_with_gaps_begin_inside_a_byte(kernel_set, start, stop):
    rows = mixed_rows(6)
    table = arrow_table(rows, ["f4", "f8"] * 3, range(6))
    region = region_of("ball", 6)
    assert bits(table.slice(start, stop - start), region) == bits(rows[start:stop], region)
    (batch,) = table.slice(start, stop - start).to_batches() or [None]
    if batch is not None:
        assert bits(batch, region) == bits(rows[start:stop], region)


@pytest.mark.parametrize("start", [0, 3, 8])
def test_one_gap_is_found_wherever_it_is(kernel_set, start):
    n = 20_011  # more than a tile, and no whole number of bytes
    rows = np.random.default_rng(1).normal(size=(n, 2))
    region = region_of("ball", 2)
    for at in (start, 7, 8, 15, 8191, 8192, 8193, 16383, 16384 + start, n - 12, n - 3, n - 1):
        holed = rows.copy()
        holed[at, 1] = np.nan
        table = arrow_table(holed, ["f4", "f8"], (1,)).slice(start)
        holed[:, 0] = holed[:, 0].astype("f4")
        assert bits(table, region) == bits(holed[start:], region)


def test_the_other_passes_take_columns_too(kernel_set):
    rows, d = mixed_rows(6), 6
    table = arrow_table(rows, ["f4", "f8"] * 3, (0, 1, 4))
    (block,) = kernel_batches(table, d)
    assert isinstance(block, ColumnBlock)
    frame = np.zeros(d), np.full(d, 1e6), np.empty(0)
    edges, found = np.array([1e6, 2e6, 3e6, 1e7]), []
    for data in (block, rows):
        halves, counts = np.zeros(2 * d, np.int64), np.zeros(4, np.int64)
        seen = kernels().clip_sum(data, *frame, np.empty(0), 2e6, halves, 2, halves=True)
        kernels().distance_counts(data, *frame, edges, counts, 2)
        found.append((halves.tolist(), counts.tolist(), seen))
    assert found[0] == found[1]


def test_a_release_from_a_box_is_the_same_from_a_table_and_from_rows():
    rows = mixed_rows(4)
    table = arrow_table(rows, ["f4", "f8"] * 2, range(4))
    box = PrivateMean(lower=np.full(4, -5.0), upper=np.full(4, 5.0), epsilon=1.0, delta=1e-6)
    np.testing.assert_array_equal(box(table, seed=1).value, box(rows, seed=1).value)


def test_no_column_is_copied():
    rows = np.random.default_rng(0).normal(size=(N, 3))
    table = arrow_table(rows, ["f4", "f8", "f8"], ())
    (block,) = kernel_batches(table, 3)
    for column, chunked in zip(block.columns, table.columns, strict=True):
        data = chunked.chunk(0).buffers()[1]
        assert column.__array_interface__["data"][0] == data.address


def test_a_wide_batch_of_numbers_is_one_block_and_one_of_decimals_is_converted_in_parts(
    monkeypatch,
):
    """Each column of each part costs microseconds of Python: views need no parts."""
    monkeypatch.setattr("ellipsum.rows.arrow.PART_BYTES", 1 << 10)
    floats = pa.table({f"x{j}": np.arange(1000.0) for j in range(4)})
    (block,) = kernel_batches(floats, 4)
    assert len(block) == 1000
    whole = pa.table({"a": np.arange(1000), "b": np.arange(1000)})
    (block,) = kernel_batches(whole, 2)
    assert len(block) == 1000
    whole = pa.table([column.cast(pa.decimal128(20)) for column in whole.columns], ["a", "b"])
    parts = list(kernel_batches(whole, 2))
    assert len(parts) == 16
    assert np.array_equal(np.concatenate([np.asarray(p) for p in parts])[:, 0], np.arange(1000))


@pytest.mark.parametrize("valid", [None, b"\xff" * 2])
def test_a_buffer_at_an_odd_address_is_copied_and_read_no_further_than_it_reaches(valid):
    numbers = pa.py_buffer(b"\0" + np.arange(12.0).tobytes()).slice(1)
    given = [valid and pa.py_buffer(valid), numbers]
    array = pa.Array.from_buffers(pa.float64(), 10, given, offset=2)
    (block,) = kernel_batches(pa.table({"a": array, "b": array}), 2)
    assert block.columns[0].flags.aligned
    assert np.array_equal(np.asarray(block)[:, 1], np.arange(2.0, 12.0))
    assert bits(pa.table({"a": array}), Ellipsoid.ball(1.0, [0.0]))


def test_a_pandas_frame_of_two_types_goes_by_its_columns(kernel_set):
    rows = mixed_rows(5)
    frame = pd.DataFrame({j: rows[:, j].astype(["f4", "f8"][j % 2]) for j in range(5)})
    many = pd.concat([frame] * 9)  # few are copied
    (block,) = kernel_batches(many, 5)
    assert isinstance(block, ColumnBlock)
    region = region_of("ball", 5)
    assert bits(many, region) == bits(np.tile(rows, (9, 1)), region)
    assert bits(frame, region) == bits(rows, region)
    assert bits(frame[::2], region) == bits(rows[::2], region)


def test_columns_as_arrays_are_rows_and_never_the_users_memory():
    column = np.arange(10.0)
    block = ColumnBlock([column])
    copy = np.array(block, dtype=np.float64)
    copy[:] = -1
    assert column[3] == 3
    table = arrow_table(mixed_rows(3), ["f4", "f8", "f8"], (0, 2))
    np.testing.assert_array_equal(np.concatenate(list(as_batches(table, 3))), mixed_rows(3))


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f8", "i4"])
@pytest.mark.parametrize("shape", ["ball", "box", "matrix"])
def test_a_few_rows_at_a_time_have_the_bits_of_all_at_once(kernel_set, shape, dtype):
    for d in (1, 2, 5, 16, 33):
        rows = np.random.default_rng(d).normal(0, 4, (40, d)).astype(dtype)
        if rows.dtype.kind == "f":
            rows[3, 0], rows[4] = np.nan, np.inf
        region = region_of(shape, d)
        total = ExactSum(region)
        for row in rows[:20]:
            total.add(row)
        total.add(rows[20:30][::-1]).add(np.asfortranarray(rows[30:])).add(rows[:0])
        assert total.to_bytes() == bits(list(rows.astype("f8")), region)


def test_a_few_rows_are_refused_like_many():
    total = ExactSum(Ellipsoid.ball(1.0, d=3))
    for wrong, error in [
        (np.zeros(4), ValueError),
        (np.zeros((2, 4)), ValueError),
        (np.zeros((1, 1, 3)), ValueError),
        (np.zeros(3, object), TypeError),
        (np.zeros(3, "U1"), TypeError),
        (np.zeros(()), ValueError),
    ]:
        with pytest.raises(error):
            total.add(wrong)
    assert total.count == 0
    strict = ExactSum(Ellipsoid.ball(1.0, d=3), nonfinite="raise")
    with pytest.raises(ValueError, match="nonfinite"):
        strict.add(np.array([np.nan, 0, 0]))
    assert strict.count == 0
