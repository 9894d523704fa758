"""Regressions and principal axes from noisy second moments, with error bars."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .. import _validate
from ..column_names import Columns
from ..column_units import ratio_unit
from ..rows.queries import shape_of
from .named_rows import as_numbers

__all__ = [
    "LEAST_RIDGE",
    "MomentRegression",
    "NoisyMoments",
    "PrincipalAxes",
    "chosen_ridge",
    "coef_units",
    "ridge_reach",
    "semidefinite",
    "stein_ridge",
    "stein_stretch",
    "stretch_terms",
]

Array = NDArray[np.float64]

LEAST_RIDGE = 0.5  # of sd sqrt(p): below, the estimate itself is too noisy to choose by
_MOST_STRETCH = 3.0  # what was best with a ridge of 4 sd sqrt(p) at the smallest budgets
#: Largest eigenvalue of the columns' moments, in units of the noise's norm sd sqrt(p), from which
#: on ridge and stretch are estimated: below, Stein's estimate is noise itself. The best of five,
#: also without any one of the data sets that were tried (bench/moment_default.py), as are the
#: 2 and 1.5 that stand in for it.
CLEAR_SIGNAL = 10.0
_LASSO_PASSES = 10_000
_LASSO_TOLERANCE = 1e-12


def coef_units(
    units: tuple[str | None, ...] | None, columns: tuple[int, ...], target: int
) -> tuple[str | None, ...] | None:
    """The units of coefficients: the target's per that of the column, as far as both are known."""
    known = tuple(ratio_unit(units[target], units[j]) for j in columns) if units else ()
    return known if any(known) else None


def semidefinite(matrix: Array) -> Array:
    """The nearest positive semidefinite matrix (Frobenius norm)."""
    value, basis = np.linalg.eigh(matrix)
    return np.asarray((basis * np.maximum(value, 0.0)) @ basis.T)


@dataclass(frozen=True)
class MomentRegression:
    """Coefficients of a linear regression without intercept, with their noise.

    **Guarantees.** Post-processing of released moments: it costs nothing.

    Parameters
    ----------
    coef : array (p,), target units per unit of the column
    sd : array (p,): standard deviation that the moments' noise gives each, to first order, of a
        lasso's coefficients that are not 0
    columns : tuple of int, which coordinates predict
    target : int, which is predicted
    d : int, coordinates of a whole row
    names : tuple of str, of all of these, or None
    units : tuple of str or None, of ``coef``: the target's per that of the column; or None
    """

    coef: Array
    sd: Array
    columns: tuple[int, ...]
    target: int
    d: int
    names: tuple[str, ...] | None = None
    units: tuple[str | None, ...] | None = None

    def confidence_interval(self, level: float = 0.95) -> Array:
        """Intervals (p, 2) for what the same regression gives on the clipped rows themselves.

        Noise to first order, so that they hold where it is small beside the moments; a penalty's
        bias is not in them.
        """
        reach = float(ndtri(0.5 + _validate.open_unit("level", level) / 2)) * self.sd
        return np.stack([self.coef - reach, self.coef + reach], axis=1)

    def predict(self, rows: Any) -> Array:
        """Target of each row (n, d) or (n, p), about the center; the columns of a table are met by
        name, be they all d or the p that predict."""
        p, known = len(self.coef), self.names
        if known is not None and shape_of(rows)[1:] <= (p,):
            known = tuple(known[j] for j in self.columns)
        x = as_numbers(rows, Columns(known, "the release"))
        if x.ndim != 2 or x.shape[1] not in (p, self.d):
            raise ValueError(f"rows must have shape (n, {p}), or (n, {self.d}) with the target")
        return np.asarray((x if x.shape[1] == p else x[:, self.columns]) @ self.coef)


@dataclass(frozen=True)
class PrincipalAxes:
    """The k first principal axes.

    Parameters
    ----------
    variances : array (k,), descending: second moments along the axes, floor taken off
    variances_sd : array (k,), their noise to first order
    axes : array (k, d), unit vectors
    angles : array (k,), radians: root mean square angle to the axis of the rows themselves, to
        first order; at most pi/2
    columns : tuple of str, names of the d coordinates, or None
    """

    variances: Array
    variances_sd: Array
    axes: Array
    angles: Array
    columns: tuple[str, ...] | None = None


class NoisyMoments:
    """An unbiased estimate of a second-moment matrix and the covariance of its noise.

    Parameters
    ----------
    value : array (d, d)
    spread : function of v (d,), the covariance matrix (d, d) of the noise of ``value @ v``
    names, units : tuple of str, of the coordinates, optional
    """

    def __init__(
        self,
        value: Array,
        spread: Callable[[Array], Array],
        names: tuple[str, ...] | None = None,
        units: tuple[str | None, ...] | None = None,
    ) -> None:
        self.value, self.spread, self.names, self.units = value, spread, names, units

    def ridge(
        self, target: int, columns: tuple[int, ...], penalty: float, least: float = 0.0
    ) -> MomentRegression:
        """argmin b'Gb/2 - b'g + penalty |b|^2/2, with eigenvalues of G + penalty below ``least``
        raised to it; for ``least`` = 0 negative ones count by their size."""
        p = len(columns)
        inner = self.value[np.ix_(columns, columns)] + penalty * np.eye(p)
        value, basis = np.linalg.eigh(inner)
        size = np.maximum(value, least) if least else np.abs(value)
        size = np.maximum(size, np.finfo(float).tiny)
        inverse = np.asarray((basis / size) @ basis.T)
        coef = inverse @ self.value[list(columns), target]
        return self._with_noise(coef, inverse, target, columns, np.arange(p))

    def lasso(self, target: int, columns: tuple[int, ...], penalty: float) -> MomentRegression:
        """argmin b'Gb/2 - b'g + penalty |b|_1 on the nearest semidefinite moments, by coordinate
        descent (which converges: the penalty is separable)."""
        both = (*columns, target)
        g = semidefinite(self.value[np.ix_(both, both)])
        inner, cross = g[:-1, :-1], g[:-1, -1]
        coef = _coordinate_descent(inner, cross, penalty)
        kept = np.flatnonzero(coef)
        inverse = np.asarray(np.linalg.pinv(inner[np.ix_(kept, kept)]), dtype=np.float64)
        return self._with_noise(coef, inverse, target, columns, kept)

    def _with_noise(
        self,
        coef: Array,
        inverse: Array,
        target: int,
        columns: tuple[int, ...],
        kept: NDArray[np.intp],
    ) -> MomentRegression:
        """d coef = A^-1 (dg - dG coef) = A^-1 dG v, v = e_target - coef: the delta method."""
        v = np.zeros(len(self.value))
        v[target] = 1.0
        v[list(columns)] -= coef
        rows = np.asarray(columns, dtype=np.intp)[kept]
        inner = inverse @ self.spread(v)[np.ix_(rows, rows)] @ inverse
        sd = np.zeros(len(coef))
        sd[kept] = np.sqrt(np.maximum(np.diag(inner), 0.0))
        units = coef_units(self.units, columns, target)
        return MomentRegression(coef, sd, columns, target, len(v), self.names, units)

    def axes(self, k: int) -> PrincipalAxes:
        """The first k eigenvectors: perturbation theory to first order."""
        value, basis = np.linalg.eigh(self.value)
        value, basis = value[::-1], basis[:, ::-1]
        sd, angle = np.empty(k), np.empty(k)
        for i in range(k):
            along = basis.T @ self.spread(basis[:, i]) @ basis
            sd[i] = math.sqrt(max(along[i, i], 0.0))
            gap = value[i] - np.delete(value, i)
            with np.errstate(divide="ignore"):
                turn = float(np.sum(np.delete(np.diag(along), i) / gap**2))
            angle[i] = min(math.sqrt(turn), math.pi / 2)
        return PrincipalAxes(value[:k].copy(), sd, basis[:, :k].T.copy(), angle, self.names)


def chosen_ridge(
    value: Array,
    target: int,
    columns: tuple[int, ...],
    sd: float,
    ridge: float | str = "auto",
    stretch: float | str = "auto",
    weak: tuple[float, float] = (2.0, 1.5),
) -> tuple[float, float]:
    """The ridge, in units of the moments, and the stretch; numbers of ridge are of sd sqrt(p).

    ``"auto"``: both by Stein's estimate where the largest eigenvalue of the columns' moments is at
    least 10 sd sqrt(p), else ``weak``; the stretch of a ridge that is given is 1. Post-processing.
    """
    p = len(columns)
    unit = sd * math.sqrt(p)
    if ridge == "auto":
        top = float(np.linalg.eigvalsh(value[np.ix_(columns, columns)])[-1])
        clear = top >= CLEAR_SIGNAL * unit
        ridge, own = ("stein", "stein") if clear else weak
        stretch = own if stretch == "auto" else stretch
    elif stretch == "auto":
        stretch = 1.0
    found = (
        stein_ridge(value, target, columns, sd) if isinstance(ridge, str) else float(ridge) * unit
    )
    if isinstance(stretch, str):
        return found, stein_stretch(value, target, columns, sd, found, LEAST_RIDGE * unit)
    return found, float(stretch)


def stein_ridge(value: Array, target: int, columns: tuple[int, ...], sd: float) -> float:
    """The ridge with the least estimated squared error of prediction, on the clipped rows.

    For symmetric Gaussian noise E of deviation sd on the diagonal and sd/sqrt(2) off it, and
    v = e_target - coef, the loss v'Gv has by Stein's lemma the unbiased estimate
    v'(G + E)v + sd^2 (tr P |v|^2 + v'Pv), P = (G_xx + E_xx + ridge)^-1: what the noise alone makes
    of the fit is taken off. Post-processing. Ridges are tried where P is bounded by 1/sd.
    """
    inner = value[np.ix_(columns, columns)]
    eigen, basis = np.linalg.eigh(inner)
    cross = basis.T @ value[list(columns), target]
    p = len(columns)
    low = max(0.0, sd * LEAST_RIDGE * math.sqrt(p) - float(eigen[0]))
    span = sd * math.sqrt(p) + max(float(eigen[-1]), 0.0)
    ridges = low + np.concatenate([[0.0], np.geomspace(1e-4 * span, 1e3 * span, 200)])
    inverse = 1 / (eigen + ridges[:, None])
    coef = cross * inverse
    fit = value[target, target] - 2 * coef @ cross + coef**2 @ eigen
    slack = inverse.sum(axis=1) * (1 + (coef**2).sum(axis=1)) + (inverse * coef**2).sum(axis=1)
    return float(ridges[np.argmin(fit + sd**2 * slack)])


def stein_stretch(
    value: Array, target: int, columns: tuple[int, ...], sd: float, ridge: float, least: float
) -> float:
    """The factor of a ridge's coefficients b with the least estimated squared error, in 0..3.

    A ridge that suppresses the noise shrinks the signal as well. At c b the error of the clipped
    rows has, by Stein's lemma and with the noise and P of :func:`stein_ridge`, the unbiased
    estimate Ĝ_yy - 2c (b'ĝ - sd^2 tr P/2) + c^2 (b'Ĝb + sd^2 (tr P |b|^2 + b'Pb)), for a constant
    c and no eigenvalue raised to ``least``; the smallest such is taken. Post-processing.
    """
    first, second = stretch_terms(value, target, columns, sd, ridge, least)
    if second <= 0:
        return _MOST_STRETCH if first > 0 else 0.0
    return min(max(first / second, 0.0), _MOST_STRETCH)


def stretch_terms(
    value: Array, target: int, columns: tuple[int, ...], sd: float, ridge: float, least: float
) -> tuple[float, float]:
    """Estimates, without bias but for ``least``, of b'g and b'Gb of the moments without noise, at
    the ridge's coefficients b of the noisy ones (:func:`stein_stretch`)."""
    eigen, basis = np.linalg.eigh(value[np.ix_(columns, columns)])
    inverse = 1 / np.maximum(np.maximum(eigen + ridge, least), np.finfo(float).tiny)
    cross = basis.T @ value[list(columns), target]
    coef = inverse * cross
    first = float(coef @ cross - sd**2 * inverse.sum() / 2)
    return first, float(coef**2 @ (eigen + sd**2 * (inverse.sum() + inverse)))


def ridge_reach(
    value: Array, columns: tuple[int, ...], coef: Array, sd: float, ridge: float, least: float,
    quantile: float,
) -> Array:  # fmt: skip
    """How far a ridge's coefficients b, (p,), may be from those of the moments without noise.

    Their difference is exactly P (dg - dG b), P = (G + ridge)^-1: its deviation, with P and b of
    the noisy moments, times ``quantile``, and the bias of second order, sd^2/2 P (tr P + P) b, that
    E dG P dG = sd^2/2 (tr P + P) gives. Noise as in :func:`stein_ridge`.
    """
    eigen, basis = np.linalg.eigh(value[np.ix_(columns, columns)])
    inverse = 1 / np.maximum(np.maximum(eigen + ridge, least), np.finfo(float).tiny)
    along = basis.T @ coef
    first = basis**2 @ inverse**2 * (1 + float(coef @ coef)) + (basis @ (inverse * along)) ** 2
    bias = basis @ (inverse * (inverse.sum() + inverse) * along)
    return np.asarray(quantile * sd * np.sqrt(first / 2) + sd**2 / 2 * np.abs(bias))


def _coordinate_descent(inner: Array, cross: Array, penalty: float) -> Array:
    coef = np.zeros(len(cross))
    diagonal, size = np.diag(inner), math.sqrt(float(np.max(np.diag(inner), initial=0.0))) or 1.0
    for _ in range(_LASSO_PASSES):
        moved = 0.0
        for j in np.flatnonzero(diagonal > 0):
            rest = cross[j] - inner[j] @ coef + diagonal[j] * coef[j]
            new = math.copysign(max(abs(rest) - penalty, 0.0), rest) / diagonal[j]
            moved = max(moved, abs(new - coef[j]) * math.sqrt(diagonal[j]))
            coef[j] = new
        if moved <= _LASSO_TOLERANCE * max(size * float(np.max(np.abs(coef), initial=0.0)), 1e-300):
            break
    return coef
