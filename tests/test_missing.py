"""The mean of the present cells: joint sensitivity, intervals, bytes, and what is said of holes."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from ellipsum import (
    Checkpoint,
    CheckpointError,
    Ellipsoid,
    ExactSum,
    GaussianGuarantee,
    GaussianShape,
    Parts,
    PrivateMean,
    PrivateSum,
    open_rows,
)
from ellipsum.guarantee import Neighbors
from ellipsum.present import PresentMean, absence_weights
from ellipsum.rows.batches import as_batches
from ellipsum.sum_release import MISSING_CENTER, NoisySum
from regions import make_regions

BOTH = ["replace", "add-remove"]


def added(region, row):
    """What a row adds to the sum and to the numbers of missing cells."""
    state = ExactSum(region, missing="ignore").add(np.asarray(row)[None]).snapshot()
    return state.low.view(np.int64).astype(np.float64), state.absent.astype(np.float64)


# ---- the rule with k of d cells present ---------------------------------------------------


@pytest.mark.parametrize("d", [2, 5, 8, 9, 40])
def test_a_row_with_k_cells_is_clipped_at_its_share_of_the_radius(target, d):
    rng = np.random.default_rng(d)
    for kind, region in make_regions(d).items():
        radius = region.clip_norm / region.grid
        for size, k in itertools.product((1e-3, 0.5, 1e3, 1e300), range(d + 1)):
            row = region.center + size * rng.normal(size=d)
            row[rng.permutation(d)[k:]] = np.nan
            q, absent = added(region, row)
            usual = ExactSum(region).add(row[None]).integers().astype(np.float64)
            share = math.sqrt(k / d)
            assert absent.sum() == d - k
            if kind == "box":
                assert (q == usual).all()
                continue
            assert np.linalg.norm(q) <= share * radius * (1 + 2.0**-40) + math.sqrt(d) / 2
            if size >= 1e3 and k:
                assert np.linalg.norm(q) >= share * radius * (1 - 1e-6) - math.sqrt(d)
            elif size < 1:
                inside = np.linalg.norm(usual) < share * radius * (1 - 1e-5)
                assert not inside or (q == usual).all()


# ---- the joint sensitivity ----------------------------------------------------------------


def pairs_of_rows(region, rng):
    """Far rows with opposite signs where both are present; with their holes."""
    d = region.d
    size = 10.0 ** rng.choice([1, 5, 200])
    signs = rng.choice([-1.0, 1.0], d) * rng.choice([1.0, rng.uniform()], d)
    masks = [rng.random((2, d)) < p for p in (0.1, 0.5, 0.9, 0.0)]
    cover = rng.random(d) < 0.5  # every cell is in one of the two
    masks += [np.array([cover, ~cover]), np.array([cover, np.zeros(d, bool)])]
    for holes in masks:
        pair = region.center + size * np.array([signs, -signs])
        pair[holes] = np.nan
        yield pair
    for m in range((d - 1) // 2 + 1):  # opposite where both are present, at the centre elsewhere
        pair = region.center + size * np.array([signs, -signs])
        pair[0, :m], pair[0, m : 2 * m] = np.nan, region.center[m : 2 * m]
        pair[1, m : 2 * m], pair[1, :m] = np.nan, region.center[:m]
        yield pair


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("d", [1, 2, 5, 16, 61])
def test_a_search_over_pairs_reaches_the_joint_sensitivity_and_does_not_pass_it(d, neighbors):
    rng = np.random.default_rng(d)
    for kind, region in make_regions(d).items():
        weights = absence_weights(region, Neighbors.of(neighbors))
        bound = region.sensitivity(neighbors) / region.grid
        best, best_with_holes = 0.0, 0.0
        for _ in range(12):
            for pair in pairs_of_rows(region, rng):
                one, other = (added(region, row) for row in pair)
                if neighbors == "add-remove":
                    other = (0.0, 0.0)
                moved = math.hypot(
                    np.linalg.norm(one[0] - other[0]),
                    np.linalg.norm(weights * (one[1] - other[1])),
                )
                assert moved <= bound, (kind, d)
                best = max(best, moved)
                if (one[1] != other[1]).any():
                    best_with_holes = max(best_with_holes, moved)
        # A box is reached at its corner; the signs above are not all there.
        assert best >= bound * (1 - 1e-3), (kind, d)
        if kind not in ("matrix", "low-rank", "box") and d > 2:  # at every number of holes, in fact
            assert best_with_holes >= bound * (1 - 1e-3), (kind, d)


@pytest.mark.parametrize("neighbors", BOTH)
def test_the_noise_on_missing_cells_spends_what_the_sum_leaves(region, neighbors):
    mechanism = PrivateMean(region, mu=0.8, neighbors=neighbors, missing="ignore")
    release = mechanism(np.zeros((9, 13)), seed=1)
    numbers = release.parameters
    weights = absence_weights(region, Neighbors.of(neighbors))
    assert (np.array(numbers["absent_sigma"]) * weights >= numbers["sum_sigma"]).all()
    np.testing.assert_allclose(numbers["absent_sigma"] * weights, numbers["sum_sigma"], rtol=1e-12)
    usual = PrivateMean(region, mu=0.8, neighbors=neighbors)(np.zeros((9, 13)), seed=1)
    assert numbers["sum_sigma"] == usual.parameters["sum_sigma"]  # the cells cost nothing


# ---- the estimand -------------------------------------------------------------------------


def rows_with_holes(n=3000):
    rng = np.random.default_rng(5)
    rows = np.array([5.0, -3.0, 40.0]) + rng.normal(size=(n, 3)) * 0.3 + [0.7, 0.0, 0.2]
    rows[rng.random((n, 3)) < [0.1, 0.6, 0.0]] = np.nan
    return rows


@pytest.mark.parametrize("neighbors", BOTH)
def test_means_of_present_cells_scatter_as_they_say(neighbors):
    region = Ellipsoid(np.array([5.0, -3.0, 40.0]), np.array([1.0, 0.5, 1.0]), 6.0)
    rows = rows_with_holes()
    exact = np.nanmean(rows, axis=0)
    run = PrivateMean(region, mu=1.0, neighbors=neighbors, missing="ignore")
    releases = [run(rows, seed=s) for s in range(2000)]
    values, sd = np.array([r.value for r in releases]), releases[0].sd
    # fixed seeds; 5.5 standard errors of a mean and of a standard deviation of 2000
    assert (np.abs(values.mean(0) - exact) < 5.5 * sd / math.sqrt(2000) + 1e-5).all()
    np.testing.assert_allclose(values.std(0), sd, rtol=5.5 / math.sqrt(2 * 2000))
    np.testing.assert_allclose(np.sqrt(np.diag(releases[0].covariance)), sd, rtol=1e-9)
    ends = np.array([r.confidence_interval(0.9) for r in releases])
    inside = (ends[:, 0] <= exact) & (exact <= ends[:, 1])
    assert abs(inside.mean() - 0.9) < 5.5 * math.sqrt(0.09 / inside.size)
    present = np.array([r.present for r in releases])
    cells = np.isfinite(rows).sum(0)
    spread = releases[0].present_sd
    assert (np.abs(present.mean(0) - cells) < 5.5 * spread / math.sqrt(2000)).all()
    np.testing.assert_allclose(present.std(0), spread, rtol=5.5 / math.sqrt(2 * 2000))


def test_the_centre_draws_and_ignoring_does_not():
    region = Ellipsoid.ball(30.0, np.zeros(3))
    rows = rows_with_holes() - [0.0, 0.0, 40.0]
    ignoring = PrivateMean(region, mu=50.0, missing="ignore")(rows)
    np.testing.assert_allclose(ignoring.value, np.nanmean(rows, axis=0), atol=0.05)
    drawn = PrivateMean(region, mu=50.0)(rows)
    np.testing.assert_allclose(drawn.value, np.nan_to_num(rows).mean(axis=0), atol=0.05)


@pytest.mark.parametrize("neighbors", BOTH)
def test_too_few_cells_give_the_centre_and_no_claim(neighbors):
    region = Ellipsoid.ball(3.0, [1.0, 2.0, -1.0])
    rows = np.full((500, 3), 1.5)
    rows[:, 1] = np.nan
    release = PrivateMean(region, mu=1.0, neighbors=neighbors, missing="ignore")(rows, seed=3)
    assert release.value[1] == 2.0 and np.isinf(release.sd[1]) and np.isfinite(release.sd[0])
    lower, upper = release.confidence_interval()
    assert lower[1] == -np.inf and upper[1] == np.inf and lower[0] < upper[0] < np.inf
    assert np.isinf(release.covariance[1, 1]) and not np.isnan(release.covariance).any()
    found = json.loads(json.dumps(release.to_dict(), allow_nan=False))
    assert found["sd"][1] is None and found["confidence_interval_95"][0][1] is None
    assert any("1 of 3 coordinates have too few" in caveat for caveat in found["caveats"])
    assert "1 of 3 coordinates have too few" in str(release)


def test_intervals_cover_where_the_number_of_cells_is_near_its_noise():
    """The number of cells and the sum at any size beside their noise, down to none."""
    region, rng = Ellipsoid.ball(1.0, d=1), np.random.default_rng(0)
    promise = GaussianGuarantee.of_budget(None, None, None, 1.0, "replace")
    shift, runs = 1 / region.grid, 4000
    for cells in (0.0, 1.0, 2.0, 4.0, 10.0):
        inside = 0
        for _ in range(runs):
            total = np.array([round((0.8 * cells + rng.normal()) * shift)], dtype=object)
            noisy = NoisySum(region, total, shift, 20.0, None)
            absent = np.array([20.0 - cells + rng.normal()])
            release = PresentMean(noisy, absent, np.ones(1), promise)
            lower, upper = release.confidence_interval(0.9)
            inside += bool(lower[0] <= 0.8 <= upper[0])
        assert inside >= 0.9 * runs - 5.5 * math.sqrt(0.09 * runs), cells


# ---- users ----------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", BOTH)
def test_a_users_row_has_the_cells_that_some_row_of_theirs_has(neighbors, tmp_path):
    rows, users = rows_with_holes(600), np.arange(600) % 150
    rows[users < 9, 1] = np.nan
    means = []
    for cells in (rows[users == user].T for user in range(150)):
        present = [x[np.isfinite(x)] for x in cells]
        means.append([math.fsum(x) / len(x) if len(x) else math.nan for x in present])
    assert np.isnan(means).any()
    known = {"mu": 1.0, "neighbors": neighbors, "missing": "ignore"}
    region = Ellipsoid(np.array([5.0, -3.0, 40.0]), np.array([1.0, 0.5, 1.0]), 6.0)
    mean = PrivateMean(region, **known, by="u")
    release = mean(rows, users=users, seed=2)
    wanted = PrivateMean(region, **known)(np.array(means), seed=2)
    assert isinstance(release, PresentMean) and (release.present == wanted.present).all()
    np.testing.assert_allclose(release.value, wanted.value, rtol=1e-12)
    np.savez(tmp_path / "x.npz", rows=rows, u=users)
    files = open_rows(tmp_path / "x.npz", ["rows"], by="u")
    first, again = (mean(files, resume=tmp_path / "job.ck") for _ in range(2))
    assert (first.present == again.present).all() and first.private


def test_several_rows_of_a_user_have_the_noise_of_all_their_holes():
    rows, users = rows_with_holes(600), np.arange(600) % 150
    known = {"mu": 1.0, "neighbors": "add-remove", "missing": "ignore"}
    region = Ellipsoid.ball(30.0, d=3)
    three = PrivateMean(region, **known, by="u", max_rows=3)(rows, users=users).parameters
    one = PrivateMean(region, **known)(rows).parameters
    shape = PrivateMean(GaussianShape([1.0] * 3), mu=1.0, missing="ignore", by="u")
    assert shape(rows, users=users).n == 150
    for name in ("sum_sigma", "count_sigma", "absent_sigma"):
        np.testing.assert_allclose(three[name], 3 * np.array(one[name]), rtol=1e-12)


# ---- what is said, carried and refused ------------------------------------------------------


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("mechanism", [PrivateSum, PrivateMean])
def test_every_release_says_what_a_missing_cell_counts_for(region, rows, mechanism, neighbors):
    release = mechanism(region, mu=1.0, neighbors=neighbors)(rows)
    assert release.private and release.caveats == (MISSING_CENTER,)
    assert release.to_dict()["caveats"] == [MISSING_CENTER]
    assert MISSING_CENTER in str(release)


def test_bytes_carry_the_missing_cells(region, rows):
    rows[::3, 2] = np.nan
    total = ExactSum(region, missing="ignore").add(rows)
    data = total.to_bytes()
    again = ExactSum.from_bytes(data)
    assert again.missing == "ignore" and again.to_bytes() == data
    assert again.snapshot().absent.tolist() == np.isnan(rows).sum(0).tolist()
    usual = ExactSum(region).add(rows).to_bytes()
    assert usual[8:10] == b"\1\0" and data[8:10] == b"\2\0"  # older releases read the first
    assert len(data) == len(usual) + 8 * 13
    parts = [ExactSum(region, missing="ignore").add(part) for part in np.array_split(rows, 3)]
    assert parts[0].merge(parts[1]).merge(parts[2]).to_bytes() == data


def test_missing_cells_that_contradict_the_rows_are_refused(region, rows):
    rows[0, 0] = np.nan
    for wrong in (-1, 2):
        total = ExactSum(region, missing="ignore").add(rows)
        rows_of, clipped, nonfinite = total._totals.counts
        absent = total._totals.absent
        absent[3] = wrong
        total._totals.with_counts(rows_of, clipped, nonfinite, absent.view(np.uint64))
        with pytest.raises(ValueError, match="counts and sums contradict"):
            ExactSum.from_bytes(total.to_bytes())


def test_what_does_not_go_together_is_refused(region, rows):
    with pytest.raises(ValueError, match='missing="ignore" goes with a mean, not with a sum'):
        PrivateSum(region, mu=1.0, missing="ignore")
    with pytest.raises(ValueError, match="missing must be 'center' or 'ignore'"):
        PrivateMean(region, mu=1.0, missing="drop")
    with pytest.raises(ValueError, match="different missing policy"):
        ExactSum(region).merge(ExactSum(region, missing="ignore").add(rows))
    with pytest.raises(ValueError, match='an ExactSum with missing="center"'):
        PrivateMean(region, mu=1.0, missing="ignore")(ExactSum(region).add(rows))
    wide = Ellipsoid.box([0.0, 0.0], [1.0, 1e-15], error="absolute")
    with pytest.raises(ValueError, match="take the narrow columns apart"):
        PrivateMean(wide, mu=1.0, missing="ignore")(np.ones((3, 2)))


# ---- readers ------------------------------------------------------------------------------


def sources_of(tmp_path):
    """Readers of two records of three cells, the second without its middle cell."""
    pa, pl, pd = (pytest.importorskip(name) for name in ("pyarrow", "polars", "pandas"))
    columns = {"a": [1.0, 4.0], "b": [2.0, None], "c": [3.0, 6.0]}
    records = [[1.0, 2.0, 3.0], [4.0, None, 6.0]]
    yield "list", records
    yield "arrow", pa.table(columns)
    yield "integers", pa.table({k: pa.array(v, pa.int32()) for k, v in columns.items()})
    yield "polars", pl.DataFrame(columns)
    yield "pandas", pd.DataFrame(columns)
    yield "nullable", pd.DataFrame(columns).convert_dtypes()
    for kind in (pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float64(), 3)):
        yield str(kind), pa.table({"x": pa.array(records, kind)})
    yield "struct", pa.array([dict(zip("abc", r, strict=True)) for r in records])
    text = {"empty": "", "text": "?", "NA": "NA", "nan": "nan"}
    for name, cell in text.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(f"a,b,c\n1,2,3\n4,{cell},6\n")
        yield f"csv, {name}", open_rows(path)
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    yield "parquet", open_rows(tmp_path / "x.parquet")


def test_one_missing_cell_is_one_hole_in_every_reader(tmp_path):
    for name, data in sources_of(tmp_path):
        rows = np.vstack([np.asarray(b, np.float64) for b in as_batches(data, 3)])
        np.testing.assert_array_equal(rows, [[1, 2, 3], [4, np.nan, 6]], err_msg=name)


# ---- parts, files and jobs ------------------------------------------------------------------


def test_parts_carry_the_missing_cells_and_only_the_same_policy_adds_up(region, rows):
    rows[::3, 2], rows[5, :9] = np.nan, np.inf
    whole = ExactSum(region, missing="ignore").add(rows)
    parts = Parts(region, missing="ignore")
    for k, some in enumerate(np.array_split(rows, 4)):
        part = bytes(bytearray(ExactSum(region, missing="ignore").add(some).partial()))
        assert len(part) == 24 * 13 + 80
        parts.add(str(k), part).add(str(k), part)
    assert parts.total().to_bytes() == whole.to_bytes()
    usual = ExactSum(region).add(rows)
    assert len(usual.partial()) == 16 * 13 + 80
    for made, part in (("ignore", usual), ("center", whole)):
        with pytest.raises(ValueError, match="the part has a different missing policy"):
            Parts(region, missing=made).add("x", part.partial())


@pytest.mark.parametrize("missing", ["center", "ignore"])
def test_sums_whose_rows_all_have_a_hole_come_back_from_bytes(missing):
    region = Ellipsoid.ball(1.0, d=3)
    total = ExactSum(region, missing=missing).add(np.tile([5.0, 5.0, np.nan], (40, 1)))
    assert np.linalg.norm(total.integers().astype(float)) * region.grid > 30
    assert ExactSum.from_bytes(total.to_bytes()).to_bytes() == total.to_bytes()
    again = Parts(region, missing=missing).add("all", total.partial()).total()
    assert again.to_bytes() == total.to_bytes()


def test_files_give_the_same_mean_of_present_cells_whichever_way_they_are_read(tmp_path):
    rows = rows_with_holes(4000)
    for k, part in enumerate(np.array_split(rows, 3)):
        np.save(tmp_path / f"{k}.npy", part)
    files = open_rows(sorted(tmp_path.glob("*.npy")))
    run = PrivateMean(Ellipsoid.ball(50.0, d=3), mu=1.0, missing="ignore")
    wanted = run(rows, seed=7)
    several = run(files, jobs=2, seed=7)
    assert several.to_dict() == wanted.to_dict()
    first = run(files, resume=tmp_path / "job.ck")
    assert isinstance(first, PresentMean)
    again = run(files, resume=tmp_path / "job.ck", jobs=2)
    assert again.to_dict() == first.to_dict()
    with pytest.raises(CheckpointError):
        PrivateMean(Ellipsoid.ball(50.0, d=3), mu=1.0)(files, resume=tmp_path / "job.ck")


def test_a_job_that_was_broken_off_keeps_its_missing_cells(tmp_path, monkeypatch, without_rest):
    rows = rows_with_holes(4000)
    np.save(tmp_path / "a.npy", rows)
    monkeypatch.setattr("ellipsum.rows.numpy_file.BLOCK_BYTES", 1 << 12)
    files, job = open_rows(tmp_path / "a.npy"), Checkpoint(tmp_path / "job.ck", every=1 << 12)
    run = PrivateMean(Ellipsoid.ball(100.0, d=3), mu=1e4, missing="ignore")
    add, calls = ExactSum.add, []

    def broken(self, batch):
        calls.append(len(batch))
        if len(calls) == 9:
            raise KeyboardInterrupt
        return add(self, batch)

    monkeypatch.setattr(ExactSum, "add", broken)
    with pytest.raises(KeyboardInterrupt):
        run(files, resume=job)
    before = sum(calls)
    monkeypatch.setattr(
        ExactSum, "add", lambda self, batch: (calls.append(len(batch)), add(self, batch))[1]
    )
    release = run(files, resume=job)
    assert sum(calls) - before < 4000  # it went on
    np.testing.assert_allclose(release.present, np.isfinite(rows).sum(0), atol=0.5)
    np.testing.assert_allclose(release.value, np.nanmean(rows, axis=0), atol=1e-2)
