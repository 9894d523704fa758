"""Zhou, Ligett & Wasserman (2009): what their conditions come to, by the exact pair.

    python bench/zhou_table.py

writes ``bench/results/zhou_table.md``: how many rows m a leverage h allows (Theorem 3.2), what one
bit of a binary table costs (Example 3.6, Corollary 3.7), and the truncated procedure (4.1, 4.2)
beside the plain one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from ellipsum import calibrate
from ellipsum.records import GaussianPair
from report import RESULTS, Table, write
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


def rows_allowed() -> Table:
    mu = calibrate.mu(calibrate.noise_multiplier(EPSILON, DELTA))
    found = {h: most_rows(h) for h in (1e-2, 1e-3, 1e-4)}
    return [
        {"h": f"{h:.0e}", "m": m, "m h^2/mu^2": f"{m * h * h / mu**2:.3f}"}
        for h, m in found.items()
    ]


def one_bit() -> Table:
    table: Table = []
    for n in (2000, 20_000):
        for d in (3, 10):
            for m in (200, 2000, 20_000):
                pair = bit_pair(n, d, m)
                epsilon = max(pair.epsilon(DELTA), pair.reverse.epsilon(DELTA))
                error = np.sqrt(d * (d + 1) / m)
                row = {"n": n, "d": d, "m": m, "epsilon": f"{epsilon:.4f}"}
                table.append(row | {"error of Y^T Y/m": f"{error:.3f}"})
    return table


def procedures() -> Table:
    pair = bit_pair(2000, 3, 200)
    exact = max(pair.epsilon(DELTA), pair.reverse.epsilon(DELTA))
    table: Table = [{"procedure": "plain, delta = 1e-6", "what": f"epsilon {exact:.3f}"}]
    for rejected in (0.18, 0.0006):
        _, pure = truncated(2000, 3, 200, rejected, own=False)
        name = f"a public reference, {rejected:.2%} rejected, this pair alone"
        table.append({"procedure": name, "what": f"epsilon {pure:.3f}"})
    share, _ = truncated(2000, 3, 200, 0.18, own=True)
    what = f"{share:.1e} of what is kept cannot come from the neighbour"
    return [*table, {"procedure": "the table's own reference", "what": what}]


def main() -> None:
    head = (
        "Conditions of Zhou, Ligett & Wasserman\n\n`python bench/zhou_table.py`: what they come to "
        "by the exact pair."
    )
    tables = {
        "Theorem 3.2: rows at (1, 1e-6), replace, no floor, no leverage above h": rows_allowed(),
        "Example 3.6: one bit of n rows of d signs; epsilon at delta = 1e-6": one_bit(),
        "Procedures 4.1, 4.2: n = 2000, d = 3, m = 200, one bit": procedures(),
    }
    write(RESULTS / "zhou_table.md", head, tables)


if __name__ == "__main__":
    main()
