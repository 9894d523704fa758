"""PrivateRegression, PrivatePCA, synthetic_rows: bits, noise, the ridge, intervals, conventions."""

from __future__ import annotations

import math
import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from ellipsum import Budget, calibrate, estimate_covariance
from ellipsum.records import PrivatePCA, PrivateRegression, synthetic_rows
from ellipsum.records.moment_fits import (
    NoisyMoments,
    chosen_ridge,
    semidefinite,
    stein_ridge,
    stein_stretch,
)


def table(n=20_000, d=4, seed=0):
    """Columns and, last, a target; center and scale of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 5
    y = x @ np.arange(1.0, d + 1) + rng.normal(size=n) * 2
    rows = np.column_stack([x, y])
    return rows, rows.mean(axis=0), 1 / rows.std(axis=0)


def symmetric(rng, d, sd):
    upper = np.triu(rng.normal(size=(d, d)), 1) * sd / math.sqrt(2)
    return upper + upper.T + np.diag(rng.normal(size=d) * sd)


def moments_of(rows, center, scale, radius):
    z = (rows - center) * scale
    z *= np.minimum(1, radius / np.linalg.norm(z, axis=1, keepdims=True))
    return z.T @ z


# ---- the release -----------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_the_noise_is_that_of_the_symmetric_sensitivity(neighbors):
    rows, center, scale = table(300)
    found = []
    for seed in range(200):
        fit = PrivateRegression(
            2.0, center=center, scale=scale, mu=1.0, neighbors=neighbors, seed=seed, stretch=1.0
        ).fit(rows)
        found.append(fit.moments_ - moments_of(rows, center, scale, 2.0))
    sd = 4.0 * (math.sqrt(2) if neighbors == "replace" else 1.0)
    assert fit.sd_ == pytest.approx(sd, rel=1e-4)
    noise = np.array(found)
    wanted = np.full((5, 5), sd / math.sqrt(2)) + np.diag(np.full(5, sd * (1 - math.sqrt(0.5))))
    assert noise.std(axis=0) == pytest.approx(wanted, rel=0.25)
    assert np.abs(noise.mean(axis=0)).max() < 6 * sd / math.sqrt(200)
    assert (noise == np.swapaxes(noise, 1, 2)).all()


def test_the_budget_may_be_given_in_every_form_and_is_charged():
    rows, center, scale = table(200)
    budget = Budget(epsilon=1.0, delta=1e-6)
    options = {"center": center, "scale": scale}
    fit = PrivateRegression(2.0, epsilon=0.9, delta=1e-6, **options).fit(rows, budget=budget)
    assert fit.entry_ is not None and fit.private and fit.guarantee_.asked_epsilon == 0.9
    with pytest.raises(ValueError):
        PrivatePCA(1, 2.0, epsilon=0.9, delta=1e-6, **options).fit(rows, budget=budget)
    assert PrivatePCA(1, 2.0, rho=0.1, **options).fit(rows).guarantee_.rho == 0.1
    assert not PrivatePCA(1, 2.0, rho=0.1, seed=1, **options).fit(rows).private
    with pytest.raises((TypeError, ValueError)):
        PrivateRegression(2.0, **options).fit(rows)


def test_no_value_escapes_by_an_error_or_a_warning():
    rows, center, scale = table(50)
    odd = rows.copy()
    odd[3, 1], odd[4], odd[5, 4] = np.nan, 1e308, -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = PrivateRegression(2.0, center=center, scale=scale * 8, mu=1.0, seed=0).fit(odd)
    assert np.isfinite(fit.moments_).all() and np.isfinite(fit.coef_).all()
    for y in (np.full(49, 7.25), np.full(50, "7.25")):
        with pytest.raises((TypeError, ValueError)) as caught:
            PrivateRegression(2.0, mu=1.0).fit(rows[:, :-1], y)
        assert "7.25" not in str(caught.value) and "49" not in str(caught.value)


def test_parameters_are_checked():
    rows, center, scale = table(20)
    for wrong, says in (
        ({"radius": 0.0}, "radius"),
        ({"radius": 1e300}, "radius"),
        ({"scale": -scale}, "scale"),
        ({"scale": scale * 1e-300}, "scale"),
        ({"center": center[:2]}, "center must have 5 entries"),
        ({"scale": scale[:4]}, "scale must have 5 entries"),
        ({"center": 0.0}, "center must have one number for each"),
        ({"center": center + 1e300, "scale": scale * 1e10}, "center times scale"),
        ({"ridge": "best"}, "ridge"),
        ({"ridge": -1.0}, "ridge"),
        ({"stretch": "best"}, "stretch"),
        ({"stretch": -1.0}, "stretch"),
    ):
        given = {"radius": 2.0, "mu": 1.0, "scale": scale} | wrong
        with pytest.raises(ValueError, match=says):
            PrivateRegression(**given).fit(rows)
    with pytest.raises(ValueError, match="no rows"):
        PrivateRegression(2.0, mu=1.0).fit(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="k must"):
        PrivatePCA(6, 2.0, mu=1.0).fit(rows)
    fit, axes = PrivateRegression(2.0, mu=1.0).fit(rows), PrivatePCA(1, 2.0, mu=1.0).fit(rows)
    for use, says in ((fit.predict, "(n, 4)"), (axes.transform, "(n, 5)")):
        for wrong in (rows[:, :3], rows[0, :3], 7.0):
            with pytest.raises(ValueError, match=re.escape(says)) as caught:
                use(wrong)
            assert "20" not in str(caught.value)
    with pytest.raises(ValueError, match="center or scale"):
        PrivateRegression(2.0, mu=1.0).fit(iter([rows]))


def test_any_batches_and_conventions_of_scikit_learn():
    rows, center, scale = table(500)
    model = PrivateRegression(2.0, center=center, scale=scale, mu=1.0, seed=3)
    whole = model.fit(rows)
    again = clone(model).fit(np.array_split(rows, 7))
    beside = clone(model).fit(rows[:, :-1], rows[:, -1])
    assert (whole.moments_ == again.moments_).all() and (whole.coef_ == beside.coef_).all()
    assert (whole.coef_ == again.coef_).all()
    for fit in (again, PrivatePCA(2, 2.0, mu=1.0).fit(rows)):
        assert (pickle.loads(pickle.dumps(fit)).moments_ == fit.moments_).all()
    assert "PrivateRegression(radius=2.0" in repr(model) and model.get_params()["mu"] == 1.0
    with pytest.raises(ValueError, match="not fitted"):
        PrivateRegression(2.0, mu=1.0).predict(rows)


# ---- regression ------------------------------------------------------------------------


def test_with_many_rows_it_is_least_squares():
    rows, center, scale = table()
    fit = PrivateRegression(5.5, center=center, scale=scale, epsilon=8.0, delta=1e-6, seed=1)
    fit.fit(rows)
    true = np.linalg.lstsq(rows[:, :-1] - center[:-1], rows[:, -1] - center[-1], rcond=None)[0]
    span = fit.confidence_interval(1 - 1e-6)
    assert (span[:, 0] < true).all() and (true < span[:, 1]).all() and np.isfinite(span).all()
    error = np.mean((fit.predict(rows[:, :-1]) - rows[:, -1]) ** 2)
    assert error < 1.2 * 4.0  # the target's own noise has a variance of 4


def test_intervals_cover_and_are_infinite_where_nothing_finite_would():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(4000, 4)) * [1, 1, 0.7, 0.5]
    rows = np.column_stack([x, x @ [1, -1, 0.5, 0.2] + rng.normal(size=4000)])
    gram = moments_of(rows, np.zeros(5), np.ones(5), 3.0)
    true = np.linalg.solve(gram[:-1, :-1], gram[:-1, -1])
    inside, width = [], []
    for seed in range(400):
        fit = PrivateRegression(3.0, mu=1.0, seed=seed, ridge=0.0).fit(rows)
        span = fit.confidence_interval()
        inside.append((span[:, 0] <= true) & (true <= span[:, 1]))
        width.append(np.isfinite(span).all())
    assert np.mean(width) == 1
    share = np.mean(inside, axis=0)
    assert (share > 0.9).all() and (share < 0.99).all(), share
    weak = PrivateRegression(3.0, mu=0.02, seed=0).fit(rows)
    assert np.isinf(weak.confidence_interval()).all()


def risk_estimate(noisy, ridge, c, sd):
    """Stein's, with dense matrices; and the coefficients."""
    inverse = np.linalg.inv(noisy[:-1, :-1] + ridge * np.eye(len(noisy) - 1))
    coef = inverse @ noisy[:-1, -1]
    v = np.append(-c * coef, 1.0)
    slack = np.trace(inverse) * (c + c**2 * coef @ coef) + c**2 * coef @ inverse @ coef
    return v @ noisy @ v + sd**2 * slack, v


def test_the_risk_estimate_is_without_bias():
    """Stein's: mean over draws of the estimate is the mean of the true loss, at every ridge."""
    rng, d, sd = np.random.default_rng(0), 4, 3.0
    x = rng.normal(size=(80, d + 1)) @ rng.normal(size=(d + 1, d + 1))
    gram = x.T @ x
    for ridge, c in ((20.0, 1.0), (100.0, 1.0), (20.0, 0.5), (100.0, 2.0)):
        estimate, truth = [], []
        for _ in range(4000):
            noisy = gram + symmetric(rng, d + 1, sd)
            found, v = risk_estimate(noisy, ridge, c, sd)
            estimate.append(found)
            truth.append(v @ gram @ v)
        gap = np.array(estimate) - truth
        assert abs(gap.mean()) < 5 * gap.std() / math.sqrt(4000)


def test_ridge_and_stretch_by_stein_are_where_the_estimate_is_least():
    rng, d, sd = np.random.default_rng(4), 5, 10.0
    columns, least = tuple(range(d)), 0.5 * sd * math.sqrt(d)
    x = rng.normal(size=(60, d + 1)) @ rng.normal(size=(d + 1, d + 1))
    inside = 0
    for _ in range(20):
        noisy = x.T @ x + symmetric(rng, d + 1, sd)
        ridge = stein_ridge(noisy, d, columns, sd)
        here = risk_estimate(noisy, ridge, 1.0, sd)[0]
        low = max(0.0, least - np.linalg.eigvalsh(noisy[:-1, :-1])[0])
        for other in (low + 1e-9, ridge * 1.3, ridge * 2, max(low, ridge / 1.3)):
            assert here <= risk_estimate(noisy, other, 1.0, sd)[0] + 1e-3 * abs(here)
        c = stein_stretch(noisy, d, columns, sd, 40.0 + low, least)
        if 0 < c < 3:
            inside += 1
            here = risk_estimate(noisy, 40.0 + low, c, sd)[0]
            for other in (c - 1e-2, c + 1e-2):
                assert here < risk_estimate(noisy, 40.0 + low, other, sd)[0]
    assert inside > 10
    # Nothing to learn: without Stein's terms the noise of the products would be fitted.
    blank, sizes, factors = np.eye(d + 1) * 200, [], []
    for _ in range(100):
        noisy = blank + symmetric(rng, d + 1, sd)
        ridge = stein_ridge(noisy, d, columns, sd)
        sizes.append(risk_estimate(noisy, ridge, 1.0, sd)[1][:-1])
        factors.append(stein_stretch(noisy, d, columns, sd, 50.0, least))
    plain = sd / math.sqrt(2) / 200  # deviation of a coefficient without a ridge
    assert np.std(sizes) < 0.8 * plain and np.mean(np.array(factors) == 0) > 0.3


def test_the_ridge_by_stein_is_nearly_the_best_one():
    rng, d = np.random.default_rng(1), 8
    x = rng.normal(size=(400, d)) * np.geomspace(1, 0.1, d)
    y = x @ rng.normal(size=d) + rng.normal(size=400)
    rows = np.column_stack([x, y])
    gram = rows.T @ rows
    for sd in (3.0, 20.0):
        own, fixed = [], {r: [] for r in np.geomspace(1, 3000, 15)}
        for _ in range(200):
            noisy = gram + symmetric(rng, d + 1, sd)
            moments = NoisyMoments(noisy, lambda v: np.zeros((d + 1, d + 1)))

            def loss(ridge, moments=moments):
                v = np.append(-moments.ridge(d, tuple(range(d)), ridge).coef, 1.0)
                return v @ gram @ v

            own.append(loss(stein_ridge(noisy, d, tuple(range(d)), sd)))
            for ridge, losses in fixed.items():
                losses.append(loss(ridge))
        best = min(np.mean(v) for v in fixed.values())
        none, floor = gram[-1, -1], np.linalg.lstsq(x, y, rcond=None)[1][0]
        assert np.mean(own) - floor < (best - floor) + 0.12 * (none - floor)
        assert np.mean(own) < none


def test_a_stretch_multiplies_the_coefficients_and_stein_finds_a_good_one():
    rows, center, scale = table(600)
    options = {"center": center, "scale": scale, "mu": 0.5, "seed": 3, "ridge": 4.0}
    plain = PrivateRegression(2.0, **options).fit(rows)
    double = PrivateRegression(2.0, stretch=2.0, **options).fit(rows)
    assert double.coef_ == pytest.approx(2 * plain.coef_) and double.stretch_ == 2.0
    sharp = options | {"mu": 5000.0}
    span = PrivateRegression(2.0, stretch=2.0, **sharp).fit(rows).confidence_interval()
    unstretched = PrivateRegression(2.0, **sharp).fit(rows).confidence_interval()
    assert np.isfinite(span).all() and (span == unstretched).all()
    mean = center[-1] - center[:-1] @ double.coef_
    assert double.intercept_ == pytest.approx(mean)
    rng, d, sd = np.random.default_rng(3), 6, 15.0
    x = rng.normal(size=(300, d))
    rows = np.column_stack([x, x @ rng.normal(size=d) + rng.normal(size=300)])
    gram, columns, ridge = rows.T @ rows, tuple(range(d)), 4 * sd * math.sqrt(d)
    least, losses, found = 0.5 * sd * math.sqrt(d), [], []
    for _ in range(300):
        noisy = gram + symmetric(rng, d + 1, sd)
        coef = NoisyMoments(noisy, lambda v: np.zeros((d + 1, d + 1))).ridge(d, columns, ridge).coef
        found.append(stein_stretch(noisy, d, columns, sd, ridge, least))
        vs = (np.append(-c * coef, 1.0) for c in (found[-1], 1.0, 1.25, 1.5, 1.75, 2.0))
        losses.append([v @ gram @ v for v in vs])
    own, plain_loss, *others = np.mean(losses, axis=0)
    best = np.linalg.lstsq(x, rows[:, -1], rcond=None)[1][0]
    assert own - best < 1.5 * (min(others) - best) < 0.5 * (plain_loss - best)
    fit = PrivateRegression(2.0, stretch="stein", **options).fit(table(600)[0])
    assert 0 <= fit.stretch_ <= 3 and fit.coef_ == pytest.approx(fit.stretch_ * plain.coef_)


def test_the_default_turns_to_the_estimates_where_the_signal_is_clear():
    rng, d, sd = np.random.default_rng(6), 4, 2.0
    unit, columns = sd * math.sqrt(d), tuple(range(d))
    for top, clear in ((9.99, False), (10.01, True)):
        value = symmetric(rng, d + 1, 0.1)
        value[:d, :d] = np.diag([top * unit, unit, unit, 0.0])
        by_stein = stein_ridge(value, d, columns, sd)
        factor = stein_stretch(value, d, columns, sd, by_stein, 0.5 * unit)
        known = (by_stein, factor) if clear else (2 * unit, 1.5)
        assert chosen_ridge(value, d, columns, sd) == known
        assert chosen_ridge(value, d, columns, sd, stretch=1.25) == (known[0], 1.25)
        assert chosen_ridge(value, d, columns, sd, "stein") == (by_stein, 1.0)
        assert chosen_ridge(value, d, columns, sd, 3.0) == (3 * unit, 1.0)
    rows, center, scale = table(2000)
    options = {"center": center, "scale": scale, "seed": 3}
    for mu, own in ((0.05, {"ridge": 2.0, "stretch": 1.5}), (5.0, dict.fromkeys(
        ("ridge", "stretch"), "stein"
    ))):  # fmt: skip
        fit = PrivateRegression(2.0, mu=mu, **options).fit(iter([rows]))  # one pass
        same = PrivateRegression(2.0, mu=mu, **own, **options).fit(rows)
        assert fit.ridge_ == same.ridge_ and np.array_equal(fit.coef_, same.coef_)


# ---- principal axes ----------------------------------------------------------------------


def test_principal_axes_are_those_of_the_rows_within_their_angles():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(5000, 4)) * [4.0, 2.0, 1.0, 0.5]
    gram = moments_of(rows, np.zeros(4), np.ones(4), 8.0)
    value, basis = np.linalg.eigh(gram)
    angles, stated = [], []
    for seed in range(200):
        fit = PrivatePCA(2, 8.0, mu=0.3, seed=seed).fit(rows)
        off = np.abs(np.sum(fit.components_ * basis[:, ::-1][:, :2].T, axis=1))
        angles.append(np.arccos(np.minimum(off, 1)))
        stated.append(fit.axes_.angles)
    assert np.sqrt(np.mean(np.square(angles), axis=0)) == pytest.approx(
        np.mean(stated, axis=0), rel=0.2
    )
    assert fit.transform(rows).shape == (5000, 2) and value[-1] > 0
    assert fit.axes_.variances == pytest.approx(value[::-1][:2], rel=0.05)


# ---- synthetic rows ------------------------------------------------------------------------


def test_synthetic_rows_have_the_estimates_moments_and_its_guarantee():
    rows = np.random.default_rng(0).normal(size=(500, 3)) * [3, 1, 0.1]
    estimate = estimate_covariance(rows, center=np.zeros(3), radius=5, epsilon=1, delta=1e-6)
    made = synthetic_rows(estimate, 20_000, center=[1.0, 2.0, 3.0], seed=0)
    y = made.value - [1.0, 2.0, 3.0]
    sd = np.sqrt((np.outer(*[np.diag(estimate.value)] * 2) + estimate.value**2) / 20_000)
    assert (np.abs(y.T @ y / 20_000 - estimate.value) <= 6 * sd + 1e-12).all()
    assert made.guarantee is estimate.guarantee and made.private and made.value.shape == (20_000, 3)
    exact = synthetic_rows(estimate, 7, exact=True, seed=0).value
    assert exact.T @ exact / 7 == pytest.approx(estimate.value, abs=1e-9)
    matrix = np.diag([1.0, -1.0])
    plain = synthetic_rows(matrix, 5, exact=True)
    assert plain.T @ plain / 5 == pytest.approx(semidefinite(matrix), abs=1e-12)
    with pytest.raises(ValueError, match="m of at least"):
        synthetic_rows(matrix, 1, exact=True)


@pytest.mark.parametrize("m", [30, 150, 3000])
def test_synthetic_rows_are_nearer_to_the_moments_than_a_projection(m):
    """records: at equal budget and m, in Frobenius norm (breast_cancer, epsilon 4 and 16)."""
    from sklearn.datasets import load_breast_cancer

    from ellipsum.guarantee import Neighbors
    from ellipsum.records.projection_floor import largest_ratio

    x = load_breast_cancer().data
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    radius = math.sqrt(30)
    z = x * np.minimum(1, radius / np.linalg.norm(x, axis=1, keepdims=True))
    gram, rng, d = z.T @ z, np.random.default_rng(m), 30
    for epsilon in (4.0, 16.0):
        sd = math.sqrt(2) * radius**2 * calibrate.noise_multiplier(epsilon, 1e-6)
        w2 = radius**2 / largest_ratio(m, epsilon, 1e-6, Neighbors.REPLACE)
        errors = []
        for _ in range(20):
            private = synthetic_rows(gram + symmetric(rng, d, sd), m, seed=int(rng.integers(2**31)))
            y = rng.multivariate_normal(np.zeros(d), gram + w2 * np.eye(d), m)
            projected = semidefinite(y.T @ y / m - w2 * np.eye(d))
            errors.append([np.linalg.norm(s - gram) for s in (private.T @ private / m, projected)])
        mean = np.mean(errors, axis=0)
        assert mean[0] < mean[1]
