"""Columns whose spread is a millionth of their box, beside columns that fill it: are they found?

    python bench/narrow_columns.py                # about two CPU minutes
    python bench/narrow_columns.py --first 3000   # other rows and other noise

writes ``bench/results/narrow_columns.md``. Setting: ``replace``, (epsilon, delta) = (1, 1e-6), a
box of half width 20 in each column, Gaussian columns about a place drawn evenly from its middle
half: wide ones of standard deviation 1, narrow ones of 2e-5. An error is the root mean square of
the value against the mean of the rows, in standard deviations of the column, over the noise of an
oracle that knows mean and sigma of all columns and clips one row in a thousand. Nothing was chosen
on the rows and the noise of the default ``--first``.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from scipy import stats

from ellipsum import PrivateMean

RESULTS = Path(__file__).parent / "results"
HALF, WIDE, NARROW, LEVEL = 20.0, 1.0, 2e-5, 0.95
ROWS, SIZES, ERRORS = (
    (1000, 3000, 10_000, 30_000),
    ((6, 0), (6, 3), (10, 2), (30, 3)),
    ("relative", "box"),
)


def judge(n: int, d: int, narrow: int, error: str, seeds: range) -> str:
    """One line of the table."""
    side, sigma = np.full(d, HALF), np.where(np.arange(d) < narrow, NARROW, WIDE)
    mechanism = PrivateMean(lower=-side, upper=side, epsilon=1, delta=1e-6, error=error)
    errors, hits = [], []
    for seed in seeds:
        rng = np.random.default_rng([seed, n, d, narrow])
        rows = rng.uniform(-HALF / 2, HALF / 2, d) + sigma * rng.standard_normal((n, d))
        mean = rows.mean(axis=0)
        release = mechanism(rows, seed=seed)
        lower, upper = release.confidence_interval(LEVEL)
        errors.append((release.value - mean) / sigma)
        hits.append((lower - 1e-12 * HALF <= mean) & (mean <= upper + 1e-12 * HALF))
    oracle = 2 * math.sqrt(stats.chi2.isf(1e-3, d)) / (n * mechanism.guarantee.mu)
    rms = np.sqrt(np.mean(np.square(errors), axis=0)) / oracle
    covered, plan = np.mean(hits, axis=0), mechanism.plan(n)
    of = [
        f"{math.sqrt(np.mean(part**2)):.2g}" if part.size else ""
        for part in np.split(rms, [narrow])
    ]
    final = 100 * float(plan.steps[-1].share)
    setting = f"{error} | {n} | {d} | {narrow}"
    return (
        f"| {setting} | {of[0]} | {of[1]} | {covered.min():.2f} | {plan.passes} | {final:.0f} % |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--first", type=int, default=90_000, help="the first seed")
    parser.add_argument("--errors", nargs="+", default=ERRORS, choices=ERRORS)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--out", type=Path, default=RESULTS / "narrow_columns.md")
    args = parser.parse_args()
    lines = [
        "# Columns that are narrow in their box, beside wide ones",
        "",
        f"{args.runs} runs a line, seeds from {args.first}; made by "
        "`python bench/narrow_columns.py`, whose head says what the columns mean.",
        "",
        "| error | n | d | narrow | narrow: error / oracle | wide: error / oracle | "
        "coverage of the worst column | passes | final |",
        "|" + "---|" * 9,
    ]
    for error in args.errors:
        for n in args.rows:
            for d, narrow in SIZES:
                lines.append(judge(n, d, narrow, error, range(args.first, args.first + args.runs)))
                print(lines[-1], flush=True)
    args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
