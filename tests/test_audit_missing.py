"""The guarantee of a mean of present cells, measured as in ``test_audit.py``: on neighbours that
differ in their numbers and in their missing cells, from both sides."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactSum, PrivateMean
from ellipsum.noise import rounded_gaussian
from test_audit import BLOCK, DRAWS, EPSILONS, block_key, deviations

REGION = Ellipsoid.for_gaussian(
    sigma=[3.0, 0.5, 1.0], center=[10.0, -2.0, 0.0], clip_probability=0.01
)
ROWS = [[10.0, -2.0, 0.5], [9.0, np.nan, 1.0], [12.0, -1.0, np.nan]]


def change(neighbors):
    """How sums, missing cells and counts of the worst neighbours differ, in this order.

    Opposite far ends in the one cell that both have; each has another cell, at the centre.
    """
    one, other = [np.nan, -2.0, 1e6], [10.0, np.nan, -1e6]
    tables = [[*ROWS, one], [*ROWS, other] if neighbors == "replace" else ROWS]
    states = [ExactSum(REGION, missing="ignore").add(np.array(t)).snapshot() for t in tables]
    sums, holes = ([getattr(s, name) for s in states] for name in ("low", "absent"))
    moved = (sums[0].view(np.int64) - sums[1].view(np.int64), holes[0] - holes[1])
    return [v.astype(np.float64) for v in moved] + [np.array([states[0].rows - states[1].rows])]


def flags(neighbors, size_of_noise=1.0, size_of_absent=1.0):
    """Every check that the noise fails, in words."""
    made = PrivateMean(REGION, epsilon=1.0, delta=1e-6, neighbors=neighbors, missing="ignore")
    told = made(np.array(ROWS)).parameters
    sigmas = [np.full(3, told["sum_sigma"]), np.array(told["absent_sigma"])]
    sizes = [size_of_noise, size_of_absent * size_of_noise]
    moved = change(neighbors)
    if told["count_sigma"] is not None:
        sigmas.append(np.array([told["count_sigma"]]))
        sizes.append(size_of_noise)
    directions = [v / s**2 for v, s in zip(moved, sigmas, strict=False)]
    mu = math.sqrt(sum(float(v @ u) for v, u in zip(moved, directions, strict=False)))
    assert 1 - 1e-4 < mu * made.guarantee.noise_multiplier <= 1, mu
    eps = np.array(EPSILONS)
    a, b = eps / mu - mu / 2, eps / mu + mu / 2
    counts = np.zeros((2, 2, eps.size), dtype=np.int64)
    for i in range(DRAWS // BLOCK):
        y = np.zeros(BLOCK)
        for part, (direction, sigma, size) in enumerate(
            zip(directions, sigmas, sizes, strict=True)
        ):
            # Counts are in steps of 2^-20 of a cell, as they are released.
            steps = 1.0 if part == 0 else 2.0**20
            key = block_key(neighbors, part, i)
            noise = rounded_gaussian(BLOCK * sigma.size, size * sigma[0] * steps, key=key)
            y += noise.reshape(BLOCK, -1) @ (direction / steps)
        y /= mu
        for side, sign in enumerate((1, -1)):
            for row, threshold in enumerate((a, b)):
                counts[side, row] += [np.count_nonzero(sign * y > t) for t in threshold]
    return [
        f"{neighbors}, side {side}, epsilon {eps[i]}: {text}"
        for side in range(2)
        for i in range(eps.size)
        for text in deviations(mu, eps[i], a[i], b[i], counts[side, :, i])
    ]


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_the_privacy_curve_with_missing_cells_is_the_analytic_one(neighbors):
    assert not flags(neighbors)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_the_audit_sees_noise_on_missing_cells_that_is_too_small(neighbors):
    assert any("delta" in line for line in flags(neighbors, size_of_absent=0.9))
    assert any("delta" in line for line in flags(neighbors, size_of_noise=0.98))
