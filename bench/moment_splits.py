"""`PrivateRegression`'s default beside rivals, over splits, and what the clip has to do with it.

    python bench/moment_splits.py [--splits 6] [--draws 8]

writes ``results/moment_splits.md``. Cells, halves and choices are those of ``moment_table.py``.

*Ahead by* is the mean over splits of default - rival, every split with its own choices on its other
half; the standard error is over the splits, so that it has the rows' chance in it, not the noise's
alone. A split's difference is paired: both are measured on the same rows.

The second table asks what tells the right stretch: the clipped rows' moments do not, a second pass
over rows that hardly anything clips does (*one pass* is the default without it). *Stretch* is what
the default took; *best on clipped rows* the factor of the same coefficients that explains most of
the clipped rows, which is all that the moments tell; *best on the rows* that of the rows
themselves, which the score is measured on, and on the longer and the shorter half of them: the clip
gives the longer ones less weight. Radius and weight: the default's choice.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from measure import machine
from mixing_methods import clipped
from moment_methods import two_passes
from moment_table import DATA, EPSILONS, cell, halves

RESULTS = Path(__file__).parent / "results"
RIVALS = ("one pass", "Analyze Gauss", "projection", "AdaSSP, exact")


def compared(name, epsilon, splits, draws):
    """Mean scores of the splits, of the default and its rivals; the default's choices."""
    found, chosen = {}, []
    for method in ("default", *RIVALS):
        scores, choice = cell("regression", name, epsilon, method, splits, draws)
        found[method] = scores.mean(axis=1)
        chosen = choice if method == "default" else chosen
    return found, chosen


def stretches(name, epsilon, chosen, draws):
    """(splits * draws, 5): the stretch taken, the best on clipped rows, on the rows, on the longer
    half of them, on the shorter."""
    out = []
    for split, (radius, weight, *_) in enumerate(chosen):
        rows = halves(name, split)[1]
        d = rows.shape[1] - 1
        whole = rows * np.append(np.ones(d), weight)
        size = np.linalg.norm(whole, axis=1)
        halved = whole[size > np.median(size)], whole[size <= np.median(size)]
        grams = [z.T @ z for z in (clipped(whole, radius), whole, *halved)]
        for t in range(draws):
            rng = np.random.default_rng([0, split, t])
            coef, stretch = two_passes(rng, whole, radius, epsilon)
            best = [coef @ g[:-1, -1] / (coef @ g[:-1, :-1] @ coef) for g in grams]
            out.append([stretch, *best])
    return np.array(out)


def shown(values):
    return f"{values.mean():.3f} ± {values.std(ddof=1) / math.sqrt(len(values)):.3f}"


def run(splits, draws):
    heads = ["data, epsilon", "default", *(f"ahead of {rival} by" for rival in RIVALS)]
    first = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    heads = ["data, epsilon", "stretch", "best on clipped rows", "best on the rows"]
    heads += ["on the longer half", "on the shorter"]
    second = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    words = [part.replace("\n", " ") for part in __doc__.strip().split("\n\n")[2:]]
    for name in DATA:
        for epsilon in EPSILONS:
            found, chosen = compared(name, epsilon, splits, draws)
            ahead = [shown(found["default"] - found[rival]) for rival in RIVALS]
            label = f"{name} {epsilon:g}"
            first.append(f"| {label} | {shown(found['default'])} | {' | '.join(ahead)} |")
            mean = stretches(name, epsilon, chosen, draws).mean(axis=0)
            second.append(f"| {label} | " + " | ".join(f"{v:.2f}" for v in mean) + " |")
            parts = [*words, machine(), "\n".join(first), "\n".join(second)]
            (RESULTS / "moment_splits.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--draws", type=int, default=8)
    asked = parser.parse_args()
    run(asked.splits, asked.draws)
