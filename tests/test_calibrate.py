"""Calibration against mpmath on both sides, against its own inverses, and against dp-accounting."""

import math
import sys

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipsum import calibrate

DIGITS = 60
EPSILONS = [1e-4, 1e-3, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0]
DELTAS = [1e-300, 1e-200, 1e-100, 1e-30, 1e-15, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.7, 1 - 1e-9]
MULTIPLIERS = [1e-3, 0.01, 0.1, 0.3, 0.5, 1.0, 2.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e8]


def true_delta(s, eps):
    """Balle & Wang (2018), Theorem 8, with digits to spare for the difference."""
    with mp.workdps(DIGITS + 40):
        s, eps = mp.mpf(s), mp.mpf(eps)
        a, b = eps * s - 1 / (2 * s), eps * s + 1 / (2 * s)
        return (mp.erfc(a / mp.sqrt(2)) - mp.exp(eps) * mp.erfc(b / mp.sqrt(2))) / 2


def assert_just_above(value, truth, tolerance, what):
    excess = mp.mpf(value) / truth - 1
    assert 0 <= excess <= tolerance, (
        f"{what}: got {value!r}, true {mp.nstr(truth, 20)}, relative excess "
        f"{mp.nstr(excess, 5)} outside [0, {tolerance}]"
    )


# --- the analytic bound, on both sides of the truth ---


@pytest.mark.parametrize("s", MULTIPLIERS)
def test_delta_is_never_below_the_truth_and_hardly_above(s):
    for eps in [0.0, 1e-9, *EPSILONS]:
        truth = true_delta(s, eps)
        if truth > 1e-305:
            a, b = eps * s - 0.5 / s, eps * s + 0.5 / s
            assert_just_above(
                calibrate.delta(s, eps), truth, 1e-13 * (1 + abs(a) * b), f"delta({s}, {eps})"
            )


@pytest.mark.parametrize("eps", EPSILONS)
def test_noise_multiplier_is_never_below_the_truth_and_hardly_above(eps):
    for target in DELTAS:
        s = calibrate.noise_multiplier(eps, target)
        assert true_delta(s, eps) <= mp.mpf(target), (eps, target, s)
        assert true_delta(s * (1 - 1e-12), eps) > mp.mpf(target), (eps, target, s)


@pytest.mark.parametrize("s", MULTIPLIERS)
def test_epsilon_is_never_below_the_truth_and_hardly_above(s):
    for target in DELTAS:
        eps = calibrate.epsilon(s, target)
        assert true_delta(s, eps) <= mp.mpf(target), (s, target, eps)
        less = eps * (1 - 1e-12) - 1e-12 / s
        if less > 0:
            assert true_delta(s, less) > mp.mpf(target), (s, target, eps)


def test_the_direct_difference_would_not_have_done():
    # The corner that the integral is there for: both tails agree in every digit of a double.
    s, eps = 1e6, 3.7e-5
    a, b = eps * s - 0.5 / s, eps * s + 0.5 / s
    direct = 0.5 * math.erfc(a / 2**0.5) - math.exp(eps) * 0.5 * math.erfc(b / 2**0.5)
    truth = true_delta(s, eps)
    assert abs(direct / truth - 1) > 1e-6
    assert_just_above(calibrate.delta(s, eps), truth, 2e-12, "delta")


def test_both_forms_of_the_difference_of_mills_ratios_keep_the_stated_slack():
    for a in [-1.0, -0.5, 0.0, 0.4, 2.0, 7.0, 20.0, 39.0]:
        unit = 1 + abs(a)
        for m in [1e-200, 1e-9, 0.1, 0.5 * unit, 0.999 * unit, 1.001 * unit, 3 * unit, 1e3]:
            with mp.workdps(300):
                mills = [
                    mp.erfc(x / mp.sqrt(2)) * mp.exp(x * x / 2) * mp.sqrt(mp.pi / 2)
                    for x in (mp.mpf(a), mp.mpf(a) + mp.mpf(m))
                ]
                error = abs(mp.mpf(calibrate._mills_difference(a, m)) / (mills[0] - mills[1]) - 1)
            assert error < calibrate.KERNEL_SLACK, (a, m, float(error))


# --- edges ---


def test_delta_below_every_double_is_the_smallest_double_and_not_zero():
    assert calibrate.delta(10.0, 100.0) == math.ulp(0.0)
    assert calibrate.delta(1e300, 1e300) == math.ulp(0.0)


def test_delta_near_one_stays_at_most_one():
    assert calibrate.delta(1e-3, 0.0) == 1.0
    assert calibrate.delta(1e-300, 1.0) == 1.0


def test_no_epsilon_is_needed_where_total_variation_is_enough():
    s = 1e6
    assert calibrate.epsilon(s, calibrate.delta(s, 0.0) * (1 + 1e-9)) == 0.0


def test_where_no_finite_double_is_enough_the_answer_is_infinite():
    assert calibrate.noise_multiplier(5e-324, 5e-324) == math.inf
    assert calibrate.noise_multiplier(mu=5e-324) == math.inf
    assert calibrate.epsilon(1e-200, 1e-6) == math.inf


# --- rho and mu ---


@settings(derandomize=True)
@given(s=st.floats(1e-3, 1e9))
def test_rho_and_mu_are_the_least_doubles_on_the_safe_side(s):
    assert_just_above(calibrate.mu(s), 1 / mp.mpf(s), 2.0**-52, "mu")
    with mp.workdps(DIGITS):
        assert_just_above(calibrate.rho(s), 1 / (2 * mp.mpf(s) ** 2), 2.0**-52, "rho")


@settings(derandomize=True)
@given(value=st.floats(1e-12, 1e9))
def test_noise_for_rho_and_mu_is_the_least_double_on_the_safe_side(value):
    with mp.workdps(DIGITS):
        for_mu, for_rho = 1 / mp.mpf(value), 1 / mp.sqrt(2 * mp.mpf(value))
        assert_just_above(calibrate.noise_multiplier(mu=value), for_mu, 2.0**-52, "mu")
        assert_just_above(calibrate.noise_multiplier(rho=value), for_rho, 2.0**-52, "rho")


def test_extremes_of_rho_and_mu_stay_on_the_safe_side():
    assert calibrate.rho(1e-200) == math.inf
    assert calibrate.rho(1e200) == math.ulp(0.0)
    assert calibrate.mu(5e-324) == math.inf


def test_joint_release_of_sum_and_count_is_one_gaussian_mechanism():
    # noise 3 on a sum of sensitivity 2, and 4 on a count: mu^2 = (2/3)^2 + (1/4)^2
    joint = math.hypot(2 / 3, 1 / 4)
    parts = calibrate.rho(3 / 2) + calibrate.rho(4.0)
    assert calibrate.rho(1 / joint) == pytest.approx(parts, rel=1e-14)


# --- inverses and monotonicity ---

guarantees = {"eps": st.floats(1e-4, 100), "log10": st.floats(-300, -1e-3)}


@settings(max_examples=50, deadline=None, derandomize=True)
@given(**guarantees)
def test_inverses_agree(eps, log10):
    target = 10.0**log10
    s = calibrate.noise_multiplier(eps, target)
    back = calibrate.delta(s, eps)
    assert abs(math.log(back / target)) < 1e-11 * (1 + abs(math.log(target)) + 1 / s), (s, back)
    assert calibrate.epsilon(s, target) == pytest.approx(eps, rel=1e-9, abs=1e-12 / s)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(**guarantees, more=st.floats(1.0001, 10))
def test_more_noise_for_a_smaller_epsilon_or_delta(eps, log10, more):
    target = 10.0**log10
    s = calibrate.noise_multiplier(eps, target)
    assert calibrate.noise_multiplier(eps / more, target) > s
    assert calibrate.noise_multiplier(eps, target / more) > s
    assert calibrate.epsilon(s * more, target) < calibrate.epsilon(s, target)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(s=st.floats(1e-2, 1e6), eps=st.floats(0, 50), more=st.floats(1.0001, 10))
def test_delta_falls_with_noise_and_with_epsilon(s, eps, more):
    here = calibrate.delta(s, eps)
    there = calibrate.delta(s * more, eps)
    assert there < here or here > 0.999 or here < 1e-305
    assert calibrate.delta(s, eps * more) <= here * (1 + 1e-12)


# --- an independent accountant ---


@pytest.mark.parametrize(("eps", "target"), [(0.1, 1e-5), (1.0, 1e-6), (1.0, 1e-10), (8.0, 1e-5)])
def test_the_privacy_loss_accountant_agrees(eps, target):
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import PLDAccountant

    s = calibrate.noise_multiplier(eps, target)
    accountant = PLDAccountant(
        NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=1e-4
    )
    accountant.compose(calibrate.dp_event(s))
    assert accountant.get_epsilon(target) == pytest.approx(eps, rel=2e-3)
    assert accountant.get_delta(eps) == pytest.approx(target, rel=2e-2)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("count", [1, 5])
def test_the_accountants_charge_what_was_asked_under_the_relation_that_is_named(neighbors, count):
    """Both accountants of the package: the privacy loss one to its rounding, the Renyi one from
    above. Under REPLACE_ONE the first would charge 2.12 for 1.0."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    s = calibrate.noise_multiplier(1.0, 1e-6) * math.sqrt(count)
    event, relation = calibrate.dp_event(s, count), calibrate.dp_relation(neighbors)
    exact = PLDAccountant(relation).compose(event)
    assert 1 - 1e-9 <= exact.get_epsilon(1e-6) <= 1 + 1e-6
    assert 1 - 1e-9 <= exact.get_delta(1.0) / 1e-6 <= 1 + 1e-6
    assert 1 <= RdpAccountant(neighboring_relation=relation).compose(event).get_epsilon(1e-6) < 1.2
    other = PLDAccountant(NeighboringRelation.REPLACE_ONE).compose(event)
    assert other.get_epsilon(1e-6) > 2  # why dp_relation is there


@pytest.mark.parametrize("count", [1, 7])
def test_the_renyi_accountant_bounds_ours_from_above(count):
    from dp_accounting.rdp import RdpAccountant

    s, target = 3.0, 1e-6
    accountant = RdpAccountant().compose(calibrate.dp_event(s, count))
    ours = calibrate.epsilon(s / math.sqrt(count), target)
    assert ours < accountant.get_epsilon(target) < 1.2 * ours


def test_the_event_carries_noise_and_count():
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent

    assert calibrate.dp_event(2.5) == GaussianDpEvent(2.5)
    assert calibrate.dp_event(2.5, 4) == SelfComposedDpEvent(GaussianDpEvent(2.5), 4)
    assert calibrate.dp_event(2.5, np.int64(4)) == calibrate.dp_event(2.5, 4)


def test_without_dp_accounting_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    for call in (lambda: calibrate.dp_event(1.0), lambda: calibrate.dp_relation("replace")):
        with pytest.raises(ImportError, match="pip install dp-accounting"):
            call()


# --- bad input ---


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda: calibrate.noise_multiplier(0.0, 1e-6), ValueError, "epsilon must be .* above 0"),
        (lambda: calibrate.noise_multiplier(-1, 1e-6), ValueError, "epsilon must be .* above 0"),
        (lambda: calibrate.noise_multiplier(math.inf, 0.1), ValueError, "epsilon must be a finite"),
        (lambda: calibrate.noise_multiplier(1, 0.0), ValueError, "delta must lie strictly"),
        (lambda: calibrate.noise_multiplier(1, 1), ValueError, "delta must lie strictly"),
        (lambda: calibrate.noise_multiplier(1, math.nan), ValueError, "delta must lie strictly"),
        (lambda: calibrate.noise_multiplier("1", 0.1), TypeError, "epsilon must be a number"),
        (lambda: calibrate.noise_multiplier(), ValueError, "exactly one guarantee.*got none"),
        (lambda: calibrate.noise_multiplier(1.0), ValueError, "one guarantee.*got epsilon"),
        (lambda: calibrate.noise_multiplier(rho=1, mu=1), ValueError, "got rho, mu"),
        (lambda: calibrate.noise_multiplier(1, 0.1, mu=1), ValueError, "got epsilon, delta, mu"),
        (lambda: calibrate.noise_multiplier(rho=0), ValueError, "rho must be .* above 0"),
        (lambda: calibrate.noise_multiplier(mu=-1), ValueError, "mu must be .* above 0"),
        (lambda: calibrate.epsilon(0, 0.1), ValueError, "noise_multiplier must be .* above 0"),
        (lambda: calibrate.epsilon([1.0], 0.1), TypeError, "noise_multiplier must be a number"),
        (lambda: calibrate.delta(1, -1e-9), ValueError, "epsilon must be .* 0 or above"),
        (lambda: calibrate.delta(math.nan, 1), ValueError, "noise_multiplier must be a finite"),
        (lambda: calibrate.rho(-1), ValueError, "noise_multiplier must be .* above 0"),
        (lambda: calibrate.mu(math.inf), ValueError, "noise_multiplier must be a finite"),
        (lambda: calibrate.dp_event(1.0, 0), ValueError, "count must be at least 1"),
        (lambda: calibrate.dp_event(1.0, 1.5), TypeError, "count must be a whole number"),
    ],
)
def test_bad_input_is_one_clear_sentence(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call()


@pytest.mark.parametrize("epsilon", [1e308, 1e200, 1e154, 5e-324])
@pytest.mark.parametrize("delta", [5e-324, 1e-300, 0.5, 1 - 2.0**-53])
def test_the_ends_of_the_doubles_have_an_answer(epsilon, delta):
    """For a huge epsilon mu^2/2 = epsilon to many digits: s = 1/sqrt(2 epsilon)."""
    s = calibrate.noise_multiplier(epsilon, delta)
    assert s > 0
    if epsilon > 1:
        assert s == pytest.approx(math.sqrt(0.5) / math.sqrt(epsilon), rel=1e-6)
        assert calibrate.epsilon(s, delta) <= epsilon * (1 + 1e-6)
