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
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import noise
from ..column_names import Columns
from ..ellipsoid import Ellipsoid
from ..guarantee import Neighbors, rounded_up
from ..noise_keys import JobKeys, Told, Use
from .cells import Cells, cells_sensitivity, read_cells
from .domain import Domain, Frame
from .excess import STEPS, Excess, choose_ramp, expected
from .interval import answer
from .outcome import Counts, Outcome, Round, Tail
from .part_pass import passes_over
from .passes import Passes
from .plan import Plan, Step, count_share, make_plan
from .pooling import located
from .radius import EDGES, SURPRISE, Laws, choose_radius, first_edges
from .spread import spread_of

__all__ = ["halves_sensitivity", "run"]

Array = NDArray[np.float64]

#: A usual distance below this part of the predicted one: the region was much too wide, and its
#: bins tell little of the next.
_FORGET = 0.3

#: Weight of what earlier histograms said, for each round back: regions change less and less.
_MEMORY = 0.6


def run(
    data: Any,
    domain: Domain,
    mu: float,
    neighbors: str,
    kind: str,
    root: bytes,
    threads: int | None = None,
    before_noise: Callable[[int, str], None] = lambda step, mark: None,
    on_plan: Callable[[Plan], None] | None = None,
    keep: Callable[[Passes], Any] = lambda passes: passes,
    columns: Columns | None = None,
) -> Outcome:
    """Carry out the plan on ``data``.

    **Guarantees.** The outcome, every intermediate one included, is mu-GDP for the neighbours
    named, bit for bit (claims adaptive-1, adaptive-2): each step adds correctly rounded Gaussian
    noise to integers whose sensitivity holds for any region, so for regions that earlier
    steps chose too, and the squares of the steps' mu add up to mu^2.
    """
    rows = keep(passes_over(data, domain.center.size, box=domain.box, columns=columns))
    plan = _Run(rows, domain, mu, Neighbors.of(neighbors), kind, root, threads)
    plan.before_noise = before_noise  # of each step: its number, and a mark of what it is of
    plan.on_plan = on_plan
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
        self.surprised = False  # rows lay further away than was predicted
        self.cells = Cells(np.ones(d), np.zeros(d), 0.0, np.ones(d), np.ones(d), 0.0)
        self.rounds: list[Round] = []
        self.excess: Excess | None = None
        self.laws: Laws | None = None  # of distances, from the last histogram
        self.shares: tuple[Array, float] | None = None
        self.integers: list[NDArray[np.object_]] = []
        # All that a step's region and noise come from: what is known, and what was answered.
        known = (getattr(domain, field.name) for field in fields(domain))
        self.told = Told(kind, neighbors.value, mu, *known)
        self.regions: list[Ellipsoid] = []
        self.before_noise: Callable[[int, str], None] = lambda step, mark: None
        self.on_plan: Callable[[Plan], None] | None = None

    def go(self) -> Outcome:
        n = self._rows_counted()
        self.told.add(n)
        plan = make_plan(max(n, 1), self.domain, self.mu, self.neighbors, self.kind)
        if self.on_plan is not None:
            self.on_plan(plan)
        self.rows.expect(sum(step.name != "count" for step in plan.steps) or 1)
        if plan.infeasible:
            self.rows.check()  # no round will read them
        steps = {step.name: step for step in plan.steps}
        if "cells" in steps:
            self._cells(plan, steps["cells"])
        rounds = [step for step in plan.steps if step.name not in ("count", "cells")]
        tail: Tail | None = None
        for step in rounds:
            if step.name == "radius":
                tail = self._radius(plan, step)
            elif step.name == "excess" and tail:
                self._excess(plan, step, tail.radius)
            else:
                self._center(plan, step, tail or self._whole_domain())
        center, sd = self.center, np.full(self.rows.d, np.inf)
        if self.rounds:
            center, sd = answer(self.rounds, self.domain.half)
        found = (center, sd, self.spread, self.cells, self.rounds, self.excess)
        return Outcome(plan, n, self.count_sd, *found, self.integers, self.regions)

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

    def _cells(self, plan: Plan, step: Step) -> None:
        sensitivity, mu = cells_sensitivity(plan.d, self.neighbors), plan.step_mu(step)
        noisy = self._noisy(self.rows.cells(self.threads), sensitivity, mu)
        self.cells = read_cells(noisy, plan.n, sensitivity / mu)

    def _whole_domain(self) -> Tail:
        """The domain's own region: nothing is clipped."""
        b = self._scale()
        rotated = self.domain.basis is not None
        corner = np.max(b) * self.domain.half if rotated else b * self.domain.half
        return Tail(float(np.linalg.norm(corner)) * (1 + 2.0**-20))

    def _radius(self, plan: Plan, step: Step) -> Tail:
        b, first = self._scale(), not self.rounds
        edges = EDGES
        if first:
            edges = first_edges(float(np.linalg.norm(b * self.domain.half)))
        counts = self.rows.histogram(self._local(b), edges, self.threads)
        sensitivity = self.neighbors.factor(no_negative_products=True)  # a row is one bin
        mu = plan.step_mu(step)
        noisy = self._noisy(counts, sensitivity, mu)
        counted, noise_sd = noisy.astype(np.float64) / plan.n, sensitivity / mu / plan.n
        counted[0] -= self.cells.empty  # they lie at the centre, and say nothing of distances
        left = 1 - self.cells.empty
        share, sd = self._remembered(counted / left, noise_sd / left, forget=first)
        # Between d (what shrinks the next region most) and d_eff (what the answer is worth).
        ratio = plan.noise_ratio * (self._effective_dimension() / plan.d) ** 0.25
        reach = float(np.linalg.norm(b * self._reach()))
        chosen = choose_radius(edges, share, sd, ratio, coarse=first, reach=reach)
        if not first and chosen.usual > SURPRISE:
            self._distrust(chosen.usual)
        if not _FORGET < chosen.usual < SURPRISE:
            self.shares = None  # the next region will be another one
        below = np.concatenate([[0.0], edges[:-1]])
        possible = below < reach
        outside = possible & (edges > chosen.radius)
        noise_beyond = noise_sd * math.sqrt(np.count_nonzero(outside))
        self.laws = chosen.laws
        told = (chosen.most, chosen.sd, float(np.sum(counted[outside])), noise_beyond)
        ends = np.minimum(np.append(edges[:-1], reach), reach)  # the last bin has all beyond
        seen = Counts(ends[possible], counted[possible], noise_sd)
        return Tail(chosen.radius, *told, first, seen)

    def _excess(self, plan: Plan, step: Step, radius: float) -> None:
        b, mu = self._scale(), plan.step_mu(step)
        sd = 1 / (plan.n * mu)
        assert self.laws is not None
        ramp = choose_ramp(self.laws, radius, sd)
        counted = self.rows.excess(self._local(b), ramp.edges, self.threads)
        noisy = self._noisy(counted, float(STEPS), mu)  # a row counts 0 to STEPS
        share = float(noisy[0]) / (STEPS * plan.n)
        self.excess = Excess(ramp, share, sd, self.center, b, expected(self.laws, ramp))

    def _remembered(self, share: Array, sd: float, *, forget: bool) -> tuple[Array, float]:
        """Average of this histogram and the earlier ones (bins relative to their regions)."""
        precision = 1 / sd**2
        if not forget and self.shares is not None:
            old, weight = self.shares
            weight *= _MEMORY
            share = (precision * share + weight * old) / (precision + weight)
            precision += weight
        self.shares = None if forget else (share, precision)
        return share, 1 / math.sqrt(precision)

    def _center(self, plan: Plan, step: Step, tail: Tail) -> None:
        b, d = self._scale(), plan.d
        region = Ellipsoid(self.center, b, tail.radius)  # along the domain's axes
        frame = self._local(region.scale / region.grid)
        exact = self.rows.halves(frame, region.clip_norm / region.grid, self.threads)
        sensitivity, mu = halves_sensitivity(region, self.neighbors), plan.step_mu(step)
        noisy = self._noisy(exact, sensitivity, mu).astype(np.float64)
        self.regions.append(region)
        per_row = 1 / (plan.n * self.cells.present)
        above, below = region.unscale(noisy.reshape(2, d) * region.grid) * per_row
        sd = math.sqrt(2) * sensitivity * region.grid / mu / region.scale * per_row
        shift, deviation = above - below, above + below
        found = (self.center + shift, sd, shift, deviation, b, self._reach(), tail)
        self.rounds.append(Round(*found))
        self._update(shift, deviation, sd)

    def _noisy(self, exact: NDArray[Any], sensitivity: float, mu: float) -> NDArray[np.object_]:
        """The one place where private integers become public ones."""
        sigma = rounded_up(sensitivity / mu)
        keys, step = JobKeys(self.root, sigma, exact, after=self.told), len(self.integers)
        self.before_noise(step, keys.of(Use.MARK, step).hex())
        draw = noise.rounded_gaussian(exact.size, sigma, key=keys.of(Use.STEP, step))
        out: NDArray[np.object_] = exact.astype(object) + draw.astype(object)
        self.integers.append(out)
        self.told.add(out)
        return out

    # ---- what is made of them: post-processing -----------------------------------------

    def _local(self, scale: Array) -> Frame:
        """The rows as seen from the present centre."""
        frame = self.domain.frame(self.center, scale)
        self.center = self.domain.offset(frame.center)  # as rounded: shifts are told from there
        return frame

    def _reach(self) -> Array:
        """How far from the present centre a row of the domain may lie along each axis."""
        return np.asarray(self.domain.largest_spread + np.abs(self.center))

    def _units(self) -> tuple[Array, Array]:
        """The rows' deviations u about the centre, and the unit in which they are weighed."""
        u = np.hypot(self.spread, self.error)
        seen = self.domain.relative and bool((self.spread > 0).all())
        return u, self.spread if seen else np.ones(u.size)

    def _scale(self) -> Array:
        """b = 1/sqrt(u sum u) for the rows' deviations u about the centre: E||y||^2 = 1.

        With errors weighed in a unit: that of the deviations in it.
        """
        u, unit = self._units()
        w = u / unit
        return np.asarray(1 / (unit * np.sqrt(w * np.sum(w))))

    def _effective_dimension(self) -> float:
        """(sum u)^2 / sum u^2: noise has the energy (sum u)^2 for each unit of C^2, in data
        units, and a loss of t is sum u^2 of them on average."""
        u, unit = self._units()
        w = u / unit
        return float(np.sum(w) ** 2 / np.sum(w**2))

    def _distrust(self, factor: float) -> None:
        """Rows lie further away than predicted: the centres so far are that much worse."""
        self.weighted, self.precision = self.weighted / factor**2, self.precision / factor**2
        self.surprised = True
        _, self.error = self._located()

    def _update(self, shift: Array, deviation: Array, sd: Array) -> None:
        """Average the centres by precision; measure the spread about the new one."""
        self.weighted += (self.center + shift) / sd**2
        self.precision += 1 / sd**2
        new, self.error = self._located()
        if self.domain.sigma is None:
            spread = spread_of(new - self.center, deviation, sd)
            self.spread = np.minimum(spread, self.domain.largest_spread)
        self.center = new

    def _located(self) -> tuple[Array, Array]:
        """The centre and its standard deviation, with what the domain says of it, and all
        coordinates of each: where nothing showed that rows lie elsewhere."""
        if not self.surprised:
            noise = 1 / np.sqrt(self.precision)
            return located(self.weighted / self.precision, noise, self.domain)
        total = 1 / self.domain.half**2 + self.precision
        return self.weighted / total, 1 / np.sqrt(total)
