"""Arrow data as numeric batches of shape (n, d).

A column's type is part of the schema, and the schema is public: a column that cannot be read
as numbers is an error. A null, or a list of the wrong length, is one person's record: an
error there would tell the world about that record, so it becomes NaN, which the exact sum
counts as the centre. No error text quotes a value, or what a reader says about one (claim rows-3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..column_names import Columns, coordinate_names, in_order
from ..column_units import NO_UNITS, Units, frame_units, schema_units
from .arrow_columns import (
    UNREADABLE,
    ArrowBlock,
    column_block,
    dtypes_in_place,
    list_block,
    storage,
)
from .c_stream import MOST_ROWS
from .columns import ColumnBlock
from .queries import is_query, opened_query, refuse_inferred
from .record_batches import NAMELESS, record_batches

__all__ = [
    "Layout",
    "UsesPyarrow",
    "has_threads_left",
    "is_arrow",
    "named_batches",
    "pyarrow",
    "pyarrow_missing",
    "stream_batches",
    "validate",
]

#: Bytes of wide columns converted at once: large enough to pay for the microseconds that each
#: column costs, whatever its length. Floats are views, of any length.
PART_BYTES = 64 << 20

#: Names that a message shows of those that there are.
_FEW_NAMES = 10

_FAILED = (
    "data is a query that failed, or gives a column that is not numeric: run it by itself, as by "
    "collect(), to see why"
)
_CAST = "cast each one to it, as by batch.cast(schema)"
_BROKEN = "the Arrow stream broke off: write the data again, or read it from its source"


def pyarrow(what: str) -> ModuleType:
    """The pyarrow module, or an ImportError that says what needs it and how to get it."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(f"{what} needs pyarrow: pip install pyarrow") from None
    return pyarrow  # type: ignore[no-any-return]


def pyarrow_missing() -> bool:
    """Whether tables are read without it."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return True
    return False


def has_threads_left(jobs: int) -> bool:
    """Whether Arrow's threads help where so many files are read at the same time.

    Where it has no more of them than that, the jobs would wait for each other, with one thread
    (as ``OMP_NUM_THREADS=1`` leaves it) one for all: then each decodes its own file.
    """
    return jobs == 1 or pyarrow("reading files").cpu_count() > jobs


class UsesPyarrow:
    """What keeps the module goes to another process without it."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_pa"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pa = pyarrow("reading these rows")


class Layout(UsesPyarrow):
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
        self.source, self._nameless = source, schema.metadata == NAMELESS
        self.columns = _select(schema.names, columns, source)
        self._names = tuple(self.columns)
        self.schema, self._whole = schema, schema.names == self.columns
        kinds = dict(zip(schema.names, schema.types, strict=True))
        types = [_storage_type(pa, kinds[name]) for name in self.columns]
        self.is_list = len(types) == 1 and _is_list(pa, types[0])
        items = [_storage_type(pa, types[0].value_type)] if self.is_list else types
        refused = {k for k, kind in {t.id: t for t in items}.items() if not _is_numeric(pa, kind)}
        for name, kind, item in zip(self.columns, types, items, strict=True):
            if item.id in refused:
                raise TypeError(_not_numeric(pa, source, name, kind))
        known = dtypes_in_place(pa)
        self._dtypes = [known.get(item.id) for item in items]  # None: to be converted
        self._in_place = not self.is_list and all(kind is not None for kind in self._dtypes)
        self.d: int | None = len(types)
        if self.is_list:
            self.d = types[0].list_size if pa.types.is_fixed_size_list(types[0]) else None
            if self.d is not None and self.d < 1:
                raise ValueError(
                    f"column {self.columns[0]!r} of {source} has lists of no numbers: "
                    "write it again"
                )

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
    def others(self) -> list[str]:
        """Columns of the schema that are no coordinates, nor a pandas index."""
        return [name for name in _own_columns(self.schema.names) if name not in self._names]

    @cached_property
    def units(self) -> dict[str | int, str]:
        """The units of the columns, as the schema tells them."""
        own = set(self.columns)
        return {name: unit for name, unit in schema_units(self.schema).items() if name in own}

    def arrange(self, columns: Columns, d: int, units: Units = NO_UNITS) -> list[int] | None:
        """Which column each of ``d`` coordinates is, None if in order; raise as :meth:`check`.

        ``units`` are those that the data tell beside the schema.
        """
        names = coordinate_names(self.columns, d) if self.is_list else self._names
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
                yield list_block(self._pa, batch.column(self.columns[0]), d)
            return
        schema = batch.schema
        known = self._whole and schema.equals(self.schema)  # a fraction of what names take
        if not known and schema.names != self.columns:
            batch = batch.select([schema.get_field_index(c) for c in self.columns])
        if self._in_place:
            if batch.num_rows:
                yield ArrowBlock(self._pa, batch, self._dtypes)
            return
        size = max(1, PART_BYTES // (8 * d))
        for start in range(0, batch.num_rows, size):
            yield column_block(self._pa, batch[start : start + size], self._dtypes)


#: The latest layout of a table's columns: batches come one after the other, and two schemas are
#: compared in a thousandth of the time that a layout takes.
_latest: list[Layout] = []


def _layout_of(schema: Any) -> Layout:
    for layout in tuple(_latest):  # one at most; another thread may put its own there meanwhile
        if schema.equals(layout.schema, check_metadata=True):
            return layout
    layout = Layout(schema)
    _latest[:] = [layout]
    return layout


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
    try:
        layout = _layout_of(schema)
        order = layout.arrange(columns if named else Columns(), d, frame_units(data))
    except BaseException:
        batches.close()  # a database is not free for others while its rows are held
        raise
    blocks = (block for batch in batches for block in layout.blocks(batch, d))
    return in_order(blocks, order)


def named_batches(data: Any) -> tuple[Any, Generator[Any, None, None]]:
    """Schema and record batches of what :func:`is_arrow` takes; no error has a producer's text."""
    pa = pyarrow("Arrow data")
    refuse_inferred(data)
    try:
        schema, batches = record_batches(pa, opened_query(data))
    except ImportError:
        raise
    except Exception:  # a producer that cannot convert a column quotes what it failed on
        raise TypeError(_FAILED if is_query(data) else UNREADABLE) from None
    return schema, _each(pa, schema, batches)


def _each(pa: ModuleType, schema: Any, batches: Iterator[Any]) -> Generator[Any, None, None]:
    while True:
        try:
            batch = next(batches, None)
        except Exception:  # whatever a producer says of what it failed on
            raise OSError(f"data: {_BROKEN}") from None
        if batch is None:
            return
        if batch.num_rows > MOST_ROWS:
            raise TypeError(UNREADABLE)
        try:
            batch.validate()  # that no buffer ends too early, whatever a producer says
        except pa.ArrowException:
            raise TypeError(UNREADABLE) from None
        if not (batch.schema.equals(schema) or _has_columns_of(batch, schema)):
            raise TypeError(f"data has a batch that is not of its schema: {_CAST}")
        yield batch


def _has_columns_of(batch: Any, schema: Any) -> bool:
    """Whether names and types are those of a schema, whatever it says of nulls."""
    own = batch.schema
    return bool(own.names == schema.names and own.types == schema.types)


def _select(names: Sequence[str], columns: Sequence[str] | None, source: str) -> list[str]:
    if isinstance(columns, str):
        raise TypeError(f"columns must be a sequence of names, got one string: [{columns!r}]?")
    chosen = list(columns or ())
    if columns is None:  # pandas stores an index beside the data
        chosen = _own_columns(names)
    if columns is None and not chosen:
        raise ValueError(f"{source} has no columns to read: name at least one")
    times, wanted = Counter(names), Counter(chosen)
    for name in chosen:
        if times[name] == 0:
            few = ", ".join(map(repr, names[:_FEW_NAMES])) + ", ..." * (len(names) > _FEW_NAMES)
            raise ValueError(f"{source} has no column {name!r}: it has {few or 'none'}")
        if times[name] > 1 or wanted[name] > 1:
            raise ValueError(f"column {name!r} comes twice in {source}: name each column once")
    return chosen


def _own_columns(names: Sequence[str]) -> list[str]:
    return [name for name in names if not name.startswith("__index_level_")]


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
    advice = "leave it out" if pa.types.is_nested(kind) else "leave it out, or cast it to float64"
    if pa.types.is_struct(kind):
        advice += ", or flatten the table first"
    return f"column {name!r} of {source} is not numeric, its type is {_type_name(kind)}: {advice}"


def _type_name(kind: Any) -> str:
    return str(kind).split("<", 1)[0].split("[", 1)[0].split("(", 1)[0]


def validate(batch: Any) -> None:
    """pyarrow's full validation, but for the digits of decimals: those are one person's.

    Raises
    ------
    pyarrow.ArrowInvalid
    """
    pa = pyarrow("Arrow data")
    batch.validate()
    for column in batch.columns:
        array = storage(pa, column)
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
