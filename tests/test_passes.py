"""The passes of a box's rounds: a row's transformation is its own, and what is read how often."""

from __future__ import annotations

import numpy as np
import pytest

from boxes import BUDGET, box, gaussian_rows
from ellipsum import Ellipsoid, ExactSum, PrivateMean
from ellipsum.adaptive.domain import Domain, Frame
from ellipsum.adaptive.passes import Passes

# ---- a row's transformation is its own -------------------------------------------------------


def axes_of(d):
    return np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0]


def domain_of(d, *, turned):
    """A box about a random point, with axes of its own or without."""
    center = np.random.default_rng([d, 1]).normal(size=d)
    return Domain(center, np.full(d, 9.0), basis=axes_of(d) if turned else None)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("d", [1, 3, 8, 9, 40])
def test_what_a_row_adds_to_a_pass_is_the_same_in_every_order_layout_and_split(d, turned):
    rng = np.random.default_rng(d)
    rows = rng.standard_t(1, size=(57, d)).astype(np.float32)
    rows[5, 0], rows[9, d - 1], rows[11, 0] = np.nan, np.inf, 3e38
    frame = domain_of(d, turned=turned).frame(np.ones(d), 1e6 * rng.uniform(0.5, 2, d))
    edges = np.geomspace(1e5, 1e8, 23)

    def added(data, threads=1):
        passes = Passes(data, d)
        counts = passes.histogram(frame, edges, threads)
        return np.concatenate([passes.halves(frame, 2e6, threads), counts])

    wanted = sum(added(row[None]) for row in rows)
    shuffled = rows[rng.permutation(57)]
    views = [rows, shuffled, rows.astype(np.float64), np.asfortranarray(rows), rows[::-1]]
    for view in [*views, np.split(rows, [1, 20]), [shuffled[:30], shuffled[30:].astype(float)]]:
        assert (added(view) == wanted).all()
        assert (added(view, threads=3) == wanted).all()


def test_batches_of_any_size_give_the_same_integers():
    rows = gaussian_rows(1000, np.arange(1.0, 8), 3.0)
    mean = PrivateMean(**box(7), **BUDGET)
    want = mean(rows, seed=3)
    for size in (1000, 333, 7):
        parts = [rows[i : i + size] for i in range(0, 1000, size)]
        assert (
            mean(lambda parts=parts: iter(parts), seed=3).transcript[-1] == want.transcript[-1]
        ).all()
        assert (mean(parts, seed=3).value == want.value).all()
    assert not (mean(rows, seed=4).transcript[-1] == want.transcript[-1]).all()


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("d", [1, 5, 33, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pass_counts_and_adds_what_numpy_does(d, dtype, turned):
    rng = np.random.default_rng(d)
    rows = (rng.normal(size=(500, d)) * np.exp(rng.normal(size=(500, 1)))).astype(dtype)
    domain, offset, scale = domain_of(d, turned=turned), np.ones(d), 1e6 * rng.uniform(0.5, 2, d)
    along = rows.astype(np.float64) - domain.center
    y = ((along @ domain.basis if turned else along) - offset) * scale
    norm = np.linalg.norm(y, axis=1)
    edges = np.quantile(norm, np.arange(1, 20) / 20) * 1.00001
    passes, frame = Passes(rows, d), domain.frame(offset, scale)
    counts = passes.histogram(frame, edges)
    assert (counts == np.bincount(np.searchsorted(edges[:-1], norm), minlength=19)).all()
    assert passes.excess(frame, edges) == np.sum(norm[:, None] > edges)
    radius = float(np.median(norm))
    clipped = y * np.minimum(1, radius / norm)[:, None]
    wanted = [np.maximum(clipped, 0).sum(axis=0), np.maximum(-clipped, 0).sum(axis=0)]
    off = np.abs(passes.halves(frame, radius).astype(float) - np.concatenate(wanted)).max()
    assert off <= 500 * (0.5 + turned * radius * 2.0**-23)  # half a unit a row, and 24 bits


def test_axes_and_points_are_each_others_inverse():
    domain, offset = domain_of(40, turned=True), np.arange(40.0)
    np.testing.assert_allclose(domain.offset(domain.back(offset)), offset, atol=1e-12)
    frame = domain.frame(offset, np.full(40, 2.0))
    point = domain.back(offset + 1)
    np.testing.assert_allclose(frame.matrix @ (point - frame.center), 2.0, rtol=1e-6)


def test_a_frame_keeps_the_entries_whose_products_are_exact():
    domain = domain_of(9, turned=True)
    for size in (2.0**-401, 2.0**-395, 1.0, 2.0**400):
        entries = np.abs(domain.frame(np.ones(9), np.full(9, size)).matrix)
        assert ((entries == 0) | ((entries >= 2.0**-400) & (entries <= 2.0**400))).all()
    with pytest.raises(ValueError, match="change the unit"):
        domain.frame(np.ones(9), np.full(9, 2.0**401))


def test_a_cell_that_is_not_finite_lies_at_the_centre_and_a_huge_one_far_away():
    d = 4
    for turned in (False, True):
        frame = domain_of(d, turned=turned).frame(np.ones(d), np.full(d, 3.0))
        for value, wanted in ((np.nan, 0), (np.inf, 0), (-np.inf, 0), (1e200, 2), (1.7e308, 2)):
            rows = np.full((1, d), np.nan)
            rows[0, 1] = value
            counts = Passes(rows, d).histogram(frame, np.array([1.0, 2.0, 3.0]))
            assert counts.argmax() == wanted and counts.sum() == 1
            assert Passes(rows, d).halves(frame, 1e6).any() == (wanted == 2)


# ---- what it reads ---------------------------------------------------------------------------


def test_what_can_be_read_once_only_is_refused():
    mean, rows = PrivateMean(**box(2), **BUDGET), np.zeros((100, 2))
    for once in (iter([rows]), (r for r in [rows])):
        with pytest.raises(TypeError, match="read only once"):
            mean(once)
    with pytest.raises(TypeError, match="ExactSum"):
        mean(ExactSum(Ellipsoid.ball(1.0, d=2)).add(rows))
    spent = iter([rows])
    with pytest.raises(TypeError, match="read only once"):
        mean(lambda: spent)


def test_data_that_grow_between_passes_are_refused_without_a_number():
    sizes = iter([100, 101])
    with pytest.raises(ValueError, match="data changed between two passes") as caught:
        PrivateMean(**box(2), **BUDGET)(lambda: iter([np.zeros((next(sizes), 2))]))
    assert "10" not in str(caught.value)


@pytest.mark.parametrize(
    "rows",
    [
        np.full((1, 2), np.longdouble("1e400")),
        np.full((1, 2), 0x7FA00000, np.uint32).view(np.float32),  # a signalling NaN
    ],
)
def test_passes_convert_without_a_warning(rows):
    passes = Passes(lambda: iter([rows]), 2)
    assert passes.count_rows() == 1
    frame = Frame(np.zeros(2), np.ones(2))
    assert not passes.halves(frame, 1e6).any()
    assert passes.histogram(frame, np.ones(3))[0] == 1
    total = passes.sum_of(Ellipsoid.ball(1.0, d=2), lambda x: x + x, 2)
    assert not total.integers().any()


def test_it_reads_as_often_as_the_plan_says():
    passes, rows = [], gaussian_rows(2000, np.ones(4), 1.0)
    mean = PrivateMean(**box(4), **BUDGET)
    release = mean(lambda: passes.append(1) or iter([rows]), seed=1)
    assert len(passes) == release.plan.passes + 1  # one more to count
    assert release.plan == mean.plan(2000)
    counted = Passes(rows, 4)
    assert counted.count_rows() == 2000


def test_rows_that_are_not_numbers_count_as_the_centre():
    rows = gaussian_rows(4000, np.ones(4), 1.0)
    rows[:20] = np.nan
    rows[20:40, 1] = np.inf
    rows[40:50] = 1e308
    value = PrivateMean(**box(4), **BUDGET)(rows, seed=1).value
    assert np.isfinite(value).all()
    assert np.abs(value - 1).max() < 0.3
