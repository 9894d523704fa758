"""Where Koehler 2018 is wrong as printed, chapters 3 and 4: rate-distortion and the bottleneck.

Each test holds for the right form and fails on the printed one, which it evaluates too.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from ellipsum.records import Bottleneck, RateDistortion
from koehler_models import BETA, NOISE, A, S, covariances, lagrangian

# ---- chapter 3 -----------------------------------------------------------------------


def test_3_8_and_3_9_mean_the_variance():
    """With sigma the standard deviation, the printed a is no minimum."""
    sigma = math.sqrt(S)
    wrong_a = (BETA * sigma - 1) / (BETA * sigma)
    wrong_noise = (BETA * sigma - 1) / (BETA**2 * sigma)
    assert lagrangian(A, NOISE) < lagrangian(wrong_a, wrong_noise) - 0.01
    for a in np.linspace(0.01, 0.99, 40):
        for noise in np.linspace(0.01, 3, 40):
            assert lagrangian(A, NOISE) <= lagrangian(a, noise) + 1e-12
    channel = RateDistortion([[S]]).channel(BETA)
    assert (channel.matrix[0, 0], channel.noise[0, 0]) == pytest.approx((A, NOISE))


def test_3_1_1_and_3_2_1_a_solution_exists_for_every_beta():
    """ "iff beta sigma > 1", "iff beta sigma_i > 0": below it the minimum is to keep nothing."""
    beta = 0.5 / S
    nothing = beta / 2 * S
    grid = [
        lagrangian(a, noise, beta=beta)
        for a in np.linspace(0.01, 1, 50)
        for noise in np.geomspace(1e-3, 10, 50)
    ]
    assert min(grid) > nothing
    model = RateDistortion(np.diag([S, 0.1]))
    assert model.kept(1.0) == 1  # beta sigma_2 > 0, and yet (3.21) would be negative there
    assert (1.0 * 0.1 - 1) / (1.0 * 0.1) < 0


def test_3_19_beta_multiplies_both_traces():
    s, beta = np.array([4.0, 2.0]), 3.0
    a = 1 - 1 / (beta * s)
    noise = a / beta

    def cost(noise, weight):
        rate = np.log1p(a * a * s / noise).sum()
        return 0.5 * (rate + beta * ((1 - a) ** 2 * s).sum() + weight * noise.sum())

    for moved in (0.99 * noise, 1.01 * noise):
        assert cost(moved, beta) > cost(noise, beta)
    assert cost(1.01 * noise, 1.0) < cost(noise, 1.0)  # printed: more noise would be better


def test_3_25_is_twice_the_distortion_that_beta_belongs_to():
    """dR/dD = -beta/2 for D = E(x - t)^2; -beta holds for (3.1), which has the 1/2."""
    model, beta = RateDistortion([[S]]), 2.0
    step = 1e-5
    rate = model.rate(beta + step) - model.rate(beta - step)
    distortion = model.distortion(beta + step) - model.distortion(beta - step)
    assert rate / distortion == pytest.approx(-beta / 2, rel=1e-6)
    assert rate / (distortion / 2) == pytest.approx(-beta, rel=1e-6)


def test_3_3_pruning_needs_no_step_of_its_own():
    s = np.array([5.0, 1.0, 0.01])
    whole, pruned = RateDistortion(np.diag(s)), RateDistortion(np.diag(s[:2]))
    beta = 3.0  # above 1/s of two of them: "beta > 1/sigma_D" would ask for 100
    assert whole.kept(beta) == pruned.kept(beta) == 2
    np.testing.assert_allclose(
        whole.channel(beta).matrix[:2, :2], pruned.channel(beta).matrix, atol=1e-15
    )
    assert whole.mu(beta=beta, radius=1.0) == pruned.mu(beta=beta, radius=1.0)


# ---- chapter 4 -----------------------------------------------------------------------


def test_4_7_has_a_plus():
    x, xy, y = covariances(0)
    model = Bottleneck(x, xy, y)
    beta = 1.5 * model.critical[-1]
    a = model.channel(beta).matrix
    given = x - xy @ np.linalg.solve(y, xy.T)

    def cost(m, sign):
        def log_det(s):
            return np.linalg.slogdet(m @ s @ m.T + np.eye(len(m)))[1]

        return (1 - beta) * log_det(x) + sign * beta * log_det(given)

    rng = np.random.default_rng(1)
    moves = [a + 1e-2 * np.abs(a).max() * rng.normal(size=a.shape) for _ in range(100)]
    assert all(cost(m, +1) > cost(a, +1) for m in moves)
    assert cost(1.1 * a, -1) < cost(a, -1)  # printed: falls without end
    assert cost(1e6 * a, -1) < cost(1e3 * a, -1) < cost(a, -1)


def test_4_1_1_eigenvalues_are_one_less_the_squared_canonical_correlations():
    """Right as printed; the eigenproblem is not symmetric, and the SVD gives the same."""
    x, xy, y = covariances(2)
    given = x - xy @ np.linalg.solve(y, xy.T)
    value = np.sort(np.linalg.eigvals(given @ np.linalg.inv(x)).real)
    model = Bottleneck(x, xy, y)
    np.testing.assert_allclose(value[:2], 1 - model.correlations**2, rtol=1e-9)
    np.testing.assert_allclose(1 / (1 - value[:2]), model.critical, rtol=1e-9)
