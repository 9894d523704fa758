"""The unit of privacy is a person: one row a user before the clip."""

from __future__ import annotations

import itertools
import os
import stat
import uuid
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from ellipsum import Ellipsoid, ExactSum, GaussianShape, PrivateMean, PrivateSum, open_rows
from ellipsum.guarantee import DeltaGuarantee
from ellipsum.rows import divided
from ellipsum.rows.labels import labels_of
from ellipsum.users import UserRows
from regions import make_regions

BALL = Ellipsoid.ball(3.0, [0.1, 0.2])


def make_table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of any size, some with a number missing, and their users."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    rows = rng.standard_t(2, (n, 2)) * 10.0 ** rng.integers(-3, 4)
    rows[rng.random((n, 2)) < 0.05] = rng.choice([np.nan, np.inf, 1e308])
    return rows, rng.integers(0, rng.integers(1, 20), n)


def sum_of(rows, ids, region=BALL, **options) -> bytes:
    total = ExactSum(region)
    for batch in UserRows(rows, region.d, ids, **options).batches():
        total.add(batch)
    return total.to_bytes()


def mean_by_hand(rows: np.ndarray) -> list[float]:
    """A user's row in rational arithmetic: of each column, the finite numbers' mean."""
    columns = [[Fraction(x) for x in c[np.isfinite(c)].tolist()] for c in rows.T]
    return [float(sum(c) / len(c)) if c else np.nan for c in columns]


@pytest.mark.parametrize("seed", range(200))
def test_any_order_and_split_of_the_rows_gives_the_same_bits(seed, monkeypatch):
    rows, ids = make_table(seed)
    by_hand = ExactSum(BALL)
    for user in np.unique(ids):
        by_hand.add(np.array([mean_by_hand(rows[ids == user])]))
    want = by_hand.to_bytes()
    rng = np.random.default_rng(seed)
    order, cuts = rng.permutation(len(rows)), sorted(rng.integers(0, len(rows) + 1, 3))
    assert sum_of(rows, ids) == want
    assert sum_of(rows[order], ids[order]) == want
    batches = [pa.table({"a": r[:, 0], "u": u, "b": r[:, 1]}) for r, u in zip(
        np.split(rows[order], cuts), np.split(ids[order], cuts), strict=True)]  # fmt: skip
    reader = pa.RecordBatchReader.from_batches(
        batches[0].schema, itertools.chain.from_iterable(b.to_batches() for b in batches)
    )
    assert sum_of(reader, "u") == want
    by_user = np.argsort(ids, kind="stable")
    assert sum_of(rows[by_user], ids[by_user], grouped=True) == want
    monkeypatch.setattr(divided, "MEMORY_BYTES", 200)  # by files, several levels of them
    assert sum_of(rows[order], ids[order]) == want


def containers(rows: np.ndarray, ids: np.ndarray, folder) -> dict:
    frame = pd.DataFrame({"a": rows[:, 0], "u": ids, "b": rows[:, 1]})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, folder / "x.parquet", row_group_size=7)
    feather.write_feather(table, folder / "x.arrow", compression="uncompressed")
    frame.to_csv(folder / "x.csv", index=False)
    frame.to_csv(folder / "bare.csv", index=False, header=False)
    return {
        "pandas": (frame, "u"),
        "shuffled index": (frame.set_index(frame.index[::-1]), "u"),
        "polars": (pl.DataFrame(frame), "u"),
        "arrow": (table, "u"),
        "reader": (table.to_reader(max_chunksize=5), "u"),
        "mapping": ({"a": rows[:, 0], "u": ids.tolist(), "b": rows[:, 1].tolist()}, "u"),
        "vectors": ({"v": rows, "u": ids}, "u"),
        "records": (frame.to_records(index=False), "u"),
        "array": (rows, ids),
        "list": (rows.tolist(), pd.Series(ids)),
        "parquet": (open_rows(folder / "x.parquet", by="u"), "u"),
        "ipc": (open_rows(folder / "x.arrow", by=["u"]), "u"),
        "csv": (open_rows(folder / "x.csv", by="u"), "u"),
        "csv, columns": (open_rows(folder / "x.csv", ["a", "b"], by="u"), "u"),
        "bare csv": (open_rows(folder / "bare.csv", header=False, by="f1"), "f1"),
    }


def test_every_container_gives_the_same_bits(tmp_path):
    rng = np.random.default_rng(1)
    rows, ids = rng.normal(size=(50, 2)), rng.integers(0, 9, 50)
    want = sum_of(rows, ids)
    for name, (data, user) in containers(rows, ids, tmp_path).items():
        assert sum_of(data, user) == want, name


def test_one_row_a_user_is_the_release_of_rows():
    rows = np.random.default_rng(2).normal(size=(40, 2))
    rows[3, 1] = np.nan
    plain = PrivateMean(BALL, mu=1.0)(rows, seed=5)
    of_users = PrivateMean(BALL, mu=1.0, by="u")(rows, users=np.arange(40), seed=5)
    assert (plain.integers == of_users.integers).all()
    assert plain.n == of_users.n == 40


@pytest.mark.parametrize("kind", ["ball", "box", "ellipsoid", "matrix", "low-rank"])
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_no_user_moves_the_sum_past_the_bound_and_one_reaches_it(kind, neighbors):
    """A search over what one user may do: any number of rows of any size."""
    region = make_regions(2)[kind]
    rng = np.random.default_rng(7)
    rows, ids = rng.normal(size=(12, 2)), rng.integers(1, 5, 12)
    bound = region.sensitivity(neighbors) / region.grid
    most = 0.0
    for _ in range(300):
        sums = []
        for side in range(2 if neighbors == "replace" else 1):
            k = int(rng.integers(1, 30))
            far = (-1) ** side * 10.0 ** rng.integers(-1, 300) * rng.choice([1, -1], 2)
            own = far + rng.normal(size=(k, 2)) * 10.0 ** rng.integers(-3, 3)
            sums.append(exact(np.vstack([rows, own]), np.append(ids, np.zeros(k, int)), region))
        other = sums[1] if neighbors == "replace" else exact(rows, ids, region)
        most = max(most, float(np.linalg.norm((sums[0] - other).astype(float))))
    assert 0.98 * bound < most <= bound


def exact(rows, ids, region) -> np.ndarray:
    return ExactSum.from_bytes(sum_of(rows, ids, region)).integers()


def test_rows_without_a_user_change_nothing():
    rows = np.random.default_rng(3).normal(size=(6, 2))
    want = sum_of(rows[:4], ["a", "a", "b", "c"])
    for nothing in (None, np.nan, pd.NA, pd.NaT, object(), True, (1, 2), []):
        assert sum_of(rows, ["a", "a", "b", "c", nothing, nothing]) == want
    frame = pd.DataFrame({"x": rows[:, 0], "y": rows[:, 1], "u": [1, 1, 2, 3, None, None]})
    assert sum_of(frame, "u") == want  # floats, as pandas makes them of a null
    assert sum_of(pl.DataFrame(frame), "u") == want
    assert sum_of(pa.Table.from_pandas(frame).drop(["u"]).append_column(
        "u", pa.array([1, 1, 2, 3, None, None], pa.uint8())), "u") == want  # fmt: skip
    release = PrivateMean(BALL, mu=1.0, by="u")(frame)
    assert release.n == 3


def test_equal_values_are_one_user_whatever_holds_them():
    ids = [uuid.UUID(int=k % 3) for k in range(7)]
    rows = np.random.default_rng(4).normal(size=(7, 2))
    want = sum_of(rows, ids)
    raw = [u.bytes for u in ids]
    for column in (
        raw,
        pa.array(raw, pa.binary(16)),
        pa.array(raw, pa.binary()),
        pa.array(raw, pa.large_binary()).dictionary_encode(),
        pa.array(raw, pa.uuid()),
        pd.Series(raw),
        np.array(ids, object),
    ):
        assert sum_of(rows, column) == want
    numbers = [k % 3 for k in range(7)]
    for column in (
        np.array(numbers, np.int8),
        np.array(numbers, np.uint64),
        np.array(numbers, np.float32),
        pd.Series(numbers, dtype="Int64"),
        pd.Categorical(numbers).to_numpy(),
        pd.Series(numbers, dtype="category"),
        pl.Series(numbers),
        pa.chunked_array([numbers[:3], numbers[3:]]),
    ):
        assert sum_of(rows, column) == want
    names = [["Ann", "ann", "Ann "][k] for k in numbers]
    for column in (
        names,
        np.array(names),
        pd.Series(names),
        pd.Series(names, dtype="string"),
        pd.Series(names, dtype="category"),
        pl.Series(names),
        pa.array(names, pa.string_view()),
    ):
        assert sum_of(rows, column) == want


def test_digests_tell_integers_apart():
    wide = np.array([0, 1, -1, 2**63 - 1, -(2**63), 5, -5])
    digests = labels_of("x", wide).rows()
    more = labels_of("x", np.array([2**64 - 1, 2**63], np.uint64)).rows()
    both = np.vstack([digests, more])
    assert len(np.unique(both, axis=0)) == 9
    assert both.any(1).all()
    cells = labels_of("x", [0, 1, -1, 2**63 - 1, -(2**63), 5, -5, 2**64 - 1, 2**63]).rows()
    assert (cells == both).all()
    assert labels_of("x", [10**30, "1", 1, 1.5, b"1"]).codes.tolist() == [0, 1, 2, 3, 4]


def test_the_largest_integer_merges_no_other_users():
    top = 2**63 - 1
    ids = top - np.arange(49)[::-1]
    one_by_one = np.vstack([labels_of("x", [int(k)]).rows() for k in ids])
    assert (labels_of("x", ids).rows() == one_by_one).all()
    assert (labels_of("x", ids.astype(np.uint64)).rows() == one_by_one).all()
    rows = np.random.default_rng(5).normal(size=(49, 2))
    for kept in (rows[:-1], rows):  # with and without the user of that integer
        assert sum(map(len, UserRows(kept, 2, ids[: len(kept)]).batches())) == len(kept)


def test_what_else_is_in_a_batch_changes_no_users_digest():
    wide = np.longdouble(2**60 + 1)
    for beside in (0.5, 7.0, np.nan):
        digest = labels_of("x", np.array([wide, beside], np.longdouble)).rows()[0]
        assert (digest == labels_of("x", np.array([wide])).rows()[0]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for odd in (np.array([np.inf, 2], np.float16), np.array([np.longdouble("1e4000"), 2])):
            assert (labels_of("x", odd).rows()[1] == labels_of("x", [2]).rows()[0]).all()


@pytest.mark.parametrize(
    "column", [np.array([1, 2], "M8[D]"), pa.array([True, False]), pa.array([1, 2], pa.date32())]
)
def test_a_column_of_another_type_is_refused_by_its_type(column):
    with pytest.raises(TypeError, match="must be integers, text or bytes"):
        sum_of(np.ones((2, 2)), column)


def test_what_is_asked_in_a_wrong_way_is_refused(tmp_path):
    rows = np.ones((3, 2))
    mean = PrivateMean(BALL, mu=1.0, by="u")
    frame = pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1]})
    with pytest.raises(ValueError, match="no column 'u'"):
        mean(frame)
    with pytest.raises(ValueError, match="no column 'u'"):
        mean(pa.Table.from_pandas(frame))
    with pytest.raises(TypeError, match="have no column 'u'"):
        mean(rows)
    with pytest.raises(ValueError, match="one entry for each row"):
        mean(rows, users=[1, 2])
    with pytest.raises(ValueError, match="one entry for each row"):
        mean(rows, users=[1, 2, 3, 4])
    with pytest.raises(TypeError, match="have no column"):
        mean(ExactSum(BALL).add(rows))
    with pytest.raises(TypeError, match="without by="):
        PrivateMean(BALL, mu=1.0)(rows, users=[1, 2, 3])
    with pytest.raises(TypeError, match="need by"):
        PrivateMean(BALL, mu=1.0, grouped=True)
    with pytest.raises(ValueError, match="no rows"):
        mean(rows, users=[None] * 3)
    frame.to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(ValueError, match="opened without the column 'u'"):
        mean(open_rows(tmp_path / "x.csv"))
    with pytest.raises(ValueError, match="single rows would be protected"):
        PrivateMean(BALL, mu=1.0)(open_rows(tmp_path / "x.csv", by="a"))
    with pytest.raises(ValueError, match="cannot be a coordinate too"):
        open_rows(tmp_path / "x.csv", ["a", "b"], by="b")
    with pytest.raises(ValueError, match="which labels rows"):
        open_rows(tmp_path / "x.csv", by="c")
    two = pa.table({"a": [1.0], "b": [1.0], "u": [1]}), pa.table({"a": [1.0], "b": [1.0], "u": [2]})
    assert mean(pa.concat_tables(two)).n == 2


def test_plans_and_shapes_count_users(tmp_path):
    rng = np.random.default_rng(5)
    rows, ids = rng.normal(size=(900, 2)), rng.integers(0, 300, 900)
    box = PrivateMean(lower=[-9, -9], upper=[9, 9], mu=5.0, by="u")
    one = box(rows, users=ids, seed=1)
    order = rng.permutation(900)
    again = box(rows[order], users=ids[order], seed=1)
    n = len(np.unique(ids))
    assert one.n == n and (one.value == again.value).all()
    assert str(one).startswith(f"mean of {n} users, d = 2, not private")
    shape = GaussianShape([1.0, 1.0])
    release = PrivateSum(shape, mu=1.0, by="u")(rows, users=ids, seed=1)
    assert release.n == n
    assert release.parameters["clip_norm"] == shape.resolve(n, 1.0).clip_norm


def test_a_sum_is_of_totals_and_a_mean_of_means():
    rows, ids = np.array([[1.0, 0.0], [2.0, 0.0], [4.0, 1.0]]), ["a", "a", "b"]
    region = Ellipsoid.ball(100.0, d=2)
    total = PrivateSum(region, mu=1e6, by="u")(rows, users=ids)
    assert np.allclose(total.value, [7.0, 1.0], atol=0.1)
    mean = PrivateMean(region, mu=1e6, by="u")(rows, users=ids)
    assert np.allclose(mean.value, [2.75, 0.5], atol=0.1)
    other = PrivateMean(region, mu=1e6, by="u", statistic="sum")(rows, users=ids)
    assert np.allclose(other.value, [3.5, 0.5], atol=0.1)


def test_the_guarantee_says_its_unit():
    assert PrivateMean(BALL, mu=1.0).guarantee.unit == "one row"
    promise = PrivateMean(BALL, mu=0.5, by="user_id").guarantee
    assert promise.unit == "all rows of one value of user_id"
    assert "unit: all rows of one value of user_id" in str(promise)
    assert promise.to_dict()["unit"] == promise.unit
    grouped = PrivateMean(BALL, mu=0.5, by="user_id", grouped=True).guarantee
    assert "as the caller says" in grouped.unit


def test_a_person_with_many_rows_has_k_times_mu():
    promise = PrivateMean(BALL, epsilon=1.0, delta=1e-6).guarantee
    three = promise.for_rows(3)
    assert Fraction(three.noise_multiplier) * 3 <= Fraction(promise.noise_multiplier)
    assert three.noise_multiplier * 3 >= promise.noise_multiplier * (1 - 2.0**-50)
    assert three.unit == "3 rows of one person" and three.asked_epsilon is None
    assert promise.for_rows(1) is promise
    assert PrivateMean(BALL, mu=1.0).guarantee.for_rows(4).mu == 4.0
    users_own = PrivateMean(BALL, mu=1.0, by="u").guarantee
    assert users_own.for_rows(1000) is users_own
    pure = DeltaGuarantee("replace", 0.5, 1e-9)
    assert pure.for_rows(2).asked_epsilon >= 1.0
    expected = 1e-9 * (1 + np.exp(0.5))
    assert expected <= pure.for_rows(2).asked_delta <= expected * (1 + 1e-12)
    with pytest.raises(ValueError, match="no guarantee"):
        pure.for_rows(100)
    with pytest.raises(ValueError, match="at least 1"):
        promise.for_rows(0)


def test_files_on_disk_are_private_nameless_and_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(divided, "MEMORY_BYTES", 2000)
    monkeypatch.setattr(divided.tempfile, "tempdir", str(tmp_path))
    seen = []
    make = divided._File.__init__

    def watched(self):
        make(self)
        seen.append(self)
        assert stat.S_IMODE(os.fstat(self._file.fileno()).st_mode) == 0o600
        assert list(tmp_path.iterdir()) == []  # no name that anybody could open

    monkeypatch.setattr(divided._File, "__init__", watched)
    rows = np.random.default_rng(6).normal(size=(500, 2))
    batches = UserRows(rows, 2, np.arange(500) % 50).batches()
    next(batches)
    batches.close()  # broken off in the middle
    assert len(seen) >= 64 and all(file._file.closed for file in seen)


def test_one_user_may_have_more_rows_than_memory(monkeypatch):
    monkeypatch.setattr(divided, "MEMORY_BYTES", 2000)
    rows = np.random.default_rng(8).normal(size=(3000, 2))
    ids = np.where(np.arange(3000) % 10 == 0, np.arange(3000), -1)
    want = ExactSum(BALL)
    for user in np.unique(ids):
        want.add(np.array([mean_by_hand(rows[ids == user])]))
    assert sum_of(rows, ids) == want.to_bytes()
