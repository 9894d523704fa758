"""Which private keys may be named: those whose noisy number of users reaches a threshold.

A key that one user alone has is named with a chance p: the noise is a Gaussian rounded to whole
steps, so p = P(steps + round(Z) >= threshold) = Q((threshold - steps - 1/2)/sd), exactly. Two
neighbours differ in keys that only one of them has, b of them in X and b' in X', and in groups
that both have, where the release is a Gaussian mechanism of mu_b^2 = mu^2 (1 - (b + b')/K). Every
output that names one of the b keys is impossible under X', so the release has exactly

    delta(eps) = max over b, b' of 1 - q^b + q^b delta_G(eps + (b - b') log(1/q), mu_b),  q = 1 - p,

where K = k and b b' = 0 for add-remove, K = 2 k for replace, and 0 <= b, b' <= k, the most keys
of a user (claim groups-4). For add-remove this is the Gaussian sparse histogram mechanism of
Wilkins, Kifer, Zhang & Karrer (2024).
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import scipy

from .. import calibrate
from ..guarantee import Neighbors

__all__ = ["COUNT_STEPS", "KeySelection", "calibrated", "chance_of_one", "threshold_for"]

#: Steps of a noisy number of users in one user.
COUNT_STEPS = 1 << 20

#: Covers the roundings of log_ndtr, expm1 and of a square root, many times over.
_SLACK = 2.0**-40

#: Keys of a user for `replace` with private keys: (k + 1)^2 terms are looked at.
MOST_KEYS = 64


def chance_of_one(threshold: int, sigma: float, steps: int = COUNT_STEPS) -> float:
    """P(a key of one user is named), never below the true value.

    Parameters
    ----------
    threshold : int, steps
    sigma : float, steps; standard deviation of the noise before it is rounded
    steps : int, of one user
    """
    return float(
        math.exp(scipy.special.log_ndtr(-(threshold - steps - 0.5) / sigma)) * (1 + _SLACK)
    )


def threshold_for(chance: float, sigma: float, steps: int = COUNT_STEPS) -> int:
    """The least threshold (about) whose :func:`chance_of_one` is at most ``chance``."""
    threshold = math.ceil(steps + 0.5 - float(scipy.special.ndtri(chance)) * sigma)
    while chance_of_one(threshold, sigma, steps) > chance:
        threshold += 1 + threshold // (1 << 40)
    return threshold


@dataclass(frozen=True)
class KeySelection:
    """The choice of keys by a threshold, and what it takes of the budget.

    Parameters
    ----------
    neighbors : Neighbors
    max_keys : int, groups of a user
    chance : float, that a key of one user is named: an upper bound
    """

    neighbors: Neighbors
    max_keys: int
    chance: float

    @property
    def delta(self) -> float:
        """P(any of a user's own keys is named): 1 - (1 - p)^k, rounded up."""
        return -math.expm1(self.max_keys * math.log1p(-self.chance)) * (1 + _SLACK)

    def total_delta(self, epsilon: float, multiplier: float) -> float:
        """delta(epsilon) of keys, sizes and sums together, never below the true value.

        Parameters
        ----------
        epsilon : float
        multiplier : float; 1/mu of the Gaussian mechanism in groups that both neighbours have
        """
        least = -math.log1p(-self.chance)  # log(1/q)
        worst = max(
            self._of_pair(epsilon, multiplier, b, other, least) for b, other in self._pairs()
        )
        return min(1.0, worst * (1 + _SLACK))

    def _pairs(self) -> list[tuple[int, int]]:
        k = self.max_keys
        if self.neighbors is Neighbors.ADD_REMOVE:
            return [(b, 0) for b in range(k + 1)] + [(0, b) for b in range(1, k + 1)]
        return list(itertools.product(range(k + 1), range(k + 1)))

    def _of_pair(self, epsilon: float, multiplier: float, b: int, other: int, log: float) -> float:
        most = self.max_keys * (1 if self.neighbors is Neighbors.ADD_REMOVE else 2)
        left = 1 - (b + other) / most
        at = epsilon + (b - other) * log * (1 - _SLACK if b > other else 1 + _SLACK)
        return -math.expm1(-b * log) + math.exp(-b * log) * _gaussian(multiplier, at, left)


def _gaussian(multiplier: float, epsilon: float, left: float) -> float:
    """delta_G(epsilon) for mu^2 = left / multiplier^2, also below epsilon = 0."""
    if epsilon < 0:  # the same for the two Gaussians exchanged
        return -math.expm1(epsilon) + math.exp(epsilon) * _gaussian(multiplier, -epsilon, left)
    if left <= 0:
        return 0.0
    return calibrate.delta(multiplier / math.sqrt(left) * (1 - 2.0**-50), epsilon)


@functools.lru_cache(maxsize=256)
def calibrated(
    epsilon: float, delta: float, neighbors: Neighbors, max_keys: int, count_factor: float
) -> tuple[float, int, KeySelection]:
    """Noise multiplier and threshold for (epsilon, delta).

    The terms of :meth:`KeySelection.total_delta` are a maximum and no sum: the groups that both
    neighbours have may take all of delta, and so may the keys of one alone. So the multiplier is
    the least that gives (epsilon, delta) without a choice of keys (and 2^-30 of it), and the
    threshold the least under it.

    Parameters
    ----------
    epsilon, delta : float
    neighbors : Neighbors
    max_keys : int
    count_factor : float; noise of a number of users = factor * multiplier, in users

    Returns
    -------
    (multiplier, threshold in steps, KeySelection)

    Raises
    ------
    ValueError
        For more than 64 keys of a user with ``replace``.
    """
    if neighbors is Neighbors.REPLACE and max_keys > MOST_KEYS:
        raise ValueError(f"max_keys must be at most {MOST_KEYS} for replace with private keys")
    multiplier = calibrate.noise_multiplier(epsilon, delta) * (1 + 2.0**-30)
    sigma = count_factor * multiplier * COUNT_STEPS

    def excess(log_chance: float) -> float:
        chosen = KeySelection(neighbors, max_keys, math.exp(log_chance))
        return chosen.total_delta(epsilon, multiplier) / delta - 1

    # None of the keys may be named with a chance above delta.
    high = math.log(-math.expm1(math.log1p(-delta) / max_keys))
    low = high - 1.0
    while excess(low) > 0:
        low -= 1.0
    found = (
        high if excess(high) <= 0 else float(scipy.optimize.brentq(excess, low, high, xtol=1e-9))
    )
    while excess(found) > 0:
        found -= 1e-9
    threshold = threshold_for(math.exp(found), sigma)
    chance = chance_of_one(threshold, sigma)
    return multiplier, threshold, KeySelection(neighbors, max_keys, chance)
