"""A Gaussian law in white coordinates, factored so that near-singular ones keep their digits.

(X, Y) = F e with e white, F from the eigenvectors of the correlations; noise of the observation
is more of e. Rows of each attribute are made orthonormal (Q_x, Q_w) from F itself: what X keeps
beside W is then a difference of factors, exact to rounding, where a difference of covariances
would lose half of the digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate

__all__ = ["Law", "covariance_of", "law_of", "span"]

Array = NDArray[np.float64]

#: For each coordinate: directions of a correlation matrix below this share of the largest are
#: rounding, not data (eigenvalues are right to about 2^-52 of it).
_RANK = 2.0**-48
#: Of factors, whose singular values are square roots: data are above sqrt(_RANK), rounding is
#: below 1e-13.
_FACTOR_RANK = 1e-11
#: How far the correlations' eigenvectors and values may belong to another matrix, per unit of the
#: largest: LAPACK's backward error.
_BACKWARD = 2.0**-50


class Law(NamedTuple):
    """The law in whitened coordinates of what is observed."""

    whiten: Array  # T, (observed, r): w T is white
    sensitive: Array  # G, (k, r): regression of the whitened X
    useful: Array  # H, (n, r): regression of Y
    rest: Array  # (k, size): what the whitened X is beside G
    total: float  # tr Cov Y
    known: float  # tr H'H: what W tells of Y
    rows: tuple[Array, Array, Array]  # Q_x, Q_w and Y in terms of e
    doubt: Array  # (size,): of each coordinate of e, sqrt(backward error / its variance)

    @property
    def least_distortion(self) -> float:
        return max(0.0, self.total - self.known)

    def leakage(self, share: Array) -> float:
        """-1/2 log det(I - G N G'); infinite where the release determines a direction of X."""
        kept = np.linalg.svd(self._kept(share), compute_uv=False)
        if len(kept) and kept[-1] <= _FACTOR_RANK:
            return np.inf
        return max(0.0, -float(np.log(kept).sum()))

    def rounding(self, share: Array, price: float) -> float:
        """To first order, what rounding of law, N and budget may change (a finite leakage).

        By the envelope theorem the optimum moves with the law as a fixed release does: in the
        metric of e by tr((S + l J) D) for Cov e = I + D, S of its leakage, J of its error.
        """
        x, w, y = self.rows
        inner = np.eye(x.shape[1]) - w.T @ share @ w  # Cov(e | Z)
        left, size, _ = np.linalg.svd(self._kept(share), full_matrices=False)
        solved = (left / size**2) @ left.T
        turned = x @ inner
        missed = y - self.useful @ share @ w
        moved = 0.5 * (x.T @ x - turned.T @ solved @ turned) + price * missed.T @ missed
        moved = moved * np.outer(self.doubt, self.doubt)
        slope = float(np.trace(self.sensitive.T @ solved @ self.sensitive))
        own = 2.0**-51 * (len(share) * 0.5 * slope + price * self.total)
        return float(np.abs(np.linalg.eigvalsh(0.5 * (moved + moved.T))).sum()) + own

    def _kept(self, share: Array) -> Array:
        """A factor of I - G N G', the covariance that the whitened X keeps."""
        values, basis = np.linalg.eigh(0.5 * (share + share.T))
        root = np.sqrt(np.clip(1 - values, 0.0, 1.0))
        return np.hstack([self.rest, self.sensitive @ basis * root])


def law_of(joint: Array, k: int, observed: Array, noise: float) -> Law:
    """Of a covariance of (X, Y), X the first k, seen as ``observed`` times it plus noise."""
    factor, values = _factor(joint)
    m, r = len(observed), factor.shape[1]
    own = np.sqrt(noise) * np.eye(m) if noise > 0 else np.zeros((m, 0))
    seen = np.hstack([observed @ factor, own])
    factor = np.hstack([factor, np.zeros((len(factor), own.shape[1]))])
    x, _ = _orthonormal(factor[:k])
    w, whiten = _orthonormal(seen)
    y = factor[k:]
    sensitive, useful = x @ w.T, y @ w.T
    rest = x - sensitive @ w
    total, known = float((y**2).sum()), float((useful**2).sum())
    doubt = np.zeros(factor.shape[1])
    doubt[:r] = np.sqrt(_BACKWARD * values.max(initial=0.0) / values)
    return Law(whiten, sensitive, useful, rest, total, min(known, total), (x, w, y), doubt)


def span(matrix: Array) -> Array:
    """The projector onto the span of the rows, each counted alike however small it is."""
    rows, _ = _orthonormal(matrix)
    projector: Array = rows.T @ rows
    return projector


def _factor(joint: Array) -> tuple[Array, Array]:
    """F with FF' the covariance, and the variances of its columns in the correlations' metric."""
    sd = np.sqrt(joint.diagonal())
    scale = np.where(sd > 0, 1 / np.where(sd > 0, sd, 1.0), 0.0)
    values, basis = np.linalg.eigh(joint * np.outer(scale, scale))
    kept = values > _RANK * len(joint) * max(values[-1], 0.0)
    factor: Array = sd[:, None] * basis[:, kept] * np.sqrt(values[kept])
    return factor, values[kept]


def _orthonormal(factor: Array) -> tuple[Array, Array]:
    """Orthonormal rows Q of the span of a factor's, and T with T' factor = Q."""
    size = np.linalg.norm(factor, axis=1)
    scale = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
    left, values, rows = np.linalg.svd(scale[:, None] * factor, full_matrices=False)
    kept = values > _FACTOR_RANK * values.max(initial=0.0)
    return rows[kept], scale[:, None] * left[:, kept] / values[kept]


def covariance_of(value: ArrayLike) -> Array:
    """A covariance of two coordinates or more, checked and symmetric."""
    matrix = _validate.square("covariance", value)
    if len(matrix) < 2:
        raise ValueError("covariance must hold at least one sensitive and one useful coordinate")
    size = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > 1e-8 * size:
        raise ValueError("covariance must be symmetric")
    matrix = 0.5 * (matrix + matrix.T)
    if np.linalg.eigvalsh(matrix)[0] < -1e-8 * size:
        raise ValueError("covariance must have no negative eigenvalue")
    return matrix
