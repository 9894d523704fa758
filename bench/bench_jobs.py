"""What a job over files costs beside its rows: checkpoints in time, and growth in memory.

    python bench/bench_jobs.py              # two minutes, 3 GB of files in a temporary folder
    python bench/bench_jobs.py --check      # also fails where a figure is missed

writes ``bench/results/FAMILY/jobs.md``. Time: a mean with ``resume=`` and without, by turns, the
least of several; files are in the system's cache, so that nothing but the checkpoints waits for
the disk. ``of it saving`` is the share of one run with a checkpoint that goes to saving, watched
from inside: CPU of all threads, and what the job waits by the wall clock. Memory: the peak of a
process of its own (``VmHWM``: a child's ``ru_maxrss`` begins at its parent's), for n rows and for
8 n, in row groups, batches and chunks of the same number of rows; of two jobs the largest of three,
since whether both have their largest at once is chance.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import measure
from ellipsum import Checkpoint, PrivateMean, open_rows
from ellipsum.jobs.checkpoint import Job
from report import Table, family_folder, markdown

D = 64
MOST_TIMES, MOST_MIB = 1.05, 32
PLAIN = {"compression": "none", "use_dictionary": False}
#: Rows, coordinates and type of the smaller file; the other has its rows eight times.
SOURCES = {
    "npy": (100_000, D, "f8"),
    "npz": (100_000, D, "f8"),
    "arrows": (100_000, D, "f8"),
    "wide.parquet": (100_000, D, "f8"),
    "wide, d = 1024.parquet": (25_000, 1024, "f4"),
    "lists.parquet": (100_000, D, "f8"),
    "csv": (25_000, D, "f8"),
}


# ---- checkpoints ------------------------------------------------------------------------


def files_of(folder: Path, rows: np.ndarray) -> dict[str, list[Path]]:
    """One ``.npy`` and one wide Parquet, with copies: two gigabytes and one to read."""
    np.save(folder / "0.npy", rows)
    pq.write_table(columns_of(rows), folder / "0.parquet", row_group_size=1 << 17, **PLAIN)
    found: dict[str, list[Path]] = {}
    for kind, times in (("npy", 8), ("parquet", 4)):
        found[kind] = [folder / f"{k}.{kind}" for k in range(times)]
        for path in found[kind][1:]:
            shutil.copyfile(found[kind][0], path)
    os.sync()  # else the first checkpoints would wait for these
    return found


def job_of(paths: list[Path], checkpoint: Path | None, taken: list[list[float]]) -> object:
    """A mean of the files; what it took goes to ``taken``: wall, CPU."""
    mean = PrivateMean(measure.half_clipped(D), mu=1.0)
    if checkpoint is not None:
        Checkpoint(checkpoint).discard()
    start = time.perf_counter(), time.process_time()
    release = mean(open_rows(paths), resume=checkpoint)
    taken.append([time.perf_counter() - start[0], time.process_time() - start[1]])
    return release


class Saving:
    """What saving takes of the runs in it: writes, CPU seconds, and seconds that the job waits.

    A machine with much else to do tells these, too, where it hardly tells two runs apart.
    """

    def __init__(self) -> None:
        self.writes, self.cpu, self.waited = 0, 0.0, 0.0
        self._real = [(Job, "save"), (Job, "save_soon"), (Job, "_write"), (Checkpoint, "inputs")]
        self._real = [(kind, name, getattr(kind, name)) for kind, name in self._real]
        self._write = Checkpoint.write

    def __enter__(self) -> Saving:
        for kind, name, real in self._real:
            setattr(kind, name, self._clocked(real, waits=name != "_write"))
        Checkpoint.write = lambda job, body: (self._count(), self._write(job, body))
        return self

    def __exit__(self, *_error: object) -> None:
        for kind, name, real in self._real:
            setattr(kind, name, real)
        Checkpoint.write = self._write

    def _count(self) -> None:
        self.writes += 1

    def _clocked(self, real: Callable[..., Any], *, waits: bool) -> Callable[..., Any]:
        def call(*arguments: object) -> object:
            wall, cpu = time.perf_counter(), time.thread_time()
            try:
                return real(*arguments)
            finally:
                self.cpu += time.thread_time() - cpu
                self.waited += (time.perf_counter() - wall) * waits

        return call


def checkpoints(rows: np.ndarray, repeats: int) -> Table:
    table: Table = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = folder / "job.ck"
        for kind, paths in files_of(folder, rows).items():
            job_of(paths, kept, [])
            with Saving() as saving:
                job_of(paths, kept, watched := [])
            shares = saving.waited / watched[0][0], saving.cpu / watched[0][1]
            with_one: list[list[float]] = []
            without: list[list[float]] = []
            for k in range(repeats):
                turns = [(kept, with_one), (None, without)]
                for checkpoint, taken in turns if k % 2 else turns[::-1]:
                    job_of(paths, checkpoint, taken)
            pairs = zip(np.array(with_one).T, np.array(without).T, strict=True)
            for what, share, (one, none) in zip(("wall", "CPU"), shares, pairs, strict=True):
                table.append(
                    {
                        "file": kind,
                        "MiB": sum(path.stat().st_size for path in paths) >> 20,
                        "clock": what,
                        "without, s": none.min(),
                        "with, s": one.min(),
                        "times": one.min() / none.min(),
                        "wanted": MOST_TIMES,
                        "median of pairs": float(np.median(one / none)),
                        "writes": saving.writes,
                        "of it saving": share,
                    }
                )
    return table


# ---- memory -----------------------------------------------------------------------------


def columns_of(rows: np.ndarray) -> pa.Table:
    return pa.table({f"x{j}": np.ascontiguousarray(x) for j, x in enumerate(rows.T)})


def lists_of(rows: np.ndarray) -> pa.Table:
    return pa.table({"v": pa.FixedSizeListArray.from_arrays(rows.ravel(), rows.shape[1])})


def write(path: Path, rows: np.ndarray, times: int) -> None:
    """The rows, so many times over."""
    if path.suffix in (".npy", ".npz"):
        whole = np.concatenate([rows] * times)
        np.save(path, whole) if path.suffix == ".npy" else np.savez(path, x=whole)
        return
    table = lists_of(rows) if "lists" in path.name else columns_of(rows)
    if path.suffix == ".parquet":
        writer = pq.ParquetWriter(path, table.schema, **PLAIN)
        add = lambda: writer.write_table(table, row_group_size=len(rows))  # noqa: E731
    elif path.suffix == ".arrows":
        writer = pa.ipc.new_stream(path, table.schema)
        add = lambda: writer.write_table(table, max_chunksize=1 << 14)  # noqa: E731
    else:
        writer = pa.csv.CSVWriter(path, table.schema)
        add = lambda: writer.write_table(table)  # noqa: E731
    with writer:
        for _ in range(times):
            add()


def peak(paths: list[Path], jobs: int) -> float:
    """MiB that a process of its own had at most, while it made a mean of the files."""
    code = (
        "import sys, re, numpy; from pathlib import Path; import ellipsum; "
        "rows = ellipsum.open_rows(sys.argv[2:]); "
        "region = ellipsum.Ellipsoid.ball(rows.d**0.5, d=rows.d); "
        "ellipsum.PrivateMean(region, mu=1)(rows, jobs=int(sys.argv[1])); "
        "print(Path('/proc/self/status').read_text())"
    )
    command = [sys.executable, "-c", code, str(jobs), *map(str, paths)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"VmHWM:\s+(\d+)", text)
    return int(found[1]) / 1024 if found else float("nan")


def memory() -> Table:
    table: Table = []
    for name, (n, d, dtype) in SOURCES.items():
        rows = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
        with tempfile.TemporaryDirectory() as folder:
            found: dict[int, list[Path]] = {}
            for times in (1, 8):
                path = Path(folder) / f"{times}.{name}"
                write(path, rows, times)
                found[times] = [path]
            table.append(growth(name, n, d, dtype, {k: peak(p, 1) for k, p in found.items()}))
            if "parquet" not in name:
                continue
            for paths in found.values():
                shutil.copyfile(paths[0], second := paths[0].with_name("again " + paths[0].name))
                paths.append(second)
            peaks = {k: max(peak(p, 2) for _ in range(3)) for k, p in found.items()}
            table.append(growth(f"{name}, two files, jobs=2", 2 * n, d, dtype, peaks))
    return table


def growth(name: str, n: int, d: int, dtype: str, peaks: dict[int, float]) -> dict[str, object]:
    return {
        "source": name,
        "n": n,
        "d": d,
        "type": dtype,
        "n rows, MiB": peaks[1],
        "8 n rows, MiB": peaks[8],
        "growth, MiB": peaks[8] - peaks[1],
        "wanted": MOST_MIB,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", choices=("checkpoints", "memory"))
    options = parser.parse_args()
    pa.set_cpu_count(os.cpu_count() or 1)  # `report` has told every library to take one thread
    text = f"# Jobs, {measure.family()}\n\nMachine: {measure.machine()}; load {measure.load()}.\n"
    missed: list[str] = []
    if options.only != "memory":
        rows = np.random.default_rng(0).standard_normal((500_000, D))
        table = checkpoints(rows, options.repeats)
        text += f"\nA checkpoint at most every 64 MiB:\n\n{markdown(table)}"
        missed += [f"{x['file']}, {x['clock']}" for x in table if x["times"] > MOST_TIMES]
    if options.only != "checkpoints":
        table = memory()
        text += f"\nPeak memory of a process:\n\n{markdown(table)}"
        missed += [str(x["source"]) for x in table if not x["growth, MiB"] <= MOST_MIB]
    print(text)
    if options.only is None:
        (family_folder() / "jobs.md").write_text(text)
    if options.check and missed:
        sys.exit("missed: " + "; ".join(missed))


if __name__ == "__main__":
    main()
