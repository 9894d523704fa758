"""Learned releases as scikit-learn's transformers: clone, pipelines, frames, its own checks."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum.learned import (  # noqa: E402
    FilterBank,
    GenerativeFilter,
    GuaranteedFilter,
    PrivacyNetwork,
    VariationalEncoder,
    held_out,
    label_reader,
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


def test_networks_and_banks_name_their_columns(monkeypatch):
    monkeypatch.setattr(held_out, "_STEPS", 30)  # what a network adds is not the question
    z = np.random.default_rng(0).normal(size=(60, 4))
    private, users = z[:, 0] > 0, np.arange(60) % 2
    network = PrivacyNetwork("affine", distortion=0.5, steps=2).fit(z[:, :2], z[:, 2:])
    plain = network.transform(z[:, 2:], seed=1)
    framed = network.set_output(transform="pandas").transform(z[:, 2:], seed=1)
    assert list(framed.columns) == ["released0", "released1"]
    assert (framed.to_numpy() == plain).all()
    found = network.measure(z[:, :2], z[:, 2:])
    network.set_output(transform="default")
    assert found == network.measure(z[:, :2], z[:, 2:])
    table = PrivacyNetwork("discrete", distortion=0.3, steps=2).fit(private, private)
    assert list(table.set_output(transform="pandas").transform(private).columns) == ["released0"]
    bank = FilterBank(GenerativeFilter(1.0, method="isotropic"), VariationalEncoder(3, epochs=1))
    bank.encoder.fit(z)
    bank.fit(z, users, {0: (private, None), 1: (private, None)})
    plain = bank.transform(z, users, seed=1)
    framed = bank.set_output(transform="pandas").transform(z, users, seed=1)
    assert list(framed.columns) == ["filtered0", "filtered1", "filtered2"]
    assert (framed.to_numpy() == plain).all()
    bank.measure(z, users, private, 0, draws=1, attackers=["linear"])


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
        (GenerativeFilter(1.0, steps=2), FRESH_NOISE),
        (GuaranteedFilter(2.0, steps=2), FRESH_NOISE | PROVED),
    ],
)
def test_scikit_learns_own_checks_pass_but_those_of_fresh_noise(made, but, monkeypatch):
    from sklearn.utils.estimator_checks import check_estimator

    monkeypatch.setattr(label_reader, "_STEPS", 20)  # how well labels are read is not asked
    found = check_estimator(made, on_skip=None, on_fail=None)
    failed = {r["check_name"] for r in found if r["status"] == "failed"}
    assert len(found) > 40 and failed == but
