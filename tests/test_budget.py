"""Budgets: exact sums, what is left, what is refused, and the bounds of compositions."""

from __future__ import annotations

import copy
import math
import os
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from ellipsum import (
    Budget,
    BudgetError,
    Ellipsoid,
    ExactSum,
    PrivateMean,
    PrivateSum,
    calibrate,
    compose,
    estimate_covariance,
    estimate_scale,
)
from ellipsum.accounting.cost import Cost, Left, Limit, sqrt_down, sqrt_up
from ellipsum.guarantee import DeltaGuarantee, GaussianGuarantee

REGION = Ellipsoid.ball(3.0, d=2)
ROWS = np.random.default_rng(0).normal(size=(400, 2))


def mean(**budget: float) -> PrivateMean:
    return PrivateMean(REGION, **budget)


# ---- sums --------------------------------------------------------------------------------


def test_squares_of_mu_add_up_exactly():
    """0.1 is a little more than a tenth: a hundred of it are more than one, nine less are not."""
    budget = Budget(mu=1)
    for _ in range(99):
        budget.spend(mu=0.1)
    with pytest.raises(BudgetError):
        budget.spend(mu=0.1)
    assert budget.spent.mu_squared == 99 * Fraction(0.1) ** 2
    budget.spend(mu=budget.left.mu)
    assert 1 - Fraction(2) ** -52 < budget.spent.mu_squared <= 1
    exact = Budget(mu=1)
    for _ in range(100):
        exact.spend(mu=Fraction(1, 10))
    assert exact.spent.mu_squared == 1 and exact.left.mu == 0


def test_a_budget_of_every_form_takes_the_one_release_that_it_is_for():
    for form in ({"mu": 0.3}, {"rho": 0.7}, {"epsilon": 1.1, "delta": 1e-7}):
        budget = Budget(**form)
        release = mean(**form)(ROWS, budget=budget)
        assert release.entry.number == 1
        with pytest.raises(BudgetError, match="no budget for"):
            budget.spend(mu=1e-6)


def test_what_is_left_fits_and_what_is_more_does_not():
    draws = np.random.default_rng(1)
    for _ in range(60):
        first, second = draws.uniform(0.05, 0.6, 2)
        limits = [{"mu": 1.0, "delta": 1e-6}, {"epsilon": 3.0, "delta": 1e-5}]
        for form in limits:
            budget = Budget(**form)
            budget.spend(mu=first)
            budget.spend(epsilon=second / 2, delta=1e-7)
            limit, spent, left = budget.limit, budget.spent, budget.left
            for name, number in left._asdict().items():
                squared = name == "mu"
                amount = Fraction(number) ** 2 if squared else Fraction(number)
                more = (
                    Fraction(number * (1 + 1e-6)) ** 2 if squared else amount * (1 + Fraction(1e-6))
                )
                kind = "mu_squared" if squared else name
                assert limit.allows(spent + Cost(**{kind: amount}))
                assert not limit.allows(spent + Cost(**{kind: more}))


def test_roots_are_rounded_the_way_they_say():
    draws = np.random.default_rng(2)
    numbers = [Fraction(x) ** k for x in draws.uniform(0, 2, 50) for k in (1, 2, 9)]
    numbers += [Fraction(5, 10**700), Fraction(10**600, 7), Fraction(9, 4)]
    for number in numbers:
        low, high = sqrt_down(number), sqrt_up(number)
        assert Fraction(low) ** 2 <= number <= Fraction(high) ** 2
        assert high <= math.nextafter(low, math.inf)


def test_a_sum_of_many_multipliers_stays_small_and_is_not_below_the_true_one():
    costs = [Cost(mu_squared=1 / Fraction(s) ** 2) for s in np.linspace(3, 4, 700)]
    total = sum(costs, Cost()).mu_squared
    true = sum(c.mu_squared for c in costs)
    assert total.denominator.bit_length() <= (1 << 15) + 64
    assert true <= total <= true + Fraction(1, 2**4000)


# ---- what compositions promise -----------------------------------------------------------


def test_a_composition_has_the_epsilon_and_delta_of_the_gaussian_beside_the_pairs():
    gaussians = [GaussianGuarantee.of_budget(None, None, None, m, "replace") for m in (0.3, 0.4)]
    pair = DeltaGuarantee("replace", 0.25, 1e-7)
    both = compose([*gaussians, pair])
    s = 1 / math.hypot(0.3, 0.4)
    assert both.epsilon(1e-6) == pytest.approx(0.25 + calibrate.epsilon(s, 9e-7), rel=1e-12)
    assert both.delta(1.0) == pytest.approx(1e-7 + calibrate.delta(s, 0.75), rel=1e-12)
    assert both.epsilon(1e-8) == math.inf and both.delta(0.1) == 1.0
    assert compose(gaussians).mu == pytest.approx(0.5, rel=1e-15)
    assert compose(gaussians).rho == pytest.approx(0.125, rel=1e-15)
    with pytest.raises(AttributeError, match="not all of it is Gaussian"):
        _ = both.mu


def test_no_adaptive_user_beats_the_filter():
    """Dynamic programming over users who choose the next mechanism by the answers so far.

    The steps are randomised responses and Gaussians rounded to a few outcomes; the least
    hockey-stick divergence that the filter allows for what they spend bounds the best user.
    """

    def response(e: float) -> list[tuple[float, float]]:
        p = 1 / (1 + math.exp(-e))
        return [(p, 1 - p), (1 - p, p)]

    def rounded(mu: float) -> list[tuple[float, float]]:
        edges = np.array([-np.inf, -0.6, 0.1, 0.5, 1.2, np.inf])
        return list(zip(np.diff(norm.cdf(edges - mu)), np.diff(norm.cdf(edges)), strict=True))

    def failing(e: float, d: float) -> list[tuple[float, float]]:
        return [((1 - d) * p, (1 - d) * q) for p, q in response(e)] + [(d, 0.0), (0.0, d)]

    steps = [
        (Cost(epsilon=Fraction(0.2)), response(0.2)),
        (Cost(mu_squared=Fraction(0.3) ** 2), rounded(0.3)),
        (Cost(mu_squared=Fraction(0.5) ** 2), rounded(0.5)),
        (Cost(epsilon=Fraction(0.1), delta=Fraction(0.01)), failing(0.1, 0.01)),
    ]

    def best(ratio: float, left: int, spent: Cost, limit: Limit) -> float:
        """The largest of P(S) - ratio Q(S) that a user reaches with what is left."""
        value = max(0.0, 1 - ratio)
        for cost, outcomes in steps if left else ():
            if limit.allows(spent + cost):
                total = 0.0
                for p, q in outcomes:
                    total += (
                        p if not q else p and p * best(ratio * q / p, left - 1, spent + cost, limit)
                    )
                value = max(value, total)
        return value

    for epsilon, delta in [(0.5, 0.15), (0.3, 0.2), (1.0, 0.05)]:
        limit = Limit(None, Fraction(epsilon), Fraction(delta))
        reached = best(math.exp(epsilon), 4, Cost(), limit)
        assert 0 < reached <= delta
    # ... and without the filter they do:
    assert best(math.exp(0.5), 4, Cost(), Limit(Fraction(100), None, Fraction(1))) > 0.15


def test_a_pure_epsilon_in_a_budget_of_mu_counts_as_a_gaussian_that_is_no_more_private():
    for e in [1e-3, 0.1, 1.0, 5.0, 20.0]:
        mu = math.sqrt(Cost(epsilon=Fraction(e)).as_gaussian)
        assert norm.sf(mu / 2) <= 1 / (1 + math.exp(e))
    assert Budget(mu=1, delta=1e-6).spend(epsilon=0.5).entry.number == 1
    with pytest.raises(BudgetError):
        Budget(mu=1, delta=1e-6).spend(epsilon=0.8)


def test_accounting_agrees():
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    budget = Budget(epsilon=4, delta=1e-5, neighbors="add-remove")
    laplace = dp.LaplaceDpEvent(2.0)
    budget.spend(event=dp.SelfComposedDpEvent(dp.GaussianDpEvent(4.0), 3))
    budget.spend(event=dp.ComposedDpEvent([laplace, laplace]))
    assert budget.spent == Cost(Fraction(3, 16), Fraction(1), Fraction(0))
    subsampled = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0))
    with pytest.raises(ValueError, match="give delta"):
        budget.spend(event=subsampled)
    pair = budget.spend(event=subsampled, delta=1e-6).entry.cost
    assert 0 < pair.epsilon < 1 and pair.delta == Fraction(1e-6)
    with pytest.raises(TypeError, match="DpEvent"):
        budget.spend(event="gaussian")
    for twice in ({"mu": 0.9}, {"rho": 0.1}, {"epsilon": 1}):
        with pytest.raises(ValueError, match="or an event, not two of them"):
            budget.spend(event=dp.GaussianDpEvent(100.0), **twice)

    gaussians = [GaussianGuarantee.of_budget(None, None, None, m, "replace") for m in (0.3, 0.4)]
    both = compose(gaussians)
    accountant = PLDAccountant(both.dp_relation()).compose(both.dp_event())
    assert accountant.get_epsilon(1e-6) == pytest.approx(both.epsilon(1e-6), rel=1e-3)
    with pytest.raises(ValueError, match="no event"):
        budget.guarantee.dp_event()


def test_an_event_of_a_sample_has_no_cost_where_a_record_becomes_another():
    """dp-accounting's relation for that is of a record that becomes 0: with the values 5 and 6, a
    sum's sensitivity is 1, and delta 2750 times what it says."""
    dp = pytest.importorskip("dp_accounting")
    pld = pytest.importorskip("dp_accounting.pld")
    rate, scale, delta = 0.01, 1.0, 1e-6
    event = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(scale))
    accountant = pld.PLDAccountant(dp.NeighboringRelation.REPLACE_SPECIAL).compose(event)
    x = np.linspace(-12, 20, 400_001)
    p, q = ((1 - rate) * norm.pdf(x) + rate * norm.pdf(x, at) for at in (6.0, 5.0))
    true = np.maximum(p - np.exp(accountant.get_epsilon(delta)) * q, 0).sum() * (x[1] - x[0])
    assert true > 1000 * delta
    budget = Budget(epsilon=4, delta=1e-5)
    for part in (event, dp.SelfComposedDpEvent(event, 3), dp.ComposedDpEvent([event, event])):
        with pytest.raises(ValueError, match="a budget of add-remove"):
            budget.spend(event=part, delta=delta)
    assert budget.spent == Cost()


# ---- mechanisms ----------------------------------------------------------------------------


def test_every_mechanism_draws_from_a_budget_and_its_release_names_the_entry():
    budget = Budget(mu=2, delta=1e-6)
    box = {"lower": [-9, -9], "upper": [9, 9]}
    releases = [
        mean(mu=0.5)(ROWS, budget=budget),
        PrivateSum(REGION, rho=0.1)(ROWS, budget=budget),
        PrivateMean(**box, mu=0.6)(ROWS, budget=budget),
        estimate_scale(ROWS, **box, mu=0.4, budget=budget),
        estimate_covariance(ROWS, center=[0, 0], radius=4, mu=0.5, budget=budget),
    ]
    assert [r.entry.number for r in releases] == [1, 2, 3, 4, 5]
    assert [e.what for e in budget.entries] == ["mean", "sum", "mean", "mean", "covariance"]
    assert budget.spent.mu_squared == sum(r.guarantee.cost().mu_squared for r in releases)
    assert releases[0].to_dict()["entry"]["entry"] == 1
    assert "entry 1" in str(releases[0])
    assert "entry" not in mean(mu=0.5)(ROWS).to_dict()
    assert compose(releases).spent == budget.spent
    assert budget.guarantee.epsilon(1e-5) == compose(releases).epsilon(1e-5)


def test_a_refused_release_draws_no_noise_spends_nothing_and_leaves_the_sum_as_it_was(monkeypatch):
    budget = Budget(mu=0.5)
    total = ExactSum(REGION).add(ROWS)
    with monkeypatch.context() as patch:
        patch.setattr("ellipsum.noise.rounded_gaussian", None)
        for mechanism in (mean(mu=0.6), PrivateMean(lower=[-9, -9], upper=[9, 9], mu=0.6)):
            with pytest.raises(BudgetError, match=r"left is mu = 0\.5"):
                mechanism(total if mechanism._domain is None else ROWS, budget=budget)
    assert budget.spent == Cost()
    assert mean(mu=0.5)(total, budget=budget).entry.number == 1
    fresh = Budget(mu=9)
    with pytest.raises(ValueError, match="released before"):
        mean(mu=0.5)(total, budget=fresh)
    with pytest.raises(ValueError, match="no rows"):
        mean(mu=0.5)(np.empty((0, 2)), budget=fresh)
    assert fresh.spent == Cost()


def test_the_budget_is_written_before_the_noise_is_drawn(monkeypatch, tmp_path):
    from ellipsum import noise

    budget = Budget(mu=1, path=tmp_path / "a.ledger")
    seen = []
    draw = noise.rounded_gaussian

    def watched(*args, **options):
        seen.append(len(Budget(path=budget.path).entries))
        return draw(*args, **options)

    monkeypatch.setattr(noise, "rounded_gaussian", watched)
    mean(mu=0.25)(ROWS, budget=budget)
    PrivateMean(lower=[-9, -9], upper=[9, 9], mu=0.25)(ROWS, budget=budget)
    estimate_covariance(ROWS, center=[0, 0], radius=4, mu=0.5, budget=budget)
    assert seen[0] == 1 and set(seen[1:-1]) == {2} and seen[-1] == 3


def test_other_neighbours_units_and_kinds_are_refused():
    budget = Budget(mu=1)
    with pytest.raises(ValueError, match="neighbors add-remove, the budget has replace"):
        PrivateSum(REGION, mu=0.1, neighbors="add-remove")(ROWS, budget=budget)
    with pytest.raises(ValueError, match="unit"):
        mean(mu=0.1)(ROWS, budget=Budget(mu=1, unit="all rows of one value of user_id"))
    with pytest.raises(ValueError, match="same neighbours"):
        compose([mean(mu=0.1), PrivateSum(REGION, mu=0.1, neighbors="add-remove")][k].guarantee
                for k in (0, 1))  # fmt: skip
    with pytest.raises(ValueError, match="not private"):
        compose([mean(mu=0.1)(ROWS, seed=1)])
    with pytest.raises(ValueError, match="no release"):
        compose([])


@pytest.mark.parametrize(
    "x", [0.0, 5e-324, 1 / 3, 0.7999999999999999, 123456.789, 1e300, 0.1, 1e-6]
)
def test_what_is_left_is_printed_with_six_digits_that_fit(x):
    text = re.fullmatch("mu = (.*), or epsilon = (.*), or delta = (.*)", str(Left(x, x, x)))
    for printed in text.groups():
        assert len(printed.split("e")[0].replace(".", "").lstrip("0")) <= 6
        assert x * (1 - 1e-5) <= float(printed) <= x


def test_a_share_is_taken_whole_and_spent_inside():
    budget = Budget(mu=1)
    with pytest.raises(RuntimeError), budget.spend(mu=0.5, what="two means") as share:
        first = mean(mu=0.3)(ROWS, budget=share)
        with pytest.raises(BudgetError, match=r"left is mu = 0\.399999, "):
            mean(mu=0.41)(ROWS, budget=share)
        mean(mu=share.left.mu)(ROWS, budget=share)
        raise RuntimeError
    assert first.entry is share.entry and first.entry.what == "two means"
    assert budget.spent.mu_squared == Fraction(1, 4)


def test_a_budget_in_memory_has_no_second_copy(tmp_path):
    budget = Budget(mu=1)
    assert copy.deepcopy(budget) is budget and copy.copy(budget) is budget
    with pytest.raises(TypeError, match="cannot be copied"):
        pickle.dumps(budget)
    kept = Budget(mu=1, path=tmp_path / "a.ledger")
    pickle.loads(pickle.dumps(kept)).spend(mu=0.5)
    assert kept.spent.mu_squared == Fraction(1, 4)
    for share in (budget.spend(mu=0.5), kept.spend(mu=0.5)):
        assert copy.copy(share) is share and copy.deepcopy(share) is share
        with pytest.raises(TypeError, match="cannot be copied"):
            pickle.dumps(share)


def test_a_fork_has_no_budget_of_its_own(monkeypatch, tmp_path):
    budget, kept = Budget(mu=1), Budget(mu=1, path=tmp_path / "a.ledger")
    shares = [budget.spend(mu=0.5), kept.spend(mu=0.5)]
    cost = PrivateMean(Ellipsoid.ball(1.0, d=1), mu=0.5).guarantee
    monkeypatch.setattr(os, "getpid", lambda: -1)
    for purse in shares:
        with pytest.raises(BudgetError, match="the process that made it"):
            purse.draw(cost, "mean")
    with pytest.raises(BudgetError, match="the process that made it"):
        budget.spend(mu=0.5)
    kept.spend(mu=0.5)  # the file is everybody's
    monkeypatch.undo()
    assert budget.spent.mu_squared == Fraction(1, 4) and not any(s.spent.mu_squared for s in shares)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give mu"),
        ({"mu": 1, "epsilon": 1}, "give mu"),
        ({"mu": 0}, "above 0"),
        ({"mu": -1}, "above 0"),
        ({"mu": math.nan}, "finite"),
        ({"mu": math.inf}, "finite"),
        ({"epsilon": 1, "delta": 1.0}, "below 1"),
        ({"epsilon": 1, "delta": 0.0}, "above 0"),
    ],
)
def test_a_budget_that_is_none_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Budget(**given)
    with pytest.raises(ValueError, match="give mu"):
        Budget(mu=1).spend()


def test_what_is_no_budget_is_refused_by_its_type(tmp_path):
    rows = np.zeros((5, 2))
    for wrong in (1, "x.ledger"):
        with pytest.raises(TypeError, match="budget must be a Budget"):
            PrivateMean(Ellipsoid.ball(1.0, [0.0, 0.0]), mu=1.0)(rows, budget=wrong)
    with pytest.raises(ValueError, match=r"make it by: ellipsum ledger create \S+/\S+ --epsilon E"):
        Budget(path=tmp_path / "new.ledger")
