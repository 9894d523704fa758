"""Folders named ``column=value``, as Hive and Spark write them: no column, or a dataset's."""

from __future__ import annotations

import pickle
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from ellipsum import (
    Checkpoint,
    CheckpointError,
    Ellipsoid,
    PrivateCounts,
    PrivateGroupMean,
    PrivateMean,
    open_rows,
)

REGION = Ellipsoid.ball(3.0, d=2)


def write(table, folder):
    """A Parquet file for each year, in a folder of its name."""
    shutil.rmtree(folder, ignore_errors=True)
    parts = ds.partitioning(pa.schema([("year", pa.int64())]), flavor="hive")
    ds.write_dataset(table, folder, format="parquet", partitioning=parts)


@pytest.fixture
def folder(tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 2))
    table = pa.table({"a": rows[:, 0], "b": rows[:, 1], "year": np.arange(300) % 3 + 2020})
    write(table, tmp_path / "t")
    return tmp_path / "t", table


def test_a_parquet_file_has_what_its_folders_names_say(folder):
    """As key, user and coordinate: the bits of the table that has the column."""
    path, table = folder
    assert open_rows(path).columns == ["a", "b"] and open_rows(path).n == 300
    rows = open_rows(path, by="year")
    assert rows.columns == ["a", "b"] and rows.by == ("year",)
    groups = PrivateGroupMean(REGION, keys=[2020, 2021, 2022], mu=1)
    found = groups.exact_sum(rows, key="year")
    assert found.to_bytes() == groups.exact_sum(table, key="year").to_bytes()
    assert found.counts().tolist() == [100, 100, 100]
    private = PrivateGroupMean(REGION, epsilon=9, delta=1e-6)
    assert private(rows, key="year", seed=1).keys == [2020, 2021, 2022]
    users = PrivateMean(REGION, mu=1, by="year")
    assert (users(rows, seed=1).integers == users(table, seed=1).integers).all()
    wide, region = open_rows(path, ["year", "b"]), Ellipsoid.ball(3000.0, d=2)
    plain = np.column_stack([table["year"], table["b"]])
    assert sorted(map(tuple, np.concatenate(list(wide)))) == sorted(map(tuple, plain))
    totals = [PrivateMean(region, mu=1)(data, seed=1).integers for data in (wide, plain)]
    assert (totals[0] == totals[1]).all()
    counts = PrivateCounts(keys=[2021, 2023], mu=1e5)
    assert np.allclose(counts(rows, key="year").sizes, [100, 0], atol=1e-3)
    alone = open_rows(path, ["year"])  # nothing is read of the files but how long they are
    histogram = PrivateCounts(edges=[2020, 2022, 2023], mu=1e5)(alone)
    assert np.allclose(histogram.sizes, [200, 100], atol=1e-3)


def test_jobs_and_resume_go_with_what_folders_names_say(folder, monkeypatch):
    from ellipsum.rows import parquet_file

    monkeypatch.setattr(parquet_file, "PART_BYTES", 1 << 9)
    path, table = folder
    checkpoint = path.parent / "job.ck"
    for known in ({"key": "year"}, {"key": "a_key", "user": "year"}):
        mechanism = PrivateGroupMean(REGION, keys=[2020, 2021, 2022, "x", "y"], mu=1)
        keyed = table.append_column("a_key", pa.array(np.array(["x", "y"])[np.arange(300) % 2]))
        write(keyed, path)
        rows = open_rows(path, ["a", "b"], by=list(known.values()))
        first = mechanism(rows, **known, resume=Checkpoint(checkpoint, every=1 << 9), jobs=2)
        root = Checkpoint(checkpoint)._parsed(Checkpoint(checkpoint)._read()).root
        one = mechanism(keyed.select(["a", "b", *known.values()]), **known, seed=root)
        assert (first.integers == one.integers).all()
        again = mechanism(rows, **known, resume=checkpoint)
        assert (first.integers == again.integers).all()
        Checkpoint(checkpoint).discard()


def test_another_name_of_the_folder_is_another_job(folder):
    """A link gives the same file, by its real path, another value."""
    path, _ = folder
    real = path.parent / "real"
    (path / "year=2020").rename(real)
    mechanism = PrivateGroupMean(REGION, keys=[2020, 2021], mu=1)
    for year in (2020, 2021):
        (path.parent / f"year={year}").symlink_to(real)
    files = [open_rows(path.parent / f"year={year}", by="year") for year in (2020, 2021)]
    mechanism(files[0], key="year", resume=path.parent / "job.ck")
    with pytest.raises(CheckpointError, match=r"of another job .*folders"):
        mechanism(files[1], key="year", resume=path.parent / "job.ck")


def test_the_type_is_that_of_all_the_folders(tmp_path):
    cases = iter(map(str, range(9)))

    def kinds(*names):
        rows, case = [], next(cases)
        for k, name in enumerate(names):
            folder = tmp_path / case / name / f"of={k}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"a": [float(k)]}), folder / "t.parquet")
            rows.append(str(folder / "t.parquet"))
        return [own["x"].as_py() for own in open_rows(rows, by="x").folders]

    assert kinds("x=7", "x=-3", "x=010") == [7, -3, 10]
    assert kinds("x=7", "x=b%20c") == ["7", "b c"]
    assert kinds("x=7", "x=") == ["7", ""]
    assert kinds("x=18446744073709551615", "x=1") == ["18446744073709551615", "1"]
    assert kinds("x=7", "x=__HIVE_DEFAULT_PARTITION__") == [7, None]
    assert kinds("x=__HIVE_DEFAULT_PARTITION__") == [None]
    with pytest.raises(ValueError, match="in two folders' names"):
        kinds("x=7/x=8")
    with pytest.raises(TypeError, match=r"'x' of .* is not numeric"):
        open_rows(tmp_path / "2", ["a", "x"])
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "2/none.parquet")
    with pytest.raises(ValueError, match="must have the column 'x'"):
        open_rows(tmp_path / "2", by="x")


@pytest.mark.parametrize(
    ("folders", "by", "wanted"),
    [
        (["user%20id=1", "user%20id=2"], "user id", [1, 2]),
        (["k=16", "k=0x10"], "k", ["0x10", "16"]),
        (["k=01", "k=-7"], "k", [-7, 1]),
        (["k=a%2Fb", "k=%41"], "k", ["A", "a/b"]),
        (["k=1", "k=__HIVE_DEFAULT_PARTITION__"], "k", [1]),
        (["k=9223372036854775807", "k=9223372036854775808"], "k", None),
        (["x=%FF/k=1", "x=%FF/k=2"], "k", [1, 2]),
    ],
)
def test_names_and_values_are_read_as_hive_writes_them(tmp_path, folders, by, wanted):
    wanted = [f.partition("=")[2] for f in folders] if wanted is None else wanted
    paths = []
    for k, folder in enumerate(folders):
        (tmp_path / folder).mkdir(parents=True)
        paths.append(tmp_path / folder / f"t{k}.parquet")
        pq.write_table(pa.table({"a": np.ones(40)}), paths[-1])
    rows = open_rows(paths, ["a"], by=by)
    found = PrivateCounts(epsilon=20, delta=1e-6)(rows, key=by, seed=0).keys
    assert found == wanted


def test_rows_of_an_array_file_can_be_sent_to_a_process(tmp_path):
    np.save(tmp_path / "t.npy", np.ones((3, 2)))
    rows = open_rows(tmp_path / "t.npy")
    assert pickle.loads(pickle.dumps(rows)).paths == rows.paths


def test_values_that_are_no_text_and_folders_that_a_path_leaves_are_refused(tmp_path):
    (tmp_path / "k=%FF").mkdir()
    for folder in ("k=%FF", "."):
        pq.write_table(pa.table({"a": [1.0]}), tmp_path / folder / "t.parquet")
    with pytest.raises(ValueError, match="'k' in the folders' names is no UTF-8"):
        open_rows(tmp_path / "k=%FF" / "t.parquet", by="k")
    with pytest.raises(ValueError, match="must have the column 'k'"):
        open_rows(f"{tmp_path}/k=%FF/../t.parquet", by="k")


def test_other_formats_refuse_it_with_what_reads_it(folder):
    path, _ = folder
    with pytest.raises(ValueError, match="must have the column 'month'"):
        open_rows(path, by="month")
    (path / "year=2024").mkdir()
    (path / "year=2024/more.csv").write_text("a,b\n1,2\n")
    for known in ({"by": "year"}, {"columns": ["a", "year"]}):
        with pytest.raises(ValueError, match=r"'year' in a folder's name.*partitioning=\"hive\""):
            open_rows(path, **known)
    lines = "a,b,year\n1,2,2024\n3,4,2024\n"  # one that the files have too is read from them
    (path / "year=2024/more.csv").write_text(lines)
    assert open_rows(path / "year=2024", by="year").folders == [{}]
    table = pa.table({"a": [1.0], "b": [2.0], "year": [1999]})
    pq.write_table(table, path / "year=2024/own.parquet")
    own = open_rows(path / "year=2024/own.parquet", by="year")
    assert own.folders == [{}]
    groups = PrivateGroupMean(REGION, epsilon=1, delta=1e-6)
    assert groups.exact_sum(own, key="year").keys == [1999]


def test_a_dataset_has_it_as_key_user_and_coordinate(folder):
    path, table = folder
    dataset = ds.dataset(path, partitioning="hive")
    groups = PrivateGroupMean(REGION, keys=[2020, 2021, 2022], mu=1)
    found = groups.exact_sum(dataset, key="year")
    assert found.to_bytes() == groups.exact_sum(table, key="year").to_bytes()
    assert found.counts().tolist() == [100, 100, 100]
    users = PrivateMean(REGION, mu=1, by="year")
    assert (users(dataset, seed=1).integers == users(table, seed=1).integers).all()
    wide = PrivateMean(Ellipsoid.ball(3000.0, d=3), mu=1)
    assert (wide(dataset, seed=1).integers == wide(table, seed=1).integers).all()
