"""Private centre, scale and covariance on their own; the Wishart mechanism's exact delta."""

from __future__ import annotations

import json
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from ellipsum import (
    Ellipsoid,
    ExactSum,
    estimate_center,
    estimate_covariance,
    estimate_scale,
    estimates,
    noise,
    second_moments,
)
from ellipsum.second_moments import moments
from ellipsum.wishart import best_wishart, delta

pytestmark = pytest.mark.usefixtures("same_noise_everywhere")

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((5, 5))
    return rng.standard_normal((20_000, 5)) @ root.T


def test_centre_and_scale_come_from_one_plan(table):
    sides = {"lower": np.full(5, -90.0), "upper": np.full(5, 110.0), **BUDGET}
    center = estimates.estimate_center(table, seed=1, **sides)
    scale = estimates.estimate_scale(table, seed=1, **sides)
    assert np.abs(center.value - table.mean(axis=0)).max() < 0.1
    np.testing.assert_allclose(scale.value, table.std(axis=0), rtol=0.1)
    assert center.guarantee.epsilon(1e-6) == 1.0
    assert not center.private and estimates.estimate_center(table, **sides).private
    assert (center.kind, scale.kind) == ("center", "scale") and scale.sd is None
    with pytest.raises(TypeError, match="sigma"):
        estimates.estimate_scale(table, sigma=np.ones(5), **sides)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("method", ["gaussian", "wishart"])
def test_the_covariance_is_found(table, method, neighbors):
    radius = float(np.linalg.norm(table, axis=1).max())
    truth = table.T @ table / len(table)
    found = estimate_covariance(
        table,
        center=np.zeros(5),
        radius=radius,
        method=method,
        neighbors=neighbors,
        seed=1,
        **BUDGET,
    )
    assert np.linalg.norm(found.value - truth) < 0.1 * np.linalg.norm(truth)
    assert np.linalg.eigvalsh(found.value)[0] >= -1e-12 * np.linalg.norm(truth)
    np.testing.assert_allclose(found.value, found.value.T)


@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0])
def test_the_moments_and_their_count_share_one_budget(monkeypatch, mu):
    """mu^2 of the sum, by its noise and sensitivity, and of the count are mu^2 together."""
    spent, draw = [], second_moments.noise.rounded_gaussian
    monkeypatch.setattr(
        "ellipsum.noise.rounded_gaussian",
        lambda n, sd, *, key: spent.append(sd) or draw(n, sd, key=key),
    )
    ball = {"center": np.zeros(3), "radius": 2.0, "mu": mu}
    total = second_moments._second_moments(np.ones((9, 3)), np.zeros(3), 2.0)
    for neighbors, draws in (("replace", 1), ("add-remove", 2)):
        spent.clear()
        estimate_covariance(np.ones((9, 3)), neighbors=neighbors, **ball)
        assert len(spent) == draws
        bound = second_moments.moment_sensitivity(total.ellipsoid, neighbors)
        parts = [bound / spent[0], *(noise._COUNT_STEPS / sd for sd in spent[1:])]
        assert mu**2 * (1 - 1e-9) < sum(part**2 for part in parts) <= mu**2


def test_a_row_whose_products_overflow_is_clipped_like_any_other_far_row():
    """It counted as the centre from 1e154 on."""
    center = np.array([0.5, -0.25, 3.0])
    way = np.array([[1.0, -2.0, 0.25]])
    near = second_moments._second_moments(way * 2.0**300, center, 2.0)
    far = [way * 2.0**power for power in (480, 509, 510, 511, 512, 600, 1022)]
    for row in far:
        total = second_moments._second_moments(row, center, 2.0)
        assert (total.integers() == near.integers()).all() and total.clipped == 1
    ends = np.array([[1.7e308, -1.7e308, 1.7e308]])
    apart = second_moments._second_moments(ends, -ends[0], 2.0)
    side = second_moments._second_moments(np.sign(ends) * 2.0**300, np.zeros(3), 2.0)
    assert (apart.integers() == side.integers()).all()
    for odd in (np.nan, np.inf):
        row = np.array([[odd, 1e300, 1.0]])
        hole = second_moments._second_moments(row, center, 2.0).integers()
        filled = second_moments._second_moments([[center[0], 1e300, 1.0]], center, 2.0).integers()
        assert (hole == filled).all() and hole.any() and not hole[:3].any()
    together = second_moments._second_moments(np.vstack([*far, way, [[odd] * 3]]), center, 2.0)
    alone = second_moments._second_moments(way, center, 2.0)
    assert (together.integers() == 7 * near.integers() + alone.integers()).all()
    with pytest.raises(ValueError, match="radius must be at most"):
        estimate_covariance(way, center=center, radius=1e151, mu=1.0)


def test_products_of_two_rows_with_holes_have_no_negative_inner_product():
    """What the factor sqrt(2) of replace rests on: no product of a row is lost by itself."""
    for power in [*range(-20, 40), *range(40, 1000, 37)]:
        size = 1.06 * 2.0**power
        rows = [[np.nan, size, sign * size / 2, 0.3 * size] for sign in (1.0, -1.0)]
        rows += [[np.inf, size, -size / 3, size / 2], [size, np.nan, -size, size / 4]]
        sums = [second_moments._second_moments([r], np.zeros(4), 2.0).integers() for r in rows]
        for a in sums:
            for b in sums:
                assert int(a @ b) >= -(2**24) * 10, power  # the integers' roundings


def test_a_wishart_estimate_promises_its_pair_alone(table):
    """Some outputs are impossible under one neighbour: no mu and no rho would be true."""
    known = {"center": np.zeros(5), "radius": 30.0, "seed": 1, **BUDGET}
    found = second_moments.estimate_covariance(table, method="wishart", **known)
    promise = found.guarantee
    for name in ("mu", "rho", "dp_event", "dp_relation"):
        with pytest.raises(AttributeError, match="one pair"):
            getattr(promise, name)
    assert promise.epsilon(1e-6) == promise.epsilon(0.5) == found.epsilon == 1.0
    assert str(promise) == "(1, 1e-06)-DP, neighbours: replace"
    told = json.loads(json.dumps(found.to_dict()))
    assert told["delta"] == 1e-6 and "rho" not in told and "mu" not in told["guarantee"]
    with pytest.raises(ValueError, match="delta = 1e-06 and above alone"):
        promise.epsilon(1e-7)
    assert second_moments.estimate_covariance(table, **known).guarantee.mu > 0


def test_the_noise_of_the_covariance_is_as_large_as_it_says(table):
    far, center = table[:500] + 100, np.full(5, 70.0)
    found = [
        estimate_covariance(far, center=center, radius=100.0, seed=s, **BUDGET) for s in range(60)
    ]
    off = ~np.eye(5, dtype=bool)
    told = found[0].sd
    assert told[0, 0] == pytest.approx(told[0, 1] * math.sqrt(2))
    scatter = np.std([f.value for f in found], axis=0)
    assert 0.3 < scatter[off].mean() / told[0, 1] < 1.3  # the projection takes some of it away


def test_moments_keep_the_norm_and_unpack_to_the_outer_product():
    x = np.random.default_rng(1).normal(size=(20, 6))
    packed = moments(x)
    np.testing.assert_allclose(np.linalg.norm(packed, axis=1), np.sum(x**2, axis=1))
    np.testing.assert_allclose(second_moments.unpacked(packed[3], 6), np.outer(x[3], x[3]))
    inner = np.sum(packed[0] * packed[1])
    assert inner == pytest.approx((x[0] @ x[1]) ** 2)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_no_two_rows_move_the_moments_by_more_than_the_bound(neighbors):
    rng, d, radius = np.random.default_rng(2), 4, 3.0
    region = Ellipsoid.ball(radius**2, d=d * (d + 1) // 2)
    bound, tight = second_moments.moment_sensitivity(region, neighbors), 0.0
    basis = np.eye(d)
    rows = [*(radius * basis), *(1e6 * basis), *rng.standard_t(1, size=(60, d)) * 10, np.zeros(d)]
    sums = [ExactSum(region).add(moments(row[None])).integers().astype(float) for row in rows]
    others = sums if neighbors == "replace" else [np.zeros(region.d)]
    for a in sums:
        for b in others:
            moved = np.linalg.norm(a - b)
            assert moved <= bound
            tight = max(tight, moved / bound)
    assert tight > 0.9999


# ---- Wishart -----------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [4, 11, 200])
@pytest.mark.parametrize("r2", [0.3, 2.0, 9.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
def test_delta_is_the_integral_over_where_the_ratio_is_large(nu, r2, epsilon):
    t = np.linspace(0, chi2.isf(1e-15, nu) + r2, 400_001)
    without, with_x = chi2.pdf(t, nu), chi2.pdf(t - r2, nu)
    step = t[1]
    both = [
        np.sum(np.maximum(a - math.exp(epsilon) * b, 0)) * step
        for a, b in ((without, with_x), (with_x, without))
    ]
    assert delta(epsilon, nu, r2) == pytest.approx(max(both), rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(("nu", "epsilon", "r2"), [
    (5, 0.14, 0.023), (1883, 0.06, 3.7), (60, 1.0, 0.05), (400, 2.0, 1.0), (4, 0.5, 1e-9),
    (2000, 1.0, 0.9), (12, 0.0, 20.0),
])  # fmt: skip
def test_delta_keeps_its_digits_where_it_is_small(nu, epsilon, r2):
    """Against 400 digits: the difference of two tails in doubles is lost below 1e-17."""
    with mpmath.workdps(400):
        half, eps, r = mpmath.mpf(nu) / 2, mpmath.mpf(epsilon), mpmath.mpf(r2)
        power, truth = half - 1, mpmath.mpf(0)
        if r / 2 > eps:
            a = r / mpmath.expm1((r / 2 - eps) / power)
            tails = [mpmath.gammainc(half, t / 2, regularized=True) for t in (a, a + r)]
            truth = tails[0] - mpmath.exp(eps) * tails[1]
        b = -r / mpmath.expm1(-(eps + r / 2) / power)
        tails = [mpmath.gammainc(half, 0, t / 2, regularized=True) for t in (b, b - r)]
        truth = max(truth, tails[0] - mpmath.exp(eps) * tails[1])
    assert 1 <= delta(epsilon, nu, r2) / float(truth) <= 1 + 2e-10


@pytest.mark.parametrize("target", [1e-6, 1e-17, 1e-30, 1e-100, 1e-300])
def test_a_tiny_delta_has_a_calibration_too(target):
    k, r2 = best_wishart(5, 1.0, target)
    assert delta(1.0, k - 4, r2) <= target < delta(1.0, k - 4, r2 * 1.001)


def test_the_pair_depends_on_one_direction_alone():
    """T = r^2 / x'V^-1 x is chi^2_nu without x, and r^2 more with it (Sherman & Morrison)."""
    rng, d, k, r2 = np.random.default_rng(3), 4, 9, 2.5
    g = rng.standard_normal((20_000, k, d))
    w = np.einsum("aki,akj->aij", g, g)
    x = np.full(d, math.sqrt(r2 / d))
    added = w + np.outer(x, x)
    t, shifted = (r2 / np.einsum("i,aij,j->a", x, np.linalg.inv(m), x) for m in (w, added))
    np.testing.assert_allclose(shifted, t + r2)
    assert np.mean(t < chi2.median(k - d + 1)) == pytest.approx(0.5, abs=0.02)


def test_delta_grows_with_the_row():
    for nu in (4, 30):
        for epsilon in (0.0, 0.5):
            values = [delta(epsilon, nu, r2) for r2 in np.linspace(0.01, 12, 60)]
            assert (np.diff(values) >= -1e-12).all()


def test_the_published_calibration_promises_what_cannot_be():
    """k = d + 1 and s^2 = 3 R^2/(2 eps): pure eps-DP as printed, but an event of probability zero
    for one neighbour has a large one for the other."""
    for epsilon in (0.1, 1.0):
        r2, nu = 2 * epsilon / 3, 2.0
        assert chi2.cdf(r2, nu) > 0.03
        g = np.random.default_rng(4).standard_normal((20_000, 4, 3))
        w = np.einsum("aki,akj->aij", g, g)  # k = 4 = d + 1
        x = np.array([math.sqrt(r2), 0, 0])
        impossible = np.linalg.eigvalsh(w - np.outer(x, x))[:, 0] < 0  # not x x' plus a Wishart
        assert np.mean(impossible) == pytest.approx(chi2.cdf(r2, nu), abs=0.012)


@pytest.mark.parametrize("d", [2, 20])
def test_the_calibration_is_the_least_that_holds(d):
    k, r2 = best_wishart(d, 1.0, 1e-6)
    nu = k - d + 1
    assert delta(1.0, nu, r2) <= 1e-6 < delta(1.0, nu, r2 * 1.001)
    for other in (nu // 2, 2 * nu):
        assert delta(1.0, other, r2 * (other + d - 1) / k * 1.02) > 1e-6


@pytest.mark.parametrize("method", ["gaussian", "wishart"])
def test_an_empty_table_is_an_answer_where_its_emptiness_is_private(method):
    ball = {"center": np.zeros(3), "radius": 2.0, "method": method, "neighbors": "add-remove"}
    for n in (0, 1):
        found = estimate_covariance(np.ones((n, 3)), **ball, **BUDGET)
        assert found.value.shape == (3, 3)
        assert found.private == (method == "gaussian")  # Wishart: for real numbers alone


def test_what_is_wrong_is_said(table):
    with pytest.raises(ValueError, match="needs epsilon and delta"):
        estimate_covariance(table, center=np.zeros(5), radius=1, method="wishart", mu=1)
    with pytest.raises(ValueError, match="no rows"):
        estimate_covariance(np.empty((0, 5)), center=np.zeros(5), radius=1, mu=1)
    with pytest.raises(ValueError, match="method must be"):
        estimate_covariance(table, center=np.zeros(5), radius=1, method="x", mu=1)


def test_an_estimate_of_too_few_rows_is_private_and_says_what_it_cannot():
    found = estimate_center(np.zeros((5, 2)), lower=[-1, -1], upper=[1, 1], epsilon=1, delta=1e-6)
    assert found.private and any("too few rows" in caveat for caveat in found.caveats)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["sd"] == [None, None]
    seeded = estimate_scale(
        np.zeros((5, 2)), lower=[-1, -1], upper=[1, 1], epsilon=1, delta=1e-6, seed=1
    )
    assert not seeded.private and seeded.caveats[0] == "not private: made with a seed"
    assert "the value is the domain's centre" in str(found)
    assert "the value is zero and says nothing" in str(seeded) and not seeded.value.any()


def two_tails(epsilon, nu, r2):
    """The same delta as differences of tails, 60 digits."""
    half, r2, e = mpmath.mpf(nu) / 2, mpmath.mpf(r2), mpmath.mpf(epsilon)

    def between(low, high):
        return mpmath.gammainc(half, low / 2, high / 2, regularized=True)

    first, b = mpmath.mpf(0), -r2 / mpmath.expm1(-(e + r2 / 2) / (half - 1))
    if r2 / 2 > e:
        a = r2 / mpmath.expm1((r2 / 2 - e) / (half - 1))
        first = between(a, mpmath.inf) - mpmath.exp(e) * between(a + r2, mpmath.inf)
    return max(first, between(0, b) - mpmath.exp(e) * between(0, max(b - r2, 0)))


@pytest.mark.parametrize("nu", [4, 5, 6, 7, 9, 12, 300])
def test_delta_of_a_wishart_is_that_of_two_tails_and_not_below(nu):
    """Where a power of the distance from an end of the integral is no whole one, and far out."""
    rng = np.random.default_rng(nu)
    pairs = [(0.001, 600.0), (17.5717433759263, 41.25335101075311), (1.0, 1450.0)]
    pairs += [(10 ** rng.uniform(-4, 2), 10 ** rng.uniform(-5, 3.3)) for _ in range(3)]
    for epsilon, r2 in pairs:
        with mpmath.workdps(60):
            true = two_tails(epsilon, nu, r2)
            if true > mpmath.mpf(10) ** -280:
                got = mpmath.mpf(delta(epsilon, nu, r2))
                assert min(true, 1 - mpmath.mpf(2) ** -53) <= got
                assert got <= min(1, true * (1 + mpmath.mpf(2e-10)))
