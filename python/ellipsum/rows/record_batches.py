"""Whatever speaks Arrow's C interface as a schema and record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any
from uuid import uuid4

from .arrow_columns import refuse_early
from .c_stream import CStream

__all__ = ["NAMELESS", "record_batches"]

#: Metadata of the schema of an array that is no table: its column's name is made up. No producer's
#: schema has them.
NAMELESS = {b"ellipsum": uuid4().bytes}


def record_batches(pa: ModuleType, data: Any) -> tuple[Any, Iterator[Any]]:
    """Schema and record batches of anything with the Arrow C interface."""
    if isinstance(data, pa.RecordBatch):
        return data.schema, iter((data,))
    if isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data.schema, iter(data.to_reader() if isinstance(data, pa.Table) else data)
    if isinstance(data, pa.ChunkedArray):
        return _as_records(pa, data.type, data.chunks)
    if not hasattr(data, "__arrow_c_stream__"):
        array = pa.array(data)
        return _as_records(pa, array.type, [array])
    stream = CStream(pa, data)
    if stream.schema is not None:
        return stream.schema, (_record(pa, batch) for batch in stream)
    return _as_records(pa, stream.type, stream)


def _as_records(pa: ModuleType, kind: Any, arrays: Iterable[Any]) -> tuple[Any, Iterator[Any]]:
    """Arrays of structs as the table they are (a null row is null in every column), other
    arrays as a table of one column."""
    if pa.types.is_struct(kind):
        return pa.schema(list(kind)), (_record(pa, x) for x in arrays)
    schema = pa.schema([("data", kind)], metadata=NAMELESS)
    return schema, (pa.RecordBatch.from_arrays([x], schema=schema) for x in arrays)


def _record(pa: ModuleType, rows: Any) -> Any:
    """A struct array as a batch, and a batch whose columns go on behind its rows without that.
    Arrow ends the process where they are not what they say. Both are refused alike: which it is
    tells whether a row is null."""
    if isinstance(rows, pa.RecordBatch):
        return rows if _is_valid(pa, rows) else _cut(pa, rows)
    rows.validate()
    refuse_early(rows, *(rows.field(k) for k in range(rows.type.num_fields)))
    return pa.RecordBatch.from_struct_array(rows)


def _is_valid(pa: ModuleType, batch: Any) -> bool:
    try:
        batch.validate()
    except pa.ArrowException:
        return False
    return True


def _cut(pa: ModuleType, batch: Any) -> Any:
    for column in batch.columns:
        column.validate()
    n = batch.num_rows
    cut = pa.RecordBatch.from_arrays([x[:n] for x in batch.columns], schema=batch.schema)
    cut.validate()
    return cut
