"""Estimates of second moments, audited from samples as ``test_audit_plans.py`` audits plans."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from ellipsum import second_moments
from ellipsum.wishart import best_wishart
from ellipsum.wishart import delta as wishart_delta
from likelihood_ratio import LEVEL, Audit

MU = 3.0  # where errors of both kinds tell most: about 7 % each

# ---- second moments --------------------------------------------------------------------------

RADIUS = 2.0
#: Two rows at right angles on the sphere: the worst pair; enough others that no noise makes the
#: matrix indefinite, so that the projection changes nothing.
X, Y = RADIUS * np.eye(2)
OTHERS = np.tile(np.vstack([X, Y]), (60, 1))
MOMENTS = {
    "replace": (np.vstack([OTHERS, X]), np.vstack([OTHERS, Y])),
    "add-remove": (np.vstack([OTHERS, X]), OTHERS),
}
KNOWN = {"center": np.zeros(2), "radius": RADIUS}


def packed(matrix):
    """The numbers that Gaussian noise is added to: off-diagonal ones times sqrt(2)."""
    return np.array([matrix[0, 0], math.sqrt(2) * matrix[0, 1], matrix[1, 1]])


def released(monkeypatch, method, neighbors, side, runs, **budget):
    """n_hat, and n_hat times the matrix, of many estimates on one neighbour."""
    counts = []
    count = second_moments._Noise._count
    monkeypatch.setattr(
        second_moments._Noise, "_count", lambda job, sd: counts.append(count(job, sd)) or counts[-1]
    )
    table = MOMENTS[neighbors][side]
    values = [
        second_moments.estimate_covariance(
            table, method=method, neighbors=neighbors, seed=2 * i + side, **KNOWN, **budget
        ).value
        for i in range(runs)
    ]
    monkeypatch.undo()
    return np.array(counts), np.array(counts)[:, None, None] * np.array(values)


def audit_of_moments(monkeypatch, neighbors, runs):
    """L of (n_hat, moments), for the noise levels that spend MU and no more."""
    one, other = (packed(table.T @ table) for table in MOMENTS[neighbors])
    change, share = one - other, 1 / 16 if neighbors == "add-remove" else 0.0
    bound = RADIUS**2 * (math.sqrt(2) if neighbors == "replace" else 1.0)
    variance = (bound / MU) ** 2 / (1 - share)
    ratios = np.empty((2, runs))
    for side in (0, 1):
        counts, sums = released(monkeypatch, "gaussian", neighbors, side, runs, mu=MU)
        ratios[side] = (np.array([packed(s) for s in sums]) - (one + other) / 2) @ change / variance
        if share:
            ratios[side] += (counts - len(MOMENTS[neighbors][1]) - 0.5) * MU**2 * share
    return Audit(ratios)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_a_gaussian_covariance_leaks_what_it_says_and_uses_it(monkeypatch, neighbors):
    audit = audit_of_moments(monkeypatch, neighbors, runs=6000)
    assert not audit.flags(MU)
    low, high = audit.mu_interval()
    assert low > 0.88 * MU and high < 1.14 * MU


def moments_without_root_two(monkeypatch):
    bound = second_moments.moment_sensitivity
    monkeypatch.setattr(
        second_moments, "moment_sensitivity", lambda r, n: bound(r, n) / math.sqrt(2)
    )


def one_key_for_both(monkeypatch):
    monkeypatch.setattr(second_moments.JobKeys, "of", lambda keys, *draw: keys._root)


def test_the_audit_sees_second_moments_without_their_root_two(monkeypatch):
    with pytest.MonkeyPatch.context() as broken:
        moments_without_root_two(broken)
        found = audit_of_moments(monkeypatch, "replace", runs=400).flags(MU)
    assert any("leaks" in line for line in found), found


@pytest.mark.parametrize("broken", [moments_without_root_two, one_key_for_both])
def test_the_audit_sees_a_broken_joint_release_of_moments_and_count(monkeypatch, broken):
    with pytest.MonkeyPatch.context() as patched:
        broken(patched)
        assert audit_of_moments(monkeypatch, "add-remove", runs=1500).flags(MU)


# ---- Wishart noise ---------------------------------------------------------------------------

EPSILON, DELTA = 1.0, 0.2  # a delta that samples can see


def part_of_the_matrix(neighbors):
    """What of (EPSILON, DELTA) one row more or less may cost the matrix."""
    if neighbors == "add-remove":
        return EPSILON * 15 / 16, DELTA * 15 / 16
    return EPSILON / 2, DELTA / (1 + math.exp(EPSILON / 2))


def wishart_flags(monkeypatch, neighbors, runs=2500):
    """What the noise fails: its law, from both sides; what the row X shows, from both sides.

    Where the matrix holds x x', T = r^2 / (x' V^-1 x), of V = the release less all other rows,
    is r^2 + chi^2_nu; without it chi^2_nu (docs/guarantees/estimates.md).
    """
    epsilon, delta = part_of_the_matrix(neighbors)
    k, r2 = best_wishart(2, epsilon, delta)
    nu, bias = k - 1, k / r2 * RADIUS**2 * np.eye(2)
    monkeypatch.setattr(
        second_moments, "best_wishart", functools.cache(second_moments.best_wishart)
    )
    found, t = [], []
    for side in (0, 1):
        table = MOMENTS[neighbors][side]
        with pytest.MonkeyPatch.context() as inner:
            budget = {"epsilon": EPSILON, "delta": DELTA}
            _, sums = released(inner, "wishart", neighbors, side, runs, **budget)
        assert np.linalg.eigvalsh(sums).min() > 0  # the projection has changed nothing
        with_x = side == 0
        others = table.T @ table - with_x * np.outer(X, X)
        v = sums + bias - others
        t.append(r2 / np.einsum("i,aij,j->a", X, np.linalg.inv(v), X))
        law = kstest(t[side], lambda x, at=with_x * r2: chi2.cdf(x - at, nu))
        if law.pvalue < LEVEL:
            found.append(f"law of T on side {side}: p = {law.pvalue:.1e}")
    return found + leaked(*t, epsilon, delta, nu, r2)


def leaked(with_x, without, epsilon, delta, nu, r2):
    """The largest delta of half-lines of T, held to the one that was asked for."""
    power = nu / 2 - 1
    above = r2 + r2 / math.expm1((r2 / 2 - epsilon) / power) if r2 / 2 > epsilon else 1e9
    below = -r2 / math.expm1(-(epsilon + r2 / 2) / power)
    # the two that are best for honest noise, and some for any other
    thresholds = [above, below, *np.linspace(0, r2 + chi2.isf(1e-3, nu), 30)]
    level, most, least = LEVEL / (2 * len(thresholds)), 0.0, 0.0
    for at in thresholds:
        for one, other in ((with_x > at, without > at), (without < at, with_x < at)):
            p, q = one.mean(), other.mean()
            seen = p - math.exp(epsilon) * q
            band = norm.isf(level) * math.sqrt((p + math.exp(2 * epsilon) * q) / len(one))
            most, least = max(most, seen + band), max(least, seen - band)
    if least > delta:
        return [f"leaks: delta {least:.4f} or more, promised {delta:.4f}"]
    return [f"wastes: delta {most:.4f} or less, of {delta:.4f}"] if most < delta else []


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_a_wishart_covariance_leaks_what_it_says_and_uses_it(monkeypatch, neighbors):
    epsilon, delta = part_of_the_matrix(neighbors)
    k, r2 = best_wishart(2, epsilon, delta)
    assert wishart_delta(epsilon, k - 1, r2) == pytest.approx(delta, rel=1e-6)  # nothing is left
    assert not wishart_flags(monkeypatch, neighbors)


@pytest.mark.parametrize("factor, word", [(4.0, "leaks"), (1.2, "law"), (0.5, "wastes")])
def test_the_audit_sees_a_wishart_matrix_of_another_size(monkeypatch, factor, word):
    def wrong(d, epsilon, target):
        k, r2 = best_wishart(d, epsilon, target)
        return k, factor * r2

    monkeypatch.setattr(second_moments, "best_wishart", wrong)
    found = wishart_flags(monkeypatch, "add-remove", runs=1000)
    assert any(word in line for line in found), found
