"""The projection: its speed beside BLAS, its floor beside that of a Renyi conversion.

    python bench/bench_projection.py speed
    python bench/bench_projection.py floor

write ``bench/results/FAMILY/projection.md`` and ``bench/results/projection_floor.md``. Speed: one
thread, rows in memory; clip, draw of Phi, product and exact sum, beside BLAS alone multiplying a
Phi that is there already, in the same run. Floor: w^2 per R^2 at (1, 1e-6).
"""

from __future__ import annotations

import math
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy

from ellipsum.guarantee import Neighbors
from ellipsum.records import PrivateProjection
from ellipsum.records.projection_floor import largest_ratio
from measure import best, machine
from report import RESULTS, family_folder, write

SHAPES = ((256, 32), (256, 64), (256, 128), (256, 256), (256, 512), (1000, 128), (1000, 512))
ROWS = 1 << 14


def speed() -> None:
    table, rng = [], np.random.default_rng(0)
    for m, d in SHAPES:
        rows = rng.normal(size=(ROWS, d))
        phi, out = rng.normal(size=(ROWS, m)), np.empty((m, d))
        mechanism = PrivateProjection(
            rows=m, radius=0.9 * math.sqrt(d), d=d, epsilon=1.0, delta=1e-6, threads=1
        )
        blas, ours = best(
            lambda: np.matmul(phi.T, rows, out=out),  # noqa: B023
            lambda: mechanism.add(rows),  # noqa: B023
        )
        found = {"BLAS, s": blas, "ours, s": ours, "of BLAS": blas / ours}
        table.append({"m": m, "d": d, **found, "Mrows/s": ROWS / ours / 1e6})
        print(table[-1], flush=True)
    head = (
        "The projection beside BLAS\n\n`python bench/bench_projection.py speed`: one thread, "
        f"{ROWS:,} rows in memory, least CPU seconds. {machine()}."
    )
    write(family_folder() / "projection.md", head, {"CPU seconds": table})


def renyi_ratio(rows: int, epsilon: float, delta: float) -> float:
    """The largest r^2 of add-remove by Renyi divergences: both directions, the best order, and the
    conversion of Canonne, Kamath & Steinke (2020), Proposition 12."""

    def converted(log_order: float, r2: float, sign: int) -> float:
        order = 1 + math.exp(log_order)
        t = order - 1 if sign > 0 else -order
        if t * r2 >= 1:
            return math.inf
        divergence = -0.5 * rows * (math.log1p(-t * r2) + t * math.log1p(r2)) / (order - 1)
        return divergence + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)

    def least(r2: float, sign: int) -> float:
        grid = np.linspace(-3, 9, 600)
        at = grid[np.argmin([converted(x, r2, sign) for x in grid])]
        around = {"bounds": (at - 0.05, at + 0.05), "method": "bounded"}
        return float(scipy.optimize.minimize_scalar(converted, args=(r2, sign), **around).fun)

    def excess(log_r2: float) -> float:
        return max(least(math.exp(log_r2), sign) for sign in (1, -1)) - epsilon

    return math.exp(scipy.optimize.brentq(excess, -14, 0, xtol=1e-9))


def floor() -> None:
    table = []
    for m in (20, 100, 300, 1000, 3000, 10_000):
        one = 1 / largest_ratio(m, 1.0, 1e-6, Neighbors.ADD_REMOVE)
        other = 1 / largest_ratio(m, 1.0, 1e-6, Neighbors.REPLACE)
        renyi = 1 / renyi_ratio(m, 1.0, 1e-6)
        exact = {"m": m, "add-remove": f"{one:.3f}", "replace": f"{other:.3f}"}
        table.append(exact | {"by Renyi": f"{renyi:.3f}", "more": f"{renyi / one - 1:.1%}"})
        assert m < 100 or one < 0.95 * renyi
    head = (
        "The floor of a projection\n\n`python bench/bench_projection.py floor`: w^2 per R^2 that m "
        "rows want at (1, 1e-6), from the exact pair, and for add-remove by Renyi divergences at "
        "the best order (Canonne, Kamath & Steinke 2020)."
    )
    write(RESULTS / "projection_floor.md", head, {"w^2 / R^2": table})


if __name__ == "__main__":
    {"speed": speed, "floor": floor}[sys.argv[1]]()
