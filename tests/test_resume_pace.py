"""How often a checkpoint is written: no more than the disk has time for."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from ellipsum import Checkpoint, ExactSum
from ellipsum.jobs.checkpoint import Job
from killed_jobs import check, make_files, release


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_slow_disk_takes_a_fortieth_of_the_time(memory_path, monkeypatch, jobs):
    """A write takes a second, and a block of rows another: 40 of them between two writes."""
    folder = memory_path
    rows = make_files(folder)
    clock, when, lock = [0.0], [], threading.Lock()
    write, add, soon, writes = Checkpoint.write, ExactSum.add, Job.save_soon, threading.Lock()

    def passes():
        with lock:
            clock[0] += 1
            return clock[0]

    def slow(self, body):
        when.append(passes())
        write(self, body)

    def adds(self, batch):
        with writes:
            passes()
        return add(self, batch)

    def waits(self):
        with writes:  # no time passes but the write's own
            soon(self)
            self.wait()

    monkeypatch.setattr("ellipsum.jobs.checkpoint.REST", 40)
    monkeypatch.setattr("ellipsum.jobs.checkpoint.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("ellipsum.rows.parquet_file.PART_BYTES", 1 << 9)
    monkeypatch.setattr(Checkpoint, "write", slow)
    monkeypatch.setattr(ExactSum, "add", adds)
    monkeypatch.setattr(Job, "save_soon", waits)
    release(folder, "sum", jobs)
    first, *between, last = when
    gaps = np.diff([first, *between])
    assert len(between) >= 1 and (gaps >= 40).all() and last > between[-1]
    release(folder, "sum", 1)
    check(folder, "sum", rows)
