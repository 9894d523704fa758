"""What goes into one call of a kernel, and what comes out of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kernels.backend import kernels
from .rows.columns import ColumnBlock

__all__ = ["add_partial", "kernel_parts"]

#: Numbers converted at a time where the kernels do not read them as they are (8 MiB).
_NUMBERS_PER_CONVERSION = 1 << 20


def add_partial(low: NDArray[np.uint64], high: NDArray[np.int64], partial: NDArray[Any]) -> None:
    """Add what a kernel summed (int64) to totals of 128 bits, in place."""
    kernels().merge(low, high, partial.view(np.uint64), partial >> 63)


def kernel_parts(rows: NDArray[Any] | ColumnBlock, *, in_rows: bool = False) -> Iterator[Any]:
    """Parts that one kernel call takes, of bounded rows: columns, or arrays of native, aligned
    numbers (up to 64 bits, but not float16) or truth values; with ``in_rows`` of arrays alone
    arrays of float32 or float64."""
    if isinstance(rows, ColumnBlock):
        step = kernels().CLIP_ROWS_LIMIT
        yield from (rows[start : start + step] for start in range(0, len(rows), step))
        return
    lies = rows.dtype.isnative and rows.flags.aligned
    integers = rows.dtype.kind in "iub" and not in_rows
    ready = lies and (integers or rows.dtype.type in (np.float32, np.float64))
    if ready and integers and rows.strides[0] == rows.itemsize and rows.shape[1] > 1 and len(rows):
        yield from kernel_parts(ColumnBlock(list(rows.T)))
        return
    step = kernels().CLIP_ROWS_LIMIT if ready else max(1, _NUMBERS_PER_CONVERSION // rows.shape[1])
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        if not ready:
            with np.errstate(all="ignore"):  # a warning would tell of a value that overflows
                part = np.ascontiguousarray(part, dtype=np.float64)
        yield part
