"""Rows that stand for a table: drawn from the private covariance, or a projection of the rows.

    python bench/synthetic_rows.py

writes ``results/synthetic_rows.md``: Frobenius error of the rows' second moments as a share of the
table's own, mean +- standard error over 20 draws. Half of each data set of scikit-learn says
center and unit; the other half is clipped to a ball of sqrt(d)/2 of them and released once, under
``add-remove``, delta = 1e-6, as m rows. *Projection*: Y = Phi X + w N, its floor taken off
(``PrivateProjection``), as it is and without its negative eigenvalues. *Synthetic*: m rows of
N(0, S), S from ``estimate_covariance``; *exact*: the same with ``exact=True``, which needs m >= d.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ellipsum.records import synthetic_rows
from ellipsum.records.moment_fits import semidefinite
from measure import machine
from mixing_methods import clipped
from moment_methods import gaussian, projection
from moment_table import halves

RESULTS = Path(__file__).parent / "results" / "synthetic_rows.md"
DATA = ("diabetes", "breast_cancer", "digits")
EPSILONS = (1.0, 16.0)
SIZES = (1, 5, 50)  # m as a multiple of d
DRAWS = 20
WAYS = ("projection", "its eigenvalues >= 0", "synthetic", "synthetic, exact")


def errors(rows: np.ndarray, epsilon: float, m: int, rng: np.random.Generator) -> list[float]:
    """One release each way."""
    gram, radius = rows.T @ rows, np.sqrt(rows.shape[1]) / 2
    raw, _ = projection(rng, gram, radius, epsilon, m)
    noisy, _ = gaussian(rng, gram, radius, epsilon)
    found = [raw, semidefinite(raw)]
    for exact in (False, True):
        drawn = synthetic_rows(noisy / m, m, exact=exact, seed=int(rng.integers(1 << 31)))
        found.append(np.asarray(drawn).T @ np.asarray(drawn))
    return [float(np.linalg.norm(g - gram) / np.linalg.norm(gram)) for g in found]


def table() -> tuple[list[str], int, int]:
    """Lines, in how many cases synthetic rows have the smaller error, and of how many."""
    lines, first, cases = [], 0, 0
    for name in DATA:
        rows = halves(name, 0)[1][:, :-1]
        rows = clipped(rows, np.sqrt(rows.shape[1]) / 2)
        d = rows.shape[1]
        for epsilon in EPSILONS:
            for m in (size * d for size in SIZES):
                rng = np.random.default_rng([d, int(epsilon), m])
                found = np.array([errors(rows, epsilon, m, rng) for _ in range(DRAWS)])
                mean, se = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(DRAWS)
                first += bool(mean[2] < mean[:2].min())
                cases += 1
                shown = (f"{a:.3f} ± {b:.3f}" for a, b in zip(mean, se, strict=True))
                lines.append(f"| {name}, d = {d} | {epsilon:g} | {m} | {' | '.join(shown)} |")
    return lines, first, cases


def main() -> None:
    lines, first, cases = table()
    words = " ".join(__doc__.partition("``results/synthetic_rows.md``: ")[2].split())
    head = [f"| data | ε | m | {' | '.join(WAYS)} |", "|" + "---|" * (3 + len(WAYS))]
    says = f"Synthetic rows have the smaller error in {first} of {cases} cases."
    text = "\n".join([words, "", machine(), "", says, "", *head, *lines, ""])
    RESULTS.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
