"""Twin of ``normal.cpp``: the normal distribution, far into its tails."""

from __future__ import annotations

import math

from .jit import jit

LOG2 = math.log(2.0)
LOG_SQRT_2PI = 0.91893853320467274178
_FRACTION_FROM, _FRACTION_TERMS = 5.0, 60  # Mills' ratio by its continued fraction: to 1e-28
_BODY_ABOVE, _BODY_SLOPE = -1.2, 1.25  # of log r: the first guess is linear, -du/dlog r
_NEWTON_STEPS = 6  # each squares the error


@jit
def log_normal_tail(x):
    """log P(Z > x)."""
    if x < _FRACTION_FROM:
        return math.log(0.5 * math.erfc(x * math.sqrt(0.5)))
    fraction = 0.0
    for n in range(_FRACTION_TERMS, 0, -1):
        fraction = n / (x + fraction)
    return -0.5 * x * x - math.log((x + fraction) * math.sqrt(2 * math.pi))


@jit
def normal_quantile(log_r, log_other):
    """u with P(Z > u) = r, from log r and log(1 - r)."""
    sign = -1.0 if log_r > log_other else 1.0
    log_r = min(log_r, log_other)
    square = -2 * log_r - 2 * LOG_SQRT_2PI
    u = max(_BODY_SLOPE * (-LOG2 - log_r), 0.0)
    if log_r < _BODY_ABOVE:
        u = math.sqrt(max(square - math.log(max(square, 1.0)), 0.0))
    for _ in range(_NEWTON_STEPS):
        tail = log_normal_tail(u)
        u += (tail - log_r) / math.exp(-0.5 * u * u - LOG_SQRT_2PI - tail)
    return sign * u
