"""The mechanisms: a private sum and a private mean over any region, for both neighbours."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate, noise
from .adaptive.domain import EITHER, ERROR_WHERE, Domain, named_domain
from .adaptive.part_pass import passes_over
from .adaptive.passes import countable
from .adaptive.plan import Plan, make_plan
from .adaptive.release import AdaptiveRelease
from .budget.budget import Budget, Entry, Share
from .budget.purse import check_budget, draw_from, mark_step
from .column_names import Columns
from .column_units import said_units
from .ellipsoid import Ellipsoid
from .exact_sum import ExactSum
from .far_users import rows_of_unit
from .gaussian_shape import PRIVATE_COUNT, UNCOUNTED, GaussianShape
from .guarantee import ROW, GaussianGuarantee, seed_caveats
from .jobs.checkpoint import Checkpoint
from .jobs.inputs import inputs_before, refuse_job
from .jobs.resumable import How, binding_of, by_plan, sum_of
from .noise_keys import Use, root_key
from .one_sum import NoiseLevels, center_share, noise_levels, noise_sd, one_sum, sum_keys
from .present import IGNORED_WHERE
from .rows.files import Rows
from .sum_bytes import MISSING
from .sum_release import SumRelease
from .users import make_unit, refuse_users

__all__ = ["PrivateMean", "PrivateSum"]


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
    Elliptical Gaussian (Algorithm 2)    ``PrivateSum(Ellipsoid.box(..., error="absolute"), ...)``
    ... for Gaussian data (Algorithm 3)  ``PrivateSum(Ellipsoid.for_gaussian(...), ...)``
    ===================================  ====================================================

    Where no region is known, give what is: a box (``lower``, ``upper``) or a ball
    (``center``, ``radius``) that the rows are said to lie in, however wide. A fixed plan of
    several passes (:meth:`plan`) then finds centre and scale within the same budget.

    Parameters
    ----------
    ellipsoid : Ellipsoid or GaussianShape
        The clip region, d coordinates, or what it is made from. Public.
    lower, upper : array (d,), or by column: mapping of names to numbers, pandas Series
        A box instead of a region, data units. Public; rows outside are moved in by the clips.
        By name, it says the release's coordinates and their order: tables must have just these
        columns, and are put into that order (claim rows-5). So do all parameters of a box or ball.
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
        The column that says whose row it is. Each user's rows become one row before the clip, and
        the guarantee is for all of them; n is the number of users (claim users-2).
    statistic : ``"mean"`` or ``"sum"``, optional, with ``by``
        What a user's rows become, and the region bounds. Default: as the release.
    grouped : bool, with ``by``
        Each user's rows stand together: memory is then O(d). Not checked.
    max_rows : int, optional, with ``by``, a region and ``neighbors="add-remove"``
        Each of a user's rows is clipped and added by itself, at most so many of them, which the
        user's own rows decide; n is the number of rows, and the noise is for all of a user's
        (claim users-6). A user of few rows then counts less than one of many.
    error : ``"box"``, ``"relative"``, ``"absolute"`` or weights (d,), 1/data unit
        With a box or ball, what is made small: the mean squared error in widths of the box (the
        default), in the columns' own standard deviations, in the data's unit, or
        sum_j (weight_j error_j)^2.
    missing : ``"center"`` or, for a mean, ``"ignore"``
        What a cell counts for that is missing or not finite: the centre of its coordinate, or
        nothing (the mean is one of the present cells). From a box or ball it is nothing always.
    units : mapping of columns' names to texts, or a sequence of them, optional
        Of the coordinates, public; they label the release, and win over what the rows tell.

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
        error: str | ArrayLike | None = None,
        by: str | None = None,
        statistic: str | None = None,
        grouped: bool = False,
        max_rows: int | None = None,
        missing: str = "center",
        units: Mapping[str, str] | Sequence[str | None] | None = None,
    ) -> None:
        known = (lower, upper, center, radius, sigma, covariance, error)
        self._domain: Domain | None = None
        self._names: tuple[str, ...] | None = getattr(ellipsoid, "columns", None)
        if ellipsoid is None:
            self._domain, self._names = named_domain(*known)
        elif not isinstance(ellipsoid, (Ellipsoid, GaussianShape)):
            kind = type(ellipsoid).__name__
            raise TypeError(f"ellipsoid must be an Ellipsoid or a GaussianShape, got {kind}")
        elif any(what is not None for what in known):
            raise ValueError(EITHER if error is None else ERROR_WHERE)
        self._shape: GaussianShape | None = None
        self._users = make_unit(by, statistic, grouped, max_rows, default=self._kind)
        unit = ROW if self._users is None else self._users.unit
        self.guarantee = GaussianGuarantee.of_budget(epsilon, delta, rho, mu, neighbors, unit)
        if self._users is not None and self._users.max_rows is not None:
            if self.guarantee.neighbors.count_is_public or not isinstance(ellipsoid, Ellipsoid):
                raise ValueError('max_rows goes with a region and neighbors="add-remove"')
            self.guarantee = replace(self.guarantee, rows_per_unit=self._users.max_rows)
        if isinstance(ellipsoid, GaussianShape):
            if not self.guarantee.neighbors.count_is_public:
                raise ValueError(PRIVATE_COUNT)
            self._shape, ellipsoid = ellipsoid, None
        self._ellipsoid = ellipsoid
        self._missing = _validate.one_of("missing", missing, MISSING)
        if missing == "ignore" and self._kind != "mean":
            raise ValueError(IGNORED_WHERE)
        self._columns = Columns(self._names, units=said_units(units, self._d))

    def __repr__(self) -> str:
        what = self._domain or self._shape or self._ellipsoid
        return f"{type(self).__name__}({what!r}, {self.guarantee})"

    @property
    def ellipsoid(self) -> Ellipsoid:
        """The clip region.

        Raises
        ------
        AttributeError
            Where a box or ball was given: each pass then has a region of its own; or a
            GaussianShape, whose region follows from the number of rows (:meth:`region_for`).
        """
        if self._shape is not None:
            raise AttributeError("no ellipsoid before the rows are counted: see region_for(n)")
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
        budget: Budget | Share | None = None,
        resume: Checkpoint | str | os.PathLike[str] | None = None,
        jobs: int = 1,
        spend_again: bool = False,
        on_plan: Callable[[Plan], None] | None = None,
        threads: int | None = None,
        seed: int | bytes | None = None,
    ) -> SumRelease | AdaptiveRelease:
        """Sum ``data``, add the noise, and return the release.

        Parameters
        ----------
        data : array (n, d), iterator of such batches, ExactSum, or Arrow stream
            With a box or ball, something that can be read several times: an array, a memory
            map, a table, ``open_rows(...)``, rows in an engine (``SparkRows(df)``), or a function
            that returns a new iterator. Arrow streams are anything with ``__arrow_c_stream__``
            (pyarrow, Polars, DuckDB), pyarrow Datasets and Polars LazyFrames.
        users : column, optional
            Whose row it is, one entry for each row, where ``data`` has no columns with names.
        budget : Budget or Share, optional
            What the release is drawn from, before its noise is: refused where there is no room.
        resume : Checkpoint or path, optional
            For ``open_rows(...)`` and rows in an engine: a secret file from which a killed run goes
            on, and which repeats the release until it is discarded (:class:`Checkpoint`). By users
            files are read again; in an engine passes are kept, and each run counts the rows first.
        jobs : int
            Files of ``open_rows(...)``, or parts of a large one, that are read at the same time,
            where an ellipsoid is given; with ``by`` in any case, but for ``grouped``.
        spend_again : bool
            Release an ExactSum that was released before: the budget is then spent twice.
        on_plan : function, optional
            With a box or ball, told the :class:`Plan`; the budget of a private count is drawn then.
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
            was released before; a budget without room for it (BudgetError).
        """
        columns = self._columns.copy()
        check_budget(budget, self.guarantee, resume)
        _validate.function("on_plan", on_plan)
        refuse_users(data, users, self._users)
        workers = refuse_job(data, resume is not None, jobs, seeded=seed is not None)
        files = data = data.arranged(columns, self._d) if isinstance(data, Rows) else data
        if self._users is not None:
            rows = rows_of_unit(self._users, data, self._d, users, columns, jobs=workers)
            # For several passes, or to be counted first, something to call.
            data = rows.stored() if self._ellipsoid is None else rows
        draw = partial(self._draw, budget, columns)
        known = (workers, threads, draw, seed_caveats(seed), columns, on_plan)
        if resume is None:
            return self._released(data, How(None, root_key(seed), *known), None, spend_again)
        inputs = inputs_before(Checkpoint.of(resume), files, self._d)  # as before any pass
        region = self._region_for(data) if self._domain is None else self._domain
        what = (self._kind, self.guarantee, region, self._missing, self._users)
        mark = partial(mark_step, budget)
        binding = binding_of(files, *what, counted=self._shape is not None, inputs=inputs)
        with Checkpoint.of(resume).opened(binding) as job:
            return self._released(data, How(job, job.root, *known, files, mark), region, True)

    @property
    def _d(self) -> int:
        return self._domain.center.size if self._domain else (self._shape or self.ellipsoid).d

    def _released(
        self, data: Any, how: How, region: Ellipsoid | Domain | None, again: bool
    ) -> SumRelease | AdaptiveRelease:
        """The release: by a plan, or of one sum, whose region is perhaps known."""
        if self._domain is not None:
            return by_plan(self._kind, self.guarantee, self._domain, data, how)
        ellipsoid = region if isinstance(region, Ellipsoid) else self._region_for(data)
        total = sum_of(data, ExactSum(ellipsoid, missing=self._missing, threads=how.threads), how)
        known = (total, self._levels(ellipsoid), how.root, how.draw, how.caveats)
        release = one_sum(self._kind, self.guarantee, *known, again=again)
        return release.named(*how.columns.told(ellipsoid.d))

    def _levels(self, region: Ellipsoid) -> NoiseLevels:
        return noise_levels(self.guarantee, region, self.count_share, self._missing)

    def _draw(self, budget: Budget | Share | None, columns: Columns, job: str) -> Entry | None:
        columns.check_units()
        return draw_from(budget, self.guarantee, self._kind, job=job)  # before any noise is drawn

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
        region = self.region_for(rows)
        return noise_sd(self._kind, self.guarantee, region, self._levels(region), rows)

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
        sigma = self._levels(total.ellipsoid).sum_sigma
        keys = sum_keys(self._kind, self.guarantee, total, root_key(seed))
        return noise.rounded_gaussian(total.ellipsoid.d, sigma, key=keys.of(Use.SUM))

    def region_for(self, n: int) -> Ellipsoid:
        """Return the clip region of a release of ``n`` rows: what every part of a sum must have.

        Parameters
        ----------
        n : int, rows, public; it matters to a GaussianShape alone
        """
        if self._shape is None:
            return self.ellipsoid
        rows = _validate.whole("n", n, least=1)
        return self._shape.resolve(rows, self.guarantee.noise_multiplier)

    def _region_for(self, data: Any) -> Ellipsoid:
        """The region: of a shape the best one, never another in its place (claim parts-4)."""
        if self._shape is None:
            return self.ellipsoid
        known = isinstance(data, ExactSum)
        if not (known or countable(data)):
            raise ValueError(UNCOUNTED)
        rows = data.count if known else passes_over(data, self._shape.d).count_rows(alone=True)
        return self.region_for(rows) if rows else self._shape.at()  # refused: no rows

    @property
    def count_share(self) -> float:
        """Share of mu^2 that goes to the noisy count; 0 where none is needed (claim count-1)."""
        return 0.0 if self.guarantee.neighbors.count_is_public else center_share(self.ellipsoid)


@_validate.own_init
class PrivateMean(PrivateSum):
    """Differentially private mean of the rows of a table.

    **Guarantees.** As :class:`PrivateSum`. For ``replace`` neighbours the mean is the noisy sum
    over the public number of rows; for ``add-remove`` a noisy sum over a noisy count, released
    jointly under one budget: mu^2 = mu_sum^2 + mu_count^2, with
    mu_count^2 = mu^2 / (2 sqrt(d) + 2). Wherever the mean lies in the region, the noise energy in
    scaled units is then at most 1 + 1/(2 sqrt(d) + 1) times that of the best split for it
    (claims count-1, count-2).

    With ``missing="ignore"`` the mean is one of the *present* cells (always, from a box or ball):
    the noisy sum over their noisy number, jointly at no cost in noise (claims missing-1 to
    missing-4). Over a region it returns a :class:`PresentMean`.

    Parameters, exceptions and sources: as :class:`PrivateSum`.
    """

    _kind = "mean"

    @property
    def count_share(self) -> float:
        """Share of mu^2 that goes to the noisy count: 1 / (2 sqrt(d) + 2) for add-remove."""
        if self.guarantee.neighbors.count_is_public:
            return 0.0
        return 1 / (2 * math.sqrt(self.ellipsoid.d) + 2)
