"""Rate-distortion and bottleneck channels: the reference table, adversaries, dominance."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from ellipsum import calibrate
from ellipsum.records import Bottleneck, GaussianChannel, RateDistortion
from ellipsum.records.gaussian_channel import posterior_error

TRUTH = Path(__file__).parents[2] / "shared/data/records_truth.json"


def random_covariance(rng, d, condition=100.0):
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return (basis * np.exp(rng.uniform(0, math.log(condition), d))) @ basis.T


def joint(rng, d, e):
    """Covariances of x, x with y, and y."""
    both = random_covariance(rng, d + e)
    return both[:d, :d], both[:d, d:], both[d:, d:]


def models(seed, d=5, e=3):
    rng = np.random.default_rng(seed)
    x, xy, y = joint(rng, d, e)
    return x, RateDistortion(x), Bottleneck(x, xy, y)


# ---- the table -----------------------------------------------------------------------


def table():
    if not TRUTH.exists():
        pytest.skip("the reference table is not beside this checkout")
    return json.loads(TRUTH.read_text())["rd_gib"]["cases"]


def test_rate_distortion_is_that_of_the_table():
    for case in table():
        model, truth = RateDistortion(case["cov_x"]), case["rd"]
        beta = model.beta(mu=case["mu"], radius=case["radius"])
        assert beta == pytest.approx(truth["beta"], rel=1e-12)
        assert model.distortion(beta) == pytest.approx(truth["distortion"], rel=1e-12)
        assert model.rate(beta) == pytest.approx(truth["rate"], rel=1e-10)
        assert model.kept(beta) == truth["kept"]
        assert model.mu(beta=beta, radius=case["radius"]) == pytest.approx(case["mu"], rel=1e-11)


def test_the_bottleneck_is_that_of_the_table():
    for case in table():
        model, truth = Bottleneck(case["cov_x"], case["cov_xy"], case["cov_y"]), case["gib"]
        beta = model.beta(mu=case["mu"], radius=case["radius"])
        assert beta == pytest.approx(truth["beta"], rel=1e-11)
        assert model.critical == pytest.approx(truth["beta_critical"], rel=1e-11)
        assert model.rate(beta) == pytest.approx(truth["I_TX"], rel=1e-10)
        assert model.relevance(beta) == pytest.approx(truth["I_TY"], rel=1e-10)
        norm = np.linalg.norm(model.channel(beta).matrix, 2)
        assert norm == pytest.approx(truth["spectral_norm"], rel=1e-10)


# ---- a second route ------------------------------------------------------------------


def information(cov_t, cov_t_given):
    return (np.linalg.slogdet(cov_t)[1] - np.linalg.slogdet(cov_t_given)[1]) / 2


@pytest.mark.parametrize("seed", range(5))
def test_curves_are_those_of_the_channel_itself(seed):
    rng = np.random.default_rng(seed)
    x, xy, y = joint(rng, 5, 3)
    rd, gib = RateDistortion(x), Bottleneck(x, xy, y)
    for beta in (1.001 / rd.variances[-1], 5 / rd.variances[-1]):  # all kept: densities exist
        channel = rd.channel(beta)
        a, noise = channel.matrix, channel.noise
        left = (np.eye(5) - a) @ x @ (np.eye(5) - a).T + noise
        assert np.trace(left) == pytest.approx(rd.distortion(beta), rel=1e-10)
        assert information(a @ x @ a.T + noise, noise) == pytest.approx(rd.rate(beta), rel=1e-8)
    for beta in gib.critical[0] * np.array([1.2, 3.0, 50.0]):
        a = gib.channel(beta).matrix
        given_y = x - xy @ np.linalg.solve(y, xy.T)
        unit = np.eye(len(a))
        assert information(a @ x @ a.T + unit, unit) == pytest.approx(gib.rate(beta), rel=1e-9)
        told = information(a @ x @ a.T + unit, a @ given_y @ a.T + unit)
        assert told == pytest.approx(gib.relevance(beta), rel=1e-8)


def test_no_channel_nearby_has_a_smaller_lagrangian():
    """What is optimal: I(x; t) + beta/2 E|x - t|^2, and I(x; t) - beta I(t; y)."""
    rng = np.random.default_rng(1)
    x, xy, y = joint(rng, 3, 2)
    rd, gib = RateDistortion(x), Bottleneck(x, xy, y)
    given_y = x - xy @ np.linalg.solve(y, xy.T)
    beta = 2 / rd.variances[-1]

    def rd_cost(a, noise):
        left = (np.eye(3) - a) @ x @ (np.eye(3) - a).T + noise
        return information(a @ x @ a.T + noise, noise) + beta / 2 * np.trace(left)

    best = rd.channel(beta)
    gib_beta = 1.5 * gib.critical[-1]
    start = gib.channel(gib_beta).matrix
    unit = np.eye(len(start))

    def gib_cost(a):
        told = information(a @ x @ a.T + unit, a @ given_y @ a.T + unit)
        return information(a @ x @ a.T + unit, unit) - gib_beta * told

    for _ in range(200):
        step = 1e-2 * rng.normal(size=(3, 3)) * np.abs(best.matrix).max()
        other = 1e-2 * rng.normal(size=(3, 3)) * np.abs(best.noise).max()
        noise = best.noise + (other + other.T) / 20
        if np.linalg.eigvalsh(noise)[0] > 0:
            assert rd_cost(best.matrix + step, noise) > rd_cost(best.matrix, best.noise)
        moved = start + 1e-2 * rng.normal(size=start.shape) * np.abs(start).max()
        assert gib_cost(moved) > gib_cost(start)


def test_the_information_curve_is_that_of_chechik_and_others():
    _, _, gib = models(3)
    lam = 1 - gib.correlations**2
    for beta in gib.critical[0] * np.array([1.05, 1.5, 4.0, 100.0]):
        n, rate = gib.kept(beta), gib.rate(beta)
        up, low = np.prod((1 - lam[:n]) ** (1 / n)), np.prod(lam[:n] ** (1 / n))
        want = rate - n / 2 * math.log(up + math.exp(2 * rate / n) * low)
        assert gib.relevance(beta) == pytest.approx(want, rel=1e-12)


# ---- exact mu ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_a_search_over_pairs_reaches_mu_and_never_passes_it(seed):
    """Gradient ascent over two records of the ball on the shift in the noise's metric."""
    _, rd, gib = models(seed, d=4)
    rng, radius, mu = np.random.default_rng(seed), 3.0, 1.3
    for model in (rd, gib):
        channel = model.channel(model.beta(mu=mu, radius=radius))
        inverse = np.linalg.pinv(channel.noise, rcond=1e-12)
        metric = channel.matrix.T @ inverse @ channel.matrix

        def loss(pair, metric=metric):
            x1, x2 = pair.reshape(2, -1)
            x1 = x1 * min(1, radius / np.linalg.norm(x1))
            x2 = x2 * min(1, radius / np.linalg.norm(x2))
            return -float((x1 - x2) @ metric @ (x1 - x2))

        found = [
            math.sqrt(-minimize(loss, 3 * rng.normal(size=8), tol=1e-14).fun) for _ in range(12)
        ]
        assert max(found) <= mu * (1 + 1e-9)
        assert max(found) >= mu * (1 - 1e-6)


def test_epsilon_is_the_analytic_one_at_the_exact_mu():
    _, rd, gib = models(11)
    for model in (rd, gib):
        beta = model.beta(mu=0.8, radius=2.0)
        want = calibrate.epsilon(1 / 0.8, 1e-6)
        assert model.epsilon(beta=beta, radius=2.0, delta=1e-6) == pytest.approx(want, rel=1e-9)
        channel = model.channel(beta)
        assert channel.epsilon(2.0, 1e-6) == pytest.approx(want, rel=1e-9)


def test_below_the_critical_beta_nothing_is_kept_and_nothing_told():
    _, rd, gib = models(12)
    for model in (rd, gib):
        beta = 0.999 * model.critical[0]
        assert model.kept(beta) == 0
        assert model.rate(beta) == 0
        assert model.mu(beta=beta, radius=5.0) == 0
        assert model.epsilon(beta=beta, radius=5.0, delta=1e-6) == 0
    assert rd.distortion(0.999 * rd.critical[0]) == pytest.approx(rd.variances.sum())


def test_a_channel_without_noise_somewhere_has_no_mu():
    with pytest.raises(ValueError, match="noise must cover the range"):
        GaussianChannel(np.eye(2), np.diag([1.0, 0.0])).mu(1.0)
    silent = GaussianChannel(np.diag([2.0, 0.0]), np.diag([1.0, 0.0]))
    assert silent.mu(1.0) == pytest.approx(4.0)


def test_what_cannot_be_is_refused_by_name():
    with pytest.raises(ValueError, match="covariance must be positive semidefinite"):
        RateDistortion(-np.eye(2))
    with pytest.raises(ValueError, match="covariance must be symmetric"):
        RateDistortion([[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ValueError, match="x determines a part of y"):
        Bottleneck(np.eye(1), [[1.0]], np.eye(1))
    with pytest.raises(ValueError, match="uncorrelated"):
        Bottleneck(np.eye(1), [[0.0]], np.eye(1)).beta(mu=1.0, radius=1.0)


def test_a_radius_far_beyond_all_records_keeps_nothing_and_a_tiny_one_is_refused():
    _, distortion, bottleneck = models(4)
    for channel in (distortion, bottleneck):
        assert channel.beta(mu=1.0, radius=1e9) == pytest.approx(channel.critical[0])
        for mu, radius in ((1.0, 1e160), (1.0, 1.7e308), (1e-300, 1e300)):
            assert channel.beta(mu=mu, radius=radius) == pytest.approx(channel.critical[0])
        for mu, radius in ((1.0, 1e-300), (1.7e308, 1.0), (1e300, 1e-300)):
            with pytest.raises(ValueError, match="change the unit of the data"):
                channel.beta(mu=mu, radius=radius)


# ---- dominance -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_both_are_garblings_of_isotropic_noise_of_the_same_mu(seed):
    """t = M y + N(0, S), y = gamma x + N(0, I): the same law of t given x, and S >= 0."""
    _, rd, gib = models(seed, d=6)
    for mu in (0.1, 1.0, 20.0):
        for model in (rd, gib):
            channel = model.channel(model.beta(mu=mu, radius=2.0))
            gain = mu / 4
            m, s = channel.garbling(gain)
            white = channel.whitened()
            np.testing.assert_allclose(m * gain, white, rtol=1e-12, atol=1e-12 * gain)
            np.testing.assert_allclose(m @ m.T + s, np.eye(len(m)), atol=1e-12)
            assert np.linalg.eigvalsh(s).min(initial=0.0) >= -1e-12
            with pytest.raises(ValueError, match="no garbling"):
                channel.garbling(gain * (1 - 1e-9))


@pytest.mark.parametrize("seed", range(10))
def test_isotropic_noise_of_the_same_mu_leaves_less_error(seed):
    x, rd, gib = models(seed, d=6)
    for mu in (0.1, 1.0, 20.0):
        plain = posterior_error(x, GaussianChannel(mu / 4 * np.eye(6), np.eye(6)))
        components = rd.variances / (1 + rd.variances * (mu / 4) ** 2)
        assert plain == pytest.approx(components.sum(), rel=1e-10)
        for model in (rd, gib):
            channel = model.channel(model.beta(mu=mu, radius=2.0))
            assert posterior_error(x, channel) >= plain * (1 - 1e-12)
        beta = rd.beta(mu=mu, radius=2.0)
        error = posterior_error(x, rd.channel(beta))
        assert error == pytest.approx(rd.distortion(beta), rel=1e-9)  # E[x|t] = t
