"""Private numbers of users, or rows, of each group: counts and histograms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..budget.budget import Budget, Share
from ..guarantee import Neighbors, rounded_up, seed_caveats
from ..rows.batches import as_batches
from ..rows.labelled import column_of, label_batches, labelled_batches
from ..users import user_runs
from .base import Groups
from .bounded import Users, limited
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
    keys, max_keys, epsilon, delta, rho, mu, neighbors
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
    ) -> None:
        self.edges: NDArray[np.float64] | None = None
        if edges is not None:
            if keys is not None:
                raise ValueError("give either keys or edges")
            self.edges = _validate.vector("edges", edges)
            if len(self.edges) < 2 or (np.diff(self.edges) <= 0).any():
                raise ValueError("edges must be two numbers or more, ascending")
            keys = list(range(len(self.edges) - 1))
        super().__init__(keys, max_keys, (epsilon, delta, rho, mu), neighbors)

    def __call__(
        self,
        rows: Any,
        *,
        key: Any = None,
        user: Any = None,
        budget: Budget | Share | None = None,
        seed: int | bytes | None = None,
    ) -> GroupRelease:
        """Count the users, or rows, of each group, add the noise, and return the release.

        Parameters
        ----------
        rows : table, stream, files, mapping of columns; or a column of keys (of numbers, with
            ``edges``) itself, where ``key`` is not given
        key : str, optional; the name of the column
        user : str or column, optional; whose row it is
        budget : Budget or Share, optional
            What the release is drawn from, before its noise is: refused where there is no room.
        seed : int or 32 bytes, optional
            **For tests and audits: a release made with a seed is not private**, and says so.

        Returns
        -------
        GroupRelease
        """
        self._check_user(user)
        promise, threshold = self._promise(user)
        book = KeyBook(self._keys)
        counts, n = self._counted(rows, key, user, book)
        order = list(range(len(book))) if book.closed else book.order()
        counts = counts[order]
        names = [book.keys[i] for i in order]
        ends = () if self.edges is None else (self.edges,)
        keys = self._keys_of_draws(promise, seed, *ends, *map(key_text, names), counts)
        entry = self._draw(budget, promise, keys)
        sigma = rounded_up((self._size_factor(promise.max_keys) or 0.0) * promise.noise_multiplier)
        sizes, named = self._sizes(counts, sigma, keys, threshold)
        kept = np.flatnonzero(named)
        noisy = NoisyGroups([names[i] for i in kept], None, None, [], sizes[kept], sigma)
        public = float(n) if promise.neighbors.count_is_public else None
        release = GroupRelease(self._kind, noisy, promise, seed_caveats(seed), n=public)
        return release.binned(self.edges).drawn_from(entry)

    def _size_factor(self, k: int) -> float | None:
        return math.sqrt(2 * k if self._neighbors is Neighbors.REPLACE else k)

    def _counted(self, rows: Any, key: Any, user: Any, book: KeyBook) -> tuple[Ints, int]:
        """Users, or rows, of each group, and in all."""
        total = _Counts()
        if self.edges is not None:
            batches = _numbers(rows, key, user)
        else:
            labels = [rows if key is None else key] + ([] if user is None else [user])
            batches = label_batches(rows, labels)
        if user is None:
            n = 0
            for values, labels in batches:
                index = self._bins(values) if self.edges is not None else book.index(labels[0])
                total.add(index, len(book))
                n += len(index)
            return total.of(len(book)), n
        seen = Users(self._neighbors)

        def index_of(values: Array, labels: Any) -> Ints:
            return self._bins(values) if self.edges is not None else book.index(labels[0])

        runs = user_runs(seen.of(batches, book, index_of), 1, True)
        for _, index in limited(runs, book, self._max_keys):
            total.add(index, len(book))
        return total.of(len(book)), len(seen)

    def _bins(self, values: Array) -> Ints:
        edges = self.edges if self.edges is not None else np.empty(0)
        x = np.asarray(values, np.float64).reshape(-1)
        index = np.searchsorted(edges, x, side="right") - 1
        index[x == edges[-1]] = len(edges) - 2
        index[~((x >= edges[0]) & (x <= edges[-1]))] = -1
        return index.astype(np.int64)


class _Counts:
    """Numbers of groups, which may become more."""

    def __init__(self) -> None:
        self._counts = np.zeros(0, np.int64)

    def add(self, index: Ints, groups: int) -> None:
        counts = np.bincount(index[index >= 0], minlength=max(groups, len(self._counts)))
        counts[: len(self._counts)] += self._counts
        self._counts = counts.astype(np.int64)

    def of(self, groups: int) -> Ints:
        out = np.zeros(groups, np.int64)
        out[: len(self._counts)] = self._counts
        return out


def _numbers(rows: Any, key: Any, user: Any) -> Iterator[Any]:
    """Batches of the one column that is binned, with the user's label, if any, behind a blank."""
    column = rows if key is None else (column_of(rows, key) if isinstance(key, str) else key)
    if user is None:
        return ((batch, []) for batch in as_batches(column, 1))
    labels = column_of(rows, user) if isinstance(user, str) else user
    batches = labelled_batches(column, 1, [labels])
    return ((values, [None, *own]) for values, own in batches)
