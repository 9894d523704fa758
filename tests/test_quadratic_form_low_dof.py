"""Low degrees of freedom: a spike at 0, tails of the size of the dof, scales over 250 decades."""

import numpy as np
import pytest
from scipy import special

from ellipsum.kernels import backend as _backend
from ellipsum.kernels import twins
from reference_tables import reference_cases

pytestmark = pytest.mark.usefixtures("compiled_twins")

BACKENDS = {"numba": twins, _backend.backend().name: _backend.kernels()}
CASES = list(reference_cases("quadratic_form_low_dof.npz"))


@pytest.fixture(params=BACKENDS)
def tables(request):
    kernels = BACKENDS[request.param]
    return [(kernels.FormTable(*parameters), case) for parameters, case in CASES]


def test_tail_and_density_agree_with_the_reference(tables):
    """One- and two-sided, total dof 1e-3 to 1.8, q from 1e-250 to tails of e^-600."""
    for table, case in tables:
        log_tail, log_pdf, error, pdf_error, upper, _ = table.tail(case["q"])
        small = min(case["tail"], 1 - case["tail"])
        assert upper == case["upper"] or case["tail"] == 1 - small
        assert np.exp(log_tail) == pytest.approx(small, rel=1e-12), case
        if 1e-300 < case["pdf"] < 1e300:
            assert np.exp(log_pdf) == pytest.approx(case["pdf"], rel=1e-11), case
        assert error < 1e-12 and pdf_error < 1e-11


def test_nodes_are_hundreds(tables):
    """Each further scale of the weights between 1 and 1/q costs some three hundred."""
    nodes = np.array([table.tail(case["q"])[5] for table, case in tables])
    assert np.median(nodes) <= 110
    assert np.mean(nodes <= 500) >= 0.94
    assert nodes.max() <= 2200


@pytest.mark.parametrize("kernels", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize("dof", [1e-8, 1e-3, 0.15])
@pytest.mark.parametrize("q", [1e-200, 1e-9, 0.3, 50.0, 1300.0])
def test_the_upper_tail_of_one_weight_keeps_its_digits_however_few_the_dof(kernels, dof, q):
    """For dof -> 0 it is (dof/2) E1(q/2), and q f(q) = (dof/2) e^(-q/2)."""
    mpmath = pytest.importorskip("mpmath")
    table = kernels.FormTable(np.array([1.0]), np.array([dof]), np.zeros(1), 0.0)
    with mpmath.workdps(40):
        half = mpmath.mpf(dof) / 2
        tail = mpmath.gammainc(half, mpmath.mpf(q) / 2, mpmath.inf, regularized=True)
        log_pdf = half * mpmath.log(mpmath.mpf(q) / 2) - mpmath.mpf(q) / 2
        log_pdf -= mpmath.log(mpmath.gamma(half) * q)
    log_tail, found, error, _, upper, _ = table.tail(q)
    wanted = tail if upper else 1 - tail
    assert log_tail == pytest.approx(float(mpmath.log(wanted)), abs=1e-12)
    assert found == pytest.approx(float(log_pdf), abs=1e-12)
    assert error < 1e-12


@pytest.mark.parametrize("kernels", BACKENDS.values(), ids=BACKENDS)
def test_zero_of_a_difference_is_a_beta_probability(kernels):
    """P(chi2_j > chi2_k) of equal weights: half of the dof decide, however few."""
    for j, k in ((1e-3, 3e-3), (0.1, 0.05), (0.7, 1.2)):
        table = kernels.FormTable(np.array([1.0, -1.0]), np.array([j, k]), np.zeros(2), 0.0)
        log_tail, log_pdf, error, _, upper, nodes = table.tail(0.0)
        share = special.betainc(k / 2, j / 2, 0.5)  # P(chi2_k < chi2_j)
        assert np.exp(log_tail) == pytest.approx(share if upper else 1 - share, rel=1e-12)
        assert log_pdf == np.inf and error < 1e-12 and nodes < 500
