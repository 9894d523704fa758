"""Reference for rounded Gaussian samples: mpmath's normal distribution at 60 digits.

It shares nothing with the package but the definition: r is right exactly where
Phi((r - 1/2)/sigma) <= U <= Phi((r + 1/2)/sigma).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mpmath import mp, mpf
from scipy.special import ndtri_exp

DIGITS = 60


def uniform(words: Sequence[int]) -> mpf:
    """The middle of the interval that the 64-bit words leave to U."""
    value = 0
    for word in words:
        value = value << 64 | int(word)
    return (mpf(value) + mpf(1) / 2) / mpf(2) ** (64 * len(words))


@lru_cache(maxsize=1 << 16)
def tail(t: mpf) -> mpf:
    """P(Z > t), relatively right for t > 0."""
    return mp.erfc(t / mp.sqrt(2)) / 2


def is_nearest(sample: int, sigma: float, words: Sequence[int]) -> bool:
    """Whether ``sample`` is the nearest integer to sigma * Phi^-1(U)."""
    with mp.workdps(DIGITS):
        u = uniform(words)
        p, r = (1 - u, sample) if u > mpf(1) / 2 else (u, -sample)
        half = mpf(1) / 2
        return tail((r + half) / sigma) <= p <= tail((r - half) / sigma)


def quantile(words: Sequence[int]) -> mpf:
    """Phi^-1(U) by Newton's method on the logarithm of the tail, from SciPy's double."""
    with mp.workdps(DIGITS):
        u = uniform(words)
        p = min(u, 1 - u)
        z = -mpf(float(ndtri_exp(float(mp.log(p)))))
        for _ in range(3):  # from 45 bits to 200
            q = mp.erfc(z / mp.sqrt(2)) / 2
            z += mp.log(q / p) * q / mp.npdf(z)
        return z if u > mpf(1) / 2 else -z
