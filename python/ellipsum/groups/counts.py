"""Private numbers of users, or rows, of each group: counts and histograms."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..budget.budget import Budget, Share
from ..budget.purse import check_budget
from ..guarantee import Neighbors, rounded_up, seed_caveats
from ..jobs.checkpoint import Checkpoint, Job
from ..jobs.inputs import refuse_job
from ..noise_keys import digest, root_key
from ..rows.files import Rows
from ..rows.labelled import label_batches, number_batches
from ..rows.labels import Labels
from ..rows.partitioned import Partitioned
from .base import Groups
from .count_table import ExactCounts
from .far_groups import table_anywhere
from .file_groups import Grouping, by_key
from .guarantee import GroupGuarantee
from .key_bytes import key_text
from .keys import KeyBook
from .release import GroupRelease, NoisyGroups

__all__ = ["PrivateCounts"]

Array = NDArray[Any]
Ints = NDArray[np.int64]


class PrivateCounts(Groups):
    """Differentially private number of users, or rows, of each group: a histogram.

    **Guarantees.** As :class:`PrivateGroupSum`, for the noisy numbers alone. One row that moves
    changes two counts by one each: sqrt(2), not 2, for ``replace``, and sqrt(2 max_keys) for a
    user (claim groups-2).

    Parameters
    ----------
    keys, max_keys, epsilon, delta, rho, mu, neighbors, by
        As of :class:`PrivateGroupSum`.
    edges : array (m + 1,), optional
        In place of keys, of numbers: public ends of m bins [edge, next edge), the last one with
        its upper end. Numbers outside, and NaN, are in no bin.
    """

    _kind = "count"

    def __init__(
        self,
        *,
        keys: Sequence[Any] | None = None,
        edges: Any = None,
        max_keys: int = 1,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        neighbors: str = "add-remove",
        by: str | None = None,
    ) -> None:
        self.edges: NDArray[np.float64] | None = None
        if edges is not None:
            if keys is not None:
                raise ValueError("give either keys or edges")
            self.edges = _validate.vector("edges", edges)
            if len(self.edges) < 2 or (np.diff(self.edges) <= 0).any():
                raise ValueError("edges must be two numbers or more, ascending")
            keys = list(range(len(self.edges) - 1))
        super().__init__(keys, max_keys, (epsilon, delta, rho, mu), neighbors, by)

    def _named(self) -> str:
        return super()._named() if self.edges is None else f"bins: {len(self.edges) - 1}"

    def __call__(
        self,
        rows: Any,
        *,
        key: Any = None,
        user: Any = None,
        budget: Budget | Share | None = None,
        resume: Checkpoint | str | os.PathLike[str] | None = None,
        jobs: int = 1,
        seed: int | bytes | None = None,
    ) -> GroupRelease:
        """Count the users, or rows, of each group, add the noise, and return the release.

        Parameters
        ----------
        rows : table, stream, iterator of tables, ``open_rows(..., by=[...])``, mapping of columns
            Or a column of keys (of numbers, with ``edges``) itself, where ``key`` is not given.
            Files and rows in an engine are read for their labels alone, with ``edges`` for the one
            column of numbers that they were opened with: ``open_rows(files, ["age"])``,
            ``SparkRows(df, ["age"])``.
        key : str, optional; the name of the column
        user : str or column, optional; whose row it is: by default ``by``
        budget : Budget or Share, optional
            What the release is drawn from, before its noise is: refused where there is no room.
        resume : Checkpoint or path, optional
            For ``open_rows(...)`` and rows in an engine: a secret file from which a run that was
            killed goes on, and which repeats the same release until it is discarded
            (:class:`Checkpoint`). It holds the counts, and so the keys; never a row or a user.
        jobs : int
            Files of ``open_rows(...)``, or parts of a large one, that are read at the same time.
        seed : int or 32 bytes, optional
            **For tests and audits: a release made with a seed is not private**, and says so.

        Returns
        -------
        GroupRelease

        Raises
        ------
        TypeError, ValueError
            For data without such columns; a checkpoint of another job, or one that lies among the
            files (CheckpointError).
        """
        user = self._checked_user(user)
        promise = self._promise(user)
        check_budget(budget, promise[0], resume)
        refuse_job(rows, resume is not None, jobs, seeded=seed is not None)
        if isinstance(rows, Rows) and self.edges is None:
            rows = rows.labels_alone()
        self._coordinates(rows, key)
        if resume is not None:
            return self._resumed(rows, key, user, resume, jobs, budget)
        table = self._summed(rows, key, user, None, jobs)
        return self._released(table, *promise, root_key(seed), seed_caveats(seed), budget)

    def _released(
        self,
        table: ExactCounts,
        promise: GroupGuarantee,
        threshold: int | None,
        root: bytes,
        caveats: tuple[str, ...],
        budget: Budget | Share | None,
    ) -> GroupRelease:
        order = table.order()
        counts = table.counts()[order]
        names = [table.book.keys[i] for i in order]
        ends = () if self.edges is None else (self.edges,)
        keys = self._keys_of_draws(promise, root, *ends, *map(key_text, names), counts)
        entry = self._draw(budget, promise, keys)
        sigma = rounded_up((self._size_factor(promise.max_keys) or 0.0) * promise.noise_multiplier)
        sizes, named = self._sizes(counts, sigma, keys, threshold)
        kept = np.flatnonzero(named)
        noisy = NoisyGroups([names[i] for i in kept], None, None, [], sizes[kept], sigma)
        public = float(table.units) if promise.neighbors.count_is_public else None
        release = GroupRelease(self._kind, noisy, promise, caveats, n=public)
        return release.binned(self.edges).drawn_from(entry)

    def _size_factor(self, k: int) -> float | None:
        return math.sqrt(2 * k if self._neighbors is Neighbors.REPLACE else k)

    def _job(self) -> tuple[bytes, str, str]:
        return b"" if self.edges is None else digest(self.edges), "center", self._kind

    def _labels(self, key: Any, user: Any) -> list[Any]:
        """Numbers that are binned are no label."""
        return super()._labels(key, user)[self.edges is not None :]

    def _summed(self, rows: Any, key: Any, user: Any, job: Job | None, jobs: int) -> ExactCounts:
        """Users, or rows, of each group, and in all."""
        by, d = self._labels(rows if key is None else key, user), self._coordinates(rows, key)
        batches = partial(label_batches, by=by)
        if self.edges is not None:
            batches = partial(number_batches, key=key, by=by)
        groups = by_key if self.edges is None else _Bins(self.edges)
        grouping = Grouping(by, d, batches, groups)
        known = True, self._max_keys
        make = partial(ExactCounts, self._keys)
        table: ExactCounts = table_anywhere(
            rows, grouping, make, self._users(user), known, job, jobs
        )
        return table

    def _coordinates(self, rows: Any, key: Any) -> int:
        """Coordinates of a row of files or an engine: binned is the one that there is."""
        if not isinstance(rows, (Rows, Partitioned)):
            return 1
        if self.edges is None:
            return 0
        named = isinstance(key, str) and rows.columns is not None and list(rows.columns) == [key]
        one = rows.accepts(1) if isinstance(rows, Rows) else rows.d in (None, 1)
        if not one or not (key is None or named):
            column = repr(key) if isinstance(key, str) else "column"
            if isinstance(rows, Rows):
                what = f"files are binned by their one column: open_rows(files, [{column}])"
            else:
                name = type(rows).__name__
                what = f"rows in an engine are binned by their one column: {name}(..., [{column}])"
            raise ValueError(what)
        return 1


@dataclass(frozen=True)
class _Bins:
    """The bin of each row's number, -1 for none."""

    edges: NDArray[np.float64]

    def __call__(self, _book: KeyBook, values: Array, _labels: list[Labels]) -> Ints:
        with np.errstate(all="ignore"):  # a warning would tell of a value
            x = np.asarray(values, np.float64).reshape(-1)
        edges = self.edges
        index = np.searchsorted(edges, x, side="right") - 1
        index[x == edges[-1]] = len(edges) - 2
        index[~((x >= edges[0]) & (x <= edges[-1]))] = -1
        return index.astype(np.int64)
