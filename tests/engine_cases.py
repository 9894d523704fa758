"""What every engine must give: the bytes of the same rows in one array, pass by pass."""

from __future__ import annotations

import numpy as np

from ellipsum import Ellipsoid, ExactSum, GaussianShape, PrivateMean, estimate_covariance
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


def withheld(error, secret):
    """Neither an error's text nor what hangs on it has the value of a record."""
    seen = repr(error) + str(error)
    assert error.__cause__ is None and error.__context__ is None
    return secret not in seen
