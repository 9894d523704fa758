"""GaussianPair where kappa - 1 and c^2 have any size that a double has."""

from __future__ import annotations

import math
import warnings

import mpmath as mp
import numpy as np
import pytest

from ellipsum.records import GaussianPair

LARGEST = 2.0**500  # kappa, 1/kappa, c^2: beyond, delta is 1


@pytest.fixture(autouse=True)
def strict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def digits(*values):
    """Enough for what cancels: an event's two probabilities agree to all digits of these."""
    return 60 + int(sum(2 * abs(math.log10(abs(v))) for v in values if v))


def exact(e, m, epsilon):
    """m times the term e, no shift: the laws of chi-squares of m degrees."""
    with mp.workdps(digits(e)):
        kappa, m, epsilon = 1 + mp.mpf(e), mp.mpf(m), mp.mpf(epsilon)
        edge = (epsilon + m * mp.log(kappa) / 2) / mp.mpf(e)
        if edge <= 0:
            return 1 - mp.exp(epsilon) if e > 0 else mp.mpf(0)
        ends = ((edge, mp.inf), (kappa * edge, mp.inf)) if e > 0 else ((0, edge), (0, kappa * edge))
        one, other = (mp.gammainc(m / 2, *end, regularized=True) for end in ends)
        return one - mp.exp(epsilon) * other


def exact_shifted(e, c2, epsilon):
    """One term with a shift: the loss is above epsilon outside or inside an interval."""
    with mp.workdps(digits(e, c2)):
        e, epsilon, c = mp.mpf(e), mp.mpf(epsilon), mp.sqrt(mp.mpf(c2))
        kappa = 1 + e
        square = 2 / e * (epsilon + kappa * c * c / (2 * e) + mp.log(kappa) / 2)
        if square <= 0:
            return 1 - mp.exp(epsilon) if e > 0 else mp.mpf(0)
        r, found = mp.sqrt(square), []
        for center, half in ((kappa * c / e, r), (c * mp.sqrt(kappa) / e, r * mp.sqrt(kappa))):
            if e > 0:
                found.append(mp.ncdf(center - half) + mp.ncdf(-center - half))
            else:
                found.append(mp.ncdf(half - center) - mp.ncdf(-half - center))
        return found[0] - mp.exp(epsilon) * found[1]


def check(pair, epsilon, true, above=2e-12):
    got = float(pair.delta(epsilon))
    assert 0 <= got <= 1 and (true < 1e-320 or got >= true), (epsilon, got, mp.nstr(true, 20))
    assert true < 1e-280 or got <= true * (1 + above), (epsilon, got, mp.nstr(true, 20))


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 4, 758])
def test_one_term_of_any_size_and_multiplicity(m):
    for e in (1e-310, 1e-100, 1e-70, 1e-18, 1e-15, 1e-9, 0.3, 40.0, 1e12, 1e60, 1e140):
        for sign in (1, -1) if e < 1 else (1,):
            pair = GaussianPair.from_spectrum([sign * e], 0, [m])
            size = math.sqrt(m) * e if e < 1 else math.log(e)
            for epsilon in (0.0, 0.6 * size, 4 * size):
                check(pair, epsilon, exact(sign * e, m, epsilon))
            for delta in (1e-300, 1e-6, 0.3):
                epsilon = float(pair.epsilon(delta))
                assert float(pair.delta(epsilon)) <= delta
            assert float(pair.reverse.delta(0.0)) >= float(pair.delta(0.0)) * (1 - 1e-12)
    for bits in (10, 20, 30, 38, 42, 46, 50, 52):  # kappa near 0, delta near 1
        pair = GaussianPair.from_spectrum([-1 + 2.0**-bits], 0, [m])
        for epsilon in (0.0, 1e-3, 1.0, 5.0):
            check(pair, epsilon, exact(-1 + 2.0**-bits, m, epsilon))


def test_a_shifted_term_of_any_size():
    rng = np.random.default_rng(0)
    for k in range(25):
        e = float(rng.choice([-1, 1]) * 10 ** rng.uniform(-60, 0))
        c2 = float(10 ** rng.uniform(-90, 4))
        size = max(math.sqrt(c2), c2, abs(e))
        pair = GaussianPair.from_spectrum([e], [c2])
        for epsilon in (0.0, size * float(10 ** rng.uniform(-2, 0.8))):
            check(pair, epsilon, exact_shifted(e, c2, epsilon), above=1e-10)
        assert float(pair.delta(pair.epsilon(1e-6))) <= 1e-6, k


@pytest.mark.slow
def test_terms_of_any_size_side_by_side():
    """No exception, no NaN, and between what the largest alone costs and what it costs with as
    many terms more of a size that is nothing beside it."""
    rng = np.random.default_rng(1)
    for _ in range(25):
        e = rng.choice([-1, 1], 3) * 10 ** rng.uniform(-320, 308, 3)
        e = np.where(e <= -1, -1 + 2.0 ** -rng.integers(1, 53, 3).astype(float), e)
        c2 = np.where(rng.random(3) < 0.5, 0, 10 ** rng.uniform(-320, 308, 3))
        pair = GaussianPair.from_spectrum(e, c2, np.rint(10 ** rng.uniform(0, 4, 3)))
        alone = [GaussianPair.from_spectrum([a], [b]) for a, b in zip(e, c2, strict=True)]
        for way, parts in ((pair, alone), (pair.reverse, [p.reverse for p in alone])):
            for epsilon in (-1.0, 0.0, 1e-9, 1.0, 700.0):
                delta = float(way.delta(epsilon))
                assert max(float(p.delta(epsilon)) for p in parts) <= delta * (1 + 1e-9) + 1e-300
                assert delta <= 1
            assert not any(math.isnan(way.epsilon(d)) for d in (0.0, 1e-300, 1e-6, 0.5))
    for far in ([2 * LARGEST], [-1.0]):
        assert GaussianPair.from_spectrum(far).delta(5.0) == 1
    assert GaussianPair.from_spectrum([1e300]).epsilon(1e-6) == math.inf
    assert GaussianPair.from_spectrum([0.0], [2 * LARGEST]).delta(5.0) == 1


def test_tiny_pairs_below_zero_and_their_bytes():
    pair = GaussianPair.from_spectrum([1e-100, -3e-101], [1e-205, 0], [2, 5])
    assert pair.delta(-1e-100) > pair.delta(0.0) > pair.delta(1e-100) > 0
    wanted = pair.reverse.delta(1e-100) + 1e-100
    assert pair.delta(-1e-100) == pytest.approx(wanted, rel=1e-9)
    assert pair.delta(-1.0) == pytest.approx(-math.expm1(-1.0), rel=1e-12)
    assert pair.delta([-np.inf, np.inf]).tolist()[0] == 1
