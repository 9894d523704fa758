"""Where papers account for a pair of Gaussians wrongly: each test fails on the printed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ellipsum import calibrate
from ellipsum.records import GaussianPair


def both(pair, epsilon):
    return max(float(pair.delta(epsilon)), float(pair.reverse.delta(epsilon)))


def test_koehler_7_3_an_encoder_with_its_own_variance_is_no_gaussian_mechanism():
    """Printed: N(mu(x), sigma(x)^2) is an instance of the Gaussian mechanism, so that equal means
    cost nothing. Standard deviations 1 and 1.1 in 100 dimensions: delta(1) = 0.277 and 0.240."""
    d = 100
    pair = GaussianPair(np.zeros(d), np.full(d, 1.1**2), np.zeros(d), np.ones(d))
    assert pair.delta(1.0) == pytest.approx(0.277, abs=5e-4)
    assert pair.reverse.delta(1.0) == pytest.approx(0.240, abs=5e-4)
    printed = GaussianPair(np.zeros(d), np.ones(d), np.zeros(d), np.ones(d))  # one sigma for all
    assert printed.delta(1.0) == 0 and both(pair, 1.0) > 0.2
    # The best event, drawn: it is a ball, since L depends on |z|^2 alone.
    rng = np.random.default_rng(0)
    z2 = rng.chisquare(d, 200_000)
    radius2 = 2 * (1 + d * math.log(1.1)) / (1 - 1 / 1.21)
    first = np.mean(1.21 * z2 > radius2)
    second = np.mean(z2 > radius2)
    assert first - math.e * second == pytest.approx(pair.delta(1.0), abs=0.01)


def test_koehler_7_3_even_the_better_variance_is_no_cover():
    """With a mean shift, too, the Gaussian mechanism of the smaller (or larger) deviation is
    passed by the exact pair of an encoder."""
    rng = np.random.default_rng(1)
    d = 64
    mean1, mean2 = 0.1 * rng.normal(size=(2, d))
    sd1, sd2 = np.exp(0.1 * rng.normal(size=(2, d)))
    pair = GaussianPair(mean1, sd1**2, mean2, sd2**2)
    for sd in (sd1, sd2):
        mu = float(np.linalg.norm((mean1 - mean2) / sd))
        assert both(pair, 3.0) > 10 * calibrate.delta(1 / mu, 3.0)


def test_zhou_theorem_3_2_how_many_rows_a_leverage_allows():
    """Replace, every row's leverage in its own table at most h: about (mu/h)^2 rows. The row that
    comes has leverage h there, and h/(1 - h) in the table before."""
    mu = 1 / calibrate.noise_multiplier(1.0, 1e-6)
    for h, most in ((1e-2, 546), (1e-3, 55_964), (1e-4, 5_602_327)):
        fits = GaussianPair.from_leverage(h, h / (1 - h), rows=most)
        passes = GaussianPair.from_leverage(h, h / (1 - h), rows=most + 1)
        assert both(fits, 1.0) <= 1e-6 < both(passes, 1.0)
        assert most * h * h / mu**2 == pytest.approx(1, abs=3 * h)


def test_zhou_section_3_the_log_ratio_of_a_projection():
    """L = m/2 (log |S2|/|S1| + tr((S2^-1 - S1^-1) YtY/m)) has the law that the leverages give."""
    rng = np.random.default_rng(2)
    table = rng.normal(size=(30, 3))
    x, m = np.array([1.5, -2.0, 0.5]), 12
    one = table.T @ table
    two = one + np.outer(x, x)
    draws = rng.multivariate_normal(np.zeros(3), one, (20_000, m))
    sums = np.einsum("nmi,nmj->nij", draws, draws)
    difference = np.linalg.inv(two) - np.linalg.inv(one)
    log_ratio = 0.5 * m * math.log(np.linalg.det(two) / np.linalg.det(one))
    log_ratio = log_ratio + 0.5 * np.einsum("ij,nij->n", difference, sums)
    into = float(x @ np.linalg.solve(one, x))
    loss = GaussianPair.from_leverage(into=into, rows=m).loss()
    assert stats.kstest(log_ratio, loss.cdf).pvalue > 1e-6


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_no_pair_of_tables_passes_the_worst_pair_of_the_projection(neighbors):
    """records: with the floor w^2 I, R^2 = r2 w^2, I against I + r2 uu', and for replace
    I + r2 uu' against I + r2 vv', are the worst; random tables come near and never pass."""
    rng = np.random.default_rng(3)
    r2, m, epsilon = 0.3, 8, 0.7
    out = r2 / (1 + r2) if neighbors == "replace" else 0
    worst = both(GaussianPair.from_leverage(out, r2, rows=m), epsilon)
    nearest = 0.0
    for k in range(200):
        d = int(rng.integers(2, 5))
        others = rng.normal(size=(int(rng.integers(1, 6)), d)) * 10.0 ** rng.uniform(-3, 1)
        x, y = rng.normal(size=(2, d))
        x, y = (v / np.linalg.norm(v) * math.sqrt(r2) for v in (x, y))
        base = np.eye(d) + others.T @ others
        old = base + (np.outer(x, x) if neighbors == "replace" else 0)
        inverse = np.linalg.inv(old)
        if neighbors == "replace":
            leverages = x @ inverse @ x, y @ inverse @ y, x @ inverse @ y
        else:
            leverages = 0.0, y @ inverse @ y, 0.0
        delta = both(GaussianPair.from_leverage(*map(float, leverages), rows=m), epsilon)
        assert delta <= worst * (1 + 1e-12), k
        nearest = max(nearest, delta)
    assert nearest > 0.9 * worst


def test_a_renyi_conversion_asks_for_more_noise():
    """The same pair through its best Rényi order (Canonne, Kamath & Steinke 2020): 5 to 13 % more
    w^2 for add-remove at (1, 1e-6)."""
    epsilon, target = 1.0, 1e-6
    orders = 1 + np.exp(np.linspace(-2, 6, 400))

    def converted(r2, m):
        pair = GaussianPair.from_leverage(into=r2, rows=m)
        worst = 0.0
        for here in (pair, pair.reverse):
            best = math.inf
            for a in orders:
                r = float(here.renyi(a))
                if math.isfinite(r):
                    log_delta = (a - 1) * (r - epsilon + math.log1p(-1 / a)) - math.log(a)
                    best = min(best, log_delta)
            worst = max(worst, math.exp(best))
        return worst

    def exact(r2, m):
        return both(GaussianPair.from_leverage(into=r2, rows=m), epsilon)

    def largest(delta, m):
        low, high = 1e-6, 1.0
        for _ in range(30):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if delta(middle, m) <= target else (low, middle)
        return low

    for m in (100, 10_000):
        share = largest(exact, m) / largest(converted, m) - 1
        assert 0.05 < share < 0.13
