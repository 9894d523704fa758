"""The certified gap of Gaussian tradeoffs under laws that are all but singular.

python bench/singular_laws.py [COUNT]     1,500 laws: the largest gap, by the least variance

Each law has one column that nearly follows from others: a useful one from a sensitive one, one
useful from another, one sensitive from another, or a sensitive one from all useful ones. The least
variance is the smallest eigenvalue of the correlations that counts, over the largest.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from ellipsum.tradeoff import GaussianTradeoff
from ellipsum.tradeoff.gaussian_law import _RANK

KINDS = ("useful from sensitive", "useful from useful", "sensitive from sensitive", "from all")


class Case(NamedTuple):
    """A law, what is observed, the distortion, and the least variance."""

    covariance: np.ndarray
    k: int
    observe: str
    distortion: float
    least: float


def case(seed: int) -> Case:
    """Distortions from a part in 10^5 of the way up from the least possible one."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % 4]
    k, n = (int(size) for size in rng.integers(1, 8 if rng.random() < 0.2 else 4, 2))
    k, n = max(k, 1 + (kind == KINDS[2])), max(n, 1 + (kind == KINDS[1]))
    spread = rng.normal(size=(k + n, k + n))
    factor = np.linalg.cholesky(spread @ spread.T / (k + n) + 0.1 * np.eye(k + n))
    other = {KINDS[0]: (k, factor[0]), KINDS[1]: (k + 1, factor[k]), KINDS[2]: (1, factor[0])}
    row, near = other.get(kind, (0, rng.normal(size=n) @ factor[k:]))
    off = rng.normal(size=k + n)
    size = np.linalg.norm(near) / np.linalg.norm(off)
    factor[row] = near + 10 ** rng.uniform(-7.5, -2) * size * off
    covariance = factor @ factor.T
    sd = np.sqrt(covariance.diagonal())
    values = np.linalg.eigvalsh(covariance / np.outer(sd, sd))
    counted = values[values > _RANK * len(values) * values[-1]]
    observe, total = ("useful", "full")[rng.integers(2)], float(np.trace(covariance[k:, k:]))
    made = GaussianTradeoff(observe, distortion=total).from_covariance(covariance, k)
    above = 10 ** rng.uniform(-5, -0.05) * (total - made.least_distortion_)
    distortion = made.least_distortion_ + above
    return Case(covariance, k, observe, distortion, float(counted[0] / counted[-1]))


def gap_of(given: Case) -> float:
    """``gap_`` of a case."""
    made = GaussianTradeoff(given.observe, distortion=given.distortion)
    return made.from_covariance(given.covariance, given.k).gap_


def main(count: int) -> None:
    cases = [case(seed) for seed in range(count)]
    gaps, least = np.array([gap_of(one) for one in cases]), np.array([one.least for one in cases])
    size = np.array([len(one.covariance) for one in cases])
    print(f"{count} laws; gap in nats, by the least variance v of the correlations")
    for power in range(-14, 0):
        here = (least >= 10.0**power) & (least < 10.0 ** (power + 1))
        if here.any():
            most, middle, above = (
                gaps[here].max(),
                np.median(gaps[here]),
                (gaps[here] > 1e-8).mean(),
            )
            print(
                f"  v from 1e{power:+03d}: {here.sum():4} laws, gap at most {most:.1e}, "
                f"median {middle:.1e}, above 1e-8 in {above:.0%}"
            )
    beyond = (gaps - 1e-8) * least * 2.0**51 / size
    print(f"  (gap - 1e-8) / ((k + n) 2^-51 / v): at most {beyond.max():.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1500)
