"""Centers, scales and models from what a user knows of the rows: a box, deviations, a sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..column_names import check_limits, frame_names, named_vectors
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
    error: str | ArrayLike = "absolute",
) -> tuple[Array, GaussianModel]:
    """Independent coordinates with these standard deviations; all arrays (d,), data units.

    Errors are weighed as ``error`` says (:func:`ellipsum.units.error_unit`). What has names is
    taken by them (:func:`ellipsum.column_names.named_vectors`).
    """
    names, known = named_vectors(sigma=sigma, center=center, center_error=center_error, error=error)
    sd = _validate.vector("sigma", known["sigma"], above=0)
    where = center_of(known["center"], sd.size)
    per = error_unit(known["error"], sd.size, sigma=sd)
    away = _away(known["center_error"], sd.size)
    return where, GaussianModel(sd / per, away / per, unit=per, columns=names)


def covariance_model(
    covariance: ArrayLike,
    center: ArrayLike | None = None,
    center_error: ArrayLike | None = None,
    error: str | ArrayLike = "absolute",
    rank: int | None = None,
) -> tuple[Array, GaussianModel]:
    """Rows with this covariance (d, d), data units squared, along its eigenvectors."""
    names, known = named_vectors(
        covariance=covariance, center=center, center_error=center_error, error=error
    )
    given = _validate.square("covariance", known["covariance"])
    with np.errstate(invalid="ignore"):  # a negative variance is refused with the matrix
        per = error_unit(known["error"], len(given), sigma=np.sqrt(np.diag(given)))
    sd, basis = _validate.eigenbasis("covariance", given / np.outer(per, per))
    where = center_of(known["center"], sd.size)
    away = np.sqrt((basis**2).T @ (_away(known["center_error"], sd.size) / per) ** 2)
    if rank is not None:
        rank = _validate.whole("rank", rank, least=1, most=sd.size)
    return where, GaussianModel(sd, away, basis, per, names, rank)


def sample_model(
    rows: ArrayLike | Blocks,
    *,
    diagonal: bool = False,
    d: int | None = None,
    error: str | ArrayLike = "absolute",
    names: Sequence[str] | None = None,
) -> tuple[Array, GaussianModel]:
    """Rows like these public ones: their mean and its error, their (shrunk) covariance."""
    blocks, width = _blocks(rows, d)
    public = sample_moments(blocks, width, correlated=not diagonal, names=names)
    columns = frame_names(rows) if names is None else tuple(names)
    if columns is not None and not isinstance(error, str):
        sigma = dict(zip(columns, public.sd, strict=False))
        error = named_vectors(sigma=sigma, error=error).arrays["error"]
    known = (public.center, public.center_error, error)
    if public.correlation is None:
        center, model = gaussian_model(public.sd, *known)
    else:
        covariance = public.correlation * np.outer(public.sd, public.sd)
        center, model = covariance_model(covariance, *known)
    return center, replace(model, columns=columns)


def box_scale(
    lower: ArrayLike, upper: ArrayLike, error: str | ArrayLike
) -> tuple[Array, Array, Array, Array, tuple[str, ...] | None]:
    """(lower, upper, center, scale, names) of a box whose ball has radius 1/2.

    In the unit that errors are weighed in: :func:`ellipsum.units.error_unit`.
    """
    names, known = named_vectors(lower=lower, upper=upper, error=error)
    low = _validate.vector("lower", known["lower"])
    high = _validate.vector("upper", known["upper"], d=low.size)
    check_limits(low, high, names)
    center = 0.5 * low + 0.5 * high
    half = np.maximum(high - center, center - low)
    with np.errstate(over="ignore"):
        total = 2 * float(np.sum(half))
    if not math.isfinite(total):
        raise ValueError("upper - lower overflows: narrow the box")
    unit = error_unit(known["error"], low.size, box=half)
    half = half / unit
    total = 2 * float(np.sum(half))
    return low, high, center, 1 / np.sqrt(2 * half * total) / unit, names


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


def _away(center_error: ArrayLike | None, d: int) -> Array:
    if center_error is None:
        return np.zeros(d)
    return np.abs(_validate.vector("center_error", center_error, d=d))
