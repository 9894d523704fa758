"""A quadratic function of a Gaussian vector as a quadratic form in independent ones."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate

__all__ = ["diagonal"]

#: Eigenvalues of the quadratic part below this share of the largest are rounding.
_ROUNDING = 1e-13

#: A covariance may have eigenvalues this far below zero, in units of its largest.
_NEGATIVE = 1e-12


class Diagonal(TypedDict):
    """The parameters of a QuadraticForm."""

    weights: NDArray[np.float64]
    dof: NDArray[np.float64]
    noncentrality: NDArray[np.float64]
    normal_sd: float
    offset: float


def diagonal(
    matrix: ArrayLike, mean: ArrayLike, cov: ArrayLike, linear: ArrayLike | None, constant: float
) -> Diagonal:
    """The parameters of a quadratic function of a Gaussian: x = mean + Bz, then eigenvectors."""
    mu = _validate.vector("mean", mean)
    n = mu.size
    a, sigma = (_square(name, m, n) for name, m in (("matrix", matrix), ("cov", cov)))
    b = np.zeros(n) if linear is None else _validate.vector("linear", linear, d=n)
    a = 0.5 * (a + a.T)
    variances, axes = np.linalg.eigh(0.5 * (sigma + sigma.T))
    if variances[0] < -_NEGATIVE * max(variances[-1], 0):
        raise ValueError("cov must be positive semidefinite")
    root = axes * np.sqrt(np.maximum(variances, 0))
    values, vectors = np.linalg.eigh(root.T @ a @ root)
    slope = vectors.T @ (root.T @ (2 * a @ mu + b))
    real = np.abs(values) > _ROUNDING * np.max(np.abs(values), initial=0)
    w, s = values[real], slope[real]
    shift = s / (2 * w)
    return {
        "weights": w,
        "dof": np.ones(w.size),
        "noncentrality": shift**2,
        "normal_sd": float(np.linalg.norm(slope[~real])),
        "offset": float(mu @ a @ mu + b @ mu + constant - np.sum(w * shift**2)),
    }


def _square(name: str, value: ArrayLike, n: int) -> NDArray[np.float64]:
    array = np.asarray(value, dtype=np.float64)
    if array.shape != (n, n) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a finite array of shape ({n}, {n}), got {array.shape}")
    return array
