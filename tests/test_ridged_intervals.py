"""Intervals of ridged coefficients: coverage, and where they are finite."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ellipsum.records import PrivateRegression
from ellipsum.records.moment_fits import NoisyMoments, chosen_ridge, ridge_reach


def table(n, d=4, seed=0):
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


def covered(gram, sd, ridge, draws=600):
    """Of each coefficient of a ridge: how often 95 % intervals cover it, and without the bias."""
    rng, p = np.random.default_rng(7), len(gram) - 1
    columns, least = tuple(range(p)), 0.5 * sd * math.sqrt(p)
    found = []
    for _ in range(draws):
        noisy = gram + symmetric(rng, p + 1, sd)
        penalty, _ = chosen_ridge(noisy, p, columns, sd, ridge, 1.0)
        true = np.linalg.solve(gram[:-1, :-1] + penalty * np.eye(p), gram[:-1, -1])
        moments = NoisyMoments(
            noisy, lambda v: sd**2 / 2 * ((v @ v) * np.eye(p + 1) + np.outer(v, v))
        )
        fit = moments.ridge(p, columns, penalty, least)
        reach = ridge_reach(noisy, columns, fit.coef, sd, penalty, least, 1.96)
        bias = reach - 1.96 * fit.sd
        assert (bias >= -1e-12 * reach).all()
        off = np.abs(fit.coef - true)
        found.append([off <= reach, off <= 1.96 * fit.sd])
    return np.mean(found, axis=0)


def hard_gram(p, first, others, target):
    """One column tells nearly all of the target, in units of sd sqrt(p) with sd = 1."""
    unit = math.sqrt(p)
    gram = np.eye(p + 1) * others * unit
    gram[0, 0], gram[p, p] = first * unit, target * unit
    gram[0, p] = gram[p, 0] = 0.98 * math.sqrt(first * target) * unit
    return gram


@pytest.mark.parametrize("ridge", [0.5, 1.0, 2.0, 4.0, "stein"])
def test_intervals_of_ridged_coefficients_cover_at_every_budget(ridge):
    """At 95 %, 600 draws are covered 534 times or less with probability 3e-9."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6))
    for sd in (1e4, 100.0):  # no signal, much
        assert (covered(x.T @ x, sd, ridge)[0] > 0.89).all()
    assert (covered(hard_gram(2, 0.5, 0.5, 1000.0), 1.0, ridge)[0] > 0.89).all()
    assert (covered(hard_gram(4, 0.3, 3.0, 1000.0), 1.0, ridge)[0] > 0.89).all()


def test_without_the_bias_of_second_order_ridged_intervals_would_not_cover():
    whole, first_order = covered(hard_gram(30, 10.0, 0.0, 1000.0), 1.0, 2.0, 400)
    assert (whole > 0.9).all() and first_order[0] < 0.88


def test_ridged_intervals_are_about_the_coefficients_and_finite_where_they_cover():
    rows, center, scale = table(2000)
    options = {"center": center, "scale": scale, "seed": 3, "mu": 0.05}
    for given, finite in (
        ({}, True),
        ({"ridge": 0.5}, True),
        ({"ridge": 3.0, "stretch": 2.0}, True),
        ({"ridge": "stein", "stretch": 0.0}, True),
        ({"ridge": 0.49}, False),
    ):
        fit = PrivateRegression(2.0, **given, **options).fit(rows)
        span = fit.confidence_interval(ridged=True)
        assert np.isfinite(span).all() == finite
        assert not finite or np.allclose(span.mean(axis=1), fit.coef_, rtol=1e-9, atol=1e-12)
        assert np.isinf(fit.confidence_interval()).all()
    for mu, finite in ((0.001, False), (500.0, True)):
        one = PrivateRegression(2.0, scale=scale[-2:], center=center[-2:], mu=mu, seed=3)
        span = one.fit(rows[:, -2:]).confidence_interval(ridged=True)
        assert np.isfinite(span).all() == finite
    sharp = PrivateRegression(2.0, **options | {"mu": 1e5, "ridge": 1.0}).fit(rows)
    moments = moments_of(rows, center, scale, 2.0)
    inner = moments[:-1, :-1] + sharp.ridge_ * np.eye(4)
    true = np.linalg.solve(inner, moments[:-1, -1]) * scale[:-1] / scale[-1]
    span = sharp.confidence_interval(1 - 1e-6, ridged=True)
    assert (span[:, 0] < true).all() and (true < span[:, 1]).all()
