"""Private sums, means and counts of groups, whose keys are public or private."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate, noise
from ..ellipsoid import Ellipsoid
from ..exact_sum import as_integers
from ..guarantee import ROW, Neighbors, rounded_up, seed_caveats
from ..noise_keys import JobKeys, Use, root_key
from ..rows.batches import as_batches
from ..rows.labelled import column_of, label_batches, labelled_batches
from ..users import STATISTICS, user_runs
from .guarantee import GroupGuarantee, group_guarantee
from .keys import KeyBook, chosen_keys
from .release import GroupRelease, NoisyGroups
from .selection import COUNT_STEPS
from .table import ExactGroupSum

__all__ = ["PrivateCounts", "PrivateGroupMean", "PrivateGroupSum"]

Array = NDArray[Any]
Ints = NDArray[np.int64]


class _Groups:
    """What sums, means and counts of groups share: keys, budget, unit, selection."""

    _kind = ""

    def __init__(
        self,
        keys: Sequence[Any] | None,
        max_keys: int,
        budget: tuple[float | None, float | None, float | None, float | None],
        neighbors: str,
    ) -> None:
        if isinstance(keys, (str, bytes)):
            raise TypeError("keys must be a sequence of keys, got one text")
        self._keys = None if keys is None else list(keys)
        if self._keys is not None and not self._keys:
            raise ValueError("keys must name at least one group")
        KeyBook(self._keys)  # its checks
        self._max_keys = _validate.whole("max_keys", max_keys, least=1)
        self._budget, self._neighbors = budget, Neighbors.of(neighbors)
        self.guarantee_for(None)  # its checks

    def guarantee_for(self, user: str | None) -> GroupGuarantee:
        """What a call with this ``user=`` promises.

        Parameters
        ----------
        user : str or None, the column's name
        """
        return self._promise(user)[0]

    def _promise(self, user: Any) -> tuple[GroupGuarantee, int | None]:
        """The guarantee, and the threshold; without users a row is in one group."""
        k = 1 if user is None else self._max_keys
        named = user if isinstance(user, str) else "the column of users"
        unit = ROW if user is None else f"all rows of one value of {named}"
        private = self._keys is None
        factor = self._size_factor(k)
        return group_guarantee(
            self._budget, self._neighbors.value, unit, k, private, factor or math.inf
        )

    def _size_factor(self, k: int) -> float | None:
        """Noise of a group's size over the noise multiplier, in users; None: not released."""
        raise NotImplementedError

    def _keys_of_draws(
        self, promise: GroupGuarantee, seed: int | bytes | None, *job: Any
    ) -> JobKeys:
        own = (f"groups {self._kind}", promise.neighbors.value, *promise.asked, promise.max_keys)
        return JobKeys(root_key(seed), *own, promise.unit, *job)

    def _sizes(
        self, counts: Ints, sigma: float, keys: JobKeys, threshold: int | None
    ) -> tuple[NDArray[np.float64], Array]:
        """Noisy sizes, and which groups may be named: all of them where the keys are public."""
        if not len(counts):
            return np.empty(0), np.empty(0, np.bool_)
        drawn = noise.rounded_gaussian(len(counts), sigma * COUNT_STEPS, key=keys.of(Use.COUNT))
        steps = counts.astype(object) * COUNT_STEPS + drawn.astype(object)
        named = np.array([threshold is None or s >= threshold for s in steps], np.bool_)
        return np.array([int(s) / COUNT_STEPS for s in steps], np.float64), named


class PrivateGroupSum(_Groups):
    """Differentially private sum of the rows of each group.

    **Guarantees.** The release of all groups together is differentially private for the unit
    named: one row, or all rows of a user. One user adds one clipped row to at most ``max_keys``
    groups, and the noise of every group is for all of these: l2 norm sqrt(max_keys) times that
    of a row (claim groups-1). Groups' sizes are private and released with noise; for ``replace``
    they cost nothing (claim groups-2). Where the keys are private, a group is named only where
    its noisy number of users reaches a threshold, and delta has the chance of naming a key of
    one user alone in it, exactly (claim groups-4).

    Rows without a key, or whose key is none of the public ones, are in no group; with ``user``,
    rows without a user are left out.

    Parameters
    ----------
    ellipsoid : Ellipsoid, or a mapping of public keys to Ellipsoids
        The clip region, of all groups or of each: of a row, or of what a user's rows in a group
        become. Public.
    keys : sequence, optional
        The public keys: integers, text or bytes. Each is released, those without a row too.
        None: keys are private, and those with enough users are released.
    max_keys : int
        Groups that one user may be in; which ones, if there are more, depends on the user's own
        keys alone (claim groups-3). Without ``user`` a row is in one group.
    epsilon, delta : float
        The budget; rho or mu in their place where the keys are public.
    rho, mu : float
    neighbors : ``"add-remove"`` or ``"replace"``
        ``"add-remove"``: a user's rows are there or not. ``"replace"``: they take other values
        *and other keys*; the number of all users is public, that of no group.
    statistic : ``"mean"`` or ``"sum"``, optional
        What a user's rows in a group become. Default: as the release's name says.

    Raises
    ------
    TypeError, ValueError
        For a budget that is missing or double, private keys without epsilon and delta, or keys
        that are none.

    Source: for private keys Wilkins, Kifer, Zhang & Karrer 2024, derived again in
    docs/guarantees/groups.md.
    """

    _kind = "sum"

    def __init__(
        self,
        ellipsoid: Ellipsoid | Mapping[Any, Ellipsoid],
        *,
        keys: Sequence[Any] | None = None,
        max_keys: int = 1,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        neighbors: str = "add-remove",
        statistic: str | None = None,
    ) -> None:
        if isinstance(ellipsoid, Mapping) and keys is None:
            keys = list(ellipsoid)
        self._region = ellipsoid
        ExactGroupSum(ellipsoid, keys)  # its checks
        chosen = _validate.one_of("statistic", statistic or self._kind, STATISTICS)
        self._divide = chosen == "mean"
        super().__init__(keys, max_keys, (epsilon, delta, rho, mu), neighbors)

    def __call__(
        self,
        rows: Any,
        *,
        key: Any,
        user: Any = None,
        seed: int | bytes | None = None,
    ) -> GroupRelease:
        """Sum the rows of each group, add the noise, and return the release.

        Parameters
        ----------
        rows : table, stream, ``open_rows(..., by=[...])``, mapping of columns, array (n, d)
        key : str, the name of the column of keys; or the column, for an array
        user : str or column, optional; whose row it is
        seed : int or 32 bytes, optional
            **For tests and audits: a release made with a seed is not private**, and says so.

        Returns
        -------
        GroupRelease

        Raises
        ------
        TypeError, ValueError
            For data of the wrong shape or type, or without such columns.
        """
        promise, threshold = self._promise(user)
        table = ExactGroupSum(self._region, self._keys)
        labels = [key] if user is None else [key, user]
        batches = labelled_batches(rows, table.d, labels)
        n = _add_rows(table, batches) if user is None else self._add_users(table, batches)
        return self._released(table, n, promise, threshold, seed)

    def _add_users(self, table: ExactGroupSum, batches: Iterator[Any]) -> int:
        seen = _Users(self._neighbors)
        runs = user_runs(seen.of(batches, table.book), table.d, self._divide)
        for rows, index in limited(runs, table.book, self._max_keys):
            table.add_indexed(rows, index)
        return len(seen)

    def _released(
        self,
        table: ExactGroupSum,
        n: int,
        promise: GroupGuarantee,
        threshold: int | None,
        seed: int | bytes | None,
    ) -> GroupRelease:
        order, low, high, counts = table.ordered()
        regions = [table.region(i) for i in order]
        shared = all(region is regions[0] for region in regions) and bool(regions)
        prints = [r.fingerprint() for r in (regions[:1] if shared else regions)]
        names = [table.book.keys[i] for i in order]
        keys = self._keys_of_draws(promise, seed, *map(repr, names), *prints, low, high, counts)
        size_sigma = self._size_sigma(promise)
        sizes, named = None, np.ones(len(order), np.bool_)
        if size_sigma is not None:
            sizes, named = self._sizes(counts, size_sigma, keys, threshold)
        levels = [
            self._sum_sigma(region, promise) for region in (regions[:1] if shared else regions)
        ]
        integers = as_integers(low, high)
        if len(order):
            sigma = np.repeat(np.array(levels), table.d)
            draw = noise.rounded_gaussian(len(order) * table.d, sigma, key=keys.of(Use.SUM))
            integers = integers + draw.astype(object).reshape(len(order), table.d)
        kept = np.flatnonzero(named)
        noisy = NoisyGroups(
            [names[i] for i in kept],
            (regions[:1] if shared else [regions[i] for i in kept]) or [table.region(0)],
            integers[kept],
            (levels if shared else [levels[i] for i in kept]) or [0.0],
            None if sizes is None else sizes[kept],
            size_sigma,
        )
        public = float(n) if promise.neighbors.count_is_public else None
        return GroupRelease(self._kind, noisy, promise, seed_caveats(seed), n=public)

    def _share(self) -> float:
        """Share of mu^2 for the sizes, add-remove: as of one mean; 0 where none is needed."""
        regions = self._region.values() if isinstance(self._region, Mapping) else [self._region]
        d = next(iter(regions)).d
        needed = self._keys is None or self._kind == "mean"
        if not needed and not any(region.center.any() for region in regions):
            return 0.0
        return 1 / (2 * math.sqrt(d) + 2)

    def _size_factor(self, k: int) -> float | None:
        if self._neighbors is Neighbors.REPLACE:
            return 2 * math.sqrt(k)
        share = self._share()
        return math.sqrt(k) / math.sqrt(share) if share else None

    def _size_sigma(self, promise: GroupGuarantee) -> float | None:
        factor = self._size_factor(promise.max_keys)
        return None if factor is None else rounded_up(factor * promise.noise_multiplier)

    def _sum_sigma(self, region: Ellipsoid, promise: GroupGuarantee) -> float:
        """Noise of a group's sum, grid units (claims groups-1, groups-2)."""
        bound = region.sensitivity(self._neighbors) / region.grid * math.sqrt(promise.max_keys)
        share = 0.0 if self._neighbors is Neighbors.REPLACE else self._share()
        return rounded_up(bound * promise.noise_multiplier / math.sqrt(1 - share))


class PrivateGroupMean(PrivateGroupSum):
    """Differentially private mean of the rows of each group: noisy sum over noisy size.

    **Guarantees.** As :class:`PrivateGroupSum`; each mean is a function of the group's noisy sum
    and noisy size, which are released jointly.

    Parameters, exceptions and source: as :class:`PrivateGroupSum`.
    """

    _kind = "mean"


class PrivateCounts(_Groups):
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
        self, rows: Any, *, key: Any = None, user: Any = None, seed: int | bytes | None = None
    ) -> GroupRelease:
        """Count the users, or rows, of each group, add the noise, and return the release.

        Parameters
        ----------
        rows : table, stream, files, mapping of columns; or a column of keys (of numbers, with
            ``edges``) itself, where ``key`` is not given
        key : str, optional; the name of the column
        user : str or column, optional; whose row it is
        seed : int or 32 bytes, optional
            **For tests and audits: a release made with a seed is not private**, and says so.

        Returns
        -------
        GroupRelease
        """
        promise, threshold = self._promise(user)
        book = KeyBook(self._keys)
        counts, n = self._counted(rows, key, user, book)
        order = list(range(len(book))) if book.closed else book.order()
        counts = counts[order]
        names = [book.keys[i] for i in order]
        keys = self._keys_of_draws(promise, seed, *map(repr, names), counts)
        sigma = rounded_up((self._size_factor(promise.max_keys) or 0.0) * promise.noise_multiplier)
        sizes, named = self._sizes(counts, sigma, keys, threshold)
        kept = np.flatnonzero(named)
        noisy = NoisyGroups([names[i] for i in kept], None, None, [], sizes[kept], sigma)
        public = float(n) if promise.neighbors.count_is_public else None
        return GroupRelease(self._kind, noisy, promise, seed_caveats(seed), n=public)

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
        seen = _Users(self._neighbors)

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


class _Users:
    """Rows with user and group as three words; and how many users there are, where public."""

    def __init__(self, neighbors: Neighbors) -> None:
        self._counted = neighbors.count_is_public  # else nobody asks, and memory is saved
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._seen)

    def of(
        self, batches: Iterator[Any], book: KeyBook, index_of: Callable[..., Ints] | None = None
    ) -> Iterator[tuple[Array, NDArray[np.uint64]]]:
        for rows, labels in batches:
            user = labels[-1].rows()
            named = user.any(1)
            if self._counted and named.any():
                self._seen.update(map(bytes, np.unique(user[named].view("V16"))))
            index = book.index(labels[0]) if index_of is None else index_of(rows, labels)
            kept = named & (index >= 0)
            if kept.any():
                words = np.column_stack([user[kept], index[kept].astype(np.uint64)])
                yield rows[kept], words


def limited(
    runs: Iterator[tuple[Array, NDArray[np.uint64]]], book: KeyBook, max_keys: int
) -> Iterator[tuple[Array, Ints]]:
    """Rows of users and groups, those of one user together: at most ``max_keys`` of each."""
    rows, words = np.empty((0, 0)), np.empty((0, 3), np.uint64)
    digests = np.empty((0, 2), np.uint64)

    def chosen(end: int) -> tuple[Array, Ints]:
        index = words[:end, 2].astype(np.int64)
        kept = chosen_keys(words[:end, :2], index, digests, max_keys)
        return rows[:end][kept], index[kept]

    for more, more_words in runs:
        rows = more if not len(rows) else np.concatenate([rows, more])
        words = np.concatenate([words, more_words])
        if len(digests) != len(book):
            digests = book.digests()
        last = (words[:, :2] == words[-1, :2]).all(1)
        end = int(np.flatnonzero(~last)[-1]) + 1 if not last.all() else 0
        if end:
            yield chosen(end)
            rows, words = rows[end:], words[end:]
    if len(words):
        yield chosen(len(words))


def _add_rows(table: ExactGroupSum, batches: Iterator[Any]) -> int:
    n = 0
    for rows, (labels,) in batches:
        table.add_indexed(rows, table.book.index(labels))
        n += len(rows)
    return n


def _numbers(rows: Any, key: Any, user: Any) -> Iterator[Any]:
    """Batches of the one column that is binned, with the user's label, if any, behind a blank."""
    column = rows if key is None else (column_of(rows, key) if isinstance(key, str) else key)
    if user is None:
        return ((batch, []) for batch in as_batches(column, 1))
    labels = column_of(rows, user) if isinstance(user, str) else user
    batches = labelled_batches(column, 1, [labels])
    return ((values, [None, *own]) for values, own in batches)
