"""Names of columns: carried to the release, checked, and decided by schemas alone."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ellipsum import (
    Ellipsoid,
    ExactGroupSum,
    ExactSum,
    GaussianShape,
    PrivateGroupMean,
    PrivateMean,
    PrivateSum,
    estimate_center,
    estimate_covariance,
    open_rows,
)
from ellipsum.cli.main import main
from ellipsum.column_names import Columns
from ellipsum.records import PrivateRegression, RecordRelease
from ellipsum.rows.batches import as_batches

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
pq = pytest.importorskip("pyarrow.parquet")

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
NAMES = ("age", "height", "dose")
LOWER = {"age": 0, "height": 50, "dose": -1.0}
UPPER = {"dose": 1.0, "age": 120, "height": 250}
ROWS = np.random.default_rng(5).normal([40, 170, 0.1], [10, 8, 0.2], size=(500, 3))
FRAME = pd.DataFrame(ROWS, columns=list(NAMES))
TURNED = FRAME[["dose", "age", "height"]]


def parquet(frame: Any, folder: Any) -> Any:
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "rows.parquet")
    return open_rows(folder / "rows.parquet")


def csv(frame: Any, folder: Any) -> Any:
    frame.to_csv(folder / "rows.csv", index=False)
    return open_rows(folder / "rows.csv")


def arrow_file(frame: Any, folder: Any) -> Any:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with (
        pa.OSFile(str(folder / "rows.arrow"), "wb") as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)
    return open_rows(folder / "rows.arrow")


SOURCES: dict[str, Callable[[Any, Any], Any]] = {
    "pandas": lambda frame, _: frame,
    "pandas of mixed types": lambda frame, _: frame.astype({"height": "int32"}),
    "polars": lambda frame, _: pl.DataFrame(frame),
    "arrow": lambda frame, _: pa.Table.from_pandas(frame, preserve_index=False),
    "arrow batches": lambda frame, _: [pa.RecordBatch.from_pandas(frame)],
    "duckdb": lambda frame, _: duckdb.from_arrow(pa.Table.from_pandas(frame)),
    "callable": lambda frame, _: lambda: iter([frame[:200], pl.DataFrame(frame[200:])]),
    "parquet": parquet,
    "csv": csv,
    "arrow file": arrow_file,
}

IN_BATCHES = ("arrow batches", "callable")


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_with_names_gives_them_to_the_release(source, tmp_path):
    region = Ellipsoid.ball(400, d=3)
    for frame, names in ((FRAME, NAMES), (TURNED, ("dose", "age", "height"))):
        data = SOURCES[source](frame, tmp_path)
        release = PrivateMean(region, **BUDGET)(data() if callable(data) else data)
        if source in IN_BATCHES:  # whether there is a batch may be for one person to say
            assert release.columns is None
            continue
        assert release.columns == names
        assert release.to_dict()["columns"] == list(names)
        assert all(name in str(release) for name in names)


@pytest.mark.parametrize("source", SOURCES)
def test_bounds_by_name_are_met_by_name(source, tmp_path):
    mechanism = PrivateMean(lower=LOWER, upper=UPPER, **BUDGET)
    data = {k: SOURCES[source](f, tmp_path) for k, f in (("in order", FRAME), ("turned", TURNED))}
    if source not in ("parquet", "csv", "arrow file"):  # one name for both
        in_order = mechanism(data["in order"], seed=1)
    else:
        in_order = mechanism(SOURCES[source](FRAME, tmp_path), seed=1)
        data["turned"] = SOURCES[source](TURNED, tmp_path)
    turned = mechanism(data["turned"], seed=1)
    assert in_order.columns == turned.columns == NAMES
    assert np.array_equal(in_order.value, turned.value)
    assert abs(in_order.value - ROWS.mean(0)).max() < 5


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "change, quoted",
    [
        (lambda f: f.drop(columns="age"), "no column 'age'"),
        (lambda f: f.assign(weight=1.0), "the column 'weight'"),
        (lambda f: f.rename(columns={"age": "years"}), "'years'"),
    ],
    ids=["missing", "extra", "renamed"],
)
def test_other_columns_than_the_bounds_are_refused_by_their_names(source, change, quoted, tmp_path):
    data = SOURCES[source](change(FRAME), tmp_path)
    if source == "csv" and "no" not in quoted:  # its first line could be a person's record
        quoted = "other columns than the bounds or the shape named"
    with pytest.raises(ValueError, match=quoted) as refused:
        PrivateMean(lower=LOWER, upper=UPPER, **BUDGET)(data)
    text = str(refused.value).replace(str(tmp_path), "")
    assert not any(character.isdigit() for character in text), "no cell is quoted"
    assert source != "csv" or not ("weight" in text or "years" in text)


def test_a_csv_whose_first_line_is_a_record_is_not_quoted(tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("<18,refused (HIV)\n40,2\n")
    mechanism = PrivateMean(lower={"age": 0, "n": 0}, upper={"age": 9, "n": 9}, **BUDGET)
    with pytest.raises(ValueError, match="other columns") as refused:
        mechanism(open_rows(path))
    assert "HIV" not in str(refused.value) and "<18" not in str(refused.value)


@pytest.mark.parametrize("rows", [0, 1])
def test_names_of_batches_do_not_tell_that_there_is_one(rows):
    chunks = (FRAME[i : i + 1] for i in range(rows))
    mean = PrivateMean(Ellipsoid.ball(400, d=3), **BUDGET, neighbors="add-remove")
    assert mean(chunks).columns is None


REGIONS = {
    "sample": lambda f: Ellipsoid.for_sample(f, error="relative"),
    "diagonal sample": lambda f: Ellipsoid.for_sample(f, diagonal=True),
    "gaussian": lambda f: Ellipsoid.for_gaussian(f.std(), dict(f.mean()), error=1 / f.std()),
    "covariance": lambda f: Ellipsoid.for_covariance(f.cov(), f.mean()[::-1]),
    "box": lambda f: Ellipsoid.box(f.min(), dict(f.max())),
    "ball": lambda f: Ellipsoid.ball(400.0, f.mean()),
    "own": lambda f: Ellipsoid(f.mean(), 1 / f.std(), 3.0),
    "shape": lambda f: GaussianShape.for_sample(f).at(),
}


@pytest.mark.parametrize("region", REGIONS)
def test_a_region_keeps_the_names_of_what_it_was_made_from(region):
    made = REGIONS[region](FRAME)
    assert made.columns == NAMES
    release = PrivateMean(made, **BUDGET)(TURNED, seed=4)
    plain = PrivateMean(made, **BUDGET)(FRAME.to_numpy(), seed=4)
    assert release.columns == NAMES and np.array_equal(release.integers, plain.integers)
    with pytest.raises(ValueError, match="no column 'age'"):
        PrivateMean(made, **BUDGET)(FRAME.drop(columns="age").assign(b=1.0))


def test_groups_meet_a_region_by_name():
    region = Ellipsoid.box(LOWER, UPPER)
    table = TURNED.assign(key="k")
    groups = PrivateGroupMean(region, keys=["k"], **BUDGET)
    found = groups(table, key="key", seed=5)
    assert found.columns == NAMES
    again = groups(FRAME.assign(key="k"), key="key", seed=5)
    assert np.array_equal(found.value, again.value)


def test_the_bounds_of_a_run_on_files_are_met_by_name_too(tmp_path):
    rows = parquet(TURNED, tmp_path)
    shape = GaussianShape({"age": 10, "height": 8, "dose": 0.2}, LOWER)
    release = PrivateMean(shape, **BUDGET)(rows, jobs=2, seed=3)
    again = PrivateMean(shape, **BUDGET)(FRAME, seed=3)
    assert release.columns == NAMES
    assert np.array_equal(release.integers, again.integers)


def test_users_rows_are_matched_by_name():
    owners = np.arange(500) % 100
    known = {"lower": LOWER, "upper": UPPER, "by": "user", **BUDGET}
    tables = [FRAME.assign(user=owners), TURNED.assign(user=owners)]
    tables += [pa.Table.from_pandas(tables[1]), {c: tables[1][c].to_numpy() for c in tables[1]}]
    values = [PrivateMean(**known)(table, seed=2) for table in tables]
    assert all(release.columns == NAMES for release in values)
    assert all(np.array_equal(release.value, values[0].value) for release in values)


def test_batches_of_one_sum_are_put_into_the_order_of_the_first():
    region = Ellipsoid.box([0, 50, -1], [120, 250, 1])
    plain = ExactSum(region).add(ROWS)
    named = ExactSum(region).add(FRAME[:100]).add(TURNED[100:300]).add(pl.DataFrame(TURNED[300:]))
    assert named.to_bytes() == plain.to_bytes()
    assert (named.columns, plain.columns) == (NAMES, None)
    assert pickle.loads(pickle.dumps(named)).columns == NAMES
    before = named.to_bytes()
    with pytest.raises(ValueError, match="'years'"):
        named.add(FRAME.rename(columns={"age": "years"}))
    fresh = ExactSum(region)
    with pytest.raises(ValueError, match="must have"):
        fresh.add(FRAME[["age", "dose"]])
    assert named.to_bytes() == before
    assert fresh.columns is None, "a call that raises leaves the sum as it was"


def test_sums_merge_where_their_columns_are_the_same():
    region = Ellipsoid.ball(400, d=3)
    one, turned = ExactSum(region).add(FRAME), ExactSum(region).add(TURNED)
    with pytest.raises(ValueError, match="another order"):
        one.merge(turned)
    assert one.count == len(FRAME)
    assert ExactSum(region).merge(one).columns == NAMES
    with pytest.raises(ValueError, match="another order"):
        PrivateMean(GaussianShape(LOWER | {"age": 1, "height": 1, "dose": 1}), **BUDGET)(
            ExactSum(PrivateMean(GaussianShape([1, 1, 1]), **BUDGET).region_for(500)).add(TURNED)
        )


def test_arrays_and_numbered_columns_have_no_names_and_keep_their_places():
    mechanism = PrivateSum(Ellipsoid.ball(400, d=3), **BUDGET)
    lists = pa.chunked_array([pa.array(ROWS.tolist(), pa.list_(pa.float64(), 3))])
    for data in (ROWS, pd.DataFrame(ROWS), ROWS.tolist(), lists, pl.Series("v", ROWS.tolist())):
        assert mechanism(data).columns is None
    by_place = PrivateMean(lower=LOWER, upper=UPPER, **BUDGET)(ROWS, seed=1)
    by_name = PrivateMean(lower=LOWER, upper=UPPER, **BUDGET)(TURNED, seed=1)
    assert np.array_equal(by_place.value, by_name.value)
    assert by_place.columns == NAMES, "the bounds' names"


def test_the_label_of_a_series_is_no_column():
    row = pd.Series([1.0, 2.0, 3.0], name="Jane Doe")
    release = PrivateSum(Ellipsoid.ball(5, d=1), **BUDGET)(row)
    assert release.columns is None
    assert "Jane" not in str(release) + json.dumps(release.to_dict())


def test_a_list_column_names_its_places(tmp_path):
    table = pa.table({"v": pa.array(ROWS.tolist(), pa.list_(pa.float64(), 3))})
    release = PrivateMean(Ellipsoid.ball(400, d=3), **BUDGET)(table)
    assert release.columns == ("v[0]", "v[1]", "v[2]")
    pq.write_table(table, tmp_path / "lists.parquet")
    files = PrivateMean(Ellipsoid.ball(400, d=3), **BUDGET)(open_rows(tmp_path / "lists.parquet"))
    assert files.columns == release.columns


@pytest.mark.parametrize(
    "value", [{"age": 0.0, 3: 1.0}, {}, {"age": "old", "height": 1, "dose": 1}]
)
def test_bounds_that_are_no_numbers_by_name_are_refused(value):
    with pytest.raises(TypeError, match="lower"):
        PrivateMean(lower=value, upper=UPPER, **BUDGET)


def test_parameters_that_name_other_columns_are_refused():
    wide = FRAME.assign(id=1, key=2)
    one, two = "leave it out of the rows, or name it", "leave them out of the rows, or name them"
    for columns, said in (
        (wide.drop(columns="key"), f"data has the column 'id', which .* did not name: {one} there"),
        (wide, f"data has the columns 'id', 'key', which .* did not name: {two} there"),
        (FRAME[["age"]], "data has no columns 'height', 'dose', which"),
    ):
        with pytest.raises(ValueError, match=said):
            PrivateMean(lower=LOWER, upper=UPPER, **BUDGET)(columns)
    with pytest.raises(ValueError, match="upper has no column 'dose', which lower named"):
        PrivateMean(lower=LOWER, upper={"age": 1, "height": 2}, **BUDGET)
    cov = pd.DataFrame(np.diag([100, 64, 0.04]), index=NAMES, columns=NAMES)
    turned = ["dose", "height", "age"]
    own = [
        PrivateMean(lower=LOWER, upper=UPPER, covariance=c, **BUDGET)(FRAME, seed=4)
        for c in (cov, cov.loc[turned, turned], cov.to_numpy())
    ]
    assert all(np.array_equal(own[0].value, release.value) for release in own)
    with pytest.raises(ValueError, match="same names in its rows and columns"):
        PrivateMean(lower=LOWER, upper=UPPER, covariance=cov[turned], **BUDGET)


def test_estimates_and_groups_have_the_names():
    assert estimate_center(FRAME, lower=LOWER, upper=UPPER, **BUDGET).columns == NAMES
    second = estimate_covariance(TURNED, center=LOWER, radius=300, **BUDGET)
    assert second.columns == NAMES
    table = FRAME.assign(shop=["a", "b"] * 250)
    release = PrivateGroupMean(Ellipsoid.ball(400, d=3), keys=["a", "b"], **BUDGET)(
        table, key="shop"
    )
    assert release.columns == release["a"].columns == NAMES
    assert "age" in str(release)
    parts = [
        PrivateGroupMean(Ellipsoid.ball(400, d=3), keys=["a", "b"], **BUDGET).exact_sum(
            t, key="shop"
        )
        for t in (table, table[[*TURNED.columns, "shop"]])
    ]
    assert isinstance(parts[0], ExactGroupSum)
    with pytest.raises(ValueError, match="another order"):
        parts[0].merge(parts[1])


def test_the_sample_of_a_shape_names_the_columns():
    shape = GaussianShape.for_sample(TURNED)
    assert shape.columns == tuple(TURNED.columns)
    assert PrivateMean(shape, **BUDGET)(FRAME).columns == tuple(TURNED.columns)
    with pytest.raises(ValueError, match="'years'"):
        PrivateMean(shape, **BUDGET)(FRAME.rename(columns={"age": "years"}))


def test_no_name_reaches_a_screen_with_control_characters():
    odd = FRAME.rename(columns={"age": "a\x1b[2Jb\n", "dose": "d" * 80})
    text = str(PrivateMean(Ellipsoid.ball(400, d=3), **BUDGET)(odd))
    assert "\x1b" not in text
    assert "d" * 41 not in text


def test_the_command_line_says_the_same_names(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    path = str(tmp_path / "rows.csv")
    code = main(["mean", path, "--epsilon", "1", "--delta", "1e-6", "--ball", "400", "--json"])
    assert code == 0
    assert json.loads(capsys.readouterr().out)["columns"] == list(NAMES)


@pytest.mark.parametrize("kind", ["int64", "Int64", "float16"])
def test_a_frame_is_met_by_name_without_pyarrow(monkeypatch, kind):
    """By pandas' view, by its copy, and as an array what would go by Arrow."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]}).astype(kind)
    known = Columns(("b", "a"))
    (found,) = as_batches(frame, 2, known)
    np.testing.assert_array_equal(found, [[3, 1], [4, 2]])
    with pytest.raises(ValueError, match="no column 'b'"):
        as_batches(frame.rename(columns={"b": "c"}), 2, known)


def test_a_nan_that_signals_warns_of_nothing_in_a_table_of_records():
    """(Warnings are errors here.)"""
    rows = np.random.default_rng(0).random((500, 2)).astype(np.float32)
    rows.view(np.uint32)[1, 0] = 0x7F800001
    table = pd.DataFrame(rows, columns=["x", "y"])
    assert PrivateRegression(3.0, mu=1.0).fit(table, np.ones(500, np.float32)).coef_.shape == (2,)
    made = RecordRelease(epsilon=4.0).fit(covariance=np.eye(2), center=[0.5, 0.5])
    assert len(made.transform(table)) == 500
