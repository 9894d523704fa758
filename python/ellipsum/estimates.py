"""Private estimates on their own: centre, scale, covariance."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate, noise
from .adaptive.passes import Passes, moments
from .adaptive.release import AdaptiveRelease
from .ellipsoid import Ellipsoid
from .exact_sum import ExactSum
from .private_sum import PrivateMean, make_guarantee, make_key
from .release import Guarantee
from .wishart import best_wishart

__all__ = ["Estimate", "estimate_center", "estimate_covariance", "estimate_scale"]

Array = NDArray[np.float64]

_UP = 1 + 2.0**-40  # covers the roundings of a noise level, and of computed products
_WISHART_BITS = 26  # the normals behind a Wishart matrix are rounded to 2^-26


@dataclass(frozen=True)
class Estimate:
    """A private estimate: public whole.

    ``value`` in data units (squared for a covariance), ``sd`` the noise standard deviation of its
    entries where it is known, ``guarantee`` what was spent, ``caveats`` why it is not private,
    if so.
    """

    value: Array
    sd: Array | None
    guarantee: Guarantee
    caveats: tuple[str, ...]

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: False for a seeded estimate."""
        return not self.caveats


def estimate_center(data: Any, *, seed: int | None = None, **known: Any) -> Estimate:
    """Private centre: the mean by the plan of :class:`PrivateMean` for a box or a ball.

    **Guarantees.** mu-GDP, (epsilon, delta)-DP, as :class:`PrivateMean`.

    Parameters
    ----------
    data : anything that can be read several times
    seed : int, optional; for tests, not private
    **known : ``lower`` and ``upper`` (or ``center`` and ``radius``), ``sigma`` or ``covariance``,
        the budget and ``neighbors``, as for :class:`PrivateMean`
    """
    release = PrivateMean(**known)(data, seed=seed)
    return Estimate(release.value, release.sd, release.guarantee, release.caveats)


def estimate_scale(data: Any, *, seed: int | None = None, **known: Any) -> Estimate:
    """Private standard deviation of each coordinate, as the same plan sees it.

    **Guarantees.** mu-GDP, (epsilon, delta)-DP, as :class:`PrivateMean`: the scales come with
    its sums.

    They come from mean absolute deviations (times sqrt(pi/2): right for Gaussian rows, lower for
    heavier tails), one noise deviation upwards, so that a scale below the noise comes out as
    the noise, and never as zero.

    Parameters
    ----------
    data, seed, **known : as :func:`estimate_center`, without ``sigma`` and ``covariance``
    """
    if known.get("sigma") is not None or known.get("covariance") is not None:
        raise ValueError("sigma and covariance are what is estimated: leave them out")
    release = PrivateMean(**known)(data, seed=seed)
    if not isinstance(release, AdaptiveRelease):
        raise ValueError("give lower and upper (a box), or center and radius (a ball)")
    return Estimate(release.spread, None, release.guarantee, release.caveats)


def estimate_covariance(
    data: Any,
    *,
    center: ArrayLike,
    radius: float,
    method: str = "gaussian",
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    mu: float | None = None,
    neighbors: str = "replace",
    seed: int | bytes | None = None,
) -> Estimate:
    """Private second moments about ``center``: (1/n) sum (x - c)(x - c)^T, rows clipped.

    **Guarantees.** ``"gaussian"`` (Analyze Gauss): mu-GDP for the released bits. The
    d (d + 1)/2 entries, the off-diagonal ones times sqrt(2), are one vector of norm
    ||x - c||^2 <= radius^2; two such vectors have an inner product >= 0, so they differ by at most
    sqrt(2) radius^2 (``replace``) or radius^2 (``add-remove``). ``"wishart"``: (epsilon, delta)-DP
    by an exact calculation for real numbers (:mod:`ellipsum.wishart`; ``replace`` as one removal
    and one addition), its mean taken off; that the sum is rounded to a grid, and the normals to
    2^-26, is not part of that calculation. ``"gaussian"`` is the better one throughout.

    Parameters
    ----------
    data : array (n, d), batches, Arrow data
    center : array (d,), radius : float, data units: the ball that rows are clipped to
    method : ``"gaussian"`` or ``"wishart"`` (which needs epsilon and delta)
    seed : int or 32 bytes, optional; for tests, not private

    Returns
    -------
    Estimate
        ``value`` (d, d), projected onto the positive semidefinite matrices; ``sd`` of its entries
        before that (``"gaussian"``). For ``add-remove`` n is a noisy count, which takes
        1/16 of mu^2 (of epsilon and delta for ``"wishart"``).

    Source: Dwork, Talwar, Thakurta & Zhang 2014; the Wishart form: Jiang, Xie & Zhang 2016, with
    another calibration (theirs does not hold: :mod:`ellipsum.wishart`).
    """
    _validate.one_of("method", method, ("gaussian", "wishart"))
    where = _validate.vector("center", center)
    reach = _validate.positive("radius", radius)
    guarantee = make_guarantee(epsilon, delta, rho, mu, neighbors)
    total = _second_moments(data, where, reach)
    job = _Noise(guarantee, make_key(seed), where.size, reach)
    if method == "wishart" and (epsilon is None or delta is None):
        raise ValueError("method='wishart' needs epsilon and delta")
    matrix, sd = job.gaussian(total) if method == "gaussian" else job.wishart(total)
    caveats = () if seed is None else ("not private: made with a seed",)
    return Estimate(_semidefinite(matrix), sd, guarantee, caveats)


def _second_moments(data: Any, center: Array, radius: float) -> ExactSum:
    """Exact sum of the products, clipped to norm radius^2: the same as rows clipped to radius."""
    d = center.size
    width = d * (d + 1) // 2
    total = ExactSum(Ellipsoid.ball(radius**2, d=width))
    rows = Passes(data, d, once=True)
    rows.exact_sum(total, lambda x: moments(x - center), width)
    if total.count == 0:
        raise ValueError("data has no rows: give at least one")
    return total


@dataclass(frozen=True)
class _Noise:
    guarantee: Guarantee
    key: bytes
    d: int
    radius: float

    @property
    def count_share(self) -> float:
        return 0.0 if self.guarantee.neighbors == "replace" else 1 / 16

    def count(self, total: ExactSum) -> float:
        """n: public, or noisy."""
        if self.count_share == 0:
            return float(total.count)
        sd = self.guarantee.noise_multiplier / math.sqrt(self.count_share)
        drawn = noise.rounded_gaussian(1, sd * _UP, key=self._key(b"count"))
        return float(max(1, total.count + int(drawn[0])))

    def gaussian(self, total: ExactSum) -> tuple[Array, Array]:
        """Analyze Gauss: Gaussian noise on every entry of the packed upper triangle."""
        region = total.ellipsoid
        sensitivity = moment_sensitivity(region, self.guarantee.neighbors)
        sigma = self.guarantee.noise_multiplier / math.sqrt(1 - self.count_share) * sensitivity
        drawn = noise.rounded_gaussian(region.d, sigma * _UP, key=self._key(b"moments"))
        n = self.count(total)
        packed = (total.integers() + drawn.astype(object)).astype(np.float64) * region.grid / n
        sd = np.full(region.d, sigma * region.grid / n)
        return _unpacked(packed, self.d), _unpacked(sd, self.d)

    def wishart(self, total: ExactSum) -> tuple[Array, None]:
        """The exact sum plus a Wishart matrix, rounded to the same grid."""
        eps, delta = self.guarantee.asked_epsilon or 0.0, self.guarantee.asked_delta or 0.0
        left = 1 - self.count_share
        eps, delta = left * eps, left * delta
        if self.guarantee.neighbors == "replace":  # one removal and one addition
            eps, delta = eps / 2, delta / (1 + math.exp(eps / 2))
        dof, r2 = best_wishart(self.d, eps, delta)
        slack = moment_sensitivity(total.ellipsoid, "add-remove") * total.ellipsoid.grid
        s = math.sqrt(slack / r2)
        drawn = noise.rounded_gaussian(dof * self.d, 2.0**_WISHART_BITS, key=self._key(b"wishart"))
        g = drawn.reshape(dof, self.d) * (s * 2.0**-_WISHART_BITS)
        packed = total.integers().astype(np.float64) * total.ellipsoid.grid
        grid = total.ellipsoid.grid
        noisy = np.rint((_unpacked(packed, self.d) + g.T @ g) / grid) * grid
        bias = dof * s**2 * np.eye(self.d)  # the noise's mean: public
        return (noisy - bias) / self.wishart_count(total), None

    def wishart_count(self, total: ExactSum) -> float:
        """n: public, or noisy under the part of (epsilon, delta) that is the count's."""
        if self.count_share == 0:
            return float(total.count)
        share = self.count_share
        eps, delta = self.guarantee.asked_epsilon or 0.0, self.guarantee.asked_delta or 0.0
        sd = make_guarantee(share * eps, share * delta, None, None, "add-remove").noise_multiplier
        drawn = noise.rounded_gaussian(1, sd * _UP, key=self._key(b"count"))
        return float(max(1, total.count + int(drawn[0])))

    def _key(self, name: bytes) -> bytes:
        return hashlib.blake2b(name, digest_size=32, key=self.key).digest()


def moment_sensitivity(region: Ellipsoid, neighbors: str) -> float:
    """l2 sensitivity, grid units, of the integer sum of packed products x_i x_j.

    Real products of two rows have the inner product (x . y)^2 >= 0; rounding D entries to
    integers moves each vector by sqrt(D)/2, so ``replace`` has sqrt(2) R + sqrt(D), R = C/g.
    """
    bound = region.row_bound()
    if neighbors == "add-remove":
        return bound
    return math.sqrt(2) * bound * _UP + math.sqrt(region.d)


def _unpacked(packed: Array, d: int) -> Array:
    """The symmetric matrix whose rows of the upper triangle are packed, sqrt(2) taken out."""
    out, at = np.zeros((d, d)), 0
    for i in range(d):
        out[i, i:] = packed[at : at + d - i] / math.sqrt(2)
        out[i, i] = packed[at]
        at += d - i
    return np.asarray(np.triu(out) + np.triu(out, 1).T)


def _semidefinite(matrix: Array) -> Array:
    """The nearest positive semidefinite matrix (Frobenius norm)."""
    value, basis = np.linalg.eigh(matrix)
    return np.asarray((basis * np.maximum(value, 0)) @ basis.T)
