"""Columns' names in releases of records, projections, regressions and principal axes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ellipsum import Ellipsoid, PrivateGroupMean, estimate_covariance
from ellipsum.column_names import named_vectors
from ellipsum.records import (
    PrivatePCA,
    PrivateProjection,
    PrivateRegression,
    RecordRelease,
    synthetic_rows,
)

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


def test_a_release_that_is_no_covariance_does_not_pass_for_a_public_one():
    mechanism = PrivateGroupMean(Ellipsoid.ball(9.0, d=1), keys=["a"], mu=5)
    release = mechanism(np.ones((50, 1)), key=np.repeat("a", 50), seed=1)
    with pytest.raises(TypeError, match="come from estimate_covariance"):
        RecordRelease(epsilon=4.0).fit(covariance=release, center=[0.0])


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


# ---- records one by one -----------------------------------------------------------------------

SAME = pd.DataFrame(np.random.default_rng(3).normal(size=(9, 3)), columns=list(NAMES))


def release_of(rows=FRAME, **fit):
    return RecordRelease(epsilon=4.0, seed=2).fit(rows, **fit)


def test_the_records_of_a_release_are_met_by_name():
    """The same bits for columns in any order, of any table; arrays are taken by place."""
    by_place = release_of(np.ascontiguousarray(FRAME))
    want = by_place.transform(SAME.to_numpy())
    assert by_place.columns_ is None and not hasattr(by_place, "feature_names_in_")
    turned = SAME[["dose", "age", "height"]]
    assert not np.array_equal(by_place.transform(turned.to_numpy()), want)
    by_name = release_of()
    assert by_name.columns_ == NAMES and by_name.feature_names_in_.tolist() == list(NAMES)
    for rows in (SAME, turned, pl.DataFrame(turned), SAME.to_numpy(), SAME.to_numpy().tolist()):
        assert np.array_equal(by_name.transform(rows), want)
    fit = release_of(pl.DataFrame(TURNED))
    assert fit.columns_ == tuple(TURNED) and fit.transform(SAME) == pytest.approx(
        fit.transform(turned.to_numpy()), abs=0
    )
    read = pd.DataFrame(fit.inverse_transform(fit.transform(SAME)), columns=fit.columns_)
    assert read["age"].corr(SAME["age"]) > read["age"].corr(SAME["dose"])


def test_a_law_by_name_is_that_of_the_same_names():
    covariance = FRAME.cov()
    moved = covariance.loc[list(TURNED), list(TURNED)]
    want = release_of(None, covariance=covariance.to_numpy(), center=[0.5, -0.25, 0.0])
    for matrix, center in ((covariance, pd.Series(CENTER)[list(TURNED)]), (covariance, CENTER)):
        fit = release_of(None, covariance=matrix, center=center)
        assert fit.columns_ == NAMES
        assert np.array_equal(fit.transform(TURNED), want.transform(FRAME.to_numpy()))
    turned = release_of(None, covariance=moved, center=CENTER)
    assert turned.columns_ == tuple(TURNED) and turned._law.center.tolist() == [0.0, 0.5, -0.25]
    known = {"radius": 3.0, "mu": 5.0, "seed": 1}
    estimate = estimate_covariance(FRAME, center=CENTER, **known)
    mean = {"dose": 0.0, "height": -0.25, "age": 0.5}
    private = release_of(None, covariance=estimate, center=mean)
    assert private.columns_ == NAMES and private._law.center.tolist() == [0.5, -0.25, 0.0]
    drawn = [synthetic_rows(estimate, 5, center=c, seed=1) for c in (mean, [0.5, -0.25, 0.0])]
    assert drawn[0].columns == NAMES and np.array_equal(drawn[0].value, drawn[1].value)
    for refused in (
        lambda: release_of(None, covariance=estimate, center={"a": 0, "b": 0, "c": 0}),
        lambda: release_of(None, covariance=covariance, center={"a": 0, "b": 0, "c": 0}),
        lambda: synthetic_rows(estimate, 5, center={"a": 0, "b": 0, "c": 0}),
    ):
        with pytest.raises(ValueError, match="column"):
            refused()


def test_what_was_released_is_read_by_name():
    fit = release_of()
    assert fit.get_feature_names_out().tolist() == [f"released{j}" for j in range(4)]
    plain = fit.transform(FRAME)
    named = pd.DataFrame(plain, columns=fit.get_feature_names_out())
    for t in (named, named.iloc[:, ::-1], pl.DataFrame(named.iloc[:, ::-1])):
        assert np.array_equal(fit.inverse_transform(t), fit.inverse_transform(plain))
        found = fit.moments(t)
        assert found.columns == NAMES and np.array_equal(found.mean, fit.moments(plain).mean)
    assert release_of(FRAME.to_numpy()).moments(plain).columns is None
    for read in (fit.inverse_transform, fit.moments):
        with pytest.raises(ValueError, match="which transform named"):
            read(FRAME)


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_records_of_other_columns_are_refused_whatever_they_hold(table):
    """The message is the same for any rows, and the transform of none is drawn."""
    fit, told = release_of(), set()
    for cells in (SAME, SAME * np.nan, SAME * 0 + 987654.25, SAME[:0]):
        for other in (cells.rename(columns={"age": "years"}), cells[["age", "dose"]]):
            with pytest.raises(ValueError, match=r"no column 'age'|no column 'height'") as refused:
                fit.transform(table(other))
            told.add(str(refused.value))
    assert told == {
        "data has no column 'age', which the fit named, and has 'years', which the fit did not: "
        "give both the same columns",
        "data has no column 'height', which the fit named: give both the same columns",
    }


def test_a_regression_on_a_projection_predicts_by_name():
    release = projection(CENTER).add(FRAME).release()
    fit = release.regression("height", ridge=1.0)
    want = fit.predict(FRAME.to_numpy())
    assert want == pytest.approx(FRAME[["age", "dose"]].to_numpy() @ fit.coef)
    for rows in (FRAME, TURNED, pl.DataFrame(TURNED), FRAME[["dose", "age"]]):
        assert fit.predict(rows) == pytest.approx(want, rel=1e-12)
    for rows in (RENAMED, RENAMED[["years", "dose"]], FRAME.assign(weight=1.0)):
        with pytest.raises(ValueError, match=r"which the release (named|did not name)"):
            fit.predict(rows)
    for wide in (FRAME.to_numpy()[:, :1], np.zeros((2, 4))):
        with pytest.raises(ValueError, match=r"must have shape \(n, 2\), or \(n, 3\)"):
            fit.predict(wide)
    assert release.pca(1).columns == NAMES
    model = PrivateRegression(2.0, center=CENTER, mu=5.0, seed=1).fit(FRAME)
    assert model.feature_names_in_.tolist() == list(NAMES[:2])


def test_a_covariance_has_the_names_of_its_columns_whatever_table_it_is_in():
    """A frame without an index of its own, a Polars or Arrow table; not rows named otherwise."""
    matrix = np.diag([1.0, 4.0, 9.0])
    frame = pd.DataFrame(matrix, columns=["a", "b", "c"])
    center = {"c": 3.0, "a": 1.0, "b": 2.0}
    tables = [frame, frame.set_axis(["a", "b", "c"]), pl.from_pandas(frame)]
    for given in (*tables, pa.Table.from_pandas(frame)):
        names, known = named_vectors(covariance=given, center=center)
        assert names == ("a", "b", "c")
        assert (known["covariance"] == matrix).all() and (known["center"] == [1, 2, 3]).all()
        drawn = synthetic_rows(given, 20_000, center=center, exact=True, seed=0)
        assert np.abs(drawn.mean(axis=0) - [1, 2, 3]).max() < 0.2
    for wrong in (frame.set_axis([5, 6, 7]), frame.set_axis(["b", "a", "c"])):
        with pytest.raises(ValueError, match="the same names in its rows and columns"):
            named_vectors(covariance=wrong, center=center)
    with pytest.raises(ValueError, match="a row for each of its columns"):
        named_vectors(covariance=pl.from_pandas(frame.head(1)), center=center)


def test_one_record_that_is_a_series_is_met_by_its_labels_and_no_cell_is_quoted():
    rows = np.random.default_rng(0).normal(size=(500, 3)) * [1, 10, 100]
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])

    def released(record):
        return RecordRelease(epsilon=4.0, noise="privunit", seed=1).fit(frame).transform(record)

    record = frame.iloc[0]
    assert np.array_equal(released(record[["c", "a", "b"]]), released(record))
    assert np.array_equal(released(record), released(record.to_numpy()))
    model = PrivateRegression(3.0, mu=5.0, seed=1).fit(frame[["a", "b"]], frame["c"])
    for bad in ([[1.0, "SECRET"]], np.array([[1.0, "SECRET"]], object)):
        with pytest.raises(TypeError, match="rows must be numbers") as caught:
            model.predict(bad)
        assert "SECRET" not in str(caught.value)
