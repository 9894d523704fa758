"""What every engine must give: the bytes of the same rows in one array, pass by pass."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa

from ellipsum import (
    Ellipsoid,
    ExactSum,
    GaussianShape,
    PrivateCounts,
    PrivateGroupMean,
    PrivateMean,
    PrivateSum,
    estimate_covariance,
)
from ellipsum.adaptive.domain import Frame
from ellipsum.adaptive.passes import Passes

D, N = 3, 4000
REGION = Ellipsoid.for_covariance([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
FRAME = Frame(np.array([0.25, -0.5, 1.0]), np.array([1.0, 2.0, 0.5]))
EDGES = np.array([0.5, 1.0, 2.0, 4.0])
BOX = {"lower": [-50.0] * D, "upper": [50.0] * D}


def odd_rows(dtype=np.float64):
    """Rows inside and far outside, with cells that are not finite."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(N, D)) * 10.0 ** rng.integers(-3, 3, size=(N, 1))
    rows[::97, 1], rows[::131, 0], rows[::173] = np.nan, np.inf, -1e30
    return rows.astype(dtype)


def want(rows):
    """The bytes of the rows' sum here."""
    return ExactSum(REGION).add(rows).to_bytes()


def assert_same_passes(engine_rows, rows):
    """Every pass of the protocol, and what is made of them by one seed."""
    here = Passes(rows, D)
    assert engine_rows.count_rows() == here.count_rows() == len(rows)
    for missing in ("center", "ignore"):
        there = engine_rows.exact_sum(REGION, missing=missing)
        assert there.to_bytes() == here.exact_sum(REGION, missing=missing).to_bytes()
    counts = engine_rows.histogram(FRAME, EDGES)
    assert counts.dtype == np.int64 and (counts == here.histogram(FRAME, EDGES)).all()
    assert list(engine_rows.halves(FRAME, 1e6)) == list(here.halves(FRAME, 1e6))


def assert_same_releases(engine_rows, rows):
    """A plan, a region that follows from n, and products of rows."""
    mean = PrivateMean(**BOX, mu=5.0)
    plan, same = mean(engine_rows, seed=3), mean(rows, seed=3)
    assert plan.plan.passes > 2 and (plan.value == same.value).all()
    shape = PrivateMean(GaussianShape([1.0] * D), mu=1.0)
    assert (shape(engine_rows, seed=4).integers == shape(rows, seed=4).integers).all()
    present = PrivateMean(REGION, mu=1.0, missing="ignore")
    far, near = present(engine_rows, seed=6), present(rows, seed=6)
    assert (far.integers == near.integers).all() and (far.present == near.present).all()
    known = {"center": [0.0] * D, "radius": 3.0, "mu": 1.0, "seed": 5}
    here = estimate_covariance(rows, **known)
    assert (estimate_covariance(engine_rows, **known).value == here.value).all()


def labelled_table(users="integer"):
    """Rows of three columns, each with a store and a user, some of them of nobody or nowhere."""
    rng, n = np.random.default_rng(7), 1500
    rows = odd_rows()[:n]
    who, where = rng.integers(0, 300, size=n), rng.integers(0, 20, size=n)
    nobody, nowhere = rng.random(n) < 0.05, rng.random(n) < 0.05
    where[nobody & (rng.random(n) < 0.3)] = 77  # a store that nobody alone was in
    named = {
        "integer": lambda k: int(k) - 5 + (1 << 62),
        "text": lambda k: f"ü{k}\0 " if k % 2 else f"{k}",
        "uuid": lambda k: str(uuid.UUID(int=int(k) << 64)),
        "bytes": lambda k: b"\0\xff" * int(k % 2) + bytes([int(k) % 256, int(k) // 256, 0]),
        "double": lambda k: (-0.0 if k % 7 == 0 else 0.0) if k < 20 else k / 4.0,
    }[users]
    columns = dict(zip("abc", rows.T, strict=True))
    columns["store"] = [None if gone else f"s{k}" for k, gone in zip(where, nowhere, strict=True)]
    columns["user"] = [None if gone else named(k) for k, gone in zip(who, nobody, strict=True)]
    return pa.table(columns)


def assert_same_groups(make, table):
    """Tables of groups, counts and histograms: ``make(columns, by)`` is the table in an engine."""
    columns, seed = ["a", "b", "c"], {"seed": 8}
    for keys in (None, ["s3", "s1", "of nobody"]):
        budget = {"keys": keys, "epsilon": 5.0, "delta": 1e-4}
        for neighbors, missing in (("add-remove", "ignore"), ("replace", "center")):
            both = {**budget, "neighbors": neighbors}
            by_row = PrivateGroupMean(REGION, **both, missing=missing)
            far = by_row.exact_sum(make(columns, ["store"]), key="store")
            here = by_row.exact_sum(table.drop_columns("user"), key="store")
            assert far.to_bytes() == here.to_bytes() and far.units == len(table)
            release = by_row(make(columns, ["store"]), key="store", **seed)
            same = by_row(table.drop_columns("user"), key="store", **seed)
            assert release.keys == same.keys and len(release.keys) > 1
            assert (release.sizes == same.sizes).all() and release.n == same.n
            counts = PrivateCounts(**both)
            far, here = (counts(t, key="store", **seed) for t in (make([], ["store"]), table))
            assert far.keys == here.keys and (far.sizes == here.sizes).all()
    bins = PrivateCounts(edges=[-1.0, 0.0, 0.5, 3.0], mu=1.0)
    far, here = bins(make(["b"], []), **seed), bins(table, key="b", **seed)
    assert (far.sizes == here.sizes).all()


def assert_same_groups_of_users(make, table):
    """As above, of users: one row a user and group, at most two groups of a user."""
    columns, by = ["a", "b", "c"], ["store", "user"]
    who, seed = {"key": "store", "user": "user"}, {"seed": 9}
    for keys in (None, ["s3", "s1", "of nobody"]):
        for neighbors, missing in (("add-remove", "center"), ("replace", "ignore")):
            budget = {"keys": keys, "epsilon": 5.0, "delta": 1e-4, "neighbors": neighbors}
            of_users = PrivateGroupMean(REGION, **budget, max_keys=2, missing=missing)
            far, here = (of_users.exact_sum(t, **who) for t in (make(columns, by), table))
            assert far.to_bytes() == here.to_bytes() and far.units == here.units
            counts = PrivateCounts(**budget, max_keys=2)
            far, here = (counts(t, **who, **seed) for t in (make([], by), table))
            assert far.keys == here.keys and (far.sizes == here.sizes).all() and far.n == here.n
    of_itself, itself = PrivateCounts(epsilon=5.0, delta=1e-4), {"key": "user", "user": "user"}
    far, here = (of_itself(t, **itself, **seed) for t in (make([], ["user"]), table))
    assert far.keys == here.keys and (far.sizes == here.sizes).all() and far.n == here.n
    bins = PrivateCounts(edges=[-1.0, 0.0, 0.5, 3.0], mu=1.0, max_keys=2, neighbors="replace")
    far = bins(make(["b"], ["user"]), user="user", **seed)
    here = bins(table, key="b", user="user", **seed)
    assert (far.sizes == here.sizes).all() and far.n == here.n


def assert_same_users(make, table):
    """One row a user, or several: of a region, a shape, and a box."""
    rows, table = make(["a", "b", "c"], ["user"]), table.drop_columns("store")
    few = {"max_rows": 2, "neighbors": "add-remove"}
    for mechanism in (
        PrivateMean(REGION, mu=1.0, by="user"),
        PrivateMean(REGION, mu=1.0, by="user", missing="ignore"),
        PrivateSum(REGION, mu=1.0, by="user", neighbors="add-remove"),
        PrivateMean(REGION, mu=1.0, by="user", **few),
        PrivateMean(GaussianShape([1.0] * D), mu=1.0, by="user"),
    ):
        far, here = mechanism(rows, seed=10), mechanism(table, seed=10)
        assert (far.integers == here.integers).all() and far.n == here.n
    box = PrivateMean(**BOX, mu=20.0, by="user")
    assert (box(rows, seed=11).value == box(table, seed=11).value).all()


def withheld(error, secret):
    """Neither an error's text nor what hangs on it has the value of a record."""
    seen = repr(error) + str(error)
    assert error.__cause__ is None and error.__context__ is None
    return secret not in seen
