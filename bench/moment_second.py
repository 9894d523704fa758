"""A second pass of `PrivateRegression`: shares and numbers of it, beside one pass.

    python bench/moment_second.py [--draws 10] [--splits 2] [--data wine ...]

writes ``results/moment_second.md``. Targets, data sets, halves and losses are those of
``moment_default.py``; radius and the target's weight are chosen on one half for each rule. *One
pass* is the best rule of that table. The others have a second pass, whose rule is told by what it
has other than the default: its share of mu^2; ridge and stretch that it starts from where the first
pass tells too little; the weight of u^2 in a row's vector; the part of the predicted squares that
the noise may be, and the bounds of the radius that follows; the factor's deviation beforehand.

The second table has the target alone: what each rule explains in the cells of ``moment_table.py``
less what one pass does.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ellipsum import calibrate
from ellipsum.records import second_pass
from ellipsum.records.moment_fits import LEAST_RIDGE, chosen_ridge, stretch_terms
from measure import machine
from mixing_methods import DELTA, clipped, symmetric
from moment_default import CHOICES, DATA, TUNING
from moment_methods import ridge
from moment_table import EPSILONS, halves

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Rule:
    """The defaults of the package."""

    share: float = second_pass.SECOND_SHARE
    start: tuple[float, float] = second_pass.START
    squares: float = second_pass.SQUARES
    part: float = second_pass.NOISE_PART
    bounds: tuple[float, float] = second_pass.REACHES
    prior: float = second_pass.PRIOR


OWN = Rule()
CHANGES = (
    *({"share": s} for s in (0.0, 0.05, 0.2)),
    *({"start": s} for s in ((2.0, 1.5), (3.0, 2.0))),
    *({"squares": s} for s in (0.25, 1.0)),
    *({"part": p} for p in (0.1, 0.4)),
    *({"bounds": b} for b in ((0.5, 4.0), (1.0, 8.0), (2.0, 16.0), (1.0, 32.0))),
    *({"prior": p} for p in (0.25, 0.7)),
)
RULES = [OWN, *dict.fromkeys(r for r in (replace(OWN, **c) for c in CHANGES) if r != OWN)]
ONE_PASS = next(i for i, rule in enumerate(RULES) if not rule.share)


def shown(rule):
    if not rule.share:
        return "one pass"
    own = vars(OWN)
    told = [f"{name} {value}" for name, value in vars(rule).items() if value != own[name]]
    return ", ".join(told) or "default: " + ", ".join(f"{k} {v}" for k, v in own.items())


def first_pass(rule, noisy, sd):
    """Coefficients, stretched, and what they are expected to have as sum u^2."""
    d = len(noisy) - 1
    columns, least = tuple(range(d)), LEAST_RIDGE * sd * math.sqrt(d)
    weak = {"weak": rule.start} if rule.share else {}
    penalty, stretch = chosen_ridge(noisy, d, columns, sd, **weak)
    squares = stretch**2 * stretch_terms(noisy, d, columns, sd, penalty, least)[1]
    return ridge(noisy, penalty, least) * stretch, squares


def factor(rule, rows, coef, squares, multiplier, noise):
    """Of the second pass; ``noise`` standard normal, (2,)."""
    u, y = rows[:, :-1] @ coef, rows[:, -1]
    one = multiplier / math.sqrt(rule.share)
    reach = min(max(rule.part * squares / one, rule.bounds[0]), rule.bounds[1])
    found = clipped(np.stack([u * (y - u), rule.squares * u * u], axis=1), reach).sum(axis=0)
    first, second = found + reach * one * noise
    second = max(second / rule.squares, 0.0)
    shrunk = first * second / (second**2 + (reach * one / rule.prior) ** 2)
    return min(max(1 + shrunk, 0.0), 2.0)


def scores(rows, choice, epsilon, draws, seed):
    """Explained variance, (draws, rules)."""
    size, weight = choice
    d = rows.shape[1] - 1
    radius, multiplier = size * math.sqrt(d + 1), calibrate.noise_multiplier(epsilon, DELTA)
    whole = rows * np.append(np.ones(d), weight)
    z, out = clipped(whole, radius), np.empty((draws, len(RULES)))
    gram, true = z.T @ z, whole.T @ whole
    for t in range(draws):
        rng = np.random.default_rng([*seed, t])
        noise, more, made = symmetric(rng, d + 1, 1.0, math.sqrt(0.5)), rng.normal(size=2), {}
        for i, rule in enumerate(RULES):
            told = rule.share, rule.start
            if told not in made:
                sd = radius**2 * multiplier / math.sqrt(1 - rule.share)
                made[told] = first_pass(rule, gram + sd * noise, sd)
            coef, squares = made[told]
            if rule.share:
                coef = coef * factor(rule, whole, coef, squares, multiplier, more)
            v = np.append(-coef, 1.0)
            out[t, i] = 1 - v @ true @ v / true[-1, -1]
    return out


def cell(name, target, epsilon, splits, draws):
    """Mean score of each rule."""
    found = []
    for split in range(splits):
        one, other = halves(name, split, target)
        tuned = np.array([scores(one, c, epsilon, TUNING, (1, split)).mean(0) for c in CHOICES])
        best, here = tuned.argmax(axis=0), {}
        for i in np.unique(best):
            here[i] = scores(other, CHOICES[i], epsilon, draws, (0, split)).mean(0)
        found.append([here[i][k] for k, i in enumerate(best)])
    return np.mean(found, axis=0)


def run(names, splits, draws):
    found = {}
    for name in names:
        for target in (None, *DATA[name]):
            for epsilon in EPSILONS:
                found[name, target, epsilon] = cell(name, target, epsilon, splits, draws)
        print(name, flush=True)
    words = [part.replace("\n", " ") for part in __doc__.strip().split("\n\n")[2:]]
    text = [*words[:1], machine(), losses_of(found), *words[1:], target_alone(found)]
    (RESULTS / "moment_second.md").write_text("\n\n".join(text) + "\n")


def losses_of(found):
    """A line a rule: mean loss, without each data set, largest of a cell; best first."""
    names = list(dict.fromkeys(key[0] for key in found))
    by_set = [np.array([max(v) - v for k, v in found.items() if k[0] == name]) for name in names]
    whole = np.array([values.mean(axis=0) for values in by_set])
    worst = np.concatenate(by_set).max(axis=0)
    without = [np.delete(whole, i, axis=0).mean(axis=0) for i in range(len(names))]
    heads = ["rule", "mean", *(f"without {name}" for name in names), "largest"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for i in np.argsort(whole.mean(axis=0)):
        numbers = [whole.mean(axis=0)[i], *(mean[i] for mean in without), worst[i]]
        lines.append(f"| {shown(RULES[i])} | {' | '.join(f'{v:.4f}' for v in numbers)} |")
    return "\n".join(lines)


def target_alone(found):
    keys = [key for key in found if key[1] is None]
    heads = ["rule", *(f"{name}, {epsilon:g}" for name, _, epsilon in keys)]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for i, rule in enumerate(RULES):
        gain = [found[key][i] - (0 if i == ONE_PASS else found[key][ONE_PASS]) for key in keys]
        sign = "" if i == ONE_PASS else "+"
        lines.append(f"| {shown(rule)} | {' | '.join(f'{v:{sign}.3f}' for v in gain)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    asked = parser.parse_args()
    run(asked.data, asked.splits, asked.draws)
