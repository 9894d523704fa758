"""The recipe of a region: what is known of the rows, made whole by their number and the noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .ellipsoid import Ellipsoid
from .shapes.best import Assumptions
from .shapes.law import GaussianModel
from .shapes.models import Blocks, covariance_model, gaussian_model, sample_model

__all__ = ["GaussianShape"]

Array = NDArray[np.float64]

UNCOUNTED = (
    "the best region of a GaussianShape follows from the number of rows, and data cannot be "
    "counted before they are read: give mechanism.region_for(n), shape.resolve(n, ...) or "
    "shape.at(0.01) in place of the shape"
)
PRIVATE_COUNT = (
    "the best region of a GaussianShape follows from the number of rows, which add-remove calls "
    "private: give shape.at(0.01), or shape.resolve(n, ...) for a public guess of it"
)


class GaussianShape:
    """Rows that are about Gaussian: hand it to a mechanism, which makes the best region of it.

    The best shape and radius depend on the number of rows and on the noise. A mechanism knows
    both where n is public (``replace`` neighbours) and the rows can be counted first; elsewhere,
    for batches, streams and private n, it refuses the shape: give it the region of :meth:`resolve`
    or :meth:`at`. Engines that sum in parts resolve first, and give every part the same region.

    **Guarantees.** Everything here must be public: it must not be computed from private rows,
    unless privately.

    Parameters
    ----------
    sigma : array (d,), standard deviations, data units; or by column, as a mapping or Series:
        private tables must then have just these columns, in whatever order
    center : array (d,), data units; default the origin
    center_error : array (d,), data units, optional
        A guess of abs(mean - center).
    error : ``"absolute"`` (errors in the data's unit), ``"relative"`` (each against its
        coordinate's standard deviation), or weights (d,), 1/data unit: sum_j (w_j e_j)^2

    Source: Poulsen 2023, Algorithm 3.
    """

    def __init__(
        self,
        sigma: ArrayLike,
        center: ArrayLike | None = None,
        *,
        center_error: ArrayLike | None = None,
        error: str | ArrayLike = "absolute",
    ) -> None:
        self._center, self._model = gaussian_model(sigma, center, center_error, error)

    @classmethod
    def for_covariance(
        cls,
        covariance: ArrayLike,
        center: ArrayLike | None = None,
        *,
        center_error: ArrayLike | None = None,
        error: str | ArrayLike = "absolute",
        rank: int | None = None,
    ) -> GaussianShape:
        """Return the shape of rows with this covariance, turned along its eigenvectors.

        Parameters
        ----------
        covariance : array (d, d), data units squared, symmetric and positive definite
        center, center_error : arrays (d,), data units
        error : as in :class:`GaussianShape`
        rank : int, 1 to d, optional
            A matrix of this rank beside a diagonal: O(d r) for each row instead of O(d^2).
        """
        return cls._of(*covariance_model(covariance, center, center_error, error, rank))

    @classmethod
    def for_sample(
        cls,
        rows: ArrayLike | Blocks,
        *,
        diagonal: bool = False,
        error: str | ArrayLike = "absolute",
        d: int | None = None,
        names: Sequence[str] | None = None,
    ) -> GaussianShape:
        """Return the shape of rows like these **public** ones, correlations shrunk.

        Parameters
        ----------
        rows : array (m, d), m >= 2, public, data units; or a function that returns them anew in
            blocks of finite rows (with ``d``)
        diagonal : bool
            Leave the correlations out: O(d) for each row instead of O(d^2).
        error : as in :class:`GaussianShape`
        d : int, where ``rows`` is a function
        names : sequence of str, optional; of the columns; those of a pandas frame if left out
        """
        model = sample_model(rows, diagonal=diagonal, d=d, error=error, names=names)
        return cls._of(*model)

    @classmethod
    def _of(cls, center: Array, model: GaussianModel) -> GaussianShape:
        shape = cls.__new__(cls)
        shape._center, shape._model = center, model
        return shape

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self._center.size

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the coordinates, where the parameters or the sample had some."""
        return self._model.columns

    @property
    def center(self) -> Array:
        """The center of the region to come, data units."""
        return self._center

    def resolve(
        self,
        n: int,
        noise_multiplier: float | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbors: str = "replace",
    ) -> Ellipsoid:
        """Return the region with the least predicted error for this many rows and this noise.

        Parameters
        ----------
        n : int, rows (public)
        noise_multiplier : float; or epsilon, delta
        neighbors : ``"replace"`` or ``"add-remove"``
        """
        known = (n, noise_multiplier, epsilon, delta, neighbors)
        assumed = Assumptions.given(self._model, *known)
        return Ellipsoid.for_model(self._center, self._model, "best", assumed)

    def at(self, clip_probability: float = 0.01) -> Ellipsoid:
        """Return the region that clips this share of such rows, whatever their number.

        Parameters
        ----------
        clip_probability : float in (0, 1)
        """
        return Ellipsoid.for_model(self._center, self._model, clip_probability)

    def __repr__(self) -> str:
        kind = "diagonal" if self._model.basis is None else "covariance"
        rank = "" if self._model.rank is None else f", rank={self._model.rank}"
        return f"GaussianShape(d={self.d}, {kind}{rank})"
