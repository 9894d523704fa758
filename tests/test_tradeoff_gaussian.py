"""Gaussian tradeoffs: closed forms, reference values, their own certificate, samples."""

from __future__ import annotations

import json

import numpy as np
import pytest

import singular_laws
from ellipsum.tradeoff import GaussianTradeoff, gaussian_bottleneck, maxdet
from learned_settings import covariances, draw
from learned_truth import group
from ppan_sampling import least_deviation, off_of

RHO = [0.47, 0.24, 0.85, 0.07, 0.66]


def paired(rho):
    """Covariance of X and Y of unit variances with these correlations, pair by pair."""
    cross = np.diag(rho)
    eye = np.eye(len(rho))
    return np.block([[eye, cross], [cross, eye]])


def random_covariance(d, seed):
    draws = np.random.default_rng(seed).normal(size=(d, d + 2))
    return draws @ draws.T


def arguments(case):
    """(covariance, n_sensitive, observe, noise_variance) of a reference case."""
    given, kind = case["inputs"], case["group"]
    if kind.startswith("scalar"):
        sd = given["var_y"] ** 0.5
        cross = given["rho"] * sd
        return [[1, cross], [cross, sd**2]], 1, kind.removeprefix("scalar_"), 0
    if kind == "rate_distortion_paper":
        own = np.diag(given["var"])
        return np.block([[own, own], [own, own]]), 5, "useful", 0
    if kind.startswith("vector"):
        return paired(given["rho"]), 5, kind.split("_")[1], 0
    if kind == "gaussian_noisy":
        return given["cov"], given["n_sensitive"], "useful", given["noise_var"]
    return given["cov"], given["n_sensitive"], given["observe"], 0


GROUPS = [
    "scalar_useful",
    "scalar_full",
    "vector_useful_paper",
    "rate_distortion_paper",
    "vector_full_paper",
    "gaussian_general",
    "gaussian_noisy",
]


@pytest.mark.parametrize("name", GROUPS)
def test_reference_cases(name):
    for case in group(name):
        covariance, k, observe, noise = arguments(case)
        answer = case["answer"]
        if isinstance(answer, dict):
            answer = answer.get("leakage", answer.get("rate"))
        budget = case["inputs"]["distortion"]
        found = GaussianTradeoff(observe, noise, budget).from_covariance(covariance, k)
        error = abs(found.leakage_ - answer)
        assert error <= max(1e-6 * answer, 1e-9), (case["id"], found.leakage_, answer)
        assert found.gap_ <= 1e-8, case["id"]
        assert found.distortion_ <= budget * (1 + 1e-12)


@pytest.mark.parametrize("rho", [0.1, 0.5, -0.85, 0.99])
@pytest.mark.parametrize("share", [0.01, 0.2, 0.6, 0.99])
def test_scalar_useful_is_proposition_1(rho, share):
    variance = 3.0
    cross = rho * variance**0.5
    found = GaussianTradeoff(distortion=share * variance)
    found.from_covariance([[1, cross], [cross, variance]], 1)
    wanted = -0.5 * np.log(1 - rho**2 + rho**2 * share)
    assert found.leakage_ == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    assert found.matrix_[0, 0] == pytest.approx(1 - share, rel=1e-9)
    assert found.noise_covariance_[0, 0] == pytest.approx(variance * share * (1 - share), rel=1e-9)


@pytest.mark.parametrize("rho", [0.3, 0.8, -0.8])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7])
def test_scalar_full_is_the_geometry_of_two_angles(rho, share):
    found = GaussianTradeoff("full", distortion=share).from_covariance([[1, rho], [rho, 1]], 1)
    theta, phi = np.arccos(abs(rho)), np.arcsin(np.sqrt(share))
    wanted = -np.log(np.sin(theta + phi)) if theta + phi < np.pi / 2 else 0.0
    assert found.leakage_ == pytest.approx(wanted, abs=1e-11)


def test_the_release_has_the_leakage_and_distortion_that_it_states():
    """From the covariance of (X, Y, Z), by determinants: nothing of the solver is used."""
    for observe, noise in (("useful", 0.0), ("full", 0.0), ("useful", 0.7)):
        joint, k = random_covariance(7, 3), 3
        budget = 0.5 * np.trace(joint[k:, k:])
        found = GaussianTradeoff(observe, noise, budget).from_covariance(joint, k)
        pick = np.eye(7)[k:] if observe == "useful" else np.eye(7)
        observed = pick @ joint @ pick.T + noise * np.eye(len(pick))
        released = found.matrix_ @ observed @ found.matrix_.T + found.noise_covariance_
        with_x = joint[:k] @ pick.T @ found.matrix_.T
        values, basis = np.linalg.eigh(released)
        kept = basis[:, values > 1e-9 * values[-1]]  # the release may have fewer dimensions
        released, with_x = kept.T @ released @ kept, with_x @ kept
        left = joint[:k, :k] - with_x @ np.linalg.solve(released, with_x.T)
        leakage = 0.5 * (np.linalg.slogdet(joint[:k, :k])[1] - np.linalg.slogdet(left)[1])
        assert leakage == pytest.approx(found.leakage_, abs=1e-8)
        with_y = joint[k:] @ pick.T @ found.matrix_.T
        full = found.matrix_ @ observed @ found.matrix_.T + found.noise_covariance_
        error = np.trace(joint[k:, k:]) - 2 * np.trace(with_y) + np.trace(full)
        assert error == pytest.approx(found.distortion_, rel=1e-9)
        assert found.distortion_ == pytest.approx(budget, rel=1e-12)


def test_no_random_release_of_the_same_distortion_leaks_less():
    """Affine releases at random, scaled to the budget: the optimum is never beaten."""
    joint, k = random_covariance(5, 11), 2
    rng = np.random.default_rng(0)
    own, cross = joint[k:, k:], joint[:k, k:]
    budget = 0.4 * np.trace(own)
    best = GaussianTradeoff(distortion=budget).from_covariance(joint, k)
    lowest = np.inf
    for _ in range(2000):
        spread = rng.normal(size=(3, 3)) * np.exp(rng.normal())
        noise = spread @ spread.T
        posterior = own - own @ np.linalg.solve(own + noise, own)
        if np.trace(posterior) > budget:
            continue
        seen = cross @ np.linalg.solve(own + noise, cross.T)
        left = np.linalg.slogdet(joint[:k, :k] - seen)[1]
        lowest = min(lowest, 0.5 * (np.linalg.slogdet(joint[:k, :k])[1] - left))
    assert best.leakage_ - best.gap_ < lowest < np.inf


def test_the_certificate_refutes_a_worse_mechanism():
    """At a feasible share that is not optimal the gap is at least what is missing."""
    joint, k = random_covariance(6, 5), 3
    found = GaussianTradeoff(distortion=0.4 * np.trace(joint[k:, k:])).from_covariance(joint, k)
    model = found._model
    gram = model.useful.T @ model.useful / model.known
    tau = (model.total - found.distortion) / model.known
    problem = maxdet.Problem(model.sensitive, gram, tau)
    worse = tau * np.eye(len(gram))
    missing = maxdet.leakage(model.sensitive, worse) - found.leakage_
    assert missing > 1e-3
    for price in (0.1, 1.0, 3.0):
        assert maxdet.certificate(problem, worse, price) >= missing - 1e-10
    optimum = maxdet.solve(problem).share
    for step in (1e-3, 1e-2, 0.1, 0.5):  # near the optimum little is missing: the bound is tight
        between = (1 - step) * optimum + step * worse
        missing = maxdet.leakage(model.sensitive, between) - found.leakage_
        assert 0 < missing
        for price in np.geomspace(0.01, 100, 41):
            assert maxdet.certificate(problem, between, price) >= missing - 1e-10


@pytest.mark.parametrize("observe", ["useful", "full"])
def test_iterative_and_factorised_newton_agree(observe, monkeypatch):
    joint, k = random_covariance(14, 2), 7
    budget = 0.3 * np.trace(joint[k:, k:])
    direct = GaussianTradeoff(observe, distortion=budget).from_covariance(joint, k)
    monkeypatch.setattr(maxdet, "_DENSE", 0)
    iterative = GaussianTradeoff(observe, distortion=budget).from_covariance(joint, k)
    assert iterative.leakage_ == pytest.approx(direct.leakage_, abs=1e-9)
    assert max(iterative.gap_, direct.gap_) <= 1e-9


@pytest.mark.parametrize("observe", ["useful", "full"])
def test_sixty_dimensions_to_the_certificate(observe):
    joint = random_covariance(60, 8)
    found = GaussianTradeoff(observe, distortion=0.2 * np.trace(joint[30:, 30:]))
    found.from_covariance(joint, 30)
    assert 0 < found.leakage_ and found.gap_ <= 1e-8


def test_curve_is_that_of_single_solutions_and_convex():
    joint, k = random_covariance(6, 4), 2
    found = GaussianTradeoff(distortion=1.0e3).from_covariance(joint, k)
    curve = found.curve(points=17)
    assert (np.diff(curve.leakage) <= 1e-10).all()
    assert (np.diff(curve.leakage, 2) >= -1e-9).all()
    assert curve.gap.max() <= 1e-8
    for i in (0, 5, 11):
        single = GaussianTradeoff(distortion=curve.distortion[i]).from_covariance(joint, k)
        assert single.leakage_ == pytest.approx(curve.leakage[i], abs=1e-9)


def test_a_general_observation_is_its_named_special_cases():
    joint, k = random_covariance(5, 9), 2
    budget = 0.4 * np.trace(joint[k:, k:])
    for name, matrix in (("useful", np.eye(5)[k:]), ("full", np.eye(5))):
        mixing = np.random.default_rng(1).normal(size=(len(matrix), len(matrix)))
        named = GaussianTradeoff(name, distortion=budget).from_covariance(joint, k)
        general = GaussianTradeoff(mixing @ matrix, distortion=budget).from_covariance(joint, k)
        assert general.leakage_ == pytest.approx(named.leakage_, abs=1e-9)


def test_units_do_not_matter():
    joint, k = random_covariance(5, 6), 2
    scale = np.array([1e4, 1e-3, 1.0, 1.0, 1.0])
    budget = 0.3 * np.trace(joint[k:, k:])
    one = GaussianTradeoff(distortion=budget).from_covariance(joint, k)
    other = GaussianTradeoff(distortion=budget).from_covariance(joint * np.outer(scale, scale), k)
    assert other.leakage_ == pytest.approx(one.leakage_, abs=1e-9)


def closed_form(observe, rho, budget):
    """Least leakage of a pair of unit variances, to 50 digits, of the doubles given."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(50):
        rho, budget = mpmath.mpf(float(rho)), mpmath.mpf(float(budget))
        if observe == "useful":
            kept = 1 - rho**2 + rho**2 * budget
            return float(-mpmath.log(kept) / 2) if kept > 0 else np.inf
        angle = mpmath.acos(rho) + mpmath.asin(mpmath.sqrt(budget))
        if angle >= mpmath.pi / 2:
            return 0.0
        return float(-mpmath.log(mpmath.sin(angle))) if angle > 0 else np.inf


@pytest.mark.parametrize("observe", ["useful", "full"])
@pytest.mark.parametrize("missing", [0.0, 1e-13, 1e-12, 1e-11, 1e-9, 1e-6, 0.1])
def test_the_gap_covers_what_a_nearly_singular_law_loses(observe, missing):
    """X and Y that are all but the same: between the leakage and its bound lies the optimum."""
    rho = 1 - missing
    for budget in (0.0, 1e-13, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 0.5):
        found = GaussianTradeoff(observe, distortion=budget)
        found.from_covariance([[4, 6 * rho], [6 * rho, 9]], 1)
        wanted = closed_form(observe, 6 * rho / 6, budget / 9)
        case = (budget, found.leakage_, wanted, found.gap_)
        if np.isinf(wanted):
            assert np.isinf(found.leakage_) and found.gap_ == 0, case
        else:
            assert abs(found.leakage_ - wanted) <= found.gap_ * (1 + 1e-4) + 1e-12, case
        assert budget < 1e-4 or found.gap_ < 1e-5, case


def test_the_gap_is_what_the_least_variance_of_the_law_allows():
    """The solver's own part was up to 2e-8 next to the least distortion, at any variance."""
    for seed in range(300):
        law = singular_laws.case(seed)
        allowed = len(law.covariance) * 2.0**-51 / law.least
        assert singular_laws.gap_of(law) <= 2e-9 + allowed, (seed, law.least)


def test_the_gap_covers_sensitive_columns_that_are_all_but_the_same():
    """One useful column: the leakage is -1/2 log(1 - tau R^2), here to 50 digits of the doubles."""
    mpmath = pytest.importorskip("mpmath")
    for missing in (1e-12, 1e-11, 1e-10, 1e-8, 1e-4):
        factor = np.array([[1, 0, 0], [1, missing**0.5, 0], [0.5, 0.6, 0.7]])
        joint = factor @ factor.T
        found = GaussianTradeoff(distortion=0.3 * joint[2, 2]).from_covariance(joint, 2)
        with mpmath.workdps(50):
            exact = mpmath.matrix(joint.tolist())
            cross = exact[:2, 2]
            told = (cross.T * mpmath.lu_solve(exact[:2, :2], cross))[0] / exact[2, 2]
            tau = 1 - mpmath.mpf(found.distortion) / exact[2, 2]
            wanted = float(-mpmath.log(1 - tau * told) / 2)
        assert abs(found.leakage_ - wanted) <= found.gap_ + 1e-12, missing


def test_a_release_that_tells_x_leaks_without_limit():
    """X = Y; X in the span of Y; and X told by a share of Y's variance of 1e-14."""
    same = np.array([[1.0, 1.0], [1.0, 1.0]])
    mixed = (
        np.array([[1, 1], [1, 0], [0, 1]]) @ np.array([[2, 0.3], [0.3, 1]]) @ [[1, 1, 0], [1, 0, 1]]
    )
    faint = np.array([[1, 0, 1e-7], [0, 1, 0], [1e-7, 0, 1e-14]])
    for observe in ("useful", "full"):
        for joint in (same, mixed, faint):
            found = GaussianTradeoff(observe, distortion=0.0).from_covariance(joint, 1)
            assert found.leakage_ == np.inf and found.gap_ == 0
    pairs = paired([1 - 1e-12, 0.5])
    both = GaussianTradeoff("full", distortion=0.0).from_covariance(pairs, 2)
    wanted = closed_form("full", 1 - 1e-12, 0) + closed_form("full", 0.5, 0)
    assert both.leakage_ == pytest.approx(wanted, abs=1e-4) and both.gap_ < 0.01


def test_a_singular_law_is_reduced():
    """Y given twice, and a constant coordinate: the same leakage at twice the distortion."""
    joint = np.array([[1.0, 0.6], [0.6, 1.0]])
    spread = np.array([[1, 0], [0, 1], [0, 1], [0, 0]])
    one = GaussianTradeoff(distortion=0.3).from_covariance(joint, 1)
    twice = GaussianTradeoff(distortion=0.6).from_covariance(spread @ joint @ spread.T, 1)
    assert twice.leakage_ == pytest.approx(one.leakage_, abs=1e-10)


def test_ends_of_the_curve():
    joint = paired(RHO)
    all_of_it = GaussianTradeoff(distortion=0.0).from_covariance(joint, 5)
    assert all_of_it.leakage_ == pytest.approx(-0.5 * np.log1p(-np.square(RHO)).sum(), rel=1e-12)
    nothing = GaussianTradeoff(distortion=5.0).from_covariance(joint, 5)
    assert nothing.leakage_ == 0 and nothing.gap_ == 0 and not nothing.matrix_.any()
    silent = GaussianTradeoff("full", distortion=4.9).from_covariance(joint, 5)
    assert silent.leakage_ == 0 and silent.gap_ == 0


def test_released_rows_have_the_law_stated():
    """40,000 rows; five standard errors of a second moment, fixed seed."""
    joint, k = random_covariance(4, 7), 2
    rows = np.random.default_rng(0).multivariate_normal(np.ones(4), joint, 40_000)
    found = GaussianTradeoff("full", distortion=0.3 * np.trace(joint[k:, k:]))
    found.from_covariance(joint, k, mean=np.ones(4))
    released = found.transform(rows, seed=1)
    assert released.shape == (40_000, 2)
    missed = ((released - rows[:, k:]) ** 2).sum(1)
    error = missed.std() / 200
    assert abs(missed.mean() - found.distortion_) < 5 * error
    again = found.transform(rows, seed=1)
    np.testing.assert_array_equal(released, again)


def test_fit_uses_the_sample_covariance():
    rows = np.random.default_rng(2).multivariate_normal([1, 2], [[1, 0.5], [0.5, 2]], 5000)
    fitted = GaussianTradeoff(distortion=0.5).fit(rows[:, 0], rows[:, 1])
    known = GaussianTradeoff(distortion=0.5).from_covariance(np.cov(rows, rowvar=False), 1)
    assert fitted.leakage_ == known.leakage_
    np.testing.assert_allclose(fitted.mean_useful_, rows[:, 1].mean())


def test_bottleneck_reference_cases():
    for case in group("bottleneck"):
        given, answer = case["inputs"], case["answer"]
        relevance, rates = gaussian_bottleneck(given["canonical_correlations"], given["rate"])
        assert relevance == pytest.approx(answer["relevance"], rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(rates, answer["rates"], atol=1e-9)


def test_what_is_refused():
    joint = [[1.0, 0.5], [0.5, 1.0]]
    with pytest.raises(ValueError, match="fractional part"):
        GaussianTradeoff(distortion=0.1, utility="information").from_covariance(joint, 1)
    with pytest.raises(ValueError, match="distortion must be at least 0\\.5"):
        GaussianTradeoff(noise_variance=1.0, distortion=0.4).from_covariance(joint, 1)
    with pytest.raises(ValueError, match="no negative eigenvalue"):
        GaussianTradeoff(distortion=0.1).from_covariance([[1.0, 2.0], [2.0, 1.0]], 1)
    with pytest.raises(ValueError, match="n_sensitive must be a whole number"):
        GaussianTradeoff(distortion=0.1).from_covariance(joint, 2)
    with pytest.raises(ValueError, match="distortion must be given"):
        GaussianTradeoff().from_covariance(joint, 1)
    with pytest.raises(ValueError, match="correlations must lie in"):
        gaussian_bottleneck([0.5, 1.0], 0.3)


def test_the_guarantee_is_not_differential_privacy():
    found = GaussianTradeoff(distortion=0.5).from_covariance([[1.0, 0.5], [0.5, 1.0]], 1)
    promise = found.guarantee_
    assert promise.kind == "mutual-information-exact" and not promise.is_private
    assert "not differential privacy" in str(promise)
    assert json.loads(json.dumps(promise.to_dict()))["leakage"] == found.leakage_
    with pytest.raises(AttributeError, match="not differential privacy"):
        promise.epsilon(1e-6)


@pytest.mark.parametrize(
    "setting, target, samples", [("scalar, full", 0.3, 40), ("vector, useful", 1.5, 3)]
)
def test_rows_tell_with_which_error_their_distortion_stands_for_the_law(setting, target, samples):
    """That of the closed form; on the law each sample's release is within five of it."""
    observe, covariance, k = covariances()[setting]
    least, off = least_deviation(setting, target, 2000), []
    for seed in range(samples):
        rows = draw(covariance, 2000, seed)
        made = GaussianTradeoff(observe, distortion=target).fit(rows[:, :k], rows[:, k:])
        assert made.distortion_ == pytest.approx(target, rel=1e-6)
        assert made.distortion_error_ / target == pytest.approx(least, rel=0.2)
        off.append(off_of(made, setting))
    assert np.abs(off).max() < 5 * least
    assert samples < 40 or np.std(off) == pytest.approx(least, rel=0.5)
    assert made.from_covariance(covariance, k).distortion_error_ == 0
