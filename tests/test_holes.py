"""Cells that hold no finite number: the centre of their coordinate, in every kernel and reader."""

from __future__ import annotations

import numpy as np
import pytest

from clip_cases import DTYPES, KINDS, SUMS, Region, gaussian_rows, hostile_rows
from ellipsum.kernels import twins

_core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")


def holed_rows(n, d, dtype, share, seed=2):
    """Hostile rows with holes of every kind in a share of the cells, and a row of nothing else."""
    rng = np.random.default_rng([seed, n, d])
    rows = hostile_rows(n, d, dtype, seed)
    rows[rng.random((n, d)) < share] = np.nan
    rows[rng.random((n, d)) < share / 2] = -np.inf
    rows[:: n // 2 + 1] = np.nan
    return rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_cell_that_is_not_finite_counts_as_the_centre_of_its_coordinate(target, kind, dtype):
    """The same bytes as the table whose holes hold the centre, and each of them is counted."""
    for d in (1, 2, 4, 7, 8, 9, 16, 23, 64, 100, 260):
        region = Region(kind, d)
        region.center = region.center.astype(dtype).astype(np.float64)  # so that a row can hold it
        for share in (0.01, 0.1, 0.9):
            rows = holed_rows(700 if d <= 8 else 41, d, dtype, share)
            hole = ~np.isfinite(rows)
            filled = np.where(hole, region.center, rows).astype(dtype)
            for threads in (1, 2):
                (counts, sums, absent) = region.sums_and_holes(_core, rows, threads)
                wanted, without, none = region.sums_and_holes(_core, filled, threads)
                assert sums == without, (d, share)
                assert absent == hole.sum(0).astype(np.int64).tobytes()
                assert none == bytes(8 * d)
                if "distances" not in kind:
                    assert counts == (wanted[0], hole.any(1).sum()) and wanted[1] == 0
            assert region.sums_and_holes(twins, rows) == (counts, sums, absent), (d, share)


@pytest.mark.parametrize("kind", SUMS)
@pytest.mark.parametrize("d", [1, 4, 9, 100])
def test_a_row_of_holes_alone_adds_nothing(target, kind, d):
    region = Region(kind, d)
    for bad in (np.nan, np.inf, -np.inf):
        rows = gaussian_rows(20, d, np.float64)
        rows[3] = bad
        (clipped, nonfinite), sums = region.sums(_core, rows)
        (others, none), without = region.sums(_core, np.delete(rows, 3, axis=0))
        assert (clipped, nonfinite, none) == (others, 1, 0)
        assert sums == without


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_stretched_norms_give_the_same_integers_everywhere(target, kind, dtype):
    """With ``stretch`` the squared norm counts d/k times, k of the d cells present."""
    for d in (1, 2, 3, 7, 8, 9, 16, 23, 64, 130):
        region = Region(kind, d)
        region.stretch = True
        for make, n in ((hostile_rows, 31), (lambda *a: holed_rows(*a, 0.2), 200)):
            rows = make(n, d, dtype)
            wanted = region.sums_and_holes(twins, rows)
            assert region.sums_and_holes(_core, rows) == wanted, (d, make)
            assert region.sums_and_holes(_core, np.asfortranarray(rows), 3) == wanted, (d, make)
