"""Large files are read in parts at the same time: each row once, whatever the parts (resume-1)."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactSum, PrivateMean, open_rows
from ellipsum.column_names import Columns
from ellipsum.jobs.resumable import sum_of_files
from ellipsum.rows import sources
from ellipsum.rows.files import MOST_SPLITS

REGION = Ellipsoid.ball(3.0, d=4)
FORMATS = ["wide.parquet", "lists.parquet", "x.arrow", "c.npy", "f.npy"]


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(6000, 4))


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("large")
    wide = pa.table({f"x{j}": rows[:, j] for j in range(4)})
    wide = wide.append_column("user", pa.array(np.arange(len(rows)) % 700))
    lists = pa.table({"v": pa.FixedSizeListArray.from_arrays(rows.ravel(), 4)})
    pq.write_table(wide, folder / "wide.parquet", row_group_size=170)
    pq.write_table(lists, folder / "lists.parquet", row_group_size=900)
    with pa.ipc.new_file(folder / "x.arrow", wide.schema) as file:
        file.write_table(wide, max_chunksize=311)
    np.save(folder / "c.npy", rows)
    np.save(folder / "f.npy", np.asfortranarray(rows))
    return folder


def opened(folder, name):
    columns = None if "wide" not in name and "x" not in name else ["x0", "x1", "x2", "x3"]
    return open_rows(folder / name, columns)


@pytest.fixture
def small(monkeypatch):
    """Files of some kilobytes are large."""
    monkeypatch.setattr(sources, "SPLIT_BYTES", 1 << 14)
    monkeypatch.setattr("ellipsum.rows.numpy_file.BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr("ellipsum.rows.parquet_file.PART_BYTES", 1 << 12)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("size", [1, 1 << 12, 1 << 14, 1 << 15, 77_777, 96_000, 1 << 17])
def test_the_splits_of_a_file_are_all_of_it_in_order(folder, rows, small, monkeypatch, name, size):
    monkeypatch.setattr(sources, "SPLIT_BYTES", size)
    whole = opened(folder, name)
    splits = whole.splits(2, 4)
    parts = [part for split in splits for part in split.parts]
    assert parts == list(whole._sources[0].parts)
    assert 1 <= len(splits) <= MOST_SPLITS and all(split.parts for split in splits)
    assert len(splits) > 1 or size > 96_000
    read = [[np.asarray(b) for b, _ in split.labelled(4)] for split in splits]
    np.testing.assert_array_equal(np.concatenate([b for blocks in read for b in blocks]), rows)
    if name != "x.arrow":  # whose record batches tell of themselves alone
        assert [sum(map(len, blocks)) for blocks in read] == [split.n for split in splits]
    assert 0 <= whole.nbytes - sum(split.nbytes for split in splits) < len(splits)


@pytest.mark.parametrize("name", FORMATS)
def test_where_a_file_is_split_does_not_follow_from_the_jobs(folder, small, name):
    ends = [[split.parts for split in opened(folder, name).splits(jobs, 4)] for jobs in (1, 2, 9)]
    assert ends[0] == ends[1] == ends[2] and len(ends[0]) > 1


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_parts_of_a_file_at_the_same_time_have_the_sum_of_its_rows(folder, rows, small, name, jobs):
    total = sum_of_files(opened(folder, name), ExactSum(REGION), None, jobs=jobs)
    assert total.to_bytes() == ExactSum(REGION).add(rows).to_bytes()


def test_parts_that_are_alike_in_size_are_shared_out_evenly(folder, monkeypatch):
    monkeypatch.setattr(sources, "SPLIT_BYTES", 6000 * 32 // 6)
    assert [len(split.parts) for split in opened(folder, "wide.parquet").splits(2, 4)] == [6] * 6


@pytest.mark.parametrize("jobs", [1, 2])
def test_users_of_a_file_in_parts_count_as_of_a_whole_one(folder, small, jobs):
    names = ["x0", "x1", "x2", "x3"]
    rows = open_rows(folder / "wide.parquet", names, by="user")
    split = PrivateMean(REGION, mu=1.0, by="user")(rows, jobs=jobs, seed=7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "SPLIT_BYTES", 1 << 40)
        whole = PrivateMean(REGION, mu=1.0, by="user")(rows, seed=7)
    np.testing.assert_array_equal(split.value, whole.value)


@pytest.mark.parametrize("name", FORMATS)
def test_progress_over_parts_is_that_of_the_file(folder, small, name):
    rows = opened(folder, name)
    seen = []
    add = ExactSum.add

    def watched(self, block):
        time.sleep(0.02 if len(seen) < 3 else 0)  # the next block is made, and not counted yet
        seen.append(rows.fraction)
        return add(self, block)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExactSum, "add", watched)
        sum_of_files(rows, ExactSum(REGION), None, jobs=1)
    assert seen == sorted(seen) and seen[0] < 0.2 and rows.fraction > 0.999
    list(rows.batches(4))  # an ordinary pass begins anew
    assert rows.fraction > 0.999


def test_a_file_whose_row_groups_are_not_its_rows_is_refused(folder, monkeypatch):
    import pyarrow.parquet as pq

    class Told:
        def __init__(self, real):
            self._real = real

        num_rows = 6001

        def __getattr__(self, name):
            return getattr(self._real, name)

    real = pq.ParquetFile.metadata.fget
    monkeypatch.setattr(pq.ParquetFile, "metadata", property(lambda file: Told(real(file))))
    with pytest.raises(OSError, match=r"wide\.parquet is truncated or damaged: write it again$"):
        opened(folder, "wide.parquet")


def test_files_share_the_splits_by_their_size(folder, small, tmp_path):
    """Many files need no parts; a large one among small ones does."""
    one = np.load(folder / "c.npy")
    np.save(tmp_path / "large.npy", np.concatenate([one] * 10))
    for k in range(30):
        np.save(tmp_path / f"small{k}.npy", one[:200])
    splits = open_rows(sorted(tmp_path.glob("*.npy"))).splits(2, 4)
    assert sum(split.path.endswith("large.npy") for split in splits) == 15
    assert len(splits) == 15 + 30


def test_a_split_is_never_opened_anew_as_the_whole_file(folder, small):
    """Else each split would count all of its rows."""
    rows = open_rows(folder / "wide.parquet", ["x0", "x1", "x2", "x3"], by="user")
    one, *_ = rows.each_split(2, 4)
    assert one.n < rows.n
    with pytest.raises(RuntimeError):
        one.labels_alone()
    with pytest.raises(RuntimeError):
        one.arranged(Columns(["x3", "x2", "x1", "x0"]), 4)
    assert rows.labels_alone().n == rows.n
