"""Released records read back: rows by the best reader, and their moments."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ellipsum.records import RecordRelease
from record_rows import CORRELATION, TABLE, fitted, public_rows

# ---- reading ----------------------------------------------------------------------------


def explained(release, rows):
    read = release.inverse_transform(release.transform(rows))
    return 1 - ((rows - read) ** 2).sum() / ((rows - rows.mean(axis=0)) ** 2).sum()


@pytest.mark.parametrize(
    ("epsilon", "least"), [(1.0, 0.041), (4.0, 0.295), (8.0, 0.507), (16.0, 0.685)]
)
def test_the_share_explained_of_records_with_the_covariance_of_breast_cancer(epsilon, least):
    """Fitted on the covariance; fresh Gaussian records. Standard error below 0.002."""
    release = RecordRelease(epsilon=epsilon, seed=1).fit(
        covariance=CORRELATION, center=np.zeros(30)
    )
    root = np.linalg.cholesky(CORRELATION + 1e-9 * np.eye(30))
    rows = np.random.default_rng(11).normal(size=(60_000, 30)) @ root.T
    assert explained(release, rows) > least


def test_pure_noise_explains_ten_times_what_the_thesis_release_does():
    rng = np.random.default_rng(12)
    root = np.linalg.cholesky(CORRELATION + 1e-9 * np.eye(30))
    rows = rng.normal(size=(20_000, 30)) @ root.T
    law = {"covariance": CORRELATION, "center": np.zeros(30)}
    pure = RecordRelease(epsilon=4.0, seed=1).fit(**law)
    quantile = float(np.quantile(np.linalg.norm(rows, axis=1), 0.99))
    printed_way = RecordRelease(
        "rate-distortion", "gaussian", epsilon=4.0, delta=1e-6, radius=quantile, seed=1
    ).fit(**law)
    shaped = RecordRelease("mse", "gaussian", epsilon=4.0, delta=1e-6, seed=1).fit(**law)
    found = [explained(r, rows) for r in (printed_way, shaped, pure)]
    assert found[0] < 0.015
    assert 0.035 < found[1] < 0.06
    assert found[2] > 10 * found[0]


def test_reading_is_at_least_the_linear_reader_and_shrinks_to_the_centre():
    release = fitted(epsilon=2.0, seed=2)
    rows = public_rows(20_000, seed=0)[0]
    z = (rows - release._law.center) / release._law.unit
    read = release.inverse_transform(release.transform(rows)) - release._law.center
    read /= release._law.unit
    share = 1 - ((z - read) ** 2).sum() / (z**2).sum()
    assert share > release.explained() - 0.01
    calm = RecordRelease(epsilon=1e-3, seed=2).fit(public_rows()[0])
    still = calm.inverse_transform(calm.transform(rows[:1000]))
    assert np.abs((still - calm._law.center) / calm._law.unit).max() < 0.05


def test_classes_of_released_rows_are_told_apart():
    """Fitted on one half with its labels; trained and tested on the released other half."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    scores = []
    for split in range(6):
        public, private, y_public, y = train_test_split(
            TABLE.data, TABLE.target, test_size=0.5, random_state=split, stratify=TABLE.target
        )
        release = RecordRelease("information", epsilon=5.0, seed=split).fit(public, y_public)
        t = release.transform(private)
        a, b, ya, yb = train_test_split(t, y, test_size=0.5, random_state=split, stratify=y)
        scores.append(LogisticRegression(max_iter=1000).fit(a, ya).score(b, yb))
    assert np.mean(scores) > 0.88


# ---- moments ----------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"noise": "gaussian", "mu": 2.0}, {"epsilon": 4.0}])
def test_moments_of_releases_are_those_of_the_rows(given):
    """A radius that clips nothing: mean and covariance within 5 standard errors."""
    rows = public_rows(40_000, d=3, seed=1)[0]
    release = RecordRelease("isotropic", radius=9.0, seed=6, **given).fit(
        public_rows(2000, 3, 1)[0]
    )
    found = release.moments(release.transform(rows))
    assert found.n == 40_000
    mean, cov = rows.mean(axis=0), np.cov(rows.T)
    assert (np.abs(found.mean - mean) < 5 * found.mean_se).all()
    assert (np.abs(found.covariance - cov) < 5 * found.covariance_se).all()
    assert (found.mean_se < 10 * np.sqrt(np.diag(cov))).all()


def test_standard_errors_of_moments_are_those_of_repetitions():
    rows = public_rows(1000, d=3, seed=1)[0]
    release, runs = RecordRelease("isotropic", "gaussian", mu=4.0, radius=6.0).fit(rows), []
    for seed in range(200):
        release.set_params(seed=seed)
        runs.append(release.moments(release.transform(rows)))
    sd = np.std([run.mean for run in runs], axis=0)
    se = np.mean([run.mean_se for run in runs], axis=0)
    own = rows.std(axis=0) / math.sqrt(1000)  # the rows are the same in each run
    np.testing.assert_allclose(np.sqrt(np.maximum(se**2 - own**2, 0)), sd, rtol=0.25)
