"""Which private keys are named: the exact delta, by enumeration of all outputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from mpmath import mp, mpf, workdps
from scipy.stats import norm

from ellipsum import Ellipsoid, ExactGroupSum, PrivateCounts, PrivateGroupSum, calibrate
from ellipsum.groups.guarantee import group_guarantee
from ellipsum.groups.selection import KeySelection, calibrated, chance_of_one, threshold_for
from ellipsum.guarantee import Neighbors

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE


@pytest.fixture(autouse=True)
def digits():
    with workdps(40):
        yield


def law(count: int, sigma: float, steps: int, threshold: int) -> dict:
    """What is released of a key with this many users: a number of steps, or nothing (None)."""
    if count == 0:
        return {None: mpf(1)}
    center, reach = count * steps, int(12 * sigma) + 2
    out: dict = {None: mpf(0)}
    for k in range(center - reach, center + reach + 1):
        low, high = (mpf(k - center) - 0.5) / sigma, (mpf(k - center) + 0.5) / sigma
        mass = mp.ncdf(high) - mp.ncdf(low)
        where = k if k >= threshold else None
        out[where] = out.get(where, mpf(0)) + mass
    return out


def hockey_stick(p: list[dict], q: list[dict], epsilon: float) -> mpf:
    """sum of (P - e^eps Q)+ over all outputs of independent keys."""
    total = mpf(0)
    for output in itertools.product(
        *[sorted({*a, *b}, key=str) for a, b in zip(p, q, strict=True)]
    ):
        chance_p = chance_q = mpf(1)
        for cell, a, b in zip(output, p, q, strict=True):
            chance_p, chance_q = chance_p * a.get(cell, 0), chance_q * b.get(cell, 0)
        total += max(mpf(0), chance_p - mp.e**epsilon * chance_q)
    return total


@pytest.mark.parametrize("sigma", [0.6, 1.3, 3.0])
@pytest.mark.parametrize("steps", [1, 4])
def test_the_chance_of_one_user_is_that_of_the_rounded_gaussian(sigma, steps):
    for threshold in range(-3, steps + int(9 * sigma)):
        mass = sum(m for k, m in law(1, sigma, steps, threshold).items() if k is not None)
        got = chance_of_one(threshold, sigma, steps)
        assert mass * (1 - mpf(10) ** -25) <= got <= mass * (1 + mpf(10) ** -11) + mpf(10) ** -30


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_delta_by_enumeration_never_passes_the_formula_and_reaches_it(epsilon):
    """Two keys; X has one user more, in both, in shared keys and in keys of its own."""
    sigma, steps, threshold, k = 1.5, 1, 4, 2
    chance = chance_of_one(threshold, sigma, steps)
    chosen = KeySelection(ADD, k, chance)
    bound = chosen.total_delta(epsilon, sigma / np.sqrt(k))
    worst = mpf(0)
    for counts in itertools.product([0, 1, 5, 40], repeat=2):
        more = [law(c + 1, sigma, steps, threshold) for c in counts]
        less = [law(c, sigma, steps, threshold) for c in counts]
        worst = max(worst, hockey_stick(more, less, epsilon), hockey_stick(less, more, epsilon))
    assert worst <= bound
    own = 1 - (1 - mpf(chance)) ** 2
    assert bound >= own and (worst >= 0.93 * bound or worst >= own * (1 - 1e-9))


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_user_who_moves_between_keys_stays_within_the_formula(epsilon):
    """replace: X has the user in one key, X' in another; counts alone, noise sqrt(2) / mu."""
    sigma, steps, threshold = 1.5, 1, 4
    chance = chance_of_one(threshold, sigma, steps)
    bound = KeySelection(REPLACE, 1, chance).total_delta(epsilon, sigma / np.sqrt(2))
    worst = mpf(0)
    for a, b in itertools.product([0, 1, 2, 30], repeat=2):
        one = [law(a + 1, sigma, steps, threshold), law(b, sigma, steps, threshold)]
        two = [law(a, sigma, steps, threshold), law(b + 1, sigma, steps, threshold)]
        worst = max(worst, hockey_stick(one, two, epsilon))
    assert 0.7 * bound <= worst <= bound


def test_with_continuous_noise_it_is_the_published_formula():
    """The exact formula of Wilkins et al. 2024, with its own tau: counts, one user more."""
    sigma, tau, k, epsilon = 3.0, 12.0, 5, 0.7
    q = norm.cdf((tau - 1) / sigma)

    def gaussian(j, eps):
        a, b = np.sqrt(j) / (2 * sigma), eps * sigma / np.sqrt(j)
        return norm.cdf(a - b) - np.exp(eps) * norm.cdf(-a - b)

    terms = [1 - q**k]
    for j in range(1, k + 1):
        up, down = epsilon - (k - j) * np.log(q), epsilon + (k - j) * np.log(q)
        terms += [1 - q ** (k - j) + q ** (k - j) * gaussian(j, up), gaussian(j, down)]
    mine = KeySelection(ADD, k, 1 - q).total_delta(epsilon, sigma / np.sqrt(k))
    assert mine == pytest.approx(max(terms), rel=1e-9)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (5.0, 1e-3)])
def test_the_budget_is_kept_and_used(relation, k, epsilon, delta):
    factor = np.sqrt(2 * k if relation is REPLACE else k)
    multiplier, threshold, chosen = calibrated(epsilon, delta, relation, k, factor)
    assert 0.999 * delta <= chosen.total_delta(epsilon, multiplier) <= delta
    plain = calibrate.noise_multiplier(epsilon, delta)
    assert plain <= multiplier <= plain * (1 + 1e-8)
    sigma = factor * multiplier * (1 << 20)
    assert chance_of_one(threshold, sigma) <= chosen.chance
    assert threshold_for(chosen.chance * (1 + 1e-9), sigma) <= threshold


def test_the_guarantee_of_private_keys_has_epsilon_and_delta_alone():
    promise, _ = group_guarantee((1.0, 1e-6, None, None), "add-remove", "one row", 3, True, 2.0)
    assert promise.epsilon(1e-6) == 1.0 and promise.kind == "approximate-dp"
    for delta in (2e-6, 1e-4, 0.1):
        eps = promise.epsilon(delta)
        assert 0 <= eps < 1 and promise.delta(eps) <= delta
        assert eps == 0 or promise.delta(eps * 0.999) > delta
    with pytest.raises(ValueError, match="naming the keys takes"):
        promise.epsilon(promise.selection.delta * 0.99)
    for name in ("mu", "rho"):
        with pytest.raises(AttributeError, match="private keys cost delta"):
            getattr(promise, name)
    for budget in ({"mu": 1.0}, {"rho": 1.0}):
        with pytest.raises(ValueError, match="private keys cost delta"):
            PrivateCounts(**budget)
    with pytest.raises(ValueError, match="at most 64"):
        PrivateCounts(epsilon=1.0, delta=1e-6, neighbors="replace", max_keys=65).guarantee_for("u")


def test_there_is_no_event_for_the_choice_of_keys():
    private, _ = group_guarantee((1.0, 1e-6, None, None), "add-remove", "one row", 3, True, 2.0)
    public, _ = group_guarantee((1.0, 1e-6, None, None), "add-remove", "one row", 3, False, 2.0)
    with pytest.raises(AttributeError, match="there is no dp_event"):
        private.dp_event()
    assert public.dp_event() == calibrate.dp_event(public.noise_multiplier)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_what_is_added_by_hand_is_no_less(epsilon):
    chosen = KeySelection(ADD, 3, 1e-4)
    added = calibrate.delta(2.0, epsilon) + chosen.delta
    assert chosen.total_delta(epsilon - np.log1p(-chosen.delta), 2.0) <= added


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("users", ["one", "none"])
def test_a_key_that_no_user_is_left_in_is_never_named(neighbors, users):
    """One user of 2,000 keys, max_keys=1; or rows of nobody. A key without a user that drew noise
    would be named with a chance of about delta; at delta = 1/2 none may be, in 20 releases, but
    the user's own."""
    keys = np.array([f"k{i}" for i in range(2000)])
    user = np.array(["me"] * 2000, object) if users == "one" else np.full(2000, None, object)
    table = {"x": np.zeros(2000), "g": keys, "u": user}
    known = {"epsilon": 1.0, "delta": 0.5, "neighbors": neighbors}
    for mechanism in (PrivateCounts(**known), PrivateGroupSum(Ellipsoid.ball(1.0, d=1), **known)):
        found = [mechanism(table, key="g", user="u", seed=seed).keys for seed in range(20)]
        assert len({key for named in found for key in named}) <= (users == "one")


def test_an_integer_too_long_to_print_is_a_key_like_others():
    table = {"g": np.array([10**5000, 1, 10**5000, 1, 1], object)}
    release = PrivateCounts(epsilon=50, delta=1e-3)(table, key="g", seed=1)
    assert release.keys == [1, 10**5000]
    whole = PrivateGroupSum(Ellipsoid.ball(1.0, d=1), epsilon=50, delta=1e-3)
    sums = whole.exact_sum({"x": np.ones(5), **table}, key="g")
    again = ExactGroupSum.from_bytes(sums.to_bytes(), Ellipsoid.ball(1.0, d=1))
    assert again.keys == sorted(sums.keys) and again.to_bytes() == sums.to_bytes()
