"""Skewed and heavy-tailed columns: what clips cost, and what a region off the mean could save.

    python bench/skewed_means.py    # two CPU minutes

writes ``bench/results/skewed_means.md``. Setting: ``replace``, (epsilon, delta) = (1, 1e-6), d
columns of one law with variance 1, means of +-10, a known box of +-50. The first table has, of
releases, the bias (mean of value - mean of the law, over columns and trials) and the root mean
square error of a coordinate, both in units of the noise-free standard error 1/sqrt(n); of a method
with several variants the best in hindsight. The second one has oracles that know the law, by
integration over 20,000 rows of it: clips to a ball about the mean, to a ball about another place
(the same in every column), to a box that is symmetric about the mean, and to a box with an end of
its own on each side; each with the parameters of its least error, of E|what the clip takes|,
sampling and noise: losses to the two sides don't cancel, which only who knows the law could see to.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mean_baselines import Array, Ledger
from mean_methods import METHODS, make_problem

RESULTS = Path(__file__).parent / "results"
PARETO = 2.5
LAWS = {
    "log-normal": lambda rng, shape: (
        (rng.lognormal(size=shape) - math.exp(0.5)) / math.sqrt(math.e * (math.e - 1))
    ),
    "Pareto 2.5": lambda rng, shape: (
        (rng.pareto(PARETO, shape) - 1 / (PARETO - 1))
        / math.sqrt(PARETO / ((PARETO - 1) ** 2 * (PARETO - 2)))
    ),
}
COLUMNS = ("ellipsum, box alone", "CoinPress", "PLAN", "shifted-clipped-mean")
SIZES = ((3, 4000), (3, 20_000), (16, 4000), (16, 20_000))
_ORACLE_ROWS = 20_000


def measured(law: str, d: int, n: int, seeds: range) -> str:
    """One line of the first table."""
    errors: dict[tuple[str, str], list[Array]] = {}
    for seed in seeds:
        rng = np.random.default_rng([seed, d, n])
        mean = 10 * rng.choice([-1.0, 1.0], size=d)
        rows = mean + LAWS[law](rng, (n, d))
        problem = make_problem(mean, np.ones(d), n)
        for column in COLUMNS:
            for variant, method in METHODS[column].items():
                noise = np.random.default_rng([seed, zlib.crc32((column + variant).encode())])
                found = method(problem, rows, Ledger(noise))
                errors.setdefault((column, variant), []).append((found - mean) * math.sqrt(n))
    cells = []
    for column in COLUMNS:
        of = [np.array(errors[column, variant]) for variant in METHODS[column]]
        best = min(of, key=lambda found: float(np.mean(found**2)))
        cells.append(f"{np.mean(best):+.2g} | {math.sqrt(np.mean(best**2)):.2g}")
    return f"| {law} | {d} | {n} | " + " | ".join(cells) + " |"


def oracles(law: str, d: int, n: int) -> str:
    """One line of the second table."""
    rows = LAWS[law](np.random.default_rng(0), (_ORACLE_ROWS, d))
    mu = math.sqrt(2 * make_problem(np.zeros(d), np.ones(d), n).rho)
    families = (_balls(rows, [0.0]), _balls(rows, np.linspace(-1, 3, 9)), *_boxes(rows))
    # Noise 2 C / (n mu) in each coordinate.
    least = [
        min(
            math.sqrt(n * taken**2 + spread + n * (2 * c / (n * mu)) ** 2)
            for taken, spread, c in each
        )
        for each in families
    ]
    return f"| {law} | {d} | {n} | " + " | ".join(f"{error:.2g}" for error in least) + " |"


Clip = tuple[float, float, float]  # E|loss|, variance of a clipped row's coordinate, radius


def _balls(rows: Array, centers: Array | list[float]) -> Iterator[Clip]:
    d = rows.shape[1]
    for center in centers:
        away = rows - center
        distance = np.sqrt(np.einsum("ij,ij->i", away, away))
        for radius in math.sqrt(d) * np.geomspace(0.3, 25, 24):
            moved = away * np.minimum(1, radius / distance)[:, None]
            yield float(np.mean(np.abs(away - moved))), float(np.var(moved)), radius


def _boxes(rows: Array) -> tuple[list[Clip], list[Clip]]:
    """Symmetric about the mean, and with the lower end at the least value or above."""
    d, column = rows.shape[1], rows.ravel()[:_ORACLE_ROWS]

    def clip(low: float, high: float) -> Clip:
        moved = np.clip(column, low, high)
        taken = float(np.mean(np.abs(column - moved)))
        return taken, float(np.var(moved)), (high - low) / 2 * math.sqrt(d)

    ends = np.geomspace(0.2, 40, 40)
    lows = np.linspace(float(column.min()), -0.2, 5)
    return [clip(-end, end) for end in ends], [clip(low, high) for low in lows for high in ends]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=50_000, help="the first seed")
    parser.add_argument("--out", type=Path, default=RESULTS / "skewed_means.md")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.runs)
    heads = " | ".join(f"{column}: bias | error" for column in COLUMNS)
    lines = [
        "# Means of skewed and heavy-tailed columns",
        "",
        f"{args.runs} trials, seeds from {args.first}; made by `python bench/skewed_means.py`, "
        "whose head says what the columns mean. In standard errors of the mean without privacy.",
        "",
        f"| law | d | n | {heads} |",
        "|" + "---|" * (3 + 2 * len(COLUMNS)),
    ]
    for law in LAWS:
        for d, n in SIZES:
            lines.append(measured(law, d, n, seeds))
            print(lines[-1], flush=True)
    lines += ["", "Least error of oracles that know the law:", ""]
    lines += ["| law | d | n | ball about the mean | ball elsewhere | symmetric box | box |"]
    lines += ["|" + "---|" * 7]
    for law in LAWS:
        for d, n in ((1, 4000), *SIZES):
            lines.append(oracles(law, d, n))
            print(lines[-1], flush=True)
    args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
