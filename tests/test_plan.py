"""The plan: its shares are the budget, it knows public numbers only, and it divides well."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from ellipsum import PrivateMean, calibrate
from ellipsum.adaptive import model, plan
from ellipsum.adaptive.domain import make_domain
from ellipsum.adaptive.plan import make_plan
from ellipsum.guarantee import rounded_up

MU = 1 / calibrate.noise_multiplier(1.0, 1e-6)


def box(d, half=50.0, **known):
    return make_domain(np.full(d, -half), np.full(d, half), None, None, **known)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("kind", ["mean", "sum"])
@pytest.mark.parametrize("mu", [0.01, MU, 3.0])
def test_the_shares_add_up_to_one_exactly(neighbors, kind, mu):
    for n in (1, 10, 100, 1000, 10**5, 10**9):
        for d in (1, 3, 50, 1000):
            sigma = 1 / np.arange(1.0, d + 1) ** 3
            for known in ({}, {"sigma": sigma}, {"error": "relative"}):
                made = make_plan(n, box(d, **known), mu, neighbors, kind)
                total = sum((step.share for step in made.steps), Fraction(0))
                assert all(step.share > 0 for step in made.steps)
                assert all((step.share * 2**20).denominator == 1 for step in made.steps)
                assert made.infeasible or total == 1
                spent = math.sqrt(sum(made.step_mu(step) ** 2 for step in made.steps))
                assert made.infeasible or spent == pytest.approx(mu, rel=1e-12)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_the_noise_of_all_steps_together_is_no_bit_too_small(neighbors):
    """In fractions, with the noise levels as drawn: sum of (sensitivity / sigma)^2 <= mu^2."""
    for mu in (*np.random.default_rng(0).uniform(0.01, 9, 200), 0.1, 1 / 3, 1.0):
        mechanism = PrivateMean(lower=[-5.0], upper=[5.0], mu=mu, neighbors=neighbors)
        allowed = Fraction(1) / Fraction(mechanism.guarantee.noise_multiplier) ** 2
        assert Fraction(mechanism.guarantee.mu_to_spend) ** 2 <= allowed
        made, spent = mechanism.plan(2000), Fraction(0)
        for step in made.steps:
            squared = 2 if neighbors == "replace" else 1  # of the true sensitivity
            sigma = rounded_up(math.sqrt(squared) / made.step_mu(step))
            spent += squared / Fraction(sigma) ** 2
        assert made.infeasible or allowed * (1 - Fraction(1, 2**40)) < spent <= allowed


@pytest.mark.parametrize("half", [1e-50, 1.0, 1e50])
@pytest.mark.parametrize("sigma", [1e-90, 1e-3, 1e90])
def test_extreme_units_make_a_plan_too(half, sigma):
    for known in ({}, {"sigma": np.full(4, sigma)}):
        assert not make_plan(10_000, box(4, half, **known), MU, "replace").infeasible
    lopsided = make_domain(-np.array([1e-9, 1.0, 1e9]), np.array([1e-9, 1.0, 1e9]), None, None)
    assert not make_plan(10_000, lopsided, MU, "replace").infeasible


def test_known_deviations_shape_the_plan():
    d = 64
    alike, unlike = np.ones(d), 1 / np.arange(1.0, d + 1) ** 2
    plans = [
        PrivateMean(
            lower=np.full(d, -50.0), upper=np.full(d, 50.0), sigma=sigma, epsilon=1, delta=1e-6
        ).plan(4000)
        for sigma in (alike, unlike, None)
    ]
    assert len({made.steps for made in plans}) == 3
    assert plans[0] == plans[0].__class__(**vars(plans[0]))


@pytest.mark.parametrize(("d", "n"), [(16, 4000), (128, 4000), (128, 20_000), (600, 20_000)])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
def test_no_division_of_other_rounds_gains_much(d, n, alpha):
    """In the model: against random divisions, and against all rounds alike."""
    sigma = np.arange(1.0, d + 1) ** -alpha
    domain, rng = box(d, 50.0, sigma=sigma), np.random.default_rng(0)
    made = make_plan(n, domain, MU, "replace")
    ours = np.array([float(s.share) for s in made.steps if s.name in ("center", "final")])
    rounds, ratio = ours.size, plan._noise_ratio(n, 1, MU, "replace")
    law = model.grouped(domain.half, sigma)
    alike = np.ones((1, rounds))
    geometric = 3.0 ** (rng.uniform(-1, 2, size=(300, 1)) * np.arange(rounds))
    near = ours * np.exp(rng.normal(size=(300, rounds)))
    others = np.concatenate([alike, geometric, near])
    others *= ours.sum() / others.sum(axis=1, keepdims=True)
    errors = model.predicted(np.concatenate([[ours], others]), ratio, *law, True)
    sampling = np.sum(sigma**2) / n
    assert errors[0] + sampling < 1.05 * (errors.min() + sampling)


@pytest.mark.parametrize("d", [1, 3, 16, 128, 1024])
@pytest.mark.parametrize("n", [300, 1000, 4000, 20_000])
def test_what_intervals_need_costs_the_value_little(n, d):
    """In the model, for each law that is allowed for: squared errors with all of the budget."""
    domain, ratio = box(d), plan._noise_ratio(n, 1, MU, "replace")
    made = make_plan(n, domain, MU, "replace")
    if made.infeasible:
        return
    share = {step.name: step.share for step in made.steps}
    taken = float(share["cells"] + share["excess"])
    least = min(1 / 64, 64 / (n * MU) ** 2)  # the common share of present cells to 1/8
    assert 1 / 64 >= float(share["cells"]) >= least and taken <= 1 / 16
    if share["excess"] < 3 * share["cells"]:
        assert float(share["cells"]) < least + 2e-6
        return
    parts = model.best_division(ratio, n, domain, (len(made.steps) - 2) // 2)
    for law in model._presumed(domain):
        less, whole = model._cost(
            np.outer([1 - taken, 1], parts) * model._CENTERS, ratio, n, domain, law
        )
        assert less - whole < 0.046
    assert taken == 1 / 16 or d >= 3  # where rows are many nothing is cut


def test_grouped_coordinates_are_as_good_as_all():
    d = 2000
    sigma = 1 / np.arange(1.0, d + 1)
    half, ratio = np.full(d, 50.0), plan._noise_ratio(20_000, 1, MU, "replace")
    weights = np.array([[0.02, 0.03, 0.05, 0.1, 0.2, 0.6]])
    groups = model.grouped(half, sigma)
    assert groups[0].size <= model.MODEL_SIZE and groups[2].sum() == d
    for known in (True, False):
        told = model.predicted(weights, ratio, *groups, known)
        exact = model.predicted(weights, ratio, half, sigma, np.ones(d), known)
        np.testing.assert_allclose(told, exact, rtol=0.05)


@pytest.mark.parametrize("d", [3, 30, 300])
@pytest.mark.parametrize("n", [1000, 30_000])
def test_a_search_for_narrow_columns_costs_the_others_a_fifth_at_most(n, d):
    """In the model, in squared errors; where rows are enough, it finds them."""
    domain, ratio = box(d, error="relative"), plan._noise_ratio(n, 1, MU, "replace")
    parts = [model.best_division(ratio, n, domain, rounds) for rounds in (1, 5, 10, 20)]
    costs = [
        [float(model._cost(0.9 * each[None], ratio, n, domain, law)[0]) for each in parts]
        for law in model._presumed(domain)
    ]
    usual, narrow = np.mean(costs[:-1], axis=0), np.array(costs[-1])
    assert usual[-1] <= usual.min() + 0.2
    if n * MU > 100 * d:
        assert narrow[-1] < math.log(3) < math.log(1e4) < narrow[0]
