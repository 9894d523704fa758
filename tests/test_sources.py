"""What hands rows over: data sets and queries of other packages, folders, patterns, archives."""

from __future__ import annotations

import copy
import os
import pickle
import zipfile
from functools import partial

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from ellipsum import (
    Budget,
    Ellipsoid,
    ExactSum,
    GaussianShape,
    PrivateGroupMean,
    PrivateMean,
    open_rows,
)
from ellipsum.records import PrivatePCA, PrivateRegression
from ellipsum.rows.parquet_file import spans
from file_rows import CANARY, fails, gather

BALL = Ellipsoid.ball(2.5, d=2)
PLAN = {"lower": [-9, -9], "upper": [9, 9]}


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(3000, 2))


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    """Rows with a user and a store, in two Parquet files of a folder in a folder."""
    path = tmp_path_factory.mktemp("rows")
    (path / "2025" / "05").mkdir(parents=True)
    table = pa.table({
        "a": rows[:, 0], "b": rows[:, 1],
        "u": np.arange(3000) % 700, "store": [f"s{k % 3}" for k in range(3000)],
    })  # fmt: skip
    pq.write_table(table.slice(0, 1000), path / "2025" / "one.parquet", row_group_size=300)
    pq.write_table(table.slice(1000), path / "2025" / "05" / "two.parquet")
    return path


def queries(folder):
    """The columns a and b of the files, by everything that may be asked for them."""
    files, names = str(folder / "2025" / "**" / "*.parquet"), ["a", "b"]
    whole = pyarrow.dataset.dataset(folder / "2025")
    plain = whole.to_table().select(names)
    return {
        "dataset": lambda: pyarrow.dataset.dataset(plain),
        "union": lambda: pyarrow.dataset.dataset(
            [pyarrow.dataset.dataset(plain[:7]), pyarrow.dataset.dataset(plain[7:])]
        ),
        "files": lambda: whole.replace_schema(plain.schema),
        "filtered": lambda: pyarrow.dataset.dataset(plain).filter(pa.compute.field("a") < 99),
        "lazy frame": lambda: pl.scan_parquet(files).select(names),
        "relation": lambda: duckdb.sql(f"SELECT a, b FROM '{files}'"),
    }


def once(folder):
    """The same, by what can be read once, or may be."""
    whole = pyarrow.dataset.dataset(folder / "2025")
    return {
        "scanner": lambda: whole.scanner(columns=["a", "b"]),
        "reader": lambda: whole.scanner(columns=["a", "b"]).to_reader(),
        "batches": lambda: queries(folder)["lazy frame"]().collect_batches(),
        "relation's reader": lambda: queries(folder)["relation"]().to_arrow_reader(),
    }


# ---- data sets and queries ---------------------------------------------------------------


def test_every_query_gives_the_bytes_of_its_rows(folder, rows):
    want = ExactSum(BALL).add(rows).to_bytes()
    mean = PrivateMean(BALL, mu=1.0)(rows, seed=1).integers
    for name, make in {**queries(folder), **once(folder)}.items():
        assert ExactSum(BALL).add(make()).to_bytes() == want, name
        assert ExactSum(BALL).add([make()]).to_bytes() == want, name
        release = PrivateMean(BALL, mu=1.0)(make(), seed=1)
        assert (release.integers == mean).all() and release.columns == ("a", "b"), name


def test_a_query_runs_once_for_each_pass(folder, rows):
    want = PrivateMean(**PLAN, mu=1.0)(rows, seed=1).transcript
    shape = GaussianShape([1.0, 1.0])
    for name, make in queries(folder).items():
        found = PrivateMean(**PLAN, mu=1.0)(make(), seed=1).transcript
        assert all((x == y).all() for x, y in zip(found, want, strict=True)), name
        assert PrivateMean(shape, mu=1.0)(make()).n == 3000, name


def test_what_is_read_once_is_refused_for_several_passes_before_any_noise(folder):
    for make in once(folder).values():
        budget = Budget(mu=2.0)
        with pytest.raises(TypeError, match="can be read only once"):
            PrivateMean(**PLAN, mu=1.0)(make(), budget=budget)
        with pytest.raises(ValueError, match="cannot be counted before they are read"):
            PrivateMean(GaussianShape([1.0, 1.0]), mu=1.0)(make(), budget=budget)
        assert budget.spent.mu_squared == 0
    table = pa.table({"a": [0.5] * 60, "b": [0.1] * 60})
    budget, reader = Budget(mu=2.0), table.to_reader()
    with pytest.raises((OSError, TypeError, ValueError)):
        PrivateMean(**PLAN, mu=1.0)(duckdb.from_arrow(reader), budget=budget)
    assert budget.spent.mu_squared == 0


def test_users_and_groups_are_columns_of_a_query(folder):
    table = pyarrow.dataset.dataset(folder / "2025").to_table()
    ways = {
        "dataset": pyarrow.dataset.dataset(folder / "2025"),
        "lazy frame": pl.scan_parquet(folder / "2025/**/*.parquet"),
        "folder": open_rows(folder, columns=["a", "b"], by=["u", "store"]),
    }
    users = PrivateMean(BALL, mu=1.0, by="u")
    groups = PrivateGroupMean(BALL, mu=1.0, keys=["s0", "s1", "s2"])
    want = users(table.drop(["store"]), seed=1).integers
    for name, data in ways.items():
        known = {"key": "store", "user": "u"}
        release = groups(data, **known, seed=1)
        assert (release.integers == groups(table, **known, seed=1).integers).all(), name
    for data in (
        ways["dataset"].scanner(columns=["a", "b", "u"]),
        ways["lazy frame"].drop("store"),
        open_rows(folder / "2025", columns=["a", "b"], by="u"),
    ):
        assert (users(data, seed=1).integers == want).all()


def test_files_whose_records_decide_types_are_refused_as_data_sets(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "x.json").write_text('{"a": 1, "b": 2}\n')
    for kind in ("csv", "json"):
        data = pyarrow.dataset.dataset(tmp_path / f"x.{kind}", format=kind)
        for made in (data, data.filter(pa.compute.field("a") > 0), pyarrow.dataset.dataset([data])):
            with pytest.raises(TypeError, match=rf"a data set of {kind.upper()} files"):
                PrivateMean(BALL, mu=1.0)(made)


def test_no_error_of_a_query_quotes_a_record(tmp_path):
    frame = pl.DataFrame({"t": ["1", CANARY + "?"] * 50, "b": [1.0] * 100})
    texts = duckdb.from_arrow(frame.to_arrow())
    failing = [
        frame.lazy().select(pl.col("t").cast(pl.Float64).alias("a"), "b"),
        texts.project("CAST(t AS DOUBLE) AS a, b"),
        pyarrow.dataset.dataset(frame.to_arrow()).scanner(
            columns={"a": pa.compute.field("t").cast(pa.float64()), "b": pa.compute.field("b")}
        ),
    ]
    for data in failing:
        error = fails((OSError, TypeError), "data", lambda data=data: ExactSum(BALL).add(data))
        assert error.__cause__ is None and error.__suppress_context__
    pq.write_table(pa.table({"a": [float(CANARY)] * 99, "b": [1.0] * 99}), tmp_path / "x.parquet")
    data = pyarrow.dataset.dataset(tmp_path / "x.parquet")
    os.truncate(tmp_path / "x.parquet", 300)
    fails((OSError, TypeError), "data", lambda: ExactSum(BALL).add(data))


def test_a_mapping_is_no_list_of_its_names(tmp_path):
    np.savez(tmp_path / "x.npz", rows=np.ones((5, 2)))
    with np.load(tmp_path / "x.npz") as data, pytest.raises(TypeError, match="NpzFile: read files"):
        PrivateMean(BALL, mu=1.0)(data)


# ---- folders and patterns ----------------------------------------------------------------


def test_a_folder_and_a_pattern_are_the_files_in_them(folder, rows, tmp_path):
    named = [str(folder / "2025" / "05" / "two.parquet"), str(folder / "2025" / "one.parquet")]
    for paths in (
        folder,
        str(folder / "2025"),
        folder / "20*",
        str(folder / "**" / "*.parquet"),
        [folder / "*" / "05", folder / "2025" / "o[mn]e.parquet"],
    ):
        data = open_rows(paths, ["a", "b"])
        assert sorted(data.paths) == named and data.n == 3000
    assert open_rows(folder, ["a", "b"]).paths == tuple(named)  # by name
    assert (np.sort(gather(data, 2), axis=0) == np.sort(rows, axis=0)).all()
    np.save(tmp_path / "x[1].npy", rows)  # the file of that name, and no pattern
    assert open_rows(tmp_path / "x[1].npy").n == 3000
    for name in ("_SUCCESS", ".part.crc"):
        (tmp_path / name).write_text("")
    assert open_rows(tmp_path).n == 3000
    (tmp_path / "README").write_text("what is no rows is not left out without a word")
    fails(OSError, "README has no known format", lambda: open_rows(tmp_path))


def test_files_are_a_batch_of_an_exact_sum(folder, rows):
    found = ExactSum(BALL).add(open_rows(folder, ["a", "b"]))
    assert found.count == 3000 and found.to_bytes() == ExactSum(BALL).add(rows).to_bytes()
    with pytest.raises(ValueError, match="by"):
        ExactSum(BALL).add(open_rows(folder, ["a", "b"], by="u"))


def test_a_file_that_is_named_twice_is_refused(folder, tmp_path):
    one = folder / "2025" / "one.parquet"
    (tmp_path / "link.parquet").symlink_to(one)
    os.link(one, tmp_path / "hard.parquet")
    for paths in (
        [one, one],
        [one, folder],
        [folder / "2025" / "*.parquet", folder / "2025" / ".." / "2025" / "one.parquet"],
        tmp_path,
    ):
        fails(ValueError, "is named twice", lambda paths=paths: open_rows(paths, ["a", "b"]))


def test_folders_and_patterns_without_files_are_refused(tmp_path):
    fails(FileNotFoundError, "is a folder without files", lambda: open_rows(tmp_path))
    fails(FileNotFoundError, "matches no file", lambda: open_rows(tmp_path / "*.npy"))
    fails(FileNotFoundError, "is not there", lambda: open_rows(tmp_path / "x.npy"))


def test_patterns_name_files_and_no_hidden_ones(tmp_path):
    (tmp_path / "sub" / "_tmp").mkdir(parents=True)
    (tmp_path / "part=1.npy").mkdir()
    names = ["a.npy", "sub/b.npy", "sub/_tmp/b.npy", "part=1.npy/x.npy"]
    for k, name in enumerate(names):
        np.save(tmp_path / name, np.full((2, 1), k))
    (tmp_path / "sub" / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert len(open_rows(tmp_path).paths) == 3  # a link to a folder is not followed
    (tmp_path / "sub" / "loop").unlink()
    for pattern in ("**", "**/*", "**/*.npy"):
        assert len(open_rows(tmp_path / pattern).paths) == 3
    assert len(open_rows(tmp_path / "sub" / "_tmp" / "*").paths) == 1  # it is spelt out
    assert len(open_rows(tmp_path / "part=*").paths) == 1  # a folder: what is in it


# ---- queries whose records decide -------------------------------------------------------


def test_a_relation_is_not_run_for_its_shape():
    """It would run outside of what hides a record in an error."""
    query = f"select 1.0::double a, 2.0::double b from (values ('1'), ('x{CANARY}')) t(s)"
    with duckdb.connect() as connection:
        for mechanism in (
            PrivateMean(GaussianShape([1.0, 1.0]), mu=5.0),
            PrivateMean(**PLAN, mu=5.0),
            PrivateMean(**PLAN, mu=5.0, neighbors="add-remove"),
        ):
            bad = connection.sql(query + " where cast(s as double) > 0")
            fails((TypeError, OSError), "data", lambda run=mechanism, bad=bad: run(bad))
        for estimator in (PrivateRegression(1.0, mu=5.0), PrivatePCA(1, 1.0, mu=5.0)):
            for more in ([], [[1.0, 2.0]]):
                bad = connection.sql(query + " where cast(s as double) > 0")
                fails(ValueError, "give center|an array of", partial(estimator.fit, bad, *more))
        good = connection.sql(query)
        assert PrivateMean(GaussianShape([1.0, 1.0]), mu=5.0)(good).n == 2


def test_a_data_set_of_unlike_files_is_refused_whatever_their_cells(tmp_path):
    def write(k, a):
        pq.write_table(pa.table({"a": a, "b": [1.0, 2.0]}), tmp_path / f"{k}.parquet")

    for first, cells in ((pa.int64(), [4.0, 4.5]), (pa.int32(), [4, 2**40])):
        write(0, pa.array([1, 2], first))
        for cell in cells:
            write(1, pa.array([1, cell]))
            data = pa.dataset.dataset(tmp_path, format="parquet")
            mean = PrivateMean(BALL, mu=1.0)
            fails(TypeError, "other types than its first", lambda run=mean, data=data: run(data))
            assert mean(open_rows(tmp_path, ["a", "b"])).n == 4


# ---- archives of arrays ------------------------------------------------------------------


def test_arrays_of_an_archive_are_a_table(tmp_path, rows):
    path, users = tmp_path / "x.npz", np.arange(3000) % 40
    more = {"id": users, "name": [f"u{k}" for k in users], "wide": rows, "n": np.float64(1)}
    np.savez(path, a=rows[:, 0], b=rows[:, 1].astype("f4"), **more)
    data = open_rows(path, ["b", "a"])
    assert (data.columns, data.d, data.n) == (["b", "a"], 2, 3000)
    np.testing.assert_array_equal(gather(data, 2)[:, 1], rows[:, 0])
    wide = open_rows(path, ["wide"])
    assert (wide.columns, wide.d) == (["wide"], 2)
    np.testing.assert_array_equal(gather(wide, 2), rows)
    mean = PrivateMean(BALL, mu=1.0, by="id")
    want = mean(rows, users=users, seed=1).integers
    assert (mean(open_rows(path, ["wide"], by="id"), seed=1).integers == want).all()
    named = PrivateMean(BALL, mu=1.0, by="name")(open_rows(path, ["wide"], by="name"))
    assert named.n == 40
    for columns, by, error, phrase in [
        (None, (), ValueError, r"choose by columns=; it has 'a', 'b', 'id'"),
        (["a", "wide"], (), ValueError, "one array of two dimensions"),
        (["n"], (), ValueError, "one array of two dimensions"),
        (["a", "a"], (), ValueError, "comes twice"),
        (["c"], (), ValueError, "no array 'c'"),
        (["a", "name"], (), TypeError, "'name' of .* is not numeric"),
        (["a"], "n", ValueError, "an entry for each row"),
        (["a"], "c", ValueError, "the column 'c'"),
    ]:
        fails(error, phrase, lambda c=columns, b=by: open_rows(path, c, by=b))


def test_damaged_archives_are_refused_by_one_sentence(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, np.full((400, 2), float(CANARY)))
    whole = path.read_bytes()
    for cut in (0, 3, 200, len(whole) - 30):
        path.write_bytes(whole[:cut])
        fails(OSError, "truncated or damaged|not what its suffix says", lambda: open_rows(path))
    changed = bytearray(whole)
    changed[1000] ^= 1
    path.write_bytes(changed)
    fails(OSError, "truncated or damaged", lambda: list(open_rows(path)))
    np.savez(path, np.array([["x", None]], dtype=object))
    fails(TypeError, "not numeric", lambda: open_rows(path))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("notes.txt", CANARY)
    fails(OSError, "truncated or damaged", lambda: open_rows(path))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, "
                      b"'shape': (1000000000, 9), }".ljust(128) + b"\n")  # fmt: skip
    fails(OSError, "truncated or damaged", lambda: list(open_rows(path)))


def test_small_row_groups_are_read_together_and_large_ones_alone(tmp_path):
    column = pa.array(np.arange(30.0))
    for size, rows, wanted in (
        (10, 10, [[0], [1], [2]]),
        (10, 4, [[0], [1], [2]]),
        (4, 10, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (30, 100, [[0]]),
    ):
        pq.write_table(pa.table({"x": column}), tmp_path / "x.parquet", row_group_size=size)
        told = pq.read_metadata(tmp_path / "x.parquet")
        groups = [told.row_group(k).num_rows for k in range(told.num_row_groups)]
        assert list(spans(groups, range(len(groups)), rows)) == wanted
    read = np.concatenate([np.asarray(b).ravel() for b in open_rows(tmp_path / "x.parquet")])
    assert (read == np.arange(30.0)).all()


def write_all(folder, frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    frame.to_parquet(folder / "x.parquet")
    frame.to_csv(folder / "x.csv", index=False)
    np.save(folder / "x.npy", frame.to_numpy())
    np.savez(folder / "x.npz", **{name: frame[name] for name in frame})
    for name, writer in [("x.arrow", pa.ipc.new_file), ("x.arrows", pa.ipc.new_stream)]:
        with pa.OSFile(str(folder / name), "wb") as file, writer(file, table.schema) as to:
            to.write_table(table)


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.npy", "x.npz", "x.arrow", "x.arrows"])
def test_files_go_to_another_process(tmp_path, name):
    frame = pd.DataFrame({"a": np.arange(50.0), "b": np.arange(50.0) / 8})
    write_all(tmp_path, frame)
    rows = open_rows(tmp_path / name)
    for again in (pickle.loads(pickle.dumps(rows)), copy.deepcopy(rows)):
        np.testing.assert_array_equal(np.concatenate(list(again)), frame.to_numpy())
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(OSError, match="has changed"):
        list(pickle.loads(pickle.dumps(rows)))
