"""Means of the present cells of each group: what a user moves, and what the counts cost."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ellipsum import (
    Ellipsoid,
    ExactGroupSum,
    ExactSum,
    PresentMean,
    PrivateGroupMean,
    PrivateGroupSum,
)
from ellipsum.groups.holes import absent_levels
from ellipsum.kernels.backend import use_kernels
from regions import KERNEL_SETS, make_regions
from test_group_kernel import odd_rows

BOTH = ["replace", "add-remove"]
KEYS = list("pqrstuvw")


@pytest.mark.parametrize("name", KERNEL_SETS)
@pytest.mark.parametrize("d", [1, 3, 8, 9, 61, 130])
def test_groups_count_the_holes_that_a_sum_each_counts(name, d):
    rng = np.random.default_rng(d)
    rows, index = odd_rows(rng, 203, d, np.float64), rng.integers(0, 5, 203)
    rows[rng.random((203, d)) < 0.3] = np.nan
    rows[7] = np.nan
    layouts = [rows, np.asfortranarray(rows), rows.astype(np.longdouble)]
    for region in make_regions(d).values():
        with use_kernels(name):
            tables = [
                ExactGroupSum(region, range(4), missing="ignore").add(part, index)
                for part in layouts
            ]
            for key in range(4):
                own = ExactSum(region, missing="ignore").add(rows[index == key])
                assert (tables[0].integers()[key] == own.integers()).all()
                assert (tables[0].absent([key])[0] == own.snapshot().absent).all()
        assert len({table.to_bytes() for table in tables}) == 1


def own_rows(rng, d, region, k, shape):
    """Rows of one user: far out, with some holes, no cell, or cells that the other side lacks."""
    size = 10.0 ** rng.choice([1, 5, 200])
    rows = region.center + size * rng.choice([-1.0, 1.0], (k, d))
    if shape == "empty":
        rows[:] = np.nan
    elif shape == "holes":
        rows[rng.random((k, d)) < rng.uniform()] = np.nan
    return rows


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("max_keys", [1, 3])
@pytest.mark.parametrize("d", [1, 2, 9])
def test_no_user_moves_sums_sizes_and_holes_past_mu_and_one_reaches_it(d, max_keys, neighbors):
    """By search: also a user whose rows have no cell at all, and who leaves the groups."""
    rng = np.random.default_rng(d)
    for kind, region in make_regions(d).items():
        known = {"keys": KEYS, "max_keys": max_keys, "neighbors": neighbors, "mu": 0.7}
        mechanism = PrivateGroupMean(region, **known, missing="ignore")
        promise = mechanism.guarantee_for("u")
        sigma, size = mechanism._sum_sigma(region, promise), mechanism._size_sigma(promise)
        levels = absent_levels(region, sigma)
        most = {"full": 0.0, "holes": 0.0, "empty": 0.0}
        for turn in range(24):
            shape = list(most)[turn % 3]
            ends = []
            for side in range(2):
                k = 0 if side and neighbors == "add-remove" else int(rng.integers(1, 9))
                keys = rng.choice(KEYS, k)
                if turn % 2 and k:  # every row of the user goes to another group
                    k, keys = 4, np.array(KEYS)[4 * side : 4 * side + 4]
                rows = own_rows(rng, d, region, k, shape)
                exact = mechanism.exact_sum(rows, key=list(keys), user=[0] * k)
                units = [exact.integers() / sigma, exact.absent(range(8)) / levels]
                ends.append(np.column_stack([*units, exact.counts() / size]))
            moved = float(np.linalg.norm((ends[0] - ends[1]).astype(float)))
            assert moved <= 0.7, (kind, shape)
            most[shape] = max(most[shape], moved)
        # Of rows without a cell: they leave their groups, and holes and sizes alone tell it.
        assert most["empty"] >= 0.7 * (1 - 1e-2), kind


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("budget", [{"mu": 0.5, "keys": KEYS}, {"epsilon": 1.0, "delta": 1e-6}])
def test_counting_the_holes_costs_no_noise(neighbors, budget):
    rows, keys = np.zeros((4000, 3)), ["p", "q"] * 2000
    releases = [
        PrivateGroupMean(Ellipsoid.ball(1.0, d=3), **budget, neighbors=neighbors, missing=missing)(
            rows, key=keys, seed=1
        )
        for missing in ("center", "ignore")
    ]
    usual, counted = (release.parameters for release in releases)
    assert usual["sum_sigma"] == counted["sum_sigma"]
    assert usual["size_sigma"] == counted["size_sigma"]
    weight = Ellipsoid.ball(1.0, d=3).clip_norm / counted["grid"] / np.sqrt(3)
    (levels,) = counted["absent_sigma"]
    np.testing.assert_allclose(levels, counted["sum_sigma"][0] / weight, rtol=1e-12)


@pytest.mark.parametrize("neighbors", BOTH)
def test_means_of_present_cells_of_groups_scatter_as_they_say(neighbors):
    """800 groups of the same rows: fixed seed; 5.5 standard errors."""
    groups, each = 800, 40
    rows = np.tile(np.column_stack([np.linspace(0, 1, each), np.full(each, 0.5)]), (groups, 1))
    rows[::4, 0] = np.nan
    exact = np.nanmean(rows[:each], axis=0)
    region = Ellipsoid.ball(8.0, [0.1, 0.2])
    mean = PrivateGroupMean(region, keys=range(groups), mu=200.0, neighbors=neighbors,
                            missing="ignore")  # fmt: skip
    release = mean(rows, key=np.repeat(np.arange(groups), each), seed=4)
    z = (release.value - exact) / release.sd
    assert (np.abs(z.mean(0)) < 5.5 / np.sqrt(groups)).all()
    assert (np.abs(z.std(0) - 1) < 5.5 / np.sqrt(2 * groups)).all()
    low, high = release.confidence_interval(0.9)
    inside = ((low <= exact) & (exact <= high)).mean()
    assert abs(inside - 0.9) < 5.5 * np.sqrt(0.09 / (2 * groups))
    cells = [30, 40]
    spread = np.hypot(release.size_sd, release.parameters["absent_sigma"][0])
    assert (np.abs(release.present.mean(0) - cells) < 5.5 * spread / np.sqrt(groups)).all()
    one = release[3]
    assert isinstance(one, PresentMean) and (one.value == release.value[3]).all()
    assert (one.present == release.present[3]).all()


def test_a_users_row_has_the_cells_that_some_row_of_theirs_has():
    nan = np.nan
    own = [[1.0, nan], [3.0, nan], [nan, 5.0], [2.0, nan]]
    rows = np.array([*own, *own, [nan, nan]])
    table = {"v": rows, "key": list("pppqpppqq"), "u": [1] * 4 + [3] * 4 + [2]}
    known = {"keys": ["p", "q"], "max_keys": 2, "mu": 1e4}
    mean = PrivateGroupMean(Ellipsoid.ball(50.0, d=2), **known, missing="ignore")
    exact = mean.exact_sum(table, key="key", user="u")
    assert exact.counts().tolist() == [2, 3]
    assert exact.absent([0, 1]).tolist() == [[0, 0], [1, 3]]
    release = mean(exact, user="u")
    np.testing.assert_allclose(release["p"].value, [2.0, 5.0], atol=0.1)
    assert release["q"].value[0] == pytest.approx(2.0, abs=0.1)
    assert release["q"].value[1] == 0.0 and np.isinf(release["q"].sd[1])
    assert "1 of 4 means have too few present cells of users" in str(release)
    assert json.loads(json.dumps(release.to_dict(), allow_nan=False))["sd"][1][1] is None
    assert len(release.table()["present"]) == 4 and release.present.shape == (2, 2)


def test_private_keys_and_own_regions_go_with_it():
    rng = np.random.default_rng(0)
    rows = rng.normal(0.5, 0.1, (6000, 2))
    rows[rng.random((6000, 2)) < 0.5] = np.nan
    keys = np.where(np.arange(6000) < 5999, np.arange(6000) % 2, 7)
    private = PrivateGroupMean(Ellipsoid.ball(2.0, d=2), epsilon=4.0, delta=1e-6, missing="ignore")
    release = private(rows, key=keys)
    assert release.keys == [0, 1]
    np.testing.assert_allclose(release.value, 0.5, atol=0.05)
    regions = {"p": Ellipsoid.ball(2.0, d=2), "q": Ellipsoid.box([-1, -1], [2, 3])}
    own = PrivateGroupMean(regions, mu=30.0, missing="ignore")(rows, key=["p", "q"] * 3000)
    np.testing.assert_allclose(own.value, 0.5, atol=0.05)
    assert len(own.parameters["absent_sigma"]) == 2


def test_tables_with_holes_add_up_and_come_back_from_bytes():
    rng = np.random.default_rng(3)
    rows, keys = rng.normal(size=(300, 3)), rng.choice([5, 6, 7], 300)
    rows[rng.random((300, 3)) < 0.2] = np.nan
    region = Ellipsoid.ball(2.0, d=3)
    whole = ExactGroupSum(region, missing="ignore").add(rows, keys)
    parts = [
        ExactGroupSum(region, missing="ignore").add(rows[part], keys[part])
        for part in (slice(0, 40), slice(40, 41), slice(41, 300))
    ]
    parts = [ExactGroupSum.from_bytes(bytes(part.to_bytes()), region) for part in parts]
    total = parts[2].merge(parts[0].merge(parts[1]))
    assert total.to_bytes() == whole.to_bytes() and total.missing == "ignore"
    usual = ExactGroupSum(region).add(rows, keys)
    assert usual.to_bytes()[8:10] == b"\4\0" and whole.to_bytes()[8:10] == b"\5\0"
    assert len(whole.to_bytes()) == len(usual.to_bytes()) + 8 * 3 * 3
    with pytest.raises(ValueError, match="missing policy"):
        whole.merge(usual)
    with pytest.raises(ValueError, match="missing policy"):
        PrivateGroupMean(region, epsilon=1.0, delta=1e-6)(whole)


def test_the_noise_is_bound_to_the_holes():
    """Tables alike but for where a hole is have noise of their own."""
    region = Ellipsoid.ball(2.0, d=2)
    mean = PrivateGroupMean(region, keys=["p"], mu=1.0, missing="ignore")
    first, other = np.zeros((2, 2)), np.zeros((2, 2))
    first[0, 0] = other[0, 1] = np.nan
    one, two = (mean(rows, key=["p", "p"], seed=1) for rows in (first, other))
    assert (one.integers != two.integers).any()


def test_sums_do_not_ignore_holes():
    with pytest.raises(ValueError, match="a mean of groups: use PrivateGroupMean"):
        PrivateGroupSum(Ellipsoid.ball(1.0, d=2), keys=["p"], mu=1.0, missing="ignore")
    narrow = Ellipsoid.box([0.0, 0.0], [1.0, 1e-15], error="absolute")
    with pytest.raises(ValueError, match="take the narrow columns apart"):
        PrivateGroupMean(narrow, keys=["p"], mu=1.0, missing="ignore")
