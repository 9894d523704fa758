"""Cells moved into a box inside the kernels: the integers of rows that were moved in NumPy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from clip_cases import DTYPES, NONE, TYPES, Region, gaussian_rows, hostile_rows, left_out
from ellipsum import PrivateMean
from ellipsum.adaptive.domain import Domain, Frame
from ellipsum.adaptive.part_pass import passes_over
from ellipsum.adaptive.passes import Passes
from ellipsum.kernels import twins
from ellipsum.kernels.backend import use_kernels
from ellipsum.rows.columns import ColumnBlock
from ellipsum.rows.partitioned import Partitioned
from regions import KERNEL_SETS, _core

KINDS = ["halves", "matrix halves", "low rank halves", "distances", "matrix distances"]


@pytest.fixture(params=KERNEL_SETS)
def kernels(request):
    if request.param == "numba":
        yield twins
        return
    _core.choose_target(request.param.removeprefix("cpp-"))
    yield _core
    _core.choose_target("")


def box_about(region):
    """Ends that some cells pass on each side, some alike."""
    rng = np.random.default_rng(region.d)
    width = np.where(rng.random(region.d) < 0.1, 0.0, rng.exponential(2, region.d))
    return region.center - width, region.center + rng.permutation(width)


def moved(rows, center, lower, upper):
    rows = rows.astype(np.float64)
    return np.where(np.isfinite(rows), np.clip(rows, lower, upper), center)


def huge_box_about(region):
    """Ends of which some move only what is huge, as the rows are that they leave then."""
    lower, upper = box_about(region)
    rng = np.random.default_rng([region.d, 7])
    far = rng.choice([1.0, 1e100, 1e154, 1e300], region.d)
    return lower - far, upper + rng.permutation(far)


def integers(region, kernels, rows, box=(NONE, NONE), threads=1):
    shape, ends = (
        (region.center, region.scale, region.matrix),
        dict(zip(("lower", "upper"), box, strict=True)),
    )
    partial = np.zeros(region.width, np.int64)
    if "distances" in region.kind:
        kernels.distance_counts(rows, *shape, region.edges, partial, threads, **ends)
        return partial
    known = region.limit, region.radius, partial, threads, "halves" in region.kind
    return np.append(partial, kernels.clip_sum(rows, *shape, *known, **ends))


def layouts(rows):
    n, d = rows.shape
    wide = np.zeros((n, d + 5), rows.dtype)
    wide[:, 2 : d + 2] = rows
    yield from (
        rows,
        wide[:, 2 : d + 2],
        np.asfortranarray(rows),
        rows[::-1],
        rows.repeat(2, 0)[::2],
    )
    yield np.asfortranarray(rows[:, ::-1])[:, ::-1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_integers_are_those_of_rows_that_were_moved_before(kernels, kind, dtype):
    for d in (1, 2, 7, 8, 9, 33, 260):
        region = Region(kind, d, unit=2.0**20)
        box = box_about(region)
        for n, make in ((1, gaussian_rows), (79, hostile_rows), (0, gaussian_rows)):
            rows = make(n, d, dtype)
            wanted = integers(region, twins, moved(rows, region.center, *box))
            assert n == 0 or wanted.any()
            for view in layouts(rows):
                for threads in (1, 3):
                    found = integers(region, kernels, view, box, threads)
                    np.testing.assert_array_equal(found, wanted, f"{d}, {n}, {view.strides}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["ball", "box", *KINDS])
def test_cells_are_moved_once_and_holes_to_a_centre_that_may_lie_outside(kernels, kind, dtype):
    """A hole of a row that was moved already would go on to the nearer end."""
    for d in (1, 2, 3, 5, 7, 8, 9, 13, 33):
        region = Region(kind, d, unit=2.0**20)
        beyond = np.linspace(0.5, 1.5, d) * np.where(np.arange(d) % 2, 1, -1)
        lower, upper = region.center - 1 + beyond, region.center + 0.25 + beyond
        box = np.where(np.arange(d) % 3, lower, lower - 4), np.where(np.arange(d) % 3, upper, 4.0)
        rows = hostile_rows(61, d, dtype)
        rows[17:] = gaussian_rows(44, d, dtype)
        rows[5::7, d // 2], rows[20:28, 0] = np.nan, np.inf
        with np.errstate(over="ignore"):  # to a hole
            rows[:, ::2] = rows[:, ::2].astype(np.float32)  # as columns of mixed types have them
        for some in (rows, rows[20:27], rows[20:28]):
            wanted = integers(region, twins, moved(some, region.center, *box))
            tables = [left_out(some, ~np.isfinite(some), at, t) for at in (0, 5) for t in TYPES[1:]]
            for place, view in enumerate([*layouts(some), *tables]):
                for threads in (1, 3):
                    found = integers(region, kernels, view, box, threads)
                    np.testing.assert_array_equal(found, wanted, f"{d}, {len(some)}, {place}")


def test_a_plan_whose_centre_leaves_its_box_answers_alike_in_every_layout(monkeypatch):
    """Rows at an end of the box: noise takes the centre beyond it, where holes go, too."""
    frames, real = [], Domain.frame
    monkeypatch.setattr(Domain, "frame", lambda *a: frames.append(real(*a)) or frames[-1])
    rng = np.random.default_rng(0)
    rows = np.ones((1003, 3))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    rows[::50], rows[-3:, 0] = 0.5, np.nan
    names = ["a", "b", "c"]
    nulls = [pa.array(column, mask=np.isnan(column)) for column in rows.T]
    tables = [pa.table(nulls, names), pa.table(list(rows.T.copy()), names)]
    mean = PrivateMean(lower=np.zeros(3), upper=np.ones(3), mu=0.3)
    for seed in range(3):
        releases = []
        for how in KERNEL_SETS:
            with use_kernels(how):
                releases += [mean(view, seed=seed) for view in (*layouts(rows), *tables)]
        for release in releases[1:]:
            for one, two in zip(release.transcript, releases[0].transcript, strict=True):
                np.testing.assert_array_equal(one, two)
    assert any((frame.center > 1).any() for frame in frames)


@pytest.fixture(params=_core.variants() if _core else [])
def variant(request):
    yield _core.choose_target(request.param)
    _core.choose_target("")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["ball", "power ball", "box", "halves", "distances"])
def test_every_task_and_arrangement_moves_cells_into_boxes_of_every_size(variant, kind, dtype):
    for d in (1, 5, 8, 9, 14, 15, 16, 17, 40, 270):
        region, n = Region(kind, d, unit=2.0**20), 75 if d < 100 else 21
        rows = hostile_rows(n, d, dtype)
        rows[n // 2 :] = gaussian_rows(n, d, dtype)[n // 2 :]  # whole groups of ordinary ones, too
        for box in (box_about(region), huge_box_about(region)):
            wanted = integers(region, twins, moved(rows, region.center, *box))
            for view in (rows, np.asfortranarray(rows)):
                found = integers(region, _core, view, box)
                np.testing.assert_array_equal(found, wanted, f"{d}, {view.strides}")


def test_many_rows_are_moved_in_blocks_whose_ends_are_not_seen(kernels):
    """Blocks hold 2^16 numbers, and 8 rows at least."""
    for n, d in ((70_001, 3), (5_003, 40), (19, 9_001)):
        region, rows = Region("halves", d), gaussian_rows(n, d, np.float32)
        box = box_about(region)
        wanted = integers(region, twins, moved(rows, region.center, *box))
        there = [np.packbits(np.ones(n + 5, np.uint8), bitorder="little") for _ in range(d)]
        columns = [np.ascontiguousarray(column) for column in rows.T]
        for held in (rows, np.asfortranarray(rows), ColumnBlock(columns, there, [5] * d)):
            assert (integers(region, kernels, held, box, threads=2) == wanted).all()


def test_many_rows_of_columns_are_moved_by_stretches_with_their_own_types_and_nulls(kernels):
    rng = np.random.default_rng(1)
    for n, d in ((40_003, 5), (2_011, 70)):
        region = Region("halves", d)
        box = box_about(region)
        whole = rng.integers(-4, 5, (n, d))
        kinds = [np.int64, np.float32, np.int8, np.float64, np.bool_]
        columns = [column.astype(kinds[j % 5]) for j, column in enumerate(whole.T)]
        there = rng.random((n + 3, d)) < 0.8
        bits = [np.packbits(column, bitorder="little") for column in there.T]
        valid = [each if j % 2 else None for j, each in enumerate(bits)]
        seen = np.where(there[3:] | (np.arange(d) % 2 == 0), np.transpose(columns) * 1.0, np.nan)
        wanted = integers(region, twins, moved(seen, region.center, *box))
        found = integers(region, kernels, ColumnBlock(columns, valid, [3] * d), box, threads=2)
        assert (found == wanted).all()


@pytest.mark.parametrize("mixed", [False, True])
def test_columns_with_bitmaps_and_of_two_types(kernels, mixed):
    rng = np.random.default_rng(5)
    for d in (2, 9, 70):
        region, rows = Region("halves", d), hostile_rows(411, d, np.float32)
        there = rng.random((411 + 3, d)) < 0.9
        columns = [np.ascontiguousarray(c, dtype=(float if mixed and j % 2 else c.dtype))
                   for j, c in enumerate(rows.T)]  # fmt: skip
        bits = [np.packbits(c, bitorder="little") for c in there.T]
        block = ColumnBlock(columns, [b if j % 3 else None for j, b in enumerate(bits)], [3] * d)
        seen = np.where(there[3:] | (np.arange(d) % 3 == 0), rows, np.nan)
        box = box_about(region)
        wanted = integers(region, twins, moved(seen, region.center, *box))
        for threads in (1, 2):
            assert (integers(region, kernels, block, box, threads) == wanted).all()


def test_passes_of_a_box_are_the_passes_over_moved_rows():
    d = 5
    rows = hostile_rows(200, d, np.float64)
    box, frame = (np.full(d, -0.5), np.arange(1.0, d + 1)), Frame(np.full(d, 0.25), np.ones(d))
    edges = np.array([0.5, 1.0, 2.0, 4.0])
    inside, plain = Passes(rows, d, box=box), Passes(moved(rows, frame.center, *box), d)
    assert (inside.halves(frame, 2.0) == plain.halves(frame, 2.0)).all()
    assert (inside.histogram(frame, edges) == plain.histogram(frame, edges)).all()
    assert not (inside.histogram(frame, edges) == Passes(rows, d).histogram(frame, edges)).all()


@pytest.mark.parametrize("holes", [0.0, 0.01, 0.6, 1.0])
def test_cells_are_counted_as_numpy_counts_them(holes):
    rng = np.random.default_rng(7)
    for n, d in ((40, 1), (3000, 3), (300, 2000)):
        rows = np.where(rng.random((n, d)) < holes, [[np.inf]], rng.standard_normal((n, d)))
        rows[: n // 8], rows[n // 4 :: 9] = 1e30, np.nan
        present = np.isfinite(rows)
        wanted = np.append(present.sum(axis=0), n - present.any(axis=1).sum())
        for data in (rows, np.asfortranarray(rows), [rows[:7], rows[7:].astype(np.float32)]):
            assert (Passes(data, d).cells() == wanted).all()


def test_where_an_engine_counts_the_rows_of_a_box_no_pass_for_their_cells_follows():
    rows = np.where(np.arange(12).reshape(4, 3) % 5, 1.0, np.nan)
    tasks = []

    class Parts(Partitioned):
        d = 3

        def gather(self, task):
            tasks.append(task.method)
            yield from ((f"{k}", task(iter([row[None]]))) for k, row in enumerate(rows))

    passes = passes_over(Parts(), 3, box=(np.zeros(3), np.ones(3)))
    assert passes.count_rows() == 4
    assert passes.cells().tolist() == [3, 3, 3, 0]
    assert tasks == ["cells"]
