"""Groups, counts, histograms and users of streams: what is read batch by batch."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from ellipsum import Ellipsoid, PrivateCounts, PrivateGroupMean, PrivateGroupSum, PrivateMean

BALL = Ellipsoid.ball(3.0, d=2)
STORES = ["north", "south", "none"]
EDGES = [-2.0, -0.5, 0.5, 2.0]
rng = np.random.default_rng(0)
N = 3000
FRAME = pd.DataFrame(
    {
        "store": rng.choice(STORES[:2], N),
        "u": rng.integers(0, 400, N),
        "a": rng.normal(size=N),
        "b": rng.normal(size=N),
    }
)
FRAME.loc[::50, "a"] = np.nan
PARTS = [FRAME[:700], FRAME[700:701], FRAME[701:701], FRAME[701:]]
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)
TURNED = pa.Table.from_pandas(FRAME[["b", "u", "a", "store"]], preserve_index=False)


def a_dataset(path):
    pq.write_table(TABLE, path / "rows.parquet", row_group_size=900)
    return pa.dataset.dataset(path / "rows.parquet")


STREAMS = {
    "frames": lambda _: iter(PARTS),
    "list of frames": lambda _: PARTS,
    "tables": lambda _: (pa.Table.from_pandas(part, preserve_index=False) for part in PARTS),
    "batches": lambda _: TABLE.to_batches(max_chunksize=512),
    "other orders": lambda _: iter([TABLE[:1000], TURNED[1000:]]),
    "Polars frames": lambda _: iter([pl.DataFrame(TABLE[:10]), pl.DataFrame(TABLE[10:])]),
    "kinds": lambda _: iter([FRAME[:9], TABLE[9:20], pl.DataFrame(TABLE[20:])]),
    "reader": lambda _: TABLE.to_reader(max_chunksize=512),
    "data set": a_dataset,
    "lazy frame": lambda _: pl.DataFrame(TABLE).lazy(),
    "table": lambda _: TABLE,
}


@pytest.mark.parametrize("user", [None, "u"])
@pytest.mark.parametrize("kind", STREAMS)
def test_a_stream_of_tables_gives_the_release_of_the_whole_table(kind, user, tmp_path):
    k = 1 if user is None else 2
    region = Ellipsoid.ball(3.0, d=3 if user is None else 2)  # who is no user is a number
    mechanisms = {
        "store": [
            PrivateGroupMean(region, keys=STORES, max_keys=k, mu=1.0),
            PrivateGroupMean(region, max_keys=k, epsilon=1, delta=1e-6),
            PrivateCounts(keys=STORES, max_keys=k, mu=1.0, neighbors="replace"),
        ],
        "a": [PrivateCounts(edges=EDGES, max_keys=k, mu=1.0, neighbors="replace")],
    }
    for key, made in mechanisms.items():
        for mechanism in made:
            wanted = mechanism(FRAME, key=key, user=user, seed=1)
            found = mechanism(STREAMS[kind](tmp_path), key=key, user=user, seed=1)
            assert found.to_dict() == wanted.to_dict()
            assert found.keys == wanted.keys


def test_a_histogram_of_a_stream_counts_what_numpy_counts(tmp_path):
    wanted = np.histogram(FRAME["a"].dropna(), EDGES)[0]
    for stream in STREAMS.values():
        sizes = PrivateCounts(edges=EDGES, mu=1e5)(stream(tmp_path), key="a").sizes
        assert np.allclose(sizes, wanted, atol=1e-3)


def test_users_of_a_stream_are_those_of_the_table(tmp_path):
    mechanism = PrivateMean(BALL, mu=1.0, by="u")
    plain = FRAME.drop(columns="store")
    wanted = mechanism(plain, seed=1).value
    tables = [pa.Table.from_pandas(part, preserve_index=False) for part in (plain[:9], plain[9:])]
    assert (mechanism(iter(tables), seed=1).value == wanted).all()


def refused(data, phrase, kind=TypeError, **known):
    """Both of labels alone and of numbers to bin are refused."""
    told = {"key": "store", **known}
    with pytest.raises(kind, match=phrase):
        PrivateCounts(keys=STORES, mu=1.0)(data() if callable(data) else data, **told)
    with pytest.raises(kind, match=phrase):
        rows = data() if callable(data) else data
        PrivateCounts(edges=EDGES, mu=1.0)(rows, **{**told, "key": "a"})


def test_what_is_no_stream_of_tables_is_refused_by_its_cause():
    for records in (FRAME.to_dict("records"), [[1.0, "north"]], iter([FRAME[:5], "text"])):
        with pytest.raises(TypeError, match="give a table, or an iterator of tables"):
            PrivateCounts(keys=STORES, mu=1.0)(records, key="store")
    refused(lambda: iter([{"store": "north", "a": 1.0}]), "or an iterator of tables")
    refused(lambda: iter(PARTS), "label of a table by its column's name", user=FRAME["u"])
    refused(lambda: iter([TABLE, TABLE.drop_columns(["a", "store"])]), "no column", ValueError)
    refused(TABLE.drop_columns(["a", "store"]), "no column", ValueError)
    text = TABLE.set_column(2, "a", pa.array(["x"] * N))
    for way in (text, iter([text])):
        with pytest.raises(TypeError, match="column 'a' of data is not numeric"):
            PrivateCounts(edges=EDGES, mu=1.0)(way, key="a")
    other = TABLE.set_column(0, "store", pa.array([1] * N))
    with pytest.raises(TypeError, match="another type in a later batch"):
        PrivateCounts(mu=None, epsilon=1, delta=1e-6)(iter([TABLE, other]), key="store")


def test_rows_in_an_engine_are_refused_with_a_way_out():
    """A Spark DataFrame speaks Arrow: all of its rows would come here without a word."""
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})()
    frame_type = type(frame)
    frame_type.__arrow_c_stream__ = TABLE.__arrow_c_stream__
    refused(frame, r"give SparkRows, .* with by=")
    with pytest.raises(TypeError, match=r"give SparkRows, .* with by="):
        PrivateGroupMean(BALL, keys=STORES, mu=1.0)(frame, key="store")


NONE = {
    "pandas": lambda k: pd.DataFrame({"k": [np.nan] * k}),
    "pandas objects": lambda k: pd.DataFrame({"k": np.array([None] * k, dtype=object)}),
    "Arrow nulls": lambda k: pa.table({"k": pa.nulls(k)}),
}


# Objects are a type, whatever is in them, where there are rows.
@pytest.mark.parametrize(
    "kind, count", [*((kind, 0) for kind in NONE), ("pandas", 3), ("Arrow nulls", 3)]
)
@pytest.mark.parametrize("keys", [["a", "b"], [1, 2]])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_table_without_a_key_fits_among_any(kind, keys, place, count):
    """pandas gives a piece whose keys are all missing a type of its own."""
    parts = [pd.DataFrame({"k": keys * 2}), pd.DataFrame({"k": keys})]
    parts.insert(place, NONE[kind](count))
    sizes = PrivateCounts(keys=keys, mu=1e5)(iter(parts), key="k").sizes
    assert np.allclose(sizes, 3, atol=1e-2)
    users = PrivateCounts(keys=keys, mu=1e5)(iter(parts), key="k", user="k").sizes
    assert np.allclose(users, 1, atol=1e-2)


@pytest.mark.parametrize("kind", [PrivateGroupSum, PrivateGroupMean])
def test_a_mechanism_of_groups_goes_to_another_process(kind):
    made = kind(Ellipsoid.ball(1.0, d=2), mu=1.0, keys=["a", "b"], neighbors="replace")
    given = np.full((6, 2), 0.5), ["a"] * 3 + ["b"] * 3
    releases = [m(given[0], key=given[1], seed=1) for m in (made, pickle.loads(pickle.dumps(made)))]
    np.testing.assert_array_equal(
        *[release.to_pandas().to_numpy().astype(str) for release in releases]
    )
