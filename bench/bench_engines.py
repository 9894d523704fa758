"""An engine's job over the engine's own transfer of the same rows, in turns: median of the ratios.

    python bench/bench_engines.py [spark|beam|dask ...] [--rows 400000] [--repeats 5]

writes ``bench/results/FAMILY/engines.md``. Transfer: the same source, partitions and batches,
which are counted and not added up. Of users: rows of 10,000 users, each of which becomes one row
behind the engine's shuffle; its transfer is without one, unless it says so.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import measure
from ellipsum import Ellipsoid, PrivateMean, open_rows
from report import family_folder, markdown

D, FILES = 64, 4
REGION = Ellipsoid.ball(8.0, d=D)
USERS = PrivateMean(REGION, mu=1.0, by="user", neighbors="add-remove")
BOX = {"lower": [-20.0] * D, "upper": [20.0] * D, "mu": 1.0}


def write(folder: Path, rows: int) -> None:
    """Parquet files with a column of FixedSizeList of float32, and one of users."""
    rng = np.random.default_rng(0)
    for k in range(FILES):
        block = rng.standard_normal((rows // FILES, D), dtype=np.float32)
        column = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), D)
        table = pa.table({"v": column, "user": rng.integers(0, 10_000, rows // FILES)})
        pa.parquet.write_table(table, folder / f"{k}.parquet", row_group_size=1 << 14)


def count_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Spark's transfer alone."""
    seen = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"n": [seen]})


def spark(folder: Path) -> dict[str, tuple[Callable[[], Any], Callable[[], Any], int]]:
    """Jobs, the transfer, and how many transfers a job has."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    from ellipsum.engines.spark import SparkRows, exact_sum

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    both = session.read.parquet(str(folder))
    frame = both.select("v")

    def transfer() -> Any:
        return frame.mapInArrow(count_batches, "n long").collect()

    def transfer_both() -> Any:
        return both.mapInArrow(count_batches, "n long").collect()

    def shuffle() -> Any:
        return both.repartition("user").mapInArrow(count_batches, "n long").collect()

    def of_users() -> Any:
        return USERS(SparkRows(both, ["v"], by="user"))

    plan = PrivateMean(**BOX)
    passes = plan.plan(frame.count()).passes
    return {
        "spark sum": (lambda: exact_sum(frame, REGION), transfer, 1),
        "spark plan": (lambda: plan(SparkRows(frame)), transfer, passes),
        "spark users": (of_users, transfer_both, 1),
        "spark users, over Spark's own shuffle": (of_users, shuffle, 1),
    }


def beam(folder: Path) -> dict[str, tuple[Callable[[], Any], Callable[[], Any], int]]:
    """As :func:`spark`."""
    import apache_beam

    from ellipsum.engines.beam import SumRows

    def run(step: Any) -> None:
        with apache_beam.Pipeline(runner="FnApiRunner") as pipeline:
            read = apache_beam.io.ReadFromParquetBatched(str(folder / "*.parquet"), columns=["v"])
            _ = pipeline | read | step()

    class Count(apache_beam.PTransform):
        def expand(self, tables: Any) -> Any:
            rows = tables | apache_beam.Map(lambda table: table.num_rows)
            return rows | apache_beam.CombineGlobally(sum)

    return {"beam sum": (lambda: run(lambda: SumRows(REGION)), lambda: run(Count), 1)}


def dask(folder: Path) -> dict[str, tuple[Callable[[], Any], Callable[[], Any], int]]:
    """As :func:`spark`."""
    import dask as engine

    from ellipsum.engines.dask import DaskRows, exact_sum

    files = sorted(folder.glob("*.parquet"))
    rows, both = open_rows(files, ["v"]), open_rows(files, ["v"], by="user")
    engine.config.set(scheduler="processes", num_workers=2)

    def count(file: Any) -> int:
        blocks = (b for b, _ in file.labelled(D)) if file.by else file.batches(D)
        return sum(len(block) for block in blocks)

    def transfer(of: Any) -> Any:
        return engine.compute(*(engine.delayed(count)(file) for file in of.each_file()))

    return {
        "dask sum": (lambda: exact_sum(rows, REGION), lambda: transfer(rows), 1),
        "dask users": (lambda: USERS(DaskRows(both)), lambda: transfer(both), 1),
    }


def measured(
    job: Callable[[], Any], transfer: Callable[[], Any], times: int, repeats: int
) -> dict[str, object]:
    """Median and range of job / (times x transfer), each pair in turns, after a first one."""
    ratios, seconds = [], []
    for k in range(repeats + 1):
        start = time.perf_counter()
        transfer()
        middle = time.perf_counter()
        job()
        end = time.perf_counter()
        if k:
            ratios.append((end - middle) / (times * (middle - start)))
            seconds.append(end - middle)
    return {
        "transfers": times,
        "job / transfers": statistics.median(ratios),
        "least": min(ratios),
        "most": max(ratios),
        "seconds": statistics.median(seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", default=["spark", "beam", "dask"])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    before, table = measure.load(), []
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), chosen.rows)
        for name in chosen.engines:
            jobs = {"spark": spark, "beam": beam, "dask": dask}[name](Path(folder))
            for label, (job, transfer, times) in jobs.items():
                table.append({"job": label, **measured(job, transfer, times, chosen.repeats)})
                print(table[-1], flush=True)
    command = f"python bench/bench_engines.py {' '.join(chosen.engines)} --rows {chosen.rows}"
    title = f"# Engines, {measure.family()}, load {before} before and {measure.load()} after"
    made = f"Machine: {measure.machine()}. Made by `{command} --repeats {chosen.repeats}`."
    text = f"{title}\n\n{made}\n\n{markdown(table)}"
    (family_folder() / "engines.md").write_text(text)


if __name__ == "__main__":
    main()
