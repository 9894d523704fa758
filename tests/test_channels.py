"""Channels: exact epsilon and delta of the bits, closed forms of Blahut and Arimoto."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from ellipsum.records import (
    Channel,
    blahut_arimoto,
    exponential_mechanism,
    information_bottleneck,
)
from learned_truth import channels

WHOLE = 1 << 62


def exact_delta(weights, epsilon):
    """sup over pairs of sum (w - e^eps w')_+ to 60 digits."""
    with mpmath.workdps(60):
        factor = mpmath.exp(mpmath.mpf(epsilon))
        rows = [[int(value) for value in row] for row in weights]
        pairs = ((one, other) for one in rows for other in rows)
        return max(
            mpmath.fsum(max(mpmath.mpf(0), a - factor * b) for a, b in zip(*pair, strict=True))
            for pair in pairs
        ) / mpmath.mpf(WHOLE)


def reference_channel(case):
    kind = case["kind"]
    if kind == "binary":
        return blahut_arimoto([1 - case["p"], case["p"]], 1 - np.eye(2), case["beta"])
    if kind == "uniform":
        n = case["n"]
        return blahut_arimoto(np.full(n, 1 / n), 1 - np.eye(n), case["beta"])
    points = np.linspace(-6, 6, 121)
    law = np.exp(-(points**2) / 2)
    return blahut_arimoto(law / law.sum(), (points[:, None] - points) ** 2 / 2, case["beta"])


def test_blahut_arimoto_reference_cases():
    for case in channels():
        if case["kind"] == "bottleneck_binary_symmetric":
            continue
        found = reference_channel(case)
        grid = case["kind"] == "gaussian_grid"
        tolerance = case.get("tolerance", 1e-10)
        assert found.rate == pytest.approx(case["rate"], abs=tolerance)
        distortion = found.distortion * (2 if grid else 1)
        assert distortion == pytest.approx(case["distortion"], abs=tolerance)
        assert found.gap <= 1e-9
        if not grid:
            wanted = case["epsilon"] or 0.0  # None: the rate is 0, one letter is left
            assert found.channel.epsilon() == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_bottleneck_reference_cases():
    """The file's flips come from a minimisation: about 8 digits of a probability of 7e-8."""
    for case in channels():
        if case["kind"] != "bottleneck_binary_symmetric":
            continue
        e = case["flip"]
        found = information_bottleneck(np.array([[1 - e, e], [e, 1 - e]]) / 2, case["beta"])
        assert found.rate == pytest.approx(case["I_TX"], abs=1e-8)
        assert found.relevance == pytest.approx(case["I_TY"], abs=1e-8)
        assert found.channel.epsilon() == pytest.approx(case["epsilon"], rel=1e-5, abs=1e-9)
        assert found.gap <= 1e-9


def test_bottleneck_channel_to_the_last_digits():
    """Against the root of the derivative in 30 digits."""
    flip, beta = 0.1, 9.0
    with mpmath.workdps(30):

        def slope(a):
            seen = a * (1 - flip) + flip * (1 - a)
            own = mpmath.log((1 - a) / a)
            return -own + beta * (1 - 2 * flip) * mpmath.log((1 - seen) / seen)

        root = mpmath.findroot(slope, (mpmath.mpf("1e-9"), mpmath.mpf("1e-4")), solver="anderson")
        wanted = float(mpmath.log((1 - root) / root))
    found = information_bottleneck(np.array([[1 - flip, flip], [flip, 1 - flip]]) / 2, beta)
    assert found.channel.epsilon() == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("beta", [0.5, 2.0, 6.0])
def test_uniform_source_is_randomised_response(beta):
    """epsilon = beta exactly: half of the 2 beta of Köhler's Theorem 2.2.2."""
    found = blahut_arimoto(np.full(7, 1 / 7), 1 - np.eye(7), beta)
    assert found.channel.epsilon() == pytest.approx(beta, rel=1e-12)
    hit = np.exp(beta) / (np.exp(beta) + 6)
    np.testing.assert_allclose(np.diag(found.channel), hit, rtol=1e-12)


def test_epsilon_never_passes_twice_beta_times_the_range():
    rng = np.random.default_rng(0)
    for _ in range(30):
        cost, law = rng.uniform(size=(5, 6)), rng.dirichlet(np.ones(5))
        found = blahut_arimoto(law, cost, beta := float(rng.uniform(0.1, 8)))
        alive = np.asarray(found.channel).max(0) > 0
        reach = np.ptp(cost[:, alive], axis=0).max()
        assert found.channel.epsilon() <= 2 * beta * reach + 1e-12
        assert found.gap <= 1e-10


def test_letters_taken_out_do_not_count():
    """p = 0.05, beta = 2: the rate is 0, both inputs give the same letter, epsilon is 0."""
    found = blahut_arimoto([0.95, 0.05], 1 - np.eye(2), 2.0)
    assert found.rate == 0 and found.channel.epsilon() == 0 and found.gap <= 1e-12


def test_rows_sum_to_the_whole_exactly():
    rng = np.random.default_rng(1)
    for _ in range(50):
        table = rng.dirichlet(np.full(9, 0.05), 6)
        made = Channel(table)
        assert {sum(int(value) for value in row) for row in made.weights} == {WHOLE}
        np.testing.assert_allclose(made.matrix, table, atol=1e-15)
        assert ((made.weights > 0) == (table > 0)).all()


def test_epsilon_and_delta_are_exact_and_never_below():
    rng = np.random.default_rng(2)
    for spread in (1e-12, 1e-6, 0.1, 1.0, 10.0):
        base = rng.normal(size=6)
        logs = base + spread * rng.uniform(-1, 1, size=(4, 6))
        made = Channel.from_log(logs)
        ratios = [Fraction(int(column.max()), int(column.min())) for column in made.weights.T]
        top = max(ratios)
        with mpmath.workdps(60):
            wanted = mpmath.log(mpmath.mpf(top.numerator) / top.denominator)
            assert 0 <= made.epsilon() - wanted <= 1e-13 * wanted
        for epsilon in (0.0, 0.3 * float(wanted), 0.999 * float(wanted), 1.01 * float(wanted)):
            truth = exact_delta(made.weights, epsilon)
            found = made.delta(epsilon)
            assert found >= truth
            assert found - truth <= 1e-13 * truth + 1e-17


def test_delta_is_zero_from_epsilon_on_and_positive_before():
    made = Channel([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
    assert made.epsilon() == pytest.approx(np.log(4), rel=1e-12)
    assert made.delta(made.epsilon()) <= 1e-15
    assert made.delta(1.0) == pytest.approx(0.4 - np.e * 0.1, rel=1e-12)
    assert made.delta(0.0) == pytest.approx(0.4, rel=1e-12)


def test_an_output_for_one_input_only():
    made = Channel([[0.5, 0.5, 0.0], [0.4, 0.5, 0.1]])
    assert made.epsilon() == np.inf
    for epsilon in (50.0, 800.0, 1e308):
        assert made.delta(epsilon) == pytest.approx(0.1, rel=1e-12)


def test_a_probability_below_the_doubles_stays_positive():
    made = exponential_mechanism([[0.0, 1.0], [1.0, 0.0]], 1e4)
    assert made.weights.min() == 1 and made.epsilon() == pytest.approx(62 * np.log(2), rel=1e-12)


def test_exponential_mechanism():
    cost, prior = np.array([[0.0, 1.0, 2.0], [2.0, 0.5, 0.0]]), np.array([0.2, 0.3, 0.5])
    made = exponential_mechanism(cost, 1.3, prior)
    wanted = prior * np.exp(-1.3 * cost)
    wanted /= wanted.sum(1, keepdims=True)
    np.testing.assert_allclose(made, wanted, rtol=1e-12)
    assert made.epsilon() == pytest.approx(np.log(wanted / wanted[::-1]).max(), rel=1e-12)


def test_draws_have_the_law_of_the_weights():
    """100,000 draws: chi-square with a false-alarm rate below 1e-6, fixed key."""
    from scipy.stats import chi2

    made = Channel([[0.5, 0.25, 0.25, 0.0], [0.1, 0.2, 0.3, 0.4]])
    for row in (0, 1):
        drawn = made.draw(np.full(100_000, row), key=bytes([row + 1] * 16))
        seen, wanted = np.bincount(drawn, minlength=4), 100_000 * made.matrix[row]
        alive = wanted > 0
        assert not seen[~alive].any()
        statistic = ((seen - wanted)[alive] ** 2 / wanted[alive]).sum()
        assert statistic < chi2.isf(1e-7, alive.sum() - 1)


def test_draws_cut_the_bits_where_the_weights_say(monkeypatch):
    """Both ends of every interval of 62-bit integers, exactly."""
    from ellipsum.records import channels as module

    made = Channel([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    for row in (0, 1):
        ends = np.cumsum(made.weights[row])
        bits = np.array([0, ends[0] - 1, ends[0], ends[1] - 1, ends[1], WHOLE - 1], dtype=np.uint64)
        packed = (bits << np.uint64(2)).tobytes()
        monkeypatch.setattr(module.secrets, "token_bytes", lambda n, packed=packed: packed)
        assert made.draw(np.full(6, row)).tolist() == [0, 0, 1, 1, 2, 2]


def test_a_letter_outside_the_alphabet_is_no_error():
    """An error would tell of one person's letter: it counts as the nearest."""
    made = Channel([[1.0, 0.0], [0.0, 1.0]])
    assert made.draw([-5, 0, 1, 2, 99]).tolist() == [0, 0, 1, 1, 1]


def test_what_is_refused():
    with pytest.raises(ValueError, match="must sum to 1"):
        Channel([[0.5, 0.4]])
    with pytest.raises(ValueError, match="none below 0"):
        Channel([[1.5, -0.5]])
    with pytest.raises(ValueError, match="sequence of row numbers"):
        Channel([[1.0]]).draw([[0]])
    with pytest.raises(ValueError, match="probabilities that sum to 1"):
        blahut_arimoto([0.5, 0.4], 1 - np.eye(2), 1.0)
    for letters, error in ((0, ValueError), (-1, ValueError), (2.5, TypeError)):
        with pytest.raises(error, match="letters must be"):
            information_bottleneck([[0.5, 0.0], [0.0, 0.5]], 1.0, letters=letters)
    with pytest.raises(ValueError, match="cost must have 2 rows"):
        blahut_arimoto([0.5, 0.5], np.eye(3), 1.0)
