"""What mechanisms draw from: checks before data are read, and the cost before noise is drawn."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..accounting.cost import Cost, Left, Limit
from ..guarantee import Guarantee, Neighbors

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["BudgetError", "Entry", "Purse", "check_budget", "draw_from", "mark_step"]


class BudgetError(ValueError):
    """A release that its budget has no room for, or is not of: nothing was spent, nor drawn."""


@dataclass(frozen=True)
class Entry:
    """What one release took from a budget.

    Parameters
    ----------
    number : int, from 1, in its budget
    cost : Cost
    what : str, the kind of release
    time : str, UTC
    ledger : str or None, the ledger's path
    chain : str, the hash of the ledger up to this entry
    """

    number: int
    cost: Cost
    what: str
    time: str
    ledger: str | None = None
    chain: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold."""
        own = {"entry": self.number, "cost": str(self.cost), "what": self.what, "time": self.time}
        return own if self.ledger is None else own | {"ledger": self.ledger, "chain": self.chain}


class Purse:
    """What mechanisms draw from: a whole budget, or a share of one."""

    def __init__(self, neighbors: str, unit: str) -> None:
        self.neighbors, self.unit = Neighbors.of(neighbors), unit
        self._process = os.getpid()

    @property
    def limit(self) -> Limit:
        """What may be spent."""
        raise NotImplementedError

    @property
    def spent(self) -> Cost:
        """What was spent."""
        raise NotImplementedError

    @property
    def left(self) -> Left:
        """What is left: ``mu``, ``epsilon``, ``delta``, each if it is spent on that alone.

        Rounded down, so that it can be spent: ``PrivateMean(region, mu=budget.left.mu)``.
        """
        return self.limit.left(self.spent)

    def draw(self, guarantee: Guarantee, what: str, *, job: str = "") -> Entry:
        """Take what a release with this guarantee costs: mechanisms do it before their noise.

        Parameters
        ----------
        guarantee : Guarantee
        what : str, the kind of release
        job : str, optional; a job that is run again draws once

        Raises
        ------
        BudgetError
            There is no room; the message says what is left. Or the guarantee is for other
            neighbours or another unit; the message says which budget it needs.
        TypeError
            The guarantee has no cost.
        """
        self._check_terms(guarantee)
        return self._take(guarantee.cost(), what, job)

    def mark(self, entry: Entry, step: int, mark: str) -> None:
        """Bind a step of a job that draws once to what it is of, before its noise is drawn.

        Parameters
        ----------
        entry : Entry, the job's
        step : int
        mark : str
            Public: a hash of the step's exact result under a key that is secret.

        Raises
        ------
        BudgetError
            The step was bound to another mark: it would be a second answer for one entry.
        """

    def check(self, guarantee: Guarantee, *, repeated: bool = False) -> None:
        """Refuse now what :meth:`draw` would refuse: mechanisms do it before they read data.

        Nothing is spent or kept free, and only public facts are compared (claim ledger-5).

        Parameters
        ----------
        guarantee : Guarantee
        repeated : bool
            Whether the release may be in the budget already, being that of a job that is gone on
            with: an entry of the same cost then is room enough.

        Raises
        ------
        BudgetError, TypeError
            As of :meth:`draw`.
        """
        self._check_terms(guarantee)
        cost, spent = guarantee.cost(), self.spent
        if not self.limit.allows(spent + cost):
            if not (repeated and any(entry.cost == cost for entry in self._drawn())):
                raise self._refusal(cost, spent, self.limit)

    def _check_terms(self, guarantee: Guarantee) -> None:
        self._check_process()
        given = {name: str(getattr(guarantee, name, None)) for name in ("neighbors", "unit")}
        own = {"neighbors": str(self.neighbors), "unit": self.unit}
        for name in given:
            if given[name] != own[name]:
                what = f"the release has {name} {given[name]}, the budget has {own[name]}"
                raise BudgetError(f"{what}: {self._needed(**given)}")

    def _needed(self, neighbors: str, unit: str) -> str:
        """What budget takes a release of these terms."""
        return f"it needs a Budget(neighbors={neighbors!r}, unit={unit!r})"

    def _drawn(self) -> tuple[Entry, ...]:
        """What was drawn by name: a share's own entry is not."""
        return ()

    def _take(self, cost: Cost, what: str, job: str) -> Entry:
        raise NotImplementedError

    def _check_process(self) -> None:
        """Refuse what a fork copied: each process would spend its own."""
        if os.getpid() != self._process:
            raise BudgetError(
                "a budget in memory, or a share, is of the process that made it: give a budget "
                "a path, and take a share in each process"
            )

    def __copy__(self) -> Self:
        return self  # a second one could be spent too

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def _refusal(self, cost: Cost, spent: Cost, limit: Limit) -> BudgetError:
        left, hint = limit.left(spent), ""
        if limit.epsilon is not None and not limit.delta and cost.mu_squared:
            hint = " (Gaussian noise needs a delta, which this budget has none of: make another)"
        return BudgetError(
            f"no budget for {cost}: of {limit}, {spent} is spent; left is {left}{hint}"
        )


def draw_from(
    budget: Purse | None, guarantee: Guarantee, what: str, *, job: str = ""
) -> Entry | None:
    """Take what a release costs from ``budget``, where one is given (:meth:`Budget.draw`)."""
    known = _purse_of(budget)
    return None if known is None else known.draw(guarantee, what, job=job)


def mark_step(budget: Purse | None, entry: Entry | None, step: int, mark: str) -> None:
    """Bind a step of a job to what it is of, where a budget is given (:meth:`Purse.mark`)."""
    if budget is not None and entry is not None:
        budget.mark(entry, step, mark)


def check_budget(budget: Purse | None, guarantee: Guarantee, resume: Any = None) -> None:
    """Refuse what the release will be refused for at its end, before its data are read.

    Parameters
    ----------
    budget, guarantee : as of :func:`draw_from`
    resume : the checkpoint of its job, or its path: where it is there, the job may have drawn
    """
    if (known := _purse_of(budget)) is not None:
        path = getattr(resume, "path", resume)
        known.check(guarantee, repeated=path is not None and os.path.exists(path))


def _purse_of(budget: Any) -> Purse | None:
    if budget is None or isinstance(budget, Purse):
        return budget
    kind = type(budget).__name__
    raise TypeError(f"budget must be a Budget or a Share of one, got {kind}: see Budget(path=)")
