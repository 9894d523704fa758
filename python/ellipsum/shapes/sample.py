"""Mean and covariance of public rows, the correlations shrunk."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["SampleMoments", "sample_moments"]

Array = NDArray[np.float64]

#: From so many coordinates on each eigenvalue of a sample is shrunk for itself (if none is tiny).
_NONLINEAR_FROM, _SINGULAR = 20, 1e-6


class SampleMoments(NamedTuple):
    """What public rows say of a law: all of it public."""

    m: int
    center: Array  #: mean, data units
    sd: Array  #: data units
    correlation: Array | None  #: shrunk; None where it was not asked for

    @property
    def center_error(self) -> Array:
        """Standard error of the mean, data units."""
        return np.asarray(self.sd / math.sqrt(self.m))


def sample_moments(
    blocks: Callable[[], Iterable[Array]],
    d: int,
    *,
    correlated: bool,
    names: Sequence[str] | None = None,
) -> SampleMoments:
    """Moments of public rows, the correlations shrunk: two passes, O(d^2) memory.

    With enough rows for it, each eigenvalue of the correlations for itself
    (:func:`_nonlinear_shrinkage`); else all towards one, with the weight of Ledoit & Wolf (2004)
    for the standardised rows: it makes the matrix invertible for any m >= 2.

    Parameters
    ----------
    blocks : function that returns the rows anew, in blocks (m, d), data units, all finite
    correlated : bool; without, one pass and no correlations
    names : of the columns, for messages

    Raises
    ------
    ValueError
        For fewer than two rows, or a column that is constant.
    """
    count, center, squares = 0, np.zeros(d), np.zeros(d)
    for rows in blocks():
        own = rows.mean(axis=0)
        step, total = own - center, count + len(rows)
        # Blocks are combined by mean and squared deviations (Chan, Golub & LeVeque 1983).
        squares += np.sum((rows - own) ** 2, axis=0) + step**2 * (count * len(rows) / total)
        center, count = center + step * (len(rows) / total), total
    if count < 2:
        raise ValueError(f"public rows must be at least 2 complete ones, got {count}")
    sd = np.sqrt(squares / (count - 1))
    if not (sd > 0).all():
        j = int(np.argmin(sd))
        which = j if names is None else repr(names[j])
        raise ValueError(f"column {which} of the public rows is constant: leave it out")
    if not correlated:
        return SampleMoments(count, center, sd, None)
    products, fourth = np.zeros((d, d)), 0.0
    for rows in blocks():
        z = (rows - center) / sd
        products += z.T @ z
        fourth += float(np.sum(np.sum(z * z, axis=1) ** 2))
    correlation = _shrunk(products / (count - 1), fourth, count)
    return SampleMoments(count, center, sd, correlation)


def _shrunk(correlation: Array, fourth: float, m: int) -> Array:
    """The correlations of m rows, shrunk; ``fourth`` is the sum of ||z||^4."""
    d = len(correlation)
    if d >= _NONLINEAR_FROM and m >= 1.5 * d:
        values, basis = np.linalg.eigh(correlation)
        if values[0] > _SINGULAR:
            shrunk = (basis * _nonlinear_shrinkage(values, m - 1)) @ basis.T
            return np.asarray((shrunk + shrunk.T) / 2)
    distance = float(np.sum((correlation - np.eye(d)) ** 2))
    scatter = (fourth / m - float(np.sum(correlation**2))) / m
    # Of Gaussian rows scatter is (||r||^2 + d^2)/m, and the weight above 1/m: of few rows the
    # difference may even be negative, and r is singular.
    weight = min(1.0, max(scatter / distance, 1 / m)) if distance > 0 else 1.0
    return np.asarray((1 - weight) * correlation + weight * np.eye(d))


def _nonlinear_shrinkage(values: Array, m: int) -> Array:
    """Estimates of u_i^T S u_i for the eigenvectors u_i of a sample covariance, from its
    ascending eigenvalues and m degrees of freedom (Ledoit & Wolf 2020, section 4.7).

    With these eigenvectors, b_i = (u_i^T S u_i)^(-1/4) has the least noise for E||y||^2 = 1.
    """
    ratio, width = values.size / m, m ** (-1 / 3)
    scale = width * values
    x = (values[:, None] - values) / scale
    inside = 1 - x**2 / 5
    density = np.mean(0.75 / math.sqrt(5) * np.maximum(inside, 0) / scale, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = inside * np.log(np.abs((math.sqrt(5) - x) / (math.sqrt(5) + x)))
    log = np.where(np.abs(inside) < 1e-12, 0.0, log)  # its limit at the kernel's edge
    hilbert = np.mean((-0.3 * x + 0.75 / math.sqrt(5) * log) / (math.pi * scale), axis=1)
    part = math.pi * ratio * values
    return np.asarray(values / ((part * density) ** 2 + (1 - ratio - part * hilbert) ** 2))
