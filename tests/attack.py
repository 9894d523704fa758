"""What the tests of published attacks share: when samples show that a promise is broken."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import beta

from ellipsum import Ellipsoid, PrivateSum, calibrate

LEVEL = 1e-8
EPSILON, DELTA = 1.0, 1e-6
SIGMA = calibrate.noise_multiplier(EPSILON, DELTA)  # for a sensitivity of 1: records in [0, 1]
ULP = 2.0**-53


def key(*parts):
    """A key for each draw of a test."""
    return repr(parts).encode().ljust(32, b".")[:32]


def lower(hits, runs):
    return beta.ppf(LEVEL / 2, hits, runs - hits + 1) if hits else 0.0


def upper(hits, runs):
    return beta.ppf(1 - LEVEL / 2, hits + 1, runs - hits) if hits < runs else 1.0


def breaks(one, other, epsilon=EPSILON, delta=DELTA):
    """Do these two samples of an event show that no (epsilon, delta) holds?"""
    pairs = [(one, other), (~one, ~other)]
    pairs += [(b, a) for a, b in pairs]
    return any(
        lower(int(a.sum()), a.size) > math.exp(epsilon) * upper(int(b.sum()), b.size) + delta
        for a, b in pairs
    )


def released(x, coordinates, seed):
    """What the package releases of one record that is x in every coordinate of [0, 1]."""
    box = Ellipsoid.box(np.zeros(coordinates), np.ones(coordinates))
    mechanism = PrivateSum(box, epsilon=EPSILON, delta=DELTA)
    return mechanism(np.full((1, coordinates), x), seed=seed)
