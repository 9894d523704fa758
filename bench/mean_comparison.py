"""Private means side by side: the published methods, two oracles, and ours.

    python bench/mean_comparison.py                      # all 36 cells, about half an hour
    python bench/mean_comparison.py --d 16 128 --n 4000  # some of them
    python bench/mean_comparison.py --again PLAN         # one column anew, the rest as it was

writes ``bench/results/mean_comparison.md``, ``.json`` and ``.png``. Setting: ``replace``
neighbours, (epsilon, delta) = (1, 1e-6), Gaussian rows with sigma_i = i^-alpha / sum, mean
+-10 sigma_max, a known box +-50 sigma_max; the figure is the median squared l2 error of the mean
(of the distribution) over the trials. Of a method with several variants the best counts, in
hindsight and cell by cell: it flatters the published methods.

A method is one entry of ``METHODS``: what it is called and a function of (problem, rows, ledger).
Figures of an earlier run are kept, so that a new entry costs its own time only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import platform
import time
import zlib
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


def _shifted(outliers: float) -> Method:
    return lambda p, rows, ledger: published.shifted_clipped_mean(
        ledger, rows, p.bound, p.rho, outliers=outliers
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


def _center_of_box(p: Problem, rows: Array, ledger: Ledger) -> Array:
    return np.zeros(p.d)


REFERENCE = "oracle ellipsoid"
#: Columns of the table; where a column has several variants, the best median counts.
METHODS: dict[str, dict[str, Method]] = {
    REFERENCE: {"": _oracle_ellipsoid},
    "oracle ball": {"": _oracle_ball},
    "PLAN": {"": _plan},
    "shifted-clipped-mean": {
        "paper's constants": _shifted(2.0),
        "four times as many rows clipped": _shifted(8.0),
    },
    "CoinPress": {f"{steps} steps": _coinpress(steps) for steps in (2, 3, 4, 6, 10)},
    "ellipsum, whole box in one pass": {"": _box},
    "centre of the box": {"": _center_of_box},
}


# --- running ---

Medians = dict[str, dict[str, float]]


@dataclass
class Cell:
    d: int
    n: int
    alpha: float
    trials: int
    medians: Medians  #: column, variant: median squared error

    @property
    def key(self) -> tuple[int, int, float, int]:
        return (self.d, self.n, self.alpha, self.trials)


def missing(cell: Cell, again: list[str]) -> dict[tuple[str, str], Method]:
    """The variants that the cell has no figure for, or whose column is to be run again."""
    return {
        (column, variant): method
        for column, variants in METHODS.items()
        for variant, method in variants.items()
        if column in again or variant not in cell.medians.get(column, {})
    }


def fill(cell: Cell, again: list[str]) -> None:
    """Run what is missing; rows and noise depend on the cell, the trial and the variant alone."""
    todo = missing(cell, again)
    errors: dict[tuple[str, str], list[float]] = {name: [] for name in todo}
    for trial in range(cell.trials if todo else 0):
        seed = [cell.d, cell.n, int(2 * cell.alpha), trial]
        rng = np.random.default_rng(seed)
        problem = make_problem(cell.d, cell.n, cell.alpha, rng)
        rows = problem.rows(rng)
        for name, method in todo.items():
            noise = np.random.default_rng([*seed, zlib.crc32(repr(name).encode())])
            estimate = method(problem, rows, Ledger(noise))
            errors[name].append(float(np.sum((estimate - problem.mean) ** 2)))
    for (column, variant), values in errors.items():
        cell.medians.setdefault(column, {})[variant] = float(np.median(values))


def best(cell: Cell, column: str) -> float:
    """The column's median error, by its best variant in hindsight."""
    return min(cell.medians[column][variant] for variant in METHODS[column])


def run(cells: list[Cell], again: list[str], out: Path) -> None:
    """Fill cell after cell, the small ones first, and write after each."""
    for i, cell in enumerate(cells):
        start = time.perf_counter()
        fill(cell, again)
        line = ", ".join(f"{column} {best(cell, column):.2g}" for column in METHODS)
        seconds = time.perf_counter() - start
        print(f"d={cell.d} n={cell.n} alpha={cell.alpha:g}: {line} ({seconds:.0f} s)", flush=True)
        write(cells[: i + 1], out)


def read(path: Path) -> dict[tuple[int, int, float, int], Cell]:
    """What an earlier run left."""
    if not path.exists():
        return {}
    return {cell.key: cell for cell in (Cell(**each) for each in json.loads(path.read_text()))}


# --- writing ---


def write(cells: list[Cell], out: Path) -> None:
    ordered = sorted(cells, key=lambda cell: cell.key)
    out.mkdir(parents=True, exist_ok=True)
    (out / "mean_comparison.md").write_text(table(ordered))
    record = json.dumps([asdict(cell) for cell in ordered], indent=1)
    (out / "mean_comparison.json").write_text(record + "\n")
    picture(ordered, out / "mean_comparison.png")


def table(cells: list[Cell]) -> str:
    head = ["d", "n", "alpha", *METHODS]
    made = f"NumPy {np.__version__}, Python {platform.python_version()}, {platform.machine()}"
    lines = [
        "# Private means side by side",
        "",
        f"Median squared l2 error of the mean over {cells[0].trials} trials; replace-one, "
        f"({EPSILON:g}, {DELTA:g})-DP; {made}. Made by `python bench/mean_comparison.py`, which "
        "says what is what.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for cell in cells:
        row = [f"{best(cell, column):.2g}" for column in METHODS]
        lines.append(f"| {cell.d} | {cell.n} | {cell.alpha:g} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def picture(cells: list[Cell], path: Path) -> None:
    """Error over that of the oracle ellipsoid, a panel for each d and alpha."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    dimensions, alphas = sorted({c.d for c in cells}), sorted({c.alpha for c in cells})
    size = (3 * len(alphas), 2.6 * len(dimensions) + 1)
    fig, axes = plt.subplots(
        len(dimensions), len(alphas), figsize=size, sharex=True, sharey=True, squeeze=False
    )
    columns = [column for column in METHODS if column != REFERENCE]
    for row, d in zip(axes, dimensions, strict=True):
        for axis, alpha in zip(row, alphas, strict=True):
            here = [c for c in cells if c.d == d and c.alpha == alpha]
            for i, column in enumerate(columns):
                ratio = [best(c, column) / best(c, REFERENCE) for c in here]
                axis.plot(
                    [c.n for c in here], ratio, marker="osD^vPX*"[i % 8], ms=4, lw=1, label=column
                )
            axis.axhline(1, color="black", linewidth=0.8)
            axis.set(title=f"d = {d}, alpha = {alpha:g}", xscale="log", yscale="log")
            axis.title.set_fontsize(9)
    for axis in axes[-1]:
        axis.set_xlabel("n")
    fig.supylabel(f"median squared error / that of the {REFERENCE}", fontsize=10)
    handles, labels = axes[0][0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="lower center", ncols=4, fontsize=9, frameon=False)
    fig.tight_layout(rect=(0, 0.8 / size[1], 1, 1))
    fig.savefig(path, dpi=110)
    plt.close(fig)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--d", type=int, nargs="+", default=list(DIMENSIONS))
    parser.add_argument("--n", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--alpha", type=float, nargs="+", default=list(ALPHAS))
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--again", nargs="*", default=[], help="columns to run again")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    known = read(args.out / "mean_comparison.json")
    settings = sorted(itertools.product(args.d, args.n, args.alpha), key=lambda c: c[0] * c[1])
    blank = [Cell(d, n, alpha, args.trials, {}) for d, n, alpha in settings]
    run([known.get(cell.key, cell) for cell in blank], args.again, args.out)
    print((args.out / "mean_comparison.md").read_text())


if __name__ == "__main__":
    main()
