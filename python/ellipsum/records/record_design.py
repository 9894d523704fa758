"""Shape and clip radius of a record release, chosen for a public law.

A release sees y = W z (W public, z the record in public units), clips y to the ball |y| <= C and
adds noise. With f = min(1, C/|y|) and components w_j that are uncorrelated (principal ones, or
canonical ones of a target), the best linear reader of component j knows the share

    gain_j = (E w_j^2 f)^2 / (along E w_j^2 f^2 + noise_j) / E w_j^2

of its variance; the moments are averages over the law's draws. ``along`` is 1 for Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from .bottleneck import Bottleneck
from .rate_distortion import RateDistortion
from .record_clip import refuse_far_radius
from .record_law import RecordLaw

__all__ = ["SHAPES", "Channel1d", "Design", "choose"]

Array = NDArray[np.float64]

SHAPES = ("mse", "information", "isotropic", "rate-distortion", "bottleneck")

#: Candidates: strengths of a shape (its sum of snr) and radii, over the rms norm of y. Steps of
#: 28 % and 14 %: the criterion is flat near its best.
_STRENGTHS = np.geomspace(0.02, 2000.0, 48)
_RADII = np.geomspace(0.01, 4.0, 48)


@dataclass(frozen=True)
class Channel1d:
    """What the noise does to a coordinate of y, for a ball of radius 1: E t^2 = along E y^2 +
    floor, t unbiased for y."""

    along: float
    floor: float

    @property
    def mu(self) -> float:
        """mu of Gaussian noise of this floor: 2/sd."""
        return 2 / math.sqrt(self.floor)


@dataclass(frozen=True)
class Design:
    """A chosen release: y = weights * (rows @ z), |y| <= radius; then t = garble y + noise.

    Parameters
    ----------
    matrix : array (k, d): y = matrix z
    radius : float, C
    garble : array (r, k) or None: what is handed on is garble (y + noise) + further noise of the
        covariance I - garble garble^T / sd^-2 (rate-distortion, bottleneck)
    size : array (r,): t_j = size_j w_j f + noise, w_j the component
    back : array (d, r): E[z | w] = back w
    spread : array (r,): standard deviations of w
    gains : array (r,): share known of each component
    score : float: what was maximised
    """

    matrix: Array
    radius: float
    garble: Array | None
    size: Array
    back: Array
    spread: Array
    gains: Array
    score: float


@dataclass(frozen=True)
class _Candidate:
    components: Array  # (N, r): w of the draws
    norms: Array  # (N,): |y| of the draws
    noise: Callable[[float], Array]  # radius -> noise variance of w_j f as released
    size: Callable[[float], Array]  # radius -> size of w_j in t
    told: Array  # (r,): squared correlation with what is to be told
    pieces: tuple[Array, Array]  # matrix, back
    garble: Callable[[float], Array] | None = None


def choose(law: RecordLaw, shape: str, channel: Channel1d, radius: float | None) -> Design:
    """The best candidate of a shape; a number fixes the radius (in units of z, or of the rms of
    y for the shapes ``mse`` and ``information``)."""
    best: Design | None = None
    for candidate in _candidates(law, shape, channel):
        rms = math.sqrt(float(np.mean(candidate.norms**2)))
        relative = shape in ("mse", "information")
        radii = _RADII * rms if radius is None else np.array([radius * (rms if relative else 1)])
        if radius is not None:
            refuse_far_radius(float(radii[0]))
        score, gains = _scores(candidate, radii, channel, law, shape)
        i = int(np.argmax(score))
        if best is None or score[i] > best.score:
            best = _designed(candidate, float(radii[i]), gains[i], float(score[i]))
    if best is None:
        raise ValueError("the covariance leaves nothing to release")
    return best


def _scores(
    candidate: _Candidate, radii: Array, channel: Channel1d, law: RecordLaw, shape: str
) -> tuple[Array, Array]:
    """The criterion and the gains (m, r) for m radii: error for all shapes but those of
    information."""
    f = np.minimum(1.0, radii / np.maximum(candidate.norms, np.finfo(float).tiny)[:, None])
    squares = candidate.components**2
    first = f.T @ squares / len(squares)
    second = (f * f).T @ squares / len(squares)
    power = squares.mean(axis=0)
    noise = np.array([candidate.noise(radius) for radius in radii.tolist()])
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = np.where(power > 0, first**2 / (channel.along * second + noise) / power, 0.0)
    if shape in ("information", "bottleneck"):
        inner = np.minimum(candidate.told * np.minimum(gains, 1.0), 1 - 1e-12)
        return -np.log1p(-inner).sum(axis=1) / 2, gains
    return gains @ power / max(float(law.variances.sum()), 1e-300), gains


def _designed(candidate: _Candidate, radius: float, gains: Array, score: float) -> Design:
    matrix, back = candidate.pieces
    size = candidate.size(radius)
    kept = size > 0
    garble = None if candidate.garble is None else candidate.garble(radius)[kept]
    spread = np.sqrt(np.mean(candidate.components[:, kept] ** 2, axis=0))
    return Design(matrix, radius, garble, size[kept], back[:, kept], spread, gains[kept], score)


def _candidates(law: RecordLaw, shape: str, channel: Channel1d) -> Iterator[_Candidate]:
    if shape == "bottleneck":
        yield _bottleneck(law, channel)
    elif shape == "rate-distortion":
        yield _rate_distortion(law, channel)
    elif shape == "information":
        yield from _information(law, channel)
    else:
        yield from _principal(law, channel, shape)


def _principal(law: RecordLaw, channel: Channel1d, shape: str) -> Iterator[_Candidate]:
    """Weights on principal components: snr_i = max(0, sqrt(s_i/theta) - 1), or all 1."""
    w, s = law.draws() @ law.axes, law.variances
    weights = [np.ones_like(s)] if shape == "isotropic" else [mse_weights(s, k) for k in _STRENGTHS]
    for b in weights:
        keep = b > 0
        yield _weighted(w[:, keep], b[keep], law.axes.T[keep], law.axes[:, keep], channel)


def _weighted(
    w: Array, b: Array, rows: Array, back: Array, channel: Channel1d, told: Array | None = None
) -> _Candidate:
    """y = b * (rows z), clipped and released as it is."""
    norms = np.sqrt(w * w @ (b * b))
    return _Candidate(
        w,
        norms,
        noise=lambda radius: channel.floor * radius**2 / b**2,
        size=lambda radius: b,
        told=np.ones_like(b) if told is None else told,
        pieces=(b[:, None] * rows, back),
    )


def mse_weights(variances: Array, strength: float) -> Array:
    """b of least squared error: b_i^2 s_i = max(0, sqrt(s_i/theta) - 1), their sum scaled to 1.

    sqrt(theta) = sum over kept of sqrt(s) / (strength + number kept), s descending.
    """
    root = np.sqrt(variances)
    theta = np.cumsum(root) / (strength + np.arange(1, root.size + 1))
    kept = int(np.flatnonzero(root > theta)[-1]) + 1
    snr = np.maximum(root / theta[kept - 1] - 1, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(snr > 0, np.sqrt(snr / variances / snr.sum()), 0.0)


def information_snr(noise_share: Array, strength: float) -> Array:
    """snr of most I(t; y) for their sum: (1 + snr)(1 + lambda snr) = (1 - lambda)/nu.

    ``noise_share`` is lambda = 1 - rho^2; with lambda = 0 for all, equal snr.
    """
    lam = noise_share

    def snr(log_nu: float) -> Array:
        level = (1 - lam) / math.exp(log_nu)
        # lambda s^2 + (1 + lambda) s + 1 - level = 0, its larger root without cancellation
        b = 1 + lam
        disc = np.sqrt(np.maximum(b * b + 4 * lam * (level - 1), 0.0))
        return np.maximum(2 * (level - 1) / (b + disc), 0.0)

    high = math.log(float(np.max(1 - lam)))
    low = high - 1
    while snr(low).sum() < strength:
        low -= 2
    return snr(
        float(scipy.optimize.brentq(lambda x: snr(x).sum() - strength, low, high, xtol=1e-12))
    )


def _information(law: RecordLaw, channel: Channel1d) -> Iterator[_Candidate]:
    """Canonical components of the target; without one, whitened principal components."""
    if law.target_cross is None or law.target_cov is None:
        positive = law.variances > 1e-12 * law.variances[0]
        axes, s = law.axes[:, positive], law.variances[positive]
        rows, back = axes.T / np.sqrt(s)[:, None], axes * np.sqrt(s)
        yield _weighted(law.draws() @ rows.T, np.ones_like(s), rows, back, channel)
        return
    model = Bottleneck(_regular(law.covariance), law.target_cross, law.target_cov)
    rho2 = model.correlations**2
    rows, w = model.rows, law.draws() @ model.rows.T
    back = law.covariance @ rows.T
    for strength in _STRENGTHS:
        snr = information_snr(1 - rho2, strength)
        keep = snr > 0
        b = np.sqrt(snr[keep] / snr.sum())
        yield _weighted(w[:, keep], b, rows[keep], back[:, keep], channel, rho2[keep])


def _rate_distortion(law: RecordLaw, channel: Channel1d) -> _Candidate:
    """The ball |z| <= R, then the rate-distortion channel of that mu as a garbling."""
    model = RateDistortion(law.covariance)

    def size(radius: float) -> Array:
        beta = model.beta(mu=channel.mu, radius=radius)
        with np.errstate(divide="ignore"):
            return np.sqrt(np.maximum(beta - 1 / law.variances, 0.0))

    return _garbled(law, channel, law.draws() @ law.axes, law.axes, size, None)


def _bottleneck(law: RecordLaw, channel: Channel1d) -> _Candidate:
    """The ball |z| <= R, then the bottleneck channel of that mu as a garbling."""
    if law.target_cross is None or law.target_cov is None:
        raise ValueError('shape="bottleneck" needs a target: fit(rows, y)')
    model = Bottleneck(_regular(law.covariance), law.target_cross, law.target_cov)

    def size(radius: float) -> Array:
        return model.sizes(model.beta(mu=channel.mu, radius=radius))

    back = law.covariance @ model.rows.T
    w = law.draws() @ model.rows.T
    return _garbled(law, channel, w, back, size, model.rows @ law.axes, model.correlations**2)


def _garbled(
    law: RecordLaw,
    channel: Channel1d,
    w: Array,
    back: Array,
    size: Callable[[float], Array],
    rows: Array | None,
    told: Array | None = None,
) -> _Candidate:
    """Released is diag(size) rows (y + noise) of y = axes^T z, with noise filled up to sd 1."""
    matrix = np.eye(law.d) if rows is None else rows

    def noise(radius: float) -> Array:
        with np.errstate(divide="ignore"):
            return 1 / size(radius) ** 2

    return _Candidate(
        w,
        norms=np.sqrt(np.sum((law.draws() @ law.axes) ** 2, axis=1)),
        noise=noise,
        size=size,
        told=np.ones(w.shape[1]) if told is None else told,
        pieces=(law.axes.T, back),
        garble=lambda radius: size(radius)[:, None] * matrix,
    )


def _regular(covariance: Array) -> Array:
    """With a floor of 1e-9 of the mean variance, so that a Cholesky factor exists."""
    d = len(covariance)
    return np.asarray(covariance + np.eye(d) * (1e-9 * float(np.trace(covariance)) / d))
