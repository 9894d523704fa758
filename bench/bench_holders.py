"""The same numbers in every container and type: what each costs beside an array of float64.

    python bench/bench_holders.py            # about a minute

writes ``bench/results/FAMILY/holders.md``. One thread, CPU seconds, the least of seven, in turns
with the array of its table; answers are checked against that of its numbers as float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain

import peers

peers.single_thread()

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import polars as pl  # noqa: E402
import pyarrow as pa  # noqa: E402

import measure  # noqa: E402
from ellipsum import Ellipsoid, ExactSum  # noqa: E402
from report import family_folder, markdown  # noqa: E402

SIZES = ((400_000, 16), (100_000, 64), (10_000, 16), (100, 1000))
TYPES = ["f8", "f4", "i8", "i4", "i1", "u8", "?"]
REPEATS = 7


def numbers_of(n: int, d: int) -> np.ndarray:
    """Small whole numbers, which every type can hold."""
    return np.random.default_rng(d).integers(0, 2, (n, d))


def holders(numbers: np.ndarray) -> Iterator[tuple[str, str, object]]:
    """Container, type, and the numbers in it."""
    names = [f"x{j}" for j in range(numbers.shape[1])]
    for dtype in TYPES:
        rows = numbers.astype(dtype)
        name = str(rows.dtype)
        yield "array, C order", name, rows
        yield "array, Fortran order", name, np.asfortranarray(rows)
        yield "pandas", name, pd.DataFrame(rows, columns=names)
        table = pa.table([np.ascontiguousarray(c) for c in rows.T], names=names)
        yield "Arrow", name, table
        yield "Polars", name, pl.from_arrow(table)
    mixed = {x: numbers[:, j].astype(["f8", "i8", "f4", "?"][j % 4]) for j, x in enumerate(names)}
    for name, data in [("of four types", mixed), ("of four types, by Arrow", pa.table(mixed))]:
        yield (
            "pandas" if data is mixed else "Arrow",
            name,
            (pd.DataFrame(data) if data is mixed else data),
        )
    nullable = pd.DataFrame(numbers.astype("i8"), columns=names).astype("Int64")
    yield "pandas", "Int64", nullable
    holed = np.random.default_rng(0).random(numbers.shape) < 0.05
    floats = np.where(holed, np.nan, numbers)
    yield "array, C order", "float64, 5 % NaN", floats
    yield "array, Fortran order", "float64, 5 % NaN", np.asfortranarray(floats)
    arrays = [pa.array(c, mask=m) for c, m in zip(numbers.T, holed.T, strict=True)]
    yield "Arrow", "int64, 5 % null", pa.table(arrays, names=names)


def views(numbers: np.ndarray) -> Iterator[tuple[str, str, object]]:
    """The same as float64, where they do not lie one after the other, or come piece by piece."""
    rows = numbers.astype(np.float64)
    yield "array", "first half of the columns", np.hstack([rows, rows])[:, : rows.shape[1]]
    yield "array", "every other column", np.repeat(rows, 2, axis=1)[:, ::2]
    yield "array", "columns backwards", np.ascontiguousarray(rows[:, ::-1])[:, ::-1]
    yield "array", "every other row", np.repeat(rows, 2, axis=0)[::2]
    yield "array", "of the other byte order", rows.astype(rows.dtype.newbyteorder())
    yield "list", "of arrays, one a row", list(rows)
    yield "list", "of lists of Python's floats", rows.tolist()
    holed = [(None, *row[1:]) if i % 10 == 0 else tuple(row) for i, row in enumerate(rows.tolist())]
    yield "list", "of tuples, every tenth with None", holed
    names = [f"x{j}" for j in range(rows.shape[1])]
    table = pa.table([np.ascontiguousarray(c) for c in rows.T], names=names)
    for size in (1000, 10_000):
        yield "Arrow", f"batches of {size} rows", pa.Table.from_batches(table.to_batches(size))


def total_of(rows: object, region: Ellipsoid) -> np.ndarray:
    return ExactSum(region).add(rows).integers()


def table_of(n: int, d: int) -> list[dict[str, object]]:
    numbers, region = numbers_of(n, d), Ellipsoid.ball(0.7 * d**0.5, d=d)
    plain = numbers.astype(np.float64)
    lines = []
    for container, name, data in chain(holders(numbers), views(numbers)):
        if "5 %" not in name and "None" not in name:
            assert (total_of(data, region) == total_of(plain, region)).all(), (container, name)
        jobs = [partial(total_of, rows, region) for rows in (plain, data)]
        array, seconds = measure.best(*jobs, repeats=REPEATS)
        line = {"container": container, "type": name, "ns a number": seconds / (n * d) * 1e9}
        lines.append(line | {"times an array of float64": seconds / array})
        print(n, d, lines[-1], flush=True)
    return lines


def main() -> None:
    text = [f"# Containers and types, {measure.family()}\n\nMachine: {measure.machine()}.\n"]
    for n, d in SIZES:
        text.append(f"\n## {n} rows of {d}\n\n{markdown(table_of(n, d))}")
    (family_folder() / "holders.md").write_text("".join(text))


if __name__ == "__main__":
    main()
