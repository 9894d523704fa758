"""An audit of grouped releases from samples: events, their frequencies, and what is allowed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from ellipsum import Ellipsoid, PrivateCounts, PrivateGroupMean

#: One-sided level of each bound; some 60 comparisons in all: a false alarm below 1e-6.
_LEVEL = 1e-8
_RUNS = 3000


def below(hits: int, runs: int) -> float:
    """A lower bound of the chance, by Clopper and Pearson."""
    return float(beta.ppf(_LEVEL, hits, runs - hits + 1)) if hits else 0.0


def above(hits: int, runs: int) -> float:
    """An upper bound of the chance."""
    return float(beta.ppf(1 - _LEVEL, hits + 1, runs - hits)) if hits < runs else 1.0


def check(events_x: np.ndarray, events_y: np.ndarray, epsilon: float, delta: float) -> float:
    """Each event, a column, is allowed; the largest share of delta that one of them shows."""
    worst = 0.0
    for x, y in zip(events_x.sum(0), events_y.sum(0), strict=True):
        for p, q in ((x, y), (y, x)):
            least = below(int(p), len(events_x)) - np.exp(epsilon) * above(int(q), len(events_y))
            assert least <= delta
            seen = p / len(events_x) - np.exp(epsilon) * q / len(events_y)
            worst = max(worst, seen / delta)
    return worst


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_no_event_is_likelier_than_the_guarantee_allows(neighbors):
    """Counts under a large delta, so that few runs see it: a key of one user alone."""
    epsilon, delta = 1.0, 0.2
    mechanism = PrivateCounts(epsilon=epsilon, delta=delta, neighbors=neighbors)
    common = ["a"] * 9
    pair = ([*common, "own"], [*common, "a"] if neighbors == "replace" else common)
    events = []
    for data in pair:
        releases = [mechanism(data, seed=i) for i in range(_RUNS)]
        low = [("a" in r and r["a"] < 7.5) for r in releases]
        own = ["own" in r for r in releases]
        events.append(np.column_stack([own, low, np.logical_or(own, low)]))
    assert check(*events, epsilon, delta) > 0.8  # the guarantee is nearly used up


def test_the_audit_sees_a_threshold_that_is_too_low(monkeypatch):
    """Broken on purpose: one step of a user lower."""
    epsilon, delta = 1.0, 0.2
    mechanism = PrivateCounts(epsilon=epsilon, delta=delta)
    promise, threshold = mechanism._promise(None)
    monkeypatch.setattr(mechanism, "_promise", lambda user: (promise, threshold - (1 << 20)))
    events = [
        np.array([["own" in mechanism(data, seed=i)] for i in range(_RUNS)])
        for data in (["a"] * 5 + ["own"], ["a"] * 5)
    ]
    with pytest.raises(AssertionError):
        check(*events, epsilon, delta)


def test_no_projection_of_all_groups_is_likelier_than_the_guarantee_allows():
    """Public keys, replace: a user who leaves one group for another, opposite, in both sums."""
    region = Ellipsoid.ball(1.0, d=1)
    mechanism = PrivateGroupMean(region, keys=["p", "q"], mu=1.0, neighbors="replace")
    rows = np.zeros((4, 1))
    pair = []
    for last, key in ((1.0, "p"), (-1.0, "q")):
        data, keys = np.vstack([rows, [[last]]]), [*"ppqq", key]
        scores = []
        for i in range(_RUNS):
            release = mechanism(data, key=keys, seed=i)
            sums = release.integers[:, 0].astype(float) * region.grid
            scores.append(sums[0] + sums[1] + release.sizes[0] - release.sizes[1])
        pair.append(np.array(scores))
    cuts = np.quantile(np.concatenate(pair), [0.2, 0.35, 0.5, 0.65, 0.8])
    promise = mechanism.guarantee_for(None)
    events = [scores[:, None] > cuts for scores in pair]
    assert check(*events, 0.5, promise.delta(0.5)) > 0.7
