"""One Gaussian mechanism: from an exact sum to its release, in the order that keeps budgets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import noise
from .ellipsoid import Ellipsoid
from .exact_sum import ExactSum, as_integers
from .guarantee import GaussianGuarantee, rounded_up
from .low_rank import LowRankScale
from .noise_keys import JobKeys, Use
from .present import PresentMean, absence_weights
from .sum_bytes import SumState
from .sum_release import NoisySum, SumRelease

__all__ = [
    "NoiseLevels",
    "center_share",
    "noise_energy_root",
    "noise_levels",
    "noise_sd",
    "one_sum",
    "sum_keys",
]


#: Least share of the sum, and of its count where there is one: neither noise overflows.
_SMALLEST_SHARE = 2.0**-20


class NoiseLevels(NamedTuple):
    """Standard deviations of the noise."""

    sum_sigma: float  #: grid units
    count_sigma: float | None  #: rows
    absent_sigma: NDArray[np.float64] | None  #: cells, where holes are ignored


def noise_levels(
    promise: GaussianGuarantee, region: Ellipsoid, count_share: float, missing: str
) -> NoiseLevels:
    """The noise of sum and count, where a share of mu^2 goes to the count, and of the numbers of
    holes, which take none of it (claim missing-3)."""
    bound = region.sensitivity(promise.neighbors) / region.grid
    multiplier = promise.noise_multiplier * promise.rows_per_unit
    sum_sigma = rounded_up(multiplier * bound / math.sqrt(1 - count_share))
    count_sigma = rounded_up(multiplier / math.sqrt(count_share)) if count_share else None
    if missing == "center":
        return NoiseLevels(sum_sigma, count_sigma, None)
    weights = absence_weights(region, promise.neighbors)
    absent_sigma = np.array([rounded_up(sum_sigma / weight) for weight in weights])
    return NoiseLevels(sum_sigma, count_sigma, absent_sigma)


def center_share(region: Ellipsoid) -> float:
    """Share of mu^2 for the count of a sum for add-remove; 0 where none is needed.

    With the share theta the sum has the noise energy sum_j (C/b_j)^2 / (1 - theta) +
    ||c||^2 / theta (times 1/mu^2), data units squared: least at
    theta = ||c|| / (||c|| + sqrt(sum_j (C/b_j)^2)) (claims count-1, count-3).
    """
    center = math.hypot(*region.center)
    if center == 0:
        return 0.0
    share = 1 / (1 + noise_energy_root(region) / center)
    return min(max(share, _SMALLEST_SHARE), 1 - _SMALLEST_SHARE)


def noise_energy_root(region: Ellipsoid) -> float:
    """sqrt(sum_j (C / b_j)^2), or C ||B^-1||_F: the noise of a sum, per 1/mu, data units."""
    if isinstance(region.scale, LowRankScale):
        return region.clip_norm * float(np.linalg.norm(region.scale.inverse_row_norms()))
    identity = np.ones(region.d) if region.scale.ndim == 1 else np.eye(region.d)
    return region.clip_norm * float(np.linalg.norm(region.unscale(identity)))


def sum_keys(kind: str, promise: GaussianGuarantee, total: ExactSum, root: bytes) -> JobKeys:
    """Bound to the kind, the relation, the budget, the region and the exact sum."""
    return _keys(kind, promise, total.ellipsoid, total.snapshot(), root)


def one_sum(
    kind: str,
    promise: GaussianGuarantee,
    total: ExactSum,
    levels: NoiseLevels,
    root: bytes,
    draw: Callable[[str], Any],
    caveats: tuple[str, ...],
    *,
    again: bool,
) -> SumRelease:
    """The release of a sum: all that can be refused is, the budget is drawn, then the noise.

    Parameters
    ----------
    kind, promise, total, levels : what is released, for which guarantee
    root : 32 bytes, secret
    draw : callable, which takes the entry's public name and gives the entry
    caveats : tuple of str
    again : bool, whether a second release of the sum was asked for

    Raises
    ------
    ValueError
        For no rows where their number is public (claim channels-3), a second release, or a
        budget without room.
    """
    state = total.snapshot()
    if promise.neighbors.count_is_public and state.rows == 0:
        raise ValueError("data has no rows: give at least one")
    keys = _keys(kind, promise, total.ellipsoid, state, root)
    total.claim_release(again=again, only_ask=True)
    entry = draw(keys.of(Use.ENTRY).hex())
    d, key, threads = total.ellipsoid.d, keys.of(Use.SUM), total.threads
    added = noise.rounded_gaussian(d, levels.sum_sigma, key=key, threads=threads)
    count: float | None = state.rows if promise.neighbors.count_is_public else None
    if levels.count_sigma is not None:
        count = noise.noisy_count(state.rows, levels.count_sigma, key=keys.of(Use.COUNT))
    absent = None
    if levels.absent_sigma is not None:
        absent = noise.noisy_counts(state.absent, levels.absent_sigma, key=keys.of(Use.ABSENT))
    total.claim_release(again=again)  # last, so that a call that fails spends nothing
    noisy = NoisySum(
        ellipsoid=total.ellipsoid,
        integers=as_integers(state.low, state.high) + added.astype(object),
        sum_sigma=levels.sum_sigma,
        count=count,
        count_sigma=levels.count_sigma,
    )
    if total.nonfinite == "raise":
        caveats += ('not private: the sum was made with nonfinite="raise"',)
    return _release(kind, noisy, absent, levels, promise, caveats).drawn_from(entry)


def noise_sd(
    kind: str, promise: GaussianGuarantee, region: Ellipsoid, levels: NoiseLevels, rows: int
) -> NDArray[np.float64]:
    """The noise of a release of ``rows`` rows whose sum is 0, data units."""
    zeros = np.zeros(region.d, dtype=object)
    noisy = NoisySum(region, zeros, levels.sum_sigma, float(rows), levels.count_sigma)
    return _release(kind, noisy, np.zeros(region.d), levels, promise).sd


def _release(
    kind: str,
    noisy: NoisySum,
    absent: NDArray[np.float64] | None,
    levels: NoiseLevels,
    promise: GaussianGuarantee,
    caveats: tuple[str, ...] = (),
) -> SumRelease:
    """The release of noisy numbers: of present cells, where holes were counted."""
    if absent is None or levels.absent_sigma is None:
        return SumRelease(kind, noisy, promise, caveats)
    return PresentMean(noisy, absent, levels.absent_sigma, promise, caveats)


def _keys(
    kind: str, promise: GaussianGuarantee, region: Ellipsoid, state: SumState, root: bytes
) -> JobKeys:
    job = (kind, promise.neighbors.value, *promise.asked, region.fingerprint())
    holes = () if state.missing == "center" else (state.missing, state.absent)
    several = () if promise.rows_per_unit == 1 else ("rows of a unit", promise.rows_per_unit)
    return JobKeys(root, *job, state.rows, state.low, state.high, *holes, *several)
