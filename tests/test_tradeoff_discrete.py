"""Discrete tradeoffs: closed forms, reference values, certificates, information as utility."""

from __future__ import annotations

import numpy as np
import pytest

from ellipsum.tradeoff import DiscreteTradeoff, alternating, least_leakage, newton
from learned_truth import group


def symmetric_pair(m, p):
    joint = np.full((m, m), p / (m * (m - 1)))
    np.fill_diagonal(joint, (1 - p) / m)
    return joint


def symmetric_information(m, p):
    """r_m(p): mutual information of the symmetric pair, 0 at independence."""
    terms = [(p, p / (m - 1)), (1 - p, 1 - p)]
    return np.log(m) + sum(share * np.log(one) for share, one in terms if share > 0)


def random_case(seed):
    rng = np.random.default_rng(seed)
    x, w, z = rng.integers(2, 8, 3)
    joint = rng.dirichlet(np.full(x * w, 0.6)).reshape(x, w)
    return joint, rng.uniform(size=(w, z)).round(3), float(np.exp(rng.uniform(-2, 3)))


def measured(joint, channel):
    """I(X; Z) of a channel, the textbook way."""
    both = joint @ channel
    prior = np.outer(both.sum(1), both.sum(0))
    alive = both > 0
    return float((both[alive] * np.log(both[alive] / prior[alive])).sum())


def test_reference_cases():
    for case in group("discrete_general"):
        given, answer = case["inputs"], case["answer"]
        found = DiscreteTradeoff(given["multiplier"]).fit(given["p_xw"], given["distortion_wz"])
        assert abs(found.objective_ - answer["objective"]) <= 1e-7 * answer["objective"]
        assert abs(found.leakage_ - answer["leakage"]) <= 1e-6 * answer["leakage"] + 1e-9
        assert found.gap_ <= 1e-9


def test_symmetric_pair_reference_cases():
    for case in group("symmetric_pair"):
        given = case["inputs"]
        joint, hamming = symmetric_pair(given["m"], given["p"]), 1 - np.eye(given["m"])
        found = DiscreteTradeoff(distortion=given["distortion"])
        found.fit_joint(joint, hamming, given["observe"])
        error = abs(found.leakage_ - case["answer"])
        assert error <= max(1e-6 * case["answer"], 1e-9), case["id"]
        assert found.gap_ <= 1e-9
        assert found.distortion_ <= given["distortion"] + 1e-12


@pytest.mark.parametrize("m, p", [(2, 0.3), (3, 0.95), (5, 0.8), (6, 0.2)])
@pytest.mark.parametrize("share", [0.03, 0.3])
def test_closed_forms_30_and_31(m, p, share):
    """PPAN (30), with r_m(p) = 0 beyond its range, and (31)."""
    joint, hamming, edge = symmetric_pair(m, p), 1 - np.eye(m), 1 - 1 / m
    full = DiscreteTradeoff(distortion=share).fit_joint(joint, hamming, "full")
    moved = min(p + share, edge) if p <= edge else max(p - share, edge)
    assert full.leakage_ == pytest.approx(symmetric_information(m, moved), abs=1e-9)
    useful = DiscreteTradeoff(distortion=share).fit_joint(joint, hamming)
    moved = p + min(share, edge) * (1 - p * m / (m - 1))
    assert useful.leakage_ == pytest.approx(symmetric_information(m, moved), abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_random_cases_to_the_certificate_and_both_ways(seed):
    joint, cost, price = random_case(seed)
    found = DiscreteTradeoff(price).fit(joint, cost)
    assert found.gap_ <= 1e-10
    assert measured(joint, found.channel_) == pytest.approx(found.leakage_, abs=1e-10)
    np.testing.assert_allclose(found.channel_.sum(1), 1, atol=1e-12)
    limit = DiscreteTradeoff(distortion=found.distortion_).fit(joint, cost)
    assert limit.gap_ <= 1e-10
    assert limit.leakage_ == pytest.approx(found.leakage_, abs=1e-9)
    assert limit.distortion_ <= found.distortion_ + 1e-12


def test_no_random_channel_is_better():
    joint, cost, price = random_case(3)
    found = DiscreteTradeoff(price).fit(joint, cost)
    rng = np.random.default_rng(0)
    for concentration in (0.05, 0.3, 1.0):
        for _ in range(300):
            channel = rng.dirichlet(np.full(cost.shape[1], concentration), len(cost))
            paid = float((joint.sum(0)[:, None] * channel * cost).sum())
            assert measured(joint, channel) + price * paid >= found.objective_ - found.gap_


def test_the_gap_of_a_worse_channel_is_at_least_what_is_missing():
    """Every early stop: the proved gap is never below the distance to the optimum."""
    joint, cost, price = random_case(11)
    best = DiscreteTradeoff(price).fit(joint, cost).objective_
    observed = joint.sum(0)
    law = alternating.Law(observed, joint / observed, cost)
    for steps in range(0, 60, 3):
        start = alternating.constant_channel(law)
        early = alternating.descend(law, start, multiplier=price, tolerance=0.0, steps=steps)
        assert early.objective - early.gap <= best + 1e-12
    assert alternating.descend(law, start, multiplier=price, steps=0).gap > 1e-4


def test_alternation_descends():
    joint, cost, price = random_case(7)
    observed = joint.sum(0)
    law = alternating.Law(observed, joint / observed, cost)
    goal = alternating._Goal(price, None)
    state, found = alternating._state(law, alternating.constant_channel(law)), []
    for _ in range(100):
        found.append(alternating._value(law, goal, state))
        state, _ = alternating._step(law, goal, state)
    assert (np.diff(found) <= 1e-14).all() and found[-1] < found[0] - 0.1


def test_newton_and_alternation_agree():
    """Two methods that share no step: 20 random cases."""
    for seed in range(20):
        joint, cost, price = random_case(100 + seed)
        observed = joint.sum(0)
        start = np.full(cost.shape, 1 / cost.shape[1])
        paid = observed[:, None] * cost
        channel = newton.channel_by_newton(joint, paid, start, 1e-11, price, None)
        objective = measured(joint, channel) + price * float((paid * channel).sum())
        found = DiscreteTradeoff(price).fit(joint, cost)
        assert objective == pytest.approx(found.objective_, abs=1e-9)


def test_a_straight_piece_of_the_curve_is_mixed():
    """Y in two independent halves, one of them secret-free: distortion is bought at one price."""
    joint = np.array([[0.5, 0.0], [0.0, 0.5]])  # X = W, Hamming cost: the curve itself is curved
    erase = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.5]])  # and an erasure letter of cost 1/2
    for budget in (0.1, 0.2, 0.3, 0.4):
        found = DiscreteTradeoff(distortion=budget).fit(joint, erase)
        assert found.gap_ <= 1e-9
        # binary rate-distortion: the erasure letter buys nothing
        entropy = -budget * np.log(budget) - (1 - budget) * np.log(1 - budget)
        assert found.leakage_ == pytest.approx(np.log(2) - entropy, abs=1e-9)
    linear = np.array([[0.0, 50.0, 1.0], [50.0, 0.0, 1.0]])  # now only erasure is worth it
    for budget in (0.25, 0.5, 0.75):
        found = DiscreteTradeoff(distortion=budget).fit(joint, linear)
        assert found.gap_ <= 1e-9
        assert found.leakage_ == pytest.approx((1 - budget) * np.log(2), rel=0.02)
        assert found.distortion_ <= budget + 1e-12


def test_limits_of_the_budget():
    joint, cost, _ = random_case(5)
    floor = float(joint.sum(0) @ cost.min(1))
    exact = DiscreteTradeoff(distortion=floor).fit(joint, cost)
    assert exact.distortion_ == pytest.approx(floor, rel=1e-12) and exact.gap_ <= 1e-9
    near = DiscreteTradeoff(distortion=floor + 1e-9).fit(joint, cost)
    assert near.leakage_ <= exact.leakage_ + 1e-9 and near.gap_ <= 1e-9
    free = DiscreteTradeoff(distortion=10.0).fit(joint, cost)
    assert free.leakage_ == 0 and free.gap_ <= 1e-15
    with pytest.raises(ValueError, match="distortion must be at least"):
        DiscreteTradeoff(distortion=floor - 1e-3).fit(joint, cost)


def test_letters_that_never_come():
    joint, cost, price = random_case(13)
    wider = np.insert(np.insert(joint, 1, 0.0, axis=1), 0, 0.0, axis=0)
    found = DiscreteTradeoff(price).fit(wider, np.insert(cost, 1, cost[0], axis=0))
    assert found.objective_ == pytest.approx(
        DiscreteTradeoff(price).fit(joint, cost).objective_, abs=1e-9
    )
    np.testing.assert_allclose(found.channel_.sum(1), 1, atol=1e-12)


def test_a_dying_letter_keeps_its_gradient():
    """In the linear domain the dead letter underflows and the gap reads 48 instead of 0."""
    joint = np.diag([0.5, 0.5])
    cost = np.array([[0.0, 1.0, 300.0], [1.0, 0.0, 300.0]])
    found = DiscreteTradeoff(5.0).fit(joint, cost)
    assert found.gap_ <= 1e-10 and found.channel_[:, 2].max() < 1e-100


def test_samples_are_their_frequencies():
    rng = np.random.default_rng(0)
    w = rng.integers(0, 3, 4000)
    x = np.where(rng.random(4000) < 0.7, w, rng.integers(0, 3, 4000))
    names = np.array(["red", "green", "blue"])
    found = DiscreteTradeoff(distortion=0.2).fit_samples(x, names[w], 1 - np.eye(3))
    table = np.zeros((3, 3))
    for i, j in zip(x, np.searchsorted(np.sort(names), names[w]), strict=True):
        table[i, j] += 1 / 4000
    known = DiscreteTradeoff(distortion=0.2).fit(table, 1 - np.eye(3))
    assert found.leakage_ == pytest.approx(known.leakage_, abs=1e-10)
    assert list(found.observed_values_) == ["blue", "green", "red"]
    with pytest.raises(ValueError, match="letters of the fitted alphabet"):
        found.transform(["yellow"])


def test_draws_follow_the_channel():
    """60,000 draws a letter: chi-square with a false-alarm rate below 1e-6, fixed seed."""
    from scipy.stats import chi2 as chi_square

    joint, cost, price = random_case(2)
    found = DiscreteTradeoff(price).fit(joint, cost)
    for letter in range(len(cost)):
        drawn = found.transform(np.full(60_000, letter), seed=3)
        wanted = 60_000 * found.channel_[letter]
        seen = np.bincount(drawn, minlength=cost.shape[1])
        big = wanted > 5
        statistic = ((seen[big] - wanted[big]) ** 2 / wanted[big]).sum()
        assert statistic < chi_square.isf(1e-8, max(1, big.sum()))


def bottleneck_law(flip):
    return np.array([[1 - flip, flip], [flip, 1 - flip]]) / 2


@pytest.mark.parametrize("flip, beta", [(0.1, 2.0), (0.1, 9.0), (0.25, 3.6), (0.25, 12.0)])
def test_bottleneck_of_a_binary_symmetric_channel(flip, beta):
    """T is X through a binary symmetric channel, its flip by one-dimensional minimisation."""
    from scipy.optimize import minimize_scalar

    def entropy(share):
        return -share * np.log(share) - (1 - share) * np.log(1 - share)

    def lagrangian(logarithm):
        share = np.exp(logarithm)
        seen = share * (1 - flip) + flip * (1 - share)
        return np.log(2) - entropy(share) - beta * (np.log(2) - entropy(seen))

    wanted = minimize_scalar(lagrangian, bounds=(-25, np.log(0.5)), method="bounded").fun
    found = DiscreteTradeoff(beta, utility="information", letters=2)
    found.fit(np.eye(2) / 2, bottleneck_law(flip))
    assert found.objective_ == pytest.approx(min(0.0, wanted), abs=1e-9)
    assert found.gap_ <= 1e-9  # proved globally


@pytest.mark.parametrize("letters", [2, 3])
def test_bottleneck_and_funnel_are_proved_globally(letters):
    """And no channel of a fine search is below the proved bound."""
    rng = np.random.default_rng(letters)
    joint = rng.dirichlet(np.ones(3 * letters)).reshape(3, letters)
    own = np.diag(joint.sum(0))
    for useful, sensitive, price in ((joint, own, 3.0), (own, joint, 0.1)):
        found = DiscreteTradeoff(price, utility="information").fit(sensitive, useful)
        assert found.gap_ <= 1e-9
        for _ in range(500):
            channel = rng.dirichlet(np.full(letters + 1, 0.3), letters)
            value = measured(sensitive, channel) - price * measured(useful, channel)
            assert value >= found.objective_ - found.gap_ - 1e-12


def test_the_global_bound_sees_a_local_optimum():
    """The bound of a channel that is not the best must admit it."""
    from ellipsum.tradeoff import bottleneck

    joint = bottleneck_law(0.1)
    law = alternating.Law(joint.sum(0), None, np.zeros((2, 2)), (joint / joint.sum(0)), 5.0)
    start = alternating.constant_channel(law)
    stuck = alternating.descend(law, start, multiplier=0.0)  # stationary: says nothing at all
    assert stuck.objective == 0 and stuck.gap <= 1e-12
    best = bottleneck.best_of(law, 4, 0)
    assert best.objective < -0.3
    assert bottleneck.proved_gap(law, stuck) >= -best.objective - 1e-9
    assert bottleneck.proved_gap(law, best) <= 1e-9


def test_what_is_refused():
    joint, cost, _ = random_case(1)
    with pytest.raises(ValueError, match="give multiplier or distortion"):
        DiscreteTradeoff().fit(joint, cost)
    with pytest.raises(ValueError, match="must sum to 1"):
        DiscreteTradeoff(1.0).fit(2 * joint, cost)
    with pytest.raises(ValueError, match="none below 0"):
        DiscreteTradeoff(1.0).fit(joint - 0.5, cost)
    with pytest.raises(ValueError, match="cost must be a finite table"):
        DiscreteTradeoff(1.0).fit(joint, cost[:-1])
    with pytest.raises(ValueError, match="no convex set"):
        DiscreteTradeoff(distortion=0.1, utility="information").fit(joint, joint)
    with pytest.raises(ValueError, match="same law of W"):
        DiscreteTradeoff(1.0, utility="information").fit(joint, joint[:, ::-1])


def test_a_law_where_alternation_is_slow_is_finished_by_newton(monkeypatch):
    """Case 29 of the development sweep: after 20,000 alternations the gap was still 1e-7."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        x, w, z = rng.integers(2, 8, 3)
        joint = rng.dirichlet(np.full(x * w, 0.6)).reshape(x, w)
        cost = rng.uniform(size=(w, z)).round(3)
        price = float(np.exp(rng.uniform(-2, 3)))
    assert DiscreteTradeoff(price).fit(joint, cost).gap_ <= 1e-10
    monkeypatch.setattr(least_leakage, "_NEWTON_COST", 0.0)
    assert DiscreteTradeoff(price).fit(joint, cost).gap_ > 1e-10


def test_a_limit_on_the_distortion_takes_one_solution(monkeypatch):
    """Not one for each price tried, which are what is compared with: the same optimum."""
    by_prices, solved, searched = least_leakage._by_prices, [], []

    def counted(*given):
        solved.append(1)
        return newton.channel_by_newton(*given)

    def noted(*given):
        searched.append(1)
        return by_prices(*given)

    rng = np.random.default_rng(5)
    for case in range(148):
        letters, shape = rng.integers(2, 8, 3), rng.choice([0.05, 0.3, 0.6, 3])
        joint = rng.dirichlet(np.full(letters[0] * letters[1], shape)).reshape(letters[:2])
        cost = rng.random(letters[1:]).round(1 if case % 2 else 9)
        least, most = joint.sum(0) @ cost.min(1), (joint.sum(0) @ cost).min()
        budget = least + (most - least) * rng.uniform(0.02, 0.98)
        if case % 7:
            continue
        monkeypatch.setattr(least_leakage, "channel_by_newton", counted)
        monkeypatch.setattr(least_leakage, "_by_prices", noted)
        found = DiscreteTradeoff(distortion=budget).fit(joint, cost)
        assert found.gap_ <= 1e-10 and found.distortion_ <= budget * (1 + 1e-12)
        monkeypatch.undo()
        law = alternating.Law(joint.sum(0), joint / joint.sum(0), cost)
        start = alternating.descend(law, alternating.constant_channel(law), budget=budget, steps=60)
        other = by_prices(law, start, float(budget), 1e-11)
        assert other.leakage == pytest.approx(found.leakage_, abs=1e-9)
    assert len(solved) <= 22 and not searched
