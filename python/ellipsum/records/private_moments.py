"""Regressions and principal axes from private second moments: the default, being the best measured.

One Gaussian mechanism on the packed products of clipped rows, with the sensitivity that symmetric
matrices have (claim estimates-1), and for a regression one on two sums of a second pass (claim
estimates-4); everything after them is post-processing. docs/projection.md has the table against
AdaSSP, Analyze Gauss as printed, Wishart noise and the projection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from .. import _validate
from .._estimator import Estimator
from ..adaptive.part_pass import passes_over
from ..adaptive.passes import one_shot
from ..budget.budget import Budget, Share
from ..budget.purse import check_budget, draw_from
from ..column_names import Columns, named_vectors
from ..column_units import said_units
from ..exact_sum import ExactSum
from ..guarantee import GaussianGuarantee, rounded_up, seed_caveats
from ..noise import rounded_gaussian
from ..noise_keys import JobKeys, Use, root_key
from ..second_moments import moment_sensitivity, scaled_moments, unpacked
from .moment_fits import (
    LEAST_RIDGE,
    NoisyMoments,
    PrincipalAxes,
    chosen_ridge,
    coef_units,
    ridge_reach,
)
from .named_rows import as_numbers, beside, in_order, width_of
from .second_pass import SECOND_SHARE, START, Released, measured_factor

__all__ = ["PrivatePCA", "PrivateRegression"]

Array = NDArray[np.float64]

#: Scales, and the ball's radius in their unit: far from overflow, as squares too.
_SMALLEST, _LARGEST = 2.0**-200, 2.0**200
#: Of the noise's norm sd sqrt(2 p): an interval is finite where every eigenvalue is so far from 0.
_TOLD_FROM_ZERO = 4.0


class _OnMoments(Estimator):
    """What both have: parameters, one release of noisy second moments, the guarantee."""

    def __init__(
        self,
        radius: float,
        *,
        center: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        neighbors: str = "replace",
        units: Mapping[str, str] | Sequence[str | None] | None = None,
        seed: int | bytes | None = None,
    ) -> None:
        self.radius, self.center, self.scale = radius, center, scale
        self.epsilon, self.delta, self.rho, self.mu = epsilon, delta, rho, mu
        self.neighbors, self.units, self.seed = neighbors, units, seed

    @property
    def guarantee(self) -> GaussianGuarantee:
        """What a fit promises."""
        budget = (self.epsilon, self.delta, self.rho, self.mu)
        return GaussianGuarantee.of_budget(*budget, self.neighbors)

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: False with a seed."""
        return not self.caveats

    @property
    def caveats(self) -> tuple[str, ...]:
        """Why a fit is not private, if so."""
        return tuple(dict.fromkeys(seed_caveats(self.seed) + getattr(self, "_made_with", ())))

    def _release(
        self,
        data: Any,
        d: int,
        budget: Budget | Share | None,
        kind: str,
        *,
        before: Columns | None = None,
        second: float = 0.0,
    ) -> Released:
        """The noisy moments: all that is private happens here, but for a second pass, which has
        the share ``second`` of mu^2. ``before``: the data's columns before they became an array."""
        promise = self.guarantee
        check_budget(budget, promise)
        names, known = named_vectors(center=self.center, scale=self.scale)
        where, unit = known["center"], known["scale"]
        center = np.zeros(d) if where is None else _validate.vector("center", where, d=d)
        scale = np.ones(d) if unit is None else _positive_scale(unit, d)
        units = said_units(self.units, d)
        if before is not None:
            units = {**before.by_place(d - 1), **(units if names else before.placed(units))}
        columns = Columns(names, "center or scale", units)
        radius = _validate.positive("radius", self.radius)
        if not _SMALLEST <= radius <= _LARGEST:
            raise ValueError("radius must lie within 2^-200..2^200: use another scale")
        rows = passes_over(data, d, once=not second, columns=columns)
        if second:
            rows.expect(2)
        total = scaled_moments(rows, center, scale, radius)
        if promise.neighbors.count_is_public and total.count == 0:
            raise ValueError("data has no rows: give at least one")
        columns.check_units()
        entry = draw_from(budget, promise, kind)
        region = total.ellipsoid
        sensitivity = moment_sensitivity(region, promise.neighbors)
        sigma = rounded_up(promise.noise_multiplier / math.sqrt(1 - second) * sensitivity)
        state, relation = total.snapshot(), promise.neighbors.value
        job = (kind, relation, *promise.asked, center, scale, radius, *([second] if second else ()))
        keys = JobKeys(root_key(self.seed), *job, state.rows, state.low, state.high)
        drawn = rounded_gaussian(region.d, sigma, key=keys.of(Use.MOMENTS))
        noisy = (total.integers() + drawn.astype(object)).astype(np.float64) * region.grid
        n = total.count if promise.neighbors.count_is_public else None
        value, sd = unpacked(noisy, d), sigma * region.grid
        return Released(value, sd, n, center, scale, columns, promise, entry, rows, keys)

    def _keep(self, found: Released) -> None:
        """Sets ``moments_``, ``sd_``, ``n_``, ``guarantee_``."""
        self.moments_, self.sd_, self.n_ = found.value, found.sd, found.n
        self._center, self._scale, self.entry_ = found.center, found.scale, found.entry
        self._columns = found.columns
        _, self.units_ = found.columns.told(len(found.value))
        self._made_with = seed_caveats(self.seed)
        self.guarantee_ = found.promise

    def _width(self, data: Any) -> int:
        return width_of(data, center=self.center, scale=self.scale)

    @property
    def _noisy(self) -> NoisyMoments:
        half = self.sd_**2 / 2

        def spread(v: Array) -> Array:
            """Of symmetric noise, sd on the diagonal and sd/sqrt(2) off it."""
            return np.asarray(half * (float(v @ v) * np.eye(v.size) + np.outer(v, v)))

        return NoisyMoments(self.moments_, spread, self._columns.names)


class PrivateRegression(_OnMoments):
    """Linear least squares on clipped rows, from one private second-moment matrix.

    Rows z = (x, y) are centered, multiplied by ``scale`` and clipped together to a ball of
    ``radius``; noise goes on the products; ridge and stretch follow from the release and from two
    sums of a second pass over the rows, so that nothing is left to tune but radius and scale.

    **Guarantees.** mu-GDP, (epsilon, delta)-DP for the released bits: a Gaussian mechanism on the
    exact sum of the rounded products (claims estimates-1, noise-1), and one on the second pass's
    sums, which has a tenth of mu^2 (claim estimates-4). Everything in the fitted object is a
    function of ``moments_``, that pass's noisy sums and public parameters. A cell that is not
    finite counts as its center; no error or warning tells of a value.

    Parameters
    ----------
    radius : float, in units of ``scale``
        About half of sqrt(d + 1) where ``scale`` makes deviations 1. Public.
    center : array (d + 1,), or a mapping by columns' names, data units, optional
        Of the columns and, last, the target; 0 by default. Public. Rows with names are met by
        those of ``center`` or ``scale``, where these have some (claim rows-5).
    scale : array (d + 1,), 1/data unit, optional; 1 by default. Public.
        A target's scale of twice 1/deviation spends more of the budget on the target.
    ridge : float, in units of ``sd_`` sqrt(d), about the norm of the noise; ``"stein"``; ``"auto"``
        ``"stein"`` takes the ridge with the least of Stein's unbiased estimate of the risk.
        ``"auto"``: ``"stein"`` where the largest eigenvalue of the columns' moments is 10 such
        units or more, else 2.5, or 2 in one pass: the best rules on five data sets, also without
        any one of them (docs/projection.md).
    stretch : float, ``"stein"``, ``"measured"`` or ``"auto"``; what the ridge's coefficients are
        multiplied by. A ridge shrinks the signal with the noise, and the clip changes the slope.
        ``"stein"`` estimates the best factor, at most 3, from the moments, of clipped rows.
        ``"measured"`` reads the rows again, which hardly anything clips there, and needs rows that
        can be (in units of ``scale``, the target should have a deviation of about 1).
        ``"auto"``: with ``ridge="auto"`` ``"measured"``; where rows can be read only once (an
        iterator) one pass has the whole budget, and the stretch is ``"stein"``'s, or 1.5 beside
        the ridge of 2. With another ridge 1.
    epsilon, delta, rho, mu : the budget: epsilon and delta together, or rho, or mu
    neighbors : ``"replace"`` or ``"add-remove"`` (the number of rows is not needed)
    units : of the columns and, last, the target, public, as :class:`PrivateMean`; labels alone
    seed : int or 32 bytes, optional; for tests: what is made with a seed is **not private**

    Attributes: ``coef_`` (d,), ``intercept_``, ``sd_`` (noise of ``moments_``'s diagonal; off it
    sd_/sqrt(2)), ``moments_`` (d + 1, d + 1), ``ridge_``, ``stretch_``, ``columns_`` (names of the
    coefficients, or None), ``units_`` (of all columns, the target last, or None), ``coef_units_``
    (the target's per that of the column, or None), ``guarantee_``, ``entry_``.

    Source: Dwork, Talwar, Thakurta & Zhang 2014 for the moments; Stein 1981 for the ridge.
    """

    def __init__(
        self,
        radius: float,
        *,
        center: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        ridge: str | float = "auto",
        stretch: str | float = "auto",
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        neighbors: str = "replace",
        units: Mapping[str, str] | Sequence[str | None] | None = None,
        seed: int | bytes | None = None,
    ) -> None:
        super().__init__(
            radius, center=center, scale=scale, epsilon=epsilon, delta=delta, rho=rho, mu=mu,
            neighbors=neighbors, units=units, seed=seed,
        )  # fmt: skip
        self.ridge, self.stretch = ridge, stretch

    def fit(
        self, rows: Any, y: ArrayLike | None = None, *, budget: Budget | Share | None = None
    ) -> PrivateRegression:
        """Release the moments and regress; return itself.

        Parameters
        ----------
        rows : array (n, d) beside ``y``; without it rows (n, d + 1), the target last, of any kind
            that a sum takes (then ``center`` or ``scale`` must say how many)
        y : array (n,), optional
        budget : Budget or Share, optional; what it is drawn from
        """
        for name, given in (("ridge", self.ridge), ("stretch", self.stretch)):
            if not isinstance(given, str):
                _validate.nonnegative(name, given)
            elif given not in ("auto", "stein", "measured")[: 2 + (name == "stretch")]:
                raise ValueError(f"{name} must be 'auto', 'stein' or a number, got {given!r}")
        data, own = (rows, None) if y is None else self._beside(rows, y)
        d, measured = self._width(data), self.stretch == "measured"
        if d < 2:
            raise ValueError("rows must have a column beside the target")
        if self.ridge == self.stretch == "auto":
            measured = not isinstance(data, ExactSum) and not one_shot(data)
        second = SECOND_SHARE if measured else 0.0
        found = self._release(data, d, budget, "regression", before=own, second=second)
        p, columns = d - 1, tuple(range(d - 1))
        how = {"stretch": "auto", "weak": START} if measured else {"stretch": self.stretch}
        chosen = chosen_ridge(found.value, p, columns, found.sd, self.ridge, **how)
        if measured:
            chosen = chosen[0], chosen[1] * measured_factor(found, *chosen)
        self._keep(found)
        self.ridge_, self.stretch_ = chosen
        unit = self._scale[:-1] / self._scale[-1] * self.stretch_
        names = self._columns.names
        before = None if own is None else own.names
        self.columns_ = before if names is None else names[:-1]
        self.coef_units_ = coef_units(self.units_, columns, p)
        self.coef_ = self._noisy.ridge(p, columns, self.ridge_, self._least).coef * unit
        self.intercept_ = float(self._center[-1] - self._center[:-1] @ self.coef_)
        return self

    def _beside(self, rows: Any, y: Any) -> tuple[Array, Columns]:
        """Columns and target as one table, and the columns' names; where center or scale has names,
        the target's last, the columns are in their order."""
        known, _ = named_vectors(center=self.center, scale=self.scale)
        columns = Columns(None if known is None else known[:-1], "center or scale")
        return beside(in_order(rows, columns), y), columns

    @property
    def _least(self) -> float:
        """What an eigenvalue of the columns' moments counts as at least, the ridge included."""
        return LEAST_RIDGE * self.sd_ * math.sqrt(len(self.moments_) - 1)

    def confidence_interval(self, level: float = 0.95, *, ridged: bool = False) -> Array:
        """Intervals (d, 2) for the coefficients of least squares, no ridge, on the clipped rows.

        ``ridged``: for what this very ridge and stretch give there, instead.

        Those of least squares come from the moments without the ridge, with their noise to first
        order; (-inf, inf) where an eigenvalue of the columns' moments cannot be told from 0 beside
        the noise, so that nothing finite would cover. *Ridged* they are about ``coef_``, the bias
        of second order included; what they cover are coefficients shrunk by ``ridge_``, which with
        a large one are far from those of least squares. They are (-inf, inf) with one column, or a
        ridge below 0.5 that was given, unless what is inverted can be told from 0.
        """
        self._check_fitted()
        p = len(self.coef_)
        columns, unit = tuple(range(p)), self._scale[:-1] / self._scale[-1]
        quantile = float(ndtri(0.5 + _validate.open_unit("level", level) / 2))
        if not self._told_from_zero(ridged):
            return np.tile([-math.inf, math.inf], (p, 1))
        if ridged:
            coef = self._noisy.ridge(p, columns, self.ridge_, self._least).coef
            kept = self.ridge_, self._least, quantile
            reach = ridge_reach(self.moments_, columns, coef, self.sd_, *kept)
            unit = unit * self.stretch_
        else:
            fit = self._noisy.ridge(p, columns, 0.0)
            coef, reach = fit.coef, quantile * fit.sd
        return np.stack([coef - reach, coef + reach], axis=1) * unit[:, None]

    def _told_from_zero(self, ridged: bool) -> bool:
        """Whether an interval can be finite: of a ridge that keeps what it inverts above the noise,
        or that Stein's estimate has chosen, it covers however small the moments are."""
        p = len(self.coef_)
        ridge = self.ridge_ if ridged else 0.0
        if ridged and p > 1 and (isinstance(self.ridge, str) or ridge >= self._least):
            return True
        least = float(np.linalg.eigvalsh(self.moments_[:-1, :-1])[0]) + ridge
        return least >= _TOLD_FROM_ZERO * self.sd_ * math.sqrt(2 * p)

    def predict(self, rows: ArrayLike) -> Array:
        """The target of each row (n, d), data units; the columns of a frame are met by name."""
        self._check_fitted()
        x = as_numbers(rows, Columns(self.columns_, "the fit"), len(self.coef_))
        return np.asarray(x @ self.coef_ + self.intercept_)


class PrivatePCA(_OnMoments):
    """Principal axes of clipped rows about a public center, from one private second-moment matrix.

    **Guarantees.** As :class:`PrivateRegression`.

    Parameters
    ----------
    k : int, how many axes
    radius, center, scale, epsilon, delta, rho, mu, neighbors, units, seed :
        As for :class:`PrivateRegression`, (d,) for (d + 1,)

    Attributes: ``components_`` (k, d), unit vectors in units of ``scale``; ``axes_`` (a
    :class:`PrincipalAxes` with angles and noise), ``columns_`` (names, or None), ``units_``
    (of the columns, or None), ``moments_``, ``sd_``, ``guarantee_``, ``entry_``.
    """

    def __init__(
        self,
        k: int,
        radius: float,
        *,
        center: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        neighbors: str = "replace",
        units: Mapping[str, str] | Sequence[str | None] | None = None,
        seed: int | bytes | None = None,
    ) -> None:
        super().__init__(
            radius, center=center, scale=scale, epsilon=epsilon, delta=delta, rho=rho, mu=mu,
            neighbors=neighbors, units=units, seed=seed,
        )  # fmt: skip
        self.k = k

    def fit(self, rows: Any, y: Any = None, *, budget: Budget | Share | None = None) -> PrivatePCA:
        """Release the moments and their axes; return itself.

        Parameters
        ----------
        rows : rows (n, d) of any kind that a sum takes
        y : ignored
        budget : Budget or Share, optional; what it is drawn from
        """
        d = self._width(rows)
        k = _validate.whole("k", self.k, least=1, most=d)
        self._keep(self._release(rows, d, budget, "principal axes"))
        self.columns_ = self._columns.names
        self.axes_: PrincipalAxes = self._noisy.axes(k)
        self.components_ = self.axes_.axes
        return self

    def transform(self, rows: ArrayLike) -> Array:
        """Coordinates of each row along the axes, (n, k). Of the rows themselves: not private."""
        self._check_fitted()
        x = as_numbers(rows, self._columns.copy(), len(self.moments_))
        x = (x - self._center) * self._scale
        return np.asarray(x @ self.components_.T)


def _positive_scale(given: Any, d: int) -> Array:
    scale = _validate.vector("scale", given, d=d, above=0)
    if not (_SMALLEST <= float(scale.min()) and float(scale.max()) <= _LARGEST):
        raise ValueError("scale must lie within 2^-200..2^200: change the unit of the data")
    return scale
