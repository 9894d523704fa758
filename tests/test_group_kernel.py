"""The kernel of groups: what a row adds to its group is what it adds to a sum of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ellipsum import Ellipsoid, ExactGroupSum, ExactSum
from ellipsum.kernels.backend import use_kernels
from regions import KERNEL_SETS, make_regions

SIZES = [1, 2, 3, 7, 8, 9, 16, 21, 64, 130, 300]


def odd_rows(rng: np.random.Generator, n: int, d: int, dtype: type) -> np.ndarray:
    """Rows inside and outside, of which the first half has huge, tiny, and some not finite."""
    rows = 3 * rng.standard_t(2, (n, d))
    odd = np.arange(n) < n // 2
    with np.errstate(over="ignore"):
        rows[odd & (rng.random(n) < 0.1)] *= 2.0 ** rng.integers(-600, 600)
        rows = rows.astype(dtype)
    rows[odd[:, None] & (rng.random((n, d)) < 0.05 / d)] = np.nan
    rows[odd[:, None] & (rng.random((n, d)) < 0.05 / d)] = np.inf
    return rows


def by_one_sum_each(kernels, rows, index, region, groups):
    """Each group's rows through the kernel of one sum."""
    table = np.zeros((groups, rows.shape[1]), np.int64)
    seen = np.zeros(2, int)
    for group in range(-1, groups):
        partial = np.zeros(rows.shape[1], np.int64)
        seen += kernels.clip_sum(rows[index == group], *region.kernel_arguments(), partial)
        if group >= 0:
            table[group] = partial
    return table, tuple(seen)


@pytest.mark.parametrize("name", KERNEL_SETS)
@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_have_the_integers_of_a_sum_each(name, d, dtype):
    rng = np.random.default_rng(d)
    n, groups = 203, 5
    rows, index = odd_rows(rng, n, d, dtype), rng.integers(-1, groups, n)
    for region in make_regions(d).values():
        with use_kernels(name) as kernels:
            want, want_seen = by_one_sum_each(kernels, rows, index, region, groups)
            table, counts = np.zeros((groups, d), np.int64), np.zeros(groups, np.int64)
            arguments = region.kernel_arguments()
            seen = kernels.group_sums(rows, index, *arguments, table, counts)
        assert (table == want).all()
        assert tuple(seen) == want_seen
        assert (counts == np.bincount(index[index >= 0], minlength=groups)).all()


@pytest.mark.parametrize("name", [name for name in KERNEL_SETS if name != "numba"])
def test_an_index_outside_the_table_is_refused(name):
    region = make_regions(3)["ball"].kernel_arguments()
    with use_kernels(name) as kernels:
        for odd in (-2, 4):
            table, counts = np.zeros((4, 3), np.int64), np.zeros(4, np.int64)
            with pytest.raises(ValueError, match="internal: index"):
                kernels.group_sums(np.ones((1, 3)), np.array([odd]), *region, table, counts)


@pytest.mark.parametrize("name", KERNEL_SETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_coordinate_of_a_table_is_taken(name, dtype):
    """A column of a frame has odd strides, which NumPy calls contiguous."""
    frame = pd.DataFrame({"x": np.arange(9, dtype=dtype), "y": np.ones(9, dtype)})[["x"]]
    region = Ellipsoid.ball(40.0, d=1)
    with use_kernels(name):
        table = ExactGroupSum(region, keys=["a"]).add(frame, key=["a"] * 9)
        wanted = ExactSum(region).add(frame).integers().tolist()
    assert table.integers().tolist() == [wanted]
