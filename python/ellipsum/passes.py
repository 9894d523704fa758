"""Passes over rows that are read more than once: what each step of a plan counts or adds up.

What a row becomes depends on that row alone, never on its place in a block (with ``add-remove``
neighbours the places shift): the kernels see to it, and every transformation before them is
elementwise, or exact (no rounded reduction whose order NumPy or BLAS may choose).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _backend
from ._backend import kernels
from .arrow import as_batches
from .ellipsoid import Ellipsoid
from .exact_sum import ExactSum, add_partial, as_integers, kernel_parts
from .files import Rows

__all__ = ["Passes", "moments", "rotate", "round_axes"]

Array = NDArray[np.float64]
Transform = Callable[[Array], Array]

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
            for _ in self.batches():
                pass
        return self.count or 0

    def batches(self) -> Iterator[NDArray[Any]]:
        """One pass: the rows as they come."""
        data = self._data() if callable(self._data) else self._data
        seen = 0
        for batch in as_batches(data, self.d):
            yield batch
            seen += len(batch)
        self._check(seen)

    def blocks(self, transform: Transform, width: int) -> Iterator[Array]:
        """One pass: transformed blocks of doubles, small enough for temporaries of ``width``
        columns."""
        step = max(1, _NUMBERS_PER_BLOCK // width)
        for batch in self.batches():
            for start in range(0, len(batch), step):
                with np.errstate(all="ignore"):  # a warning would tell of a value
                    block = np.ascontiguousarray(batch[start : start + step], dtype=np.float64)
                    block = transform(block)
                yield block

    def _check(self, seen: int) -> None:
        if self.count is None:
            self.count = seen
        elif seen != self.count:
            raise ValueError(_ONE_SHOT if seen == 0 else "data changed between two passes over it")

    def _parts(self, transform: Transform | None) -> Iterator[NDArray[Any]]:
        """One pass: what a kernel takes, the rows themselves where nothing transforms them."""
        if transform is not None:
            yield from self.blocks(transform, 2 * self.d)
            return
        for batch in self.batches():
            yield from kernel_parts(batch)

    def exact_sum(self, total: ExactSum, transform: Transform, width: int) -> ExactSum:
        """One pass that adds transformed rows to ``total``."""
        for block in self.blocks(transform, width):
            total.add(block)
        return total

    def halves(
        self, region: Ellipsoid, transform: Transform | None = None, threads: int | None = None
    ) -> NDArray[np.object_]:
        """One pass: exact sums of the clipped rows' positive parts (x - c)+, then of the negative
        ones' (x - c)-, shape (2 d,), in units of ``region.grid``. **Private.**

        Parameters
        ----------
        region : Ellipsoid, a ball after scaling
        transform : callable, optional
            Makes the region's rows of blocks of data rows, each by itself.
        """
        low, high = np.zeros(2 * self.d, np.uint64), np.zeros(2 * self.d, np.int64)
        for part in self._parts(transform):
            partial = np.zeros(2 * self.d, np.int64)
            arguments = *region.kernel_arguments(), partial, _backend.threads(threads)
            kernels.clip_sum(part, *arguments, halves=True)
            add_partial(low, high, partial)
        return as_integers(low, high)

    def histogram(
        self,
        center: Array,
        scale: Array,
        edges: Array,
        transform: Transform | None = None,
        threads: int | None = None,
    ) -> NDArray[np.int64]:
        """One pass: rows with ||scale * (x - center)|| in (edges[k - 1], edges[k]]. **Private.**

        The last bin has all above the others, and the first one the rows that are not finite,
        which count as the centre. Distances within 2^-20 of an edge, relatively, go to
        either side.

        Parameters
        ----------
        edges : array, 0 < edges < 2^500, ascending
        transform, threads : as for :meth:`halves`
        """
        counts, none = np.zeros(edges.size, np.int64), np.empty(0)
        for part in self._parts(transform):
            arguments = center, scale, none, edges, counts, _backend.threads(threads)
            kernels.distance_counts(part, *arguments)
        return counts


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
