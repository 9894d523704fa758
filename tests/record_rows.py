"""Rows, a table and fitted releases that the tests of released records share."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer

from ellipsum.records import RecordRelease

TABLE = load_breast_cancer()
COVARIANCE = np.cov(TABLE.data.T)
CORRELATION = np.corrcoef(TABLE.data.T)
GAUSSIAN = {"noise": "gaussian", "epsilon": 2.0, "delta": 1e-6}


def public_rows(n=400, d=6, seed=0):
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(d, d))
    rows = 50 + rng.normal(size=(n, d)) @ mix * np.geomspace(0.1, 30, d)
    return rows, rows @ rng.normal(size=(d, 2)) + 20 * rng.normal(size=(n, 2))


def fitted(shape="mse", **given):
    rows, y = public_rows()
    target = y if shape in ("bottleneck", "information") else None
    return RecordRelease(shape, **(given or GAUSSIAN)).fit(rows, target)
