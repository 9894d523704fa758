"""Private means side by side: the published methods, two oracles, and ours.

    python bench/mean_comparison.py                      # all 36 cells, about half an hour
    python bench/mean_comparison.py --d 16 128 --n 4000  # some of them
    python bench/mean_comparison.py --again PLAN         # one column anew, the rest as it was
    python bench/mean_comparison.py --data t3 digits     # other rows, in the same table

writes ``bench/results/mean_comparison.md``, ``.json`` and ``.png``. Setting: ``replace``
neighbours, (epsilon, delta) = (1, 1e-6), rows with sigma_i = i^-alpha / sum, mean
+-10 sigma_max (``--data "gaussian, even means"``: evenly between), a known box +-50 sigma_max; the
figure is the median squared l2 error of the mean (of the distribution) over the trials. Of a method
with several variants the best counts, in hindsight and cell by cell: it flatters the published
methods.

A method is one entry of ``METHODS`` in ``mean_methods.py``: what it is called and a function of
(problem, rows, ledger).
Figures of an earlier run are kept, so that a new entry costs its own time only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from mean_baselines import Ledger
from mean_methods import (
    DELTA,
    EPSILON,
    KNOWS,
    LAWS,
    METHODS,
    REFERENCE,
    TABLES,
    Cell,
    Method,
    real_table,
)

RESULTS = Path(__file__).parent / "results"
DIMENSIONS, ROWS, ALPHAS = (16, 128, 1024), (1000, 4000, 20000), (0.0, 0.5, 1.0, 2.0)

# --- running ---


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
        problem, rows = cell.draw(seed)
        for name, method in todo.items():
            noise = np.random.default_rng([*seed, zlib.crc32(repr(name).encode())])
            estimate = method(problem, rows, Ledger(noise))
            errors[name].append(float(np.sum((estimate - problem.mean) ** 2)))
    for (column, variant), values in errors.items():
        cell.medians.setdefault(column, {})[variant] = float(np.median(values))


def best(cell: Cell, column: str) -> float:
    """The column's median error, by its best variant in hindsight."""
    return min(cell.medians[column][variant] for variant in METHODS[column])


Known = dict[tuple[str, int, int, float, int], Cell]


def run(cells: list[Cell], known: Known, again: list[str], out: Path) -> None:
    """Fill cell after cell, the small ones first, and write after each."""
    for cell in cells:
        start = time.perf_counter()
        fill(cell, again)
        line = ", ".join(f"{column} {best(cell, column):.2g}" for column in METHODS)
        seconds = time.perf_counter() - start
        print(f"{cell.key}: {line} ({seconds:.0f} s)", flush=True)
        known[cell.key] = cell
        write([known[key] for key in sorted(known)], out)


def read(path: Path) -> Known:
    """What an earlier run left."""
    if not path.exists():
        return {}
    return {cell.key: cell for cell in (Cell(**each) for each in json.loads(path.read_text()))}


# --- writing ---


def write(cells: list[Cell], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    done = [c for c in cells if not missing(c, [])]
    (out / "mean_comparison.md").write_text(table(done))
    record = json.dumps([asdict(cell) for cell in map(pruned, cells)], indent=1)
    (out / "mean_comparison.json").write_text(record + "\n")
    if gaussian := [c for c in done if c.data == "gaussian"]:
        picture(gaussian, out / "mean_comparison.png")


def pruned(cell: Cell) -> Cell:
    """Without the figures of methods that are no more."""
    kept = {
        column: {v: found[v] for v in METHODS[column] if v in found}
        for column, found in cell.medians.items()
        if column in METHODS
    }
    return replace(cell, medians=kept)


def table(cells: list[Cell]) -> str:
    head = ["data", "d", "n", "alpha", *METHODS]
    made = f"NumPy {np.__version__}, Python {platform.python_version()}, {platform.machine()}"
    lines = [
        "# Private means side by side",
        "",
        f"Median squared l2 error of the mean over {cells[0].trials} trials; replace-one, "
        f"({EPSILON:g}, {DELTA:g})-DP; {made}. Made by `python bench/mean_comparison.py`.",
        "",
        *[f"- *{column}*: {KNOWS[column]}" for column in METHODS],
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for cell in cells:
        row = [f"{best(cell, column):.2g}" for column in METHODS]
        setting = [cell.data, str(cell.d), str(cell.n), f"{cell.alpha:g}"]
        lines.append("| " + " | ".join(setting + row) + " |")
    return "\n".join(lines + goals(cells)) + "\n"


@dataclass(frozen=True)
class Goal:
    """``ours`` within ``limit`` times the best of ``others``, in the cells that ``where`` names."""

    ours: str
    others: tuple[str, ...]
    limit: float
    where: Callable[[Cell], bool]
    words: str


SIGMA, BOX = "ellipsum, sigma known", "ellipsum, box alone"
PUBLISHED = ("PLAN", "shifted-clipped-mean", "CoinPress")
GOALS = [
    Goal(SIGMA, (REFERENCE,), 1.3, lambda c: c.n >= 4000 and c.d <= 128, "n >= 4000, d <= 128"),
    Goal(
        SIGMA,
        (REFERENCE,),
        3,
        lambda c: c.d == 1024 and c.n >= 4000 and c.alpha <= 1,
        "d = 1024, n >= 4000, alpha <= 1",
    ),
    Goal(BOX, PUBLISHED, 1.1, lambda c: True, "all"),
    Goal(BOX, (REFERENCE,), 2, lambda c: c.n == 20000 and c.d <= 128, "n = 20000, d <= 128"),
    Goal(SIGMA, ("centre of the box",), 1, lambda c: True, "all"),
    Goal(BOX, ("centre of the box",), 1, lambda c: True, "all"),
]


def goals(cells: list[Cell]) -> list[str]:
    """The worst ratio of the Gaussian cells for each goal, and the cells that miss it."""
    lines = []
    for goal in GOALS:
        here = [c for c in cells if c.data == "gaussian" and goal.where(c)]
        if not here or goal.ours not in METHODS or not set(goal.others) <= set(METHODS):
            continue
        ratios = {
            f"({c.d}, {c.n}, {c.alpha:g})": best(c, goal.ours)
            / min(best(c, other) for other in goal.others)
            for c in here
        }
        worst = max(ratios, key=lambda key: ratios[key])
        missed = [f"{key} {ratio:.2f}" for key, ratio in ratios.items() if ratio > goal.limit]
        against = "the best published" if goal.others == PUBLISHED else f"the {goal.others[0]}"
        lines.append(
            f"- *{goal.ours}*, {goal.words}: wanted {goal.limit:g} times {against}; worst "
            f"{ratios[worst]:.2g} at {worst}; missed in {len(missed)} of {len(ratios)}"
            + (f": {', '.join(missed)}" if missed else "")
        )
    return ["", "## Goals, Gaussian cells (d, n, alpha)", "", *lines] if lines else []


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
    ticks = sorted({c.n for c in cells})
    for axis in axes[-1]:
        axis.set_xlabel("n")
        axis.set_xticks(ticks, [str(n) for n in ticks])
        axis.minorticks_off()
    fig.supylabel(f"median squared error / that of the {REFERENCE}", fontsize=10)
    handles, labels = axes[0][0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="lower center", ncols=4, fontsize=9, frameon=False)
    fig.tight_layout(rect=(0, 0.55 / size[1], 1, 1))
    fig.savefig(path, dpi=110)
    plt.close(fig)


def wanted(args: argparse.Namespace) -> Iterator[Cell]:
    """The cells asked for, small ones first."""
    for name in args.data:
        if name in TABLES:
            problem, _ = real_table(name)
            yield Cell(problem.d, problem.n, 0.0, args.trials, {}, name)
            continue
        sizes = sorted(itertools.product(args.d, args.n, args.alpha), key=lambda c: c[0] * c[1])
        for d, n, alpha in sizes:
            yield Cell(d, n, alpha, args.trials, {}, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    choices = [*LAWS, *TABLES]
    parser.add_argument("--data", nargs="+", default=["gaussian"], choices=choices)
    parser.add_argument("--d", type=int, nargs="+", default=list(DIMENSIONS))
    parser.add_argument("--n", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--alpha", type=float, nargs="+", default=list(ALPHAS))
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--again", nargs="*", default=[], help="columns to run again")
    parser.add_argument("--columns", nargs="+", choices=list(METHODS), help="only these")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    for column in set(METHODS) - set(args.columns or METHODS):
        del METHODS[column]
    known = read(args.out / "mean_comparison.json")
    cells = list(wanted(args))
    run([known.get(cell.key, cell) for cell in cells], known, args.again, args.out)
    print((args.out / "mean_comparison.md").read_text())


if __name__ == "__main__":
    main()
