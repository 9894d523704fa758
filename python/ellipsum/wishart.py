"""The Wishart mechanism: how much noise of that kind a second-moment matrix needs.

W ~ W_d(k, s^2 I) is added to A = sum x x^T with ||x|| <= R. Neighbours differ by one x x^T, and the
ratio of the densities of A + W and A + x x^T + W at Y depends on V = Y - A through
T = r^2 / (x^T V^-1 x) alone, r = ||x||/s: the pair is exactly T ~ chi^2_nu against
T ~ r^2 + chi^2_nu, nu = k - d + 1 (Sherman & Morrison; claims estimates-2, estimates-3). So

    delta = max( sf(a) - e^eps sf(a + r^2),  cdf(b) - e^eps cdf(b - r^2) ),  of chi^2_nu,

where the likelihood ratio crosses e^eps: it is exact, and it grows with r (the density is
log-concave for nu >= 2), so the worst x has norm R.

Jiang, Xie & Zhang 2016 state (eps, 0) for k = d + 1, s^2 = 3 R^2/(2 eps). That cannot be: T < r^2
has probability zero where x is there, and chi^2_nu.cdf(r^2) > 0 where it is not.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["best_wishart", "delta"]

Array = NDArray[np.float64]

_NODES = 240  # of the quadrature: with the error below
#: The quadrature was within 2e-12 of 40 digits (nu 3 to 1e5, delta 1 to 1e-290).
_QUADRATURE_SLACK = 1 + 1e-10
_SMALLEST = math.ulp(0.0)
_DOF_GRID = 60  # candidates of nu, geometric: the total noise is flat near the best


def delta(epsilon: float, nu: float, r2: float) -> float:
    """The exact delta(epsilon) of T + r^2 against T ~ chi^2_nu, both directions, nu > 2.

    Each direction is one integral of a positive function, which loses no digits where delta
    is small: a difference of two tails is noise below 1e-17.
    """
    return min(1.0, max(_upper(epsilon, nu, r2), _lower(epsilon, nu, r2)) * _QUADRATURE_SLACK)


def _upper(epsilon: float, nu: float, r2: float) -> float:
    """int over t > a of f(t) (1 - e^eps f(t + r^2)/f(t)), where the bracket is positive."""
    power = nu / 2 - 1
    if r2 / 2 <= epsilon:
        return 0.0
    a = r2 / math.expm1(min((r2 / 2 - epsilon) / power, 700.0))  # beyond, the mass below it is 0
    t, weight = _nodes(a, max(a, 2 * power) + 180 + 20 * math.sqrt(max(a, 2 * power)))
    gain = -np.expm1(epsilon - r2 / 2 + power * np.log1p(r2 / t))
    return float(weight @ (np.exp(_log_density(t, nu)) * gain))


def _lower(epsilon: float, nu: float, r2: float) -> float:
    """int over t < b of f(t) (1 - e^eps f(t - r^2)/f(t)), where f(t - r^2) = 0 below r^2."""
    power = nu / 2 - 1
    b = -r2 / math.expm1(-(epsilon + r2 / 2) / power)
    top = min(b, 2 * power)
    low = max(0.0, top - 20 * math.sqrt(top))
    total = 0.0
    if low < r2:  # b > r^2
        t, weight = _nodes(low, r2)
        total += float(weight @ np.exp(_log_density(t, nu)))
        low = r2
    t, weight = _nodes(low, b)
    with np.errstate(divide="ignore"):  # at r^2 the gain is 1
        gain = -np.expm1(epsilon + r2 / 2 + power * np.log1p(-r2 / t))
    return total + float(weight @ (np.exp(_log_density(t, nu)) * gain))


def _log_density(t: Array, nu: float) -> Array:
    constant = nu / 2 * math.log(2) + math.lgamma(nu / 2)
    return np.asarray((nu / 2 - 1) * np.log(t) - t / 2 - constant)


@lru_cache(maxsize=1)
def _gauss() -> tuple[Array, Array]:
    """Of Gauss and Legendre: an eigenvalue problem, which import does not wait for."""
    return np.polynomial.legendre.leggauss(_NODES)


def _nodes(low: float, high: float) -> tuple[Array, Array]:
    """Gauss-Legendre on an interval beyond whose ends the density is e^-45 of its largest, in the
    root of the distance from its lower end: at 0 and at r^2 an integrand is a power of that root
    times what is smooth, for whole nu."""
    half = 0.5 * math.sqrt(high - low)
    x, weight = _gauss()
    root = half * (1 + x)
    return low + root**2, 2 * half * weight * root


def best_wishart(d: int, epsilon: float, target: float) -> tuple[int, float]:
    """(k, r^2): the degrees of freedom and R^2/s^2 with the least trace noise k s^2 = k/r^2 R^2
    that are (epsilon, target)-DP for one row more or less."""
    best: tuple[float, int, float] | None = None
    for step in range(_DOF_GRID):
        nu = max(4, math.ceil(4 * (1 + 0.15) ** step))
        r2 = _largest_shift(epsilon, nu, target)
        cost = (nu + d - 1) / r2
        if best is None or cost < best[0]:
            best = (cost, nu + d - 1, r2)
    assert best is not None
    return best[1], best[2]


def _largest_shift(epsilon: float, nu: float, target: float) -> float:
    """The largest r^2 with delta <= target, a hair below the root."""

    def excess(log_r2: float) -> float:
        return math.log(max(delta(epsilon, nu, math.exp(log_r2)), _SMALLEST)) - math.log(target)

    low = 0.0
    while excess(low) > 0:
        low -= 2.0
    high = low + 2.0
    while excess(high) <= 0:
        low, high = high, high + 2.0
    root = float(scipy.optimize.brentq(excess, low, high, rtol=1e-13))
    return math.exp(root) * (1 - 1e-9)
