"""Regression and principal axes under a budget: ours beside published ways.

    python bench/moment_table.py [--tasks regression axes] [--data wine ...] [--methods ours ...]

writes ``results/moment_table.md`` and ``.json``. Four data sets of scikit-learn; each is split into
halves by chance: mean and deviation of each column, radius, weights and ridges come from one half
(the average over draws is best there), what is measured from the other: 1 - squared error / squared
error of 0 of the target on those rows, and the share of the variance that the best three axes have.
Every method draws its own noise; the standard error is that of the mean over all draws and splits,
the differences between splits, which are the same for all, taken off.

*default* is `PrivateRegression` as it is: ridge and stretch from two passes, by numbers that are
within 0.0004 of the best of their kind on these data sets and one more, and without any one of them
(`moment_second.py`); *one pass* what it does with rows that can be read only once
(`moment_default.py`). *Ours* has them in one pass by Stein's estimate or a number, whichever is
better on the other half (for axes: `PrivatePCA`); *Stein alone* has the ridge by it. *Analyze
Gauss* is the same noise (with the exact symmetric sensitivity) under a number alone; *as printed*
has the same deviation in all entries. *AdaSSP* has the noise as printed, *exact* the whole budget
by Gaussian privacy and the symmetric sensitivity; *linear* (Gaussian) and *Hessian mixing* are
calibrated as their authors do. All tune radius and the target's weight or bound, mixing its rows
and steps too.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import sklearn.datasets

from measure import machine
from moment_methods import RADII, ROWS, axes, choices, regress

RESULTS = Path(__file__).parent / "results"
DATA = ("breast_cancer", "wine", "digits", "diabetes")
EPSILONS = (1.0, 4.0, 16.0)
METHODS = {
    "regression": (
        "ours", "default", "one pass", "Stein alone", "Analyze Gauss", "as printed", "Wishart",
        "projection", "AdaSSP", "AdaSSP, exact", "linear mixing", "Hessian mixing",
    ),
    "axes": ("ours", "as printed", "Wishart", "projection"),
}  # fmt: skip
K = 3
TUNING = 8  # draws of each choice


def halves(name, split, target=None):
    """Two halves of a table, in units of the first one's deviations; its own target last, or the
    column ``target`` of those that are kept."""
    data = getattr(sklearn.datasets, f"load_{name}")()
    table = np.column_stack([data.data, data.target]).astype(float)
    order = np.random.default_rng(split).permutation(len(table))
    one, other = table[order[::2]], table[order[1::2]]
    kept = one.std(axis=0) > 0.05 * np.median(one.std(axis=0))
    one, other = one[:, kept], other[:, kept]
    if target is not None:
        last = one.shape[1] - 1
        order = [j for j in range(last) if j != target] + [target]
        one, other = one[:, order], other[:, order]
    center, unit = one.mean(axis=0), one.std(axis=0)
    return (one - center) / unit, (other - center) / unit


def explained(rows, coef):
    return 1 - np.sum((rows[:, -1] - rows[:, :-1] @ coef) ** 2) / np.sum(rows[:, -1] ** 2)


def captured(rows, basis):
    best = np.linalg.eigvalsh(rows.T @ rows)[-K:].sum()
    return np.sum((rows @ basis) ** 2) / best


def score(task, method, rng, rows, choice, epsilon):
    if task == "regression":
        return explained(rows, regress(method, rng, rows, choice, epsilon))
    x = rows[:, :-1]
    return captured(x, axes(method, rng, x, choice, epsilon, K))


def options(task, method, d):
    if task == "regression":
        return choices(method, d)
    sizes = ROWS if method == "projection" else (None,)
    return [(c * d**0.5, 1.0, None, m) for c in RADII for m in sizes]


def cell(task, name, epsilon, method, splits, draws):
    """Scores (splits, draws) of one method, all chosen on the other half, and what was chosen."""
    out, chosen = np.empty((splits, draws)), []
    for split in range(splits):
        one, other = halves(name, split)

        def mean_score(choice, one=one, split=split):
            # The same draws for every choice: they differ by the choice, not by luck.
            rngs = (np.random.default_rng([1, split, t]) for t in range(TUNING))
            return np.mean([score(task, method, rng, one, choice, epsilon) for rng in rngs])

        chosen.append(max(options(task, method, one.shape[1] - 1), key=mean_score))
        rngs = (np.random.default_rng([0, split, t]) for t in range(draws))
        out[split] = [score(task, method, rng, other, chosen[-1], epsilon) for rng in rngs]
    return out, chosen


def best_possible(task, name, splits):
    found = []
    for split in range(splits):
        rows = halves(name, split)[1]
        x = rows[:, :-1]
        coef = np.linalg.lstsq(x, rows[:, -1], rcond=None)[0]
        found.append(explained(rows, coef) if task == "regression" else 1.0)
    return float(np.mean(found))


def run(tasks, names, methods, splits, draws):
    """Each cell in turn; what earlier runs found of others is kept, and written after each."""
    store = RESULTS / "moment_table.json"
    table = json.loads(store.read_text()) if store.exists() else {}
    for task in tasks:
        for name in names:
            for epsilon in EPSILONS:
                row = table.setdefault(f"{task} {name} {epsilon:g}", {})
                row["not private"] = best_possible(task, name, splits)
                for method in (m for m in METHODS[task] if not methods or m in methods):
                    scores, chosen = cell(task, name, epsilon, method, splits, draws)
                    noise = scores - scores.mean(axis=1, keepdims=True)
                    error = np.sqrt((noise**2).sum() / (splits * (draws - 1)) / scores.size)
                    row[method] = [float(scores.mean()), float(error), chosen]
                store.write_text(json.dumps(table, indent=1) + "\n")
                (RESULTS / "moment_table.md").write_text(written(table))


def shown_cell(found, first):
    bold = "**" if found[0] == first else ""
    return f"{bold}{found[0]:.3f}{bold} ± {found[1]:.3f}"


def written(table):
    words = [part.strip().replace("\n", " ") for part in __doc__.split("\n\n")[2:4]]
    lines = [words[0], "", words[1], "", machine(), ""]
    for task, methods in METHODS.items():
        lines += [f"## {task}", "", f"| data, epsilon | not private | {' | '.join(methods)} |"]
        lines += ["|" + "---|" * (len(methods) + 2)]
        for key, row in table.items():
            if key.startswith(task):
                first = max(row[m][0] for m in methods if m in row)
                shown = [shown_cell(row[m], first) if m in row else "" for m in methods]
                label = " ".join(key.split()[1:])
                lines.append(f"| {label} | {row['not private']:.3f} | {' | '.join(shown)} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--tasks", nargs="+", default=list(METHODS))
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--methods", nargs="+", help="all by default")
    asked = parser.parse_args()
    run(asked.tasks, asked.data, asked.methods, asked.splits, asked.draws)
