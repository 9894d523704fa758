"""The mechanisms: a private sum and a private mean over any region, for both neighbours."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate, noise
from .adaptive.domain import Domain, make_domain
from .adaptive.passes import Passes, one_shot
from .adaptive.plan import Plan, make_plan
from .adaptive.release import AdaptiveRelease
from .adaptive.rounds import run
from .ellipsoid import Ellipsoid
from .exact_sum import ExactSum, as_integers
from .gaussian_shape import GaussianShape
from .guarantee import ROW, GaussianGuarantee, rounded_up, seed_caveats
from .noise_keys import JobKeys, Use, root_key
from .rows.batches import as_batches
from .rows.files import Rows
from .sum_bytes import SumState
from .sum_release import NoisySum, SumRelease
from .users import make_unit

__all__ = ["PrivateMean", "PrivateSum"]

#: Least share of the sum, and of its count where there is one: neither noise overflows.
_SMALLEST_SHARE = 2.0**-20


class PrivateSum:
    """Differentially private sum of the rows of a table.

    **Guarantees.** The release is (epsilon, delta)-differentially private (equally: rho-zCDP,
    mu-GDP) for the neighbouring relation named, and that holds for the bits that are handed
    on: an integer sum whose sensitivity includes every rounding, plus a correctly rounded
    Gaussian (claims mechanism-1, mechanism-3). Nothing else that depends on the rows leaves: not
    through an error (bad values count as the centre), a log or a count (claim channels-1).

    The mechanisms of the papers are shapes of this one:

    ===================================  ====================================================
    Gaussian mechanism                   ``PrivateSum(Ellipsoid.ball(...), ...)``
    Elliptical Gaussian (Algorithm 2)    ``PrivateSum(Ellipsoid.box(...), ...)``
    ... for Gaussian data (Algorithm 3)  ``PrivateSum(Ellipsoid.for_gaussian(...), ...)``
    ===================================  ====================================================

    Where no region is known, give what is: a box (``lower``, ``upper``) or a ball
    (``center``, ``radius``) that the rows are said to lie in, however wide. A fixed plan of
    several passes (:meth:`plan`) then finds centre and scale within the same budget.

    Parameters
    ----------
    ellipsoid : Ellipsoid or GaussianShape
        The clip region, d coordinates, or what it is made from. Public.
    lower, upper : array (d,), data units
        A box instead of a region. Public; rows outside are moved in by the clips.
    center : array (d,), data units
    radius : float, data units
        A ball instead of a region, as the box.
    sigma : array (d,), data units, optional
    covariance : array (d, d), data units squared, optional
        Of the rows, with a box or ball: one of the two, known from elsewhere, public.
    epsilon, delta : float
        The budget, by the analytic Gaussian bound.
    rho, mu : float
        One of them in place of epsilon and delta: zCDP, or GDP.
    neighbors : ``"replace"`` or ``"add-remove"``
        ``"replace"``: one person's row takes another value; the number of rows is public.
        ``"add-remove"``: one person's row is there or not; the number is private. Where it is
        needed (a centre that is not zero) a noisy count is released jointly.
    by : str, optional
        The column that says whose row it is. Each user's rows become one row before the clip,
        and the guarantee is for all rows of a user; n is the number of users (claim users-2).
        For arrays, give the column itself by ``users`` when calling.
    statistic : ``"mean"`` or ``"sum"``, optional, with ``by``
        What a user's rows become. Default: their mean for a mean, their sum for a sum, so that
        the region bounds a user's mean, or a user's total.
    grouped : bool, with ``by``
        Whether each user's rows stand together in the data, as where these are sorted: memory is
        then O(d). Nothing checks it: where it is not so, a user counts several times.

    Raises
    ------
    TypeError, ValueError
        For a budget that is missing, double or out of range.

    Source: Poulsen 2023, Algorithms 1-3 (with n * center added after the inverse transform);
    calibration: Balle & Wang 2018, Theorem 8.
    """

    _kind = "sum"

    def __init__(
        self,
        ellipsoid: Ellipsoid | GaussianShape | None = None,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        center: ArrayLike | None = None,
        radius: float | None = None,
        sigma: ArrayLike | None = None,
        covariance: ArrayLike | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        neighbors: str = "replace",
        by: str | None = None,
        statistic: str | None = None,
        grouped: bool = False,
    ) -> None:
        known = (lower, upper, center, radius, sigma, covariance)
        self._domain: Domain | None = None
        if ellipsoid is None:
            self._domain = make_domain(*known)
        elif not isinstance(ellipsoid, (Ellipsoid, GaussianShape)):
            kind = type(ellipsoid).__name__
            raise TypeError(f"ellipsoid must be an Ellipsoid or a GaussianShape, got {kind}")
        elif any(what is not None for what in known):
            raise ValueError("give either an ellipsoid, or a box or ball: not both")
        self._shape: GaussianShape | None = None
        if isinstance(ellipsoid, GaussianShape):
            self._shape, ellipsoid = ellipsoid, ellipsoid.at()
        self._ellipsoid = ellipsoid
        self._users = make_unit(by, statistic, grouped, default=self._kind)
        unit = ROW if self._users is None else self._users.unit
        self.guarantee = GaussianGuarantee.of_budget(epsilon, delta, rho, mu, neighbors, unit)

    def __repr__(self) -> str:
        what = repr(self._ellipsoid if self._shape is None else self._shape)
        if self._domain is not None:
            kind = "box" if self._domain.radius is None else "ball"
            what = f"{kind} of {self._domain.center.size} coordinates"
        return f"{type(self).__name__}({what}, {self.guarantee})"

    @property
    def ellipsoid(self) -> Ellipsoid:
        """The clip region; of a GaussianShape the one where the rows cannot be counted first.

        Raises
        ------
        AttributeError
            Where a box or ball was given: each pass then has a region of its own.
        """
        if self._ellipsoid is None:
            raise AttributeError("no ellipsoid: a box or ball was given, see plan()")
        return self._ellipsoid

    def plan(self, n: int) -> Plan:
        """Return what a call on ``n`` rows will do: steps, passes, shares of the budget.

        Parameters
        ----------
        n : int
            Number of rows; for ``add-remove`` a guess (the plan is made from a noisy count).

        Raises
        ------
        ValueError
            Where an ellipsoid was given: there is one pass, and nothing to plan.
        """
        if self._domain is None:
            raise ValueError("an ellipsoid was given: one pass, which takes the whole budget")
        rows = _validate.whole("n", n, least=1)
        mu = self.guarantee.mu_to_spend
        return make_plan(rows, self._domain, mu, self.guarantee.neighbors, self._kind)

    def __call__(
        self,
        data: Any,
        *,
        users: Any = None,
        spend_again: bool = False,
        threads: int | None = None,
        seed: int | bytes | None = None,
    ) -> SumRelease | AdaptiveRelease:
        """Sum ``data``, add the noise, and return the release.

        Parameters
        ----------
        data : array (n, d), iterator of such batches, ExactSum, or Arrow stream
            With a box or ball, something that can be read several times: an array, a memory
            map, a table, ``open_rows(...)``, or a function that returns a new iterator.
            Arrow streams are anything with ``__arrow_c_stream__`` (pyarrow, Polars, DuckDB).
        users : column, optional
            Whose row it is, one entry for each row, where ``data`` has no columns with names.
        spend_again : bool
            Release an ExactSum that was released before: the budget is then spent twice.
        threads : int, optional
            For the summing; default ``ELLIPSUM_THREADS``, else one.
        seed : int or 32 bytes, optional
            **For tests and audits: a release made with a seed is not private**, and says so.

        Returns
        -------
        SumRelease, or AdaptiveRelease for a box or ball

        Raises
        ------
        TypeError, ValueError
            For data of the wrong shape or type, an ExactSum over another region, or one that
            was released before.
        """
        if self._users is not None:
            if isinstance(data, ExactSum):
                raise TypeError("data is an ExactSum, which knows no users: give the rows")
            several = self._domain is not None or self._shape is not None
            d = self._domain.center.size if self._domain is not None else self.ellipsoid.d
            data = self._users.rows(data, d, users, several=several)
        elif users is not None:
            raise TypeError("users is given, but the mechanism was made without by=")
        if self._domain is not None:
            return self._by_plan(self._domain, data, threads, seed)
        ellipsoid = self._region_for(data)
        data = data() if callable(data) else data
        total = self._total(data, ellipsoid, threads)
        neighbors, levels = self.guarantee.neighbors, self._noise_levels(ellipsoid)
        state = total.snapshot()
        if neighbors.count_is_public and state.rows == 0:  # claim channels-3
            raise ValueError("data has no rows: give at least one")
        keys = self._keys(ellipsoid, state, seed)
        draw = noise.rounded_gaussian(ellipsoid.d, levels.sum_sigma, key=keys.of(Use.SUM))
        count: float | None = state.rows if neighbors.count_is_public else None
        if levels.count_sigma is not None:
            count = noise.noisy_count(state.rows, levels.count_sigma, key=keys.of(Use.COUNT))
        total.claim_release(again=spend_again)  # last, so that a call that fails spends nothing
        noisy = NoisySum(
            ellipsoid=ellipsoid,
            integers=as_integers(state.low, state.high) + draw.astype(object),
            sum_sigma=levels.sum_sigma,
            count=count,
            count_sigma=levels.count_sigma,
        )
        caveats = seed_caveats(seed)
        if total.nonfinite == "raise":
            caveats += ('not private: the sum was made with nonfinite="raise"',)
        return SumRelease(self._kind, noisy, self.guarantee, caveats)

    def noise_sd(self, n: int) -> NDArray[np.float64]:
        """Return the noise that a release of ``n`` rows will carry, before any row is read.

        Parameters
        ----------
        n : int, rows

        Returns
        -------
        array (d,), data units
            Standard deviation of each coordinate; for a mean over a noisy count that of rows
            whose mean is the region's centre.

        Raises
        ------
        AttributeError
            Where a box or ball was given: the noise then follows from what the rounds find.
        """
        rows = _validate.whole("n", n, least=1)
        region = self._resolved(rows)
        levels, zeros = self._noise_levels(region), np.zeros(region.d, dtype=object)
        noisy = NoisySum(region, zeros, levels.sum_sigma, float(rows), levels.count_sigma)
        return SumRelease(self._kind, noisy, self.guarantee).sd

    def noise_of(self, total: ExactSum, seed: int | bytes) -> NDArray[np.int64]:
        """Return the integers that a release of ``total`` with this seed has as its noise.

        For audits: ``release.integers - noise_of(total, seed)`` is the exact sum. Without the
        seed, and without the exact sum, nobody can draw them.

        Parameters
        ----------
        total : ExactSum over this mechanism's region
        seed : int or 32 bytes

        Returns
        -------
        array (d,) of int64, grid units
        """
        sigma = self._noise_levels(total.ellipsoid).sum_sigma
        key = self._keys(total.ellipsoid, total.snapshot(), seed).of(Use.SUM)
        return noise.rounded_gaussian(total.ellipsoid.d, sigma, key=key)

    def _keys(self, ellipsoid: Ellipsoid, state: SumState, seed: int | bytes | None) -> JobKeys:
        """Bound to the kind, the relation, the budget, the region and the exact sum."""
        promise = self.guarantee
        job = (self._kind, promise.neighbors.value, *promise.asked, ellipsoid.fingerprint())
        return JobKeys(root_key(seed), *job, state.rows, state.low, state.high)

    def _by_plan(
        self, domain: Domain, data: Any, threads: int | None, seed: int | bytes | None
    ) -> AdaptiveRelease:
        promise, root = self.guarantee, root_key(seed)
        job = (promise.mu_to_spend, promise.neighbors, self._kind, root, threads)
        outcome = run(data, domain, *job)
        return AdaptiveRelease(self._kind, outcome, domain, self.guarantee, seed_caveats(seed))

    def _region_for(self, data: Any) -> Ellipsoid:
        """The region; of a shape the best one, where n is public and the rows can be counted.

        That is not so of an iterator, stream or ExactSum.
        """
        countable = isinstance(data, (Rows, list, tuple)) or len(getattr(data, "shape", ())) == 2
        countable = callable(data) or (countable and not one_shot(data))
        if self._shape is None or not (countable and self.guarantee.neighbors.count_is_public):
            return self.ellipsoid
        return self._resolved(Passes(data, self._shape.d).count_rows())

    def _resolved(self, n: int) -> Ellipsoid:
        """The region for n rows."""
        if self._shape is None or n == 0 or not self.guarantee.neighbors.count_is_public:
            return self.ellipsoid
        return self._shape.resolve(n, self.guarantee.noise_multiplier)

    def _total(self, data: Any, ellipsoid: Ellipsoid, threads: int | None) -> ExactSum:
        if isinstance(data, ExactSum):
            if data.ellipsoid != ellipsoid:
                raise ValueError("data is an ExactSum over another ellipsoid: use the same region")
            return data
        total = ExactSum(ellipsoid, threads=threads)
        for batch in as_batches(data, ellipsoid.d):
            total.add(batch)
        return total

    def _noise_levels(self, ellipsoid: Ellipsoid) -> _NoiseLevels:
        share = self.count_share
        bound = ellipsoid.sensitivity(self.guarantee.neighbors) / ellipsoid.grid
        multiplier = self.guarantee.noise_multiplier
        sum_sigma = rounded_up(multiplier * bound / math.sqrt(1 - share))
        count_sigma = rounded_up(multiplier / math.sqrt(share)) if share else None
        return _NoiseLevels(sum_sigma, count_sigma)

    @property
    def count_share(self) -> float:
        """Share of mu^2 that goes to the noisy count; 0 where no count is needed.

        With the share theta the sum has the noise energy sum_j (C/b_j)^2 / (1 - theta) +
        ||c||^2 / theta (times 1/mu^2), data units squared: least at
        theta = ||c|| / (||c|| + sqrt(sum_j (C/b_j)^2)) (claims count-1, count-3).
        """
        if self.guarantee.neighbors.count_is_public:
            return 0.0
        center = math.hypot(*self.ellipsoid.center)
        if center == 0:
            return 0.0
        share = 1 / (1 + _noise_energy_root(self.ellipsoid) / center)
        return min(max(share, _SMALLEST_SHARE), 1 - _SMALLEST_SHARE)


class PrivateMean(PrivateSum):
    """Differentially private mean of the rows of a table.

    **Guarantees.** As :class:`PrivateSum`. For ``replace`` neighbours the mean is the noisy sum
    over the public number of rows; for ``add-remove`` a noisy sum over a noisy count, released
    jointly under one budget: mu^2 = mu_sum^2 + mu_count^2, with
    mu_count^2 = mu^2 / (2 sqrt(d) + 2). Wherever the mean lies in the region, the noise energy in
    scaled units is then at most 1 + 1/(2 sqrt(d) + 1) times that of the best split for it
    (claims count-1, count-2).

    Parameters, exceptions and sources: as :class:`PrivateSum`.
    """

    _kind = "mean"

    @property
    def count_share(self) -> float:
        """Share of mu^2 that goes to the noisy count: 1 / (2 sqrt(d) + 2) for add-remove."""
        if self.guarantee.neighbors.count_is_public:
            return 0.0
        return 1 / (2 * math.sqrt(self.ellipsoid.d) + 2)


class _NoiseLevels(NamedTuple):
    sum_sigma: float  # grid units
    count_sigma: float | None  # rows


def _noise_energy_root(ellipsoid: Ellipsoid) -> float:
    """sqrt(sum_j (C / b_j)^2), or C ||B^-1||_F: the noise of a sum, per 1/mu, data units."""
    identity = np.ones(ellipsoid.d) if ellipsoid.scale.ndim == 1 else np.eye(ellipsoid.d)
    return ellipsoid.clip_norm * float(np.linalg.norm(ellipsoid.unscale(identity)))
