"""What is publicly known of the records: the law that shapes and radii are chosen for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..shapes.sample import sample_moments
from .rate_distortion import spectrum

__all__ = ["RecordLaw"]

Array = NDArray[np.float64]

_DRAWS = 4096  # Gaussian draws that stand for the law where rows are few
_ROWS_FOR_EACH_COORDINATE = 4  # with fewer public rows their own radii are too uncertain
_SEED = 20180101  # public draws: any fixed seed


@dataclass(frozen=True)
class RecordLaw:
    """Centre, unit and covariance of z = (x - center)/unit, and what is to be told of it.

    ``variances`` (descending) and ``axes`` (columns) are those of z. ``target_cross`` (d, e) and
    ``target_cov`` (e, e) are covariances with a public target, or None.
    """

    center: Array
    unit: Array
    variances: Array
    axes: Array
    public: Array | None = None  #: rows z, where there are enough of them
    target_cross: Array | None = None
    target_cov: Array | None = None

    @property
    def d(self) -> int:
        return int(self.center.size)

    @property
    def covariance(self) -> Array:
        """Of z, (d, d)."""
        return np.asarray((self.axes * self.variances) @ self.axes.T)

    @classmethod
    def of_rows(cls, rows: Any, target: Any, *, standardize: bool) -> RecordLaw:
        """The law of rows like these **public** ones (n, d), n >= 2, and of their targets."""
        public = _validate.public_rows("rows", rows)
        known = sample_moments(lambda: [public], public.shape[1], correlated=True)
        covariance = np.asarray(known.correlation) * np.outer(known.sd, known.sd)
        law = cls.of_covariance(known.center, covariance, standardize=standardize)
        z = (public - law.center) / law.unit
        cross, cov = _target_moments(z, target) if target is not None else (None, None)
        enough = len(z) >= _ROWS_FOR_EACH_COORDINATE * law.d
        return cls(law.center, law.unit, law.variances, law.axes, z if enough else None, cross, cov)

    @classmethod
    def of_covariance(cls, center: Any, covariance: Any, *, standardize: bool) -> RecordLaw:
        """The law of Gaussian records with this covariance (data units squared)."""
        matrix = _validate.square("covariance", covariance)
        where = _validate.vector("center", center, d=len(matrix))
        diagonal = np.diag(matrix)
        if standardize and not (diagonal > 0).all():
            raise ValueError(
                "covariance has a variance that is not above 0: drop that column, or "
                "give standardize=False"
            )
        unit = np.sqrt(diagonal) if standardize else np.ones(len(matrix))
        variances, axes = spectrum("covariance", matrix / np.outer(unit, unit))
        return cls(where, unit, variances, axes)

    def draws(self) -> Array:
        """Rows z (N, d) for the choice of shape and radius: the public ones, or Gaussian."""
        if self.public is not None:
            return self.public
        normal = np.random.default_rng(_SEED).standard_normal((_DRAWS, self.d))
        return np.asarray((normal * np.sqrt(self.variances)) @ self.axes.T)


def _target_moments(z: Array, target: Any) -> tuple[Array, Array]:
    """Covariances of z with the target, and of the target, labels as indicators."""
    y = np.asarray(target)
    if y.ndim not in (1, 2) or len(y) != len(z):
        raise ValueError("y must have one row for each of the public rows")
    if y.ndim == 1 and (y.dtype.kind not in "f" or not np.isfinite(y).all()):
        _, code = np.unique(y, return_inverse=True)
        classes = int(code.max()) + 1
        if classes < 2:
            raise ValueError("y must have at least two values")
        # one class is told by the others: leave it out, so that the covariance is regular
        y = np.eye(classes)[code][:, 1:]
    y = np.asarray(y, dtype=np.float64).reshape(len(z), -1)
    y = y - y.mean(axis=0)
    cov = y.T @ y / len(y)
    if not (np.isfinite(y).all() and np.linalg.cond(cov) < 1e12):
        raise ValueError("y must be finite, and no column a combination of the others")
    return (z - z.mean(axis=0)).T @ y / len(z), cov
