"""The mechanisms: a private sum and a private mean over any region, for both neighbours."""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _validate, calibrate, noise
from .adaptive.domain import Domain, make_domain
from .adaptive.passes import Passes
from .adaptive.plan import Plan, make_plan
from .adaptive.release import AdaptiveRelease
from .adaptive.rounds import run
from .ellipsoid import Ellipsoid
from .exact_sum import ExactSum
from .release import Guarantee, NoisySum, Release
from .rows.batches import as_batches
from .rows.files import Rows

__all__ = ["PrivateMean", "PrivateSum", "make_guarantee", "make_key"]

_NEIGHBORS = ("replace", "add-remove")
#: Steps of a noisy count in one row: fine beside any noise, so that rounding does not show in it.
_COUNT_STEPS = 1 << 20
#: Least share of the sum, and of its count where there is one: neither noise overflows.
_SMALLEST_SHARE = 2.0**-20
_UP = 1 + 2.0**-50  # covers the few roundings of each noise level; noise is never too small


class PrivateSum:
    """Differentially private sum of the rows of a table.

    **Guarantees.** The release is (epsilon, delta)-differentially private (equally: rho-zCDP,
    mu-GDP) for the neighbouring relation named, and that holds for the bits that are handed
    on: an integer sum whose sensitivity includes every rounding, plus a correctly rounded
    Gaussian (docs/guarantees). Nothing else that depends on the rows
    leaves: not through an error (bad values count as the centre), a log or a count.

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
    ellipsoid : Ellipsoid
        The clip region: public, d coordinates.
    lower, upper : array (d,), or center : array (d,) and radius : float, data units
        Instead of a region. Public; rows outside are moved in by the clips.
    sigma : array (d,), or covariance : array (d, d), optional
        Of the rows, with a box or ball: known from elsewhere, public.
    epsilon, delta : float
        The budget, by the analytic Gaussian bound; or ``rho`` (zCDP), or ``mu`` (GDP) alone.
    neighbors : ``"replace"`` or ``"add-remove"``
        ``"replace"``: one person's row takes another value; the number of rows is public.
        ``"add-remove"``: one person's row is there or not; the number is private. Where it is
        needed (a centre that is not zero) a noisy count is released jointly.

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
        ellipsoid: Ellipsoid | None = None,
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
    ) -> None:
        known = (lower, upper, center, radius, sigma, covariance)
        self._domain: Domain | None = None
        if ellipsoid is None:
            self._domain = make_domain(*known)
        elif not isinstance(ellipsoid, Ellipsoid):
            raise TypeError(f"ellipsoid must be an Ellipsoid, got {type(ellipsoid).__name__}")
        elif any(what is not None for what in known):
            raise ValueError("give either an ellipsoid, or a box or ball: not both")
        self._ellipsoid = ellipsoid
        self.guarantee = make_guarantee(epsilon, delta, rho, mu, neighbors)

    @property
    def ellipsoid(self) -> Ellipsoid:
        """The clip region.

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
        rows = int(_validate.positive("n", n))
        return make_plan(rows, self._domain, self._mu, self.guarantee.neighbors, self._kind)

    @property
    def _mu(self) -> float:
        """mu to be spent: 1 / noise_multiplier, rounded down."""
        return (1 - 2.0**-51) / self.guarantee.noise_multiplier

    def __call__(
        self,
        data: Any,
        *,
        spend_again: bool = False,
        threads: int | None = None,
        seed: int | bytes | None = None,
    ) -> Release:
        """Sum ``data``, add the noise, and return the release.

        Parameters
        ----------
        data : array (n, d), iterator of such batches, ExactSum, or Arrow stream
            With a box or ball, something that can be read several times: an array, a memory
            map, a table, ``open_rows(...)``, or a function that returns a new iterator.
            Arrow streams are anything with ``__arrow_c_stream__`` (pyarrow, Polars, DuckDB).
        spend_again : bool
            Release an ExactSum that was released before: the budget is then spent twice.
        threads : int, optional
            For the summing; default ``ELLIPSUM_THREADS``, else one.
        seed : int or 32 bytes, optional
            **For tests and audits: a release made with a seed is not private**, and says so.

        Returns
        -------
        Release

        Raises
        ------
        TypeError, ValueError
            For data of the wrong shape or type, an ExactSum over another region, or one that
            was released before.
        """
        if self._domain is not None:
            return self._by_plan(self._domain, data, threads, seed)
        ellipsoid = self._region_for(data)
        total = self._total(data, ellipsoid, threads)
        neighbors = self.guarantee.neighbors
        if neighbors == "replace" and total.count == 0:
            raise ValueError("data has no rows: give at least one")
        key = make_key(seed)
        levels = self._noise_levels(ellipsoid)
        draw = noise.rounded_gaussian(ellipsoid.d, levels.sum_sigma, key=key)
        count = _noisy_count(total, neighbors, levels.count_sigma, key)
        total.claim_release(again=spend_again)  # last, so that a call that fails spends nothing
        noisy = NoisySum(
            ellipsoid=ellipsoid,
            integers=total.integers() + draw.astype(object),
            sum_sigma=levels.sum_sigma,
            count=count,
            count_sigma=levels.count_sigma,
        )
        caveats = _caveats(total, seed)
        return Release(self._kind, noisy, self.guarantee, caveats)

    def _by_plan(
        self, domain: Domain, data: Any, threads: int | None, seed: int | bytes | None
    ) -> AdaptiveRelease:
        neighbors = self.guarantee.neighbors
        outcome = run(data, domain, self._mu, neighbors, self._kind, make_key(seed), threads)
        return AdaptiveRelease(self._kind, outcome, domain, self.guarantee, _seeded(seed))

    def _region_for(self, data: Any) -> Ellipsoid:
        """The region; where the best one was asked for and n is public, the best for that n.

        That takes rows that can be counted first: not an iterator, stream or ExactSum.
        """
        countable = isinstance(data, (Rows, list, tuple)) or len(getattr(data, "shape", ())) == 2
        if not (self.ellipsoid.provisional and countable and self.guarantee.neighbors == "replace"):
            return self.ellipsoid
        n = Passes(data, self.ellipsoid.d).count_rows()
        multiplier = self.guarantee.noise_multiplier
        return self.ellipsoid.resolved(n, multiplier, "replace") if n else self.ellipsoid

    def _total(self, data: Any, ellipsoid: Ellipsoid, threads: int | None) -> ExactSum:
        if isinstance(data, ExactSum):
            if data.ellipsoid != ellipsoid:
                raise ValueError("data is an ExactSum over another ellipsoid: use the same region")
            return data
        total = ExactSum(ellipsoid, threads=threads)
        for batch in as_batches(data, ellipsoid.d):
            if len(batch):
                total.add(batch)
        return total

    def _noise_levels(self, ellipsoid: Ellipsoid) -> _NoiseLevels:
        share = self.count_share
        bound = ellipsoid.sensitivity(self.guarantee.neighbors) / ellipsoid.grid
        multiplier = self.guarantee.noise_multiplier
        sum_sigma = multiplier * bound / math.sqrt(1 - share) * _UP
        count_sigma = multiplier / math.sqrt(share) * _UP if share else None
        return _NoiseLevels(sum_sigma, count_sigma)

    @property
    def count_share(self) -> float:
        """Share of mu^2 that goes to the noisy count; 0 where no count is needed.

        The sum, in data units, has the variance sum_j sd_j^2 + ||c||^2 sd_n^2 with
        sd_j^2 = (C/b_j)^2 / (1 - s) and sd_n^2 = 1 / s (times 1/mu^2): it is least at
        s = ||c|| / (||c|| + sqrt(sum_j (C/b_j)^2)).
        """
        if self.guarantee.neighbors == "replace":
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
    (docs/guarantees/count.md).

    Parameters, exceptions and sources: as :class:`PrivateSum`.
    """

    _kind = "mean"

    @property
    def count_share(self) -> float:
        """Share of mu^2 that goes to the noisy count: 1 / (2 sqrt(d) + 2) for add-remove."""
        if self.guarantee.neighbors == "replace":
            return 0.0
        return 1 / (2 * math.sqrt(self.ellipsoid.d) + 2)


@dataclass(frozen=True)
class _NoiseLevels:
    sum_sigma: float  # grid units
    count_sigma: float | None  # rows


def make_guarantee(
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    mu: float | None,
    neighbors: str,
) -> Guarantee:
    """The guarantee of a budget given in one of its forms."""
    _validate.one_of("neighbors", neighbors, _NEIGHBORS)
    multiplier = calibrate.noise_multiplier(epsilon, delta, rho=rho, mu=mu)
    return Guarantee(neighbors, multiplier, epsilon, delta, rho, mu)


def _noise_energy_root(ellipsoid: Ellipsoid) -> float:
    """sqrt(sum_j (C / b_j)^2), or C ||B^-1||_F: the noise of a sum, per 1/mu, data units."""
    identity = np.ones(ellipsoid.d) if ellipsoid.scale.ndim == 1 else np.eye(ellipsoid.d)
    return ellipsoid.clip_norm * float(np.linalg.norm(ellipsoid.unscale(identity)))


def make_key(seed: int | bytes | None) -> bytes:
    """The 256-bit key of the sum's noise: fresh, or from the seed."""
    if seed is None:
        return secrets.token_bytes(32)
    if isinstance(seed, bytes) and len(seed) == 32:
        return seed
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError("seed must be an int or 32 bytes")
    text = str(int(seed)).encode()
    return hashlib.blake2b(text, digest_size=32, person=b"ellipsum-seed").digest()


def _noisy_count(
    total: ExactSum, neighbors: str, count_sigma: float | None, key: bytes
) -> float | None:
    """The public count, or the private one under noise from a key of its own, or none."""
    if neighbors == "replace":
        return total.count
    if count_sigma is None:
        return None
    count_key = hashlib.blake2b(b"count", digest_size=32, key=key).digest()
    drawn = int(noise.rounded_gaussian(1, count_sigma * _COUNT_STEPS, key=count_key)[0])
    return (total.count * _COUNT_STEPS + drawn) / _COUNT_STEPS


def _caveats(total: ExactSum, seed: int | bytes | None) -> tuple[str, ...]:
    caveats = list(_seeded(seed))
    if total.nonfinite == "raise":
        caveats.append('not private: the sum was made with nonfinite="raise"')
    return tuple(caveats)


def _seeded(seed: int | bytes | None) -> tuple[str, ...]:
    return () if seed is None else ("not private: made with a seed",)
