"""The fixed plan for a mean when nothing is known but a box: steps, passes, shares of the budget.

A plan is a function of public things alone (n, the domain, mu, the neighbours). Everything that the
steps find out moves and shapes the *regions* of later steps, never their shares.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
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
from .spread import SD_PER_MAD

__all__ = ["Plan", "Step", "count_share", "make_plan"]

Array = NDArray[np.float64]

#: Shares of mu^2 are multiples of 2^-20, so that they add up to one exactly.
_SHARE_UNITS = 1 << 20

#: What the radii take: a part that follows the sums' (the larger the less noise matters beside
#: sampling), and a floor for each, so that a bin errs by this share of the rows; the floors take at
#: most so much together, and limit the rounds where rows are few: to none, in the end.
_RADIUS_SHARE, _RADIUS_SD, _RADIUS_FLOORS = (0.05, 0.15), 0.16, 0.2

#: Rounds: how many are tried, and what a further one (two passes) must gain.
_MOST_ROUNDS, _ROUND_COST = 20, 0.01

#: A round's part: even ones shrink the box, and the last ones polish, each with this many times
#: the part of the one before; how much polishing is tried.
_POLISH, _POLISHES = 3.5, np.array([0.0, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512])

#: The clip radius in the model of a plan, in root mean square distances.
_MODEL_RADIUS = 1.15

#: Where sigma is not known: standard deviations that are allowed for, over half widths, and how
#: they fall off over the coordinates (a power of the rank).
_ALLOWED = ((0.1, 0.0), (0.01, 1.0), (0.001, 0.0))
#: Smaller ones are no different.
_LEAST_ALLOWED = 1e-9

#: Coordinates of the model: more are grouped.
_MODEL_SIZE = 48

#: Above this noise-to-radius ratio nothing is learned: the plan answers the centre of the box.
#: So it does where a noisy count stands out from its noise less than this many times.
_INFEASIBLE, _COUNT_STANDS_OUT = 0.9, 4.0

#: The share of the noisy numbers of present cells: they are needed only as far as the centre is
#: off, so that they can be rough (docs/adaptive.md).
_CELLS_SHARE = Fraction(1, 64)

#: The share of what tells how much the last region clips: it decides how wide intervals are.
_EXCESS_SHARE = Fraction(3, 64)

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

    Rounds and parts are those with the least predicted error (:func:`_predicted`), where a
    further round must gain 1 %. All of it is public, and kept for the next release of the same.
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
    counting.append(Step("cells", _CELLS_SHARE, "noisy numbers of present cells"))
    left = 1 - count - _CELLS_SHARE
    floor = 2 / (_RADIUS_SD * n * mu) ** 2
    most = int(_RADIUS_FLOORS / floor + 1e-9)
    if most == 0:  # no histogram would stand out from its noise
        only = Step("final", left, "noisy sums of rows in the domain, above and below its centre")
        return Plan(n, d, mu, neighbors, (*counting, only))
    _, weights = min(_candidates(ratio, n, domain, most), key=lambda found: found[0])
    rounds, radius = len(weights), _radius_share(ratio, n, domain)
    both: list[float] = []
    for weight in weights * (1 - rounds * floor):
        both += [floor + radius * weight, (1 - radius) * weight]
    steps = _rounds(_exact_shares(both, left - _EXCESS_SHARE))
    steps.insert(-1, Step("excess", _EXCESS_SHARE, "noisy amount by which rows lie too far out"))
    return Plan(n, d, mu, neighbors, (*counting, *steps))


def count_share(kind: str, neighbors: str) -> Fraction:
    """Share of the noisy count: none where n is public."""
    return _COUNT_SHARE[kind] if not Neighbors.of(neighbors).count_is_public else Fraction(0)


def _noise_ratio(n: int, d: int, mu: float, neighbors: str) -> float:
    # Of the halves' difference, two noises: sqrt(2) times the halves' own, sqrt(2) or 1.
    sensitivity = max(Neighbors.of(neighbors).factor(), math.sqrt(2))
    return sensitivity * math.sqrt(d) / (max(n, 1) * mu)


def _candidates(ratio: float, n: int, domain: Domain, most: int) -> Iterator[tuple[float, Array]]:
    """(cost, parts of the rounds) of the best division for each number of rounds."""
    laws = [_grouped(domain.half, sigma) for sigma in _presumed(domain)]
    for rounds in range(1, min(most, _MOST_ROUNDS) + 1):
        weights = 1 + _POLISHES[:, None] * _POLISH ** np.arange(1.0 - rounds, 1)
        weights /= np.sum(weights, axis=1, keepdims=True)
        cost = np.zeros(len(weights))
        for half, sigma, times in laws:
            error = _predicted(weights * 0.9, ratio, half, sigma, times, domain.sigma is not None)
            least = (_MODEL_RADIUS * ratio * float(times @ sigma)) ** 2
            sampling = float(times @ sigma**2) / n
            cost += np.log((error + sampling) / (least + sampling))
        best = int(np.argmin(cost))
        yield float(cost[best]) / len(laws) + _ROUND_COST * rounds, weights[best]


def _radius_share(ratio: float, n: int, domain: Domain) -> float:
    """More where the noise is small beside the scatter of the rows themselves."""
    parts = []
    for sigma in _presumed(domain):
        sampling = float(np.sum(sigma**2)) / n
        parts.append(sampling / (sampling + (_MODEL_RADIUS * ratio * float(np.sum(sigma))) ** 2))
    low, high = _RADIUS_SHARE
    return low + (high - low) * float(np.mean(parts)) ** 2


def _presumed(domain: Domain) -> list[Array]:
    """The rows' standard deviations, or what is allowed for."""
    if domain.sigma is not None:
        return [np.clip(domain.sigma, _LEAST_ALLOWED * domain.half, domain.largest_spread)]
    rank = np.arange(1.0, domain.half.size + 1)
    return [domain.half * part * rank**-power for part, power in _ALLOWED]


def _grouped(half: Array, sigma: Array) -> tuple[Array, Array, Array]:
    """(half width, sigma, how many) of coordinates of about the same sigma."""
    order = np.argsort(-sigma)
    if sigma.size <= _MODEL_SIZE:
        return half, sigma, np.ones(sigma.size)
    starts = np.unique(np.geomspace(1, sigma.size, _MODEL_SIZE).astype(int)) - 1
    times = np.diff(starts, append=sigma.size).astype(np.float64)
    means = [np.add.reduceat(values[order], starts) / times for values in (half, sigma)]
    return means[0], means[1], times


def _predicted(
    weights: Array, ratio: float, half: Array, sigma: Array, times: Array, known: bool
) -> Array:
    """The squared error that the rounds leave, for each row of ``weights``, if all goes well.

    The recursion that the rounds follow (docs/adaptive.md), with what they find out
    replaced by what is expected.
    """
    precision = np.broadcast_to(1 / half**2, (len(weights), half.size))
    measured = np.zeros_like(precision)
    spread = sigma if known else np.zeros_like(sigma)
    for k in range(weights.shape[1]):
        error = 1 / np.sqrt(precision)
        u, distance = np.hypot(spread, error), np.hypot(sigma, error)
        energy = distance**2 / u @ times
        level = (ratio * _MODEL_RADIUS) ** 2 / weights[:, k] * energy
        gain = 1 / (level[:, None] * u)
        precision, measured = precision + gain, measured + gain
        if not known:
            spread = distance + SD_PER_MAD / np.sqrt(measured)
    return (1 / precision) @ times


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
