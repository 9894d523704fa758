"""The best region: what it predicts is what happens, and nothing in reach is better."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import region_shapes as bench
from ellipsum import (
    Ellipsoid,
    ExactSum,
    GaussianShape,
    PrivateMean,
    PrivateSum,
    QuadraticForm,
    calibrate,
)
from ellipsum.shapes import best as best_region
from ellipsum.shapes.best import Assumptions
from ellipsum.shapes.law import GaussianModel

MULTIPLIER = calibrate.noise_multiplier(1.0, 1e-6)


def simulated_losses(b, center_offset, sigma, clip_norm, n, tables, seed=0, batch=500):
    """Mean and second moment of what a clip takes from the sum of n rows, by coordinate."""
    rng = np.random.default_rng(seed)
    total, square = np.zeros(sigma.size), np.zeros(sigma.size)
    for _ in range(tables // batch):
        x = center_offset + sigma * rng.standard_normal((batch, n, sigma.size))
        norm = np.sqrt(np.sum((x * b) ** 2, axis=2, keepdims=True))
        loss = np.sum(x * np.maximum(1 - clip_norm / norm, 0), axis=1)
        total, square = total + loss.sum(0), square + (loss**2).sum(0)
    return total / tables, square / tables


@pytest.mark.parametrize("offset", [0.0, 0.4])
@pytest.mark.parametrize("p", [0.5, 0.05])
def test_the_predicted_error_is_that_of_a_simulation_within_2_percent(offset, p):
    sigma, n = np.array([2.0, 1.0, 0.5, 0.1]), 40
    region = Ellipsoid.for_gaussian(sigma, np.zeros(4), p, center_error=offset * sigma)
    told = region.predicted_error("sum", n=n, noise_multiplier=MULTIPLIER)
    mean, square = simulated_losses(
        region.scale, offset * sigma, sigma, region.clip_norm, n, tables=40_000
    )
    np.testing.assert_allclose(np.sum(told.clipping), np.sum(square - mean**2), rtol=0.02)
    np.testing.assert_allclose(
        np.sum(told.clipping + told.bias), np.sum(square), rtol=0.02, atol=1e-12
    )
    np.testing.assert_allclose(told.clipping, square - mean**2, rtol=0.05)
    assert told.clip_probability == pytest.approx(p, rel=1e-6)


@pytest.mark.parametrize("mechanism", [PrivateSum, PrivateMean])
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_the_predicted_noise_is_that_of_the_release(mechanism, neighbors):
    rng, n = np.random.default_rng(3), 200
    sigma = np.array([1.0, 3.0, 0.2])
    region = Ellipsoid.for_gaussian(sigma, None, 0.1)
    release = mechanism(region, epsilon=1, delta=1e-6, neighbors=neighbors)
    told = region.predicted_error(
        "mean" if mechanism is PrivateMean else "sum",
        n=n,
        epsilon=1,
        delta=1e-6,
        neighbors=neighbors,
    )
    if (mechanism, neighbors) == (PrivateMean, "add-remove"):  # the count takes its share
        told = told.noise / (1 - release.count_share)
    else:
        told = told.noise
    made = release(sigma * rng.standard_normal((n, 3)), seed=1)
    sd = made._noisy.shift_sds() / (made.n if made.kind == "mean" else 1)
    np.testing.assert_allclose(told, (sd * (made.n or n) / n) ** 2, rtol=3e-4)


@pytest.mark.parametrize(
    ("d", "alpha", "n"), [(4, 1.0, 1000), (5, 2.0, 100_000), (6, 0.5, 20_000), (2, 2.0, 10**6)]
)
def test_no_other_shape_is_better_by_more_than_a_tenth_of_a_percent(d, alpha, n):
    sigma = np.arange(1, d + 1.0) ** -alpha
    saved, share = bench.gain_of_a_free_shape(sigma, n)
    assert 0 <= saved < 0.001 and share < 0.1
    assumed = Assumptions(GaussianModel(sigma, np.zeros(d)), n, MULTIPLIER)
    _, ours = best_region._best_radius(best_region.best_region(assumed)[0], assumed, 1.0)
    assert best_region._best_radius(sigma**-0.5, assumed, 1.0)[1] >= ours * (1 - 1e-9)


@pytest.mark.parametrize("n", [1000, 20_000, 1_000_000])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
def test_the_best_radius_beats_every_clip_probability(n, alpha):
    sigma = np.arange(1, 17.0) ** -alpha
    assumed = Assumptions(GaussianModel(sigma, np.zeros(16)), n, MULTIPLIER)
    b, radius = best_region.best_region(assumed)
    q = np.geomspace(1 / n, 0.4, 12)
    norm2 = QuadraticForm((b * sigma) ** 2)
    radii = np.sqrt(norm2.isf(q))

    def cost(c):
        density = best_region.TailDensity((b * sigma) ** 2, np.zeros(16))
        t2, dq, f0, square = density.densities((1 / b**2)[:, None])
        f = np.maximum(1 - c / np.sqrt(t2), 0)
        noise = (2 * MULTIPLIER * c) ** 2 * np.sum(b**-2.0)
        loss = n * (f**2 * dq) @ square[:, 0]
        return noise + loss + n * (n - 1) * ((f * dq) @ f0) * ((f * dq) @ square[:, 0])

    ours = cost(radius)
    assert all(ours <= cost(c) * 1.002 for c in radii)
    assert cost(radii[0]) > 1.02 * ours  # p = 1/n, the papers' choice, loses


def test_counted_losses_bound_those_of_skewed_rows():
    rng, sigma, n = np.random.default_rng(2), np.array([1.0, 0.5, 0.25]), 2000
    region = Ellipsoid.for_gaussian(sigma, n=n, noise_multiplier=MULTIPLIER)
    x = sigma * (rng.exponential(size=(400_000, 3)) - 1)
    f = np.maximum(1 - region.clip_norm / np.linalg.norm(x * region.scale, axis=1), 0)
    bias2 = np.sum(np.mean(f[:, None] * x, axis=0) ** 2)
    assert bias2 <= np.mean(f) * np.mean(f * np.sum(x**2, axis=1))
    assert bias2 > 0


@pytest.mark.parametrize("n", [2, 10, 100])
def test_with_few_rows_at_most_half_of_them_are_clipped(n):
    region = Ellipsoid.for_gaussian(np.ones(20), n=n, epsilon=0.1, delta=1e-6)
    assert region.predicted_error().clip_probability <= 0.5
    assert region.clip_norm > 0.5 * math.sqrt(np.sum(region.scale**2))


def test_a_number_keeps_its_meaning():
    sigma = np.array([1.0, 4.0])
    region = Ellipsoid.for_gaussian(sigma, clip_probability=0.03)
    np.testing.assert_allclose(region.scale, 1 / np.sqrt(sigma * 5), rtol=2**-23)
    norm2 = QuadraticForm(sigma / np.sum(sigma))
    assert norm2.sf(region.clip_norm**2) == pytest.approx(0.03)


def test_the_mechanism_completes_a_shape_where_n_is_public():
    sigma, rows = np.array([1.0, 0.1]), np.random.default_rng(0).normal(size=(5000, 2))
    shape = GaussianShape(sigma)
    known = Ellipsoid.for_gaussian(sigma, n=5000, epsilon=1, delta=1e-6)
    assert shape.resolve(5000, epsilon=1, delta=1e-6) == known
    mean = PrivateMean(shape, epsilon=1, delta=1e-6)
    assert mean(rows, seed=1).parameters["clip_norm"] == known.clip_norm
    np.testing.assert_array_equal(mean.noise_sd(5000), mean(rows, seed=1).sd)
    assert mean.region_for(5000) == known
    at_hand = Ellipsoid.for_gaussian(sigma, clip_probability=0.01)
    assert Ellipsoid.for_gaussian(sigma) == shape.at(0.01) == at_hand


def test_no_region_takes_the_place_of_the_best_one_without_a_word():
    """What cannot be counted before it is read, and a private n, are refused."""
    sigma, rows = np.array([1.0, 0.1]), np.random.default_rng(0).normal(size=(5000, 2))
    shape = GaussianShape(sigma)
    mean = PrivateMean(shape, epsilon=1, delta=1e-6)
    reader = pa.table({"a": rows[:, 0], "b": rows[:, 1]}).to_reader()
    for stream in (iter([rows]), (batch for batch in [rows]), reader, [reader]):
        with pytest.raises(ValueError, match="cannot be counted before they are read"):
            mean(stream)
    with pytest.raises(AttributeError, match="region_for"):
        _ = mean.ellipsoid
    with pytest.raises(ValueError, match="add-remove calls private"):
        PrivateMean(shape, epsilon=1, delta=1e-6, neighbors="add-remove")
    with pytest.raises(ValueError, match="another ellipsoid: use region_for"):
        mean(ExactSum(shape.at()).add(rows))
    total = ExactSum(mean.region_for(5000)).add(rows)
    assert mean(total).parameters["clip_norm"] == mean(rows).parameters["clip_norm"]
    assert PrivateMean(mean.region_for(5000), mu=1)(iter([rows])).n == 5000


def test_a_region_does_not_change_when_a_mechanism_sees_it():
    rows, region = np.random.default_rng(0).normal(size=(5000, 2)), Ellipsoid.for_gaussian([1, 0.1])
    release = PrivateMean(region, epsilon=1, delta=1e-6)(rows)
    assert release.parameters["clip_norm"] == region.clip_norm


def test_relative_errors_are_absolute_ones_in_units_of_the_deviations():
    sigma, center = np.array([10.0, 0.1, 3.0]), np.array([5.0, 1.0, -2.0])
    known = {"n": 4000, "noise_multiplier": MULTIPLIER}
    relative = GaussianShape(sigma, center, error="relative").resolve(**known)
    plain = GaussianShape(np.ones(3)).resolve(**known)
    np.testing.assert_allclose(relative.scale * sigma, plain.scale, rtol=1e-7)
    assert relative.clip_norm == pytest.approx(plain.clip_norm)
    covariance = np.outer(sigma, sigma) * (0.5 + 0.5 * np.eye(3))
    given = Ellipsoid.for_gaussian(sigma, center, error="relative", **known)
    assert given == relative and given == Ellipsoid.for_gaussian(
        sigma, center, error=1 / sigma, **known
    )
    turned = GaussianShape.for_covariance(covariance, center, error="relative").resolve(**known)
    own = GaussianShape.for_covariance(covariance / np.outer(sigma, sigma)).resolve(**known)
    np.testing.assert_allclose(turned.scale * sigma, own.scale, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("correlated", [False, True])
def test_a_prediction_is_in_the_data_s_units_however_errors_are_weighed(correlated):
    """One region's prediction is the same whether its model was measured in a unit or not."""
    sigma = np.array([10.0, 0.1, 3.0])
    covariance = np.outer(sigma, sigma) * (0.5 * correlated + (1 - 0.5 * correlated) * np.eye(3))
    known = {"n": 4000, "noise_multiplier": MULTIPLIER}
    make = Ellipsoid.for_covariance if correlated else Ellipsoid.for_gaussian
    region = make(covariance if correlated else sigma, error="relative", **known)
    told = region.predicted_error()
    release = PrivateMean(region, mu=1 / MULTIPLIER)(np.zeros((4000, 3)))
    np.testing.assert_allclose(np.sqrt(told.noise), release.sd, rtol=1e-4)
    drawn = np.random.default_rng(5).multivariate_normal(np.zeros(3), covariance, 400_000)
    y = drawn @ region.scale.T if correlated else drawn * region.scale
    outside = 1 - np.minimum(1, region.clip_norm / np.linalg.norm(y, axis=1))
    lost = np.mean((outside[:, None] * drawn) ** 2, axis=0) / 4000
    np.testing.assert_allclose(told.clipping, lost, rtol=0.1)  # 8 sd of the draws, at least


@pytest.mark.parametrize("diagonal", [False, True])
def test_public_rows_in_blocks_are_the_rows_as_a_whole(diagonal):
    public = np.random.default_rng(8).normal(3, [1, 20, 0.1], size=(50, 3))
    parts = np.array_split(public, [1, 17, 40])
    whole = GaussianShape.for_sample(public, diagonal=diagonal).at()
    blocks = GaussianShape.for_sample(lambda: iter(parts), diagonal=diagonal, d=3).at()
    np.testing.assert_allclose(blocks.scale, whole.scale, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(blocks.center, whole.center, rtol=1e-12)
    np.testing.assert_allclose(whole.scale, Ellipsoid.for_sample(public, diagonal=diagonal).scale)


def test_what_is_missing_is_said():
    with pytest.raises(ValueError, match="give n"):
        Ellipsoid.for_gaussian([1.0]).predicted_error()
    with pytest.raises(ValueError, match="give n"):
        Ellipsoid.for_gaussian([1.0], n=10)
    with pytest.raises(ValueError, match="epsilon and delta together"):
        Ellipsoid.for_gaussian([1.0], n=10, epsilon=1)
    with pytest.raises(ValueError, match="made by for_gaussian"):
        Ellipsoid.ball(1.0, d=2).predicted_error(n=10, noise_multiplier=1)
    with pytest.raises(ValueError, match="hand a mechanism a GaussianShape"):
        Ellipsoid.for_gaussian([1.0], clip_probability="best")
    with pytest.raises(ValueError, match="clip_probability must be 'best'"):
        Ellipsoid.for_gaussian([1.0], clip_probability="good")


def turned(d, rho, rng):
    sd = 1 / np.arange(1, d + 1.0)
    return np.outer(sd, sd) * ((1 - rho) * np.eye(d) + rho)


def test_a_covariance_is_the_same_in_its_eigenbasis():
    rng = np.random.default_rng(4)
    covariance = turned(6, 0.7, rng)
    variance, basis = np.linalg.eigh(covariance)
    error = 0.1 * np.sqrt(np.diag(covariance))
    matrix = Ellipsoid.for_covariance(covariance, n=5000, noise_multiplier=MULTIPLIER)
    along = Ellipsoid.for_gaussian(np.sqrt(variance), n=5000, noise_multiplier=MULTIPLIER)
    told = matrix.predicted_error()
    assert told.total == pytest.approx(along.predicted_error().total, rel=1e-5)
    np.testing.assert_allclose(told.noise, basis**2 @ along.predicted_error().noise, rtol=1e-5)
    shifted = Ellipsoid.for_covariance(
        covariance, None, 0.2, center_error=error, n=5000, noise_multiplier=MULTIPLIER
    )
    assert np.sum(shifted.predicted_error().bias) > 0


def test_correlations_are_worth_their_matrix():
    rng = np.random.default_rng(4)
    covariance = turned(12, 0.95, rng)
    known = {"n": 5000, "noise_multiplier": MULTIPLIER}
    matrix = Ellipsoid.for_covariance(covariance, **known).predicted_error()
    diagonal = Ellipsoid.for_gaussian(np.sqrt(np.diag(covariance)), **known).predicted_error()
    assert np.sum(diagonal.noise) > 1.5 * np.sum(matrix.noise)


@pytest.mark.parametrize("d", [20, 60])
@pytest.mark.parametrize("table", list(bench.covariances(2, np.random.default_rng(0))))
def test_the_shape_of_twice_d_rows_is_nearly_the_best_their_eigenvectors_allow(d, table):
    covariance = bench.covariances(d, np.random.default_rng(1))[table]
    cost, least = bench.sample_costs(covariance, trials=10)
    assert 0 <= least <= cost < least + 0.03
    assert cost < {"independent": 0.02, "correlations 0.6": 0.03}.get(table, 0.11)


def test_columns_that_repeat_each_other_leave_a_region():
    rows = np.random.default_rng(3).standard_normal((60, 24))
    rows[:, 1] = rows[:, 0]
    region = Ellipsoid.for_sample(rows, n=1000, epsilon=1, delta=1e-6)
    assert np.isfinite(region.scale).all()


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_a_public_sample_of_twice_d_rows_costs_little(rho):
    rng, d, n = np.random.default_rng(5), 20, 4000
    covariance = turned(d, rho, rng)
    root = np.linalg.cholesky(covariance)
    best = Ellipsoid.for_covariance(covariance, n=n, noise_multiplier=MULTIPLIER)
    target, rows = best.predicted_error().total, rng.standard_normal((n, d)) @ root.T
    costs = []
    for _ in range(8):
        public = rng.standard_normal((2 * d, d)) @ root.T
        region = Ellipsoid.for_sample(public, n=n, noise_multiplier=MULTIPLIER)
        inverse = np.linalg.inv(region.scale)
        y = (rows - region.center) @ region.scale.T
        f = np.maximum(1 - region.clip_norm / np.linalg.norm(y, axis=1), 0)
        bias2 = np.sum(np.mean(f[:, None] * (rows - region.center), axis=0) ** 2)
        noise = (2 * MULTIPLIER * region.clip_norm / n) ** 2 * np.sum(inverse**2)
        costs.append((noise + bias2) / target)
    assert np.mean(costs) < 1.12


@pytest.mark.parametrize("d", [2, 3, 10])
@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_two_public_rows_are_enough_for_a_region(m, d):
    """The weight of the shrinkage came out negative, and correlations above one."""
    for seed in range(30):
        rows = np.random.default_rng(seed).normal(size=(m, d))
        assert Ellipsoid.for_sample(rows, 0.01).clip_norm > 0


def test_a_sample_of_fewer_rows_than_coordinates_still_gives_a_region():
    public = np.random.default_rng(6).normal(size=(5, 30))
    for diagonal in (False, True):
        region = Ellipsoid.for_sample(public, diagonal=diagonal, n=1000, epsilon=1, delta=1e-6)
        assert region.d == 30
        assert region.kind == ("ellipsoid" if diagonal else "matrix")
    with pytest.raises(ValueError, match="constant"):
        Ellipsoid.for_sample(np.ones((5, 2)))


@pytest.mark.parametrize("unit", [1e-200, 1e-150, 1e160])
def test_the_unit_of_the_data_does_not_matter_to_factors(unit):
    loadings = np.random.default_rng(0).normal(size=(12, 3))
    covariance = loadings @ loadings.T + np.eye(12)
    wanted = {"n": 500, "epsilon": 1, "delta": 1e-6, "rank": 2}
    plain, scaled = (Ellipsoid.for_covariance(covariance * u, **wanted) for u in (1, unit))
    noise = scaled.predicted_error().noise.sum() / unit
    assert noise == pytest.approx(plain.predicted_error().noise.sum(), rel=1e-6)
