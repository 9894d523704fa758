"""What is learned from a projection: without bias, with error bars that are right."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import chi2

from ellipsum.guarantee import Neighbors
from ellipsum.records import PrivateProjection, ProjectionRelease
from ellipsum.records.projection_floor import ProjectionGuarantee

PROMISE = ProjectionGuarantee(Neighbors.REPLACE, 2.0, 1e-6, rows=400, ratio=0.01)
FLOOR = 1.5


def moments_of_a_table(d=5, seed=2):
    """X'X of some table, well above the floor."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, d)) @ rng.normal(size=(d, d))
    return x.T @ x / 3


def draws(gram, m, runs, seed=0):
    """Releases as the mechanism makes them: m rows of N(0, G + w^2 I)."""
    root = np.linalg.cholesky(gram + FLOOR**2 * np.eye(len(gram)))
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        yield ProjectionRelease(rng.normal(size=(m, len(gram))) @ root.T, PROMISE, floor=FLOOR)


def mean_square(z):
    """Mean of squares of about normal numbers, and the largest that chance allows (1e-7)."""
    return float(np.mean(z**2)), float(chi2.isf(1e-7, z.size) / z.size)


def test_second_moments_have_no_bias_and_the_stated_noise():
    gram = moments_of_a_table()
    found = [r.second_moments() for r in draws(gram, 400, 300)]
    off = np.array([(f.value - gram) / f.sd for f in found])
    assert np.abs(off.mean(axis=0)).max() < 6 / math.sqrt(300)
    assert np.mean(off**2) == pytest.approx(1, abs=0.05)
    small = np.eye(2)  # where the floor would show
    found = np.mean([r.second_moments().value for r in draws(small, 400, 200)], axis=0)
    assert found == pytest.approx(small, abs=6 * 3.25 * math.sqrt(2 / 400 / 200))
    assert FLOOR**2 > 1


def test_a_release_of_the_mechanism_has_these_moments():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 3)) @ rng.normal(size=(3, 3))
    center = np.array([1.0, 0.0, -1.0])
    mechanism = PrivateProjection(
        rows=4000, radius=8.0, d=3, epsilon=8.0, delta=1e-6, center=center, seed=4
    )
    estimate = mechanism.add(x + center).release().second_moments()
    clipped = x * np.minimum(1, 8 / np.linalg.norm(x, axis=1))[:, None]
    size, most = mean_square(
        ((estimate.value - clipped.T @ clipped) / estimate.sd)[np.triu_indices(3)]
    )
    assert size < most and (np.diag(estimate.value) > 5 * np.diag(estimate.sd)).all()
    assert estimate.n == 5000


@pytest.mark.parametrize("penalty", [{}, {"ridge": 30.0}, {"lasso": 1.0}])
def test_a_regression_is_the_one_on_the_rows_and_its_intervals_cover(penalty):
    """95 % intervals of 5 columns, 400 draws; of a lasso, where a column is not near its kink."""
    gram, m = moments_of_a_table(d=6), 3000
    inner, cross = gram[:-1, :-1], gram[:-1, -1]
    true = np.linalg.solve(inner + penalty.get("ridge", 0.0) * np.eye(5), cross)
    if "lasso" in penalty:
        true = lasso_by_proximal_steps(inner, cross, penalty["lasso"])
    found = [r.regression(**penalty) for r in draws(gram, m, 400)]
    inside = [
        (f.confidence_interval()[:, 0] <= true) & (true <= f.confidence_interval()[:, 1])
        for f in found
    ]
    share = np.mean(inside, axis=0)
    kept = np.abs(true) > 4 * np.median([f.sd for f in found], axis=0)
    assert kept.sum() >= 3
    assert (share[kept] > 0.90).all() and (share[kept] < 0.99).all(), share
    narrow = np.mean([np.abs(f.coef - true) <= 0.6 * 1.96 * f.sd for f in found], axis=0)
    assert (narrow[kept] < 0.90).all(), "intervals of half the size would not do"


def lasso_by_proximal_steps(inner, cross, penalty):
    step, b = 1 / np.linalg.eigvalsh(inner)[-1], np.zeros(len(cross))
    for _ in range(20_000):
        b = b - step * (inner @ b - cross)
        b = np.sign(b) * np.maximum(np.abs(b) - step * penalty, 0)
    return b


def test_the_lasso_meets_its_conditions():
    gram = moments_of_a_table(d=7, seed=5)
    (release,) = draws(gram, 5000, 1)
    g = release.second_moments().value
    for penalty in (0.0, 1.0, 10.0, 1e6):
        b = release.regression(0, lasso=penalty).coef
        slope = g[1:, 0] - g[1:, 1:] @ b
        assert np.abs(slope).max() <= penalty + 1e-6 * np.abs(g).max()
        assert slope[b != 0] == pytest.approx(penalty * np.sign(b[b != 0]), abs=1e-6 * g.max())
    assert (b == 0).all()


def test_principal_axes_have_the_stated_noise():
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    variances = np.array([40.0, 15.0, 4.0, 1.0])
    gram = (basis * variances) @ basis.T
    found = [r.pca(2) for r in draws(gram, 4000, 300)]
    off = np.array([(f.variances - variances[:2]) / f.variances_sd for f in found])
    assert np.mean(off**2) == pytest.approx(1, abs=0.25)
    angle = np.array([np.arccos(np.abs(np.sum(f.axes * basis[:, :2].T, axis=1))) for f in found])
    stated = np.array([f.angles for f in found])
    assert np.sqrt(np.mean(angle**2, axis=0)) == pytest.approx(np.mean(stated, axis=0), rel=0.15)


def test_axes_of_equal_variance_have_no_direction():
    (release,) = draws(np.eye(3) * 10, 500, 1)
    assert (release.pca(3).angles > 0.5).all()


def test_columns_and_targets_are_chosen_by_number():
    (release,) = draws(moments_of_a_table(), 500, 1)
    fit = release.regression(1, columns=[-1, 0])
    assert fit.columns == (4, 0) and fit.target == 1
    whole = np.arange(10.0).reshape(2, 5)
    assert fit.predict(whole) == pytest.approx(whole[:, [4, 0]] @ fit.coef)
    assert fit.predict(whole[:, :2]) == pytest.approx(whole[:, :2] @ fit.coef)
    for wrong in ([1], [0, 0], [], [9]):
        with pytest.raises(ValueError, match="columns"):
            release.regression(1, columns=wrong)
    with pytest.raises(ValueError, match="not both"):
        release.regression(ridge=1.0, lasso=1.0)
    for k in (0, 6):
        with pytest.raises(ValueError, match="k must"):
            release.pca(k)


def test_a_release_is_plain_values():
    (release,) = draws(moments_of_a_table(), 5, 1)
    plain = json.loads(json.dumps(release.to_dict()))
    assert plain["kind"] == "projection" and plain["parameters"] == {"floor": FLOOR}
    assert np.array(plain["value"]).shape == release.rows.shape
    assert "5 rows of 5; floor 1.5" in str(release)
