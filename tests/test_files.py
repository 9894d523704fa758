"""Rows from files: every format gives the same rows, and no error quotes one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ellipsum import Ellipsoid, PrivateMean
from ellipsum.rows import arrow
from ellipsum.rows import columns as _columns
from ellipsum.rows import csv_chunks as _chunks
from ellipsum.rows import csv_file as _csv
from ellipsum.rows import npz_file as _npz
from ellipsum.rows import numpy_file as _numpy
from ellipsum.rows import parquet_file as _parquet
from ellipsum.rows.batches import as_batches
from ellipsum.rows.files import open_rows
from file_rows import CANARY, fails, gather

N, D = 5000, 3
NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def rows():
    values = np.random.default_rng(0).normal(size=(N, D))
    values[::10] = float(CANARY)
    return values


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    """The same rows in every format."""
    path = tmp_path_factory.mktemp("rows")
    table = pa.table({name: rows[:, j] for j, name in enumerate(NAMES)})
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), D)
    pq.write_table(table, path / "wide.parquet", row_group_size=1500)
    pq.write_table(pa.table({"id": ["x"] * N, "v": lists}), path / "fixed.parquet")
    pq.write_table(pa.table({"v": pa.array(list(rows))}), path / "list.parquet")
    pa.feather.write_feather(table, path / "wide.feather", compression="uncompressed")
    write_ipc(table, path / "file.arrow", pa.ipc.new_file)
    write_ipc(table, path / "stream.arrows", pa.ipc.new_stream)
    write_ipc(table, path / "stream.arrow", pa.ipc.new_stream)
    pa.csv.write_csv(table, path / "wide.csv")
    pa.csv.write_csv(table, pa.CompressedOutputStream(str(path / "wide.csv.gz"), "gzip"))
    np.savetxt(path / "plain.txt", rows, delimiter=",", fmt="%.17g")
    np.savetxt(path / "wide.tsv", rows, delimiter="\t", fmt="%.17g", header="a\tb\tc", comments="")
    np.savez_compressed(path / "c.npz", rows)
    np.savez(path / "f.npz", np.asfortranarray(rows))
    np.savez(path / "columns.npz", **{name: rows[:, j] for j, name in enumerate(NAMES)})
    np.save(path / "c.npy", rows)
    np.save(path / "f.npy", np.asfortranarray(rows))
    np.save(path / "big_endian.npy", rows.astype(">f8"))
    return path


def write_ipc(table, path, writer):
    with pa.OSFile(str(path), "wb") as file, writer(file, table.schema) as out:
        out.write_table(table, max_chunksize=700)


def opened(path, columns=None, **options):
    return open_rows(path, columns, header=path.name != "plain.txt", **options)


EVERY = {
    "wide.parquet": None,
    "fixed.parquet": ["v"],
    "list.parquet": None,
    "wide.feather": None,
    "file.arrow": None,
    "stream.arrows": None,
    "stream.arrow": None,
    "wide.csv": None,
    "wide.csv.gz": None,
    "plain.txt": None,
    "wide.tsv": None,
    "c.npz": None,
    "f.npz": None,
    "columns.npz": NAMES,
    "c.npy": None,
    "f.npy": None,
    "big_endian.npy": None,
}


@pytest.fixture
def small_blocks(monkeypatch):
    """Many blocks of few rows, so that every seam is met."""
    monkeypatch.setattr(_columns, "WIDE_BYTES", 2400)
    monkeypatch.setattr(arrow, "PART_BYTES", 24000)
    monkeypatch.setattr(_numpy, "BLOCK_BYTES", 2400)
    monkeypatch.setattr(_parquet, "BLOCK_BYTES", 2400)
    monkeypatch.setattr(_npz, "BLOCK_BYTES", 2400)
    monkeypatch.setattr(_parquet, "PART_BYTES", 24000)
    monkeypatch.setattr(_chunks, "CHUNK_BYTES", 1000)


# ---- every format ----------------------------------------------------------------------


@pytest.mark.parametrize("name, columns", EVERY.items())
def test_every_format_gives_the_same_rows_as_often_as_asked(
    folder, rows, name, columns, small_blocks
):
    data = opened(folder / name, columns)
    assert data.d == (None if name == "list.parquet" else D)
    assert data.n in (None, N)
    assert data.nbytes == os.path.getsize(folder / name)
    for _ in range(2):
        np.testing.assert_array_equal(gather(data), rows)
        assert data.fraction == 1
    np.testing.assert_array_equal(np.concatenate(list(as_batches(data, D))), rows)
    assert sum(1 for _ in data.batches(D)) > 5


def test_single_precision_stays_single_where_the_file_has_it(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 2), np.float32))
    table = pa.table({"a": pa.array([1.0], pa.float32())})
    pq.write_table(table, tmp_path / "x.parquet")
    np.save(tmp_path / "i.npy", np.ones((4, 2), np.int16))
    kinds = [
        next(iter(open_rows(tmp_path / f"{x}"))).dtype for x in ("x.npy", "x.parquet", "i.npy")
    ]
    assert kinds == [np.float32, np.float32, np.float64]


@pytest.mark.filterwarnings("error")
def test_a_number_beyond_double_precision_is_no_warning(tmp_path):
    values = np.array([[1.0, 2.0]], np.longdouble) * np.longdouble("1e400")
    np.save(tmp_path / "x.npy", values)
    assert np.isinf(gather(open_rows(tmp_path / "x.npy"), 2)).all()


def test_several_files_are_one_data_set_in_the_order_of_the_first_columns(folder, rows):
    data = open_rows([folder / n for n in ("wide.parquet", "wide.csv", "file.arrow")], ["c", "a"])
    assert (data.columns, data.d, data.n) == (["c", "a"], 2, None)
    np.testing.assert_array_equal(gather(data, 2), np.tile(rows[:, [2, 0]], (3, 1)))


def test_progress_grows_to_one(folder, small_blocks, tmp_path):
    for name, columns in EVERY.items():
        shutil.copy(folder / name, tmp_path / name)
        files = [folder / name, tmp_path / name]
        data = open_rows(files, columns, header=name != "plain.txt")
        seen = []
        for _ in data.batches(D):
            if len(seen) == 0:
                time.sleep(0.02)  # the block ahead, which may be the other file, is not done yet
            seen.append(data.fraction)
        assert seen == sorted(seen) and seen[len(seen) // 2 - 1] <= 0.5 + 1e-9
        assert data.fraction == 1


def test_progress_of_a_pass_that_was_left_counts_what_was_read(folder):
    data = open_rows([folder / "wide.feather", folder / "file.arrow"])
    blocks = data.batches(D)
    next(blocks)
    blocks.close()
    assert 0 < data.fraction <= 1
    assert sum(map(len, data.batches(D))) == 2 * N and data.fraction == 1


@pytest.mark.parametrize("name", ["c.npy", "f.npy"])
def test_an_array_without_rows_is_read(tmp_path, name):
    empty = np.empty((0, 2), order="F" if name == "f.npy" else "C")
    np.save(tmp_path / name, empty)
    assert list(open_rows(tmp_path / name)) == []


def test_memory_stays_flat_over_a_large_row_group(tmp_path):
    values = np.random.default_rng(0).standard_normal(4_000_000, np.float32)
    table = pa.table({str(j): values for j in range(20)})  # 320 MB in a single row group
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=4_000_000, use_dictionary=False)
    code = (
        "import sys, pyarrow, ellipsum.rows.files as f\n"
        "assert sum(map(len, f.open_rows(sys.argv[1]))) == 4_000_000\n"
        "print(pyarrow.default_memory_pool().max_memory())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.parquet")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(run.stdout) < 160e6


def test_a_list_column_needs_its_length_said(folder):
    with pytest.raises(ValueError, match="List column"):
        iter(open_rows(folder / "list.parquet"))


# ---- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names, columns, error, phrase",
    [
        ([], None, ValueError, "at least one file"),
        (["nope.parquet"], None, FileNotFoundError, "is not there"),
        (["."], None, ValueError, "do not agree"),
        (["wide.parquet"], ["a", "zz"], ValueError, "no column 'zz'"),
        (["wide.csv"], ["a", "zz"], ValueError, "column 'zz' exactly once"),
        (["wide.csv"], ["a", "a"], ValueError, "column 'a' exactly once"),
        (["wide.parquet"], ["a", "a"], ValueError, "comes twice"),
        (["wide.parquet"], [], ValueError, "no columns"),
        (["wide.parquet"], "a", TypeError, r"give \['a'\]"),
        (["c.npy"], ["a"], ValueError, "no column names"),
        (["fixed.parquet"], None, TypeError, "'id' of .* is not numeric"),
        (["wide.parquet", "c.npy"], None, ValueError, "no column names"),
        (["c.npy", "wide.parquet"], None, ValueError, "do not agree"),
        (["wide.csv", "plain.txt"], None, ValueError, "does not look like column names"),
        (["fixed.parquet", "wide.csv"], ["v"], ValueError, "'v' exactly once"),
    ],
)
def test_files_that_do_not_fit_are_refused(folder, names, columns, error, phrase):
    fails(error, phrase, lambda: open_rows([folder / name for name in names], columns))


def test_rows_of_another_dimension_are_refused(folder):
    fails(
        ValueError,
        "3 coordinates in a row, the shape has 2",
        lambda: as_batches(open_rows(folder / "wide.parquet"), 2),
    )


@pytest.mark.parametrize(
    "name, content, error, phrase",
    [
        ("x.parquet", b"CANARY", OSError, "not what its suffix says"),
        ("x.arrow", b"CANARY", OSError, "not what its suffix says"),
        ("x.npy", b"CANARY", OSError, "not what its suffix says"),
        ("x.xlsx", b"CANARY", OSError, "no known format"),
        ("x.csv", b"", ValueError, "is empty"),
        ("x.arrows", b"", OSError, "truncated or damaged"),
        ("x.csv", b"a" * 200_000 + b",CANARY\n1,2\n", ValueError, "does not look like"),
    ],
)
def test_files_of_another_kind_are_refused(tmp_path, name, content, error, phrase):
    (tmp_path / name).write_bytes(content)
    assert "CANARY" not in str(fails(error, phrase, lambda: open_rows(tmp_path / name)))


@pytest.mark.parametrize(
    "array, error, phrase",
    [
        (np.ones(3), ValueError, "two dimensions"),
        (np.ones((2, 2), complex), TypeError, "not numeric"),
        (np.array([["CANARY"]]), TypeError, "not numeric"),
        (np.array([["CANARY"]], object), OSError, "damaged"),
    ],
)
def test_arrays_that_are_no_rows_are_refused(tmp_path, array, error, phrase):
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    fails(error, phrase, lambda: open_rows(tmp_path / "x.npy"))


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,  # the bytes decide what pyarrow does: the same ones every time
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    name=st.sampled_from(["wide.parquet", "list.parquet", "file.arrow", "stream.arrows", "c.npy"]),
    changes=st.lists(
        st.tuples(st.integers(0, 600), st.integers(0, 255), st.booleans()), max_size=4
    ),
)
def test_altered_bytes_give_rows_or_one_kind_of_error(folder, tmp_path, name, changes):
    content = bytearray((folder / name).read_bytes())
    for place, byte, at_the_end in changes:
        content[-1 - place if at_the_end else place] = byte
    (tmp_path / name).write_bytes(content)
    try:
        data = open_rows(tmp_path / name)
        assert all(block.ndim == 2 for block in data.batches(D))
    except (OSError, ValueError, TypeError) as error:
        assert "\n" not in str(error) and len(str(error)) < 400 + len(str(tmp_path))


BINARY = [name for name in EVERY if not name.endswith((".csv", ".txt", ".tsv"))]


@pytest.mark.parametrize("name", BINARY)
def test_a_truncated_file_is_an_error_without_data(folder, tmp_path, name):
    whole = (folder / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    fails(OSError, "truncated or damaged", lambda: gather(open_rows(tmp_path / name, EVERY[name])))


# Parquet's buffers may hold the whole of so small a file; an array of columns is read at once.
IN_PARTS = [n for n in EVERY if n != "f.npz" and not n.endswith((".parquet", ".feather"))]


@pytest.mark.parametrize("name", IN_PARTS)
def test_a_file_cut_short_while_it_is_read_is_an_error_without_data(
    folder, tmp_path, name, small_blocks
):
    path = tmp_path / name
    path.write_bytes((folder / name).read_bytes())
    batches = opened(path, EVERY[name]).batches(D)
    next(batches)
    os.truncate(path, os.path.getsize(path) // 3)
    fails(OSError, "truncated or damaged|cut short", lambda: list(batches))


@pytest.mark.parametrize("name", EVERY)
def test_a_file_that_vanishes_before_a_pass_is_an_error(folder, tmp_path, name):
    path = tmp_path / name
    path.write_bytes((folder / name).read_bytes())
    data = opened(path, EVERY[name])
    path.unlink()
    fails(FileNotFoundError, "is not there", lambda: gather(data))


@pytest.mark.parametrize("threads, by_arrow", [(1, {False}), (2, {False}), (3, {True})])
def test_jobs_decode_their_own_files_where_arrow_has_no_more_threads(
    tmp_path, monkeypatch, threads, by_arrow
):
    """Its threads are one for all with OMP_NUM_THREADS=1: two jobs would take turns."""
    table = pa.table({"user": [1, 2, 3], "x": [0.5, 0.25, 1.0]})
    for k in range(2):
        pq.write_table(table, tmp_path / f"{k}.parquet")
    used = []
    given = pq.ParquetFile.iter_batches
    seen = lambda *a, **kw: (used.append(kw["use_threads"]), given(*a, **kw))[1]  # noqa: E731
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", seen)
    monkeypatch.setattr(pa, "cpu_count", lambda: threads)
    folder = str(tmp_path / "*.parquet")
    mechanism = PrivateMean(Ellipsoid.ball(2, d=1), mu=1)
    mechanism(open_rows(folder, columns=["x"]), jobs=2)
    assert set(used) == by_arrow
    used.clear()
    mechanism(open_rows(folder, columns=["x"]))
    assert set(used) == {True}
    used.clear()
    users = PrivateMean(Ellipsoid.ball(2, d=1), mu=1, by="user")
    users(open_rows(folder, columns=["x"], by="user"), jobs=2)
    assert set(used) == by_arrow
    used.clear()
    mechanism(open_rows(tmp_path / "0.parquet", columns=["x"]), jobs=2)  # no two files at a time
    assert set(used) == {True}


@pytest.mark.parametrize("threads, alone, beside", [(1, 1, 1), (2, 2, 1), (5, 5, 2), (99, 8, 8)])
def test_jobs_share_the_threads_that_parse_csv(tmp_path, monkeypatch, threads, alone, beside):
    for k in range(2):
        (tmp_path / f"{k}.csv").write_text("x\n0.5\n0.25\n")
    used, given = [], _csv.mapped_ahead
    seen = lambda work, items, n: (used.append(n), given(work, items, n))[1]  # noqa: E731
    monkeypatch.setattr(_csv, "mapped_ahead", seen)
    monkeypatch.setattr(pa, "cpu_count", lambda: threads)
    mechanism = PrivateMean(Ellipsoid.ball(2, d=1), mu=1)
    for jobs, wanted in ((1, alone), (2, beside)):
        mechanism(open_rows(str(tmp_path / "*.csv")), jobs=jobs)
        assert set(used) == {wanted}
        used.clear()
    mechanism(open_rows(tmp_path / "0.csv"), jobs=2)
    assert set(used) == {alone}
