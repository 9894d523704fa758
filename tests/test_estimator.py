"""What has a ``fit`` follows scikit-learn's conventions, as scikit-learn checks them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

from ellipsum.records import RecordRelease
from ellipsum.tradeoff import DiscreteTradeoff, GaussianTradeoff, LinearEraser, OracleShift

ROWS = np.random.default_rng(0).normal(size=(40, 2)) + 3
LABELS = ROWS[:, 0] > 3
#: Each estimator, how it is fitted, and what only a fitted one can say.
ESTIMATORS = {
    "records": (RecordRelease(epsilon=2.0), lambda e: e.fit(ROWS), lambda e: e.transform(ROWS)),
    "gaussian": (
        GaussianTradeoff(distortion=0.5),
        lambda e: e.fit(ROWS[:, :1], ROWS[:, 1:]),
        lambda e: e.transform(ROWS[:, 1:], seed=0),
    ),
    "discrete": (
        DiscreteTradeoff(multiplier=1.0),
        lambda e: e.fit(np.eye(2) / 2, 1 - np.eye(2)),
        lambda e: e.transform([0, 1], seed=0),
    ),
    "eraser": (LinearEraser(), lambda e: e.fit(ROWS, LABELS), lambda e: e.transform(ROWS)),
    "oracle": (OracleShift(), lambda e: e.fit(ROWS, LABELS), lambda e: e.transform(ROWS, LABELS)),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    "check",
    [
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
    ],
)
def test_scikit_learn_finds_no_fault(name, check):
    given = ESTIMATORS[name][0]
    getattr(estimator_checks, check)(type(given).__name__, clone(given))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_before_fit_there_is_one_clear_sentence(name):
    given, fit, use = ESTIMATORS[name]
    fresh = clone(given)
    for call in (use, lambda e: e.n_features_in_, lambda e: e.guarantee_):
        with pytest.raises((ValueError, AttributeError), match="is not fitted: call fit") as caught:
            call(fresh)
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, AttributeError)
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)
    assert fit(fresh) is fresh
    check_is_fitted(fresh)
    assert use(fresh) is not None
    with pytest.raises(AttributeError, match="has no attribute 'leakge_'"):
        fresh.leakge_  # noqa: B018
    assert not isinstance(getattr(fresh, "leakge_", None), str)
    for again in (copy.deepcopy(fresh), pickle.loads(pickle.dumps(fresh))):
        assert again.get_params() == fresh.get_params() and use(again) is not None


def test_a_wrong_parameter_is_named_and_the_repr_shows_the_right_ones():
    with pytest.raises(ValueError, match="'multplier' is no parameter of DiscreteTradeoff"):
        DiscreteTradeoff().set_params(multplier=2.0)
    assert repr(OracleShift(0.5)) == "OracleShift(strength=0.5)"
    assert repr(LinearEraser()) == "LinearEraser()"
