"""Example 3.6 of Zhou, Ligett & Wasserman (2009): a table of signs, one of which changes."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import wishart

from ellipsum.records import GaussianPair

DRAWS = 400_000


def signs(n: int, d: int) -> np.ndarray:
    """A table of +-1, (n, d)."""
    return np.random.default_rng(1).choice([-1.0, 1.0], size=(n, d))


def covariances(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """X'X/n of the table, and of its neighbour with one bit changed."""
    x = signs(n, d)
    other = x.copy()
    other[0, 0] *= -1
    return x.T @ x / n, other.T @ other / n


def bit_pair(n: int, d: int, m: int) -> GaussianPair:
    """m rows of the projections of both."""
    one, two = covariances(n, d)
    return GaussianPair(np.zeros(d), one, np.zeros(d), two, m)


def truncated(n: int, d: int, m: int, rejected: float, *, own: bool) -> tuple[float, float]:
    """Outputs with |Y'Y/m - S*| <= tau in every entry are kept, tau so that a share is rejected.

    Returns
    -------
    share of one table's kept outputs that the neighbour never keeps (S* being each table's own
    covariance, or the first one's for both); and the pure epsilon of the kept outputs about the
    public S* (NaN for the own ones): the largest log-ratio in the box and the masses' ratio.
    """
    one, two = covariances(n, d)
    found = wishart(m, one / m).rvs(DRAWS, random_state=np.random.default_rng(0))
    off = np.abs(found - one).max(axis=(1, 2))
    tau = float(np.quantile(off, 1 - rejected))
    kept = found[off <= tau]
    if own:
        return float(np.mean(np.abs(kept - two).max(axis=(1, 2)) > tau)), math.nan
    log_ratio, density = _log_ratios(one, two, m, tau, kept)
    # P'(S)/P(S) = E[dP'/dP | S], a mean over the kept draws of the first table.
    return 0.0, max(log_ratio) + abs(math.log(float(np.mean(np.exp(density)))))


def _log_ratios(
    one: np.ndarray, two: np.ndarray, m: int, tau: float, kept: np.ndarray
) -> tuple[tuple[float, float], np.ndarray]:
    """Largest log dP/dP' and log dP'/dP in the box, and log dP'/dP of the kept outputs."""
    inverse = np.linalg.inv(two) - np.linalg.inv(one)
    constant = np.linalg.slogdet(two)[1] - np.linalg.slogdet(one)[1]
    middle, reach = float(np.sum(inverse * one)), tau * float(np.abs(inverse).sum())
    largest = (0.5 * m * (constant + middle + reach), -0.5 * m * (constant + middle - reach))
    density = -0.5 * m * (constant + np.einsum("ij,nij->n", inverse, kept))
    return largest, density
