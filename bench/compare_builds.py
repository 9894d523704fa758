"""The clip kernels of two checkouts side by side: a process each, passes by turns.

    python bench/compare_builds.py OLD/python NEW/python
    python bench/compare_builds.py OLD/python NEW/python --backend numba --d 16 128
    python bench/compare_builds.py OLD/python NEW/python --columns --tasks ball --megabytes 128
    python bench/compare_builds.py OLD/python NEW/python --holes 0.3 --megabytes 64 --target avx512
    python bench/compare_builds.py OLD/python NEW/python --columns --holes 0.02 --ignore
    python bench/compare_builds.py OLD/python NEW/python --cells 2 --tasks ball --megabytes 64

Prints the least time of NEW over that of OLD for each shape, type and d; the passes alternate, so
that what else the machine does meets both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np

TASKS = ("ball", "box", "halves", "distances", "matrix")
DS = (2, 4, 8, 16, 64, 128, 1024, 16384)
#: One scale, a power of two as of Ellipsoid.ball; that around 0; or a scale of each coordinate.
FORMS = ("ball", "ball-at-0", "ellipsoid")
RADIUS = 2.0**23
NONE = np.empty(0)


def pass_of(
    backend,
    task: str,
    form: str,
    dtype: str,
    d: int,
    megabytes: float,
    order: str,
    holes: float,
    stretch: bool,
    cells: float,
):
    """A call without arguments that clips and adds Gaussian rows, half of them outside.

    ``order``: "C" for rows that lie in rows, "F" in columns. ``holes``: the share of cells that are
    NaN; ``stretch``: norms are of the present ones. ``cells``: so far from the centre they are
    moved, if not 0. ``dtype``: of integers, or several joined by +, of columns in turn.
    """
    types = dtype.split("+")
    n = max(int(megabytes * 2**20) // np.dtype(types[0]).itemsize // d, 8)
    rows = np.random.default_rng(0).standard_normal((n, d))
    if holes:
        rows[np.random.default_rng(1).random((n, d)) < holes] = np.nan
    if len(types) == 1 and (order == "C" or "float" in dtype):
        rows = rows.astype(dtype, order=order)
    else:
        columns = [column.astype(types[j % len(types)]) for j, column in enumerate(3 * rows.T)]
        rows = SimpleNamespace(n=n, columns=columns, valid=[None] * d, first_bits=[0] * d)
    center, scale = np.linspace(-0.01, 0.01, d), np.full(d, RADIUS / np.sqrt(d))
    if form == "ball-at-0":
        center[:] = 0
    if form == "ellipsoid":
        scale *= np.linspace(0.8, 1.2, d)
    else:
        scale[:] = 2.0 ** np.rint(np.log2(scale))
    matrix = np.diag(scale).astype(np.float32).astype(float).ravel() if task == "matrix" else NONE
    limit = scale.copy() if task == "box" else NONE
    shape = center, NONE if task == "matrix" else scale, matrix
    box = {"lower": center - cells, "upper": center + cells} if cells else {}
    if task == "distances":
        edges, counts = RADIUS * 2.0 ** (np.arange(24) - 12), np.zeros(24, np.int64)
        return lambda: backend.distance_counts(rows, *shape, edges, counts, stretch=stretch, **box)
    partial = np.zeros(2 * d if task == "halves" else d, np.int64)
    halves = task == "halves"
    arguments = *shape, limit, RADIUS, partial, 1, halves
    return lambda: backend.clip_sum(rows, *arguments, stretch=stretch, **box)


def work() -> None:
    """Answer each line, the arguments of a pass and how many ``passes``: the least time."""
    from ellipsum.kernels.backend import kernels

    known: dict[str, object] = {}
    for line in sys.stdin:
        case = json.loads(line)
        passes = case.pop("passes")
        if case != known:
            known, call = case, pass_of(kernels(), **case)
            call()
        least = float("inf")
        for _ in range(passes):
            start = time.perf_counter()
            call()
            least = min(least, time.perf_counter() - start)
        print(least, flush=True)


def start(package: str, backend: str, target: str) -> subprocess.Popen:
    environment = os.environ | {
        "PYTHONPATH": package,
        "ELLIPSUM_BACKEND": backend,
        "ELLIPSUM_CPU": target,
    }
    command = [sys.executable, __file__, "--worker", "-", "-"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)


def ask(worker: subprocess.Popen, case: dict[str, object], passes: int) -> float:
    worker.stdin.write(json.dumps(case | {"passes": passes}) + "\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs=2)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--backend", default="cpp")
    parser.add_argument("--target", default="", help="instruction set of both")
    parser.add_argument("--d", type=int, nargs="+", default=DS)
    parser.add_argument("--megabytes", type=float, default=0.25)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--form", choices=FORMS, default=FORMS[0])
    parser.add_argument("--types", nargs="+", default=("float32", "float64"), help="int64+float32")
    parser.add_argument("--columns", action="store_true", help="rows that lie in columns")
    parser.add_argument("--holes", type=float, default=0.0, help="share of cells that are NaN")
    parser.add_argument("--ignore", action="store_true", help="norms are of the present cells")
    parser.add_argument("--cells", type=float, default=0.0, help="half of the box they move into")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--passes", type=int, default=10)
    options = parser.parse_args()
    if options.worker:
        return work()
    workers = [start(p, options.backend, options.target) for p in options.packages]
    for dtype in options.types:
        for d in options.d:
            for task in options.tasks:
                if task == "matrix" and d > 128:
                    continue
                case = {
                    "task": task,
                    "form": options.form,
                    "dtype": dtype,
                    "d": d,
                    "megabytes": options.megabytes,
                    "order": "F" if options.columns else "C",
                    "holes": options.holes,
                    "stretch": options.ignore,
                    "cells": options.cells,
                }
                least = [float("inf")] * 2
                for turn in range(options.turns):
                    for k in (turn % 2, 1 - turn % 2):
                        least[k] = min(least[k], ask(workers[k], case, options.passes))
                print(f"{dtype} d={d:<6} {task:<10} {least[1] / least[0]:.3f}", flush=True)
    for worker in workers:
        worker.stdin.close()
        worker.wait()


if __name__ == "__main__":
    main()
