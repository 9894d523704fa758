"""Batches of floats go to the kernels by Arrow's C interface: the bits of their arrays."""

from __future__ import annotations

import io
from functools import partial

import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactSum
from ellipsum.kernels.backend import kernels
from ellipsum.rows.arrow_columns import ArrowBlock
from ellipsum.rows.batches import kernel_batches
from ellipsum.rows.columns import ColumnBlock
from ellipsum.rows.labels import labels_of
from file_rows import CANARY, fails

pa = pytest.importorskip("pyarrow")


def seen(block):
    """What a pass makes of a block: sums, holes of each coordinate, rows clipped and with holes."""
    d = block.shape[1]
    partial, absent = np.zeros(d, np.int64), np.zeros(d, np.int64)
    frame = np.full(d, 0.25), np.full(d, 1e6), np.empty(0), np.empty(0)
    counts = kernels().clip_sum(block, *frame, 1.5e6, partial, 1, absent=absent)
    return partial.tolist(), absent.tolist(), counts


def as_arrays(block):
    return ColumnBlock(block.columns, block.valid, block.first_bits)


def batch_of(n, gaps, offset=0, seed=0):
    """Columns of both types whose buffers begin before the batch, without numbers at ``gaps``."""
    rng = np.random.default_rng(seed)
    arrays = []
    for j, kind in enumerate(["f4", "f8", "f4", "f8"]):
        there = np.ones(offset + n, bool)
        there[offset:] = ~gaps[:, j]
        there[:offset] = rng.random(offset) < 0.5  # what is before it counts for nothing
        numbers = rng.normal(size=offset + n).astype(kind)
        given = (
            None
            if j == 3 and there.all()
            else pa.py_buffer(np.packbits(there, bitorder="little").tobytes())
        )
        arrow = {"f4": pa.float32(), "f8": pa.float64()}[kind]
        arrays.append(
            pa.Array.from_buffers(arrow, n, [given, pa.py_buffer(numbers)], offset=offset)
        )
    return pa.RecordBatch.from_arrays(arrays, list("abcd"))


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 63, 64, 65, 127, 200])
def test_gaps_are_where_the_bits_say_wherever_they_begin(kernel_set, n):
    """Also none at all, in a bitmap that says so, whose nulls nobody has counted."""
    for offset in [0, 1, 5, 7, 8, 9, 31, 63, 64, 71]:
        none = np.zeros((n, 4), bool)
        one, all_but_one = none.copy(), np.ones((n, 4), bool)
        one[n // 2, offset % 4] = True
        all_but_one[n - 1, 1] = False
        for gaps in (none, one, all_but_one, np.random.default_rng(n).random((n, 4)) < 0.2):
            (block,) = kernel_batches(batch_of(n, gaps, offset), 4)
            assert isinstance(block, ArrowBlock)
            assert seen(block) == seen(as_arrays(block))
            assert seen(block)[1] == gaps.sum(0).tolist()


def test_slices_and_other_orders_are_those_of_the_rows(kernel_set):
    gaps = np.random.default_rng(3).random((150, 4)) < 0.1
    (block,) = kernel_batches(batch_of(150, gaps, 13), 4)
    assert block[0:150] is block
    for start, stop in [(0, 1), (3, 149), (64, 128), (149, 150)]:
        part = block[start:stop].reordered([2, 0, 3, 1])
        assert part.shape == (stop - start, 4) and len(part) == stop - start
        assert part.nbytes == 24 * (stop - start)
        assert seen(part) == seen(as_arrays(part))
        np.testing.assert_array_equal(
            np.asarray(part), np.asarray(block)[start:stop][:, [2, 0, 3, 1]]
        )


def test_a_null_row_of_a_struct_that_begins_later_is_null_in_every_column(kernel_set):
    numbers = [pa.array(np.arange(20.0)), pa.array(np.arange(20.0, 40.0).astype("f4"))]
    rows = pa.StructArray.from_arrays(numbers, names=["a", "b"], mask=pa.array(np.arange(20) == 9))
    (block,) = kernel_batches(rows.slice(4, 11), 2)
    assert isinstance(block, ArrowBlock)
    assert seen(block) == seen(as_arrays(block)) and seen(block)[1] == [1, 1]


class Metres(pa.ExtensionType):
    def __init__(self):
        super().__init__(pa.float64(), "tests.metres")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls()


def test_an_extension_of_floats_is_what_it_is_stored_as(kernel_set):
    plain = pa.array([1.0, None, -2.0])
    batch = pa.RecordBatch.from_arrays([pa.ExtensionArray.from_storage(Metres(), plain)], ["a"])
    (block,) = kernel_batches(batch, 1)
    assert isinstance(block, ArrowBlock)
    assert seen(block) == seen(as_arrays(block)) and seen(block)[1] == [1]


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_a_stream_that_tells_of_more_rows_than_it_has_is_refused(kind):
    """No further than the buffers reach, whatever a producer says."""
    batch = pa.record_batch({"a": np.full(11, CANARY, kind)})
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    told = (11).to_bytes(8, "little")
    assert stream.getvalue().count(told) == 2
    lying = stream.getvalue().replace(told, (1 << 20).to_bytes(8, "little"))
    for data in (pa.ipc.open_stream(lying), pa.ipc.open_stream(lying).read_next_batch()):
        total = ExactSum(Ellipsoid.ball(1.0, d=1))
        fails(TypeError, "is not readable as Arrow data", partial(total.add, data))
        assert total.count == 0


def test_a_table_is_met_by_its_own_names_and_units_after_another_one():
    """What is known of the latest schema is of no other."""
    region = Ellipsoid.ball(9.0, d=2)
    rows = np.arange(8.0).reshape(4, 2)
    table = pa.table({"a": rows[:, 0], "b": rows[:, 1]})
    total = ExactSum(region).add(table)
    assert ExactSum(region).add(table.select(["b", "a"])).to_bytes() != total.to_bytes()
    turned = ExactSum(region).add(table).add(table.select(["b", "a"]))
    assert turned.to_bytes() == ExactSum(region).add(rows).add(rows).to_bytes()
    text = pa.table({"a": rows[:, 0], "b": ["x"] * 4})
    fails(TypeError, "column 'b' of data is not numeric", lambda: ExactSum(region).add(text))
    metres = pa.field("a", pa.float64(), metadata={"unit": "m"})
    measured = table.cast(pa.schema([metres, table.schema.field("b")]))
    for data, units in ((table, {}), (measured, {"a": "m"}), (table, {})):
        total = ExactSum(region).add(data)
        assert total._columns.learned == units


def early(kind):
    """Four numbers, the first eight places before a buffer that lies in a larger one."""
    numbers = np.ones(40, kind.to_pandas_dtype())
    buffers = [None, pa.py_buffer(numbers)[20 * numbers.itemsize :]]
    return pa.Array.from_buffers(kind, 4, buffers, offset=-8)


LIES = {
    "numbers": lambda: early(pa.float64()),
    "narrow numbers": lambda: early(pa.float32()),
    "integers": lambda: early(pa.int64()),
    "lists": lambda: pa.Array.from_buffers(
        pa.list_(pa.float64()),
        2,
        [None, pa.py_buffer(np.array([0, 1, 2, 3], np.int32))[4:]],
        offset=-1,
        children=[pa.array([1.0, 2.0, 3.0])],
    ),
    "numbers of lists": lambda: pa.Array.from_buffers(
        pa.list_(pa.float64(), 1), 2, [None], children=[early(pa.float64())]
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_begins_before_its_buffers_is_refused(kernel_set, lie):
    """pyarrow lets it pass, also where it looks at all."""
    array = LIES[lie]()
    for data in (array, pa.table({"a": array}), pa.chunked_array([array])):
        total = ExactSum(Ellipsoid.ball(1.0, d=1))
        fails(TypeError, "not readable as Arrow data", partial(total.add, data))
        assert total.count == 0


def altered_stream(column, told):
    """A stream of 512 rows that says ``told`` of them."""
    batch = pa.record_batch({"a": column})
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    return stream.getvalue().replace((512).to_bytes(8, "little"), told.to_bytes(8, "little"))


@pytest.mark.parametrize("told", [520, 1000])
@pytest.mark.parametrize(
    "column",
    [
        np.arange(512),
        np.ones(512, np.float16),
        np.ones(512, bool),
        pa.array([1] * 512, pa.decimal128(9)),
        pa.array([[1.0]] * 512),
        pa.FixedSizeListArray.from_arrays(pa.array(np.ones(512)), 1),
    ],
    ids=["int64", "float16", "bool", "decimal", "list", "fixed list"],
)
def test_rows_that_a_stream_does_not_have_are_refused_whatever_their_type(column, told):
    region = Ellipsoid.ball(1.0, d=1)
    for read in (lambda x: x, lambda x: x.read_next_batch(), lambda x: x.read_all()):
        total = ExactSum(region)
        with pytest.raises((TypeError, OSError)) as caught:
            total.add(read(pa.ipc.open_stream(altered_stream(column, told))))
        assert total.count == 0 and "Arrow" in str(caught.value)


def test_a_stream_that_was_read_is_refused():
    class Once:
        def __init__(self, table):
            self.capsule = table.__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule

    data = Once(pa.table({"a": [1.0]}))
    assert pa.table(data).num_rows == 1
    total = ExactSum(Ellipsoid.ball(5.0, d=1))
    fails(TypeError, "not readable as Arrow data", lambda: total.add(data))


class Lying:
    """A struct array by Arrow's C interface, a number of which was changed."""

    def __init__(self, what, value, child, dtype="f8"):
        import ctypes

        column = np.ones(512, dtype)
        self.array = pa.StructArray.from_arrays([column, column], names=["a", "b"])
        self.capsules = self.array.__arrow_c_array__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        at = get(self.capsules[1], b"arrow_array")
        if child:
            children = ctypes.c_void_p.from_address(at + 48).value
            at = ctypes.c_void_p.from_address(children).value
        ctypes.c_int64.from_address(at + {"length": 0, "offset": 16}[what]).value = value

    def __arrow_c_array__(self, requested_schema=None):
        return self.capsules


@pytest.mark.parametrize(
    ("what", "value", "child"),
    [
        ("offset", 10**7, False),
        ("offset", -1, False),
        ("offset", -(10**12), True),
        ("length", -7, True),
        ("length", 600, False),
        ("length", 3, True),
    ],
)
def test_structs_that_are_not_what_they_say_do_not_end_the_process(kernel_set, what, value, child):
    total = ExactSum(Ellipsoid.ball(1.0, d=2))
    with pytest.raises((TypeError, OSError), match="Arrow"):
        total.add(Lying(what, value, child))
    assert total.count == 0


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i8", "f4"])
@pytest.mark.parametrize(
    ("what", "child"), [("offset", True), ("offset", False), ("length", False)]
)
def test_places_that_no_memory_has_are_refused_of_every_type(kernel_set, what, child, dtype):
    """Of one byte a number their size in bytes does not overflow, so that pyarrow believes them."""
    total = ExactSum(Ellipsoid.ball(1.0, d=2))
    for value in (2**47, 2**61, 2**62):
        with pytest.raises((TypeError, OSError), match="Arrow"):
            total.add(Lying(what, value, child, dtype))
    assert total.count == 0


def text_of(edges, data=b"abcdefgh", kind=None, offset=0):
    buffers = [None, pa.py_buffer(np.array(edges, np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(
        kind or pa.string(), len(edges) - 1 - offset, buffers, offset=offset
    )


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_text_beyond_its_buffer_is_no_label(kind):
    """A lying edge would be read from foreign memory."""
    whole = text_of([0, 2, 3, 8], kind=kind)
    for odd in (
        text_of([0, 1 << 30, 2, 3], kind=kind),
        text_of([0, 2, 1, 3], kind=kind),
    ):
        for column in (odd, pa.chunked_array([whole, odd])):
            fails(
                OSError,
                "is damaged, or not readable as Arrow data",
                partial(labels_of, "u", column),
            )
        entries = pa.DictionaryArray.from_arrays([0, 2, 1], odd, safe=False)
        fails(
            OSError, "is damaged, or not readable as Arrow data", partial(labels_of, "u", entries)
        )
    edges = pa.py_buffer(np.array([0] * 6 + [2, 3, 8], np.int32))[20:]
    before = pa.Array.from_buffers(kind, 2, [None, edges, whole.buffers()[2]], offset=-5)
    fails(OSError, "u is damaged, or not readable", partial(labels_of, "u", before))
    assert len(labels_of("u", whole)) == 3


def test_decimals_whose_buffer_is_longer_are_read():
    padded = pa.array([1, 2, 3], pa.decimal128(5)).buffers()[1].to_pybytes() + bytes(8)
    column = pa.Array.from_buffers(pa.decimal128(5), 3, [None, pa.py_buffer(padded)])
    (block,) = kernel_batches(pa.table({"a": column}), 1)
    assert np.asarray(block).ravel().tolist() == [1, 2, 3]
