"""The Gaussian information bottleneck: what of x tells of y."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from .. import _validate, calibrate
from .gaussian_channel import GaussianChannel, gain_of

__all__ = ["Bottleneck"]

Array = NDArray[np.float64]

#: Canonical correlations nearer to 1 than this make x determine a part of y: no finite channel.
_LARGEST_CORRELATION = 1 - 2.0**-40


class Bottleneck:
    """The channel t = A x + N(0, I) that keeps most of I(t; y) for its I(t; x), all Gaussian.

    With rho_i the canonical correlations of x and y and lambda_i = 1 - rho_i^2, component i is
    kept for beta > beta_i = 1/rho_i^2, with the signal-to-noise ratio
    snr_i = (beta rho_i^2 - 1)/lambda_i. They come from the singular value decomposition of
    L_x^-1 Sigma_xy L_y^-T (Sigma_x = L_x L_x^T), which is backward stable; the unsymmetric
    eigenproblem of the paper is not.

    **Guarantees.** ``mu`` is exact for |x| <= R and real numbers: 2R ||A||_2. (The rows of A are
    Sigma_x-orthogonal, not orthogonal: the largest row norm is not enough.) As for
    :class:`RateDistortion`, it is a garbling of isotropic noise of the same mu.

    Parameters
    ----------
    cov_x : array (d, d), positive definite
    cov_xy : array (d, e)
    cov_y : array (e, e), positive definite

    Source: Chechik, Globerson, Tishby & Weiss 2005; Koehler 2018, chapter 4.
    """

    def __init__(self, cov_x: ArrayLike, cov_xy: ArrayLike, cov_y: ArrayLike) -> None:
        x, y = _validate.square("cov_x", cov_x), _validate.square("cov_y", cov_y)
        cross = np.array(cov_xy, dtype=np.float64)
        if cross.shape != (len(x), len(y)) or not np.isfinite(cross).all():
            raise ValueError(f"cov_xy must be finite, of shape {(len(x), len(y))}")
        left, right = _root("cov_x", x), _root("cov_y", y)
        half = scipy.linalg.solve_triangular(left, cross, lower=True)
        middle = scipy.linalg.solve_triangular(right, half.T, lower=True).T
        u, rho, _ = np.linalg.svd(middle, full_matrices=False)
        if rho[0] > _LARGEST_CORRELATION:
            raise ValueError("x determines a part of y (or the covariances contradict each other)")
        self.correlations: Array = rho
        #: rows u_i^T L_x^-1: unit variance, uncorrelated under Sigma_x
        self.rows: Array = scipy.linalg.solve_triangular(left, u, lower=True, trans="T").T
        self._d = len(x)

    def __repr__(self) -> str:
        return f"Bottleneck(d={self._d}, largest correlation={self.correlations[0]:.6g})"

    @property
    def critical(self) -> Array:
        """beta_i = 1/rho_i^2 from which on each component is kept: ascending (min(d, e),)."""
        with np.errstate(divide="ignore"):
            return np.asarray(1 / self.correlations**2)

    # ---- privacy -------------------------------------------------------------------

    def beta(self, *, mu: float, radius: float) -> float:
        """The beta whose release of a record |x| <= radius is exactly mu-GDP."""
        target = gain_of(mu, radius)
        if self.correlations[0] == 0:
            raise ValueError("x and y are uncorrelated: nothing is kept at any beta")
        # One component alone gives ||A||^2 = excess |row|^2 / lambda: an upper end.
        lam = 1 - self.correlations[0] ** 2
        high = target**2 * lam / float(self.rows[0] @ self.rows[0])
        if high < 2.0**-60:  # the next double is further: nothing is kept
            return float(1 / self.correlations[0] ** 2)

        def over(excess: float) -> float:
            return self._norm(excess) - target

        # ||A||_2 >= the first row's alone; what it misses at `high` is rounding
        while over(high) < 0:
            high *= 1 + 2.0**-50
        excess = scipy.optimize.brentq(over, 0.0, high, xtol=high * 2.0**-52, rtol=2.0**-50)
        return float((1 + excess) / self.correlations[0] ** 2)

    def mu(self, *, beta: float, radius: float) -> float:
        """Exact mu of a record |x| <= radius: 2R ||A||_2."""
        excess = _validate.positive("beta", beta) * self.correlations[0] ** 2 - 1
        return 2 * _validate.positive("radius", radius) * self._norm(excess)

    def epsilon(self, *, beta: float, radius: float, delta: float) -> float:
        """Exact epsilon(delta) of a record |x| <= radius."""
        mu = self.mu(beta=beta, radius=radius)
        return calibrate.epsilon(1 / mu, delta) if mu > 0 else 0.0

    # ---- utility -------------------------------------------------------------------

    def rate(self, beta: float) -> float:
        """I(t; x) = 1/2 sum log(1 + snr_i), nats."""
        return float(np.sum(np.log1p(self._snr_at(beta)))) / 2

    def relevance(self, beta: float) -> float:
        """I(t; y) = 1/2 sum log((1 + snr_i)/(1 + lambda_i snr_i)), nats."""
        snr = self._snr_at(beta)
        share = self.correlations**2 * snr / (1 + (1 - self.correlations**2) * snr)
        return float(np.sum(np.log1p(share))) / 2

    def kept(self, beta: float) -> int:
        """How many components the channel keeps."""
        return int(np.count_nonzero(self._snr_at(beta)))

    def curve(self, betas: ArrayLike | None = None) -> tuple[Array, Array, Array]:
        """(beta, I(t; x), I(t; y)), the information curve, for plotting."""
        if betas is None:
            finite = self.critical[np.isfinite(self.critical)]
            betas = np.geomspace(finite[0], 100 * finite[-1], 200)
        at = _validate.vector("betas", betas, above=0.0)
        return at, np.array([self.rate(b) for b in at]), np.array([self.relevance(b) for b in at])

    def channel(self, beta: float) -> GaussianChannel:
        """The channel t = A x + N(0, I), A of shape (kept, d)."""
        excess = _validate.positive("beta", beta) * self.correlations[0] ** 2 - 1
        matrix = self._matrix(excess)
        return GaussianChannel(matrix, np.eye(len(matrix)))

    # excess = beta rho_1^2 - 1 keeps its digits where beta is close to critical

    def _snr_at(self, beta: float) -> Array:
        return self._snr(_validate.positive("beta", beta) * self.correlations[0] ** 2 - 1)

    def _snr(self, excess: float) -> Array:
        ratio = (self.correlations / self.correlations[0]) ** 2
        return np.maximum((excess * ratio - (1 - ratio)) / (1 - self.correlations**2), 0.0)

    def _matrix(self, excess: float) -> Array:
        snr = self._snr(excess)
        kept = snr > 0
        return np.asarray(np.sqrt(snr[kept])[:, None] * self.rows[kept])

    def sizes(self, beta: float) -> Array:
        """sqrt(snr_i) (min(d, e),): t_i = sqrt(snr_i) rows_i x + N(0, 1), kept or not."""
        return np.sqrt(self._snr_at(beta))

    def _norm(self, excess: float) -> float:
        matrix = self._matrix(excess)
        return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0


def _root(name: str, matrix: Array) -> Array:
    """The lower Cholesky factor."""
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12 * np.abs(matrix).max()):
        raise ValueError(f"{name} must be symmetric: use (S + S.T) / 2")
    try:
        return np.asarray(scipy.linalg.cholesky((matrix + matrix.T) / 2, lower=True))
    except np.linalg.LinAlgError:
        raise ValueError(f"{name} must be positive definite: add a floor to its diagonal") from None
