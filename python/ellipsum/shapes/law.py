"""What a region's maker assumes of the rows: a Gaussian, its axes and its center's error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..quadratic_form.form import QuadraticForm

__all__ = ["GaussianModel"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GaussianModel:
    """Gaussian rows as a region's maker sees them: all public.

    Parameters
    ----------
    sigma : array (d,), standard deviations along the axes, data units
    center_error : array (d,), |mean - center| along the axes, data units
    basis : array (d, d), optional: the axes, in columns; the given ones where None
    unit : array (d,), or 1: data units of each coordinate in which all this is measured
    columns : names of the coordinates, where what the model was made from had some
    rank : int, optional: a scale of this rank beside a diagonal is wanted (factors.py)
    """

    sigma: Array
    center_error: Array
    basis: Array | None = None
    unit: Array | float = 1.0
    columns: tuple[str, ...] | None = None
    rank: int | None = None

    def scale(self, b: Array) -> Array:
        """b along the axes as what an Ellipsoid takes: itself, or a symmetric matrix."""
        if self.basis is None:
            return np.asarray(b / self.unit)
        matrix = (self.basis * b) @ self.basis.T
        return np.asarray((matrix + matrix.T) / 2 / self.unit)

    def along_axes(self, scale: Any) -> Array:
        """b of a scale that :meth:`scale` made."""
        scale = scale * self.unit
        if self.basis is None:
            return scale
        return np.asarray(np.einsum("ij,ik,kj->j", self.basis, scale, self.basis, optimize=True))

    def quantile_region(self, clip_probability: float) -> tuple[Array, float]:
        """b = 1/sqrt(sigma sum sigma), and C^2 the quantile of ||y||^2 (Poulsen, Algorithm 3)."""
        b = 1 / np.sqrt(self.sigma * np.sum(self.sigma))
        return b, self.quantile_radius(b, clip_probability)

    def quantile_radius(self, b: Array, clip_probability: float) -> float:
        """C for the shape b: C^2 is the quantile of ||y||^2."""
        noncentral = (self.center_error / self.sigma) ** 2
        norm2 = QuadraticForm((b * self.sigma) ** 2, noncentrality=noncentral)
        return math.sqrt(float(norm2.isf(clip_probability)))
