"""The generalized chi-square distribution at its ends: degenerate, extreme and bad parameters."""

import math
import pickle
import warnings

import numpy as np
import pytest
from scipy import special, stats

from ellipsum import QuadraticForm, QuadraticFormWarning

MIXED = dict(weights=[1, 0.5, 0.2, -0.1], noncentrality=[0, 1, 2, 0], normal_sd=0.3, offset=2)

# ---- degenerate and extreme ----------------------------------------------------------------


def test_edges_of_the_support():
    form = QuadraticForm([1, 2], [1, 1], offset=1)
    np.testing.assert_array_equal(form.cdf([-np.inf, 0, 1, np.inf]), [0, 0, 0, 1])
    np.testing.assert_array_equal(form.sf([-np.inf, 0, 1, np.inf]), [1, 1, 1, 0])
    assert form.pdf(1.0) == pytest.approx(0.5 / np.sqrt(2), rel=1e-14)
    assert QuadraticForm([1], 1).pdf(0.0) == np.inf
    assert QuadraticForm([1], 3).pdf(0.0) == 0
    assert form.support() == (1, np.inf)
    assert (form.ppf(0), form.ppf(1)) == (1, np.inf)
    assert np.isnan(form.cdf(np.nan)) and np.isnan(form.ppf(1.5))
    assert QuadraticForm([-1], 1).isf(0) == 0


def test_no_weights_is_a_point_mass():
    for form in (QuadraticForm([], offset=3), QuadraticForm([0.0, 0], offset=3)):
        np.testing.assert_array_equal(form.cdf([2.9, 3, 4]), [0, 1, 1])
        assert form.ppf(0.3) == 3 and form.var() == 0


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 5e-324 * 2**60, 1e150, 1e300])
def test_scale_changes_nothing(scale):
    form, scaled = QuadraticForm([1, 0.5, -0.25]), QuadraticForm(np.array([1, 0.5, -0.25]) * scale)
    for q in (-3.0, 0.5, 40.0):
        assert scaled.logsf(q * scale) == pytest.approx(form.logsf(q), rel=1e-13)


def test_weights_over_three_hundred_decades():
    form = QuadraticForm([1, 1e-150, 1e-300])
    assert form.sf(10.0) == pytest.approx(QuadraticForm([1]).sf(10.0), rel=1e-13)
    assert form.cdf(1e-300) == pytest.approx(3.5938e-226, rel=1e-2)
    assert 0 < form.ppf(1e-200) < 1e-250


@pytest.mark.parametrize("q", [1e-250, 1e-100, 1e-10])
def test_few_degrees_of_freedom_near_zero(q):
    """log chdtr(k, q) ~ (k/2) log(q/2) - log Gamma(k/2 + 1)."""
    form = QuadraticForm([1.0], 0.1)
    expected = 0.05 * np.log(q / 2) - special.gammaln(1.05)
    assert form.logcdf(q) == pytest.approx(expected, rel=1e-11)


def test_the_large_side_is_not_taken_for_a_small_one():
    """A large tail on its own contour cancels to anything: the side must be proven first."""
    weights = [-1.0, -3.00387e-08, -2.25318e-08, -2.67677e-08, -1.60689e-08]
    form = QuadraticForm(weights, [0.5, 3.7, 0.5, 500, 2])
    assert form.sf(-1.36752343e-06) == pytest.approx(1.5120734306171603e-157, rel=1e-11)
    form = QuadraticForm([0.0378447, 1.21229e-07], [0.05, 500])
    assert form.logcdf(3.73221777e-07) < -700


@pytest.mark.parametrize(
    "weights, dof, noncentrality, q, upper, tail",
    [
        ([0.025813, 7.77484e-12], [0.05, 500], 0, 1.61876031e-09, False, 4.3107222055866871e-34),
        ([-1, 3.69076e-07], [0.5, 500], 0, 5.98213e-07, True, 0.10799865875443148),
        ([2.5884e-6, -0.00233171], [500, 0.5], [245.53, 1.2611], 7.84016206e-9, False,
         0.48100494606755769),
    ],
)  # fmt: skip
def test_the_bound_chooses_the_side_where_the_median_misleads(
    weights, dof, noncentrality, q, upper, tail
):
    """The approximate median is on the wrong side, where the contour finds nothing (300,000
    nodes, an error of 5e-5 to 4) or a small number that is wrong. References in ball arithmetic."""
    result = QuadraticForm(weights, dof, noncentrality).evaluate(q)
    assert (result.sf if upper else result.cdf) == pytest.approx(tail, rel=1e-11)
    assert result.met and result.nodes < 1000


def test_scales_that_pull_the_path_both_ways():
    """A bulk as narrow as a Gaussian beside half a degree of freedom: where the bent path cancels,
    the straight one does not. Against the convolution of the two parts."""
    bulk = QuadraticForm([3.18049788e-6], 3.7, 61148.04565, 1e-3)
    whole = QuadraticForm([3.18049788e-6, -0.128230502], [3.7, 0.5], [61148.04565, 0], 1e-3)
    x = 10.0 ** np.linspace(-30, 2, 20001)  # of the chi-square, in a logarithmic chart
    weight = stats.chi2(0.5).pdf(x) * x * np.log(10) * (32 / 20000)
    for q in (0.17, 0.1735, 0.18):
        value = whole.evaluate(q)
        expected = np.sum(weight * bulk.cdf(q + 0.128230502 * x)) + stats.chi2(0.5).cdf(1e-30)
        assert value.met and value.cdf == pytest.approx(expected, rel=1e-6)


def test_a_tail_above_chernoffs_bound_is_not_believed():
    """The bent path cancels into something large that agrees with itself; the value is from ball
    arithmetic."""
    weights = [-1, 0.355706, -0.194311, 0.126527, 0.0907122, 0.0691174, -0.0549229, -0.0450063]
    weights += [-0.0377566, -0.0322669, -0.0279918, 0.0245855, -0.0218192, -0.0195364, -0.0176263]
    weights += [0.016009, 0.0146252, 0.0134302, -0.0123899, -0.0114775, 0.0106721, 0.00995684]
    weights += [0.00931822, 0.0087452]
    dof = [0.05, 1000, 1, 1, 50, 0.05, 0.05, 1, 0.5, 2, 1, 1000, 50, 2, 1, 1, 3.7, 50, 1e5, 1]
    dof += [3.7, 1, 0.05, 1]
    noncentrality = np.zeros(24)
    noncentrality[[1, 4, 5, 11, 12]] = [26.0632, 142.945, 5433.99, 0.0528668, 16284.3]
    noncentrality[[19, 20]] = [21.0707, 155.475]
    value = QuadraticForm(weights, dof, noncentrality).evaluate(-1029.90871)
    assert value.met and value.cdf == pytest.approx(5.7544146135646202e-30, rel=1e-10)


def test_extreme_dof_and_noncentrality():
    assert QuadraticForm([1], 1e6).sf(1_005_000.0) == pytest.approx(
        special.chdtrc(1e6, 1_005_000.0), rel=1e-11
    )
    root = 1e4  # chi2'(1, 1e8) = (Z + 1e4)^2
    form = QuadraticForm([1], 1, root**2)
    expected = special.ndtr(-5.0) + special.ndtr(-2 * root - 5)
    assert form.sf((root + 5) ** 2) == pytest.approx(expected, rel=1e-11)


FAR = {
    "positive": (dict(weights=[1, 0.5], dof=[2, 1]), 0.5, math.inf),
    "both signs": (dict(weights=[1, -0.5], dof=[2, 1]), 0.5, 1.0),
    "noncentral": (dict(weights=[1, -0.5], noncentrality=[1e-3, 1e-3]), 0.5, 1.0),
    "many": (dict(weights=np.linspace(0.1, 1, 200)), 0.5, math.inf),
}


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("q", [1e33, 1e40, 1e80, 1e149, 1e151, 1e160, 1e200, 1e307])
def test_the_log_of_the_tail_has_no_end_but_that_of_the_doubles(kernel_set, name, q):
    """It is -q/(2w) of the extreme weight to rounding, on both sides, one by one and at once."""
    parameters, up, down = FAR[name]
    form = QuadraticForm(**parameters)
    upper = -up * q
    assert form.logsf(q) == pytest.approx(upper, rel=1e-15)
    assert form.logcdf(-q) == (
        -math.inf if down == math.inf else pytest.approx(-down * q, rel=1e-15)
    )
    np.testing.assert_allclose(
        form.logsf(np.array([q, -q, q, q])), [upper, 0, upper, upper], rtol=1e-15
    )
    assert (form.sf(q), form.cdf(q), form.pdf(q)) == (0, 1, 0)
    assert form.logpdf(q) == pytest.approx(upper, rel=1e-15)


@pytest.mark.parametrize("weights", [[], [1e-200, -1.0]])
@pytest.mark.parametrize("x", [1e17, 1e60, 1e100, 1e153, 1e160])
def test_the_log_of_a_normal_tail_overflows_to_minus_infinity(kernel_set, weights, x):
    """Beside a normal term the branch point of 1e-200 is beyond reach: -x^2/2."""
    form = QuadraticForm(weights, normal_sd=1)
    with np.errstate(over="ignore"):
        wanted = -0.5 * np.float64(x) ** 2
    assert form.logsf(x) == pytest.approx(wanted, rel=1e-15)
    assert (form.sf(x), form.cdf(x)) == (0, 1)


def test_shapes_of_a_point_mass_are_nan_as_in_scipy():
    for form in (QuadraticForm([], offset=3), QuadraticForm([0.0])):
        assert math.isnan(form.skewness()) and math.isnan(form.kurtosis())
    tiny = QuadraticForm([1.0], 1e-300)  # its variance to the power 3/2 underflows
    assert tiny.skewness() == pytest.approx(math.sqrt(8 / 1e-300))
    assert tiny.kurtosis() == pytest.approx(12 / 1e-300)


def test_parameters_can_be_read_and_not_written():
    form = QuadraticForm(**MIXED)
    np.testing.assert_array_equal(form.weights, MIXED["weights"])
    np.testing.assert_array_equal(form.dof, np.ones(4))
    np.testing.assert_array_equal(form.noncentrality, MIXED["noncentrality"])
    assert (form.normal_sd, form.offset) == (0.3, 2)
    for array in (form.weights, form.dof, form.noncentrality):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_the_log_of_the_tail_goes_on_where_the_tail_underflows():
    form = QuadraticForm([1.0, 0.5], 2)
    assert form.logsf(2e5) == pytest.approx(np.log(2) - 1e5, rel=1e-15)
    assert form.sf(2e5) == 0


@pytest.mark.parametrize(
    "arguments, phrase",
    [
        (dict(weights=[1, np.nan]), "weights must be finite"),
        (dict(weights=[[1, 2]]), "weights must be one-dimensional"),
        (dict(weights=[1, 2], dof=[1]), "dof must have 2 entries"),
        (dict(weights=[1], dof=-1), "dof must not be negative"),
        (dict(weights=[1], noncentrality=[-1]), "noncentrality must not be negative"),
        (dict(weights=[1], normal_sd=-1), "normal_sd must not be negative"),
        (dict(weights=[1], offset=np.inf), "offset must be finite"),
    ],
)
def test_bad_parameters_are_named(arguments, phrase):
    with pytest.raises(ValueError, match=phrase):
        QuadraticForm(**arguments)


def test_bad_calls_are_named():
    form = QuadraticForm([1.0])
    with pytest.raises(ValueError, match="method must be"):
        form.cdf(1.0, method="magic")
    with pytest.raises(ValueError, match="positive weights"):
        QuadraticForm([1, -1]).cdf(1.0, method="ruben")
    with pytest.raises(ValueError, match="radius must not be negative"):
        form.clip_loss(-1)
    with pytest.raises(ValueError, match="n must be a whole number"):
        form.cumulant(0)


def test_nothing_warns_on_ordinary_input():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        QuadraticForm(**MIXED).evaluate(np.linspace(-30, 60, 50))


@pytest.mark.parametrize(
    ("form", "q"),
    [
        (QuadraticForm([1.0], 100), 1e-303),
        (QuadraticForm([1.0], 5), 1e-310),
        (QuadraticForm([1.0], 1e4), 1e-301),
        (QuadraticForm([1.0], 2), 1e-320),
        (QuadraticForm([0.6264439732090946], 0, 1e-20), 150.75),
        (QuadraticForm([0.6264439732090946], 0, 1e-16), 2.0),
    ],
)
def test_what_is_not_known_is_said_and_is_a_probability_all_the_same(kernel_set, form, q):
    """Beyond what the contour tells."""
    form = pickle.loads(pickle.dumps(form))  # by these kernels
    for at in (q, np.array([q])):
        for name in ("cdf", "sf", "logcdf", "logsf"):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                value = float(np.squeeze(getattr(form, name)(at)))
            assert not said or {x.category for x in said} == {QuadraticFormWarning}
            assert (0 <= value <= 1) if name in ("cdf", "sf") else value <= 0
            if not said:  # told well, by these kernels
                assert form.evaluate(q).met
    assert not form.evaluate(q).met or not said


@pytest.mark.parametrize("offset", [0.0, 5.0])
@pytest.mark.parametrize(
    ("weights", "noncentrality", "below"),
    [
        ([1.0], [1.0], 0.0),
        ([-2.0], [3.0], -math.expm1(-1.5)),
        # Two numbers of a Poisson law each, without one that is above 0 alone
        ([1.0, -1.0], [1.0, 2.0], None),
        ([1.0, -3.0, 0.0], [1e-3, 40.0, 7.0], None),
    ],
)
def test_an_atom_is_in_the_lower_tail_and_in_the_quantiles(
    kernel_set, weights, noncentrality, below, offset
):
    form = QuadraticForm(weights, 0, noncentrality, offset=offset)
    real = np.array(weights) != 0
    atom = math.exp(-0.5 * np.array(noncentrality)[real].sum())
    if below is None:  # by the numbers of chi-squares on each side
        a, b = (stats.poisson(0.5 * noncentrality[k]).pmf(np.arange(120)) for k in (0, 1))
        ratio = weights[0] / (weights[0] - weights[1])
        i, j = np.meshgrid(np.arange(120), np.arange(120), indexing="ij")
        with np.errstate(all="ignore"):
            less = special.betainc(i, j, 1 - ratio)  # X_i w_0 < X_j |w_1| for 2i and 2j degrees
        less[0, 1:], less[1:, 0], less[0, 0] = 1.0, 0.0, 0.0
        below = float(a @ less @ b)
    upto = below + atom
    for q in (offset, np.array([offset])):
        for value, true in ((form.cdf(q), upto), (form.sf(q), 1 - upto)):
            assert float(np.squeeze(value)) == pytest.approx(true, rel=1e-9, abs=1e-14)
    assert form.evaluate(offset).cdf == form.cdf(offset)
    assert form.logcdf(offset) == pytest.approx(math.log(upto), rel=1e-9, abs=1e-14)
    inside = below + atom * np.array([1e-6, 0.3, 0.999999])
    if atom > 1e-6:
        assert (form.ppf(inside) == offset).all() and (form.isf(1 - inside) == offset).all()
    if 0 < below < 1 - 1e-6:
        assert form.ppf(0.99 * below) < offset and form.isf(1 - 0.99 * below) < offset
    if upto < 1 - 1e-6:
        above = 1 - 0.99 * (1 - upto)
        assert form.ppf(above) > offset and form.isf(1 - above) > offset


def test_an_interval_is_of_a_probability():
    for wrong in (-0.5, 2.0, math.nan):
        with pytest.raises(ValueError, match="confidence"):
            QuadraticForm([1.0], 3).interval(wrong)
