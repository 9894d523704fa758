"""The last coordinate of a released record: unit vectors, what it tells, and what that is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ellipsum.records import PrivUnit, RecordRelease
from ellipsum.records.record_clip import RecordClip
from ellipsum.records.record_simulation import best_reader
from ellipsum.records.record_sphere import Sphere, spheres
from record_rows import fitted, public_rows


def long_rows(n, d=8, seed=0):
    """Records of very unequal length (t of 3 degrees of freedom), their columns correlated."""
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(99).normal(size=(3, d))
    rows = rng.normal(size=(n, 3)) @ mix + rng.normal(size=(n, d)) / 2
    return rows / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)


def skew_rows(n, seed=0):
    """Lognormal columns."""
    rows = long_rows(n, seed=seed)
    normal = rows / np.linalg.norm(rows, axis=1)[:, None] * np.sqrt(8)
    return np.exp(1.2 * normal)


# ---- the map ----------------------------------------------------------------------------


@pytest.mark.parametrize("sphere", [Sphere(), Sphere(0.3, 1.0), Sphere(0.5, 2.5)])
def test_points_are_unit_vectors_along_the_record_and_longer_ones_lie_lower(sphere):
    rng = np.random.default_rng(0)
    direction = rng.normal(size=5)
    direction /= np.linalg.norm(direction)
    length = np.append(np.geomspace(1e-3, 1e6, 400), np.inf)
    points = sphere.points(np.minimum(length, 1.0)[:, None] * direction, length)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, atol=1e-12)
    along = points[:, :-1] @ direction
    np.testing.assert_allclose(points[:, :-1], along[:, None] * direction, atol=1e-12)
    assert (along > 0).all() and along[-1] >= (1 if sphere.slope == 0 else 0.36)
    assert (np.diff(points[:, -1]) <= 0).all()
    told = (length > max(1.0, sphere.start) * 1.01) & (length < 10)
    assert (np.diff(points[told, -1]) < 0).all() == (sphere.slope > 0)


def test_lengths_are_those_before_the_clip_and_of_each_record_alone():
    rng = np.random.default_rng(5)
    clip = RecordClip(rng.normal(size=7), rng.normal(size=(4, 7)), 1.7)
    rows, other = rng.normal(size=(2, 40_000, 7)) * 3
    want = np.linalg.norm((rows - clip.center) @ clip.matrix.T, axis=1) / 1.7
    np.testing.assert_allclose(clip.lengths(rows), want, rtol=1e-12)
    keep = slice(100, 130)
    other[keep] = rows[keep]
    other[0], other[500], other[501, 2] = np.nan, 1.7e308, np.inf
    found = clip.lengths(other)
    np.testing.assert_array_equal(found[keep], clip.lengths(rows)[keep])
    assert found[0] == found[501] == 0 and found[500] == np.inf


def test_overflows_of_both_signs_are_an_infinite_length(monkeypatch):
    """A product without fused steps makes NaN of them."""
    clip = RecordClip(np.zeros(3), np.ones((2, 3)), 1.0)
    monkeypatch.setattr(RecordClip, "_scaled", lambda *_: np.array([[np.inf, np.nan]]))
    assert clip.lengths(np.ones((1, 3))) == np.inf


def test_what_is_released_is_a_unit_vector_whatever_the_record(monkeypatch):
    """PrivUnitG's guarantee holds for any of them; the centre, and no number, is the top."""
    release = RecordRelease(epsilon=16.0).fit(long_rows(600))
    assert release._sphere.slope > 0
    seen = []

    def release_made(self, n, rows, *_):
        seen.append(rows(slice(0, n)))
        return np.zeros_like(seen[0])

    monkeypatch.setattr(PrivUnit, "release_made", release_made)
    rows = long_rows(500, seed=1) * 10.0 ** np.arange(-250, 250)[:, None]
    rows[:3] = np.array([np.nan, np.inf, 1.7e308])[:, None]
    release.transform(np.concatenate([rows, release._law.center[None]]))
    assert np.isfinite(seen[0]).all()
    np.testing.assert_allclose(np.linalg.norm(seen[0], axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(seen[0][[0, 1, -1], -1], 1.0)
    assert seen[0][2, -1] < -0.9  # the longest: as low as it goes


# ---- what it is worth -------------------------------------------------------------------


def share(release, rows, reader=None, told=True):
    law, t = release._law, release.transform(np.tile(rows, (4, 1)))
    read = (reader or release._reader)(t if told else t[:, :-1])
    z = (np.tile(rows, (4, 1)) - law.center) / law.unit
    return 1 - ((z - read) ** 2).sum() / ((z - z.mean(axis=0)) ** 2).sum()


def test_a_told_length_explains_more_of_records_of_unequal_length():
    """Against the same reader of the plain release of the same record and noise."""
    public, rows = long_rows(2000), long_rows(3000, seed=1)
    release = RecordRelease(epsilon=16.0, seed=3).fit(public)
    plain = RecordRelease(epsilon=16.0, seed=3).fit(public)
    nothing = best_reader(plain._law, plain._design, plain._channel, plain._unit, "nothing")
    plain._sphere = Sphere()
    untold = share(plain, rows, nothing[1], told=False)
    assert share(release, rows) > untold + 0.02


def test_curves_of_columns_explain_more_of_skew_ones():
    public, rows = skew_rows(2000), skew_rows(3000, seed=1)
    release = RecordRelease(epsilon=16.0, seed=3).fit(public)
    straight = replace(release._reader, curves=())
    assert share(release, rows) > share(release, rows, straight) + 0.02


def test_the_plain_sphere_is_kept_where_the_noise_hides_lengths():
    assert RecordRelease(epsilon=1.0).fit(public_rows()[0])._sphere == Sphere()
    assert spheres(np.full(5, 0.5))[1].start == 1.0


def test_a_given_radius_is_clipped_to_and_moments_leave_the_last_coordinate_out():
    """So that the moments are those of the rows where the radius clips nothing."""
    rows = public_rows(20_000, d=3, seed=1)[0]
    release = RecordRelease(epsilon=8.0, radius=9.0, seed=6).fit(public_rows(2000, 3, 1)[0])
    assert release._sphere == Sphere()
    assert RecordRelease(epsilon=16.0, radius=0.5).fit(long_rows(600))._sphere == Sphere()
    released = release.transform(rows)
    assert (
        released.shape[1] == len(release.get_feature_names_out()) == len(release._clip.matrix) + 1
    )
    found = release.moments(released)
    assert (np.abs(found.mean - rows.mean(axis=0)) < 5 * found.mean_se).all()
    assert (np.abs(found.covariance - np.cov(rows.T)) < 5 * found.covariance_se).all()


def test_other_shapes_and_gaussian_noise_release_the_components_alone():
    for release in (fitted("mse"), fitted("isotropic", epsilon=2.0)):
        width = len(release._clip.matrix)
        assert release._sphere is None
        assert release.transform(public_rows(5)[0]).shape == (5, width)
