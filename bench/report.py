"""What clipping and adding take on this machine, by one command:

    python bench/report.py            # from four minutes on; --alone: its own tables, one
    python bench/report.py --check    # also fails where a ratio is missed

prints and writes into ``bench/results/FAMILY``, a folder for each family of processors:
``clip_sum.md``, ``.json`` and the pictures, and then, each bench in a process of its own, layouts
and arrangements, files, groups, calls and jobs.
Every figure is the least of several repeats, taken in turns with what it is compared to.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import peers

peers.single_thread()

import numpy as np  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

import measure  # noqa: E402
import pictures  # noqa: E402
from ellipsum import Ellipsoid, ExactSum  # noqa: E402
from ellipsum.kernels.backend import kernels  # noqa: E402

RESULTS = Path(__file__).parent / "results"
DTYPES = ("float32", "float64")
DS = (1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 1024, 4096, 16384)
PEER_DS = (16, 128, 1024)
MATRIX_DS = (128, 512)
WANTED = {**dict.fromkeys((1, 2, 3, 4, 8), 0.3), 16: 0.5}  # 0.75 for the other d
#: Benches with tables of their own, and whether they can fail where a ratio is missed.
OTHERS = {
    "bench_layouts.py": True,
    "bench_files.py": True,
    "bench_groups.py": False,
    "bench_calls.py": True,
    "bench_jobs.py": True,
}
Table = list[dict[str, object]]


def family_folder() -> Path:
    """Where this processor's family has its tables."""
    found = RESULTS / measure.family().lower().replace(" ", "-")
    found.mkdir(parents=True, exist_ok=True)
    return found


def add(rows: np.ndarray, ellipsoid: Ellipsoid, threads: int = 1) -> ExactSum:
    total = ExactSum(ellipsoid, threads=threads)
    total.add(rows)
    return total


def roofline(megabytes: int, repeats: int) -> Table:
    table: Table = []
    for dtype in DTYPES:
        for d in DS:
            rows, ellipsoid = measure.rows_of(d, dtype, megabytes), measure.half_clipped(d)
            own = measure.half_clipped_ellipsoid(d)
            read, one, axes = measure.best(
                partial(measure.read_alone, rows),
                partial(add, rows, ellipsoid),
                partial(add, rows, own),
                repeats=repeats,
            )
            alone, pair = measure.best(
                partial(add, rows, ellipsoid),
                partial(add, rows, ellipsoid, 2),
                repeats=repeats,
                clock=time.perf_counter,
            )
            size = rows.nbytes / 1e9
            table.append({"dtype": dtype, "d": d, "read GB/s": size / read, "GB/s": size / one,
                          "ratio": read / one, "own axes": read / axes,
                          "wanted": WANTED.get(d, 0.75),
                          "2 threads / 1": alone / pair})  # fmt: skip
            print(table[-1], flush=True)
    return table


def side_by_side(megabytes: int, repeats: int) -> Table:
    table: Table = []
    for d in PEER_DS:
        ellipsoid = measure.half_clipped(d)
        shape = ellipsoid.center, ellipsoid.scale, ellipsoid.clip_norm
        for name, peer in {"ellipsum": None, **peers.PEERS}.items():
            rows = measure.rows_of(d, "float32", megabytes)[: peers.SMALL.get(name, 1 << 40) // d]
            job = partial(peer, rows, *shape) if peer else partial(add, rows, ellipsoid)
            read, seconds = measure.best(
                partial(measure.read_alone, rows), job, repeats=min(repeats, 3)
            )
            table.append({"d": d, "who": name, "GB/s": rows.nbytes / seconds / 1e9,
                          "ratio": read / seconds})  # fmt: skip
            print(table[-1], flush=True)
    return table


def matrix(repeats: int) -> Table:
    table: Table = []
    for dtype in DTYPES:
        for d in MATRIX_DS:
            n = int(4e9 / (2 * d * d))
            rows = measure.rows_of(d, dtype)[:n]
            ellipsoid = Ellipsoid(np.zeros(d), np.eye(d) + 0.1 / d, 1.0)
            factor = np.asarray(ellipsoid.scale, dtype).T.copy()
            with threadpool_limits(1):
                blas, ours = measure.best(
                    partial(np.matmul, rows, factor), partial(add, rows, ellipsoid),
                    repeats=repeats,
                )  # fmt: skip
            flops = 2 * len(rows) * d * d / 1e9
            table.append({"dtype": dtype, "d": d, "BLAS Gflop/s": flops / blas,
                          "Gflop/s": flops / ours, "ratio": blas / ours})  # fmt: skip
            print(table[-1], flush=True)
    return table


def growth(largest: float) -> Table:
    """Seconds and resident memory of one ExactSum fed n numbers (rows of 64, float32)."""
    table: Table = []
    d, block = 64, measure.rows_of(64, "float32")
    ellipsoid = measure.half_clipped(d)
    add(block, ellipsoid)
    for numbers in (n for n in 10.0 ** np.arange(3, 12) if n <= largest):
        n = max(1, int(numbers) // d)
        total, start = ExactSum(ellipsoid), time.process_time()
        for done in range(0, n, len(block)):
            total.add(block[: n - done])
        seconds = time.process_time() - start
        assert total.count == n
        table.append({"numbers": n * d, "seconds": seconds, "ns per number": seconds / n / d * 1e9,
                      "resident MB": measure.resident_megabytes()})  # fmt: skip
        print(table[-1], flush=True)
    return table


def noise(repeats: int, n: int = 1 << 22) -> Table:
    """Nanoseconds per sample on one thread: ours on each instruction set, and NumPy's; into a new
    array, whose pages the system has to find, and into one that is in the cache."""
    from ellipsum.noise import fill_rounded, rounded_gaussian

    key, generator, few = bytes(32), np.random.default_rng(0), n >> 2
    numbers, integers, sigma = np.empty(few), np.empty(few, np.int64), np.full(1, 2.0**27)
    jobs = (
        partial(generator.standard_normal, n),
        partial(generator.standard_normal, out=numbers),
        partial(rounded_gaussian, n, sigma, key=key),
        partial(fill_rounded, integers, sigma, key, 0, 1),
    )

    def line(who: str, *of_both: Callable[[], object]) -> dict[str, object]:
        fresh, used = measure.best(*of_both, repeats=repeats)
        return {"who": who, "ns": fresh / n * 1e9, "ns, array in use": used / few * 1e9}

    table: Table = [line("NumPy ziggurat, PCG64 (not secure)", *jobs[:2])]
    core = kernels()
    for target in core.targets() if hasattr(core, "targets") else []:
        core.choose_target(target)
        table.append(line(f"ellipsum, {target}", *jobs[2:]))
        print(table[-1], flush=True)
    if hasattr(core, "choose_target"):
        core.choose_target("")
    return table


def markdown(table: Table) -> str:
    def cell(value: object) -> str:
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    lines = [list(table[0]), ["---"] * len(table[0]), *([*map(cell, r.values())] for r in table)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def write(path: Path, head: str, tables: dict[str, Table]) -> None:
    """A page of tables, each under its title, into a file and to standard output."""
    text = f"# {head}\n"
    text += "".join(f"\n## {title}\n\n{markdown(table)}" for title, table in tables.items())
    path.write_text(text)
    print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="rougher, and alone")
    parser.add_argument("--alone", action="store_true", help="this bench's own tables")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    quick = options.quick
    megabytes, repeats = (64, 5) if quick else (512, 7)
    tables = {
        "Speed against reading alone": roofline(megabytes, repeats),
        "Matrix shape against BLAS": matrix(repeats),
        "Noise": noise(repeats),
        "Peers, float32": side_by_side(64, 3),
        "Growth": growth(1e9 if quick else 1e10),
    }
    head = f"{measure.family()}\n\nMachine: {measure.machine()}."
    write(family_folder() / "clip_sum.md", head, tables)
    (family_folder() / "clip_sum.json").write_text(json.dumps(tables, indent=1))
    pictures.draw(tables, family_folder())
    missed = [
        f"{line['dtype']} d = {line['d']}: {line[which]:.2f} of reading ({which})"
        for line in tables["Speed against reading alone"]
        for which in ("ratio", "own axes")
        if line[which] < line["wanted"]
    ]
    missed += [] if quick or options.alone else others(options.check)
    if options.check and missed:
        sys.exit("missed: " + "; ".join(missed))


def others(check: bool) -> list[str]:
    """Run the other benches; those that failed, whose output says why."""
    failed = []
    for name, can_fail in OTHERS.items():
        command = [sys.executable, str(Path(__file__).with_name(name))]
        if subprocess.run(command + ["--check"] * (check and can_fail)).returncode:
            failed.append(name)
    return failed


if __name__ == "__main__":
    main()
