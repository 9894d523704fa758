"""What leaves: it prints, converts and accounts, and holds nothing private."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ellipsum import (
    Ellipsoid,
    PrivateCounts,
    PrivateGroupMean,
    PrivateMean,
    PrivateSum,
    calibrate,
    estimate_center,
    estimate_covariance,
)
from ellipsum.records import PrivateProjection
from regions import make_regions


@pytest.fixture
def release(region, rows):
    return PrivateMean(region, epsilon=1.0, delta=1e-6)(rows, seed=1)


def test_to_dict_is_json_and_holds_the_whole_guarantee(release):
    back = json.loads(json.dumps(release.to_dict(), allow_nan=False))
    assert back["value"] == release.value.tolist()
    assert (back["epsilon"], back["delta"], back["neighbors"]) == (1.0, 1e-6, "replace")
    assert back["rho"] == release.rho and back["mu"] == release.mu
    assert back["parameters"]["noise_multiplier"] == calibrate.noise_multiplier(1.0, 1e-6)


def test_an_unbounded_interval_is_json_too():
    region = make_regions(2)["ball"]
    release = PrivateMean(region, mu=1e-4, neighbors="add-remove")(np.ones((2, 2)), seed=1)
    text = json.dumps(release.to_dict(), allow_nan=False)
    assert json.loads(text)["confidence_interval_95"][0] == [None, None]


def test_it_prints_value_noise_and_guarantee(release):
    text = str(release)
    assert text.startswith("mean of 400 rows, d = 13, not private")
    assert "(1, 1e-06)-DP" in text and "neighbours: replace" in text
    assert "... and 1 more coordinates" in text
    assert f"{release.value[0]:.6g}" in text


BALL = Ellipsoid.ball(3.0, d=2)
SPREAD, KEYS = np.random.default_rng(0).normal(size=(400, 2)), ["a", "b"] * 200
HOLES = np.where(SPREAD > 1, np.nan, SPREAD)
BOX = {"lower": [-5.0, -5.0], "upper": [5.0, 5.0]}
PROJECTED = {"radius": 8.0, "d": 2, "epsilon": 8.0, "delta": 1e-6, "center": [0.0, 0.0]}
KINDS = {
    "sum of 400 rows": lambda seed: PrivateSum(BALL, mu=1)(SPREAD, seed=seed),
    "mean of": lambda seed: PrivateMean(BALL, mu=1, neighbors="add-remove")(SPREAD, seed=seed),
    "mean of 400 rows": lambda seed: PrivateMean(**BOX, mu=1)(SPREAD, seed=seed),
    "mean": lambda seed: PrivateMean(BALL, mu=1, missing="ignore")(HOLES, seed=seed),
    "center": lambda seed: estimate_center(SPREAD, **BOX, mu=1, seed=seed),
    "covariance": lambda seed: estimate_covariance(
        SPREAD, radius=5, center=[0, 0], mu=1, seed=seed
    ),
    "group mean, 2 groups": lambda seed: PrivateGroupMean(BALL, mu=1, keys=["a", "b"])(
        SPREAD, key=KEYS, seed=seed
    ),
    "counts, 2 groups": lambda seed: PrivateCounts(mu=1, keys=["a", "b"])(KEYS, seed=seed),
    "projection": lambda seed: (
        PrivateProjection(rows=400, **PROJECTED, seed=seed).add(SPREAD).release()
    ),
}


@pytest.mark.parametrize("title", KINDS)
def test_what_is_not_private_is_not_called_so(title):
    for seed in (None, 1):
        release = KINDS[title](seed)
        assert release.private == (seed is None)
        first, page = str(release).splitlines()[0], release._repr_html_()
        assert first.removeprefix("private ").startswith(title)
        assert first.startswith("private ") == release.private
        assert first.endswith(", not private") != release.private
        assert page.startswith(f"<div><b>{first}</b>")
        assert ("not private" in repr(release)) != release.private


def test_the_guarantee_converts_without_understating(release):
    guarantee = release.guarantee
    assert guarantee.epsilon(1e-6) == 1.0
    tighter = guarantee.epsilon(1e-9)
    assert calibrate.delta(guarantee.noise_multiplier, tighter) <= 1e-9 * (1 + 1e-9)


def test_a_budget_given_as_rho_or_mu_is_kept_as_given(region, rows):
    assert PrivateSum(region, rho=0.3)(rows).rho == 0.3
    assert PrivateSum(region, mu=0.7)(rows).mu == 0.7
    assert PrivateSum(region, mu=0.7)(rows).epsilon is None


def test_the_accounting_event_composes_to_the_same_guarantee(release):
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    event = release.dp_event()
    assert isinstance(event, dp_accounting.GaussianDpEvent)
    accountant = PLDAccountant(release.dp_relation()).compose(event)
    assert accountant.get_delta(1.0) == pytest.approx(1e-6, rel=1e-6)
    assert accountant.get_epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)


def test_confidence_levels_are_checked(release):
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        release.confidence_interval(95)


def test_intervals_nest(release):
    narrow, wide = release.confidence_interval(0.5), release.confidence_interval(0.99)
    assert (wide[0] < narrow[0]).all() and (narrow[1] < wide[1]).all()


def test_covariance_of_a_matrix_shape_is_full(rows):
    region = make_regions(13)["matrix"]
    release = PrivateSum(region, mu=1.0)(rows, seed=2)
    inverse = np.linalg.inv(region.scale)
    expected = inverse @ inverse.T * release.parameters["sensitivity"] ** 2
    np.testing.assert_allclose(release.covariance, expected, rtol=1e-6)
    np.testing.assert_allclose(release.sd, np.sqrt(np.diag(expected)), rtol=1e-6)


def test_a_printed_guarantee_is_rounded_up(rows):
    region = make_regions(13)["ball"]
    text = str(PrivateSum(region, rho=0.12344901)(rows, seed=1))
    assert "0.12345-zCDP" in text
    text = str(PrivateSum(region, epsilon=1.0000049, delta=1.0000049e-6)(rows, seed=1))
    assert "(1.00001, 1.00001e-06)-DP" in text
