"""The clip kernels: every target, the Numba twin and every way to cut the rows agree, bit for
bit, with each other and, within the stated error, with exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clip_cases import DTYPES, KINDS, NONE, RADIUS, Region, gaussian_rows, hostile_rows
from ellipsum import LowRankScale
from ellipsum.kernels import twins

_core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")

# ---- targets and backends -------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_target_gives_the_integers_of_the_numba_twin(target, kind, dtype):
    for d in [*range(1, 35), 47, 48, 63, 64, 65, 127, 128, 129, 130, 255, 256, 257, 300]:
        region = Region(kind, d)
        for n in (1, 7, 8, 9, 31):
            for make in (gaussian_rows, hostile_rows):
                rows = make(n, d, dtype)
                wanted = region.sums(twins, rows)
                assert region.sums(_core, rows) == wanted, (d, n, make.__name__)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_clipped_rows_agree_to_the_last_bit(target, kind, dtype):
    for d in [*range(2, 20), 63, 64, 130, 257]:
        region = Region(kind, d, unit=2.0**26)
        rows = gaussian_rows(25, d, dtype)
        assert region.sums(_core, rows) == region.sums(twins, rows), d


@pytest.mark.parametrize("kind", ["ball", "box", "halves", "distances"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_rows_agree_on_every_target(target, kind, dtype):
    for d in (1000, 16384, 100_003):
        rows = hostile_rows(5, d, dtype)
        region = Region(kind, d)
        assert region.sums(_core, rows) == region.sums(twins, rows), d


def test_float32_rows_give_the_integers_of_the_same_values_in_float64(target):
    for kind in KINDS:
        for d in (1, 2, 5, 8, 9, 64, 130):
            rows = hostile_rows(40, d, np.float32)
            region = Region(kind, d)
            assert region.sums(_core, rows) == region.sums(_core, rows.astype(np.float64))


# ---- what happens to a row depends on that row alone -----------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 2, 3, 7, 8, 9, 16, 33, 130, 200])
def test_a_row_adds_the_same_integers_alone_and_in_every_place_of_a_batch(target, kind, dtype, d):
    region = Region(kind, d)
    rows = hostile_rows(27, d, dtype)
    alone = [np.frombuffer(region.sums(_core, row[None])[1], np.int64) for row in rows]
    rng = np.random.default_rng(d)
    for n in (2, 8, 11, 27):
        order = rng.permutation(27)[:n]
        total = np.frombuffer(region.sums(_core, rows[order])[1], np.int64)
        assert (total == sum(alone[i] for i in order)).all()


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    kind=st.sampled_from(KINDS),
    d=st.integers(1, 70),
    n=st.integers(1, 40),
    dtype=st.sampled_from(DTYPES),
    threads=st.integers(1, 5),
    seed=st.integers(0, 2**30),
    data=st.data(),
)
def test_splits_orders_and_threads_give_the_same_bytes(kind, d, n, dtype, threads, seed, data):
    region = Region(kind, d, seed)
    rows = hostile_rows(n, d, dtype, seed)
    counts, wanted = region.sums(_core, rows)
    assert region.sums(_core, rows, threads) == (counts, wanted)
    assert region.sums(twins, rows, threads) == (counts, wanted)
    order = np.random.default_rng(seed).permutation(n)
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    partial = np.zeros(region.width, np.int64)
    for part in np.split(rows[order], cuts):
        partial += np.frombuffer(region.sums(_core, part)[1], np.int64)
    assert partial.tobytes() == wanted


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 3, 8, 20, 131])
def test_strides_of_every_kind_give_the_same_bytes(target, kind, dtype, d):
    region = Region(kind, d)
    rows = hostile_rows(75, d, dtype)
    wanted = region.sums(_core, rows)
    wide = np.zeros((150, 3 * d), dtype)
    wide[::2, ::3] = rows
    packed = np.zeros(rows.shape, np.dtype([("pad", "u1"), ("x", dtype)]))
    packed["x"] = rows
    views = {
        "Fortran": np.asfortranarray(rows),
        "every other row and third column": wide[::2, ::3],
        "unaligned": packed["x"],
        "rows backwards": rows[::-1],
        "columns backwards": np.ascontiguousarray(rows[:, ::-1])[:, ::-1],
        "padded rows": np.hstack([rows, rows])[:, :d],
    }
    for name, view in views.items():
        assert region.sums(_core, view) == wanted, name
        assert region.sums(_core, view, threads=3) == wanted, name
    same = np.broadcast_to(rows[2], (20, d))
    assert region.sums(_core, same) == region.sums(_core, np.ascontiguousarray(same))


# ---- halves and distances ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ball", "matrix", "low rank"])
@pytest.mark.parametrize("d", [2, 7, 8, 9, 130])
def test_halves_are_the_positive_and_the_negative_integers_of_the_clipped_rows(target, kind, d):
    halves = Region("halves" if kind == "ball" else f"{kind} halves", d)
    region = Region(kind, d)
    above, below = np.zeros(d, np.int64), np.zeros(d, np.int64)
    rows = hostile_rows(40, d, np.float64)
    for row in rows:
        q = np.frombuffer(region.sums(_core, row[None])[1], np.int64)
        above, below = above + np.maximum(q, 0), below + np.maximum(-q, 0)
    counts, got = halves.sums(_core, rows)
    assert got == np.concatenate([above, below]).tobytes()
    assert counts == region.sums(_core, rows)[0]


@pytest.mark.parametrize("d", [1, 2, 8, 9, 130])
def test_a_row_is_counted_by_the_edges_that_it_lies_above(target, d):
    """Squares are compared as cut to 21 bits, so an edge itself, cut, is below it."""
    region = Region("distances", d)
    region.center, region.scale = np.zeros(d), np.ones(d)
    region.edges = np.array([1.0, 1.5, 4.0, 1e150])
    cases = {0.0: 0, 1e-200: 0, 1.0: 0, 1 + 2.0**-30: 0, 1 + 2.0**-20: 1, 1.5: 1, 1.501: 2}
    cases |= {3.99: 2, 4.0: 2, 5.0: 3, 1e149: 3, 1e151: 3, 1e308: 3, np.inf: 0, np.nan: 0}
    for threads in (1, 3):
        rows = np.zeros((100 * len(cases), d))
        rows[:, d - 1] = np.repeat(list(cases), 100) * np.tile([1.0, -1.0], 50 * len(cases))
        counts = np.zeros(4, np.int64)
        shape = region.center, region.scale, NONE, region.edges
        _core.distance_counts(rows, *shape, counts, threads)
        assert (counts == 100 * np.bincount(list(cases.values()), minlength=4)).all()
    alone = np.zeros(1, np.int64)  # one bin: its edge bounds nothing
    _core.distance_counts(rows, *shape[:3], np.ones(1), alone, 2)
    assert alone[0] == len(rows)


# ---- against exact arithmetic ----------------------------------------------------------


def exact_ball(row, region):
    """Coordinates of the clipped row in grid units, as Fractions to 2^-80 or so."""
    x = [Fraction(float(v)) - Fraction(float(c)) for v, c in zip(row, region.center, strict=True)]
    if region.kind != "ball":
        matrix = region.dense()
        x = [sum(Fraction(float(b)) * v for b, v in zip(line, x, strict=True)) for line in matrix]
    else:
        x = [v * Fraction(float(s)) for v, s in zip(x, region.scale, strict=True)]
    norm2, radius = sum(v * v for v in x), Fraction(RADIUS)
    if norm2 <= radius * radius:
        return x
    root = Fraction(isqrt(int(norm2 * 2**160)), 2**80)
    return [v * radius / root for v in x]


@pytest.mark.parametrize("kind", ["ball", "matrix", "low rank"])
@pytest.mark.parametrize("d", [1, 2, 5, 17])
@pytest.mark.parametrize("dtype", DTYPES)
def test_quantised_values_are_the_exact_ones_to_half_a_unit(target, kind, d, dtype):
    region = Region(kind, d)
    for row in gaussian_rows(20, d, dtype):
        got = np.frombuffer(region.sums(_core, row[None])[1], np.int64)
        exact = exact_ball(row, region)
        size = max(abs(v) for v in exact) + RADIUS
        # A few roundings of doubles; with a matrix, inputs of 29 bits.
        slack = float(size) * (2.0**-50 if kind == "ball" else 2.0**-28) * (d + 8)
        for q, y in zip(got, exact, strict=True):
            assert abs(int(q) - y) <= Fraction(0.5) + Fraction(slack)


def test_rows_beyond_the_range_of_squares_land_on_the_sphere(target):
    for d in (2, 8, 9, 40):
        region = Region("ball", d)
        for size in (1e151, 1e200, 1.7e308):
            row = np.full(d, -size)
            row[0] = size
            got = np.frombuffer(region.sums(_core, row[None])[1], np.int64).astype(float)
            wanted = row / size * region.scale
            wanted *= RADIUS / np.linalg.norm(wanted)
            assert np.abs(got - wanted).max() <= 0.5 + 1e-6


def region_with_a_term_at_the_threshold(kind):
    """(scale, matrix, row): y_0 = 2^505 and y_4 as much; a term of y_0 at the threshold of what
    counts decides a tie. Of low rank it is a region that users may have."""
    half = 2.0 if kind == "matrix" else 1.0
    scale = np.array([1, 1, 2.0**390, 2.0**390, 2.0**399 * half])
    left, right = np.zeros((2, 5, 3))
    left[0], right[[2, 3, 4], [0, 1, 2]] = 2.0**400, 0.5
    row = np.array([0, 0, 1.8, 2.0**53, 2.0**106]) / half
    if kind == "matrix":
        return NONE, (np.diag(scale) + 2 * left @ right.T).ravel(), row
    LowRankScale(scale, left, right)
    return scale, np.concatenate([left.ravel(), right.ravel()]), row


@pytest.mark.parametrize("kind", ["matrix", "low rank"])
@pytest.mark.parametrize("largest", [2.0**399 * (1 - 2.0**-53), 2.0**399])
@pytest.mark.parametrize("unit", [1.0, 4.0])
def test_rounding_huge_rows_to_29_bits_moves_no_threshold(target, kind, largest, unit):
    """Some kernels scale numbers that are rounded already, to the next power of two, say; from
    2^400 on none does."""
    scale, matrix, row = region_with_a_term_at_the_threshold(kind)
    row[1] = largest
    for term in (row[2], 1.0, 1 - 2.0**-53):
        row[2] = term
        rows = unit * row[None]
        for k in range(100):
            radius = float((2.0**23 - k - 0.5) * np.sqrt(2) * (1 - 2.0**-52))
            sums = np.zeros((2, 5), np.int64)
            for kernels, partial in zip((_core, twins), sums, strict=True):
                kernels.clip_sum(rows, np.zeros(5), scale, matrix, NONE, radius, partial)
            assert (sums[0] == sums[1]).all(), (term, k)


@pytest.mark.parametrize("d", [1, 8, 64])
def test_rows_at_the_edge_of_rounding_go_to_the_even_integer(target, d):
    region = Region("ball", d)
    region.center, region.scale = np.zeros(d), np.ones(d)
    for value, wanted in ((0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (-2.5, -2)):
        got = np.frombuffer(region.sums(_core, np.full((1, d), value))[1], np.int64)
        assert (got == wanted).all()


def test_clipped_counts_the_rows_outside(target):
    for d in (1, 5, 12, 200):
        region = Region("ball", d)
        region.center, region.scale = np.zeros(d), np.ones(d)
        rows = np.zeros((30, d))
        rows[::3, 0] = RADIUS  # on the sphere: not changed
        rows[1::3, d - 1] = RADIUS * (1 + 2.0**-50)
        assert region.sums(_core, rows)[0] == (10, 0)


# ---- what a binding takes --------------------------------------------------------------


def not_what(good):
    """Arrays that a kernel cannot take in the place of ``good``."""
    yield np.zeros(good.nbytes + 1, np.uint8)[1:].view(good.dtype)  # unaligned
    wide = np.zeros(2 * good.size, good.dtype)
    yield from (wide[::2], wide[: good.size + 1], wide[: good.size - 1])
    for dtype in (np.float32, np.uint64, np.longdouble, complex, object, good.dtype.newbyteorder()):
        with np.errstate(invalid="ignore"):  # of a negative number, on ARM
            other = good.astype(dtype)
        yield other


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_another_size_type_or_layout_are_refused(kind):
    region, rows = Region(kind, 3), np.ones((4, 3))
    good = {"center": region.center, "scale": region.scale, "matrix": region.matrix}
    partial = np.zeros(region.width, np.int64)
    if "distances" in kind:
        kernel, good = _core.distance_counts, good | {"edges": region.edges, "counts": partial}
    else:
        good |= {"limit": region.limit, "radius": region.radius, "partial": partial}
        kernel, good["halves"] = _core.clip_sum, "halves" in kind
    kernel(rows, **good)
    for name, array in good.items():
        if isinstance(array, np.ndarray) and array.size:
            for bad in not_what(array):
                with pytest.raises(ValueError, match="internal: "):
                    kernel(rows, **(good | {name: bad}))
    for shape in [(12,), (4, 3, 1), (4, 4), (4, 2), (4, 0), (0, 0)]:
        with pytest.raises(ValueError, match="internal: "):
            kernel(np.ones(shape), **good)
    for dtype in (np.float16, np.longdouble, ">f8", ">i4", complex, object, "U9", "m8[s]"):
        with pytest.raises(ValueError, match="internal: rows must be native numbers up to 64 bits"):
            kernel(rows.astype(dtype), **good)
    for threads in (0, -1):
        with pytest.raises(ValueError, match="internal: threads"):
            kernel(rows, **good, threads=threads)


# ---- headroom, threads -----------------------------------------------------------------


def test_sums_wrap_nowhere_below_the_limit_of_int64(target):
    d = 9
    region = Region("ball", d)
    region.center, region.scale = np.zeros(d), np.ones(d)
    rows = np.zeros((33, d))
    rows[:, 0] = 2.0**22
    for sign in (1, -1):
        start = sign * (2**63 - 1 - 33 * 2**22)
        partial = np.full(d, start, np.int64)
        args = region.center, region.scale, NONE, NONE, RADIUS, partial
        _core.clip_sum(sign * rows, *args, 3)
        assert partial[0] == sign * (2**63 - 1)
        assert partial[1] == start


@pytest.mark.parametrize("backend", [_core, twins])
def test_more_rows_than_a_partial_sum_can_hold_are_refused(backend):
    limit = backend.CLIP_ROWS_LIMIT
    assert 2 * limit * 2**30 < 2**63  # |q| <= 2^30; halves are half of sum |q| + sum q
    rows = np.broadcast_to(np.zeros(1), (limit + 1, 1))
    with pytest.raises(ValueError, match="more rows than a partial sum can hold"):
        Region("ball", 1).sums(backend, rows)
