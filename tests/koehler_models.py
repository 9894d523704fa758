"""The scalar channel and the covariances that the tests of Koehler 2018 share."""

from __future__ import annotations

import math

import numpy as np

S, BETA = 4.0, 1.0  # a variance, so that s and sigma = 2 differ
A, NOISE = 1 - 1 / (BETA * S), (1 - 1 / (BETA * S)) / BETA


def lagrangian(a, noise, s=S, beta=BETA):
    """I(x; t) + beta E(x - t)^2 / 2 in one dimension."""
    return 0.5 * math.log1p(a * a * s / noise) + beta / 2 * ((1 - a) ** 2 * s + noise)


def covariances(seed, d=4, e=2):
    rng = np.random.default_rng(seed)
    both = rng.normal(size=(d + e, 2 * (d + e)))
    both = both @ both.T / (2 * (d + e))
    return both[:d, :d], both[:d, d:], both[d:, d:]
