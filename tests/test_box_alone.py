"""From a box alone, on tables that people have: units, missing cells, few rows, intervals."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from ellipsum import Ellipsoid, PrivateMean, PrivateSum, calibrate
from ellipsum.adaptive import interval, rounds
from ellipsum.adaptive.cells import cells_sensitivity, read_cells
from ellipsum.adaptive.domain import make_domain
from ellipsum.adaptive.passes import Passes
from ellipsum.guarantee import Neighbors
from ellipsum.units import error_unit

pytestmark = pytest.mark.usefixtures("same_noise_everywhere")

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
MU = 1 / calibrate.noise_multiplier(1.0, 1e-6)


def exact_steps(monkeypatch, rows, half, error):
    """The integers of a plan without noise."""
    steps = []
    monkeypatch.setattr(
        rounds._Run, "_noisy", lambda run, exact, *a: steps.append(exact) or exact.astype(object)
    )
    domain = make_domain(-half, half, None, None, error=error)
    rounds.run(rows, domain, MU, "replace", "mean", bytes(32))
    monkeypatch.undo()
    return steps


# ---- units -----------------------------------------------------------------------------------


def test_units_of_the_columns_change_no_integer_of_a_plan_in_box_widths(monkeypatch):
    rows = np.random.default_rng(0).normal(2, 1, size=(2000, 4))
    unit, half = 2.0 ** np.array([-20, 0, 7, 20]), np.full(4, 50.0)
    plain = exact_steps(monkeypatch, rows, half, "box")
    for error, same in (("box", True), (1 / unit, True), ("absolute", False)):
        other = exact_steps(monkeypatch, rows * unit, half * unit, error)
        alike = len(other) == len(plain)
        alike = alike and all((a == b).all() for a, b in zip(plain, other, strict=True))
        assert alike == same, error
    # where the widths are equal, box widths are the data's own unit
    absolute = exact_steps(monkeypatch, rows, half, "absolute")
    assert all((a == b).all() for a, b in zip(plain, absolute, strict=True))


def test_columns_of_a_millionth_of_their_box_are_found_where_errors_are_relative():
    """bench/narrow_columns.py has more of it; by box widths they are thousands of times off."""
    n, d, half = 5000, 6, np.full(6, 20.0)
    sigma = np.where(np.arange(d) < 3, 2e-5, 1.0)
    mechanism = PrivateMean(lower=-half, upper=half, error="relative", **BUDGET)
    errors = []
    for seed in range(4):
        rng = np.random.default_rng([seed, 7])
        rows = rng.uniform(-10, 10, d) + sigma * rng.standard_normal((n, d))
        errors.append((mechanism(rows, seed=seed).value - rows.mean(axis=0)) / sigma)
    oracle = 2 * 4.7 / (n * MU)  # 4.7: what one Gaussian row in a thousand exceeds
    assert (np.sqrt(np.mean(np.square(errors), axis=0)) < 20 * oracle).all()


def test_a_box_region_shares_its_noise_by_its_widths():
    lower, upper = np.zeros(3), np.array([1e-6, 1.0, 1e6])
    noise = PrivateMean(Ellipsoid.box(lower, upper), **BUDGET).noise_sd(100) / upper
    np.testing.assert_allclose(noise, noise[0], rtol=1e-6)
    absolute = PrivateMean(Ellipsoid.box(lower, upper, error="absolute"), **BUDGET)
    assert absolute.noise_sd(100)[0] / upper[0] > 100 * noise[0]


def test_units_that_cannot_be_are_one_clear_sentence():
    np.testing.assert_array_equal(error_unit([1.0, 2.0, 4.0], 3), [1.0, 0.5, 0.25])
    cases = [("widths", "error must be"), ("relative", "needs sigma"), ([1.0, 0.0, 1.0], "above 0")]
    for error, phrase in cases:
        with pytest.raises(ValueError, match=phrase):
            error_unit(error, 3, box=np.ones(3))


# ---- cells that are missing, rows outside ----------------------------------------------------


def test_a_row_of_holes_and_a_full_one_move_the_cells_by_their_sensitivity():
    full, empty = (Passes(row, 4).cells() for row in (np.ones((1, 4)), np.full((1, 4), np.nan)))
    assert np.linalg.norm(full - empty) == pytest.approx(math.sqrt(5), rel=1e-12)
    assert cells_sensitivity(4, Neighbors.REPLACE) >= math.sqrt(5)
    assert np.linalg.norm(full) <= cells_sensitivity(4, Neighbors.ADD_REMOVE)


def test_shares_of_cells_are_drawn_together_where_only_noise_tells_them_apart():
    rng = np.random.default_rng(0)
    noisy = np.append(900 + 50 * rng.standard_normal(40), 0.0)
    cells = read_cells(noisy.astype(object), 1000, 50.0)
    assert np.abs(cells.present - 0.9).max() < 0.03
    whole = read_cells(np.append(np.full(40, 999), 0).astype(object), 1000, 50.0)
    assert (whole.present == 1).all() and whole.empty == 0


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_holes_neither_shrink_radii_nor_drag_centres(epsilon):
    rng, n, d = np.random.default_rng(2), 3000, 3
    rows = rng.normal(2, 1, size=(n, d))
    holes = np.where(rng.random((n, d)) < 0.1, np.nan, rows)
    mechanism = PrivateMean(lower=[-5] * d, upper=[5] * d, epsilon=epsilon, delta=1e-6)
    error = [
        np.sqrt(
            np.mean([(mechanism(x, seed=s).value - np.nanmean(x, axis=0)) ** 2 for s in range(12)])
        )
        for x in (rows, holes)
    ]
    assert error[1] < 1.5 * error[0] + 1e-4
    released = mechanism(holes, seed=1)
    assert np.abs(released.present_share - 0.9).max() < 0.1


def test_rows_outside_the_box_count_as_moved_into_it(monkeypatch):
    rng, half = np.random.default_rng(3), np.full(3, 5.0)
    rows = rng.normal(2, 6, size=(500, 3))
    outside = exact_steps(monkeypatch, rows, half, "box")
    inside = exact_steps(monkeypatch, np.clip(rows, -half, half), half, "box")
    assert all((a == b).all() for a, b in zip(outside, inside, strict=True))


# ---- few rows, and what intervals cover ------------------------------------------------------


def test_an_infeasible_plan_says_so_everywhere():
    release = PrivateMean(lower=[50, 0], upper=[70, 1], **BUDGET)(np.full((2, 2), 60.0), seed=1)
    assert release.plan.infeasible and np.isinf(release.sd).all()
    lower, upper = release.confidence_interval()
    assert lower.tolist() == [50, 0] and upper.tolist() == [70, 1]
    told = json.loads(json.dumps(release.to_dict(), allow_nan=False))
    assert told["sd"] == [None, None] and told["clip_loss"] == [None, None]
    assert any("too few rows" in caveat for caveat in told["caveats"])
    assert "no estimate" in str(release)


@pytest.mark.parametrize("law", ["gaussian", "heavy zeros", "far mixture"])
def test_intervals_of_few_rows_cover(law):
    """Seeded: 20 runs at each number of rows; 95 % intervals that hold miss seven with 2e-5."""
    draw = {
        "gaussian": lambda rng, shape: rng.normal(2, 1, shape),
        "heavy zeros": lambda rng, shape: np.where(
            rng.random(shape) < 0.85, 0, rng.lognormal(0, 1, shape)
        ),
        "far mixture": lambda rng, shape: np.where(rng.random(shape) < 0.7, -0.6, 1.4),
    }[law]
    mechanism = PrivateMean(lower=[-5] * 2, upper=[5] * 2, **BUDGET)
    for n in (10, 30, 100, 300):
        missed = np.zeros(2)
        for seed in range(20):
            rows = draw(np.random.default_rng([seed, n]), (n, 2))
            lower, upper = mechanism(rows, seed=seed).confidence_interval()
            mean = np.clip(rows, -5, 5).mean(axis=0)
            missed += (mean < lower) | (mean > upper)
        assert (missed < 7).all(), n


def test_an_interval_is_of_the_noise_the_rows_or_the_population():
    rows = np.random.default_rng(4).normal(2, 1, size=(20_000, 2))
    release = PrivateMean(lower=[-50] * 2, upper=[50] * 2, epsilon=10, delta=1e-6)(rows, seed=1)
    width = {of: np.ptp(release.confidence_interval(of=of), axis=0) for of in ("noise", "rows")}
    population = np.ptp(release.confidence_interval(of="population"), axis=0)
    assert (width["noise"] < width["rows"]).all() and (width["rows"] < population).all()
    assert (population > 2 * 1.9 / math.sqrt(20_000)).all()
    with pytest.raises(ValueError, match="of must be"):
        release.confidence_interval(of="everything")
    given = PrivateMean(Ellipsoid.ball(5.0, d=2), **BUDGET)(rows, seed=1)
    np.testing.assert_array_equal(
        given.confidence_interval(), given.confidence_interval(of="noise")
    )
    with pytest.raises(ValueError, match="needs a spread"):
        given.confidence_interval(of="population")


def test_a_mean_from_a_box_is_one_of_the_present_cells_under_either_name():
    rng = np.random.default_rng(8)
    rows = np.where(rng.random((4000, 2)) < 0.3, np.nan, rng.normal(3.0, 1.0, (4000, 2)))
    known = {"lower": [-5, -5], "upper": [5, 5], "mu": 2.0}
    either = [PrivateMean(**known, missing=how)(rows, seed=1) for how in ("center", "ignore")]
    np.testing.assert_array_equal(either[0].value, either[1].value)
    assert np.abs(either[0].value - 3.0).max() < 0.3  # 2.1 where holes count as the box's centre


@pytest.mark.parametrize(
    ("n", "d", "missing"), [(100, 1, [0.5]), (200, 1, [0.7]), (3000, 3, [0.9, 0, 0])]
)
def test_intervals_hold_where_more_cells_are_missing_than_the_noise_shows(n, d, missing):
    """Rows at the end of the box, as far from its centre as they can be; seeded."""
    known = {} if d == 1 else {"covariance": 0.09 * (0.9 + 0.1 * np.eye(d))}  # axes mix columns
    mechanism = PrivateMean(lower=[-20] * d, upper=[20] * d, **BUDGET, **known)
    missed = np.zeros(d)
    for seed in range(24):
        rng = np.random.default_rng([seed, n])
        rows = rng.normal(20, 0.3, (n, d))
        rows[rng.random((n, d)) < missing] = np.nan
        lower, upper = mechanism(rows, seed=seed).confidence_interval()
        mean = np.nanmean(np.clip(rows, -20, 20), axis=0)
        missed += (mean < lower) | (mean > upper)
    assert (missed <= 4).all()


def test_a_share_of_cells_may_be_anything_that_its_noise_allows():
    cells = read_cells(np.array([400, 990, 900, 0], dtype=object), 1000, 250.0)
    least, most = cells.inverse(2.0, True, 1000)
    np.testing.assert_allclose(most, [1000, 1 / 0.49, 2.5])  # no share below one row of them
    np.testing.assert_allclose(least, [1 / 0.9, 1, 1])
    assert cells.inverse(2.0, False, 1000)[0][1] == pytest.approx(1 / 1.49)  # n too low by half
    assert (cells.too_few(2.0, 1000) > 1).all()
    whole = read_cells(np.array([1000, 1000, 0], dtype=object), 1000, 1e-9)
    assert (
        np.abs(np.array([*whole.inverse(2.0, True, 1000), whole.too_few(2.0, 1000)]) - 1).max()
        < 1e-9
    )


# ---- what is said ----------------------------------------------------------------------------


def test_a_sum_says_that_its_missing_cells_count_as_the_mean():
    rows = np.random.default_rng(0).normal(5, 1, size=(4000, 2))
    rows[:1000, 1] = np.nan
    box = {"lower": [-10, -10], "upper": [20, 20], "epsilon": 8.0, "delta": 1e-6}
    total, mean = (kind(**box)(rows, seed=1) for kind in (PrivateSum, PrivateMean))
    assert "each counts as the mean of the present ones" in str(total)
    assert "the value is the mean of the present ones" in str(mean)
    assert abs(total.value[1] - 4000 * np.nanmean(rows[:, 1])) < 400  # not the 15,000 present


def test_error_beside_a_region_is_refused_by_its_name():
    with pytest.raises(ValueError, match="error goes with a box or ball alone"):
        PrivateMean(Ellipsoid.ball(1.0, [0.0, 0.0]), mu=1.0, error="relative")


def test_a_column_of_which_no_cell_is_seen_says_so():
    rows = np.random.default_rng(0).normal(5, 1, size=(4000, 2))
    box = {"lower": [-10, -10], "upper": [20, 20], **BUDGET}
    rows[:1000, 0] = np.nan
    assert "told from none" not in str(PrivateMean(**box)(rows, seed=1))
    rows[:, 0] = np.nan
    release = PrivateMean(**box)(rows, seed=1)
    few = "too few present cells in 1 of 2 columns to be told from none"
    assert f"{few} ([0]): nothing is known" in str(release)
    assert f"{few} (age): nothing is known" in release.named(["age", "height"]).caveats[-1]
    assert (release.confidence_interval()[0][0], release.confidence_interval()[1][0]) == (-10, 20)


def test_noise_that_looks_like_rows_far_out_costs_the_value_little():
    """One release in some thousand has such noise: rounds before a region that had to
    grow count where its mean is theirs, and do not where it shows what they lost."""
    release = PrivateMean(lower=[-50.0] * 4, upper=[50.0] * 4, **BUDGET)(
        np.random.default_rng(0).normal(5, 1, size=(20_000, 4)), seed=0
    )
    *early, last = [each for each in release._outcome.rounds if not each.tail.coarse]
    half = np.full(4, 50.0)
    usual, sd = interval.answer([*early, last], half)
    tail = dataclasses.replace(last.tail, radius=30 * last.tail.radius)
    wide = dataclasses.replace(last, mean=early[-1].mean, sd=30 * last.sd, tail=tail)
    mean, kept = interval.answer([*early, wide], half)
    assert (kept < 5 * sd).all() and (np.abs(mean - usual) < 20 * sd).all()
    # its mean lies elsewhere: rows that the rounds before have clipped
    moved = dataclasses.replace(wide, mean=wide.mean + 3 * wide.sd)
    mean, noise = interval.answer([*early, moved], half)
    np.testing.assert_allclose(mean, moved.mean, rtol=1e-3)
    assert (noise > 20 * sd).all()
