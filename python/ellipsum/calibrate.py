"""How much Gaussian noise a guarantee takes, and which guarantee a noise gives.

The unit of noise is the ``noise_multiplier`` s = standard deviation / sensitivity; mu = 1/s. With
a = eps s - 1/(2s) and Mills' ratio M(x) = Phi(-x)/phi(x), the analytic Gaussian bound (Balle &
Wang 2018, Theorem 8) is

    delta(s, eps) = Phi(-a) - e^eps Phi(-a - mu) = phi(a) (M(a) - M(a + mu))
                  = phi(a) * integral over t > 0 of exp(-t^2/2 - a t) (1 - exp(-mu t)),

the last of positive terms only: it loses no digits where mu is small, as the other two do. It
falls in a (mu fixed) and grows in mu (a fixed), so that arguments rounded outward bound it.
Everything runs on logarithms (Guarantees: claim calibration-1).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import scipy

from . import _validate
from ._validate import nonnegative, one_of, open_unit, positive

if TYPE_CHECKING:
    from dp_accounting import DpEvent, NeighboringRelation

__all__ = ["delta", "dp_event", "dp_relation", "epsilon", "mu", "noise_multiplier", "rho"]

_UNIT_ROUNDOFF = 2.0**-53  # of a double, to nearest
#: Relative error of ``_mills_difference`` and ``_mills``, with a margin. The quadrature was
#: within 3 units of roundoff of 80 digits, erfcx within 7; M(a) - M(a + mu), where the second is
#: below 0.6 of the first, makes of these at most 4 * (7 + 2) = 36 units.
KERNEL_SLACK = 64 * _UNIT_ROUNDOFF
#: Error of log(delta) for each unit of its size: a*a, two sums, one logarithm, and the
#: logarithm that it is compared with, each within one unit of roundoff; twice that.
SUM_SLACK = 10 * _UNIT_ROUNDOFF
#: a and mu are moved outward by this much of a + mu and mu: two products, a quotient and a
#: difference stay within 2 units of roundoff of a + mu.
ARGUMENT_SLACK = 4 * _UNIT_ROUNDOFF

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
#: Beyond this |a| the tail lies under the smallest double and a plain bound will do.
_FAR = 40.0
_SMALLEST, _LARGEST = math.ulp(0.0), sys.float_info.max

# Trapezoid rule after t = exp(u - exp(-u)) (Takahasi & Mori 1974), u in [-3.5, 4.5]: its error
# is under one unit of roundoff at this step (at 1/8 it is 600 of them, at 1/24 no less).
_STEP = 1 / 12
_U = np.arange(-42, 55) * _STEP
_NODES = np.exp(_U - np.exp(-_U))
_WEIGHTS = _STEP * _NODES * (1 + np.exp(-_U))


def noise_multiplier(
    epsilon: float | None = None,
    delta: float | None = None,
    *,
    rho: float | None = None,
    mu: float | None = None,
) -> float:
    """Return the least noise multiplier that gives (epsilon, delta)-DP, rho-zCDP or mu-GDP.

    **Guarantees.** Gaussian noise of this standard deviation times the l2 sensitivity satisfies
    what was asked for: the value is never below the true one, and above it by less than 1e-12
    of it (claims calibration-2, calibration-3).

    Parameters
    ----------
    epsilon, delta : float
        Above 0, and between 0 and 1; both, or neither.
    rho : float, keyword only
        Zero-concentrated DP: above 0. The multiplier is 1/sqrt(2 rho).
    mu : float, keyword only
        Gaussian DP: above 0. The multiplier is 1/mu.

    Returns
    -------
    float
        Standard deviation of the noise / sensitivity; ``inf`` if no finite double is enough.

    Raises
    ------
    ValueError, TypeError
        If not exactly one guarantee is given, or a number is out of its range.

    Source: Balle & Wang (2018), Theorem 8; Bun & Steinke (2016), Proposition 1.6; Dong, Roth & Su
    (2022), Theorem 1.
    """
    _check_one_guarantee(epsilon=epsilon, delta=delta, rho=rho, mu=mu)
    if rho is not None:
        r = positive("rho", rho)
        return _least(math.sqrt(0.5) / math.sqrt(r), lambda s: 2 * Fraction(r) * s * s >= 1)
    if mu is not None:
        m = positive("mu", mu)
        return _least(1 / m, lambda s: Fraction(m) * s >= 1)
    return _multiplier(positive("epsilon", epsilon), open_unit("delta", delta))


@lru_cache(maxsize=256)
def _multiplier(eps: float, target: float) -> float:
    """The least one for (eps, target); a third of a millisecond of root finding."""
    tail = _far_enough(target)
    half = 0.5 * tail / eps
    high = half + math.hypot(half, math.sqrt(0.5 / eps))  # solves a(high) = tail
    enough = 1 / target  # as delta(s, 0) <= 1 / (s sqrt(2 pi))
    return _smallest_safe(lambda s: _excess(s, eps, target), min(high, enough))


def epsilon(noise_multiplier: float, delta: float) -> float:
    """Return the least epsilon for which Gaussian noise is (epsilon, delta)-DP.

    **Guarantees.** Never below the true value, and above it by less than 1e-12 of it and of mu
    (claim calibration-2).
    0.0 if no epsilon is needed, ``inf`` if no finite double is enough.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise / sensitivity, above 0.
    delta : float
        Between 0 and 1.

    Returns
    -------
    float
        At least 0.

    Source: Balle & Wang (2018), Theorem 8.
    """
    s, target = positive("noise_multiplier", noise_multiplier), open_unit("delta", delta)
    if _excess(s, 0.0, target) <= 0:
        return 0.0
    high = (_far_enough(target) + 0.5 / s) / s  # solves a = the tail's quantile
    return _smallest_safe(lambda eps: _excess(s, eps, target), high)


def delta(noise_multiplier: float, epsilon: float) -> float:
    """Return the least delta for which Gaussian noise is (epsilon, delta)-DP.

    **Guarantees.** Never below the true value (and so never 0: what is smaller than every double
    is given as the smallest), and above it by less than 1e-12 (1 + abs(a) (a + mu)) of it
    (claim calibration-2).

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise / sensitivity, above 0.
    epsilon : float
        At least 0; at 0 this is the total variation distance.

    Returns
    -------
    float
        Above 0, at most 1.

    Source: Balle & Wang (2018), Theorem 8.
    """
    s, eps = positive("noise_multiplier", noise_multiplier), nonnegative("epsilon", epsilon)
    value = math.exp(_log_delta(s, eps)) * (1 + 4 * _UNIT_ROUNDOFF)
    return min(1.0, max(_SMALLEST, math.nextafter(value, 1.0)))


def rho(noise_multiplier: float) -> float:
    """Return the least rho for which Gaussian noise is rho-zCDP: 1/(2 s^2), rounded up.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise / sensitivity, above 0.

    Returns
    -------
    float
        The least double that is not below the true value.

    Source: Bun & Steinke (2016), Proposition 1.6.
    """
    s = positive("noise_multiplier", noise_multiplier)
    return _least(0.5 / s / s, lambda r: 2 * r * Fraction(s) ** 2 >= 1)


def mu(noise_multiplier: float) -> float:
    """Return the least mu for which Gaussian noise is mu-GDP: 1/s, rounded up.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise / sensitivity, above 0.

    Returns
    -------
    float
        The least double that is not below the true value.

    Source: Dong, Roth & Su (2022), Theorem 1.
    """
    s = positive("noise_multiplier", noise_multiplier)
    return _least(1 / s, lambda m: m * Fraction(s) >= 1)


def dp_event(noise_multiplier: float, count: int = 1) -> DpEvent:
    """Return the event that tells Google's ``dp-accounting`` what was released.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise / sensitivity, above 0.
    count : int
        How many releases of this noise multiplier.

    Returns
    -------
    dp_accounting.DpEvent
        A ``GaussianDpEvent``; for more than one, a ``SelfComposedDpEvent`` of it. Set the
        accountant that takes it to the relation of :func:`dp_relation`.

    Raises
    ------
    ImportError
        If dp-accounting is not installed.
    """
    s = positive("noise_multiplier", noise_multiplier)
    releases = _validate.whole("count", count, least=1)
    try:
        from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    except ImportError as error:
        raise ImportError("dp_event needs dp-accounting: pip install dp-accounting") from error
    event = GaussianDpEvent(s)
    return event if releases == 1 else SelfComposedDpEvent(event, releases)


def dp_relation(neighbors: str) -> NeighboringRelation:
    """Return the relation that an accountant of ``dp-accounting`` must be set to.

    ``ADD_OR_REMOVE_ONE`` for ``"add-remove"``, and for ``"replace"`` ``REPLACE_SPECIAL``: not
    ``REPLACE_ONE``, under which the privacy loss accountant takes a noise multiplier as relative
    to the norm of one record and doubles the sensitivity (epsilon 2.12 where it is 1). Ours are
    relative to the sensitivity, which has the factor of its relation in it. (Twice the
    multiplier under ``REPLACE_ONE`` is no way out: the Renyi accountant does not double.) One
    accountant holds releases of one relation only.

    Parameters
    ----------
    neighbors : ``"replace"`` or ``"add-remove"``

    Returns
    -------
    dp_accounting.NeighboringRelation

    Raises
    ------
    ImportError
        If dp-accounting is not installed.
    """
    one_of("neighbors", neighbors, ("replace", "add-remove"))
    try:
        from dp_accounting import NeighboringRelation
    except ImportError as error:
        raise ImportError("dp_relation needs dp-accounting: pip install dp-accounting") from error
    if neighbors == "replace":
        return NeighboringRelation.REPLACE_SPECIAL
    return NeighboringRelation.ADD_OR_REMOVE_ONE


def _check_one_guarantee(**given: float | None) -> None:
    names = [name for name, value in given.items() if value is not None]
    if names not in (["epsilon", "delta"], ["rho"], ["mu"]):
        what = ", ".join(names) or "none"
        raise ValueError(
            f"give exactly one guarantee: epsilon and delta together, or rho, or mu; got {what}"
        )


def _far_enough(target: float) -> float:
    """An a with Phi(-a) <= target, as Phi(-a) <= exp(-a^2/2)/2 for a >= 0."""
    return math.sqrt(max(0.0, -2 * math.log(2 * target)))


def _excess(s: float, eps: float, target: float) -> float:
    """Not above 0 only where delta(s, eps) <= target. Above 1/2 it compares the complements,
    which keep their digits there (and 1 - target is exact)."""
    if target > 0.5:
        return math.log(1 - target) - _log_complement(*_outward(s, eps))
    return _log_delta(s, eps) - math.log(target)


def _log_delta(s: float, eps: float) -> float:
    """An upper bound of log delta(s, eps)."""
    a, m = _outward(s, eps)
    if a > _FAR:
        return -0.5 * a * a
    if a < -1:  # delta > 0.68: the complement holds the digits
        return math.log1p(-math.exp(_log_complement(a, m)) * (1 - 4 * _UNIT_ROUNDOFF))
    value = -0.5 * a * a - _LOG_SQRT_2PI + math.log(_mills_difference(a, m))
    return value + KERNEL_SLACK + SUM_SLACK * abs(value)


def _log_complement(a: float, m: float) -> float:
    """A lower bound of log(1 - delta) = log(Phi(a) + phi(a) M(a + m)), tight for a < 0."""
    if a >= 0:
        return -math.log(2) * (1 + SUM_SLACK)  # Phi(a) >= 1/2
    if a < -_FAR:
        return -a * a  # Phi(a) >= exp(-a^2) for a <= -3
    value = -0.5 * a * a - _LOG_SQRT_2PI + math.log(_mills(-a) + _mills(a + m))
    return value - KERNEL_SLACK - SUM_SLACK * abs(value)


def _outward(s: float, eps: float) -> tuple[float, float]:
    """a not above, and mu not below, their true values: delta only grows by it."""
    noise, half = eps * s, 0.5 / s
    return noise - half - ARGUMENT_SLACK * (noise + half), 2 * half * (1 + ARGUMENT_SLACK)


def _mills(x: float) -> float:
    """M(x) = Phi(-x)/phi(x)."""
    return math.sqrt(math.pi / 2) * float(scipy.special.erfcx(x / math.sqrt(2)))


def _mills_difference(a: float, m: float) -> float:
    """M(a) - M(a + m) for a >= -1, to ``KERNEL_SLACK``."""
    unit = 1 + abs(a)  # 1/unit is the length on which the integrand falls
    if m > unit:
        return _mills(a) - _mills(a + m)
    t = _NODES / unit
    return float(np.sum(_WEIGHTS * np.exp(-t * (t / 2 + a)) * -np.expm1(-m * t))) / unit


def _smallest_safe(excess: Callable[[float], float], high: float) -> float:
    """The least x with excess(x) <= 0, to rounding and above it; ``high`` is about enough."""
    high = min(high, _LARGEST)
    while excess(high) > 0:
        if high == _LARGEST:
            return math.inf
        high = min(2 * high, _LARGEST)
    factor = 2.0
    while excess(low := high / factor) <= 0:
        high, factor = low, min(factor * factor, 2.0**64)
    x = float(
        scipy.optimize.brentq(
            _bounded(excess), low, high, xtol=max(low * 2.0**-53, _SMALLEST), rtol=2.0**-50
        )
    )
    step = 2.0**-52
    while excess(x) > 0:
        x, step = x * (1 + step), 2 * step
    return x


def _bounded(excess: Callable[[float], float]) -> Callable[[float], float]:
    """The same sign, and finite: brentq interpolates between the values."""
    return lambda x: min(max(excess(x), -_LARGEST / 4), _LARGEST / 4)


def _least(guess: float, enough: Callable[[Fraction], bool]) -> float:
    """The least double above 0 that is ``enough`` (exactly), from a guess within some ulps."""
    if math.isinf(guess):
        return guess
    while guess > 0 and enough(Fraction(guess)):
        guess = math.nextafter(guess, 0.0)
    while not enough(Fraction(guess)):
        guess = math.nextafter(guess, math.inf)
        if math.isinf(guess):
            break
    return guess
