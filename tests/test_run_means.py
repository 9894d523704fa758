"""One row a user, exactly: runs of rows to their correctly rounded mean or sum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ellipsum.kernels.backend import use_kernels
from regions import KERNEL_SETS

LARGEST = np.finfo(float).max
KINDS = {
    "ordinary": lambda rng, n: rng.normal(size=n),
    "any exponent": lambda rng, n: rng.normal(size=n) * 2.0 ** rng.integers(-1060, 1020, n),
    "any bits": lambda rng, n: rng.integers(0, 2**64, n, dtype=np.uint64).view(np.float64),
    "cancelling": lambda rng, n: rng.choice([1e300, -1e300, 1.0, 5e-324, -5e-324], n),
    "largest": lambda rng, n: rng.choice([LARGEST, -LARGEST, LARGEST / 2], n, p=[0.8, 0.1, 0.1]),
    "ties": lambda rng, n: 1.0 + rng.integers(0, 4, n) * 2.0**-52,
    "subnormal": lambda rng, n: rng.integers(-3, 4, n) * 5e-324,
    "zeros": lambda rng, n: rng.choice([0.0, -0.0], n),
}


def rounded(total: Fraction) -> float:
    """The nearest double, ties to even; the largest one beyond it: Python rounds so."""
    try:
        return float(total)
    except OverflowError:
        return LARGEST if total > 0 else -LARGEST


def truth(rows: np.ndarray, divide: bool) -> np.ndarray:
    """In rational arithmetic: each column's finite numbers, their mean or sum."""
    columns = [[Fraction(x) for x in column[np.isfinite(column)].tolist()] for column in rows.T]
    with np.errstate(all="ignore"):
        return np.array(
            [rounded(sum(c) / (len(c) if divide else 1)) if c else np.nan for c in columns]
        )


def run_means(kernels, rows, ends, *, divide, cuts=()):
    """The kernel on the rows cut at ``cuts``: what is open goes from one call to the next."""
    d = rows.shape[1]
    state, means = np.zeros((d, kernels.RUN_STATE_WORDS), np.int64), []
    for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        here = np.array([end - a for end in ends if a < end <= b], np.int64)
        out = np.empty((here.size, d))
        kernels.run_means(rows[a:b], here, state, out, divide)
        means.append(out)
    assert not state.any(), "nothing stays open behind the last end"
    return np.concatenate(means)


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
@pytest.mark.parametrize("divide", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_its_correctly_rounded_mean_in_any_order_and_split(kind, divide, name):
    rng = np.random.default_rng(len(kind))
    with use_kernels(name) as kernels:
        for _ in range(40):
            sizes = rng.integers(1, 9, 12)
            ends = np.cumsum(sizes)
            rows = KINDS[kind](rng, 2 * ends[-1]).reshape(-1, 2)
            rows[rng.random(rows.shape) < 0.05] = np.nan
            want = np.array([truth(run, divide) for run in np.split(rows, ends[:-1])])
            cuts = sorted(rng.integers(1, ends[-1] + 1, 2).tolist())
            got = run_means(kernels, rows, ends, divide=divide, cuts=cuts)
            assert np.array_equal(got, want, equal_nan=True)
            shuffled = np.concatenate([rng.permutation(run) for run in np.split(rows, ends[:-1])])
            again = run_means(kernels, np.asfortranarray(shuffled), ends, divide=divide)
            assert np.array_equal(again, want, equal_nan=True)


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_float32_and_long_runs(name):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 1)).astype(np.float32)
    with use_kernels(name) as kernels:
        got = run_means(kernels, rows, np.array([20_000]), divide=True)
    assert got[0] == truth(rows.astype(float), True)
