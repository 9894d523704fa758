"""Rows in: arrays, batches and Arrow data become blocks, and no record can raise."""

from __future__ import annotations

import builtins
import random
import subprocess
import sys
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest

from arrow_streams import OneArray, Stream, gather
from ellipsum.rows.batches import as_batches
from ellipsum.rows.columns import WIDE_BYTES, wide_block
from ellipsum.rows.files import open_rows

CANARY = 987654.321


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(1000, 3))


@pytest.fixture
def table(rows):
    return pa.table({name: rows[:, j] for j, name in enumerate("abc")})


def list_column(rows, kind=None):
    flat = pa.array(rows.ravel(), kind)
    return pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])


# ---- arrays and batches ----------------------------------------------------------------


def test_an_array_is_given_whole_and_without_a_copy(rows):
    (batch,) = as_batches(rows, 3)
    assert batch is rows
    strided = np.asfortranarray(rows)[::-2]
    (batch,) = as_batches(strided, 3)
    assert np.shares_memory(batch, strided)


def test_a_memory_map_is_not_read_into_memory(rows, tmp_path):
    np.save(tmp_path / "x.npy", rows)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    (batch,) = as_batches(mapped, 3)
    assert np.shares_memory(batch, mapped)


class Tensor:
    """An array of another library."""

    ndim = 2

    def __init__(self, n):
        self.n = n

    def __array__(self, dtype=None, copy=None):
        return np.ones((self.n, 2), dtype)


@pytest.mark.parametrize(
    "data, shapes",
    [
        ([[1, 2], [3, 4], [5, 6]], [(3, 2)]),
        ([np.array([1.0, 2.0]), np.array([3.0, 4.0])], [(2, 2)]),
        ([np.ones((2, 2)), np.ones((3, 2))], [(2, 2), (3, 2)]),
        ([[[1, 2], [3, 4]], [[5, 6]]], [(2, 2)]),
        (
            [[1, 2], np.ones((3, 2)), [3, 4], np.ones(2), pa.table({"a": [1.0], "b": [2.0]})],
            [(1, 2), (3, 2), (2, 2), (1, 2)],
        ),
        ([[1, 2, 3], [3], None, 5, "12", {1: 2}, [[1, 2]], np.ones(3)], [(8, 2)]),
        ((np.ones((k, 2)) for k in (1, 0, 2)), [(1, 2), (0, 2), (2, 2)]),
        (iter([np.ones(2), [[1, 2]]]), [(2, 2)]),
        (iter([[1, 2], [3], [[1, 2], None], [], [1, {}]]), [(5, 2)]),
        (iter([[1, 2], np.ones((3, 2)), [3, 4]]), [(1, 2), (3, 2), (1, 2)]),
        (iter([Tensor(3), Tensor(4)]), [(3, 2), (4, 2)]),
        (np.ones(2), [(1, 2)]),
        ([], []),
    ],
)
def test_what_counts_as_an_array_and_what_as_batches(data, shapes):
    assert [batch.shape for batch in as_batches(data, 2)] == shapes


@pytest.mark.parametrize(
    "data, error, phrase",
    [
        ("rows.parquet", TypeError, "open_rows"),
        ({"a": 1}, TypeError, "mapping"),
        (5, TypeError, "got int"),
        ([np.ones((4, 3))], ValueError, r"shape \(n, 2\), got 3 columns$"),
        (np.array([[1, None]]), TypeError, "dtype object"),
        (np.array(["a", "b"]), TypeError, "numeric"),
        (np.ma.masked_array([[1, 2]]), TypeError, "masked"),
        (np.ones((2, 2, 2)), ValueError, r"shape \(n, 2\)"),
    ],
)
def test_data_of_no_use_is_refused_by_name(data, error, phrase):
    with pytest.raises(error, match=phrase):
        list(as_batches(data, 2))


# ---- Arrow: layouts --------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [
        lambda t: t,
        Stream,
        lambda t: t.to_reader(max_chunksize=17),
        lambda t: t.to_batches()[0],
        lambda t: OneArray(t.to_batches()[0]),
        lambda t: t.to_batches(max_chunksize=100),
        lambda t: iter(t.to_batches(max_chunksize=100)),
        lambda t: pa.concat_tables([t.slice(0, 0), t.slice(0, 400), t.slice(400)]),
    ],
)
def test_every_form_of_a_wide_table_gives_the_same_rows(table, rows, wrap):
    np.testing.assert_array_equal(gather(wrap(table), 3), rows)


def test_slices_and_empty_batches_keep_their_offsets(table, rows):
    np.testing.assert_array_equal(gather(table.slice(13, 100), 3), rows[13:113])
    first = table.slice(0, 5).to_batches()[0]
    reader = pa.RecordBatchReader.from_batches(table.schema, [first.slice(0, 0), first])
    assert [len(block) for block in as_batches(reader, 3)] == [5]
    assert list(as_batches(table.slice(0, 0), 3)) == []


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("offset, length", [(0, 1000), (7, 500), (999, 1)])
def test_fixed_size_lists_are_views(rows, kind, offset, length):
    column = list_column(rows, kind)
    base = column.values.to_numpy()
    for data in (
        column.slice(offset, length),
        pa.table({"v": column}).slice(offset, length),
        pa.chunked_array([column.slice(offset, length)]),
    ):
        (block,) = as_batches(data, 3)
        assert np.shares_memory(block, base)
        np.testing.assert_array_equal(block, rows[offset : offset + length].astype(base.dtype))


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.large_list(pa.float32())])
def test_whole_lists_are_views_too(rows, kind):
    column = pa.array(list(rows), kind).slice(10, 50)
    (block,) = as_batches(column, 3)
    assert np.shares_memory(block, column.values.to_numpy())
    np.testing.assert_array_equal(block, rows[10:60].astype(block.dtype))


def test_extension_types_are_read_by_their_storage(rows):
    kind = pa.fixed_shape_tensor(pa.float64(), [3])
    column = pa.ExtensionArray.from_storage(kind, list_column(rows))
    np.testing.assert_array_equal(gather(pa.table({"t": column}), 3), rows)


def test_wide_tables_come_in_blocks_of_bounded_size():
    d = 64
    table = pa.table({str(j): np.zeros(40_000, np.float32) for j in range(d)})
    blocks = list(as_batches(table, d))
    assert sum(map(len, blocks)) == 40_000
    assert max(block.nbytes for block in blocks) <= WIDE_BYTES
    assert {block.dtype for block in blocks} == {np.dtype(np.float32)}


def test_a_block_of_columns_has_no_power_of_two_between_them():
    block = wide_block([np.zeros(4096), np.zeros(4096)])
    assert block.strides[1] // block.itemsize not in {2**k for k in range(20)}


# ---- Arrow: types ----------------------------------------------------------------------


def test_numeric_types_become_floats_and_nulls_nan():
    table = pa.table(
        {
            "int64": pa.array([1, None, 2**63 - 1]),
            "uint64": pa.array([1, None, 2**64 - 1], pa.uint64()),
            "bool": pa.array([True, None, False]),
            "decimal": pa.array([Decimal("1.5"), None, Decimal("-3.25")]),
            "half": pa.array([np.float16(1), None, np.float16(3)], pa.float16()),
            "float": pa.array([1.0, None, float("inf")], pa.float32()),
        }
    )
    want = [[1, 1, 1, 1.5, 1, 1], [np.nan] * 6, [2.0**63, 2.0**64, 0, -3.25, 3, np.inf]]
    (block,) = as_batches(table, 6)
    assert block.dtype == np.float64
    np.testing.assert_array_equal(block, want)


@pytest.mark.parametrize(
    "kind, scale",
    [(pa.decimal128, 0), (pa.decimal128, 2), (pa.decimal128, 10), (pa.decimal128, 22),
     (pa.decimal128, 37), (pa.decimal256, 20)],
)  # fmt: skip
def test_a_decimal_is_the_nearest_double(kind, scale):
    draw = random.Random(scale)
    context = Context(prec=80)
    size = 38 if kind is pa.decimal128 else 76
    digits = [draw.randrange(-(10**k) + 1, 10**k) for k in range(1, size + 1) for _ in range(40)]
    digits += [0, 2**53, 2**53 + 1, -(2**53) - 1, 2**63, -(2**63), 2**64 - 1, 2**64 + 1]
    values = [Decimal(x).scaleb(-scale, context) for x in digits]
    values[7::50] = [None] * len(values[7::50])
    column = pa.array(values, kind(size, scale))
    want = [np.nan if x is None else float(x) for x in values]
    np.testing.assert_array_equal(gather(column, 1)[:, 0], want)
    np.testing.assert_array_equal(gather(pa.table({"a": column}).slice(13), 1)[:, 0], want[13:])


def decimals(kind, integers):
    """A column of these integers, whatever digits the type allows."""
    size = kind.bit_width // 8
    data = b"".join(int(x).to_bytes(size, "little", signed=True) for x in integers)
    return pa.Array.from_buffers(kind, len(integers), [None, pa.py_buffer(data)])


@pytest.mark.parametrize(
    "kind",
    [pa.decimal32(4, 1), pa.decimal64(4, 1), pa.decimal64(18, 1), pa.decimal128(4, 1),
     pa.decimal128(17, 3), pa.decimal128(25, 3), pa.decimal128(38, 30), pa.decimal256(40, 2)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("suffix", ["arrow", "arrows"])
def test_a_decimal_beyond_its_precision_is_one_row_of_nan(tmp_path, kind, suffix):
    top, most = 10**kind.precision, 2 ** (kind.bit_width - 1)
    odd = [x for x in (top, -top, top + 1, most - 1, -most, 2**64 * top) if -most <= x < most]
    integers = [0, *odd, top - 1, 1 - top, 5]
    column = decimals(kind, integers)
    scaled = [float(Decimal(x).scaleb(-kind.scale, Context(prec=90))) for x in integers]
    want = [np.nan if abs(x) >= top else y for x, y in zip(integers, scaled, strict=True)]
    np.testing.assert_array_equal(gather(pa.table({"a": column}), 1)[:, 0], want)
    path = tmp_path / f"x.{suffix}"
    open_file = pa.ipc.new_file if suffix == "arrow" else pa.ipc.new_stream
    lists = pa.ListArray.from_arrays(pa.array(range(len(integers) + 1), pa.int32()), column)
    for cells in (column, lists):
        table = pa.table({"a": cells})
        with pa.OSFile(str(path), "wb") as file, open_file(file, table.schema) as out:
            out.write_table(table)
        found = np.concatenate(list(open_rows(path).batches(1)))
        np.testing.assert_array_equal(found[:, 0], want)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.int8(), pa.float32()])
def test_a_null_does_not_change_how_its_neighbours_are_read(kind):
    top = 2**53 + 3 if pa.types.is_integer(kind) and kind.bit_width == 64 else 101
    without = gather(pa.table({"a": pa.array([top, 7], kind)}), 1)
    beside = gather(pa.table({"a": pa.array([top, None], kind)}), 1)
    assert without[0] == beside[0] and np.isnan(beside[1])


def test_only_single_precision_columns_give_single_precision_rows():
    single, double = pa.array([1.0], pa.float32()), pa.array([1.0])
    assert next(as_batches(pa.table({"a": single, "b": single}), 2)).dtype == np.float32
    assert next(as_batches(pa.table({"a": single, "b": double}), 2)).dtype == np.float64


def test_a_signalling_nan_is_no_warning():
    signalling = pa.array(np.array([0x7FA00000], np.uint32).view(np.float32))
    (block,) = as_batches(pa.table({"a": signalling, "b": [1.0]}), 2)
    np.testing.assert_array_equal(block, [[np.nan, 1.0]])


@pytest.mark.parametrize(
    "column, phrase",
    [
        (pa.array(["CANARY"]), "'bad' of data is not numeric, its type is string"),
        (pa.array(["CANARY"]).dictionary_encode(), "its type is dictionary"),
        (pa.array([1.5]).dictionary_encode(), "its type is dictionary"),
        (pa.array([None]), "its type is null"),
        (pa.array([{"CANARY": 1}]), "its type is struct"),
        (pa.array([["CANARY"]]), "its type is list"),
        (pa.array([0], pa.timestamp("s")), "its type is timestamp"),
        (pa.array([[1.5]]), "'bad' of data holds lists: read it alone"),
    ],
)
def test_columns_that_are_not_numeric_are_named(column, phrase):
    with pytest.raises(TypeError, match=phrase) as caught:
        as_batches(pa.table({"good": [1.0], "bad": column}), 2)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    "table, phrase",
    [
        (pa.table({"a": [1.0], "b": [2.0], "c": [3.0]}), "got 3 numeric columns"),
        (pa.table({"v": list_column(np.ones((1, 3)))}), "got lists of 3 numbers"),
        (pa.table([[1.0], [2.0]], names=["a", "a"]), "comes twice"),
        (pa.table({"__index_level_0__": [1]}), "no columns"),
    ],
)
def test_schemas_that_do_not_fit_are_refused_before_a_row_is_read(table, phrase):
    with pytest.raises(ValueError, match=phrase):
        as_batches(table, 2)


def test_a_pandas_index_is_no_coordinate():
    table = pa.table({"a": [1.0], "b": [2.0], "__index_level_0__": [77]})
    np.testing.assert_array_equal(gather(table, 2), [[1.0, 2.0]])


# ---- without pyarrow -------------------------------------------------------------------


def hide_pyarrow(monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest, **options):
        if name.split(".")[0] == "pyarrow":
            raise ModuleNotFoundError("No module named 'pyarrow'")
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_without_pyarrow_arrow_data_says_how_to_get_it(table, monkeypatch):
    hide_pyarrow(monkeypatch)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        as_batches(Stream(table), 3)


def test_without_pyarrow_a_frame_that_is_also_an_array_still_works(rows, monkeypatch):
    class Frame(Stream):
        def __array__(self, dtype=None, copy=None):
            return rows

    hide_pyarrow(monkeypatch)
    np.testing.assert_array_equal(gather(Frame(None), 3), rows)


def test_importing_the_package_does_not_import_pyarrow():
    code = "import sys, ellipsum.rows.files; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
