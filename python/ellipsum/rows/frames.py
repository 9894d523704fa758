"""pandas frames of floats as batches: views of the frame's own memory where it is regular.

pandas keeps columns of one type as the rows of a block, or, made from an array, as that array:
both are one array with strides. Its Arrow export copies them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from .columns import WIDE_BYTES, ColumnBlock, wide_block

__all__ = ["float_columns", "frame_batches"]

Columns = list[NDArray[Any]]


def float_columns(data: Any, d: int) -> Columns | None:
    """The d columns of a pandas frame, views, if all are NumPy floats of 32 or 64 bits.

    Others go by Arrow, which says what each type means and refuses what is no number.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(data, pandas.DataFrame):
        return None
    floats = (np.dtype(np.float32), np.dtype(np.float64))
    if data.shape[1] != d or not data.columns.is_unique:
        return None
    if not all(isinstance(kind, np.dtype) and kind in floats for kind in data.dtypes):
        return None
    return [data.iloc[:, j].to_numpy() for j in range(d)]


def frame_batches(columns: Columns) -> Iterator[NDArray[Any] | ColumnBlock]:
    """One view of all columns, or of each, or blocks copied from them."""
    view = _one_array(columns)
    if view is not None:
        yield view
    elif all(column.flags.c_contiguous and column.flags.aligned for column in columns):
        if len(columns[0]):
            yield ColumnBlock(columns)
    else:
        size = max(1, WIDE_BYTES // (8 * len(columns)))
        for start in range(0, len(columns[0]), size):
            yield wide_block([column[start : start + size] for column in columns])


def _one_array(columns: Columns) -> NDArray[Any] | None:
    """The columns as one array, if they are views of one and lie evenly in it."""
    first = columns[0]
    owner, where = _owner(first), [_address(column) for column in columns]
    step = where[1] - where[0] if len(columns) > 1 else 0
    for j, column in enumerate(columns):
        same = column.dtype == first.dtype and column.strides == first.strides
        if not same or where[j] != where[0] + j * step or _owner(column) is not owner:
            return None
    view = as_strided(first, (len(first), len(columns)), (first.strides[0], step))
    view.flags.writeable = False
    return view


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _owner(array: Any) -> Any:
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array
