"""Weights from a sample: against the truth of a simulation, moments, and SciPy's own fits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ellipsum import QuadraticForm

#: Errors of a fit in its standard errors: a Gaussian is beyond by chance 6e-8.
FAR = 5.5


def test_weights_of_a_simulation_are_found_within_their_errors():
    for weights, dof in (([3.0, 1.0], [2, 2]), ([4.0, 0.5], [1, 5])):
        sample = QuadraticForm(weights, dof=dof).rvs(3000, random_state=1)
        found = QuadraticForm.fit(sample, dof)
        assert (np.abs(found.form.weights - weights) < FAR * found.weights_error).all()
        assert (found.weights_error < 0.1 * np.array(weights)).all()
        true = float(np.sum(QuadraticForm(weights, dof=dof).logpdf(sample)))
        assert true <= found.log_likelihood < true + 20
        best = found.form.logpdf(sample).sum()
        assert found.log_likelihood == pytest.approx(best, rel=1e-12)


def test_moments_say_the_same():
    """Two weights of two degrees of freedom each, from the mean and the variance alone."""
    sample = QuadraticForm([3, 1], dof=2).rvs(8000, random_state=2)
    total, squares = np.mean(sample) / 2, np.var(sample) / 4
    root = math.sqrt(2 * squares - total**2)
    by_moments = np.array([total + root, total - root]) / 2
    found = QuadraticForm.fit(sample, [2, 2])
    assert found.form.weights == pytest.approx(by_moments, rel=0.1)
    assert found.form.mean() == pytest.approx(np.mean(sample), rel=0.002)


def test_one_weight_is_the_gamma_that_scipy_fits():
    sample = QuadraticForm([2.5], dof=3).rvs(500, random_state=3)
    found = QuadraticForm.fit(sample, [3])
    _, _, scale = stats.gamma.fit(sample, fa=1.5, floc=0)
    assert found.form.weights[0] == pytest.approx(scale / 2, rel=1e-6)
    exact = scale / 2 / math.sqrt(500 * 1.5)  # Fisher's information of a scale: shape / scale^2
    assert found.weights_error[0] == pytest.approx(exact, rel=0.15)


def test_signs_normal_sd_and_offset():
    form = QuadraticForm([2, -1], dof=[3, 2], offset=5)
    found = QuadraticForm.fit(form.rvs(800, random_state=4), [3, 2], signs=[1, -1], offset=None)
    assert (np.abs(found.form.weights - form.weights) < FAR * found.weights_error).all()
    assert abs(found.form.offset - 5) < FAR * found.offset_error < 3
    assert found.normal_sd_error == 0 == found.form.normal_sd
    form = QuadraticForm([2], dof=2, normal_sd=1)
    found = QuadraticForm.fit(form.rvs(800, random_state=5), [2], normal_sd=None)
    assert abs(found.form.normal_sd - 1) < FAR * found.normal_sd_error < 1.5
    assert abs(found.form.weights[0] - 2) < FAR * found.weights_error[0]
    mirrored = -QuadraticForm([2, 1], dof=[3, 4], offset=5).rvs(500, random_state=6)
    below = QuadraticForm.fit(mirrored, [3, 4], signs=-1, offset=None)
    above = QuadraticForm.fit(-mirrored, [3, 4], offset=None)
    assert below.form.weights == pytest.approx(-above.form.weights, rel=1e-4)
    assert below.form.offset == pytest.approx(-above.form.offset, abs=1e-3)


def test_what_a_sample_does_not_tell_has_no_error():
    sample = QuadraticForm([1], dof=2).rvs(400, random_state=1)
    found = QuadraticForm.fit(sample, [1, 1])
    if found.form.weights[0] == pytest.approx(found.form.weights[1], rel=1e-4):
        assert np.isinf(found.weights_error).all()
    assert found.form.weights[0] >= found.form.weights[1]
    assert found.form.mean() == pytest.approx(np.mean(sample), rel=0.02)


@pytest.mark.parametrize(
    ("sample", "known", "message"),
    [
        ([1.0, 2.0], {"dof": [1, 1]}, "more than 2 draws"),
        ([1.0, 1.0, 1.0], {"dof": [1]}, "not all equal"),
        ([1.0, -2.0, 3.0], {"dof": [1]}, "above the offset"),
        ([1.0, -2.0, 3.0], {"dof": [1], "signs": -1}, "below the offset"),
        ([1.0, 2.0, 3.0], {"dof": [0]}, "dof"),
        ([1.0, 2.0, 3.0, 4.0], {"dof": [1], "offset": None}, "no maximum"),
        ([1.0, 2.0, 3.0, 4.0], {"dof": [3], "offset": None}, "no maximum"),
        ([1.0, 2.0, 3.0], {"dof": [1], "signs": 0.5}, "signs must be 1 or -1"),
        ([1.0, np.nan, 3.0], {"dof": [1]}, "sample"),
        ([1.0, 2.0, 3.0], {"dof": [1], "noncentrality": -1}, "negative"),
        ([1.0, 2.0, 3.0], {"dof": [1], "normal_sd": -1}, "negative"),
    ],
)
def test_what_has_no_fit_is_refused_with_its_reason(sample, known, message):
    with pytest.raises(ValueError, match=message):
        QuadraticForm.fit(sample, **known)
