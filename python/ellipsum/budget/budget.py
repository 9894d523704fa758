"""A budget that releases draw from, in memory or in a ledger file that outlives them."""

from __future__ import annotations

import os
import shlex
import threading
from datetime import datetime, timezone
from fractions import Fraction
from typing import Any

from ..accounting import events
from ..accounting.cost import Cost, Limit, exact
from ..guarantee import Neighbors
from .composition import ComposedGuarantee
from .ledger import Ledger, Line, Refused
from .purse import BudgetError, Entry, Purse

__all__ = ["Budget", "BudgetError", "Entry", "Share"]


class Budget(Purse):
    """A budget that several releases share, in memory or in a ledger file that outlives them.

    **Guarantees.** What all releases that drew from it promise together is the budget: mu-GDP, or
    (epsilon, delta)-DP; also where earlier answers decide what is asked next and what is spent on
    it (claim ledger-1). Sums are exact fractions. A release is drawn after its cost is written,
    and in a ledger after it is on the disk, whatever becomes of the process (claim ledger-3).

    It knows the releases that drew from it, and no others: give each data set one ledger, and
    every mechanism the budget.

    Parameters
    ----------
    mu : float or Fraction
        Of Gaussian DP. With ``delta``: what selections may add.
    rho : float or Fraction
        Of zero-concentrated DP, in place of mu: mu^2 = 2 rho.
    epsilon, delta : float or Fraction
        Of (epsilon, delta)-DP, in place of mu.
    neighbors : ``"replace"`` or ``"add-remove"``; releases of the other are refused
    unit : str, as releases' guarantees name it
    path : path, optional
        A ledger. It is made where there is none; where there is one it must hold this budget, and
        alone it says which.

    Raises
    ------
    TypeError, ValueError
        For a budget that is missing, double or out of range.
    LedgerError (a ValueError)
        The file is no ledger, was altered, or holds another budget.
    """

    def __init__(
        self,
        mu: float | Fraction | None = None,
        *,
        rho: float | Fraction | None = None,
        epsilon: float | Fraction | None = None,
        delta: float | Fraction | None = None,
        neighbors: str = "replace",
        unit: str = "one row",
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        named = {"mu": mu, "rho": rho, "epsilon": epsilon}
        given = [name for name, number in named.items() if number is not None]
        opens = path is not None and (mu, rho, epsilon, delta) == (None,) * 4
        if not opens and len(given) != 1:
            what = ", ".join(given) or "none of them"
            raise ValueError(f"give mu, or rho, or epsilon with delta; got {what}")
        super().__init__(neighbors, unit)
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._jobs: dict[str, Entry] = {}
        self._marks: dict[tuple[int, int], str] = {}
        self._ledger: Ledger | None = None
        if not opens:
            self._limit = _limit_of(mu, rho, epsilon, delta)
        if path is not None:
            self._ledger = Ledger(path, None if opens else self._terms())
            state = self._ledger.read()
            self._limit, self.unit = state.limit, state.terms["unit"]
            self.neighbors = Neighbors.of(state.terms["neighbors"])

    def _terms(self) -> dict[str, Any]:
        limit = self._limit
        first = {"mu_squared": limit.mu_squared, "epsilon": limit.epsilon}
        known = {name: number for name, number in first.items() if number is not None}
        budget = {name: str(number) for name, number in (known | {"delta": limit.delta}).items()}
        return {"budget": budget, "neighbors": self.neighbors.value, "unit": self.unit}

    @property
    def limit(self) -> Limit:
        """What may be spent."""
        return self._limit

    @property
    def path(self) -> str | None:
        """The ledger's path; None in memory."""
        return None if self._ledger is None else self._ledger.path

    @property
    def spent(self) -> Cost:
        """What was spent, by every process that shares the ledger."""
        return sum((entry.cost for entry in self.entries), Cost())

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was drawn, in order, by every process that shares the ledger."""
        if self._ledger is None:
            with self._lock:
                return tuple(self._entries)
        return tuple(self._entry(line) for line in self._ledger.read().lines)

    @property
    def guarantee(self) -> ComposedGuarantee:
        """What all that was spent promises together."""
        return ComposedGuarantee(self.neighbors, self.spent, self.unit)

    def spend(
        self,
        mu: float | Fraction | None = None,
        *,
        rho: float | Fraction | None = None,
        epsilon: float | Fraction | None = None,
        delta: float | Fraction | None = None,
        event: Any = None,
        what: str = "spend",
    ) -> Share:
        """Take a part for a mechanism of your own, or for several of ours.

            with budget.spend(mu=0.5) as share:
                mechanism(data, budget=share)

        What is taken stays taken, used or not, and whatever is raised.

        Parameters
        ----------
        mu, rho : float or Fraction
            Gaussian mechanisms. With ``delta``: selections beside them.
        epsilon, delta : float or Fraction
            A mechanism of any kind that is (epsilon, delta)-DP; delta alone for a selection.
        event : dp_accounting.DpEvent
            Or what an event costs: Gaussian parts by their mu, pure ones by their epsilon, any
            other by the epsilon that ``dp-accounting`` finds for ``delta``.
        what : str, public, for the ledger

        Raises
        ------
        BudgetError
            There is no room; the message says what is left.
        """
        if event is not None:
            if (mu, rho, epsilon) != (None,) * 3:
                raise ValueError("give mu, or rho, or epsilon, or an event, not two of them")
            cost = events.cost_of_event(event, delta, self.neighbors)
        else:
            cost = _cost_of(mu, rho, epsilon, delta)
        return Share(self._take(cost, what, ""), self.neighbors, self.unit)

    def mark(self, entry: Entry, step: int, mark: str) -> None:
        if self._ledger is not None:
            same = self._ledger.mark(entry.number, step, mark)
        else:
            with self._lock:
                same = self._marks.setdefault((entry.number, step), mark) == mark
        if not same:
            raise BudgetError(
                f"this job drew entry {entry.number} of the budget for other rows (or on a machine "
                "that rounds otherwise), and its checkpoint was put back as it was before, or "
                "copied: a second release under one entry is refused, and nothing was drawn. "
                "Discard the checkpoint (delete the file), and the job begins anew, with an entry "
                "of its own"
            )

    def _needed(self, neighbors: str, unit: str) -> str:
        """The command that makes such a ledger, where it is one."""
        if self.path is None:
            return super()._needed(neighbors, unit)
        sizes = "--epsilon E --delta D"
        if self.limit.epsilon is None:
            sizes = "--mu MU --delta D" if self.limit.delta else "--mu MU"
        plain = all(c.isalnum() or c in " _-.,'" for c in unit)
        quoted = f'"{unit}"' if plain else shlex.quote(unit)
        words = f"{sizes} --neighbors {neighbors} --unit {quoted}"
        return f"it needs a ledger of its own, by: ellipsum ledger create FILE {words}"

    def _drawn(self) -> tuple[Entry, ...]:
        return self.entries

    def _check_process(self) -> None:
        if self._ledger is None:
            super()._check_process()

    def _take(self, cost: Cost, what: str, job: str) -> Entry:
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        if self._ledger is not None:
            try:
                return self._entry(self._ledger.spend(cost, what, job, now))
            except Refused as refused:
                state = refused.state
            raise self._refusal(cost, state.spent, state.limit)
        self._check_process()
        with self._lock:
            if job in self._jobs and self._jobs[job].cost == cost:
                return self._jobs[job]
            spent = sum((entry.cost for entry in self._entries), Cost())
            if not self._limit.allows(spent + cost):
                raise self._refusal(cost, spent, self._limit)
            entry = Entry(len(self._entries) + 1, cost, what, now)
            self._entries.append(entry)
            self._jobs |= {job: entry} if job else {}
        return entry

    def _entry(self, line: Line) -> Entry:
        return Entry(line.entry, line.cost, line.what, line.time, self.path, line.chain)

    def __reduce__(self) -> Any:
        if self._ledger is None:
            raise TypeError(
                "a budget in memory cannot be copied, since each copy could be spent: keep it in a "
                "file, Budget(..., path=FILE), which every process can open"
            )
        return _opened, (self._ledger.path,)

    def __repr__(self) -> str:
        where = "" if self.path is None else f", path={self.path!r}"
        return f"Budget({self.limit}, neighbors={self.neighbors.value!r}{where})"

    def __str__(self) -> str:
        entries, limit = self.entries, self.limit
        spent = sum((entry.cost for entry in entries), Cost())
        lines = [f"budget: {limit}, neighbours: {self.neighbors}, unit: {self.unit}"]
        lines += [f"  {e.number:>4}  {e.time}  {e.what}: {e.cost}" for e in entries]
        return "\n".join([*lines, f"spent: {spent}", f"left: {limit.left(spent)}"])


class Share(Purse):
    """A part of a budget, taken in one piece: mechanisms draw from it as from the whole."""

    def __init__(self, entry: Entry, neighbors: str, unit: str) -> None:
        super().__init__(neighbors, unit)
        self.entry = entry
        cost = entry.cost
        plain = None if cost.epsilon else cost.mu_squared
        self._limit = Limit(plain, cost.epsilon or None, cost.delta)
        self._spent, self._lock = Cost(), threading.Lock()
        if cost.epsilon and cost.mu_squared:  # of an event: for a mechanism of the user's own
            self._limit = Limit(Fraction(0), None, Fraction(0))

    @property
    def limit(self) -> Limit:
        """What may be spent."""
        return self._limit

    @property
    def spent(self) -> Cost:
        """What was spent of it."""
        return self._spent

    def _take(self, cost: Cost, what: str, job: str) -> Entry:
        self._check_process()
        with self._lock:
            if not self._limit.allows(self._spent + cost):
                raise self._refusal(cost, self._spent, self._limit)
            self._spent += cost
        return self.entry

    def __reduce__(self) -> Any:
        raise TypeError(
            "a share cannot be copied, since each copy could be spent: take one in each process"
        )

    def __enter__(self) -> Share:
        return self

    def __exit__(self, *_: object) -> None:
        """What was taken stays taken: the noise may have been seen."""

    def __repr__(self) -> str:
        return f"Share(entry={self.entry.number}, {self._limit})"


def _limit_of(mu: Any, rho: Any, epsilon: Any, delta: Any) -> Limit:
    second = Fraction(0) if delta is None else exact("delta", delta)
    if second >= 1:
        raise ValueError(f"delta must be below 1, got {float(second)}")
    if epsilon is not None:
        return Limit(None, exact("epsilon", epsilon), second)
    squared = exact("mu", mu) ** 2 if mu is not None else 2 * exact("rho", rho)
    return Limit(squared, None, second)


def _cost_of(mu: Any, rho: Any, epsilon: Any, delta: Any) -> Cost:
    if sum(x is not None for x in (mu, rho, epsilon)) > 1 or (mu, rho, epsilon, delta) == (
        (None,) * 4
    ):
        raise ValueError("give mu, or rho, or epsilon, each perhaps with delta, or delta alone")
    second = Fraction(0) if delta is None else exact("delta", delta)
    squared = Fraction(0)
    if mu is not None or rho is not None:
        squared = exact("mu", mu) ** 2 if mu is not None else 2 * exact("rho", rho)
    return Cost(squared, Fraction(0) if epsilon is None else exact("epsilon", epsilon), second)


def _opened(path: str) -> Budget:
    return Budget(path=path)
