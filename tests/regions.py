"""Regions of each kind, and the kernels that this machine has, for tests."""

from __future__ import annotations

import numpy as np

from ellipsum import Ellipsoid, LowRankScale

try:
    from ellipsum.kernels import _core
except ImportError:  # a pure-Python install: the Numba twins are all there is
    _core = None

KERNEL_SETS = ["numba"] + ([] if _core is None else [f"cpp-{t}" for t in _core.targets()])


def make_regions(d: int) -> dict[str, Ellipsoid]:
    """One region of each kind, d coordinates, awkward numbers, clipping some of N(0, 4)."""
    rng = np.random.default_rng(d)
    center = rng.normal(size=d)
    root = rng.normal(size=(d, d)) / np.sqrt(d) + 2 * np.eye(d)
    return {
        "ball": Ellipsoid.ball(2.1 * np.sqrt(d), center),
        "box": Ellipsoid.box(center - rng.uniform(2, 9, d), center + rng.uniform(2, 9, d)),
        "ellipsoid": Ellipsoid(center, rng.uniform(0.1, 3, d), 3.3 * np.sqrt(d)),
        "matrix": Ellipsoid(center, root, 4.4 * np.sqrt(d)),
        "low-rank": Ellipsoid(center, make_low_rank(d), 4.4 * np.sqrt(d)),
    }


def make_low_rank(d: int, rank: int = 3) -> LowRankScale:
    """Its diagonal and a matrix of this rank (or d) beside it, about as large."""
    rng = np.random.default_rng([d, rank])
    shape = (d, min(d, rank))
    left, right = rng.normal(size=shape) / np.sqrt(d * shape[1]), rng.uniform(-1.3, 1.3, shape)
    return LowRankScale(rng.uniform(1.5, 3, d), left, right)
