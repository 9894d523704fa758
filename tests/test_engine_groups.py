"""Groups and users of an engine, on one of tables that shuffles, repeats and turns the order."""

from __future__ import annotations

import struct
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from ellipsum import (
    Ellipsoid,
    PrivateCounts,
    PrivateGroupMean,
    PrivateGroupSum,
    PrivateMean,
    estimate_covariance,
)
from ellipsum.adaptive.part_pass import PartTask
from ellipsum.engines.engine_rows import EngineError, withheld
from ellipsum.far_users import UserTask
from ellipsum.groups.count_table import ExactCounts
from ellipsum.groups.far_groups import GroupTask, UserGroupTask
from ellipsum.groups.file_groups import by_key
from ellipsum.groups.key_bytes import key_bytes
from ellipsum.groups.keys import KeyBook
from ellipsum.records.record_release import RecordRelease
from ellipsum.rows import pieces
from ellipsum.rows.partitioned import Partitioned
from ellipsum.rows.pieces import Piece
from engine_cases import (
    REGION,
    D,
    Tables,
    assert_same_groups,
    assert_same_groups_of_users,
    assert_same_users,
    labelled_table,
)

USERS = ["integer", "text", "uuid", "bytes", "double"]
COLUMNS = ["a", "b", "c"]


@pytest.mark.parametrize("seed", range(4))
def test_groups_and_histograms_have_the_bytes_of_one_table(seed):
    table = labelled_table("text")
    assert_same_groups(lambda columns, by: Tables(table, columns, by, seed), table)


@pytest.mark.parametrize("users", USERS)
def test_groups_of_users_have_the_bytes_of_one_table(users):
    table = labelled_table(users)
    assert_same_groups_of_users(lambda columns, by: Tables(table, columns, by, 5), table)


@pytest.mark.parametrize("users", USERS)
def test_users_have_the_bits_of_one_table(users):
    table = labelled_table(users)
    assert_same_users(lambda columns, by: Tables(table, columns, by, 6), table)


def test_each_user_lands_in_one_bucket_whatever_holds_the_users():
    """Also where one part has integers and another floats, as pandas makes them beside a null."""
    numbers, task = pa.array([1.0, 2.0, 3.0]), UserTask(PartTask(1, "count_rows"), "user", True)
    where: dict[bytes, set[int]] = {}
    for kind in (pa.int8(), pa.uint64(), pa.float64(), pa.float32()):
        table = pa.table({"a": numbers, "user": pa.array([0, 5, 0], kind)})
        for bucket, raw in task.split(iter([table]), 1000):
            for words in Piece.from_bytes(raw).words:
                where.setdefault(words.tobytes(), set()).add(bucket)
    assert len(where) == 2 and all(len(buckets) == 1 for buckets in where.values())


def test_a_task_that_runs_again_gives_the_same_bytes():
    """Whatever the order of the rows and batches, and however the pieces are cut."""
    table = labelled_table("uuid").combine_chunks()
    turned = table.take(np.random.default_rng(1).permutation(len(table)))
    make = ExactCounts
    for task in (
        UserTask(PartTask(D, "exact_sum", (REGION,)), "user", True),
        UserGroupTask(0, ("store", "user"), make, by_key, None, True, 2, True),
    ):
        cut = table.select([*(COLUMNS if task.d else []), *task.by])
        again = turned.select(cut.column_names)
        first = task(piece for _, piece in task.split(iter(cut.to_batches()), 3))
        for size in (50, 700):
            batches = iter(again.to_batches(max_chunksize=size))
            second = [piece for _, piece in task.split(batches, 3)]
            assert task(iter(second)) == first
            assert task.merge([task(iter(second)), task(iter(()))]) == first


def test_rows_of_nobody_are_not_in_the_shuffle():
    table = pa.table({"a": [4711.0, 1.0], "user": [None, "x"]})
    task = UserTask(PartTask(1, "count_rows"), "user", True)
    piece, kinds = [Piece.from_bytes(raw) for _, raw in task.split(iter([table]), 4)]
    assert piece.rows.tolist() == [[1.0]] and kinds.rows.size == kinds.words.size == 0
    assert b"x" not in piece.more and not piece.more  # nor is the user's name


def test_damaged_pieces_and_tables_are_refused_and_not_quoted():
    task = UserGroupTask(1, ("store", "user"), ExactCounts, by_key, None, True, 2, True)
    table = pa.table({"a": [4711.0], "store": ["secret"], "user": ["secret"]})
    (_, raw), _ = task.split(iter([table]), 1)
    done = task(iter([raw]))
    for k in range(len(raw)):
        with pytest.raises(ValueError, match="truncated or altered") as caught:
            task(iter([raw[:k] + bytes([raw[k] ^ 1]) + raw[k + 1 :]]))
        assert "secret" not in str(caught.value) and "4711" not in str(caught.value)
    users = UserTask(PartTask(1, "count_rows"), "user", True)
    for of, result in ((task, done), (users, users(iter(())))):
        for bad in (result[:-1], b"", bytes([result[0] ^ 1]) + result[1:]):
            with pytest.raises(ValueError, match="result came back truncated or altered"):
                of.merge([bad])


def test_pieces_that_no_part_sends_are_refused_and_not_quoted():
    """Whole by their checksum: of another task, of nobody, with keys that nobody gave."""
    task = UserGroupTask(0, ("store", "user"), partial(ExactCounts, ["x", "y"]), by_key)
    table = pa.table({"store": ["x"], "user": ["u"]})
    (_, raw), _ = task.split(iter([table]), 1)
    piece = Piece.from_bytes(raw)
    assert piece.words[0, 2] == 0 and piece.more == struct.pack("<Q", 1) + key_bytes("x")
    user, two = piece.words[0, :2].tolist(), struct.pack("<Q", 2) + key_bytes("x") + key_bytes("y")
    for forged in (
        {"more": struct.pack("<Q", 1) + key_bytes("secret")},  # a key that is not public
        {"more": two, "words": np.array([[*user, 2**64 - 2]], np.uint64)},  # x, from the end
        {"words": np.array([[*user, 1]], np.uint64)},  # no key of the piece's
        {"words": np.array([[0, 0, 0]], np.uint64)},  # nobody
        {"words": np.array([user], np.uint64)},
        {"more": struct.pack("<QBI", 1, 0, 6) + b"secret"},  # no number
        {"more": struct.pack("<QBI", 1, 1, 4) + b"sec"},  # fewer bytes than it says
        {"more": struct.pack("<QBI", 1, 7, 6) + b"secret"},  # no kind of key
        {"more": b"sec"},
        {"rows": np.zeros((1, 3))},
        {"kinds": ["text"]},
    ):
        with pytest.raises(ValueError, match="damaged") as caught:
            task(iter([piece._replace(**forged).to_bytes()]))
        error = caught.value
        assert "sec" not in str(error) and error.__cause__ is None
    assert task.merge([task(iter([raw]))]) == task(iter([raw]))


@pytest.mark.parametrize("users", ["one", "none"])
def test_a_key_that_no_user_is_left_in_is_never_named(users):
    """As ``test_group_selection`` asks of one table: delta = 1/2 would name half of the keys."""
    n = 600
    user = ["me"] * n if users == "one" else pa.nulls(n, pa.string())
    table = pa.table({"a": np.zeros(n), "g": [f"k{i}" for i in range(n)], "u": user})
    known = {"epsilon": 1.0, "delta": 0.5}
    for mechanism, columns in (
        (PrivateCounts(**known), []),
        (PrivateGroupSum(Ellipsoid.ball(1.0, d=1), **known), ["a"]),
    ):
        data = Tables(table, columns, ("g", "u"), 4)
        found = [mechanism(data, key="g", user="u", seed=seed).keys for seed in range(20)]
        assert len({key for named in found for key in named}) <= (users == "one")


def test_a_key_in_a_table_of_public_keys_is_one_of_them():
    book = KeyBook(["x", "y"])
    assert book.add(["y", "x"]).tolist() == [1, 0]
    with pytest.raises(ValueError, match="another key") as caught:
        book.add(["secret"])
    assert "secret" not in str(caught.value) and book.keys == ["x", "y"]


def test_users_of_two_types_are_refused_wherever_they_meet():
    one = pa.table({"a": [1.0] * 9, "user": pa.array(range(9))})
    other = pa.table({"a": [1.0] * 9, "user": pa.array(map(str, range(9)))})
    rows = Tables(one, ["a"], ["user"])
    rows.parts = [one, other]
    mean = PrivateMean(Ellipsoid.ball(1.0, d=1), mu=1, by="user")
    counts = PrivateCounts(keys=[1, "1"], mu=1)
    for use in (lambda: mean(rows), lambda: counts(rows, key="user")):
        with pytest.raises(TypeError, match="another type in a later batch"):
            use()


@pytest.mark.parametrize("value", [None, "x"])
def test_a_type_is_refused_whether_or_not_a_cell_has_a_value(value):
    """As of one iterator of tables: else whether there is a release tells of a record."""
    one = pa.table({"a": [1.0, 2.0], "user": [1, 2], "store": [1, 2]})
    other = one.set_column(1, "user", pa.array([value, None], pa.string()))
    ball, few = Ellipsoid.ball(1.0, d=1), {"keys": [1, 2], "mu": 1}
    who = {"key": "store", "user": "user"}
    for columns, mechanism, names in (
        (["a"], PrivateMean(ball, mu=1, by="user"), {}),
        (["a"], PrivateGroupSum(ball, **few), who),
        ([], PrivateCounts(**few, neighbors="add-remove"), who),
        ([], PrivateCounts(**few, neighbors="replace"), who),
    ):
        by = [*who.values()] if names else ["user"]
        rows = Tables(one, columns, by)
        for parts in ([one, other], [other, one]):
            rows.parts = parts
            for data in (rows, (part.select([*columns, *by]) for part in parts)):
                with pytest.raises(TypeError, match="another type in a later batch"):
                    mechanism(data, **names, seed=1)


def test_a_bucket_has_the_same_bytes_whatever_batch_told_its_types(monkeypatch):
    monkeypatch.setattr(pieces, "_COLLECTED", 100)
    none = pa.record_batch({"store": pa.nulls(40), "user": pa.array(range(40))})
    some = pa.record_batch({"store": pa.array(["x", "x"]), "user": pa.array([100, 101])})
    task = UserGroupTask(0, ("store", "user"), ExactCounts, by_key, None, True, 2, True)

    def of_bucket(order, bucket):
        return task(raw for place, raw in task.split(iter(order), 8) if place == bucket)

    for bucket in range(8):
        assert of_bucket([none, some], bucket) == of_bucket([some, none], bucket)


def test_rows_of_a_user_that_came_to_two_tasks_are_refused():
    """An engine that spreads a bucket over tasks would double its users."""

    class Spread(Tables):
        def exchange(self, task):
            batches = self._data(task, self.parts[0])
            for k, (_, piece) in enumerate(task.split(batches, 2)):
                yield f"part {k}", task(iter([piece]))

    rows = Spread(labelled_table(), ["a"], ["user"])
    rows.parts = [pa.table({"a": [0.5] * 3000, "user": [7] * 3000})]
    mean = PrivateMean(Ellipsoid.ball(1.0, d=1), mu=1, by="user")
    bins = PrivateCounts(edges=[0.0, 1.0], mu=1)
    for use in (lambda: mean(rows), lambda: bins(rows, user="user")):
        with pytest.raises(ValueError, match="came to two tasks"):
            use()


def test_labels_that_do_not_fit_are_named():
    table = labelled_table()
    mean = PrivateMean(REGION, mu=1, by="user")
    groups = PrivateGroupMean(REGION, epsilon=1, delta=1e-6)
    two, one = Tables(table, by=["store", "user"]), Tables(table, by=["user"])
    for use, words in (
        (lambda: mean(Tables(table)), "no column 'user' of labels"),
        (lambda: mean(two), "by='store', which is not used"),
        (lambda: groups(two, key="store"), "by='user', which is not used"),
        (lambda: groups(one, key="store", user="user"), "no column 'store' of labels"),
        (lambda: PrivateMean(REGION, mu=1)(one), "single rows would be protected"),
        (lambda: one.exact_sum(REGION), "single rows would be protected"),
        (lambda: estimate_covariance(one, center=[0] * D, radius=1, mu=1), "single rows"),
        (lambda: PrivateMean(REGION, mu=1, by="user", grouped=True)(one), "grouped does not go"),
        (lambda: groups(Tables(table, ["a"], ["store"]), key="store"), "3 coordinates"),
        (lambda: PrivateCounts(edges=[0, 1], mu=1)(Tables(table, ["a", "b"])), "one column"),
        (lambda: PrivateCounts(edges=[0, 1], mu=1)(Tables(table, ["a"]), key="b"), "'b'"),
    ):
        with pytest.raises(ValueError, match=words):
            use()
    for use, words in (
        (lambda: mean(one, users=table["user"]), "leave users out"),
        (lambda: groups(one, key=table["store"]), "labels by name"),
        (lambda: groups(two, key="store", user="user", jobs=2), "jobs is for files"),
    ):
        with pytest.raises(TypeError, match=words):
            use()


def test_columns_in_another_order_than_the_region_has_are_refused():
    table = labelled_table()
    region = Ellipsoid.ball(1.0, {"a": 0.0, "b": 0.0, "c": 0.0})
    mean = PrivateGroupMean(region, keys=["s1"], mu=1)
    assert mean(Tables(table, COLUMNS, ["store"]), key="store").columns == tuple(COLUMNS)
    with pytest.raises(ValueError, match="another order"):
        mean(Tables(table, COLUMNS[::-1], ["store"]), key="store")


def test_keys_of_another_type_are_told_of_and_nothing_else():
    rows, sums = Tables(labelled_table(), by=["store"]), PrivateGroupSum(REGION, keys=[1], mu=1)
    with pytest.raises(EngineError, match="another type than the column of keys"):
        withheld("Spark", lambda: sums(rows, key="store"))


def test_rows_that_cannot_be_shuffled_are_refused_for_users_alone():
    class Plain(Tables):
        exchange = Partitioned.exchange

    table = labelled_table()
    assert PrivateCounts(keys=["s1"], mu=1)(Plain(table, [], ["store"]), key="store").sizes.size
    with pytest.raises(TypeError, match="Plain does not bring the rows of a user together"):
        PrivateMean(REGION, mu=1, by="user")(Plain(table, by=["user"]))


def test_no_row_at_all():
    table = labelled_table().slice(0, 0)
    rows, sums = Tables(table, by=["store", "user"]), PrivateGroupSum(REGION, epsilon=1, delta=1e-6)
    total = sums.exact_sum(rows, key="store", user="user")
    assert not total.keys and total.units == 0
    with pytest.raises(ValueError, match="no rows"):
        PrivateMean(REGION, mu=1, by="user")(Tables(table, by=["user"]))


def test_a_tree_of_merges_gives_the_same_table():
    table, task = labelled_table("text"), GroupTask(0, ("store",), ExactCounts, by_key)
    parts = [task(iter([table.slice(k, 100).select(["store"])])) for k in range(0, 1500, 100)]
    whole = task(iter([table.select(["store"])]))
    for fan in (2, 3, 7):
        level = parts
        while len(level) > 1:
            level = [task.merge(level[k : k + fan]) for k in range(0, len(level), fan)]
        assert level == [whole]


def test_a_fit_says_what_to_give_for_rows_in_an_engine():
    far = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})()
    for rows in (Tables(labelled_table()), far):
        with pytest.raises(TypeError, match="covariance=estimate_covariance"):
            RecordRelease(epsilon=2).fit(rows)


class Parts(Tables):
    """Parts of their own columns."""

    def __init__(self, parts, columns=None, by=(), d=2):
        self.parts, self.columns, self.by, self.d = parts, columns, tuple(by), d
        self._rng = np.random.default_rng(0)

    def _data(self, task, part):
        return iter([part])


def columns_apart(*orders):
    """A part for each order of the columns a and b, with a key and a user."""
    rng = np.random.default_rng(5)
    for names in orders:
        a, b = 10 * rng.normal(size=20), rng.normal(size=20)
        more = {"store": ["s", "t"] * 10, "user": [f"u{k}" for k in range(20)]}
        yield pa.table({names[0]: a, names[1]: b, **more}).select([*sorted(names), *more])


NAMED = Ellipsoid.ball(50.0, {"a": 0.0, "b": 0.0})
NAMELESS = Ellipsoid.ball(50.0, d=2)


@pytest.mark.parametrize("by", [[], ["user"], ["store"], ["store", "user"]])
def test_columns_in_another_order_are_put_in_order_or_refused(by):
    """As on one machine: by the region's names, else the first part's, which parts do not know."""
    first, second = columns_apart(("a", "b"), ("a", "b"))
    turned = second.select(["b", "a", "store", "user"])
    other = second.rename_columns(["a", "zip_code", "store", "user"])

    def release(region, *parts):
        data = Parts([part.select([*part.column_names[:2], *by]) for part in parts], by=by)
        if "store" in by:
            sums = PrivateGroupSum(region, keys=["s", "t"], mu=1)
            labels = dict(zip(("key", "user"), by, strict=False))
            return sums(data, **labels, seed=3).integers.tolist()
        mean = PrivateMean(region, mu=1, **({"by": "user"} if by else {}))
        return mean(data, seed=3).integers.tolist()

    assert release(NAMED, first, turned) == release(NAMED, first, second)
    with pytest.raises(ValueError, match="no column 'b'"):
        release(NAMED, first, other)
    for parts in ((first, other), (first, turned)):
        with pytest.raises(ValueError, match="other columns, or the same in another order"):
            release(NAMELESS, *parts)
