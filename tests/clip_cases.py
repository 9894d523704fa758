"""Regions and rows for tests of the clip kernels."""

from __future__ import annotations

import numpy as np

from ellipsum.grid import round_bits
from ellipsum.rows.columns import ColumnBlock

RADIUS = 2.0**23 + 0.5  # a ball in grid units: C/g lies in [2^23, 2^24)
NONE = np.empty(0)
SUMS = ["ball", "box", "matrix", "low rank", "halves", "matrix halves", "low rank halves"]
#: One center and one scale for all coordinates (and limit, of a box); a center of 0; a scale that
#: is a power of two, with centers of 0 or their own; and scales of their own.
TASKS = ["ball", "box", "halves", "distances"]
BALLS = [f"{form} {task}" for form in ("even", "central") for task in TASKS] + ["central ellipsoid"]
BALLS += [f"power {task}{at}" for task in ("ball", "halves", "box") for at in ("", " off zero")]
BALLS.append("even box with limits of its own")
KINDS = [*SUMS, "distances", "matrix distances", "low rank distances"]
BINS = 23
DTYPES = [np.float32, np.float64]
TYPES = [*DTYPES, "mixed"]  # the last: columns of float32 and float64 by turns
RANGES = {"f": (-3e38, 3e38), "d": (-np.inf, np.inf)}


class Region:
    """Arguments of the kernels for a random region of each kind. ``unit`` magnifies: with 2^26
    the integers have 51 bits, and a difference in the last bit of a norm is seen."""

    def __init__(self, kind: str, d: int, seed: int = 0, unit: float = 1.0) -> None:
        rng = np.random.default_rng([seed, d])
        self.kind, self.d = kind, d
        self.center = rng.standard_normal(d)
        self.scale = RADIUS / np.sqrt(d) * np.exp(rng.standard_normal(d))
        if kind in BALLS:
            if "off" not in kind:
                self.center[:] = self.center[0] if "even" in kind else rng.choice([0.0, -0.0], d)
            self.scale[:] = self.scale if "ellipsoid" in kind else self.scale[0]
        if "power" in kind:
            self.scale = 2.0 ** np.rint(np.log2(self.scale))
        self.matrix = self.limit = NONE
        if "box" in kind:
            self.limit = RADIUS * np.abs(rng.standard_normal(d)) + 1
            if kind in BALLS:
                self.limit /= np.sqrt(d)
                self.limit[:] = self.limit if "own" in kind else self.limit[0]
        if "matrix" in kind:
            matrix = rng.standard_normal((d, d)) * (RADIUS / d)
            self.matrix = matrix.astype(np.float32).astype(np.float64).ravel()
            self.scale = NONE
        if "low rank" in kind:
            rank = min(d, 1 + (d + seed) % 19)
            left = rng.standard_normal((d, rank)) * (RADIUS / d) * unit
            right = rng.uniform(-1, 1, (d, rank))
            self.scale, left, right = (round_bits(a) for a in (self.scale, left, right))
            self.matrix = np.concatenate([left.ravel(), right.ravel()])
        else:
            self.matrix = unit * self.matrix
        self.radius = RADIUS * unit if "box" not in kind else np.nan  # no box has one
        self.scale, self.limit = unit * self.scale, unit * self.limit
        self.edges = RADIUS * unit * 2.0 ** (np.arange(BINS) - 12)
        self.stretch = False
        self.width = 2 * d if "halves" in kind else BINS if "distances" in kind else d

    def dense(self):
        """B in grid units, as it is, or diag(scale) + U V'."""
        if "low rank" not in self.kind:
            return self.matrix.reshape(self.d, self.d)
        left, right = self.matrix.reshape(2, self.d, -1)
        return np.diag(self.scale) + left @ right.T

    def sums(self, backend, rows, threads: int = 1):
        return self.sums_and_holes(backend, rows, threads)[:2]

    def sums_and_holes(self, backend, rows, threads: int = 1):
        partial, absent = np.zeros(self.width, np.int64), np.zeros(self.d, np.int64)
        shape = self.center, self.scale, self.matrix
        if "distances" in self.kind:
            arguments = *shape, self.edges, partial, threads
            counts = backend.distance_counts(rows, *arguments, absent=absent, stretch=self.stretch)
        else:
            arguments = *shape, self.limit, self.radius, partial, threads, "halves" in self.kind
            counts = backend.clip_sum(rows, *arguments, absent=absent, stretch=self.stretch)
        return counts, partial.tobytes(), absent.tobytes()


def gaussian_rows(n, d, dtype, seed=1):
    """Rows of which some are clipped and some are not."""
    rng = np.random.default_rng([seed, n, d])
    return (rng.standard_normal((n, d)) * np.exp(rng.standard_normal((n, 1)))).astype(dtype)


def hostile_rows(n, d, dtype, seed=1):
    """Huge, tiny, zero and non-finite numbers in every place of the vector."""
    rng = np.random.default_rng([seed, n, d])
    rows = gaussian_rows(n, d, dtype, seed)
    top = float(np.finfo(dtype).max)
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, top, -top, top / 3, np.finfo(dtype).tiny]
    special += [float(np.finfo(dtype).smallest_subnormal), 1e30, 1e-30, 1e-38]
    if dtype == np.float64:
        special += [1e308, 1e151, 1e150, -1e125, 1e121, 1e-121, 1e-160, 1e-308]
    for i in range(1, n, 2):
        at = rng.integers(0, d, size=1 + i % 3)
        rows[i, at] = rng.choice(special, size=at.size)
    with np.errstate(over="ignore"):
        rows[::5] *= dtype(2.0) ** rng.integers(-100, 100)
    return rows


def typed(rows, types):
    """The rows with every number one of its column's type, in the widest of them."""
    rows = rows.astype(np.float64 if types == "mixed" else types)
    if types == "mixed":
        rows[:, ::2] = rows[:, ::2].clip(*RANGES["f"]).astype(np.float32)
    return rows


def left_out(rows, holes, offset, types):
    """The same rows as columns with bitmaps, and hostile numbers where they leave one out."""
    n, d = rows.shape
    below = np.resize([np.nan, -np.inf, 1e300, 7.0, 0.0], (n, d)).clip(*RANGES[rows.dtype.char])
    columns = np.where(holes, below.astype(rows.dtype), rows)
    bits = np.ones((offset + n, d), bool)
    bits[offset:] = ~holes
    valid = [np.packbits(column, bitorder="little") for column in bits.T]
    some = [j % 3 != 1 for j in range(d)]  # of the other columns NaN alone says what is missing
    columns[:, ~np.array(some)] = np.where(holes, np.nan, rows)[:, ~np.array(some)]
    narrow = [types == "mixed" and j % 2 == 0 for j in range(d)]
    with np.errstate(over="ignore"):  # of what is left out
        columns = [
            c.astype(np.float32 if f else c.dtype) for c, f in zip(columns.T, narrow, strict=True)
        ]
    return ColumnBlock(
        columns,
        [bits if has else None for bits, has in zip(valid, some, strict=True)],
        [offset] * d,
    )
