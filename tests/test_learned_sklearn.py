"""Learned releases as scikit-learn's transformers: clone, pipelines, frames, its own checks."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum.learned import (  # noqa: E402
    GenerativeFilter,
    GuaranteedFilter,
    VariationalEncoder,
)

torch.set_num_threads(1)


def test_scikit_learn_conventions():
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    z = np.random.default_rng(0).normal(size=(120, 4))
    private = (z[:, 0] > 0).astype(int)
    made = make_pipeline(
        VariationalEncoder(2, epochs=2), GenerativeFilter(1.0, steps=3, method="kernel")
    )
    released = made.fit(z, private).transform(z)
    assert released.shape == (120, 2)
    one = clone(GenerativeFilter(2.0, order=3.0)).set_params(order=4.0)
    assert one.get_params()["order"] == 4.0 and one.budget == 2.0
    framed = VariationalEncoder(2, epochs=2).set_output(transform="pandas").fit(z).transform(z)
    assert list(framed.columns) == ["latent0", "latent1"]
    framed = GenerativeFilter(1.0, steps=3).fit(z, private).set_output(transform="pandas")
    assert list(framed.transform(z).columns) == [f"filtered{i}" for i in range(4)]


FRESH_NOISE = {"check_estimators_pickle", "check_fit_idempotent"}
#: A release with a proof must not tell by an error what is in a row.
PROVED = {
    "check_n_features_in_after_fitting",
    "check_dtype_object",
    "check_estimators_nan_inf",
    "check_fit2d_predict1d",
}


@pytest.mark.parametrize(
    "made, but",
    [
        (VariationalEncoder(2, hidden=(8,), epochs=1), set()),
        (GenerativeFilter(1.0, shift="none", steps=2), FRESH_NOISE),
        (GuaranteedFilter(2.0, steps=2), FRESH_NOISE | PROVED),
    ],
)
def test_scikit_learns_own_checks_pass_but_those_of_fresh_noise(made, but):
    from sklearn.utils.estimator_checks import check_estimator

    found = check_estimator(made, on_skip=None, on_fail=None)
    failed = {r["check_name"] for r in found if r["status"] == "failed"}
    assert len(found) > 40 and failed == but
