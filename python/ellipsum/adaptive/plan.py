"""The fixed plan for a mean when nothing is known but a box: steps, passes, shares of the budget.

A plan is a function of public things alone (n, the domain, mu, the neighbours). Everything that the
steps find out moves and shapes the *regions* of later steps, never their shares.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..guarantee import Neighbors
from ..noise_keys import digest
from ..tabular import as_html
from .domain import Domain
from .model import best_division, cost_of_taking, sampling_part

__all__ = ["Plan", "Step", "count_share", "make_plan"]

Array = NDArray[np.float64]

#: Shares of mu^2 are multiples of 2^-20, so that they add up to one exactly.
_SHARE_UNITS = 1 << 20

#: What the radii take: a part that follows the sums' (the larger the less noise matters beside
#: sampling), and a floor for each, so that a bin errs by this share of the rows; the floors take at
#: most so much together, and limit the rounds where rows are few: to none, in the end.
_RADIUS_SHARE, _RADIUS_SD, _RADIUS_FLOORS = (0.05, 0.15), 0.16, 0.2

#: Above this noise-to-radius ratio nothing is learned: the plan answers the centre of the box.
#: So it does where a noisy count stands out from its noise less than this many times.
_INFEASIBLE, _COUNT_STANDS_OUT = 0.9, 4.0

#: The share of the noisy numbers of present cells: they are needed only as far as the centre is
#: off, so that they can be rough (docs/adaptive.md).
_CELLS_SHARE = Fraction(1, 64)

#: The share of what tells how much the last region clips: it decides how wide intervals are.
_EXCESS_SHARE = Fraction(3, 64)

#: Both take less where the rounds, without them, would have less than 1/1.045 of the squared error
#: under one of the laws that are allowed for: where the rounds have to find the rows first.
_STEPS_COST = 0.045

#: But not the cells so little that their share of all columns together, which divides the mean,
#: has a larger deviation.
_CELLS_SD = 1 / 8

#: The share of the noisy count, which add-remove neighbours need before the plan is made: a
#: mean divides small shifts by it, a sum multiplies the whole centre.
_COUNT_SHARE = {"mean": Fraction(1, 64), "sum": Fraction(1, 8)}


@dataclass(frozen=True, repr=False)
class Step:
    """One step of a plan: one Gaussian mechanism, one pass over the data.

    Parameters
    ----------
    name : ``"count"``, ``"cells"``, ``"radius"``, ``"center"``, ``"excess"`` or ``"final"``
    share : Fraction, its part of mu^2
    what : str, in words
    """

    name: str
    share: Fraction
    what: str

    def __repr__(self) -> str:
        return f"Step({self.name!r}, {100 * float(self.share):.3g} % of mu^2: {self.what})"


@dataclass(frozen=True, repr=False)
class Plan:
    """What will be done, in order, and what each step costs.

    **Guarantees.** The shares add up to one exactly, so the steps together are mu-GDP
    (claims adaptive-2, adaptive-3). A infeasible plan has no steps but the count: its release is
    the centre of the domain.

    Parameters
    ----------
    n : int, rows (for ``add-remove``, a noisy number of them)
    d : int, coordinates
    mu : float, what the steps spend together
    neighbors : ``"replace"`` or ``"add-remove"``
    steps : tuple of Step
    """

    n: int
    d: int
    mu: float
    neighbors: str
    steps: tuple[Step, ...]

    @property
    def passes(self) -> int:
        """How often the rows are read: once for each step."""
        return len(self.steps)

    @property
    def infeasible(self) -> bool:
        """Whether the rows are too few for the budget: the release is then the domain's centre."""
        return not any(step.name == "final" for step in self.steps)

    @property
    def rho(self) -> float:
        """The zCDP equivalent of mu: mu^2 / 2."""
        return self.mu**2 / 2

    @property
    def noise_ratio(self) -> float:
        """Noise of a clipped mean over the radius of its region, if it had the whole budget."""
        return _noise_ratio(self.n, self.d, self.mu, self.neighbors)

    def step_mu(self, step: Step) -> float:
        """mu of one step: mu sqrt(share).

        Parameters
        ----------
        step : Step
        """
        return self.mu * math.sqrt(step.share)

    def __repr__(self) -> str:
        what = f"n={self.n}, d={self.d}, {self.mu:.6g}-GDP, neighbours: {self.neighbors}"
        return f"Plan({what}, {self.passes} passes)"

    def _repr_html_(self) -> str:
        columns: dict[str, list[Any]] = {
            "step": [step.name for step in self.steps],
            "% of mu^2": [100 * float(step.share) for step in self.steps],
            "mu": [self.step_mu(step) for step in self.steps],
            "what": [step.what for step in self.steps],
        }
        return as_html([repr(self)[5:-1], self.summary()], columns)

    def __str__(self) -> str:
        head = f"plan for {self.n} rows of {self.d} coordinates, {self.mu:.4g}-GDP, "
        head += f"neighbours: {self.neighbors}; {self.passes} passes over the data"
        lines = [head, f"  {'pass':>4}  {'step':<7} {'of mu^2':>8}  {'mu':>8}"]
        for number, step in enumerate(self.steps, 1):
            share = f"{100 * float(step.share):.2f} %"
            lines.append(
                f"  {number:>4}  {step.name:<7} {share:>8}  {self.step_mu(step):>8.4g}  {step.what}"
            )
        if self.infeasible:
            lines.append("  too few rows for this budget: the release is the centre of the domain")
        return "\n".join(lines)

    def summary(self) -> str:
        """One line: what was spent on what."""
        if self.infeasible:
            return "too few rows for this budget: the release is the centre of the domain"
        spent: dict[str, Fraction] = {}
        for step in self.steps:
            spent[step.name] = spent.get(step.name, Fraction(0)) + step.share
        words = {
            "count": "the count",
            "cells": "missing cells",
            "radius": "radii",
            "excess": "what is clipped",
            "center": "centre and scale",
        }
        parts = [
            f"{100 * float(share):.1f} % on {words.get(name, 'the final pass')}"
            for name, share in spent.items()
        ]
        return f"of mu^2: {', '.join(parts)}; {self.passes} passes over the data"


def make_plan(n: int, domain: Domain, mu: float, neighbors: str, kind: str = "mean") -> Plan:
    """The plan for n rows (for add-remove: a noisy number of them).

    Rounds and parts are those with the least predicted error (:mod:`.model`), where a further
    round must gain 1 %. All of it is public, and kept for the next release of the same.
    """
    fields = (getattr(domain, field.name) for field in dataclasses.fields(domain))
    return _made(n, _Public(digest(*fields), domain), mu, neighbors, kind)


@dataclasses.dataclass(frozen=True)
class _Public:
    """A domain that is equal to others of the same numbers."""

    digest: bytes
    domain: Domain = dataclasses.field(compare=False)


@lru_cache(maxsize=8, typed=True)
def _made(n: int, public: _Public, mu: float, neighbors: str, kind: str) -> Plan:
    domain = public.domain
    d = domain.center.size
    count = count_share(kind, neighbors)
    counting = [Step("count", count, "noisy number of rows")] if count else []
    ratio = _noise_ratio(n, 1, mu * math.sqrt(1 - count), neighbors)
    vague = count > 0 and n * mu * math.sqrt(count) < _COUNT_STANDS_OUT
    if vague or ratio * math.sqrt(d) >= _INFEASIBLE:
        return Plan(n, d, mu, neighbors, tuple(counting))
    floor = 2 / (_RADIUS_SD * n * mu) ** 2
    most = int(_RADIUS_FLOORS / floor + 1e-9)
    weights = best_division(ratio, n, domain, most) if most else None
    cells, excess = _less(weights, ratio, n, domain, (_CELLS_SD * n * mu) ** -2)
    counting.append(Step("cells", cells, "noisy numbers of present cells"))
    left = 1 - count - cells
    if weights is None:  # no histogram would stand out from its noise
        only = Step("final", left, "noisy sums of rows in the domain, above and below its centre")
        return Plan(n, d, mu, neighbors, (*counting, only))
    rounds, radius = len(weights), _radius_share(sampling_part(ratio, n, domain))
    both: list[float] = []
    for weight in weights * (1 - rounds * floor):
        both += [floor + radius * weight, (1 - radius) * weight]
    steps = _rounds(_exact_shares(both, left - excess))
    steps.insert(-1, Step("excess", excess, "noisy amount by which rows lie too far out"))
    return Plan(n, d, mu, neighbors, (*counting, *steps))


def _less(
    weights: Array | None, ratio: float, n: int, domain: Domain, least: float
) -> tuple[Fraction, Fraction]:
    """Shares of the steps *cells* and *excess*, in their proportion, as far as they may cost; the
    cells keep ``least``, or what they have at most."""
    if weights is None:
        return _CELLS_SHARE, _EXCESS_SHARE
    taken = float(_CELLS_SHARE + _EXCESS_SHARE)
    part = min(1.0, _STEPS_COST / cost_of_taking(taken, weights, ratio, n, domain))
    units = max(1, math.floor(part * _CELLS_SHARE * _SHARE_UNITS))
    excess = Fraction(units, _SHARE_UNITS) / _CELLS_SHARE * _EXCESS_SHARE
    kept = min(_CELLS_SHARE, Fraction(math.ceil(least * _SHARE_UNITS), _SHARE_UNITS))
    return max(Fraction(units, _SHARE_UNITS), kept), excess


def count_share(kind: str, neighbors: str) -> Fraction:
    """Share of the noisy count: none where n is public."""
    return _COUNT_SHARE[kind] if not Neighbors.of(neighbors).count_is_public else Fraction(0)


def _noise_ratio(n: int, d: int, mu: float, neighbors: str) -> float:
    # Of the halves' difference, two noises: sqrt(2) times the halves' own, sqrt(2) or 1.
    sensitivity = max(Neighbors.of(neighbors).factor(), math.sqrt(2))
    return sensitivity * math.sqrt(d) / (max(n, 1) * mu)


def _radius_share(sampling: float) -> float:
    """More where the noise is small beside the scatter of the rows themselves."""
    low, high = _RADIUS_SHARE
    return low + (high - low) * sampling**2


def _exact_shares(weights: list[float], total: Fraction) -> list[Fraction]:
    """Multiples of 2^-20 near the weights, none zero, that add up to ``total`` exactly."""
    if not weights:
        return []
    units = int(total * _SHARE_UNITS)
    parts = [max(1, math.floor(w * units)) for w in weights]
    parts[-1] += units - sum(parts)
    return [Fraction(part, _SHARE_UNITS) for part in parts]


def _rounds(shares: list[Fraction]) -> list[Step]:
    out = []
    for k in range(0, len(shares), 2):
        where = "the new centre" if k else "the centre of the domain"
        name = "final" if k == len(shares) - 2 else "center"
        out.append(Step("radius", shares[k], f"noisy histogram of distances from {where}"))
        out.append(Step(name, shares[k + 1], "noisy sums of clipped rows, above and below it"))
    return out
