"""Records in Arrow columns: nulls, lists of other lengths, and producers that fail."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrow_streams import OneArray, Stream, gather
from ellipsum.rows.batches import as_batches

CANARY = 987654.321


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(200, 3))


# ---- Arrow: records --------------------------------------------------------------------

NUMBER = st.floats(allow_nan=False, width=32)
RECORD = st.none() | st.lists(st.none() | NUMBER, max_size=4)


@settings(max_examples=200, deadline=None)
@given(records=st.lists(RECORD, max_size=12), start=st.integers(0, 5), large=st.booleans())
def test_a_list_that_is_no_record_is_a_row_of_nan(records, start, large):
    kind = pa.large_list(pa.float64()) if large else pa.list_(pa.float64())
    column = pa.array(records, kind).slice(start)
    want = [
        [np.nan if x is None else x for x in record]
        if record is not None and len(record) == 2
        else [np.nan] * 2
        for record in records[start:]
    ]
    np.testing.assert_array_equal(gather(column, 2), np.reshape(want, (-1, 2)))


@settings(max_examples=100, deadline=None)
@given(
    records=st.lists(st.none() | st.tuples(NUMBER, st.none() | NUMBER), max_size=12),
    start=st.integers(0, 5),
)
def test_a_null_among_fixed_size_lists_is_a_row_of_nan(records, start):
    column = pa.array(records, pa.list_(pa.float64(), 2)).slice(start)
    want = [
        [np.nan] * 2 if record is None else [np.nan if x is None else x for x in record]
        for record in records[start:]
    ]
    np.testing.assert_array_equal(gather(column, 2), np.reshape(want, (-1, 2)))


def test_what_lies_beneath_a_null_is_not_read(rows):
    """A null slot may have values under it: of a person who withdrew them, perhaps."""
    mask = np.arange(len(rows)) % 3 == 1
    flat, offsets = pa.array(rows.ravel()), pa.array(np.arange(len(rows) + 1, dtype=np.int32) * 3)
    want = np.where(mask[:, None], np.nan, rows)
    for column in (
        pa.FixedSizeListArray.from_arrays(flat, 3, mask=pa.array(mask)),
        pa.ListArray.from_arrays(offsets, flat, mask=pa.array(mask)),
    ):
        np.testing.assert_array_equal(gather(column, 3), want)
        np.testing.assert_array_equal(gather(column.slice(4, 50), 3), want[4:54])


def test_a_null_struct_is_a_row_of_nan():
    fields = [pa.array([1.0, 2.0, 3.0]), pa.array([4, 5, 6])]
    structs = pa.StructArray.from_arrays(fields, ["a", "b"], mask=pa.array([False, True, False]))
    want = [[1.0, 4.0], [np.nan, np.nan], [3.0, 6.0]]
    column = pa.chunked_array([structs])
    for data in (structs, OneArray(structs), column, Stream(column), iter([Stream(column)])):
        np.testing.assert_array_equal(gather(data, 2), want)
    np.testing.assert_array_equal(gather(structs.slice(1), 2), want[1:])


def test_a_stream_that_breaks_off_quotes_nothing():
    schema = pa.schema({"a": pa.float64()})

    def batches():
        yield pa.record_batch({"a": [CANARY]})
        raise pa.ArrowInvalid(f"cannot convert {CANARY}")

    reader = as_batches(pa.RecordBatchReader.from_batches(schema, batches()), 1)
    assert next(reader).shape == (1, 1)
    with pytest.raises(OSError, match="broke off") as caught:
        next(reader)
    assert str(CANARY) not in str(caught.value)
    assert caught.value.__suppress_context__


class Unable:
    """A producer that finds a cell that it cannot convert, as pandas does with objects."""

    def __init__(self, error):
        self._error = error

    def __arrow_c_stream__(self, requested_schema=None):
        raise self._error


class UnableArray(Unable):
    __arrow_c_array__ = Unable.__arrow_c_stream__
    __arrow_c_stream__ = property()  # hasattr is False


def text_for_arrow(kind):
    return kind(f"Could not convert '{CANARY}x' with type str: tried to convert to double")


@pytest.mark.parametrize("producer", [Unable, UnableArray])
@pytest.mark.parametrize(
    "kind", [pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError]
)
def test_a_producer_that_cannot_convert_a_column_quotes_nothing(producer, kind):
    data = producer(text_for_arrow(kind))
    for call in (lambda: as_batches(data, 1), lambda: list(as_batches([data], 1))):
        with pytest.raises(TypeError, match="data has a column that is not numeric") as caught:
            call()
        assert str(CANARY) not in str(caught.value)
        assert caught.value.__suppress_context__


def test_a_conversion_that_pyarrow_refuses_quotes_nothing(monkeypatch):
    def refuse(*_given):
        raise pa.ArrowInvalid(f"cannot cast {CANARY}")

    monkeypatch.setattr("ellipsum.rows.arrow_columns._floats", refuse)
    with pytest.raises(TypeError, match="is not numeric") as caught:
        list(as_batches(pa.table({"a": pa.array([int(CANARY)]).cast(pa.decimal128(30))}), 1))
    assert str(CANARY) not in str(caught.value) and str(int(CANARY)) not in str(caught.value)


def test_an_iterator_that_fails_is_its_owners_matter():
    def batches():
        yield np.ones((1, 2))
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        list(as_batches(batches(), 2))


def test_lists_that_end_before_they_begin_are_not_readable():
    ends = pa.py_buffer(np.array([2, 0, 2], np.int32))
    numbers = pa.array([0.5, CANARY])
    column = pa.Array.from_buffers(pa.list_(pa.float64()), 2, [None, ends], children=[numbers])
    with pytest.raises(TypeError, match="not readable as Arrow data"):
        gather(column, 2)
