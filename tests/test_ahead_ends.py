"""No thread that reads ahead outlives the call that began it, whatever ends that call."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactSum, PrivateCounts, PrivateGroupMean, PrivateMean, open_rows
from ellipsum.groups.keys import KeyBook
from ellipsum.rows import csv_chunks
from ellipsum.rows.divided import Divided

REGION, BUDGET = Ellipsoid.ball(3.0, d=2), {"epsilon": 1, "delta": 1e-6}
SUM, GROUPS = PrivateMean(REGION, mu=1), PrivateGroupMean(REGION, **BUDGET)
#: Mechanism, columns of numbers and of labels, and what the call names.
JOBS = {
    "sum": (SUM, ["a", "b"], [], {}),
    "users": (PrivateMean(REGION, mu=1, by="u"), ["a", "b"], ["u"], {}),
    "groups": (GROUPS, ["a", "b"], ["g"], {"key": "g"}),
    "users' groups": (GROUPS, ["a", "b"], ["g", "u"], {"key": "g", "user": "u"}),
    "users' counts": (PrivateCounts(**BUDGET), None, ["g", "u"], {"key": "g", "user": "u"}),
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """CSV files, which several threads read, in many chunks."""
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 1 << 11)
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    lines = [f"{x},{y},u{k % 300},g{k % 7}" for k, (x, y) in enumerate(rows)]
    paths = [tmp_path / f"{k}.csv" for k in range(3)]
    for path in paths:
        path.write_text("\n".join(["a,b,u,g", *lines]) + "\n")
    return paths


def readers():
    return [t.name for t in threading.enumerate() if t.name.startswith("ellipsum-read-ahead")]


def fails_after(monkeypatch, kind, name, times):
    """A method that fails when it is called once more than so many times."""
    real, calls = getattr(kind, name), []

    def method(self, *known, **more):
        calls.append(1)
        if len(calls) > times:
            raise RuntimeError("full")
        return real(self, *known, **more)

    monkeypatch.setattr(kind, name, method)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("kind", JOBS)
def test_an_error_leaves_no_thread_while_it_is_held_and_nothing_is_collected(
    files, kind, jobs, monkeypatch
):
    mechanism, columns, labels, named = JOBS[kind]
    for method in [(ExactSum, "add"), (KeyBook, "index"), (Divided, "add")]:
        fails_after(monkeypatch, *method, times=6)
    gc.disable()
    try:
        with pytest.raises(RuntimeError, match="full") as caught:
            mechanism(open_rows(files, columns, by=labels), jobs=jobs, **named)
        assert not readers() and caught.value.__traceback__ is not None
    finally:
        gc.enable()


def test_grouped_rows_of_users_leave_no_thread(files, monkeypatch):
    fails_after(monkeypatch, ExactSum, "add", times=6)
    grouped = PrivateMean(REGION, mu=1, by="u", grouped=True)
    with pytest.raises(RuntimeError, match="full") as caught:
        grouped(open_rows(files, ["a", "b"], by=["u"]))
    assert not readers() and caught.value.__traceback__ is not None


@pytest.mark.parametrize(("jobs", "given_back"), [(1, 3), (2, 6)])
def test_what_row_groups_left_in_the_pool_is_given_back(tmp_path, monkeypatch, jobs, given_back):
    """Of very wide columns and of files read at a time, which are read by row groups: else the
    pages of the next ones came beside those of the last."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from ellipsum.rows import parquet_file

    table = pa.table({f"x{j}": np.ones(300) for j in range(600)})
    for k in range(jobs):
        pq.write_table(table, tmp_path / f"{k}.parquet", row_group_size=50)
    released = []

    class Pool:
        def release_unused(self):
            released.append(1)

    monkeypatch.setattr(pa, "default_memory_pool", Pool)
    monkeypatch.setattr(parquet_file, "RELEASE_BYTES", 2 * 50 * 600 * 8)  # of two row groups
    monkeypatch.setattr(parquet_file, "wide_rows", lambda d, most, group: 50)
    total = PrivateMean(Ellipsoid.ball(30.0, d=600), mu=1)
    total(open_rows([tmp_path / f"{k}.parquet" for k in range(jobs)]), jobs=jobs)
    assert len(released) == given_back
