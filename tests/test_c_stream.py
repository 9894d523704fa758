"""Arrow C streams as arrays: null rows are rows, and a stream is read as it comes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ellipsum.rows.batches import as_batches
from test_arrow import CANARY, Stream, gather


def test_a_null_row_of_a_polars_series_is_a_row_of_nan():
    polars = pytest.importorskip("polars")
    series = polars.Series([{"a": 1.0, "b": 2.0}, None, {"a": 3.0, "b": None}])
    want = [[1, 2], [np.nan, np.nan], [3, np.nan]]
    np.testing.assert_array_equal(gather(series, 2), want)
    np.testing.assert_array_equal(gather([series[:2], series[2:]], 2), want)


def test_a_stream_is_read_one_batch_at_a_time(rows):
    given = []

    def batches():
        for k in range(5):
            given.append(k)
            yield pa.record_batch({"a": rows[:, 0], "b": rows[:, 1]})

    schema = pa.schema({"a": pa.float64(), "b": pa.float64()})
    reader = as_batches(Stream(pa.RecordBatchReader.from_batches(schema, batches())), 2)
    next(reader)
    assert len(given) < 3
    assert sum(1 for _ in reader) == 4


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, pa.ArrowInvalid])
def test_a_c_stream_that_breaks_off_quotes_nothing(kind):
    def batches():
        yield pa.record_batch({"a": [CANARY]})
        raise kind(f"cannot convert {CANARY}")

    schema = pa.schema({"a": pa.float64()})
    reader = as_batches(Stream(pa.RecordBatchReader.from_batches(schema, batches())), 1)
    with pytest.raises(OSError, match="broke off") as caught:
        list(reader)
    assert str(CANARY) not in str(caught.value) and caught.value.__suppress_context__
