"""Whole plans and estimates, audited from samples by the likelihood ratio of what they release.

The attacker knows the mechanism, both neighbours and the public transcript, the noisy integers of
every step; the noise is hers to guess. Her best test compares the log-likelihood ratio

    L = sum over steps of <o_i - (t_i + t'_i)/2, t_i - t'_i> / sigma_i^2

with a threshold, where t_i and t'_i are the exact integers that either neighbour would have given
to step i after the same earlier outcomes: each difference is that of the one or two rows in which
the neighbours differ, run through the same pass. A mechanism that is mu-GDP and spends all of it
has L ~ N(mu^2/2, mu^2) under the one neighbour and N(-mu^2/2, mu^2) under the other.

Held against that, from both sides: the empirical mu of the errors of both kinds at the threshold
zero, with Clopper and Pearson's limits (Jagielski, Ullman & Oprea 2020; in the form of Gaussian
DP: Nasr et al. 2023), mean and variance of L. Too little noise shows as too large a mu; too much,
or a budget left unspent, as too small a one. Each check of an honest mechanism raises a false
alarm with probability 1e-8 or less, and all of them together, fewer than 60, less than 1e-6 (the
keys are fixed, so it is decided once).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import beta, chi2, kstest, norm

from ellipsum import PrivateMean, PrivateSum, calibrate, estimates, second_moments
from ellipsum.adaptive import rounds
from ellipsum.adaptive.passes import Passes
from ellipsum.wishart import best_wishart
from ellipsum.wishart import delta as wishart_delta

LEVEL = 1e-8
MU = 3.0  # where errors of both kinds tell most: about 7 % each
D, N_ROWS = 2, 60
ROWS = 3 + np.random.default_rng(0).standard_normal((N_ROWS, D))
BOX = {"lower": np.full(D, -50.0), "upper": np.full(D, 50.0), "mu": MU}

#: The rows that differ: far out on opposite sides, at different distances (both clipped in every
#: round, and never in the same bin); or one such row that is there or not.
FAR, OPPOSITE = np.full((1, D), 1e9), np.full((1, D), -20.0)
NEIGHBORS = {
    "replace": (np.vstack([ROWS, FAR]), np.vstack([ROWS, OPPOSITE])),
    "add-remove": (np.vstack([ROWS, FAR]), ROWS),
}


# ---- from likelihood ratios to mu ------------------------------------------------------------


@dataclass
class Audit:
    """Log-likelihood ratios of as many runs on the one neighbour as on the other."""

    ratios: np.ndarray  # shape (2, runs)

    def mu_interval(self):
        """Limits of Phi^-1(1 - a) + Phi^-1(1 - b), a and b the errors of both kinds."""
        runs = self.ratios.shape[1]
        errors = (self.ratios[0] <= 0).sum(), (self.ratios[1] > 0).sum()
        most = [beta.ppf(1 - LEVEL / 2, k + 1, runs - k) for k in errors]
        least = [beta.ppf(LEVEL / 2, k, runs - k + 1) if k else 0.0 for k in errors]
        return float(sum(norm.isf(most))), float(sum(norm.isf(least)))

    def epsilon_bound(self, delta):
        """A lower bound of epsilon for this delta: the best of a few thresholds and both sides."""
        runs, best = self.ratios.shape[1], 0.0
        thresholds = np.linspace(-6, 12, 10)
        level = LEVEL / (4 * len(thresholds))
        for sign, (one, other) in ((1, self.ratios), (-1, self.ratios[::-1])):
            for threshold in thresholds:
                hits, false = (int((sign * side > threshold).sum()) for side in (one, other))
                true_rate = beta.ppf(level, hits, runs - hits + 1) if hits else 0.0
                false_rate = beta.ppf(1 - level, false + 1, runs - false) if false < runs else 1.0
                if true_rate > delta:
                    best = max(best, math.log((true_rate - delta) / false_rate))
        return best

    def flags(self, mu):
        """Every way, in words, in which this is no mechanism that spends mu and no more."""
        runs, found = self.ratios.shape[1], []
        low, high = self.mu_interval()
        if low > mu:
            found.append(f"leaks: empirical mu at least {low:.3f}, promised {mu:.3f}")
        if high < mu:
            found.append(f"wastes: empirical mu at most {high:.3f}, of {mu:.3f}")
        told = calibrate.epsilon(1 / mu, 0.01)
        if (bound := self.epsilon_bound(0.01)) > told:
            found.append(f"leaks: epsilon at least {bound:.3f} at delta 0.01, promised {told:.3f}")
        gap = float(np.subtract(*self.ratios.mean(axis=1))) / mu**2
        band = norm.isf(LEVEL / 2) * math.sqrt(2 / runs) / mu
        if abs(gap - 1) > band:
            word = "leaks" if gap > 1 else "wastes"
            found.append(f"{word}: mean of L {gap:.3f} of its own, not within {band:.3f} of 1")
        spread = float(self.ratios.var(axis=1, ddof=1).mean()) / mu**2
        least, most = chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], 2 * (runs - 1)) / (2 * (runs - 1))
        if not least <= spread <= most:
            word = "leaks" if spread < least else "strays"
            found.append(f"{word}: variance of L {spread:.3f} of its own")
        return found


def test_the_audit_of_a_gaussian_is_quiet_at_its_mu_and_at_no_other():
    """By itself: a plain Gaussian of a known mu, and the same with a tenth more or less noise."""
    rng, sides = np.random.default_rng(1), np.array([[0.5], [-0.5]])
    for noise in (1.0, 0.9, 1.1):
        draws = rng.standard_normal((2, 4000)) * noise
        found = Audit(sides * MU**2 + MU * draws).flags(MU)
        assert bool(found) == (noise != 1.0), (noise, found)
        assert any("leaks" in line for line in found) == (noise == 0.9), (noise, found)


# ---- plans -----------------------------------------------------------------------------------


class Transcript:
    """The steps of one run, as the attacker sees them, and what her neighbours would differ by."""

    def __init__(self, monkeypatch, neighbors):
        self.monkeypatch, self.neighbors = monkeypatch, neighbors
        self.differences, self.steps = [], []
        for name in ("halves", "histogram"):
            monkeypatch.setattr(Passes, name, self.watched(getattr(Passes, name)))
        noisy = rounds._Run._noisy
        monkeypatch.setattr(rounds._Run, "_noisy", lambda run, *a: self.record(noisy, run, *a))
        kept = functools.lru_cache(rounds_plan(rounds.make_plan))  # the same for every run
        monkeypatch.setattr(rounds, "make_plan", lambda n, domain, *a: kept(n, Same(domain), *a))

    def watched(self, method):
        def both(passes, *where, **options):
            one, other = (method(Passes(row, D), *where) for row in (FAR, OPPOSITE))
            change = one - other if self.neighbors == "replace" else one
            self.differences.append(change.astype(np.float64))
            return method(passes, *where, **options)

        return both

    def record(self, noisy, run, exact, sensitivity, mu):
        if not run.integers and self.neighbors == "add-remove":  # the count comes first
            self.differences.append(np.ones(1))
        public = noisy(run, exact, sensitivity, mu)
        self.steps.append((public - exact, sensitivity / mu))
        return public

    def ratio(self, side):
        """L of the run that was recorded, on neighbour 0 or 1; then forget it."""
        total = 0.0
        for change, (off, sigma) in zip(self.differences, self.steps, strict=True):
            middle = off.astype(np.float64) + (0.5 - side) * change  # o - (t + t')/2
            total += float(middle @ change) / sigma**2
        self.differences.clear()
        self.steps.clear()
        return total


class Same:
    """A key that takes all domains for one: a test has one."""

    def __init__(self, domain):
        self.domain = domain

    def __eq__(self, other):
        return isinstance(other, Same)

    def __hash__(self):
        return 0


def rounds_plan(make_plan):
    return lambda n, same, *rest: make_plan(n, same.domain, *rest)


def audit_of_plan(monkeypatch, release, neighbors, runs):
    """Run ``release(rows, seed)`` on both neighbours and judge its transcript."""
    transcript = Transcript(monkeypatch, neighbors)
    ratios = np.empty((2, runs))
    for side, rows in enumerate(NEIGHBORS[neighbors]):
        for i in range(runs):
            release(rows, seed=2 * i + side)
            ratios[side, i] = transcript.ratio(side)
    monkeypatch.undo()
    return Audit(ratios)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_a_plan_leaks_what_it_says_and_uses_it(monkeypatch, neighbors):
    mechanism = PrivateMean(**BOX, neighbors=neighbors)
    audit = audit_of_plan(monkeypatch, mechanism, neighbors, runs=600)
    assert not audit.flags(MU)
    low, high = audit.mu_interval()
    assert low > 0.65 * MU and high < 1.4 * MU  # the band is narrow enough to say something


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("estimate", [estimates.estimate_center, estimates.estimate_scale])
def test_centre_and_scale_leak_what_they_say_and_use_it(monkeypatch, estimate, neighbors):
    job = functools.partial(estimate, **BOX, neighbors=neighbors)
    assert not audit_of_plan(monkeypatch, job, neighbors, runs=120).flags(MU)


def test_a_private_sum_by_a_plan_does_too(monkeypatch):
    mechanism = PrivateSum(**BOX, neighbors="add-remove")  # its count takes another share
    assert not audit_of_plan(monkeypatch, mechanism, "add-remove", runs=120).flags(MU)


def halves_without_root_two(monkeypatch):
    monkeypatch.setattr(
        rounds, "halves_sensitivity", lambda region, neighbors: region.row_bound() / math.sqrt(2)
    )


def a_step_that_spends_more_than_its_share(monkeypatch):
    plan = rounds.Plan
    honest = plan.step_mu
    more = {"final": 1.5}
    monkeypatch.setattr(plan, "step_mu", lambda p, s: honest(p, s) * more.get(s.name, 1.0))


def noise_that_is_smaller_than_told(monkeypatch):
    draw = rounds.noise.rounded_gaussian
    monkeypatch.setattr(
        rounds.noise, "rounded_gaussian", lambda n, sigma, key: draw(n, 0.65 * sigma, key=key)
    )


def one_key_for_every_step(monkeypatch):
    draw = rounds.noise.rounded_gaussian
    keys = []

    def first(n, sigma, key):
        if n == 1 or len(keys) >= 8:  # a run begins
            keys.clear()
        keys.append(key)
        return draw(n, sigma, key=keys[0])

    monkeypatch.setattr(rounds.noise, "rounded_gaussian", first)


def a_budget_that_is_not_spent(monkeypatch):
    plan = rounds.Plan
    honest = plan.step_mu
    monkeypatch.setattr(plan, "step_mu", lambda p, s: 0.7 * honest(p, s))


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize(
    "broken, word",
    [
        (halves_without_root_two, "leaks"),
        (a_step_that_spends_more_than_its_share, "leaks"),
        (noise_that_is_smaller_than_told, "leaks"),
        (one_key_for_every_step, "strays"),
        (a_budget_that_is_not_spent, "wastes"),
    ],
)
def test_the_audit_sees_a_plan_that_is_broken(monkeypatch, broken, word, neighbors):
    broken(monkeypatch)
    mechanism = PrivateMean(**BOX, neighbors=neighbors)
    found = audit_of_plan(monkeypatch, mechanism, neighbors, runs=130).flags(MU)
    assert any(word in line for line in found), found


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
