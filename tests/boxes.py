"""Boxes and rows that the tests of the adaptive mean share."""

from __future__ import annotations

import numpy as np

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def box(d, half=50.0):
    return {"lower": np.full(d, -half), "upper": np.full(d, half)}


def gaussian_rows(n, sigma, mean, seed=0):
    return mean + sigma * np.random.default_rng(seed).standard_normal((n, np.size(sigma)))
