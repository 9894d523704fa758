"""How long n rows take: measured as far as they fit, on paper to 64 cores and ten nodes.

    python bench/scale.py            # about two minutes on an idle machine
    python bench/scale.py driver     # half a minute: 10,000 results of parts at the driver

write ``bench/results/FAMILY/scale.md`` and ``driver.md``. The second adds 10,000 results of parts
at one driver; through 100 merges of 100 each, whose time is one merge's beside the driver's own
(they are on other machines); and with every result delivered twice, as by retries. All give the
same bits. It takes CPU time, of one thread: other work on the machine adds to it, but little.

The first: float32 rows in blocks of 64 MB that are summed again and
again (larger than the last cache); by the wall clock, so an idle machine is needed. A time with
``~`` is n over the rate of the largest sum that was measured; the others were taken. *On paper*:
cores add up until a node's memory is full (``--memory``, GB/s of a node, an assumption), a node's
parts are added where all of them arrive, by one core.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import peers

peers.single_thread()

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

import measure  # noqa: E402
from ellipsum import ExactSum, Parts  # noqa: E402
from report import Table, family_folder, markdown  # noqa: E402

DS = (2, 16, 128, 1024, 10_000, 100_000)
NS = tuple(10.0**k for k in range(5, 11))
BLOCK, PARTS = 64, 100
#: Results at one driver, different ones among them, and those of one merge.
MANY, KINDS, WIDTH = 10_000, 16, 100
#: The paper machines: name, nodes, cores of each.
MACHINES = (("1 core", 1, 1), ("2 cores", 1, 2), ("64 cores", 1, 64), ("10 nodes", 10, 64))


def seconds_of(n: int, d: int, threads: int) -> float:
    """Wall seconds of one sum of n rows."""
    block = measure.rows_of(d, "float32", BLOCK)
    total = ExactSum(measure.half_clipped(d), threads=threads)
    start = time.perf_counter()
    for done in range(0, n, len(block)):
        total.add(block[: n - done])
    seconds = time.perf_counter() - start
    assert total.count == n
    return seconds


def settle(d: int) -> None:
    """Until it is measured which kernel is fastest: of rows of 100,000 coordinates that is 2 GB."""
    block = measure.rows_of(d, "float32", BLOCK)
    for _ in range(64):
        ExactSum(measure.half_clipped(d)).add(block)


def measured(largest: float) -> tuple[Table, dict[tuple[int, int], float]]:
    """Seconds against n and d, and the rates in GB/s, by (d, threads)."""
    table: Table = []
    rates: dict[tuple[int, int], float] = {}
    for d in DS:
        settle(d)
        for threads in (1, 2):
            few = 4 * len(measure.rows_of(d, "float32", BLOCK))
            seconds = min(seconds_of(few, d, threads) for _ in range(3))
            rates[d, threads] = 4e-9 * few * d / seconds
            line: dict[str, object] = {"d": d, "threads": threads}
            for n in NS:
                if n * d <= largest:
                    seconds = min(seconds_of(int(n), d, threads) for _ in range(2))
                    rates[d, threads] = 4e-9 * n * d / seconds
                    line[f"n = {n:.0e}"] = f"{seconds:.2g}"
                else:
                    line[f"n = {n:.0e}"] = f"~{4e-9 * n * d / rates[d, threads]:.2g}"
            table.append(line | {"GB/s": rates[d, threads]})
            print(table[-1], flush=True)
    return table, rates


def decoded(d: int) -> float:
    """GB/s of one core that decodes Parquet of lists, uncompressed and in the system's cache."""
    rows = measure.rows_of(d, "float32", 2 * BLOCK)
    lists = pa.FixedSizeListArray.from_arrays(rows.ravel(), d)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(pa.table({"v": lists}), path, compression="none", use_dictionary=False)

        def read() -> None:
            for _ in pq.ParquetFile(path).iter_batches(use_threads=False):
                pass

        (seconds,) = measure.best(read, repeats=3, clock=time.perf_counter)
    return rows.nbytes / 1e9 / seconds


def merged(d: int) -> tuple[float, int]:
    """(seconds to check and add one part, its bytes)."""
    region, rows = measure.half_clipped(d), measure.rows_of(d, "float32", 1)
    arriving = [ExactSum(region).add(rows).partial() for _ in range(PARTS)]

    def job() -> None:
        parts = Parts(region)
        for k, part in enumerate(arriving):
            parts.add(str(k), part)
        parts.total()

    (seconds,) = measure.best(job, repeats=3, clock=time.perf_counter)
    return seconds / PARTS, len(arriving[0])


def at_the_driver(d: int) -> dict[str, object]:
    """CPU seconds to check and add ``MANY`` results, alone and behind a level of merges."""
    region, rows = measure.half_clipped(d), measure.rows_of(d, "float32", 1)
    step = max(1, len(rows) // KINDS)
    kinds = [ExactSum(region).add(rows[k * step : (k + 1) * step]).partial() for k in range(KINDS)]
    arriving = {f"part {k}": bytes(kinds[k % KINDS]) for k in range(MANY)}
    found: list[bytes] = []

    def added(parts: dict[str, bytes], times: int = 1) -> float:
        start = time.process_time()
        total = Parts(region, names=parts)
        for _ in range(times):
            for name, part in parts.items():
                total.add(name, part)
        found.append(bytes(total.total().partial()))
        return time.process_time() - start

    def tree() -> tuple[float, float]:
        """The slowest of the merges, and the driver's."""
        names, merged, slowest = list(arriving), {}, 0.0
        for k in range(0, MANY, WIDTH):
            group = {name: arriving[name] for name in names[k : k + WIDTH]}
            slowest = max(slowest, added(group))
            merged[f"merge {k}"] = found.pop()
        return slowest, added(merged)

    alone = min(added(arriving) for _ in range(3))
    merge, driver = min((tree() for _ in range(3)), key=sum)
    twice = min(added(arriving, times=2) for _ in range(3))
    assert len(found) == 9 and len(set(found)) == 1, "the bits are those of one driver, once"
    return {
        "d": d, "a result, bytes": len(kinds[0]), "all, MB": 1e-6 * MANY * len(kinds[0]),
        "driver alone, CPU s": alone, "one merge, CPU s": merge,
        "driver behind merges, CPU s": driver,
        "each result twice, CPU s": twice,
    }  # fmt: skip


def write_driver() -> None:
    """``driver.md`` of this family."""
    load = measure.load()
    table = [at_the_driver(d) for d in (64, 1024)]
    text = (
        f"# {MANY:,} results at the driver, {measure.family()}\n\nMachine: {measure.machine()}; "
        f"load {load}. Made by `python bench/scale.py driver`, whose head says what the columns "
        f"mean; merges of {WIDTH}.\n\n{markdown(table)}"
    )
    (family_folder() / "driver.md").write_text(text)
    print(text)


def on_paper(rates: dict[tuple[int, int], float], memory: float, parts: int) -> Table:
    """Seconds for 1e10 rows, and what bounds them; ``parts`` of them for each core."""
    table: Table = []
    for d in (16, 1024):
        decode, (merge, size) = decoded(d), merged(d)
        for name, nodes, cores in MACHINES:
            size_gb = 4e-9 * 1e10 * d
            kernel = nodes * min(cores * rates[d, 1], memory)
            # a row that is decoded is written, then read: three times the traffic
            one = 1 / (1 / decode + 1 / rates[d, 1])
            files = nodes * min(cores * one, memory / 3)
            arriving = nodes * cores * parts * merge if nodes * cores > 1 else 0.0
            bound = "memory" if cores * rates[d, 1] > memory else "kernel"
            bound_files = "memory" if cores * one > memory / 3 else "decoding"
            table.append({
                "d": d, "machine": name, "rows in memory, s": size_gb / kernel, "bound by": bound,
                "Parquet, s": size_gb / files, "bound by ": bound_files,
                "adding the parts, s": arriving, "a part, bytes": size,
                "all parts, MB": 1e-6 * size * nodes * cores * parts if arriving else 0.0,
            })  # fmt: skip
            print(table[-1], flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=float, default=3e9, help="most numbers that are summed")
    parser.add_argument("--memory", type=float, default=200.0, help="GB/s of a node, on paper")
    parser.add_argument("--parts", type=int, default=16, help="parts of each core, on paper")
    parser.add_argument("what", nargs="?", choices=("driver",), help="results at a driver alone")
    options = parser.parse_args()
    if options.what == "driver":
        write_driver()
        return
    load = measure.load()
    table, rates = measured(options.largest)
    paper = on_paper(rates, options.memory, options.parts)
    family = measure.family()
    text = (
        f"# Scale, {family}\n\nMachine: {measure.machine()}; load {load}. Made by "
        "`python bench/scale.py`, whose head says what the columns mean.\n\n"
        f"## Seconds for n rows, float32\n\n{markdown(table)}\n"
        f"## 1e10 rows, on paper\n\nA node's memory: {options.memory:g} GB/s; "
        f"{options.parts} parts of each core.\n\n{markdown(paper)}"
    )
    (family_folder() / "scale.md").write_text(text)


if __name__ == "__main__":
    main()
