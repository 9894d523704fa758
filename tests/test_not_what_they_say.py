"""Data, files and types that are not what they say are refused by name, whatever their rows are."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import threading
import zipfile
from array import array

import numpy as np
import pandas as pd
import pytest

from ellipsum import Checkpoint, Ellipsoid, ExactSum, PrivateMean, PrivateSum, open_rows
from ellipsum.rows.batches import as_batches
from file_rows import CANARY

pa = pytest.importorskip("pyarrow")
BOX = Ellipsoid.box({"a": -9, "b": -9}, {"a": 9, "b": 9})
BALL = Ellipsoid.ball(1.0, d=2)


def reader_of(schema, *batches):
    return pa.RecordBatchReader.from_batches(schema, iter(batches))


def two(**columns):
    return pa.record_batch(columns)


SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.float64())])
GOOD = two(a=[1, 2], b=[1.0, 2.0])


@pytest.mark.parametrize(
    "bad",
    [
        two(a=["1", f"{CANARY}"], b=[1.0, 2.0]),
        two(a=["1", "2"], b=[1.0, 2.0]),
        two(a=[1.0, 2.0], b=[1.0, 2.0]),
        two(a=[1, 2], c=[1.0, 2.0]),
        two(b=[1.0, 2.0], a=[1, 2]),
        two(a=[1, 2]),
        two(a=[1, 2], b=[1.0, 2.0], c=[1, 2]),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_batch_that_is_not_of_its_readers_schema_is_refused(bad, first):
    """pyarrow holds neither against the other."""
    batches = [bad, GOOD] if first else [GOOD, bad]
    with pytest.raises(TypeError, match="not of its schema: cast each one") as caught:
        list(as_batches(reader_of(SCHEMA, *batches), 2))
    assert str(CANARY) not in str(caught.value)


def test_what_a_schema_says_of_nulls_is_no_other_type():
    strict = pa.schema([pa.field("a", pa.int64(), nullable=False), SCHEMA.field("b")])
    assert ExactSum(BALL).add(reader_of(strict, GOOD)).count == 2


def test_lists_of_another_length_than_the_schema_says_are_refused():
    """One record would be two rows."""
    schema = pa.schema([("x", pa.list_(pa.float64(), 2))])
    for size in (1, 3):
        values = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(2 * size)), size)
        with pytest.raises(TypeError, match="not of its schema"):
            list(as_batches(reader_of(schema, pa.record_batch({"x": values})), 2))


@pytest.mark.parametrize("offset", [1, 3, 10])
@pytest.mark.parametrize("bitmap", [None, b"\xff" * 4])
def test_a_fixed_size_list_whose_numbers_end_early_is_refused(offset, bitmap):
    """pyarrow leaves its offset out of account."""
    numbers, valid = pa.array(np.ones(30)), bitmap and pa.py_buffer(bitmap)
    kind = pa.list_(pa.float64(), 3)
    column = pa.Array.from_buffers(kind, 10, [valid], offset=offset, children=[numbers])
    region = Ellipsoid.ball(1.0, d=3)
    for data in (column, pa.table({"x": column})):
        with pytest.raises(TypeError, match="not readable as Arrow data"):
            ExactSum(region).add(data)
    whole = pa.Array.from_buffers(kind, 10 - offset, [valid], offset=offset, children=[numbers])
    assert ExactSum(region).add(whole).count == 10 - offset


def test_a_query_that_fails_says_that_it_is_one(tmp_path):
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"is a query that failed.*run it by itself"):
        list(as_batches(pl.scan_parquet(tmp_path / "none.parquet"), 2))


COMPRESSIONS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda text: pa.Codec("zstd").compress(text, asbytes=True),
}


def zipped(text):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("rows.csv", text)
    return file.getvalue()


def text_of(seed, d=2):
    rows = np.random.default_rng(seed).normal(size=(300, d))
    return pd.DataFrame(rows).add_prefix("c").to_csv(index=False).encode()


@pytest.mark.parametrize("suffix", [*COMPRESSIONS, ".zip"])
def test_text_that_is_compressed_is_read_by_its_name_or_refused(tmp_path, suffix):
    """Else its first line is one of names, which are public: of compressed rows."""
    for seed in range(20):
        packed = {**COMPRESSIONS, ".zip": zipped}[suffix](text_of(seed))
        for name in ("rows.csv", "rows.txt", f"rows.csv{suffix}"):
            path = tmp_path / name
            path.write_bytes(packed)
            if name.endswith(suffix) and suffix not in (".xz", ".zip"):
                assert len(np.concatenate(list(open_rows(path)))) == 300
                continue
            with pytest.raises(OSError, match=r"is compressed.*\.csv") as caught:
                open_rows(path)
            assert "rows." in str(caught.value)


@pytest.mark.parametrize("suffix", [".xz", ".zip", ".tar", ".br", ".7z"])
def test_no_suffix_of_another_compression_is_read_without_a_header(tmp_path, suffix):
    (tmp_path / f"rows.csv{suffix}").write_bytes(b"1,2\n")
    with pytest.raises(OSError, match=r"is compressed as .*which is not read"):
        open_rows(tmp_path / f"rows.csv{suffix}", header=False)


@pytest.mark.parametrize("odd", ["\0", "\x01", "\x1b", "\x7f"])
def test_a_line_of_names_that_is_no_text_is_refused(tmp_path, odd):
    path = tmp_path / "rows.csv"
    path.write_text(f"a{odd},b\n1,2\n")
    with pytest.raises(ValueError, match=r"first line of .* is no text") as caught:
        open_rows(path)
    assert odd not in str(caught.value)


def save_npy(path, rows):
    np.save(path, rows)
    return path.read_bytes()


def test_npy_files_are_as_long_as_their_headers_say(tmp_path):
    """Every single bit of the header: another sum is never read without a word."""
    path = tmp_path / "rows.npy"
    rows = np.ones((90, 2))
    whole = save_npy(path, rows)
    path.write_bytes(whole + b"\0")
    with pytest.raises(OSError, match="longer than its header says"):
        open_rows(path)
    silent = []
    for k in range(8 * (len(whole) - rows.nbytes)):
        flipped = bytearray(whole)
        flipped[k // 8] ^= 1 << k % 8
        path.write_bytes(flipped)
        try:
            total = ExactSum(BALL).add(open_rows(path))
        except (OSError, ValueError, TypeError, ImportError):
            continue
        if total.count != 90:
            silent.append(k)
    assert silent == []


def test_a_stream_that_was_cut_between_two_batches_is_refused(tmp_path):
    path = tmp_path / "rows.arrows"
    table = pa.table({"a": np.ones(60), "b": np.ones(60)})
    with pa.OSFile(str(path), "w") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=10)
    whole = path.read_bytes()
    assert ExactSum(BALL).add(open_rows(path)).count == 60
    for size in range(len(whole) - 1, 0, -1):
        path.write_bytes(whole[:size])
        with pytest.raises((OSError, TypeError)):
            ExactSum(BALL).add(open_rows(path))


def test_checksums_of_pages_are_looked_at(tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "rows.parquet"
    table = pa.table({"a": np.arange(500.0), "b": np.arange(500.0)})
    options = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    pq.write_table(table, path, **options)
    whole = path.read_bytes()
    at = whole.index(np.float64(77.0).tobytes())
    path.write_bytes(whole[:at] + b"\1" + whole[at + 1 :])
    with pytest.raises(OSError, match="truncated or damaged"):
        ExactSum(BALL).add(open_rows(path))


def write_csv(path, names, value, n):
    path.write_text(f"{names}\n" + f"{value},{value}\n" * n)
    os.utime(path, ns=(n, n))


@pytest.mark.parametrize("names", ["a,b", "b,a"])
def test_a_file_that_changed_is_refused_in_every_order_of_its_columns(tmp_path, names):
    path = tmp_path / "rows.csv"
    write_csv(path, names, 1, 100)
    rows = open_rows(path)
    write_csv(path, names, 5, 300)
    with pytest.raises(OSError, match="has changed since it was opened: open it again"):
        ExactSum(BOX).add(rows)


def test_another_file_of_the_same_size_and_time_is_refused(tmp_path):
    path, other = tmp_path / "rows.csv", tmp_path / "other"
    write_csv(path, "a,b", 1, 100)
    rows = open_rows(path)
    write_csv(other, "a,b", 2, 100)
    os.replace(other, path)
    with pytest.raises(OSError, match="has changed"):
        ExactSum(BOX).add(rows)


def write_table(path, names):
    pd.DataFrame(dict.fromkeys(names, np.ones(5))).to_parquet(path)
    pd.DataFrame(dict.fromkeys(names, np.ones(5))).to_csv(f"{path}.csv", index=False)


def test_files_of_one_data_set_have_the_same_columns_in_either_order(tmp_path):
    few, more = tmp_path / "few.parquet", tmp_path / "more.parquet"
    write_table(few, "ab")
    write_table(more, "abc")
    for end in ("", ".csv"):
        paths = [f"{few}{end}", f"{more}{end}"]
        with pytest.raises(ValueError, match=r"more.* has more columns than .*few"):
            open_rows(paths)
        with pytest.raises(ValueError, match="c"):
            open_rows(paths[::-1])
        assert open_rows(paths, ["a", "b"]).d == 2


def known_types():
    rows = np.ones((4, 2))
    yield io.StringIO("1,2\n"), "open_rows"
    yield io.BytesIO(b"1,2\n"), "open_rows"
    yield csv.reader(["1,2"]), "open_rows"
    yield range(8), "array of shape"
    yield array("d", [1.0, 2.0]), "array of shape"
    frame = pd.DataFrame(rows)
    dated = frame.set_index(pd.date_range("2025", periods=4))
    windows = frame.groupby(0), frame.rolling(2), frame.expanding(), frame.ewm(span=2)
    for kind in (*windows, dated.resample("D"), dated[0].rolling(2)):
        yield kind, "table itself"
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"i": [0, 1, 2, 3], "x": [1.0] * 4})
    yield table.group_by("x"), "table itself"
    yield table.lazy().group_by("x"), "table itself"
    yield table.rolling("i", period="2i"), "table itself"
    sparse = pytest.importorskip("scipy.sparse")
    yield from ((kind(rows), "toarray") for kind in (sparse.csr_matrix, sparse.coo_array))


@pytest.mark.parametrize(("data", "advice"), list(known_types()))
def test_a_type_that_is_no_rows_is_refused_and_spends_nothing(data, advice):
    for call in (PrivateSum(BALL, mu=1.0), PrivateMean(BALL, mu=1.0)):
        with pytest.raises(TypeError, match=f"must be rows of numbers, got .*{advice}"):
            call(data)


def test_several_data_sets_in_a_list_are_batches(tmp_path):
    path = tmp_path / "rows.csv"
    write_csv(path, "a,b", 1, 100)
    assert ExactSum(BOX).add([open_rows(path), np.ones((3, 2))]).count == 103


@pytest.mark.parametrize("table", [pd.DataFrame({"Kiel": [1.0]}), pd.Series(["Kiel"])])
def test_a_table_is_no_list_of_paths_and_no_cell_of_it_is_quoted(table):
    with pytest.raises(TypeError, match="paths must be a path or several, got") as caught:
        open_rows(table)
    assert "Kiel" not in str(caught.value)


@pytest.mark.parametrize("paths", [io.BytesIO(), 3, [3], pd.DataFrame({"a": [1.0]})[:0], [None]])
def test_what_is_no_path_is_refused_as_such(paths):
    if isinstance(paths, pd.DataFrame):
        paths = [paths]
    with pytest.raises(TypeError, match="paths must be a path or several, got"):
        open_rows(paths)


def test_a_path_of_another_machine_says_what_to_do():
    with pytest.raises(FileNotFoundError, match="is not there: copy it here first"):
        open_rows("s3://bucket/rows.parquet")


@pytest.mark.parametrize("n", [[9998, 10000], [99_999, 100_001]])
def test_a_checkpoint_is_as_long_for_any_number_of_rows(tmp_path, n, memory_path):
    """The binding names the files, with their sizes: these have as many digits."""
    mean, sizes = PrivateMean(lower=[0], upper=[9], mu=9.0, neighbors="add-remove"), set()
    for rows in n:
        path, kept = tmp_path / "rows.npy", memory_path / "kept"
        np.save(path, np.full((rows, 1), 3.0))
        os.utime(path, ns=(10**18, 10**18))
        mean(open_rows(path), resume=Checkpoint(kept, key=bytes(32)))
        sizes.add(os.path.getsize(kept))
        os.remove(kept)
    assert len(sizes) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_records_are_read_in_a_child_of_a_fork_whatever_other_threads_do():
    from ellipsum.rows import arrays

    held, done = threading.Event(), threading.Event()

    def hold():
        with arrays._QUIET:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if not child:
        threading.Timer(30, os._exit, [1]).start()
        ExactSum(BALL).add([[1.0, "2"], object()])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    done.set()
    thread.join()
