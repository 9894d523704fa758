"""How far from its limit a release must be that knows the law by 8,000 rows alone.

Of a release Z = K W + noise, Y - K W has a covariance C on the law, and the limit is kept on the
rows: the law's distortion is off by tr C(law) - tr C(rows). With n Gaussian rows the standard
deviation of that is (2 tr C^2 / n)^(1/2), and by Cramer and Rao no unbiased estimate of tr C has a
smaller one. Beside what was learned: the exact optimum of each sample's covariance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from ellipsum.tradeoff import GaussianTradeoff
from learned_settings import MIDDLE, covariances, draw

if TYPE_CHECKING:
    from learned_data import Source
    from learned_pictures import Results

SAMPLES, ROWS, WITHIN = 100, 8000, 0.015
CELLS = [*MIDDLE.items(), ("vector, useful", 1.0)]  # the last: where a run was furthest off


def reached(matrix: np.ndarray, noise: float, offset: np.ndarray, setting: str) -> float:
    """Distortion on the law of a release offset + matrix w + noise of this total variance."""
    left = _left(matrix, setting)
    return float(np.trace(left @ covariances()[setting][1] @ left.T) + noise + offset @ offset)


def off_of(made: GaussianTradeoff, setting: str) -> float:
    """Distortion on the law of an exact optimum, over its target."""
    offset = made.mean_useful_ - made.matrix_ @ made.mean_observed_
    noise = float(np.trace(made.noise_covariance_))
    return reached(made.matrix_, noise, offset, setting) / made.distortion - 1


def exact_off(rows: np.ndarray, setting: str, target: float) -> float:
    """The same of the optimum of the rows' own covariance."""
    observe, _, k = covariances()[setting]
    return off_of(
        GaussianTradeoff(observe, distortion=target).fit(rows[:, :k], rows[:, k:]), setting
    )


def least_deviation(setting: str, target: float, n: int = ROWS) -> float:
    """The closed form, over the target, at the optimum of the law."""
    observe, covariance, k = covariances()[setting]
    made = GaussianTradeoff(observe, distortion=target).from_covariance(covariance, k)
    left = _left(made.matrix_, setting)
    spread = left @ covariance @ left.T
    return float(np.sqrt(2 * np.trace(spread @ spread) / n)) / target


def _left(matrix: np.ndarray, setting: str) -> np.ndarray:
    """Y - matrix w as a matrix times (X, Y)."""
    observe, covariance, k = covariances()[setting]
    useful, both = np.eye(len(covariance))[k:], np.eye(len(covariance))
    return useful - matrix @ (useful if observe == "useful" else both)


def sampling(results: Results, source: Source) -> None:
    """Learned and exact, each on the same samples; nobody reads the law."""
    from ellipsum.learned import PrivacyNetwork

    for row in results.get("affine", []):  # the runs of the table before
        if row["rows"] and "exact off" not in row:
            data = draw(covariances()[row["setting"]][1], row["rows"], 100 + row["seed"])
            row["exact off"] = exact_off(data, row["setting"], row["target"])
    results.keep()
    rows = results.setdefault("sampling", {})
    for setting, target in CELLS:
        key = f"{setting}; {target:g}"
        if key in rows:
            continue
        observe, covariance, k = covariances()[setting]
        learned, exact = [], []
        for seed in range(SAMPLES):
            data = draw(covariance, ROWS, 1000 + seed)
            net = PrivacyNetwork("affine", observe=observe, distortion=target, seed=seed)
            net.fit(data[:, :k], data[:, k:])
            offset = net.offset_
            noise = float((net.noise_root_**2).sum())
            learned.append(reached(net.matrix_, noise, offset, setting) / target - 1)
            exact.append(exact_off(data, setting, target))
        rows[key] = {"learned": learned, "exact": exact, "least": least_deviation(setting, target)}
        results.keep()
        print("sampling", key, flush=True)


def sampling_lines(results: dict) -> list[list[str]]:
    """Cells of its table."""
    lines = []
    for key, row in results.get("sampling", {}).items():
        learned, exact, least = np.array(row["learned"]), np.array(row["exact"]), row["least"]
        setting, target = key.split("; ")
        cells = [setting, target, f"{least:.2%}", f"{learned.std():.2%}", f"{exact.std():.2%}"]
        cells.append(f"{2 * ndtr(WITHIN / least) - 1:.0%}")
        cells += [f"{(abs(off) <= WITHIN).mean():.0%}" for off in (learned, exact)]
        cells += [f"{abs(learned).max():.2%}", f"{abs(learned - exact).max():.3%}"]
        lines.append(cells)
    return lines
