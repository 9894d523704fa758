"""Columns of every type, and cells that are moved into a box, in each arrangement of columns: the
sums of their doubles, wherever a thread's share begins."""

from __future__ import annotations

import numpy as np
import pytest

from clip_cases import NONE, Region
from ellipsum.rows.arrow_columns import ArrowBlock
from ellipsum.rows.batches import kernel_batches

_core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")
pa = pytest.importorskip("pyarrow")

TYPES = ["i8", "f8", "?", "i4", "f4", "u8", "i1", "u1", "i2", "u2", "u4", "?"]
COLUMNS = [name for name in _core.variants() if ":columns" in name]


@pytest.fixture(params=COLUMNS)
def variant(request):
    yield _core.choose_target(request.param)
    _core.choose_target("")


def column_of(dtype, n, rng):
    if dtype == "?":
        return rng.random(n) < 0.5
    if dtype[0] == "f":
        return rng.normal(size=n).astype(dtype)
    ends = np.iinfo(dtype)
    some = [ends.min, ends.max, ends.max - 1, ends.max // 3, 0, 1, 5]
    return np.array(some, dtype)[rng.integers(0, len(some), n)]


def block_of(n, d, first, nulls):
    """Arrow's columns from row `first` on, and the same rows as doubles."""
    rng = np.random.default_rng([n, d, first])
    columns = [column_of(TYPES[(j + d) % len(TYPES)], first + n, rng) for j in range(d)]
    gone = rng.random((d, first + n)) < (nulls * (np.arange(d) % 3 > 0))[:, None]
    arrays = [pa.array(c, mask=m if m.any() else None) for c, m in zip(columns, gone, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, [f"c{j}" for j in range(d)])[first:]
    (block,) = kernel_batches(batch, d)
    assert isinstance(block, ArrowBlock)
    doubles = np.array([c.astype(np.float64) for c in columns])
    return block, np.ascontiguousarray(np.where(gone, np.nan, doubles).T[first:])


def moved(region, rows, lower, upper):
    """Sums of rows that are moved into a box on the way."""
    shape, partial = (region.center, region.scale, region.matrix), np.zeros(region.width, np.int64)
    counts = _core.clip_sum(
        rows, *shape, NONE, region.radius, partial, 3, True, lower=lower, upper=upper
    )
    return counts, partial.tolist()


@pytest.mark.parametrize("nulls", [0.0, 0.02])
@pytest.mark.parametrize("d", [2, 5, 8, 9, 12, 16, 40])
def test_columns_of_every_type_in_every_arrangement(variant, d, nulls):
    """Shares of three threads begin within a byte of truth values, as slices do."""
    for n, first in ((1, 3), (31, 0), (700, 5), (1901, 8)):
        block, rows = block_of(n, d, first, nulls)
        for kind in ("ball", "box", "halves", "distances"):
            region = Region(kind, d)
            wanted = region.sums_and_holes(_core, rows)
            for threads in (1, 3):
                assert region.sums_and_holes(_core, block, threads) == wanted, (kind, n, threads)
        region = Region("halves", d)
        ends = region.center - 0.5, region.center + 2
        assert moved(region, block, *ends) == moved(region, rows, *ends)
        plain = np.asfortranarray(rows)
        assert moved(region, plain, *ends) == moved(region, rows, *ends)
