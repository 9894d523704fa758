"""The grid of the exact sum: its quantum, the 24 bits of scales, and what a row can reach on it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate

__all__ = [
    "MOST_COORDINATES",
    "ball_bound",
    "box_bound",
    "box_limit",
    "flushed_matrix",
    "grid_of",
    "positive_scale",
    "round_bits",
    "round_matrix",
]

Array = NDArray[np.float64]

#: C/g lies in [2^23, 2^24): quantising adds at most sqrt(d) 2^-24 to a relative sensitivity of 1,
#: which is 6.1e-5 at d = 2^20; from there on the grid gets finer with sqrt(d).
_CLIP_NORM_BITS = 23
_LOG2_D_OF_COARSEST_GRID = 20

#: Keeps what row_bound neglects, of second order, below 2^-53.
MOST_COORDINATES = 1 << 30

#: Scales are kept to 24 significant bits and matrices too: products with a 29-bit row
#: entry are then exact in double, with or without a fused multiply-add.
_SCALE_BITS = 24

#: Scale factors (1/data unit) allowed: anything that a sane unit gives, and far from overflow.
SCALE_MIN, SCALE_MAX = 2.0**-400, 2.0**400

#: Beyond this a matrix of 24-bit entries may be singular, or its inverse mean nothing.
WORST_CONDITION = 1e6

_LIMIT_MAX = 2.0**30  # a box's, grid units: C/g <= 2^29

_UNIT_ROUNDOFF = 2.0**-53  # of a double, to nearest
_NORM_LANES = 8  # cpp/core/clip/clip.hpp
_BOUND_SLACK = 1 + 2.0**-48  # covers the roundings of a bound's own evaluation (under 20)


def grid_of(clip_norm: float, d: int) -> float:
    """The power of two with C/g in [2^23, 2^24), for the radius C; finer beyond d = 2^20."""
    extra = max(0, math.ceil((math.log2(d) - _LOG2_D_OF_COARSEST_GRID) / 2))
    exponent = math.frexp(clip_norm)[1] - 1  # C in [2^exponent, 2^(exponent + 1))
    if abs(exponent) > 400:
        raise ValueError(f"clip_norm must lie within 2^-400..2^400, got {clip_norm}")
    return math.ldexp(1.0, exponent - (_CLIP_NORM_BITS + extra))


def round_matrix(matrix: Array) -> Array:
    """A matrix in grid units as the kernels take it: their products with rows are then exact."""
    return np.ascontiguousarray(round_bits(np.where(np.abs(matrix) < SCALE_MIN, 0.0, matrix)))


def round_bits(x: Array) -> Array:
    """Round to 24 significant bits, half to even: a public parameter, chosen once."""
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, _SCALE_BITS)), exponent - _SCALE_BITS))


def positive_scale(name: str, scale: ArrayLike, *, d: int) -> Array:
    """A scale (d,) above zero, within what the kernels' products allow."""
    b = _validate.vector(name, scale, d=d, above=0)
    if not (SCALE_MIN <= float(b.min()) and float(b.max()) <= SCALE_MAX):
        raise ValueError(f"{name} must lie within 2^-400..2^400: change the unit of the data")
    return b


def flushed_matrix(scale: Array, grid: float) -> Array:
    """B with B/g within 2^-400..2^400, or 0, so that the kernel's products stay exact."""
    with np.errstate(over="ignore", under="ignore"):  # an infinity is refused next
        step = np.abs(scale) / grid
    if not float(step.max()) <= SCALE_MAX:
        raise ValueError("scale is too large for clip_norm: change the unit of the data")
    flushed = np.where(step < SCALE_MIN, 0.0, scale)
    if not np.linalg.cond(flushed) < WORST_CONDITION:
        raise ValueError(
            f"scale must be invertible: its condition number is above {WORST_CONDITION:g}. Columns "
            "of very different sizes make it so: give them units in which they are of like size, "
            "or a shape without correlations (sigma=, diagonal=True)"
        )
    return flushed


def ball_bound(radius: float, d: int) -> float:
    """Largest l2 norm of the integers of a row that is clipped to ``radius``, grid units.

    The computed norm errs by at most (ceil(d/8)/2 + 8) roundings; quantising adds sqrt(d)/2.
    """
    e_norm = (math.ceil(d / _NORM_LANES) / 2 + 8) * _UNIT_ROUNDOFF
    return (radius * (1 + e_norm) + math.sqrt(d) / 2) * _BOUND_SLACK


def box_limit(limit: Array) -> Array:
    """The limits of a box, grid units, as kernels take them: what a number lies outside by is far
    from where its square is 0."""
    if not (SCALE_MIN <= float(limit.min()) and float(limit.max()) <= _LIMIT_MAX):
        raise ValueError(
            "limit is out of range: the columns' widths, or their weights, differ too much"
        )
    limit.setflags(write=False)
    return limit


def box_bound(limit: Array) -> float:
    """The same of a row that is clamped to +-limit: sqrt(sum rint(limit_j)^2).

    In any order of d products and d - 1 sums, dot >= exact (1 - u)^d >= exact (1 - x), x = d u; and
    1/(1 - x) <= (1 + x)(1 + 2 x^2), as (1 - x^2)(1 + 2 x^2) = 1 + x^2 (1 - 2 x^2) >= 1.
    """
    corner = np.rint(limit)
    return norm_above(float(np.dot(corner, corner)), limit.size) * _BOUND_SLACK


def norm_above(dot: float, d: int) -> float:
    """Square root of a sum of d squares that was computed as ``dot``, to a few roundings."""
    x = d * _UNIT_ROUNDOFF
    return math.sqrt(dot * ((1 + x) * (1 + 2 * x * x)))
