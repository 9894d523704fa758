"""Rows that the kernels make as they go, of every type, apart from each other or with cells that
are moved into a box: the sums of the same numbers as doubles one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from clip_cases import NONE, Region, hostile_rows
from ellipsum import Ellipsoid, ExactSum
from ellipsum.kernels import twins

_core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")

TYPES = ["i8", "f8", "?", "i4", "f4", "u8", "i1", "u1", "i2", "u2", "u4"]
ROWS = [name for name in _core.variants() if ":columns" not in name]
KINDS = ["ball", "box", "halves", "distances", "matrix", "low rank halves", "power ball"]


@pytest.fixture(params=ROWS)
def variant(request):
    yield _core.choose_target(request.param)
    _core.choose_target("")


def rows_of(dtype, n, d):
    """Numbers of the whole range of a type, of floats with holes and huge ones."""
    rng = np.random.default_rng([n, d])
    if dtype == "?":  # any byte but 0 is true
        return (rng.integers(0, 256, (n, d)) * rng.integers(0, 2, (n, d))).astype("u1").view("?")
    if dtype[0] == "f":
        return hostile_rows(n, d, np.dtype(dtype).type)
    ends = np.iinfo(dtype)
    some = [ends.min, ends.max, ends.max - 1, ends.max // 3, 0, 1, 5]
    return np.array(some, dtype)[rng.integers(0, len(some), (n, d))]


def layouts(rows):
    """The same rows in other places of the memory."""
    n, d = rows.shape
    wide = np.zeros((n, d + 3), rows.dtype)
    wide[:, 1 : d + 1] = rows
    yield "in order", rows
    yield "with gaps", wide[:, 1 : d + 1]
    yield "every other column", np.repeat(rows, 2, axis=1)[:, ::2]
    yield "columns backwards", np.ascontiguousarray(rows[:, ::-1])[:, ::-1]
    yield "rows backwards", np.ascontiguousarray(rows[::-1])[::-1]
    yield "columns with gaps", np.asfortranarray(np.repeat(rows, 2, axis=0))[::2]
    yield "all backwards", np.asfortranarray(rows[::-1, ::-1])[::-1, ::-1]
    yield "one row", np.broadcast_to(rows[:1], rows.shape)


def as_doubles(rows):
    """The rows as the rule has them: one after the other."""
    rows = rows.view("u1") != 0 if rows.dtype == bool else rows
    return np.ascontiguousarray(rows, np.float64)


def moved(region, rows, lower, upper, threads):
    """Sums of rows whose cells are moved into a box."""
    shape, partial = (region.center, region.scale, region.matrix), np.zeros(region.width, np.int64)
    known = NONE, region.radius, partial, threads, True
    counts = _core.clip_sum(rows, *shape, *known, lower=lower, upper=upper)
    return counts, partial.tobytes()


@pytest.mark.parametrize("d", [1, 3, 8, 9, 14, 16, 40, 300])
def test_rows_of_every_type_and_layout_in_every_arrangement(variant, d):
    for k, dtype in enumerate(TYPES):
        for n in (1, 8, 150) if d < 300 else (21,):
            region, boxed = Region(KINDS[(k + n + d) % len(KINDS)], d), Region("halves", d)
            region.stretch = k % 2 == 0
            rows = rows_of(dtype, n, d)
            ends = boxed.center - 0.5, boxed.center + 2
            for name, view in layouts(rows):
                plain = as_doubles(view)
                with np.errstate(all="ignore"):
                    inside = np.where(np.isfinite(plain), np.clip(plain, *ends), boxed.center)
                wanted = region.sums_and_holes(_core, plain)
                into_box = boxed.sums(_core, inside)
                for threads in (1, 3):
                    got = region.sums_and_holes(_core, view, threads)
                    assert got == wanted, (region.kind, name, dtype, n, threads)
                    got = moved(boxed, view, *ends, threads)
                    assert got == into_box, (name, dtype, n, threads)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TYPES)
def test_integers_are_those_of_the_numba_twin(kind, dtype):
    for d in (2, 11, 33) if "matrix" not in kind else (11,):
        region, rows = Region(kind, d), rows_of(dtype, 40, d)
        for name, view in layouts(rows):
            wanted = region.sums_and_holes(twins, as_doubles(view) if dtype == "?" else view)
            assert region.sums_and_holes(_core, view) == wanted, (name, d)


@pytest.mark.parametrize("dtype", [*TYPES, "f2", "<i4", "<f8", ">i4", ">f8"])
def test_a_row_at_a_time_is_all_at_once(dtype):
    rng, region = np.random.default_rng(0), Ellipsoid.ball(4.0, d=11)
    rows = rng.integers(0, 3, (9, 22)).astype(dtype)[:, ::2]
    one_by_one, together = ExactSum(region), ExactSum(region).add(rows.astype(np.float64))
    for row in rows:
        one_by_one.add(row)
    assert one_by_one.to_bytes() == together.to_bytes()
    assert ExactSum(region).add(rows).to_bytes() == together.to_bytes()
    named = rows.astype(rows.dtype.newbyteorder("<"))  # which says its order by name
    for view in (named, np.asfortranarray(named)):
        assert ExactSum(region).add(view).to_bytes() == together.to_bytes()
    assert ExactSum(region).add(named[0]).to_bytes() == ExactSum(region).add(rows[0]).to_bytes()
