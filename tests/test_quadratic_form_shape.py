"""Moments, mode, gradients, the way back to normals, and SciPy's newer interface."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from ellipsum import QuadraticForm
from ellipsum.kernels.backend import use_kernels
from regions import KERNEL_SETS

FULL = {
    "weights": [1.0, 0.5, -0.2],
    "dof": [1.0, 2.0, 3.0],
    "noncentrality": [0.3, 4.0, 0.1],
    "normal_sd": 0.7,
    "offset": 2.0,
}
FORM = QuadraticForm(**FULL)


def test_moments_are_those_of_the_law():
    chi = QuadraticForm([1.5], [4])
    for n in range(9):
        exact = 1.5**n * 2**n * math.gamma(2 + n) / math.gamma(2)
        assert chi.moment(n) == pytest.approx(exact, rel=1e-14)
    assert FORM.moment(1) == pytest.approx(FORM.mean(), rel=1e-15)
    assert FORM.moment(2, "central") == pytest.approx(FORM.var(), rel=1e-15)
    assert FORM.moment(3, "standardized") == pytest.approx(FORM.skewness(), rel=1e-14)
    assert FORM.moment(4, "standardized") == pytest.approx(FORM.kurtosis() + 3, rel=1e-14)
    draws = FORM.sample(400_000, rng=1)
    for n in (2, 3):
        spread = np.std(draws**n) / math.sqrt(draws.size)
        assert abs(np.mean(draws**n) - FORM.moment(n)) < 6 * spread
    assert math.isnan(QuadraticForm([]).moment(3, "standardized"))


def test_stats_are_in_scipys_order():
    assert FORM.stats("kmvs") == (FORM.mean(), FORM.var(), FORM.skewness(), FORM.kurtosis())
    assert FORM.stats("s") == FORM.skewness()
    with pytest.raises(ValueError, match="letters m, v, s, k"):
        FORM.stats("mx")


@pytest.mark.parametrize(
    "form, mode",
    [
        (QuadraticForm([2.0], [7]), 2 * 5),
        (QuadraticForm([2.0], [1], offset=3), 3.0),
        (QuadraticForm([], normal_sd=2, offset=-1), -1.0),
        (QuadraticForm([1, -1], [1, 1]), 0.0),
        (QuadraticForm([-1.0], [2]), 0.0),
        (QuadraticForm([1.0], [400]), 398.0),
    ],
)
def test_the_mode_is_where_it_is_known(form, mode):
    assert form.mode() == pytest.approx(mode, abs=1e-6 * max(1.0, form.std()))


def test_nothing_is_higher_than_the_mode():
    two = QuadraticForm([1.0], [3], [80], normal_sd=0.1)  # and one with a peak on either side
    for form in (FORM, two, QuadraticForm([1, 0.01], [1, 1], [30, 0])):
        q = np.linspace(*form.interval(0.999), 4001)
        assert form.pdf(form.mode()) >= np.max(form.pdf(q)) * (1 - 1e-9)


@pytest.mark.parametrize(
    "w, k, q", [(2, 3, 50), (2, 3, 1e-3), (1, 0.7, 3), (1, 5, 300), (3, 5, 15)]
)
def test_the_gradient_of_a_chi_square_is_relatively_right(w, k, q):
    with mpmath.workdps(40):

        def sf(weight, dof):
            return mpmath.gammainc(
                mpmath.mpf(dof) / 2, q / (2 * mpmath.mpf(weight)), regularized=True
            )

        slope = [mpmath.diff(lambda x: sf(x, k), w), mpmath.diff(lambda x: sf(w, x), k)]
    found = QuadraticForm([w], [k]).sf_gradient(q)
    assert found.weights[0] == pytest.approx(float(slope[0]), rel=1e-12)
    assert found.dof[0] == pytest.approx(float(slope[1]), rel=1e-12)
    assert found.q == -found.offset == pytest.approx(-QuadraticForm([w], [k]).pdf(q), rel=1e-12)


def noncentral_tail(weights, dof, noncentrality, normal_sd, offset, q):
    """P(Q > q) by Imhof's integral, in mpmath: no code of ours."""

    def integrand(u):
        log = mpmath.mpc(0)
        t = 1j * u
        for w, k, nc in zip(weights, dof, noncentrality, strict=True):
            a = 1 - 2 * w * t
            log += -k * mpmath.log(a) / 2 + nc * w * t / a
        log += (normal_sd * t) ** 2 / 2 + (offset - q) * t
        return (mpmath.exp(log) / t).real

    ends = [0, 0.25, 0.5, 1, 2, 4, 8, 16]
    return mpmath.mpf(1) / 2 + mpmath.quad(integrand, ends) / mpmath.pi


@pytest.mark.slow
@pytest.mark.parametrize("q", [3.0, 5.58, 12.0])
def test_the_gradient_in_all_parameters_is_that_of_another_integral(q):
    with mpmath.workdps(25):
        flat = [*FULL["weights"], *FULL["dof"], *FULL["noncentrality"], 0.7, 2.0, q]

        def tail(*x):
            return noncentral_tail(x[:3], x[3:6], x[6:9], *x[9:])

        assert FORM.sf(q) == pytest.approx(float(tail(*flat)), rel=1e-12)
        step = mpmath.mpf(10) ** -8
        slopes = []
        for j in range(len(flat)):
            up, down = list(map(mpmath.mpf, flat)), list(map(mpmath.mpf, flat))
            up[j] += step
            down[j] -= step
            slopes.append(float((tail(*up) - tail(*down)) / (2 * step)))
    gradient = FORM.sf_gradient(q)
    found = [*gradient.weights, *gradient.dof, *gradient.noncentrality, *gradient[3:]]
    assert found == pytest.approx(slopes, rel=1e-9, abs=1e-13)
    other = FORM.cdf_gradient(q)
    assert np.array_equal(other.dof, -gradient.dof)
    assert other.q == -gradient.q


def test_quantiles_move_as_their_gradients_say():
    p, h = 1e-9, 1e-5
    gradient = FORM.sf_gradient(float(FORM.isf(p)))
    for name in ("weights", "dof", "noncentrality"):
        ends = []
        for sign in (1, -1):
            moved = dict(FULL)
            moved[name] = [FULL[name][0] + sign * h, *FULL[name][1:]]
            ends.append(float(QuadraticForm(**moved).isf(p)))
        slope = (ends[0] - ends[1]) / (2 * h)
        assert getattr(gradient, name)[0] / gradient.offset == pytest.approx(slope, rel=1e-6)


def test_there_is_no_gradient_where_there_is_no_density():
    with pytest.raises(ValueError, match="finite density"):
        QuadraticForm([1.0], [1]).sf_gradient(0.0)
    with pytest.raises(ValueError, match="finite density"):
        QuadraticForm([]).sf_gradient(0.0)
    outside = QuadraticForm([1.0, 2.0], [1, 3]).sf_gradient(-1.0)
    assert not any(np.any(part) for part in outside)


def test_the_way_back_to_normals_is_the_inverse_of_the_way_there():
    matrix, linear, constant = FORM.to_matrix()
    n = linear.size
    assert n == 7, "six degrees of freedom and a normal term"
    again = QuadraticForm.from_matrix(matrix, np.zeros(n), np.eye(n), linear, constant)
    q = np.linspace(-2, 30, 9)
    assert again.sf(q) == pytest.approx(FORM.sf(q), rel=1e-11)
    x = np.random.default_rng(3).standard_normal((200_000, n))
    values = (x**2) @ np.diag(matrix) + x @ linear + constant
    assert abs(np.mean(values > 8) - FORM.sf(8)) < 6 * math.sqrt(0.25 / len(x))
    with pytest.raises(ValueError, match=r"dof\[1\] is 2.5"):
        QuadraticForm([1, 2], [1, 2.5]).to_matrix()


def test_forms_of_arrays_have_the_values_of_each_form():
    weights = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
    many = QuadraticForm.broadcast(weights, dof=[1, 4], offset=[[0.0], [1.0]])
    assert many.shape == (2, 3)
    q = np.linspace(1, 9, 5)[:, None, None]
    for method in ("cdf", "sf", "pdf", "logcdf", "logsf", "logpdf"):
        got = getattr(many, method)(q)
        assert got.shape == (5, 2, 3)
        for i in range(2):
            for j in range(3):
                own = QuadraticForm(weights[j], [1, 4], offset=float(i))
                assert np.array_equal(got[:, i, j], getattr(own, method)(q[:, 0, 0]))
    assert many.isf(0.1).shape == many.mean().shape == (2, 3)
    assert many.sf(many.isf(1e-6)) == pytest.approx(1e-6)
    assert many[1, 2].mean() == many.mean()[1, 2]
    with pytest.raises(ValueError, match="same last axis"):
        QuadraticForm.broadcast([1, 2, 3], dof=[1, 2])


def test_forms_of_arrays_have_the_moments_gradients_and_draws_of_each_form():
    many = QuadraticForm.broadcast([[1.0, 2.0], [3.0, -1.0]], dof=[1, 4], offset=[[0.0], [1.0]])
    own = [[many[i, j] for j in range(2)] for i in range(2)]
    for method in ("skewness", "kurtosis", "median", "mode", "entropy", "mean", "std", "var"):
        want = [[getattr(form, method)() for form in row] for row in own]
        assert np.array_equal(getattr(many, method)(), want)
    for known in (("moment", 3), ("moment", 4, "central"), ("stats", "s")):
        want = [[getattr(form, known[0])(*known[1:]) for form in row] for row in own]
        assert np.array_equal(getattr(many, known[0])(*known[1:]), want)
    for known in (("stats",), ("stats", "mvsk"), ("support",), ("interval", 0.9)):
        found = getattr(many, known[0])(*known[1:])
        for i, j in np.ndindex(2, 2):
            assert tuple(x[i, j] for x in found) == getattr(own[i][j], known[0])(*known[1:])
    q = np.array([2.0, 5.0, 9.0])[:, None, None]
    for name in ("sf_gradient", "cdf_gradient"):
        found = getattr(many, name)(q)
        assert found.weights.shape == (3, 2, 2, 2) and found.q.shape == (3, 2, 2)
        for k, i, j in np.ndindex(3, 2, 2):
            want = getattr(own[i][j], name)(float(q[k, 0, 0]))
            for part, single in zip(found, want, strict=True):
                assert np.array_equal(part[k, i, j], single)
    tail = many.isf_gradient(0.01)
    assert np.allclose(tail[1, 0], own[1][0].isf_gradient(0.01), rtol=1e-12)
    draws = many.sample((500,), rng=1)
    assert draws.shape == (500, 2, 2) and many.rvs(random_state=2).shape == (2, 2)
    assert np.array_equal(draws, many.rvs(500, 1))
    assert (np.abs(draws.mean(axis=0) - many.mean()) < 6 * many.std() / math.sqrt(500)).all()
    assert abs(np.corrcoef(draws[:, 0, 0], draws[:, 1, 0])[0, 1]) < 0.3  # of one stream, no copy
    assert QuadraticForm.broadcast(np.empty((0, 2))).stats()[1].shape == (0,)


@pytest.mark.skipif(not hasattr(stats, "make_distribution"), reason="SciPy before 1.15")
def test_scipys_newer_infrastructure_has_the_same_digits():
    x = FORM.distribution()
    assert x.ccdf(200.0) == FORM.sf(200.0) == FORM.ccdf(200.0) > 0
    assert x.iccdf(1e-30) == FORM.isf(1e-30) == FORM.iccdf(1e-30)
    assert (x.mean(), x.variance()) == pytest.approx((FORM.mean(), FORM.variance()))
    assert x.moment(3) == pytest.approx(FORM.moment(3))
    assert x.support() == FORM.support()
    assert x.form is FORM
    twice = 2 * x + 1
    assert twice.cdf(9.0) == FORM.cdf(4.0) == FORM.icdf(FORM.cdf(4.0)) * 0 + FORM.cdf(4.0)
    assert FORM.standard_deviation() == FORM.std()
    assert FORM.logccdf(1e4) == FORM.logsf(1e4)


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_there_is_a_contour_inside_the_support_alone(name):
    with use_kernels(name):
        form = QuadraticForm([1.0], [0.01], offset=2.0)
        _, weight = form.contour(2.5)
        assert float(np.sum(weight).real) == pytest.approx(form.pdf(2.5), rel=1e-12)
        for q in (2.0, 1.0, np.nan):
            with pytest.raises(ValueError, match="inside the support"):
                form.contour(q)
