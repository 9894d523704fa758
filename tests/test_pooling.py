"""What a plan makes of many noisy means at once: where they lie together is their prior.

Deterministic: every seed is fixed.
"""

import math
import tracemalloc

import numpy as np
import pytest

from ellipsum import PrivateMean
from ellipsum.adaptive.domain import make_domain
from ellipsum.adaptive.interval import answer, averaged
from ellipsum.adaptive.outcome import Round, Tail
from ellipsum.adaptive.pooling import located

pytestmark = pytest.mark.usefixtures("same_noise_everywhere")


def box(d, width=2.0, **known):
    return make_domain(np.zeros(d), np.full(d, width), None, None, error="absolute", **known)


def rms(x):
    return math.sqrt(np.mean(np.square(x)))


def test_coordinates_that_lie_together_are_found_together():
    rng = np.random.default_rng(1)
    mean = rng.normal(-0.6, 0.1, 30)
    off = [located(mean + rng.normal(0, 0.7, 30), np.full(30, 0.7), box(30))[0] - mean]
    assert rms(off) < 0.3  # each by itself, drawn to the centre: 0.46


def test_the_units_are_half_widths():
    rng = np.random.default_rng(2)
    unit = 10.0 ** rng.uniform(-6, 6, 20)
    x, noise = rng.normal(0.4, 0.3, 20), np.full(20, 0.2)
    wide = make_domain(np.zeros(20), 2 * unit, None, None, error="absolute")
    for one, other in zip(
        located(x, noise, box(20)), located(x * unit, noise * unit, wide), strict=True
    ):
        np.testing.assert_allclose(unit * one, other, rtol=1e-9)


def test_a_law_of_many_coordinates_has_any_shape():
    rng = np.random.default_rng(3)
    mean = 0.2 * rng.choice([-1.0, 1.0], 1000)
    found, sd = located(mean + rng.normal(0, 0.1, 1000), np.full(1000, 0.1), box(1000))
    assert rms(found - mean) < 0.07  # a normal law leaves 0.089
    assert 0.8 < rms(sd) / rms(found - mean) < 1.4


@pytest.mark.parametrize("d", [10, 100, 1000, 5000])
@pytest.mark.parametrize("noise", [0.003, 0.03, 0.3])
def test_the_deviation_says_how_far_off_they_are(d, noise):
    rng = np.random.default_rng(4)
    said, off = [], []
    for _ in range(80 if d <= 100 else 5):
        mean = rng.uniform(-0.5, 0.3, d)
        found, sd = located(mean + rng.normal(0, noise, d), np.full(d, noise), box(d))
        said.append(sd), off.append(found - mean)
    assert 0.8 < rms(said) / rms(off) < 1.2
    assert rms(off) < 1.05 * noise


def test_means_far_above_their_noise_stay_where_they_are():
    rng = np.random.default_rng(5)
    x, noise = rng.uniform(-1, 1, 60), np.full(60, 1e-6)
    found, sd = located(x, noise, box(60))
    np.testing.assert_allclose(found, x, atol=2e-9)
    np.testing.assert_allclose(sd, noise, rtol=1e-3)


def test_few_coordinates_know_the_domain_alone():
    found, sd = located(np.linspace(0.5, 1.0, 7), np.ones(7), box(7))
    np.testing.assert_allclose(found, np.linspace(0.25, 0.5, 7))
    np.testing.assert_allclose(sd, math.sqrt(0.5))


def test_a_common_shift_is_found_along_the_axes_of_a_covariance_too():
    rng = np.random.default_rng(6)
    root = rng.standard_normal((20, 20))
    rotated = box(20, covariance=root @ root.T / 400 + 0.01 * np.eye(20))
    mean = rotated.basis.T @ np.full(20, -0.6)
    found, _ = located(mean + rng.normal(0, 0.7, 20), np.full(20, 0.7), rotated)
    assert rms(found - mean) < 0.3


def test_a_ball_has_no_direction_of_its_own():
    ball = make_domain(None, None, np.zeros(20), math.sqrt(20), error="absolute")
    assert ball.line is None
    x, noise = np.full(20, 0.5), np.full(20, 0.5)
    flipped = np.where(np.arange(20) % 2, 1, -1)
    for one, other in zip(located(x, noise, ball), located(flipped * x, noise, ball), strict=True):
        np.testing.assert_allclose(np.abs(one), np.abs(other))


def table():
    rng = np.random.default_rng(7)
    return np.clip(rng.normal(rng.uniform(0.1, 0.3, 30), 0.07, (569, 30)), 0, 1)


def test_few_rows_of_columns_that_lie_alike_in_their_boxes():
    rows = table()
    plan = PrivateMean(lower=np.zeros(30), upper=np.ones(30), epsilon=0.1, delta=1e-6)
    off = [plan(rows, seed=seed).value - rows.mean(axis=0) for seed in range(6)]
    assert rms(off) < 0.12  # drawn to the centre of the box: 0.22 to 0.25, the centre 0.3


def test_no_coordinate_is_drawn_further_than_its_noise_allows():
    rows = table()
    rows[:, 0] = 0.97  # far from the others
    plan = PrivateMean(lower=np.zeros(30), upper=np.ones(30), epsilon=0.3, delta=1e-6)
    release = plan(rows, seed=1)
    mean, noise = averaged(release._outcome.rounds)
    point, away = release._domain.back(mean), release._domain.unit * noise
    assert (np.abs(release.value - point) <= 1.9 * away * (1 + 1e-9)).all()


@pytest.mark.parametrize(("d", "n"), [(6, 300), (49, 3000)])
def test_no_coordinate_is_drawn_further_along_axes_that_mix_them(d, n):
    """One coordinate that lies elsewhere is a little of every axis: each of them hides it."""
    rng = np.random.default_rng(8)
    root = rng.standard_normal((d, d))
    covariance = root @ root.T / d + 0.1 * np.eye(d)
    rows = rng.standard_normal((n, d)) @ np.linalg.cholesky(covariance).T
    rows[:, 0] += 0.5 if d > 8 else 1.5
    known = {"lower": np.full(d, -20.0), "upper": np.full(d, 20.0), "covariance": covariance}
    for seed in range(4):
        release = PrivateMean(**known, epsilon=0.3, delta=1e-6)(rows, seed=seed)
        outcome, domain = release._outcome, release._domain
        mean, noise = (outcome.offset, outcome.sd / 1.9) if d < 8 else averaged(outcome.rounds)
        drawn = release.value - domain.project(domain.back(mean))
        assert (np.abs(drawn) <= 1.9 * domain.rotated(noise) * (1 + 1e-9)).all()


def test_a_coordinate_of_a_ball_may_lie_far_beyond_its_part_of_the_radius():
    ball = make_domain(None, None, np.zeros(60), math.sqrt(60), error="absolute")
    x, noise = np.full(60, 0.1), np.full(60, 0.01)
    x[0] = 5.0
    assert abs(located(x, noise, ball)[0][0] - 5) < 0.01


def test_rounds_of_wide_tables_are_compared_one_by_one():
    """Memory for each round, not for each pair of them: 20 rounds are 12.8 MB, all pairs 256."""
    d, rng = 40_000, np.random.default_rng(9)
    one = np.ones(d)
    rounds = [
        Round(rng.normal(size=d), one, one, one, 2.0**k * one, one, Tail(1.0)) for k in range(20)
    ]
    tracemalloc.start()
    answer(rounds, one)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
