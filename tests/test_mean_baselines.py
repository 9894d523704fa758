"""Each published method is near its claimed error where it is easy, and spends what it says."""

import math

import numpy as np
import pytest

import interval_coverage as coverage
import mean_baselines as published
from ellipsum import calibrate
from mean_baselines import Ledger

D, N, RHO = 16, 20_000, 0.5
SIGMA = 1 / np.arange(1, D + 1)
BOUND = 20.0
TRIALS = 20

METHODS = {
    "oracle ellipsoid": lambda x, mean, led: published.oracle_ellipsoid(led, x, mean, SIGMA, RHO),
    "oracle ball": lambda x, mean, led: published.oracle_ball(led, x, mean, SIGMA, RHO),
    "coinpress": lambda x, mean, led: published.coinpress(led, x, 1.0, 4 * BOUND, RHO, 4),
    "coinpress, one step": lambda x, mean, led: published.coinpress(led, x, 1.0, 80.0, RHO, 1),
    "shifted-clipped-mean": lambda x, mean, led: published.shifted_clipped_mean(led, x, BOUND, RHO),
    "PLAN": lambda x, mean, led: published.plan(led, x, BOUND, RHO),
}


def table(rng):
    mean = rng.choice([-5.0, 5.0], size=D)
    return mean, mean + SIGMA * rng.standard_normal((N, D))


def median_error(method):
    errors = []
    for trial in range(TRIALS):
        rng = np.random.default_rng(trial)
        mean, rows = table(rng)
        estimate = METHODS[method](rows, mean, Ledger(rng))
        errors.append(float(np.sum((estimate - mean) ** 2)))
    return float(np.median(errors))


def noise_energy(radius, scale, share=1.0):
    """Of a clipped mean with this radius and this share of the budget."""
    return (2 * radius / N) ** 2 / (2 * share * RHO) * float(np.sum(scale**-2.0))


SAMPLING = float(np.sum(SIGMA**2)) / N
ELLIPSE = 1 / np.sqrt(SIGMA * SIGMA.sum())  # E||scale (x - mean)||^2 = 1

#: method: claimed error, and how far from it the median may be (both ways). The bounds that
#: the papers prove hide constants; these are the errors of the last step with the radius of an
#: average row, times what the outermost row needs.
CLAIMS = {
    "oracle ellipsoid": (SAMPLING + noise_energy(2.0, ELLIPSE), 2.0),
    "oracle ball": (SAMPLING + noise_energy(2 * math.sqrt(np.sum(SIGMA**2)), np.ones(D)), 2.0),
    "coinpress": (
        SAMPLING + noise_energy(published.gaussian_norm_bound(D, 0.01), np.ones(D), 3 / 4),
        1.5,
    ),
    "shifted-clipped-mean": (
        SAMPLING + noise_energy(2 * math.sqrt(np.sum(SIGMA**2)), np.ones(D), 9 / 16),
        2.0,
    ),
    "PLAN": (SAMPLING + noise_energy(2.0, ELLIPSE, 9 / 16), 2.0),
}


@pytest.mark.parametrize("method", CLAIMS)
def test_error_is_near_the_claim_in_an_easy_setting(method):
    claim, factor = CLAIMS[method]
    error = median_error(method)
    assert claim / factor < error < claim * factor, (error, claim)


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_adds_up(method):
    rng = np.random.default_rng(0)
    mean, rows = table(rng)
    ledger = Ledger(rng)
    METHODS[method](rows, mean, ledger)
    assert ledger.spent == pytest.approx(RHO, rel=1e-12)


def test_more_coinpress_steps_pay_where_the_box_is_wide():
    assert median_error("coinpress") < median_error("coinpress, one step") / 10


# --- the pieces, whose privacy the budgets rest on ---


def test_ledger_noise_has_the_size_that_its_budget_buys():
    rng = np.random.default_rng(1)
    noise = Ledger(rng).gaussian(np.zeros(200_000), sensitivity=3.0, rho=0.02)
    sd = 3.0 * calibrate.noise_multiplier(rho=0.02)
    assert np.std(noise) == pytest.approx(sd, rel=0.01)


def test_replacing_a_row_moves_a_clipped_mean_by_at_most_two_radii_over_n():
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((50, 3)) * 10
    other = rows.copy()
    rows[0], other[0] = [1e6, 1e6, -1e6], [-1e6, -1e6, 1e6]
    arguments = (np.zeros(3), np.array([1.0, 2.0, 0.5]), 1.5)
    change = published.clipped_mean(rows, *arguments) - published.clipped_mean(other, *arguments)
    assert np.linalg.norm(change) == pytest.approx(2 * 1.5 / 50, rel=1e-9)


def test_exponential_quantiles_have_the_law_that_their_budget_allows():
    # 3 points, median of [0, 4]: P(interval i) ~ length * exp(-epsilon/2 |i - 1.5|)
    points = np.array([[1.0], [2.0], [3.5]])
    rho, draws = 0.3, 20_000
    epsilon = math.sqrt(8 * rho)
    rng = np.random.default_rng(3)
    columns = np.repeat(points, draws, axis=1)
    found = Ledger(rng).quantiles(columns, 0.5, 0.0, np.array([4.0]), rho * draws)
    counts = np.histogram(found, bins=[0, 1, 2, 3.5, 4])[0]
    weight = np.array([1, 1, 1.5, 0.5]) * np.exp(-epsilon / 2 * np.abs(np.arange(4) - 1.5))
    want = draws * weight / weight.sum()
    assert np.all(np.abs(counts - want) < 6 * np.sqrt(want)), (counts, want)


def test_the_searched_quantile_finds_the_median():
    rng = np.random.default_rng(4)
    columns = rng.standard_normal((10_001, 5)) + np.arange(5)
    found = published.searched_quantiles(Ledger(rng), columns, 5000, -50.0, 50.0, 1.0, 14)
    assert np.max(np.abs(found - np.arange(5))) < 0.06


def test_the_rotation_is_orthogonal():
    turn = published.random_rotation(64, np.random.default_rng(5))
    assert np.max(np.abs(turn @ turn.T - np.eye(64))) < 1e-12


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-5), (4.0, 1e-9)])
def test_the_zcdp_budget_implies_the_guarantee_and_beats_the_simple_bound(epsilon, delta):
    rho = published.zcdp_budget(epsilon, delta)
    log = math.log(1 / delta)
    simple = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2  # Bun & Steinke, Proposition 1.3
    exact_gaussian = calibrate.rho(calibrate.noise_multiplier(epsilon, delta))
    assert simple < rho < exact_gaussian


@pytest.mark.parametrize("law", list(coverage.LAWS))
def test_the_law_that_an_interval_is_judged_by_has_the_mean_of_its_draws(law):
    """Within 6 standard errors (false alarm below 1e-6), the ends of the box included."""
    for center in (0.0, 0.5, 1.0, 1.2):
        cell = coverage.Cell(law, 50_000, 12, center=center)
        rows, mean = cell.draw(0)
        spread = np.maximum(np.clip(rows, -coverage.HALF, coverage.HALF).std(axis=0), 0.01)
        off = np.abs(mean - coverage.population(cell))
        assert (off <= 6 * spread / math.sqrt(cell.n)).all()
