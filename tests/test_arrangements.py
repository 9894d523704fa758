"""Every arrangement of the clip kernels, in every layout, dtype and task, gives the integers of the
Numba twin (which one runs: test_choice.py)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from clip_cases import (
    BALLS,
    DTYPES,
    KINDS,
    RANGES,
    TYPES,
    Region,
    gaussian_rows,
    hostile_rows,
    left_out,
    typed,
)
from ellipsum.kernels import twins

_core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")


#: All variants of one kind and type follow each other.
again = lru_cache(maxsize=2)


@pytest.fixture(params=_core.variants())
def variant(request):
    yield _core.choose_target(request.param)
    _core.choose_target("")


COLUMNS = [name for name in _core.variants() if ":columns" in name]
ROWS = [name for name in _core.variants() if name not in COLUMNS]


def way_of_products(variant):
    """What of a variant decides how products with a matrix or factors are clipped: how many rows
    are in flight, and whether those of up to 16 coordinates may stay in registers. Nothing is asked
    for or kept as it was read, and rows in columns are copied as rows, so that all ways to read
    columns are one."""
    target, name = variant.split(":")
    return target, name.split("-")[0], "registers" in name


#: The first of each.
OF_PRODUCTS = {way_of_products(name): name for name in reversed(_core.variants())}.values()


def cases(kinds, variants):
    """Each kind in each variant; with a matrix or factors one for each way that they have."""
    found = [(kind, variant) for kind in kinds for variant in variants]
    return pytest.mark.parametrize(
        ("kind", "variant"),
        [
            (kind, variant)
            for kind, variant in found
            if variant in OF_PRODUCTS or not is_mixed(kind)
        ],
        indirect=["variant"],
    )


def is_mixed(kind):
    return "matrix" in kind or "low rank" in kind


def layouts(rows):
    """The same rows as they may lie in memory."""
    n, d = rows.shape
    wide = np.zeros((n, d + 5), rows.dtype)
    wide[:, :d] = rows
    shifted = np.zeros((d, n + 3), rows.dtype)
    shifted[:, 1 : n + 1] = rows.T
    every_other = np.zeros((2 * n, d), rows.dtype)
    every_other[::2] = rows
    return {
        "rows": rows,
        "rows with gaps": wide[:, :d],
        "every other row": every_other[::2],
        "rows backwards": rows[::-1],
        "columns": np.asfortranarray(rows),
        "columns off the lines": shifted[:, 1 : n + 1].T,
        "columns backwards": np.asfortranarray(rows[:, ::-1])[:, ::-1],
    }


@again
def tables(kind, dtype):
    """Regions, rows in all layouts, and what the Numba twin makes of them."""
    found = []
    for d in (2, 7, 9, 13, 16, 33, 97, 260, 801):
        region = Region(kind, d, unit=2.0**26)
        for n in (9, 79):
            for make in (gaussian_rows, hostile_rows):
                rows = make(n, d, dtype)
                found.append((region, layouts(rows), region.sums_and_holes(twins, rows)))
    return found


@cases(KINDS + BALLS, _core.variants())
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_arrangement_and_layout_gives_the_integers_of_the_numba_twin(variant, kind, dtype):
    for region, views, wanted in tables(kind, dtype):
        for name, view in views.items():
            own = name.startswith("columns") == (variant in COLUMNS)
            if not own and variant not in OF_PRODUCTS:
                continue  # rows are so many at once to ways to read columns, and columns to others
            for threads in (1, 2) if own else (1,):
                assert region.sums_and_holes(_core, view, threads) == wanted, (view.shape, name)


#: Balls whose float32 rows may stay unscaled.
POWERS = [f"power {task}{at}" for task in ("ball", "halves") for at in ("", " off zero")]

#: Of such a ball, and of others, where one is too far or near.
CENTERS = [[0.0, -(2.0**-300)], [0.0, 1e-46, -1.0, 1e30], [-1.0, 2.0**256]]
CENTERS += [[0.0, 2.0**-301], [1.0, -(2.0**257)], [0.5, 2.0**600]]


@cases(POWERS, _core.variants())
def test_scales_of_every_power_of_two_give_the_integers_of_the_numba_twin(variant, kind):
    for exponent in (-140, -101, -100, -99, 0, 1, 99, 100, 101, 399):
        some = CENTERS if "off" in kind else [[0.0]]
        for d, centers in [(d, centers) for d in (5, 9, 40) for centers in some]:
            region = Region(kind, d, unit=2.0**26)  # a difference in the last bit is seen
            region.center[:] = np.resize(centers, d)
            rows = hostile_rows(61, d, np.float32, seed=exponent % 97)
            order = "F" if variant in COLUMNS else "C"
            with np.errstate(over="ignore", under="ignore"):
                rows[::2] *= np.float32(2.0 ** np.clip(47.0 - exponent, -140, 120))
            for scale in (1.0, 1.25):  # the latter is no power
                region.scale[:] = 2.0**exponent * scale
                for region.stretch in (False, True):
                    wanted = region.sums_and_holes(twins, rows)
                    found = region.sums_and_holes(_core, np.asarray(rows, order=order))
                    assert found == wanted, (exponent, d, centers, scale)


def test_the_least_limit_of_a_box_tells_what_is_outside_by_one_bit():
    region = Region("box", 40)
    region.center[:] = 0
    region.scale[:] = region.limit[:] = 2.0**-400
    inside = np.ones((24, 40))
    outside = inside.copy()
    outside[5, 7] = np.nextafter(1.0, 2.0)
    for name in _core.variants():
        _core.choose_target(name)
        for rows, clipped in ((inside, 0), (outside, 1)):
            for view in (rows, np.asfortranarray(rows)):
                counts = region.sums_and_holes(_core, view)[0]
                assert tuple(counts) == (clipped, 0), name
    _core.choose_target("")


def rows_by_turns(d, dtype):
    """Eight rows at a time that are ordinary, or have a hole or a huge number: no holes at first,
    so that slabs of columns are read as if there were none; then one of them, then many."""
    rng = np.random.default_rng(d)
    kinds = np.concatenate(
        [
            rng.choice(["", "huge"], 60, p=[0.7, 0.3]),
            ["hole"],
            rng.choice(["", "huge"], 330, p=[0.9, 0.1]),
            rng.choice(["", "huge", "hole"], 60, p=[0.8, 0.1, 0.1]),
            rng.choice(["", "huge"], 330, p=[0.98, 0.02]),
            rng.choice(["", "hole"], 3),
        ]
    )
    rows = gaussian_rows(8 * len(kinds) + 5, d, dtype)
    for kind, number in (("huge", 1e300), ("hole", np.nan)):
        first = 8 * np.flatnonzero(kinds == kind)
        at = first + rng.integers(0, 8, first.size), rng.integers(0, d, first.size)
        rows[at] = np.clip(number, *RANGES[rows.dtype.char])
    return rows


@again
def tables_by_turns(kind, dtype):
    found = []
    for d in (2, 11):
        region, rows = Region(kind, d, unit=2.0**26), np.asfortranarray(rows_by_turns(d, dtype))
        found.append((region, rows, region.sums_and_holes(twins, rows)))
    return found


@cases(KINDS + POWERS, COLUMNS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_slabs_of_every_kind_follow_each_other(variant, kind, dtype):
    """What waits of a slab of columns is added once, and with its own factors, whatever follows."""
    for region, rows, wanted in tables_by_turns(kind, dtype):
        assert region.sums_and_holes(_core, rows) == wanted


def rows_with_holes_by_turns(d, dtype):
    """Stretches of rows of which none, some, most or all have holes, huge numbers among them, and
    rows of nothing else: what the walk of rows with holes begins with, ends with, and drops."""
    rng = np.random.default_rng(d)
    shares = np.repeat(
        [0.0, 0.2, 1.0, 0.0, 0.9, 0.1, 0.0, 1.0], [150, 470, 600, 530, 301, 700, 257, 98]
    )
    rows = gaussian_rows(len(shares), d, dtype)
    for share, number in ((0.7, np.nan), (0.2, np.inf), (0.1, -np.inf)):
        at = rng.random(len(rows)) < share * shares
        rows[at, rng.integers(0, d, at.sum())] = number
    rows[rng.random(len(rows)) < 0.03, rng.integers(0, d)] = np.clip(
        1e300, *RANGES[rows.dtype.char]
    )
    rows[rng.random(len(rows)) < 0.02 * shares] = np.nan
    return rows


@again
def tables_with_holes(kind, dtype):
    """Regions, rows, and what the Numba twin makes of all and of the first ones, with a stretch
    and without."""
    found = []
    for d in (9, 16, 33, 100):
        region, rows = Region(kind, d, unit=2.0**26), rows_with_holes_by_turns(d, dtype)
        all_of_them, some = {}, {}
        for region.stretch in (False, True):
            all_of_them[region.stretch] = region.sums_and_holes(twins, rows)
            some[region.stretch] = region.sums_and_holes(twins, rows[:1900])
        found.append((region, rows, all_of_them, some))
    return found


@cases(["ball", "box", "halves", "distances", "matrix", *BALLS], ROWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_with_holes_come_and_go(variant, kind, dtype):
    """Where many rows have holes they go another way, and come back from it."""
    for region, rows, all_of_them, some in tables_with_holes(kind, dtype):
        for region.stretch in (False, True):
            what = region.d, region.stretch
            assert region.sums_and_holes(_core, rows) == all_of_them[region.stretch], what
            few = region.sums_and_holes(_core, rows[:1900], threads=2)
            assert few == some[region.stretch], what


def test_a_centre_so_far_that_a_zero_would_be_infinite_changes_no_arrangement(variant):
    """Rows that are kept as they were read leave zeros behind, which have to be finite."""
    for d in (9, 70):
        region = Region("halves", d)
        region.center[::3], region.scale[::3] = 1e300, 1e12
        rows = hostile_rows(41, d, np.float32)
        assert region.sums_and_holes(_core, rows) == region.sums_and_holes(twins, rows)


@again
def tables_with_bitmaps(kind, dtype):
    rng, found = np.random.default_rng(3), []
    for d in (2, 7, 16, 33, 150):
        region = Region(kind, d, unit=2.0**26)
        region.stretch = d in (16, 150)
        for share, n, offset in ((0.002, 411, 0), (0.1, 79, 3), (0.1, 411, 13), (1.0, 17, 8)):
            for make in (gaussian_rows, hostile_rows):
                rows = typed(make(n, d, np.float64 if dtype == "mixed" else dtype), dtype)
                holes = rng.random((n, d)) < share
                left = np.where(holes, np.nan, rows).astype(rows.dtype)
                wanted = region.sums_and_holes(twins, left)
                found.append((region, left_out(rows, holes, offset, dtype), wanted))
    return found


@cases(KINDS + POWERS, COLUMNS)
@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_that_a_bitmap_leaves_out_are_holes_in_every_arrangement(variant, kind, dtype):
    for region, block, wanted in tables_with_bitmaps(kind, dtype):
        for threads in (1, 2):
            assert region.sums_and_holes(_core, block, threads=threads) == wanted, region.d


@again
def blocks_by_turns(kind, dtype):
    """Regions, rows in columns, the same with bitmaps, and what the Numba twin makes of them."""
    turns = ["", "", "hole", "", "holes", "holes", "huge", "", "hole", "huge", "", "huge", "hole"]
    turns += ["", ""]
    found = []
    for d, rows_a_turn in ((2, 1024), (11, 700), (260, 250)):
        region, rng = Region(kind, d, unit=2.0**26), np.random.default_rng(d)
        n = rows_a_turn * len(turns) + 21
        rows = gaussian_rows(n, d, np.float64 if dtype == "mixed" else dtype)
        for turn, what in enumerate(turns):
            if what == "holes":  # in columns that are read side by side
                part = rows[turn * rows_a_turn :][:rows_a_turn]
                part[rng.random(part.shape) < 0.02] = np.nan
            elif what:
                at = turn * rows_a_turn + rng.integers(rows_a_turn), rng.integers(d)
                rows[at] = np.clip(1e300 if what == "huge" else np.nan, *RANGES[rows.dtype.char])
        rows = typed(rows, dtype)
        for n in (len(rows), rows_a_turn, 2 * rows_a_turn + 40):
            block = left_out(rows[:n], np.isnan(rows[:n]), 3, dtype)
            wanted = region.sums_and_holes(twins, rows[:n])
            found.append((region, np.asfortranarray(rows[:n]), block, wanted))
    return found


@cases(KINDS + POWERS, COLUMNS)
@pytest.mark.parametrize("dtype", TYPES)
def test_blocks_of_every_kind_follow_each_other(variant, kind, dtype):
    """Blocks (up to a page of each column) are ordinary, have holes or a huge row, are shorter."""
    for region, rows, block, wanted in blocks_by_turns(kind, dtype):
        assert region.sums_and_holes(_core, rows) == wanted, rows.shape
        assert region.sums_and_holes(_core, block) == wanted, (rows.shape, "bitmaps")
