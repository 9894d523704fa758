"""RecordRelease: bits and their bound, shapes, guarantee, reading, moments, conventions."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.base import clone

from ellipsum import calibrate, estimate_covariance, noise
from ellipsum.records import PrivUnit, RecordGuarantee, RecordRelease
from ellipsum.records.record_clip import RecordClip
from record_rows import GAUSSIAN, fitted, public_rows

SHAPES = ("mse", "information", "isotropic", "rate-distortion", "bottleneck")


# ---- the integers that noise is added to ------------------------------------------------


def odd_rows(d, rng):
    """Rows of every size, and what a row should not be."""
    rows = rng.normal(size=(500, d)) * 10.0 ** rng.integers(-320, 305, size=(500, 1))
    mixed = rng.normal(size=(200, d)) * 10.0 ** rng.integers(-300, 305, size=(200, d))
    same = [np.full((1, d), v) for v in (0.0, 5e-324, 1.7e308, -1.7e308, np.nan, np.inf)]
    one_bad = np.tile(rng.normal(size=d), (3, 1))
    one_bad[:, -1] = (np.nan, np.inf, -np.inf)
    return np.concatenate([rows, mixed, *same, one_bad])


@pytest.mark.parametrize(("d", "k"), [(1, 1), (3, 2), (30, 30), (200, 7)])
def test_no_row_passes_the_bound_and_one_that_is_not_finite_is_the_centre(d, k):
    rng = np.random.default_rng(d)
    clip = RecordClip(rng.normal(size=d), rng.normal(size=(k, d)) * 3, 0.7)
    rows = odd_rows(d, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = clip.integers(rows)
    norm2 = [sum(int(v) ** 2 for v in row) for row in q]
    assert max(norm2) <= clip.bound2
    assert max(norm2) > clip.bound2 * (1 - 1e-5)
    finite = np.isfinite(rows).all(axis=1)
    assert (q[~finite] == 0).all()
    assert (~finite).sum() == 5
    assert clip.row_bound < 2**23 * (1 + 1e-5)


def test_even_broken_arithmetic_cannot_pass_the_bound(monkeypatch):
    """The bound is checked on the integers: a norm computed wrong costs utility alone."""
    clip = RecordClip(np.zeros(4), np.eye(4), 1.0)
    rows = np.random.default_rng(0).normal(size=(100, 4)) * 5
    true_sqrt = np.sqrt
    monkeypatch.setattr(np, "sqrt", lambda x: true_sqrt(x) / 2)
    q = clip.integers(rows)
    assert (q.astype(float) ** 2).sum(axis=1).max() <= clip.bound2


def test_integers_are_those_of_plain_arithmetic():
    rng = np.random.default_rng(4)
    center, matrix = rng.normal(size=5), rng.normal(size=(3, 5))
    rows = rng.normal(size=(3000, 5)) * 2
    clip = RecordClip(center, matrix, 2.5)
    y = (rows - center) @ matrix.T
    y *= np.minimum(1, 2.5 / np.linalg.norm(y, axis=1))[:, None]
    assert np.abs(clip.integers(rows) * clip.grid - y).max() <= clip.grid * 0.51
    far = clip.integers(np.array([[1e300, 0, 0, 0, 0], [1.5e308, 1.5e308, 0, 0, 0]]))
    for row, direction in zip(far, (matrix[:, 0], matrix[:, 0] + matrix[:, 1]), strict=True):
        np.testing.assert_allclose(row / 2**23, direction / np.linalg.norm(direction), atol=1e-6)


def test_a_row_does_not_depend_on_its_neighbours_in_the_batch():
    rng = np.random.default_rng(5)
    clip = RecordClip(np.zeros(7), rng.normal(size=(7, 7)), 1.0)
    rows, other = rng.normal(size=(2, 900, 7))
    keep = slice(100, 130)
    other[keep] = rows[keep]
    other[0], other[500] = np.nan, 1e308
    np.testing.assert_array_equal(clip.integers(rows)[keep], clip.integers(other)[keep])


# ---- the guarantee ----------------------------------------------------------------------


def worst_pair(release):
    """Two records at opposite ends of the first released axis."""
    law, matrix = release._law, release._clip.matrix
    step = np.linalg.pinv(matrix)[:, 0] * release._clip.clip_norm * 1e4
    return law.center + step, law.center - step


@pytest.mark.parametrize("shape", ["mse", "isotropic"])
def test_the_empirical_privacy_of_the_released_bits(shape):
    """Both tails of the loss at the worst pair: four counts, each of false-alarm rate 1e-7."""
    release = fitted(shape, **GAUSSIAN, seed=7)
    mu, count = release.guarantee.mu, 400_000
    ends = [np.tile(x, (count, 1)) for x in worst_pair(release)]
    released = [release.transform(x) for x in ends]
    quantised = [release._clip.integers(x[:1])[0] * release._clip.grid for x in ends]
    change = quantised[0] - quantised[1]
    sd = release._sigma * release._clip.grid
    assert 1 - 1e-4 < np.linalg.norm(change) / sd / mu <= 1
    for sign, t in ((1, released[0]), (-1, released[1])):
        y = sign * (t - sum(quantised) / 2) @ change / np.linalg.norm(change) / sd
        for at in (0.0, 1.0):
            low, high = binom.interval(1 - 1e-7, count, norm.sf(at - mu / 2))
            assert low <= np.count_nonzero(y > at) <= high


def test_the_released_numbers_are_the_integers_plus_rounded_noise():
    release = fitted("mse", **GAUSSIAN, seed=3)
    rows = public_rows(seed=9)[0]
    released = release.transform(rows)
    on_grid = released / release._clip.grid
    np.testing.assert_allclose(on_grid, np.rint(on_grid), rtol=1e-15)
    drawn = np.rint(on_grid) - release._clip.integers(rows)
    sd = calibrate.noise_multiplier(2.0, 1e-6) * 2 * release._clip.row_bound
    assert release._sigma >= sd
    assert drawn.std() == pytest.approx(sd, rel=0.1)


def test_more_noise_than_the_bound_asks_for_is_below_one_in_ten_thousand():
    for shape in ("mse", "isotropic"):
        release = fitted(shape)
        lean = calibrate.noise_multiplier(2.0, 1e-6) * 2 * 2.0**23
        assert lean < release._sigma < lean * (1 + 1e-4)


def test_privunit_is_pure_and_takes_the_padded_direction():
    release = fitted("mse", epsilon=3.0)
    assert release.guarantee.epsilon() == 3.0
    assert release.guarantee.epsilon(1e-6) == 3.0
    assert release._unit.d == release._clip.k + 1
    with pytest.raises(ValueError, match="epsilon alone"):
        RecordRelease(epsilon=1.0, delta=1e-6).guarantee  # noqa: B018


def test_the_budget_of_a_private_fit_composes():
    rows = public_rows(400)[0]
    center, radius = np.full(6, 50.0), 200.0
    for neighbors, factor in (("replace", 1), ("add-remove", 2)):
        known = dict(center=center, radius=radius, mu=0.6, neighbors=neighbors, seed=1)
        estimate = estimate_covariance(rows, **known)
        release = RecordRelease(noise="gaussian", mu=0.8)
        release.fit(covariance=estimate, center=center)
        assert release.guarantee.mu == pytest.approx(math.hypot(0.8, factor * 0.6), rel=1e-9)
        assert release.guarantee.mu >= math.hypot(0.8, factor * 0.6)
        assert release.caveats == ("not private: made with a seed",)
    wishart = estimate_covariance(
        rows, center=center, radius=radius, method="wishart", epsilon=1.0, delta=1e-6
    )
    with pytest.raises(ValueError, match='method="gaussian"'):
        release.fit(covariance=wishart, center=center)


def test_pure_release_beside_a_gaussian_fit_is_composed_exactly():
    """Against the loss of randomised response plus a Gaussian one, by quadrature."""
    both = RecordGuarantee(0.0, 1.5, 0.7)
    z = np.linspace(-12, 12, 400_001)
    weight = norm.pdf(z) * (z[1] - z[0])
    p = 1 / (1 + math.exp(-1.5))
    for epsilon in (0.0, 0.5, 2.0, 4.0):
        want = 0.0
        for chance, step in ((p, 1.5), (1 - p, -1.5)):
            loss = 0.7 * z + 0.7**2 / 2 + step
            want += chance * float(np.sum(weight * np.maximum(-np.expm1(epsilon - loss), 0)))
        assert both.delta(epsilon) == pytest.approx(want, rel=1e-5)
        assert both.delta(epsilon) >= want * (1 - 1e-6)
    epsilon = both.epsilon(1e-6)
    assert both.delta(epsilon) <= 1e-6 < both.delta(epsilon * (1 - 1e-6))
    assert both.epsilon(1e-6) < 1.5 + calibrate.epsilon(1 / 0.7, 1e-6)


def test_pure_epsilon_as_mu_dominates_randomised_response():
    for epsilon in (0.1, 1.0, 5.0):
        mu = RecordGuarantee(0.0, epsilon).mu
        for e in np.linspace(0, epsilon, 7)[:-1]:
            response = (math.exp(epsilon) - math.exp(e)) / (1 + math.exp(epsilon))
            assert RecordGuarantee(0.0, epsilon).delta(e) == pytest.approx(response, rel=1e-9)
            assert calibrate.delta(1 / mu, e) >= response * (1 - 1e-9)


def test_fitting_on_the_records_to_be_released_is_refused():
    with pytest.raises(TypeError, match="fit on public rows"):
        RecordRelease(epsilon=1.0).fit_transform(public_rows()[0])


def test_a_seed_is_a_caveat_and_no_seed_is_fresh():
    seeded, fresh = fitted(epsilon=1.0, seed=1), fitted(epsilon=1.0)
    rows = public_rows(seed=2)[0]
    assert not seeded.private
    assert fresh.private
    assert fresh.caveats == ()
    np.testing.assert_array_equal(seeded.transform(rows), seeded.transform(rows))
    assert (fresh.transform(rows) != fresh.transform(rows)).any()


@pytest.mark.parametrize("shape", SHAPES)
def test_no_value_in_a_row_escapes_as_an_error_or_a_warning(shape):
    release = fitted(shape)
    rows = odd_rows(6, np.random.default_rng(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released = release.transform(rows)
        assert np.isfinite(released).all()
        assert np.isfinite(release.inverse_transform(released)).all()
        if shape in ("mse", "information"):
            pure = fitted(shape, epsilon=1.0)
            assert np.isfinite(pure.transform(rows)).all()
            with np.errstate(all="ignore"):
                single = rows.astype(np.float32)
            assert np.isfinite(pure.transform(single)).all()
        wide = rows.astype(np.longdouble)
        wide[0, 0] = 10 * np.longdouble(np.finfo(float).max)  # infinite where it is a double
        assert np.isfinite(release.transform(wide)).all()


# ---- conventions ------------------------------------------------------------------------


def test_it_follows_scikit_learn():
    release = RecordRelease("isotropic", epsilon=2.0, radius=0.5)
    copy = clone(release)
    assert copy.get_params() == release.get_params()
    assert copy.set_params(epsilon=3.0).epsilon == 3.0
    assert release.epsilon == 2.0
    with pytest.raises(ValueError, match="no parameter"):
        release.set_params(budget=1)
    with pytest.raises(ValueError, match="not fitted"):
        release.transform(np.zeros((2, 3)))
    assert release.fit(public_rows()[0]) is release
    assert release.n_features_in_ == 6


def test_arguments_that_do_not_fit_together_are_named():
    rows, y = public_rows()
    cases = [
        ({"shape": "round", "epsilon": 1.0}, {}, "shape must be"),
        ({"noise": "laplace", "epsilon": 1.0}, {}, "noise must be"),
        ({"epsilon": 1.0, "radius": "wide"}, {}, "radius must be"),
        ({"shape": "rate-distortion", "epsilon": 1.0}, {}, "Gaussian channel"),
        ({"noise": "gaussian", "epsilon": 1.0}, {}, "delta"),
        ({"shape": "bottleneck", **GAUSSIAN}, {}, "needs a target"),
        ({"epsilon": 1.0}, {"center": np.zeros(6)}, "center comes with"),
        ({"epsilon": 1.0}, {"y": y[:5]}, "one row for each"),
    ]
    for given, fit, message in cases:
        with pytest.raises(ValueError, match=message):
            RecordRelease(**given).fit(rows, **fit)
    for shape, kind in [(s, "gaussian") for s in SHAPES] + [(s, "privunit") for s in SHAPES[:3]]:
        budget = {"mu": 1.0} if kind == "gaussian" else {"epsilon": 1.0}
        for radius in (5e-324, 1e-300, 1e300, 1.7e308):
            with pytest.raises(ValueError, match=r"radius must lie within 2\^-400..2\^400, got"):
                RecordRelease(shape, kind, radius=radius, **budget).fit(rows, y)
    with pytest.raises(ValueError, match="public rows, or a covariance"):
        RecordRelease(epsilon=1.0).fit()
    with pytest.raises(ValueError, match="give center"):
        RecordRelease(epsilon=1.0).fit(covariance=np.eye(2))
    for mu in (1e-9, 1e-100, 1e-300):
        with pytest.raises(ValueError, match="too small"):
            RecordRelease(noise="gaussian", mu=mu).fit(rows)
    with pytest.raises(ValueError, match="rows must have shape"):
        fitted().transform(np.zeros((3, 5)))


def test_noise_kernels_and_threads_give_the_same_bits():
    rows = public_rows(seed=8)[0]
    for given in (GAUSSIAN, {"epsilon": 2.0}):
        one = fitted("mse", **given, seed=5, threads=1).transform(rows)
        np.testing.assert_array_equal(
            one, fitted("mse", **given, seed=5, threads=2).transform(rows)
        )


def test_other_rows_under_the_same_seed_have_other_noise():
    """With one key for both, the difference of two releases would be that of the rows."""
    release = fitted("mse", **GAUSSIAN, seed=5)
    one, other = public_rows(seed=8)[0], public_rows(seed=9)[0]
    drawn = [release.transform(x) / release._clip.grid for x in (one, other)]
    drawn = [
        np.rint(t) - release._clip.integers(x) for t, x in zip(drawn, (one, other), strict=True)
    ]
    assert (drawn[0] != drawn[1]).all()
    unit, v = PrivUnit(40, 0.01), np.eye(40)[:1]  # nearly all noise
    same = np.corrcoef(unit.release(v, seed=5), unit.release(-v, seed=5))[0, 1]
    assert abs(same) < 0.85


def test_the_unit_of_a_column_does_not_matter():
    rows = public_rows()[0]
    factor = 10.0 ** np.arange(-3, 3)
    one = RecordRelease(epsilon=4.0, seed=1).fit(rows)
    other = RecordRelease(epsilon=4.0, seed=1).fit(rows * factor)
    a = one.inverse_transform(one.transform(rows))
    b = other.inverse_transform(other.transform(rows * factor))
    np.testing.assert_allclose(a, b / factor, rtol=1e-3, atol=1e-3 * np.abs(a).max())


def test_the_variance_of_the_noise_is_the_units(monkeypatch):
    """What PrivUnit is given: unit vectors, whatever lies inside the ball."""
    release = fitted("mse", epsilon=2.0, radius=3.0)
    seen = []

    def release_made(self, n, rows, *_):
        seen.append(rows(slice(0, n)))
        return np.zeros_like(seen[0])

    monkeypatch.setattr(PrivUnit, "release_made", release_made)
    release.transform(public_rows(seed=3)[0])
    norms = np.linalg.norm(seen[0], axis=1)
    np.testing.assert_allclose(norms, 1, atol=1e-6)
    assert (seen[0][:, -1] > 0.1).any()
    assert noise.rounded_gaussian(1, 1.0).shape == (1,)
