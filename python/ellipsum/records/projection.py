"""A table projected to m random rows under a private floor: Y = Phi X + w N."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate
from ..budget.budget import Budget, Share
from ..budget.purse import check_budget, draw_from
from ..column_names import Columns, named_vectors
from ..guarantee import Neighbors, rounded_up, seed_caveats
from ..kernels.backend import thread_count
from ..lineage import MarkedBytes, Marks, claim, marks_of, new_marks
from ..noise import SIGMA_MAX, rounded_gaussian
from ..noise_keys import KEY_BYTES, JobKeys, Use, digest, root_key
from ..rows.batches import as_batches
from .projection_bytes import SketchState, pack, unpack
from .projection_floor import PHI_BITS, ProjectionGuarantee, largest_ratio
from .projection_release import ProjectionRelease
from .projection_sketch import RADIUS_BITS, Sketch
from .record_clip import RecordClip

__all__ = ["PrivateProjection"]

_MOST_D = 1 << 24


class PrivateProjection:
    """Release m random combinations of a table's rows: Y = Phi X + w N, Phi and N Gaussian.

    Rows are clipped to ``radius`` about ``center``. Y is m rows of N(0, X'X + w^2 I): they have the
    table's second moments, and nothing else. A private covariance has smaller errors at the same
    budget, and rows drawn from it are of the same kind (docs/projection.md): this is for where
    only linear maps of the rows can be computed, and for comparison.

    **Guarantees.** (epsilon, delta)-DP for the released *bits*, whatever the table is, and exact:
    the pair of Gaussians that is the worst one, for ``floor`` as it is, with every rounding in it
    (claims projection-1, projection-2). One key projects one table, once: what is added after a
    release is refused, and so is a row's number that was used before (claim projection-3). Sums,
    and so the release, are the same bits for any order, split, merge, backend and thread count.
    A row with a NaN or an infinity counts as the center. ``radius`` and ``center`` are public.

    Parameters
    ----------
    rows : int, m: how many rows to release
    radius : float, data units
        The ball that rows are clipped to.
    d : int, coordinates of a row
    epsilon, delta : float
    neighbors : ``"replace"`` or ``"add-remove"``
    center : array (d,), or a mapping by columns' names, data units, optional; public, 0 by default
    key : 32 bytes, optional
        A secret that the parts of one table share, so that their columns of Phi are those of one
        run; fresh by default. Whoever knows it can undo the projection. Never use it for another
        table.
    budget : Budget or Share, optional; what the release is drawn from: asked now for room
    seed : int, optional; for tests: what is made with a seed is **not private**
    threads : int, optional, for drawing Phi (BLAS has its own setting)

    Notes
    -----
    Memory: 24 m d bytes, and 2 blocks of Phi. Time: 2 n m d operations of BLAS and n m normals.

    Source: Zhou, Ligett & Wasserman 2009, the projection; the floor is not theirs.
    """

    def __init__(
        self,
        *,
        rows: int,
        radius: float,
        d: int,
        epsilon: float,
        delta: float,
        neighbors: str = "replace",
        center: ArrayLike | None = None,
        key: Any = None,
        budget: Budget | Share | None = None,
        seed: int | bytes | None = None,
        threads: int | None = None,
    ) -> None:
        m = _validate.whole("rows", rows, least=1, most=1 << 31)
        self.d = _validate.whole("d", d, least=1, most=_MOST_D)
        epsilon, delta = _validate.positive("epsilon", epsilon), _validate.open_unit("delta", delta)
        names, known = named_vectors(center=center)
        self._columns, where = Columns(names, "center"), np.zeros(self.d)
        if center is not None:
            where = _validate.vector("center", known["center"], d=self.d)
        reach = _validate.positive("radius", radius)
        clip = RecordClip(where, np.ones(self.d), reach, RADIUS_BITS)
        relation = Neighbors.of(neighbors)
        ratio = largest_ratio(m, epsilon, delta, relation)
        #: Of w N, in steps of the sums.
        self._sigma = rounded_up(clip.row_bound * 2.0**PHI_BITS / math.sqrt(ratio))
        if self._sigma > SIGMA_MAX:
            raise ValueError("the budget is too small for this many rows: the floor leaves int64")
        self.guarantee = ProjectionGuarantee(relation, epsilon, delta, rows=m, ratio=ratio)
        check_budget(budget, self.guarantee)
        self._budget = budget
        self._job = ("projection", m, relation.value, self._sigma, clip.clip_norm, where)
        self._sketch, self._threads = Sketch(m, clip), thread_count(threads)
        self._root = _root(key, seed)
        self._column_key = JobKeys(self._root, *self._job).of(Use.COLUMN)
        self._marks: Marks = new_marks()
        self._caveats = seed_caveats(seed)
        self._budgeted = budget is not None  # or what it was made of was
        self._processes: set[int] = set()  # where its rows were added
        self._released: ProjectionRelease | None = None

    @property
    def rows(self) -> int:
        """m: how many rows are released."""
        return self._sketch.rows

    @property
    def radius(self) -> float:
        """R, data units."""
        return self._sketch.clip.clip_norm

    @property
    def floor(self) -> float:
        """w: the standard deviation that every entry of Y has at least, data units."""
        return self._sigma * self._step

    @property
    def count(self) -> int:
        """Rows that were added. **Private** for ``add-remove`` neighbours."""
        return self._sketch.count

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the coordinates, where ``center`` or a source had some; public."""
        return self._columns.names

    @property
    def _step(self) -> float:
        return self._sketch.clip.grid * 2.0**-PHI_BITS

    def add(self, data: Any, *, first: int | None = None) -> PrivateProjection:
        """Add rows; return itself.

        Parameters
        ----------
        data : array (n, d), batches, frames, Arrow data, ``Rows``; data units
            Columns with names are put into the order of the first ones (claim rows-5).
        first : int, optional
            The number of the first row: row i has column i of Phi. By default the one after the
            largest so far. Parts of one table on several machines share ``key`` and need ranges
            of their own. Which number a row has is public.

        Raises
        ------
        ValueError
            For a number that was used, rows of another width or of other columns, and after the
            release. Then none of the rows were added.
        """
        self._check_open()
        number = self._sketch.next_number(self._column_key)
        if first is not None:
            number = _validate.whole("first", first)
        fresh = Sketch(self.rows, self._sketch.clip)  # all of the rows are added, or none
        columns = self._columns.copy()
        for batch in as_batches(data, self.d, columns):
            fresh.add(batch, self._column_key, number, self._threads)
            number += len(batch)
        self._check_open()
        columns = self._columns.joined(columns)
        self._processes.add(os.getpid())
        self._sketch.merge(fresh)
        self._columns = columns
        fresh.sums[:] = 0
        return self

    def merge(self, other: PrivateProjection) -> PrivateProjection:
        """Add what another has; return itself.

        Raises
        ------
        TypeError, ValueError
            For other parameters, a number that is in both (under one key), columns of other names
            or in another order, and after a release.
        """
        if not isinstance(other, PrivateProjection):
            raise TypeError(f"other must be a PrivateProjection, got {type(other).__name__}")
        self._check_open()
        other._check_open()
        if self._fingerprint != other._fingerprint:
            raise ValueError("other has other parameters: merge parts of one projection")
        columns = self._columns.joined(other._columns)
        self._sketch.merge(other._sketch)
        self._columns = columns
        self._marks |= other._marks
        self._processes |= other._processes
        self._know(bool(other._caveats), other._budgeted)
        return self

    def to_bytes(self) -> bytes:
        """The parameters, the columns' names and what was added, without the key. As private as
        the rows.

        The bytes remember, while they are in this process, which rows they hold.

        Raises
        ------
        ValueError
            After the release.
        """
        self._check_open()
        promise, clip = self.guarantee, self._sketch.clip
        public = (promise.asked_epsilon, promise.asked_delta, clip.clip_norm, clip.center)
        name = (promise.neighbors.value, *public, self._fingerprint)
        made = (self._columns.names, bool(self._caveats), self._budgeted)
        state = SketchState(*name, self._sketch.sums, self._sketch.used, *made)
        return MarkedBytes.of(pack(state), self._marks)

    @classmethod
    def from_bytes(
        cls, data: bytes, *, key: Any = None, seed: int | bytes | None = None
    ) -> PrivateProjection:
        """The projection that :meth:`to_bytes` wrote. What was made with a seed stays not private,
        and what had a budget asks :meth:`release` for it.

        Parameters
        ----------
        data : bytes
        key, seed : of the rows that are still to come: with the key of those before, their
            numbers go on, else they get columns of their own

        Raises
        ------
        ValueError
            For bytes that are truncated, altered, or of another version.
        """
        state = unpack(bytes(data))
        m, d = state.sums.shape
        mechanism = cls(
            rows=m,
            radius=state.radius,
            d=d,
            epsilon=state.epsilon,
            delta=state.delta,
            neighbors=state.neighbors,
            center=state.center,
            key=key,
            seed=seed,
        )
        return mechanism.add_bytes(data)

    def add_bytes(self, data: bytes) -> PrivateProjection:
        """Add what :meth:`to_bytes` of a projection with the same parameters gave; return itself.

        Raises
        ------
        ValueError
            For bytes that are altered, of other parameters, or of columns of other names or in
            another order, and numbers used before.
        """
        self._check_open()
        state = unpack(bytes(data))
        if state.fingerprint != self._fingerprint:
            raise ValueError("data has other parameters: merge parts of one projection")
        columns = self._columns.joined(Columns(state.columns))
        other = Sketch(self.rows, self._sketch.clip)
        other.sums, other.used = state.sums, state.used
        self._sketch.merge(other)
        self._columns = columns
        self._marks |= marks_of(data)
        self._processes.add(os.getpid())
        self._know(state.seeded, state.budgeted)
        return self

    def _know(self, seeded: bool, budgeted: bool) -> None:
        """What is true of a part is true of the whole."""
        self._caveats = self._caveats or seed_caveats(0 if seeded else None)
        self._budgeted = self._budgeted or budgeted

    def release(self, *, budget: Budget | Share | None = None) -> ProjectionRelease:
        """Y, and what can be learned from it. The same object when asked again.

        Parameters
        ----------
        budget : Budget or Share, optional; what it is drawn from, if no other was given before

        Raises
        ------
        ValueError
            If a copy of it was released, or it has no rows though their number is public; if it
            was made with a budget and has none; in a process that is a fork of one where rows
            were added.
        """
        if self._released is not None:
            return self._released
        if self.guarantee.neighbors.count_is_public and not self.count:
            raise ValueError("data has no rows: add at least one")
        if not claim(self._marks, again=False, only_ask=True):
            raise ValueError("these rows were released already, by a copy")
        if budget is not None and self._budget is not None:
            raise ValueError("give budget once: to the projection, or to its release")
        if self._budgeted and budget is None and self._budget is None:
            raise ValueError(
                "this projection, or a part of it, was made with a budget, which its bytes do not "
                "hold: give it to release(budget=...)"
            )
        if self._processes - {os.getpid()}:
            raise ValueError(
                "rows of this projection were added before the process forked, and each copy could "
                "release them under one Phi: hand to_bytes() to the one process that releases them"
            )
        entry = draw_from(self._budget if budget is None else budget, self.guarantee, "projection")
        if not claim(self._marks, again=False):  # by another thread, meanwhile
            raise ValueError("these rows were released already, by a copy")
        key = JobKeys(self._root, *self._job, self._sketch.sums).of(Use.FLOOR)
        drawn = rounded_gaussian(
            self.rows * self.d, self._sigma, key=key, threads=self._threads
        ).reshape(self.rows, self.d)
        drawn += self._sketch.sums  # modulo 2^64: post-processing
        count = self.count if self.guarantee.neighbors.count_is_public else None
        self._released = ProjectionRelease(
            np.asarray(drawn * self._step),
            self.guarantee,
            self._caveats,
            floor=self.floor,
            n=count,
        )
        return self._released.named(*self._columns.told(self.d)).drawn_from(entry)

    def __reduce__(self) -> Any:
        raise TypeError("a projection holds a secret key: hand on to_bytes()")

    def __repr__(self) -> str:
        return f"PrivateProjection(rows={self.rows}, d={self.d}, floor={self.floor:.6g})"

    @property
    def _fingerprint(self) -> bytes:
        """Of the public parameters."""
        return digest(*self._job, self.d)[:16]

    def _check_open(self) -> None:
        if self._released is not None:
            raise ValueError("this projection was released: Phi must not be used again")


def _root(key: Any, seed: int | bytes | None) -> bytes:
    if key is None:
        return root_key(seed)
    if seed is not None:
        raise TypeError("give key or seed, not both")
    if not isinstance(key, (bytes, bytearray)) or len(key) != KEY_BYTES:
        raise TypeError(f"key must be {KEY_BYTES} secret bytes, as of secrets.token_bytes(32)")
    return bytes(key)
