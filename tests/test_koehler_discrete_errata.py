"""Where Koehler 2018 is wrong as printed, chapters 1 and 2: relations, discrete channels, priors.

Each test holds for the right form and fails on the printed one, which it evaluates too.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import ndtr

from ellipsum import calibrate
from ellipsum.records import blahut_arimoto, exponential_mechanism, information_bottleneck

# ---- chapter 1: which tables are neighbours --------------------------------------------------


def apart(one, other):
    """|X sym. difference X'| of two tables, as multisets."""
    a, b = Counter(one), Counter(other)
    return (a - b).total() + (b - a).total()


def test_1_2_1_tables_of_equal_size_never_differ_by_one_row():
    """Definitions 1.2.1, 1.2.2 and (1.2) take X, X' of X^n with |X sym. difference X'| = 1: there
    is no such pair, so that any average would need no noise. For one row replaced, an average of
    n = 4 weights up to 200 kg has the sensitivity 200/4, and for n = 100 the printed 2."""
    weights, n = (0.0, 70.0, 140.0, 200.0), 4
    tables = list(itertools.product(weights, repeat=n))
    pairs = list(itertools.product(tables, tables))[:: len(tables) // 16 + 1]
    pairs += [((*rest, a), (*rest, b)) for rest in tables[::4] for a in weights for b in weights]

    def sensitivity(neighbours):
        return max((abs(np.mean(a) - np.mean(b)) for a, b in neighbours), default=0.0)

    assert {apart(a, b) % 2 for a, b in pairs} == {0}
    printed = sensitivity((a, b) for a, b in pairs if apart(a, b) == 1)
    replaced = sensitivity((a, b) for a, b in pairs if sum(map(float.__ne__, a, b)) == 1)
    assert printed == 0 and replaced == 200 / n
    assert {apart(a, b) for a, b in pairs if sum(map(float.__ne__, a, b)) == 1} == {2}


def test_1_2_1_laplace_in_mediocristan():
    """Laplace noise of 2 on 100 weights is 1-DP for one weight replaced: reached from 0 to 200 kg.
    Rudy's 140 for 70 kg moves the average by 0.7: a factor e^0.35, not "exp(1)"; fifty releases
    allow e^17.5 of him, not "exp(50)"."""
    scale, grid = 2.0, np.linspace(-50, 50, 4001)

    def most(moved):
        return float(np.max(np.abs(grid - moved) - np.abs(grid)) / scale)

    assert most(200 / 100) == pytest.approx(1)
    assert most(70 / 100) == pytest.approx(0.35) and most(70 / 100) < 0.5 * 1
    assert 50 * most(70 / 100) == pytest.approx(17.5)


def test_1_2_3_the_gaussian_mechanism_by_its_constant():
    """Theorem 1.2.1, c^2 > 2 log(1.25/delta): a guarantee up to epsilon = 1, as printed, and none
    beyond ("this original result has been extended": by another formula, (1.7))."""
    delta = 1e-5
    c = math.sqrt(2 * math.log(1.25 / delta))
    for epsilon in (0.01, 0.1, 0.5, 0.999):
        assert calibrate.delta(c / epsilon, epsilon) <= delta
        assert calibrate.noise_multiplier(epsilon, delta) < c / epsilon
    assert calibrate.delta(c / 20, 20.0) > 3 * delta
    # (1.7) is right, eta = mu^2/2
    mu = 0.8
    eta, epsilon = mu**2 / 2, 1.3
    right = ndtr((eta - epsilon) / math.sqrt(2 * eta)) - math.exp(epsilon) * ndtr(
        (-eta - epsilon) / math.sqrt(2 * eta)
    )
    assert calibrate.delta(1 / mu, epsilon) == pytest.approx(right, rel=1e-9)


# ---- chapter 2 -------------------------------------------------------------------------------


def test_2_2_1_the_prior_must_be_public():
    """Theorem 2.2.1 with P_T of (2.8) from the private table's own law is no 2 beta range-DP
    release (2.4.1): ten records, beta = 2. One one or two of them decide whether the letter 1 is
    ever released; of three or four, the nine others' releases tell more than a record's own."""
    beta, n, cost = 2.0, 10, 1 - np.eye(2)

    def channel(ones):
        found = blahut_arimoto([1 - ones / n, ones / n], cost, beta).channel
        return np.asarray(found), found.epsilon()

    def release_epsilon(ones):
        """max log-ratio over all outputs of the tables with this many ones and one more."""
        (few, _), (more, _) = channel(ones), channel(ones + 1)
        rows = [0] * (n - ones - 1) + [1] * ones
        pairs = [(few[0], more[1]), *((few[x], more[x]) for x in rows)]
        worst = 0.0
        for sign in (1, -1):
            total = 0.0
            for one, other in pairs:
                a, b = (one, other) if sign > 0 else (other, one)
                with np.errstate(divide="ignore", invalid="ignore"):
                    total += float(np.nanmax(np.log(a / b)))
            worst = max(worst, total)
        return worst

    assert release_epsilon(1) == math.inf  # printed: 2 beta range = 4
    assert release_epsilon(3) > 2 * beta
    # one public prior: the same for all tables, and then each record costs its channel alone
    public = exponential_mechanism(cost, beta, np.array([0.7, 0.3]))
    assert public.epsilon() <= 2 * beta
    alone = np.log(np.asarray(public)[0] / np.asarray(public)[1])
    assert np.abs(alone).max() == pytest.approx(public.epsilon(), rel=1e-12)


def test_2_2_2_two_beta_times_the_range_is_a_bound_alone():
    """Exact <= beta range <= 2 beta sensitivity, and (beta range)^2/8 bounds every Renyi order."""
    rng, nearest = np.random.default_rng(3), 0.0
    for _ in range(100):
        cost = rng.exponential(size=(2, int(rng.integers(2, 7))))
        beta = float(rng.uniform(0.1, 3))
        given = np.asarray(exponential_mechanism(cost, beta))
        moved = cost[0] - cost[1]
        reach, printed = beta * np.ptp(moved), 2 * beta * np.abs(moved).max()
        log_ratio = np.log(given[0] / given[1])
        assert np.abs(log_ratio).max() <= reach * (1 + 1e-12) and reach <= printed * (1 + 1e-12)
        for order in (1.5, 4.0, 20.0):
            renyi = math.log((given[1] * np.exp(order * log_ratio)).sum()) / (order - 1)
            assert renyi <= order * reach**2 / 8 * (1 + 1e-9)
            nearest = max(nearest, renyi / (order * reach**2 / 8))
    assert nearest > 0.9


def test_2_2_3_is_given_the_record():
    """(2.10) bounds P_{T|X=x}, not the marginal P_T that is printed: 120 random channels keep the
    one, and two letters of equal mass pass the other 13 times over."""
    rng = np.random.default_rng(0)
    for _ in range(120):
        letters = int(rng.integers(2, 7))
        cost = rng.exponential(size=(5, letters))
        prior = rng.dirichlet(np.ones(letters))
        beta, slack = float(rng.uniform(0.1, 20)), float(rng.uniform(0.01, 1))
        given = np.asarray(exponential_mechanism(cost, beta, prior))
        for x in range(5):
            over = cost[x] - cost[x].min()
            bound = math.exp(-beta * slack) / prior[over < slack].sum()
            assert given[x, over > 2 * slack].sum() <= bound * (1 + 1e-12)
    found = blahut_arimoto([0.5, 0.5], 1 - np.eye(2), 10.0)
    given = np.asarray(found.channel)
    marginal = given.mean(axis=0)
    bound = math.exp(-10.0 * 0.4) / marginal[0]  # x = 0, mu = 0.4: near are the zeros alone
    assert given[0, 1] < bound and marginal[1] > 13 * bound


def mutual(joint):
    outer = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    kept = joint > 0
    return float(np.sum(joint[kept] * np.log(joint[kept] / outer[kept])))


def divergences(p_xy, given):
    """KL(P_{Y|x} || P_{Y|t}) for every x and t of a channel T|X; the decoder is the posterior."""
    p_x = p_xy.sum(axis=1)
    decoder = (p_xy.T @ given) / (p_x @ given)  # (y, t)
    y_given_x = p_xy / p_x[:, None]
    return (y_given_x[:, :, None] * np.log(y_given_x[:, :, None] / decoder[None])).sum(axis=1)


def test_2_17_has_the_rate_of_t():
    """I(X;T) + beta D is the bottleneck's functional plus the constant beta I(X;Y), for every
    channel. With the printed I(X;Y), itself a constant, the least is D = 0 at every beta: all
    of x is released, whatever the budget."""
    flip, beta = 0.1, 2.0
    p_xy = np.array([[1 - flip, flip], [flip, 1 - flip]]) / 2
    p_x, whole = p_xy.sum(axis=1), mutual(p_xy)

    def parts(given):
        distortion = float(np.sum(p_x[:, None] * given * divergences(p_xy, given)))
        return mutual(p_x[:, None] * given), mutual(p_xy.T @ given), distortion

    rng = np.random.default_rng(1)
    for _ in range(50):
        rate, relevance, distortion = parts(rng.dirichlet(np.ones(3), size=2))
        assert rate + beta * distortion == pytest.approx(rate - beta * relevance + beta * whole)
    best = np.asarray(information_bottleneck(p_xy, beta).channel)
    rate, relevance, distortion = parts(best)
    all_of_x = parts(np.eye(2))
    assert rate - beta * relevance < all_of_x[0] - beta * all_of_x[1] - 0.02
    assert rate + beta * distortion < all_of_x[0] + beta * all_of_x[2] - 0.02
    assert whole + beta * all_of_x[2] < whole + beta * distortion - 0.1  # printed: the other way


def test_2_3_2_the_decoder_is_a_mean_over_what_is_known_of_y_given_x():
    """Printed: P_{Y|T=t} under its own integral, which any decoder solves. With P_{Y|X=x} there it
    is the posterior, and the bottleneck's channel is the exponential mechanism of (2.19)."""
    rng = np.random.default_rng(2)
    p_xy = rng.dirichlet(np.ones(12)).reshape(4, 3)
    beta, p_x = 12.0, p_xy.sum(axis=1)
    given = np.asarray(information_bottleneck(p_xy, beta).channel)
    given = given[:, given.max(axis=0) > 1e-12]
    marginal = p_x @ given
    right = (p_xy.T @ given) / marginal

    def mechanism(decoder):
        y_given_x = (p_xy / p_x[:, None])[:, :, None]
        cost = (y_given_x * np.log(y_given_x / decoder[None])).sum(axis=1)
        weight = np.exp(-beta * cost) * marginal
        return weight / weight.sum(axis=1, keepdims=True)

    assert mutual(p_x[:, None] * given) > 0.01
    np.testing.assert_allclose(mechanism(right), given, atol=1e-5)
    for decoder in (right, rng.dirichlet(np.ones(3), size=given.shape[1]).T):
        printed = (decoder[:, None, :] * given * p_x[:, None]).sum(axis=1) / marginal
        np.testing.assert_allclose(printed, decoder, rtol=1e-12)
    assert np.abs(mechanism(decoder) - given).max() > 0.1
