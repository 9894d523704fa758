"""The clip region: an ellipsoid, by named factories, and the sensitivity that follows from it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate
from . import grid as _grid
from .column_names import named_vectors
from .guarantee import Neighbors
from .low_rank import LowRankScale, grid_scale, kernel_scale, unscaled
from .shapes.best import Assumptions, ErrorPrediction, predict, region_of
from .shapes.law import GaussianModel
from .shapes.models import box_scale, center_of, covariance_model, gaussian_model, sample_model
from .sum_bytes import KINDS, fingerprint_of

__all__ = ["Ellipsoid"]

Array = NDArray[np.float64]


class Ellipsoid:
    """The clip region {x : ||scale * (x - center)|| <= clip_norm}, with the grid of its sums.

    Use a factory: :meth:`ball`, :meth:`box`, :meth:`for_gaussian`, :meth:`for_covariance`.
    The constructor takes any center, scale (a vector, or a matrix in its place) and radius.

    **Guarantees.** :meth:`sensitivity` bounds the l2 change of the *integer* sum that
    :class:`ExactSum` makes, times ``grid``: every rounding is in it
    (claims sum-1, sum-3). All attributes are public parameters: they must not be
    computed from private rows, unless privately.

    Parameters
    ----------
    center : array (d,), data units
    scale : array (d,) or (d, d), 1/data unit, kept to 24 significant bits; or a LowRankScale
    clip_norm : float, C, no unit (after ``scale``)

    Raises
    ------
    ValueError
        For a scale that is not positive (or a singular matrix), a NaN, a radius that is not
        above zero, or shapes that do not agree.
    """

    def __init__(self, center: ArrayLike, scale: Any, clip_norm: float) -> None:
        low_rank = scale if isinstance(scale, LowRankScale) else None
        vectors = {"center": center} | ({} if low_rank else {"scale": scale})
        self._columns, known = named_vectors(**vectors)
        self._center = _validate.vector("center", known["center"])
        self._clip_norm = _validate.positive("clip_norm", clip_norm)
        self._limit: Array = np.empty(0)  # of a box
        self._fingerprint = b""  # until it is asked for: a matrix takes milliseconds
        self._model: GaussianModel | None = None  # what a factory assumed of the rows
        self._assumed: Assumptions | None = None
        _validate.whole("d", self.d, most=_grid.MOST_COORDINATES)
        self._grid = _grid.grid_of(self._clip_norm, self.d)
        self._center.setflags(write=False)
        self._kind, self._scale = grid_scale(low_rank or known["scale"], self._grid, self.d)

    # ---- factories -----------------------------------------------------------------

    @classmethod
    def ball(
        cls, radius: float, center: ArrayLike | None = None, *, d: int | None = None
    ) -> Ellipsoid:
        """Return the ball of ``radius`` around ``center`` (default: the origin of ``d`` axes).

        Parameters
        ----------
        radius : float, data units
        center : array (d,), data units
        d : int, needed where ``center`` is not given

        Source: the Gaussian mechanism (Poulsen 2023, Algorithm 1, after clipping).
        """
        names, known = named_vectors(center=center)
        where = center_of(known["center"], d)
        region = cls(where, np.ones(where.size), _validate.positive("radius", radius))
        region._kind, region._columns = "ball", names
        return region

    @classmethod
    def box(cls, lower: ArrayLike, upper: ArrayLike, error: str | ArrayLike = "box") -> Ellipsoid:
        """Return the box [lower, upper], clipped coordinate by coordinate.

        With widths Delta_j in the unit of ``error``, b_j = sqrt(Delta_j / sum Delta), scale
        b_j / Delta_j and C = 1/2, the noise energy is sigma_opt^2 ||Delta||_1^2.

        Parameters
        ----------
        lower, upper : array (d,), data units, lower < upper in every coordinate
        error : ``"box"`` (its widths), ``"absolute"`` or weights (d,), 1/data unit

        Source: Poulsen 2023, Algorithm 2, Theorem 3; Pagh & Lebeda. (Section 3.1 prints the radii
        as b_j / Delta_j; they are Delta_j / b_j.)
        """
        low, high, center, scale, names = box_scale(lower, upper, error)
        region = cls(center, scale, 0.5)
        region._columns = names
        step = region._scale / region._grid
        # The kernel's own arithmetic on the corners: no row inside the box is clipped.
        region._limit = _grid.box_limit(np.maximum((high - center) * step, (center - low) * step))
        region._kind = "box"
        return region

    @classmethod
    def for_gaussian(
        cls,
        sigma: ArrayLike,
        center: ArrayLike | None = None,
        clip_probability: float | str | None = None,
        *,
        center_error: ArrayLike | None = None,
        error: str | ArrayLike = "absolute",
        n: int | None = None,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbors: str = "replace",
    ) -> Ellipsoid:
        """Return the ellipsoid for rows that are about Gaussian with independent coordinates.

        ``"best"`` minimises the predicted error of the release over shape and radius
        (docs/best_region.md: what is counted, what guards against shrinking to the center).
        It needs the number of rows and the noise: a :class:`GaussianShape` has them supplied.

        A number p takes b_j = 1/sqrt(sigma_j sum sigma) and for C^2 the (1 - p)-quantile of
        ||y||^2 = sum (b_j sigma_j)^2 chi^2_1.

        Parameters
        ----------
        sigma : array (d,), standard deviations, data units
        center : array (d,), data units; default the origin
        clip_probability : ``"best"``, or the share of rows in (0, 1) that the clip may change
            Default: the best where n and the noise are given, else 0.01.
        center_error : array (d,), data units, optional
            A guess of abs(mean - center): the laws are then noncentral.
        error : ``"absolute"``, ``"relative"`` (against sigma), or weights (d,), 1/data unit
        n : int, rows (public)
        noise_multiplier : float; or epsilon, delta
        neighbors : ``"replace"`` or ``"add-remove"``

        Raises
        ------
        ValueError
            For ``"best"`` without n and the noise, or a number out of range.

        Source: Poulsen 2023, Lemma 4.1 and Algorithm 3. Its equation (10) drops
        ||mean - center||^2 as a constant; it is ||(mean - center) * b||^2.
        """
        where, model = gaussian_model(sigma, center, center_error, error)
        assumed = Assumptions.given(model, n, noise_multiplier, epsilon, delta, neighbors)
        return cls.for_model(where, model, clip_probability, assumed)

    @classmethod
    def for_covariance(
        cls,
        covariance: ArrayLike,
        center: ArrayLike | None = None,
        clip_probability: float | str | None = None,
        *,
        center_error: ArrayLike | None = None,
        error: str | ArrayLike = "absolute",
        n: int | None = None,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbors: str = "replace",
        rank: int | None = None,
    ) -> Ellipsoid:
        """Return the ellipsoid for rows that are about Gaussian with this covariance.

        :meth:`for_gaussian` in the eigenbasis; for a number p, B is
        Sigma^(-1/4) / sqrt(tr Sigma^(1/2)).

        Parameters
        ----------
        covariance : array (d, d), data units squared, symmetric and positive definite
        center, ..., neighbors : as in :meth:`for_gaussian`
        rank : int, 1 to d, optional: the nearest :class:`LowRankScale`, O(d r) for each row
        """
        where, model = covariance_model(covariance, center, center_error, error, rank)
        assumed = Assumptions.given(model, n, noise_multiplier, epsilon, delta, neighbors)
        return cls.for_model(where, model, clip_probability, assumed)

    @classmethod
    def for_sample(
        cls,
        rows: ArrayLike,
        clip_probability: float | str | None = None,
        *,
        diagonal: bool = False,
        error: str | ArrayLike = "absolute",
        n: int | None = None,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbors: str = "replace",
    ) -> Ellipsoid:
        """Return the ellipsoid for rows like these **public** ones.

        Their mean, their covariance with the correlations shrunk (Ledoit & Wolf 2004, 2020; with
        ``diagonal`` the variances alone), and the standard error of their mean.

        Parameters
        ----------
        rows : array (m, d), m >= 2, public, data units
        diagonal : bool
            Leave the correlations out: O(d) for each row instead of O(d^2).
        clip_probability, error, n, ..., neighbors : as in :meth:`for_gaussian`
        """
        where, model = sample_model(rows, diagonal=diagonal, error=error)
        assumed = Assumptions.given(model, n, noise_multiplier, epsilon, delta, neighbors)
        return cls.for_model(where, model, clip_probability, assumed)

    @classmethod
    def for_model(
        cls,
        center: Array,
        model: GaussianModel,
        clip_probability: float | str | None = None,
        assumed: Assumptions | None = None,
    ) -> Ellipsoid:
        """Return the region for a model of the rows: what the other factories come down to.

        Parameters
        ----------
        center : array (d,), data units
        model : GaussianModel
        clip_probability : as in :meth:`for_gaussian`
        assumed : Assumptions, optional: the rows and the noise, which the best region needs
        """
        model, assumed, scale, radius = region_of(model, clip_probability, assumed)
        region = cls(center, scale, radius)
        region._model, region._assumed, region._columns = model, assumed, model.columns
        return region

    def predicted_error(
        self,
        kind: str = "mean",
        *,
        n: int | None = None,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbors: str = "replace",
    ) -> ErrorPrediction:
        """Return the predicted mean squared error of a release, by term and coordinate.

        Against the sum (or mean) of the rows themselves, for the Gaussian rows that the
        region was made for, without what a noisy count costs (``noise_sd`` of a mechanism).

        Parameters
        ----------
        kind : ``"mean"`` or ``"sum"``
        n, noise_multiplier, epsilon, delta, neighbors :
            default: those that the region was made with
        """
        _validate.one_of("kind", kind, ("mean", "sum"))
        if self._model is None:
            raise ValueError(
                "predicted_error needs a region made by for_gaussian or for_covariance"
            )
        assumed = Assumptions.given(self._model, n, noise_multiplier, epsilon, delta, neighbors)
        assumed = assumed or self._assumed
        if assumed is None:
            raise ValueError("give n (rows), and noise_multiplier or epsilon and delta")
        return predict(self._model.along_axes(self._scale), self._clip_norm, assumed, kind)

    # ---- what can be read ----------------------------------------------------------

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self._center.size)

    @property
    def kind(self) -> str:
        """``"ball"``, ``"box"``, ``"ellipsoid"``, ``"matrix"`` or ``"low-rank"``."""
        return self._kind

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the coordinates, where what the region was made from had some (rows-5)."""
        return self._columns

    @property
    def center(self) -> Array:
        """c, shape (d,), data units."""
        return self._center

    @property
    def scale(self) -> Any:
        """b, shape (d,), or B, shape (d, d), 1/data unit; or a :class:`LowRankScale`."""
        return self._scale

    @property
    def clip_norm(self) -> float:
        """C, the radius after scaling (for a box: of the ball around it)."""
        return self._clip_norm

    @property
    def grid(self) -> float:
        """g, the quantum of the exact sum, scaled units: a power of two."""
        return self._grid

    def row_bound(self) -> float:
        """Largest l2 norm of one row's integers, in grid units (upper bound).

        Ball and ellipsoid: the computed norm errs by at most (ceil(d/8)/2 + 8) roundings,
        quantising adds sqrt(d)/2. Box: sqrt(sum rint(limit_j)^2), nothing to add.
        """
        if self._limit.size:
            return _grid.box_bound(self._limit)
        return _grid.ball_bound(self._clip_norm / self._grid, self.d)

    def sensitivity(self, neighbors: str) -> float:
        """Return an upper bound of the l2 change of the scaled sum between neighbours.

        Parameters
        ----------
        neighbors : ``"replace"`` (one row takes another value: 2C and slack) or
            ``"add-remove"`` (one row more or less: C and slack)

        Returns
        -------
        float, scaled units; above 2C (or C) by less than 1e-4 of it
        """
        return Neighbors.of(neighbors).factor() * self.row_bound() * self._grid

    # ---- for the stages ------------------------------------------------------------

    def kernel_arguments(self) -> tuple[Array, Array, Array, Array, float]:
        """(center, scale, matrix, limit, radius) in grid units, as the clip kernels take them."""
        scale, matrix = kernel_scale(self._scale, self._grid)
        return self._center, scale, matrix, self._limit, self._clip_norm / self._grid

    def unscale(self, y: Array) -> Array:
        """Map scaled coordinates (last axis d) back to data units, center not added."""
        return unscaled(self._scale, y)

    def fingerprint(self) -> bytes:
        """16 bytes that no two regions share but those of the same numbers, which sum alike."""
        self._fingerprint = self._fingerprint or fingerprint_of(self.to_state(), self._grid)
        return self._fingerprint

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ellipsoid):
            return NotImplemented
        return self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def __repr__(self) -> str:
        return (
            f"Ellipsoid(kind={self._kind!r}, d={self.d}, clip_norm={self._clip_norm:.6g}, "
            f"grid=2**{math.frexp(self._grid)[1] - 1})"
        )

    def to_state(self) -> dict[str, Any]:
        """The arrays and numbers that define the region, for serialisation."""
        scale = self._scale.stacked() if self._kind == "low-rank" else self._scale
        arrays = {"center": self._center, "scale": scale, "limit": self._limit}
        return {"kind": self._kind, **arrays, "clip_norm": self._clip_norm}

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_fingerprint": b""}  # which is made again

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for array in (self._center, self._limit, self._scale):
            array.setflags(write=False) if isinstance(array, np.ndarray) else None

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ellipsoid:
        """Rebuild a region from :meth:`to_state`; every field is checked again."""
        kind, scale = _validate.one_of("kind", state["kind"], KINDS), state["scale"]
        if kind == "low-rank":
            scale = LowRankScale.from_stacked(np.asarray(scale))
        region = cls(state["center"], scale, state["clip_norm"])
        if region._kind != (kind if kind in ("matrix", "low-rank") else "ellipsoid"):
            raise ValueError("kind does not fit the shape of scale")
        if kind == "box":
            limit = _validate.vector("limit", state["limit"], d=region.d, above=0)
            region._limit = _grid.box_limit(limit)
        region._kind = kind
        return region
