"""Where Chen, Navidi & Rajagopal (generative filter) are wrong as printed: each fails on it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from ellipsum.tradeoff import divergences, filter_mu


def test_game_4_is_only_an_upper_bound_of_game_1():
    """Printed: min over h of max over filters. Two invertible filters, two attackers: 1, not 0.

    The filter releases y or 1 - y; the attacker guesses z or 1 - z. Whoever moves second wins:
    an attacker who sees the filter (game 1) is never wrong.
    """
    error = np.array([[0.0, 1.0], [1.0, 0.0]])  # filter by attacker
    best_response = error.min(1).max()
    printed = error.max(0).min()
    assert best_response == 0 and printed == 1


def test_15_takes_two_filters_and_turns_the_sign_of_the_useful_loss():
    """Printed: min over h of max over q of l + beta (min over q of l~): not one q in both terms.

    Two filters: one releases all (both losses 0), one nothing (log 2 each); beta = 2.
    """
    private, useful, beta = np.array([0.0, np.log(2)]), np.array([0.0, np.log(2)]), 2.0
    right = private - beta * useful
    assert right.argmax() == 0  # hiding is not worth the useful label
    printed = private.max() + beta * useful.min()
    assert not np.isclose(printed, private + beta * useful).any()  # no filter has that value
    assert not np.isclose(printed, right).any()
    assert (private + beta * useful).argmax() == 1  # with one filter and this sign: hide the useful


def test_6_3_1_the_budget_of_the_implementation_is_no_kl():
    """Norm of the mean's shift <= b: twice the KL of a shift, and nothing at all of the noise."""
    assert divergences.kl([0.0], [[1.0]], [0.8], [[1.0]]) == pytest.approx(0.8**2 / 2)
    noise = divergences.kl(np.zeros(2), np.eye(2), np.zeros(2), 9 * np.eye(2))
    norm2 = 0.0  # of a mean that stays
    assert noise == pytest.approx(0.5 * (16 - 2 * np.log(9))) and norm2 < 0.01 * noise


def test_theorem_1_lacks_the_factor_in_the_logarithm():
    """sigma = L sqrt(2 log(1/delta)) / eps: the delta that it has is above the one it claims."""
    worst = 0.0
    for epsilon, delta in ((0.99, 0.98), (0.99, 0.99), (0.9, 0.99), (0.99, 1e-3)):
        mu = epsilon / np.sqrt(2 * np.log(1 / delta))
        true = ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
        worst = max(worst, true / delta)
    assert 1.005 < worst < 1.02


def test_renyi_privacy_is_stronger_and_not_weaker():
    """Printed as both. The record in clear with chance delta: (0, delta), and Renyi infinite."""
    delta, order = 0.01, 2.0
    one, other = np.array([1 - delta, delta, 0.0]), np.array([1 - delta, 0.0, delta])
    assert np.maximum(one - other, 0).sum() == pytest.approx(delta)
    with np.errstate(divide="ignore"):
        power = np.where(one > 0, one**order * other ** (1 - order), 0.0).sum()
    assert np.isinf(power)
    # and a finite order gives (eps, delta): Mironov 2017, Proposition 3, for a Gaussian at mu = 1
    epsilon = min(a / 2 + np.log(1e5) / (a - 1) for a in np.linspace(1.1, 50, 500))
    true = ndtr(0.5 - epsilon) - np.exp(epsilon) * ndtr(-0.5 - epsilon)
    assert true <= 1e-5


def test_13_the_gradient_of_the_summed_outputs_is_no_lipschitz_constant():
    """g(z) = (z, -z): the sum has gradient 0, the Jacobian the norm sqrt 2."""
    jacobian = np.array([[1.0], [-1.0]])
    assert np.linalg.norm(jacobian.sum(0)) == 0
    assert np.linalg.norm(jacobian, 2) == pytest.approx(np.sqrt(2))


def test_chi_square_of_equal_covariances():
    """Printed: (e^-s - 1)^2 / 2, which is below 1/2 always; right: (e^2s - 1) / 2."""
    for shift in (0.2, 1.0, 2.0):
        s = shift**2 / 2
        right = quad(
            lambda x, m=shift: 0.5 * norm.pdf(x) * np.expm1(m * x - m * m / 2) ** 2, -12, 16
        )[0]
        found = divergences.chi2([0.0], [[1.0]], [shift], [[1.0]])
        assert found == pytest.approx(right, rel=1e-8)
        assert found == pytest.approx(np.expm1(2 * s) / 2, rel=1e-12)
        assert 0.5 * np.expm1(-s) ** 2 < 0.7 * found


def test_chi_square_budget_as_a_bound_of_the_distance():
    """b = 0.01: printed allows a squared distance of 0.305, right is 0.0198; from b = 1/2 any."""
    printed, right = -2 * np.log(1 - np.sqrt(0.02)), np.log1p(0.02)
    assert printed == pytest.approx(0.305, abs=1e-3)
    assert right == pytest.approx(0.0198, abs=1e-4)
    at = [divergences.chi2([0.0], [[1.0]], [np.sqrt(far)], [[1.0]]) for far in (right, printed)]
    assert at[0] == pytest.approx(0.01, rel=1e-9)
    assert at[1] > 15 * 0.01


@pytest.mark.parametrize("shift, variance", [(0.5, 1.3), (0.0, 0.6), (1.0, 1.7)])
def test_chi_square_of_unequal_covariances(shift, variance):
    """Printed exponents against quadrature; S1 raw, S2 released."""
    raw, released = norm(0, 1), norm(shift, np.sqrt(variance))

    def ratio(x):
        return np.exp(released.logpdf(x) - raw.logpdf(x))

    right = quad(lambda x: 0.5 * raw.pdf(x) * (ratio(x) - 1) ** 2, -40, 40, limit=400)[0]
    assert divergences.chi2([0.0], [[1.0]], [shift], [[variance]]) == pytest.approx(right, rel=1e-7)
    exponent = -1 / variance + 1 - shift**2 / variance  # tr, d, mu_2' S2^-1 mu_2; mu_1 = 0
    printed = 0.5 * (np.exp(exponent) / variance - 2 * np.exp(exponent / 2) / np.sqrt(variance) + 1)
    assert abs(printed - right) > 0.2 * right
    assert divergences.chi2([0.0], [[1.0]], [shift], [[2.0]]) == np.inf  # unless 2 S1 - S2 > 0


def test_definition_2_needs_f_of_one_to_be_zero():
    """Printed: f = t^a. Then a law is at distance 1 from itself, and (33) is void for b <= 1."""
    same = divergences.renyi([0.0], [[1.0]], [0.0], [[1.0]], 3.0)
    assert same == 0
    printed, right = np.exp(2 * same), np.expm1(2 * same)
    assert printed == 1 and right == 0
    b = 0.5  # e^{(a-1) D} <= b has no solution; e^{(a-1) D} - 1 <= b has
    assert np.log(b) < 0 < np.log1p(b)


def test_proposition_1_an_expected_divergence_is_no_privacy():
    """d = 1, Sigma = 1, sigma = 2, L = 16, a = 2: every assumption holds with b = 4."""
    sigma, order, reach = 2.0, 2.0, 16.0
    assert reach <= sigma**4 * 1  # their assumption, the norm not squared
    expected = order / 2 * sigma**2 * 1
    assert expected == 4
    mu = filter_mu([[sigma]], None, reach / 2)
    assert order * mu**2 / 2 == pytest.approx(64)


def printed_theorem_3(A, V, radius, order):
    d = len(A)
    smallest = np.linalg.eigvalsh(A @ A.T)[0]
    tau = np.abs(V).sum(0).max()
    return order * d / (2 * smallest) * ((2 * radius) ** 2 + 2 * tau**2)


@pytest.mark.parametrize("d, short", [(1, 3.0), (2, 1.5)])
def test_theorem_3_is_too_small_in_one_and_two_dimensions(d, short):
    """The cross term was lost: (L + 2 tau)^2, not L^2 + 2 tau^2; tau = L."""
    V = np.zeros((d, 2))
    V[0] = [2.0, -2.0]
    right = 2.0 * filter_mu(np.eye(d), V, 1.0) ** 2 / 2
    assert right == pytest.approx(short * printed_theorem_3(np.eye(d), V, 1.0, 2.0))


def test_theorem_3_holds_beyond_only_by_its_spurious_dimension():
    rng = np.random.default_rng(0)
    for _ in range(100):
        d = int(rng.integers(3, 7))
        A, V = rng.normal(size=(d, d)), rng.normal(size=(d, 3)) * np.exp(rng.normal())
        radius = float(np.exp(rng.normal()))
        right = filter_mu(A, V, radius) ** 2
        assert right <= printed_theorem_3(A, V, radius, 2.0)
    long = np.zeros((5, 2))
    long[0] = [2.0, -2.0]
    assert filter_mu(np.eye(5), long, 1.0) ** 2 > printed_theorem_3(np.eye(5), long, 1.0, 2.0) / 5


def test_proposition_2_promises_less_the_more_noise_there_is():
    """Its epsilon is the distortion: A = s I, d = 3, radius 1, a = 2; the truth goes the other way.

    Were Theorem 3 right it would hold and be empty: b is never below the epsilon already proved.
    """
    order, d = 2.0, 3
    promised, truth = [], []
    for size in (1.5, 3.0, 6.0):
        A = size * np.eye(d)
        spent = np.trace(A @ A.T)  # the metric is the unit matrix
        assert spent >= d / size**2 * 2.0**2  # the assumption
        promised.append(order / 2 * spent)
        truth.append(order * filter_mu(A, None, 1.0) ** 2 / 2)
        assert promised[-1] >= order / 2 * d / size**2 * 2.0**2 >= truth[-1]
    assert (np.diff(promised) > 0).all() and (np.diff(truth) < 0).all()
    assert promised[-1] > 100 * truth[-1]


def test_35_loses_a_square_and_gains_a_dimension():
    """Printed: tr(S^-1 A A') >= d norm(A)_F / s_max; right: norm(A)_F^2 / s_max."""
    A, metric = 0.1 * np.eye(3), np.diag([1.0, 2.0, 4.0])
    left, size = np.trace(np.linalg.solve(metric, A @ A.T)), np.linalg.norm(A)
    assert left < 3 * size / 4
    assert left >= size**2 / 4


def test_6_5_a_larger_loss_of_one_attacker_is_no_less_information():
    """Release 1 - y instead of y: the attacker trained before fails, a fresh one does not."""
    chance = np.array([[0.9, 0.1], [0.1, 0.9]])  # p(y | z) of the attacker trained on z = y
    before = -np.log(np.diag(chance)).mean()
    after = -np.log(np.diag(chance[::-1])).mean()
    assert after > 10 * before  # the lower bound (40) falls from 0.59 to below 0
    joint = np.array([[0.0, 0.5], [0.5, 0.0]])  # of y and the new release
    alive = joint > 0
    information = (joint[alive] * np.log(joint[alive] / 0.25)).sum()
    assert information == pytest.approx(np.log(2))


def test_6_6_the_filter_may_make_the_label_easier():
    """Printed: L(theta; released) >= L(theta; raw). False where V moves the classes apart.

    P(theta' z~ y <= xi) = mean of Phi((xi - y theta'(z + v_y)) / norm(A' theta)), exact given z.
    """
    rng = np.random.default_rng(0)
    y = rng.choice([-1, 1], 4000)
    z = 0.3 * y[:, None] * [1.0, 0.0] + rng.normal(size=(4000, 2))
    theta, A, margin = np.array([1.0, 0.0]), 0.5 * np.eye(2), 0.1
    raw = (z @ theta * y <= margin).mean()
    apart = 1.2 * y[:, None] * [1.0, 0.0]
    moved = ndtr((margin - y * ((z + apart) @ theta)) / np.linalg.norm(A.T @ theta)).mean()
    assert raw > 0.35 and moved < 0.15
    drawn = z + apart + rng.normal(size=(4000, 2)) @ A.T
    assert (drawn @ theta * y <= margin).mean() == pytest.approx(moved, abs=0.02)


def test_6_6_the_trace_is_not_a_product_of_norms():
    """Printed: tr(A A' theta theta') = norm(A)_F^2 tr(theta theta')."""
    A, theta = np.diag([1.0, 2.0]), np.array([1.0, 0.0])
    left = np.trace(A @ A.T @ np.outer(theta, theta))
    assert left == 1 and np.linalg.norm(A) ** 2 * (theta @ theta) == pytest.approx(5)


def test_6_6_each_step_of_the_proof_fails():
    """(44), (45) and (47), in one and two dimensions, without the shift (v = 0) or across it."""
    # (44): theta'z y = -1 <= 0, yet with w = 2 the released margin is 1: not in the intersection
    margin, w = -1.0, 2.0
    assert margin <= 0 < margin + w
    # (45): z = 0, so that theta'z~ = w: {w <= 0} and {w > 0} never meet, and are not independent
    drawn = np.random.default_rng(0).normal(size=1000)
    both, apart = ((drawn <= 0) & (drawn > 0)).mean(), (drawn <= 0).mean() * (drawn > 0).mean()
    assert both == 0 and apart > 0.2
    # (47): |theta'v| <= norm(theta) norm(v), so the bound gets smaller; here theta'v = 0
    theta, v = np.array([1.0, 0.0]), np.array([0.0, 3.0])
    right = ndtr(-theta @ v)
    printed = np.exp(-(theta @ theta) * (v @ v) / 2)
    assert right == 0.5 and printed < 0.02
