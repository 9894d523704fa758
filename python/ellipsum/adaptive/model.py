"""How a plan divides what its rounds have: the recursion that they follow, as far as it is public.

The errors that a division leaves are predicted for laws of the rows that are allowed for, or for
the one that is known, and the division with the least is taken. Nothing here sees a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .domain import Domain
from .pooling import FEWEST
from .spread import SD_PER_MAD

__all__ = ["MODEL_SIZE", "best_division", "cost_of_taking", "grouped", "predicted", "sampling_part"]

Array = NDArray[np.float64]

#: Rounds: how many are tried, and what a further one (two passes) must gain.
_MOST_ROUNDS, _ROUND_COST = 20, 0.01

#: A round's part: even ones shrink the box, and the last ones polish, each with this many times
#: the part of the one before; how much polishing is tried.
_POLISH, _POLISHES = 3.5, np.array([0.0, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512])

#: What the centers have, of all that rounds have: the radii take the rest.
_CENTERS = 0.9

#: The clip radius in the model of a plan, in root mean square distances; where errors are
#: relative, up to the second, as histograms of few coordinates leave their tails open.
_MODEL_RADIUS, _LARGEST_RADIUS = 1.15, 5.0

#: Where sigma is not known: standard deviations that are allowed for, over half widths, and how
#: they fall off over the coordinates (a power of the rank).
_ALLOWED = ((0.1, 0.0), (0.01, 1.0), (0.001, 0.0))
#: Smaller ones are no different.
_LEAST_ALLOWED = 1e-9

#: Where errors are relative, every other coordinate may be this narrow beside wide ones of the
#: first law, and rounds that look for them may cost so much of log(squared error) in other laws.
_NARROW, _SEARCH_COST = 1e-6, 0.2

#: What the means of many coordinates scatter about their common one, over half widths: from the
#: first round on that is what rounds allow for (:mod:`.pooling`). In the boxes of
#: bench/table_means.py it is 0.22 (breast_cancer), 0.14 (diabetes), 0.19 (wine) and 0.34 (digits),
#: of means anywhere in a box 0.58: the upper end of the tables. Half or twice of it moves their
#: errors by 1 % on average, which is what 100 trials leave open, and by 6 % at most.
_SCATTER = 0.35

#: Coordinates of the model: more are grouped.
MODEL_SIZE = 48


def best_division(ratio: float, n: int, domain: Domain, most: int) -> Array:
    """The parts of the rounds with the least predicted error, shape (rounds,), of sum 1.

    The mean over the laws of the log of the squared error over the least possible one. Of laws
    with narrow columns only divisions are heard that cost the other laws little.

    Parameters
    ----------
    ratio : float, noise of a mean over its clip radius, with the whole budget
    n : int
    domain : Domain
    most : int, rounds
    """
    laws = _presumed(domain)
    common = 1 if domain.sigma is not None else len(_ALLOWED)
    divisions, costs = [], []
    for rounds in range(1, min(most, _MOST_ROUNDS) + 1):
        weights = 1 + _POLISHES[:, None] * _POLISH ** np.arange(1.0 - rounds, 1)
        weights /= np.sum(weights, axis=1, keepdims=True)
        divisions += list(weights)
        each = [_cost(weights * _CENTERS, ratio, n, domain, sigma) for sigma in laws]
        costs.append(np.array(each) + _ROUND_COST * rounds)
    cost = np.concatenate(costs, axis=1)
    usual = np.mean(cost[:common], axis=0)
    wanted = np.where(usual <= np.min(usual) + _SEARCH_COST, np.mean(cost, axis=0), np.inf)
    return divisions[int(np.argmin(wanted))]


def cost_of_taking(share: float, weights: Array, ratio: float, n: int, domain: Domain) -> float:
    """log of the factor by which the squared error grows where the rounds have ``share`` less: the
    largest over the laws, predicted.

    Parameters
    ----------
    share : float in (0, 1)
    weights : array (rounds,), parts of the rounds
    ratio, n, domain : as for :func:`best_division`
    """
    both = np.outer([1.0, 1.0 - share], weights) * _CENTERS
    costs = [_cost(both, ratio, n, domain, sigma) for sigma in _presumed(domain)]
    return max(float(less - all_of_it) for all_of_it, less in costs)


def sampling_part(ratio: float, n: int, domain: Domain) -> float:
    """The scatter of the rows themselves in the squared error: from 0 to 1, over the laws."""
    least = [_least(ratio, n, domain, sigma, np.ones(sigma.size)) for sigma in _presumed(domain)]
    return float(np.mean([sampling / (sampling + noise) for noise, sampling in least]))


def _presumed(domain: Domain) -> list[Array]:
    """The rows' standard deviations, or what is allowed for: narrow columns beside wide ones come
    last."""
    if domain.sigma is not None:
        return [np.clip(domain.sigma, _LEAST_ALLOWED * domain.half, domain.largest_spread)]
    rank = np.arange(1.0, domain.half.size + 1)
    laws = [domain.half * part * rank**-power for part, power in _ALLOWED]
    if domain.relative:
        laws.append(domain.half * np.where(rank % 2 == 1, _NARROW, _ALLOWED[0][0]))
    return laws


def _cost(weights: Array, ratio: float, n: int, domain: Domain, sigma: Array) -> Array:
    """log(squared error / the least one), for each row of ``weights``."""
    half, sigma, times = grouped(domain.half, sigma)
    known, relative = domain.sigma is not None, domain.relative
    error = predicted(weights, ratio, half, sigma, times, known, relative=relative)
    noise, sampling = _least(ratio, n, domain, sigma, times)
    return np.asarray(np.log((error + sampling) / (noise + sampling)))


def _least(ratio: float, n: int, domain: Domain, sigma: Array, times: Array) -> tuple[float, float]:
    """(least noise, sampling) in the squared error."""
    unit = np.ones(sigma.size) if domain.relative else sigma
    radius = _radius(ratio, times, relative=domain.relative)
    return (radius * ratio * float(times @ unit)) ** 2, float(times @ unit**2) / n


def _radius(ratio: float, times: Array, *, relative: bool) -> float:
    """The clip radius of the model, in root mean square distances.

    What bins of a law of width 1/sqrt(2d) may hold beyond C by the misfit that radii allow for is
    1/(8 d C), and as much as the noise at C = 1/sqrt(8 d ratio sqrt(d)).
    """
    if not relative:
        return _MODEL_RADIUS
    d = float(np.sum(times))
    return float(np.clip((8 * d**1.5 * ratio) ** -0.5, _MODEL_RADIUS, _LARGEST_RADIUS))


def grouped(half: Array, sigma: Array) -> tuple[Array, Array, Array]:
    """(half width, sigma, how many) of coordinates of about the same sigma."""
    order = np.argsort(-sigma)
    if sigma.size <= MODEL_SIZE:
        return half, sigma, np.ones(sigma.size)
    starts = np.unique(np.geomspace(1, sigma.size, MODEL_SIZE).astype(int)) - 1
    times = np.diff(starts, append=sigma.size).astype(np.float64)
    means = [np.add.reduceat(values[order], starts) / times for values in (half, sigma)]
    return means[0], means[1], times


def _pooled(d: float) -> float:
    """The squared distance of a coordinate's mean from where the others have it, half widths."""
    return _SCATTER**2 + (1 - _SCATTER**2) / d if d >= FEWEST else 1.0


def predicted(
    weights: Array,
    ratio: float,
    half: Array,
    sigma: Array,
    times: Array,
    known: bool,
    *,
    relative: bool = False,
) -> Array:
    """The squared error that the rounds leave, for each row of ``weights``, if all goes well.

    The recursion that the rounds follow (docs/adaptive.md), with what they find out
    replaced by what is expected. ``relative``: errors over sigma, in regions whose unit is the
    spread as the round before saw it.
    """
    precision = np.broadcast_to(1 / half**2, (len(weights), half.size))
    measured = np.zeros_like(precision)
    spread = sigma if known else np.zeros_like(sigma)
    radius = _radius(ratio, times, relative=relative)
    for k in range(weights.shape[1]):
        error = 1 / np.sqrt(precision)
        unit = spread if relative and k else np.ones_like(sigma)
        u, distance = np.hypot(spread, error) / unit, np.hypot(sigma, error) / unit
        energy = distance**2 / u @ times
        level = (ratio * radius) ** 2 / weights[:, k] * energy
        gain = 1 / (level[:, None] * u * unit**2)
        if not k:
            precision = precision / _pooled(float(np.sum(times)))
        precision, measured = precision + gain, measured + gain
        if not known:
            spread = distance * unit + SD_PER_MAD / np.sqrt(measured)
    return (1 / precision) @ (times / sigma**2 if relative else times)
