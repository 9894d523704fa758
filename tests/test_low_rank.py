"""Regions of low rank beside a diagonal: the kernels bit for bit, the bound, bytes, and the fit."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactSum, GaussianShape, LowRankScale, PrivateMean, PrivateSum
from ellipsum.grid import SCALE_MAX, SCALE_MIN
from ellipsum.kernels.backend import use_kernels
from ellipsum.one_sum import noise_energy_root
from ellipsum.sealed_bytes import sealed
from ellipsum.shapes.factors import diagonal_plus_rank
from ellipsum.sum_bytes import _HEADER
from regions import KERNEL_SETS, make_low_rank

KNOWN = {"n": 10_000, "noise_multiplier": 2.0}


def factor_covariance(d, rank, seed=0, *, equal=False):
    rng = np.random.default_rng([seed, d, rank])
    own = np.full(d, 0.7) if equal else rng.uniform(0.3, 3, d) ** 2
    loadings = 2 * rng.normal(size=(d, rank))
    return np.diag(own) + loadings @ loadings.T


def integers(region, rows):
    return ExactSum(region).add(rows).integers()


# ---- the kernels ------------------------------------------------------------------------


def far_rows(d, rng):
    """Rows whose offers are in range while V' h is not, or cancels, with and without holes."""
    rows = np.empty((24, d))
    rows[:] = 2.0**399.9 * rng.choice([1.0, -1.0], (24, d))
    rows[:8] = 2.0**399.9
    rows[8:12] = 2.0**399.9 * np.where(np.arange(d) % 2, 1.0, -1.0)
    rows[12:16, ::2] = rng.normal(size=rows[12:16, ::2].shape)
    rows[3::5, d // 2] = np.nan
    return rows


@pytest.mark.parametrize("d", [2, 3, 8, 9, 31, 300])
def test_rows_whose_products_are_out_of_range_land_on_the_sphere_everywhere(d):
    rng = np.random.default_rng(d)
    scale = LowRankScale(np.ones(d), np.full((d, 2), 0.5), np.full((d, 2), [0.9, 0.7]))
    region = Ellipsoid(rng.normal(size=d), scale, 1.0)
    rows = far_rows(d, rng)
    wanted = None
    for name in KERNEL_SETS:
        with use_kernels(name):
            sums = np.array([integers(region, row) for row in rows[:, None]]).astype(float)
            whole = ExactSum(region, missing="ignore").add(rows)
        got = sums.tobytes(), whole.to_bytes()
        assert wanted is None or got == wanted, name
        wanted = got
    assert (np.linalg.norm(sums, axis=1) <= region.row_bound()).all()
    x = np.where(np.isnan(rows), 0.0, rows - region.center) / 2.0**400
    y = scale.times(x.T).T
    y *= region.clip_norm / region.grid / np.linalg.norm(y, axis=1, keepdims=True)
    assert np.abs(sums - y).max() <= 0.5 + 1e-6 * region.row_bound()


@pytest.mark.parametrize("rank", [1, 15, 16, 17, 255, 256, 257, 300])
def test_every_rank_gives_the_same_integers_in_every_backend(rank):
    """Panels of 16 and depths of 256, and one beside them."""
    d = 301
    region = Ellipsoid(np.zeros(d), make_low_rank(d, rank), 2.5 * np.sqrt(d))
    rows = np.random.default_rng(rank).standard_t(2, (29, d))
    sums = []
    for name in KERNEL_SETS:
        with use_kernels(name):
            sums.append(ExactSum(region).add(rows).to_bytes())
    assert len(set(sums)) == 1
    exact = rows @ region.scale.matrix().T / region.grid
    radius = region.clip_norm / region.grid
    exact *= np.minimum(1, radius / np.linalg.norm(exact, axis=1))[:, None]
    got = ExactSum.from_bytes(sums[0]).integers().astype(float)
    assert np.abs(got - exact.sum(0)).max() <= len(rows) * (0.5 + 2.0**-25 * radius)


def test_entries_at_the_ends_of_their_range_give_the_same_integers_in_every_backend():
    """Products of 24 and 29 bits stay normal numbers: fused or not, they are the same."""
    rng = np.random.default_rng(5)
    d, rank = 40, 5
    ends = [SCALE_MAX, SCALE_MIN, 0.0, 1.0, 2.0**390]
    rows = rng.standard_t(1, (60, d)) * 2.0 ** rng.integers(-420, 420, (60, 1))
    for _ in range(10):
        scale = rng.choice([SCALE_MAX, SCALE_MIN, 1.0], d) * rng.choice([1.0, 1 - 2.0**-24], d)
        left = rng.choice(ends, (d, rank)) * rng.choice([1.0, -1.0 + 2.0**-24], (d, rank))
        right = rng.choice([1.0, SCALE_MIN, 0.0, 0.5], (d, rank)) * rng.choice([1, -1], (d, rank))
        sums = []
        for name in KERNEL_SETS:
            partial = np.zeros(d, np.int64)
            with use_kernels(name) as kernels:
                shape = np.zeros(d), scale, np.stack([left, right]), np.empty(0), 2.0**23 + 0.5
                counts = kernels.clip_sum(rows, *shape, partial)
            sums.append((tuple(counts), partial.tobytes()))
        assert len(set(sums)) == 1


@pytest.mark.parametrize("name", KERNEL_SETS)
def test_memory_grows_with_d_and_not_with_its_square(name):
    d = 20_000  # a matrix would have 3.2 GB
    rng = np.random.default_rng(1)
    region = Ellipsoid(np.zeros(d), make_low_rank(d), 2.5 * np.sqrt(d))
    tracemalloc.start()
    with use_kernels(name):
        release = PrivateSum(region, mu=1.0, neighbors="add-remove")(rng.normal(size=(3, d)))
    assert release.sd.shape == (d,)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


# ---- the bound --------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 9, 64])
def test_a_search_over_neighbours_reaches_the_sensitivity_and_does_not_pass_it(d):
    """Rows along each singular direction of B, at the edge, beyond it, and with holes."""
    rng = np.random.default_rng(d)
    region = Ellipsoid(rng.normal(size=d), make_low_rank(d, 2), 1.7)
    axes = np.linalg.svd(region.scale.matrix())[2]
    bound, worst = region.sensitivity("replace") / region.grid, 0.0
    for axis in [*axes, *region.scale.right.T, *rng.standard_t(2, (20, d))]:
        at_edge = region.unscale(region.scale.times(axis[:, None])[:, 0])
        at_edge *= region.clip_norm / np.linalg.norm(region.scale.times(at_edge[:, None]))
        for size in (1 - 1e-9, 1.0, 1 + 1e-15, 1e10, 1e130, 1e300):
            pair = region.center + size * at_edge, region.center - size * at_edge
            if size > 1e5:
                pair[1][rng.random(d) < 0.2] = np.nan
            moved = integers(region, pair[0]) - integers(region, pair[1])
            moved = float(np.linalg.norm(moved.astype(float)))
            assert moved <= bound, size
            worst = max(worst, moved)
    assert worst >= 2 * region.clip_norm / region.grid * (1 - 1e-6)


# ---- the scale and its inverse ------------------------------------------------------------


@pytest.mark.parametrize(("d", "rank"), [(1, 1), (2, 2), (9, 3), (40, 40), (60, 7)])
def test_the_inverse_is_that_of_the_matrix(d, rank):
    scale = make_low_rank(d, rank)
    y = np.random.default_rng(d).normal(size=(5, d))
    inverse = np.linalg.inv(scale.matrix())
    np.testing.assert_allclose(scale.unscale(y), y @ inverse.T, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        scale.inverse_row_norms(), np.linalg.norm(inverse, axis=1), rtol=1e-10
    )
    region = Ellipsoid(np.zeros(d), scale, 3.0)
    same = Ellipsoid(np.zeros(d), scale.matrix(), 3.0)
    assert noise_energy_root(region) == pytest.approx(noise_energy_root(same), rel=1e-5)
    for made in (region, same):
        assert made.row_bound() == region.row_bound()
    release = PrivateSum(region, mu=1.0)(y, seed=3)
    wanted = release.parameters["sensitivity"] * np.linalg.norm(inverse, axis=1)
    np.testing.assert_allclose(release.sd, wanted, rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(release.covariance)), release.sd, rtol=1e-9)


def test_a_scale_is_kept_to_24_bits_and_says_the_same_however_it_is_given():
    scale = make_low_rank(7, 2)
    for shift in (2.0**-30, 1.0, 2.0**40):
        same = LowRankScale(scale.diagonal, scale.left / shift, scale.right * shift)
        assert (same.stacked() == scale.stacked()).all()
    again = LowRankScale.from_stacked(scale.stacked())
    assert (again.stacked() == scale.stacked()).all()
    for part in (scale.diagonal, scale.left, scale.right):
        assert (np.float32(part) == part).all()
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1
    largest = np.abs(scale.right).max(axis=0)
    assert ((largest >= 0.5) & (largest < 1)).all()
    odd = LowRankScale([1.0, 1.0], [[0.1], [0.2]], [[1 - 2.0**-40], [0.3]])  # rounds up to 1
    assert (LowRankScale.from_stacked(odd.stacked()).stacked() == odd.stacked()).all()


def test_what_is_no_scale_is_refused():
    d, u, v = np.ones(3), np.full((3, 1), 0.1), np.full((3, 1), 0.2)
    for bad, word in (
        (([1, 0, 1], u, v), "diagonal"),
        (([1, -1, 1], u, v), "diagonal"),
        (([1, np.nan, 1], u, v), "diagonal"),
        ((d, u[:2], v), "left must have 3 rows"),
        ((d, u, v[:, 0]), "right must have 3 rows"),
        ((d, np.zeros((3, 4)), v), "1 to 3 columns"),
        ((d, np.zeros((3, 0)), v), "1 to 3 columns"),
        ((d, np.hstack([u, u]), v), "right must have 2 columns"),
        ((d, u * np.inf, v), "left must be finite"),
        ((d, -np.ones((3, 1)) / 3, np.ones((3, 1))), "invertible"),  # I - 11'/3 is singular
        ((d, 1e8 * u, v), "invertible"),
        ((d, np.hstack([1e8 * u, -1e8 * u]), np.hstack([v, v])), "invertible"),
        ((d, u * 1e300, v * 1e300), "invertible|out of range|unit"),
    ):
        with pytest.raises(ValueError, match=word):
            LowRankScale(*bad)
    scale = LowRankScale(d, u, v)
    with pytest.raises(ValueError, match="scale must have 2 coordinates"):
        Ellipsoid([0.0, 0.0], scale, 1.0)
    with pytest.raises(ValueError, match="too large for clip_norm"):
        Ellipsoid(np.zeros(3), LowRankScale(2.0**300 * d, 2.0**300 * u, v), 2.0**-300)
    with pytest.raises(ValueError, match="too small for clip_norm"):
        Ellipsoid(np.zeros(3), LowRankScale(2.0**-300 * d, 2.0**-300 * u, v), 2.0**300)


# ---- bytes ------------------------------------------------------------------------------


def sum_of_rows():
    region = Ellipsoid(np.arange(5.0), make_low_rank(5, 2), 4.0)
    return ExactSum(region).add(np.random.default_rng(2).normal(size=(7, 5)) * 3)


def test_sums_go_through_bytes_and_pickles_and_merge():
    total = sum_of_rows()
    for other in (
        ExactSum.from_bytes(bytes(bytearray(total.to_bytes()))),
        pickle.loads(pickle.dumps(total)),
    ):
        assert other.to_bytes() == total.to_bytes()
        assert other.ellipsoid == total.ellipsoid and other.ellipsoid.kind == "low-rank"
    region = pickle.loads(pickle.dumps(total.ellipsoid))
    assert region == total.ellipsoid
    twice = ExactSum(region).add(np.zeros((2, 5))).merge(total)
    assert twice.count == 9
    again = ExactSum(region).merge_partial(bytes(bytearray(total.partial())))
    assert (again.integers() == total.integers()).all()
    for other in (
        Ellipsoid(np.arange(5.0), region.scale.matrix(), 4.0),
        Ellipsoid(np.arange(5.0), make_low_rank(5, 1), 4.0),
        Ellipsoid(
            np.arange(5.0),
            LowRankScale(region.scale.diagonal, -region.scale.left, -region.scale.right),
            4.0,
        ),
    ):
        assert other != region
        with pytest.raises(ValueError, match="different ellipsoid"):
            ExactSum(other).merge(total)
        with pytest.raises(ValueError, match="different ellipsoid"):
            ExactSum(other).merge_partial(bytes(bytearray(total.partial())))


def test_forged_regions_of_low_rank_are_refused():
    raw = bytearray(sum_of_rows().to_bytes()[:-16])
    start = _HEADER.size + 8 * 5  # of the diagonal; then 2 x 5 of U, 2 x 5 of V

    def forged(changes, header=None):
        data = bytearray(raw)
        for place, value in changes.items():
            data[start + 8 * place : start + 8 * place + 8] = np.float64(value).tobytes()
        if header is not None:
            fields = list(_HEADER.unpack(bytes(data[: _HEADER.size])))
            fields[header[0]] = header[1]
            data[: _HEADER.size] = _HEADER.pack(*fields)
        return sealed(bytes(data))

    assert ExactSum.from_bytes(forged({})).count == 7
    for changes in (
        {0: 0.0},
        {1: -1.0},
        {2: np.nan},
        {3: np.inf},
        {5: np.nan},
        {6: 1e300},
        {5: 1e8},
        {15: np.inf},
        {0: 1e-100},
    ):
        with pytest.raises(ValueError, match=r"must|out of range|too"):
            ExactSum.from_bytes(forged(changes))
    for header in (
        (2, 3),  # a matrix of 5 rows
        (2, 2),
        (2, 5),
        (4, 2),
        (4, 4),
        (4, 3),
        (4, 7),
        (4, 13),
        (4, 2**32 - 1),
    ):
        with pytest.raises(ValueError, match="data is no ExactSum"):
            ExactSum.from_bytes(forged({}, header))
    for rows in (0, 1, 2, 4):  # of the right length, but no diagonal and as many of U as of V
        kept = raw[:start] + raw[start : start + 40 * rows] + raw[start + 200 :]
        kept = list(_HEADER.unpack(bytes(kept[: _HEADER.size]))), kept[_HEADER.size :]
        kept[0][4] = rows
        with pytest.raises(ValueError, match="as many columns of left"):
            ExactSum.from_bytes(sealed(_HEADER.pack(*kept[0]) + bytes(kept[1])))
    singular = np.zeros(20)
    singular[:5], singular[10:15] = -raw_diagonal() / 5, 1.0  # D - D 1 1'/5
    with pytest.raises(ValueError, match="invertible"):
        ExactSum.from_bytes(forged({5 + k: v for k, v in enumerate(singular)}))


def raw_diagonal():
    return sum_of_rows().ellipsoid.scale.diagonal


# ---- the fit ----------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "rank", "equal"), [(6, 2, True), (6, 6, False), (30, 1, True)])
@pytest.mark.parametrize("share", [None, 0.01])
def test_the_full_matrix_is_met_where_it_has_that_form(d, rank, equal, share):
    """Rank d, or equal variances beside the factors: B'B is the full matrix's."""
    covariance = factor_covariance(d, min(rank, 2), equal=equal)
    full = Ellipsoid.for_covariance(covariance, clip_probability=share, **KNOWN)
    low = Ellipsoid.for_covariance(covariance, clip_probability=share, rank=rank, **KNOWN)
    gram = low.scale.matrix().T @ low.scale.matrix() / low.clip_norm**2
    wanted = full.scale.T @ full.scale / full.clip_norm**2
    np.testing.assert_allclose(gram, wanted, atol=2e-3 * np.abs(wanted).max())
    told, best = low.predicted_error(), full.predicted_error()
    np.testing.assert_allclose(told.by_coordinate, best.by_coordinate, rtol=2e-3)
    assert told.total == pytest.approx(best.total, rel=2e-4)
    assert told.clip_probability == pytest.approx(best.clip_probability, rel=0.03)


def test_factors_are_worth_their_rank():
    covariance = factor_covariance(40, 3)
    for error in ("absolute", np.linspace(0.5, 2, 40)):
        full, low, diagonal = (
            region.predicted_error()
            for region in (
                Ellipsoid.for_covariance(covariance, error=error, **KNOWN),
                Ellipsoid.for_covariance(covariance, error=error, rank=3, **KNOWN),
                Ellipsoid.for_gaussian(np.sqrt(np.diag(covariance)), error=error, **KNOWN),
            )
        )
        weights = 1.0 if isinstance(error, str) else error
        total = [np.sum(weights**2 * e.by_coordinate) for e in (full, low, diagonal)]
        assert total[1] < 1.01 * total[0] and total[2] > 1.4 * total[0]


def test_the_predicted_error_is_that_of_a_simulation():
    rng = np.random.default_rng(4)
    d = 12
    covariance = factor_covariance(d, 2)
    root = np.linalg.cholesky(covariance)
    region = Ellipsoid.for_covariance(covariance, clip_probability=0.2, rank=1, **KNOWN)
    told = region.predicted_error("sum", n=1, noise_multiplier=1.0)
    rows = rng.normal(size=(400_000, d)) @ root.T
    norm = np.linalg.norm(region.scale.times(rows.T), axis=0)
    lost = np.maximum(1 - region.clip_norm / norm, 0)[:, None] * rows
    assert np.mean(norm > region.clip_norm) == pytest.approx(0.2, abs=0.005)
    # Sixth moments of 400,000 rows: a relative standard deviation below 1 %.
    np.testing.assert_allclose(told.clipping, np.mean(lost**2, axis=0), rtol=0.06)
    noise = (2 * region.clip_norm * np.linalg.norm(region.unscale(np.eye(d)), axis=0)) ** 2
    np.testing.assert_allclose(told.noise, noise, rtol=1e-5)


def test_each_step_of_the_fit_lowers_what_it_minimises():
    covariance = factor_covariance(20, 3)
    variances, basis = np.linalg.eigh(covariance)
    spread, best = np.sqrt(variances), 2 * np.sum(np.sqrt(variances))
    before = np.inf
    for rank in (1, 2, 3, 5, 20):
        diagonal, loadings = diagonal_plus_rank(basis, spread, rank)
        m = np.diag(diagonal) + loadings @ loadings.T
        value = np.trace(m) + np.trace(np.linalg.solve(m, covariance))
        assert best * (1 - 1e-12) <= value <= before * (1 + 1e-6)
        before = value
        if rank == 3:
            assert value < best * 1.002
    assert before == pytest.approx(best, rel=1e-6)


def test_a_shape_of_a_rank_goes_through_a_mechanism():
    rng = np.random.default_rng(6)
    covariance = factor_covariance(10, 2)
    rows = rng.normal(size=(3000, 10)) @ np.linalg.cholesky(covariance).T
    shape = GaussianShape.for_covariance(covariance, rank=2)
    assert repr(shape) == "GaussianShape(d=10, covariance, rank=2)"
    release = PrivateMean(shape, epsilon=1.0, delta=1e-6)(rows, seed=1)
    assert release.parameters["shape"] == "low-rank"
    assert (np.abs(release.value - rows.mean(0)) < 6 * release.sd + 0.05).all()
    assert shape.at(0.05).kind == "low-rank"
    holed = np.where(rng.random(rows.shape) < 0.1, np.nan, rows)
    present = PrivateMean(shape.at(0.01), epsilon=1.0, delta=1e-6, missing="ignore")(holed, seed=1)
    assert (np.abs(present.value - np.nanmean(holed, axis=0)) < 6 * present.sd + 0.3).all()


def test_a_rank_that_is_none_is_refused():
    for bad, error in ((0, ValueError), (4, ValueError), (1.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match="rank must be"):
            Ellipsoid.for_covariance(np.eye(3), rank=bad)
    diagonal = Ellipsoid.for_covariance(np.diag([1.0, 4.0, 9.0]), rank=2)  # nothing to add
    assert diagonal.kind == "low-rank"
