"""Sums by key and rows of users beside one sum of the same rows.

    python bench/bench_groups.py            # about half a minute

writes ``bench/results/groups.md``. In turns, one thread, CPU seconds, the least of five; answers
are checked against sums of each group by itself.
"""

from __future__ import annotations

from pathlib import Path

import peers

peers.single_thread()

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402

import measure  # noqa: E402
from ellipsum import Ellipsoid, ExactGroupSum, ExactSum  # noqa: E402
from ellipsum.users import UserRows  # noqa: E402
from report import RESULTS  # noqa: E402

N, KEYS = 1_000_000, 20_000


class Case:
    """Rows in random order of keys."""

    def __init__(self, d: int, dtype: str) -> None:
        rng = np.random.default_rng(d)
        self.rows = rng.normal(size=(N, d)).astype(dtype)
        self.keys = rng.integers(0, KEYS, N)
        self.text = pa.array([f"store {k}" for k in self.keys.tolist()])
        self.codes = self.text.dictionary_encode()
        self.region = Ellipsoid.ball(float(np.sqrt(d)), d=d)
        self.frame = pd.DataFrame(self.rows)

    def one(self) -> ExactSum:
        return ExactSum(self.region).add(self.rows)

    def indexed(self) -> ExactGroupSum:
        table = ExactGroupSum(self.region, range(KEYS))
        table.add_indexed(self.rows, self.keys)
        return table

    def by(self, keys: object) -> ExactGroupSum:
        return ExactGroupSum(self.region).add(self.rows, keys)

    def pandas(self) -> object:
        return self.frame.groupby(self.keys).sum()

    def users(self, grouped: bool) -> int:
        order = np.argsort(self.keys) if grouped else slice(None)
        rows, keys = self.rows[order], self.keys[order]
        return sum(len(b) for b in UserRows(rows, rows.shape[1], keys, grouped=grouped).batches())

    def check(self) -> None:
        table = self.indexed()
        assert sum(table.integers()).tolist() == self.one().integers().tolist()
        for key in (0, 7, KEYS - 1):
            alone = ExactSum(self.region).add(self.rows[self.keys == key])
            assert (table.integers()[key] == alone.integers()).all()


def line(d: int, dtype: str) -> str:
    """One row of the table."""
    case = Case(d, dtype)
    case.check()
    jobs = [
        case.one,
        case.indexed,
        lambda: case.by(case.keys),
        lambda: case.by(case.codes),
        lambda: case.by(case.text),
        case.pandas,
        lambda: case.users(False),
    ]
    one, *others = measure.best(*jobs, repeats=5)
    cells = " | ".join(f"{t / one:.1f}" for t in others)
    return f"| {d} | {dtype} | {one * 1e3:.1f} ms | {cells} |"


def main() -> None:
    lines = [line(d, dtype) for d in (4, 16, 64) for dtype in ("float32", "float64")]
    head = (
        f"{N:,} rows, {KEYS:,} keys; CPU time over that of one sum of the same rows.\n\n"
        "| d | | one sum | table, by index | by integer key | by dictionary | by text "
        "| pandas' `groupby().sum()` | one row a user |\n|---|---|---|---|---|---|---|---|---|\n"
    )
    text = head + "\n".join(lines) + "\n"
    Path(RESULTS / "groups.md").write_text(f"# Groups\n\n{text}\n{measure.machine()}\n")
    print(text)


if __name__ == "__main__":
    main()
