"""Files that change or break while they are read are errors, not other sums (claim rows-3)."""

from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactSum, PrivateCounts, PrivateMean, open_rows
from ellipsum.jobs.resumable import sum_of_files
from ellipsum.rows import sources
from file_rows import fails

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

REGION = Ellipsoid.ball(9.0, d=2)
FORMATS = ["parquet", "arrow", "arrows", "npy", "npz", "csv"]
CHANGED = "has changed since it was opened: open it again$"
DAMAGED = "is truncated or damaged: write it again$"


def write(path, rows):
    """The rows as a file of its suffix, in many parts."""
    table = pa.table({"a": rows[:, 0], "b": rows[:, 1]})
    kind = path.suffix[1:]
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=100)
    elif kind in ("arrow", "arrows"):
        new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with new(path, table.schema) as file:
            file.write_table(table, max_chunksize=100)
    elif kind == "npy":
        np.save(path, rows)
    elif kind == "npz":
        np.savez(path, rows)
    else:
        path.write_text("a,b\n" + "".join(f"{a:.6f},{b:.6f}\n" for a, b in rows))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(sources, "SPLIT_BYTES", 1 << 12)
    for constant in ("numpy_file.BLOCK_BYTES", "npz_file.BLOCK_BYTES", "csv_chunks.CHUNK_BYTES"):
        monkeypatch.setattr(f"ellipsum.rows.{constant}", 1 << 11)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_is_replaced_while_it_is_read_is_an_error(
    tmp_path, monkeypatch, small, kind, jobs
):
    """By the same rows in another order: else some would count twice, and others not."""
    rows = np.random.default_rng(0).normal(size=(1500, 2))
    path, other = tmp_path / f"x.{kind}", tmp_path / f"other.{kind}"
    write(path, rows), write(other, rows[::-1])
    os.utime(other, ns=(1, 1))
    add, once = ExactSum.add, threading.Lock()

    def replacing(self, block):
        with once:
            if other.exists():
                os.replace(other, path)
        return add(self, block)

    monkeypatch.setattr(ExactSum, "add", replacing)
    opened = open_rows(path)
    fails(OSError, CHANGED, lambda: sum_of_files(opened, ExactSum(REGION), None, jobs=jobs))
    fails(OSError, CHANGED, lambda: PrivateMean(REGION, mu=1.0)(opened))
    total = sum_of_files(open_rows(path), ExactSum(REGION), None, jobs=jobs)
    if kind != "csv":
        assert total.to_bytes() == add(ExactSum(REGION), rows).to_bytes()


def test_a_file_with_other_columns_than_when_it_was_opened_is_an_error(tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 2))
    for kind in ("parquet", "arrow"):
        path = tmp_path / f"x.{kind}"
        write(path, rows)
        opened = open_rows(path, ["a", "b"])
        table = pa.table({"a": np.arange(300), "c": rows[:, 1]})
        pq.write_table(table, path) if kind == "parquet" else None
        if kind == "arrow":
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table)
        fails(OSError, CHANGED, lambda opened=opened: list(opened))


@pytest.mark.parametrize("pages", [1, 2])
def test_zeros_in_a_stream_are_not_its_end(tmp_path, pages):
    """As a disk leaves them that lost power; nor is another stream behind it."""
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    path = tmp_path / "x.arrows"
    write(path, rows)
    raw = path.read_bytes()
    assert len(np.concatenate(list(open_rows(path)))) == 3000
    half = len(raw) // 8192 * 4096
    for broken in (raw[:half] + bytes(4096 * pages) + raw[half + 4096 * pages :], raw + raw):
        path.write_bytes(broken)
        fails(OSError, DAMAGED, lambda: list(open_rows(path)))


@pytest.mark.parametrize("code", [3, 100, -2])
def test_codes_that_a_dictionary_does_not_have_are_an_error(code):
    """A row would be nobody's, or an error would tell how many there are."""
    codes = pa.Array.from_buffers(
        pa.int8(), 4, [None, pa.py_buffer(np.array([0, 1, code, 2], np.int8))]
    )
    users = pa.DictionaryArray.from_arrays(codes, ["p", "q", "r"], safe=False)
    table = pa.table({"x": np.ones(4), "y": np.ones(4), "user": users})
    mean = PrivateMean(REGION, mu=1.0, by="user")
    found = fails(OSError, "is damaged, or not readable as Arrow data", lambda: mean(table))
    assert not any(digit in str(found) for digit in "0123456789")
    fails(
        OSError,
        "is damaged, or not readable as Arrow data",
        lambda: PrivateCounts(epsilon=1.0, delta=1e-6)(table, key="user"),
    )


def test_lists_of_a_width_that_nobody_writes_are_met_at_once(tmp_path):
    """A flipped bit in a width: no name is made for each of its places."""
    wide = pa.FixedSizeListArray.from_arrays(pa.array([], pa.float64()), 1 << 30)
    pq.write_table(pa.table({"v": wide}), tmp_path / "x.parquet")
    assert open_rows(tmp_path / "x.parquet").d == 1 << 30
    none = pa.array([[], []], pa.list_(pa.float64(), 0))
    with pa.ipc.new_file(tmp_path / "x.arrow", pa.schema([("v", none.type)])) as file:
        file.write_table(pa.table({"v": none}))
    fails(
        ValueError,
        "has lists of no numbers: write it again$",
        lambda: open_rows(tmp_path / "x.arrow"),
    )


def test_units_that_the_caller_says_go_with_each_part(tmp_path, small):
    rows = np.random.default_rng(0).normal(size=(900, 2))
    field = pa.field("a", pa.float64(), metadata={"unit": "cm"})
    schema = pa.schema([field, ("b", pa.float64()), ("user", pa.int64())])
    table = pa.table([rows[:, 0], rows[:, 1], np.arange(900) % 40], schema=schema)
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=100)
    opened = open_rows(tmp_path / "x.parquet", ["a", "b"], by="user", units={"a": "m"})
    assert len(opened.splits(2, 2)) > 1
    mean = PrivateMean(REGION, mu=1.0, by="user")
    one, two = (mean(opened, jobs=jobs, seed=3) for jobs in (1, 2))
    assert one.units == two.units and one.units[0] == "m"
    np.testing.assert_array_equal(one.value, two.value)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors")
@pytest.mark.parametrize("by", [(), "user"])
def test_an_error_of_one_part_leaves_nothing_open(tmp_path, monkeypatch, small, by):
    rows = np.random.default_rng(0).normal(size=(900, 2))
    table = pa.table({"a": rows[:, 0], "b": rows[:, 1], "user": np.arange(900)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=100)
    mean = PrivateMean(REGION, mu=1.0, by=by or None)
    opened = open_rows(tmp_path / "x.parquet", ["a", "b"], by=by)

    def broken(*_):
        raise RuntimeError("of a block")

    monkeypatch.setattr("ellipsum.rows.parquet_file.labelled_blocks", broken)
    gc.collect()
    gc.disable()
    try:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            fails(RuntimeError, "of a block", lambda: mean(opened, jobs=2))
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        gc.enable()
