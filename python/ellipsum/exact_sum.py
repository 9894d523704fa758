"""The exact sum: clipped rows as integers, the same bits for any order, split or merge tree."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _validate, lineage
from .column_names import Columns
from .ellipsoid import Ellipsoid
from .kernel_parts import add_partial, kernel_parts
from .kernels.backend import kernels, thread_count
from .partial_bytes import PartState, is_impossible, not_a_part, pack_part, unpack_part
from .rows.arrays import numeric_rows
from .rows.arrow import is_arrow
from .rows.batches import kernel_batches
from .rows.columns import ColumnBlock
from .rows.files import Rows
from .rows.partitioned import refuse_far_rows
from .sum_bytes import MISSING, POLICIES, SumState, as_integers, not_a_sum, pack, unpack
from .totals import Totals

__all__ = ["ExactSum", "add_partial", "as_integers", "kernel_parts"]

#: Numbers of a batch that goes by one short call, which takes some ten microseconds and keeps the
#: interpreter's lock so long: more are worth the preparations of a long one.
_FEW = 1 << 14


class ExactSum:
    """Exact sum of rows that are centred, scaled, clipped and quantised.

    **Guarantees.** The integers are a function of the multiset of rows alone: every split,
    order, merge tree, thread count, backend and instruction set gives the same bytes (claims
    sum-2, sum-6). Between neighbours they differ by at most
    ``ellipsoid.sensitivity(neighbors) / ellipsoid.grid`` in l2 norm (claim sum-1). Memory is O(d).
    A call that raises leaves the sum as it was; where an interrupt (Ctrl-C) comes, all of a batch
    is in it or none, and :attr:`count` says which.

    *Everything in it is private* (the integers, ``clipped``, its bytes): hand on a
    :class:`Release`, never the sum.

    ================================  =====================================================
    row                               what it adds
    ================================  =====================================================
    inside the region                 its own rounded coordinates
    outside                           the same, moved to the region's boundary
    with cells that are not finite    the same, with the centre in those cells
    ================================  =====================================================

    Parameters
    ----------
    ellipsoid : Ellipsoid
    nonfinite : ``"center"`` or ``"raise"``
        ``"raise"`` **gives up the guarantee**: an error tells the world about one person's
        row. A release made from such a sum says that it is not private.
    missing : ``"center"`` or ``"ignore"``
        ``"ignore"`` counts the holes of each coordinate beside the sum, for a
        :class:`PrivateMean` of the present cells, and clips a row with k of its d cells present
        at sqrt(k/d) of the radius (claim missing-1).
    threads : int, optional
        Threads of each :meth:`add`; default ``ELLIPSUM_THREADS``, else one.
    """

    def __init__(
        self,
        ellipsoid: Ellipsoid,
        *,
        nonfinite: str = "center",
        missing: str = "center",
        threads: int | None = None,
    ) -> None:
        if not isinstance(ellipsoid, Ellipsoid):
            kind = type(ellipsoid).__name__
            hint = ": give shape.at(0.01)" if hasattr(ellipsoid, "at") else ""
            raise TypeError(f"ellipsoid must be an Ellipsoid, got {kind}{hint}")
        self._ellipsoid = ellipsoid
        self._nonfinite = _validate.one_of("nonfinite", nonfinite, POLICIES)
        self._missing = _validate.one_of("missing", missing, MISSING)
        self._threads = thread_count(threads)
        self._region = ellipsoid.kernel_arguments()
        self._totals = self._none()
        self._few: Any = None  # adds a few rows to these totals; made when it is first asked for
        self._releases = 0
        self._marks: lineage.Marks = frozenset()
        self._columns = Columns(ellipsoid.columns)
        self._lock = threading.Lock()

    def add(self, batch: Any) -> ExactSum:
        """Add rows, an array (n, d) or one row (d,), floats without a copy; return itself.

        No rows are added like any others: whether there are some may be private.

        Parameters
        ----------
        batch : array_like (n, d), data units; any strides, memory-mapped or not
            Of a list each item is one row (so one row is an array, or ``[row]``), or a batch if
            it is one by its type, as for :class:`PrivateSum`.

        Raises
        ------
        TypeError, ValueError
            For a batch that is not numeric, or has another width or other columns. Never for a
            value in it, except under ``nonfinite="raise"``.
        """
        if type(batch) is np.ndarray and batch.size <= _FEW and self._add_few(batch):
            return self
        more, count, clipped, nonfinite = self._none(), 0, 0, 0
        absent, stretch = np.zeros(more.holes, np.int64), self._missing == "ignore"
        columns = self._columns.copy()
        for part in self._parts(batch, columns):
            partial = np.zeros(self._ellipsoid.d, np.int64)
            counts = kernels().clip_sum(
                part, *self._region, partial, self._threads, absent=absent, stretch=stretch
            )
            add_partial(*more.sums, partial)
            count, clipped = count + len(part), clipped + counts[0]
            nonfinite += counts[1]
        if nonfinite and self._nonfinite == "raise":
            raise ValueError('batch has a row with a NaN or an infinity, and nonfinite="raise"')
        with self._lock:
            self._columns = self._columns.joined(columns)
            self._marks = self._marks or lineage.new_marks()
            totals = self._totals.plus(more.with_counts(count, clipped, nonfinite, absent))
            # Where an interrupt comes, all of it is there or nothing.
            self._totals, self._few = totals, None
        return self

    def _add_few(self, batch: NDArray[Any]) -> bool:
        """Add a few rows by one call, if they are what a kernel takes; were they added?"""
        center, scale, matrix, limit, radius = self._region
        if matrix.size or self._nonfinite == "raise" or self._missing == "ignore":
            return False
        with self._lock:
            if self._few is None:
                arrays = self._totals.low, self._totals.high
                self._few = kernels().FewRows(center, scale, limit, radius, *arrays)
            self._marks = self._marks or lineage.new_marks()
            added: bool = self._few.add(batch)
        return added

    def _parts(
        self, batch: Any, columns: Columns | None = None
    ) -> Iterator[NDArray[Any] | ColumnBlock]:
        plain = type(batch) is np.ndarray
        refuse_far_rows(batch) if not plain else None
        # Of Arrow data an array's dtype could depend on values.
        if not plain and (is_arrow(batch) or isinstance(batch, (list, tuple, ColumnBlock, Rows))):
            for rows in kernel_batches(batch, self._ellipsoid.d, columns):
                yield from kernel_parts(rows)
        else:
            yield from kernel_parts(numeric_rows("batch", batch, d=self._ellipsoid.d))

    def merge(self, other: ExactSum) -> ExactSum:
        """Add another sum over the same region; return itself. The other stays as it is.

        Parameters
        ----------
        other : ExactSum

        Raises
        ------
        TypeError, ValueError
            If ``other`` is no ExactSum, has another region or policy, or holds rows that this
            sum has already: it is this sum, or a copy of it or of a part, made in this process.
        """
        if not isinstance(other, ExactSum):
            raise TypeError(f"other must be an ExactSum, got {type(other).__name__}")
        if other is self:
            raise ValueError("other is this sum itself: its rows would count twice")
        if other._ellipsoid is not self._ellipsoid and other._ellipsoid != self._ellipsoid:
            raise ValueError("other has a different ellipsoid: sums merge only over the same one")
        self._check_policies("other", other)
        columns = self._columns.joined(other._columns)
        self._merge_state(other.snapshot(), other._marks)
        self._columns = columns
        return self

    def _check_policies(self, what: str, other: ExactSum | PartState) -> None:
        for policy in ("nonfinite", "missing"):
            if getattr(other, policy) != getattr(self, policy):
                raise ValueError(
                    f"{what} has a different {policy} policy: use the same in every part"
                )

    def _merge_state(self, state: SumState | PartState, marks: lineage.Marks) -> ExactSum:
        with self._lock:
            if not self._marks.isdisjoint(marks):
                raise ValueError(
                    "other holds rows that this sum has already (it is a copy of it, or of a "
                    "part of it): they would count twice"
                )
            totals = self._totals.plus(self._of(state))
            marks, releases = self._marks | marks, max(self._releases, state.releases)
            self._marks, self._releases = marks, releases
            self._totals, self._few = totals, None
        return self

    @property
    def ellipsoid(self) -> Ellipsoid:
        """The clip region: public."""
        return self._ellipsoid

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the coordinates, where a source had some; public. Bytes do not hold them."""
        return self._columns.names

    @property
    def count(self) -> int:
        """Rows added. Public for ``replace`` neighbours, private for ``add-remove``."""
        return self._totals.counts[0]

    @property
    def clipped(self) -> int:
        """Rows outside the region, with the centre in cells that are not finite. **Private.**"""
        return self._totals.counts[1]

    @property
    def nonfinite(self) -> str:
        """The policy for cells that are NaN or infinite: ``"center"`` or ``"raise"``."""
        return self._nonfinite

    @property
    def missing(self) -> str:
        """What holes count for: ``"center"`` or ``"ignore"``."""
        return self._missing

    @property
    def threads(self) -> int:
        """Threads of each :meth:`add`."""
        return self._threads

    def integers(self) -> NDArray[np.object_]:
        """Return the exact sums. **Private.**

        Returns
        -------
        array (d,) of Python ints, in units of ``ellipsoid.grid``, scaled coordinates
        """
        state = self.snapshot()
        return as_integers(state.low, state.high)

    def claim_release(self, *, again: bool, only_ask: bool = False) -> None:
        """Record that a release is made; refuse a second one that was not asked for.

        Copies made in this process count too (:mod:`ellipsum.lineage`), and so does a release
        made before :meth:`to_bytes`, wherever the bytes go.

        Parameters
        ----------
        again : bool
            Whether a second release was asked for.
        only_ask : bool
            Only refuse what would be refused, before a budget is spent on it.

        Raises
        ------
        ValueError
            For a second release that was not.
        """
        with self._lock:
            known = {"again": again, "only_ask": only_ask}
            if (self._releases and not again) or not lineage.claim(self._marks, **known):
                raise ValueError(
                    "this ExactSum (or a copy or part of it) was released before, and a second "
                    "release spends its budget again: pass spend_again=True if that is what you "
                    "want"
                )
            self._releases += not only_ask

    def to_bytes(self) -> bytes:
        """Return the sum and its region as bytes: versioned, checksummed, little-endian.

        The length depends on d and the shape alone (claim channels-2). **Private**: they hold the
        exact sum.
        The checksum finds damage, not malice. The object remembers which sum it was made from
        (:mod:`ellipsum.lineage`); its bytes do not.
        """
        with self._lock:
            return lineage.MarkedBytes.of(pack(self._state()), self._marks)

    def partial(self) -> bytes:
        """Return the sum as bytes without its region: 16 d bytes, and 80 of header and checksum;
        with ``missing="ignore"`` 8 d more.

        For :class:`ellipsum.Parts`, which holds the region and knows them by its fingerprint. They
        are a function of region and rows (and of whether the sum was released), so that a task
        that runs twice gives the same (claim parts-1). **Private**, as :meth:`to_bytes`.
        """
        with self._lock:
            totals, counts = self._totals, (*self._totals.counts, self._releases)
            sums = (self._ellipsoid.fingerprint(), self._nonfinite, *totals.sums)
            state = PartState(*sums, *counts, self._missing, totals.absent)
            return lineage.MarkedBytes.of(pack_part(state), self._marks)

    def merge_partial(self, part: Any) -> ExactSum:
        """Add what :meth:`partial` returned, from a sum over the same region; return itself.

        Raises
        ------
        ValueError
            For bytes that are no part, of another region or policy, or of rows that this sum
            has already (known of parts made in this process).
        """
        state = unpack_part(bytes(part))
        if state.fingerprint != self._ellipsoid.fingerprint():
            raise ValueError("the part has a different ellipsoid: parts add up over the same one")
        self._check_policies("the part", state)
        if is_impossible(state, self._ellipsoid.row_bound()):
            raise not_a_part("its counts and sums contradict each other")
        return self._merge_state(state, lineage.marks_of(part) if state.rows else frozenset())

    @classmethod
    def from_bytes(cls, data: bytes, *, threads: int | None = None) -> ExactSum:
        """Rebuild a sum from :meth:`to_bytes`.

        Parameters
        ----------
        data : bytes-like
        threads : int, optional; of each :meth:`add`, as for the constructor

        Returns
        -------
        ExactSum

        Raises
        ------
        TypeError
            If ``data`` is not bytes-like.
        ValueError
            If ``data`` is truncated, altered, of another version, or says what no sum can be.
        """
        try:
            raw = bytes(memoryview(data))
        except TypeError:
            raise TypeError(f"data must be bytes, got {type(data).__name__}") from None
        state = unpack(raw)
        policies = {"nonfinite": state.nonfinite, "missing": state.missing}
        total = cls(Ellipsoid.from_state(state.region), **policies, threads=threads)
        total._restore(state)
        total._marks = lineage.marks_of(data)
        return total

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _unpickle, (self.to_bytes(), self.columns, self._columns.learned)

    def __repr__(self) -> str:
        return f"ExactSum(d={self._ellipsoid.d}, kind={self._ellipsoid.kind!r})"

    def snapshot(self) -> SumState:
        """Return all numbers as they are at one moment. **Private.**"""
        with self._lock:
            return self._state()

    def empty_copy(self) -> ExactSum:
        """Return a sum of no rows over the same region, with the same policies and threads."""
        policies = {"nonfinite": self._nonfinite, "missing": self._missing}
        return ExactSum(self._ellipsoid, **policies, threads=self._threads)

    def _none(self) -> Totals:
        return Totals(self._ellipsoid.d, self._ellipsoid.d if self._missing == "ignore" else 0)

    def _of(self, state: SumState | PartState) -> Totals:
        counts = state.rows, state.clipped, state.nonfinite_rows, state.absent
        totals = self._none().with_counts(*counts)
        totals.sums[0][:], totals.sums[1][:] = state.low, state.high
        return totals

    def _state(self) -> SumState:
        totals = self._totals
        low, high = totals.sums
        sums = (self._nonfinite, low.copy(), high.copy())
        counts = (*totals.counts, self._releases)
        holes = (self._missing, totals.absent)
        return SumState(self._ellipsoid.to_state(), *sums, *counts, *holes)

    def _restore(self, state: SumState) -> None:
        if is_impossible(state, self._ellipsoid.row_bound()):
            raise not_a_sum("its counts and sums contradict each other")
        self._totals, self._few, self._releases = self._of(state), None, state.releases


def _unpickle(data: bytes, columns: tuple[str, ...] | None = None, units: Any = ()) -> ExactSum:
    total = ExactSum.from_bytes(data)
    total._columns = Columns(columns)
    total._columns.learned = dict(units)
    return total
