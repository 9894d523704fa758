"""The definition of a rounded Gaussian sample, in exact integers: what decides in the end.

Sample = nearest integer to sigma * z, where Phi(z) = U and U has the binary expansion
word 0, word 1, ... (64 bits each). An integer r is the sample exactly where
Phi((r - 1/2)/sigma) <= U <= Phi((r + 1/2)/sigma); both sides are compared in fixed point with a
proven error, with more words and more digits until they decide (claims noise-1, noise-4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

__all__ = ["nearest", "tail"]

WORD = 64  # bits of a word of the key stream
GUARD = 64  # bits of the comparison beyond those of U
MOST_WORDS = 11  # 704 bits: |z| < 31.2 where they decide; they do but for a chance of 2^-640


def nearest(sigma: float, word: Callable[[int], int]) -> int:
    """The sample for the words ``word(0)``, ``word(1)``, ... of its bits.

    Parameters
    ----------
    sigma : float
        Standard deviation, in integer steps; taken as the exact binary fraction that it is.
    word : callable
        ``word(k)`` is the k-th 64-bit word of U, asked for in the order of k.

    Raises
    ------
    RuntimeError
        If 704 bits do not decide: a chance below 2^-640, so the key stream is at fault.
    """
    step = Fraction(sigma)
    u = 0
    for count in range(1, MOST_WORDS + 1):
        u = u << WORD | word(count - 1)
        sample = _decide(step, u, WORD * count)
        if sample is not None:
            return sample
    raise RuntimeError("the key stream is degenerate: 704 bits do not decide a noise sample")


def _decide(sigma: Fraction, u: int, bits: int) -> int | None:
    """The sample common to all U in [u, u + 1]/2^bits, if it can be shown that there is one."""
    positive = u >> (bits - 1)
    m = (1 << bits) - 1 - u if positive else u  # tail probability in [m, m + 1]/2^bits
    if m == 0:
        return None
    low, high = m << GUARD, (m + 1) << GUARD
    k = math.floor(sigma * _quantile(Fraction(2 * m + 1, 2 << bits), bits))

    def boundary(j: int) -> int:
        return tail((j + Fraction(1, 2)) / sigma, bits + GUARD)

    middle = boundary(k)
    if high < middle and boundary(k + 1) < low:
        r = k + 1
    elif middle < low and (k == 0 or high < boundary(k - 1)):
        r = k
    else:
        return None
    return r if positive else -r


def _quantile(p: Fraction, bits: int) -> Fraction:
    """z with tail(z) = p to some 100 bits: tells `_decide` which boundaries to try.

    One Newton step with its curvature, from a double that is right to 2^-45.
    """
    start = Fraction(max(0.0, -NormalDist().inv_cdf(float(p))))
    excess = Fraction(tail(start, bits + GUARD), 1 << (bits + GUARD)) - p
    step = excess / Fraction(NormalDist().pdf(float(start)))
    return max(Fraction(0), start + step + start * step * step / 2)


def tail(t: Fraction, bits: int) -> int:
    """P(Z > t) for t >= 0 in units of 2^-bits, less than one unit off.

    1/2 - sum (-1)^n t y^n / (n! (2n+1)) / sqrt(2 pi) with y = t^2/2. A unit of error in a term
    grows at most e^y-fold in later ones, and a unit in y costs at most e^y in each: N terms are
    right within N (e^y + 3) e^y units, which `slack` bits cover (N < 2^16).
    """
    if 7 * t * t > 10 * bits:  # P(Z > t) < e^-y < 2^-(0.7 t^2), less than a unit
        return 0
    slack = math.ceil(2 * 1.4427 * float(t * t) / 2) + 32
    width = bits + slack
    fixed = (t.numerator << width) // t.denominator
    y = fixed * fixed >> (width + 1)
    term, total, n = fixed, 0, 0
    while term or n << width < 2 * y:
        total += term // (2 * n + 1) if n % 2 == 0 else -(term // (2 * n + 1))
        n += 1
        term = (term * y >> width) // n
    central = (total << width) // _root_two_pi(width)
    return ((1 << (width - 1)) - central) >> slack


@lru_cache(maxsize=64)
def _root_two_pi(width: int) -> int:
    """sqrt(2 pi) in units of 2^-width, within one unit."""
    extra = 16
    return math.isqrt(2 * _pi(width + extra) << (width - extra))


def _pi(width: int) -> int:
    """pi in units of 2^-width, within 2^10 units: Machin's formula."""
    return 4 * (4 * _arctan_inverse(5, width) - _arctan_inverse(239, width))


def _arctan_inverse(x: int, width: int) -> int:
    power = (1 << width) // x
    total, n = power, 1
    while power:
        power //= -x * x
        n += 2
        total += power // n
    return total
