"""Divergences of Gaussians, budgets of filters, and the mu that a filter proves."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from ellipsum.tradeoff import divergences, filter_mu, scale_to_budget
from learned_truth import group


def test_divergence_reference_cases():
    for case in group("divergence"):
        given, answer = case["inputs"], case["answer"]
        found = {
            "kl": divergences.kl(**given),
            "reverse_kl": divergences.reverse_kl(**given),
            "chi2_half": divergences.chi2(**given),
            "renyi_half": divergences.renyi(**given, order=0.5),
        }
        for name, value in found.items():
            assert value == pytest.approx(float(answer[name]), rel=1e-9), (case["id"], name)


@pytest.mark.parametrize("shift, sd, order", [(0.7, 1.2, 1.5), (0.0, 0.6, 3.0), (-1.0, 1.1, 0.4)])
def test_divergences_by_quadrature(shift, sd, order):
    raw, released = norm(0.3, 1.4), norm(0.3 + shift, 1.4 * sd)
    laws = ([0.3], [[1.4**2]], [0.3 + shift], [[(1.4 * sd) ** 2]])

    def over(integrand):
        return quad(integrand, -25, 25, epsabs=1e-13, epsrel=1e-12, limit=400)[0]

    def log_ratio(x):
        return released.logpdf(x) - raw.logpdf(x)

    assert divergences.kl(*laws) == pytest.approx(
        over(lambda x: released.pdf(x) * log_ratio(x)), rel=1e-9
    )
    assert divergences.reverse_kl(*laws) == pytest.approx(
        over(lambda x: -raw.pdf(x) * log_ratio(x)), rel=1e-9
    )
    power = over(lambda x: np.exp(order * log_ratio(x) + raw.logpdf(x)))
    assert divergences.renyi(*laws, order) == pytest.approx(np.log(power) / (order - 1), rel=1e-9)
    square = over(lambda x: np.exp(2 * log_ratio(x) + raw.logpdf(x)))
    assert divergences.chi2(*laws) == pytest.approx((square - 1) / 2, rel=1e-9)


def test_infinite_where_they_are():
    eye, zero = np.eye(2), np.zeros(2)
    assert divergences.renyi(zero, eye, zero, 1.99 * eye, 2.0) < np.inf
    assert divergences.renyi(zero, eye, zero, 2.0 * eye, 2.0) == np.inf
    assert divergences.chi2(zero, eye, zero, 2.5 * eye) == np.inf
    assert divergences.kl(zero, eye, zero, np.diag([1.0, 0.0])) == np.inf
    assert divergences.reverse_kl(zero, eye, zero, np.diag([1.0, 0.0])) == np.inf
    assert divergences.kl(zero, eye, zero, 50 * eye) < np.inf


def test_small_changes_keep_their_digits():
    """e - log(1 + e) = e^2/2 - e^3/3 + ... at e = 1e-9: 1 - 1 in a plain formula."""
    for e in (1e-9, 1e-5, 1e-3, 0.019):
        wanted = 0.5 * sum((-e) ** k / k for k in range(2, 30))
        found = divergences.kl([0.0], [[1.0]], [0.0], [[1.0 + e]])
        assert found == pytest.approx(wanted, rel=1e-6 if e < 1e-8 else 1e-9)
        assert found > 0


def test_order_one_is_kl_and_orders_increase():
    rng = np.random.default_rng(0)
    spread = rng.normal(size=(3, 3))
    raw = spread @ spread.T + np.eye(3)
    laws = (np.zeros(3), raw, rng.normal(size=3), 0.8 * raw)
    values = [divergences.renyi(*laws, order) for order in (0.3, 0.7, 1, 1.5, 4, 20)]
    assert (np.diff(values) > 0).all()
    assert divergences.renyi(*laws, 1 + 1e-7) == pytest.approx(divergences.kl(*laws), rel=1e-5)


def random_filter(seed, d=4, labels=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(d, d)), 0.7 * rng.normal(size=(d, labels)), float(rng.uniform(0.3, 2))


def test_filter_mu_reference_cases():
    for case in group("filter_gdp"):
        found = filter_mu(**case["inputs"])
        assert found == pytest.approx(case["answer"]["mu"], rel=1e-8)
        assert found**2 / 2 == pytest.approx(case["answer"]["renyi_slope"], rel=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_filter_mu_is_never_below_random_pairs(seed):
    """1e5 pairs of clipped latents and labels."""
    A, V, radius = random_filter(seed)
    mu, rng = filter_mu(A, V, radius), np.random.default_rng(seed)
    latents = rng.normal(size=(2, 100_000, len(A)))
    latents *= radius / np.linalg.norm(latents, axis=2, keepdims=True)
    latents[:, ::2] *= rng.uniform(size=(2, 50_000, 1))
    which = rng.integers(0, V.shape[1], size=(2, 100_000))
    apart = latents[0] - latents[1] + V.T[which[0]] - V.T[which[1]]
    distance = np.linalg.norm(np.linalg.solve(A, apart.T), axis=0)
    assert distance.max() <= mu
    assert distance.max() > 0.5 * mu


@pytest.mark.parametrize("seed", range(8))
def test_a_gradient_search_reaches_filter_mu_and_never_passes_it(seed):
    A, V, radius = random_filter(seed, d=2 + seed % 4)
    mu, rng = filter_mu(A, V, radius), np.random.default_rng(seed)
    metric, best = np.linalg.inv(A @ A.T), 0.0
    for i in range(V.shape[1]):
        for j in range(V.shape[1]):
            u = rng.normal(size=(30, len(A)))
            shift = V[:, i] - V[:, j]
            for _ in range(3000):  # fixed points of the gradient's direction: they ascend
                u = (u + shift) @ metric
                u *= 2 * radius / np.linalg.norm(u, axis=1, keepdims=True)
            far = np.einsum("ni,ij,nj->n", u + shift, metric, u + shift)
            best = max(best, float(np.sqrt(far.max())))
    assert best <= mu * (1 + 1e-13)
    assert best == pytest.approx(mu, rel=1e-8)


def test_filter_mu_special_cases():
    assert filter_mu(2 * np.eye(3), None, 1.5) == pytest.approx(1.5, rel=1e-12)
    assert filter_mu(2 * np.eye(3), np.zeros((3, 2)), 1.5) == pytest.approx(1.5, rel=1e-12)
    along = filter_mu(np.eye(2), np.array([[1.0, -1.0], [0.0, 0.0]]), 3.0)
    assert along == pytest.approx(8.0, rel=1e-12)
    assert filter_mu(np.diag([1.0, 0.0]), None, 1.0) == np.inf
    assert filter_mu(np.ones((3, 2)), None, 1.0) == np.inf  # too few noises
    # the hard case: the shift has nothing along the weakest noise
    hard = filter_mu(np.diag([0.1, 1.0]), np.array([[0.0, 0.0], [0.5, 0.0]]), 1.0)
    u = np.linspace(-2, 2, 200_001)
    far = 100 * (4 - u**2) + (np.abs(u) + 0.5) ** 2
    assert hard == pytest.approx(np.sqrt(far.max()), rel=1e-9)
    wide = np.hstack([np.eye(2), np.eye(2)])  # more noises than coordinates
    assert filter_mu(wide, None, 1.0) == pytest.approx(np.sqrt(2), rel=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(8))
def test_filter_mu_is_the_same_in_every_unit(seed):
    """From 1e154 on and below 1e-154 squares left the doubles: 0, infinite, or an error."""
    A, V, radius = random_filter(seed, d=1 + seed % 5)
    V = (None, V * [[1], *[[0]] * (len(A) - 1)], V)[min(seed, 2)]  # alone, in the hard case
    mu = filter_mu(A, V, radius)
    for k in range(-500, 501, 20):
        moved = None if V is None else np.ldexp(V, k)
        assert filter_mu(A, moved, math.ldexp(radius, k)) == math.ldexp(mu, k)
        assert filter_mu(np.ldexp(A, k), V, radius) == math.ldexp(mu, -k)
        assert filter_mu(np.ldexp(A, k), moved, math.ldexp(radius, k)) == mu


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weak", [1.0, 0.3, 1e-9])
def test_filter_mu_of_shifts_of_any_size_beside_the_ball(weak):
    """A shift along the weakest noise: mu = (2 radius + shift) / noise, exactly."""
    for k in [*range(-1000, 1000, 41), *range(-64, 65, 4)]:
        noise, shift = np.diag([weak, 1.0]), np.array([[0.75], [0.0]])
        shifts = np.hstack([np.ldexp(shift, k), np.zeros((2, 1))])
        wanted = (Fraction(3) + Fraction(3, 4) * Fraction(2) ** k) / Fraction(weak)
        found = Fraction(filter_mu(noise, shifts, 1.5))
        assert wanted <= found <= wanted * (1 + Fraction(1e-14 / weak))
        across = Fraction(filter_mu(noise, shifts[::-1], 1.5))  # its largest lies between the two
        assert max(Fraction(3) / Fraction(weak), Fraction(3, 4) * Fraction(2) ** k) <= across
        assert across <= (3 / Fraction(weak) + Fraction(3, 4) * Fraction(2) ** k) * (
            1 + Fraction(1e-14 / weak)
        )


@pytest.mark.filterwarnings("error")
def test_filter_mu_at_the_ends_of_the_doubles():
    least, most = 5e-324, float(np.finfo(float).max)
    assert filter_mu([[least]], [[least, 0.0]], least) == pytest.approx(3.0, rel=1e-12)
    assert filter_mu([[most]], [[most, -most]], most) == pytest.approx(4.0, rel=1e-12)
    assert filter_mu(np.diag([least, most]), None, 1.0) == np.inf  # a direction is left out
    assert filter_mu([[1e-200]], None, 1e200) == np.inf
    assert 0 < filter_mu([[1e200]], None, 1e-200) <= 2 * least
    assert filter_mu([[1e200]], [[1e-300, 0.0]], 1e-200) > 0
    assert filter_mu([[1.0]], [[least, 0.0]], most / 4) >= most / 2
    assert filter_mu([[1.0]], [[most, 0.0]], least) >= most
    assert filter_mu([[1e150]], [[1e300, -1e300]], 1e-300) == pytest.approx(2e150, rel=1e-12)
    assert filter_mu(np.zeros((2, 2)), None, 1.0) == np.inf


@pytest.mark.parametrize("name", ["realised", "kl", "reverse-kl", "chi2", "renyi"])
def test_scaling_meets_the_budget(name):
    A, V, _ = random_filter(5)
    spread = np.random.default_rng(1).normal(size=(4, 4))
    metric, priors = spread @ spread.T + np.eye(4), np.array([0.5, 0.3, 0.2])
    scaled, shifts, factor = scale_to_budget(
        A, V, metric, 0.8, divergence=name, order=1.5, priors=priors
    )
    np.testing.assert_allclose(scaled, factor * A)
    zero, added = np.zeros(4), metric + scaled @ scaled.T
    if name == "realised":
        noise = np.random.default_rng(0).normal(size=(200_000, 4)) @ scaled.T
        which = np.random.default_rng(1).choice(3, size=200_000, p=priors)
        moved = noise + shifts.T[which]
        spent = 0.5 * np.einsum("ni,ij,nj->n", moved, np.linalg.inv(metric), moved)
        assert abs(spent.mean() - 0.8) < 5 * spent.std() / np.sqrt(200_000)
        return
    each = {
        "kl": lambda v: divergences.kl(zero, metric, v, added),
        "reverse-kl": lambda v: divergences.reverse_kl(zero, metric, v, added),
        "chi2": lambda v: divergences.chi2(zero, metric, v, added),
        "renyi": lambda v: np.exp(0.5 * divergences.renyi(zero, metric, v, added, 1.5)),
    }[name]
    spent = float(priors @ [each(v) for v in shifts.T])
    spent = 2 * np.log(spent) if name == "renyi" else spent
    assert spent == pytest.approx(0.8, rel=1e-9)


def test_a_renyi_budget_caps_the_noise():
    """Noise alone, order 2: it must stay below the metric, whatever the budget."""
    scaled, _, _ = scale_to_budget(np.eye(2), None, np.eye(2), 1e3, divergence="renyi")
    assert scaled[0, 0] ** 2 <= 1 and scaled[0, 0] ** 2 > 0.999


def test_what_is_refused():
    with pytest.raises(ValueError, match="must not both be zero"):
        scale_to_budget(np.zeros((2, 2)), None, np.eye(2), 1.0)
    with pytest.raises(ValueError, match="radius must be"):
        filter_mu(np.eye(2), None, 0.0)
    with pytest.raises(ValueError, match="V must be a finite matrix of 2 rows"):
        filter_mu(np.eye(2), np.ones((3, 1)), 1.0)
    with pytest.raises(ValueError, match="positive definite"):
        divergences.kl([0.0, 0.0], np.diag([1.0, 0.0]), [0.0, 0.0], np.eye(2))


@pytest.mark.parametrize("divergence", ["realised", "kl", "reverse-kl", "chi2", "renyi"])
def test_a_filter_that_moves_no_label_that_occurs_is_refused(divergence):
    """It was a division by zero, or no end."""
    nothing, shifts = np.zeros((2, 2)), np.array([[0.0, 1.0], [0.0, 2.0]])
    for V, priors in ((shifts, [1, 0]), (0 * shifts, None), (None, None)):
        with pytest.raises(ValueError, match="moves nothing"):
            scale_to_budget(nothing, V, np.eye(2), 0.3, divergence=divergence, priors=priors)
    moved = scale_to_budget(nothing, shifts, np.eye(2), 0.3, divergence=divergence, priors=[0, 1])
    assert 0 < moved[2] < np.inf
    for priors in ([0, 0], [-1, 2]):
        with pytest.raises(ValueError, match="priors must not be below 0"):
            scale_to_budget(np.eye(2), shifts, np.eye(2), 0.3, priors=priors)
