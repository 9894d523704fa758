"""The clip region: an ellipsoid, by named factories, and the sensitivity that follows from it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate
from .grid import SCALE_MAX, SCALE_MIN, grid_of, round_bits
from .guarantee import Neighbors
from .shapes.best import Assumptions, ErrorPrediction, best_region, predict
from .shapes.law import GaussianModel
from .shapes.sample import sample_moments

__all__ = ["Ellipsoid"]

Array = NDArray[np.float64]

_MOST_COORDINATES = 1 << 30  # keeps what row_bound neglects, of second order, below 2^-53
_LIMIT_BITS = 30  # a box's limits stay below 2^30 grid units: C/g <= 2^29

#: The share clipped where the best one is wanted, but neither n nor the noise is known yet.
_PROVISIONAL_CLIP_PROBABILITY = 0.01

#: Beyond this a matrix of 24-bit entries may be singular, or its inverse mean nothing.
_WORST_CONDITION = 1e6

_UNIT_ROUNDOFF = 2.0**-53
_NORM_LANES = 8  # cpp/core/clip/clip.hpp
_BOUND_SLACK = (
    1 + 2.0**-48
)  # covers the roundings of a sensitivity's own evaluation (under 20 of them)


class Ellipsoid:
    """The clip region {x : ||scale * (x - center)|| <= clip_norm}, with the grid of its sums.

    Use a factory: :meth:`ball`, :meth:`box`, :meth:`for_gaussian`, :meth:`for_covariance`.
    The constructor takes any center, scale (a vector, or a matrix in its place) and radius.

    **Guarantees.** :meth:`sensitivity` bounds the l2 change of the *integer* sum that
    :class:`ExactSum` makes, times ``grid``: every rounding is in it
    (claims sum-1, sum-3). All attributes are public parameters: they must not be
    computed from private rows, unless privately.

    Parameters
    ----------
    center : array (d,), data units
    scale : array (d,) or (d, d), 1/data unit; kept to 24 significant bits
    clip_norm : float, C, no unit (after ``scale``)

    Raises
    ------
    ValueError
        For a scale that is not positive (or a singular matrix), a NaN, a radius that is not
        above zero, or shapes that do not agree.
    """

    def __init__(self, center: ArrayLike, scale: ArrayLike, clip_norm: float) -> None:
        matrix = np.ndim(scale) == 2
        self._center = _validate.vector("center", center)
        self._clip_norm = _validate.positive("clip_norm", clip_norm)
        self._scale = round_bits(
            _validate.square("scale", scale, d=self.d) if matrix else _positive_scale(scale, self.d)
        )
        self._limit: Array | None = None
        self._law: GaussianModel | None = None  # what a factory assumed of the rows
        self._assumed: Assumptions | None = None
        self._provisional = False
        self._kind = "matrix" if matrix else "ellipsoid"
        self._finish()

    def _finish(self) -> None:
        if self.d > _MOST_COORDINATES:
            raise ValueError(f"d is {self.d}: at most 2^30 coordinates are supported")
        self._grid = grid_of(self._clip_norm, self.d)
        if self._scale.ndim == 2:
            self._flush_matrix()
        for array in (self._center, self._scale):
            array.setflags(write=False)

    def _flush_matrix(self) -> None:
        """Keep B/g within 2^-400..2^400, or 0, so that the kernel's products stay exact."""
        with np.errstate(over="ignore", under="ignore"):  # an infinity is refused next
            step = np.abs(self._scale) / self._grid
        if not float(step.max()) <= SCALE_MAX:
            raise ValueError("scale is too large for clip_norm: change the unit of the data")
        self._scale[step < SCALE_MIN] = 0.0
        if not np.linalg.cond(self._scale) < _WORST_CONDITION:
            raise ValueError(
                f"scale must be invertible: its condition number is above {_WORST_CONDITION:g}"
            )

    # ---- factories -----------------------------------------------------------------

    @classmethod
    def ball(
        cls, radius: float, center: ArrayLike | None = None, *, d: int | None = None
    ) -> Ellipsoid:
        """Return the ball of ``radius`` around ``center`` (default: the origin of ``d`` axes).

        Parameters
        ----------
        radius : float, data units
        center : array (d,), data units
        d : int, needed where ``center`` is not given

        Source: the Gaussian mechanism (Poulsen 2023, Algorithm 1, after clipping).
        """
        where = _center(center, d)
        region = cls(where, np.ones(where.size), _validate.positive("radius", radius))
        region._kind = "ball"
        return region

    @classmethod
    def box(cls, lower: ArrayLike, upper: ArrayLike) -> Ellipsoid:
        """Return the box [lower, upper], clipped coordinate by coordinate.

        With widths Delta_j and b_j = sqrt(Delta_j / sum Delta) the scale is b_j / Delta_j and
        C = 1/2: the noise energy is sigma_opt^2 ||Delta||_1^2 for ``replace`` neighbours.

        Parameters
        ----------
        lower, upper : array (d,), data units, lower < upper in every coordinate

        Source: Poulsen 2023, Algorithm 2 and Theorem 3; Pagh & Lebeda. (Its section 3.1 prints
        the radii as b_j / Delta_j; they are Delta_j / b_j.)
        """
        low = _validate.vector("lower", lower)
        high = _validate.vector("upper", upper, d=low.size)
        if not (low < high).all():
            j = int(np.flatnonzero(~(low < high))[0])
            raise ValueError(
                f"upper must be above lower in every coordinate; at {j} they are "
                f"{high[j]} and {low[j]}: drop a constant coordinate or widen the box"
            )
        center = 0.5 * low + 0.5 * high
        half = np.maximum(high - center, center - low)
        total = 2 * float(np.sum(half))
        if not math.isfinite(total):
            raise ValueError("upper - lower overflows: narrow the box")
        region = cls(center, 1 / np.sqrt(2 * half * total), 0.5)
        step = region._scale / region._grid
        # The kernel's own arithmetic on the two corners: no row inside the box is clipped.
        region._limit = np.maximum((high - center) * step, (center - low) * step)
        region._limit.setflags(write=False)
        region._kind = "box"
        return region

    @classmethod
    def for_gaussian(
        cls,
        sigma: ArrayLike,
        center: ArrayLike | None = None,
        clip_probability: float | str = "best",
        *,
        center_error: ArrayLike | None = None,
        n: int | None = None,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbors: str = "replace",
    ) -> Ellipsoid:
        """Return the ellipsoid for rows that are about Gaussian with independent coordinates.

        ``"best"`` minimises the predicted error of the release over shape and radius
        (docs/best_region.md: what is counted, and what guards against shrinking to the
        centre). It needs the number of rows and the noise: give them here, or
        leave it to :class:`PrivateSum` and :class:`PrivateMean`, which know both for an
        array under ``replace`` neighbours; till then, and where they do not, p = 0.01.

        A number p takes b_j = 1/sqrt(sigma_j sum sigma) and for C^2 the (1 - p)-quantile of
        ||y||^2 = sum (b_j sigma_j)^2 chi^2_1.

        Parameters
        ----------
        sigma : array (d,), standard deviations, data units
        center : array (d,), data units; default the origin
        clip_probability : ``"best"``, or the share of rows in (0, 1) that the clip may change
        center_error : array (d,), data units, optional
            A guess of abs(mean - center): the laws are then noncentral.
        n : int, rows (public)
        noise_multiplier : float; or epsilon, delta
        neighbors : ``"replace"`` or ``"add-remove"``

        Source: Poulsen 2023, Lemma 4.1 and Algorithm 3. Its equation (10) drops
        ||mean - center||^2 as a constant; it is ||(mean - center) * b||^2.
        """
        sd = _validate.vector("sigma", sigma, above=0)
        where = _center(center, sd.size)
        law = GaussianModel(sd, _center_error(center_error, sd.size))
        assumed = Assumptions.given(law, n, noise_multiplier, epsilon, delta, neighbors)
        return cls._for_law(where, law, clip_probability, assumed)

    @classmethod
    def for_covariance(
        cls,
        covariance: ArrayLike,
        center: ArrayLike | None = None,
        clip_probability: float | str = "best",
        *,
        center_error: ArrayLike | None = None,
        **known: Any,
    ) -> Ellipsoid:
        """Return the ellipsoid for rows that are about Gaussian with this covariance.

        :meth:`for_gaussian` in the eigenbasis; for a number p, B is
        Sigma^(-1/4) / sqrt(tr Sigma^(1/2)).

        Parameters
        ----------
        covariance : array (d, d), data units squared, symmetric and positive definite
        center, clip_probability, center_error, **known : as in :meth:`for_gaussian`
        """
        sd, basis = _validate.eigenbasis("covariance", covariance)
        where = _center(center, sd.size)
        error = np.sqrt((basis**2).T @ _center_error(center_error, sd.size) ** 2)
        law = GaussianModel(sd, error, basis)
        return cls._for_law(where, law, clip_probability, Assumptions.given(law, **known))

    @classmethod
    def for_sample(
        cls,
        rows: ArrayLike,
        clip_probability: float | str = "best",
        *,
        diagonal: bool = False,
        **known: Any,
    ) -> Ellipsoid:
        """Return the ellipsoid for rows like these **public** ones.

        Their mean, their covariance with the correlations shrunk (Ledoit & Wolf 2004, 2020; with
        ``diagonal`` the variances alone), and the standard error of their mean.

        Parameters
        ----------
        rows : array (m, d), m >= 2, public, data units
        diagonal : bool
            Leave the correlations out: O(d) for each row instead of O(d^2).
        clip_probability, **known : as in :meth:`for_gaussian` (n, epsilon, delta, ...)
        """
        public = np.array(rows, dtype=np.float64)
        if public.ndim != 2 or len(public) < 2 or not np.isfinite(public).all():
            raise ValueError("rows must be finite, of shape (m, d) with m >= 2")
        center, covariance = sample_moments(public)
        sd = np.sqrt(np.diag(covariance))
        error = sd / math.sqrt(len(public))
        if diagonal:
            return cls.for_gaussian(sd, center, clip_probability, center_error=error, **known)
        return cls.for_covariance(covariance, center, clip_probability, center_error=error, **known)

    @classmethod
    def _for_law(
        cls,
        where: Array,
        law: GaussianModel,
        clip_probability: float | str,
        assumed: Assumptions | None,
    ) -> Ellipsoid:
        if not isinstance(clip_probability, str):
            p = _validate.open_unit("clip_probability", clip_probability)
            b, radius = law.quantile_region(p)
        elif _validate.one_of("clip_probability", clip_probability, ("best",)) and assumed:
            b, radius = best_region(assumed)
        else:
            b, radius = law.quantile_region(_PROVISIONAL_CLIP_PROBABILITY)
        region = cls(where, law.scale(b), radius)
        region._law, region._assumed = law, assumed
        region._provisional = isinstance(clip_probability, str) and assumed is None
        return region

    def in_units(self, unit: ArrayLike, center: ArrayLike) -> Ellipsoid:
        """This region, made for (x - center) / unit, as the one for x itself.

        Errors that :meth:`predicted_error` tells are then in these units too.

        Parameters
        ----------
        unit, center : arrays (d,), data units
        """
        per = _validate.vector("unit", unit, d=self.d, above=0)
        region = Ellipsoid(center, self._scale / per, self._clip_norm)
        if self._law is not None:
            region._law = replace(self._law, unit=per)
        region._assumed, region._provisional = self._assumed, self._provisional
        return region

    @property
    def provisional(self) -> bool:
        """Whether the best region was asked for, but n and the noise are still to be given."""
        return self._provisional

    def resolved(self, n: int, noise_multiplier: float, neighbors: str) -> Ellipsoid:
        """The best region for this n and noise, where one was asked for without them; else self."""
        if not self._provisional or self._law is None:
            return self
        assumed = Assumptions(self._law, n, noise_multiplier, neighbors)
        return self._for_law(self._center, self._law, "best", assumed)

    def predicted_error(
        self,
        kind: str = "mean",
        *,
        n: int | None = None,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbors: str = "replace",
    ) -> ErrorPrediction:
        """Return the predicted mean squared error of a release, by term and coordinate.

        Against the sum (or mean) of the rows themselves, for the Gaussian rows that the
        region was made for (:meth:`for_gaussian`, :meth:`for_covariance`).

        Parameters
        ----------
        kind : ``"mean"`` or ``"sum"``
        n, noise_multiplier, epsilon, delta, neighbors :
            default: those that the region was made with
        """
        _validate.one_of("kind", kind, ("mean", "sum"))
        if self._law is None:
            raise ValueError(
                "predicted_error needs a region made by for_gaussian or for_covariance"
            )
        assumed = Assumptions.given(self._law, n, noise_multiplier, epsilon, delta, neighbors)
        assumed = assumed or self._assumed
        if assumed is None:
            raise ValueError("give n (rows), and noise_multiplier or epsilon and delta")
        return predict(self._law.along_axes(self._scale), self._clip_norm, assumed, kind)

    # ---- what can be read ----------------------------------------------------------

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self._center.size)

    @property
    def kind(self) -> str:
        """``"ball"``, ``"box"``, ``"ellipsoid"`` or ``"matrix"``."""
        return self._kind

    @property
    def center(self) -> Array:
        """c, shape (d,), data units."""
        return self._center

    @property
    def scale(self) -> Array:
        """b, shape (d,), or B, shape (d, d), 1/data unit."""
        return self._scale

    @property
    def clip_norm(self) -> float:
        """C, the radius after scaling (for a box: of the ball around it)."""
        return self._clip_norm

    @property
    def grid(self) -> float:
        """g, the quantum of the exact sum, scaled units: a power of two."""
        return self._grid

    def row_bound(self) -> float:
        """Largest l2 norm of one row's integers, in grid units (upper bound).

        Ball and ellipsoid: the computed norm errs by at most (ceil(d/8)/2 + 8) roundings,
        quantising adds sqrt(d)/2. Box: sqrt(sum rint(limit_j)^2), nothing to add.
        """
        if self._limit is not None:
            corner = np.rint(self._limit)
            return _norm_above(float(np.dot(corner, corner)), self.d) * _BOUND_SLACK
        e_norm = (math.ceil(self.d / _NORM_LANES) / 2 + 8) * _UNIT_ROUNDOFF
        return (self._clip_norm / self._grid * (1 + e_norm) + math.sqrt(self.d) / 2) * _BOUND_SLACK

    def sensitivity(self, neighbors: str) -> float:
        """Return an upper bound of the l2 change of the scaled sum between neighbours.

        Parameters
        ----------
        neighbors : ``"replace"`` (one row takes another value: 2C and slack) or
            ``"add-remove"`` (one row more or less: C and slack)

        Returns
        -------
        float, scaled units; above 2C (or C) by less than 1e-4 of it
        """
        return Neighbors.of(neighbors).factor() * self.row_bound() * self._grid

    # ---- for the stages ------------------------------------------------------------

    def kernel_arguments(self) -> tuple[Array, Array, Array, Array, float]:
        """(center, scale, matrix, limit, radius) in grid units, as the clip kernels take them."""
        none = np.empty(0)
        step = self._scale / self._grid  # exact: the grid is a power of two
        scale, matrix = (none, step) if step.ndim == 2 else (step, none)
        limit = none if self._limit is None else self._limit
        return self._center, scale, matrix, limit, self._clip_norm / self._grid

    def unscale(self, y: Array) -> Array:
        """Map scaled coordinates (last axis d) back to data units, center not added."""
        if self._scale.ndim == 1:
            return np.asarray(y / self._scale)
        return np.asarray(np.linalg.solve(self._scale, np.asarray(y).T).T)

    def fingerprint(self) -> bytes:
        """16 bytes that two regions share exactly when they sum alike."""
        digest = hashlib.blake2b(f"{self._scale.ndim}|{self.d}|".encode(), digest_size=16)
        for part in (self._center, self._scale, self._limit):
            digest.update(b"" if part is None else part.astype("<f8").tobytes())
            digest.update(b"|")
        digest.update(np.array([self._clip_norm, self._grid], "<f8").tobytes())
        return digest.digest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ellipsoid):
            return NotImplemented
        return self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def __repr__(self) -> str:
        return (
            f"Ellipsoid(kind={self._kind!r}, d={self.d}, clip_norm={self._clip_norm:.6g}, "
            f"grid=2**{math.frexp(self._grid)[1] - 1})"
        )

    def to_state(self) -> dict[str, Any]:
        """The arrays and numbers that define the region, for serialisation."""
        limit = np.empty(0) if self._limit is None else self._limit
        return {
            "kind": self._kind,
            "center": self._center,
            "scale": self._scale,
            "limit": limit,
            "clip_norm": self._clip_norm,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ellipsoid:
        """Rebuild a region from :meth:`to_state`; every field is checked again."""
        region = cls(state["center"], state["scale"], state["clip_norm"])
        kind = _validate.one_of("kind", state["kind"], ("ball", "box", "ellipsoid", "matrix"))
        if (kind == "matrix") != (region._scale.ndim == 2):
            raise ValueError("kind does not fit the shape of scale")
        if kind == "box":
            limit = _validate.vector("limit", state["limit"], d=region.d, above=0)
            if float(np.max(limit)) > 2.0**_LIMIT_BITS:
                raise ValueError("limit is out of range")
            limit.setflags(write=False)
            region._limit = limit
        region._kind = kind
        return region


def _norm_above(dot: float, d: int) -> float:
    """Square root of a sum of d squares that was computed as ``dot``, to a few roundings.

    In any order of d products and d - 1 sums, dot >= exact (1 - u)^d >= exact (1 - x), x = d u; and
    1/(1 - x) <= (1 + x)(1 + 2 x^2), as (1 - x^2)(1 + 2 x^2) = 1 + x^2 (1 - 2 x^2) >= 1.
    """
    x = d * _UNIT_ROUNDOFF
    return math.sqrt(dot * ((1 + x) * (1 + 2 * x * x)))


def _center(center: ArrayLike | None, d: int | None) -> Array:
    if center is not None:
        return _validate.vector("center", center, d=d)
    if d is None:
        raise ValueError("center or d must be given: the number of coordinates is not known")
    return np.zeros(_validate.whole("d", d, least=1, most=_MOST_COORDINATES))


def _center_error(center_error: ArrayLike | None, d: int) -> Array:
    if center_error is None:
        return np.zeros(d)
    return np.abs(_validate.vector("center_error", center_error, d=d))


def _positive_scale(scale: ArrayLike, d: int) -> Array:
    b = _validate.vector("scale", scale, d=d, above=0)
    if not (SCALE_MIN <= float(b.min()) and float(b.max()) <= SCALE_MAX):
        raise ValueError("scale must lie within 2^-400..2^400: change the unit of the data")
    return b
