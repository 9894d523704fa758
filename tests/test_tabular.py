"""Releases as tables, HTML and pictures of groups: the released numbers, all of them."""

from __future__ import annotations

import builtins
import json
import re

import matplotlib
import numpy as np
import pytest

import ellipsum
from ellipsum import (
    Budget,
    Ellipsoid,
    ExactSum,
    GaussianShape,
    Parts,
    PrivateCounts,
    PrivateGroupMean,
    PrivateMean,
    PrivateSum,
    QuadraticForm,
    compose,
    estimate_center,
    estimate_covariance,
    estimate_scale,
)
from ellipsum.records import PrivateProjection

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
ROWS = pd.DataFrame(
    np.random.default_rng(1).normal([40, 170], [10, 8], size=(900, 2)), columns=["age", "<b>tall"]
)
BOX = {"lower": [0, 100], "upper": [100, 220]}
SHOPS = ["north", "south", "east"]
TABLE = ROWS.assign(shop=SHOPS * 300)
REGION = Ellipsoid.box(BOX["lower"], BOX["upper"])

RELEASES = {
    "sum": lambda: PrivateSum(REGION, **BUDGET)(ROWS),
    "mean": lambda: PrivateMean(REGION, **BUDGET)(ROWS),
    "present": lambda: PrivateMean(REGION, missing="ignore", **BUDGET)(ROWS),
    "from a box": lambda: PrivateMean(**BOX, **BUDGET)(ROWS),
    "infeasible": lambda: PrivateMean(**BOX, mu=1e-4)(ROWS),
    "center": lambda: estimate_center(ROWS, **BOX, **BUDGET),
    "scale": lambda: estimate_scale(ROWS, **BOX, **BUDGET),
    "covariance": lambda: estimate_covariance(ROWS, center=[40, 170], radius=60, **BUDGET),
    "groups": lambda: PrivateGroupMean(REGION, keys=SHOPS, **BUDGET)(TABLE, key="shop"),
    "counts": lambda: PrivateCounts(keys=[*SHOPS, "none"], **BUDGET)(TABLE, key="shop"),
    "histogram": lambda: PrivateCounts(edges=[0, 30, 40, 100], **BUDGET)(ROWS["age"].to_numpy()),
    "mixed keys": lambda: PrivateCounts(keys=["north", 7, b"x"], **BUDGET)(TABLE, key="shop"),
}


@pytest.fixture(autouse=True)
def no_window():
    from matplotlib import pyplot

    with matplotlib.rc_context({"backend": "Agg"}):
        yield
        pyplot.close("all")


@pytest.mark.parametrize("kind", RELEASES)
def test_tables_hold_what_was_released(kind):
    release = RELEASES[kind]()
    columns, frame, arrow = release.table(), release.to_pandas(), release.to_arrow()
    assert arrow.column_names == list(columns)
    assert [frame.index.name, *frame.columns] == list(columns)
    if kind == "covariance":
        assert np.array_equal(frame.to_numpy(), release.value)
        assert list(frame.index) == list(frame.columns) == list(ROWS.columns)
    else:
        assert np.array_equal(frame["value"].to_numpy(), release.value.ravel())
        assert arrow["value"].to_pylist() == release.value.ravel().tolist()
    if "lower" in columns:
        ends = release.confidence_interval()
        assert np.array_equal(np.array(columns["lower"]), ends[0].ravel())
        wider = release.table(level=0.99)
        assert (np.array(wider["upper"]) >= np.array(columns["upper"])).all()
    about = json.loads(arrow.schema.metadata[b"ellipsum"])
    assert about == json.loads(json.dumps(frame.attrs["ellipsum"]))
    assert about["guarantee"] == json.loads(json.dumps(release.guarantee.to_dict()))
    assert about["caveats"] == list(release.caveats)


@pytest.mark.parametrize("kind", RELEASES)
def test_html_shows_names_and_values_and_escapes_them(kind):
    release = RELEASES[kind]()
    text = release._repr_html_()
    assert "<b>tall" not in text
    assert f"{release.value.ravel()[0]:.6g}" in text
    assert (
        text.count("<tr>") == text.count("</tr>") == 1 + len(next(iter(release.table().values())))
    )
    if release.columns:
        assert "&lt;b&gt;tall" in text


@pytest.mark.parametrize("missing", ["center", "ignore"])
def test_where_nothing_is_known_tables_have_nothing_and_a_caveat_says_so(missing):
    """A group without a user: null in JSON and Arrow, NaN in pandas, blank in HTML."""
    rows = pd.DataFrame({"v": np.ones(500), "k": ["full"] * 500})
    mean = PrivateGroupMean(Ellipsoid.ball(9.0, d=1), keys=["full", "none"], missing=missing, mu=1)
    release = mean(rows, key="k", seed=0)
    columns = release.table()
    assert columns["lower"][1] is columns["upper"][1] is None
    assert (columns["sd"][1] is None) == (missing == "ignore")
    assert all(type(columns[name][0]) is float for name in ("value", "sd", "lower", "upper"))
    json.dumps([columns, release.to_dict()], allow_nan=False)
    frame, arrow = release.to_pandas(), release.to_arrow()
    for name in ("sd", "lower", "upper"):
        assert frame[name].dtype == np.float64 and arrow[name].to_pylist() == columns[name]
        assert np.array_equal(frame[name].isna(), [x is None for x in columns[name]])
    assert "inf" not in release._repr_html_() and "<td></td>" in release._repr_html_()
    assert "inf" not in str(release) and ("(no estimate)" in str(release)) == (missing == "ignore")
    assert sum("too few" in caveat for caveat in release.caveats) == 1
    alone = PrivateGroupMean(Ellipsoid.ball(9.0, d=1), keys=["none"], missing=missing, mu=1)
    alone = alone(rows.iloc[:0], key="k", seed=0)
    assert alone.to_pandas()["lower"].dtype == np.float64
    assert str(alone.to_arrow()["lower"].type) == "double"
    assert "too few" not in str(mean(rows, key="k", seed=0)["full"])


def test_a_release_of_one_region_has_nothing_for_what_is_infinite_too():
    known = PrivateMean(Ellipsoid.ball(9.0, d=2), missing="ignore", mu=1)
    columns = known(np.column_stack([np.ones(500), np.full(500, np.nan)]), seed=0).table()
    assert [columns[name][1] for name in ("sd", "lower", "upper")] == [None] * 3
    assert columns["sd"][0] > 0 and columns["lower"][0] < columns["upper"][0]


def test_a_long_table_is_cut_in_html_alone():
    release = PrivateSum(Ellipsoid.ball(1, d=100), **BUDGET)(np.zeros((5, 100)))
    assert release._repr_html_().count("<tr>") == 31
    assert "70 more rows" in release._repr_html_()
    assert len(release.to_pandas()) == 100


def test_a_histogram_has_its_bins():
    release = RELEASES["histogram"]()
    assert release.to_arrow()["low"].to_pylist() == [0, 30, 40]
    assert release.to_dict()["edges"] == [0, 30, 40, 100]
    assert [line.split("  ")[1] for line in str(release).splitlines()[-3:]] == [
        "[0, 30)", "[30, 40)", "[40, 100]",
    ]  # fmt: skip
    drawn = release.plot()
    bars = [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in drawn.patches]
    assert [bar[:2] for bar in bars] == [(0, 30), (30, 10), (40, 60)]
    assert [bar[2] for bar in bars] == release.value.tolist()


@pytest.mark.parametrize("package, method", [("pandas", "to_pandas"), ("pyarrow", "to_arrow")])
def test_a_missing_package_is_named(package, method, monkeypatch):
    release = RELEASES["mean"]()
    plain = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.setattr("ellipsum.tabular.import_module", lambda name: without(name))
    with pytest.raises(ImportError, match=rf"{method}\(\) needs {package}: pip install {package}"):
        getattr(release, method)()


def test_groups_are_drawn_a_panel_a_coordinate():
    release = RELEASES["groups"]()
    panels = release.plot()
    assert len(panels) == 2
    for j, ax in enumerate(panels):
        (dots,) = ax.get_lines()
        assert dots.get_xdata().tolist() == release.value[:, j].tolist()
        (bars,) = ax.collections
        ends = np.array([segment[:, 0] for segment in bars.get_segments()])
        assert np.array_equal(ends, np.column_stack(release.confidence_interval())[:, [j, 2 + j]])
        assert ax.get_xlabel().startswith(release.coordinates()[j])
    assert [label.get_text() for label in panels[0].get_yticklabels()] == SHOPS
    one = release.plot(column="age")
    assert one.get_lines()[0].get_xdata().tolist() == release.value[:, 0].tolist()
    with pytest.raises(ValueError, match="column="):
        release.plot(ax=one)
    with pytest.raises(ValueError, match="'weight'"):
        release.plot(column="weight")


def test_many_groups_are_drawn_from_the_largest():
    rows = np.random.default_rng(2).integers(0, 90, 5000)
    release = PrivateCounts(keys=list(range(90)), **BUDGET)(rows)
    drawn = release.plot().get_lines()[0].get_xdata()
    assert (np.diff(drawn) <= 0).all()
    assert "90 groups" in release.plot().get_ylabel()


def test_the_title_says_what_the_intervals_cover():
    assert "of the rows" in RELEASES["from a box"]().plot().get_title(loc="left")
    assert "of the noise" in RELEASES["mean"]().plot().get_title(loc="left")


def public_objects():
    budget = Budget(mu=1)
    mean = PrivateMean(**BOX, **BUDGET)
    release = mean(ROWS)
    drawn = PrivateMean(REGION, mu=0.3)(ROWS, budget=budget)
    group = PrivateGroupMean(REGION, **BUDGET)
    predicted = Ellipsoid.for_gaussian([1, 2], n=100, **BUDGET).predicted_error()
    yield from (mean, mean.plan(1000), *mean.plan(1000).steps, release, release.guarantee, budget)
    yield from (drawn.entry, drawn.entry.cost, compose([release, drawn]), REGION, ExactSum(REGION))
    yield from (GaussianShape([1, 2]), Parts(REGION), group, group.guarantee_for("u"), predicted)
    yield from (QuadraticForm([1, 2]), QuadraticForm.broadcast([[1], [2]]), ellipsum.backend())
    yield from (make() for make in RELEASES.values())


def test_no_repr_has_long_fractions_or_many_lines():
    for thing in public_objects():
        text = repr(thing)
        assert "\n" not in text
        assert len(text) < 300, text
        assert not re.search(r"\d{18}|Fraction\(", text), text
        assert " object at 0x" not in text


@pytest.mark.parametrize(
    "cls", ["PrivateMean", "PrivateSum", "PrivateGroupMean", "PrivateGroupSum", "PrivateCounts"]
)
def test_an_unknown_argument_is_an_error_of_the_class_that_was_called(cls):
    with pytest.raises(TypeError, match=rf"^{cls}\.__init__\(\) got an unexpected .*'epsilom'"):
        getattr(ellipsum, cls)(epsilom=1)


def test_rows_without_names_keep_all_their_columns():
    mechanism = PrivateProjection(rows=5, d=3, radius=2.0, epsilon=1, delta=1e-6)
    frame = mechanism.add(np.ones((9, 3))).release().to_pandas()
    assert frame.shape == (5, 3) and list(frame.index) == list(range(5))


def test_counts_of_a_table_ask_for_the_column():
    with pytest.raises(TypeError, match="must be a column, got a table of 2"):
        PrivateCounts(keys=["a"], **BUDGET)(ROWS)


@pytest.mark.parametrize(
    "keys", [[10**5000, 5], [2**64, 5], [-1, 2**63], [2**63, 5], [10**30, "a"]]
)
def test_keys_that_are_integers_of_any_size_can_be_shown(keys):
    column = [key for key in keys for _ in range(500)]
    release = PrivateGroupMean(Ellipsoid.ball(3.0, d=1), **BUDGET)(np.ones((1000, 1)), key=column)
    shown = [str(release), repr(release), release._repr_html_(), str(release.to_pandas())]
    assert all(len(text) < 5000 for text in shown if text is not shown[2])
    written = json.loads(json.dumps(release.to_dict()))["keys"]
    assert sorted(map(str, written)) == sorted(hex(k) if k == 10**5000 else str(k) for k in keys)
    table = release.to_arrow().column("key").to_pylist()
    assert sorted(map(str, table)) == sorted(map(str, written))
    assert pa.types.is_integer(release.to_arrow()["key"].type) == (keys == [2**63, 5])


def test_odd_keys_are_told_apart_and_can_be_shown():
    def released(keys):
        return PrivateCounts(keys=keys, mu=50)({"k": keys * 3}, key="k", seed=1)

    large = released([2**53, 2**53 + 1, 0.5])
    assert set(large.to_pandas().index) == {2**53, 2**53 + 1, 0.5}
    assert len(set(large.to_arrow()["key"].to_pylist())) == 3
    half = released(["\ud800", "a\x1b[2J"])
    assert "\x1b" not in half._repr_html_() and half._repr_html_().encode()
    assert half.to_arrow()["key"].to_pylist() in (["?", "a\x1b[2J"], ["a\x1b[2J", "?"])
