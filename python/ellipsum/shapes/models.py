"""Centers, scales and models from what a user knows of the rows: a box, deviations, a sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..grid import MOST_COORDINATES
from ..units import error_unit
from .law import GaussianModel
from .sample import sample_moments

__all__ = ["Blocks", "box_scale", "center_of", "covariance_model", "gaussian_model", "sample_model"]

Array = NDArray[np.float64]

#: Public rows: an array, or a function that returns them anew, in finite blocks (m, d).
Blocks = Callable[[], Iterable[Array]]


def gaussian_model(
    sigma: ArrayLike,
    center: ArrayLike | None = None,
    center_error: ArrayLike | None = None,
    unit: ArrayLike | None = None,
) -> tuple[Array, GaussianModel]:
    """Independent coordinates with these standard deviations; all arrays (d,), data units."""
    sd = _validate.vector("sigma", sigma, above=0)
    where, per = center_of(center, sd.size), _unit(unit, sd.size)
    return where, GaussianModel(sd / per, _error(center_error, sd.size) / per, unit=per)


def covariance_model(
    covariance: ArrayLike,
    center: ArrayLike | None = None,
    center_error: ArrayLike | None = None,
    unit: ArrayLike | None = None,
) -> tuple[Array, GaussianModel]:
    """Rows with this covariance (d, d), data units squared, along its eigenvectors."""
    given = _validate.square("covariance", covariance)
    per = _unit(unit, len(given))
    if unit is not None:
        given = given / np.outer(per, per)
    sd, basis = _validate.eigenbasis("covariance", given)
    where = center_of(center, sd.size)
    error = np.sqrt((basis**2).T @ (_error(center_error, sd.size) / per) ** 2)
    return where, GaussianModel(sd, error, basis, per)


def sample_model(
    rows: ArrayLike | Blocks,
    *,
    diagonal: bool = False,
    d: int | None = None,
    relative: bool = False,
    names: Sequence[str] | None = None,
) -> tuple[Array, GaussianModel]:
    """Rows like these public ones: their mean and its error, their (shrunk) covariance.

    ``relative`` measures errors in the columns' own standard deviations.
    """
    blocks, width = _blocks(rows, d)
    public = sample_moments(blocks, width, correlated=not diagonal, names=names)
    unit = public.sd if relative else None
    if public.correlation is None:
        return gaussian_model(public.sd, public.center, public.center_error, unit)
    covariance = public.correlation * np.outer(public.sd, public.sd)
    return covariance_model(covariance, public.center, public.center_error, unit)


def box_scale(
    lower: ArrayLike, upper: ArrayLike, error: str | ArrayLike
) -> tuple[Array, Array, Array, Array]:
    """(lower, upper, center, scale) of a box whose ball has radius 1/2.

    In the unit that errors are weighed in: :func:`ellipsum.units.error_unit`.
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
    with np.errstate(over="ignore"):
        total = 2 * float(np.sum(half))
    if not math.isfinite(total):
        raise ValueError("upper - lower overflows: narrow the box")
    unit = error_unit(error, low.size, box=half)
    half = half / unit
    total = 2 * float(np.sum(half))
    return low, high, center, 1 / np.sqrt(2 * half * total) / unit


def center_of(center: ArrayLike | None, d: int | None) -> Array:
    """A center as given, or the origin of d coordinates."""
    if center is not None:
        return _validate.vector("center", center, d=d)
    if d is None:
        raise ValueError("center or d must be given: the number of coordinates is not known")
    return np.zeros(_validate.whole("d", d, least=1, most=MOST_COORDINATES))


def _blocks(rows: Any, d: int | None) -> tuple[Blocks, int]:
    if callable(rows):
        if d is None:
            raise ValueError("d must be given: the number of coordinates is not known")
        return rows, d
    public = _validate.public_rows("rows", rows)
    return (lambda: [public]), public.shape[1]


def _error(center_error: ArrayLike | None, d: int) -> Array:
    if center_error is None:
        return np.zeros(d)
    return np.abs(_validate.vector("center_error", center_error, d=d))


def _unit(unit: ArrayLike | None, d: int) -> Array:
    return np.ones(d) if unit is None else _validate.vector("unit", unit, d=d, above=0)
