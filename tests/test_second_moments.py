"""What intervals take from histograms of distances: second moments, and what the clips took."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_less

from ellipsum import PrivateMean
from ellipsum.adaptive.domain import Domain
from ellipsum.adaptive.interval import counted
from ellipsum.adaptive.outcome import Counts, Round, Tail
from ellipsum.adaptive.radius import EDGES
from ellipsum.adaptive.sampling import second_moments

LAWS = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "t2": lambda rng, shape: rng.standard_t(2, shape),
    "claims": lambda rng, shape: np.where(rng.random(shape) < 0.9, 0.0, rng.lognormal(size=shape)),
    "two points": lambda rng, shape: 2.0 * rng.integers(0, 2, shape) - 1,
    "one row far off": lambda rng, shape: np.where(np.arange(shape[0])[:, None] > 0, 0.3, 1e4),
    "all equal": lambda rng, shape: np.full(shape, 0.7),
    "turned": lambda rng, shape: rng.standard_normal((shape[0], 1)) + 0 * rng.random(shape),
}


def a_round(rows, present, radius, scale, sd=0.0, rng=None):
    """(a round over these rows about the origin, the clipped rows): noise of deviation ``sd``."""
    d, away = rows.shape[1], np.where(present, rows * scale, 0.0)
    distance = np.linalg.norm(away, axis=1)
    clipped = away * np.minimum(1, radius / np.maximum(distance, 1e-300))[:, None]
    counts = np.histogram(distance, np.append(0.0, EDGES))[0] / len(rows)
    deviation = np.abs(clipped).sum(0) / present.sum(0) / scale
    noise, spread = np.zeros(d), np.zeros(EDGES.size)
    if rng is not None:
        noise, spread = sd * rng.standard_normal(d), sd * rng.standard_normal(EDGES.size)
    tail = Tail(radius, counts=Counts(EDGES, counts + spread, sd))
    zero, reach = np.zeros(d), np.full(d, 1e9)
    deviation = deviation + noise / scale
    return Round(zero, np.full(d, sd) / scale, zero, deviation, scale, reach, tail), clipped / scale


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("d", [1, 3, 40])
def test_the_bound_holds_for_every_table(law, d):
    """Exact answers: no second moment of the present cells of clipped rows is above it."""
    rng = np.random.default_rng(d)
    for radius in (0.2, 1.3, 4.0, 30.0):
        for holes in (0.0, 0.4):
            scale = 10.0 ** rng.uniform(-2, 2, d)
            rows = LAWS[law](rng, (500, d)) / scale / np.sqrt(d)
            present = rng.random(rows.shape) >= holes
            found, clipped = a_round(rows, present, radius, scale)
            truth = (clipped**2).sum(0) / present.sum(0)
            bound = second_moments(found, present.mean(0))
            assert_array_less(truth, bound * (1 + 1e-9) + 1e-300)


def test_the_bound_is_near_where_rows_are_many_and_columns_few():
    """Gaussian columns in a region of 20 spreads, noise of 1e-4: a deviation of 1.2 and 1.75 times
    the truth at most, where E abs(y) and the radius alone say 3.9."""
    rng = np.random.default_rng(0)
    for d, most in ((1, 1.2), (3, 1.75)):
        scale = np.ones(d)
        rows = rng.standard_normal((100_000, d)) / np.sqrt(d)
        found, _ = a_round(rows, np.ones(rows.shape, bool), 20.0, scale, 1e-4, rng)
        ratio = np.sqrt(second_moments(found, np.ones(d)) * d)
        assert 1 <= ratio.min() and ratio.max() <= most
        alone = Round(*[*vars(found).values()][:-1], Tail(20.0))
        assert np.sqrt(second_moments(alone, np.ones(d)) * d).min() > 3.9


def test_a_histogram_of_noise_alone_does_not_shorten_an_interval():
    """Noise of the size of the rows' shares: the bound is that of E abs(y) and the radius."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((1000, 2))
    found, clipped = a_round(rows, np.ones(rows.shape, bool), 3.0, np.ones(2), 0.5, rng)
    alone = Round(*[*vars(found).values()][:-1], Tail(3.0))
    bound = second_moments(found, np.ones(2))
    assert_array_less((clipped**2).mean(0), bound)
    assert (bound <= second_moments(alone, np.ones(2))).all()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("d", [1, 3, 40])
def test_no_clip_moves_a_mean_further_than_its_histogram_says(law, d):
    """Exact answers, and nothing said of the law: the mean of the present cells."""
    rng, one = np.random.default_rng(d), np.ones(d)
    domain, tight = Domain(np.zeros(d), np.full(d, 1e9)), 0.0
    for radius in (0.2, 1.3, 4.0, 30.0):
        for holes in (0.0, 0.4):
            scale = 10.0 ** rng.uniform(-2, 2, d)
            rows = LAWS[law](rng, (500, d)) / scale / np.sqrt(d)
            present = rng.random(rows.shape) >= holes
            found, clipped = a_round(rows, present, radius, scale)
            taken = (np.where(present, rows, 0.0) - clipped).sum(0) / present.sum(0)
            most, noise = counted(found, domain, one, present.mean(0))
            assert (noise == 0).all()
            assert_array_less(np.abs(taken), most * (1 + 1e-9) + 1e-15 / scale)
            tight = max(tight, float(np.max(np.abs(taken) / np.maximum(most, 1e-300))))
    assert tight > 0.5 or d > 1 or law not in ("claims", "one row far off", "all equal")


def test_the_noise_of_what_a_histogram_says_is_as_told():
    rng, one = np.random.default_rng(0), np.ones(2)
    rows = 5 * rng.standard_normal((1000, 2))
    domain, whole = Domain(np.zeros(2), np.full(2, 1e9)), np.ones(rows.shape, bool)
    said, told = [], 0.0
    for _ in range(3000):
        found, _ = a_round(rows, whole, 2.0, np.ones(2), 1e-12, rng)
        most, noise = counted(found, domain, one, one)
        said.append(most[0])
        told = noise[0]
    assert told == pytest.approx(np.std(said), rel=0.1)  # seven deviations of this figure


def test_rows_beyond_the_last_bin_count_as_far_as_the_box_goes():
    """A box of 1e14 spreads: what lies further out than the last edge may lie in its corner."""
    rows = np.random.default_rng(0).standard_normal((30_000, 2))
    mechanism = PrivateMean(lower=[-1e14] * 2, upper=[1e14] * 2, epsilon=50.0, delta=1e-6)
    rounds = mechanism(rows, seed=1)._outcome.rounds
    for found in rounds:
        corner = np.linalg.norm(found.scale * found.reach)
        assert found.tail.counts is None or found.tail.counts.edges[-1] >= corner * (1 - 1e-9)
    assert max(found.tail.counts.edges[-1] for found in rounds[1:]) > EDGES[-1]


@pytest.mark.parametrize(("zeros", "n"), [(0.85, 3000), (0.97, 4000)])
def test_intervals_of_mostly_zeros_are_not_as_wide_as_their_rows_in_a_corner_would_make_them(
    zeros, n
):
    """Seeded. With every row beyond at the edge of the box, 115 and 88 oracles' widths."""
    mechanism = PrivateMean(lower=[-20], upper=[20], epsilon=1, delta=1e-6)
    oracle, widths, missed = 1.96 * 2 * 3.29 / (n * mechanism.guarantee.mu), [], 0
    for seed in range(12):
        rng = np.random.default_rng([seed, n])
        rows = 10 + np.where(rng.random((n, 1)) < zeros, 0.0, rng.lognormal(size=(n, 1)))
        lower, upper = mechanism(rows, seed=seed).confidence_interval(0.95, "rows")
        missed += not lower <= np.clip(rows, -20, 20).mean() <= upper
        widths.append(float(upper[0] - lower[0]) / 2 / oracle)
    assert np.median(widths) < 45 and missed <= 1
