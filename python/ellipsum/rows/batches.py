"""Rows in: whatever a user holds, as numeric batches of shape (n, d)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .arrow import is_arrow, stream_batches
from .files import Rows

__all__ = ["as_batches"]


def as_batches(data: Any, d: int) -> Iterator[NDArray[Any]]:
    """Yield ``data`` as numeric arrays of shape (n, d), without a copy where its layout allows
    (from Arrow and files: float32 or float64).

    **Guarantees.** What is raised depends on shapes, types and the reader's health, never on
    a value: nulls, and lists of another length than ``d``, come out as rows with NaN, which
    count as the centre. Copying them takes longer than not having to, so the *time* of a
    batch tells whether it holds one.

    ================================  =====================================================
    data                              batches
    ================================  =====================================================
    array or memory map, (n, d)       itself, whole, any strides and numeric dtype
    one row, (d,)                     itself, as (1, d)
    list of rows (lists or arrays)    one array
    list of batches (2-D items)       one for each item
    iterator, generator               one for each item, which is read as ``data`` is
    ``__arrow_c_stream__``            one or more for each record batch: pyarrow, polars,
    or ``__arrow_c_array__``          DuckDB, pandas; see `Layout` for the columns
    ``Rows`` (`ellipsum.open_rows`)   blocks of the files
    ================================  =====================================================

    Batches of an iterator or a stream that have no rows are left out.

    Parameters
    ----------
    data : array, iterable of batches, Arrow data or Rows
        n records of d coordinates, in the data's own unit.
    d : int
        The number of coordinates that every row must have.

    Raises
    ------
    TypeError
        The data is of no such kind, or a column's type is not numeric. What a producer of
        Arrow data raises comes out as this, without its text.
    ValueError
        The rows have another number of coordinates, or the batch is ragged.
    OSError
        An Arrow stream breaks off.
    ImportError
        Arrow data without pyarrow.
    """
    if isinstance(data, Rows):
        return data.batches(d)
    if isinstance(data, (str, bytes, dict, set, frozenset)) or hasattr(data, "__fspath__"):
        raise TypeError(
            f"data must be rows of numbers, got {type(data).__name__}: "
            "read files by open_rows(paths), and make a mapping an array or a table first"
        )
    if is_arrow(data) and not (hasattr(data, "__array__") and _pyarrow_missing()):
        return stream_batches(data, d)
    if isinstance(data, (list, tuple)):
        return _list_batches(data, d)
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return iter([_validate.rows("data", data, d=d)])
    if isinstance(data, Iterable):
        return _each_batch(data, d)
    raise TypeError(
        f"data must be an array, an iterable of batches or Arrow data, got {type(data).__name__}"
    )


def _pyarrow_missing() -> bool:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return True
    return False


def _list_batches(data: Sequence[Any], d: int) -> Iterator[NDArray[Any]]:
    if not data:
        return iter(())
    try:
        nested = is_arrow(data[0]) or np.ndim(data[0]) == 2
    except ValueError:
        raise ValueError(f"data is ragged: every row must have {d} coordinates") from None
    return _each_batch(data, d) if nested else iter([_validate.rows("data", data, d=d)])


def _each_batch(data: Iterable[Any], d: int) -> Iterator[NDArray[Any]]:
    for item in data:
        if is_arrow(item):
            yield from stream_batches(item, d)
            continue
        batch = _validate.rows("a batch of data", item, d=d)
        if len(batch):
            yield batch
