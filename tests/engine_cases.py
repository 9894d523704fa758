"""What every engine must give: the bytes of the same rows in one array, pass by pass."""

from __future__ import annotations

import pickle
import uuid
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ellipsum import (
    Checkpoint,
    CheckpointError,
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
from ellipsum.engines.engine_rows import EngineRows
from ellipsum.records import PrivateRegression

D, N = 3, 4000
REGION = Ellipsoid.for_covariance([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
FRAME = Frame(np.array([0.25, -0.5, 1.0]), np.array([1.0, 2.0, 0.5]))
EDGES = np.array([0.5, 1.0, 2.0, 4.0])
BOX = {"lower": [-50.0] * D, "upper": [50.0] * D}


class Tables(EngineRows):
    """A table in uneven parts; results come twice and in any order, pieces in any order.

    ``passes`` has the method of each pass that was sent; ``dies`` is called before one is.
    """

    dies = staticmethod(lambda: None)
    passes: tuple[str, ...] = ()

    def __init__(self, table, columns=("a", "b", "c"), by=(), seed=0):
        rng = np.random.default_rng(seed)
        cuts = [0, *np.sort(rng.integers(0, len(table) + 1, size=4)).tolist(), len(table)]
        self.parts = [table.slice(a, b - a) for a, b in pairwise(cuts)]
        self.columns, self.by, self.d, self._rng = list(columns), tuple(by), len(columns), rng

    def _data(self, task, part):
        if not task.by:  # a mechanism of rows reads no labels
            return iter([np.column_stack([part[name].to_numpy() for name in self.columns])])
        part = part.select([*(self.columns if task.d else ()), *task.by])
        return iter(part.to_batches(max_chunksize=130))

    def _delivered(self, results):
        order = [*self._rng.permutation(len(results)), *self._rng.integers(0, len(results), 2)]
        for k in order:
            yield f"part {k}", results[k]

    def _sent(self, task):
        self.dies()
        inner = getattr(task, "task", task)
        self.passes = (*self.passes, getattr(inner, "method", type(inner).__name__))
        return pickle.dumps(task)

    def gather(self, task):
        sent = self._sent(task)
        run = [pickle.loads(sent)(self._data(task, part)) for part in self.parts]
        yield from self._delivered(run)

    def exchange(self, task):
        sent, buckets = self._sent(task), int(self._rng.integers(1, 9))
        heaps = [[] for _ in range(buckets)]
        for part in self.parts:
            for bucket, piece in pickle.loads(sent).split(self._data(task, part), buckets):
                heaps[bucket].append(piece)
        for heap in heaps:
            self._rng.shuffle(heap)
        yield from self._delivered([pickle.loads(sent)(iter(heap)) for heap in heaps])


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
    fits = [PrivateRegression(2.0, center=[0.0] * D, mu=1.0, seed=7) for _ in range(2)]
    there, here = fits[0].fit(engine_rows), fits[1].fit(rows)
    assert (there.coef_ == here.coef_).all() and there.stretch_ == here.stretch_


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


def assert_resumes(make, table, folder):
    """Jobs that go on: a plan whose driver dies before its fourth pass, users, groups, counts; and
    one of a row less, which is refused."""
    columns, less = ["a", "b", "c"], table.slice(1)
    plan, path, left = PrivateMean(**BOX, mu=5.0), folder / "plan.ck", [3]
    rows = make(table, columns, [])
    gather = rows.gather

    def dying(task):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return gather(task)

    rows.gather = dying
    try:
        plan(rows, resume=path)
        raise AssertionError("the driver lives")
    except KeyboardInterrupt:
        found = plan(make(table, columns, []), resume=path)
    checkpoint = Checkpoint(path)
    root = checkpoint._parsed(checkpoint._read()).root
    here = np.column_stack([table[name].to_numpy() for name in columns])
    assert (found.value == plan(here, seed=root).value).all() and found.private
    users, groups = PrivateMean(REGION, mu=1.0, by="user"), {"epsilon": 5.0, "delta": 1e-4}
    for name, job in {
        "plan": lambda t, ck: plan(make(t, columns, []), resume=ck).value,
        "users": lambda t, ck: users(make(t, columns, ["user"]), resume=ck).integers,
        "groups": lambda t, ck: (
            PrivateGroupMean(REGION, **groups, max_keys=2)(
                make(t, columns, ["store", "user"]), key="store", user="user", resume=ck
            ).integers
        ),
        "counts": lambda t, ck: (
            PrivateCounts(**groups)(make(t, [], ["store"]), key="store", resume=ck).sizes
        ),
    }.items():
        path = folder / f"{name}.ck"
        first, again = (job(table, path) for _ in range(2))
        assert (np.asarray(first) == np.asarray(again)).all()
        try:
            job(less, path)
            raise AssertionError("another number of rows goes on")
        except CheckpointError:
            pass


def withheld(error, secret):
    """Neither an error's text nor what hangs on it has the value of a record."""
    seen = repr(error) + str(error)
    assert error.__cause__ is None and error.__context__ is None
    return secret not in seen
