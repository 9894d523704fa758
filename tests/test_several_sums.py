"""Several sums from one pass have the bytes of passes of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ellipsum import Ellipsoid, PrivateMean, open_rows, sums_of

A, B = Ellipsoid.ball(3.0, [0.1, 0.2]), Ellipsoid.box([-1, -2, 0], [4, 2, 9])
BY_NAME = {"first": (["c", "a"], A), "second": (["a", "b", "d"], B)}
BY_PLACE = {"first": ([2, 0], A), "second": ([0, 1, 3], B)}


def rows(n: int = 40_000) -> np.ndarray:
    x = np.random.default_rng(1).standard_t(2, (n, 4)) * 3
    x[::7, 0], x[3, 2], x[5] = np.nan, np.inf, np.nan
    return x


def containers(x: np.ndarray, folder) -> dict:
    frame = pd.DataFrame(x, columns=list("abcd"))
    frame["b"], frame["d"] = frame["b"].astype(np.float32), frame["d"].astype(np.float32)
    table = pa.Table.from_pandas(frame)
    frame.to_csv(folder / "x.csv", index=False)
    pq.write_table(table, folder / "x.parquet", row_group_size=9000)
    parts = [frame[k : k + 10_000] for k in range(0, len(frame), 10_000)]
    return {
        "pandas": lambda own: frame[own],
        "other order": lambda own: frame[own[::-1]],
        "arrow": lambda own: table.select(own),
        "polars": lambda own: pl.DataFrame(frame)[own],
        "stream": lambda own: iter([part[own] for part in parts]),
        "reader": lambda own: table.select(own).to_reader(7000),
        "csv": lambda own: open_rows(folder / "x.csv", own),
        "parquet": lambda own: open_rows(folder / "x.parquet", own),
    }


@pytest.mark.parametrize("missing", ["center", "ignore"])
def test_tables_files_and_streams_give_the_bytes_of_passes_of_their_own(missing, tmp_path):
    for name, make in containers(rows(), tmp_path).items():
        found = sums_of(make(list("abcd")), BY_NAME, missing=missing)
        for what, (own, region) in BY_NAME.items():
            alone = sums_of(make(own), {what: (own, region)}, missing=missing)[what]
            assert found[what].to_bytes() == alone.to_bytes(), (name, what)
            assert found[what].columns == tuple(own), name
            if missing == "center":
                want = PrivateMean(region, mu=1)(make(own), seed=1)
                if name != "other order":  # whose coordinates are in that order there
                    assert (
                        PrivateMean(region, mu=1)(found[what], seed=1).value == want.value
                    ).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_taken_by_place(order):
    x = np.asarray(rows(), order=order)
    found = sums_of(x, BY_PLACE, threads=2)
    for what, (own, region) in BY_PLACE.items():
        parts = sums_of(iter([x[:9000], x[9000:]]), BY_PLACE)[what]
        assert parts.to_bytes() == found[what].to_bytes()
        want = PrivateMean(region, mu=1)(x[:, own], seed=1)
        assert (PrivateMean(region, mu=1)(found[what], seed=1).value == want.value).all()


@pytest.mark.parametrize(
    ("sums", "kind", "message"),
    [
        ({"first": (["a"], A)}, ValueError, "give it 2 columns"),
        ({"first": (["a", "a"], A)}, ValueError, "once each"),
        ({"first": ("ab", A)}, TypeError, "sequence of names"),
        ({"first": (["a", 1], A)}, TypeError, "alike"),
        ({"first": ([0, -1], A)}, ValueError, "from 0"),
        ({"first": ([0, 7], A)}, ValueError, "place 7"),
        ({"first": (["a", "z"], A)}, ValueError, "'z'"),
        ({}, TypeError, "must name columns"),
    ],
)
def test_columns_that_are_not_there_or_do_not_fit_are_refused(sums, kind, message):
    with pytest.raises(kind, match=message):
        sums_of(pd.DataFrame(rows(10), columns=list("abcd")), sums)
