"""Private sums and means of groups, whose keys are public or private."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate, noise
from ..budget.budget import Budget, Share
from ..budget.purse import check_budget
from ..column_units import said_units
from ..ellipsoid import Ellipsoid
from ..exact_sum import as_integers
from ..guarantee import Neighbors, rounded_up, seed_caveats
from ..jobs.checkpoint import Checkpoint, Job
from ..jobs.inputs import refuse_job
from ..noise_keys import Use, root_key
from ..rows.files import Rows
from ..rows.labelled import labelled_batches
from ..rows.partitioned import Partitioned, check_coordinates
from ..sum_bytes import MISSING
from ..users import STATISTICS
from .base import Groups
from .far_groups import table_anywhere
from .file_groups import Grouping, by_key
from .guarantee import GroupGuarantee
from .holes import IGNORED_WHERE, absent_levels, noisy_holes
from .key_bytes import key_text
from .made_of import MadeOf
from .release import GroupRelease, NoisyGroups
from .table import ExactGroupSum

__all__ = ["PrivateGroupMean", "PrivateGroupSum"]


class PrivateGroupSum(Groups):
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
    by : str, optional; the column that says whose row it is, if the call gives no ``user``
    neighbors : ``"add-remove"`` or ``"replace"``
        ``"add-remove"``: a user's rows are there or not. ``"replace"``: they take other values
        *and other keys*; the number of all users is public, that of no group.
    statistic : ``"mean"`` or ``"sum"``, optional
        What a user's rows in a group become. Default: as the release's name says.
    missing : ``"center"`` or, for means, ``"ignore"``
        What a cell counts for that is missing: the centre of its coordinate, or nothing (the mean
        of each coordinate and group is then one of its present cells). A user's row in a group
        lacks the coordinates in which none of the user's rows there has a number.
    units : mapping of columns' names to texts, or a sequence of them, optional
        Of the coordinates, public; they label the release, and win over what the rows tell.

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
        by: str | None = None,
        statistic: str | None = None,
        missing: str = "center",
        units: Mapping[str, str] | Sequence[str | None] | None = None,
    ) -> None:
        if isinstance(ellipsoid, Mapping) and keys is None:
            keys = list(ellipsoid)
        self._region, self._missing = ellipsoid, _validate.one_of("missing", missing, MISSING)
        if missing == "ignore" and self._kind != "mean":
            raise ValueError(IGNORED_WHERE)
        empty = ExactGroupSum(ellipsoid, keys)  # its checks
        self._said = said_units(units, empty.d)
        empty.columns.copy(self._said)  # its checks, where the region has names
        if missing == "ignore":
            for region in self._regions():
                absent_levels(region, 1.0)  # its checks
        chosen = _validate.one_of("statistic", statistic or self._kind, STATISTICS)
        self._divide = chosen == "mean"
        super().__init__(keys, max_keys, (epsilon, delta, rho, mu), neighbors, by)

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
        spend_again: bool = False,
    ) -> GroupRelease:
        """Sum the rows of each group, add the noise, and return the release.

        Parameters
        ----------
        rows : table, stream, ``open_rows(..., by=[...])``, mapping of columns, array (n, d)
            Or an iterator of tables; rows in an engine, as ``SparkRows(..., by=[...])``; or an
            :class:`ExactGroupSum`, as :meth:`exact_sum` makes them, merged: release it once.
        key : str, the name of the column of keys; or the column, for an array
        user : str or column, optional; whose row it is: by default ``by``
            Of an ExactGroupSum the name of the column that its parts were made with.
        budget : Budget or Share, optional
            What the release is drawn from, before its noise is: refused where there is no room.
        resume : Checkpoint or path, optional
            For ``open_rows(..., by=[...])`` and rows in an engine: a secret file from which a run
            that was killed goes on, and which repeats the same release until it is discarded
            (:class:`Checkpoint`). It holds the table, and so the keys; never a row or a user.
        jobs : int
            Files of ``open_rows(..., by=[...])``, or parts of a large one, that are read at the
            same time.
        seed : int or 32 bytes, optional
            **For tests and audits: a release made with a seed is not private**, and says so.
        spend_again : bool
            Whether an ExactGroupSum that was released may be released again, for the budget again.

        Returns
        -------
        GroupRelease

        Raises
        ------
        TypeError, ValueError
            For data of the wrong shape or type, or without such columns; an ExactGroupSum over
            another region, of other units, or released before; a checkpoint of another job, or one
            that lies among the files (CheckpointError).
        """
        user = self._checked_user(user)
        promise = self._promise(user)
        check_budget(budget, promise[0], resume)
        refuse_job(rows, resume is not None, jobs, seeded=seed is not None)
        if resume is not None:
            return self._resumed(rows, key, user, resume, jobs, budget)
        if isinstance(rows, ExactGroupSum):
            if key is not None or not (user is None or isinstance(user, str)):
                raise TypeError(
                    "an ExactGroupSum has its keys: give user, the column's name, alone"
                )
            if not rows.alike(self._empty()):
                what = "region, missing policy, or other public keys"
                raise ValueError(f"the ExactGroupSum has another {what}")
            self._check_units(rows.made_of, user)
            table = rows
        else:
            table = self.exact_sum(rows, key=key, user=user, jobs=jobs)
        table.claim_release(again=spend_again, only_ask=True)
        release = self._released(table, *promise, root_key(seed), seed_caveats(seed), budget)
        table.claim_release(again=spend_again)  # last, so that a call that fails spends nothing
        return release

    def exact_sum(self, rows: Any, *, key: Any, user: Any = None, jobs: int = 1) -> ExactGroupSum:
        """The exact sums that a release adds noise to: a part, where there are several machines.

        All rows of one user must be in one part; for rows in an engine, which are parts by
        themselves, its shuffle sees to it. **Private.**

        Parameters
        ----------
        rows, key, user, jobs : as of a call

        Returns
        -------
        ExactGroupSum
        """
        user = self._checked_user(user)
        refuse_job(rows, False, jobs)
        return self._summed(rows, key, user, None, jobs)

    def _summed(self, rows: Any, key: Any, user: Any, job: Job | None, jobs: int) -> ExactGroupSum:
        if key is None:
            raise TypeError("key must name the column that says which group a row is in")
        empty = self._empty()
        columns, d = empty.columns.copy(self._said), empty.d
        if isinstance(rows, Rows):  # learns the columns' names, also where nothing is read
            rows = rows.arranged(columns, d)
        by = self._labels(key, user)
        batches = partial(labelled_batches, d=d, by=by, coordinates=columns)
        if isinstance(rows, Partitioned):
            check_coordinates(rows, d, columns)
        grouping = Grouping(by, d, batches, by_key, columns)
        users, known = self._users(user), (self._divide, self._max_keys)
        make = partial(_table, self._region, self._keys, self._missing, self._made_of(user))
        table: ExactGroupSum = table_anywhere(rows, grouping, make, users, known, job, jobs)
        table.columns = columns
        return table

    def _job(self) -> tuple[bytes, str, str]:
        statistic = "mean" if self._divide else "sum"
        return self._empty().fingerprint(), self._missing, statistic

    def _empty(self) -> ExactGroupSum:
        return ExactGroupSum(self._region, self._keys, missing=self._missing)

    def _regions(self) -> list[Ellipsoid]:
        region = self._region
        return list(region.values()) if isinstance(region, Mapping) else [region]

    def _made_of(self, user: Any) -> MadeOf:
        """What a table of this mechanism is made of."""
        if user is None:
            return MadeOf(0, True)
        counted = self._neighbors.count_is_public
        return MadeOf.users(self._max_keys, counted, user, self._divide)

    def _check_units(self, made_of: MadeOf, user: str | None) -> None:
        """Refuse a table whose users may move more than the noise is for (claim groups-1)."""
        if not made_of.fits(self._made_of(user)):
            raise ValueError(
                "the ExactGroupSum was made of other units: by rows or by users, by another column "
                "of users or statistic, or with another max_keys or neighbors: release it as "
                "exact_sum made it"
            )

    def _released(
        self,
        table: ExactGroupSum,
        promise: GroupGuarantee,
        threshold: int | None,
        root: bytes,
        caveats: tuple[str, ...],
        budget: Budget | Share | None,
    ) -> GroupRelease:
        columns = table.columns.copy(self._said)
        columns.check_units()
        order, low, high, counts = table.ordered()
        regions = [table.region(i) for i in order]
        shared = all(region is regions[0] for region in regions) and bool(regions)
        prints = [r.fingerprint() for r in (regions[:1] if shared else regions)]
        names = [table.book.keys[i] for i in order]
        absent = table.absent(order)
        holes = () if self._missing == "center" else (self._missing, absent)
        exact = (low, high, counts, *holes)
        keys = self._keys_of_draws(promise, root, *map(key_text, names), *prints, *exact)
        entry = self._draw(budget, promise, keys)
        size_sigma = self._size_sigma(promise)
        sizes, named = None, np.ones(len(order), np.bool_)
        if size_sigma is not None:
            sizes, named = self._sizes(counts, size_sigma, keys, threshold)
        own = regions[:1] if shared else regions
        levels = [self._sum_sigma(region, promise) for region in own]
        integers = as_integers(low, high)
        if len(order):
            sigma = np.repeat(np.array(levels), table.d)
            draw = noise.rounded_gaussian(len(order) * table.d, sigma, key=keys.of(Use.SUM))
            integers = integers + draw.astype(object).reshape(len(order), table.d)
        holes_sigma: list[NDArray[np.float64]] | None = None
        if self._missing == "ignore":
            pairs = zip(own, levels, strict=True)
            holes_sigma = [absent_levels(region, level) for region, level in pairs]
        kept = np.flatnonzero(named)
        noisy = NoisyGroups(
            [names[i] for i in kept],
            (regions[:1] if shared else [regions[i] for i in kept]) or [table.region(0)],
            integers[kept],
            (levels if shared else [levels[i] for i in kept]) or [0.0],
            None if sizes is None else sizes[kept],
            size_sigma,
            None
            if holes_sigma is None
            else noisy_holes(absent, holes_sigma, keys.of(Use.ABSENT))[kept],
            holes_sigma if shared or holes_sigma is None else [holes_sigma[i] for i in kept],
        )
        public = float(table.units) if promise.neighbors.count_is_public else None
        release = GroupRelease(self._kind, noisy, promise, caveats, n=public)
        return release.named(*columns.told(table.d)).drawn_from(entry)

    def _share(self) -> float:
        """Share of mu^2 for the sizes, add-remove: as of one mean; 0 where none is needed."""
        regions = self._regions()
        d = regions[0].d
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


def _table(region: Any, keys: Any, missing: str, made_of: MadeOf) -> ExactGroupSum:
    """A table of no rows, with the units that it is of."""
    table = ExactGroupSum(region, keys, missing=missing)
    table.made_of = made_of
    table.mark()
    return table


@_validate.own_init
class PrivateGroupMean(PrivateGroupSum):
    """Differentially private mean of the rows of each group: noisy sum over noisy size.

    **Guarantees.** As :class:`PrivateGroupSum`; each mean is a function of the group's noisy sum
    and noisy size, which are released jointly. With ``missing="ignore"`` it is one of the present
    cells: noisy sum over the noisy number of present cells, which cost no noise (claim groups-7).

    Parameters, exceptions and source: as :class:`PrivateGroupSum`.
    """

    _kind = "mean"
