"""Intervals for the mean of a law from one private column: ours beside those of the literature.

    python bench/interval_peers.py    # about eight CPU minutes

writes ``bench/results/interval_peers.md``. Setting: ``replace``, (epsilon, delta) = (1, 1e-6), one
column of spread 1 about 10, a known box of +-20. Every method has the whole budget of one Gaussian
mechanism: where its paper adds Laplace noise it has Gaussian noise here, which is the smaller one
at this budget, and the quantiles that go with it.

* Karwa & Vadhan 2018, unknown variance: histogram of the logarithms of paired differences,
  histogram of the values, clipped mean and variance, a quarter of alpha for each source of error.
  Told that the spread is in [1/32, 32].
* NOISYVAR and NOISYMAD (Du, Foot, Moniot, Bray & Groce 2020): clip to the box, noisy mean beside a
  noisy variance or mean absolute deviation, half width by simulation. 4/5 and 0.85 of epsilon for
  the mean there; the same shares of the deviation here.
* Parametric bootstrap (Ferrando, Wang & Sheldon 2022): noisy first and second moments of the
  clipped column, half of rho each; the mechanism again on rows of the Gaussian that they say.

Covington et al. 2021 (little bootstraps under CoinPress) take subsets of the rows whose own
estimates are near normal, for which 10,000 rows are few, and bounds of the estimates' covariance:
not here. All but ours hold for Gaussian rows (KV: every n; the others: in the limit).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import stats

from ellipsum import PrivateMean, calibrate
from interval_coverage import DELTA, HALF, LEVEL, Cell, oracle, population
from mean_baselines import Array, Ledger

RESULTS = Path(__file__).parent / "results"
ALPHA, EPSILON = 1 - LEVEL, 1.0
NORMAL = float(stats.norm.isf(ALPHA / 2))
LAWS = ("gaussian", "exponential", "log-normal", "t3", "heavy zeros", "two points")
SIZES = (300, 1000, 3000, 10_000)
_SPREADS = (2.0**-5, 2.0**5)  # what Karwa & Vadhan are told
_DRAWS = 200
Interval = tuple[float, float]


def sd_of(sensitivity: float, rho: float) -> float:
    """What a `Ledger` adds."""
    return sensitivity / math.sqrt(2 * rho)


def karwa_vadhan(x: Array, ledger: Ledger, rho: float) -> Interval:
    """Algorithm 6 of the paper, with the shares of its authors' experiments: thirds."""
    n, share = len(x), ALPHA / 4
    pairs = np.abs(np.diff(x[: n // 2 * 2].reshape(-1, 2), axis=1)).ravel()
    first, last = math.floor(math.log2(_SPREADS[0]) - 2), math.ceil(math.log2(_SPREADS[1]) + 2)
    spread = 4 * 2.0 ** (
        first + _likeliest(ledger, pairs, 2.0 ** np.arange(first, last + 1), rho / 6)
    )
    bins = math.ceil(HALF / spread)
    edges = (np.arange(-bins, bins + 2) - 0.5) * spread
    middle = (_likeliest(ledger, x, edges, rho / 6) - bins) * spread
    reach = 4 * spread * math.sqrt(math.log(2 * n / share))
    low, high = middle - reach, middle + reach
    inside, width = np.clip(x, low, high), high - low
    mean = float(np.clip(ledger.gaussian(inside.mean(), width / n, rho / 3), low, high))
    off = sd_of(width / n, rho / 3) * float(stats.norm.isf(share / 2))
    around = float(np.sum((inside - mean) ** 2)) / (n - 1)
    variance = float(ledger.gaussian(np.array(around), width**2 / (n - 1), rho / 3))
    variance += sd_of(width**2 / (n - 1), rho / 3) * float(stats.norm.isf(share))
    variance = min(max(variance, 0.0), _SPREADS[1] ** 2)
    half = math.sqrt(variance / n) * float(stats.t.isf(share / 2, n - 1)) + off
    return mean - half, mean + half


def _likeliest(ledger: Ledger, values: Array, edges: Array, rho: float) -> int:
    """The bin of the largest noisy count: replacing a record moves two of them by 1."""
    counts = np.histogram(values, edges)[0].astype(float)
    return int(np.argmax(ledger.gaussian(counts, math.sqrt(2), rho)))


def _simulated(mean: float, spread: float, sd: float, n: int) -> Interval:
    """Sampling and noise are Gaussian here, so the simulation's limit is a quantile."""
    half = NORMAL * math.hypot(spread / math.sqrt(n), sd)
    return mean - half, mean + half


def noisy_variance(x: Array, ledger: Ledger, rho: float, share: float = 0.8) -> Interval:
    """NOISYVAR: Algorithms 2 and 3."""
    n, inside, width = len(x), np.clip(x, -HALF, HALF), 2 * HALF
    of_mean, of_spread = share**2 * rho, (1 - share**2) * rho
    mean = float(ledger.gaussian(inside.mean(), width / n, of_mean))
    variance = float(ledger.gaussian(inside.var(ddof=1), width**2 / n, of_spread))
    return _simulated(mean, math.sqrt(max(variance, 0.0)), sd_of(width / n, of_mean), n)


def noisy_deviation(x: Array, ledger: Ledger, rho: float, share: float = 0.85) -> Interval:
    """NOISYMAD: Algorithms 4 and 3."""
    n, inside, width = len(x), np.clip(x, -HALF, HALF), 2 * HALF
    of_mean, of_spread = share**2 * rho, (1 - share**2) * rho
    mean = float(ledger.gaussian(inside.mean(), width / n, of_mean))
    deviation = np.abs(inside - inside.mean()).mean()
    spread = math.sqrt(math.pi / 2) * float(ledger.gaussian(deviation, 2 * width / n, of_spread))
    return _simulated(mean, max(spread, 0.0), sd_of(width / n, of_mean), n)


def bootstrap(x: Array, ledger: Ledger, rho: float) -> Interval:
    """Algorithm 1 for a Gaussian of unknown mean and variance; the basic interval."""
    n = len(x)

    def estimate(rows: Array, source: Ledger) -> tuple[float, float]:
        inside = np.clip(rows, -HALF, HALF)
        mean = float(source.gaussian(inside.mean(), 2 * HALF / n, rho / 2))
        square = float(source.gaussian((inside**2).mean(), HALF**2 / n, rho / 2))
        return mean, math.sqrt(max(square - mean**2, 0.0))

    mean, spread = estimate(x, ledger)
    again = Ledger(ledger.rng)  # post-processing: nothing of it is spent
    off = [estimate(ledger.rng.normal(mean, spread, n), again)[0] - mean for _ in range(_DRAWS)]
    low, high = np.quantile(off, [ALPHA / 2, 1 - ALPHA / 2])
    return mean - float(high), mean - float(low)


METHODS: dict[str, Callable[[Array, Ledger, float], Interval]] = {
    "Karwa & Vadhan": karwa_vadhan,
    "NOISYVAR": noisy_variance,
    "NOISYMAD": noisy_deviation,
    "parametric bootstrap": bootstrap,
}


def line(law: str, n: int, seeds: range) -> str:
    """Coverage of the law's mean, and median half width over the oracle's."""
    cell = Cell(law, n, d=1, center=0.5)
    mechanism = PrivateMean(lower=[-HALF], upper=[HALF], epsilon=EPSILON, delta=DELTA)
    rho = calibrate.rho(calibrate.noise_multiplier(EPSILON, DELTA))
    truth, best = float(population(cell)[0]), oracle(cell, mechanism, "population")
    hits = {name: 0 for name in ("ellipsum", *METHODS)}
    widths: dict[str, list[float]] = {name: [] for name in hits}
    for seed in seeds:
        rows, _ = cell.draw(seed)
        ends = mechanism(rows, seed=seed).confidence_interval(LEVEL, "population")
        found: dict[str, Interval] = {"ellipsum": (float(ends[0][0]), float(ends[1][0]))}
        for number, (name, method) in enumerate(METHODS.items()):
            ledger = Ledger(np.random.default_rng([seed, number]))
            found[name] = method(rows[:, 0], ledger, rho)
            assert ledger.spent <= rho * (1 + 1e-12)
        for name, (low, high) in found.items():
            hits[name] += low <= truth <= high
            widths[name].append((high - low) / 2)
    runs = len(seeds)
    cells = " | ".join(
        f"{hits[name] / runs:.3f} | {np.median(widths[name]) / best:.2g}" for name in hits
    )
    return f"| {law} | {n} | {cells} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=90_000, help="the first seed")
    parser.add_argument("--out", type=Path, default=RESULTS / "interval_peers.md")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.runs)
    heads = " | ".join(f"{name}: coverage | width" for name in ("ellipsum", *METHODS))
    lines = [
        "# Private intervals for the mean of a law",
        "",
        f"{LEVEL:.0%} intervals of one column, {args.runs} runs, seeds from {args.first}; made by "
        "`python bench/interval_peers.py`, whose head says what the methods are. Widths over that "
        "of an oracle who knows mean and spread.",
        "",
        f"| law | n | {heads} |",
        "|" + "---|" * (4 + 2 * len(METHODS)),
    ]
    for law in LAWS:
        for n in SIZES:
            lines.append(line(law, n, seeds))
            print(lines[-1], flush=True)
    args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
