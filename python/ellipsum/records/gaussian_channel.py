"""A linear Gaussian channel t = A x + xi on records of a ball, and its exact privacy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import _validate, calibrate

__all__ = ["GaussianChannel", "gain_of", "posterior_error"]

Array = NDArray[np.float64]

#: Noise directions with less than this share of the largest variance count as without noise.
_RANK_TOLERANCE = 1e-13

_MOST_GAIN = 2.0**500  # its square, over variances, is a double


def gain_of(mu: float, radius: float) -> float:
    """||A||_2 of a channel with unit noise that is mu-GDP for |x| <= radius: mu/(2 radius).

    Raises
    ------
    ValueError
        Where it is beyond 2^500.
    """
    gain = _validate.positive("mu", mu) / (2 * _validate.positive("radius", radius))
    if gain > _MOST_GAIN:
        raise ValueError("mu / radius must be at most 2^501: change the unit of the data")
    return gain


@dataclass(frozen=True)
class GaussianChannel:
    """The channel t = matrix x + N(0, noise): real numbers, a model, not what is released.

    **Guarantees.** ``mu`` is exact for real numbers: two records of the ball |x| <= R differ by at
    most 2R, and what counts is their difference in the noise's own metric, so
    mu = 2R ||noise^(-1/2) matrix||_2. (The bits of a release: :class:`RecordRelease`.)

    Parameters
    ----------
    matrix : array (k, d)
    noise : array (k, k), covariance, symmetric and positive semidefinite
    """

    matrix: Array
    noise: Array

    def whitened(self) -> Array:
        """noise^(-1/2) matrix, (r, d), r the rank of the noise.

        Raises
        ------
        ValueError
            If the matrix reaches a direction without noise: then nothing is private.
        """
        value, basis = np.linalg.eigh((self.noise + self.noise.T) / 2)
        noisy = value > _RANK_TOLERANCE * max(float(value[-1]), 0.0)
        silent = basis[:, ~noisy].T @ self.matrix
        if silent.size and np.abs(silent).max() > _RANK_TOLERANCE * np.abs(self.matrix).max():
            raise ValueError("noise must cover the range of matrix: mu is infinite")
        return np.asarray((basis[:, noisy] / np.sqrt(value[noisy])).T @ self.matrix)

    def mu(self, radius: float) -> float:
        """Exact mu of one record, |x| <= radius."""
        white = self.whitened()
        norm = float(np.linalg.norm(white, 2)) if white.size else 0.0
        return 2 * _validate.positive("radius", radius) * norm

    def epsilon(self, radius: float, delta: float) -> float:
        """The exact epsilon(delta) of one record, |x| <= radius (analytic Gaussian bound)."""
        mu = self.mu(radius)
        return calibrate.epsilon(1 / mu, delta) if mu > 0 else 0.0

    def garbling(self, gain: float) -> tuple[Array, Array]:
        """The channel as a garbling of y = gain x + N(0, I): t' = M y + N(0, S), t' whitened.

        M = W/gain and S = I - W W^T/gain^2 with W = :meth:`whitened`. S is positive semidefinite
        if and only if gain >= ||W||_2, so every channel of a given mu is a garbling of isotropic
        noise of the same mu and radius (docs/record_release.md).

        Parameters
        ----------
        gain : float, at least ||W||_2 (mu / 2R)

        Returns
        -------
        (M, S) : arrays (r, d), (r, r)
        """
        white = self.whitened()
        m = white / _validate.positive("gain", gain)
        left = np.eye(len(white)) - m @ m.T
        if len(left) and float(np.linalg.eigvalsh(left)[0]) < -1e-12:
            raise ValueError("gain is below the channel's own: it is no garbling of that")
        return m, left


def posterior_error(covariance: Array, channel: GaussianChannel) -> float:
    """E|x - E[x|t]|^2 for x ~ N(0, covariance): what the best reader of the channel misses."""
    white = channel.whitened()
    spread = white @ covariance @ white.T + np.eye(len(white))
    cross = covariance @ white.T
    known = float(np.trace(cross @ np.linalg.solve(spread, cross.T))) if white.size else 0.0
    return max(float(np.trace(covariance)) - known, 0.0)
