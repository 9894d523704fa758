"""Where Koehler 2018 is wrong as printed, chapters 1 and 3 to 6 and the appendix.

Each test holds for the right form and fails on the printed one, which it evaluates too.
(Chapter 2's discrete statements, and which tables are neighbours: test_koehler_discrete_errata.py.)
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import ndtri
from scipy.stats import norm

from ellipsum import QuadraticForm, calibrate
from ellipsum.records import Bottleneck, RateDistortion
from ellipsum.records import printed_bounds as printed
from koehler_models import S, covariances, lagrangian


def exact_epsilon(mu, delta):
    return calibrate.epsilon(1 / mu, delta)


# ---- chapter 1 -----------------------------------------------------------------------


def test_1_4_refuses_a_mechanism_that_ignores_its_input():
    """|log((P(B) - delta)/P'(B))| <= epsilon fails for P = P'; one-sided it holds."""
    delta, epsilon, chance = 1e-3, 0.1, 2e-3
    assert abs(math.log((chance - delta) / chance)) > epsilon
    assert chance <= math.exp(epsilon) * chance + delta


def test_composition_of_fit_and_release_is_that_of_mu():
    """(epsilon + epsilon, delta + delta) spends more than mu^2 = mu_fit^2 + mu_release^2 needs."""
    mu, delta = 0.7, 1e-6
    added = 2 * exact_epsilon(mu, delta / 2)
    assert exact_epsilon(math.hypot(mu, mu), delta) < 0.8 * added


# ---- chapter 5: norms ------------------------------------------------------------------


def test_5_1_weyl_is_an_equality_sometimes():
    noise = np.outer([1.0, 0.0], [1.0, 0.0])
    moved = np.linalg.eigvalsh(np.diag([3.0, 1.0]) + noise) - np.array([1.0, 3.0])
    assert np.abs(moved).max() == np.linalg.norm(noise, 2)  # printed: strictly below


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
def test_5_4_5_8_and_a_3_are_no_tail_bounds(delta):
    """The inner radicand is negative as printed; its sign mended, both factors 2 are missing."""
    rng = np.random.default_rng(0)
    assert -np.trace(np.eye(2)) * math.log(1 / delta) < 0
    for d in (1, 2, 8):
        q = np.diag(rng.uniform(0.1, 3, d))
        exact = math.sqrt(QuadraticForm(np.diag(q)).isf(delta))
        assert exact <= printed.hsu_norm(q, delta)
        if delta < 1e-4:
            assert printed.norm_5_4(q, delta) < exact
            assert printed.norm_a_3(q, delta) < exact


def test_5_5_is_a_sigma_a_transposed():
    """The covariance of t = A x + noise for an A that is not symmetric."""
    x, xy, y = covariances(3, d=3, e=3)
    model = Bottleneck(x, xy, y)
    a = model.channel(2 * model.critical[-1]).matrix
    z = np.random.default_rng(0).normal(size=(200_000, 3)) @ np.linalg.cholesky(x).T
    t = z @ a.T + np.random.default_rng(1).normal(size=(200_000, 3))
    seen, right, wrong = np.cov(t.T), a @ x @ a.T + np.eye(3), a.T @ x @ a + np.eye(3)
    assert np.linalg.norm(seen - right) < 0.02 * np.linalg.norm(right)
    assert np.linalg.norm(seen - wrong) > 0.1 * np.linalg.norm(right)


def test_5_9_and_a_115_are_not_symmetric():
    x, xy, y = covariances(4, d=3, e=3)
    model = Bottleneck(x, xy, y)
    a = model.channel(2 * model.critical[-1]).matrix
    q = printed.q_5_9(a, x, xy, y)
    assert np.linalg.norm(q - q.T) > 0.05 * np.linalg.norm(q)
    # The covariance of c = S_{y|t}^(-1/2) S_yt S_t^-1 t has its eigenvalues, not its norm.
    cov_t = a @ x @ a.T + np.eye(3)
    cross = (a @ xy).T
    left = y - cross @ np.linalg.solve(cov_t, cross.T)
    value, basis = np.linalg.eigh(left)
    root = (basis / np.sqrt(value)) @ basis.T
    right = root @ cross @ np.linalg.solve(cov_t, cross.T) @ root.T
    np.testing.assert_allclose(
        np.sort(np.linalg.eigvals(q).real), np.linalg.eigvalsh(right), rtol=1e-9
    )
    assert np.linalg.norm(q, 2) > 1.01 * np.linalg.norm(right, 2)


def relative_entropy(one, other):
    """KL(N(m, v) || N(m', v')) by quadrature."""
    first, second = norm(one[0], math.sqrt(one[1])), norm(other[0], math.sqrt(other[1]))
    ends = one[0] - 12 * math.sqrt(one[1]), one[0] + 12 * math.sqrt(one[1])
    found, _ = quad(lambda y: first.pdf(y) * (first.logpdf(y) - second.logpdf(y)), *ends)
    return found


def test_a_111_is_a_difference_of_means():
    """The distortion is KL(P_{Y|x} || P_{Y|t}) = |z|^2/2 + what does not depend on x and t, for
    z = S_{y|t}^(-1/2)(S_yx S_x^-1 x - S_yt S_t^-1 t); printed with a plus."""
    x, xy, y = covariances(5, d=3, e=1)
    model = Bottleneck(x, xy, y)
    a = model.channel(2 * model.critical[-1]).matrix
    cov_t, cross = a @ x @ a.T + np.eye(len(a)), (a @ xy).T
    left = float((y - cross @ np.linalg.solve(cov_t, cross.T))[0, 0])
    given_x = float((y - xy.T @ np.linalg.solve(x, xy))[0, 0])
    rng = np.random.default_rng(0)
    rest, wrong = [], []
    for _ in range(8):
        record, t = rng.normal(size=3), rng.normal(size=len(a))
        means = float((np.linalg.solve(x, xy).T @ record)[0]), float((cross / cov_t @ t)[0])
        distortion = relative_entropy((means[0], given_x), (means[1], left))
        rest.append(distortion - (means[0] - means[1]) ** 2 / left / 2)
        wrong.append(distortion - (means[0] + means[1]) ** 2 / left / 2)
    assert np.ptp(rest) < 1e-9
    assert np.ptp(wrong) > 0.1


def test_a_112_loses_the_covariance_of_y_and_x():
    """|z| <= |S_{y|t}^(-1/2) S_yx S_x^-1| R + |c|. Printed without S_yx: no product for as many
    columns of y as of x, and where there is one, a "bound" that falls with the unit of y."""
    x, xy, y = covariances(5, d=2, e=2)
    radius = 3.0
    for unit in (1.0, 100.0):
        model = Bottleneck(x, unit * xy, unit**2 * y)
        a = model.channel(2 * model.critical[-1]).matrix
        cov_t, cross = a @ x @ a.T + np.eye(len(a)), unit * (a @ xy).T
        left = unit**2 * y - cross @ np.linalg.solve(cov_t, cross.T)
        value, basis = np.linalg.eigh(left)
        root = (basis / np.sqrt(value)) @ basis.T
        right = root @ (unit * xy.T) @ np.linalg.inv(x)
        angle = np.linspace(0, np.pi, 2001)
        ball = radius * np.stack([np.cos(angle), np.sin(angle)])
        most = np.linalg.norm(right @ ball, axis=0).max()  # t = 0
        assert most == pytest.approx(np.linalg.norm(right, 2) * radius, rel=1e-5)
        printed_bound = np.linalg.norm(root @ np.linalg.inv(x), 2) * radius
    assert most > 10 * printed_bound


# ---- chapter 5: guarantees -------------------------------------------------------------


def test_5_6_is_no_guarantee():
    """R/sigma = 30 and snr = 100: claimed 127,452 with the right H, exact 182,558."""
    model, radius, delta = RateDistortion([[1.0]]), 30.0, 1e-5
    beta = 101.0
    claimed = printed.corollary_1_epsilon(model, beta, radius, delta)
    exact = model.epsilon(beta=beta, radius=radius, delta=delta)
    assert claimed == pytest.approx(127_452, abs=1)
    assert exact == pytest.approx(182_558, abs=1)
    assert claimed < exact
    # elsewhere it is up to 15 times loose: it says nothing either way
    small = RateDistortion([[1.0]])
    assert printed.corollary_1_epsilon(small, 1.5, 2.0, delta) > 2 * small.epsilon(
        beta=1.5, radius=2.0, delta=delta
    )


def test_2_5_1_is_false_even_with_the_exact_tail():
    """(2.21) bounds the marginal of t; given the worst x the tail is heavier."""
    delta, radius, beta = 1e-5, 30.0, 101.0
    model = RateDistortion([[1.0]])
    spread = math.sqrt(1 - 1 / beta)  # of t
    quantile = -float(ndtri(delta / 2)) * spread
    assert quantile < radius  # so that sup |d(x, t) - d(x', t)| = (R + |t|)^2 / 2
    claimed = 2 * beta * (radius + quantile) ** 2 / 2
    assert claimed < model.epsilon(beta=beta, radius=radius, delta=delta)
    worst = (1 - 1 / beta) * radius  # mean of t given x = R: beyond the quantile, surely
    assert norm.sf((quantile - worst) / math.sqrt((1 - 1 / beta) / beta)) > 0.999


def test_5_11_is_no_guarantee():
    rho, radius, delta = 0.9, 200.0, 1e-5
    one = np.eye(1)
    model = Bottleneck(one, [[rho]], one)
    beta = 100 * model.critical[0]
    claimed = printed.corollary_2_epsilon(one, np.array([[rho]]), one, beta, radius, delta)
    assert claimed < 0.9 * model.epsilon(beta=beta, radius=radius, delta=delta)


def test_5_12_lacks_the_two():
    a, radius = np.array([[3.0, 0.0], [1.0, 1.0]]), 2.0
    top = np.linalg.svd(a)[2][0] * radius
    assert np.linalg.norm(a @ (top - (-top))) == pytest.approx(
        2 * printed.sensitivity_5_12(a, radius)
    )


@pytest.mark.parametrize("seed", range(6))
def test_5_4_1_is_no_guarantee(seed):
    """Its eta is a quarter of the right one where the noise is white on what is kept."""
    x, xy, y = covariances(seed)
    for model, top in ((RateDistortion(x), 1.0), (Bottleneck(x, xy, y), 1.0)):
        beta, radius, delta = top * model.critical[0] * 1.01, 30.0, 1e-5
        claimed = printed.theorem_5_4_1_epsilon(model.channel(beta), radius, delta)
        exact = model.epsilon(beta=beta, radius=radius, delta=delta)
        assert claimed < 0.7 * exact
        mu = model.mu(beta=beta, radius=radius)
        assert -ndtri(delta) * mu + mu**2 / 2 >= exact  # the implication with eta = mu^2/2


def test_figure_5_1_the_error_tends_to_one():
    """The axis called nu is eta; delta = 1e-4."""
    error = []
    for eta in (0.01, 1.0, 100.0, 1e6):
        mu = math.sqrt(2 * eta)
        error.append(-float(ndtri(1e-4)) * mu + eta - exact_epsilon(mu, 1e-4))
    assert error == pytest.approx([0.1285, 0.4868, 0.8869, 0.9987], abs=6e-5)


def test_5_15_is_neither_a_guarantee_nor_a_lower_bound():
    delta, bits = 1e-5, 1.5
    snr = 4**bits - 1
    assert 0.5 * math.log2(1 + snr) == pytest.approx(bits)
    assert abs(snr - math.exp(bits)) > 2  # (5.21): O(exp(n_bits)) is O(4^n_bits)
    for reach in (1.0, 3.0):  # R/sigma >= 1
        exact = exact_epsilon(2 * reach * math.sqrt(snr), delta)
        assert printed.snr_epsilon_5_15(snr, delta) < exact
    # "epsilon >=" of a sufficient condition: less will do at its own eta
    assert exact_epsilon(math.sqrt(snr), delta) < printed.snr_epsilon_5_15(snr, delta)


def test_5_29_to_5_31_lack_the_half():
    rho = 0.7
    model = Bottleneck([[2.0]], [[rho * math.sqrt(6.0)]], [[3.0]])
    beta = 3 * model.critical[0]
    log_ratio = printed.rate_5_31(beta, model.critical[0])
    assert model.rate(beta) == pytest.approx(log_ratio / 2, rel=1e-12)
    a = model.channel(beta).matrix[0, 0]
    assert a * a * 2.0 == pytest.approx(math.exp(log_ratio) - 1, rel=1e-12)  # SNR


def test_5_33_is_not_the_line_before_it():
    beta, critical = 5.0, 2.0
    first_line = (beta / critical - 1) / ((critical - 1) / critical)
    assert first_line == pytest.approx(3)
    assert printed.eta_5_33(beta, critical) == 4
    model = Bottleneck(np.eye(1), [[math.sqrt(0.5)]], np.eye(1))
    snr = float(model.channel(beta).matrix[0, 0]) ** 2
    assert snr == pytest.approx(first_line)
    right = model.mu(beta=beta, radius=1.0) ** 2 / 2  # R = sigma: 2 SNR
    assert right == pytest.approx(2 * first_line)
    assert right > printed.eta_5_33(beta, critical)


def test_the_norm_of_a_is_not_its_longest_row():
    """ "The whole analysis is determined by alpha_max": rows are Sigma-orthogonal only."""
    most = 1.0
    for seed in range(200):
        model = Bottleneck(*covariances(seed, d=3, e=3))
        a = model.channel(20 * model.critical[-1]).matrix
        most = max(most, np.linalg.norm(a, 2) / np.linalg.norm(a, axis=1).max())
    assert most > 1.2


def test_5_34_to_5_38_blow_up_where_nothing_does():
    """Noise as weak as its smallest eigenvalue; in its own metric s_min does not occur."""
    largest, beta, radius = 1.0, 50.0, 1.0
    right = RateDistortion([[largest]]).mu(beta=beta, radius=radius) ** 2 / 2
    smallest = 1.0001 / beta
    both = RateDistortion(np.diag([largest, smallest]))
    assert both.mu(beta=beta, radius=radius) ** 2 / 2 == pytest.approx(right)
    assert printed.eta_5_34(largest, smallest, beta, radius) > 50 * right
    assert printed.eta_5_34(largest, largest, beta, radius) == pytest.approx(right / 2)
    assert printed.eta_5_38(1.0, beta * largest) == pytest.approx(right / 2)
    assert printed.alpha_5_37(1.0, 7.0) == 1


# ---- chapter 6 -----------------------------------------------------------------------


def test_figure_6_3_its_four_curves_coincide():
    """sign(x) is read with probability 1/2 + arctan(sqrt(SNR))/pi, and epsilon is one of SNR."""
    radius, delta = 3.0, 1e-5
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 400_000))
    for epsilon in (1.0, 5.0):
        mu = 1 / calibrate.noise_multiplier(epsilon, delta)
        found = []
        for model in (
            RateDistortion(np.eye(1)),
            *(Bottleneck(np.eye(1), [[rho]], np.eye(1)) for rho in (0.1, 0.5, 0.9)),
        ):
            gain = float(model.channel(model.beta(mu=mu, radius=radius)).whitened()[0, 0])
            found.append(0.5 + math.atan(abs(gain)) / math.pi)
            assert np.mean((gain * x + noise > 0) == (x > 0)) == pytest.approx(found[-1], abs=5e-3)
        assert max(found) - min(found) < 1e-9


def test_figure_6_2_its_three_columns_coincide():
    """At a given SNR (5.11) does not depend on the correlation: beta |P|^2 = 1 + SNR."""
    snr, found = 7.0, []
    for rho in (0.1, 0.5, 0.9):
        beta = (1 + snr * (1 - rho**2)) / rho**2
        cross = np.array([[rho]])
        found.append(printed.corollary_2_epsilon(np.eye(1), cross, np.eye(1), beta, 3.0, 1e-5))
    assert max(found) == pytest.approx(min(found), rel=1e-12)


# ---- appendix ------------------------------------------------------------------------


def test_a_1_lacks_e():
    assert norm.entropy(scale=2.0) == pytest.approx(0.5 * math.log(2 * math.pi * math.e * 4))
    assert norm.entropy(scale=2.0) != pytest.approx(0.5 * math.log(2 * math.pi * 4))


def test_a_43_is_of_the_variance():
    """Lemma A.2.1's minimum over the noise, in lambda^2; printed: lambda = a/beta."""
    beta = 3.0
    a = 1 - 1 / (S * beta)
    known = a * a * S / 2 * (math.sqrt(1 + 4 / (a * a * S * beta)) - 1)  # (A.44)
    found = minimize_scalar(
        lambda log: lagrangian(a, math.exp(log), beta=beta), bounds=(-9, 3), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    assert math.exp(found.x) == pytest.approx(a / beta, rel=1e-6)
    assert known == pytest.approx(a / beta, rel=1e-12)
    assert lagrangian(a, a / beta, beta=beta) < lagrangian(a, (a / beta) ** 2, beta=beta) - 0.05
    channel = RateDistortion([[S]]).channel(beta)
    assert channel.matrix[0, 0] == pytest.approx(a)
    assert channel.noise[0, 0] == pytest.approx(a / beta)


def test_a_53_has_beta_squared():
    """(A.52) holds with lambda^2 = (s beta - 1)/(s beta^2), not with the denominator of (A.53)."""
    beta = 3.0
    a = 1 - 1 / (S * beta)
    right, wrong = a / beta, (S * beta - 1) / (S * beta)
    assert beta + 1 / (a * a * S + right) == pytest.approx(1 / right)
    assert beta + 1 / (a * a * S + wrong) != pytest.approx(1 / wrong)


def test_a_68_has_the_trace_of_the_noise():
    x = covariances(7)[0]
    model = RateDistortion(x)
    channel = model.channel(2 / model.variances[-1])
    missing = np.eye(4) - channel.matrix
    rest = np.trace(missing @ x @ missing.T)
    right, wrong = np.trace(channel.noise) + rest, np.trace(x) + rest
    assert right == pytest.approx(model.distortion(2 / model.variances[-1]))
    assert wrong > 1.5 * right


@pytest.mark.parametrize("beta", [2.0, 9.0])
def test_a_77_a_83_a_86_and_a_99_at_the_optimum(beta):
    s = 1.7
    a = 1 - 1 / (beta * s)
    lam, d = a / beta, a * a * s  # noise and A Sigma A^T
    assert lam - (d + lam) + beta * (d + lam) * lam == pytest.approx(0, abs=1e-12)
    assert abs(lam - d + lam + beta * (d + lam) * lam) > 0.1  # (A.77): brackets
    assert d / 2 * (math.sqrt(1 + 4 / (beta * d)) - 1) == pytest.approx(lam)
    assert d / 2 * (math.sqrt(1 + 4 / beta * d) - 1) != pytest.approx(lam)  # (A.83)
    assert 1 / (1 + 1 / (beta * (d + lam))) == pytest.approx(a)
    assert 1 / (1 - 1 / (beta * (d + lam))) != pytest.approx(a)  # (A.86)
    assert 1 + 1 / beta / (d + lam) == pytest.approx(1 / a)
    assert 1 + 1 / beta * (d + lam) != pytest.approx(1 / a)  # (A.99)
