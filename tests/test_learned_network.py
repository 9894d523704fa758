"""PPAN: learned releases against the certified optimum at the distortion that they reached."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum.learned import PrivacyNetwork, held_out, load  # noqa: E402
from ellipsum.learned.descent import Adam  # noqa: E402
from ellipsum.learned.limit import Limit  # noqa: E402
from ellipsum.tradeoff import (  # noqa: E402
    DiscreteTradeoff,
    GaussianTradeoff,
)
from fresh_attackers import accuracies  # noqa: E402
from learned_information import paired_information, scalar_information  # noqa: E402
from learned_settings import (  # noqa: E402
    MIDDLE,
    covariances,
    draw,
    pairs_observed,
    symmetric_pair,
)
from ppan_sampling import exact_off  # noqa: E402

torch.set_num_threads(1)


@pytest.mark.parametrize("setting", MIDDLE)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_affine_network_reaches_the_optimum(setting, seed):
    """100,000 rows: with the paper's 8,000 the variance of Y alone errs by 1.6 %."""
    observe, covariance, k = covariances()[setting]
    rows = draw(covariance, 100_000, 100 + seed)
    wanted = MIDDLE[setting]
    made = PrivacyNetwork("affine", observe=observe, distortion=wanted, seed=seed)
    made.fit(rows[:, :k], rows[:, k:])
    point = made.evaluate(covariance, k)
    assert -2e-8 <= point.excess <= max(0.02 * point.optimum, 0.005)
    assert point.distortion == pytest.approx(wanted, rel=0.015)
    assert made.guarantee_.kind == "mutual-information-exact"
    with pytest.raises(AttributeError, match="no epsilon"):
        made.guarantee_.epsilon(1e-6)


@pytest.mark.parametrize("setting", MIDDLE)
def test_a_law_that_is_known_is_met(setting):
    observe, covariance, k = covariances()[setting]
    made = PrivacyNetwork("affine", observe=observe, distortion=MIDDLE[setting])
    point = made.fit_covariance(covariance, k).evaluate(covariance, k)
    assert point.distortion == pytest.approx(MIDDLE[setting], rel=1e-9)
    assert made.distortion_ == pytest.approx(point.distortion) and made.distortion_error_ == 0
    assert -2e-8 <= point.excess <= max(0.02 * point.optimum, 0.002)


@pytest.mark.parametrize("setting", MIDDLE)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_the_papers_rows_the_distortion_errs_by_sampling_alone(setting, seed):
    """The limit is met on the 8,000 rows. On the law what is left is tr C(law) - tr C(rows), C
    of Y less its estimate, whatever was learned: so no training keeps 1.5 % there."""
    observe, covariance, k = covariances()[setting]
    rows, wanted = draw(covariance, 8000, 100 + seed), MIDDLE[setting]
    made = PrivacyNetwork("affine", observe=observe, distortion=wanted, seed=seed, steps=60)
    point = made.fit(rows[:, :k], rows[:, k:]).evaluate(covariance, k)
    assert made.distortion_ == pytest.approx(wanted, rel=1e-9)
    left = np.eye(len(covariance))[k:]  # Y - K W as a matrix times (X, Y)
    left = left - made.matrix_ @ (left if observe == "useful" else np.eye(len(covariance)))
    sampled = np.cov(rows, rowvar=False, bias=True)
    moved = np.trace(left @ (covariance - sampled) @ left.T)
    center = left @ rows.mean(0)
    assert made.offset_ == pytest.approx(center)
    assert point.distortion - wanted == pytest.approx(moved + center @ center, abs=1e-8)
    error = (
        2 * np.trace((left @ covariance @ left.T) @ (left @ covariance @ left.T)) / 8000
    ) ** 0.5
    assert made.distortion_error_ == pytest.approx(error, rel=0.1)
    assert abs(point.distortion - wanted) < 5 * error
    # and by no more than the exact optimum of the same rows: this short descent ends beside it
    exact = exact_off(rows, setting, wanted)
    assert point.distortion / wanted - 1 == pytest.approx(exact, abs=1.5e-3)


def test_the_distortion_of_a_network_is_stated_with_its_error():
    _, covariance, _ = covariances()["scalar, useful"]
    rows, new = draw(covariance, 4000, 0), draw(covariance, 40_000, 1)
    made = PrivacyNetwork("gaussian", distortion=0.5, steps=10, batch_size=500)
    made.fit(rows[:, :1], rows[:, 1:])
    seen = ((made.transform(new[:, 1:], seed=0) - new[:, 1:]) ** 2).mean()
    assert made.distortion_error_ == pytest.approx(0.5 * (2 / 4000) ** 0.5, rel=0.2)
    assert abs(made.distortion_ - seen) < 5 * made.distortion_error_


def test_the_affine_evaluation_is_that_of_the_release():
    _, covariance, k = covariances()["vector, full"]
    rows = draw(covariance, 20_000, 5)
    made = PrivacyNetwork("affine", observe="full", distortion=1.0, steps=100)
    made.fit(rows[:, :k], rows[:, k:])
    point = made.evaluate(covariance, k)
    released = made.transform(rows, seed=1)
    assert ((released - rows[:, k:]) ** 2).sum(1).mean() == pytest.approx(
        point.distortion, rel=0.02
    )
    both = np.cov(np.hstack([rows[:, :k], released]), rowvar=False)
    logs = [np.linalg.slogdet(part)[1] for part in (both[:k, :k], both[k:, k:], both)]
    assert 0.5 * (logs[0] + logs[1] - logs[2]) == pytest.approx(point.leakage, abs=0.005)


@pytest.mark.parametrize("mechanism", ["universal", "gaussian", "mixture"])
def test_networks_on_top_stay_at_the_optimum(mechanism, monkeypatch):
    monkeypatch.setattr(held_out, "_STEPS", 300)  # the rest of 600 changes nothing here
    _, covariance, _ = covariances()["scalar, useful"]
    rows = draw(covariance, 8000, 0)
    made = PrivacyNetwork(mechanism, distortion=0.5, components=2, steps=80, batch_size=500)
    made.fit(rows[:, :1], rows[:, 1:])
    test = draw(covariance, 20_000, 1)
    error = ((made.transform(test[:, 1:], seed=0) - test[:, 1:]) ** 2).mean()
    assert error == pytest.approx(0.5, rel=0.06)
    best = GaussianTradeoff(distortion=error).from_covariance(covariance, 1).leakage_
    if mechanism == "universal":
        found = made.measure(test[:, :1], test[:, 1:])
        assert found.distortion == error
        for estimate in (found.plug_in, found.held_out, found.neighbors):
            assert abs(estimate - best) < 0.03  # nearest neighbours err by about 0.01 here
    seen = scalar_information(lambda y: made.transform(y, seed=2), 0.85, 1000, 60)
    assert best - 0.005 <= seen <= best + max(0.03 * best, 0.01)
    assert made.guarantee_.kind == "mutual-information-estimated"


def test_quadrature_sees_what_a_gaussian_plug_in_does_not():
    """Exact for Gaussian noise; uniform noise of the same size tells more, and it says so."""
    rng = np.random.default_rng(0)
    sigma = 1.0
    rho = 0.85 / (1 + sigma**2) ** 0.5
    exact = -0.5 * np.log(1 - rho**2)
    normal = scalar_information(lambda y: y + sigma * rng.normal(size=y.shape), 0.85)
    assert normal == pytest.approx(exact, abs=2e-3)
    width = sigma * 12**0.5
    uniform = scalar_information(lambda y: y + width * (rng.random(y.shape) - 0.5), 0.85)
    assert uniform > exact + 0.01


def test_quadrature_by_pairs_is_exact_for_gaussian_noise_and_sees_uniform_noise():
    """Five pairs, 4,000 draws to each of 41 points: errs by about 0.002 nats."""
    rng = np.random.default_rng(0)
    observe, covariance, k = covariances()["vector, useful"]
    exact = -0.5 * np.log(1 - np.diagonal(covariance[:k, k:]) ** 2 / 2).sum()

    def seen(noise):
        return paired_information(lambda y: y + noise(y.shape), observe, covariance, k, 4000)

    assert seen(lambda shape: rng.normal(size=shape)) == pytest.approx(exact, abs=5e-3)
    assert seen(lambda shape: 12**0.5 * (rng.random(shape) - 0.5)) > exact + 0.015


def test_a_label_is_hidden_from_classifiers_and_pixels_are_kept():
    """Y = (place of the label, a sign): the sign is kept, noise of the same size tells more.

    An adversary that never learns leaves the affine map, whose margin below noise is .11.
    """
    rng = np.random.default_rng(0)
    label, other = rng.integers(0, 3, 2000), rng.choice([-1.0, 1.0], 2000)
    centers = np.array([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])
    y = np.c_[centers[label], 2 * other] + 0.3 * rng.normal(size=(2000, 3))
    made = PrivacyNetwork(sensitive="labels", distortion=3.0, steps=50, batch_size=200)
    made.fit(np.array(["a", "b", "c"])[label[:1000]], y[:1000])
    z = made.transform(y, seed=0)
    error = ((z - y)[1000:] ** 2).sum(1).mean()
    assert error < 3.3
    noisy = y + (error / 3) ** 0.5 * rng.normal(size=y.shape)
    hidden, kept, noise = (
        max(accuracies(rows, v, np.arange(1000, 2000), ("linear", "rbf")).values())
        for rows, v in ((z, label), (z, other), (noisy, label))
    )
    assert hidden < noise - 0.2 and kept > 0.95
    with pytest.raises(ValueError, match="audit to labels"):
        made.measure(label, y)


def told(sign, z):
    """I(sign; z) in nats from 40 bins of 9,000 rows: errs by about 0.006, alike for one seed."""
    place = np.searchsorted(np.quantile(z, np.arange(1, 40) / 40), z)
    table = np.histogram2d(sign, place, (2, 40))[0] / len(z)
    apart, live = np.outer(table.sum(1), table.sum(0)), table > 0
    return float((table[live] * np.log(table[live] / apart[live])).sum())


def test_a_network_keeps_up_with_the_affine_map_where_the_law_is_not_gaussian():
    """X is the sign of Y's first coordinate; of the release the first coordinate alone tells it."""
    rng = np.random.default_rng(0)
    sign = rng.choice([-1.0, 1.0], 10_500)
    y = np.c_[2 * sign + 0.3 * rng.normal(size=10_500), rng.normal(size=10_500)]
    x = sign[:, None] + 0.1 * rng.normal(size=(10_500, 1))
    seen = {}
    for mechanism in ("affine", "universal"):
        made = PrivacyNetwork(mechanism, distortion=2.5, steps=120, batch_size=300)
        made.fit(x[:1500], y[:1500])
        z = made.transform(y[1500:], seed=0)
        seen[mechanism] = told(sign[1500:], z[:, 0])
        assert ((z - y[1500:]) ** 2).sum(1).mean() < 2.6
    assert seen["universal"] < seen["affine"] + 0.02


@pytest.mark.parametrize("observe", ["useful", "full"])
@pytest.mark.parametrize("target", [0.1, 0.45])
def test_discrete_within_a_thousandth_of_the_optimum(observe, target):
    joint, cost = symmetric_pair(), 1 - np.eye(10)
    table, costs = (joint, cost) if observe == "useful" else pairs_observed(joint, cost)
    made = PrivacyNetwork("discrete", distortion=target, steps=900).fit_law(table, costs)
    assert made.distortion_ == pytest.approx(target, abs=1e-3)
    best = DiscreteTradeoff(distortion=made.distortion_).fit(table, costs)
    assert -1e-9 <= made.leakage_ - best.leakage_ <= 1e-3


def test_discrete_from_labels_and_with_a_multiplier():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 4000)
    y = np.where(rng.random(4000) < 0.6, x, rng.integers(0, 3, 4000)) + 10
    made = PrivacyNetwork("discrete", multiplier=2.0, steps=400).fit(x, y)
    best = DiscreteTradeoff(multiplier=2.0).fit_samples(x, y, 1 - np.eye(3))
    reached = made.leakage_ + 2 * made.distortion_
    assert best.objective_ - 1e-9 <= reached <= best.objective_ + 1e-3
    z = made.transform(y, seed=0)
    assert ((z + 10) != y).mean() == pytest.approx(made.distortion_, abs=0.03)


def test_information_as_utility():
    joint = np.array([[0.30, 0.05, 0.10], [0.05, 0.35, 0.15]])
    made = PrivacyNetwork("discrete", utility="information", least_information=0.8, steps=600)
    made.fit_law(joint, np.zeros((3, 4)), np.diag(joint.sum(0)))
    assert made.distortion_ == pytest.approx(-0.8, abs=2e-3)
    # erasing at random keeps a share of both informations: the funnel must not be worse
    log = np.log(joint / np.outer(joint.sum(1), joint.sum(0)))
    entropy = -(joint.sum(0) * np.log(joint.sum(0))).sum()
    assert made.leakage_ <= (joint * log).sum() * 0.8 / entropy + 1e-3
    rows = draw(covariances()["scalar, useful"][1], 4000, 0)
    w = rows[:, :1] + 0.5 * np.random.default_rng(1).normal(size=(4000, 1))
    given = PrivacyNetwork(
        "affine", observe="given", utility="information", least_information=0.1, steps=300
    ).fit(rows[:, :1], rows[:, 1:], w)
    z = given.transform(w, seed=0)
    rho = np.corrcoef(z[:, 0], rows[:, 1])[0, 1]
    assert -0.5 * np.log(1 - rho**2) == pytest.approx(0.1, abs=0.03)


def test_continuous_information_of_what_the_release_sees_is_refused():
    rows = np.random.default_rng(0).normal(size=(50, 2))
    made = PrivacyNetwork(utility="information", least_information=1.0)
    with pytest.raises(ValueError, match="fractional part"):
        made.fit(rows[:, :1], rows[:, 1:])


def test_the_limit_is_on_the_mean_and_not_on_each_sample():
    """min (1 - m)^2 for rows m + u, cost row^2 <= 1 on the mean: the penalty per row ends lower.

    With u of variance 1/2 the mean limit allows m^2 = 1/2.
    """
    u = torch.linspace(-3, 3, 601, dtype=torch.float64)
    u = u / u.std(unbiased=False) * 0.5**0.5
    ends = {}
    for kind in ("mean", "row"):
        m = torch.zeros((), dtype=torch.float64, requires_grad=True)
        limit, adam = Limit(1.0), Adam([m], 0.02, 600, least=1.0)
        for _ in range(600):
            cost = (m + u) ** 2
            if kind == "mean":
                loss = (2 - m) ** 2 + limit.term(cost.mean())
            else:
                loss = (2 - m) ** 2 + 10 * ((cost - 1).clamp(min=0) ** 2).mean()
            adam.descend(loss)
        ends[kind] = float(m.detach())
    assert ends["mean"] == pytest.approx(0.5**0.5, abs=0.01)
    assert ends["row"] < 0.6 * ends["mean"]


def test_a_discriminator_pulls_releases_towards_the_data():
    """Y is +-1: without it, releases are anywhere; with it, nearer to the two points."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], (600, 1))
    x = y + rng.normal(size=(600, 1))
    away = {}
    for weight in (0.0, 3.0):
        made = PrivacyNetwork(distortion=0.8, discriminator=weight, steps=60, batch_size=200)
        z = made.fit(x, y).transform(y, seed=0)
        away[weight] = float(np.minimum(abs(z - 1), abs(z + 1)).mean())
    assert away[3.0] < away[0.0] - 0.1


def test_a_cost_of_ones_own():
    rows = draw(covariances()["scalar, useful"][1], 1500, 0)
    made = PrivacyNetwork(
        utility=lambda y, z: (y - z).abs().sum(1), distortion=0.4, steps=50, batch_size=300
    )
    made.fit(rows[:, :1], rows[:, 1:])
    z = made.transform(rows[:, 1:], seed=0)
    assert abs(z - rows[:, 1:]).mean() == pytest.approx(0.4, rel=0.1)


def test_seeds_decide_everything_and_files_keep_it(tmp_path):
    """To the rounding of sums, whose order in PyTorch follows from where memory lies."""
    close = {"rtol": 1e-6, "atol": 1e-8}
    rows = draw(covariances()["scalar, useful"][1], 500, 0)
    for mechanism in ("affine", "mixture", "universal"):
        made = [
            PrivacyNetwork(mechanism, distortion=0.5, steps=5, seed=seed).fit(
                rows[:, :1], rows[:, 1:]
            )
            for seed in (3, 3, np.random.default_rng(4))
        ]
        first, again, other = (m.transform(rows[:, 1:], seed=9) for m in made)
        np.testing.assert_allclose(first, again, **close)
        assert np.allclose(first, other, **close) == (mechanism == "affine")  # trained exactly
        made[0].save(tmp_path / "net.safetensors")
        read = load(tmp_path / "net.safetensors")
        np.testing.assert_allclose(read.transform(rows[:, 1:], seed=9), first, **close)
        assert read.get_params() == made[0].get_params()
        assert read.distortion_ == made[0].distortion_


@pytest.mark.parametrize(
    "params, said",
    [
        ({"mechanism": "best"}, "mechanism must be"),
        ({}, "distortion must be given"),
        ({"mechanism": "discrete"}, "give distortion or multiplier"),
        ({"observe": "given", "distortion": 1.0}, "W goes with"),
    ],
)
def test_what_is_refused(params, said):
    rows = np.random.default_rng(0).normal(size=(30, 1))
    with pytest.raises(ValueError, match=said):
        PrivacyNetwork(**params).fit(rows, rows)


def test_a_sensitive_column_that_comes_twice_or_is_constant_changes_no_leakage():
    once = np.array([[1.0, 0.8], [0.8, 1.0]])
    twice = np.array([[1.0, 1.0, 0.8], [1.0, 1.0, 0.8], [0.8, 0.8, 1.0]])
    flat = np.array([[1.0, 0.0, 0.8], [0.0, 0.0, 0.0], [0.8, 0.0, 1.0]])
    net = PrivacyNetwork("affine", distortion=0.5).fit_covariance(once, 1)
    wanted = net.evaluate(once, 1).leakage
    assert wanted == pytest.approx(-0.5 * np.log(1 - 0.8**2 * 0.5), abs=1e-4)
    for law in (twice, flat):
        assert net.evaluate(law, 2).leakage == pytest.approx(wanted, abs=1e-12)
        assert net.guarantee_.leakage == pytest.approx(wanted, abs=1e-12)


def test_a_frame_in_another_order_is_refused():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rows = draw(covariances()["vector, useful"][1], 200, 0)
    x, y = pandas.DataFrame(rows[:, :2], columns=["a", "b"]), pandas.DataFrame(rows[:, 5:7])
    y.columns = ["c", "d"]
    net = PrivacyNetwork("affine", observe="full", distortion=1.0, steps=20).fit(x, y)
    both = pandas.concat([x, y], axis=1)
    assert net.transform(both, seed=1).shape == (200, 2)
    with pytest.raises(ValueError, match="columns of fit, in their order"):
        net.transform(both[["c", "d", "a", "b"]])
    again = net.fit(x.to_numpy(), y.to_numpy())
    assert again.transform(both[["c", "d", "a", "b"]]).shape == (200, 2)
