"""Dask: the same bytes for any chunks, trees, schedulers, and after a worker was killed."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from doc_pages import ROOT, run_page

dask = pytest.importorskip("dask", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="Dask's arrays are not installed")

import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet  # noqa: E402

from ellipsum import CheckpointError, PrivateCounts, PrivateMean, open_rows  # noqa: E402
from ellipsum.engines.dask import DaskRows, exact_sum  # noqa: E402
from ellipsum.engines.engine_rows import EngineError  # noqa: E402
from ellipsum.far_users import UserTask  # noqa: E402
from engine_cases import (  # noqa: E402
    REGION,
    D,
    assert_resumes,
    assert_same_groups,
    assert_same_groups_of_users,
    assert_same_passes,
    assert_same_releases,
    assert_same_users,
    labelled_table,
    odd_rows,
    want,
    withheld,
)

COLUMNS = ["a", "b", "c"]


def test_every_pass_gives_the_same_integers_as_one_array():
    rows = odd_rows()
    assert_same_passes(DaskRows(da.from_array(rows, chunks=(700, D))), rows)
    assert_same_releases(DaskRows(da.from_array(rows, chunks=(700, D))), rows)


@pytest.mark.parametrize("chunks", [(4000, 3), (1, 3), (64, 1), ((0, 1000, 3000), (1, 2))])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_chunks_and_schedulers_change_no_byte(chunks, scheduler):
    rows = odd_rows(np.float32)[: 4000 if chunks[0] != 1 else 300]
    with dask.config.set(scheduler=scheduler):
        assert exact_sum(da.from_array(rows, chunks=chunks), REGION).to_bytes() == want(rows)


def test_chunks_of_unknown_lengths():
    rows = odd_rows()
    array = da.from_array(rows, chunks=(700, D))
    kept = array[da.isfinite(array[:, 1])]
    total = exact_sum(kept, REGION)
    assert total.to_bytes() == want(rows[np.isfinite(rows[:, 1])])


def test_files_folders_of_them_and_delayed_blocks(tmp_path):
    rows = odd_rows()
    for k, part in enumerate(np.array_split(rows, 5)):
        table = pa.table(dict(zip(COLUMNS, part.T, strict=True)))
        pa.parquet.write_table(table, tmp_path / f"{k}.parquet")
    paths = sorted(tmp_path.glob("*.parquet"))
    with dask.config.set(scheduler="processes", num_workers=2):
        assert exact_sum(paths, REGION).to_bytes() == want(rows)
        opened = open_rows(paths, ["c", "a", "b"])
        assert exact_sum(opened, REGION).to_bytes() == want(rows[:, [2, 0, 1]])
    blocks = [dask.delayed(lambda part: part)(part) for part in np.array_split(rows, 40)]
    assert_same_passes(DaskRows(blocks, d=D), rows)
    with pytest.raises(ValueError, match="give d="):
        DaskRows(blocks).count_rows()


def test_frames():
    dd = pytest.importorskip("dask.dataframe", reason="Dask's frames are not installed")
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    rows = odd_rows()
    frame = dd.from_pandas(pd.DataFrame(rows, columns=COLUMNS), npartitions=6)
    assert exact_sum(frame, REGION).to_bytes() == want(rows)
    total = exact_sum(frame, REGION, columns=["c", "a", "b"])
    assert total.to_bytes() == want(rows[:, [2, 0, 1]])
    with pytest.raises(TypeError, match="'name'"):
        exact_sum(frame.assign(name="x"), REGION, columns=["a", "b", "name"])


def test_a_killed_worker_changes_no_byte(tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed")
    rows, mark = odd_rows(), tmp_path / "killed"

    def block(part, k):
        if k == 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return part

    blocks = [dask.delayed(block)(part, k) for k, part in enumerate(np.array_split(rows, 8))]
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**settings, silence_logs=50) as cluster:
        with distributed.Client(cluster):
            assert exact_sum(blocks, REGION).to_bytes() == want(rows)
    assert mark.exists()


def test_an_error_of_a_job_quotes_nothing():
    def fail(_):
        raise ValueError("could not convert '4711.5'")

    with pytest.raises(EngineError) as caught:
        exact_sum([dask.delayed(fail)(0)], REGION)
    assert withheld(caught.value, "4711.5")


def test_what_is_no_rows_is_refused():
    with pytest.raises(ValueError, match="two dimensions"):
        DaskRows(da.zeros(5))
    with pytest.raises(TypeError, match="numeric"):
        DaskRows(da.from_array(np.array([["a"]])))
    with pytest.raises(ValueError, match="4"):
        exact_sum(da.zeros((5, 4)), REGION)
    with pytest.raises(TypeError, match="Dask array"):
        DaskRows(odd_rows())


def labelled(users):
    """What makes a Dask frame of five partitions of some columns, and the table as it is here."""
    pytest.importorskip("dask.dataframe", reason="Dask's frames are not installed")
    table = labelled_table(users)
    frame = table.to_pandas()
    if users == "integer":  # pandas makes doubles of integers beside a null, and rounds them
        frame["user"] = pd.array(table["user"].to_pylist(), dtype="Int64")
    frame = dask.dataframe.from_pandas(frame, npartitions=5)
    return table, lambda columns, by: DaskRows(frame, columns, by=by)


def test_groups_have_the_bytes_of_one_table():
    table, make = labelled("text")
    assert_same_groups(make, table)


@pytest.mark.parametrize("users", ["integer", "uuid", "double"])
def test_groups_of_users_have_the_bytes_of_one_table(users):
    table, make = labelled(users)
    with dask.config.set(scheduler="synchronous"):
        assert_same_groups_of_users(make, table)


def test_users_have_the_bits_of_one_table():
    table, make = labelled("text")
    assert_same_users(make, table)


def test_users_of_files_and_of_delayed_tables(tmp_path):
    table = labelled_table("integer").drop_columns("store")
    for k in range(4):
        pa.parquet.write_table(table.slice(400 * k, 400), tmp_path / f"{k}.parquet")
    mean = PrivateMean(REGION, mu=1, by="user")
    here = mean(table, seed=1)
    files = sorted(tmp_path.glob("*.parquet"))
    parts = [dask.delayed(table.slice)(k, 500) for k in range(0, 1500, 500)]
    for rows in (
        DaskRows(files, by="user"),
        DaskRows(open_rows(files, by="user")),
        DaskRows(parts, by="user"),
    ):
        with dask.config.set(scheduler="processes"):
            assert (mean(rows, seed=1).integers == here.integers).all()
            assert rows.count_rows() == len(table)
    counts = PrivateCounts(edges=[-1.0, 0.0, 3.0], mu=1.0)
    far = counts(DaskRows(files, ["b"], by="user"), user="user", seed=2)
    assert (far.sizes == counts(table, key="b", user="user", seed=2).sizes).all()


def test_jobs_go_on(tmp_path):
    pytest.importorskip("dask.dataframe", reason="Dask's frames are not installed")

    def make(table, columns, by):
        frame = dask.dataframe.from_pandas(table.to_pandas(), npartitions=3)
        return DaskRows(frame, columns, by=by)

    with dask.config.set(scheduler="synchronous"):
        assert_resumes(make, labelled_table("text"), tmp_path)


def test_files_of_a_job_are_known_and_chunks_are_counted_without_a_pass(tmp_path, monkeypatch):
    rows = odd_rows()
    for k, part in enumerate(np.array_split(rows, 3)):
        table = pa.table(dict(zip(COLUMNS, part.T, strict=True)))
        pa.parquet.write_table(table, tmp_path / f"{k}.parquet")
    files, mean = sorted(tmp_path.glob("*.parquet")), PrivateMean(REGION, mu=1.0)
    first = mean(DaskRows(files), resume=tmp_path / ".files")
    arrays = mean(DaskRows(da.from_array(rows, chunks=(900, D))), resume=tmp_path / ".array")
    monkeypatch.setattr(DaskRows, "gather", None)
    assert (mean(DaskRows(files), resume=tmp_path / ".files").integers == first.integers).all()
    again = mean(DaskRows(da.from_array(rows, chunks=(70, D))), resume=tmp_path / ".array")
    assert (again.integers == arrays.integers).all()
    single = da.from_array(rows.astype(np.float32), chunks=(900, D))
    with pytest.raises(CheckpointError, match=r"rows of DaskRows .* changed"):
        mean(DaskRows(single), resume=tmp_path / ".array")
    os.utime(files[1], (1, 1))
    with pytest.raises(CheckpointError, match=r"1\.parquet changed"):
        mean(DaskRows(files), resume=tmp_path / ".files")
    with pytest.raises(CheckpointError, match="would be read as rows"):
        mean(DaskRows(str(tmp_path)), resume=tmp_path / "job.parquet")


def test_labels_that_cannot_be_read_are_named():
    frame = dask.dataframe.from_pandas(pd.DataFrame({"a": [1.0], "gone": [True]}), npartitions=1)
    with pytest.raises(TypeError, match="'gone' must be integers, text or bytes"):
        DaskRows(frame, ["a"], by="gone")
    with pytest.raises(TypeError, match="an array has no columns"):
        DaskRows(da.ones((4, 3)), by="user")


def test_the_guide_prints_what_it_shows():
    for wrong in run_page(ROOT / "docs/guides/engines/dask.md"):
        pytest.fail(f"line {wrong.block.line} shows\n{wrong.shown}\nbut prints\n{wrong.printed}")


def test_users_have_a_bucket_a_core_on_one_machine_and_more_of_them_on_a_cluster(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed")
    table, asked, split = labelled_table("integer").drop_columns("store"), [], UserTask.split
    parts = [dask.delayed(table.slice)(k, 100) for k in range(0, 1000, 100)]
    mean = PrivateMean(REGION, mu=1, by="user")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(
        UserTask, "split", lambda task, data, n: asked.append(n) or split(task, data, n)
    )
    with dask.config.set(scheduler="sync"):
        alone = mean(DaskRows(parts, by="user"), seed=1)
    assert set(asked) == {3}
    asked.clear()
    with distributed.Client(processes=False, n_workers=1, dashboard_address=None):
        together = mean(DaskRows(parts, by="user"), seed=1)
    assert set(asked) == {10}
    assert (alone.integers == together.integers).all()
