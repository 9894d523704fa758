"""Sums by key and rows of users beside one sum of the same rows.

    python bench/bench_groups.py            # two minutes

writes ``bench/results/FAMILY/groups.md``. In turns, one thread, CPU seconds, the least of five;
answers are checked against sums of each group by itself.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import peers

peers.single_thread()

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402

import measure  # noqa: E402
from ellipsum import Ellipsoid, ExactGroupSum, ExactSum  # noqa: E402
from ellipsum.users import UserRows  # noqa: E402
from report import family_folder  # noqa: E402

N, KEYS, MANY = 1_000_000, 20_000, 1_000_000
#: Integers far from one another, so that they are no indices.
FAR = 9_876_543_211


class Case:
    """Rows in random order of keys."""

    def __init__(self, d: int, dtype: str, keys: int = KEYS) -> None:
        rng = np.random.default_rng(d)
        self.rows = rng.normal(size=(N, d)).astype(dtype)
        self.keys = rng.integers(0, keys, N)
        self.text = pa.array([f"store {k}" for k in self.keys.tolist()])
        self.codes = self.text.dictionary_encode()
        self.region = Ellipsoid.ball(float(np.sqrt(d)), d=d)
        self.frame = pd.DataFrame(self.rows)
        columns = {f"x{j}": np.ascontiguousarray(self.rows[:, j]) for j in range(d)}
        self.table = pa.table(columns | {"user": self.keys})

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

    def users(self, keys: object, most: int | None = None) -> int:
        return self.users_of(self.rows, keys, most)

    def users_of(self, data: object, keys: object, most: int | None = None) -> int:
        users = UserRows(data, self.rows.shape[1], keys, most=most)
        return sum(len(batch) for batch in users.batches())

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
    return row(f"| {d} | {dtype}", [case.one, case.indexed, *keyed(case), case.pandas], repeats=5)


def user_line(d: int, dtype: str, people: int) -> str:
    """One row of the table of users."""
    case = Case(d, dtype, people)
    most = [partial(case.users, case.keys, k) for k in (1, 5)]
    means = [partial(case.users, case.keys), partial(case.users, case.text)]

    of_table = partial(case.users_of, case.table, "user")
    grouped = lambda: case.frame.groupby(case.keys).mean()  # noqa: E731
    jobs = [case.one, *means, of_table, *most, grouped]
    return row(f"| {people:,} | {d} | {dtype}", jobs, repeats=5)


def keyed(case: Case) -> list[Callable[[], object]]:
    """The sums by key, from each holder of keys."""
    text = np.array(case.text.to_pylist())
    holders = (case.keys, case.keys * FAR, case.codes, case.text, text, text.astype(object))
    return [lambda keys=keys: case.by(keys) for keys in holders]  # type: ignore[misc]


def row(head: str, jobs: list[Callable[[], object]], repeats: int) -> str:
    """A row of a table: the time of the first, and what the others take over it."""
    one, *others = measure.best(*jobs, repeats=repeats)
    cells = " | ".join(f"{t / one:.1f}" for t in others)
    return f"{head} | {one * 1e3:.1f} ms | {cells} |"


def many() -> list[str]:
    """A million keys: times, and the memory that is allocated, of the table with its keys."""
    case = Case(16, "float32", MANY)
    lines = [row(f"| {MANY:,}", [case.one, *keyed(case)], repeats=2)]
    held = []
    for keys in (case.keys, case.keys * FAR, case.codes, case.text):
        tracemalloc.start()
        table = case.by(keys)
        held.append(f"{tracemalloc.get_traced_memory()[0] / len(table.book) - 8 * 16 - 8:.0f}")
        tracemalloc.stop()
        del table
    return [*lines, f"| bytes a key beside 8 d + 8 | | {' | '.join(held)} | | |"]


def main() -> None:
    lines = [line(d, dtype) for d in (4, 16, 64) for dtype in ("float32", "float64")]
    people = [
        user_line(d, dtype, count)
        for count in (KEYS, 500_000)
        for d in (4, 16, 64)
        for dtype in ("float32", "float64")
    ]
    columns = (
        "by integer key | by integers far apart | by dictionary | by Arrow text | by NumPy text "
        "| by Python's text"
    )
    text = (
        f"{N:,} rows, {KEYS:,} keys; CPU time over that of one sum of the same rows.\n\n"
        f"| d | | one sum | table, by index | {columns} | pandas' `groupby().sum()` |\n"
        f"{'|---' * 11}|\n"
        + "\n".join(lines)
        + f"\n\nd = 16, float32, all of the keys new.\n\n| keys | one sum | {columns} |\n"
        + f"{'|---' * 8}|\n"
        + "\n".join(many())
        + "\n\nRows of users, 1,000,000 in all: their means, or so many of their rows.\n\n"
        "| users | d | | one sum | means | by Arrow text | of an Arrow table | one row of each "
        f"| five rows | pandas' `groupby().mean()` |\n{'|---' * 10}|\n" + "\n".join(people) + "\n"
    )
    (family_folder() / "groups.md").write_text(f"# Groups\n\n{text}\n{measure.machine()}\n")
    print(text)


if __name__ == "__main__":
    main()
