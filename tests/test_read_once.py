"""Memory that changes while a kernel reads it: what a row adds is that of one reading.

The C++ kernels are compiled, so their test steps through their readings
(tests/cpp/test_read_once.cpp). Here: the Numba twins as plain Python, each of whose readings is
told what it sees; and every backend compiled, beside a thread that writes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numba import njit

from ellipsum.kernels import twins

CHANGING = r"""
import itertools, math
import numpy as np
from ellipsum.kernels.twins import clip

NONE = np.empty(0)
VALUES = [0.3, 30.0, 1e300, math.inf, -math.inf, math.nan]


class Row:
    def __init__(self, numbers, seen):
        self.numbers, self.seen, self.size = numbers, seen, len(numbers)
        self.readings = 0

    def __getitem__(self, j):
        if j != self.size - 1:
            return self.numbers[j]
        self.readings += 1
        return self.seen[min(self.readings, len(self.seen)) - 1]


class Rows:
    def __init__(self, row):
        self.row, self.shape = row, (1, row.size)

    def __getitem__(self, i):
        return self.row


def results(d, task, matrix, seen, stretch):
    center, limit = np.full(d, 0.25), np.full(d, 2.0**20) if task == "box" else None
    scale = NONE if matrix == "matrix" else np.full(d, 2.0**22)
    columns = np.eye(d) * 2.0**22 + 2.0**10 if matrix else None
    if matrix == "low-rank":
        columns = np.full((2, d), 0.5)
    row = Row([0.5] * d, seen)
    sums = np.zeros({"halves": 2 * d, "distances": 4}.get(task, d), np.int64)
    absent = np.zeros(d, np.int64)
    if task == "distances":
        edges = np.array([2.0**40, 2.0**46, 2.0**60])
        to = edges, stretch, sums, absent, *clip._scratch(d)
        counts = clip._distance_counts(Rows(row), center, scale, columns, *to)
    else:
        shape = center, scale, columns, limit, 2.0**23 + 0.5, stretch
        to = sums.reshape(1, -1), np.zeros(1, np.int64), absent, *clip._scratch(d)
        counts = clip._clip_sum(Rows(row), None, *shape, *to)
    return (sums.tobytes(), absent.tobytes(), counts), sums, row.readings


passes = most = 0
for d, task, matrix, stretch in itertools.product(
    (1, 3, 9), ("ball", "box", "halves", "distances"), ("", "matrix", "low-rank"), (False, True)
):
    if matrix and task == "box":
        continue
    single = {v: results(d, task, matrix, [v], stretch) for v in VALUES}
    for seen in itertools.product(VALUES, repeat=3):
        result, sums, readings = results(d, task, matrix, seen, stretch)
        assert result in [single[v][0] for v in seen], (d, task, matrix, stretch, seen)
        norm = math.sqrt(sum(int(q) ** 2 for q in sums))
        assert task == "distances" or norm <= 2.0**23 + 1 + math.sqrt(d) / 2
        passes, most = passes + 1, max(most, readings)
print(passes, most)
"""


def test_the_twins_add_what_one_reading_says():
    """Every sequence of three out of six kinds of number, at successive readings of one place."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", "-c", CHANGING]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    passes, most = map(int, done.stdout.split())
    assert passes == 60 * 6**3 and most == 1  # what is exceptional is seen in the copy


@njit(nogil=True)
def write_by_turns(place, values, stop):
    k = 0
    while stop[0] == 0:
        place[0] = values[k % values.size]
        k += 1
        stop[1] = k


def backends():
    yield "numba", twins, ""
    try:
        from ellipsum.kernels import _core
    except ImportError:
        return
    for target in _core.targets():
        yield target, _core, target


def one_row(backend, task, row):
    d = row.size
    center, scale = np.full(d, 0.25), np.full(d, 2.0**22)
    matrix = np.diag(scale).ravel() if task == "matrix" else np.empty(0)
    scale = np.empty(0) if task == "matrix" else scale
    if task == "low-rank":
        matrix = np.full((2, d, 1), 0.5)
    limit = np.full(d, 2.0**20) if task == "box" else np.empty(0)
    sums = np.zeros(2 * d if task == "halves" else d, np.int64)
    arguments = row[None], center, scale, matrix, limit, 2.0**23 + 0.5, sums, 1, task == "halves"
    backend.clip_sum(*arguments)
    if task == "box":
        assert np.abs(sums).max() <= 2**20
    return float(np.linalg.norm(sums.astype(float)))


@pytest.mark.parametrize("name, backend, target", list(backends()))
@pytest.mark.parametrize("task", ["ball", "box", "halves", "matrix", "low-rank"])
def test_a_second_writer_moves_no_row_past_the_bound(task, name, backend, target):
    before = backend.choose_target("") if target else ""
    if target:
        backend.choose_target(target)
    values = np.array([np.nan, 0.5, 1e300, 30.0, np.inf, -30.0])
    try:
        for d in (1, 5, 40):
            row, stop = np.full(d, 0.5), np.zeros(2, np.int64)
            job = threading.Thread(target=write_by_turns, args=(row[-1:], values, stop))
            job.start()
            try:
                while stop[1] == 0:  # it is compiled first
                    time.sleep(0.001)
                worst = max(one_row(backend, task, row) for _ in range(1500))
            finally:
                stop[0] = 1
                job.join()
            assert worst <= 2.0**23 + 1 + np.sqrt(d) / 2
    finally:
        if target:
            backend.choose_target(before)
