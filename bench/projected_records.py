"""PrivUnitG after a random projection to k dimensions: what it costs, what it saves.

    python bench/projected_records.py

ProjUnit (Asi, Feldman, Nelson, Nguyen & Talwar 2023): with W the first k rows of a public random
rotation, u = Wv/|Wv| is released by PrivUnitG in k dimensions as U, and W'U / E|Wv| is unbiased
for v. |Wv|^2 has the law Beta(k/2, (d - k)/2). Squared error of one record, exact, as a multiple of
that of PrivUnitG in d dimensions at the same epsilon; and simulated, once.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from ellipsum.records.priv_unit import UnitLaw, best_law

EPSILONS = (1.0, 4.0, 8.0, 16.0)
SIZES = ((1000, 100), (10_000, 100), (10_000, 1000), (65_536, 100), (65_536, 1000))


def mean_length(d: int, k: int) -> float:
    """E|Wv|."""
    return math.exp(gammaln((k + 1) / 2) - gammaln(k / 2) + gammaln(d / 2) - gammaln((d + 1) / 2))


def squared_error(law: UnitLaw) -> float:
    return law.variance * law.d


def projected_error(d: int, k: int, epsilon: float) -> float:
    """E|W'U/a - v|^2 = E|U|^2 / a^2 - 1, a = E|Wv|; U here is unbiased for u."""
    return (squared_error(best_law(k, epsilon)) + 1) / mean_length(d, k) ** 2 - 1


def drawn_error(d: int, k: int, epsilon: float, n: int, rng: np.random.Generator) -> float:
    """The same from n releases of one v, each with a projection of its own."""
    law, errors = best_law(k, epsilon), []
    v = np.zeros(d)
    v[0] = 1
    for _ in range(n):
        frame = np.linalg.qr(rng.normal(size=(d, k)))[0].T
        u = frame @ v / np.linalg.norm(frame @ v)
        above = rng.random() < law.probability
        while True:
            x = rng.normal(size=k) / math.sqrt(k)
            if (x @ u >= law.threshold / math.sqrt(k)) == above:
                break
        errors.append(np.sum((frame.T @ x / law.scale / mean_length(d, k) - v) ** 2))
    return float(np.mean(errors))


if __name__ == "__main__":
    print("d, k" + "".join(f"  epsilon {e:g}" for e in EPSILONS))
    for d, k in SIZES:
        ratios = [projected_error(d, k, e) / squared_error(best_law(d, e)) for e in EPSILONS]
        print(f"{d}, {k}" + "".join(f"  {r:.4f}" for r in ratios))
    found = drawn_error(200, 20, 2.0, 4000, np.random.default_rng(0))
    exact = projected_error(200, 20, 2.0)
    print(f"d = 200, k = 20, epsilon = 2: drawn over exact {found / exact:.3f}")
