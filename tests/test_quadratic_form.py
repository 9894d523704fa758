"""The generalized chi-square distribution: against the reference table, and every door."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import integrate, special, stats

from ellipsum import QuadraticForm, QuadraticFormWarning
from ellipsum.quadratic_form import tails as quadratic_form_tails
from reference_tables import reference_cases as stored_cases

Q = np.array([1e-8, 0.1, 1.0, 3.0, 20.0, 200.0])
MIXED = dict(weights=[1, 0.5, 0.2, -0.1], noncentrality=[0, 1, 2, 0], normal_sd=0.3, offset=2)
POSITIVE = dict(weights=[1, 0.5, 0.25], dof=[1, 2, 3.5], noncentrality=[0.5, 0, 1])


def reference_cases():
    for parameters, case in stored_cases("quadratic_form_reference.npz"):
        yield QuadraticForm(*parameters), case


def test_smaller_tail_and_density_agree_with_ten_thousand_reference_cases():
    tails, densities = [], []
    for form, case in reference_cases():
        value = form.evaluate(case["q"])
        tail = value.sf if case["upper"] else value.cdf
        tails.append(abs(tail / case["tail"] - 1))
        densities.append(abs(value.pdf / case["pdf"] - 1))
        assert value.met, case
    assert len(tails) >= 10_000
    assert np.mean(np.array(tails) <= 1e-12) >= 0.99
    assert max(tails) <= 1e-10
    assert max(densities) <= 1e-10


@pytest.mark.parametrize("dof", [0.3, 1, 2, 7.5, 400])
def test_one_weight_is_a_scaled_chi_square(dof):
    form = QuadraticForm([2.0], dof)
    np.testing.assert_allclose(form.sf(2 * Q), special.chdtrc(dof, Q), rtol=1e-12)
    np.testing.assert_allclose(form.cdf(2 * Q), special.chdtr(dof, Q), rtol=1e-12)


def test_normal_term_alone_is_normal_far_into_the_tail():
    form = QuadraticForm([], normal_sd=2, offset=1)
    x = np.array([-60.0, -1.0, 0.0, 3.0, 30.0])
    np.testing.assert_allclose(form.logsf(1 + 2 * x), special.log_ndtr(-x), rtol=1e-14)
    np.testing.assert_allclose(form.logpdf(1 + 2 * x), stats.norm(1, 2).logpdf(1 + 2 * x))


def test_ratio_of_chi_squares_is_an_f_distribution():
    k, m, f = 5, 11, 2.3
    form = QuadraticForm([1 / k, -f / m], [k, m])
    assert form.sf(0.0) == pytest.approx(stats.f(k, m).sf(f), rel=1e-12)


@pytest.mark.parametrize("dof", [1, 0.05])
def test_zero_of_a_symmetric_difference_is_its_median(dof):
    form = QuadraticForm([1, -1], dof)
    assert form.cdf(0.0) == pytest.approx(0.5, rel=1e-13)
    assert form.pdf(0.0) == np.inf


@pytest.mark.parametrize("name", ["mixed", "positive", "tiny dof", "negative"])
@pytest.mark.parametrize("p", [1e-300, 1e-100, 1e-12, 0.03, 0.5, 0.9, 1 - 1e-9, 1 - 2**-53])
def test_quantiles_invert_the_tails(name, p):
    form = {
        "mixed": QuadraticForm(**MIXED),
        "positive": QuadraticForm(**POSITIVE),
        "tiny dof": QuadraticForm([1, 0.3], [2, 0.05]),
        "negative": QuadraticForm([-1, -3], [1, 2]),
    }[name]
    smaller = min(p, 1 - p)
    q, x = form.isf(p), form.ppf(p)
    assert (form.sf(q) if p <= 0.5 else form.cdf(q)) == pytest.approx(smaller, rel=1e-11)
    assert (form.cdf(x) if p <= 0.5 else form.sf(x)) == pytest.approx(smaller, rel=1e-11)


def test_gradient_of_a_quantile_agrees_with_differences():
    form, h = QuadraticForm(**MIXED), 1e-5
    gradient = form.isf_gradient(1e-3)
    for j in range(4):
        ends = []
        for step in (h, -h):
            weights = np.array(MIXED["weights"])
            weights[j] += step
            ends.append(QuadraticForm(**{**MIXED, "weights": weights}).isf(1e-3))
        assert gradient[j] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-7)


# ---- conditional moments ---------------------------------------------------------------


@pytest.mark.parametrize("parameters", [MIXED, POSITIVE])
@pytest.mark.parametrize("p", [0.999999, 0.9, 0.3, 1e-4, 1e-40])
def test_partial_mean_is_a_sum_of_tails_with_two_and_four_more_degrees(parameters, p):
    """E[chi2'(k, l) g] = k E[g with k + 2] + l E[g with k + 4]; s^2 f(q) for the normal."""
    form = QuadraticForm(**parameters)
    q = form.isf(p)
    total = form.offset * form.sf(q) + form.normal_sd**2 * form.pdf(q)
    for j, w in enumerate(form.weights):
        for more, mass in ((2, form.dof[j]), (4, form.noncentrality[j])):
            dof = form.dof + more * (np.arange(form.dof.size) == j)
            other = QuadraticForm(
                form.weights, dof, form.noncentrality, form.normal_sd, form.offset
            )
            total += w * mass * other.sf(q)
    assert form.partial_mean(q) == pytest.approx(total, rel=2e-11)


@pytest.mark.parametrize("p", [1.0, 0.99, 0.5, 1e-3, 1e-30])
def test_moments_of_the_root_agree_with_quadrature_of_the_tail(p):
    form = QuadraticForm(**POSITIVE)
    q = form.isf(p)
    c = np.sqrt(q)

    def over_tail(g):
        """int_q^inf g(x) sf(x) dx, in y = sqrt(x)."""
        edges = np.sqrt([q, *(form.isf(p * 10.0**-k) for k in (0.1, 0.5, 1, 2, 4, 8, 20))])
        parts = [
            integrate.quad(lambda y: 2 * y * g(y) * form.sf(y * y), a, b, epsrel=1e-12)[0]
            for a, b in itertools.pairwise(edges)
        ]
        return sum(parts)

    root = c * form.sf(q) + over_tail(lambda y: 0.5 / y if y else 0.0)
    assert form.partial_root_mean(q) == pytest.approx(root, rel=1e-9)
    loss = over_tail(lambda y: 1 - c / y if y else 1.0)
    assert form.clip_loss(c) == pytest.approx(loss, rel=1e-9)


def test_clip_loss_of_a_far_radius_keeps_relative_accuracy():
    """One weight, two degrees: sf = e^(-q/2), so the loss is an incomplete-gamma form."""
    form, c = QuadraticForm([1.0], 2), 25.0
    integral = integrate.quad(
        lambda y: 2 * (y - c) * np.exp(-(y * y - c * c) / 2), c, c + 3, epsrel=1e-13
    )[0]
    assert form.clip_loss(c) == pytest.approx(integral * np.exp(-c * c / 2), rel=1e-11)


# ---- moments, samples, shapes ------------------------------------------------------------


def test_moments_are_those_of_the_cumulant_function():
    form, h = QuadraticForm(**MIXED), 1e-3
    k = [form.cgf(i * h) for i in (-2, -1, 0, 1, 2)]
    assert form.mean() == pytest.approx((8 * (k[3] - k[1]) - (k[4] - k[0])) / (12 * h), rel=1e-8)
    assert form.var() == pytest.approx((k[3] + k[1]) / h**2, rel=1e-4)
    assert form.std() ** 2 == pytest.approx(form.var())
    assert form.skewness() == pytest.approx(form.cumulant(3) / form.var() ** 1.5)
    assert form.mgf(0.0) == 1
    assert form.cgf(0.6) == np.inf


def test_cumulants_at_the_end_of_the_doubles_are_right_or_infinite():
    small, form = QuadraticForm([1, -0.5], [1, 3]), QuadraticForm([1e300, -5e299], [1, 3])
    assert form.mean() == pytest.approx(-5e299)
    assert form.std() == pytest.approx(1e300 * small.std())
    assert form.var() == np.inf
    assert (form.cumulant(3), QuadraticForm([-1e300]).cumulant(3)) == (np.inf, -np.inf)
    assert form.skewness() == pytest.approx(small.skewness())
    assert form.kurtosis() == pytest.approx(small.kurtosis())
    tiny = QuadraticForm([1e-300, -5e-301], [1, 3], normal_sd=1e-300)
    assert tiny.std() == pytest.approx(1e-300 * np.sqrt(small.var() + 1))
    assert tiny.cumulant(2) == 0
    wide = QuadraticForm([1e-2], 1)
    wanted = 0.5 * np.exp(special.gammaln(180) + 180 * np.log(0.02))
    assert wide.cumulant(180) == pytest.approx(wanted)
    assert QuadraticForm([1.0]).cumulant(400) == np.inf


def test_samples_follow_the_distribution():
    form = QuadraticForm(**MIXED)
    frozen = form.frozen()
    assert stats.kstest(form.rvs(2000, 5), frozen.cdf).pvalue > 1e-6
    assert frozen.rvs(7, random_state=3).shape == (7,)
    np.testing.assert_allclose(frozen.stats("mv"), (form.mean(), form.var()))
    assert frozen.ppf(0.3) == pytest.approx(form.ppf(0.3))
    assert frozen.sf(40.0) == form.sf(40.0)


def test_quadratic_of_a_gaussian_is_diagonalised():
    """(x + 1)^2 + 2 y z + 3 u, with u apart from the quadratic part, and a singular covariance."""
    matrix = np.zeros((4, 4))
    matrix[0, 0] = 1
    matrix[1, 2] = 2  # only the symmetric part counts
    form = QuadraticForm.from_matrix(matrix, np.zeros(4), np.eye(4), [2, 0, 0, 3], 1)
    direct = QuadraticForm([1, 1, -1], noncentrality=[1, 0, 0], normal_sd=3)
    np.testing.assert_allclose(form.sf([-9.0, 0, 5, 60]), direct.sf([-9.0, 0, 5, 60]), rtol=1e-11)
    flat = QuadraticForm.from_matrix(np.eye(2), [1, 0], [[1, 0], [0, 0]])
    assert flat.sf(2.0) == pytest.approx(QuadraticForm([1], noncentrality=1).sf(2.0), rel=1e-12)


def test_pickling_keeps_the_distribution():
    form = QuadraticForm(**MIXED)
    again = pickle.loads(pickle.dumps(form))
    assert again.sf(7.0) == form.sf(7.0)
    assert "4 weights" in repr(again)


def test_entropy_of_known_distributions():
    assert QuadraticForm([2.0], 5).entropy() == pytest.approx(stats.chi2(5, scale=2).entropy())
    assert QuadraticForm([], normal_sd=3).entropy() == pytest.approx(stats.norm(0, 3).entropy())


def test_arrays_broadcast_and_scalars_stay_scalars():
    form = QuadraticForm(**POSITIVE)
    assert form.cdf(np.ones((2, 3))).shape == (2, 3)
    assert form.ppf([[0.1], [0.2]]).shape == (2, 1)
    assert isinstance(form.cdf(1.0), float)
    assert form.cdf(1.0) == form.cdf(np.array([1.0]))[0]
    result = form.evaluate([1.0, 2.0])
    assert result.met and result.nodes.min() > 0
    np.testing.assert_allclose(result.cdf + result.sf, 1)
    np.testing.assert_allclose(np.exp(result.logcdf), result.cdf)


@pytest.mark.parametrize("parameters", [MIXED, POSITIVE])
def test_many_q_at_once_agree_with_one_by_one(parameters):
    """Neighbours share a contour; order, gaps, repeats and NaN must not matter."""
    form, rng = QuadraticForm(**parameters), np.random.default_rng(8)
    q = np.concatenate([np.linspace(-40, 90, 700), rng.normal(5, 5, 300), [np.nan, np.inf, 0]])
    rng.shuffle(q)
    np.testing.assert_allclose(form.logsf(q), [form.logsf(float(x)) for x in q], rtol=1e-12)
    np.testing.assert_allclose(form.logcdf(q), [form.logcdf(float(x)) for x in q], rtol=1e-12)
    pdf = [form.pdf(np.array([x]))[0] for x in q]
    np.testing.assert_allclose(form.pdf(q), pdf, rtol=1e-12)


@pytest.mark.parametrize("parameters", [MIXED, POSITIVE])
def test_threads_change_no_bit(parameters):
    alone, shared = (QuadraticForm(**parameters, threads=n) for n in (1, 3))
    q, p = np.linspace(-40, 90, 2000), np.linspace(0, 1, 101)
    np.testing.assert_array_equal(shared.logsf(q), alone.logsf(q))
    np.testing.assert_array_equal(shared.pdf(q), alone.pdf(q))
    np.testing.assert_array_equal(shared.isf(p), alone.isf(p))
    np.testing.assert_array_equal(alone.isf(p), [alone.isf(float(x)) for x in p])
    with pytest.raises(ValueError, match="threads must be at least 1"):
        QuadraticForm(**parameters, threads=0)


@pytest.mark.filterwarnings("ignore::ellipsum.QuadraticFormWarning")
@pytest.mark.parametrize("method", ["ruben", "davies", "imhof"])
def test_classical_methods_agree_in_the_body(method):
    form = QuadraticForm(**POSITIVE)
    for q in (1.0, 4.0, 10.0):
        assert form.cdf(q, method=method) == pytest.approx(form.cdf(q), abs=1e-9)


def test_ruben_states_a_bound_that_holds():
    from ellipsum.quadratic_form.classical import ruben

    form = QuadraticForm([1, 0.2, 0.01])
    for q in (0.001, 0.1, 1.0, 5.0):
        cdf, _, bound = ruben(form, q)
        assert abs(cdf - form.cdf(q)) <= bound


@pytest.mark.parametrize("method", ["saddlepoint", "moment"])
def test_approximations_are_near_and_say_that_they_are_no_more(method):
    with pytest.warns(QuadraticFormWarning, match="not known"):
        value = QuadraticForm(**POSITIVE).sf(6.0, method=method)
    assert value == pytest.approx(QuadraticForm(**POSITIVE).sf(6.0), rel=0.1)


@pytest.mark.filterwarnings("ignore::ellipsum.QuadraticFormWarning")
def test_the_saddlepoint_is_found_next_to_both_branch_points():
    form = QuadraticForm([1, -1, 1e-20])
    for q in (-200.0, -1e-9, 1e-9, 200.0):
        assert form.sf(q, method="saddlepoint") == pytest.approx(form.sf(q), rel=0.4)


def test_an_absolute_error_that_is_no_relative_one_warns():
    form = QuadraticForm(**POSITIVE)
    with pytest.warns(QuadraticFormWarning, match="relative error"):
        form.sf(80.0, method="davies")


def test_an_unmet_error_estimate_warns(monkeypatch):
    monkeypatch.setattr(quadratic_form_tails, "_TOLERANCE", 0.0)
    with pytest.warns(QuadraticFormWarning, match="relative error"):
        QuadraticForm(**POSITIVE).cdf(1.0)
