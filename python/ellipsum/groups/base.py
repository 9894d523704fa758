"""What private sums, means and counts of groups share."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate, noise
from ..budget.budget import Budget, Entry, Share
from ..budget.purse import draw_from
from ..guarantee import ROW, Neighbors
from ..jobs.checkpoint import Checkpoint, Job
from ..jobs.inputs import inputs_before
from ..jobs.resumable import binding_of
from ..noise_keys import JobKeys, Use, root_key
from ..rows.files import Rows
from ..rows.labelled import label_places
from ..rows.partitioned import Partitioned, check_labels
from .bounded import Users
from .file_groups import keys_digest
from .guarantee import GroupGuarantee, group_guarantee
from .keys import KeyBook
from .release import GroupRelease
from .selection import COUNT_STEPS

__all__ = ["Groups"]

Array = NDArray[Any]
Ints = NDArray[np.int64]


class Groups:
    """What sums, means and counts of groups share: keys, budget, unit, selection."""

    _kind = ""

    def __init__(
        self,
        keys: Sequence[Any] | None,
        max_keys: int,
        budget: tuple[float | None, float | None, float | None, float | None],
        neighbors: str,
        by: str | None = None,
    ) -> None:
        if by is not None and not isinstance(by, str):
            raise TypeError("by must be a column's name: give a column itself as user= of the call")
        self._by = by
        if isinstance(keys, (str, bytes)):
            raise TypeError("keys must be a sequence of keys, got one text")
        self._keys = None if keys is None else list(keys)
        if self._keys is not None and not self._keys:
            raise ValueError("keys must name at least one group")
        KeyBook(self._keys)  # its checks
        self._max_keys = _validate.whole("max_keys", max_keys, least=1)
        self._budget, self._neighbors = budget, Neighbors.of(neighbors)
        self.guarantee_for(None)  # its checks

    def __repr__(self) -> str:
        names = ("epsilon", "delta", "rho", "mu")
        given = [f"{k}={v:g}" for k, v in zip(names, self._budget, strict=True) if v is not None]
        settings = [
            self._named(),
            f"max_keys={self._max_keys}",
            *given,
            f"neighbors={self._neighbors.value!r}",
            *([] if self._by is None else [f"by={self._by!r}"]),
        ]
        return f"{type(self).__name__}({', '.join(settings)})"

    def _named(self) -> str:
        """What the groups are."""
        return "private keys" if self._keys is None else f"public keys: {len(self._keys)}"

    def guarantee_for(self, user: str | None) -> GroupGuarantee:
        """What a call with this ``user=`` promises.

        Parameters
        ----------
        user : str or None, the column's name; ``by`` where it is left out
        """
        return self._promise(self._user(user))[0]

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

    def _resumed(
        self,
        rows: Rows | Partitioned,
        key: Any,
        user: Any,
        resume: Checkpoint | str | os.PathLike[str],
        jobs: int,
        budget: Budget | Share | None,
    ) -> GroupRelease:
        """The release of a job, from where its checkpoint stands (claims resume-2, resume-6)."""
        checkpoint = Checkpoint.of(resume)
        if isinstance(rows, Rows):
            label_places(rows, self._labels(key, user))
        else:
            check_labels(rows, self._labels(key, user))
        inputs = inputs_before(checkpoint, rows, d=1)  # rows without labels are numbers to bin
        binding = self._binding(rows, key, user, inputs)
        with checkpoint.opened(binding) as job:
            table = self._summed(rows, key, user, job, jobs)
            return self._released(table, *self._promise(user), job.root, (), budget)

    def _binding(
        self, rows: Rows | Partitioned, key: Any, user: Any, inputs: Any
    ) -> dict[str, Any]:
        """What the job is, as plain values (claim resume-3)."""
        region, missing, statistic = self._job()
        keys = None if self._keys is None else KeyBook(self._keys).keys
        groups = [key, user, self._max_keys, statistic, keys_digest(keys)]
        what = (self._promise(user)[0], region, missing)
        return binding_of(rows, f"group {self._kind}", *what, inputs=inputs, groups=groups)

    def _labels(self, key: Any, user: Any) -> list[Any]:
        """The columns that label the rows, the user's last."""
        return [key] if user is None else [key, user]

    def _users(self, user: Any) -> Users | None:
        return None if user is None else Users(self._neighbors)

    def _job(self) -> tuple[bytes, str, str]:
        """What a job is beside keys, users and budget: region, missing policy, statistic."""
        raise NotImplementedError

    def _summed(self, rows: Any, key: Any, user: Any, job: Job | None, jobs: int) -> Any:
        """The exact table of the rows, or users."""
        raise NotImplementedError

    def _released(
        self,
        table: Any,
        promise: GroupGuarantee,
        threshold: int | None,
        root: bytes,
        caveats: tuple[str, ...],
        budget: Budget | Share | None,
    ) -> GroupRelease:
        """The table with its noise; the budget is drawn before that."""
        raise NotImplementedError

    def _user(self, user: Any) -> Any:
        """The column of users of a call: ``by`` where none is given, and no other than that."""
        if self._by is None or user is None:
            return self._by if user is None else user
        if isinstance(user, str) and user != self._by:
            raise ValueError("user is another column than by: give one of them")
        return user

    def _checked_user(self, user: Any) -> Any:
        chosen = self._user(user)
        if chosen is None and self._max_keys > 1:
            raise ValueError("max_keys goes with user: without users a row is in one group")
        return chosen

    def _size_factor(self, k: int) -> float | None:
        """Noise of a group's size over the noise multiplier, in users; None: not released."""
        raise NotImplementedError

    def _keys_of_draws(
        self, promise: GroupGuarantee, seed: int | bytes | None, *job: Any
    ) -> JobKeys:
        own = (f"groups {self._kind}", promise.neighbors.value, *promise.asked, promise.max_keys)
        # The same budget has other noise levels where naming the keys takes a part of it.
        named = () if promise.selection is None else ("private keys",)
        return JobKeys(root_key(seed), *own, *named, *job)

    def _draw(
        self, budget: Budget | Share | None, promise: GroupGuarantee, keys: JobKeys
    ) -> Entry | None:
        """Take the release from the budget: it is on the disk before any noise is drawn."""
        return draw_from(budget, promise, f"group {self._kind}", job=keys.of(Use.ENTRY).hex())

    def _sizes(
        self, counts: Ints, sigma: float, keys: JobKeys, threshold: int | None
    ) -> tuple[NDArray[np.float64], Array]:
        """Noisy sizes, and which groups may be named: all of them where the keys are public, else
        those of a unit at least that reach the threshold (claim groups-4). A key may be in the
        book without one: its users were counted elsewhere, or have no name."""
        if not len(counts):
            return np.empty(0), np.empty(0, np.bool_)
        drawn = noise.rounded_gaussian(len(counts), sigma * COUNT_STEPS, key=keys.of(Use.COUNT))
        steps = counts.astype(object) * COUNT_STEPS + drawn.astype(object)
        named = np.ones(len(counts), np.bool_)
        if threshold is not None:
            named = (counts > 0) & np.array([s >= threshold for s in steps], np.bool_)
        return np.array([int(s) / COUNT_STEPS for s in steps], np.float64), named
