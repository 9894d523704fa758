"""How many rows of a Parquet file are decoded at once, and what that takes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactSum, open_rows
from ellipsum.jobs.resumable import sum_of_files
from ellipsum.rows.parquet_file import wide_rows

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize(("d", "n", "most"), [(64, 300_000, 60e6), (1000, 24_000, 160e6)])
def test_wide_columns_share_what_is_read_ahead_and_decoded_at_once(tmp_path, d, n, most):
    """What Arrow takes: a small buffer for every column, and two batches."""
    column = pa.array(np.ones(n, np.float32))
    table = pa.table([column] * d, names=[f"x{j}" for j in range(d)])
    plain = {"compression": "none", "use_dictionary": False}
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=n, **plain)
    code = (
        "import sys, pyarrow, ellipsum.rows.files as f\n"
        "assert sum(len(b) for b in f.open_rows(sys.argv[1]).kernel_batches(int(sys.argv[2])))\n"
        "print(pyarrow.default_memory_pool().max_memory())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x.parquet"), str(d)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(run.stdout) < most


@pytest.mark.parametrize(
    ("d", "mib"), [(0, 32), (1, 32), (64, 32), (512, 32), (1024, 32), (2048, 64), (9999, 64)]
)
def test_rows_decoded_at_once_are_enough_for_every_column(d, mib):
    size = wide_rows(d, 64 << 20)
    assert size == (mib << 20) // (8 * (d or 8))
    assert size >= 4096 or mib == 64
    assert wide_rows(d, 1) == 1


@pytest.mark.parametrize("d", [1, 64, 2048])
@pytest.mark.parametrize("group", [0, 1, 7, 50_000, 1 << 20, 9_999_991])
def test_row_groups_are_decoded_whole_or_in_equal_parts(d, group):
    most = wide_rows(d, 64 << 20)
    size = wide_rows(d, 64 << 20, group)
    assert 1 <= size <= most
    if group <= most:
        assert size % max(group, 1) == 0 and size > most / 2
    else:
        parts = -(-group // size)
        assert parts == -(-group // most) and parts * size - group < parts


@pytest.mark.parametrize("lost", [0, 3, 7])
def test_rows_that_a_file_has_lost_are_no_smaller_sum(tmp_path, monkeypatch, lost):
    """A damaged file may still be read, with fewer rows than it tells of."""
    table = pa.table({"a": np.arange(40.0), "b": np.ones(40)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=10)
    given = pq.ParquetFile.iter_batches
    fewer = lambda *a, **kw: (b.slice(lost) for b in given(*a, **kw))  # noqa: E731
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", fewer)
    rows, total = open_rows(tmp_path / "x.parquet"), ExactSum(Ellipsoid.ball(9.0, d=2))
    ways = (lambda: list(rows), lambda: sum_of_files(rows, total, None, jobs=1))
    for read in ways:
        if not lost:
            read()
            continue
        with pytest.raises(OSError, match=r"x\.parquet is truncated or damaged: write it again$"):
            read()
