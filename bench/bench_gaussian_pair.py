"""Accuracy and speed of delta of two Gaussians.

    python bench/bench_gaussian_pair.py accuracy
    python bench/bench_gaussian_pair.py speed

write ``bench/results/gaussian_pair.md`` and ``bench/results/FAMILY/gaussian_pair.md``. Accuracy:
the 500 hard pairs of tests/reference/gaussian_pair.npz, by class, beside the difference of two
tails of the same library. Speed: CPU time of one thread, delta and `sf` of the same quadratic form
in turns; the ratio is the median over the turns.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ellipsum import QuadraticFormWarning, backend
from ellipsum.records import GaussianPair
from measure import machine
from report import RESULTS, family_folder, write

TABLE = Path(__file__).parents[1] / "tests" / "reference" / "gaussian_pair.npz"
CLASSES = (
    "both signs", "leverages far apart", "many rows", "tiny leverage", "near the edge",
    "shift at tiny leverage", "deep", "wide", "normal beside", "many terms",
)  # fmt: skip
TURNS = 60


def difference_of_tails(pair: GaussianPair, epsilon: float) -> float:
    """P(L > eps) - e^eps Q(L > eps), as everybody computes it."""
    return float(pair.loss().sf(epsilon) - math.exp(epsilon) * pair.reverse.loss().cdf(-epsilon))


def accuracy() -> None:
    with np.load(TABLE) as stored:
        t = dict(stored)
    ends, found = np.cumsum(t["size"]), defaultdict(list)
    for i, end in enumerate(ends):
        part = slice(end - t["size"][i], end)
        pair = GaussianPair.from_spectrum(t["excess"][part], t["shift2"][part], t["dof"][part])
        epsilon, delta, slope = (float(t[k][i]) for k in ("epsilon", "delta", "slope"))
        log_delta = pair._table.hockey_stick(epsilon)[0]
        condition = 2.0**-53 * epsilon * slope / delta
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QuadraticFormWarning)
            tails = difference_of_tails(pair, epsilon) if epsilon < 700 else math.nan
        row = (
            abs(math.exp(log_delta) / delta - 1), float(pair.delta(epsilon)) / delta - 1,
            abs(tails / delta - 1), condition,
        )  # fmt: skip
        found[CLASSES[t["index"][i] % len(CLASSES)]].append(row)
    table = []
    for name, rows in found.items():
        v = np.array(rows)
        assert (v[:, 1] >= 0).all(), "below the truth"
        well = v[:, 3] < 1e-10
        line = {"pairs": name}
        for j, what in enumerate(("contour", "rounded up", "difference of `sf`")):
            line[what] = f"{np.nanmedian(v[:, j]):.1e}"
            line[f"{what}, worst"] = f"{np.nanmax(v[well, j]):.1e}"
        rest = [f"{r[1]:.0e} of {r[3]:.0e}" for r in rows if r[3] >= 1e-10]
        table.append(line | {"rounded up, of a condition above 1e-10": ", ".join(rest)})
    head = (
        "Accuracy of delta of two Gaussians\n\n`python bench/bench_gaussian_pair.py accuracy`: "
        f"error relative to 20 digits, median and worst of each class; backend {backend()}. Worst "
        "is of the pairs whose condition is below 1e-10: what half an ulp of epsilon changes of "
        "delta. The last column has the others."
    )
    write(RESULTS / "gaussian_pair.md", head, {"500 hard pairs": table})


def spent(call: Callable[[], object], calls: int) -> float:
    """Microseconds of CPU time of one call."""
    start = time.thread_time_ns()
    for _ in range(calls):
        call()
    return (time.thread_time_ns() - start) / calls / 1e3


def best(call: Callable[[], object], repeats: int) -> float:
    return min(spent(call, 1) for _ in range(repeats))


def speed() -> None:
    table, rng = [], np.random.default_rng(0)
    for d in (1, 10, 100, 1000):
        for shifted in (False, True):
            e = rng.uniform(-0.3, 0.3, d) / math.sqrt(d / 10)
            shift2 = rng.uniform(0, 3, d) / d if shifted else np.zeros(d)
            pair = GaussianPair.from_spectrum(e, shift2)
            loss = pair.loss()
            epsilon = float(pair.epsilon(1e-6))
            many, out = np.linspace(0, epsilon, 1000), np.empty((1000, 4))
            q, calls = epsilon - loss._offset, max(2, 400 // d)
            pairs = (loss._table.tail, q), (pair._table.hockey_stick, epsilon)
            turns = np.array(
                [[spent(lambda: f(x), calls) for f, x in pairs] for _ in range(TURNS)]  # noqa: B023
            )
            tail, delta = turns.min(axis=0)
            ratio = np.median(turns[:, 1] / turns[:, 0])
            each = best(lambda: pair._table.hockey_sticks(many, out), 20) / 1000  # noqa: B023
            inverse = best(lambda: pair.epsilon(1e-6), 20)  # noqa: B023
            assert pair.delta(epsilon) <= 1e-6 < pair.delta(epsilon * (1 - 1e-12))
            name = f"d={d}, {'shifted' if shifted else 'equal means'}"
            found = {"sf": tail, "delta": delta, "delta / sf": ratio, "of 1000, each": each}
            table.append({"pair": name, **found, "epsilon": inverse})
            print(table[-1], flush=True)
    head = (
        "Speed of delta of two Gaussians\n\n`python bench/bench_gaussian_pair.py speed`: one "
        f"thread, backend {backend()}; microseconds of CPU time, best of {TURNS} turns, the ratio "
        f"their median. {machine()}."
    )
    write(family_folder() / "gaussian_pair.md", head, {"Microseconds": table})


if __name__ == "__main__":
    {"accuracy": accuracy, "speed": speed}[sys.argv[1]]()
