"""What users take today to hide a label: closed forms that stop linear attackers, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from .frames import Framed, names_of
from .guarantee import LinearErasure

__all__ = ["LinearEraser", "OracleShift"]

Array = NDArray[np.float64]

_LEAST = 1e-300  # below, what divides by it would be infinite: flat
_FLAT = 1e-14  # of the largest number of a column: the rounding of its mean
_RANK = 1e-9  # correlation with the label, or shift of its means, below which it is rounding
_TOGETHER = 1e-10  # share of the largest deviation below which rows do not differ
_GRID, _MARGIN = 1e-9, 8.0  # standard deviations at least, and times what fitted rows have there


class LinearEraser(Framed):
    """LEACE: the least change of the rows that leaves linear attackers no better than a constant.

    **Guarantees.** On the rows fitted, release and label have covariance zero; equivalently, no
    linear predictor has a smaller convex loss than a constant (Belrose et al. 2023, Theorems 3.1
    and 4.3; the change is least in every quadratic norm). Accuracy is no convex loss, and can
    be better. A nonlinear attacker may read the label as well as before: on handwritten digits
    it does. Not differential privacy (claim tradeoff-3).

    Attributes
    ----------
    matrix_ : array (d, d)
        The release is x - ``matrix_`` (x - ``mean_``); of a column that is constant but for its
        rounding, the mean. In directions where the rows fitted do not differ, a new row is kept to
        a grid of 1e-9 standard deviations or more: finer would be the rounding of what is erased.
    mean_ : array (d,)
    guarantee_ : LinearErasure
    """

    uses_label = False

    def fit(self, X: ArrayLike, labels: ArrayLike) -> LinearEraser:
        """Learn what to erase.

        Parameters
        ----------
        X : array (n, d)
        labels : array (n,)
            Any hashable labels: one column each, so that every linear score is covered.
        """
        rows, hot = _rows(X), _one_hot(labels)
        if len(rows) != len(hot) or not len(rows):
            raise ValueError(f"X and labels must have the same rows: {len(rows)} and {len(hot)}")
        self.mean_, hot = rows.mean(0), hot - hot.mean(0)
        # Or a column of small numbers would count as rounding. A flat one is released as its mean.
        centered, unit, live = _standard(rows)
        # Of the rows, not of their covariance: squares would lose half of the digits.
        triangle = np.linalg.qr(centered, mode="r") / np.sqrt(len(rows))
        _, values, basis = np.linalg.svd(triangle, full_matrices=True)
        values = np.concatenate([values, np.zeros(len(basis) - len(values))])
        kept = values > _TOGETHER * values[0]
        root, null, basis = values[kept], basis[~kept].T, basis[kept].T
        # Directions in which these rows lie together: what is there is rounding, of the label too.
        # Their grid is so wide that all rows fitted are in its middle.
        self._grid = np.maximum(_GRID, _MARGIN * np.abs(centered @ null).max(0))
        cross = (basis / root).T @ (centered.T @ hot) / len(rows)
        directions, size, _ = np.linalg.svd(cross)
        count = int(np.count_nonzero(size > _RANK))
        found, rest = directions[:, :count], directions[:, count:]
        erased = (basis * root) @ found @ found.T @ (basis / root).T
        erased[~live, ~live] = 1.0
        self.matrix_ = unit[:, None] * erased / unit
        # Fewer numbers than columns, from which the release is computed: the difference of the rows
        # and of what is erased would have the last bits of the label where nothing else is left.
        inner = np.hstack([(basis / root) @ rest, null]) * live[:, None]
        kept_part = (basis * root) @ rest
        kept_part[(kept_part**2).sum(1) < _TOGETHER**2] = 0.0  # a column that is all erased
        outer = np.hstack([kept_part, null]) * live[:, None]
        self._inner, self._outer = inner.T / unit, unit[:, None] * outer
        self._rounded = rest.shape[1]  # from this number on they are rounded to the grid
        self._learn_columns(names_of(X), rows.shape[1])
        self.guarantee_ = LinearErasure(count)
        return self

    def transform(self, X: ArrayLike) -> Any:
        """The rows without what a linear attacker could use; a frame's columns meet by name."""
        self._check_fitted()
        rows = _rows(self._in_order("X", X), len(self.mean_))
        inner = np.ascontiguousarray(rows - self.mean_) @ self._inner.T  # the same from any layout
        together = inner[:, self._rounded :]
        together[:] = np.rint(together / self._grid) * self._grid
        return self._framed(self.mean_ + inner @ self._outer.T, X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """erased0, erased1, ..."""
        self._check_fitted()
        return np.array([f"erased{i}" for i in range(len(self.mean_))], dtype=object)

    def fit_transform(self, X: ArrayLike, labels: ArrayLike) -> Any:
        """`fit`, then `transform` of the same rows."""
        return self.fit(X, labels).transform(X)


class OracleShift(Framed):
    """Move every class to the common mean: it needs the true label at the time of release.

    **Guarantees.** On the rows fitted, at ``strength=1`` all classes have the same mean, so
    that no linear predictor has a smaller convex loss than a constant. It may make the label
    *easier* to read for other attackers (it edits each class on its own). Not differential
    privacy (claim tradeoff-3).

    Parameters
    ----------
    strength : float
        Which share of the way each class is moved: 1 erases.
    """

    uses_label = True

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = strength

    def fit(self, X: ArrayLike, labels: ArrayLike) -> OracleShift:
        """Learn the class means from rows (n, d) and labels (n,)."""
        rows, (self.classes_, which) = _rows(X), _validate.classes("labels", labels)
        if len(which) != len(rows) or not len(rows):
            raise ValueError(f"labels must have shape ({len(rows)},), got {which.shape}")
        means = np.array([rows[which == i].mean(0) for i in range(len(self.classes_))])
        centered, _, _ = _standard(rows)
        apart = [centered[which == i].mean(0) for i in range(len(self.classes_))]
        strength = _validate.nonnegative("strength", self.strength)
        self.shifts_ = -strength * (means - rows.mean(0))
        self._learn_columns(names_of(X), rows.shape[1])
        erased = np.linalg.matrix_rank(apart, tol=_RANK)
        self.guarantee_ = LinearErasure(int(erased)) if strength == 1 else None
        return self

    def transform(self, X: ArrayLike, labels: ArrayLike) -> Any:
        """The rows, each moved by the shift of its own label; a frame's columns meet by name."""
        self._check_fitted()
        if labels is None:
            raise ValueError("labels must be given: each row is moved by the shift of its own")
        rows = _rows(self._in_order("X", X), self.shifts_.shape[1])
        where = _validate.places(labels, self.classes_)
        if where is None or len(where) != len(rows):
            raise ValueError("labels must be known from fit, one for each row")
        return self._framed(rows + self.shifts_[where], X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """shifted0, shifted1, ..."""
        self._check_fitted()
        return np.array([f"shifted{i}" for i in range(self.shifts_.shape[1])], dtype=object)


def _rows(X: ArrayLike, d: int | None = None) -> Array:
    rows = _validate.numbers("X", X)
    if rows.ndim != 2 or not rows.shape[1] or not np.isfinite(rows).all():
        raise ValueError("X must be a finite matrix (rows, columns), of one column or more")
    if d is not None and rows.shape[1] != d:
        raise ValueError(f"X must have {d} columns, as at fit, got {rows.shape[1]}")
    return rows


def _standard(rows: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Rows with mean 0 and variance 1, whatever their size, the standard deviations, and which
    columns have one.

    Of a constant column, which may have been rounded: 0, and 1.
    """
    centered = rows - rows.mean(0)
    size = np.abs(centered).max(0)
    live = size > np.maximum(_FLAT * np.abs(rows).max(0), _LEAST)
    size = np.where(live, size, 1.0)
    scaled = np.where(live, centered / size, 0.0)
    sd = np.where(live, scaled.std(0), 1.0)
    return scaled / sd, size * sd, live


def _one_hot(labels: ArrayLike) -> Array:
    classes, which = _validate.classes("labels", labels)
    return np.eye(len(classes))[which]
