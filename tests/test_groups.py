"""Sums, means and counts of groups: what a user may move, who is in which group, what is named."""

from __future__ import annotations

import itertools
import json
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ellipsum import (
    Ellipsoid,
    ExactGroupSum,
    ExactSum,
    PrivateCounts,
    PrivateGroupMean,
    PrivateGroupSum,
    PrivateSum,
    open_rows,
)
from ellipsum.groups.keys import KeyBook
from ellipsum.rows import divided
from regions import make_regions

BALL = Ellipsoid.ball(3.0, [0.1, 0.2])
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
STORES = ["x", "y", "z"]


def make_table(seed: int, n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = rng.standard_t(2, (n, 2)) * 3
    rows[rng.random((n, 2)) < 0.03] = np.nan
    store = rng.choice(np.array([*STORES, "w", None], object), n)
    user = rng.choice(np.array([*range(15), None], object), n)
    return pd.DataFrame({"a": rows[:, 0], "store": store, "b": rows[:, 1], "u": user})


def exact_table(mechanism: PrivateGroupSum, data, *, user="u") -> ExactGroupSum:
    """The exact sums that a call adds its noise to."""
    return mechanism.exact_sum(data, key="store", user=user)


@pytest.mark.parametrize("keys", [None, STORES])
@pytest.mark.parametrize("user", [None, "u"])
@pytest.mark.parametrize("seed", range(50))
def test_any_order_and_split_gives_the_same_bytes(seed, user, keys, monkeypatch):
    data = make_table(seed)
    columns = ["a", "store", "b"] + ([] if user is None else ["u"])
    data = data[columns]
    mechanism = PrivateGroupMean(BALL, keys=keys, max_keys=2 if user else 1, **BUDGET)
    want = exact_table(mechanism, data, user=user).to_bytes()
    order = np.random.default_rng(seed).permutation(len(data))
    shuffled = data.iloc[order]
    assert exact_table(mechanism, shuffled, user=user).to_bytes() == want
    stream = pa.Table.from_pandas(shuffled, preserve_index=False).to_reader(max_chunksize=7)
    assert exact_table(mechanism, stream, user=user).to_bytes() == want
    monkeypatch.setattr(divided, "MEMORY_BYTES", 200)
    assert exact_table(mechanism, shuffled, user=user).to_bytes() == want


def test_groups_have_the_sums_that_each_has_by_itself():
    data = make_table(3, 400).dropna(subset=["store"])
    table = exact_table(PrivateGroupSum(BALL, **BUDGET), data[["a", "store", "b"]], user=None)
    assert sorted(table.keys) == ["w", *STORES]
    for key, sums, count in zip(table.keys, table.integers(), table.counts(), strict=True):
        own = data[data.store == key][["a", "b"]]
        assert (sums == ExactSum(BALL).add(own.to_numpy()).integers()).all()
        assert count == len(own)


def test_tables_merge_by_key_whatever_the_tree():
    data = make_table(5, 300)
    columns = [data[["a", "b"]].to_numpy(), data["store"].to_numpy()]
    whole = ExactGroupSum(BALL).add(*columns)
    cuts = [0, 40, 41, 200, 300]
    parts = [
        ExactGroupSum(BALL).add(columns[0][a:b], columns[1][a:b])
        for a, b in itertools.pairwise(cuts)
    ]
    raw = [part.to_bytes() for part in parts]
    parts = [ExactGroupSum.from_bytes(r, BALL) for r in raw]
    total = parts[3].merge(parts[0].merge(parts[2])).merge(parts[1])
    assert total.to_bytes() == whole.to_bytes()
    total.add(*columns)
    assert (total.counts().sum(), total.integers().sum()) == (
        2 * whole.counts().sum(),
        2 * whole.integers().sum(),
    )


def test_bytes_are_checked():
    raw = ExactGroupSum(BALL).add(np.ones((3, 2)), ["a", 2, b"c"]).to_bytes()
    back = ExactGroupSum.from_bytes(raw, BALL)
    assert back.to_bytes() == raw and set(back.keys) == {"a", 2, b"c"}
    for wrong in (raw[:-1], b"", raw[:20] + b"\0" + raw[21:]):
        with pytest.raises(ValueError, match="data"):
            ExactGroupSum.from_bytes(wrong, BALL)
    with pytest.raises(ValueError, match="another region"):
        ExactGroupSum.from_bytes(raw, Ellipsoid.ball(2.0, [0.1, 0.2]))
    with pytest.raises(ValueError, match="other public keys"):
        ExactGroupSum(BALL, ["a"]).merge(ExactGroupSum(BALL, ["b"]))
    table = ExactGroupSum(BALL)
    with pytest.raises(ValueError, match="count twice"):
        table.merge(table)


def test_sums_stay_exact_beyond_what_one_partial_sum_holds(monkeypatch):
    rows, keys = np.full((50, 2), 1e9), np.arange(50) % 3
    want = ExactGroupSum(BALL).add(rows, keys)
    for _ in range(3):
        want.add(rows, keys)
    from ellipsum.kernels.backend import kernels, use_kernels

    class Few:
        CLIP_ROWS_LIMIT = 60

        def __getattr__(self, name):
            return getattr(real, name)

    real = kernels()
    with use_kernels(Few()):
        table = ExactGroupSum(BALL)
        for _ in range(4):
            table.add(rows, keys)
    assert table._low is not None and table.to_bytes() == want.to_bytes()


# ---- what one user may move --------------------------------------------------------------


def change(mechanism, data, other) -> np.ndarray:
    """Sums and numbers of all groups, one table less another, with the noise as the unit."""
    promise = mechanism.guarantee_for("u")
    sigma, size = mechanism._sum_sigma(BALL, promise), mechanism._size_sigma(promise)
    both = []
    for frame in (data, other):
        table = exact_table(mechanism, frame)
        both.append(np.column_stack([table.integers() / sigma, table.counts() / size]))
    return (both[0] - both[1]).astype(float).ravel()


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("max_keys", [1, 2, 3])
def test_no_user_moves_all_groups_past_mu_and_one_reaches_it(neighbors, max_keys):
    keys = list("abcdefgh")
    budget = {"mu": 0.7, "neighbors": neighbors}
    mechanism = PrivateGroupMean(BALL, keys=keys, max_keys=max_keys, **budget)
    rng = np.random.default_rng(max_keys)
    rest = pd.DataFrame({
        "a": rng.normal(size=9), "b": rng.normal(size=9),
        "store": rng.choice(keys, 9), "u": rng.integers(1, 4, 9),
    })  # fmt: skip
    most = 0.0
    for _ in range(150):
        sides = []
        for _side in range(2 if neighbors == "replace" else 1):
            k = int(rng.integers(1, 12))
            far = rng.choice([-1, 1], 2) * 10.0 ** rng.integers(0, 9)
            own = pd.DataFrame({
                "a": far[0] * np.ones(k), "b": far[1] * np.ones(k),
                "store": rng.choice(keys, k), "u": np.zeros(k, int),
            })  # fmt: skip
            sides.append(pd.concat([rest, own], ignore_index=True))
        other = sides[1] if neighbors == "replace" else rest
        most = max(most, float(np.linalg.norm(change(mechanism, sides[0], other))))
    assert 0.98 * 0.7 < most <= 0.7


def test_a_move_and_a_turn_cost_the_same_for_replace():
    """A size costs nothing beside its sum: 4 = 2^2 in one group, or 2 (1 + 1) in two."""
    mechanism = PrivateGroupMean(BALL, keys=["p", "q"], mu=1.0, neighbors="replace")
    row = pd.DataFrame({"a": [1e9], "b": [1e9], "store": ["p"], "u": [1]})
    turned = row.assign(a=-1e9, b=-1e9)
    moved = row.assign(store="q")
    assert 0.999 < np.linalg.norm(change(mechanism, row, turned)) <= 1
    assert 0.999 < np.linalg.norm(change(mechanism, row, moved)) <= 1


@pytest.mark.parametrize(("neighbors", "factor"), [("replace", np.sqrt(2)), ("add-remove", 1.0)])
def test_counts_have_the_noise_of_what_one_row_moves(neighbors, factor):
    counts = PrivateCounts(keys=["p", "q"], mu=0.5, neighbors=neighbors)
    assert counts(["p", "q", "p"]).size_sd == pytest.approx(factor / 0.5, rel=1e-12)
    wide = PrivateCounts(keys=["p", "q"], mu=0.5, neighbors=neighbors, max_keys=3)
    release = wide({"k": ["p", "q"], "u": [1, 2]}, key="k", user="u")
    assert release.size_sd == pytest.approx(factor * np.sqrt(3) / 0.5, rel=1e-12)


def test_which_groups_a_user_stays_in_depends_on_that_user_alone():
    data = make_table(8, 300).dropna(subset=["store", "u"])
    mechanism = PrivateGroupSum(BALL, max_keys=2, **BUDGET)
    for user in (0, 3, 7):
        own, others = data[data.u == user], data[data.u != user]
        alone, without = exact_table(mechanism, own), exact_table(mechanism, others)
        whole = exact_table(mechanism, data)
        assert alone.counts().sum() == min(2, own.store.nunique())
        assert without.merge(alone).to_bytes() == whole.to_bytes()


def test_the_choice_of_groups_favours_no_key():
    n, keys = 4000, list("abcd")
    data = {"v": np.ones(4 * n), "k": np.tile(keys, n), "u": np.repeat(np.arange(n), 4)}
    counts = PrivateCounts(keys=keys, mu=50.0)(data, key="k", user="u")
    # Each of n users is in one of 4: sd sqrt(3 n) / 4 = 27; eight of them.
    assert (np.abs(counts.sizes - n / 4) < 220).all()


def test_rows_without_a_key_or_a_user_are_in_no_group():
    rows = np.ones((6, 2))
    table = {"v": rows, "store": ["x", None, "y", "x", np.nan, "x"], "u": [1, 1, 2, None, 3, 4]}
    assert exact_table(PrivateGroupSum(BALL, **BUDGET), table).counts().tolist() == [2, 1]
    release = PrivateGroupSum(BALL, keys=["x", "none"], mu=1.0, neighbors="replace")(
        table, key="store", user="u"
    )
    assert release.n == 4  # users, whatever their keys: public for replace
    assert list(release) == ["x", "none"]


# ---- releases ----------------------------------------------------------------------------


def test_every_public_key_is_released_and_no_other():
    data = make_table(1, 500)
    release = PrivateGroupMean(BALL, keys=["y", "nobody", "x"], mu=0.5)(data, key="store", user="u")
    assert release.keys == ["y", "nobody", "x"] and release.value.shape == (3, 2)
    assert "z" not in release and len(release) == 3
    empty = PrivateGroupMean(BALL, keys=["p"], mu=0.5)(data.iloc[:0], key="store", user="u")
    assert empty.keys == ["p"] and np.isfinite(empty.value).all()


def test_private_keys_come_in_the_order_of_their_values():
    data = {"v": np.ones((4000, 2)), "k": np.repeat([7, -2, 11, 5], 1000)}
    release = PrivateGroupSum(BALL, **BUDGET)(data, key="k")
    assert release.keys == [-2, 5, 7, 11]
    few = {"v": np.ones((3, 2)), "k": ["a", "b", "c"]}
    nothing = PrivateGroupMean(BALL, **BUDGET)(few, key="k")
    assert nothing.keys == [] and nothing.value.shape == (0, 2)
    assert str(nothing) and json.dumps(nothing.to_dict())
    assert PrivateCounts(**BUDGET)([]).keys == []


def test_one_group_is_a_private_sum_of_it():
    """With one public key: the noise of PrivateSum, and the same integers but for its own draw."""
    rows = np.random.default_rng(0).normal(size=(50, 2))
    region = make_regions(2)["ellipsoid"]
    group = PrivateGroupSum(region, keys=["k"], mu=0.5, neighbors="replace")
    release = group(rows, key=["k"] * 50)
    alone = PrivateSum(region, mu=0.5)(rows)
    assert release["k"].parameters["sum_sigma"] == pytest.approx(
        alone.parameters["sum_sigma"], rel=1e-14
    )
    assert (np.abs(release["k"].value - alone.value) < 12 * release["k"].sd).all()


def test_each_group_may_have_a_region_of_its_own():
    rng = np.random.default_rng(2)
    regions = {"p": Ellipsoid.ball(1.0, d=2), "q": Ellipsoid.ball(50.0, [100.0, 0.0])}
    rows = np.vstack([rng.normal(size=(300, 2)) / 9, rng.normal([100, 0], 1, (300, 2))])
    keys = np.repeat(["p", "q"], 300)
    release = PrivateGroupMean(regions, mu=100.0)(rows, key=keys)
    assert np.allclose(release["p"].value, rows[:300].mean(0), atol=0.01)
    assert np.allclose(release["q"].value, rows[300:].mean(0), atol=0.1)
    table = ExactGroupSum(regions).add(rows, keys)
    for i, key in enumerate("pq"):
        own = ExactSum(regions[key]).add(rows[keys == key])
        assert (table.integers()[i] == own.integers()).all()
    with pytest.raises(ValueError, match="one for each key"):
        PrivateGroupMean(regions, keys=["p"], mu=1.0)


def test_releases_scatter_as_they_say():
    """400 groups of the same rows: noise of sums and sizes, five standard errors."""
    groups, each = 400, 30
    rows = np.tile(np.linspace(-1, 1, each)[:, None], (groups, 2))
    keys = np.repeat(np.arange(groups), each)
    release = PrivateGroupMean(BALL, keys=range(groups), mu=3.0)(rows, key=keys)
    z = (release.sizes - each) / release.size_sd
    assert abs(z.std() - 1) < 5 / np.sqrt(2 * groups) and abs(z.mean()) < 5 / np.sqrt(groups)
    low, high = release.confidence_interval()
    inside = ((low <= 0) & (0 <= high)).mean()
    assert abs(inside - 0.95) < 5 * np.sqrt(0.95 * 0.05 / groups)


def test_a_seed_repeats_the_release_and_is_said():
    data = make_table(2, 3000)
    mechanism = PrivateGroupMean(BALL, max_keys=2, **BUDGET)
    one = mechanism(data, key="store", user="u", seed=3)
    two = mechanism(data.sample(frac=1, random_state=1), key="store", user="u", seed=3)
    assert (one.integers == two.integers).all() and not one.private and one.keys == two.keys
    fresh = mechanism(data, key="store", user="u")
    assert fresh.private and "all groups together" in str(fresh)
    other = PrivateGroupMean(BALL, max_keys=2, epsilon=2.0, delta=1e-6)
    third = other(data, key="store", user="u", seed=3)
    assert third.keys == one.keys or len(third) != len(one)
    assert (third.sizes[: len(one)] != one.sizes).all()


def test_the_guarantee_says_what_it_covers():
    promise = PrivateGroupSum(BALL, keys=["a"], max_keys=3, mu=0.5).guarantee_for("user_id")
    assert promise.unit == "all rows of one value of user_id" and promise.mu == 0.5
    assert promise.to_dict()["covers"] == "all groups together"
    assert promise.to_dict()["max_keys"] == 3
    assert PrivateGroupSum(BALL, keys=["a"], max_keys=3, mu=0.5).guarantee_for(None).max_keys == 1
    assert promise.for_rows(9) is promise
    rows = PrivateGroupSum(BALL, keys=["a"], mu=0.5).guarantee_for(None)
    assert rows.for_rows(2).mu == 1.0


def test_several_keys_of_a_user_need_the_users():
    data, said = make_table(2, 300), "max_keys goes with user: without users a row is in one group"
    for make in (partial(PrivateGroupMean, BALL), partial(PrivateGroupSum, BALL), PrivateCounts):
        mechanism = make(keys=STORES, max_keys=2, mu=1.0)
        with pytest.raises(ValueError, match=said):
            mechanism(data, key="store")
    with pytest.raises(ValueError, match=said):
        PrivateGroupMean(BALL, keys=STORES, max_keys=2, mu=1.0).exact_sum(data, key="store")


def test_numbers_that_no_double_holds_raise_no_warning():
    """A warning would tell of a value."""
    wide = np.array([np.longdouble("1e4000"), 0.5, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sizes = PrivateCounts(edges=[0.0, 1.0], mu=1e5)(wide).sizes
    assert np.round(sizes).tolist() == [2]


def test_histograms_of_numbers():
    edges, x = [-1.0, 0.0, 1.0], np.array([-2, -1, -0.5, 0, 0.999, 1.0, 1.5, np.nan, np.inf])
    release = PrivateCounts(edges=edges, mu=1e5)(x)
    assert np.allclose(release.sizes, [2, 3], atol=1e-3)
    by_user = PrivateCounts(edges=edges, mu=1e5, max_keys=2)(x, user=[0, 0, 0, 0, 0, 1, 1, 1, 1])
    assert np.allclose(by_user.sizes, [1, 2], atol=1e-3)
    frame = pd.DataFrame({"x": x, "k": list("ppqqrrrrr")})
    named = PrivateCounts(edges=edges, mu=1e5, neighbors="replace")(frame, key="x")
    assert np.allclose(named.sizes, [2, 3], atol=1e-3) and named.n == 9
    counts = PrivateCounts(keys=list("pqr"), mu=1e5)(frame, key="k")
    assert np.allclose(counts.sizes, [2, 2, 5], atol=1e-3)


def test_every_container_gives_the_same_release(tmp_path):
    data = make_table(4, 200).astype({"u": "Int64"})
    table = pa.Table.from_pandas(data, preserve_index=False)
    pq.write_table(table, tmp_path / "x.parquet")
    mechanism = PrivateGroupMean(BALL, keys=STORES, max_keys=2, mu=1.0)
    want = mechanism(data, key="store", user="u", seed=1).integers
    counts = PrivateCounts(keys=STORES, max_keys=2, mu=1.0)
    sizes = counts(data, key="store", user="u", seed=1).sizes
    ways = [table, pl.DataFrame(data), open_rows(tmp_path / "x.parquet", by=["u", "store"]),
            {name: data[name] for name in data}]  # fmt: skip
    for way in ways:
        assert (mechanism(way, key="store", user="u", seed=1).integers == want).all()
        assert (counts(way, key="store", user="u", seed=1).sizes == sizes).all()
    rows = data[["a", "b"]].to_numpy()
    columns = {"key": data["store"], "user": data["u"]}
    assert (mechanism(rows, **columns, seed=1).integers == want).all()


def test_what_is_asked_in_a_wrong_way_is_refused():
    for wrong in (["a", "a"], [None], [1, 1.0], [True], [], "ab"):
        with pytest.raises((ValueError, TypeError), match="keys must"):
            PrivateGroupSum(BALL, keys=wrong, mu=1.0)
    with pytest.raises(ValueError, match="max_keys"):
        PrivateGroupSum(BALL, keys=[1], max_keys=0, mu=1.0)
    with pytest.raises(TypeError, match="give them as the data have them"):
        PrivateGroupSum(BALL, keys=[1, 2], mu=1.0)(pa.table({
            "a": [1.0], "b": [1.0], "k": ["1"]}), key="k")  # fmt: skip
    with pytest.raises(ValueError, match="either keys or edges"):
        PrivateCounts(keys=[1], edges=[0, 1], mu=1.0)
    with pytest.raises(ValueError, match="ascending"):
        PrivateCounts(edges=[1, 1], mu=1.0)
    with pytest.raises(ValueError, match="no column"):
        PrivateCounts(keys=[1], mu=1.0)(pd.DataFrame({"a": [1]}), key="b")


def test_keys_that_do_not_repeat_are_indexed_too():
    book = KeyBook()
    from ellipsum.rows.labels import labels_of

    wide = np.array([2**62, -(2**62), 5, 2**62])
    assert book.index(labels_of("k", wide)).tolist() == [book.place(int(v)) for v in wide]
    assert len(book) == 3 and book.index(labels_of("k", wide[::-1])).tolist()[0] == book.place(
        2**62
    )
    with pytest.raises(KeyError):
        book.place("absent")
