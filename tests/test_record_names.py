"""Columns' names in projections, regressions and principal axes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from ellipsum.records import PrivatePCA, PrivateProjection, PrivateRegression

pl = pytest.importorskip("polars")

NAMES = ("age", "height", "dose")
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list(NAMES))
TURNED = FRAME[["dose", "age", "height"]]
CENTER = {"age": 0.5, "height": -0.25, "dose": 0.0}
RENAMED = FRAME.rename(columns={"age": "years"})


def projection(center=None, seed=1):
    known = {"rows": 5, "radius": 2.0, "d": 3, "epsilon": 1.0, "delta": 1e-6}
    return PrivateProjection(center=center, seed=seed, **known)


# ---- projections ---------------------------------------------------------------------------


def test_the_rows_of_a_projection_are_met_by_name():
    plain = projection([0.5, -0.25, 0.0]).add(FRAME.to_numpy()).release()
    assert plain.columns is None
    for rows in (FRAME, TURNED, pl.DataFrame(TURNED)):
        release = projection(CENTER).add(rows).release()
        assert release.columns == NAMES and np.array_equal(release.rows, plain.rows)
    first = projection().add(FRAME[:30]).add(TURNED[30:]).add(FRAME.to_numpy()[:4])
    whole = projection().add(FRAME).add(FRAME[:4])
    assert first.columns == NAMES and np.array_equal(first.release().rows, whole.release().rows)
    moments = whole.release().second_moments()
    assert moments.columns == NAMES
    assert json.loads(json.dumps(whole.release().to_dict()))["columns"] == list(NAMES)


def test_other_columns_are_refused_and_change_nothing():
    part = projection(CENTER).add(FRAME[:30])
    before = part.to_bytes()
    for rows in (RENAMED, FRAME.drop(columns="age"), FRAME.assign(weight=1.0)):
        with pytest.raises(ValueError, match=r"years|no column 'age'|weight") as refused:
            part.add(rows)
        assert not any(c.isdigit() for c in str(refused.value)), "no cell is quoted"
    assert part.to_bytes() == before and part.count == 30
    fresh = projection()
    with pytest.raises(ValueError):
        fresh.add(FRAME[["age", "dose"]])
    assert fresh.columns is None, "a call that raises leaves it as it was"
    assert projection().add(iter([FRAME])).columns is None, "batches do not tell their names"


def test_parts_of_a_projection_have_one_order_of_columns():
    one, other = projection().add(FRAME[:30]), projection(seed=2).add(TURNED[30:])
    raw = other.to_bytes()
    for join in (lambda: one.merge(other), lambda: one.add_bytes(raw)):
        with pytest.raises(ValueError, match="another order"):
            join()
    with pytest.raises(ValueError, match="'years'"):
        one.add_bytes(projection(seed=2).add(RENAMED).to_bytes())
    assert one.count == 30 and one.columns == NAMES
    same = projection(seed=2).add(FRAME[30:]).to_bytes()
    restored = PrivateProjection.from_bytes(same, seed=3)
    assert restored.columns == NAMES and restored.to_bytes() == same
    assert one.add_bytes(same).count == 60
    unnamed = projection(seed=4).add(FRAME.to_numpy()).to_bytes()
    assert one.add_bytes(unnamed).columns == NAMES
    assert PrivateProjection.from_bytes(unnamed).columns is None


def test_a_released_projection_is_regressed_by_name():
    release = projection(CENTER).add(FRAME).release()
    by_name = release.regression("height", columns=["dose", "age"], ridge=1.0)
    by_place = release.regression(1, columns=[2, 0], ridge=1.0)
    assert np.array_equal(by_name.coef, by_place.coef) and by_name.columns == (2, 0)
    with pytest.raises(ValueError, match="target must be a place or a column's name: 'age'"):
        release.regression("weight")
    with pytest.raises(ValueError, match="name: none"):
        projection().add(FRAME.to_numpy()).release().regression("age")


# ---- regressions and axes --------------------------------------------------------------------


def test_regressions_and_axes_meet_rows_by_name():
    known = {"mu": 5.0, "seed": 1}
    place = PrivateRegression(2.0, center=[0.5, -0.25, 0.0], **known).fit(FRAME.to_numpy())
    for fit in (
        PrivateRegression(2.0, center=CENTER, **known).fit(FRAME),
        PrivateRegression(2.0, center=CENTER, **known).fit(pl.DataFrame(TURNED)),
        PrivateRegression(2.0, center=CENTER, **known).fit(FRAME[["height", "age"]], FRAME["dose"]),
        PrivateRegression(2.0, center=CENTER, **known).fit(
            pl.DataFrame(FRAME[["height", "age"]]), FRAME["dose"]
        ),
        PrivateRegression(2.0, scale=dict.fromkeys(TURNED, 1.0) | {"dose": 1.0},
                          center=CENTER, **known).fit(FRAME),
    ):  # fmt: skip
        assert np.array_equal(fit.coef_, place.coef_) and fit.columns_ == NAMES[:2]
        predicted = place.predict(FRAME[["age", "height"]].to_numpy())
        for rows in (FRAME[["height", "age"]], pl.DataFrame(FRAME[["height", "age"]])):
            assert fit.predict(rows) == pytest.approx(predicted, rel=1e-12)
    assert place.columns_ is None
    axes = PrivatePCA(1, 2.0, **known).fit(FRAME)
    assert axes.columns_ == NAMES
    plain = axes.transform(FRAME.to_numpy())
    assert axes.transform(TURNED) == pytest.approx(plain, rel=1e-12)
    own = PrivateRegression(2.0, **known).fit(FRAME[["height", "age"]], FRAME["dose"])
    assert own.columns_ == ("height", "age")
    for refused in (
        lambda: PrivateRegression(2.0, center=CENTER, **known).fit(RENAMED),
        lambda: PrivateRegression(2.0, center=CENTER, **known).fit(
            RENAMED[["years"]], FRAME["age"]
        ),
        lambda: fit.predict(RENAMED[["years", "height"]]),
        lambda: axes.transform(RENAMED),
        lambda: PrivatePCA(1, 2.0, center=CENTER, scale={"a": 1, "b": 1, "c": 1}, **known).fit(
            FRAME
        ),
    ):
        with pytest.raises(ValueError, match="column"):
            refused()
