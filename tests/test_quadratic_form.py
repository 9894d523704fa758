"""The generalized chi-square distribution against SciPy's special cases and itself."""

import numpy as np
import pytest
from scipy import special

from ellipsum import QuadraticForm

Q = np.array([1e-8, 0.1, 1.0, 3.0, 20.0, 200.0])


@pytest.mark.parametrize("dof", [0.3, 1, 2, 7.5, 400])
def test_one_weight_is_a_scaled_chi_square(dof):
    form = QuadraticForm([2.0], dof)
    np.testing.assert_allclose(form.sf(2 * Q), special.chdtrc(dof, Q), rtol=1e-12)
    np.testing.assert_allclose(form.cdf(2 * Q), special.chdtr(dof, Q), rtol=1e-12)


@pytest.mark.parametrize("p", [1e-300, 1e-12, 0.3, 0.5, 1 - 1e-9])
def test_quantiles_invert_the_tails(p):
    form = QuadraticForm([1, 0.5, 0.2, -0.1], noncentrality=[0, 1, 2, 0], normal_sd=0.3, offset=2)
    assert form.sf(form.isf(p)) == pytest.approx(p, rel=1e-11)
    assert form.cdf(form.ppf(p)) == pytest.approx(p, rel=1e-11)


def test_clip_moments_agree_with_each_other():
    form = QuadraticForm([1, 0.5, 0.25], [1, 2, 3], [0.5, 0, 1])
    q = form.isf(1e-3)
    loss = form.partial_mean(q) - 2 * np.sqrt(q) * form.partial_root_mean(q) + q * form.sf(q)
    assert form.clip_loss(np.sqrt(q)) == pytest.approx(loss, rel=1e-10)
    assert form.partial_mean(0) == pytest.approx(form.mean(), rel=1e-13)
