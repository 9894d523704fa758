"""A regression's second pass: how far its coefficients reach on rows that hardly anything clips.

The moments are of rows clipped in all d + 1 coordinates; where long rows have another slope than
short ones, nothing in them tells how far a ridge's coefficients b should be stretched. With u = b'x
of a row, the sums of u (y - u) and u^2 tell it, and are two numbers: they are clipped far less, and
cost a small share of the budget (claim estimates-4, docs/projection.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..adaptive.passes import Passes
from ..budget.purse import Entry
from ..column_names import Columns
from ..ellipsoid import Ellipsoid
from ..exact_sum import ExactSum
from ..guarantee import GaussianGuarantee, rounded_up
from ..noise import rounded_gaussian
from ..noise_keys import JobKeys, Use
from ..second_moments import scaled_offsets
from .moment_fits import LEAST_RIDGE, NoisyMoments, stretch_terms

__all__ = ["SECOND_SHARE", "Released", "factor_of", "measured_factor", "reach_of", "slope_sum"]

Array = NDArray[np.float64]

#: Within 0.0004 of the best of those tried, in explained variance, also without any one data set
#: (bench/moment_second.py). The second pass's share of mu^2; ridge and stretch that it starts from
#: where the first pass tells too little for Stein's estimate;
SECOND_SHARE, START = 0.1, (2.5, 1.75)
#: the weight of u^2 beside u (y - u) in a row's vector; the part of the squares that the first pass
#: predicts that the noise may be, by the ball's radius, and the bounds of that, in squared units of
#: the target's scale;
SQUARES, NOISE_PART, REACHES = 0.5, 0.2, (1.0, 16.0)
#: the deviation of the factor from 1 beforehand.
PRIOR = 0.4
_MOST_FACTOR = 2.0


@dataclass(frozen=True)
class Released:
    """Noisy moments, and what a second pass needs."""

    value: Array
    sd: float
    n: int | None
    center: Array
    scale: Array
    columns: Columns
    promise: GaussianGuarantee
    entry: Entry | None
    rows: Passes
    keys: JobKeys


def measured_factor(found: Released, ridge: float, stretch: float) -> float:
    """What the second pass multiplies the stretch by. **The release of two noisy sums.**"""
    p = len(found.value) - 1
    columns, least = tuple(range(p)), LEAST_RIDGE * found.sd * math.sqrt(p)
    moments = NoisyMoments(found.value, lambda v: np.zeros((p + 1, p + 1)))
    coef = moments.ridge(p, columns, ridge, least).coef * stretch
    squares = stretch**2 * stretch_terms(found.value, p, columns, found.sd, ridge, least)[1]
    relation = found.promise.neighbors
    multiplier = found.promise.noise_multiplier / math.sqrt(SECOND_SHARE)
    reach = reach_of(squares, multiplier * relation.factor())
    total = slope_sum(found.rows, found.center, found.scale, coef, reach)
    region, state = total.ellipsoid, total.snapshot()
    sigma = rounded_up(multiplier * region.sensitivity(relation) / region.grid)
    key = found.keys.of(Use.SLOPE, coef, reach, state.rows, state.low, state.high)
    drawn = rounded_gaussian(region.d, sigma, key=key)
    noisy = (total.integers() + drawn.astype(object)).astype(np.float64) * region.grid
    return factor_of(float(noisy[0]), float(noisy[1]), sigma * region.grid)


def slopes(center: Array, scale: Array, coef: Array, x: Array) -> Array:
    """(u (y - u), SQUARES u^2) of each row, (n, 2), target last. **Private.**

    Column by column, so that a row's numbers do not depend on its place among others, as those of
    a matrix product may.
    """
    with np.errstate(all="ignore"):  # a warning would tell of a value
        z = scaled_offsets(center, scale, x)
        u = np.zeros(len(z))
        for j, b in enumerate(coef):
            u += z[:, j] * b
        return np.stack([u * (z[:, -1] - u), SQUARES * u * u], axis=1)


def slope_sum(rows: Passes, center: Array, scale: Array, coef: Array, reach: float) -> ExactSum:
    """The exact sum of :func:`slopes`, each clipped to the norm ``reach``. **Private.**"""
    region = Ellipsoid.ball(reach, d=2)
    return rows.sum_of(region, partial(slopes, center, scale, coef), region.d)


def reach_of(squares: float, noise: float) -> float:
    """The radius, from the first pass's estimate of sum u^2 and the noise's deviation at a radius
    of 1. Post-processing."""
    return min(max(REACHES[0], NOISE_PART * squares / noise), REACHES[1])


def factor_of(first: float, second: float, sd: float) -> float:
    """What coefficients are multiplied by: 1 + sum u (y - u) / sum u^2, shrunk to 1 by its noise.

    ``first`` and ``second`` are the noisy sums, ``second`` of SQUARES u^2, both of deviation
    ``sd``. The posterior mean where the factor is N(1, PRIOR^2) beforehand. Post-processing.
    """
    squares = second / SQUARES
    if squares <= 0:
        return 1.0
    noise = sd / PRIOR / squares
    return min(max(1 + first / squares / (1 + noise * noise), 0.0), _MOST_FACTOR)
