"""Tradeoffs and erasers as scikit-learn's transformers: frames in by name, frames out if asked."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ellipsum.tradeoff import DiscreteTradeoff, GaussianTradeoff, LinearEraser, OracleShift, audit

pandas = pytest.importorskip("pandas", reason="pandas is not installed")

INDEX = range(100, 160)
ROWS = np.random.default_rng(0).normal(size=(60, 4)) @ np.triu(np.ones((4, 4)))
X = pandas.DataFrame(ROWS[:, :2], INDEX, ["a", "b"])
Y = pandas.DataFrame(ROWS[:, 2:], INDEX, ["c", "d"])
BOTH = pandas.concat([X, Y], axis=1)
LABELS = ROWS[:, 0] > 0


KINDS = {
    "useful": lambda: (GaussianTradeoff(distortion=1.0).fit(X, Y), Y),
    "full": lambda: (GaussianTradeoff("full", distortion=1.0).fit(X, Y), BOTH),
    "eraser": lambda: (LinearEraser().fit(X, LABELS), X),
    "shift": lambda: (OracleShift().fit(X, LABELS), X, LABELS),
}
SEEDED = {"useful": {"seed": 3}, "full": {"seed": 3}}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_met_by_name(kind):
    """A frame in another order was taken by the places of its columns."""
    made, frame, *more = KINDS[kind]()
    options = SEEDED.get(kind, {})
    wanted = made.transform(frame.to_numpy(), *more, **options)
    turned = frame[frame.columns[::-1]]
    assert (made.transform(turned, *more, **options) == wanted).all()
    assert list(made.feature_names_in_) == list(frame.columns)
    assert made.n_features_in_ == frame.shape[1]
    with pytest.raises(ValueError, match="which fit named"):
        made.transform(frame.rename(columns={frame.columns[0]: "z"}), *more, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_frames_come_out_where_they_are_asked_for(kind):
    from sklearn import config_context
    from sklearn.base import clone

    made, frame, *more = KINDS[kind]()
    options = SEEDED.get(kind, {})
    plain = made.transform(frame, *more, **options)
    assert isinstance(plain, np.ndarray)
    with config_context(transform_output="pandas"):
        framed = made.transform(frame, *more, **options)
    assert list(framed.columns) == list(made.get_feature_names_out())
    assert list(framed.index) == list(frame.index) and (framed.to_numpy() == plain).all()
    made.set_output(transform="pandas").set_output(transform=None)
    assert made.transform(frame.to_numpy(), *more, **options).index[0] == 0
    assert clone(made)._sklearn_output_config == {"transform": "pandas"}
    polars = pytest.importorskip("polars", reason="polars is not installed")
    framed = made.set_output(transform="polars").transform(
        polars.DataFrame(frame.to_dict("list")), *more, **options
    )
    assert framed.columns == list(made.get_feature_names_out())
    assert (framed.to_numpy() == plain).all()
    made.set_output(transform="default")
    assert isinstance(made.transform(frame, *more, **options), np.ndarray)
    with pytest.raises(ValueError, match="transform must be"):
        made.set_output(transform="csv")


def test_letters_come_out_as_a_column():
    letters = pandas.Series(np.where(ROWS[:, 2] > 0, "u", "v"), INDEX)
    made = DiscreteTradeoff(distortion=0.1).fit_samples(LABELS, letters, 1 - np.eye(2))
    plain = made.transform(letters, seed=1)
    framed = made.set_output(transform="pandas").transform(letters, seed=1)
    assert list(framed.columns) == ["released0"] and list(framed.index) == list(INDEX)
    assert (framed["released0"].to_numpy() == plain).all()


def test_names_are_those_of_the_last_fit():
    made = GaussianTradeoff(distortion=1.0).fit(X, Y)
    made.from_covariance(np.cov(ROWS, rowvar=False), 2)
    assert not hasattr(made, "feature_names_in_")
    made.transform(Y.rename(columns={"c": "z"}), seed=0)  # nothing to meet by name
    same = GaussianTradeoff("full", distortion=1.0).fit(X, Y.rename(columns={"c": "a"}))
    assert not hasattr(same, "feature_names_in_")  # a name that two columns have


def test_an_attack_takes_framed_releases():
    made = LinearEraser().fit(X, LABELS)
    wanted = audit(made, LABELS, X, attackers="linear")
    assert audit(made.set_output(transform="pandas"), LABELS, X, attackers="linear") == wanted


def test_frames_need_no_scikit_learn():
    code = """
import sys, numpy, pandas
from ellipsum.tradeoff import LinearEraser
rows = pandas.DataFrame(numpy.eye(4), columns=list("abcd"))
made = LinearEraser().fit(rows, [0, 1, 0, 1]).set_output(transform="pandas")
print(list(made.transform(rows).columns), "sklearn" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "['erased0', 'erased1', 'erased2', 'erased3'] False\n"


def test_a_seed_is_a_number_bytes_or_a_generator():
    """An int, 32 bytes, a generator or None; an audit's, too, which took ints alone."""
    letters = np.arange(60) % 2
    table = DiscreteTradeoff(distortion=0.2).fit(np.eye(2) / 4 + 1 / 8, 1 - np.eye(2))
    gaussian, eraser = KINDS["useful"]()[0], LinearEraser().fit(X, LABELS)
    for draw in (
        lambda seed: table.transform(letters, seed=seed),
        lambda seed: gaussian.transform(Y, seed=seed),
        lambda seed: audit(
            lambda rows, seed: rows + np.random.default_rng(seed).normal(size=rows.shape),
            LABELS, X.to_numpy(), attackers="linear", draws=1, seed=seed,
        ).results[0].information,
    ):  # fmt: skip
        for seed in (7, 2**40, bytes(range(32))):
            assert np.all(draw(seed) == draw(seed))
        first, again = (np.random.default_rng(3) for _ in range(2))
        drawn = draw(first)
        assert np.all(draw(again) == drawn)
        assert np.any(draw(first) != drawn)  # the generator has moved on
        assert np.any(draw(None) != draw(None))
    assert audit(eraser, LABELS, X, attackers="linear", seed=2**32 - 1).n_test == 24
    with pytest.raises(TypeError, match="seed must be a whole number"):
        audit(ROWS, LABELS, attackers="linear", seed="7")
