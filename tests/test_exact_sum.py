"""The exact sum: one answer for every order, split, thread, backend, machine and dtype."""

from __future__ import annotations

import itertools
import math
import pickle
import struct
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipsum import Ellipsoid, ExactSum
from ellipsum.sealed_bytes import sealed
from ellipsum.sum_bytes import pack
from regions import make_regions


def summed(region, rows, **options):
    return ExactSum(region, **options).add(rows)


def test_every_kernel_set_gives_the_bytes_of_the_default(region, rows, kernel_set):
    rows[3, 2], rows[4, 0], rows[5] = np.nan, np.inf, 1e300
    expected = summed(region, rows).to_bytes()
    assert summed(region, rows.astype(np.float64), threads=2).to_bytes() == expected
    for row in rows[:9]:
        alone = summed(region, row).integers()
        assert (
            alone
            == summed(region, np.vstack([rows[:1], row])).integers()
            - summed(region, rows[0]).integers()
        ).all()


@pytest.fixture(scope="module")
def known_bytes():
    """Filled by the first kernel set, compared with by every other one."""
    return {}


@pytest.mark.parametrize("d", [1, 2, 3, 7, 8, 9, 16, 33, 130])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_sets_agree_with_each_other(kernel_set, known_bytes, d, dtype):
    rng = np.random.default_rng(d)
    data = (rng.normal(size=(77, d)) * 2.0 ** rng.integers(-60, 60, (77, 1))).astype(dtype)
    data[5, d // 2], data[6, 0] = np.nan, -np.inf
    for kind, region in make_regions(d).items():
        got = summed(region, data, threads=3).to_bytes()
        assert known_bytes.setdefault((kind, d, dtype), got) == got, (kind, kernel_set)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 20),
    cuts=st.lists(st.integers(1, 59), max_size=6),
    kind=st.sampled_from(["ball", "box", "ellipsoid", "matrix", "low-rank"]),
    threads=st.integers(1, 3),
)
def test_any_order_split_and_merge_tree_gives_the_same_bytes(seed, d, cuts, kind, threads):
    rng = np.random.default_rng(seed)
    region = make_regions(d)[kind]
    data = rng.standard_cauchy(size=(60, d)) * 10.0 ** rng.integers(-9, 9)
    data[rng.integers(60), rng.integers(d)] = rng.choice([np.nan, np.inf, -np.inf, 1e308])
    expected = summed(region, data).to_bytes()
    edges = sorted({0, *cuts, 60})
    shuffled = data[rng.permutation(60)]
    parts = [summed(region, shuffled[a:b], threads=threads) for a, b in itertools.pairwise(edges)]
    while len(parts) > 1:  # a random merge tree, through bytes now and then
        other = parts.pop(rng.integers(len(parts)))
        if rng.random() < 0.5:
            other = pickle.loads(pickle.dumps(other))
        parts[rng.integers(len(parts))].merge(other)
    assert parts[0].to_bytes() == expected


def test_a_sum_at_the_bound_is_read_back_on_either_side():
    """One row of clip norm 8808038.4 grid units: its negative sum is 2^64 less that."""
    region = make_regions(1)["ball"]
    for row in ([[1e6]], [[-1e6]]):
        total = summed(region, np.array(row))
        assert ExactSum.from_bytes(total.to_bytes()).to_bytes() == total.to_bytes()


def exact_row(region, row):
    """The integers of one row before rounding, by exact rationals and an integer root."""
    center, scale, matrix, limit, radius = region.kernel_arguments()
    x = [Fraction(float(v)) - Fraction(float(c)) for v, c in zip(row, center, strict=True)]
    if region.kind == "low-rank":
        matrix = region.scale.matrix() / region.grid
    if matrix.size:
        y = [sum(Fraction(float(b)) * h for b, h in zip(line, x, strict=True)) for line in matrix]
    else:
        y = [Fraction(float(s)) * h for s, h in zip(scale, x, strict=True)]
    if limit.size:
        ends = [Fraction(float(m)) for m in limit]
        return [max(min(v, m), -m) for v, m in zip(y, ends, strict=True)]
    norm2 = sum(v * v for v in y)
    if norm2 <= Fraction(radius) ** 2:
        return y
    digits = 1 << 200
    norm = Fraction(math.isqrt(int(norm2 * digits * digits)), digits)
    return [v * Fraction(radius) / norm for v in y]


@pytest.mark.parametrize("d", [1, 2, 5, 8, 21])
@pytest.mark.parametrize("kind", ["ball", "box", "ellipsoid", "matrix", "low-rank"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6, 1e290])
def test_sums_equal_a_slow_exact_rational_reference(d, kind, size):
    region = make_regions(d)[kind]
    data = size * np.random.default_rng(d).normal(size=(12, d))
    got = summed(region, data).integers()
    exact = [exact_row(region, row) for row in data]
    # Each row may round the other way only where its real value is this near to a half. A
    # matrix takes rows at 29 bits: 2^-30 of each product (docs/guarantees/sum.md).
    slack = Fraction(1, 8) * d if kind in ("matrix", "low-rank") else Fraction(2) ** -20
    for j in range(d):
        values = [row[j] for row in exact]
        low = sum(math.ceil(v - slack - Fraction(1, 2)) for v in values)
        high = sum(math.floor(v + slack + Fraction(1, 2)) for v in values)
        assert low <= got[j] <= high, (j, got[j], float(sum(values)))


def test_float32_rows_give_the_integers_of_the_same_values_in_float64(region, rows):
    single = rows.astype(np.float32)
    assert summed(region, single).to_bytes() == summed(region, single.astype(float)).to_bytes()


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: np.asfortranarray(x),
        lambda x: x[::-1][::-1],
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: np.repeat(x, 3, axis=0)[::3],
        lambda x: np.ascontiguousarray(x[:, ::-1])[:, ::-1],
        lambda x: x.astype(">f8"),
        lambda x: x.astype(object).astype(float),
        lambda x: np.frombuffer(b"?" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(x.shape),
    ],
)
def test_every_memory_layout_gives_the_same_bytes(region, rows, layout):
    assert summed(region, layout(rows)).to_bytes() == summed(region, rows).to_bytes()


def test_a_memory_map_is_summed_in_place(region, rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert summed(region, mapped).to_bytes() == summed(region, rows).to_bytes()


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.bool_, np.float16, np.longdouble])
def test_other_numeric_dtypes_are_converted(region, dtype):
    data = np.random.default_rng(0).integers(0, 2, (9, 13)).astype(dtype)
    assert summed(region, data).to_bytes() == summed(region, data.astype(float)).to_bytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_cell_that_is_not_finite_counts_as_the_centre_of_its_coordinate(region, rows, bad):
    hit = rows.copy()
    hit[11, 4] = bad
    centred = rows.copy()
    centred[11, 4] = region.center[4]
    total = summed(region, hit)
    assert (total.integers() == summed(region, centred).integers()).all()
    assert total.count == len(rows)


def test_a_missing_value_in_a_list_is_no_error(region, rows):
    listed = rows.tolist()
    listed[11][4] = None
    hit = rows.copy()
    hit[11, 4] = np.nan
    assert summed(region, listed).to_bytes() == summed(region, hit).to_bytes()


def test_a_number_too_large_for_a_double_is_no_warning(region):
    with np.errstate(over="raise"):
        total = summed(region, np.full((1, 13), np.longdouble("1e4000")))
    assert total.count == 1 and not total.integers().any()


def test_a_huge_finite_row_is_clipped_in_its_direction():
    region = Ellipsoid(np.zeros(2), [1.0, 2.0], 5.0)
    total = summed(region, [[3e300, 2e300]])
    np.testing.assert_allclose(total.integers().astype(float) * region.grid, [3.0, 4.0], rtol=1e-6)
    assert total.clipped == 1


def test_clipped_counts_the_rows_that_the_clip_changes():
    region = Ellipsoid.box([0.0, 0.1], [1.0, 0.7])
    corners = [[0.0, 0.1], [1.0, 0.7], [0.0, 0.7], [0.3, 0.2]]
    assert summed(region, corners).clipped == 0
    assert summed(region, [[1.1, 0.2], [np.nan, 0.2], [np.nan, 0.8]]).clipped == 2


def test_totals_beyond_64_bits_stay_exact(region, rows, kernel_set):
    total = summed(region, rows[:5])
    expected = total.integers()
    for _ in range(90):  # 5 * 2^90 rows
        total.merge(_copy(total))
        expected = expected * 2
        if total.count > 2**50:
            total._totals.low[13] //= 2  # the header's count is 64 bits: the sums are tested
    assert (total.integers() == expected).all()
    assert any(abs(v) > 2**90 for v in expected)


def _copy(total):
    other = ExactSum(total.ellipsoid)
    other._totals = other._totals.plus(total._totals)
    return other


def test_nonfinite_raise_leaves_the_sum_as_it_was(region, rows):
    total = summed(region, rows, nonfinite="raise")
    before = total.to_bytes()
    with pytest.raises(ValueError, match="NaN or an infinity"):
        total.add(np.full((2, 13), np.nan))
    assert total.to_bytes() == before


@pytest.mark.parametrize(
    ("batch", "error", "phrase"),
    [
        (np.zeros((4, 12)), ValueError, r"batch must have shape \(n, 13\), got 12 columns$"),
        (np.zeros((2, 13, 2)), ValueError, r"batch must have shape \(n, 13\), got 3 dimensions$"),
        (np.zeros(77), ValueError, r"batch must have shape \(n, 13\), got one dimension$"),
        (5.0, ValueError, "batch must have shape"),
        ([np.zeros((2, 12))], ValueError, r"must have shape \(n, 13\), got 12 columns$"),
        (np.array([["a"] * 13]), TypeError, "batch must be numeric"),
        (np.zeros((1, 13), complex), TypeError, "batch must be numeric"),
        (np.array([[object()] * 13]), TypeError, "batch has dtype object"),
        (np.zeros((1, 13)).astype(object), TypeError, "batch has dtype object"),
        (np.ma.zeros((1, 13)), TypeError, "batch is a masked array"),
    ],
)
def test_a_bad_batch_is_one_clear_sentence_and_changes_nothing(region, rows, batch, error, phrase):
    total = summed(region, rows)
    before = total.to_bytes()
    with pytest.raises(error, match=phrase):
        total.add(batch)
    assert total.to_bytes() == before


ODD_RECORDS = [
    [2.0],
    [1.0] * 14,
    ["a"] * 13,
    [object()] * 13,
    [10**400] * 13,
    [1j] * 13,
    [[1.0] * 13],
    np.ma.masked_all(13),
    np.zeros(13).astype("M8[s]"),
    None,
    5.0,
    "text",
]


@pytest.mark.parametrize("record", ODD_RECORDS)
def test_a_record_of_a_list_that_is_no_row_counts_as_the_centre(region, rows, record):
    total = ExactSum(region).add([*rows.tolist(), record])
    want = ExactSum(region).add(rows).add(np.full(13, np.nan))
    assert total.to_bytes() == want.to_bytes()


def test_an_item_of_a_list_is_a_row_whatever_the_others_are(region, rows):
    """A list of numbers alone was one row: so one person's list decided how many there were."""
    total = ExactSum(region).add([rows[0].tolist()]).add([tuple(rows[1]), None]).add([None, 5.0])
    total.add([rows[2:4], rows[4]])
    want = ExactSum(region).add(rows[:5]).add(np.full((3, 13), np.nan))
    assert total.to_bytes() == want.to_bytes()


@pytest.mark.parametrize(
    "nothing", [np.empty((0, 13)), np.empty(0), [], pa.table({"a": np.empty(0)})]
)
def test_no_rows_are_added_like_any_others(region, rows, nothing):
    """An error would tell of an empty table, which add-remove calls private."""
    d = 1 if isinstance(nothing, pa.Table) else 13
    region = region if d == 13 else Ellipsoid.ball(1.0, d=1)
    total = ExactSum(region).add(nothing)
    assert total.to_bytes() == ExactSum(region).to_bytes()
    some = ExactSum(region).add(np.ones((2, d))).add(nothing)
    assert some.to_bytes() == ExactSum(region).add(np.ones((2, d))).to_bytes()


def test_a_mismatched_merge_changes_nothing(region, rows):
    total = summed(region, rows)
    before = total.to_bytes()
    for other, phrase in [
        (summed(Ellipsoid.ball(1.0, d=13), rows), "different ellipsoid"),
        (summed(region, rows, nonfinite="raise"), "nonfinite policy"),
        (total, "this sum itself"),
    ]:
        with pytest.raises(ValueError, match=phrase):
            total.merge(other)
    with pytest.raises(TypeError, match="other must be an ExactSum, got dict"):
        total.merge({})
    assert total.to_bytes() == before


def test_bytes_depend_on_the_shape_alone_in_length(region, rows):
    lengths = {len(summed(region, part).to_bytes()) for part in (rows, rows[:1], 1e9 * rows)}
    assert len(lengths) == 1


def test_bytes_that_are_cut_or_altered_are_refused(region, rows):
    raw = summed(region, rows).to_bytes()
    assert ExactSum.from_bytes(raw).to_bytes() == raw
    for length in [0, 7, 40, len(raw) // 2, len(raw) - 1]:
        with pytest.raises(ValueError, match="data is no ExactSum"):
            ExactSum.from_bytes(raw[:length])
    for at in range(len(raw)):
        broken = bytearray(raw)
        broken[at] ^= 0x40
        with pytest.raises(ValueError, match="data is no ExactSum"):
            ExactSum.from_bytes(bytes(broken))
    with pytest.raises(TypeError, match="data must be bytes, got str"):
        ExactSum.from_bytes("text")


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_forged_bytes_never_do_worse_than_a_value_error(data):
    raw = bytearray(summed(make_regions(3)["box"], np.ones((2, 3))).to_bytes()[:-16])
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    forged = sealed(bytes(raw))
    try:
        total = ExactSum.from_bytes(forged)
    except (ValueError, TypeError):
        return
    bound = total.count * Fraction(total.ellipsoid.row_bound())
    assert sum(int(v) ** 2 for v in total.integers()) <= bound**2


@pytest.mark.parametrize("rows, odd", [(1, 0), (3, 1), (2**70, 0)])
def test_a_sum_whose_norm_is_beyond_its_rows_is_refused(rows, odd):
    """Each coordinate was compared with the bound, not the norm: sqrt(d) times too much."""
    region, rows = Ellipsoid.ball(1.0, d=4), min(rows, 2**60)
    most = rows * Fraction(region.row_bound())  # a row with holes adds its other cells
    side = math.isqrt(int(most**2) // 4)
    for entry, extra, good in (
        (side, 0, True),
        (-side, 0, True),
        (side, 4, False),
        (-side, -4, False),
    ):
        values = [entry, entry, -entry, entry + extra]
        state = (
            ExactSum(region)
            .snapshot()
            ._replace(
                low=np.array([v % 2**64 for v in values], np.uint64),
                high=np.array([v >> 64 for v in values], np.int64),
                rows=rows,
                clipped=odd,
                nonfinite_rows=odd,
            )
        )
        if good:
            assert ExactSum.from_bytes(pack(state)).count == rows
            continue
        with pytest.raises(ValueError, match="contradict each other"):
            ExactSum.from_bytes(pack(state))


def test_a_future_version_says_so(region):
    raw = bytearray(ExactSum(region).to_bytes()[:-16])
    struct.pack_into("<H", raw, 8, 99)
    with pytest.raises(ValueError, match="version is 99"):
        ExactSum.from_bytes(sealed(bytes(raw)))


def test_many_python_threads_may_add_to_one_sum(region, rows):
    from concurrent.futures import ThreadPoolExecutor

    total = ExactSum(region)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(total.add, np.array_split(rows, 40)))
    assert total.to_bytes() == summed(region, rows).to_bytes()


@pytest.mark.parametrize("threads", [0, -1, 1.5, "two", True])
def test_threads_must_be_a_whole_number(region, threads):
    with pytest.raises((TypeError, ValueError), match="threads must be"):
        ExactSum(region, threads=threads)


def test_the_repr_tells_nothing_private(region, rows):
    assert repr(summed(region, rows)) == repr(ExactSum(region))
