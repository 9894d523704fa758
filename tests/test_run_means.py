"""One row a user, exactly: runs of rows to their correctly rounded mean or sum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ellipsum.kernels import twins
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
    "digits": lambda rng, n: rng.integers(-999, 999, n) / 100,
    "whole": lambda rng, n: rng.integers(-5, 6, n) * 1.0,
    "beside ties": lambda rng, n: rng.choice(
        [1.0, 2.0**-53, 3 * 2.0**-53, 2.0**-110, -(2.0**-120)], n
    ),
    "left when all else cancels": lambda rng, n: rng.choice(
        [1.0, -1.0, 2.0**-53, 2.0**-54, -(2.0**-105), 2.0**-106, -(2.0**-200)], n
    ),
    "falling": lambda rng, n: rng.choice([-1.0, 1.0], n) * 2.0 ** (-53.0 * rng.integers(0, 5, n)),
    "in a narrow range": lambda rng, n: 1e6 + rng.integers(0, 100, n) / 64,
    "ends of what two doubles tell": lambda rng, n: (
        rng.normal(size=n) * 2.0 ** rng.choice([-910, -900, -890, 990, 999, 1003], n)
    ),
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


@pytest.mark.parametrize("name", KERNEL_SETS)
@pytest.mark.parametrize("divide", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_its_correctly_rounded_mean_in_any_order_and_split(kind, divide, name):
    rng = np.random.default_rng(len(kind))
    with use_kernels(name) as kernels:
        for round_ in range(40):
            d = 19 if round_ % 8 == 0 else 2
            sizes = rng.integers(1, 90 if round_ % 5 == 0 else 9, 12)
            ends = np.cumsum(sizes)
            rows = KINDS[kind](rng, d * ends[-1]).reshape(-1, d)
            rows[rng.random(rows.shape) < 0.05] = np.nan
            want = np.array([truth(run, divide) for run in np.split(rows, ends[:-1])])
            cuts = sorted(rng.integers(1, ends[-1] + 1, 2).tolist())
            got = run_means(kernels, rows, ends, divide=divide, cuts=cuts)
            assert np.array_equal(got, want, equal_nan=True)
            shuffled = np.concatenate([rng.permutation(run) for run in np.split(rows, ends[:-1])])
            again = run_means(kernels, np.asfortranarray(shuffled), ends, divide=divide)
            assert np.array_equal(again, want, equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
def test_every_instruction_set_is_as_sure_as_exact_sums(kind):
    """What two doubles tell of a run, in every width and over both kinds of ends."""
    core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")
    rng = np.random.default_rng(3)
    for target in core.targets():
        core.choose_target(target)
        try:
            for d in (1, 8, 9, 23):
                rows = KINDS[kind](rng, 60 * d).reshape(-1, d)
                rows[rng.random(rows.shape) < 0.1] = rng.choice([np.nan, np.inf])
                ends = np.array([1, 3, 6, 20, 23, 60])
                for divide in (True, False):
                    want = np.array([truth(run, divide) for run in np.split(rows, ends[:-1])])
                    got = run_means(core, rows, ends, divide=divide)
                    np.testing.assert_array_equal(got, want, err_msg=f"{target}, {d}")
                    twin = run_means(twins, rows, ends, divide=divide)
                    assert (np.signbit(got) == np.signbit(twin)).all(), "zeros"
        finally:
            core.choose_target("")


@pytest.mark.parametrize("divide", [True, False])
@pytest.mark.parametrize("name", KERNEL_SETS)
def test_what_the_second_double_rounds_may_lie_on_the_other_side_of_a_tie(name, divide):
    """1, what is a little less than half of its last place, and 126 numbers that the latter is too
    coarse for, one by one, and which together lift it over the half."""
    below, lost = 2.0**-53 - 8 * 2.0**-105, 2.0**-108
    rows = np.array([[1.0], [below], *[[lost]] * 126])
    assert 1 + below == 1 and below + lost == below
    with use_kernels(name) as kernels:
        got = run_means(kernels, rows, np.array([128]), divide=divide)
    assert got[0, 0] == truth(rows, divide)[0] == (1 + 2.0**-52) / (128 if divide else 1)


@pytest.mark.parametrize("name", KERNEL_SETS)
def test_what_lies_beside_a_tie_by_less_than_a_double_tells_is_beside_it(name):
    """1025 numbers whose sum two doubles hold, and whose mean is 2^-104 / 1025 above the middle of
    two: beside the remainder of the first double's quotient that is lost."""
    k, last = 1025, 2.0**-52
    total = k * (1 + Fraction(k, 2**53))  # a double and 2^-53, as k k = 1 modulo 2^11
    numbers = [last * (1 + last), -last, *[1.0] * (k - 4), 0.5 + last / 2]
    numbers.append(float(total + Fraction(1, 2**104) - sum(map(Fraction, numbers))))
    assert sum(map(Fraction, numbers)) == total + Fraction(1, 2**104) and len(numbers) == k
    rows = np.array(numbers).reshape(-1, 1)
    with use_kernels(name) as kernels:
        got = run_means(kernels, rows, np.array([k]), divide=True)
    assert got[0, 0] == truth(rows, True)[0] > 1 + (k - 1) * last / 2


@pytest.mark.parametrize("name", KERNEL_SETS)
def test_float32_and_long_runs(name):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 1)).astype(np.float32)
    with use_kernels(name) as kernels:
        got = run_means(kernels, rows, np.array([20_000]), divide=True)
    assert got[0] == truth(rows.astype(float), True)
