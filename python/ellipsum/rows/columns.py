"""Rows whose coordinates are columns in memory of their own, as tables hold them.

The kernels read them where they are. Whoever wants an array takes blocks copied from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["ColumnBlock", "as_arrays", "wide_block"]

#: Bytes of one block copied from columns: small enough to be read again from the cache.
WIDE_BYTES = 2 << 20


class ColumnBlock:
    """Rows (n, d) in d arrays, each of native floats of 32 or 64 bits, integers or truth values,
    some with a bitmap of what is there.

    Parameters
    ----------
    columns : sequence of arrays (n,), contiguous and aligned
    valid : sequence of arrays of bytes, or None for a column without gaps
        A bit for each number, the lowest of a byte first, as in Arrow: 0 is a hole, like NaN.
    first_bits : sequence of int: the bit of each column's first number
    """

    ndim = 2

    def __init__(
        self,
        columns: Sequence[NDArray[Any]],
        valid: Sequence[NDArray[np.uint8] | None] | None = None,
        first_bits: Sequence[int] | None = None,
    ) -> None:
        self.columns = list(columns)
        self.valid = [None] * len(self.columns) if valid is None else list(valid)
        self.first_bits = [0] * len(self.columns) if first_bits is None else list(first_bits)
        self.n = len(self.columns[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and coordinates."""
        return self.n, len(self.columns)

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return sum(column.nbytes for column in self.columns)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: slice) -> ColumnBlock:
        start, stop, step = rows.indices(self.n)
        assert step == 1, "rows that follow each other"
        return self if (start, stop) == (0, self.n) else self._stretch(start, stop)

    def _stretch(self, start: int, stop: int) -> ColumnBlock:
        bits = [bit + start for bit in self.first_bits]
        return ColumnBlock([column[start:stop] for column in self.columns], self.valid, bits)

    def fresh(self) -> ColumnBlock:
        """The same rows, to be read again: nobody may write to them, and what was made of them is
        not held by it."""
        for column in self.columns:
            column.flags.writeable = False
        return self

    def reordered(self, order: Sequence[int]) -> ColumnBlock:
        """The same rows, with these columns as their coordinates."""
        columns, valid = [self.columns[j] for j in order], [self.valid[j] for j in order]
        return ColumnBlock(columns, valid, [self.first_bits[j] for j in order])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        rows = wide_block([self._whole(j) for j in range(len(self.columns))])
        if dtype is not None:
            rows = rows.astype(dtype, copy=False)
        return rows.copy() if copy and rows.base is not None and rows.shape[1] == 1 else rows

    def _whole(self, j: int) -> NDArray[Any]:
        """A column with NaN in its gaps."""
        column, valid, bit = self.columns[j], self.valid[j], self.first_bits[j]
        if valid is None:
            return column
        bits = np.unpackbits(valid[bit // 8 :], bitorder="little", count=bit % 8 + self.n)
        hole = column.dtype.type(np.nan) if column.dtype.kind == "f" else np.nan
        return np.where(bits[bit % 8 :], column, hole)

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Blocks of rows copied from the columns."""
        size = max(1, WIDE_BYTES // (8 * len(self.columns)))
        for start in range(0, self.n, size):
            yield np.asarray(self[start : start + size])


def as_arrays(blocks: Iterable[Any]) -> Iterator[NDArray[Any]]:
    """The same rows in arrays alone."""
    for block in blocks:
        if isinstance(block, ColumnBlock):
            yield from block.arrays()
        else:
            yield block


def wide_block(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One block from its columns: float32 if all of them are, else float64."""
    if len(arrays) == 1:
        return arrays[0].reshape(-1, 1)
    n = len(arrays[0])
    dtype = np.float32 if all(array.dtype == np.float32 for array in arrays) else np.float64
    # Column after column, each contiguous: the block is Fortran-ordered. A leading dimension
    # that is no power of two keeps a row's coordinates in different cache sets.
    block = np.empty((len(arrays), n + 16), dtype)[:, :n]
    with np.errstate(all="ignore"):  # a warning would tell of a value, as a signalling NaN
        for column, array in zip(block, arrays, strict=True):
            column[:] = array
    return block.T
