"""Groups over several machines, and out of a budget."""

from __future__ import annotations

import copy
import enum
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest

from ellipsum import (
    Budget,
    BudgetError,
    Ellipsoid,
    ExactGroupSum,
    GaussianShape,
    PrivateCounts,
    PrivateGroupMean,
    PrivateGroupSum,
)
from ellipsum.groups.keys import KeyBook
from ellipsum.rows.labels import labels_of
from test_groups import BALL, BUDGET, STORES, make_table

REGION = Ellipsoid.ball(1.0, d=2)
ROWS_OF_PARTS = np.random.default_rng(0).normal(size=(3, 2))


def test_parts_of_several_machines_release_what_the_whole_does():
    data = make_table(6, 400)
    for user, budget in itertools.product(["u", None], [{"mu": 1.0}, BUDGET]):
        keys = STORES if "mu" in budget else None
        frame = data if user else data.drop(columns="u")
        known = {"keys": keys, "max_keys": 2 if user else 1, "neighbors": "replace"}
        mechanism = PrivateGroupMean(BALL, **known, **budget)
        home = data.u.map(lambda u: 0 if u is None else int(u) % 3)  # a user's rows on one machine
        total = ExactGroupSum(BALL, keys)
        for machine in range(3):
            part = mechanism.exact_sum(frame[home == machine], key="store", user=user)
            total.merge(ExactGroupSum.from_bytes(part.to_bytes(), BALL))
        merged = mechanism(total, user=user, seed=4)
        whole = mechanism(frame, key="store", user=user, seed=4)
        assert (merged.integers == whole.integers).all() and merged.n == whole.n
    with pytest.raises(ValueError, match="another region"):
        mechanism(ExactGroupSum(Ellipsoid.ball(1.0, d=2)))
    with pytest.raises(TypeError, match="has its keys"):
        mechanism(total, key="store")


def test_a_table_is_released_for_the_units_that_it_was_made_of():
    rows, key, user = np.ones((60, 2)), np.arange(60) % 6, np.arange(60) // 6
    keys = list(range(6))

    def make(max_keys, neighbors="add-remove"):
        return PrivateGroupMean(BALL, keys=keys, max_keys=max_keys, mu=1.0, neighbors=neighbors)

    wide = make(6).exact_sum(rows, key=key, user=user)
    plain = make(1).exact_sum(rows, key=key)
    assert make(6)(wide, user="u").private and make(1)(plain).private
    by_hand = ExactGroupSum(BALL, keys).add(rows, key)
    empty = make(6).exact_sum(rows[:0], key=key[:0], user=user[:0])
    wrong = [
        (make(1), wide, "u"),  # a user is in six groups, and the noise would be for one
        (make(6, "replace"), wide, "u"),  # nobody counted the users
        (make(1), wide, None),
        (make(6), plain, "u"),
        (make(6), by_hand, "u"),
        (make(1), empty, "u"),  # whatever is in it
    ]
    for mechanism, table, name in wrong:
        for sent in (table, ExactGroupSum.from_bytes(table.to_bytes(), BALL)):
            with pytest.raises(ValueError, match="other units"):
                mechanism(sent, user=name)
    for other in (plain, by_hand, make(1).exact_sum(rows, key=key, user=user)):
        with pytest.raises(ValueError, match="other units"):
            other.merge(wide)
    assert ExactGroupSum(BALL, keys).merge(wide).made_of == wide.made_of


def test_a_table_is_released_for_the_column_of_users_that_it_was_made_of():
    """Of visits it is none of persons, of sums none of means; of a column without a name it is what
    the caller says."""
    n = 40
    table = pd.DataFrame({"x": 1.0, "k": 0, "visit": np.arange(n), "person": np.arange(n) // 10})
    mechanism = PrivateGroupMean(Ellipsoid.ball(1.0, d=1), keys=[0], mu=1.0)
    sums = PrivateGroupMean(Ellipsoid.ball(1.0, d=1), keys=[0], mu=1.0, statistic="sum")
    visits, persons, summed = (
        each.exact_sum(table[["x", "k", user]], key="k", user=user)
        for each, user in ((mechanism, "visit"), (mechanism, "person"), (sums, "person"))
    )
    for sent in (lambda t: t, lambda t: ExactGroupSum.from_bytes(t.to_bytes(), t.region(0))):
        for wrong, name in ((visits, "person"), (persons, "visit"), (summed, "person")):
            with pytest.raises(ValueError, match="other units"):
                mechanism(sent(wrong), user=name)
        for one, other in ((visits, persons), (summed, persons)):
            with pytest.raises(ValueError, match="other units"):
                sent(one).merge(sent(other))
            with pytest.raises(ValueError, match="other units"):
                sent(one).merge_bytes(other.to_bytes())
    unnamed = mechanism.exact_sum(table[["x"]], key=table["k"], user=table["person"])
    for total in (unnamed, ExactGroupSum.from_bytes(unnamed.to_bytes(), unnamed.region(0))):
        assert total.made_of.fits(persons.made_of) and total.made_of.fits(visits.made_of)
    unnamed.merge(persons)
    with pytest.raises(ValueError, match="other units"):
        mechanism(unnamed, user="visit")
    assert mechanism(unnamed, user="person").private


def test_a_copy_by_pickle_knows_the_columns():
    region = Ellipsoid.ball(9.0, d=2)
    frame = pd.DataFrame({"a": np.ones(6), "b": np.full(6, 5.0), "k": 0})
    mechanism = PrivateGroupSum(region, keys=[0], mu=1.0)
    one, other = (mechanism.exact_sum(frame[list(cs)], key="k") for cs in ("abk", "bak"))
    for sent in (lambda t: t, lambda t: pickle.loads(pickle.dumps(t)), copy.deepcopy):
        assert sent(one).columns.names == ("a", "b")
        with pytest.raises(ValueError, match="another order"):
            sent(one).merge(sent(other))


def test_a_budget_is_drawn_before_the_noise_and_refuses_what_it_has_not():
    rows, keys = np.ones((9, 2)), list("aaabbbccc")
    budget = Budget(mu=1.0, neighbors="add-remove")
    mechanism = PrivateGroupMean(BALL, keys=list("abc"), mu=0.8)
    mechanism(rows, key=keys, budget=budget)
    with pytest.raises(BudgetError):
        mechanism(rows, key=keys, budget=budget)
    pair = Budget(epsilon=1.2, delta=3e-6, neighbors="add-remove")
    PrivateCounts(**BUDGET)(keys, budget=pair)
    with pytest.raises(BudgetError):
        PrivateCounts(**BUDGET)(keys, budget=pair)


def test_private_and_public_keys_of_one_budget_share_no_noise():
    rows, keys = np.full((400, 2), 0.5), np.repeat([1, 2], 200)
    for make in (PrivateGroupSum, PrivateGroupMean):
        exact = make(BALL, mu=1.0, keys=[1, 2]).exact_sum(rows, key=keys).integers()
        found = [
            make(BALL, keys=named, **BUDGET)(rows, key=keys, seed=6) for named in (None, [1, 2])
        ]
        one, two = ((release.integers - exact).astype(float) for release in found)
        # Noise of one key at two levels: with both releases, the exact sum.
        ratio = one / two
        assert np.ptp(ratio) > 1e-3 * np.abs(ratio).max()


def test_histograms_of_other_bins_share_no_noise():
    numbers = np.array([0.1, 0.2, 0.8, 0.9])
    one, two = (PrivateCounts(edges=[0, e, 1], mu=1.0)(numbers, seed=7) for e in (0.5, 0.6))
    assert (one.value != two.value).all()  # though the bins hold as many


def test_members_of_enumerations_are_keys_as_their_values():
    class Store(str, enum.Enum):
        X = "x"

    class Number(enum.IntEnum):
        ONE = 1

    for member, column in ((Store.X, np.array(["x", "y"])), (Number.ONE, np.array([1, 2]))):
        book = KeyBook([member])
        assert type(book.keys[0]) in (str, int)
        assert book.index(labels_of("k", column)).tolist() == [0, -1]
        table = ExactGroupSum(BALL).add(np.ones((2, 2)), [member, member])
        again = ExactGroupSum.from_bytes(table.to_bytes(), BALL)
        assert again.keys == [member.value] and again.to_bytes() == table.to_bytes()


def test_the_table_of_groups_says_what_its_numbers_are():
    data = make_table(6, 400)
    mechanism = PrivateGroupMean(BALL, keys=STORES, max_keys=2, mu=1.0)
    release = mechanism(data, key="store", user="u")
    assert release.private and any("missing cell" in caveat for caveat in release.caveats)
    assert release.to_dict()["caveats"] == list(release.caveats)
    text = str(release)
    assert release.caveats[0] in text and "a user counts in 2 groups at most" in text
    assert f"{release.value[0, 0]:.6g} ({release.sd[0, 0]:.2g})" in text
    counts = PrivateCounts(keys=STORES, mu=1.0)(data, key="store")
    assert counts.caveats == () and "max_keys" not in str(counts)
    assert repr(mechanism) == (
        f"PrivateGroupMean(public keys: {len(STORES)}, max_keys=2, mu=1, neighbors='add-remove')"
    )
    with pytest.raises(TypeError, match=r"give shape\.at"):
        PrivateGroupMean(GaussianShape([1.0, 1.0]), keys=STORES, mu=1.0)


COPIES = {
    "bytes": lambda table: ExactGroupSum.from_bytes(table.to_bytes(), REGION),
    "pickle": lambda table: pickle.loads(pickle.dumps(table)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_a_copy_of_a_table_is_neither_merged_nor_released_again(duplicate):
    run = PrivateGroupSum(REGION, keys=["a", "b"], mu=1.0)
    table = run.exact_sum(ROWS_OF_PARTS, key=["a", "b", "a"])
    twin, before = duplicate(table), table.to_bytes()
    assert twin.to_bytes() == before
    other = run.exact_sum(ROWS_OF_PARTS, key=["b", "b", "a"])
    for copied in (twin, duplicate(table), other.merge(twin)):
        with pytest.raises(ValueError, match="count twice"):
            table.merge(copied)
        assert table.to_bytes() == before
    assert run(table).private
    for again in (table, twin, other):
        with pytest.raises(ValueError, match="spend_again=True"):
            run(again)
    assert run(twin, spend_again=True).private


def test_equal_tables_of_rows_are_two_tables():
    run = PrivateGroupSum(REGION, keys=["a", "b"], mu=1.0)
    one, two = (run.exact_sum(ROWS_OF_PARTS, key=["a", "b", "a"]) for _ in range(2))
    assert one.to_bytes() == two.to_bytes()
    assert one.merge(two).counts().tolist() == [4, 2]


def test_a_table_without_rows_has_marks_as_any_other():
    """An error for one that has rows, and none for one that has not, would tell which it is."""
    run = PrivateGroupSum(REGION, keys=["a"], max_keys=1, mu=1.0)
    for key in (["a", "a", "a"], ["z", "z", "z"]):
        part = run.exact_sum(ROWS_OF_PARTS, key=key, user=[1, 1, 2])
        total = run.exact_sum(ROWS_OF_PARTS, key=key, user=[1, 1, 2]).merge(part)
        with pytest.raises(ValueError, match="count twice"):
            total.merge(part)


def test_a_table_of_nothing_is_a_zero_for_many_workers():
    zero, total = ExactGroupSum(REGION, ["a"]), ExactGroupSum(REGION, ["a"])
    for duplicate in COPIES.values():
        total.merge(duplicate(zero).add(ROWS_OF_PARTS, ["a"] * 3))
    assert total.counts().tolist() == [3 * len(COPIES)]
