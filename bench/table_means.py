"""Means of the tables that ship with scikit-learn, from a box alone, beside other libraries.

    pip install opendp diffprivlib          (0.16 and 0.6.6)
    python bench/table_means.py

writes ``bench/results/table_means.md`` and ``.json``. Setting: n is public, a row is replaced,
delta = 1e-6; the box of a column is [min(0, 1.5 min), max(0, 1.5 max)] of its values, which are
taken as public; columns without spread are left out. The figure is the root mean square error over
columns and trials, in the columns' own standard deviations.

- *OpenDP*: column by column, clamped mean and Gaussian noise, the zCDP budget of (epsilon, delta)
  in equal parts (its own accounting: ``binary_search_param``).
- *diffprivlib*: ``tools.mean(axis=0)``: Laplace noise, pure epsilon, in equal parts.
- *oracle*: knows mean and standard deviation of each column: a ball about them, in these units,
  that clips min(1/2, 4 s sqrt(d)/n) of Gaussian rows, s the noise multiplier.
- *centre*: the middle of the box, no row looked at.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import types
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import mean_baselines as published
from ellipsum import PrivateMean, calibrate

RESULTS = Path(__file__).parent / "results"
TABLES, EPSILONS, DELTA = ("breast_cancer", "diabetes", "wine", "digits"), (0.1, 1.0, 10.0), 1e-6

Array = np.ndarray
Mean = Callable[[Array, Array, Array, float, int], Array]


@dataclass
class Line:
    table: str
    n: int
    d: int
    epsilon: float
    errors: dict[str, float]  #: root mean square, in standard deviations

    @property
    def ratio(self) -> float:
        """Ours over the best of the other libraries."""
        return self.errors["ellipsum"] / min(self.errors[name] for name in PEERS)


def table(name: str) -> Array:
    import sklearn.datasets

    rows = np.array(getattr(sklearn.datasets, f"load_{name}")().data, dtype=float)
    return rows[:, rows.std(axis=0) > 0]


def ellipsum_mean(rows: Array, low: Array, high: Array, epsilon: float, seed: int) -> Array:
    return PrivateMean(lower=low, upper=high, epsilon=epsilon, delta=DELTA)(rows, seed=seed).value


def opendp_mean(rows: Array, low: Array, high: Array, epsilon: float, seed: int) -> Array:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    n, d = rows.shape
    rho = published.zcdp_budget(epsilon, DELTA) / d
    out = []
    for column, lower, upper in zip(rows.T, low, high, strict=True):
        domain = dp.vector_domain(dp.atom_domain(bounds=(float(lower), float(upper))), size=n)
        mean = (domain, dp.symmetric_distance()) >> dp.t.then_mean()

        def noisy(scale: float, mean=mean) -> dp.Measurement:
            return mean >> dp.m.then_gaussian(scale)

        scale = (upper - lower) / n / math.sqrt(2 * rho)  # the search starts near its answer
        chosen = dp.binary_search_param(
            noisy, d_in=2, d_out=rho, bounds=(0.99 * float(scale), 1.5 * float(scale))
        )
        out.append(noisy(chosen)(np.clip(column, lower, upper).tolist()))
    return np.array(out)


def diffprivlib_mean(rows: Array, low: Array, high: Array, epsilon: float, seed: int) -> Array:
    # Its models import names that scikit-learn no longer has; its tools want none of them.
    sys.modules.setdefault("diffprivlib.models", types.ModuleType("diffprivlib.models"))
    from diffprivlib import tools

    bounds = (low, high)
    return np.asarray(tools.mean(rows, epsilon=epsilon, bounds=bounds, axis=0, random_state=seed))


def oracle_mean(rows: Array, low: Array, high: Array, epsilon: float, seed: int) -> Array:
    mean, sd = rows.mean(axis=0), rows.std(axis=0)
    rho = calibrate.rho(calibrate.noise_multiplier(epsilon, DELTA))
    ledger = published.Ledger(np.random.default_rng(seed))
    known = np.zeros(mean.size), np.ones(mean.size)
    return mean + sd * published.oracle_ellipsoid(ledger, (rows - mean) / sd, *known, rho)


PEERS: dict[str, Mean] = {"OpenDP": opendp_mean, "diffprivlib": diffprivlib_mean}
METHODS: dict[str, Mean] = {
    "ellipsum": ellipsum_mean,
    **PEERS,
    "oracle": oracle_mean,
    "centre": lambda rows, low, high, epsilon, seed: (low + high) / 2,
}


def judge(name: str, epsilon: float, trials: int, kept: Line | None) -> Line:
    """A line; figures of other libraries are taken over from ``kept``."""
    rows = table(name)
    mean, sd = rows.mean(axis=0), rows.std(axis=0)
    low = np.minimum(0, 1.5 * rows.min(axis=0))
    high = np.maximum(0, 1.5 * rows.max(axis=0))
    errors = {}
    for method, estimate in METHODS.items():
        if kept is not None and method in PEERS:
            errors[method] = kept.errors[method]
            continue
        off = [(estimate(rows, low, high, epsilon, seed) - mean) / sd for seed in range(trials)]
        errors[method] = math.sqrt(float(np.mean(np.square(off))))
    return Line(name, *rows.shape, epsilon, errors)


def text(lines: list[Line], trials: int) -> str:
    missed = [f"{each.table} at {each.epsilon:g}" for each in lines if each.ratio > 0.5]
    head = [
        "# Means of tables from a box alone",
        "",
        f"Root mean square error in the columns' own standard deviations, {trials} trials; made by "
        "`python bench/table_means.py`, whose head says what each column is.",
        "",
        f"Wanted: at most half of the better library. Missed in {len(missed)} of {len(lines)}"
        + (": " + ", ".join(missed) + "." if missed else "."),
        "",
        "| table | n | d | epsilon | " + " | ".join(METHODS) + " | ellipsum / the better library |",
        "|" + "---|" * (5 + len(METHODS)),
    ]
    for each in lines:
        figures = " | ".join(f"{each.errors[name]:.2g}" for name in METHODS)
        setting = f"{each.table} | {each.n} | {each.d} | {each.epsilon:g}"
        head.append(f"| {setting} | {figures} | {each.ratio:.2f} |")
    return "\n".join(head) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--ours", action="store_true", help="other libraries' figures as they were")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    path, known = args.out / "table_means.json", {}
    if args.ours:
        kept = (Line(**each) for each in json.loads(path.read_text()))
        known = {(each.table, each.epsilon): each for each in kept}
    lines = []
    for name in TABLES:
        for epsilon in EPSILONS:
            lines.append(judge(name, epsilon, args.trials, known.get((name, epsilon))))
            print(text(lines[-1:], args.trials).splitlines()[-1], flush=True)
    path.write_text(json.dumps([asdict(line) for line in lines], indent=0) + "\n")
    path.with_suffix(".md").write_text(text(lines, args.trials))


if __name__ == "__main__":
    main()
