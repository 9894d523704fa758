"""The figures' own pieces: the range of the improvement, and what clipping costs."""

import math

import numpy as np
import pytest

import poulsen_figures as figures
from poulsen_figures import Ball, Shape


@pytest.mark.parametrize("d", [10, 100])
@pytest.mark.parametrize("n", figures.ROWS)
def test_the_improvement_lies_in_one_to_d(d, n):
    # Without the factor d (the report's E_n) nothing here would be above 1.
    for alpha in np.logspace(-2, 2, 21):
        sigma = figures.zipf(d, float(alpha))
        errors = [figures.noise_error(s, 1 / n) for s in (Ball(sigma), Shape(sigma, 0.0))]
        improvement = errors[0] / errors[1]
        assert 1 - 1e-9 <= improvement <= d * (1 + 1e-9), (alpha, improvement)
        assert improvement / d <= 1 + 1e-9


def test_the_family_of_shapes_goes_from_the_ball_through_the_lemma_to_whitening():
    sigma = figures.zipf(7, 1.3)
    for tau in (-3.0, 0.0, 2.0):
        b2 = np.sqrt(tau**2 + sigma**-2) - tau
        shape = Shape(sigma, tau)
        assert shape.weights == pytest.approx(b2 * sigma**2, rel=1e-12)
        assert shape.noise == pytest.approx(np.sum(1 / b2), rel=1e-12)
    ball = Shape(sigma, -1e9)
    assert ball.weights / ball.weights[0] == pytest.approx((sigma / sigma[0]) ** 2, rel=1e-6)
    white = Shape(sigma, 1e9)
    assert white.weights == pytest.approx(np.full(7, white.weights[0]), rel=1e-6)


def test_the_best_shape_is_no_worse_than_the_lemma():
    for alpha in (0.3, 1.0, 3.0):
        sigma = figures.zipf(50, alpha)
        best = figures.noise_error(figures.best_shape(sigma, 1e-4), 1e-4)
        assert best <= figures.noise_error(Shape(sigma, 0.0), 1e-4) * (1 + 1e-9)


@pytest.mark.parametrize("make", [Ball, lambda sigma: Shape(sigma, 0.0)])
@pytest.mark.parametrize("p", [0.5, 0.1])
def test_the_clipping_error_is_that_of_a_simulation(make, p):
    sigma = figures.zipf(10, 1.0)
    shape = make(sigma)
    c2 = figures.radius2(shape, p)
    rows = sigma * np.random.default_rng(0).standard_normal((400_000, 10))
    norm2 = (rows / sigma) ** 2 @ shape.weights
    lost = np.maximum(0, 1 - np.sqrt(c2 / norm2)) ** 2 * np.sum(rows**2, axis=1)
    error = np.std(lost) / math.sqrt(len(rows))
    assert figures.clip_error(shape, sigma, c2) == pytest.approx(np.mean(lost), abs=5 * error)


def test_the_clipping_error_of_one_coordinate_has_a_closed_form():
    # E[(|Z| - C)^2; |Z| > C] = 2((1 + C^2) Phi(-C) - C phi(C))
    sigma = np.array([1.0])
    for c in (0.5, 2.0, 4.0):
        tail = 0.5 * math.erfc(c / math.sqrt(2))
        density = math.exp(-c * c / 2) / math.sqrt(2 * math.pi)
        want = 2 * ((1 + c * c) * tail - c * density)
        assert figures.clip_error(Ball(sigma), sigma, c * c) == pytest.approx(want, rel=1e-6)
