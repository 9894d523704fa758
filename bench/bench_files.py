"""Sums over files against their readers alone, and columns against rows.

    python bench/bench_files.py             # about a minute, 1.1 GB of files in a temporary folder
    python bench/bench_files.py --check     # also fails where a ratio is missed

writes ``bench/results/FAMILY/files.md``. Wall clock, the least of several repeats, taken in turns;
files are in the system's cache. Every sum is checked against that of the rows in memory.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import measure
from ellipsum import Ellipsoid, ExactSum, open_rows
from ellipsum.jobs.resumable import sum_of_files
from report import Table, family_folder, markdown

D = 64
#: What a reader alone hands over at a time, and reads ahead of a column: as the package's own.
BATCH_BYTES, BUFFER_BYTES = 16 << 20, 128 << 10
LISTS = 4

#: (what, against what): the most that the ratio of their times may be.
WANTED = {
    ("wide Parquet", "iter_batches alone"): 1.15,
    ("wide Parquet", "its row groups alone"): 1.15,
    ("wide Parquet, 2 jobs", "its row groups alone"): 1.15,
    ("wide Parquet, 2 jobs", "wide Parquet"): 1.05,
    ("lists, 2 jobs", "lists, 1 job"): 0.65,
    ("one file of lists, 2 jobs", "one file of lists, 1 job"): 0.65,
    (".npy, Fortran order", ".npy, C order"): 1.5,
    ("CSV", "pyarrow.csv alone"): 1.15,
    ("Fortran array", "rows in memory"): 1.5,
    ("Arrow table", "Fortran array"): 1.1,
    ("Arrow table of two types", "Fortran array"): 1.5,
    ("Arrow table with nulls", "rows with holes"): 1.5,
}


def write_files(folder: Path, rows: np.ndarray) -> None:
    """The same rows in every format; nothing is compressed, so that decoding is what is timed."""
    plain = {"compression": "none", "use_dictionary": False, "row_group_size": len(rows) // 8}
    pq.write_table(columns_of(rows), folder / "wide.parquet", **plain)
    for k in range(LISTS):
        lists = pa.FixedSizeListArray.from_arrays(rows[k::LISTS].ravel(), D)
        pq.write_table(pa.table({"v": lists}), folder / f"list{k}.parquet", **plain)
    lists = pa.FixedSizeListArray.from_arrays(rows.ravel(), D)
    pq.write_table(pa.table({"v": lists}), folder / "lists.parquet", **plain)
    np.save(folder / "c.npy", rows)
    np.save(folder / "f.npy", np.asfortranarray(rows))
    pa.csv.write_csv(columns_of(rows[: len(rows) // 8]), folder / "x.csv")


def holes_of(n: int, j: int) -> np.ndarray:
    """Where column j has no number: one cell in a thousand."""
    return np.arange(n) % 1000 == j


def with_holes(rows: np.ndarray) -> np.ndarray:
    rows = rows.copy()
    for j in range(rows.shape[1]):
        rows[holes_of(len(rows), j), j] = np.nan
    return rows


def columns_of(rows: np.ndarray, kinds: tuple[str, ...] = ("f8",), nulls: bool = False) -> pa.Table:
    """The rows as a table of types in turn, with nulls or without."""
    arrays = []
    for j, column in enumerate(rows.T):
        numbers = np.ascontiguousarray(column, dtype=kinds[j % len(kinds)])
        arrays.append(pa.array(numbers, mask=holes_of(len(rows), j) if nulls else None))
    return pa.table(arrays, names=[f"x{j}" for j in range(rows.shape[1])])


def read_batches(paths: list[Path]) -> None:
    for path in paths:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
            for _ in file.iter_batches(BATCH_BYTES // (8 * D)):
                pass


def read_as_it_comes(path: Path) -> None:
    """As most would: pyarrow's defaults."""
    with pq.ParquetFile(path) as file:
        for _ in file.iter_batches():
            pass


def read_groups(path: Path) -> None:
    """In the batches that the sum takes: a row group each."""
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
        for group in range(file.num_row_groups):
            for _ in file.iter_batches(file.metadata.num_rows, row_groups=[group]):
                pass


def total_of(paths: list[Path], region: Ellipsoid, jobs: int = 1) -> bytes:
    return sum_of_files(open_rows(paths), ExactSum(region), None, jobs=jobs).to_bytes()


def added(data: object, region: Ellipsoid) -> bytes:
    return ExactSum(region).add(data).to_bytes()


def jobs_of(folder: Path, rows: np.ndarray) -> dict[str, Callable[[], object]]:
    region = measure.half_clipped(D)
    wide, lists = [folder / "wide.parquet"], [folder / f"list{k}.parquet" for k in range(LISTS)]
    one = [folder / "lists.parquet"]
    mixed, holes = columns_of(rows, ("f8", "f4")), columns_of(rows, nulls=True)
    wanted = added(rows, region)
    for paths in (wide, lists, one, [folder / "c.npy"], [folder / "f.npy"]):
        assert total_of(paths, region) == total_of(paths, region, 2) == wanted
    assert added(columns_of(rows), region) == wanted
    assert added(holes, region) == added(with_holes(rows), region)
    assert total_of([folder / "x.csv"], region) == added(rows[: len(rows) // 8], region)
    return {
        "iter_batches alone": partial(read_as_it_comes, wide[0]),
        "its row groups alone": partial(read_groups, wide[0]),
        "wide Parquet": partial(total_of, wide, region),
        "wide Parquet, 2 jobs": partial(total_of, wide, region, 2),
        "lists, iter_batches alone": partial(read_batches, lists),
        "lists, 1 job": partial(total_of, lists, region),
        "lists, 2 jobs": partial(total_of, lists, region, 2),
        "one file of lists, 1 job": partial(total_of, one, region),
        "one file of lists, 2 jobs": partial(total_of, one, region, 2),
        ".npy, C order": partial(total_of, [folder / "c.npy"], region),
        ".npy, Fortran order": partial(total_of, [folder / "f.npy"], region),
        "pyarrow.csv alone": partial(pa.csv.read_csv, folder / "x.csv"),
        "CSV": partial(total_of, [folder / "x.csv"], region),
        "rows in memory": partial(added, rows, region),
        "rows with holes": partial(added, with_holes(rows), region),
        "Fortran array": partial(added, np.asfortranarray(rows), region),
        "Arrow table": partial(added, columns_of(rows), region),
        "Arrow table of two types": partial(added, mixed, region),
        "Arrow table with nulls": partial(added, holes, region),
    }


def ratios(seconds: dict[str, float]) -> Table:
    return [
        {"what": what, "against": other, "times": seconds[what] / seconds[other], "wanted": most}
        for (what, other), most in WANTED.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=400_000)
    options = parser.parse_args()
    pa.set_cpu_count(os.cpu_count() or 1)  # `report` has told every library to take one thread
    rows = np.random.default_rng(0).standard_normal((options.rows, D))
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name), rows)
        jobs = jobs_of(Path(name), rows)
        load = measure.load()
        least = measure.best(*jobs.values(), repeats=options.repeats, clock=time.perf_counter)
    seconds = dict(zip(jobs, least, strict=True))
    table = ratios(seconds)
    times: Table = [{"what": what, "ms": 1e3 * s} for what, s in seconds.items()]
    text = f"# Files, {measure.family()}\n\nMachine: {measure.machine()}; load {load}.\n"
    text += f"{options.rows} rows of {D} float64 (CSV: an eighth of them).\n"
    text += f"\n{markdown(table)}\n{markdown(times)}"
    print(text)
    (family_folder() / "files.md").write_text(text)
    missed = [line for line in table if line["times"] > line["wanted"]]
    if options.check and missed:
        sys.exit("\n".join(f"{m['what']}: {m['times']:.2f} of {m['against']}" for m in missed))


if __name__ == "__main__":
    main()
