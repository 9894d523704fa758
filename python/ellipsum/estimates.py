"""Private estimates on their own: centre and scale, as the plan of a mean sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .adaptive.release import AdaptiveRelease
from .budget.budget import Budget, Share
from .guarantee import Guarantee, seed_caveats
from .private_sum import PrivateMean
from .release import Release

__all__ = ["Estimate", "estimate_center", "estimate_scale"]

Array = NDArray[np.float64]


class Estimate(Release):
    """A private estimate of a centre, a scale or a covariance.

    **Guarantees.** As every release: it may be published whole.

    ``kind`` is ``"center"``, ``"scale"`` or ``"covariance"``; ``value`` in data units (squared
    for a covariance); ``sd`` the noise standard deviation of its entries where it is known.
    """

    _remarks: tuple[str, ...] = ()

    @property
    def _products(self) -> bool:
        return self._value.ndim == 2

    @property
    def caveats(self) -> tuple[str, ...]:
        """Why it is not private, if so, and what to know of how it was found."""
        return (*self._caveats, *self._remarks)

    def _head(self) -> list[str]:
        return [*super()._head(), *(f"  {remark}" for remark in self._remarks)]

    def with_remarks(self, remarks: tuple[str, ...]) -> Estimate:
        """This estimate with what is to be known of it."""
        self._remarks = remarks
        return self


def estimate_center(
    data: Any,
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
    budget: Budget | Share | None = None,
    error: str | ArrayLike = "box",
    units: Mapping[str, str] | Sequence[str | None] | None = None,
    seed: int | bytes | None = None,
) -> Estimate:
    """Private centre: the mean by the plan of :class:`PrivateMean` for a box or a ball.

    **Guarantees.** mu-GDP, (epsilon, delta)-DP, as :class:`PrivateMean`.

    Parameters
    ----------
    data : anything that can be read several times: n rows of d coordinates
    lower, upper : array (d,), data units
        The box that the rows are said to lie in. Public.
    center : array (d,), data units
    radius : float, data units
        Or the ball.
    sigma : array (d,), data units, optional
    covariance : array (d, d), data units squared, optional
        Of the rows: one of the two, public.
    epsilon, delta, rho, mu : float
        The budget: epsilon and delta together, or rho, or mu.
    neighbors : ``"replace"`` or ``"add-remove"``
    budget : Budget or Share, optional; what it is drawn from
    error : ``"box"``, ``"relative"``, ``"absolute"`` or weights (d,), as :class:`PrivateMean`
    units : of the coordinates, public, as :class:`PrivateMean`
    seed : int or 32 bytes, optional; for tests, not private

    Returns
    -------
    Estimate
        ``value`` and ``sd`` of shape (d,), data units.

    Raises
    ------
    TypeError, ValueError
        As :class:`PrivateMean` does.
    """
    mechanism = PrivateMean(
        lower=lower,
        upper=upper,
        center=center,
        radius=radius,
        sigma=sigma,
        covariance=covariance,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        mu=mu,
        neighbors=neighbors,
        error=error,
        units=units,
    )
    release = mechanism(data, budget=budget, seed=seed)
    assert isinstance(release, AdaptiveRelease)  # no ellipsoid was given
    return _estimate("center", release.value, release.sd, release, seed)


def estimate_scale(
    data: Any,
    *,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    center: ArrayLike | None = None,
    radius: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    mu: float | None = None,
    neighbors: str = "replace",
    budget: Budget | Share | None = None,
    error: str | ArrayLike = "box",
    units: Mapping[str, str] | Sequence[str | None] | None = None,
    seed: int | bytes | None = None,
) -> Estimate:
    """Private standard deviation of each coordinate, as the same plan sees it.

    **Guarantees.** mu-GDP, (epsilon, delta)-DP, as :class:`PrivateMean`: the scales come with
    its sums.

    They come from mean absolute deviations (times sqrt(pi/2): right for Gaussian rows, lower for
    heavier tails), one noise deviation upwards, so that a scale below the noise comes out as
    the noise, and never as zero.

    Parameters
    ----------
    data, lower, upper, center, radius, epsilon, delta, rho, mu, neighbors, budget,
    error, units, seed :
        As for :func:`estimate_center`.

    Returns
    -------
    Estimate
        ``value`` of shape (d,), data units; ``sd`` is None.

    Raises
    ------
    TypeError, ValueError
        As :class:`PrivateMean` does.
    """
    mechanism = PrivateMean(
        lower=lower,
        upper=upper,
        center=center,
        radius=radius,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        mu=mu,
        neighbors=neighbors,
        error=error,
        units=units,
    )
    release = mechanism(data, budget=budget, seed=seed)
    assert isinstance(release, AdaptiveRelease)  # no ellipsoid was given
    return _estimate("scale", release.spread, None, release, seed)


def _estimate(
    kind: str, value: Array, sd: Array | None, release: AdaptiveRelease, seed: int | bytes | None
) -> Estimate:
    guarantee: Guarantee = release.guarantee
    why = seed_caveats(seed)
    estimate = Estimate(kind, value, guarantee, why, sd=sd, n=release.n)
    estimate.with_remarks(release.remarks(kind)).named(release.columns, release.units)
    return estimate.drawn_from(release.entry)
