"""Labels that are missing, and columns below the normal doubles."""

from __future__ import annotations

import numpy as np
import pytest

from ellipsum.tradeoff import DiscreteTradeoff, LinearEraser, OracleShift, audit, ksg_information
from ellipsum.tradeoff.neighbors import knn_information

ROWS = np.random.default_rng(0).normal(size=(120, 3))
LABEL = (ROWS[:, 0] > 0).astype(int)


@pytest.mark.parametrize("kind", ["float", "object", "date"])
def test_a_label_that_is_nan_is_missing(kind):
    """It was a class of its own."""
    labels = LABEL.astype(float)
    labels[7] = np.nan
    if kind == "date":
        labels = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")[LABEL]
        labels[7] = np.datetime64("NaT")
    labels = labels.astype(object) if kind == "object" else labels
    for given in (
        lambda: audit(ROWS, labels, attackers=("linear",)),
        lambda: LinearEraser().fit(ROWS, labels),
        lambda: OracleShift().fit(ROWS, labels),
        lambda: knn_information(ROWS, labels),
        lambda: DiscreteTradeoff(multiplier=1.0).fit_samples(labels, LABEL, 1 - np.eye(2)),
    ):
        with pytest.raises(TypeError, match="none of them missing") as raised:
            given()
        assert "nan" not in str(raised.value)
    assert ksg_information(ROWS[:, 0], LABEL) > 0.3


def test_releases_say_that_they_need_labels():
    """They raised what NumPy says of None."""
    made = OracleShift().fit(ROWS, LABEL)
    table = DiscreteTradeoff(multiplier=1.0).fit_samples(LABEL, LABEL, 1 - np.eye(2))
    with pytest.raises(ValueError, match="labels must be given"):
        made.transform(ROWS, None)
    with pytest.raises(ValueError, match="w must be given"):
        table.transform(None)
    some = LABEL.astype(object)
    some[3] = None
    for odd in (some, some[:, None], LABEL.astype(str), LABEL + 0.5, LABEL + np.nan):
        with pytest.raises(ValueError, match="labels must be known from fit"):
            made.transform(ROWS, odd)
        with pytest.raises(ValueError, match="letters of the fitted alphabet"):
            table.transform(odd)
    with pytest.raises(ValueError, match="one for each row"):
        made.transform(ROWS, LABEL[:-1])
    assert table.transform([]).shape == (0,)


@pytest.mark.parametrize("factor", [1e-310, 1e-320, 5e-324])
def test_a_column_below_the_normal_doubles_is_flat(factor):
    """What divides by it is infinite: the release was."""
    rows = ROWS.copy()
    rows[:, 0] *= factor
    made = LinearEraser().fit(rows, LABEL)
    released = made.transform(rows)
    assert np.isfinite(released).all() and np.isfinite(made.matrix_).all()
    assert len(np.unique(released[:, 0])) == 1
    assert np.isfinite(OracleShift().fit(rows, LABEL).transform(rows, LABEL)).all()
