"""Units of columns in what a release shows, stores and draws."""

from __future__ import annotations

import json

import matplotlib
import numpy as np
import pytest

from ellipsum import Ellipsoid, PrivateGroupMean, PrivateMean

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
NAMES = ("age", "height", "dose")
KNOWN = {"age": "years", "dose": "mg/kg"}
ROWS = np.random.default_rng(5).normal([40, 170, 0.1], [10, 8, 0.2], size=(500, 3))
FRAME = pd.DataFrame(ROWS, columns=list(NAMES))
GROUPED = FRAME.assign(shop=["a", "b"] * 250)
BALL = Ellipsoid.ball(400, d=3)


def mean(units=None, data=FRAME, **known):
    return PrivateMean(BALL, units=KNOWN if units is None else units, **known, **BUDGET)(data)


def groups(units=None):
    units = KNOWN if units is None else units
    return PrivateGroupMean(BALL, keys=["a", "b"], units=units, **BUDGET)(GROUPED, key="shop")


@pytest.fixture(autouse=True)
def no_window():
    from matplotlib import pyplot

    with matplotlib.rc_context({"backend": "Agg"}):
        yield
        pyplot.close("all")


@pytest.mark.parametrize("missing", ["center", "ignore"])
def test_a_release_tells_its_units_wherever_it_goes(missing):
    release = mean(pd.Series(KNOWN), missing=missing)
    lines = str(release).splitlines()
    assert any(line.split()[:2] == ["age", "[years]"] for line in lines)
    assert any(line.split()[0] == "height" and "[" not in line.split()[1] for line in lines)
    plain = json.loads(json.dumps(release.to_dict()))
    assert plain["units"] == ["years", None, "mg/kg"]
    columns = release.table()
    assert list(columns)[:3] == ["column", "unit", "value"]
    assert columns["unit"] == plain["units"]
    assert release.to_arrow()["unit"].to_pylist() == plain["units"]
    shown = release.to_pandas()
    assert shown.attrs["units"] == KNOWN
    assert "unit" not in shown.columns and shown.index.name == "column"
    html = release._repr_html_()
    assert "<th>unit</th>" in html and "<td>years</td>" in html and "<td></td>" in html


def test_a_release_without_units_is_as_before():
    release = PrivateMean(BALL, **BUDGET)(FRAME)
    assert release.units is None and release.to_dict()["units"] is None
    assert "unit" not in release.table() and "units" not in release.to_pandas().attrs
    assert "unit" not in release.to_arrow().column_names
    assert release.plot().get_xlabel() == "value, in the data's unit"
    assert PrivateMean(BALL, units=["", None, ""], **BUDGET)(FRAME).units is None


def test_a_release_can_be_named_by_hand():
    release = PrivateMean(BALL, **BUDGET)(ROWS).named(NAMES, ["years", None, None])
    assert release.units == ("years", None, None)
    assert release.named(NAMES).units is None
    with pytest.raises(ValueError, match="units must have 3 entries, got 1"):
        release.named(NAMES, ["years"])
    by_place = PrivateMean(BALL, units=["kg"] * 3, **BUDGET)(ROWS)
    assert by_place.columns is None and "[0] [kg]" in str(by_place)
    assert by_place.to_pandas().attrs["units"] == {"[0]": "kg", "[1]": "kg", "[2]": "kg"}


def test_groups_have_the_units_in_every_row():
    release = groups()
    assert release.units == release["a"].units == ("years", None, "mg/kg")
    assert release.table()["unit"] == ["years", None, "mg/kg"] * 2
    assert release.to_arrow().column_names[:3] == ["key", "column", "unit"]
    shown = release.to_pandas()
    assert shown.attrs["units"] == KNOWN and "unit" not in shown.columns
    assert "age [years], height, dose [mg/kg] (noise sd)" in str(release)
    assert "<td>years</td>" in release._repr_html_()
    one = PrivateGroupMean(Ellipsoid.ball(9, d=1), keys=["a"], units=["m"], **BUDGET)
    alone = one(np.ones((9, 1)), key=["a"] * 9)
    assert alone.plot().get_xlabel() == "value, m"
    assert "[0] [m] (noise sd)" in str(alone)


def test_tables_of_groups_that_merge_are_told_apart_by_names_alone():
    mechanism = PrivateGroupMean(BALL, keys=["a", "b"], **BUDGET)
    told = GROUPED.copy()
    told.attrs["units"] = KNOWN
    other = GROUPED.copy()
    other.attrs["units"] = {"age": "days"}
    one, two = (mechanism.exact_sum(table, key="shop") for table in (told, other))
    assert bytes(one.to_bytes()) == bytes(two.to_bytes())
    assert mechanism(one.merge(two)).units == (None, None, "mg/kg")


def test_axes_say_the_unit():
    release = mean()
    ax = release.plot(sort=False)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["age [years]", "height", "dose [mg/kg]"]
    assert ax.get_xlabel() == "value, each in its unit"
    own = release.plot(names=["x", "y", "z"], sort=False)
    assert [label.get_text() for label in own.get_yticklabels()] == ["x", "y", "z"]
    assert mean(["mm"] * 3).plot().get_xlabel() == "value, mm"
    panels = groups().plot()
    assert [ax.get_xlabel() for ax in panels] == [
        "age, years",
        "height, in its unit",
        "dose, mg/kg",
    ]
    many = PrivateMean(Ellipsoid.ball(400, d=50), units=["mm"] * 50, **BUDGET)
    assert many(np.ones((9, 50))).plot().get_ylabel() == "value, mm"


def test_no_unit_breaks_a_screen_a_page_or_a_picture():
    odd = {"age": "a\x1b[2J\n<b>", "height": "h" * 80, "dose": "\u202e$x_{$"}
    for release in (mean(odd), groups(odd)):
        text = str(release)
        assert not any(c in text for c in "\x1b\u202e") and "h" * 41 not in text
        html = release._repr_html_()
        assert (
            not any(c in html for c in "\x1b\u202e") and "<b>]" not in html and "&lt;b&gt;" in html
        )
        ax = np.ravel(release.plot())[0]
        ax.figure.canvas.draw()  # a formula that is none would raise
        assert json.loads(json.dumps(release.to_dict()))["units"] == [*odd.values()]
