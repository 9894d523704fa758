"""Divergences of a Gaussian release from the Gaussian raw data.

In the coordinates that whiten the raw law, the released covariance is diag(1 + e) and the shift of
the mean is c. All are sums over coordinates, written in e so that small changes keep their
digits. Infinite where they are. Source: Gil, Alajaji & Linder 2013; Chen, Navidi & Rajagopal,
section 6.3.1, whose chi-square formulas are wrong as printed (`tests/test_filter_errata.py`).
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from .. import _validate

__all__ = ["chi2", "kl", "renyi", "reverse_kl"]

Array = NDArray[np.float64]


def kl(mean: ArrayLike, cov: ArrayLike, mean_released: ArrayLike, cov_released: ArrayLike) -> float:
    """KL(released || raw), nats.

    Parameters
    ----------
    mean, cov : array (d,) and (d, d), the raw law; cov must be positive definite
    mean_released, cov_released : array (d,) and (d, d), the released law

    Returns
    -------
    float, infinite where the released covariance is singular
    """
    change, shift = _compare(mean, cov, mean_released, cov_released)
    return float(0.5 * (_less_log(change).sum() + shift @ shift))


def reverse_kl(
    mean: ArrayLike, cov: ArrayLike, mean_released: ArrayLike, cov_released: ArrayLike
) -> float:
    """KL(raw || released), nats; parameters as in `kl`."""
    change, shift = _compare(mean, cov, mean_released, cov_released)
    if (change <= -1).any():
        return math.inf
    return float(0.5 * (_less_log(-change / (1 + change)).sum() + (shift**2 / (1 + change)).sum()))


def renyi(
    mean: ArrayLike,
    cov: ArrayLike,
    mean_released: ArrayLike,
    cov_released: ArrayLike,
    order: float = 2.0,
) -> float:
    """Renyi divergence D_order(released || raw), nats.

    For an order above 1 it is infinite unless order * cov > (order - 1) * cov_released: noise
    above cov / (order - 1) costs an infinite budget, however small the budget's unit.

    Parameters
    ----------
    order : float above 0; at 1 it is `kl`
    """
    a = _validate.positive("order", order)
    if a == 1:
        return kl(mean, cov, mean_released, cov_released)
    change, shift = _compare(mean, cov, mean_released, cov_released)
    mixed = (1 - a) * change  # the mixture's covariance is diag(1 + mixed)
    if (mixed <= -1).any():
        return math.inf
    if (change <= -1).any():  # a law on a subspace: mutually singular with the raw one
        return math.inf
    logs = np.log1p(mixed) - (1 - a) * np.log1p(change)
    return float(0.5 * a * (shift**2 / (1 + mixed)).sum() - logs.sum() / (2 * (a - 1)))


def chi2(
    mean: ArrayLike, cov: ArrayLike, mean_released: ArrayLike, cov_released: ArrayLike
) -> float:
    """Half the chi-square divergence, E_raw (dP/dQ - 1)^2 / 2 = (e^{D_2} - 1) / 2.

    For equal covariances (e^{2 s} - 1) / 2 with s half the squared distance of the means, so that
    a budget b bounds that squared distance by log(1 + 2 b). Parameters as in `kl`.
    """
    order_two = renyi(mean, cov, mean_released, cov_released, 2.0)
    return 0.5 * math.expm1(order_two) if order_two < 709 else math.inf


def _less_log(change: Array) -> Array:
    """e - log(1 + e) >= 0 to its last digits; infinite at e <= -1."""
    small = np.abs(change) < 0.02
    e = np.where(small, change, 0.0)
    series = e * e * sum((-e) ** k / (k + 2) for k in range(10))
    inside = np.where(small | (change <= -1), 0.0, change)
    return np.where(small, series, np.where(change <= -1, np.inf, inside - np.log1p(inside)))


def _compare(
    mean: ArrayLike, cov: ArrayLike, mean_released: ArrayLike, cov_released: ArrayLike
) -> tuple[Array, Array]:
    """e and c of the released law in the raw law's eigen-coordinates."""
    raw = _validate.square("cov", np.atleast_2d(np.asarray(cov, dtype=float)))
    released = np.atleast_2d(np.asarray(cov_released, dtype=float))
    released = _validate.square("cov_released", released, d=len(raw))
    d = len(raw)
    shift = _validate.vector("mean_released", np.atleast_1d(mean_released), d=d)
    shift = shift - _validate.vector("mean", np.atleast_1d(mean), d=d)
    try:
        root = np.linalg.cholesky(raw)
    except np.linalg.LinAlgError:
        raise ValueError("cov must be positive definite") from None
    difference = scipy.linalg.solve_triangular(root, released - raw, lower=True)
    difference = scipy.linalg.solve_triangular(root, difference.T, lower=True)
    change, basis = np.linalg.eigh(0.5 * (difference + difference.T))
    if change[0] < -1 - 1e-9:
        raise ValueError("cov_released must have no negative eigenvalue")
    change = np.where(change < -1 + 1e-14, -1.0, change)
    return change, basis.T @ scipy.linalg.solve_triangular(root, shift, lower=True)
