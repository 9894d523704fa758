"""The shapes of released records: best weights and radii, and the channels that they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ellipsum import calibrate
from ellipsum.records.record_design import Channel1d, choose, information_snr, mse_weights
from ellipsum.records.record_law import RecordLaw
from record_rows import CORRELATION, fitted, public_rows

# ---- shapes -----------------------------------------------------------------------------


def test_mse_weights_are_best_among_random_shares():
    rng = np.random.default_rng(2)
    s, strength = np.array([5.0, 2.0, 1.0, 0.3, 0.01]), 1.7
    b = mse_weights(s, strength)
    snr = b**2 * s / (b**2 * s).sum() * strength
    least = float((s / (1 + snr)).sum())
    shares = rng.dirichlet(np.full(5, 0.5), 100_000) * strength
    assert (s / (1 + shares)).sum(axis=1).min() >= least * (1 - 1e-12)
    assert (snr == 0).any()


def test_information_weights_are_best_among_random_shares():
    rng = np.random.default_rng(3)
    lam, strength = np.array([0.2, 0.5, 0.8, 0.99]), 4.0
    snr = information_snr(lam, strength)
    assert snr.sum() == pytest.approx(strength, rel=1e-9)

    def told(x):
        return np.log((1 + x) / (1 + lam * x)).sum(axis=-1) / 2

    shares = rng.dirichlet(np.full(4, 0.5), 100_000) * strength
    assert told(shares).max() <= told(snr) * (1 + 1e-12)
    np.testing.assert_allclose(information_snr(np.zeros(3), 6.0), 2.0)


@pytest.mark.parametrize("shape", ["mse", "information", "isotropic"])
def test_the_best_radius_beats_others_for_the_same_criterion(shape):
    law = RecordLaw.of_covariance(np.zeros(30), CORRELATION, standardize=True)
    channel = Channel1d(1.0, (2 * calibrate.noise_multiplier(4.0, 1e-6)) ** 2)
    best = choose(law, shape, channel, None)
    relative = shape != "isotropic"
    for radius in (0.02, 0.2, 0.6, 1.5, 3.0):
        rms = 1.0 if relative else math.sqrt(30)
        assert choose(law, shape, channel, radius * rms).score <= best.score * (1 + 1e-9)
    assert best.radius < (1 if relative else math.sqrt(30))  # far below the 99 % quantile


def test_rate_distortion_release_is_its_channel():
    """Means and covariance of t given x are A x and I in the channel's whitened units."""
    release = fitted("rate-distortion", noise="gaussian", mu=120.0, radius=40.0, seed=4)
    rows = public_rows(seed=5)[0][:3]
    released = release.transform(np.repeat(rows, 60_000, axis=0)).reshape(3, 60_000, -1)
    from ellipsum.records import RateDistortion

    law, model = release._law, RateDistortion(release._law.covariance)
    beta = model.beta(mu=120.0, radius=40.0)
    z = (rows - law.center) / law.unit
    assert np.linalg.norm(z, axis=1).max() < 40
    want = (z @ law.axes) * np.sqrt(np.maximum(beta - 1 / law.variances, 0))
    got = released.mean(axis=1)
    assert got.shape[1] == model.kept(beta) > 3
    assert np.abs(got - want[:, : got.shape[1]]).max() < 5.5 / math.sqrt(60_000)
    np.testing.assert_allclose(np.cov(released[0].T), np.eye(got.shape[1]), atol=0.035)


def test_bottleneck_release_is_its_channel():
    release = fitted("bottleneck", noise="gaussian", mu=2000.0, radius=40.0, seed=4)
    rows = public_rows(seed=5)[0]
    released = release.transform(np.repeat(rows[:2], 60_000, axis=0)).reshape(2, 60_000, -1)
    from ellipsum.records import Bottleneck

    law = release._law
    model = Bottleneck(law.covariance, law.target_cross, law.target_cov)
    channel = model.channel(model.beta(mu=2000.0, radius=40.0))
    want = ((rows[:2] - law.center) / law.unit) @ channel.matrix.T
    assert want.shape[1] == 2
    assert np.abs(released.mean(axis=1) - want).max() < 1e-3 * np.abs(want).max() + 5.5 / 244
    np.testing.assert_allclose(np.cov(released[0].T), np.eye(want.shape[1]), atol=0.035)
