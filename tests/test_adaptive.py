"""A mean from a box alone: what a step may change, what all of them spend, how near they come."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from boxes import BUDGET, box, gaussian_rows
from ellipsum import Ellipsoid, GaussianGuarantee, PrivateMean, PrivateSum, calibrate
from ellipsum.adaptive import rounds as adaptive
from ellipsum.adaptive.domain import Frame, make_domain
from ellipsum.adaptive.passes import Passes
from ellipsum.adaptive.release import AdaptiveRelease

pytestmark = pytest.mark.usefixtures("same_noise_everywhere")

MU = 1 / calibrate.noise_multiplier(1.0, 1e-6)


# ---- what a step may change, and spend -------------------------------------------------------


class Recorder:
    """Takes the place of the one function that makes private integers public, and answers what
    it is told to: earlier answers, or anything at all."""

    def __init__(self, answers=None, rng=None):
        self.exact, self.public, self.sensitivity, self.mu = [], [], [], []
        self.answers, self.rng = answers, rng

    def __call__(self, run, exact, sensitivity, mu):
        k = len(self.exact)
        self.exact.append(exact.astype(object))
        self.sensitivity.append(sensitivity)
        self.mu.append(mu)
        if self.answers is not None:
            answer = self.answers[k]
        elif self.rng is not None:
            answer = wild(self.rng, exact, sensitivity)
        else:
            answer = exact.astype(object)
        self.public.append(answer)
        return answer


def wild(rng, exact, sensitivity):
    """An outcome that noise could have made, however unlikely."""
    size = 10.0 ** rng.uniform(-1, 2)
    step = np.rint(size * sensitivity * rng.standard_normal(exact.size))
    return exact.astype(object) + np.array([int(s) for s in step], dtype=object)


def played(monkeypatch, data, domain, neighbors, recorder, kind="mean", mu=MU):
    monkeypatch.setattr(adaptive._Run, "_noisy", lambda *a: recorder(*a))
    adaptive.run(data, domain, mu, neighbors, kind, bytes(32))
    return recorder


STRANGERS = [0.0, 1e-300, 49.9, -50.0, 1e9, -1e300, np.inf, np.nan, "opposite", "spike", "gaps"]


def stranger(name, rows):
    if name == "opposite":
        return -3 * rows.mean(axis=0)
    if name == "gaps":
        return np.where(np.arange(rows.shape[1]) % 2, np.nan, 1e9)
    if name == "spike":
        return np.eye(rows.shape[1])[0] * 1e4
    return np.full(rows.shape[1], name)


@pytest.mark.parametrize("kind", ["mean", "sum"])
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("known", ["nothing", "sigma", "covariance", "ball", "units and holes"])
def test_no_neighbour_moves_any_step_by_more_than_its_sensitivity(
    monkeypatch, known, neighbors, kind
):
    """Whatever the earlier outcomes were: the neighbour's run is given the same ones."""
    d, n, rng = 5, 300, np.random.default_rng(1)
    sigma = np.array([3.0, 1.0, 0.3, 0.1, 2.0])
    rows = gaussian_rows(n, sigma, 7.0)
    extra = {"sigma": {"sigma": sigma}, "covariance": {"covariance": np.diag(sigma**2) + 0.005}}
    where = {"center": np.zeros(d), "radius": 80.0} if known == "ball" else box(d)
    arguments = {"lower": None, "upper": None, "center": None, "radius": None, **where}
    if known == "units and holes":
        unit = 10.0 ** np.linspace(-6, 6, d)
        rows = np.where(rng.random(rows.shape) < 0.2, np.nan, rows) * unit
        arguments |= {"lower": -50 * unit, "upper": 50 * unit}
    domain = make_domain(**arguments, **extra.get(known, {}))
    tight = 0.0
    for k, name in enumerate(STRANGERS):
        first = Recorder(rng=np.random.default_rng(k))
        played(monkeypatch, rows, domain, neighbors, first, kind)
        other = rows.copy()
        at = int(rng.integers(n))
        other[at] = stranger(name, rows)
        if neighbors == "add-remove":
            other = np.insert(rows, at, stranger(name, rows), axis=0)
        second = Recorder(answers=first.public)
        played(monkeypatch, other, domain, neighbors, second, kind)
        assert second.sensitivity == first.sensitivity
        assert second.mu == first.mu
        for a, b, bound in zip(first.exact, second.exact, first.sensitivity, strict=True):
            moved = math.sqrt(sum(int(v) ** 2 for v in a - b))
            assert moved <= bound
            tight = max(tight, moved / bound)
    assert tight > 0.6  # the search is not idle
    assert math.fsum(mu**2 for mu in first.mu) <= MU**2 * (1 + 1e-15)
    assert math.fsum(mu**2 for mu in first.mu) == pytest.approx(MU**2, rel=1e-12)


def test_the_sensitivity_of_halves_is_met_by_two_opposite_rows():
    region = Ellipsoid(np.zeros(2), np.ones(2), 1.0)
    frame = Frame(*region.kernel_arguments()[:2])
    radius = region.clip_norm / region.grid
    sums = [Passes(np.array([[x, 0.0]]), 2).halves(frame, radius) for x in (9.0, -9.0)]
    moved = np.linalg.norm((sums[0] - sums[1]).astype(float))
    assert 0.9999 < moved / adaptive.halves_sensitivity(region, "replace") <= 1


def test_noise_is_drawn_at_the_level_that_each_step_needs(monkeypatch):
    drawn = []

    def record(size, sigma, *, key):
        drawn.append((size, sigma, key))
        return np.zeros(size, np.int64)

    rows = gaussian_rows(500, np.ones(3), 2.0)
    recorder = Recorder()
    played(monkeypatch, rows, make_domain(*box(3).values(), None, None), "replace", recorder)
    monkeypatch.undo()
    monkeypatch.setattr(adaptive.noise, "rounded_gaussian", record)
    adaptive.run(rows, make_domain(*box(3).values(), None, None), MU, "replace", "mean", bytes(32))
    assert len({key for _, _, key in drawn}) == len(drawn)
    for (size, sigma, _), exact, bound, mu in zip(
        drawn, recorder.exact, recorder.sensitivity, recorder.mu, strict=True
    ):
        assert size == exact.size
        assert bound / mu <= sigma <= bound / mu * (1 + 1e-14)


# ---- what it answers -------------------------------------------------------------------------


def median_error(rows, mean, seeds=5, **known):
    mechanism = PrivateMean(**known, **BUDGET)
    return np.median([np.sum((mechanism(rows, seed=s).value - mean) ** 2) for s in range(seeds)])


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_it_comes_near_the_oracle(alpha, neighbors):
    d, n = 16, 4000
    sigma = np.arange(1, d + 1.0) ** -alpha
    mean = 10 * np.where(np.arange(d) % 2, 1.0, -1.0)
    rows = gaussian_rows(n, sigma, mean)
    oracle = Ellipsoid.for_gaussian(sigma, mean, n=n, **BUDGET).predicted_error().total
    sampled = np.sum((rows.mean(axis=0) - mean) ** 2)
    covariance = np.diag(sigma**2)
    for known in ({}, {"sigma": sigma}, {"covariance": covariance}):
        error = median_error(rows, rows.mean(axis=0), **box(d), **known)
        assert error < 2 * (oracle + sampled), known


def test_the_ball_and_the_box_find_the_same():
    rows = gaussian_rows(4000, np.ones(6), 5.0)
    ball = PrivateMean(center=np.zeros(6), radius=200.0, **BUDGET)(rows, seed=1)
    np.testing.assert_allclose(ball.value, 5.0, atol=0.15)
    assert (np.abs(ball.spread - 1) < 0.3).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [20, 200])
def test_the_answer_never_leaves_the_domain(n, seed):
    rows = np.full((n, 3), 49.9)
    mean = PrivateMean(**box(3), **BUDGET)(rows, seed=seed)
    assert (np.abs(mean.value) <= 50).all()
    lower, upper = mean.confidence_interval()
    assert (lower >= -50).all() and (upper <= 50).all()
    ball = PrivateMean(center=np.zeros(3), radius=60.0, **BUDGET)(rows, seed=seed)
    assert np.linalg.norm(ball.value) <= 60 * (1 + 1e-12)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_where_the_rows_are_too_few_the_centre_is_answered(neighbors):
    rows = gaussian_rows(40, np.ones(64), 9.0)
    mean = PrivateMean(
        lower=np.full(64, -10.0), upper=np.full(64, 20.0), neighbors=neighbors, **BUDGET
    )
    release = mean(rows, seed=1)
    assert release.plan.infeasible
    np.testing.assert_array_equal(release.value, 5.0)
    assert "too few rows" in str(release)
    assert len(release.plan.steps) == (neighbors == "add-remove")


@pytest.mark.parametrize("n", [60, 80, 100, 140, 200, 280, 400, 1000])
def test_it_is_never_worse_than_the_centre_of_the_box(n):
    """Rows near the centre are the hardest: all that is answered is noise."""
    d = 64
    errors = []
    for seed in range(40):
        offset = np.full(d, 0.5)
        rows = np.tile(offset, (n, 1))
        value = PrivateMean(**box(d, 1.0), **BUDGET)(rows, seed=seed).value
        errors.append(np.sum((value - offset) ** 2))
    assert np.mean(errors) <= np.sum(offset**2) * 1.05


def test_a_coordinate_that_is_too_small_to_be_seen_is_answered_by_its_centre():
    half = np.array([1e-6, 1.0, 1e6])
    rows = gaussian_rows(20_000, 0.01 * half, 0.5 * half)
    release = PrivateMean(lower=-half, upper=half, **BUDGET)(rows, seed=1)
    assert abs(release.value[0]) < 0.6 * half[0]
    assert (release.spread <= half).all()
    assert abs(release.value[2] / half[2] - 0.5) < 0.01


def both_kinds(rows, d):
    """One outcome of a plan, handed on as a mean and as a sum."""
    domain = make_domain(*box(d).values(), None, None)
    outcome = adaptive.run(rows, domain, MU, "replace", "mean", bytes(32))
    promise = GaussianGuarantee("replace", 1 / MU)
    return [AdaptiveRelease(kind, outcome, domain, promise) for kind in ("mean", "sum")]


def test_a_sum_is_n_times_the_mean():
    rows = gaussian_rows(3000, np.ones(3), 4.0)
    mean, total = both_kinds(rows, 3)
    np.testing.assert_allclose(total.value, 3000 * mean.value)
    np.testing.assert_allclose(total.sd, 3000 * mean.sd)
    np.testing.assert_allclose(total.clip_loss, 3000 * mean.clip_loss)
    private = PrivateSum(**box(3), neighbors="add-remove", **BUDGET)(rows, seed=1)
    assert np.abs(private.value / rows.sum(axis=0) - 1).max() < 0.05
    assert (private.sd > 4.0 / math.sqrt(private.plan.steps[0].share) / MU * 0.9).all()
    np.testing.assert_allclose(np.sqrt(np.diag(private.covariance)), private.sd)


def test_the_noise_is_as_large_as_it_says():
    rows = gaussian_rows(5000, np.array([1.0, 0.2, 3.0]), 1.0)
    releases = [PrivateMean(**box(3), **BUDGET)(rows, seed=s) for s in range(150)]
    scatter = np.std([r.value for r in releases], axis=0)
    told = np.sqrt(np.mean([r.sd**2 for r in releases], axis=0))
    assert (np.abs(scatter / told - 1) < 0.35).all()


@pytest.mark.parametrize("known", [True, False])
def test_the_tail_of_skewed_rows_is_clipped_no_closer_than_its_noise_is_worth(known):
    """Where noise is small beside the scatter of the rows, so must be what the clips take."""
    d, n, rng = 16, 20_000, np.random.default_rng(4)
    sigma = 1 / np.arange(1.0, d + 1)
    rows = 10 + sigma * (np.exp(rng.normal(size=(n, d))) - math.exp(0.5)) / 2.16
    more = {"sigma": sigma} if known else {}
    error = median_error(rows, rows.mean(axis=0), seeds=9, **box(d), **more)
    assert error < 3 * np.sum(sigma**2) / n


def test_what_the_clips_may_have_taken_is_said():
    rng, sigma = np.random.default_rng(5), np.array([1.0, 0.5, 0.25, 0.1])
    rows = 3 + sigma * (rng.exponential(size=(3000, 4)) - 1)
    mechanism = PrivateMean(**box(4), **BUDGET)
    releases = [mechanism(rows, seed=s) for s in range(80)]
    lost = np.mean([r.value for r in releases], axis=0) - rows.mean(axis=0)
    told = np.median([r.clip_loss for r in releases], axis=0)
    noise = np.median([r.sd for r in releases], axis=0) / math.sqrt(80)
    assert (np.abs(lost) < 2 * told + 5 * noise).all()
    # The others do not stand out from rows not seen.
    assert (told[:2] < np.array([0.3, 0.6]) * sigma[:2]).all()


def test_skewed_rows_cost_no_catastrophe():
    rng = np.random.default_rng(2)
    rows = np.exp(rng.normal(size=(20_000, 8))) / np.arange(1, 9)
    truth = rows.mean(axis=0)
    error = median_error(rows, truth, **box(8))
    assert error < 0.003 * np.sum(truth**2)


# ---- how it presents itself ------------------------------------------------------------------


def test_the_plan_can_be_read_before_it_runs():
    mean = PrivateMean(**box(16), **BUDGET)
    text = str(mean.plan(4000))
    assert "passes over the data" in text and "final" in text and "%" in text
    assert mean.plan(4000).rho == pytest.approx(MU**2 / 2)
    with pytest.raises(ValueError, match="n must be"):
        mean.plan(0)
    with pytest.raises(ValueError, match="one pass"):
        PrivateMean(Ellipsoid.ball(1.0, d=2), **BUDGET).plan(10)


def test_a_release_says_what_was_spent_on_what():
    rows = gaussian_rows(2000, np.ones(3), 1.0)
    release = PrivateMean(**box(3), **BUDGET)(rows, seed=1)
    assert "% on the final pass" in str(release)
    told = json.loads(json.dumps(release.to_dict()))
    assert sum(step["share"] for step in told["parameters"]["steps"]) == pytest.approx(1)
    assert told["private"] is False and told["n"] == 2000
    assert release.guarantee.mu == pytest.approx(MU)
    assert PrivateMean(**box(3), **BUDGET)(rows).private


def test_bad_domains_are_one_clear_sentence():
    one = {"lower": [0.0, 0.0], "upper": [1.0, 0.0]}
    cases = [
        (one, "upper must be above lower"),
        ({}, "give an ellipsoid, or lower and upper"),
        ({"lower": [0.0]}, "give an ellipsoid, or lower and upper"),
        ({"center": [0.0], "radius": -1.0}, "radius must be"),
        ({**box(2), "sigma": [1.0, 0.0]}, "sigma must be"),
        ({**box(2), "sigma": [1.0, 1.0], "covariance": np.eye(2)}, "not both"),
        ({**box(2), "covariance": np.eye(3)}, "covariance must be 2 x 2, like the rows"),
    ]
    for arguments, phrase in cases:
        with pytest.raises(ValueError, match=phrase):
            PrivateMean(**arguments, **BUDGET)
    with pytest.raises(ValueError, match="not both"):
        PrivateMean(Ellipsoid.ball(1.0, d=2), **box(2), **BUDGET)
    with pytest.raises(AttributeError, match="plan"):
        _ = PrivateMean(**box(2), **BUDGET).ellipsoid


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_data_are_checked_where_no_round_reads_them(neighbors):
    """Too few rows for any round: what is no table of three numbers is refused all the same."""
    mean = PrivateMean(**box(3), **BUDGET, neighbors=neighbors)
    assert mean(np.zeros((2, 3)), seed=1).plan.infeasible
    with pytest.raises(ValueError, match=r"shape \(n, 3\)"):
        mean(np.zeros((2, 7)), seed=1)
    with pytest.raises(TypeError, match="must be numeric"):
        mean(np.array([["a", "b", "c"]]), seed=1)
    with pytest.raises(TypeError, match="not numeric"):
        mean(pd.DataFrame({"x": [1.0], "y": [2.0], "z": ["word"]}), seed=1)
