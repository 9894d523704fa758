"""Rows of one to fourteen coordinates, eight of them side by side: in rows and in columns they give
the integers of the Numba twin, whatever follows whatever."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from clip_cases import KINDS, TYPES, Region, gaussian_rows, left_out, typed
from ellipsum.kernels import twins

_core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")

OTHERS = [kind for kind in KINDS if "matrix" not in kind and "low rank" not in kind]
#: All targets of one kind, type and d follow each other.
again = lru_cache(maxsize=2)


@pytest.fixture(params=_core.targets())
def target(request):
    yield _core.choose_target(request.param)
    _core.choose_target("")


def rows_in_stretches(d, dtype):
    """Longer and shorter stretches of ordinary rows than columns are looked through at a time, and
    stay careful for after a hole; between them, and near the end, rows that are not."""
    rng = np.random.default_rng(d)
    stretches = [1031, 520, 4 * 512, 2111, 8, 3, 64, 2048 + 16, 40]
    rows = gaussian_rows(sum(stretches), d, dtype)
    for k, at in enumerate(np.cumsum(stretches) - 1):
        rows[at, rng.integers(d)] = [np.nan, 1e300, -np.inf][k % 3]
    rows[-37, rng.integers(d)] = 1e300
    return rows


@again
def cases(kind, dtype, d):
    region = Region(kind, d, unit=2.0**26)
    region.stretch = d % 2 == 0
    every = rows_in_stretches(d, np.float64)
    found = []
    for n in (len(every), 1031 + 520 + 9, 8, 7):
        with np.errstate(over="ignore"):
            rows = typed(every[-n:], dtype)
        shifted = np.zeros((d, n + 3), rows.dtype)
        shifted[:, 1 : n + 1] = rows.T
        padded = np.zeros((n, d + 1), rows.dtype)
        padded[:, :d] = rows
        views = [rows, padded[:, :d], np.asfortranarray(rows), shifted[:, 1 : n + 1].T]
        for offset in (0, 5):
            views.append(left_out(rows, ~np.isfinite(rows), offset, dtype))
        found.append((rows, views, region.sums_and_holes(twins, rows)))
    return region, found


@pytest.mark.parametrize("d", range(1, 15))
@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("dtype", TYPES)
def test_short_rows_of_every_kind_follow_each_other(dtype, kind, d, target):
    region, found = cases(kind, dtype, d)
    for rows, views, wanted in found:
        for view in views:
            for threads in (1, 2):
                assert region.sums_and_holes(_core, view, threads) == wanted, rows.shape
