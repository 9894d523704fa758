"""Where the main job's paper (Poulsen 2023) is wrong as printed: each test fails on its formula."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ellipsum import Ellipsoid, ExactSum, PrivateSum, QuadraticForm

KEY = bytes(32)


def test_algorithm_3_adds_the_centre_after_the_inverse_transform():
    """Printed: T accumulates clip(x) + centre and is divided by b as a whole."""
    sigma, center = np.array([0.5, 8.0]), np.array([100.0, -40.0])
    rows = center + sigma * np.random.default_rng(0).normal(size=(500, 2))
    region = Ellipsoid.for_gaussian(sigma, center, 1e-3)
    run, total = PrivateSum(region, mu=1.0), ExactSum(region).add(rows)
    without_noise = run(rows, seed=KEY).value - region.unscale(
        run.noise_of(total, KEY) * region.grid
    )
    scaled = total.integers().astype(float) * region.grid
    printed = (scaled + len(rows) * center) / region.scale
    np.testing.assert_allclose(without_noise, rows.sum(0), rtol=1e-3)
    assert np.abs(printed - rows.sum(0)).max() > 0.1 * np.abs(rows.sum(0)).max()


def test_section_5_needs_the_factor_d():
    """Printed: the ball's error is (2 C_n sigma_opt)^2; then the "improvement" falls below 1."""
    for sigma in ([1.0, 1.0, 1.0], [1.0, 0.1, 0.01], np.arange(1.0, 11.0) ** -2):
        sigma = np.asarray(sigma)
        ball = QuadraticForm(sigma**2).isf(1e-3)  # C_n^2
        shaped = Ellipsoid.for_gaussian(sigma, None, 1e-3)
        elliptical = shaped.clip_norm**2 * (shaped.scale**-2.0).sum()
        improvement, printed = sigma.size * ball / elliptical, ball / elliptical
        assert 1 - 1e-6 <= improvement <= sigma.size * (1 + 1e-6)
        assert printed < 1


def test_equation_10_must_not_drop_the_distance_of_the_centre():
    """Printed: ||mean - centre||^2 as a constant; it is ||(mean - centre) * b||^2."""
    sigma, miss = np.array([0.1, 10.0]), np.array([2.0, 0.0])
    rows = miss + sigma * np.random.default_rng(1).normal(size=(50_000, 2))
    printed = Ellipsoid.for_gaussian(sigma, np.zeros(2), 0.01)
    right = Ellipsoid.for_gaussian(sigma, np.zeros(2), 0.01, center_error=miss)
    shares = [ExactSum(region).add(rows).clipped / len(rows) for region in (printed, right)]
    assert shares[0] > 0.015
    assert abs(shares[1] - 0.01) < 0.003  # six standard errors, fixed seed
    same_distance = Ellipsoid.for_gaussian(sigma, np.zeros(2), 0.01, center_error=miss[::-1])
    assert same_distance.clip_norm < 0.9 * right.clip_norm  # not a constant of the distance


def test_section_3_1_radii_are_width_over_b():
    """Printed: radii b_j / Delta_j."""
    lower, upper = np.array([0.0, 0.0]), np.array([4.0, 0.25])
    region, width = Ellipsoid.box(lower, upper, error="absolute"), upper - lower
    b = np.sqrt(width / width.sum())
    reach = 2 * region.clip_norm / region.scale  # where ||scale * x|| = 2 C, axis by axis
    np.testing.assert_allclose(reach, width / b, rtol=1e-6)
    assert np.abs(reach - b / width).max() > 1


def test_the_clip_radius_of_equal_sigmas_is_a_plain_chi():
    """A second route to the radius that all of the above rest on."""
    region = Ellipsoid.for_gaussian(np.full(7, 3.0), None, 1e-9)
    np.testing.assert_allclose(region.clip_norm**2, stats.chi2.isf(1e-9, 7) / 7, rtol=1e-9)
