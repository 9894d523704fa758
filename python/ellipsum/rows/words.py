"""Rows and the words of digests beside them, by NumPy's faster ways.

``rows[where]`` takes four times as long as ``take``, and ``any(1)`` of two words twenty times as
long as a logical operation on whole columns.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["changes", "nonzero", "taken"]

Bools = NDArray[np.bool_]


def taken(rows: NDArray[Any], where: NDArray[Any]) -> NDArray[Any]:
    """Copies of the rows at these places, or where a mask is true."""
    return rows.take(np.flatnonzero(where) if where.dtype == np.bool_ else where, axis=0)


def nonzero(words: NDArray[np.uint64]) -> Bools:
    """Of each row of words (n, k), k > 0, whether any is not 0."""
    return np.asarray(reduce(np.bitwise_or, words.T) != 0)


def changes(words: NDArray[np.uint64]) -> Bools:
    """Of each row of words (n, k) but the first, whether it is another than the one before."""
    return np.asarray(reduce(np.logical_or, (column[1:] != column[:-1] for column in words.T)))
