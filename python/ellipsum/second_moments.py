"""Private second moments: the products of clipped rows as one vector, or a Wishart matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate, noise
from .adaptive.part_pass import passes_over
from .adaptive.passes import Passes
from .budget.budget import Budget, Share
from .budget.purse import check_budget, draw_from
from .column_names import Columns, named_vectors
from .column_units import said_units
from .ellipsoid import Ellipsoid
from .estimates import Estimate
from .exact_sum import ExactSum
from .guarantee import (
    DeltaGuarantee,
    GaussianGuarantee,
    Guarantee,
    Neighbors,
    rounded_up,
    seed_caveats,
)
from .noise_keys import JobKeys, Use, root_key
from .wishart import best_wishart

__all__ = [
    "estimate_covariance",
    "moment_sensitivity",
    "moments",
    "scaled_moments",
    "scaled_offsets",
    "unpacked",
]

Array = NDArray[np.float64]

#: Rounding the products x_i x_j moves an inner product of two rows' vectors, which is a square,
#: by less than this part of the square of their bound.
_PRODUCT_SLACK = 1 + 2.0**-40
#: Offsets below this have products that do not overflow; a radius is smaller than half of it.
_FAR = 2.0**511
_LARGEST_RADIUS = 2.0**500

_WISHART_BITS = 26  # the normals behind a Wishart matrix are rounded to 2^-26

_REAL_NUMBERS = "the Wishart guarantee is one for real numbers: roundings are not in it"

#: Share of the noisy count, which add-remove neighbours need: of mu^2, or of epsilon and delta.
_COUNT_SHARE = 1 / 16


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
    budget: Budget | Share | None = None,
    units: Mapping[str, str] | Sequence[str | None] | None = None,
    seed: int | bytes | None = None,
) -> Estimate:
    """Private second moments about ``center``: (1/n) sum (x - c)(x - c)^T, rows clipped.

    **Guarantees.** ``"gaussian"`` (Analyze Gauss): mu-GDP for the released bits. The
    d (d + 1)/2 entries, the off-diagonal ones times sqrt(2), are one vector of norm
    ||x - c||^2 <= radius^2; two such vectors have an inner product >= 0, so they differ by at most
    sqrt(2) radius^2 (``replace``) or radius^2 (``add-remove``): claim estimates-1.
    ``"wishart"``: (epsilon, delta)-DP by an exact calculation for real numbers (claim
    estimates-3; ``replace`` as one removal and one addition), its mean taken off; that the sum is
    rounded to a grid, and the normals to 2^-26, is not part of that calculation.
    ``"gaussian"`` is the better one throughout.

    Parameters
    ----------
    data : array (n, d), batches, Arrow data
    center : array (d,), data units
    radius : float, data units
        The ball that rows are clipped to.
    method : ``"gaussian"`` or ``"wishart"`` (which needs epsilon and delta)
    epsilon, delta, rho, mu : float
        The budget: epsilon and delta together, or rho, or mu.
    neighbors : ``"replace"`` or ``"add-remove"``
    budget : Budget or Share, optional; what it is drawn from
    units : of the coordinates, public, as :class:`PrivateMean`; an entry has that of its row times
        that of its column
    seed : int or 32 bytes, optional; for tests, not private

    Returns
    -------
    Estimate
        ``value`` (d, d), projected onto the positive semidefinite matrices; ``sd`` of its entries
        before that (``"gaussian"``). For ``add-remove`` n is a noisy count, which takes
        1/16 of mu^2 (of epsilon and delta for ``"wishart"``); a table without rows is released
        like any other.

    Raises
    ------
    TypeError, ValueError
        For a budget or ball out of range, rows of another width, and for ``replace``, where n is
        public, a table without rows.

    Source: Dwork, Talwar, Thakurta & Zhang 2014; the Wishart form: Jiang, Xie & Zhang 2016, with
    another calibration (theirs does not hold: claim estimates-2).
    """
    _validate.one_of("method", method, ("gaussian", "wishart"))
    names, known = named_vectors(center=center)
    where = _validate.vector("center", known["center"])
    columns = Columns(names, units=said_units(units, where.size))
    reach = _validate.positive("radius", radius)
    if reach > _LARGEST_RADIUS:
        raise ValueError("radius must be at most 2^500, or its square overflows: use another unit")
    guarantee = GaussianGuarantee.of_budget(epsilon, delta, rho, mu, neighbors)
    if method == "wishart" and (epsilon is None or delta is None):
        raise ValueError("method='wishart' needs epsilon and delta")
    promise: Guarantee = guarantee
    pair = guarantee.asked_epsilon, guarantee.asked_delta
    if method == "wishart" and pair[0] is not None and pair[1] is not None:
        # The pair alone: mu and rho would be those of a Gaussian mechanism.
        promise = DeltaGuarantee(guarantee.neighbors, pair[0], pair[1])
    check_budget(budget, promise)
    total = _second_moments(data, where, reach, columns)
    if guarantee.neighbors.count_is_public and total.count == 0:
        raise ValueError("data has no rows: give at least one")
    columns.check_units()
    entry = draw_from(budget, promise, "covariance")
    job = _Noise(guarantee, total, where, root_key(seed), method)
    matrix, sd = job.gaussian() if method == "gaussian" else job.wishart()
    caveats = seed_caveats(seed) + ((_REAL_NUMBERS,) if method == "wishart" else ())
    estimate = Estimate("covariance", _semidefinite(matrix), promise, caveats, sd=sd)
    return estimate.named(*columns.told(where.size)).drawn_from(entry)


def moments(x: Array) -> Array:
    """x_i^2 and sqrt(2) x_i x_j (i < j), shape (n, d (d + 1) / 2): its norm is ||x||^2."""
    d = x.shape[1]
    out, at = np.empty((len(x), d * (d + 1) // 2)), 0
    for i in range(d):
        np.multiply(x[:, i:], x[:, i : i + 1], out=out[:, at : at + d - i])
        out[:, at + 1 : at + d - i] *= np.sqrt(2.0)
        at += d - i
    return out


def moment_sensitivity(region: Ellipsoid, neighbors: str) -> float:
    """l2 sensitivity, grid units, of the integer sum of packed products x_i x_j.

    Real products of two rows have the inner product (x . y)^2 >= 0; rounding D entries to
    integers moves each vector by sqrt(D)/2, so ``replace`` has sqrt(2) R + sqrt(D), R = C/g.
    """
    relation, bound = Neighbors.of(neighbors), region.row_bound()
    if relation is Neighbors.ADD_REMOVE:
        return bound
    factor = relation.factor(no_negative_products=True)
    return factor * bound * _PRODUCT_SLACK + math.sqrt(region.d)


def _second_moments(
    data: Any, center: Array, radius: float, columns: Columns | None = None
) -> ExactSum:
    """Exact sum of the products, clipped to norm radius^2: the same as rows clipped to radius."""
    d = center.size
    width = d * (d + 1) // 2
    rows = passes_over(data, d, once=True, columns=columns)
    region = Ellipsoid.ball(radius**2, d=width)
    return rows.sum_of(region, partial(_moments_about, center), width)


def scaled_moments(rows: Passes, center: Array, scale: Array, radius: float) -> ExactSum:
    """The same of (x - center) scale, clipped to radius; a cell that overflows counts as a hole.

    Raises
    ------
    ValueError
        A center that overflows: rows' products would be lost one by one, and two rows' vectors
        could have a negative inner product (claim estimates-1).
    """
    d = center.size
    with np.errstate(over="ignore"):
        if not np.isfinite(center * scale).all():
            raise ValueError("center times scale must stay below 2^1024: change the data's unit")
    region = Ellipsoid.ball(radius**2, d=d * (d + 1) // 2)
    return rows.sum_of(region, partial(_scaled_moments_about, center, scale), region.d)


def _scaled_moments_about(center: Array, scale: Array, x: Array) -> Array:
    return moments(scaled_offsets(center, scale, x))


def scaled_offsets(center: Array, scale: Array, x: Array) -> Array:
    """(x - center) scale of each row, (n, d): finite, as far as needed for products."""
    with np.errstate(over="ignore", invalid="ignore"):  # a warning would tell of a value
        return _offsets(x * scale, center * scale)


def _moments_about(center: Array, x: Array) -> Array:
    return moments(_offsets(x, center))


def _offsets(x: Array, center: Array) -> Array:
    """x - center, 0 in a hole, so that all products are those of one vector; a row that is so far
    away that its products overflow is moved in, along its direction and by a power of two, to
    where it still lies outside every radius."""
    finite = np.isfinite(x)
    if not finite.all():
        x = np.where(finite, x, center)
    y = x - center
    far = ~(np.abs(y).max(axis=1, initial=0.0) < _FAR)
    if far.any():
        eighth = x[far] / 8 - center / 8  # which does not overflow
        _, exponent = np.frexp(np.abs(eighth).max(axis=1))
        y[far] = np.ldexp(eighth, 511 - exponent[:, None])
    return np.asarray(y)


@dataclass(frozen=True)
class _Noise:
    guarantee: GaussianGuarantee
    total: ExactSum
    center: Array
    root: bytes
    method: str

    @property
    def share(self) -> float:
        """Of the noisy count."""
        return 0.0 if self.guarantee.neighbors.count_is_public else _COUNT_SHARE

    def gaussian(self) -> tuple[Array, Array]:
        """Analyze Gauss: Gaussian noise on every entry of the packed upper triangle."""
        region, multiplier = self.total.ellipsoid, self.guarantee.noise_multiplier
        sensitivity = moment_sensitivity(region, self.guarantee.neighbors)
        sigma = rounded_up(multiplier / math.sqrt(1 - self.share) * sensitivity)
        drawn = noise.rounded_gaussian(region.d, sigma, key=self.keys.of(Use.MOMENTS))
        n = self._count(multiplier / math.sqrt(self.share) if self.share else 0.0)
        noisy = self.total.integers() + drawn.astype(object)
        packed = noisy.astype(np.float64) * region.grid / n
        sd = np.full(region.d, sigma * region.grid / n)
        d = self.center.size
        return unpacked(packed, d), unpacked(sd, d)

    def wishart(self) -> tuple[Array, None]:
        """The exact sum plus a Wishart matrix, rounded to the same grid."""
        d, region = self.center.size, self.total.ellipsoid
        eps, delta = self.guarantee.asked_epsilon or 0.0, self.guarantee.asked_delta or 0.0
        left, count_sd = 1 - self.share, 0.0
        if self.share:
            part = (self.share * eps, self.share * delta, None, None, self.guarantee.neighbors)
            count_sd = GaussianGuarantee.of_budget(*part).noise_multiplier
        eps, delta = left * eps, left * delta
        if self.guarantee.neighbors is Neighbors.REPLACE:  # one removal and one addition
            eps, delta = eps / 2, delta / (1 + math.exp(eps / 2))
        dof, r2 = best_wishart(d, eps, delta)
        slack = moment_sensitivity(region, Neighbors.ADD_REMOVE) * region.grid
        s = math.sqrt(slack / r2)
        key = self.keys.of(Use.WISHART)
        drawn = noise.rounded_gaussian(dof * d, 2.0**_WISHART_BITS, key=key)
        g = drawn.reshape(dof, d) * (s * 2.0**-_WISHART_BITS)
        packed = self.total.integers().astype(np.float64) * region.grid
        noisy = np.rint((unpacked(packed, d) + g.T @ g) / region.grid) * region.grid
        bias = dof * s**2 * np.eye(d)  # the noise's mean: public
        return (noisy - bias) / self._count(count_sd), None

    def _count(self, sd: float) -> float:
        """n: public, or noisy with this standard deviation."""
        if not sd:
            return float(self.total.count)
        sd = rounded_up(sd)
        return max(1.0, noise.noisy_count(self.total.count, sd, key=self.keys.of(Use.COUNT)))

    @property
    def keys(self) -> JobKeys:
        """Bound to the center, the relation, the budget and the exact sum."""
        state, region = self.total.snapshot(), self.total.ellipsoid.fingerprint()
        promise = self.guarantee
        job = (self.method, promise.neighbors.value, *promise.asked, self.center, region)
        return JobKeys(self.root, *job, state.rows, state.low, state.high)


def unpacked(packed: Array, d: int) -> Array:
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
