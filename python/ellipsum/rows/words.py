"""Rows and the words of digests beside them, by NumPy's faster ways.

``rows[where]`` takes four times as long as ``take``, ``any(1)`` of two words twenty times as long
as an operation on whole columns, and ``lexsort`` of two keys ten times as long as a sort of one.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["changes", "nonzero", "order_within", "taken"]

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


def order_within(runs: NDArray[np.int64], *ranks: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The order of rows by their run, and in each by the ranks, the first of them a hash.

    Parameters
    ----------
    runs : array (n,) of 0, 1, 2, ..., none below the one before it
    ranks : arrays (n,)
    """
    if not len(runs):
        return np.empty(0, np.int64)
    bits = max(1, int(runs[-1]).bit_length())
    key = runs.astype(np.uint64) << np.uint64(64 - bits) | ranks[0] >> np.uint64(bits)
    order = np.argsort(key)
    key = key.take(order)
    alike = np.flatnonzero(key[1:] == key[:-1])  # as far as the key tells
    here, after = order.take(alike), order.take(alike + 1)
    if any((rank.take(here) != rank.take(after)).any() for rank in ranks):
        return np.lexsort((*ranks[::-1], runs))
    return order
