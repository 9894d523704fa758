"""A private mean when nothing is known but a box: regions that shrink onto the data.

Each round first measures how far the rows lie from the present centre (a noisy histogram of
distances), then sums them clipped there. The sum is taken of the positive and the negative
parts apart, (x - c)+ and (x - c)-: their difference moves the centre, and their sum, the mean
absolute deviation of every coordinate, shapes the next region. For ``replace`` neighbours the
second comes free: vectors of norm at most C with no negative entry differ by sqrt(2) C, not by
2 C, and the difference of two noises of that size is just the noise that the clipped sum alone
would carry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from .. import noise
from ..ellipsoid import Ellipsoid
from ..guarantee import Neighbors, rounded_up
from ..noise_keys import JobKeys, Use
from .domain import Domain, Frame
from .passes import Passes
from .plan import SD_PER_MAD, Plan, Step, count_share, make_plan
from .radius import EDGES, SURPRISE, choose_radius, first_edges

__all__ = ["Outcome", "halves_sensitivity", "run"]

Array = NDArray[np.float64]

#: A usual distance below this part of the predicted one: the region was much too wide, and its
#: bins tell little of the next.
_FORGET = 0.3

#: Weight of what earlier histograms said, for each round back: regions change less and less.
_MEMORY = 0.6


@dataclass
class Outcome:
    """What a plan found, after noise: offsets along the domain's axes."""

    plan: Plan
    count: int  # public, or noisy
    count_sd: float  # 0 where it is public
    offset: Array  # of the mean
    sd: Array  # noise of the offset
    spread: Array  # standard deviation of the rows, as far as seen
    lost: Array  # what the clips may have moved the offset by
    integers: list[NDArray[np.object_]] = field(default_factory=list)
    regions: list[Ellipsoid] = field(default_factory=list)


def run(
    data: Any,
    domain: Domain,
    mu: float,
    neighbors: str,
    kind: str,
    root: bytes,
    threads: int | None = None,
    before_noise: Callable[[], None] = lambda: None,
    keep: Callable[[Passes], Any] = lambda passes: passes,
) -> Outcome:
    """Carry out the plan on ``data``.

    **Guarantees.** The outcome, every intermediate one included, is mu-GDP for the neighbours
    named, bit for bit (claims adaptive-1, adaptive-2): each step adds correctly rounded Gaussian
    noise to integers whose sensitivity holds for any region, so for regions that earlier
    steps chose too, and the squares of the steps' mu add up to mu^2.
    """
    rows, relation = keep(Passes(data, domain.center.size)), Neighbors.of(neighbors)
    plan = _Run(rows, domain, mu, relation, kind, root, threads)
    plan.before_noise = before_noise
    return plan.go()


def halves_sensitivity(region: Ellipsoid, neighbors: str) -> float:
    """l2 sensitivity, grid units, of the integer sums of positive and negative parts.

    No entry is negative, so no two rows' vectors have a negative inner product (claims sum-4,
    adaptive-1).
    """
    factor = Neighbors.of(neighbors).factor(no_negative_products=True)
    return rounded_up(factor * region.row_bound())


class _Run:
    """The state between steps: everything but the rows themselves is public."""

    def __init__(
        self,
        rows: Passes,
        domain: Domain,
        mu: float,
        neighbors: Neighbors,
        kind: str,
        root: bytes,
        threads: int | None,
    ) -> None:
        self.rows, self.domain, self.kind = rows, domain, kind
        self.mu, self.neighbors = mu, neighbors
        self.root, self.threads, self.count_sd = root, threads, 0.0
        d = domain.center.size
        self.center = np.zeros(d)  # offset from the domain's centre
        self.error = domain.half.copy()  # of the centre, standard deviations
        self.spread = np.zeros(d) if domain.sigma is None else domain.sigma
        # The domain counts as an observation of its centre, which nothing takes away: no answer
        # is worse than that one because of a coordinate that only shows noise.
        self.weighted, self.precision = np.zeros(d), np.zeros(d)
        self.lost = np.zeros(d)  # what the clips of each round may have taken, times its weight
        self.shares: tuple[Array, float] | None = None
        self.integers: list[NDArray[np.object_]] = []
        self.regions: list[Ellipsoid] = []
        self.before_noise: Callable[[], None] = lambda: None  # called once

    def go(self) -> Outcome:
        n = self._rows_counted()
        plan = make_plan(max(n, 1), self.domain, self.mu, self.neighbors, self.kind)
        self.rows.expect(plan.passes)
        if plan.hopeless:
            self.rows.check()  # no round will read them
        rounds = [step for step in plan.steps if step.name != "count"]
        for k in range(0, len(rounds), 2):
            radius, loss = self._radius(plan, rounds[k], first=k == 0)
            self._center(plan, rounds[k + 1], radius, loss)
        sd = np.zeros(self.rows.d) if plan.hopeless else self.error
        lost, regions = self.lost * self.error**2, self.regions
        return Outcome(
            plan, n, self.count_sd, self.center, sd, self.spread, lost, self.integers, regions
        )

    # ---- steps: each one Gaussian mechanism --------------------------------------------

    def _rows_counted(self) -> int:
        """n: public for replace (one pass unless the source knows it), noisy for add-remove."""
        count = self.rows.count_rows()
        if self.neighbors.count_is_public:
            if count == 0:
                raise ValueError("data has no rows: give at least one")
            return count
        mu = self.mu * math.sqrt(count_share(self.kind, self.neighbors))
        self.count_sd = 1 / mu
        return int(self._noisy(np.array([count]), 1.0, mu)[0])

    def _radius(self, plan: Plan, step: Step, *, first: bool) -> tuple[float, float]:
        b = self._scale()
        edges = EDGES
        if first:
            edges = first_edges(float(np.linalg.norm(b * self.domain.half)))
        counts = self.rows.histogram(self._local(b), edges, self.threads)
        sensitivity = self.neighbors.factor(no_negative_products=True)  # a row is one bin
        mu = plan.step_mu(step)
        noisy = self._noisy(counts, sensitivity, mu)
        share, sd = self._remembered(noisy / plan.n, sensitivity / mu / plan.n, forget=first)
        # Between d (what shrinks the next region most) and d_eff (what the answer is worth).
        ratio = plan.noise_ratio * (self._effective_dimension() / plan.d) ** 0.25
        radius, usual, loss = choose_radius(edges, share, sd, ratio, coarse=first)
        if not first and usual > SURPRISE:
            self._distrust(usual)
        if not _FORGET < usual < SURPRISE:
            self.shares = None  # the next region will be another one
        return radius, loss

    def _remembered(self, share: Array, sd: float, *, forget: bool) -> tuple[Array, float]:
        """Average of this histogram and the earlier ones (bins relative to their regions)."""
        share, precision = share.astype(np.float64), 1 / sd**2
        if not forget and self.shares is not None:
            old, weight = self.shares
            weight *= _MEMORY
            share = (precision * share + weight * old) / (precision + weight)
            precision += weight
        self.shares = None if forget else (share, precision)
        return share, 1 / math.sqrt(precision)

    def _center(self, plan: Plan, step: Step, radius: float, loss: float) -> None:
        b = self._scale()
        d = plan.d
        region = Ellipsoid(self.center, b, radius)  # along the domain's axes
        frame = self._local(region.scale / region.grid)
        exact = self.rows.halves(frame, region.clip_norm / region.grid, self.threads)
        sensitivity, mu = halves_sensitivity(region, self.neighbors), plan.step_mu(step)
        noisy = self._noisy(exact, sensitivity, mu).astype(np.float64)
        self.regions.append(region)
        above, below = region.unscale(noisy.reshape(2, d) * region.grid) / plan.n
        sd = math.sqrt(2) * sensitivity * region.grid / (mu * plan.n) / region.scale
        self._update(above - below, above + below, sd, loss)

    def _noisy(self, exact: NDArray[Any], sensitivity: float, mu: float) -> NDArray[np.object_]:
        """The one place where private integers become public ones."""
        if not self.integers:
            self.before_noise()
        sigma = rounded_up(sensitivity / mu)
        # All that the step's region came from: the domain, what is known, and what was answered.
        known = (self.domain.center, self.domain.half, self.domain.basis, self.domain.sigma)
        job = (self.kind, self.neighbors.value, *known, *self.integers, sigma, exact)
        keys = JobKeys(self.root, *job)
        draw = noise.rounded_gaussian(exact.size, sigma, key=keys.of(Use.STEP, len(self.integers)))
        out: NDArray[np.object_] = exact.astype(object) + draw.astype(object)
        self.integers.append(out)
        return out

    # ---- what is made of them: post-processing -----------------------------------------

    def _local(self, scale: Array) -> Frame:
        """The rows as seen from the present centre."""
        frame = self.domain.frame(self.center, scale)
        self.center = self.domain.offset(frame.center)  # as rounded: shifts are told from there
        return frame

    def _scale(self) -> Array:
        """b = 1/sqrt(u sum u) for the rows' deviations u about the centre: E||y||^2 = 1."""
        u = np.hypot(self.spread, self.error)
        return np.asarray(1 / np.sqrt(u * np.sum(u)))

    def _effective_dimension(self) -> float:
        """(sum u)^2 / sum u^2: noise has the energy (sum u)^2 for each unit of C^2, in data
        units, and a loss of t is sum u^2 of them on average."""
        u = np.hypot(self.spread, self.error)
        return float(np.sum(u) ** 2 / np.sum(u**2))

    def _distrust(self, factor: float) -> None:
        """Rows lie further away than predicted: the centres so far are that much worse."""
        self.weighted, self.precision = self.weighted / factor**2, self.precision / factor**2
        self.lost = self.lost / factor**2
        self.error = self._uncertain()

    def _update(self, shift: Array, deviation: Array, sd: Array, loss: float) -> None:
        """Average the centres by precision; measure the spread about the new one.

        What a clip takes from the distances moves coordinate j by loss/b_j, if all of it is the
        coordinate's and in one direction.
        """
        self.weighted += (self.center + shift) / sd**2
        self.precision += 1 / sd**2
        self.lost += loss / self._scale() / sd**2
        self.error = self._uncertain()
        new = self.weighted * self.error**2
        if self.domain.sigma is None:
            spread = _spread(new - self.center, deviation, sd)
            self.spread = np.minimum(spread, self.domain.largest_spread)
        self.center = new

    def _uncertain(self) -> Array:
        """Standard deviation of the centre, with what the domain says of it."""
        return np.asarray(1 / np.sqrt(1 / self.domain.half**2 + self.precision))


def _folded_table() -> tuple[Array, Array]:
    """t, and 2 E(N(t, 1))_- / t: the deviation beyond |mean|, in means, against mean/sd."""
    t = np.logspace(-3, math.log10(6), 400)
    density = np.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    return t, 2 * (density - t * ndtr(-t)) / t


_FOLDED_T, _FOLDED_H = _folded_table()


def _spread(shift: Array, deviation: Array, sd: Array) -> Array:
    """Standard deviations that agree with E(x - c) and E|x - c|, one noise deviation upwards.

    A coordinate whose rows lie all on one side tells only that its deviation is below a part
    of ``shift``: the bound is taken, and the next round sees better.
    """
    beyond = np.maximum(deviation - np.abs(shift), 0) + sd
    ratio = beyond / np.maximum(np.abs(shift), 1e-300)
    inside = np.clip(ratio, _FOLDED_H[-1], _FOLDED_H[0])
    t = np.exp(np.interp(-np.log(inside), -np.log(_FOLDED_H), np.log(_FOLDED_T)))
    wide = ratio >= _FOLDED_H[0]
    return np.asarray(np.where(wide, beyond * SD_PER_MAD, np.abs(shift) / t))
