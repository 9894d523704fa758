"""What is known before a plan starts: a box or a ball, and perhaps the rows' scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..column_names import check_limits, named_vectors
from ..grid import round_matrix
from ..units import error_unit

__all__ = ["EITHER", "ERROR_WHERE", "Domain", "Frame", "make_domain", "named_domain"]

Array = NDArray[np.float64]

#: What is said where a region is given, and more than a region.
EITHER = "give either an ellipsoid, or a box or ball: not both"
ERROR_WHERE = (
    "error goes with a box or ball alone; for rows of a known spread it is GaussianShape(error=...)"
)

_NONE: Array = np.empty(0)

#: Half widths from here to its inverse: no square of anything made from them overflows.
_NARROWEST = 2.0**-200

#: Up to here products of a rotated frame's entries with rows are exact (cpp/core/clip/clip.hpp).
_LARGEST_SCALE = 2.0**400


class Frame(NamedTuple):
    """Where rows are seen from: y = scale * (x - center), or matrix @ (x - center)."""

    center: Array  #: data units
    scale: Array = _NONE
    matrix: Array = _NONE  #: entries as `round_matrix` leaves them


@dataclass(frozen=True, repr=False)
class Domain:
    """Where the rows are said to lie, and what else is known. All of it is public.

    ``half`` are the half widths around ``center`` along the axes of ``basis`` (the given axes
    where it is None), and ``sigma`` the standard deviations along the axes, where they are
    known: all in ``unit``, data units for each coordinate, in which errors are weighed. The
    axes are those of the coordinates so scaled, so that a weighting is part of a shape.
    ``lower`` and ``upper`` are the box that rows are moved into, data units; with ``radius`` the
    one around the ball. ``relative``: errors are weighed by the spread that is found.
    """

    center: Array
    half: Array
    sigma: Array | None = None
    basis: Array | None = None
    lower: Array | None = None
    upper: Array | None = None
    radius: float | None = None
    unit: Array | float = 1.0
    relative: bool = False

    def __repr__(self) -> str:
        kind = "box" if self.radius is None else "ball"
        return f"{kind} of {self.center.size} coordinates"

    def back(self, offset: Array) -> Array:
        """From offsets along the axes to a point."""
        away = offset if self.basis is None else self.basis @ offset
        return np.asarray(self.center + self.unit * away)

    def offset(self, point: Array) -> Array:
        """From a point to offsets along the axes."""
        away = (point - self.center) / self.unit
        return np.asarray(away if self.basis is None else self.basis.T @ away)

    def rotated(self, deviation: Array) -> Array:
        """Root mean squares along the axes as those of the coordinates, data units."""
        own = deviation if self.basis is None else np.sqrt(self.basis**2 @ deviation**2)
        return np.asarray(self.unit * own)

    def covariance(self, variance: Array) -> Array:
        """Variances along the axes as a matrix (d, d), data units squared."""
        basis = self.basis
        own = np.diag(variance) if basis is None else (basis * variance) @ basis.T
        return np.asarray(own * np.multiply.outer(*(2 * [self.unit * np.ones(variance.size)])))

    def frame(self, offset: Array, scale: Array) -> Frame:
        """How the kernels see rows from a point, ``scale`` along each axis."""
        if self.basis is None:
            return Frame(self.back(offset), scale / self.unit)
        matrix = scale[:, None] * (self.basis.T / self.unit)
        if not float(np.abs(matrix).max()) <= _LARGEST_SCALE:
            raise ValueError("the rows are too close together: change the unit of the data")
        return Frame(self.back(offset), matrix=round_matrix(matrix))

    @property
    def box(self) -> tuple[Array, Array] | None:
        """The box that rows are moved into."""
        if self.lower is None or self.upper is None:
            return None
        return self.lower, self.upper

    @property
    def line(self) -> Array | None:
        """How a point moves along the axes, in half widths, that moves by one of each coordinate's
        half widths; None of a ball, which has no such direction."""
        if self.radius is not None or self.box is None:
            return None
        own = 0.5 * (self.box[1] - self.box[0]) / self.unit
        along = own if self.basis is None else self.basis.T @ own
        return np.asarray(along / self.half)

    @property
    def largest_spread(self) -> Array:
        """How far from the center a row may lie along each axis, which bounds its deviation."""
        if self.basis is None and self.radius is None:
            return self.half
        return np.full(self.half.size, float(np.linalg.norm(self.half)))

    def project(self, point: Array) -> Array:
        """The nearest point of the domain."""
        if self.radius is not None:
            away = point - self.center
            norm = float(np.linalg.norm(away))
            return point if norm <= self.radius else self.center + away * (self.radius / norm)
        return point if self.box is None else np.clip(point, *self.box)


def make_domain(
    lower: ArrayLike | None,
    upper: ArrayLike | None,
    center: ArrayLike | None,
    radius: float | None,
    sigma: ArrayLike | None = None,
    covariance: ArrayLike | None = None,
    error: str | ArrayLike = "box",
    names: tuple[str, ...] | None = None,
) -> Domain:
    """The domain of a box or of a ball, in the eigenbasis of ``covariance`` where it is given.

    ``error`` says how errors are weighed: :func:`ellipsum.units.error_unit`.
    """
    known = _bounds(lower, upper, center, radius, names)
    d = known["center"].size
    if not (_NARROWEST <= known["half"].min() and known["half"].max() <= 1 / _NARROWEST):
        raise ValueError("the box or ball must be 2^-200 to 2^200 wide: change the unit")
    if sigma is not None and covariance is not None:
        raise ValueError("give sigma or covariance, not both")
    own = None if sigma is None else _validate.vector("sigma", sigma, d=d, above=0)
    matrix = None if covariance is None else _validate.square("covariance", covariance, d=d)
    if matrix is not None:
        if not (np.diag(matrix) > 0).all():
            raise ValueError("covariance must be positive definite: its diagonal is not positive")
        own = np.sqrt(np.diag(matrix))
    known["relative"] = isinstance(error, str) and error == "relative" and own is None
    unit = error_unit("box" if known["relative"] else error, d, box=known["half"], sigma=own)
    known["half"], known["unit"] = known["half"] / unit, unit
    if matrix is not None:
        known["sigma"], known["basis"] = _validate.eigenbasis(
            "covariance", matrix / np.outer(unit, unit), d=d
        )
        known["half"] = _rotated(known["half"], known["basis"], known["radius"])
    elif own is not None:
        known["sigma"] = own / unit
    return Domain(**known)


def named_domain(
    lower: Any, upper: Any, center: Any, radius: Any, sigma: Any, covariance: Any, error: Any
) -> tuple[Domain, tuple[str, ...] | None]:
    """The domain of parameters some of which may be by name, and the names of its coordinates."""
    names, known = named_vectors(
        lower=lower, upper=upper, center=center, sigma=sigma, covariance=covariance, error=error
    )
    error = "box" if error is None else known.pop("error")
    known.pop("error", None)
    return make_domain(radius=radius, error=error, names=names, **known), names


def _bounds(
    lower: ArrayLike | None,
    upper: ArrayLike | None,
    center: ArrayLike | None,
    radius: float | None,
    names: tuple[str, ...] | None,
) -> dict[str, Any]:
    if lower is not None and upper is not None and center is None and radius is None:
        low = _validate.vector("lower", lower)
        high = _validate.vector("upper", upper, d=low.size)
        check_limits(low, high, names)
        middle = 0.5 * high + 0.5 * low
        half = 0.5 * high - 0.5 * low
        return {"center": middle, "half": half, "lower": low, "upper": high, "radius": None}
    if center is not None and radius is not None and lower is None and upper is None:
        where = _validate.vector("center", center)
        reach = _validate.positive("radius", radius)
        half = np.full(where.size, reach / math.sqrt(where.size))
        cube = {"lower": where - reach, "upper": where + reach}
        return {"center": where, "half": half, "radius": reach} | cube
    raise ValueError("give an ellipsoid, or lower and upper (a box), or center and radius (a ball)")


def _rotated(half: Array, basis: Array, radius: float | None) -> Array:
    """Half widths along other axes: of the rotated box, for points spread evenly in it."""
    return half if radius is not None else np.sqrt((basis**2).T @ half**2)
