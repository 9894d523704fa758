"""What ridge and stretch `PrivateRegression` has in one pass: rules, and what each loses.

    python bench/moment_default.py [--draws 16]

writes ``results/moment_default.md``. Regressions of the target, and of three other columns, of
five data sets of scikit-learn, halved as in ``moment_table.py``: radius and the target's weight
are chosen on one half for each rule, explained variance is measured on the other. A rule's loss is
what it lacks there of the best rule, mean over epsilon = 1, 4, 16 and the targets, every data set
with the same weight. *Without* a data set: the mean over the others, by which a rule is chosen
that has seen none of its rows.

That rules turn at a signal, and the numbers to choose from, were found on the same data sets. A
rule is a ridge, in units of the noise's norm sd sqrt(d), and a stretch; or two of them and the
number of such units from which on the largest eigenvalue of the columns' moments calls for the
second.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from ellipsum import calibrate
from ellipsum.records.moment_fits import LEAST_RIDGE, chosen_ridge
from measure import machine
from mixing_methods import DELTA, clipped, symmetric
from moment_methods import RADII, WEIGHTS, ridge
from moment_table import EPSILONS, halves

RESULTS = Path(__file__).parent / "results"
DATA = {"iris": (0, 1, 2), "wine": (0, 5, 9), "diabetes": (2, 4, 8), "breast_cancer": (0, 7, 20),
        "digits": (10, 30, 50)}  # fmt: skip
FIXED = ((1.0, 1.0), (2.0, 1.5), (3.0, 2.0), ("stein", 1.0), ("stein", "stein"))
WEAK, CLEAR = FIXED[1:3], (FIXED[0], FIXED[4])
TURNS = (5.0, 7.0, 10.0, 14.0, 20.0)
RULES = [*FIXED, *((w, c, t) for w in WEAK for c in CLEAR for t in TURNS)]
SPLITS, TUNING = 2, 6
CHOICES = [(c, a) for c in RADII for a in WEIGHTS]


def all_coefficients(noisy, sd):
    """Of every rule, (rules, d)."""
    d = len(noisy) - 1
    unit, columns = sd * math.sqrt(d), tuple(range(d))
    found = {}
    for rule in FIXED:
        penalty, stretch = chosen_ridge(noisy, d, columns, sd, *rule)
        found[rule] = ridge(noisy, penalty, LEAST_RIDGE * unit) * stretch
    signal = np.linalg.eigvalsh(noisy[:-1, :-1])[-1] / unit
    rows = (r if len(r) == 2 else r[1] if signal >= r[2] else r[0] for r in RULES)
    return np.array([found[rule] for rule in rows])


def scores(rows, choice, epsilon, draws, seed):
    """Explained variance, (draws, rules)."""
    size, weight = choice
    d = rows.shape[1] - 1
    radius = size * math.sqrt(d + 1)
    z = clipped(rows * np.append(np.ones(d), weight), radius)
    gram, whole = z.T @ z, rows.T @ rows
    sd = radius**2 * calibrate.noise_multiplier(epsilon, DELTA)
    out = []
    for t in range(draws):
        noise = symmetric(np.random.default_rng([*seed, t]), d + 1, sd, sd / math.sqrt(2))
        coef = all_coefficients(gram + noise, sd) / weight
        v = np.column_stack([-coef, np.ones(len(coef))])
        out.append(1 - np.einsum("ij,jk,ik->i", v, whole, v) / whole[-1, -1])
    return np.array(out)


def cell(name, target, epsilon, draws):
    """Mean score of each rule."""
    found = []
    for split in range(SPLITS):
        one, other = halves(name, split, target)
        tuned = np.array([scores(one, c, epsilon, TUNING, (1, split)).mean(0) for c in CHOICES])
        here = np.array([scores(other, c, epsilon, draws, (0, split)).mean(0) for c in CHOICES])
        found.append(here[tuned.argmax(axis=0), np.arange(len(RULES))])
    return np.mean(found, axis=0)


def shown(rule):
    if len(rule) == 2:
        return f"ridge {rule[0]}, stretch {rule[1]}"
    return f"{shown(rule[0])}; from {rule[2]:g} on {shown(rule[1])}"


def written(losses):
    """A line a rule: mean loss, without each data set, largest of a cell; best first."""
    whole = np.array([values.mean(axis=0) for values in losses.values()])
    worst = np.concatenate(list(losses.values())).max(axis=0)
    without = [np.delete(whole, i, axis=0).mean(axis=0) for i in range(len(losses))]
    heads = ["mean", *(f"without {name}" for name in losses), "largest"]
    lines = [f"| rule | {' | '.join(heads)} |", "|" + "---|" * (len(heads) + 1)]
    for i in np.argsort(whole.mean(axis=0)):
        numbers = [whole.mean(axis=0)[i], *(mean[i] for mean in without), worst[i]]
        cells = " | ".join(f"{v:.4f}" for v in numbers)
        lines.append(f"| {shown(RULES[i])} | {cells} |")
    return "\n".join(lines)


def run(draws):
    losses = {}
    for name, others in DATA.items():
        cells = [
            cell(name, target, epsilon, draws) for target in (None, *others) for epsilon in EPSILONS
        ]
        losses[name] = np.max(cells, axis=1, keepdims=True) - np.array(cells)
        print(name, flush=True)
    words = [part.replace("\n", " ") for part in __doc__.strip().split("\n\n")[2:]]
    text = "\n\n".join([*words, machine(), written(losses)])
    (RESULTS / "moment_default.md").write_text(text + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=16)
    run(parser.parse_args().draws)
