"""An adversary looks for neighbours whose integer sums differ by more than the stated bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mpf, workdps
from mpmath import sqrt as mp_sqrt

from ellipsum import Ellipsoid, ExactSum
from ellipsum.adaptive.domain import Frame
from ellipsum.adaptive.passes import Passes
from ellipsum.adaptive.rounds import halves_sensitivity
from ellipsum.grid import _BOUND_SLACK, norm_above
from regions import make_regions


def contribution(region, row):
    return ExactSum(region).add(np.asarray(row)[None]).integers().astype(np.float64)


def halves(region, row):
    center, scale, matrix, _, radius = region.kernel_arguments()
    frame = Frame(center, scale, matrix)
    return Passes(np.asarray(row)[None], region.d).halves(frame, radius).astype(np.float64)


def at_the_rounding_edge(region, seed=0):
    """A row inside the ball whose every coordinate rounds away from zero by almost 1/2."""
    rng = np.random.default_rng(seed)
    center, scale, _, _, radius = region.kernel_arguments()
    direction = rng.uniform(0.5, 1, region.d) * rng.choice([-1.0, 1.0], region.d)
    y = direction / np.linalg.norm(direction) * (radius - 2)  # 2: the rounding must not clip
    y = np.sign(y) * (np.ceil(np.abs(y)) - 0.4999)
    return center + y / scale


@pytest.mark.parametrize("d", [1, 2, 3, 16, 1000, 100_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_at_the_rounding_edge_reach_the_bound_and_do_not_pass_it(d, dtype):
    region = Ellipsoid.ball(1.0, d=d)
    row = at_the_rounding_edge(region).astype(dtype)
    replace = np.linalg.norm(contribution(region, row) - contribution(region, -row))
    remove = np.linalg.norm(contribution(region, row))
    assert replace * region.grid <= region.sensitivity("replace")
    assert remove * region.grid <= region.sensitivity("add-remove")
    if d >= 1000 and dtype == np.float64:  # without the slack sqrt(d)/2 the bound would be broken
        assert remove > region.clip_norm / region.grid + 0.3 * math.sqrt(d)
    above, below = halves(region, row), halves(region, -row)
    for neighbors, moved in (("replace", above - below), ("add-remove", above)):
        reached = np.linalg.norm(moved) / halves_sensitivity(region, neighbors)
        assert 1 - 1e-4 < reached <= 1
    assert math.isclose(np.linalg.norm(above), remove, rel_tol=1e-15)


def adversaries(rng, d):
    """Directions and sizes that have broken floating-point sums elsewhere."""
    yield rng.normal(size=d)
    yield np.ones(d)
    yield np.eye(d)[d // 2]
    yield 2.0 ** rng.uniform(-300, 300, d)
    yield 2.0 ** rng.uniform(-1070, 1020, d)
    yield np.where(np.arange(d) == 0, 1.0, 2.0**-12)
    yield np.full(d, 5e-324)
    yield np.full(d, 1.7e308)
    yield rng.choice([-1.0, 1.0], d) * np.nextafter(1.0, 2.0)


@pytest.mark.parametrize("d", [1, 2, 7, 8, 65, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", ["raw", "edge", "outside"])
def test_no_single_row_passes_the_bound(d, dtype, size):
    rng = np.random.default_rng(d)
    kinds = {"ellipsoid": Ellipsoid(rng.normal(size=d), rng.uniform(0.1, 9, d), 0.7)}
    if d <= 65:
        kinds = make_regions(d)
    for kind, region in kinds.items():
        bound = region.row_bound()
        for direction in adversaries(rng, d):
            y = direction / np.max(np.abs(direction))
            y = y / np.linalg.norm(y)
            if size == "raw":
                row = direction
            else:
                factor = {"edge": np.nextafter(1.0, 2.0), "outside": 1e30}[size]
                row = region.center + region.unscale(y * region.clip_norm * factor)
            with np.errstate(over="ignore"):
                got = contribution(region, row.astype(dtype))
                apart = halves(region, row.astype(dtype)) if kind != "box" else None
            assert np.linalg.norm(got) <= bound, (kind, d, size)
            if apart is not None:
                assert (apart >= 0).all() and np.linalg.norm(apart) <= bound, (kind, d, size)


@pytest.mark.parametrize("d", [2, 3, 9, 40])
def test_rows_with_holes_stay_within_the_bound(d):
    """Holes, huge numbers and both, in every shape; and the bound is reached beside a hole."""
    rng = np.random.default_rng(d)
    for kind, region in make_regions(d).items():
        bound, worst = region.row_bound(), 0.0
        for direction in [*adversaries(rng, d), *rng.normal(size=(20, d))]:
            for size in (1.0, 1e4, 1e300):
                with np.errstate(over="ignore"):
                    row = region.center + size * direction
                row[rng.random(d) < rng.choice([0.1, 0.5])] = rng.choice([np.nan, np.inf, -np.inf])
                hole = ~np.isfinite(row)
                got = contribution(region, row)
                filled = contribution(region, np.where(hole, region.center, row))
                assert (got == filled).all(), (kind, d)
                assert kind in ("matrix", "low-rank") or not got[hole].any()
                assert np.linalg.norm(got) <= bound, (kind, d)
                if kind != "box":
                    apart = halves(region, row)
                    assert np.linalg.norm(apart) <= bound
                if hole.any():
                    worst = max(worst, np.linalg.norm(got))
        assert kind == "box" or worst > bound * (1 - 1e-6)


def test_a_random_search_over_pairs_stays_within_the_bound(region):
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(300):
        x = region.center + 10.0 ** rng.uniform(-1, 3) * rng.standard_t(2, region.d)
        opposite = 2 * region.center - x
        worst = max(worst, np.linalg.norm(contribution(region, x) - contribution(region, opposite)))
    assert worst * region.grid <= region.sensitivity("replace")
    if region.kind != "box":  # opposite rows outside the ball are the worst neighbours
        assert worst * region.grid >= 2 * region.clip_norm * (1 - 1e-6)


@pytest.mark.parametrize("d", [1, 2, 3, 40])
def test_a_random_search_over_pairs_of_halves_stays_within_their_bound(d):
    rng = np.random.default_rng(d)
    region = Ellipsoid(rng.normal(size=d), rng.uniform(0.1, 9, d), 0.7)
    rows = region.center + 10.0 ** rng.uniform(-1, 300, (100, 1)) * rng.standard_t(2, (100, d))
    rows[1::2] = 2 * region.center - rows[::2]
    added = [halves(region, row) for row in rows]
    bound = halves_sensitivity(region, "replace")
    worst = max(float(np.linalg.norm(a - b)) for a in added for b in added)
    assert bound * (1 - 1e-6) < worst <= bound


@pytest.mark.parametrize("d", [1, 2, 100, 10_000, 100_000, 5_000_000])
def test_the_bound_is_within_1e_4_of_the_clip_norm(d):
    for radius in [1e-30, 0.7, 1.0, 2.0, 1e25]:
        region = Ellipsoid.ball(radius, d=d)
        for neighbors, factor in [("replace", 2), ("add-remove", 1)]:
            inflation = region.sensitivity(neighbors) / (factor * radius) - 1
            assert 0 < inflation < 1e-4


def test_the_box_bound_is_the_exact_corner():
    region = Ellipsoid.box([0.0, -2.0, 5.0], [1.0, 2.0, 5.5])
    corner = contribution(region, [1e9, 1e9, 1e9])
    opposite = contribution(region, [-1e9, -1e9, -1e9])
    reached = np.linalg.norm(corner - opposite) * region.grid
    assert reached <= region.sensitivity("replace") <= reached * (1 + 1e-12)
    assert math.isclose(reached, 1.0, rel_tol=1e-6)  # b / Delta maps the box onto ||b|| = 1


@pytest.mark.parametrize("d", [1, 2, 1000, 2**26 - 1, 2**26, 2**27 + 1, 2**29, 2**30])
def test_the_box_bound_covers_the_worst_rounding_of_its_own_sum(d):
    """A dot product of d squares may fall short by the factor (1 - u)^d, and by no more."""
    u = mpf(2) ** -53
    with workdps(60):
        for exact in (mpf(d), mpf(2) ** 60 * d, mpf(3) ** 35):
            least = exact * (1 - u) ** d
            dot = float(least)
            dot = dot if mpf(dot) <= least else math.nextafter(dot, 0)
            bound = mpf(norm_above(dot, d)) * mpf(_BOUND_SLACK)
            assert bound >= mp_sqrt(exact)
            assert bound <= mp_sqrt(exact) * (1 + (d + 100) * u)
            first_order = math.sqrt(dot * (1 + d * 2.0**-53))  # what second order is added to
            assert d > 2**26 or norm_above(dot, d) == first_order
