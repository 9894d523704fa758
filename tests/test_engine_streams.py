"""Engines without an adapter: what they hand on is an iterator of Arrow tables."""

from __future__ import annotations

import numpy as np
import pytest

from ellipsum import Ellipsoid, PrivateGroupMean, PrivateMean


class _Handed:
    """An engine's stream: an iterator by its type alone."""

    def __init__(self, parts):
        self._parts = iter(parts)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._parts)


def test_any_iterator_of_arrow_tables_is_a_stream_and_a_scanner_is_for_one_pass():
    dataset = pytest.importorskip("pyarrow.dataset")
    pyarrow = pytest.importorskip("pyarrow")
    rows = np.random.default_rng(0).normal(size=(1000, 2))
    table = pyarrow.table({"a": rows[:, 0], "b": rows[:, 1]})
    one = PrivateMean(Ellipsoid.ball(3.0, d=2), mu=1)
    plan = PrivateMean(lower=[-9, -9], upper=[9, 9], mu=1)
    parts = (
        [table[:300], table[300:]],
        table.to_batches(100),
        [table[:9], *table[9:].to_batches(50)],
    )
    whole = dataset.dataset(table)
    for each in parts:
        assert (one(_Handed(each), seed=1).value == one(rows, seed=1).value).all()
        again = plan(lambda each=each: _Handed(each), seed=1)
        assert (again.value == plan(rows, seed=1).value).all()
        with pytest.raises(TypeError, match="read only once"):
            plan(_Handed(each))
    assert (one(whole.scanner(), seed=1).value == one(rows, seed=1).value).all()
    with pytest.raises(TypeError, match="read only once"):
        plan(whole.scanner())
    for source in (whole, whole.scanner):
        assert (plan(source, seed=1).value == plan(rows, seed=1).value).all()


def test_users_and_groups_of_such_an_iterator_are_those_of_the_table():
    pyarrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(1)
    columns = {"a": rng.normal(size=900), "b": rng.normal(size=900)}
    table = pyarrow.table(
        {**columns, "u": rng.integers(0, 90, 900), "s": rng.choice(["x", "y"], 900)}
    )
    ball, users = Ellipsoid.ball(3.0, d=2), ("a", "b", "u")
    by = PrivateMean(ball, mu=1, by="u")
    plan = PrivateMean(lower=[-9, -9], upper=[9, 9], mu=1, by="u")
    groups = PrivateGroupMean(ball, epsilon=5, delta=1e-5, max_keys=2)
    named, own = {"key": "s", "user": "u", "seed": 2}, table.select(users)
    one = by(_Handed(own.to_batches(100)), seed=1)
    assert (one.integers == by(own, seed=1).integers).all()
    assert (plan(_Handed(own.to_batches(70)), seed=1).value == plan(own, seed=1).value).all()
    far, here = groups(_Handed(table.to_batches(80)), **named), groups(table, **named)
    assert far.keys == here.keys == ["x", "y"] and (far.integers == here.integers).all()
