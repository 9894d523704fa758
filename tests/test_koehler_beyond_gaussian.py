"""Koehler 2018, chapter 7: what a mixture and moving particles cost, exactly where that can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from ellipsum import calibrate
from ellipsum.records import Channel, GaussianPair, RecordGuarantee, exponential_mechanism

GRID = np.linspace(-30, 30, 6001)


def mixture_delta(one, other, centers, sd, epsilon):
    """delta of the released t alone, t ~ sum of weight_k N(center_k, sd^2), by quadrature."""
    parts = norm.pdf(GRID, centers[:, None], sd)
    p, q = one @ parts, other @ parts
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (GRID[1] - GRID[0]))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_7_2_a_chosen_component_is_covered_twice_and_exact_by_neither(epsilon):
    """Components chosen by a channel, public centers and deviation: t alone costs at most what the
    choice costs (what follows is post-processing), and at most what Gaussian noise on points
    that far apart costs (delta is convex in both laws). It is below both."""
    rng = np.random.default_rng(0)
    below = 0
    for _ in range(15):
        centers, sd = rng.uniform(-3, 3, 4), float(rng.uniform(0.5, 4))
        records = rng.uniform(-3, 3, 5)
        channel = exponential_mechanism((records[:, None] - centers) ** 2, 0.3)
        choice = channel.delta(epsilon)
        noise = calibrate.delta(sd / np.ptp(centers), epsilon)
        weights = np.asarray(channel)
        found = max(
            mixture_delta(one, other, centers, sd, epsilon) for one in weights for other in weights
        )
        assert found <= min(choice, noise) + 1e-6
        below += found < 0.9 * min(choice, noise)
    assert below > 7


def test_7_2_a_center_in_the_unit_ball_moves_by_two():
    """ "Containing each cluster point within a unit ball" bounds a change by its diameter."""
    apart = mixture_delta(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([-1.0, 1.0]), 2, 0.5)
    assert apart == pytest.approx(calibrate.delta(2.0 / 2, 0.5), rel=1e-3)
    assert apart > 3 * calibrate.delta(2.0 / 1, 0.5)  # the radius for the diameter


def test_7_2_component_and_vector_together_are_a_composition():
    """(k, t) with the center of each component moving with x: neither part alone covers it, the
    composition does, and is reached by a choice that is randomised response."""
    pure, mu, epsilon = 1.0, 0.8, 1.5
    p = 1 / (1 + math.exp(-pure))
    choice = Channel(np.array([[p, 1 - p], [1 - p, p]]))
    joint = 0.0
    for k in (0, 1):
        one, other = np.asarray(choice)[0, k], np.asarray(choice)[1, k]
        left, right = one * norm.pdf(GRID, 0), math.exp(epsilon) * other * norm.pdf(GRID, mu)
        joint += float(np.maximum(left - right, 0).sum() * (GRID[1] - GRID[0]))
    assert joint > 2 * max(choice.delta(epsilon), calibrate.delta(1 / mu, epsilon))
    assert RecordGuarantee(0.0, pure, mu).delta(epsilon) == pytest.approx(joint, rel=1e-3)


def test_7_4_particles_that_follow_the_gradient_end_at_the_record():
    """One particle of Stein's gradient flow for d = (x - t)^2/2 and the prior N(0, 1): its law
    after k steps is Gaussian, so the pair is exact. The law that it is for costs a finite
    epsilon; the steps lead to one point for each record, and epsilon grows without end."""
    beta, step, apart, delta = 3.0, 0.05, 2.0, 1e-6
    precision = 1 + beta
    target = GaussianPair([apart * beta / precision], [1 / precision], [0.0], [1 / precision])
    wanted, seen = target.epsilon(delta), []
    for steps in (1, 20, 80):
        left = (1 - step * precision) ** steps
        mean, variance = apart * beta / precision * (1 - left), left**2
        seen.append(GaussianPair([mean], [variance], [0.0], [variance]).epsilon(delta))
    assert seen[0] < wanted < seen[1] < seen[2]
    assert seen[2] > 1e5 * wanted


def test_7_4_close_in_law_is_not_close_in_privacy():
    """Langevin steps of the same flow are Gaussian as well: the pair is exact at each, and neither
    the total variation to the target nor convergence says anything of epsilon with delta = 0: a
    law within 1e-9 of a pure one, that with this chance hands out the record."""
    beta, step, apart, delta = 3.0, 0.05, 2.0, 1e-6
    precision, mean, variance = 1 + beta, 0.0, 1.0
    for _ in range(200):
        mean = mean + step * (beta * apart - precision * mean)
        variance = (1 - step * precision) ** 2 * variance + 2 * step
    target = GaussianPair([apart * beta / precision], [1 / precision], [0.0], [1 / precision])
    reached = GaussianPair([mean], [variance], [0.0], [variance])
    assert 0.5 * target.epsilon(delta) < reached.epsilon(delta) < target.epsilon(delta)
    pure = np.array([[0.6, 0.4, 0, 0], [0.4, 0.6, 0, 0]])
    leaky = (1 - 1e-9) * pure + 1e-9 * np.eye(4)[2:]
    assert Channel(pure).epsilon() < 0.41 and Channel(leaky).epsilon() == math.inf
    assert np.abs(leaky - pure).sum(axis=1).max() < 2.1e-9
