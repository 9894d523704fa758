"""Attacks from the literature on sums and on promises (docs/attacks.md), as in test_attacks.py."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from attack import DELTA, EPSILON, SIGMA, breaks, key, lower, upper
from ellipsum import Ellipsoid, ExactSum, PrivateSum, calibrate

# ---- Casacuberta, Shoemate, Vadhan & Wagaman 2022: what a sum can really change --------------


def repeated_rounding(binades=5):
    """Records in [0, 1] whose single-precision running sum doubles a difference in each binade.

    At 2^j, addends just above half an ulp are rounded up to a whole one; a sum that is still
    below 2^j, where the ulp is half as large, gains half as much from each.
    """
    parts, total, lag = [], 2.0**12, 1.0
    parts.append(np.ones(2**12 - 1))
    for j in range(12, 12 + binades):
        addend = np.nextafter(np.float32(2.0 ** (j - 24)), np.float32(1))
        steps = math.ceil(lag * 2.0 ** (24 - j))  # until the one behind has reached 2^j
        parts.append(np.full(steps, addend, np.float64))
        total += steps * 2.0 ** (j - 23)
        lag *= 2
        ones = int(2.0 ** (j + 1) - total)
        parts.append(np.ones(ones))
        total += ones
    return np.concatenate(parts)


def single_precision_sum(records):
    """As an accumulator of the data's own type adds them up, one after the other."""
    return float(np.cumsum(records.astype(np.float32), dtype=np.float32)[-1])


def worst_pairs():
    """Pairs that differ in one record of [0, 1], or in the order alone."""
    tail = repeated_rounding()
    with_one, with_zero = np.concatenate([[1.0], tail]), np.concatenate([[0.0], tail])
    small_last = np.concatenate([np.ones(2**16), np.full(2**16, 2.0**-9)])
    return {
        "one record": (with_one, with_zero, 1.0),
        "the order alone": (small_last, small_last[::-1].copy(), 0.0),
    }


@pytest.mark.parametrize("pair", ["one record", "the order alone"])
def test_casacuberta_sums_in_single_precision_move_by_many_times_their_sensitivity(pair):
    one, other, claimed = worst_pairs()[pair]
    assert 0 <= min(one.min(), other.min()) and max(one.max(), other.max()) <= 1
    moved = abs(single_precision_sum(one) - single_precision_sum(other))
    assert moved > 20 * max(claimed, 1.0)
    draws = SIGMA * np.random.default_rng(3).standard_normal((2, 300))
    middle = (single_precision_sum(one) + single_precision_sum(other)) / 2
    guesses = [single_precision_sum(t) + draws[i] > middle for i, t in enumerate((one, other))]
    assert breaks(*guesses)


@pytest.mark.parametrize("pair", ["one record", "the order alone"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_casacuberta_does_not_move_an_exact_sum(pair, dtype):
    one, other, claimed = worst_pairs()[pair]
    region = Ellipsoid.box([0.0], [1.0])
    sums = [ExactSum(region).add(t[:, None].astype(dtype)) for t in (one, other)]
    moved = abs(int((sums[0].integers() - sums[1].integers())[0]))
    assert moved <= math.ceil(claimed) * 2 * region.row_bound()
    assert (moved == 0) == (claimed == 0)
    mechanism = PrivateSum(region, epsilon=EPSILON, delta=DELTA)
    middle = float(np.mean([one.sum(), other.sum()]))
    guesses = []
    for i, total in enumerate(sums):
        values = [
            mechanism(total, seed=key("sum", i, run), spend_again=True).value[0]
            for run in range(300)
        ]
        guesses.append(np.array(values) > middle)
    assert not breaks(*guesses)


def test_casacuberta_overflows_a_machine_integer_and_no_exact_sum():
    """One record more, and 32 bits wrap: 2^31 - 1 and a bit becomes -2^31."""
    base, extra = [2**30, 2**30 - 1], [1]
    sums = [
        np.sum(np.array(t, np.int32), dtype=np.int32, keepdims=True)[0]
        for t in (base, base + extra)
    ]
    assert abs(int(sums[0]) - int(sums[1])) == 2**32 - 1  # of a sensitivity of 2^30
    region = Ellipsoid.box([0.0], [2.0**30])
    exact = [
        int(ExactSum(region).add(np.array(t, np.int32)[:, None]).integers()[0])
        for t in (base, base + extra)
    ]
    assert abs(exact[0] - exact[1]) <= region.row_bound()
    # Doubles overflow as well, to an infinity that the other neighbour does not have.
    huge = np.full((3, 1), 1e308)
    with np.errstate(over="ignore"):
        assert math.isinf(huge.sum()) and not math.isinf(huge[:1].sum())
    wide = Ellipsoid.ball(1e100, d=1)
    totals = [int(ExactSum(wide).add(t).integers()[0]) for t in (huge, huge[:2])]
    assert abs(totals[0] - totals[1]) <= wide.row_bound()


# ---- Lokna, Paradis, Dimitrov & Vechev 2023: all pairs that one mechanism promises -----------


def siege(one, other, multiplier, at=None):
    """The most significant violation over the pairs (epsilon, delta) that this noise promises.

    One noise level is one group of pairs, delta = delta(multiplier, epsilon); a mechanism that
    breaks any of them breaks what it says. With ``at`` the search is at that pair alone. One half
    of the samples finds the best event, the other half judges it.
    """
    pairs = [at] if at else [(e, calibrate.delta(multiplier, e)) for e in np.linspace(0, 3, 31)]
    half = len(one) // 2
    thresholds = np.quantile(
        np.concatenate([one[:half], other[:half]]), np.linspace(0.02, 0.98, 49)
    )
    best, found = -math.inf, None
    for (epsilon, delta), threshold in itertools.product(pairs, thresholds):
        for a, b in ((one, other), (-other, -one)):
            cut = threshold if a is one else -threshold
            p, q = (a[:half] > cut).mean(), (b[:half] > cut).mean()
            noise = math.sqrt((p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)) / half) + 1e-9
            if (score := (p - math.exp(epsilon) * q - delta) / noise) > best:
                best, found = score, (epsilon, delta, a[half:] > cut, b[half:] > cut)
    epsilon, delta, hits, false = found
    judged = lower(int(hits.sum()), hits.size) > (
        math.exp(epsilon) * upper(int(false.sum()), false.size) + delta
    )
    return judged, (epsilon, delta)


def test_lokna_finds_among_all_pairs_what_the_pair_that_was_asked_for_hides():
    """Noise for half the sensitivity: at (2, 1e-10) too rare to see, at epsilon near 0 plain."""
    rng, n, multiplier = np.random.default_rng(8), 16_000, calibrate.noise_multiplier(2.0, 1e-10)
    draws = multiplier * rng.standard_normal((2, n))
    one, other = 2 + draws[0], draws[1]  # the sensitivity was taken for 1
    assert not siege(one, other, multiplier, at=(2.0, 1e-10))[0]
    judged, (epsilon, _) = siege(one, other, multiplier)
    assert judged and epsilon < 1


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_lokna_breaks_no_pair_that_a_release_promises(neighbors):
    n, far = 16_000, np.array([[1e9, 1e9]])
    tables = (far, -far) if neighbors == "replace" else (np.vstack([far, far * 0]), far * 0)
    region = Ellipsoid.ball(1.0, d=2)
    mechanism = PrivateSum(region, epsilon=2.0, delta=1e-10, neighbors=neighbors)
    samples = []
    for side, table in enumerate(tables):
        total = ExactSum(region).add(table)
        samples.append(
            np.array(
                [
                    mechanism(total, seed=key("siege", side, i), spend_again=True).value.sum()
                    for i in range(n)
                ]
            )
        )
    assert not siege(*samples, mechanism.guarantee.noise_multiplier)[0]
    # The same search sees the same release with half its noise.
    middle = [float(t.sum()) for t in (ExactSum(region).add(t).integers() for t in tables)]
    exact = [m * region.grid for m in middle]
    halved = [e + (s - e) / 2 for e, s in zip(exact, samples, strict=True)]
    assert siege(*halved, mechanism.guarantee.noise_multiplier)[0]
