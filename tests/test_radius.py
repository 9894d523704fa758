"""The clip radius from noisy counts: near the best one where it can be, safe where it can't."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ellipsum.adaptive.radius import EDGES, choose_radius, first_edges


def distances(law, d, alpha, size=60_000):
    """||y|| of rows with variances i^-2 alpha in their own region: E||y||^2 = 1."""
    rng, sigma = np.random.default_rng(1), np.arange(1.0, d + 1) ** -alpha
    z = {
        "gaussian": lambda: rng.standard_normal((size, d)),
        "exponential": lambda: rng.standard_exponential((size, d)) - 1,
        "log-normal": lambda: (
            (rng.lognormal(size=(size, d)) - math.exp(0.5)) / math.sqrt(math.e * (math.e - 1))
        ),
        "t3": lambda: rng.standard_t(3, (size, d)) / math.sqrt(3),
    }[law]()
    return np.sqrt(np.sum(z**2 * sigma, axis=1) / np.sum(sigma))


def counted(t, edges):
    return np.bincount(np.searchsorted(edges[:-1], t), minlength=edges.size) / t.size


def costs(t, radius, ratio):
    return (ratio * radius) ** 2 + np.mean(np.clip(t - radius, 0, None)) ** 2


@pytest.mark.parametrize(
    ("law", "d", "alpha", "ratio", "sd", "allowed"),
    [
        ("gaussian", 16, 1.0, 0.02, 0.01, 1.6),
        ("gaussian", 128, 0.0, 0.01, 0.004, 1.3),
        ("gaussian", 100, 2.0, 0.02, 0.01, 1.6),
        ("exponential", 16, 1.0, 0.005, 0.002, 2),
        ("log-normal", 16, 1.0, 0.002, 0.002, 2),
        ("log-normal", 100, 1.0, 0.003, 0.002, 2),
        ("t3", 100, 1.0, 0.003, 0.002, 2),
    ],
)
def test_the_radius_costs_little_more_than_the_best_one(law, d, alpha, ratio, sd, allowed):
    t, rng = distances(law, d, alpha), np.random.default_rng(2)
    best = min(costs(t, c, ratio) for c in np.geomspace(0.3, 30, 120))
    share, ours = counted(t, EDGES), []
    for _ in range(20):
        noisy = share + sd * rng.standard_normal(share.size)
        radius, usual, loss, *_ = choose_radius(EDGES, noisy, sd, ratio, coarse=False)
        ours.append(costs(t, radius, ratio))
        assert loss > 0
        assert 0.3 < usual < 1.3
    assert np.mean(ours) < allowed * best


@pytest.mark.parametrize("sd", [0.03, 0.1, 0.3])
@pytest.mark.parametrize("place", [0.05, 0.3, 1.0])
def test_noise_never_makes_the_radius_tiny_where_the_law_is_seen(sd, place):
    """A histogram that is mostly noise: a clip far inside of the fitted law helps nobody."""
    t, rng = place * distances("gaussian", 64, 0.5), np.random.default_rng(3)
    for _ in range(200):
        noisy = counted(t, EDGES) + sd * rng.standard_normal(EDGES.size)
        radius, usual, *_ = choose_radius(EDGES, noisy, sd, 0.05, coarse=False)
        assert radius > 0.3 * usual


def test_outliers_far_away_count():
    t = distances("gaussian", 64, 0.5)
    t[:3000] = 30.0
    radius, usual, *_ = choose_radius(EDGES, counted(t, EDGES), 0.002, 0.005, coarse=False)
    assert radius > 10
    assert usual == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("place", [1e-4, 0.01, 0.2, 1.0])
def test_the_first_histogram_finds_any_place_within_a_bin(place):
    corner = 300.0
    edges = first_edges(corner)
    t = place * corner * np.random.default_rng(0).uniform(0.99, 1.0, 5000)
    radius, usual, *_ = choose_radius(edges, counted(t, edges), 0.01, 0.05, coarse=True)
    assert t.max() / 1.5 < radius < 1.5 * t.max()
    assert t.max() / 2 < usual < 2 * t.max()
