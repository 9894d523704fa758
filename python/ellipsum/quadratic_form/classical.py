"""Classical ways to the generalized chi-square distribution, for comparison.

Each function takes a :class:`~ellipsum.QuadraticForm` and one q and returns
``(cdf, sf, error)``; ``error`` is a bound or an estimate of the *absolute* error, as its
docstring says, or NaN where the method has none. ``QuadraticForm.cdf`` itself needs none of
them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import scipy

from .protocols import WeightedSum

__all__ = ["METHODS", "davies", "imhof", "moment", "ruben", "saddlepoint"]

Tails = tuple[float, float, float]
_TOLERANCE = 1e-12  # absolute error that Davies' and Ruben's sums stop at
_MOST_TERMS = 10_000  # of Ruben's series, whose cost is quadratic in them
_MOST_NODES = 2_000_000  # of Davies' sum, d complex factors each


def _active(form: WeightedSum) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    used = form.weights != 0
    return form.weights[used], form.dof[used], form.noncentrality[used]


def ruben(form: WeightedSum, q: float) -> Tails:
    """Ruben's mixture of central chi-squares (1962), for positive weights and no normal term.

    **Guarantees**: the truncation error is bounded rigorously: with beta = min w all mixture
    weights are positive and sum to 1, so what is left out lies between 0 and the missing
    weight times the next distribution function. The bound is the third value.
    """
    w, k, nc = _active(form)
    if not (w.size and (w > 0).all() and form.normal_sd == 0):
        raise ValueError("method 'ruben' needs positive weights and no normal term")
    x = q - form.offset
    if x <= 0:
        return 0.0, 1.0, 0.0
    beta = float(w.min())
    gamma = 1 - beta / w
    log_first = float(np.sum(0.5 * k * np.log(beta / w)) - 0.5 * np.sum(nc))
    dof, power = float(k.sum()), np.ones_like(gamma)
    c, g = np.zeros(_MOST_TERMS), np.zeros(_MOST_TERMS)  # c relative to exp(log_first)
    c[0] = 1
    first = math.exp(log_first)
    total, value, left = first, first * scipy.special.chdtr(dof, x / beta), 1.0
    for j in range(1, _MOST_TERMS):
        g[j - 1] = 0.5 * float(np.sum(power * (k * gamma + j * nc * beta / w)))
        power = power * gamma
        c[j] = float(np.dot(g[:j], c[j - 1 :: -1])) / j
        if c[j] > 1e250:  # the series cannot be summed in doubles
            break
        total += first * c[j]
        value += first * c[j] * scipy.special.chdtr(dof + 2 * j, x / beta)
        left = max(1 - total, 0.0) * scipy.special.chdtr(dof + 2 * j + 2, x / beta)
        if left <= 1e-16 * value:
            break
    bound = left + 1e-14 * value + (1.0 if first == 0 else 0.0)
    return value, 1 - value, bound


def _log_cf(form: WeightedSum, u: np.ndarray) -> np.ndarray:
    """log E exp(iu(Q - m)) at every u."""
    w, k, nc = _active(form)
    out = -0.5 * (form.normal_sd * u) ** 2 + 0j
    for wj, kj, nj in zip(w, k, nc, strict=True):
        a = 1 - 2j * wj * u
        out = out - 0.5 * kj * np.log(a) + 0.5 * nj * (1 / a - 1)
    return out


def _reach(form: WeightedSum, q: float) -> float:
    """A distance beyond which, on either side of q, less than 1e-14 lies."""
    low, high = float(form.ppf(1e-14)), float(form.isf(1e-14))
    return max(high - q, q - low, high - low)


def davies(form: WeightedSum, q: float) -> Tails:
    """The trapezoid rule on the characteristic function (Davies 1973, 1980).

    **Guarantees**: an absolute error near 1e-12 where two million nodes reach the tail of the
    characteristic function, else NaN; no relative accuracy in the tails.
    """
    step = 2 * math.pi / (2 * _reach(form, q))
    total, x = 0.0, q - form.offset
    for first in range(0, _MOST_NODES, 4096):
        u = (np.arange(first, first + 4096) + 0.5) * step
        log_cf = _log_cf(form, u)
        total += float(np.sum(np.exp(log_cf.real) * np.sin(log_cf.imag - u * x) / u)) * step
        if math.exp(log_cf.real[-1]) < _TOLERANCE * 1e-2:
            break
    else:
        return 0.5 - total / math.pi, 0.5 + total / math.pi, math.nan
    return 0.5 - total / math.pi, 0.5 + total / math.pi, _TOLERANCE


def imhof(form: WeightedSum, q: float) -> Tails:
    """Adaptive quadrature of Imhof's integral (1961).

    **Guarantees**: none; the third value is the quadrature's own estimate of the absolute
    error, which the oscillation can fool.
    """
    x = q - form.offset

    def integrand(u: float) -> float:
        log_cf = _log_cf(form, np.array([u]))[0]
        return math.exp(log_cf.real) * math.sin(log_cf.imag - u * x) / u

    top = 1.0 / form.std()
    while math.exp(_log_cf(form, np.array([top]))[0].real) > 1e-13 and top < 1e6 / form.std():
        top *= 2
    edges = np.concatenate([[0.0], np.geomspace(1e-3, 1, 12) * top])
    parts = [
        scipy.integrate.quad(integrand, a, b, epsabs=1e-13, epsrel=1e-10, limit=500, full_output=1)[
            :2
        ]
        for a, b in itertools.pairwise(edges)
    ]
    total = math.fsum(p[0] for p in parts) / math.pi
    return 0.5 - total, 0.5 + total, math.fsum(p[1] for p in parts)


def saddlepoint(form: WeightedSum, q: float) -> Tails:
    """Lugannani & Rice's approximation (1980; Kuonen 1999): errors of a per cent in most tails.

    **Guarantees**: none, hence NaN.
    """
    w, k, nc = _active(form)
    x, s2 = q - form.offset, form.normal_sd**2

    def slopes(t: float) -> tuple[float, float]:
        a = np.maximum(1 - 2 * w * t, 1e-300)  # 0 at the ends, whatever the rounding
        with np.errstate(over="ignore", invalid="ignore"):
            g, h = w / a, nc / a
            slope, bend = np.sum(g * (k + h)) + s2 * t, np.sum(2 * g * g * (k + 2 * h)) + s2
        return float(slope), float(bend)

    low, high = form.support()
    if not low < q < high:
        return float(q >= high), float(q <= low), 0.0
    upper = x > slopes(0.0)[0]  # above the mean t > 0, below it t < 0
    extreme = (w.max(initial=0.0) if upper else w.min(initial=0.0)) if w.size else 0.0
    sign = 1.0 if upper else -1.0

    def within(y: float) -> float:  # the real line into (0, end)
        return 0.5 / extreme * scipy.special.expit(y) if extreme else sign * math.exp(y)

    def miss(y: float) -> float:  # its sign is known where the slope is infinite or lost
        value = sign * (slopes(within(y))[0] - x)
        return value if math.isfinite(value) else math.copysign(1e300, y)

    t = within(scipy.optimize.brentq(miss, -700, 700))
    log_mgf = float(form.cgf(t)) - t * form.offset
    r = math.copysign(math.sqrt(max(2 * (t * x - log_mgf), 0)), t)
    u = t * math.sqrt(slopes(t)[1])
    if abs(r) < 1e-4:  # at the mean the two poles cancel
        sf = 0.5 - form.skewness() / (6 * math.sqrt(2 * math.pi))
        return 1 - sf, sf, math.nan
    density = math.exp(-0.5 * r * r) / math.sqrt(2 * math.pi)
    correction = density * (1 / u - 1 / r)
    return scipy.special.ndtr(r) - correction, scipy.special.ndtr(-r) + correction, math.nan


def moment(form: WeightedSum, q: float) -> Tails:
    """The noncentral chi-square of the same first moments (Liu, Tang & Zhang 2009).

    **Guarantees**: none, hence NaN; a body fit, wrong by orders of magnitude in the tails.
    """
    skew, kurt = form.skewness(), form.kurtosis()
    sign = -1.0 if skew < 0 else 1.0
    s1, s2 = abs(skew) / math.sqrt(8), kurt / 12
    if s1 * s1 > s2:
        a = 1 / (s1 - math.sqrt(s1 * s1 - s2))
        nc = s1 * a**3 - a * a
        dof = a * a - 2 * nc
    else:
        dof, nc = (1 / s1**2 if s1 > 0 else 1e12), 0.0
        a = math.sqrt(dof)
    z = sign * (q - form.mean()) / form.std()
    x = z * math.sqrt(2) * a + dof + nc
    matched = scipy.stats.ncx2(dof, nc) if nc > 0 else scipy.stats.chi2(dof)
    cdf, sf = float(matched.cdf(x)), float(matched.sf(x))
    return (cdf, sf, math.nan) if sign > 0 else (sf, cdf, math.nan)


METHODS: dict[str, Callable[[WeightedSum, float], Tails]] = {
    "ruben": ruben,
    "davies": davies,
    "imhof": imhof,
    "saddlepoint": saddlepoint,
    "moment": moment,
}
