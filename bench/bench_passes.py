"""Passes of the several-step mean beside reading alone and beside the same in NumPy.

    python bench/bench_passes.py            # about three minutes; --quick: half a one, rougher
    python bench/bench_passes.py --factors  # sums of low rank beside a matrix's, printed alone

writes ``bench/results/passes.md``. All in one run and in turns, one thread; answers are checked.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import peers

peers.single_thread()

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

import measure  # noqa: E402
from ellipsum import Ellipsoid, ExactSum, LowRankScale, PrivateMean  # noqa: E402
from ellipsum.adaptive.domain import Frame  # noqa: E402
from ellipsum.adaptive.passes import Passes  # noqa: E402
from report import DTYPES, RESULTS, Table, markdown  # noqa: E402

DS = (1, 2, 4, 8, 16, 64, 128, 1024, 16384)
MATRIX_DS = (4, 16, 128, 512)
NUMPY_MEGABYTES = 32  # it is slow, and its speed does not depend on the size
BINS = 24


class Case:
    """Gaussian rows about 0, a region that clips half of them, and edges about its radius."""

    def __init__(self, d: int, dtype: str, megabytes: int, axes: np.ndarray | None = None) -> None:
        self.d, self.rows, self.axes = d, measure.rows_of(d, dtype, megabytes), axes
        self.region = measure.half_clipped(d)
        step = 1 / self.region.grid
        self.radius = self.region.clip_norm * step
        self.edges = self.radius * 2.0 ** ((np.arange(BINS) - 16) / 4)
        matrix = Ellipsoid(self.region.center, axes.T, np.sqrt(d)) if axes is not None else None
        self.frame = Frame(*(matrix or self.region).kernel_arguments()[:3])

    def halves(self, rows: np.ndarray) -> np.ndarray:
        return Passes(rows, self.d).halves(self.frame, self.radius)

    def distances(self, rows: np.ndarray) -> np.ndarray:
        return Passes(rows, self.d).histogram(self.frame, self.edges)

    def local(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Blocks of 4 MiB, as doubles, moved and turned."""
        for start in range(0, len(rows), step := max(1, (1 << 19) // self.d)):
            block = rows[start : start + step].astype(np.float64) - self.region.center
            yield block if self.axes is None else block @ self.axes

    def numpy_halves(self, rows: np.ndarray) -> np.ndarray:
        total = ExactSum(Ellipsoid.ball(self.region.clip_norm, d=2 * self.d))
        for x in self.local(rows):
            total.add(np.hstack([np.maximum(x, 0), np.maximum(-x, 0)]))
        return total.integers() * int(total.ellipsoid.grid / self.region.grid)

    def numpy_distances(self, rows: np.ndarray) -> np.ndarray:
        counts, edges = np.zeros(BINS, np.int64), self.edges * self.region.grid
        for x in self.local(rows):
            norm = np.sqrt(np.einsum("ij,ij->i", x, x))
            counts += np.bincount(np.searchsorted(edges[:-1], norm), minlength=BINS)
        return counts

    def check(self) -> None:
        rows = self.rows[:10_000]
        apart = self.halves(rows) - self.numpy_halves(rows)
        assert np.abs(apart.astype(float)).max() <= len(rows) * (1 + self.radius * 2.0**-22)
        assert np.abs(self.distances(rows) - self.numpy_distances(rows)).sum() <= len(rows) // 1000

    def line(self, repeats: int) -> dict[str, object]:
        """GB/s of each, and its ratio to reading alone or to NumPy."""
        self.check()
        few = self.rows[: max(1, (NUMPY_MEGABYTES << 20) // self.rows[0].nbytes)]
        read, halves, distances = measure.best(
            partial(measure.read_alone, self.rows),
            partial(self.halves, self.rows),
            partial(self.distances, self.rows),
            repeats=repeats,
        )
        slow = measure.best(
            partial(self.numpy_halves, few), partial(self.numpy_distances, few), repeats=3
        )
        size = self.rows.nbytes / 1e9
        line: dict[str, object] = {"dtype": str(self.rows.dtype), "d": self.d, "read": size / read}
        for name, ours, theirs in zip(
            ("halves", "distances"), (halves, distances), slow, strict=True
        ):
            line |= {name: size / ours, f"{name} / read": read / ours}
            line[f"{name} / NumPy"] = size / ours / (few.nbytes / 1e9 / theirs)
        print(line, flush=True)
        return line


def plans(megabytes: int, repeats: int) -> Table:
    """A whole private mean from a box, against reading its rows once for each of its passes; of an
    array, and of a pandas frame of the same numbers."""
    table: Table = []
    for dtype in DTYPES:
        for d in (4, 16, 128, 1024):
            rows = measure.rows_of(d, dtype, megabytes)
            mean = PrivateMean(
                lower=np.full(d, -50.0), upper=np.full(d, 50.0), epsilon=1.0, delta=1e-6
            )
            passes = mean.plan(len(rows)).passes
            frame = pd.DataFrame(rows, columns=[f"x{j}" for j in range(d)])
            read, ours, framed = measure.best(
                partial(measure.read_alone, rows),
                partial(mean, rows, seed=1),
                partial(mean, frame, seed=1),
                repeats=repeats,
            )
            table.append(
                {
                    "dtype": dtype,
                    "d": d,
                    "rows": len(rows),
                    "passes": passes,
                    "seconds": ours,
                    "GB/s of all passes": passes * rows.nbytes / 1e9 / ours,
                    "ratio": passes * read / ours,
                    "frame / array": framed / ours,
                }
            )
            print(table[-1], flush=True)
    return table


def summed(region: Ellipsoid, rows: np.ndarray) -> ExactSum:
    return ExactSum(region).add(rows)


def factors(repeats: int) -> Table:
    """Sums of low rank beside a diagonal: how much faster than a matrix, and slower than none."""
    table: Table = []
    for dtype in DTYPES:
        for d in (256, 1024):
            rng, center, radius = np.random.default_rng(d), np.full(d, 0.01), float(np.sqrt(d))
            parts = rng.standard_normal((2, d, 16)) / np.sqrt(d)
            low = [LowRankScale(np.ones(d), *parts[:, :, :rank]) for rank in (4, 16)]
            scales = [low[1].matrix(), np.ones(d), *low]
            matrix, plain, *low = (Ellipsoid(center, scale, radius) for scale in scales)
            few, many = (measure.rows_of(d, dtype, megabytes) for megabytes in (8, 64))
            apart = summed(matrix, few[:99]).integers() - summed(low[1], few[:99]).integers()
            assert np.abs(apart.astype(float)).max() <= 99 * (1 + radius / matrix.grid * 2.0**-22)
            slow, *quick = measure.best(
                *(partial(summed, region, few) for region in (matrix, *low)), repeats=repeats
            )
            fast, *others = measure.best(
                *(partial(summed, region, many) for region in (plain, *low)), repeats=repeats
            )
            line: dict[str, object] = {"dtype": dtype, "d": d}
            for rank, one, other in zip((4, 16), quick, others, strict=True):
                line |= {f"rank {rank}: matrix's time / its": slow / one}
                line |= {f"rank {rank}: its / diagonal's": other / fast}
            table.append(line)
            print(line, flush=True)
    return table


def turned(d: int, dtype: str, megabytes: int) -> Case:
    return Case(d, dtype, megabytes, np.linalg.qr(measure.rows_of(d, "float64", 8)[:d])[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--factors", action="store_true")
    arguments = parser.parse_args()
    quick = arguments.quick
    if arguments.factors:
        with threadpool_limits(1):
            print(markdown(factors(3 if quick else 7)))
        return
    megabytes, repeats = (64, 3) if quick else (512, 5)
    with threadpool_limits(1):
        tables = {
            "One pass, GB/s and ratios": [
                Case(d, dtype, megabytes).line(repeats) for dtype in DTYPES for d in DS
            ],
            "One pass with a covariance": [
                turned(d, dtype, 64).line(repeats) for dtype in DTYPES for d in MATRIX_DS
            ],
            "A whole plan, against reading once a pass": plans(megabytes, repeats),
        }
    text = [f"Machine: {measure.machine()}.\n"]
    text += [f"\n## {title}\n\n{markdown(table)}" for title, table in tables.items()]
    Path(RESULTS / "passes.md").write_text("".join(text))


if __name__ == "__main__":
    main()
