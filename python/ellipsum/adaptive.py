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

import hashlib
import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from . import noise
from .domain import Domain
from .ellipsoid import Ellipsoid
from .passes import Frame, Passes
from .plan import Plan, Step, count_share, make_plan

__all__ = ["Outcome", "halves_sensitivity", "run"]

Array = NDArray[np.float64]

_UP = 1 + 2.0**-50  # covers the roundings of a noise level: noise is never too small

#: Upper edges of the distance bins, in units of the predicted root mean square: narrow where
#: the prediction should be right, wide where it may be wrong.
_NEAR = [0.5, 0.6, 0.7, 0.8, 0.86, 0.92, 1, 1.06, 1.12, 1.2, 1.3, 1.45, 1.65, 2, 2.6]
_EDGES = np.array([0.12, 0.25, *_NEAR, 3.5, 5, 8, 16, 32, 64])
#: The first histogram knows nothing: bins of ratio sqrt(2) from the corner of the box inwards.
_FIRST_BINS = 30

#: A usual distance this many times the predicted one means that the centre was wrong.
_SURPRISE = 1.3
#: One below this part of it: the region was much too wide, and its bins tell little of the next.
_FORGET = 0.3

#: Laws that are fitted to a histogram of distances: two-piece log-normal, of these widths.
_WIDTHS = np.array([0.03, 0.06, 0.1, 0.16, 0.25, 0.4, 0.6, 0.9])
_MODES = 100

#: Nodes and weights for an upper half normal (midpoints, to z = 6).
_TAIL_Z = (np.arange(120) + 0.5) / 20
_TAIL_WEIGHT = np.exp(-(_TAIL_Z**2) / 2) / math.sqrt(2 * math.pi) / 20

#: What the bins say beyond the fitted law counts as far as it exceeds this many deviations.
_DOUBT = 3.0

#: Weight of what earlier histograms said, for each round back: regions change less and less.
_MEMORY = 0.6

#: E|Z| = sqrt(2/pi): from a mean absolute deviation to a standard deviation.
_SD_PER_MAD = math.sqrt(math.pi / 2)


@dataclass
class Outcome:
    """What a plan found, after noise: offsets along the domain's axes."""

    plan: Plan
    count: int  # public, or noisy
    count_sd: float  # 0 where it is public
    offset: Array  # of the mean
    sd: Array  # noise of the offset
    spread: Array  # standard deviation of the rows, as far as seen
    integers: list[NDArray[np.object_]] = field(default_factory=list)
    regions: list[Ellipsoid] = field(default_factory=list)


def run(
    data: Any,
    domain: Domain,
    mu: float,
    neighbors: str,
    kind: str,
    key: bytes,
    threads: int | None = None,
) -> Outcome:
    """Carry out the plan on ``data``.

    **Guarantees.** The outcome, every intermediate one included, is mu-GDP for the neighbours
    named, bit for bit (docs/guarantees.md): each step adds correctly rounded Gaussian
    noise to integers whose sensitivity holds for any region, so for regions that earlier
    steps chose too, and the squares of the steps' mu add up to mu^2.
    """
    run_ = _Run(Passes(data, domain.center.size), domain, mu, neighbors, key, threads)
    return run_.go(kind)


def halves_sensitivity(region: Ellipsoid, neighbors: str) -> float:
    """l2 sensitivity, grid units, of the integer sums of positive and negative parts.

    Two rows q, q' >= 0 have ||q - q'||^2 <= ||q||^2 + ||q'||^2: sqrt(2) times one row's bound
    for ``replace``, once for ``add-remove``.
    """
    factor = math.sqrt(2) if neighbors == "replace" else 1.0
    return factor * region.row_bound() * _UP


class _Run:
    """The state between steps: everything but the rows themselves is public."""

    def __init__(
        self,
        rows: Passes,
        domain: Domain,
        mu: float,
        neighbors: str,
        key: bytes,
        threads: int | None,
    ) -> None:
        self.rows, self.domain, self.mu, self.neighbors = rows, domain, mu, neighbors
        self.key, self.threads, self.step_number, self.count_sd = key, threads, 0, 0.0
        d = domain.center.size
        self.center = np.zeros(d)  # offset from the domain's centre
        self.error = domain.half.copy()  # of the centre, standard deviations
        self.spread = np.zeros(d) if domain.sigma is None else domain.sigma
        # The domain counts as an observation of its centre: no answer is worse than that one
        # because of a coordinate that only shows noise.
        self.weighted, self.precision = np.zeros(d), 1 / domain.half**2
        self.shares: tuple[Array, float] | None = None
        self.integers: list[NDArray[np.object_]] = []
        self.regions: list[Ellipsoid] = []

    def go(self, kind: str) -> Outcome:
        n = self._rows_counted(kind)
        plan = make_plan(max(n, 1), self.rows.d, self.mu, self.neighbors, kind)
        rounds = [step for step in plan.steps if step.name != "count"]
        for k in range(0, len(rounds), 2):
            radius = self._radius(plan, rounds[k], first=k == 0)
            self._center(plan, rounds[k + 1], radius)
        sd = np.zeros(self.rows.d) if plan.hopeless else self.error
        return Outcome(
            plan, n, self.count_sd, self.center, sd, self.spread, self.integers, self.regions
        )

    # ---- steps: each one Gaussian mechanism --------------------------------------------

    def _rows_counted(self, kind: str) -> int:
        """n: public for replace (one pass unless the source knows it), noisy for add-remove."""
        count = self.rows.count_rows()
        if self.neighbors == "replace":
            if count == 0:
                raise ValueError("data has no rows: give at least one")
            return count
        mu = self.mu * math.sqrt(count_share(kind, self.neighbors))
        self.count_sd = 1 / mu
        return int(self._noisy(np.array([count]), 1.0, mu)[0])

    def _radius(self, plan: Plan, step: Step, *, first: bool) -> float:
        b = self._scale()
        edges = _EDGES
        if first:
            corner = float(np.linalg.norm(b * self.domain.half))
            edges = corner * 2.0 ** (np.arange(1 - _FIRST_BINS, 1) / 2) * (1 + 1e-9)
        counts = self.rows.histogram(self._local(b), edges, self.threads)
        sensitivity = math.sqrt(2) if self.neighbors == "replace" else 1.0
        mu = plan.step_mu(step)
        noisy = self._noisy(counts, sensitivity, mu)
        share, sd = self._remembered(noisy / plan.n, sensitivity / mu / plan.n, forget=first)
        # Between d (what shrinks the next region most) and d_eff (what the answer is worth).
        ratio = plan.noise_ratio * (self._effective_dimension() / plan.d) ** 0.25
        radius, usual = _choose_radius(edges, share, sd, ratio, coarse=first)
        if not first and usual > _SURPRISE:
            self._distrust(usual)
        if not _FORGET < usual < _SURPRISE:
            self.shares = None  # the next region will be another one
        return radius

    def _remembered(self, share: Array, sd: float, *, forget: bool) -> tuple[Array, float]:
        """Average of this histogram and the earlier ones (bins relative to their regions)."""
        share = share.astype(np.float64)
        if not forget and self.shares is not None:
            old, weight = self.shares
            share = (share + _MEMORY * weight * old) / (1 + _MEMORY * weight)
            weight = 1 + _MEMORY * weight
        else:
            weight = 1.0
        self.shares = None if forget else (share, weight)
        return share, sd / math.sqrt(weight)

    def _center(self, plan: Plan, step: Step, radius: float) -> None:
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
        self._update(above - below, above + below, sd)

    def _noisy(self, exact: NDArray[Any], sensitivity: float, mu: float) -> NDArray[np.object_]:
        """The one place where private integers become public ones."""
        self.step_number += 1
        name = b"step" + str(self.step_number).encode()
        key = hashlib.blake2b(name, digest_size=32, key=self.key).digest()
        draw = noise.rounded_gaussian(exact.size, sensitivity / mu * _UP, key=key)
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
        self.error = self.error * factor
        self.weighted, self.precision = self.weighted / factor**2, self.precision / factor**2

    def _update(self, shift: Array, deviation: Array, sd: Array) -> None:
        """Average the centres by precision; measure the spread about the new one."""
        self.weighted += (self.center + shift) / sd**2
        self.precision += 1 / sd**2
        new = self.weighted / self.precision
        if self.domain.sigma is None:
            spread = _spread(new - self.center, deviation, sd)
            self.spread = np.minimum(spread, self.domain.largest_spread)
        self.center, self.error = new, 1 / np.sqrt(self.precision)


def _choose_radius(
    edges: Array, share: Array, sd: float, ratio: float, coarse: bool
) -> tuple[float, float]:
    """C that minimises (ratio C)^2 + (E(t - C)+)^2, and the usual distance t (the mode).

    Noise, and clip losses that all point the same way (the worst case), for the law of t behind
    the noisy shares. The expectation is that of the fitted law, moved by what the bins say
    beyond it as far as that exceeds its noise; with coarse bins everything counts at its
    bin's upper edge, because no law can tell where inside it lies.
    """
    radius = np.geomspace(edges[0], edges[-1], 240)
    law, mode, tail = _fit_law(edges, share)
    low = np.concatenate([[0.0], edges[:-1]])
    over = np.clip(edges - radius[:, None], 0, None)
    if not coarse:
        over = (over**2 - np.clip(low - radius[:, None], 0, None) ** 2) / (2 * (edges - low))
    beyond, doubt = over @ (share - law), _DOUBT * sd * np.sqrt(np.sum(over**2, axis=1))
    loss = over @ law if coarse else np.clip(tail[0] - radius[:, None], 0, None) @ tail[1]
    loss = loss + np.sign(beyond) * np.maximum(np.abs(beyond) - doubt, 0)
    best = np.argmin((ratio * radius) ** 2 + np.maximum(loss, 0) ** 2)
    return float(radius[best]), mode


def _fit_law(edges: Array, share: Array) -> tuple[Array, float, tuple[Array, Array]]:
    """The two-piece log-normal law nearest to the noisy shares: its shares, its mode, and
    nodes and weights of its upper piece.

    Least squares in three parameters (mode, widths to the left and to the right): the noise
    averages out where single bins drown in it.
    """
    laws, grid = _two_piece(tuple(edges))
    best = int(np.argmax(laws @ share - np.sum(laws**2, axis=1) / 2))
    mode, left, right = grid[best]
    nodes = np.exp(mode + right * _TAIL_Z)
    return laws[best], math.exp(mode), (nodes, 2 * right / (left + right) * _TAIL_WEIGHT)


@lru_cache(maxsize=8)
def _two_piece(bins: tuple[float, ...]) -> tuple[Array, Array]:
    """Bin probabilities of every candidate law, and (log mode, left, right) of each."""
    edges = np.array(bins)
    modes = np.linspace(math.log(edges[0] / 2), math.log(edges[-1]), _MODES)
    grid = np.array([(m, a, b) for m in modes for a in _WIDTHS for b in _WIDTHS if b >= a])
    mode, left, right = grid[:, :1], grid[:, 1:2], grid[:, 2:]
    z = np.log(edges[:-1]) - mode
    lower = 2 * left / (left + right) * ndtr(z / left)
    upper = 1 - 2 * right / (left + right) * ndtr(-z / right)
    return np.diff(np.where(z < 0, lower, upper), axis=1, prepend=0.0, append=1.0), grid


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
    return np.asarray(np.where(wide, beyond * _SD_PER_MAD, np.abs(shift) / t))
