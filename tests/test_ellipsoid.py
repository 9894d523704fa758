"""Regions: what the factories make, what they refuse, and what can be read."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from scipy import stats

from ellipsum import Ellipsoid, ExactSum, LowRankScale


def test_a_ball_keeps_its_units():
    region = Ellipsoid.ball(2.5, [1.0, -2.0])
    assert (region.kind, region.d, region.clip_norm) == ("ball", 2, 2.5)
    assert region.center.tolist() == [1.0, -2.0]
    assert region.scale.tolist() == [1.0, 1.0]


def test_a_box_has_the_scale_of_the_elliptical_mechanism():
    lower, upper = np.array([0.0, -3.0, 10.0]), np.array([1.0, 5.0, 10.5])
    region, width = Ellipsoid.box(lower, upper, error="absolute"), upper - lower
    b = np.sqrt(width / width.sum())
    np.testing.assert_allclose(region.scale, b / width, rtol=2**-24)
    assert math.isclose(np.linalg.norm(b), 1.0)
    assert math.isclose(region.sensitivity("replace"), 1.0, rel_tol=1e-6)
    energy = (region.sensitivity("replace") / region.scale) ** 2
    assert math.isclose(energy.sum(), width.sum() ** 2, rel_tol=1e-6)  # Poulsen, Theorem 3


@pytest.mark.parametrize("p", [0.5, 0.01, 1e-6, 1e-12])
def test_for_gaussian_clips_with_the_probability_asked_for(p):
    one = Ellipsoid.for_gaussian([3.0], [1.0], p)
    assert math.isclose(one.clip_norm, math.sqrt(stats.chi2.isf(p, 1)), rel_tol=1e-9)
    equal = Ellipsoid.for_gaussian(np.full(20, 0.3), None, p)  # E||y||^2 = 1
    assert math.isclose(equal.clip_norm, math.sqrt(stats.chi2.isf(p, 20) / 20), rel_tol=1e-9)


def test_for_gaussian_normalises_the_scaled_energy():
    sigma = np.array([0.1, 1.0, 7.0, 300.0])
    region = Ellipsoid.for_gaussian(sigma, np.zeros(4), 0.01)
    assert math.isclose(((region.scale * sigma) ** 2).sum(), 1.0, rel_tol=1e-6)
    rows = np.random.default_rng(0).normal(size=(200_000, 4)) * sigma
    share = ExactSum(region).add(rows).clipped / len(rows)
    assert abs(share - 0.01) < 6 * math.sqrt(0.01 / len(rows))  # fixed seed


def test_for_covariance_is_for_gaussian_in_the_eigenbasis():
    sigma = np.array([0.5, 1.0, 4.0])
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    region = Ellipsoid.for_covariance(turn @ np.diag(sigma**2) @ turn.T, None, 0.02)
    plain = Ellipsoid.for_gaussian(sigma, None, 0.02)
    assert math.isclose(region.clip_norm, plain.clip_norm, rel_tol=1e-9)
    np.testing.assert_allclose(turn.T @ region.scale @ turn, np.diag(plain.scale), atol=1e-6)


def test_a_guess_of_the_centre_error_widens_the_radius_as_rows_need():
    sigma, miss = np.array([1.0, 2.0, 5.0]), np.array([3.0, 0.0, 4.0])
    region = Ellipsoid.for_gaussian(sigma, np.zeros(3), 0.05, center_error=miss)
    rows = miss + sigma * np.random.default_rng(2).normal(size=(100_000, 3))
    share = ExactSum(region).add(rows).clipped / len(rows)
    assert abs(share - 0.05) < 6 * math.sqrt(0.05 / len(rows))  # fixed seed


def test_scales_have_24_bits_and_differ_by_less_than_their_last():
    given = np.random.default_rng(3).uniform(0.1, 10, 50)
    region = Ellipsoid(np.zeros(50), given, 1.0)
    assert (region.scale == region.scale.astype(np.float32)).all()
    np.testing.assert_allclose(region.scale, given, rtol=2**-24)


@pytest.mark.parametrize("radius", [1e-100, 0.3, 1.0, 1.999, 1e100])
def test_the_grid_is_a_power_of_two_and_the_radius_about_2_to_the_23_of_it(radius):
    region = Ellipsoid.ball(radius, d=4)
    assert math.frexp(region.grid)[0] == 0.5
    assert 2**23 <= region.clip_norm / region.grid < 2**24


def test_a_matrix_may_lie_in_memory_as_it_likes():
    matrix, rows = np.arange(9.0).reshape(3, 3) + 5 * np.eye(3), np.eye(3)
    regions = [Ellipsoid(np.zeros(3), m, 1.0) for m in (matrix.T, matrix.T.copy())]
    sums = [ExactSum(region).add(rows).integers() for region in regions]
    assert regions[0] == regions[1] and (sums[0] == sums[1]).all()


def test_equality_is_by_what_is_summed():
    assert Ellipsoid.ball(1.0, d=3) == Ellipsoid(np.zeros(3), np.ones(3), 1.0)
    assert hash(Ellipsoid.ball(1.0, d=3)) == hash(Ellipsoid.ball(1.0, np.zeros(3)))
    assert Ellipsoid.ball(1.0, d=3) != Ellipsoid.ball(1.0, d=2)
    assert Ellipsoid.ball(1.0, d=3) != "ball"
    assert Ellipsoid([0.0], [[3.0]], 1.0) != Ellipsoid([0.0], [3.0], 1.0)  # a matrix rounds rows


def test_what_can_be_read_cannot_be_changed():
    region = Ellipsoid.ball(1.0, d=3)
    for array in (region.center, region.scale):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0


def test_later_changes_of_the_given_arrays_do_not_reach_the_region():
    center = np.zeros(3)
    region = Ellipsoid.ball(1.0, center)
    center[0] = 9.0
    assert region.center[0] == 0.0


@pytest.mark.parametrize(
    ("make", "phrase"),
    [
        (lambda: Ellipsoid.ball(0.0, d=2), "radius must be a finite number above 0"),
        (lambda: Ellipsoid.ball(math.inf, d=2), "radius must be a finite number above 0"),
        (lambda: Ellipsoid.ball(1.0), "center or d must be given"),
        (lambda: Ellipsoid.ball(1.0, d=0), "d must be at least 1"),
        (lambda: Ellipsoid.ball(1.0, [0.0, math.nan]), r"center\[1\] is nan"),
        (lambda: Ellipsoid.ball(1.0, [0.0], d=2), "center must have 2 entries"),
        (lambda: Ellipsoid.box([0.0, 1.0], [1.0, 1.0]), "upper must be above lower"),
        (lambda: Ellipsoid.box([0.0], [1.0, 2.0]), "upper must have 1 entries"),
        (lambda: Ellipsoid.box([-1e308, 0], [1e308, 1e308]), "overflows: narrow the box"),
        (lambda: Ellipsoid.for_gaussian([1.0, -1.0], None, 0.1), r"sigma\[1\] is -1.0"),
        (lambda: Ellipsoid.for_gaussian([1.0, math.nan], None, 0.1), r"sigma\[1\] is nan"),
        (lambda: Ellipsoid.for_gaussian([0.0], None, 0.1), "sigma must be finite and above 0"),
        (lambda: Ellipsoid.for_gaussian([1.0], [0.0, 1.0], 0.1), "center must have 1 entries"),
        (lambda: Ellipsoid.for_gaussian([1.0], None, 0.0), "clip_probability must lie strictly"),
        (lambda: Ellipsoid.for_gaussian([1.0], None, 1.0), "clip_probability must lie strictly"),
        (lambda: Ellipsoid.for_covariance([[1.0, 2.0]], None, 0.1), "covariance must be a square"),
        (lambda: Ellipsoid.for_covariance([[1.0, 2], [3, 4]], None, 0.1), "must be symmetric"),
        (lambda: Ellipsoid.for_covariance(np.ones((2, 2)), None, 0.1), "must be positive definite"),
        (lambda: Ellipsoid([0.0], [1e-200], 1.0), "scale must lie within"),
        (lambda: Ellipsoid([0.0, 0.0], np.ones((2, 2)), 1.0), "scale must be invertible"),
        (lambda: Ellipsoid([0, 0], [[1, 1], [1, 1 + 2**-26]], 1.0), "scale must be invertible"),
        (lambda: Ellipsoid([0.0, 0.0], np.eye(3), 1.0), "scale must be 2 x 2, like the rows"),
        (lambda: Ellipsoid.ball(1.0, d=2).sensitivity("both"), "neighbors must be 'replace' or"),
    ],
)
def test_a_bad_parameter_is_one_clear_sentence(make, phrase):
    with pytest.raises(ValueError, match=phrase):
        make()


@pytest.mark.parametrize("bad", ["1", None, [1.0, 2.0], True])
def test_a_radius_must_be_a_number(bad):
    with pytest.raises(TypeError, match="radius must be a number"):
        Ellipsoid.ball(bad, d=2)


@pytest.mark.parametrize(("d", "error"), [(2**31, ValueError), (0, ValueError), (2.0, TypeError)])
def test_a_dimension_out_of_range_is_refused_before_memory_is_asked_for(d, error):
    with pytest.raises(error, match="d must be"):
        Ellipsoid.ball(1.0, d=d)


def test_a_box_whose_columns_have_widths_too_far_apart_is_refused():
    """Below 2^-400 grid units the square of what a row lies outside by could be 0."""
    Ellipsoid.box([0.0, 0.0], [1e-220, 1e20], error="absolute")
    with pytest.raises(ValueError, match="limit is out of range"):
        Ellipsoid.box([0.0, 0.0], [1e-300, 1e120], error="absolute")


def test_a_box_whose_limits_no_grid_has_is_not_rebuilt():
    """Beyond 2^30 grid units 2^31 rows could leave 64 bits."""
    state = Ellipsoid.box([0.0, 0.0], [1.0, 2.0]).to_state()
    Ellipsoid.from_state(state)
    with pytest.raises(ValueError, match="limit is out of range"):
        Ellipsoid.from_state({**state, "limit": np.array([1.0, 2.0**31])})
    with pytest.raises(ValueError, match="limit is out of range"):
        Ellipsoid.from_state({**state, "limit": np.array([1.0, 2.0**-401])})


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_of_a_region_is_the_same_and_cannot_be_written_to(copied):
    """Its fingerprint is kept once it is made: arrays that change would belie it."""
    low_rank = LowRankScale([1.0, 2.0], [[0.5], [0.25]], [[0.5], [1.0]])
    for scale in ([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]], low_rank):
        for region in (Ellipsoid([0.5, 1.0], scale, 2.0), Ellipsoid.box([0.0, 1.0], [2.0, 5.0])):
            before = region.fingerprint()
            other = copied(region)
            assert other == region and hash(other) == hash(region)
            assert (
                other.fingerprint()
                == before
                == Ellipsoid.from_state(other.to_state()).fingerprint()
            )
            parts = other.scale
            factors = [parts.left] if isinstance(parts, LowRankScale) else [parts]
            for array in (other.center, other.to_state()["limit"], *factors):
                assert array.size == 0 or not array.flags.writeable
