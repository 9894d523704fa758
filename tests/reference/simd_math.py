"""Exact values for the vector functions of ``cpp/core/simd/math.hpp``, from mpmath.

    python tests/reference/simd_math.py > tests/reference/simd_math.txt

A line is a function, its one or two arguments, and the value as the sum of two doubles (to 106
bits), all in hexadecimal. ``tests/cpp/test_simd.cpp`` compares every target with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import mpmath
import numpy as np

EACH = 150  # random arguments of each function

mpmath.mp.dps = 60


def signed(rng: np.random.Generator, low: float, high: float) -> float:
    """Uniform in the logarithm, of either sign."""
    return float(rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(math.log10(low), math.log10(high)))


def arguments(name: str, rng: np.random.Generator) -> tuple[float, float]:
    if name == "log_one_plus":
        m = signed(rng, 1e-18, 1e300)
        return (m if m > -1 else 10 ** rng.uniform(-15, 0) - 1), 0.0
    if name == "exponential":
        return signed(rng, 1e-12, 700), 0.0
    if name in ("sine", "cosine"):
        return signed(rng, 1e-12, 6e6), 0.0
    if rng.random() < 0.5:  # near the angles where the reduction changes
        x = signed(rng, 1e-3, 1e3)
        return x, x * math.tan(math.pi / 16 * int(rng.integers(-8, 9))) * (1 + 1e-9 * rng.normal())
    return signed(rng, 1e-150, 1e150), signed(rng, 1e-150, 1e150)


EXACT: dict[str, Callable[[mpmath.mpf, mpmath.mpf], mpmath.mpf]] = {
    "log_one_plus": lambda m, _: mpmath.log1p(m),
    "exponential": lambda x, _: mpmath.exp(x),
    "sine": lambda x, _: mpmath.sin(x),
    "cosine": lambda x, _: mpmath.cos(x),
    "argument": lambda x, y: mpmath.atan2(y, x),
    "length": lambda x, y: mpmath.sqrt(x * x + y * y),
}


def lines() -> Iterator[str]:
    for name, exact in EXACT.items():
        rng = np.random.default_rng(len(name))
        for _ in range(EACH):
            x, y = arguments(name, rng)
            value = exact(mpmath.mpf(x), mpmath.mpf(y))
            high = float(value)
            low = float(value - mpmath.mpf(high))
            yield " ".join([name, *(v.hex() for v in (x, y, high, low))])


if __name__ == "__main__":
    print("\n".join(lines()))
