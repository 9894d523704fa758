"""Passes over rows that are read more than once: what each step of a plan counts or adds up.

What a row becomes depends on that row alone, never on its place in a block (with ``add-remove``
neighbours the places shift): the kernels see to it (claims adaptive-1, adaptive-5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..column_names import Columns
from ..ellipsoid import Ellipsoid
from ..exact_sum import ExactSum, add_partial, as_integers, kernel_parts
from ..kernels.backend import kernels, thread_count
from ..rows.arrays import OWN_ERRORS
from ..rows.arrow import is_arrow
from ..rows.batches import has_batches, kernel_batches
from ..rows.divided import Store
from ..rows.files import Rows
from ..rows.kept import KeptRows
from ..rows.partitioned import Partitioned
from ..rows.queries import is_query, scans_once, shape_of
from .domain import Frame

__all__ = ["Passes", "countable", "one_shot"]

Array = NDArray[np.float64]

_NONE: Array = np.empty(0)

#: Numbers of one block in double precision (4 MiB): the temporaries stay in cache.
_NUMBERS_PER_BLOCK = 1 << 19

_ONE_SHOT = (
    "data can be read only once, and this plan reads it several times: give an array, a "
    "memory map, open_rows(...), a table, or a function that returns a new iterator"
)


def one_shot(data: Any) -> bool:
    """Whether data, or a batch in a list of batches, can be read only once: by its type.

    An iterator that is no batch is one record of a list, and decides nothing (claim rows-2).
    """
    if isinstance(data, (list, tuple)):
        return has_batches(item for item in data if _once(item))
    return _once(data)


def _once(data: Any) -> bool:
    kind = type(data)
    if kind is list or kind is tuple or kind is np.ndarray:  # as a million records are
        return False
    try:
        reader = hasattr(kind, "__next__") or hasattr(kind, "read_next_batch")
        return reader or scans_once(data)
    except OWN_ERRORS:  # of a record's own code
        return False


def countable(data: Any) -> bool:
    """Whether the rows can be counted before they are read: by metadata, or by a pass."""
    if callable(data) or len(shape_of(data)) == 2 or is_query(data) or is_arrow(data):
        return not one_shot(data)
    return isinstance(data, (Rows, Partitioned, list, tuple)) and not one_shot(data)


class Passes:
    """Rows that can be read again and again.

    Parameters
    ----------
    data : array, memory map, list, ``Rows``, Arrow table, or a callable
        A callable is called for each pass, and twice before the first, and returns what
        :func:`as_batches` takes.
    d : int
    once : bool
        One pass will do: iterators are taken too.
    box : (lower, upper), arrays (d,), data units, optional
        Cells outside it count as its nearer end, and holes as the frame's centre: a function of
        each cell alone, and exact.
    columns : Columns, optional
        Names of the coordinates, as far as they are known; each pass may learn them.

    Raises
    ------
    TypeError
        For an iterator, a record batch reader or an ExactSum, which cannot be read again, or a
        callable that returns the same iterator twice.
    """

    def __init__(
        self,
        data: Any,
        d: int,
        *,
        once: bool = False,
        box: tuple[Array, Array] | None = None,
        columns: Columns | None = None,
    ) -> None:
        if isinstance(data, ExactSum):
            raise TypeError("data is an ExactSum: a plan of several passes needs the rows")
        if not once and not callable(data) and one_shot(data):
            raise TypeError(_ONE_SHOT)
        self._data, self.d = data, d
        self._kept = KeptRows(data) if isinstance(data, Rows) and not once else None
        self.columns = Columns() if columns is None else columns
        self._ahead: list[Any] = []
        if callable(data) and not once:  # before any pass, and so before any noise
            self._ahead = [data(), data()]
            if self._ahead[0] is self._ahead[1] and one_shot(self._ahead[0]):
                raise TypeError(_ONE_SHOT)
        self.box = box
        self._ends = {} if box is None else {"lower": box[0], "upper": box[1]}
        self.count: int | None = None
        self._counting = 0  # passes over files that it took

    def count_rows(self, *, alone: bool = False) -> int:
        """Number of rows: from the shape where there is one, else by a pass; ``alone``, if no other
        pass follows."""
        if alone:
            self._kept = None
        shape = shape_of(self._data)
        if self.count is None and len(shape) == 2:
            self.count = int(shape[0])
        if self.count is None and isinstance(self._data, Rows):
            self.count = self._data.n
        if self.count is None:
            if isinstance(self._data, Rows):
                self._data.expect(None)
                self._counting = 1
            self.check()
        return self.count or 0

    def reads(self, data: Any) -> bool:
        """Whether these are the rows that are read, and not their users."""
        return self._data is data

    def expect(self, passes: int) -> None:
        """Say how many more passes there will be, for the progress bars of files."""
        if isinstance(self._data, Rows):
            self._data.expect(passes, done=self._counting)
        elif isinstance(self._data, Store):
            self._data.expect(passes)

    def check(self) -> None:
        """One pass that adds nothing: what cannot be rows of d numbers is refused."""
        for _ in self.batches():
            pass

    def batches(self) -> Iterator[Any]:
        """One pass: the rows as they come, arrays or ColumnBlocks."""
        data = self._data
        if callable(data):
            data = self._ahead.pop(0) if self._ahead else data()
        seen = 0
        read = partial(kernel_batches, data, self.d, self.columns)
        for batch in read() if self._kept is None else self._kept.over(read):
            yield batch
            seen += len(batch)
        self._check(seen)

    def _check(self, seen: int) -> None:
        if self.count is None:
            self.count = seen
        elif seen != self.count:
            raise ValueError(_ONE_SHOT if seen == 0 else "data changed between two passes over it")

    def exact_sum(
        self, region: Ellipsoid, threads: int | None = None, missing: str = "center"
    ) -> ExactSum:
        """One pass: the exact sum over ``region``, with its holes where they are ignored.
        **Private.**"""
        total = ExactSum(region, missing=missing, threads=threads)
        for batch in self.batches():
            total.add(batch)
        return total

    def sum_of(
        self, region: Ellipsoid, transform: Callable[[Array], Array], width: int
    ) -> ExactSum:
        """One pass: the exact sum of transformed rows, ``width`` numbers each. **Private.**"""
        total = ExactSum(region)
        step = max(1, _NUMBERS_PER_BLOCK // width)
        for batch in self.batches():
            for start in range(0, len(batch), step):
                with np.errstate(all="ignore"):  # a warning would tell of a value
                    block = np.asarray(batch[start : start + step], dtype=np.float64)
                    block = transform(block)
                total.add(block)
        return total

    def halves(
        self, frame: Frame, radius: float, threads: int | None = None
    ) -> NDArray[np.object_]:
        """One pass: exact sums of the positive numbers of clipped, quantised rows, then of the
        negative ones' magnitudes, shape (2 d,). **Private.**

        Parameters
        ----------
        frame : Frame, grid units
        radius : float, grid units, what rows are clipped to
        """
        low, high = np.zeros(2 * self.d, np.uint64), np.zeros(2 * self.d, np.int64)
        workers = thread_count(threads)
        for part in self._parts():
            partial = np.zeros(2 * self.d, np.int64)
            kernels().clip_sum(
                part, *frame, _NONE, radius, partial, workers, halves=True, **self._ends
            )
            add_partial(low, high, partial)
        return as_integers(low, high)

    def histogram(
        self, frame: Frame, edges: Array, threads: int | None = None
    ) -> NDArray[np.int64]:
        """One pass: rows whose distance lies in (edges[k - 1], edges[k]]. **Private.**

        The last bin has all above the others, and the first one the rows that are not finite:
        they count as the centre. Distances within 2^-20 of an edge, relatively, go to either
        side.

        Parameters
        ----------
        frame : Frame, in any unit
        edges : array, of the same unit, 0 < edges < 2^500, ascending
        """
        counts, workers = np.zeros(edges.size, np.int64), thread_count(threads)
        for part in self._parts():
            kernels().distance_counts(part, *frame, edges, counts, workers, **self._ends)
        return counts

    def excess(self, frame: Frame, edges: Array, threads: int | None = None) -> NDArray[np.int64]:
        """One pass: how many of the edges each row lies beyond, added up, shape (1,).
        **Private.** A row has 0 to ``edges.size``.

        Parameters
        ----------
        frame : Frame, in any unit
        edges : array, as for :meth:`histogram`
        """
        # What lies beyond the last edge is beyond all of them: a bin is added for it.
        counts = self.histogram(frame, np.append(edges, 2 * edges[-1]), threads)
        return np.array([np.dot(counts, np.arange(counts.size))], np.int64)

    def cells(self, threads: int | None = None) -> NDArray[np.int64]:
        """One pass: how many rows have each coordinate, then how many have none, shape (d + 1,).
        **Private.**"""
        counts, workers = np.zeros(self.d + 1, np.int64), thread_count(threads)
        anywhere = np.zeros(self.d), np.zeros(self.d), _NONE, np.ones(1), np.zeros(1, np.int64)
        step = max(1, _NUMBERS_PER_BLOCK // self.d)
        for part in self._parts():
            for start in range(0, len(part), step):
                block, absent = part[start : start + step], np.zeros(self.d, np.int64)
                kernels().distance_counts(block, *anywhere, workers, absent)
                counts[:-1] += len(block) - absent
                if absent.all():  # else no row is empty
                    present = np.isfinite(np.asarray(block))
                    counts[-1] += len(block) - np.count_nonzero(present.any(axis=1))
        return counts

    def _parts(self) -> Iterator[Any]:
        """One pass: what a kernel takes."""
        for batch in self.batches():
            yield from kernel_parts(batch)
