"""Rows in a box are added stretch by stretch: whatever lies in which stretch, the integers, the
holes and the rows outside are those of the rule, in every arrangement."""

from __future__ import annotations

import numpy as np
import pytest

from clip_cases import DTYPES, Region, gaussian_rows

_core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")

ROWS = [name for name in _core.variants() if ":columns" not in name]
#: A stretch has 1,024 coordinates of one row, 128 of each of eight.
WIDTHS = (128, 130, 257, 1030, 2049)
KINDS = ("box", "even box", "central box")


@pytest.fixture(params=ROWS)
def variant(request):
    yield _core.choose_target(request.param)
    _core.choose_target("")


def rows_of(d, dtype):
    """Eleven: ordinary ones, and some exceptional in one stretch, in several, or in all of them."""
    rows = gaussian_rows(11, d, dtype)
    rows[1, d - 1] = np.nan
    rows[2, 0] = np.inf
    rows[3, [127, d // 2, d - 2]] = -np.inf, np.nan, np.nan
    rows[5] = np.nan
    rows[6, d // 3] = np.finfo(dtype).max
    rows[7, [5, d - 1]] = -np.finfo(dtype).max, np.nan
    rows[9, :64] = np.nan
    rows[10] *= dtype(0)
    return rows


def by_the_rule(region, rows):
    """Rows outside and rows with holes, sums, and holes of each coordinate (the rule: clip.hpp)."""
    present = np.isfinite(rows)
    x = np.where(present, rows.astype(float), region.center)
    with np.errstate(over="ignore"):
        y = (x - region.center) * region.scale
    inside = np.clip(y, -region.limit, region.limit)
    sums = np.rint(inside).astype(np.int64).sum(axis=0)
    outside = (inside != y).any(axis=1).sum()
    absent = (~present).sum(axis=0).astype(np.int64)
    return (outside, (~present).any(axis=1).sum()), sums.tobytes(), absent.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_in_a_box_adds_what_the_rule_says_wherever_its_holes_are(variant, dtype):
    for kind in KINDS:
        for d in WIDTHS:
            region, rows = Region(kind, d, unit=2.0**8), rows_of(d, dtype)
            counts, partial, absent = region.sums_and_holes(_core, rows)
            wanted = by_the_rule(region, rows)
            assert (counts, partial, absent) == wanted, (kind, d)
