"""Fixed costs: a row at a time, a mean of few rows, the import, the first result without a core.

    python bench/bench_calls.py             # half a minute
    python bench/bench_calls.py --check     # also fails where a figure is missed

writes ``bench/results/FAMILY/calls.md``. Calls are CPU time of this process, the least of several
rounds; imports the CPU time of processes of their own, whose bytecode is compiled already.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import measure
from ellipsum import Ellipsoid, ExactSum, PrivateMean
from report import Table, family_folder, markdown

D = 16
#: What, in which unit, and the most that it may be.
WANTED = {
    "ExactSum.add of one row of 16": ("µs", 2.0),
    "PrivateMean on 1,000 x 16": ("µs", 100.0),
    "PrivateMean made and called on 1,000 x 16": ("µs", None),
    "a column of an Arrow table of 1,024, 64 rows": ("µs", None),
    "import numpy": ("s", None),
    "import ellipsum": ("s", 0.4),
    "first mean on Numba, nothing compiled": ("s", 5.0),
    "first mean on Numba, compiled before": ("s", None),
    "first region of a covariance on Numba, nothing compiled": ("s", 5.0),
}
FIRST = (
    "import ellipsum, numpy; region = ellipsum.Ellipsoid.ball(4, d=16); "
    "ellipsum.PrivateMean(region, mu=1)(numpy.ones((1000, 16)))"
)
FIRST_REGION = (
    "import ellipsum, numpy; ellipsum.Ellipsoid.for_covariance(numpy.eye(16) + 0.5); "
    "ellipsum.QuadraticForm(numpy.arange(1.0, 17)).isf(1e-9)"
)


def each(job: Callable[[], object], calls: int, rounds: int = 100) -> float:
    """Microseconds of one call, the least of the rounds: many short ones, for slow moments."""

    def several() -> None:
        for _ in range(calls):
            job()

    (seconds,) = measure.best(several, repeats=rounds)
    return 1e6 * seconds / calls


def process(code: str, rounds: int = 5, **more: str) -> float:
    """CPU seconds of a Python that runs the code, the least of several; a first is left out."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | more
    spent = []
    for _ in range(rounds + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent[1:])


def on_numba(*codes: str) -> list[float]:
    """Wall seconds of processes on Numba, one after the other, of which the first compiles."""
    taken = []
    with tempfile.TemporaryDirectory() as cache:
        more = {"ELLIPSUM_BACKEND": "numba", "NUMBA_CACHE_DIR": cache}
        for code in codes:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], env={**os.environ, **more}, check=True)
            taken.append(time.perf_counter() - start)
    return taken


def figures() -> list[float]:
    rows = np.random.default_rng(0).normal(size=(1000, D))
    region = Ellipsoid.ball(4.0, d=D)
    total, mean = ExactSum(region), PrivateMean(region, epsilon=1.0, delta=1e-6)
    wide = ExactSum(Ellipsoid.ball(4.0, d=1024))
    table = pa.table({f"x{j}": rows[:64, j % D].copy() for j in range(wide.ellipsoid.d)})
    made = lambda: PrivateMean(region, epsilon=1.0, delta=1e-6)(rows)  # noqa: E731
    return [
        each(lambda: total.add(rows[:1]), 500),
        each(lambda: mean(rows), 50),
        each(made, 50),
        each(lambda: wide.add(table), 10) / table.num_columns,
        process("import numpy"),
        process("import ellipsum"),
        *on_numba(FIRST, FIRST),
        *on_numba(FIRST_REGION),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check, load = parser.parse_args().check, measure.load()
    table: Table = [
        {"what": what, "takes": taken, "unit": unit, "wanted": "" if most is None else most}
        for (what, (unit, most)), taken in zip(WANTED.items(), figures(), strict=True)
    ]
    text = f"# Calls, {measure.family()}\n\nMachine: {measure.machine()}; load {load}.\n"
    text += f"\n{markdown(table)}"
    print(text)
    (family_folder() / "calls.md").write_text(text)
    missed = [line["what"] for line in table if line["wanted"] and line["takes"] > line["wanted"]]
    if check and missed:
        sys.exit("missed: " + ", ".join(map(str, missed)))


if __name__ == "__main__":
    main()
