"""The mechanisms: exact under the noise, calibrated, and silent about the rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ellipsum import (
    Ellipsoid,
    ExactSum,
    GaussianGuarantee,
    PrivateMean,
    PrivateSum,
    SumRelease,
    calibrate,
)
from ellipsum.sum_release import MISSING_CENTER, NoisySum
from regions import make_regions

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
KEY = bytes(range(32))


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_the_released_integers_minus_their_noise_are_the_exact_sum(region, rows, neighbors):
    run, total = PrivateSum(region, **BUDGET, neighbors=neighbors), ExactSum(region).add(rows)
    release = run(rows, seed=KEY)
    assert (release.integers - run.noise_of(total, KEY) == total.integers()).all()


def test_the_released_sum_minus_its_noise_is_the_clipped_sum_in_data_units(region, rows):
    run = PrivateSum(region, **BUDGET)
    release, drawn = run(rows, seed=KEY), run.noise_of(ExactSum(region).add(rows), KEY)
    shift = rows - region.center
    scale = region.scale.matrix() if region.kind == "low-rank" else region.scale
    y = shift * scale if scale.ndim == 1 else shift @ scale.T
    if region.kind == "box":
        limit = region.kernel_arguments()[3] * region.grid
        y = np.clip(y, -limit, limit)
    else:
        norm = np.linalg.norm(y, axis=1, keepdims=True)
        y = y * np.minimum(1, region.clip_norm / norm)
    clipped = len(rows) * region.center + region.unscale(y.sum(0))
    got = release.value - region.unscale(drawn * region.grid)
    slack = len(rows) * np.abs(region.unscale(np.eye(region.d))).sum(0) * region.grid
    assert (np.abs(got - clipped) <= slack).all()


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", [PrivateSum, PrivateMean])
def test_the_noise_levels_add_up_to_the_budget(region, neighbors, mechanism):
    made = mechanism(region, **BUDGET, neighbors=neighbors)
    release = made(np.zeros((5, 13)), seed=1)
    multiplier = calibrate.noise_multiplier(1.0, 1e-6)
    used = (release.parameters["sensitivity"] / region.grid / release.parameters["sum_sigma"]) ** 2
    if release.parameters["count_sigma"] is not None:
        used += release.parameters["count_sigma"] ** -2
    assert used <= multiplier**-2
    assert used >= multiplier**-2 * (1 - 1e-12)  # and nothing is given away


def test_every_way_to_state_a_budget_agrees(region, rows):
    multiplier = calibrate.noise_multiplier(1.0, 1e-6)
    sigmas = [
        PrivateSum(region, **budget)(rows, seed=1).parameters["sum_sigma"]
        for budget in (BUDGET, {"mu": 1 / multiplier}, {"rho": 0.5 / multiplier**2})
    ]
    np.testing.assert_allclose(sigmas, sigmas[0], rtol=1e-12)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", [PrivateSum, PrivateMean])
def test_releases_scatter_as_their_standard_deviations_say(neighbors, mechanism):
    rng = np.random.default_rng(5)
    region = Ellipsoid(np.array([5.0, -3.0, 40.0]), np.array([1.0, 0.2, 3.0]), 4.0)
    data = region.center + rng.normal(size=(3000, 3)) * 0.5 + [0.7, 0.0, 0.2]
    run = mechanism(region, mu=1.0, neighbors=neighbors)
    releases = [run(data, seed=s) for s in range(2000)]
    values = np.array([r.value for r in releases])
    sd = releases[0].sd
    # fixed seeds; 5.5 standard errors of a mean and of a standard deviation of 2000
    clipped = run(data, seed=0)
    exact = _noiseless(region, data, mechanism)
    off = np.abs(values.mean(0) - exact)
    assert (off < 5.5 * sd / math.sqrt(2000) + 1e-6 * np.abs(exact)).all()
    np.testing.assert_allclose(values.std(0), sd, rtol=5.5 / math.sqrt(2 * 2000))
    np.testing.assert_allclose(np.sqrt(np.diag(clipped.covariance)), sd, rtol=1e-9)
    inside = [
        (r.confidence_interval(0.9)[0] <= exact) & (exact <= r.confidence_interval(0.9)[1])
        for r in releases
    ]
    assert abs(np.mean(inside) - 0.9) < 5.5 * math.sqrt(0.09 / np.size(inside))


def _noiseless(region, data, mechanism):
    shift = region.unscale(ExactSum(region).add(data).integers().astype(float) * region.grid)
    total = len(data) * region.center + shift
    return total / len(data) if mechanism is PrivateMean else total


def test_fieller_intervals_are_unbounded_where_the_count_drowns():
    region = Ellipsoid.ball(1.0, d=2)
    release = PrivateMean(region, mu=1e-3, neighbors="add-remove")(np.ones((3, 2)), seed=1)
    lower, upper = release.confidence_interval()
    assert np.isneginf(lower).all() and np.isposinf(upper).all()


@pytest.mark.parametrize("d", [1, 16, 400])
def test_the_budget_split_is_near_the_best_wherever_the_mean_lies(d):
    share = PrivateMean(Ellipsoid.ball(1.0, d=d), mu=1.0, neighbors="add-remove").count_share

    def energy(s, place):  # noise energy of the mean, times n^2 mu^2 / C^2; |mean - c| = place C
        return d / (1 - s) + place / s

    for place in np.linspace(0, 1, 11):
        best = min(energy(s, place) for s in np.linspace(1e-6, 1 - 1e-6, 20_001))
        assert energy(share, place) <= best * (1 + 1 / (2 * math.sqrt(d) + 1)) * (1 + 1e-3)


def test_the_sum_with_a_private_count_has_the_least_noise():
    region = Ellipsoid(np.array([30.0, -4.0]), np.array([0.5, 2.0]), 3.0)
    made = PrivateSum(region, mu=1.0, neighbors="add-remove")

    def energy(s):
        widths = region.clip_norm / region.scale
        return (widths**2).sum() / (1 - s) + (region.center**2).sum() / s

    shares = np.linspace(0.001, 0.999, 999)
    assert energy(made.count_share) <= min(energy(s) for s in shares)
    assert PrivateSum(Ellipsoid.ball(1.0, d=2), mu=1.0, neighbors="add-remove").count_share == 0


def test_rows_batches_sums_and_arrow_streams_give_the_same_release(region, rows):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({f"c{j}": rows[:, j] for j in range(13)})
    run = PrivateMean(region, **BUDGET)
    expected = run(rows, seed=3).value
    for data in (
        iter(np.array_split(rows, 5)),
        (part for part in [rows[:7], rows[7:7], rows[7:]]),
        ExactSum(region).add(rows),
        table,
        table.to_reader(max_chunksize=33),
    ):
        assert (run(data, seed=3).value == expected).all()


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", [PrivateSum, PrivateMean])
def test_the_noise_is_known_before_a_row_is_read(region, neighbors, mechanism):
    run = mechanism(region, **BUDGET, neighbors=neighbors)
    centered = np.tile(region.center, (500, 1))
    said, carried = run.noise_sd(500), run(centered, seed=1).sd
    rtol = 1e-12 if neighbors == "replace" else 0.2  # a noisy count divides the mean
    np.testing.assert_allclose(said, carried, rtol=rtol)
    with pytest.raises(TypeError, match="n must be a whole number"):
        run.noise_sd(10.7)


def test_without_a_seed_every_release_is_fresh_and_private(region, rows):
    run = PrivateSum(region, **BUDGET)
    first, second = run(rows), run(rows)
    assert (first.integers != second.integers).any()
    assert first.private and first.caveats == (MISSING_CENTER,)


def test_a_seed_is_said_to_break_the_guarantee(region, rows):
    release = PrivateSum(region, **BUDGET)(rows, seed=1)
    assert not release.private
    assert "NOT PRIVATE: MADE WITH A SEED" in str(release)
    assert release.to_dict()["private"] is False


def test_nonfinite_raise_is_said_to_break_the_guarantee(region, rows):
    total = ExactSum(region, nonfinite="raise").add(rows)
    assert not PrivateSum(region, **BUDGET)(total).private


def test_a_second_release_must_be_asked_for(region, rows):
    total = ExactSum(region).add(rows)
    run = PrivateSum(region, **BUDGET)
    run(total)
    with pytest.raises(ValueError, match="spend_again=True"):
        run(total)
    with pytest.raises(ValueError, match="spend_again=True"):
        run(ExactSum.from_bytes(total.to_bytes()))
    with pytest.raises(ValueError, match="spend_again=True"):
        run(ExactSum(region).merge(total))
    assert run(total, spend_again=True).private


def test_a_refused_call_does_not_spend(region, rows):
    total = ExactSum(region).add(rows)
    with pytest.raises(TypeError, match="seed must be an int or 32 bytes"):
        PrivateSum(region, **BUDGET)(total, seed="secret")
    PrivateSum(region, **BUDGET)(total)


def test_an_empty_table_is_an_answer_where_its_emptiness_is_private(region):
    nothing = np.empty((0, 13))
    release = PrivateMean(region, **BUDGET, neighbors="add-remove")(nothing)
    assert release.value.shape == (13,)
    with pytest.raises(ValueError, match="data has no rows"):
        PrivateMean(region, **BUDGET, neighbors="replace")(nothing)


def test_values_in_the_data_never_raise_or_warn(rows):
    rows[0], rows[1, 3], rows[2], rows[3] = np.nan, np.inf, 1.7e308, 5e-324
    for region in make_regions(13).values():
        release = PrivateMean(region, **BUDGET)(rows)
        assert np.isfinite(release.value).all()


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({}, "give exactly one guarantee"),
        ({"epsilon": 1.0}, "give exactly one guarantee"),
        ({"epsilon": 1.0, "delta": 1e-6, "rho": 1.0}, "give exactly one guarantee"),
        ({"epsilon": 0.0, "delta": 1e-6}, "epsilon must be"),
        ({"epsilon": -1.0, "delta": 1e-6}, "epsilon must be"),
        ({"epsilon": math.nan, "delta": 1e-6}, "epsilon must be"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta must lie"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta must lie"),
        ({"rho": 0.0}, "rho must be"),
        ({"mu": -2.0}, "mu must be"),
        ({"mu": 1.0, "neighbors": "both"}, "neighbors must be 'replace' or 'add-remove'"),
    ],
)
def test_a_bad_budget_is_one_clear_sentence(region, options, phrase):
    with pytest.raises(ValueError, match=phrase):
        PrivateSum(region, **options)


def test_data_of_the_wrong_kind_is_one_clear_sentence(region, rows):
    run = PrivateSum(region, **BUDGET)
    other = ExactSum(Ellipsoid.ball(1.0, d=13)).add(rows)
    with pytest.raises(ValueError, match="over another ellipsoid"):
        run(other)
    with pytest.raises(ValueError, match=r"shape \(n, 13\)"):
        run(rows[:, :4])
    with pytest.raises(
        TypeError, match="ellipsoid must be an Ellipsoid or a GaussianShape, got ndarray"
    ):
        PrivateSum(np.ones(3), **BUDGET)


def test_a_call_that_fails_spends_nothing():
    region = Ellipsoid.ball(1.0, d=2)
    total = ExactSum(region).add(np.ones((3, 2)))
    with pytest.raises(ValueError, match="sigma must be at most"):
        PrivateSum(region, mu=1e-12)(total)
    assert PrivateSum(region, mu=1.0)(total).private


@pytest.mark.parametrize("center", [1e-30, 1e17, 1e200])
def test_a_far_or_tiny_centre_leaves_both_noises_finite(center):
    made = PrivateSum(Ellipsoid.ball(1.0, [center, 0.0]), mu=1.0, neighbors="add-remove")
    assert 2.0**-20 <= made.count_share <= 1 - 2.0**-20
    assert np.isfinite(made(np.zeros((5, 2))).sd).all()


def test_intervals_do_not_cancel_for_many_rows():
    region = Ellipsoid.ball(1.0, d=4)
    noisy = NoisySum(region, np.array([3 * 2**52] * 4, dtype=object), 2.0**24, 1e9, 2.0)
    release = SumRelease("mean", noisy, GaussianGuarantee("add-remove", 1.0))
    lower, upper = release.confidence_interval()
    np.testing.assert_allclose(upper - lower, 2 * 1.959964 * release.sd, rtol=1e-5)
