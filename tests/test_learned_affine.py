"""Affine networks on laws of every kind: at the certified optimum, and at their limit."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum.learned import PrivacyNetwork, leakage  # noqa: E402
from learned_settings import MIDDLE, covariances  # noqa: E402

torch.set_num_threads(1)


def test_laws_of_any_scale_are_met():
    """18 random laws with columns of unlike size."""
    rng = np.random.default_rng(1)
    for case in range(18):
        k, r = int(rng.integers(1, 4)), int(rng.integers(1, 6))
        root = rng.normal(size=(k + r, k + r)) * np.exp(rng.normal(size=k + r))
        law, observe = root @ root.T / (k + r), ["useful", "full", "useful"][case % 3]
        if case % 3 == 2:  # rate-distortion
            k, law = r, np.tile(law[k:, k:], (2, 2))
        wanted = np.trace(law[k:, k:]) * rng.uniform(0.05, 0.95)
        made = PrivacyNetwork("affine", observe=observe, distortion=wanted)
        point = made.fit_covariance(law, k).evaluate(law, k)
        assert point.distortion <= wanted * (1 + 1e-9)
        assert point.distortion == pytest.approx(wanted) or point.leakage < 1e-6
        assert -2e-8 <= point.excess <= max(0.002 * point.optimum, 5e-4)


def test_a_direction_of_small_variance_is_left_out():
    """The least leakage is 0: a start that told all directions alike ended at .83."""
    law = np.array([[1, 0, 0.027], [0, 1, 0], [0.027, 0, 0.0009]])
    point = PrivacyNetwork("affine", distortion=0.001).fit_covariance(law, 1).evaluate(law, 1)
    assert point.leakage < 1e-6 and point.distortion <= 0.001 * (1 + 1e-9)


@pytest.mark.parametrize("observe", ["useful", "full"])
def test_a_law_has_columns_of_any_unit(observe):
    rng = np.random.default_rng(0)
    for _ in range(8):
        root = rng.normal(size=(5, 5))
        law = root @ root.T * np.outer(*2 * [unit := 10.0 ** rng.uniform(-6, 6, 5)])
        made = PrivacyNetwork("affine", observe=observe, distortion=0.3 * law[2:, 2:].trace())
        point = made.fit_covariance(law, 2).evaluate(law, 2)
        assert point.distortion == pytest.approx(made.distortion_, rel=1e-6), unit
        assert point.distortion <= made.distortion * (1 + 1e-6)
        assert point.excess <= max(0.02 * point.optimum, 0.005)


def test_the_information_wanted_is_kept_or_refused():
    rng = np.random.default_rng(0)
    rows = rng.multivariate_normal(np.zeros(3), [[1, 0.4, 0.3], [0.4, 1, 0.5], [0.3, 0.5, 1]], 9000)
    seen = rows[:, 2:] + rng.normal(size=(9000, 1))
    law = np.cov(np.hstack([rows[:, 1:2], seen]), rowvar=False, bias=True)
    known = {"observe": "given", "utility": "information"}
    most = leakage.gaussian_information(law, 1)
    for share in (0.1, 0.5, 0.86, 0.99):
        made = PrivacyNetwork("affine", least_information=share * most, **known)
        made.fit(rows[:, :1], rows[:, 1:2], seen)
        gain, noise = float(made.matrix_[0, 0]), float(made.noise_root_[0, 0])
        told = gain**2 * law[1, 1] + noise**2
        kept = -0.5 * np.log(1 - (gain * law[0, 1]) ** 2 / (law[0, 0] * told))
        assert kept == pytest.approx(share * most, rel=1e-5)
    with pytest.raises(ValueError, match="least_information must be at most"):
        PrivacyNetwork("affine", least_information=1.1 * most, **known).fit(
            rows[:, :1], rows[:, 1:2], seen
        )


@pytest.mark.parametrize("share", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("setting", MIDDLE)
def test_limits_far_below_the_variance_are_met(setting, share):
    observe, law, k = covariances()[setting]
    wanted = share * np.trace(law[k:, k:])
    made = PrivacyNetwork("affine", observe=observe, distortion=wanted).fit_covariance(law, k)
    point = made.evaluate(law, k)
    assert point.distortion == pytest.approx(wanted, rel=1e-7)
    assert -2e-8 <= point.excess <= 2e-3
