"""Arrow data as numeric batches of shape (n, d).

A column's type is part of the schema, and the schema is public: a column that cannot be read
as numbers is an error. A null, or a list of the wrong length, is one person's record: an
error there would tell the world about that record, so it becomes NaN, which the exact sum
counts as the centre. No error text quotes a value, or what a reader says about one (claim rows-3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..column_names import Columns, coordinate_names, in_order
from ..column_units import NO_UNITS, Units, frame_units, schema_units
from .c_stream import CStream
from .columns import ColumnBlock
from .decimals import decimals
from .queries import is_query, opened_query, refuse_inferred

__all__ = [
    "Layout",
    "has_threads_left",
    "is_arrow",
    "named_batches",
    "pyarrow",
    "stream_batches",
    "validate",
]

#: Bytes of wide columns converted at once: large enough to pay for the microseconds that each
#: column costs, whatever its length. Floats are views, of any length.
PART_BYTES = 64 << 20

#: Metadata of the schema of an array that is no table: its column's name is made up.
_NAMELESS = {b"ellipsum": b"no names"}

_UNREADABLE = (
    "data has a column that is not numeric, or is not readable as Arrow data: "
    "cast its columns to float64"
)
_BROKEN = "the Arrow stream broke off: write the data again, or read it from its source"


def pyarrow(what: str) -> ModuleType:
    """The pyarrow module, or an ImportError that says what needs it and how to get it."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(f"{what} needs pyarrow: pip install pyarrow") from None
    return pyarrow  # type: ignore[no-any-return]


def has_threads_left(jobs: int) -> bool:
    """Whether Arrow's threads help where so many files are read at the same time.

    Where it has no more of them than that, the jobs would wait for each other, with one thread
    (as ``OMP_NUM_THREADS=1`` leaves it) one for all: then each decodes its own file.
    """
    return jobs == 1 or pyarrow("reading files").cpu_count() > jobs


class Layout:
    """How the columns of a schema make rows: all numeric columns side by side, or one column
    of lists.

    ==============================  ==========================================================
    column                          coordinates
    ==============================  ==========================================================
    float32, float64                as they are; without nulls and lists, no conversion
    float16                         float32
    integer, decimal, boolean       float64 (integers above 2⁵³ are rounded)
    FixedSizeList of those          d of them; without nulls, a view
    List, LargeList of those        d of them; all of length d and without nulls, a view
    an extension of those           its storage
    anything else                   TypeError with the column's name
    ==============================  ==========================================================

    Parameters
    ----------
    schema : pyarrow.Schema
    columns : sequence of str, optional
        The columns to read, in this order; all of them but a pandas index if left out. None of
        them (an empty sequence) makes rows of no coordinates.
    source : str
        What messages call the data.

    Attributes
    ----------
    d : int or None
        Coordinates of a row; None for a List column, whose lengths only the records know.
    """

    def __init__(
        self, schema: Any, columns: Sequence[str] | None = None, *, source: str = "data"
    ) -> None:
        self._pa = pa = pyarrow("reading Arrow data")
        self.source, self._nameless = source, schema.metadata == _NAMELESS
        self.columns = _select(schema.names, columns, source)
        self._schema = schema
        kinds = dict(zip(schema.names, schema.types, strict=True))
        types = [_storage_type(pa, kinds[name]) for name in self.columns]
        self.is_list = len(types) == 1 and _is_list(pa, types[0])
        items = [_storage_type(pa, types[0].value_type)] if self.is_list else types
        refused = {k for k, kind in {t.id: t for t in items}.items() if not _is_numeric(pa, kind)}
        for name, kind, item in zip(self.columns, types, items, strict=True):
            if item.id in refused:
                raise TypeError(_not_numeric(pa, source, name, kind))
        floats: dict[int, np.dtype[Any]] = {
            pa.float32().id: np.dtype(np.float32),
            pa.float64().id: np.dtype(np.float64),
        }
        self._dtypes = [floats.get(item.id) for item in items]  # None: to be converted
        self.d: int | None = len(types)
        if self.is_list:
            self.d = types[0].list_size if pa.types.is_fixed_size_list(types[0]) else None

    def check(self, d: int) -> None:
        """Raise unless the rows can have ``d`` coordinates."""
        if self.d is None or self.d == d:
            return
        what = f"lists of {self.d} numbers" if self.is_list else f"{self.d} numeric columns"
        raise ValueError(
            f"{self.source} must have {d} coordinates in a row, got {what}: "
            "select the columns that the shape was made for"
        )

    @property
    def units(self) -> dict[str | int, str]:
        """The units of the columns, as the schema tells them."""
        own = set(self.columns)
        return {name: unit for name, unit in schema_units(self._schema).items() if name in own}

    def arrange(self, columns: Columns, d: int, units: Units = NO_UNITS) -> list[int] | None:
        """Which column each of ``d`` coordinates is, None if in order; raise as :meth:`check`.

        ``units`` are those that the data tell beside the schema.
        """
        names = coordinate_names(self.columns, d) if self.is_list else self.columns
        told = {**units, **self.units}
        order = columns.order_of(None if self._nameless else names, self.source, units=told)
        self.check(d)
        return order

    def blocks(self, batch: Any, d: int) -> Iterator[NDArray[Any] | ColumnBlock]:
        """Yield the rows of one pyarrow.RecordBatch that has the selected columns: wide ones where
        they lie, lists as arrays."""
        if not self.columns:
            yield np.empty((batch.num_rows, 0))
            return
        if self.is_list:
            if batch.num_rows:
                yield _list_block(self._pa, batch.column(self.columns[0]), d)
            return
        size = max(1, batch.num_rows if all(self._dtypes) else PART_BYTES // (8 * d))
        in_batch = list(batch.columns)
        if batch.schema.names != self.columns:
            in_batch = [in_batch[batch.schema.get_field_index(c)] for c in self.columns]
        for start in range(0, batch.num_rows, size):
            part = in_batch if size >= batch.num_rows else [c.slice(start, size) for c in in_batch]
            columns = [
                _column(self._pa, column, dtype)
                for column, dtype in zip(part, self._dtypes, strict=True)
            ]
            yield ColumnBlock(*zip(*columns, strict=True))


def is_arrow(data: Any) -> bool:
    """Whether ``data`` speaks the Arrow C interface, or is a query whose rows do."""
    speaks = hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    return speaks or is_query(data)


def stream_batches(
    data: Any, d: int, columns: Columns, *, named: bool = True
) -> Iterator[NDArray[Any] | ColumnBlock]:
    """Yield anything with the Arrow C interface as batches (n, d), see `Layout.blocks`.

    Without ``named`` its names are made up: of a pandas frame whose columns are numbers.
    """
    schema, batches = named_batches(data)
    layout = Layout(schema)
    order = layout.arrange(columns if named else Columns(), d, frame_units(data))
    blocks = (block for batch in batches for block in layout.blocks(batch, d))
    return in_order(blocks, order)


def named_batches(data: Any) -> tuple[Any, Iterator[Any]]:
    """Schema and record batches of what :func:`is_arrow` takes; no error has a producer's text."""
    pa = pyarrow("Arrow data")
    refuse_inferred(data)
    try:
        schema, batches = _batches(pa, opened_query(data))
    except ImportError:
        raise
    except Exception:  # a producer that cannot convert a column quotes what it failed on
        raise TypeError(_UNREADABLE) from None
    return schema, _each(batches)


def _each(batches: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            batch = next(batches, None)
        except Exception:  # whatever a producer says of what it failed on
            raise OSError(f"data: {_BROKEN}") from None
        if batch is None:
            return
        yield batch


def _batches(pa: ModuleType, data: Any) -> tuple[Any, Iterator[Any]]:
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
    return _as_records(pa, stream.type, stream)


def _as_records(pa: ModuleType, kind: Any, arrays: Iterable[Any]) -> tuple[Any, Iterator[Any]]:
    """Arrays of structs as the table they are (a null row is null in every column), other
    arrays as a table of one column."""
    if pa.types.is_struct(kind):
        return pa.schema(list(kind)), (pa.RecordBatch.from_struct_array(x) for x in arrays)
    schema = pa.schema([("data", kind)], metadata=_NAMELESS)
    return schema, (pa.RecordBatch.from_arrays([x], schema=schema) for x in arrays)


def _select(names: Sequence[str], columns: Sequence[str] | None, source: str) -> list[str]:
    if isinstance(columns, str):
        raise TypeError(f"columns must be a sequence of names, got one string: [{columns!r}]?")
    chosen = list(columns or ())
    if columns is None:  # pandas stores an index beside the data
        chosen = [name for name in names if not name.startswith("__index_level_")]
    if columns is None and not chosen:
        raise ValueError(f"{source} has no columns to read: name at least one")
    times, wanted = Counter(names), Counter(chosen)
    for name in chosen:
        if times[name] == 0:
            raise ValueError(f"{source} has no column {name!r}: choose from its {len(names)} names")
        if times[name] > 1 or wanted[name] > 1:
            raise ValueError(f"column {name!r} comes twice in {source}: name each column once")
    return chosen


def _storage_type(pa: ModuleType, kind: Any) -> Any:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_list(pa: ModuleType, kind: Any) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_numeric(pa: ModuleType, kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_floating(kind)
        or types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def _not_numeric(pa: ModuleType, source: str, name: str, kind: Any) -> str:
    if _is_list(pa, kind) and _is_numeric(pa, _storage_type(pa, kind.value_type)):
        return f"column {name!r} of {source} holds lists: read it alone, columns=[{name!r}]"
    return (
        f"column {name!r} of {source} is not numeric, its type is {_type_name(kind)}: "
        "leave it out, or cast it to float64"
    )


def _type_name(kind: Any) -> str:
    return str(kind).split("<", 1)[0].split("[", 1)[0].split("(", 1)[0]


def _numbers(pa: ModuleType, array: Any) -> NDArray[Any]:
    """A flat Arrow array as float32 or float64; nulls are NaN; a view where there are none."""
    try:
        flat = _floats(pa, _storage(pa, array))
    except pa.ArrowException:
        raise TypeError(_UNREADABLE) from None
    if flat.dtype in (np.float32, np.float64):
        return flat
    with np.errstate(all="ignore"):
        return flat.astype(np.float64)


def _column(
    pa: ModuleType, array: Any, dtype: np.dtype[Any] | None
) -> tuple[NDArray[Any], NDArray[np.uint8] | None, int]:
    """A flat Arrow array as its numbers, its bitmap of valid ones, and where that begins; of a
    ``dtype`` where it lies."""
    array = _storage(pa, array)
    n, offset = len(array), array.offset
    if not n or dtype is None:
        return np.require(_numbers(pa, array), requirements=["C", "A"]), None, 0
    valid, numbers = array.buffers()
    # No further than the buffer reaches, whatever a producer says: that raises.
    values = np.frombuffer(numbers, dtype, n, offset * dtype.itemsize)
    if not values.flags.aligned:
        values = values.copy()
    if not array.null_count:
        return values, None, 0
    return values, np.frombuffer(valid, np.uint8), offset


def _floats(pa: ModuleType, array: Any) -> NDArray[Any]:
    kind = array.type
    if pa.types.is_float16(kind):
        array = array.cast(pa.float32())
    elif pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif pa.types.is_decimal(kind):
        return decimals(pa, array)
    return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def validate(batch: Any) -> None:
    """pyarrow's full validation, but for the digits of decimals: those are one person's.

    Raises
    ------
    pyarrow.ArrowInvalid
    """
    pa = pyarrow("Arrow data")
    batch.validate()
    for column in batch.columns:
        array = _storage(pa, column)
        plain = _without_digits(pa, array.type)
        (array if plain == array.type else array.view(plain)).validate(full=True)


def _without_digits(pa: ModuleType, kind: Any) -> Any:
    """The type with binary values of the same width in place of decimals."""
    if pa.types.is_decimal(kind):
        return pa.binary(kind.bit_width // 8)
    if not _is_list(pa, kind):
        return kind
    field = kind.value_field.with_type(_without_digits(pa, _storage_type(pa, kind.value_type)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(field, kind.list_size)
    return pa.large_list(field) if pa.types.is_large_list(kind) else pa.list_(field)


def _storage(pa: ModuleType, array: Any) -> Any:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _list_block(pa: ModuleType, column: Any, d: int) -> NDArray[Any]:
    array = _storage(pa, column)
    if pa.types.is_fixed_size_list(array.type):
        values = _numbers(pa, array.values.slice(array.offset * d, len(array) * d))
        block = values.reshape(-1, d)
        return _blank(block, _nulls(array)) if array.null_count else block
    offsets = array.offsets.to_numpy()
    if (np.diff(offsets) < 0).any():  # what no list has
        raise TypeError(_UNREADABLE)
    values = _numbers(pa, array.values.slice(offsets[0], offsets[-1] - offsets[0]))
    whole = np.diff(offsets) == d
    if array.null_count:
        whole &= ~_nulls(array)
    if whole.all():
        return values.reshape(-1, d)
    block = np.full((len(array), d), np.nan, values.dtype)
    block[whole] = values[np.repeat(whole, np.diff(offsets))].reshape(-1, d)
    return block


def _nulls(array: Any) -> NDArray[np.bool_]:
    return array.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _blank(block: NDArray[Any], nulls: NDArray[np.bool_]) -> NDArray[Any]:
    block = block.copy()
    block[nulls] = np.nan
    return block
