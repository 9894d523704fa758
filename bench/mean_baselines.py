"""Published private means, from their papers' mathematics, for ``replace`` neighbours.

Every draw of noise goes through a :class:`Ledger`, which records the zCDP that it costs. A method
made of Gaussian steps alone is one Gaussian mechanism of mu = sqrt(2 rho), so rho may be
mu^2 / 2 of the analytic bound; with an exponential mechanism in it (PLAN), only zCDP is known and
:func:`zcdp_budget` applies.

Sources: CoinPress, Biswas, Dong, Kamath & Ullman 2020, Algorithm 1; shifted-clipped-mean, Huang,
Liang & Yi 2021, Algorithms 1-3; PLAN, Aumueller, Lebeda, Nelson & Pagh 2023, Algorithms 1-2 with
the constants of its experiments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard
from scipy.optimize import brentq, minimize_scalar

from ellipsum import QuadraticForm

Array = NDArray[np.float64]
_COLUMNS, _ROWS = 16, 256  # of a block that stays in cache


@dataclass
class Ledger:
    """The source of noise, and what was spent on it (zCDP)."""

    rng: np.random.Generator
    spent: float = 0.0

    def gaussian(self, answer: Array, sensitivity: float, rho: float) -> Array:
        """Answer plus N(0, sensitivity^2 / (2 rho)): rho-zCDP, and GDP with mu^2 = 2 rho."""
        self.spent += rho
        sd = sensitivity / math.sqrt(2 * rho)
        return np.asarray(answer + sd * self.rng.standard_normal(np.shape(answer)))

    def quantiles(self, columns: Array, q: float, low: float, high: Array, rho: float) -> Array:
        """The q-quantile of each column by the exponential mechanism (Smith 2011).

        The score is minus the distance in rank. Replacing a record moves it by at most 1, so
        exp(epsilon/2 score) has a loss of range epsilon: epsilon^2/8-zCDP for each column.
        """
        self.spent += rho
        d = columns.shape[1]
        slope = math.sqrt(8 * rho / d) / 2
        ends = np.broadcast_to(high, d)
        return np.concatenate(
            [
                self._column_quantiles(columns[:, j : j + _COLUMNS], q, low, ends, j, slope)
                for j in range(0, d, _COLUMNS)
            ]
        )

    def _column_quantiles(
        self, columns: Array, q: float, low: float, high: Array, first: int, slope: float
    ) -> Array:
        n, width = columns.shape
        top = high[first : first + width]
        points = np.sort(np.clip(columns.T, low, top[:, None]), axis=1)
        points = np.concatenate([np.full((width, 1), low), points, top[:, None]], axis=1)
        length = np.diff(points, axis=1)
        score = -slope * np.abs(np.arange(n + 1) - q * n)
        weight = np.cumsum(length * np.exp(score - score.max()), axis=1)
        at = self.rng.uniform(size=(width, 1)) * weight[:, -1:]
        chosen = np.argmax(weight >= at, axis=1)
        row = np.arange(width)
        within = length[row, chosen] * self.rng.uniform(size=width)
        return np.asarray(points[row, chosen] + within)


def zcdp_budget(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP implies (epsilon, delta)-DP.

    Source: Canonne, Kamath & Steinke 2020, Proposition 12.
    """

    def log_delta(rho: float) -> float:
        def at(log_order: float) -> float:
            order = 1 + math.exp(log_order)
            return (
                (order - 1) * (order * rho - epsilon)
                + order * math.log1p(-1 / order)
                - math.log(order - 1)
            )

        return float(minimize_scalar(at, bounds=(-5, 12), method="bounded").fun)

    return float(brentq(lambda rho: log_delta(rho) - math.log(delta), 1e-9, epsilon))


# --- shared pieces ---


def clipped_mean(rows: Array, center: Array, scale: Array, radius: float) -> Array:
    """Mean of scale * (row - center), each moved into the ball of this radius."""
    total = np.zeros(center.size)
    for start in range(0, len(rows), _ROWS):
        y = (rows[start : start + _ROWS] - center) * scale
        total += np.minimum(1.0, radius / np.maximum(_lengths(y), np.finfo(float).tiny)) @ y
    return np.asarray(total / len(rows))


def norms(rows: Array, center: Array, scale: Array) -> Array:
    """||scale * (row - center)|| of each row, as one column."""
    blocks = (rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS))
    return np.concatenate([_lengths((block - center) * scale) for block in blocks])[:, None]


def _lengths(y: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", y, y)))


def release_mean(
    ledger: Ledger, rows: Array, center: Array, scale: Array, radius: float, rho: float
) -> Array:
    """A clipped mean under Gaussian noise, in data units: replacing a row moves it by 2 C / n."""
    mean = clipped_mean(rows, center, scale, radius)
    return center + ledger.gaussian(mean, 2 * radius / len(rows), rho) / scale


def searched_quantiles(
    ledger: Ledger, columns: Array, rank: float, low: float, high: float, rho: float, steps: int
) -> Array:
    """The value of this rank in each column, by bisection on noisy counts.

    Replacing a record moves each of d counts by at most 1: l2 sensitivity sqrt(d) a step.
    """
    d = columns.shape[1]
    left, right = np.full(d, low), np.full(d, high)
    for _ in range(steps):
        middle = (left + right) / 2
        counts = np.sum(columns <= middle, axis=0, dtype=np.int32).astype(float)
        below = ledger.gaussian(counts, math.sqrt(d), rho / steps) <= rank
        left, right = np.where(below, middle, left), np.where(below, right, middle)
    return np.asarray((left + right) / 2)


# --- oracles ---


def clip_share(sigma: Array, n: int, noise_multiplier: float) -> float:
    """The share of rows to clip: min(1/2, 4 s sqrt(d_eff) / n), near the best for known sigma."""
    effective = np.sum(sigma) ** 2 / np.sum(sigma**2)
    return min(0.5, 4 * noise_multiplier * math.sqrt(effective) / n)


def oracle_ellipsoid(ledger: Ledger, rows: Array, mean: Array, sigma: Array, rho: float) -> Array:
    """Knows the mean and sigma: Poulsen's Algorithm 3 (b = 1/sqrt(sigma_j sum sigma))."""
    p = clip_share(sigma, len(rows), 1 / math.sqrt(2 * rho))
    scale = 1 / np.sqrt(sigma * np.sum(sigma))
    radius = math.sqrt(float(QuadraticForm((scale * sigma) ** 2).isf(p)))
    return release_mean(ledger, rows, mean, scale, radius, rho)


def oracle_ball(ledger: Ledger, rows: Array, mean: Array, sigma: Array, rho: float) -> Array:
    """Knows the mean and sigma, and clips to a ball: its noise is alike in all d directions."""
    p = clip_share(np.ones(sigma.size), len(rows), 1 / math.sqrt(2 * rho))
    radius = math.sqrt(float(QuadraticForm(sigma**2).isf(p)))
    return release_mean(ledger, rows, mean, np.ones(sigma.size), radius, rho)


# --- CoinPress ---


def gaussian_norm_bound(d: int, beta: float) -> float:
    """What the norm of N(0, I) exceeds with probability at most beta (Laurent & Massart)."""
    log = math.log(1 / beta)
    return math.sqrt(d + 2 * math.sqrt(d * log) + 2 * log)


def coinpress(
    ledger: Ledger, rows: Array, sigma_max: float, radius: float, rho: float, steps: int
) -> Array:
    """Ball after ball around the mean, each from a clipped mean in the last.

    Needs sigma_max (a bound of the covariance) and a ball around the origin that holds the
    mean. The last step has 3/4 of the budget, as in the paper's experiments.
    """
    n, d = rows.shape
    tail = gaussian_norm_bound(d, 0.01)
    unit = np.full(d, 1 / sigma_max)
    center, r = np.zeros(d), radius / sigma_max
    for share in coinpress_shares(steps):
        clip = min(r + tail, math.sqrt(r**2 + 6 * r + tail**2))
        center = release_mean(ledger, rows, center, unit, clip, share * rho)
        variance = 1 / n + (2 * clip / n) ** 2 / (2 * share * rho)
        r = tail * math.sqrt(variance)
    return center


def coinpress_shares(steps: int) -> list[float]:
    """How the budget is divided."""
    return [1.0] if steps == 1 else [1 / (4 * (steps - 1))] * (steps - 1) + [3 / 4]


# --- shifted-clipped-mean ---

_MEDIAN_STEPS, _RADIUS_STEPS = 10, 14  # halvings of the box, and of its half diagonal


def shifted_clipped_mean(
    ledger: Ledger,
    rows: Array,
    bound: float,
    rho: float,
    *,
    shares: tuple[float, float, float] = (1 / 4, 3 / 16, 9 / 16),
    outliers: float = 2.0,
) -> Array:
    """Rotate, shift by a private median, clip at a private quantile of the norms, add noise.

    ``bound`` is the largest |coordinate|; ``shares`` of the budget go to median, radius and mean.
    The radius leaves out ``outliers`` sqrt(d / (2 rho)) rows and the error of its search. The
    defaults are the constants of the paper's experiments.
    """
    n, d = rows.shape
    width = 1 << (d - 1).bit_length()
    padded = np.zeros((n, width))
    padded[:, :d] = rows
    rotation = random_rotation(width, ledger.rng)
    turned = padded @ rotation.T
    rho_median, rho_radius, rho_mean = (share * rho for share in shares)
    center = searched_quantiles(ledger, turned, n / 2, -bound, bound, rho_median, _MEDIAN_STEPS)
    lengths = norms(turned, center, np.ones(width))
    left_out = outliers * math.sqrt(width / (2 * rho_mean))
    left_out += math.sqrt(_RADIUS_STEPS / (2 * rho_radius))
    limit = bound * math.sqrt(width)
    radius = searched_quantiles(
        ledger, lengths, n - left_out, 0.0, limit, rho_radius, _RADIUS_STEPS
    )[0]
    mean = release_mean(ledger, turned, center, np.ones(width), radius, rho_mean)
    return np.asarray(rotation.T @ mean)[:d]


def random_rotation(d: int, rng: np.random.Generator) -> Array:
    """Three times a Hadamard matrix with random signs: spreads every vector over all axes."""
    rotation = np.eye(d)
    for _ in range(3):
        rotation = (
            hadamard(d, dtype=float)
            @ (rng.choice([-1.0, 1.0], size=(d, 1)) * rotation)
            / math.sqrt(d)
        )
    return rotation


# --- PLAN ---

_PLAN_STEPS = 20
_PLAN_BETA = 0.1
_MEDIAN_OF_CHI2 = (1 - 2 / 9) ** 3  # Wilson & Hilferty's, as in the experiments


def plan(ledger: Ledger, rows: Array, bound: float, rho: float) -> Array:
    """Private medians and variances, scale by sigma^(-1/2), clip at a private quantile.

    Shares: 1/16 centre, 3/16 variances, 3/16 radius, 9/16 mean (its experiments'); quantiles by
    the exponential mechanism at the sensitivity that replacing a record needs, 1 (printed with
    max(q, 1 - q), which is that of adding one).
    """
    n, d = rows.shape
    ends = np.full(d, bound)
    center = ledger.quantiles(rows, 0.5, -bound, ends, rho / 16)
    pairs = ledger.rng.permutation(n)[: n // 2 * 2].reshape(2, -1)
    halved = 0.5 * (rows[pairs[0]] - rows[pairs[1]]) ** 2
    variance = ledger.quantiles(halved, 0.5, 0.0, 2 * ends**2, 3 / 16 * rho) / _MEDIAN_OF_CHI2
    width = 2 * np.sqrt(variance)
    scale = 1 / np.sqrt(width + np.mean(width))
    lengths = norms(rows, center, scale)
    radius = _plan_radius(ledger, lengths, np.sum(width) / 2, d, 3 / 16 * rho)
    return release_mean(ledger, rows, center, scale, radius, 9 / 16 * rho)


def _plan_radius(ledger: Ledger, lengths: Array, total: float, d: int, rho: float) -> float:
    n, steps = len(lengths), _PLAN_STEPS
    over = math.sqrt(n) + math.sqrt(steps / 2 * math.log(steps / _PLAN_BETA) / rho)
    limit = math.sqrt(math.log(d) * math.log(1 / _PLAN_BETA) * total)
    share = max(0.0, 1 - over / n)
    return float(ledger.quantiles(lengths, share, 0.0, np.array([limit]), rho)[0])
