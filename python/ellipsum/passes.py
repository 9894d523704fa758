"""Passes over rows that are read more than once, and the row-by-row transformations of a plan.

Every transformation here is elementwise over a block, or exact (no rounded reduction whose order
NumPy or BLAS may choose): what a row becomes depends on that row alone, never on its place in
a block. With ``add-remove`` neighbours the places shift.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrow import as_batches
from .exact_sum import ExactSum
from .files import Rows

__all__ = ["Passes", "halves", "moments", "rotate", "round_axes", "row_norms"]

Array = NDArray[np.float64]

#: Numbers of one block in double precision (4 MiB): the temporaries stay in cache.
_NUMBERS_PER_BLOCK = 1 << 19

#: Bits of a row entry (twice) and of an axis entry in exact products.
_ROW_BITS, _AXIS_BITS = 22, 20

_ONE_SHOT = (
    "data can be read only once, and this plan reads it several times: give an array, a "
    "memory map, open_rows(...), a table, or a function that returns a new iterator"
)


class Passes:
    """Rows that can be read again and again.

    Parameters
    ----------
    data : array, memory map, list, ``Rows``, Arrow table, or a callable
        A callable is called for each pass and returns what :func:`as_batches` takes.
    d : int
    once : bool
        One pass will do: iterators are taken too.

    Raises
    ------
    TypeError
        For an iterator, a record batch reader or an ExactSum: they cannot be read again.
    """

    def __init__(self, data: Any, d: int, *, once: bool = False) -> None:
        if isinstance(data, ExactSum):
            raise TypeError("data is an ExactSum: a plan of several passes needs the rows")
        if (
            not once
            and not callable(data)
            and (hasattr(data, "__next__") or hasattr(data, "read_next_batch"))
        ):
            raise TypeError(_ONE_SHOT)
        self._data, self.d = data, d
        self.count: int | None = None

    def count_rows(self) -> int:
        """Number of rows: from the shape where there is one, else by a pass."""
        shape = getattr(self._data, "shape", None)
        if self.count is None and isinstance(shape, tuple) and len(shape) == 2:
            self.count = int(shape[0])
        if self.count is None and isinstance(self._data, Rows):
            self.count = self._data.n
        if self.count is None:
            for _ in self.blocks():
                pass
        return self.count or 0

    def blocks(self, width: int | None = None) -> Iterator[Array]:
        """One pass: C-ordered double blocks, small enough for temporaries of ``width`` columns."""
        data = self._data() if callable(self._data) else self._data
        step = max(1, _NUMBERS_PER_BLOCK // (width or self.d))
        seen = 0
        for batch in as_batches(data, self.d):
            for start in range(0, len(batch), step):
                with np.errstate(all="ignore"):  # a warning would tell of a value
                    block = np.ascontiguousarray(batch[start : start + step], dtype=np.float64)
                yield block
            seen += len(batch)
        self._check(seen)

    def _check(self, seen: int) -> None:
        if self.count is None:
            self.count = seen
        elif seen != self.count:
            raise ValueError(_ONE_SHOT if seen == 0 else "data changed between two passes over it")

    def exact_sum(
        self, total: ExactSum, transform: Callable[[Array], Array], width: int
    ) -> ExactSum:
        """One pass that adds transformed rows to ``total``."""
        with np.errstate(all="ignore"):  # a huge value is a row's own matter: no warning
            for block in self.blocks(width):
                total.add(transform(block))
        return total

    def histogram(self, norms: Callable[[Array], Array], edges: Array) -> NDArray[np.int64]:
        """One pass that counts rows with norm in (edges[k - 1], edges[k]]; the last bin has
        all above, the first everything below and what is not a number."""
        counts = np.zeros(edges.size, np.int64)
        with np.errstate(all="ignore"):
            for block in self.blocks(2 * self.d):
                bins = np.searchsorted(
                    edges[:-1], np.nan_to_num(norms(block), nan=0.0, posinf=np.inf)
                )
                counts += np.bincount(bins, minlength=edges.size)
        return counts


def row_norms(y: Array) -> Array:
    """l2 norm of each row, by folding halves: the same additions for a row wherever it is."""
    return np.asarray(np.sqrt(_fold(y * y, np.add)))


def halves(x: Array) -> Array:
    """(x+, x-), shape (n, 2 d): positive and negative parts side by side, all >= 0."""
    out = np.empty((len(x), 2 * x.shape[1]))
    np.maximum(x, 0.0, out=out[:, : x.shape[1]])
    np.maximum(-x, 0.0, out=out[:, x.shape[1] :])
    return out


def round_axes(basis: Array) -> Array:
    """Axes with entries of 20 bits after the point, as :func:`rotate` needs them."""
    return np.asarray(np.rint(np.ldexp(basis, _AXIS_BITS)) * 2.0**-_AXIS_BITS)


def rotate(x: Array, axes: Array, reach: float) -> Array:
    """x @ axes by matrix products without a rounding: a row's result is its own.

    Entries are split into two integers of 22 bits, in units of 2^-22 and 2^-44 of a power of two
    above ``reach``; with axes of 20 bits every sum of products in any order is an integer below
    sqrt(d) 2^42 (Cauchy-Schwarz), so below 2^53 for d <= 2^20, and exact whatever BLAS does.
    Rows that reach further are moved in along their line to the origin.

    Parameters
    ----------
    x : array (n, d)
    axes : array (d, d), columns of norm about 1, made by :func:`round_axes`
    reach : float, the largest |x_ij| that is kept
    """
    unit = 2.0 ** (math.ceil(math.log2(reach)) - _ROW_BITS)
    furthest = _fold(np.abs(x), np.maximum)[:, None]
    scaled = np.where(furthest > reach, x * (reach / furthest), x) / unit
    high = np.rint(scaled)
    low = np.rint((scaled - high) * 2.0**_ROW_BITS)
    integers = np.ldexp(axes, _AXIS_BITS)
    result = (high @ integers) * 2.0**-_AXIS_BITS
    result += (low @ integers) * 2.0 ** -(_AXIS_BITS + _ROW_BITS)
    return np.asarray(result * unit)


def _fold(values: Array, operation: np.ufunc) -> Array:
    """Combine the columns of ``values`` (overwritten) in halves: one order for every row."""
    width = values.shape[1]
    while width > 1:
        half = (width + 1) // 2
        left = values[:, : width - half]
        operation(left, values[:, half:width], out=left)
        width = half
    return np.asarray(values[:, 0])


def moments(x: Array) -> Array:
    """x_i^2 and sqrt(2) x_i x_j (i < j), shape (n, d (d + 1) / 2): its norm is ||x||^2."""
    d = x.shape[1]
    out, at = np.empty((len(x), d * (d + 1) // 2)), 0
    for i in range(d):
        np.multiply(x[:, i:], x[:, i : i + 1], out=out[:, at : at + d - i])
        out[:, at + 1 : at + d - i] *= np.sqrt(2.0)
        at += d - i
    return out
