"""Private means side by side: the published methods, two oracles, and ours.

    python bench/mean_comparison.py                      # all 36 cells, about 15 minutes
    python bench/mean_comparison.py --d 16 128 --n 4000  # some of them

writes ``bench/results/mean_comparison.md``, ``.json`` and ``.png``. Setting: ``replace``
neighbours, (epsilon, delta) = (1, 1e-6), Gaussian rows with sigma_i = i^-alpha / sum, mean
+-10 sigma_max, a known box +-50 sigma_max; the figure is the median squared l2 error of the mean
(of the distribution) over the trials. "Best of" means in hindsight, cell by cell: it flatters the
published methods.

A method is one entry of ``METHODS``: what it is called and a function of (problem, rows, ledger).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import mean_baselines as published
from ellipsum import Ellipsoid, PrivateMean, calibrate
from mean_baselines import Array, Ledger

RESULTS = Path(__file__).parent / "results"
EPSILON, DELTA = 1.0, 1e-6
DIMENSIONS, ROWS, ALPHAS = (16, 128, 1024), (1000, 4000, 20000), (0.0, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Problem:
    """What one cell is about; a method may use of it what its name says that it knows."""

    n: int
    mean: Array
    sigma: Array
    bound: float  #: the box is [-bound, bound] in every coordinate
    rho: float  #: the budget of a plan of Gaussian steps: mu^2 / 2
    rho_zcdp: float  #: the budget of a plan that is only known to be zCDP

    @property
    def d(self) -> int:
        return int(self.sigma.size)

    def rows(self, rng: np.random.Generator) -> Array:
        return self.mean + self.sigma * rng.standard_normal((self.n, self.d))


Method = Callable[[Problem, Array, Ledger], Array]


def make_problem(d: int, n: int, alpha: float, rng: np.random.Generator) -> Problem:
    sigma = np.arange(1, d + 1.0) ** -alpha
    sigma /= sigma.sum()
    mean = 10 * sigma[0] * rng.choice([-1.0, 1.0], size=d)
    noise_multiplier = calibrate.noise_multiplier(EPSILON, DELTA)
    return Problem(
        n=n,
        mean=mean,
        sigma=sigma,
        bound=50 * float(sigma[0]),
        rho=calibrate.rho(noise_multiplier),
        rho_zcdp=published.zcdp_budget(EPSILON, DELTA),
    )


# --- methods ---


def _oracle_ellipsoid(p: Problem, rows: Array, ledger: Ledger) -> Array:
    return published.oracle_ellipsoid(ledger, rows, p.mean, p.sigma, p.rho)


def _oracle_ball(p: Problem, rows: Array, ledger: Ledger) -> Array:
    return published.oracle_ball(ledger, rows, p.mean, p.sigma, p.rho)


def _plan(p: Problem, rows: Array, ledger: Ledger) -> Array:
    return published.plan(ledger, rows, p.bound, p.rho_zcdp)


def _shifted(median_share: float, outliers: float) -> Method:
    return lambda p, rows, ledger: published.shifted_clipped_mean(
        ledger, rows, p.bound, p.rho, median_share=median_share, outliers=outliers
    )


def _coinpress(steps: int) -> Method:
    return lambda p, rows, ledger: published.coinpress(
        ledger, rows, float(p.sigma.max()), p.bound * math.sqrt(p.d), p.rho, steps
    )


def _box(p: Problem, rows: Array, ledger: Ledger) -> Array:
    box = Ellipsoid.box(np.full(p.d, -p.bound), np.full(p.d, p.bound))
    seed = int(ledger.rng.integers(2**63))
    ledger.spent += p.rho
    return np.asarray(PrivateMean(box, epsilon=EPSILON, delta=DELTA)(rows, seed=seed).value)


def _adaptive(knows_sigma: bool) -> Method:
    def method(p: Problem, rows: Array, ledger: Ledger) -> Array:
        known = {"sigma": p.sigma} if knows_sigma else {}
        side = np.full(p.d, p.bound)
        mean = PrivateMean(lower=-side, upper=side, epsilon=EPSILON, delta=DELTA, **known)
        release = mean(rows, seed=int(ledger.rng.integers(2**63)))
        ledger.spent += release.plan.rho
        return np.asarray(release.value)

    return method


def _center_of_box(p: Problem, rows: Array, ledger: Ledger) -> Array:
    return np.zeros(p.d)


#: Columns of the table; where a column has several variants, the best median counts.
METHODS: dict[str, dict[str, Method]] = {
    "oracle ellipsoid": {"": _oracle_ellipsoid},
    "oracle ball": {"": _oracle_ball},
    "PLAN": {"": _plan},
    "shifted-clipped-mean": {"paper's constants": _shifted(1 / 4, 2.0)},
    "shifted-clipped-mean, best of 4": {
        f"median {share}, outliers {outliers}": _shifted(share, outliers)
        for share, outliers in itertools.product((1 / 4, 1 / 8), (2.0, 8.0))
    },
    "CoinPress, best of 7": {
        f"{steps} steps": _coinpress(steps) for steps in (1, 2, 3, 4, 6, 8, 10)
    },
    "ellipsum, whole box in one pass": {"": _box},
    "ellipsum, sigma known": {"": _adaptive(True)},
    "ellipsum, box alone": {"": _adaptive(False)},
    "centre of the box": {"": _center_of_box},
}
PUBLISHED = ("PLAN", "shifted-clipped-mean, best of 4", "CoinPress, best of 7")


# --- running ---


def run_cell(d: int, n: int, alpha: float, trials: int) -> dict[str, dict[str, float]]:
    """Median squared error of every variant of every method, on the same rows."""
    errors: dict[tuple[str, str], list[float]] = {}
    for trial in range(trials):
        rng = np.random.default_rng([d, n, int(2 * alpha), trial])
        problem = make_problem(d, n, alpha, rng)
        rows = problem.rows(rng)
        for column, variants in METHODS.items():
            for variant, method in variants.items():
                estimate = method(problem, rows, Ledger(rng))
                error = float(np.sum((estimate - problem.mean) ** 2))
                errors.setdefault((column, variant), []).append(error)
    medians: dict[str, dict[str, float]] = {column: {} for column in METHODS}
    for (column, variant), values in errors.items():
        medians[column][variant] = float(np.median(values))
    return medians


def best(variants: dict[str, float]) -> float:
    return min(variants.values())


@dataclass(frozen=True)
class Cell:
    d: int
    n: int
    alpha: float
    medians: dict[str, dict[str, float]]
    seconds: float


def run(dimensions: list[int], rows: list[int], alphas: list[float], trials: int) -> list[Cell]:
    cells = []
    for d, n, alpha in itertools.product(dimensions, rows, alphas):
        start = time.perf_counter()
        medians = run_cell(d, n, alpha, trials)
        cells.append(Cell(d, n, alpha, medians, time.perf_counter() - start))
        line = ", ".join(f"{name} {best(v):.2g}" for name, v in medians.items())
        print(f"d={d} n={n} alpha={alpha}: {line} ({cells[-1].seconds:.0f} s)", flush=True)
    return cells


# --- writing ---


def table(cells: list[Cell], trials: int) -> str:
    names = list(METHODS)
    head = ["d", "n", "alpha", *names]
    lines = [
        "# Private means side by side",
        "",
        f"Median squared l2 error of the mean over {trials} trials; replace-one, "
        f"({EPSILON:g}, {DELTA:g})-DP; NumPy {np.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}. Made by `python bench/mean_comparison.py`.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for cell in cells:
        row = [f"{best(cell.medians[name]):.2g}" for name in names]
        lines.append(f"| {cell.d} | {cell.n} | {cell.alpha:g} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def picture(cells: list[Cell], path: Path) -> None:
    """Error over that of the oracle ellipsoid, a panel for each alpha."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    alphas = sorted({cell.alpha for cell in cells})
    fig, axes = plt.subplots(
        1, len(alphas), figsize=(4 * len(alphas), 4.6), sharey=True, squeeze=False
    )
    names = [name for name in METHODS if name != "oracle ellipsoid"]
    for axis, alpha in zip(axes[0], alphas, strict=True):
        here = [cell for cell in cells if cell.alpha == alpha]
        labels = [f"{cell.d}\n{cell.n}" for cell in here]
        for i, name in enumerate(names):
            ratio = [best(c.medians[name]) / best(c.medians["oracle ellipsoid"]) for c in here]
            axis.plot(labels, ratio, marker="osD^vPX*"[i % 8], label=name, linewidth=1)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set(title=f"alpha = {alpha:g}", yscale="log", xlabel="d (above), n (below)")
        axis.tick_params(axis="x", labelsize=7)
    axes[0][0].set_ylabel("median squared error / oracle ellipsoid's")
    handles, labels = axes[0][0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="lower center", ncols=4, fontsize=9, frameon=False)
    fig.tight_layout(rect=(0, 0.12, 1, 1))
    fig.savefig(path, dpi=130)
    plt.close(fig)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--d", type=int, nargs="+", default=list(DIMENSIONS))
    parser.add_argument("--n", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--alpha", type=float, nargs="+", default=list(ALPHAS))
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    cells = run(args.d, args.n, args.alpha, args.trials)
    args.out.mkdir(parents=True, exist_ok=True)
    text = table(cells, args.trials)
    (args.out / "mean_comparison.md").write_text(text)
    record = {"trials": args.trials, "cells": [asdict(cell) for cell in cells]}
    (args.out / "mean_comparison.json").write_text(json.dumps(record, indent=1) + "\n")
    picture(cells, args.out / "mean_comparison.png")
    print(text)


if __name__ == "__main__":
    main()
