"""Mean and covariance of public rows, the correlations shrunk."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["sample_moments"]

Array = NDArray[np.float64]

#: From so many coordinates on each eigenvalue of a sample is shrunk for itself (if none is tiny).
_NONLINEAR_FROM, _SINGULAR = 20, 1e-6


def sample_moments(rows: Array) -> tuple[Array, Array]:
    """Mean and covariance of public rows (m, d), the correlations shrunk.

    With enough rows for it, each eigenvalue of the correlations for itself
    (:func:`_nonlinear_shrinkage`); else all towards one, with the weight of Ledoit & Wolf (2004)
    for the standardised rows: it makes the matrix invertible for any m >= 2.
    """
    m, d = rows.shape
    center, sd = rows.mean(axis=0), rows.std(axis=0, ddof=1)
    if not (sd > 0).all():
        raise ValueError(f"column {int(np.argmin(sd))} of rows is constant: leave it out")
    z = (rows - center) / sd
    correlation = z.T @ z / (m - 1)
    if d >= _NONLINEAR_FROM and m >= 1.5 * d:
        values, basis = np.linalg.eigh(correlation)
        if values[0] > _SINGULAR:
            shrunk = (basis * _nonlinear_shrinkage(values, m - 1)) @ basis.T
            return center, (shrunk + shrunk.T) / 2 * np.outer(sd, sd)
    distance = float(np.sum((correlation - np.eye(d)) ** 2))
    scatter = (float(np.sum(np.sum(z * z, axis=1) ** 2)) / m - float(np.sum(correlation**2))) / m
    weight = min(1.0, scatter / distance) if distance > 0 else 1.0
    shrunk = (1 - weight) * correlation + weight * np.eye(d)
    return center, shrunk * np.outer(sd, sd)


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
