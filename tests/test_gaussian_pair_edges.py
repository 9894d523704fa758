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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spectrum", "targets"),
    [
        (([43551.0, 2.5], [0, 4657.0]), (0.9999, 0.99, 0.95, 0.9, 0.5)),
        (([1e6, 10.0], 0, [1.0, 1e4]), (0.9999, 0.9)),
        (([6836496099.895355, 793.7725185281251, -3.5e-35], 0, [0.1164, 70729.2, 1.59]), (0.71,)),
    ],
)
@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_where_the_contour_tells_nothing_delta_is_no_nan_and_epsilon_is_enough(
    name, spectrum, targets
):
    """Terms whose scales lie so far apart that no number came out: Chernoff's bound is taken. The
    law of L, simulated, says how much is enough."""
    with use_kernels(name):
        pair = GaussianPair.from_spectrum(*spectrum)
        value = pair.delta([*np.linspace(0, 9000, 19), 2618.6165977193787, 18598.08508063169])
        enough = [float(pair.epsilon(target)) for target in targets]
    assert not np.isnan(value).any()
    rng, (excess, shift, *dof) = np.random.default_rng(0), spectrum
    kappa, c2 = 1 + np.array(excess), np.broadcast_to(np.array(shift, float), len(excess))
    m = np.broadcast_to(np.array(dof[0] if dof else 1.0), len(excess))
    # L under P, by term: (kappa - 1)/2 z'z + kappa c z + kappa c^2/2 - m/2 log kappa
    first = rng.normal(size=(40_000, len(excess))) if (c2 > 0).any() else 0.0
    squares = rng.chisquare(m, (40_000, len(excess))) if not (c2 > 0).any() else first**2
    loss = 0.5 * np.array(excess) * squares + kappa * np.sqrt(c2) * first
    loss = (loss + 0.5 * kappa * c2 - 0.5 * m * np.log(kappa)).sum(1)
    for target, epsilon in zip(targets, enough, strict=True):
        true = np.mean(-np.expm1(np.minimum(epsilon - loss, 0)))
        assert true <= target + 6 * math.sqrt(0.25 / 40_000)


@pytest.mark.parametrize(
    ("excess", "shift", "dof", "epsilon", "truth"),
    [
        (
            [-0.009128112594783338, -8.930647965245304e-07],
            0,
            [84723.94915601896, 108.69473695859766],
            -42.17610602232903,
            1 - 2.0**-53,
        ),
        (
            [5.476473128831259e-10, 0.3944154378233862],
            [5.054184342568605e-32, 7.068987256460094e-30],
            [1174.1323296029298, 0.01325073358199582],
            0.0,
            0.0021246560784818277669,
        ),
    ],
)
@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_next_to_one_and_elsewhere_delta_is_not_below(name, excess, shift, dof, epsilon, truth):
    """Truths by a contour integral of 500 bits."""
    with use_kernels(name):
        assert GaussianPair.from_spectrum(excess, shift, dof).delta(epsilon) >= truth


def test_a_contour_without_a_number_leaves_chernoffs_bound():
    pair, silent = (GaussianPair.from_spectrum([0.5, 3.0], [1.0, 0.2]) for _ in range(2))

    class Silent:
        cumulants = silent._table.cumulants

        def hockey_sticks(self, _epsilon, out, _threads):
            out[:] = math.nan
            out[:, 2] = 0.05

    silent._table = Silent()
    points = np.array([0.0, 0.5, 2.0, 30.0])
    assert (silent.delta(points) >= pair.delta(points)).all() and silent.delta(30.0) < 1
    for target in (0.5, 1e-3, 1e-12):
        assert math.inf > silent.epsilon(target) >= pair.epsilon(target)
