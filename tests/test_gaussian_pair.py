"""GaussianPair: delta and epsilon of two Gaussians against references, closed forms and itself."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ellipsum import calibrate
from ellipsum.kernels.backend import use_kernels
from ellipsum.records import GaussianPair
from regions import KERNEL_SETS

REFERENCE = Path(__file__).parent / "reference" / "gaussian_pair.npz"
SHARED = Path(__file__).parents[2] / "shared" / "data" / "records_truth.json"
CONDITIONED = 1e-10  # of delta in epsilon's last digit: beyond, 1e-12 cannot be asked


def reference_pairs():
    """The 500 hard cases: pair, epsilon, delta, -d delta / d epsilon."""
    with np.load(REFERENCE) as stored:
        table = dict(stored)
    ends = np.cumsum(table["size"])
    for i, end in enumerate(ends):
        part = slice(end - table["size"][i], end)
        pair = GaussianPair.from_spectrum(*(table[k][part] for k in ("excess", "shift2", "dof")))
        yield pair, *(float(table[k][i]) for k in ("epsilon", "delta", "slope"))


@pytest.fixture(scope="module")
def hard():
    return list(reference_pairs())


def condition(epsilon, delta, slope):
    """Relative change of delta when epsilon changes by half a unit in its last place."""
    return 2.0**-53 * epsilon * slope / delta


# ---- against references -------------------------------------------------------------------


def test_delta_of_500_hard_pairs_is_never_below_and_hardly_above(hard):
    above, conditions = [], []
    for pair, epsilon, delta, slope in hard:
        value = float(pair.delta(epsilon))
        above.append(value / delta - 1)
        conditions.append(condition(epsilon, delta, slope))
    above, conditions = np.array(above), np.array(conditions)
    assert len(hard) == 500 and min(d for _, _, d, _ in hard) < 1e-270
    assert (above >= 0).all(), np.flatnonzero(above < 0)
    well = conditions < CONDITIONED
    assert np.count_nonzero(well) > 485 and above[well].max() < 1e-12
    # Next to the end of a support delta keeps more digits than epsilon has.
    assert (above[~well] < conditions[~well]).all()


def test_without_its_margin_delta_would_be_below_in_many(hard):
    """So the test above attacks the margin, and not only the integral."""
    below = 0
    for pair, epsilon, delta, _ in hard:
        log_delta = pair._table.hockey_stick(epsilon)[0]
        below += math.exp(log_delta) < delta
    assert below > 100


def test_the_bound_that_stands_in_for_a_doubtful_integral_is_one(hard):
    for pair, epsilon, delta, _ in hard[::3]:
        excess = pair._chernoff(epsilon) - math.log(delta)
        assert 0 < excess < 12, (pair, epsilon)


def test_derivative_of_500_hard_pairs(hard):
    for pair, epsilon, delta, slope in hard:
        _, log_slope, error, _ = pair._table.hockey_stick(epsilon)
        assert abs(math.exp(log_slope) / slope - 1) < error + 1e-13, (pair, epsilon, delta)


def open_truth():
    if not SHARED.exists():
        pytest.skip("the shared reference tables are not here")
    return json.loads(SHARED.read_text())


def with_rounded_inputs(error, pair, epsilon):
    """Allows for kappa, c^2 and epsilon having been rounded to doubles."""
    log_delta, log_slope, _, _ = pair._table.hockey_stick(epsilon)
    return max(error, 8 * 2.0**-53 * epsilon * math.exp(log_slope - log_delta))


def test_shared_truth_both_directions_and_the_inverse():
    import mpmath

    with mpmath.workdps(40):
        checked = 0
        for case in open_truth()["gaussian_pairs"]["cases"]:
            kappas, shifts, dofs = zip(*case["terms"], strict=True)
            pair = GaussianPair.from_spectrum(
                [float(mpmath.mpf(k) - 1) for k in kappas], [float(c) for c in shifts], dofs
            )
            for here, known in ((pair, case["delta_pq"]), (pair.reverse, case["delta_qp"])):
                value, known = float(here.delta(case["epsilon"])), float(known)
                checked += 1
                if known == 0:
                    assert value == 0
                    continue
                allowed = with_rounded_inputs(1e-12, here, case["epsilon"])
                assert abs(value / known - 1) < allowed, (case["id"], value, known)
            found = float(pair.epsilon(case["given_delta"]))
            assert found == pytest.approx(float(case["epsilon_of_delta_pq"]), rel=1e-12, abs=1e-300)
        assert checked == 152


def test_shared_truth_of_matrices():
    for case in open_truth()["gaussian_pairs"]["cases"]:
        if case["family"] == "matrices":
            pair = GaussianPair(**case["params"])
            value = (pair.delta(case["epsilon"]), pair.reverse.delta(case["epsilon"]))
            known = (float(case["delta_pq"]), float(case["delta_qp"]))
            np.testing.assert_allclose(value, known, rtol=1e-10)


def test_shared_truth_of_the_projection():
    """The floor's worst pairs (add-remove, replace) give just the delta asked for."""
    for case in open_truth()["projection"]["cases"]:
        r2 = case["r2"]
        out = r2 / (1 + r2) if case["neighbors"] == "replace" else 0
        pair = GaussianPair.from_leverage(out=out, into=r2, rows=case["rows"])
        worst = max(pair.delta(case["epsilon"]), pair.reverse.delta(case["epsilon"]))
        assert worst == pytest.approx(case["delta"], rel=1e-9)


# ---- closed forms -------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1e-4, 0.03, 1.0, 6.0, 40.0])
def test_equal_covariances_are_the_analytic_gaussian(mu):
    """Köhler (1.7), right as printed with eta = mu^2 / 2; `calibrate` is the second route."""
    pair = GaussianPair.from_spectrum(0, mu * mu)
    for x in (-1.0, 0.5, 4.0, 20.0):
        epsilon = max(mu * (mu / 2 + x), 0.0)
        known = calibrate.delta(1 / mu, epsilon)
        a = epsilon / mu - mu / 2
        assert pair.delta(epsilon) == pytest.approx(known, rel=1e-12 * (2 + abs(a) * (a + mu)))
        if 0 < known < 1:
            assert pair.reverse.delta(epsilon) == pair.delta(epsilon)
    for delta in (0.3, 1e-6, 1e-200):
        known = calibrate.epsilon(1 / mu, delta)
        assert pair.epsilon(delta) == pytest.approx(known, rel=1e-12, abs=1e-12 * mu)


def test_one_row_more_is_a_difference_of_chi_squares():
    """records: the closed form where it does not cancel, out to 10,000 rows and leverage 10."""
    for rows in (1, 20, 1000, 10_000):
        for leverage in (1e-6, 1e-3, 0.1, 10.0):
            s, pair = 1 + leverage, GaussianPair.from_leverage(into=leverage, rows=rows)
            scale = math.sqrt(rows / 2) * leverage
            for epsilon in (0.5 * scale, 1.5 * scale):
                if epsilon > 500:
                    continue
                law, log_s = stats.chi2(rows), rows * math.log1p(leverage)
                tau, other = ((log_s + x) * s / leverage for x in (2 * epsilon, -2 * epsilon))
                known = law.sf(tau / s) - math.exp(epsilon) * law.sf(tau)
                back = law.cdf(other) - math.exp(epsilon) * law.cdf(other / s)
                assert pair.reverse.delta(epsilon) == pytest.approx(known, rel=1e-6, abs=1e-11)
                assert pair.delta(epsilon) == pytest.approx(max(back, 0), rel=1e-6, abs=1e-11)


def test_leverages_are_those_of_the_matrices():
    rng = np.random.default_rng(3)
    table = rng.normal(size=(40, 4))
    gram = table.T @ table
    x, y, m = table[7], 3 * rng.normal(size=4), 5
    inverse = np.linalg.inv(gram)
    short = GaussianPair.from_leverage(x @ inverse @ x, y @ inverse @ y, x @ inverse @ y, m)
    zero = np.zeros(4)
    after = gram - np.outer(x, x) + np.outer(y, y)
    full = GaussianPair(zero, gram, zero, after, rows=m)
    for epsilon in (0.1, 1.0, 5.0):
        assert short.delta(epsilon) == pytest.approx(full.delta(epsilon), rel=1e-9)
        assert short.reverse.delta(epsilon) == pytest.approx(full.reverse.delta(epsilon), rel=1e-9)


# ---- properties ---------------------------------------------------------------------------

excesses = st.floats(-4, 1).map(lambda x: 10.0**x)
terms = st.lists(
    st.tuples(excesses, st.booleans(), st.sampled_from([0.0, 0.01, 1.0, 9.0]), st.integers(1, 30)),
    min_size=1,
    max_size=5,
)


def pair_of(drawn):
    e = [x if up else -x / (1 + x) for x, up, _, _ in drawn]
    return GaussianPair.from_spectrum(e, [c for *_, c, _ in drawn], [m for *_, m in drawn])


@given(terms, st.floats(0, 5))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_the_two_directions_fit_together(drawn, epsilon):
    """delta_pq(-eps) = 1 - e^-eps + e^-eps delta_qp(eps): two integrals of different contours."""
    pair = pair_of(drawn)
    left = float(pair.delta(-epsilon))
    right = -math.expm1(-epsilon) + math.exp(-epsilon) * float(pair.reverse.delta(epsilon))
    assert left == pytest.approx(right, rel=1e-11, abs=1e-290)


@given(terms, st.floats(0.01, 5))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_delta_is_the_difference_of_two_tails(drawn, epsilon):
    pair = pair_of(drawn)
    above = pair.loss().sf(epsilon), pair.reverse.loss().cdf(-epsilon)
    assert pair.delta(epsilon) == pytest.approx(
        above[0] - math.exp(epsilon) * above[1], rel=1e-7, abs=1e-9 * (above[0] + 1e-290)
    )


@given(terms, st.floats(-14, -0.5))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_epsilon_is_the_inverse_on_the_safe_side(drawn, log_delta):
    pair, delta = pair_of(drawn), 10.0**log_delta
    epsilon = float(pair.epsilon(delta))
    assert pair.delta(epsilon) <= delta
    if epsilon > 0:
        assert pair.delta(epsilon * (1 - 1e-12)) > delta or epsilon < 1e-12
        assert pair.delta(epsilon) == pytest.approx(delta, rel=1e-10)


def test_many_epsilons_at_once_are_those_one_by_one(hard):
    for pair, epsilon, _, _ in hard[::25]:
        points = np.concatenate([np.linspace(0, 2 * epsilon, 400), [epsilon, -epsilon, -1e-3]])
        at_once = pair._curve(points)
        alone = np.array([pair._table.hockey_stick(x)[:2] for x in points])
        doubt = np.maximum(at_once[2], 1e-13)
        for j in (0, 1):
            finite = np.isfinite(alone[:, j])
            miss = np.abs(at_once[j][finite] - alone[finite, j])
            assert (np.isfinite(at_once[j]) == finite).all()
            assert (miss < 4 * doubt[finite] + 1e-15 * np.abs(alone[finite, j])).all()
        assert (np.diff(pair.delta(points[:400])) <= 1e-11 * pair.delta(points[:399])).all()


def test_threads_change_no_bit(hard):
    pair = hard[0][0]
    points = np.linspace(0, 10, 3000)
    threaded = GaussianPair._of(pair._s, 3)
    assert np.array_equal(threaded.delta(points), pair.delta(points))


@pytest.mark.parametrize("kernels", KERNEL_SETS)
def test_every_kernel_set_gives_the_same_digits(kernels, hard):
    expected = [pair._table.hockey_stick(epsilon) for pair, epsilon, _, _ in hard[:120]]
    with use_kernels(kernels) as module:
        for (pair, epsilon, _, _), known in zip(hard[:120], expected, strict=True):
            table = module.PairTable(pair._s.rows(), 2.0**-62)
            here = table.hockey_stick(epsilon)
            allowed = 1e-13 + 0.5 * known[2]
            assert here[0] == pytest.approx(known[0], rel=1e-15, abs=allowed)
            assert here[1] == pytest.approx(known[1], rel=1e-15, abs=allowed)
            assert table.cumulants(-0.3) == pytest.approx(pair._table.cumulants(-0.3), rel=1e-12)


@pytest.mark.parametrize("kernels", KERNEL_SETS)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 33, 200])
def test_many_small_terms_are_multiplied_and_padded_without_a_trace(kernels, n):
    """Near and far terms, with and without a shift, beside the twin, which takes each by itself."""
    from ellipsum.kernels.twins.gaussian_pair import PairTable

    rng = np.random.default_rng(n)
    for size in (0.02, 0.9):
        e = rng.uniform(-size, size, n)
        shift2 = np.where(np.arange(n) % 3 == 0, 0.0, rng.uniform(0, 2, n) / n)
        pair = GaussianPair.from_spectrum(e, shift2, np.where(np.arange(n) % 5, 1, 2))
        plain = PairTable(pair._s.rows(), 2.0**-62)
        with use_kernels(kernels) as module:
            table = module.PairTable(pair._s.rows(), 2.0**-62)
            for delta in (0.1, 1e-6, 1e-100):
                epsilon = float(pair.epsilon(delta))
                here, known = table.hockey_stick(epsilon), plain.hockey_stick(epsilon)
                allowed = 1e-13 + 0.5 * known[2]
                assert here[:2] == pytest.approx(known[:2], rel=1e-15, abs=allowed)
                assert here[2] <= 2 * known[2]


# ---- the ends -----------------------------------------------------------------------------


def test_different_spaces_cannot_be_hidden():
    apart = [
        GaussianPair([0, 0], np.diag([1.0, 0]), [0, 0], np.eye(2)),
        GaussianPair([0, 0], np.eye(2), [0, 0], np.diag([1.0, 0])),
        GaussianPair([0, 0], np.diag([1.0, 0]), [0, 1e-9], np.diag([2.0, 0])),
        GaussianPair([0, 0], np.ones((2, 2)), [0.1, 0.2], 2 * np.ones((2, 2))),
        GaussianPair([0, 0], [1.0, 0], [0, 0], [1.0, 1e-9]),
        GaussianPair.from_spectrum([-1.0, 0.2]),
        GaussianPair.from_spectrum([math.inf]),
        GaussianPair.from_leverage(out=1.0),
    ]
    for pair in apart:
        for here in (pair, pair.reverse):
            assert (here.delta([-3.0, 0.0, 50.0, math.inf]) == 1).all()
            assert here.epsilon(0.5) == math.inf and here.renyi(2.0) == math.inf
            assert here.tradeoff(0.3) == 0


def test_shared_singular_spaces_are_reduced():
    """Both live on the line (1, 2); along it they are N(0, 5) and N(1/2, 10), or 5 times less."""
    line = np.array([1.0, 2.0])
    cov = np.outer(line, line)
    pair = GaussianPair(np.zeros(2), cov, 0.5 * line, 2 * cov)
    known = GaussianPair(0.0, 1.0, 0.5, 2.0)
    for epsilon in (0.0, 0.4, 3.0):
        assert pair.delta(epsilon) == pytest.approx(known.delta(epsilon), rel=1e-9)
        assert pair.reverse.delta(epsilon) == pytest.approx(known.reverse.delta(epsilon), rel=1e-9)
    fixed = GaussianPair([3.0, 0.0], [0.0, 1.0], [3.0, 0.5], [0.0, 2.0])
    assert fixed.delta(0.4) == known.delta(0.4)


def test_equal_gaussians_cost_nothing():
    pair = GaussianPair([1, 2], np.eye(2), [1, 2], np.eye(2))
    assert (pair.delta([0.0, 1.0]) == 0).all() and pair.epsilon(1e-300) == 0
    assert pair.delta(-1.0) == pytest.approx(-math.expm1(-1.0), rel=1e-14)
    assert pair.renyi(3.0) == 0 and pair.tradeoff(0.2) == pytest.approx(0.8)


def test_a_loss_that_is_bounded():
    """All kappa < 1: delta is 0 from the end of the support on, and continuous down to it."""
    pair = GaussianPair.from_spectrum([-0.5, -0.25])
    end = 0.5 * (math.log(2) + math.log(4 / 3))
    assert pair.delta(end + 1e-12) == 0 and pair.delta(end * (1 - 1e-15)) > 0
    assert pair.epsilon(0.0) == pytest.approx(end, rel=1e-14)
    assert pair.renyi(math.inf) == pytest.approx(end, rel=1e-14)
    near = np.array([pair.delta(end * (1 - 10.0**-k)) for k in range(3, 15)])
    assert (np.diff(np.log10(near)) < -1.5).all()  # delta falls as the square of the distance
    assert pair.reverse.delta(-end) == pytest.approx(-math.expm1(-end), rel=1e-14)
    assert pair.reverse.delta(1e5) > 0 and pair.reverse.epsilon(0.0) == math.inf


def test_at_the_rounded_end_of_the_support_delta_is_not_taken_for_0():
    """The end lies between two doubles: on the lower one delta is above 0, so both give that."""
    for k in range(40):
        pair = GaussianPair.from_spectrum([-0.01 - 0.02 * k, -0.3])
        end = pair._end
        assert 0 < pair.delta(end) < 1e-28 and pair.delta(np.nextafter(end, 1)) > 0
        assert pair.delta(end * (1 + 1e-14)) == 0
        assert pair.delta(end * (1 - 1e-14)) > pair.delta(end)


def test_values_beyond_the_doubles_are_the_smallest_double():
    pair = GaussianPair.from_spectrum(0, 1.0)
    assert pair.delta(60.0) == math.ulp(0.0) and pair.delta(math.inf) == 0
    assert pair.delta(-math.inf) == 1


def test_wrong_arguments_say_what_is_wrong():
    with pytest.raises(ValueError, match="kappa_minus_one must be -1 or above"):
        GaussianPair.from_spectrum([-1.1])
    with pytest.raises(ValueError, match="shift2 must be 0 or above"):
        GaussianPair.from_spectrum([0.1], [-1])
    with pytest.raises(ValueError, match="dof must be finite and above 0"):
        GaussianPair.from_spectrum([0.1], [0], [0])
    with pytest.raises(ValueError, match="out must be at most 1"):
        GaussianPair.from_leverage(out=1.1)
    with pytest.raises(ValueError, match="cross must be at most"):
        GaussianPair.from_leverage(0.1, 0.1, 0.2)
    with pytest.raises(ValueError, match="positive semidefinite"):
        GaussianPair([0, 0], [[1, 2], [2, 1]], [0, 0], np.eye(2))
    with pytest.raises(ValueError, match="symmetric"):
        GaussianPair([0, 0], [[1, 0.5], [0, 1]], [0, 0], np.eye(2))
    pair = GaussianPair.from_spectrum([0.1])
    with pytest.raises(ValueError, match="NaN"):
        pair.delta(math.nan)
    with pytest.raises(ValueError, match="delta must be from 0 to 1"):
        pair.epsilon(1.5)
