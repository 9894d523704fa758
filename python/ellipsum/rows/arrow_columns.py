"""Arrow arrays as numbers: where they lie, or converted. A null is NaN, or a bit not set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .c_stream import MOST_ROWS
from .columns import ColumnBlock
from .decimals import decimals

__all__ = [
    "UNREADABLE",
    "ArrowBlock",
    "column_block",
    "dtypes_in_place",
    "list_block",
    "refuse_early",
    "storage",
]

UNREADABLE = (
    "data has a column that is not numeric, or is not readable as Arrow data: "
    "cast its columns to float64"
)


class ArrowBlock(ColumnBlock):
    """Rows of a record batch of numbers, which kernels take by Arrow's C interface: a third of the
    time that it takes to make their arrays, which are made where they are asked for.

    Parameters
    ----------
    pa : module pyarrow
    batch : pyarrow.RecordBatch of columns of :func:`dtypes_in_place` alone, validated
    dtypes : sequence of dtypes, one a column
    """

    def __init__(self, pa: ModuleType, batch: Any, dtypes: Sequence[Any]) -> None:
        self._pa, self._batch, self._dtypes = pa, batch, list(dtypes)
        self.n = batch.num_rows

    def __getattr__(self, name: str) -> Any:
        if name not in ("columns", "valid", "first_bits"):
            raise AttributeError(name)
        made = map(list, _columns(self._pa, self._batch, self._dtypes))
        self.columns, self.valid, self.first_bits = made
        return self.__dict__[name]

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, len(self._dtypes)

    @property
    def nbytes(self) -> int:
        return self.n * sum(dtype.itemsize for dtype in self._dtypes)

    def c_array(self) -> Any:
        """Two capsules: the schema and the batch."""
        return self._batch.__arrow_c_array__()

    def _stretch(self, start: int, stop: int) -> ArrowBlock:
        return ArrowBlock(self._pa, self._batch[start:stop], self._dtypes)

    def fresh(self) -> ArrowBlock:
        """The same rows, without the arrays that were made of them."""
        return ArrowBlock(self._pa, self._batch, self._dtypes)

    def reordered(self, order: Sequence[int]) -> ArrowBlock:
        """The same rows, with these columns as their coordinates."""
        batch = self._batch.select(list(order))
        return ArrowBlock(self._pa, batch, [self._dtypes[j] for j in order])

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Blocks of rows copied from the columns."""
        return ColumnBlock(self.columns, self.valid, self.first_bits).arrays()


def dtypes_in_place(pa: ModuleType) -> dict[int, np.dtype[Any]]:
    """The types that kernels take where they lie, by Arrow's number of each."""
    integers = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    made = {name: np.dtype(name) for name in ("float32", "float64", *integers)}
    known = {getattr(pa, name)().id: dtype for name, dtype in made.items()}
    return {**known, pa.bool_().id: np.dtype(np.bool_)}


def refuse_early(*arrays: Any) -> None:
    """Raise TypeError where an array begins before its buffers, or where no memory reaches: pyarrow
    lets both pass."""
    if any(not 0 <= array.offset <= MOST_ROWS - len(array) for array in arrays):
        raise TypeError(UNREADABLE)


def _numbers(pa: ModuleType, array: Any) -> NDArray[Any]:
    """A flat Arrow array as float32 or float64; nulls are NaN; a view where there are none."""
    try:
        flat = _floats(pa, storage(pa, array))
    except pa.ArrowException:
        raise TypeError(UNREADABLE) from None
    if flat.dtype in (np.float32, np.float64):
        return flat
    with np.errstate(all="ignore"):
        return flat.astype(np.float64)


def _column(
    pa: ModuleType, array: Any, dtype: np.dtype[Any] | None
) -> tuple[NDArray[Any], NDArray[np.uint8] | None, int]:
    """A flat Arrow array as its numbers, its bitmap of valid ones, and where that begins; of a
    ``dtype`` where it lies."""
    array = storage(pa, array)
    refuse_early(array)
    n, offset = len(array), array.offset
    if not n or dtype is None or dtype.kind == "b":  # bits are no array
        return np.require(_numbers(pa, array), requirements=["C", "A"]), None, 0
    valid, numbers = array.buffers()
    # No further than the buffer reaches, whatever a producer says: that raises.
    values = np.frombuffer(numbers, dtype, n, offset * dtype.itemsize)
    if not values.flags.aligned:
        values = values.copy()
    values.flags.writeable = False  # Arrow's own, whatever the buffer says
    if not array.null_count:
        return values, None, 0
    return values, np.frombuffer(valid, np.uint8), offset


def column_block(pa: ModuleType, batch: Any, dtypes: Sequence[Any]) -> ColumnBlock:
    """Rows of a batch's columns, of a dtype where they lie, of None converted."""
    return ColumnBlock(*_columns(pa, batch, dtypes))


def _columns(pa: ModuleType, batch: Any, dtypes: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The numbers, bitmaps and first bits of a batch's columns."""
    made = (_column(pa, *one) for one in zip(batch.columns, dtypes, strict=True))
    return zip(*made, strict=True)


def _floats(pa: ModuleType, array: Any) -> NDArray[Any]:
    kind = array.type
    if pa.types.is_float16(kind):
        array = array.cast(pa.float32())
    elif pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif pa.types.is_decimal(kind):
        return decimals(pa, array)
    return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def storage(pa: ModuleType, array: Any) -> Any:
    """An array of an extension's type as what it is stored as."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def list_block(pa: ModuleType, column: Any, d: int) -> NDArray[Any]:
    """Rows from a column of lists: of another length than d they are NaN, as null ones."""
    array = storage(pa, column)
    refuse_early(array, array.values)
    if pa.types.is_fixed_size_list(array.type):
        if len(array.values) < (array.offset + len(array)) * d:  # pyarrow looks at the length alone
            raise TypeError(UNREADABLE)
        values = _numbers(pa, array.values.slice(array.offset * d, len(array) * d))
        block = values.reshape(-1, d)
        return _blank(block, _nulls(array)) if array.null_count else block
    offsets = array.offsets.to_numpy().astype(np.int64)  # of 32 bits differences may wrap
    if (np.diff(offsets) < 0).any():  # what no list has
        raise TypeError(UNREADABLE)
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
