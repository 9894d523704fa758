"""Groups over several machines, and out of a budget."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ellipsum import (
    Budget,
    BudgetError,
    Ellipsoid,
    ExactGroupSum,
    GaussianShape,
    PrivateCounts,
    PrivateGroupMean,
)
from test_groups import BALL, BUDGET, STORES, make_table


def test_parts_of_several_machines_release_what_the_whole_does():
    data = make_table(6, 400)
    for user, budget in itertools.product(["u", None], [{"mu": 1.0}, BUDGET]):
        keys = STORES if "mu" in budget else None
        frame = data if user else data.drop(columns="u")
        mechanism = PrivateGroupMean(BALL, keys=keys, max_keys=2, neighbors="replace", **budget)
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
