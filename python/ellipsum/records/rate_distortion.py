"""The rate-distortion channel of a Gaussian record under squared error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate, calibrate
from .gaussian_channel import GaussianChannel, gain_of

__all__ = ["RateDistortion"]

Array = NDArray[np.float64]


class RateDistortion:
    """Optimal lossy compression of x ~ N(0, covariance) under squared error, as a release.

    With s_i the eigenvalues of the covariance, the channel that is optimal at beta > 0 keeps the
    components with beta s_i > 1: t_i = a_i x_i + N(0, a_i / beta), a_i = 1 - 1/(beta s_i), and
    E[x|t] = t. Distortion is E|x - t|^2 (no 1/2), rate is I(x; t) in nats.

    **Guarantees.** ``mu`` is exact for |x| <= R and real numbers: 2R sqrt(beta - 1/s_max), reached
    by the pair +-R along the top eigenvector. The guarantee of released bits is
    :class:`RecordRelease`'s. *It is never better than isotropic noise of the same mu*, of which it
    is a garbling (docs/record_release.md).

    Parameters
    ----------
    covariance : array (d, d), symmetric, positive semidefinite and not 0; data units squared

    Source: Koehler 2018, chapter 3 (Theorems 3.1.1, 3.2.1), sigma there being a variance.
    """

    def __init__(self, covariance: ArrayLike) -> None:
        matrix = _validate.square("covariance", covariance)
        self.variances, self.axes = spectrum("covariance", matrix)

    def __repr__(self) -> str:
        return f"RateDistortion(d={len(self.variances)}, largest={self.largest:.6g})"

    @property
    def largest(self) -> float:
        """s_max, the largest eigenvalue."""
        return float(self.variances[0])

    @property
    def critical(self) -> Array:
        """beta from which on each component is kept: 1/s_i, ascending (d,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(1 / self.variances)

    # ---- privacy -------------------------------------------------------------------

    def beta(self, *, mu: float, radius: float) -> float:
        """The beta whose release of a record |x| <= radius is exactly mu-GDP."""
        return gain_of(mu, radius) ** 2 + 1 / self.largest

    def mu(self, *, beta: float, radius: float) -> float:
        """Exact mu of a record |x| <= radius: 2R sqrt(beta - 1/s_max), 0 where nothing is kept."""
        excess = _validate.positive("beta", beta) - 1 / self.largest
        return 2 * _validate.positive("radius", radius) * math.sqrt(max(excess, 0.0))

    def epsilon(self, *, beta: float, radius: float, delta: float) -> float:
        """Exact epsilon(delta) of a record |x| <= radius."""
        mu = self.mu(beta=beta, radius=radius)
        return calibrate.epsilon(1 / mu, delta) if mu > 0 else 0.0

    # ---- utility -------------------------------------------------------------------

    def distortion(self, beta: float) -> float:
        """E|x - t|^2 = sum min(1/beta, s_i)."""
        return float(np.sum(np.minimum(1 / _validate.positive("beta", beta), self.variances)))

    def rate(self, beta: float) -> float:
        """I(x; t) = 1/2 sum log+(beta s_i), nats."""
        kept = _validate.positive("beta", beta) * self.variances[self._kept(beta)]
        return float(np.sum(np.log(kept))) / 2

    def kept(self, beta: float) -> int:
        """How many components the channel keeps: those with beta s_i > 1."""
        return int(np.count_nonzero(self._kept(_validate.positive("beta", beta))))

    def curve(self, betas: ArrayLike | None = None) -> tuple[Array, Array, Array]:
        """(beta, distortion, rate), for plotting; by default from 1/s_max until all are kept."""
        if betas is None:
            positive = self.variances[self.variances > 0]
            betas = np.geomspace(1 / positive[0], 100 / positive[-1], 200)
        at = _validate.vector("betas", betas, above=0.0)
        distortion = np.array([self.distortion(b) for b in at])
        return at, distortion, np.array([self.rate(b) for b in at])

    def channel(self, beta: float) -> GaussianChannel:
        """The channel t = A x + N(0, A/beta), A = V diag(a) V^T: shapes (d, d)."""
        kept = self._kept(_validate.positive("beta", beta))
        a = np.zeros_like(self.variances)
        a[kept] = 1 - 1 / (beta * self.variances[kept])
        matrix = (self.axes * a) @ self.axes.T
        return GaussianChannel(matrix, matrix / beta)

    def _kept(self, beta: float) -> NDArray[np.bool_]:
        return np.asarray(beta * self.variances > 1)


def spectrum(name: str, matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, descending, and axes (columns) of a covariance that may be singular."""
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12 * np.abs(matrix).max()):
        raise ValueError(f"{name} must be symmetric: use (S + S.T) / 2")
    value, basis = np.linalg.eigh((matrix + matrix.T) / 2)
    slack = len(matrix) * 2.0**-50 * abs(float(value[-1]))
    if float(value[-1]) <= 0 or float(value[0]) < -slack:
        raise ValueError(f"{name} must be positive semidefinite, and not 0")
    return np.maximum(value[::-1], 0.0), np.ascontiguousarray(basis[:, ::-1])
