"""Zhou, Ligett & Wasserman (2009): what their conditions come to, by the exact pair.

    python bench/zhou_table.py

prints how many rows m a leverage h allows (Theorem 3.2), what one bit of a binary table costs
(Example 3.6, Corollary 3.7), and the truncated procedure (4.1, 4.2) beside the plain one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from ellipsum import calibrate
from ellipsum.records import GaussianPair
from zhou_example import bit_pair, truncated

EPSILON, DELTA = 1.0, 1e-6


def worst(pair: GaussianPair) -> float:
    return max(float(pair.delta(EPSILON)), float(pair.reverse.delta(EPSILON)))


def most_rows(h: float) -> int:
    """The largest m that is (1, 1e-6)-DP where no row's leverage is above h: replace."""

    def fits(m: int) -> bool:
        return worst(GaussianPair.from_leverage(h, h / (1 - h), rows=m)) <= DELTA

    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def main() -> None:
    mu = calibrate.mu(calibrate.noise_multiplier(EPSILON, DELTA))
    print("Theorem 3.2: rows at (1, 1e-6), replace, without a floor, no leverage above h")
    print(f"{'h':>8} {'m':>10} {'m h^2/mu^2':>11}")
    for h in (1e-2, 1e-3, 1e-4):
        m = most_rows(h)
        print(f"{h:8.0e} {m:10} {m * h * h / mu**2:11.3f}")
    print("\nExample 3.6: one bit of n rows of d signs; epsilon at delta = 1e-6")
    print(f"{'n':>8} {'d':>3} {'m':>7} {'epsilon':>9} {'error of Y^T Y/m':>17}")
    for n in (2000, 20_000):
        for d in (3, 10):
            for m in (200, 2000, 20_000):
                pair = bit_pair(n, d, m)
                epsilon = max(pair.epsilon(DELTA), pair.reverse.epsilon(DELTA))
                print(f"{n:8} {d:3} {m:7} {epsilon:9.4f} {np.sqrt(d * (d + 1) / m):17.3f}")
    pair = bit_pair(2000, 3, 200)
    exact = max(pair.epsilon(DELTA), pair.reverse.epsilon(DELTA))
    print("\nProcedures 4.1, 4.2: n = 2000, d = 3, m = 200, one bit")
    print(f"plain, delta = 1e-6: epsilon {exact:.3f}")
    for rejected in (0.18, 0.0006):
        _, pure = truncated(2000, 3, 200, rejected, own=False)
        print(f"a public reference, {rejected:.2%} rejected, this pair alone: epsilon {pure:.3f}")
    share, _ = truncated(2000, 3, 200, 0.18, own=True)
    print(f"the table's own reference: {share:.1e} of what is kept cannot come from the neighbour")


if __name__ == "__main__":
    main()
