"""Where Tripathy, Wang & Ishwar (PPAN) are wrong as printed: each test fails on their formula."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize
from scipy.special import ndtr
from scipy.stats import norm

from ellipsum.tradeoff import DiscreteTradeoff, GaussianTradeoff

RHO = np.array([0.47, 0.24, 0.85, 0.07, 0.66])


def paired(rho):
    eye = np.eye(len(rho))
    return np.block([[eye, np.diag(rho)], [np.diag(rho), eye]])


def symmetric_pair(m, p):
    joint = np.full((m, m), p / (m * (m - 1)))
    np.fill_diagonal(joint, (1 - p) / m)
    return joint


def test_loss_8_with_a_penalty_per_sample_aims_elsewhere():
    """Printed: lambda max(0, d_i - delta)^2 for each sample; wanted: E d <= delta.

    rho = 0.85, lambda = 10, delta = 0.5: among affine Gaussian mechanisms, which contain the
    optimum wanted, the printed loss ends at D = 0.109, I = 0.516.
    """
    rho, weight, budget = 0.85, 10.0, 0.5

    def figures(parameters):
        gain, noise = parameters
        error = (1 - gain) ** 2 + noise**2
        return error, -0.5 * np.log1p(-(rho**2) * gain**2 / (gain**2 + noise**2))

    def printed(parameters):
        error, leakage = figures(parameters)
        sd, edge = np.sqrt(error), np.sqrt(budget)
        over = quad(
            lambda e: 2 * norm.pdf(e / sd) / sd * (e * e - budget) ** 2, edge, edge + 9 * sd
        )
        return leakage + weight * over[0]

    found = minimize(printed, [0.5, 0.5], method="Nelder-Mead", options={"xatol": 1e-6})
    distortion, leakage = figures(found.x)
    assert distortion == pytest.approx(0.109, abs=1e-3)
    assert leakage == pytest.approx(0.516, abs=1e-3)
    wanted = GaussianTradeoff(distortion=budget).from_covariance([[1, rho], [rho, 1]], 1)
    assert wanted.distortion_ == pytest.approx(0.5) and wanted.leakage_ < 0.5 * leakage


def test_the_discrete_loss_is_a_linear_penalty():
    """Printed with 0/1 cost: lambda (1 - delta)^2 Pr[Y != Z], so that lambda = 500 gives Z = Y."""
    joint, hamming = symmetric_pair(10, 0.4), 1 - np.eye(10)
    printed = DiscreteTradeoff(multiplier=500 * (1 - 0.45) ** 2).fit(joint, hamming)
    assert printed.distortion_ < 1e-9
    np.testing.assert_allclose(printed.channel_, np.eye(10), atol=1e-9)
    wanted = DiscreteTradeoff(distortion=0.45).fit(joint, hamming)
    assert wanted.leakage_ < 0.35 * printed.leakage_
    # the slope of the optimal curve at 0 says from which delta on anything is hidden: 0.946
    slope = DiscreteTradeoff(distortion=1e-9).fit(joint, hamming).multiplier_
    assert 1 - np.sqrt(slope / 500) == pytest.approx(0.946, abs=2e-3)


def test_proposition_2_must_clip_at_zero():
    """Printed: delta_i = min(1, t - (rho_i^-2 - 1)): at delta = 1 the shares are (1,1,1,-3,1)."""
    room = RHO**-2.0 - 1

    def shares(level, low):
        return np.clip(level - room, low, 1)

    printed = shares(brentq(lambda t: shares(t, -np.inf).sum() - 1, -300, 300), -np.inf)
    right = shares(brentq(lambda t: shares(t, 0).sum() - 1, -1, 300), 0)
    assert printed.min() == pytest.approx(-3, abs=1e-9)

    def leakage(share):
        return -0.5 * np.log1p(-(RHO**2) * (1 - share)).sum()

    found = GaussianTradeoff(distortion=1.0).from_covariance(paired(RHO), 5)
    assert found.leakage_ == pytest.approx(leakage(right), abs=1e-10)
    # the printed formula with its own maximum with 0 claims what nothing can reach
    claimed = np.maximum(0, -0.5 * np.log1p(-(RHO**2) * (1 - printed))).sum()
    assert abs(claimed - found.leakage_) > 0.01


def test_proposition_2_must_release_what_x_does_not_see():
    """Printed: Z has min(m, n) components. X one number, Y two: half of Y would be lost."""
    joint = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = GaussianTradeoff(distortion=0.3).from_covariance(joint, 1)
    assert found.distortion_ == pytest.approx(0.3)  # printed: at least 1, the variance of Y_2
    assert found.leakage_ == pytest.approx(-0.5 * np.log(1 - 0.64 * 0.7), abs=1e-10)
    np.testing.assert_allclose(found.matrix_[1], [0, 1], atol=1e-6)


@pytest.mark.parametrize("rho, share", [(0.5, 0.5), (0.3, 0.2), (0.7, 0.9)])
def test_proposition_3_leaks_again_beyond_rho_squared(rho, share):
    """Printed: one Z for all delta, with I = 0 from rho^2 on."""
    assert share > rho**2
    slope = np.sqrt(share * (1 - share) / (1 - rho**2))
    on_y, on_x = 1 - share + rho * slope, -slope  # Z as printed
    with_x, power = on_x + rho * on_y, on_x**2 + on_y**2 + 2 * rho * on_x * on_y
    printed = -0.5 * np.log1p(-(with_x**2) / power)
    assert printed > 0.01
    found = GaussianTradeoff("full", distortion=share).from_covariance([[1, rho], [rho, 1]], 1)
    assert found.leakage_ == 0
    if rho == share == 0.5:
        assert printed == pytest.approx(0.035, abs=1e-3)


def test_appendix_d_utility_by_information_is_degenerate():
    """Z = bin of the fractional part of K Y: all of I(Y; Z), none of I(X; Z)."""
    rho, multiple, bins = 0.85, 4, 64
    edges = np.arange(bins + 1) / bins
    turns = np.arange(-60, 61)[:, None]

    def law(mean, sd):  # of the bin, Y ~ N(mean, sd^2)
        ends = ((turns + edges) / multiple - mean) / sd
        return np.diff(ndtr(ends), axis=1).sum(0)

    overall = law(0.0, 1.0)
    leak = 0.0
    points, weights = np.polynomial.hermite_e.hermegauss(40)
    for x, weight in zip(points, weights / weights.sum(), strict=True):
        given = law(rho * x, np.sqrt(1 - rho**2))
        leak += weight * float((given * np.log(given / overall)).sum())
    relevance = -float((overall * np.log(overall)).sum())  # Z is a function of Y
    assert relevance == pytest.approx(np.log(64), abs=1e-6)
    assert abs(leak) < 1e-12
    gaussian = -0.5 * np.log1p(-(rho**2) * -np.expm1(-2 * relevance))
    assert gaussian == pytest.approx(0.64, abs=0.005)
    with pytest.raises(ValueError, match="no meaningful optimum"):
        GaussianTradeoff(utility="information", distortion=1).from_covariance(paired([rho]), 1)


def test_appendix_h_operating_point_is_impossible():
    """Printed: (I, D) = (1.838, 0.230); no release leaks more than I(X; Y) = 1.084 nats."""
    most = GaussianTradeoff(distortion=0.0).from_covariance(paired(RHO), 5).leakage_
    assert most == pytest.approx(1.084, abs=1e-3)
    assert 1.838 > most / np.log(2)  # not in bits either
    found = GaussianTradeoff(distortion=0.230).from_covariance(paired(RHO), 5)
    assert found.leakage_ == pytest.approx(0.849, abs=1e-3)


def test_table_1_the_lost_row_of_full_data():
    """III-B4 shows W = Y alone; the law of its text with W = (X, Y) leaks .0382 at distortion 1."""
    found = GaussianTradeoff("full", distortion=1.0).from_covariance(paired(RHO), 5)
    assert found.leakage_ == pytest.approx(0.0382, abs=5e-5)
    seen = GaussianTradeoff(distortion=1.0).from_covariance(paired(RHO), 5)
    assert seen.leakage_ > 10 * found.leakage_


def test_the_distortion_of_images_lacks_a_bracket_and_is_not_zero_at_best():
    """Printed: the minus covers one term of two, so that a wrong pixel earns without bound."""

    def printed(y, z):
        return -(y * np.log(z)) + (1 - y) * np.log1p(-z)

    def meant(y, z):
        return -(y * np.log(z) + (1 - y) * np.log1p(-z))

    assert printed(0.0, 1 - 1e-12) < -25 < 0 < 25 < meant(0.0, 1 - 1e-12)
    y, z = 0.3, np.linspace(0.001, 0.999, 999)
    assert z[meant(y, z).argmin()] == pytest.approx(y)
    entropy = meant(y, y)
    assert entropy == pytest.approx(0.6109, abs=1e-4)  # its least value: report d - H(Y)
    assert (meant(y, z) - entropy).min() == pytest.approx(0, abs=1e-12)
