"""PrivUnitG: the real law, the law of the bits counted exactly, draws against it, an audit."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom, chi2, norm

from ellipsum import noise
from ellipsum.noise_keys import JobKeys
from ellipsum.records import PrivUnit, priv_unit_sampler
from ellipsum.records.priv_unit import UnitLaw, best_law
from ellipsum.records.priv_unit_sampler import Sampler

TRUTH = Path(__file__).parents[2] / "shared/data/records_truth.json"
KEY = bytes(range(32))


# ---- the real law --------------------------------------------------------------------


def test_threshold_probability_scale_and_variance_are_those_of_the_table():
    if not TRUTH.exists():
        pytest.skip("the reference table is not beside this checkout")
    for case in json.loads(TRUTH.read_text())["privunitg"]["cases"]:
        unit = PrivUnit(case["d"], case["epsilon"])
        assert unit.threshold == pytest.approx(case["threshold"], abs=2e-7)
        assert unit.probability == pytest.approx(float(case["p"]), rel=1e-7)
        assert unit.scale == pytest.approx(float(case["scale"]), rel=1e-7)
        assert unit.variance == pytest.approx(float(case["variance_per_coordinate"]), rel=1e-12)


@pytest.mark.parametrize(("d", "epsilon", "g"), [(3, 0.5, 0.2), (10, 4.0, 1.4), (1, 9.0, 3.0)])
def test_moments_are_the_integrals_of_the_density(d, epsilon, g):
    law = UnitLaw(d, epsilon, g)
    sides = (law.probability / norm.sf(g), (1 - law.probability) / norm.cdf(g))
    assert math.log(sides[0] / sides[1]) == pytest.approx(epsilon, rel=1e-12)

    def moment(k):
        inside = quad(lambda x: x**k * norm.pdf(x), g, np.inf, epsabs=1e-14)[0]
        outside = quad(lambda x: x**k * norm.pdf(x), -np.inf, g, epsabs=1e-14)[0]
        return sides[0] * inside + sides[1] * outside

    assert moment(0) == pytest.approx(1, rel=1e-10)
    assert law.scale * math.sqrt(d) == pytest.approx(moment(1), rel=1e-9)
    energy = (moment(2) + d - 1) / d / law.scale**2
    assert law.variance == pytest.approx((energy - 1) / d, rel=1e-9)
    assert law.floor + law.along == pytest.approx(moment(2) / moment(1) ** 2, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 2.0, 10.0, 60.0])
def test_no_other_threshold_has_less_variance(epsilon):
    best = best_law(50, epsilon)
    for factor in (0.5, 0.9, 0.999, 1.001, 1.1, 2.0):
        assert UnitLaw(50, epsilon, best.threshold * factor).variance > best.variance


def test_it_has_a_tenth_of_the_gaussian_noise():
    from ellipsum import calibrate

    for epsilon in (1.0, 2.0, 4.0, 8.0, 16.0):
        gaussian = (2 * calibrate.noise_multiplier(epsilon, 1e-6)) ** 2
        assert 10 < gaussian / PrivUnit(100, epsilon).variance < 14


# ---- the law of the bits, counted ------------------------------------------------------


def directions(sampler, most=None):
    """All integer vectors that `quantise` may give (or an even choice of them)."""
    reach = math.ceil(sampler.length + sampler.norm_slack)
    axes = np.meshgrid(*[np.arange(-reach, reach + 1)] * sampler.d, indexing="ij")
    q = np.stack(axes, axis=-1).reshape(-1, sampler.d)
    norms = np.sqrt((q * q).sum(axis=1))
    q = q[np.abs(norms - sampler.length) <= sampler.norm_slack]
    return q if most is None else q[:: max(1, len(q) // most)]


def outcomes(sampler, reach):
    """Integer vectors within reach standard deviations, their P0, one column for each axis."""
    last = math.ceil(reach * sampler.sigma)
    z = np.arange(-last, last + 1)
    axes = np.meshgrid(*[z] * sampler.d, indexing="ij")
    return np.stack(axes, axis=-1).reshape(-1, sampler.d)


def log_pmf(z, sigma):
    """log P(round(sigma N) = z), summed over the axes."""
    near = np.abs(z)
    low, high = ndtr(-(near + 0.5) / sigma), ndtr(-(near - 0.5) / sigma)
    return np.log(high - low).sum(axis=-1)


def output_law(sampler, z, q):
    """log of P(proposal = z and kept): an independent evaluation of the sampler's definition."""
    s, norm2 = z @ q, int(q @ q)
    theta = round(sampler.threshold * sampler.sigma * math.sqrt(norm2))
    plain = sampler.w0 * np.exp(log_pmf(z, sampler.sigma))
    if sampler.w1:
        plain += sampler.w1 * np.exp(log_pmf(z - sampler.shift * q, sampler.sigma))
    chance = sampler._chance(s, np.full(len(s), norm2), s >= theta)
    assert chance.max() < 1
    return np.log(plain) + np.log(chance)


def counted_epsilon(sampler, reach, most=None):
    """The largest log ratio of two outputs' probabilities, over all (chosen) directions."""
    z = outcomes(sampler, reach)
    top, bottom = np.full(len(z), -np.inf), np.full(len(z), np.inf)
    for q in directions(sampler, most):
        law = output_law(sampler, z, q)
        law -= np.logaddexp.reduce(law)
        np.maximum(top, law, out=top)
        np.minimum(bottom, law, out=bottom)
    return float((top - bottom).max())


# d, epsilon, bits of sigma and of L, standard deviations counted, directions
GRIDS = [
    (1, 1.0, 7, 4, 20.0, None),
    (1, 6.0, 8, 4, 20.0, None),
    (2, 0.5, 4, 4, 8.0, 60),
    (2, 4.0, 6, 4, 5.5, 24),
]


def small_sampler(d, epsilon, grid_bits, direction_bits):
    g = best_law(d, epsilon).threshold
    return Sampler(d, epsilon, g, grid_bits=grid_bits, direction_bits=direction_bits)


@pytest.mark.parametrize("case", GRIDS)
def test_the_counted_epsilon_is_at_most_the_claimed_one_and_near(case):
    d, epsilon, grid_bits, direction_bits, reach, most = case
    sampler = small_sampler(d, epsilon, grid_bits, direction_bits)
    counted = counted_epsilon(sampler, reach, most)
    assert counted <= epsilon
    assert counted >= epsilon - 1.5 * sampler.slack


@pytest.mark.parametrize("case", GRIDS[:2])
def test_the_count_sees_a_sampler_that_gives_more(case):
    d, epsilon, grid_bits, direction_bits, reach, most = case
    sampler = small_sampler(d, epsilon, grid_bits, direction_bits)
    sampler.outside *= math.exp(-2 * sampler.slack)
    assert counted_epsilon(sampler, reach, most) > epsilon


def test_the_sides_have_the_chance_that_the_slack_is_made_of():
    """|P0(s >= theta) - Phi(-g)| in terms of g: at most sqrt(d)/2 sigma, over all directions."""
    sampler = small_sampler(2, 1.0, 4, 4)
    z = outcomes(sampler, 10.0)
    p0 = np.exp(log_pmf(z, sampler.sigma))
    tau = math.sqrt(2) / 2 / sampler.sigma + 1e-9
    seen = []
    for q in directions(sampler):
        theta = round(sampler.threshold * sampler.sigma * math.sqrt(q @ q))
        side = float(p0[z @ q >= theta].sum())
        assert ndtr(-sampler.threshold - tau) <= side <= ndtr(-sampler.threshold + tau)
        seen.append(side)
    assert max(seen) - min(seen) > 0.1 * (ndtr(-sampler.threshold + tau) - ndtr(-sampler.threshold))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0, 8.0, 16.0, 40.0])
@pytest.mark.parametrize("d", [1, 30, 1000, 65536])
def test_the_slack_is_small_and_every_chance_below_one(d, epsilon):
    sampler = Sampler(d, epsilon, best_law(d, epsilon).threshold)
    assert 0 < sampler.slack < 5e-6 * max(epsilon, 1) ** 1.5
    assert sampler.epsilon0 + sampler.slack <= epsilon * (1 + 1e-15)
    assert sampler.w0 + sampler.w1 == 1
    norm2 = np.array([(sampler.length + s * sampler.norm_slack) ** 2 for s in (-1, 0, 1)])
    theta = np.rint(sampler.threshold * sampler.sigma * np.sqrt(norm2)).astype(np.int64)
    n2 = norm2.astype(np.int64)
    assert sampler._chance(theta, n2, np.ones(3, bool)).max() < 1
    far = (-31.2 * math.sqrt(d) * sampler.sigma * np.sqrt(norm2)).astype(np.int64)
    assert sampler._chance(far, n2, np.zeros(3, bool)).max() < 1
    assert 31.2 * math.sqrt(d) * sampler.sigma * float(np.sqrt(norm2).max()) < 2.0**63


def test_the_expected_trials_are_few_at_any_epsilon():
    """Plain rejection takes 285 at epsilon = 8 and 341,266 at 16."""
    trials = [PrivUnit(100, e).trials for e in (0.5, 1, 2, 4, 8, 16)]
    assert trials == sorted(trials)
    assert trials[-1] < 12


# ---- draws -----------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "seed"), [(1.0, 1), (6.0, 2)])
def test_draws_follow_the_counted_law(epsilon, seed):
    """Chi-square over cells of the plane; false alarm 1e-7."""
    sampler = small_sampler(2, epsilon, 7, 4)
    q, count = np.array([13, -9]), 150_000
    drawn = sampler.draw(np.tile(q, (count, 1)), JobKeys(bytes([seed]) * 32))
    z, cell = outcomes(sampler, 5.5), 24
    law = np.exp(output_law(sampler, z, q))
    assert law.sum() * sampler.trials == pytest.approx(1, rel=0.02)

    def cells(points):
        at = np.floor_divide(points + 8 * cell * 4096, cell)
        return at[:, 0] * 1_000_003 + at[:, 1]

    names, where = np.unique(cells(z), return_inverse=True)
    expected = np.bincount(where, law / law.sum()) * count
    at = np.searchsorted(names, cells(drawn)).clip(0, names.size - 1)
    seen = np.bincount(at, minlength=names.size)
    big = expected >= 10
    expected = np.append(expected[big], expected[~big].sum())
    seen = np.append(seen[big], seen[~big].sum())
    statistic = float(((seen - expected) ** 2 / expected).sum())
    assert statistic < chi2.isf(1e-7, expected.size - 1)
    assert statistic > chi2.ppf(1e-7, expected.size - 1)


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 12.0])
def test_releases_are_unbiased_with_the_stated_second_moments(epsilon):
    unit, count = PrivUnit(5, epsilon), 120_000
    v = np.array([3.0, -1.0, 2.0, 0.5, -2.0])
    v /= np.linalg.norm(v)
    t = unit.release(np.tile(7 * v, (count, 1)), seed=5)
    se = np.sqrt(np.diag(np.cov(t.T)) / count)
    assert (np.abs(t.mean(axis=0) - v) < 5.5 * se).all()
    second = t.T @ t / count
    want = unit.law.floor * np.eye(5) + unit.law.along * np.outer(v, v)
    noise_of_it = np.sqrt((t**2).T @ (t**2) / count / count)
    assert (np.abs(second - want) < 5.5 * noise_of_it).all()


def audit(claimed, drawn, count=400_000):
    """Outputs on v's side, drawn under v and under -v: counts with their exact binomial bands.

    Two sides, each of false-alarm rate 1e-7.
    """
    unit = PrivUnit(6, claimed)
    v = np.eye(6)[2]
    flags = []
    for sign, chance in ((1, unit.probability), (-1, unit.probability * math.exp(-claimed))):
        t = PrivUnit(6, drawn).release(np.tile(sign * v, (count, 1)), seed=9)
        beyond = t[:, 2] * unit.law.lead >= unit.threshold
        low, high = binom.interval(1 - 1e-7, count, chance)
        if not low <= np.count_nonzero(beyond) <= high:
            flags.append(sign)
    return flags


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_an_audit_finds_the_claimed_epsilon_from_both_sides(epsilon):
    assert audit(epsilon, epsilon) == []


@pytest.mark.parametrize("factor", [0.97, 1.03])
def test_the_audit_sees_three_percent(factor):
    """One side's chance at least moves by 0.5 %: seven standard errors."""
    assert audit(2.0, 2.0 * factor)


def test_the_same_key_gives_the_same_bits_for_any_threads():
    rows = np.random.default_rng(0).normal(size=(3000, 17))
    unit = PrivUnit(17, 4.0)
    one = unit.release(rows, seed=3, threads=1)
    np.testing.assert_array_equal(one, unit.release(rows, seed=3, threads=2))
    assert (one != unit.release(rows, seed=4)).any()
    assert (unit.release(rows) != unit.release(rows)).any()


# ---- what a row may be -----------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 100])
def test_every_row_becomes_an_allowed_direction(d):
    sampler = PrivUnit(d, 2.0)._sampler
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(400, d)) * 10.0 ** rng.integers(-320, 305, size=(400, 1))
    for value in (np.nan, np.inf, -np.inf, 0.0, 5e-324, 1.7e308):
        odd = np.zeros((1, d))
        odd[0, 0] = value
        rows = np.concatenate([rows, odd, np.full((1, d), value)])
    with np.errstate(all="ignore"):
        q = sampler.quantise(len(rows), rows.__getitem__)
    norms = np.sqrt((q.astype(float) ** 2).sum(axis=1))
    assert (np.abs(norms - sampler.length) <= sampler.norm_slack).all()
    bad = ~np.isfinite(rows).all(axis=1) | (rows == 0).all(axis=1)
    assert bad.sum() >= 3
    assert (q[bad] == sampler.length * np.eye(d, dtype=np.int64)[-1]).all()
    assert PrivUnit(d, 2.0).release(rows).shape == rows.shape  # no error, no warning


def test_a_tied_coin_is_decided_by_more_bits(monkeypatch):
    """chance * 2^64 = whole + rest: what follows the tie accepts with probability rest."""
    sampler = PrivUnit(3, 8.0)._sampler
    norm2 = int(sampler.length) ** 2
    s = int(3.1 * sampler.sigma * sampler.length)
    mp.dps = 60
    exponent = (2 * sampler.shift * mp.mpf(s) - sampler.shift**2 * norm2) / (2 * sampler.sigma**2)
    chance = mp.mpf(sampler.inside) / (sampler.w0 + sampler.w1 * mp.exp(exponent))
    fast = float(sampler._chance(np.array([s]), np.array([norm2]), np.array([True]))[0])
    assert abs(fast / chance - 1) < 2.0**-44
    rest = min(max(chance * 2**64 - int(math.ldexp(fast, 64)), 0), 1)

    def words(value):
        def keystream(n, *, key, nonce=0):
            bits = int(value * 2**128)
            part = (bits >> 64 if nonce == 1 else bits & (2**64 - 1)) if nonce <= 2 else 0
            return np.full(n, part, dtype=np.uint64)

        return keystream

    for value, wanted in (
        (rest * (1 - mp.mpf(10) ** -20), True),
        (rest + mp.mpf(10) ** -20, False),
    ):
        if 0 <= value < 1:
            monkeypatch.setattr(noise, "keystream", words(value))
            assert sampler._decide(s, norm2, True, KEY, 0) is wanted


def test_arguments_out_of_range_are_named():
    for d in (0, 2.5, True, 1 << 17):
        with pytest.raises(ValueError, match="d must be a whole number"):
            PrivUnit(d, 1.0)
    with pytest.raises(ValueError, match="epsilon must be"):
        PrivUnit(3, 0.0)
    with pytest.raises(ValueError, match="epsilon must be at most 128"):
        PrivUnit(3, 1000.0)
    with pytest.raises(ValueError, match="rows must have shape"):
        PrivUnit(3, 1.0).release(np.zeros((4, 2)))
    for epsilon in (5e-324, 1e-300, 1e-160, 2.0**-36 * (1 - 2.0**-53)):
        with pytest.raises(ValueError, match="epsilon must be at least 2\\^-36"):
            PrivUnit(2, epsilon)


@pytest.mark.parametrize("d", [1, 2, 1 << 16])
def test_the_least_epsilon_has_room_for_its_slack_in_every_dimension(d):
    unit = PrivUnit(d, 2.0**-36)
    assert unit.slack < unit.epsilon / 2 and unit.trials < 2
    assert np.isfinite(unit.variance) and np.isfinite(unit.release(np.ones((2, d)))).all()


def test_a_variance_beyond_doubles_is_infinite():
    law = UnitLaw(2, 1e-300, 0.5)
    assert law.floor == law.variance == math.inf and 0 < law.scale < 1e-299


@pytest.mark.parametrize("d", [3, 60, 9001])
def test_directions_do_not_depend_on_the_blocks_that_they_are_made_in(monkeypatch, d):
    rows = np.random.default_rng(d).standard_normal((41, d)) * 10.0 ** np.arange(-20, 21)[:, None]
    rows[7], rows[11, 1], rows[40, 0] = 0, np.nan, np.inf
    made = len(rows), rows.__getitem__
    with np.errstate(all="ignore"):
        wanted = PrivUnit(d, 4.0)._sampler.quantise(*made)
        for numbers in (d, 3 * d, 39 * d, 40 * d):
            monkeypatch.setattr(priv_unit_sampler, "NUMBERS_PER_BLOCK", numbers)
            np.testing.assert_array_equal(PrivUnit(d, 4.0)._sampler.quantise(*made), wanted)
