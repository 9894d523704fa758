"""Units of columns: from schemas and from the caller to the release, where they decide nothing."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ellipsum import (
    Budget,
    Checkpoint,
    Ellipsoid,
    ExactSum,
    PrivateGroupMean,
    PrivateMean,
    PrivateSum,
    estimate_center,
    estimate_covariance,
    estimate_scale,
    open_rows,
)
from ellipsum.budget.budget import BudgetError
from ellipsum.column_units import metadata_units
from ellipsum.engines.engine_rows import EngineRows
from ellipsum.jobs.resumable import binding_of
from ellipsum.rows.identity import inputs_of

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
NAMES = ("age", "height", "dose")
UNITS = ("years", None, "mg/kg")
KNOWN = {"age": "years", "dose": "mg/kg"}
BOX = {"lower": dict.fromkeys(NAMES, -300.0), "upper": dict.fromkeys(NAMES, 300.0)}
ROWS = np.random.default_rng(5).normal([40, 170, 0.1], [10, 8, 0.2], size=(500, 3))
PLAIN = pd.DataFrame(ROWS, columns=list(NAMES))
BALL = Ellipsoid.ball(400, d=3)


def frame(units: Any = KNOWN) -> Any:
    told = PLAIN.copy()
    told.attrs["units"] = units
    return told


def table(units: Any = KNOWN, key: str = "unit") -> Any:
    fields = [
        pa.field(name, pa.float64(), metadata={key: units[name]} if name in units else None)
        for name in NAMES
    ]
    return pa.table([PLAIN[name].to_numpy() for name in NAMES], schema=pa.schema(fields))


def parquet(path: Any, made: Any = None) -> Any:
    pq.write_table(table() if made is None else made, path)
    return path


def arrow_file(path: Any) -> Any:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table().schema) as writer:
        writer.write_table(table())
    return open_rows(path)


def saved(path: Any, **known: Any) -> Any:
    if path.suffix == ".npy":
        np.save(path, ROWS)
    else:
        PLAIN.to_csv(path, index=False)
    return open_rows(path, **known)


def of_pandas(path: Any) -> Any:
    frame().to_parquet(path)
    return open_rows(path)


SOURCES: dict[str, Callable[[Any], Any]] = {
    "frame": lambda _: frame(),
    "frame of mixed types": lambda _: frame().astype({"height": "int32"}),
    "arrow": lambda _: table(),
    "arrow, another key": lambda _: table(key="units"),
    "arrow of a frame": lambda _: pa.Table.from_pandas(frame()),
    "arrow stream": lambda _: table().to_reader(),
    "callable": lambda _: table,
    "sum": lambda _: ExactSum(BALL).add(table()),
    "sum that was sent": lambda _: pickle.loads(pickle.dumps(ExactSum(BALL).add(frame()))),
    "parquet": lambda folder: open_rows(parquet(folder / "a.parquet")),
    "parquet of pandas": lambda folder: of_pandas(folder / "a.parquet"),
    "arrow file": lambda folder: arrow_file(folder / "a.arrow"),
    "csv": lambda folder: saved(folder / "a.csv", units=KNOWN),
    "csv, by place": lambda folder: saved(folder / "a.csv", units=UNITS),
    "npy": lambda folder: saved(folder / "a.npy", units=list(UNITS)),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_with_units_gives_them_to_the_release(source, tmp_path):
    release = PrivateMean(BALL, **BUDGET)(SOURCES[source](tmp_path))
    assert release.units == UNITS
    if source != "npy":
        assert release.columns == NAMES
    plain = PrivateMean(BALL, **BUDGET)(PLAIN)
    assert plain.units is None


def test_without_a_region_and_by_users_they_come_too(tmp_path):
    path = parquet(tmp_path / "a.parquet", table().append_column("user", pa.array(range(500))))
    assert PrivateMean(**BOX, **BUDGET)(frame()).units == UNITS
    assert PrivateSum(**BOX, **BUDGET)(open_rows(path, NAMES), jobs=2).units == UNITS
    by_user = PrivateMean(**BOX, by="user", **BUDGET)
    for data in (open_rows(path, by="user"), pq.read_table(path), frame().assign(user=range(500))):
        assert by_user(data).units == UNITS
    turned = PrivateMean(**BOX, **BUDGET)(open_rows(path, NAMES[::-1]))
    assert (turned.columns, turned.units) == (NAMES, UNITS)
    for said in ({"age": "d", "height": "cm"}, [None, "cm", "d"]):
        rows = open_rows(path, NAMES[::-1], units=said)
        assert PrivateMean(**BOX, **BUDGET)(rows).units == ("d", "cm", "mg/kg")


@pytest.mark.parametrize("data", [ROWS, PLAIN, frame({"dose": "g", "height": "cm"}), list(ROWS)])
def test_what_the_caller_says_wins(data):
    release = PrivateMean(BALL, units=["years", "", "mg/kg"], **BUDGET)(data)
    assert release.units == UNITS
    if isinstance(data, pd.DataFrame):
        named = PrivateMean(BALL, units={"age": " years ", "height": "", "dose": "mg/kg"}, **BUDGET)
        assert named(data).units == UNITS


def test_what_is_not_said_is_of_the_schema(tmp_path):
    path = parquet(tmp_path / "a.parquet")
    for release in (
        PrivateMean(BALL, units=[None, "cm", None], **BUDGET)(open_rows(path)),
        PrivateMean(BALL, units={"height": "cm"}, **BUDGET)(table()),
        PrivateMean(BALL, **BUDGET)(open_rows(path, units={"height": "cm"})),
    ):
        assert release.units == ("years", "cm", "mg/kg")
    both = PrivateMean(BALL, units={"age": "months"}, **BUDGET)
    assert both(open_rows(path, units={"age": "days"})).units == ("months", None, "mg/kg")
    folders = tmp_path / "year=2025"
    folders.mkdir()
    rows = open_rows(parquet(folders / "a.parquet"), ["year", *NAMES[:2]])
    assert PrivateMean(BALL, **BUDGET)(rows).units == (None, "years", None)


def test_a_list_column_has_its_unit_in_every_place(tmp_path):
    kind = pa.field("v", pa.list_(pa.float64(), 3), metadata={"unit": "mV"})
    lists = pa.table([pa.array(ROWS.tolist(), kind.type)], schema=pa.schema([kind]))
    rows = open_rows(parquet(tmp_path / "a.parquet", lists))
    for data in (lists, rows):
        assert PrivateMean(BALL, **BUDGET)(data).units == ("mV",) * 3
        assert PrivateMean(BALL, units={"v[1]": "V"}, **BUDGET)(data).units == ("mV", "V", "mV")
        assert PrivateMean(BALL, units={"v": "V"}, **BUDGET)(data).units == ("V",) * 3
    for said in ({"v": "V"}, ["V"] * 3, {"v[0]": "V", "v[1]": "V", "v[2]": "V"}):
        rows = open_rows(tmp_path / "a.parquet", units=said)
        assert PrivateMean(BALL, **BUDGET)(rows).units == ("V",) * 3


def test_files_that_disagree_are_refused_by_the_column(tmp_path):
    other = {"age": "SECRET UNIT", "height": "cm"}
    files = [parquet(tmp_path / "a.parquet"), parquet(tmp_path / "b.parquet", table(other))]
    with pytest.raises(ValueError, match="column 'age' in another unit than the files") as refused:
        open_rows(files)
    assert "SECRET" not in str(refused.value) and "years" not in str(refused.value)
    rows = open_rows(files, units={"age": "years"})
    assert PrivateMean(BALL, **BUDGET)(rows).units == ("years", "cm", "mg/kg")
    assert open_rows(files, ["height", "dose"]).units == {"height": "cm", "dose": "mg/kg"}


def test_tables_of_one_sum_that_disagree_are_refused_and_change_nothing():
    total = ExactSum(BALL).add(table())
    before = total.to_bytes()
    with pytest.raises(ValueError, match="data has column 'age' in another unit") as refused:
        total.add(frame({"age": "SECRET"}))
    assert "SECRET" not in str(refused.value)
    assert total.to_bytes() == before
    assert PrivateMean(BALL, **BUDGET)(total.add(PLAIN)).units == UNITS


def test_units_change_no_bytes_and_decide_no_merge(tmp_path):
    told, other, plain = (ExactSum(BALL).add(t) for t in (table(), frame({"age": "d"}), PLAIN))
    assert told.to_bytes() == other.to_bytes() == plain.to_bytes()
    assert told.partial() == plain.partial()
    assert PrivateMean(BALL, **BUDGET)(plain.merge(told)).units == UNITS
    both = ExactSum(BALL).merge(told).merge(other)
    assert both.count == 1000
    mean = PrivateMean(BALL, **BUDGET)(both.add(table()), spend_again=True)
    assert mean.units == (None, None, "mg/kg")
    alone = PrivateMean(BALL, **BUDGET)(ExactSum.from_bytes(told.to_bytes()), spend_again=True)
    assert alone.units is None, "bytes do not hold them"
    path = tmp_path / "a.parquet"
    known = ("mean", PrivateMean(BALL, **BUDGET).guarantee, BALL, "center")
    said = open_rows(parquet(path), units={"age": "days"})
    bound = [binding_of(rows, *known, inputs=inputs_of(rows)) for rows in (said, open_rows(path))]
    assert bound[0] == bound[1]


def test_a_run_that_goes_on_repeats_the_release_whatever_the_units(tmp_path):
    path = parquet(tmp_path / "a.parquet")
    job = Checkpoint(tmp_path / "job")
    first = PrivateMean(**BOX, **BUDGET)(open_rows(path), resume=job)
    again = PrivateMean(**BOX, units={"age": "days"}, **BUDGET)(open_rows(path), resume=job)
    assert np.array_equal(first.value, again.value)
    assert (first.units, again.units) == (UNITS, ("days", None, "mg/kg"))


def test_batches_do_not_tell_that_there_is_one():
    mechanism = PrivateMean(BALL, **BUDGET, neighbors="add-remove")
    for chunks in ([], [frame()], [frame(), frame({"age": "days"})]):
        assert mechanism(iter(chunks)).units is None
        said = PrivateMean(BALL, units=UNITS, **BUDGET, neighbors="add-remove")
        assert said(iter(chunks)).units == UNITS
        by_name = PrivateMean(BALL, units={"weight": "kg"}, **BUDGET, neighbors="add-remove")
        with pytest.raises(ValueError, match="the rows have none: give a sequence"):
            by_name(iter(chunks))


WRONG = {
    "text": ("kg", TypeError, "mapping by name, or a sequence"),
    "few": (["kg"], ValueError, "3 entries"),
    "number": ([1, 2, 3], TypeError, "units must be texts"),
    "key": ({0: "kg"}, TypeError, "each name a text"),
    "value": ({"age": 3}, TypeError, "units must be texts"),
}


@pytest.mark.parametrize("case", WRONG)
def test_units_that_are_none_are_refused_where_they_are_given(case, tmp_path):
    units, kind, text = WRONG[case]
    with pytest.raises(kind, match=text):
        PrivateMean(BALL, units=units, **BUDGET)
    with pytest.raises(kind, match=text):
        PrivateGroupMean(BALL, units=units, keys=["a"], **BUDGET)
    with pytest.raises(kind, match=text):
        saved(tmp_path / "a.csv", units=units)


def test_units_of_columns_that_are_not_there_are_refused_before_the_budget_is_drawn(tmp_path):
    units, budget = {"weight": "kg"}, Budget(**BUDGET)
    unknown = "units has the column 'weight', which the rows do not have"
    with pytest.raises(ValueError, match=unknown):
        PrivateMean(**BOX, units=units, **BUDGET)
    with pytest.raises(ValueError, match=unknown):
        PrivateGroupMean(Ellipsoid.box(**BOX), keys=["a"], units=units, **BUDGET)
    with pytest.raises(ValueError, match=unknown):
        saved(tmp_path / "a.csv", units=units)
    with pytest.raises(ValueError, match="the rows have none"):
        saved(tmp_path / "a.npy", units=units)
    mechanism = PrivateMean(BALL, units=units, **BUDGET)
    for data, text in (
        (PLAIN, unknown),
        (ROWS, "the rows have none"),
        (iter([PLAIN]), "have none"),
    ):
        with pytest.raises(ValueError, match=text):
            mechanism(data, budget=budget)
    groups = PrivateGroupMean(BALL, units=units, keys=["a"], neighbors="replace", **BUDGET)
    with pytest.raises(ValueError, match=unknown):
        groups(PLAIN.assign(key="a"), key="key", budget=budget)
    with pytest.raises(ValueError, match="the rows have none"):
        groups(ROWS, key=["a"] * 500, budget=budget)
    assert not budget.entries
    assert PrivateMean(BALL, **BUDGET)(PLAIN, budget=budget).units is None
    with pytest.raises(BudgetError):
        PrivateMean(BALL, **BUDGET)(PLAIN, budget=budget)


def test_metadata_that_are_no_units_are_none():
    fields = {"a": {b"unit": b"\xff"}, "b": {b"unit": b" ", b"units": b"m"}, "c": None, "d": {}}
    assert metadata_units(fields) == {"b": "m"}
    assert metadata_units({"a": {"unit": 3, "units": "kg"}, "b": {"comment": "kg"}}) == {"a": "kg"}
    for units in ("kg", ["kg"] * 3, {"age": 3}, None):
        assert PrivateMean(BALL, **BUDGET)(frame(units)).units is None
    for raw in (b'{"units"', b'["units"]', b'{"units": 3}', b"[" * 100_000 + b'"units"'):
        schema = table({}).schema.with_metadata({"PANDAS_ATTRS": raw, "pandas": raw})
        assert PrivateMean(BALL, **BUDGET)(table({}).cast(schema)).units is None


class Lists(EngineRows):
    """An engine of two parts; its schema tells units, of which a part's tables tell others."""

    d, columns, units = 3, NAMES, KNOWN

    def __init__(self, by: Any = ()) -> None:
        self.by = tuple(by)

    def part(self, task):
        labels = {"user": np.arange(500), "shop": np.array(["a", "b"] * 250)}
        for units in (KNOWN, {"age": "of one table alone"}):
            told = frame(units).assign(**{name: labels[name] for name in task.by})
            yield told if task.d else told[list(task.by)]

    def gather(self, task):
        for k in range(2):
            yield f"part {k}", task(self.part(task))

    def exchange(self, task):
        pieces = [piece for _ in range(2) for _, piece in task.split(self.part(task), 1)]
        yield "part 0", task(iter(pieces))


def test_rows_in_an_engine_have_the_units_of_its_schema():
    for mechanism in (PrivateMean(BALL, **BUDGET), PrivateMean(**BOX, **BUDGET)):
        assert mechanism(Lists()).units == UNITS
    assert PrivateMean(BALL, units={"height": "cm"}, **BUDGET)(Lists()).units[1] == "cm"
    by_user = PrivateMean(BALL, by="user", **BUDGET)
    assert by_user(Lists(["user"])).units == UNITS
    groups = PrivateGroupMean(BALL, keys=["a", "b"], **BUDGET)
    assert groups(Lists(["shop"]), key="shop").units == UNITS
    assert groups(Lists(["shop", "user"]), key="shop", user="user").units == UNITS


def test_estimates_have_the_units_of_what_they_estimate():
    for estimate in (estimate_center, estimate_scale):
        assert estimate(frame(), **BOX, **BUDGET).units == UNITS
        assert estimate(PLAIN, **BOX, **BUDGET, units=KNOWN).units == UNITS
    second = estimate_covariance(frame(), center=[0, 0, 0], radius=300, **BUDGET)
    assert second.units == UNITS and second.to_arrow()["unit"].to_pylist() == list(UNITS)
