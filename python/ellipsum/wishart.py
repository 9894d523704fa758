"""The Wishart mechanism: how much noise of that kind a second-moment matrix needs.

W ~ W_d(k, s^2 I) is added to A = sum x x^T with ||x|| <= R. Neighbours differ by one x x^T, and the
ratio of the densities of A + W and A + x x^T + W at Y depends on V = Y - A through
T = r^2 / (x^T V^-1 x) alone, r = ||x||/s: the pair is exactly T ~ chi^2_nu against
T ~ r^2 + chi^2_nu, nu = k - d + 1 (Sherman & Morrison; docs/guarantees/estimates.md). So

    delta = max( sf(a) - e^eps sf(a + r^2),  cdf(b) - e^eps cdf(b - r^2) ),  of chi^2_nu,

where the likelihood ratio crosses e^eps: it is exact, and it grows with r (the density is
log-concave for nu >= 2), so the worst x has norm R.

Jiang, Xie & Zhang 2016 state (eps, 0) for k = d + 1, s^2 = 3 R^2/(2 eps). That cannot be: T < r^2
has probability zero where x is there, and chi^2_nu.cdf(r^2) > 0 where it is not.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.stats import chi2

__all__ = ["best_wishart", "delta"]

_DOF_GRID = 60  # candidates of nu, geometric: the total noise is flat near the best


def delta(epsilon: float, nu: float, r2: float) -> float:
    """The exact delta(epsilon) of T + r^2 against T ~ chi^2_nu, both directions, nu > 2."""
    power = nu / 2 - 1
    with_x, without = 0.0, 0.0
    if r2 / 2 > epsilon:
        a = r2 / math.expm1((r2 / 2 - epsilon) / power)
        with_x = float(chi2.sf(a, nu)) - math.exp(epsilon) * float(chi2.sf(a + r2, nu))
    b = -r2 / math.expm1(-(epsilon + r2 / 2) / power)
    without = float(chi2.cdf(b, nu)) - math.exp(epsilon) * float(chi2.cdf(b - r2, nu))
    return max(with_x, without, 0.0)


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
    high = 1e-12
    while delta(epsilon, nu, high) <= target:
        high *= 2
    root = brentq(lambda r2: delta(epsilon, nu, r2) - target, high / 2, high, rtol=1e-12)
    return float(root) * (1 - 1e-9)
