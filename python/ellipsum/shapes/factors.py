"""A scale of low rank beside a diagonal, for a model whose best scale is a matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..low_rank import LowRankScale
from .law import GaussianModel

__all__ = ["FactorModel", "along_its_axes", "diagonal_plus_rank", "factored"]

Array = NDArray[np.float64]

_STEPS, _SETTLED = 60, 1e-7  # of the fit: at most, and a decrease that ends it, relative
_LEAST_SHARE = 1e-8  # of a coordinate's spread stays on the diagonal


@dataclass(frozen=True)
class FactorModel(GaussianModel):
    """The rows along the axes on which y = B x is independent: of unit length, seldom at right
    angles (``basis``), ``sigma`` and ``center_error`` the deviations along them."""

    def along_axes(self, scale: Any) -> Array:
        """b of a :class:`LowRankScale`: how much B stretches each axis."""
        assert self.basis is not None
        return np.asarray(np.linalg.norm(scale.times(_units(self)[:, None] * self.basis), axis=0))


def factored(model: GaussianModel, b: Array) -> tuple[FactorModel, LowRankScale]:
    """The scale diagonal + rank ``model.rank`` in the place of b along the model's axes.

    Noise has the covariance s^2 M, M = (B'B)^-1, in the units of the errors; b gives the best one,
    M* = Q diag(b^-2) Q'. Of M = diag(D) + F F' = D^(1/2) (I + P S^2 P') D^(1/2), the nearest to it
    (:func:`diagonal_plus_rank`), B = (I + P ((I + S^2)^(-1/2) - I) P') D^(-1/2) is one root.
    """
    basis, unit = model.basis, _units(model)
    assert basis is not None and model.rank is not None
    diagonal, loadings = diagonal_plus_rank(basis, b**-2.0, model.rank)
    root = np.sqrt(diagonal)
    p, s, _ = np.linalg.svd(loadings / root[:, None], full_matrices=False)
    grown = np.hypot(1, s)
    left, right = p * (-(s**2) / (grown * (1 + grown))), p / root[:, None]
    scale = LowRankScale(1 / root / unit, left, right / unit[:, None])
    return along_its_axes(model, scale), scale


def along_its_axes(model: GaussianModel, scale: LowRankScale) -> FactorModel:
    """The model along the axes on which the scale, as it is rounded, makes the rows independent.

    y = R u, the u_i independent, and so x - c = B^-1 R u is their sum along the columns of B^-1 R.
    """
    assert model.basis is not None
    unit = _units(model)
    turned = scale.times(unit[:, None] * model.basis)
    variances, axes = np.linalg.eigh((turned * model.sigma**2) @ turned.T)
    back = scale.unscale(axes.T).T / unit[:, None]
    sizes = np.linalg.norm(back, axis=0)
    away = np.sqrt((axes.T @ turned) ** 2 @ model.center_error**2)
    sigma = np.sqrt(variances) * sizes
    return FactorModel(sigma, away * sizes, back / sizes, model.unit, model.columns)


def diagonal_plus_rank(basis: Array, spread: Array, rank: int) -> tuple[Array, Array]:
    """D (d,) and F (d, r) of the M = diag(D) + F F' with the least tr M + tr(M^-1 M*^2).

    Without a bound on the rank that is M* = basis diag(spread) basis'. Where M* is the best for
    the noise alone, M*^2 is the rows' covariance, and the sum is noise and E||y||^2, whose
    product is what a radius turns into error. It begins at the leading axes of M*, and each step
    makes it less: with K = F'M^-1, tr(M^-1 S) is the least over K of tr(D^-1 (I - F K) S (I - F
    K)') + tr(K S K'), which D and each row of F then minimise by themselves. O(d^2 r) a step.
    """
    unit = float(np.mean(spread))  # squares of it may be out of range
    spread = spread / unit
    order = np.argsort(spread)
    lead, rest = order[len(order) - rank :], order[: len(order) - rank]
    level = float(np.mean(spread[rest])) if rest.size else float(np.min(spread)) / 2
    target = (basis * spread**2) @ basis.T
    loadings = basis[:, lead] * np.sqrt(np.maximum(spread[lead] - level, 0))
    whole = basis**2 @ spread
    diagonal = np.maximum(whole - np.sum(loadings**2, axis=1), _LEAST_SHARE * whole)
    before = np.inf
    for _ in range(_STEPS):
        scaled = loadings / diagonal[:, None]
        k = np.linalg.solve(np.eye(rank) + loadings.T @ scaled, scaled.T)
        ks = k @ target
        ksk = ks @ k.T
        left_over = np.diag(target) - np.sum(loadings * (2 * ks.T - loadings @ ksk), axis=1)
        inverse = np.sum(left_over / diagonal) + np.trace(ksk)
        value = float(np.sum(diagonal) + np.sum(loadings**2) + inverse)
        if not value < before * (1 - _SETTLED):
            break
        before = value
        diagonal = np.maximum(np.sqrt(np.maximum(left_over, 0)), _LEAST_SHARE * whole)
        values, axes = np.linalg.eigh(ksk)
        loadings = ((ks.T @ axes) / (np.maximum(values, 0) + diagonal[:, None])) @ axes.T
    return unit * diagonal, math.sqrt(unit) * loadings


def _units(model: GaussianModel) -> Array:
    assert model.basis is not None
    return np.broadcast_to(np.asarray(model.unit, dtype=np.float64), (len(model.basis),))
