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

import numpy as np
import pytest

from ellipsum import PrivateMean, PrivateSum, estimates
from ellipsum.adaptive import rounds
from ellipsum.adaptive.passes import Passes
from likelihood_ratio import Audit

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
        self.inside = False
        for name in ("cells", "halves", "histogram", "excess"):
            monkeypatch.setattr(Passes, name, self.watched(getattr(Passes, name)))
        noisy = rounds._Run._noisy
        monkeypatch.setattr(rounds._Run, "_noisy", lambda run, *a: self.record(noisy, run, *a))
        kept = functools.lru_cache(rounds_plan(rounds.make_plan))  # the same for every run
        monkeypatch.setattr(rounds, "make_plan", lambda n, domain, *a: kept(n, Same(domain), *a))

    def watched(self, method):
        def both(passes, *where, **options):
            if self.inside:  # an excess is made of a histogram, which is not shown
                return method(passes, *where, **options)
            self.inside, box = True, passes.box
            one, other = (method(Passes(row, D, box=box), *where) for row in (FAR, OPPOSITE))
            change = one - other if self.neighbors == "replace" else one
            self.differences.append(change.astype(np.float64))
            exact = method(passes, *where, **options)
            self.inside = False
            return exact

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
    go, keys = rounds._Run.go, []

    def begin(run):
        keys.clear()
        return go(run)

    def first(n, sigma, key):
        keys.append(key)
        return draw(n, sigma, key=keys[0])

    monkeypatch.setattr(rounds._Run, "go", begin)
    monkeypatch.setattr(rounds.noise, "rounded_gaussian", first)


def a_budget_that_is_not_spent(monkeypatch):
    plan = rounds.Plan
    honest = plan.step_mu
    monkeypatch.setattr(plan, "step_mu", lambda p, s: 0.7 * honest(p, s))


ENOUGH = 75  # runs on either neighbour: each of these was seen from 50 on


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
    found = audit_of_plan(monkeypatch, mechanism, neighbors, runs=ENOUGH).flags(MU)
    assert any(word in line for line in found), found
