"""Where roundings decide: tails of 1e-300, directions of hardly any variance, huge numbers."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from ellipsum.kernels.backend import use_kernels
from ellipsum.records import GaussianPair
from regions import KERNEL_SETS


def exact(e: float, epsilon: float) -> mp.mpf:
    """Of N(0, 1 + e) against N(0, 1), by the law of a chi-square of one degree."""
    with mp.workdps(120):
        kappa, one = 1 + mp.mpf(e), mp.mpf(epsilon)
        edge = 2 / mp.mpf(e) * (one + mp.log(kappa) / 2)
        near, far = mp.sqrt(edge / 2), mp.sqrt(kappa * edge / 2)
        return mp.erfc(near) - mp.exp(one) * mp.erfc(far)


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_deltas_of_one_term_are_never_below_however_small(name):
    rng = np.random.default_rng(7)
    with use_kernels(name):
        known = GaussianPair.from_spectrum([7.555916552311496e-08])
        assert known.delta(3.907285680969166e-05) > exact(
            7.555916552311496e-08, 3.907285680969166e-05
        )
        for _ in range(60):
            e = 10 ** rng.uniform(-9, -3)
            pair = GaussianPair.from_spectrum([e])
            epsilon = float(pair.epsilon(10 ** -rng.uniform(5, 322)))
            for here in (epsilon, epsilon * rng.uniform(0.9, 1.1)):
                got, true = pair.delta(here), exact(e, here)
                assert got >= true and (got < 1e-300 or got <= true * (1 + 2e-12))


def test_directions_that_doubles_cannot_tell_are_not_left_out():
    """A row (1, -1) more, beside a variance of 2e15 across: exact doubles, and kappa - 1 is 2."""
    one, two = ([[1e15 + k, 1e15 + s], [1e15 + s, 1e15 + k]] for k, s in ((1, 0), (2, -1)))
    pair = GaussianPair([0, 0], two, [0, 0], one, rows=100)
    for here in (pair, pair.reverse):
        assert here.delta(1.0) == 1 and here.epsilon(1e-6) == math.inf
    flat = [[1.0, 0], [0, 0]]
    assert GaussianPair([0, 0], flat, [1.0, 1e-16], flat).delta(50.0) == 1
    assert GaussianPair([1e16, 0], flat, [1e16, 5e-324], flat).delta(50.0) == 1
    thin = GaussianPair([0, 0], flat, [1.0, 0], flat)
    assert thin.delta(1.0) == pytest.approx(GaussianPair(0, 1.0, 1.0, 1.0).delta(1.0), rel=1e-13)
    rng = np.random.default_rng(1)  # whole numbers of rank 3 in 6 dimensions, and a mean in range
    basis = rng.integers(-3, 4, (6, 3)).astype(float)
    small = GaussianPair(np.zeros(3), np.eye(3), [1.0, 0, -1.0], 2 * np.eye(3))
    wide = basis @ basis.T
    pair = GaussianPair(np.zeros(6), wide, basis @ [1.0, 0, -1.0], 2 * wide)
    assert pair.delta(0.7) == pytest.approx(small.delta(0.7), rel=1e-9)
    off = basis @ [1.0, 0, -1.0] + np.eye(6)[0] * 1e-14
    assert GaussianPair(np.zeros(6), wide, off, 2 * wide).delta(0.7) == 1


def test_covariances_of_any_size_are_scaled():
    for size in (1e308, 1e-310):
        got = GaussianPair([0, 0], np.eye(2) * size, [0, 0], np.eye(2) * (1.5 * size))
        known = GaussianPair([0, 0], [1.0, 1.0], [0, 0], [1.5, 1.5])
        assert got.delta(0.0) == pytest.approx(known.delta(0.0), rel=1e-12)
    assert GaussianPair([0], [1e300], [0], [1e-300]).delta(3.0) == 1  # kappa is beyond the doubles
    assert GaussianPair([1e308], [1.0], [-1e308], [1.0]).epsilon(0.1) == math.inf
