"""Erasure and attackers: what closed forms hide, and from whom."""

from __future__ import annotations

import builtins
import json

import numpy as np
import pytest

from ellipsum.tradeoff import LinearEraser, OracleShift, audit
from ellipsum.tradeoff.neighbors import knn_information


def two_moons(n=600, seed=0):
    """Four clusters in a cross: no linear attacker, any other at once; two columns of noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    side = rng.choice([-2.0, 2.0], n)
    points = np.where(y[:, None] == 0, np.c_[side, 0 * side], np.c_[0 * side, side])
    return np.c_[points, np.zeros((n, 2))] + 0.4 * rng.normal(size=(n, 4)), y


def gaussian_classes(n, distance, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + distance * (y[:, None] - 0.5) * [1.0, 0.0, 0.0], y


def test_leace_makes_every_linear_predictor_constant():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 500)
    rows = rng.normal(size=(500, 6)) @ rng.normal(size=(6, 6)) + np.eye(6)[labels] * 2
    eraser = LinearEraser()
    released = eraser.fit_transform(rows, labels)
    hot = np.eye(3)[labels]
    cross = (released - released.mean(0)).T @ (hot - hot.mean(0)) / 500
    assert np.abs(cross).max() < 1e-10
    assert eraser.guarantee_.rank == 2 and eraser.guarantee_.kind == "erasure-linear"
    np.testing.assert_allclose(eraser.transform(released), released, atol=1e-9)  # idempotent


def test_leace_changes_the_rows_least():
    """In the metric of the covariance it costs the rank; every other projection along it more."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 800)
    rows = rng.normal(size=(800, 4)) @ rng.normal(size=(4, 4)) + labels[:, None]
    eraser = LinearEraser().fit(rows, labels)
    centered = rows - rows.mean(0)
    covariance = centered.T @ centered / 800
    inverse = np.linalg.inv(covariance)
    moved = rows - eraser.transform(rows)
    cost = np.einsum("ni,ij,nj->n", moved, inverse, moved).mean()
    assert cost == pytest.approx(1.0, rel=1e-9)  # K - 1 for K classes
    shift = centered.T @ (labels - labels.mean()) / 800
    for _ in range(200):
        other = rng.normal(size=4)
        removed = np.outer(shift, other) / (other @ shift)  # any projection along the shift
        assert np.abs(shift - removed @ shift).max() < 1e-8 * np.abs(shift).max()
        moved = centered @ removed.T
        assert np.einsum("ni,ij,nj->n", moved, inverse, moved).mean() >= cost - 1e-9


def test_leace_on_singular_rows():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 300)
    thin = rng.normal(size=(300, 2)) + labels[:, None]
    rows = thin @ rng.normal(size=(2, 5))
    released = LinearEraser().fit_transform(rows, labels)
    hot = np.eye(2)[labels]
    assert np.abs((released - released.mean(0)).T @ (hot - hot.mean(0))).max() < 1e-8


def test_oracle_shift_moves_every_class_to_the_mean():
    rows, y = gaussian_classes(400, 3.0)
    shift = OracleShift().fit(rows, y)
    released = shift.transform(rows, y)
    for label in (0, 1):
        np.testing.assert_allclose(released[y == label].mean(0), rows.mean(0), atol=1e-12)
    half = OracleShift(0.5).fit(rows, y)
    assert half.guarantee_ is None and shift.guarantee_.rank == 1
    with pytest.raises(ValueError, match="known from fit"):
        shift.transform(rows, y + 7)


def test_accuracy_and_information_of_gaussian_classes():
    """Distance 2: the best attacker is right with Phi(1) = 0.841; I = 0.337 nats (quadrature)."""
    rows, y = gaussian_classes(3000, 2.0)
    found = audit(rows, y, attackers=("linear", "knn"))
    linear = found.results[0]
    assert abs(linear.accuracy - 0.8413) < 5 * linear.accuracy_se
    x = np.linspace(-9, 9, 4001)
    up, down = np.exp(-((x - 1) ** 2) / 2), np.exp(-((x + 1) ** 2) / 2)
    mixed = (up + down) / 2
    truth = (up * np.log(up / mixed)).sum() / up.sum()
    assert linear.information <= truth + 4 * linear.information_se
    assert linear.information >= truth - 0.03 - 4 * linear.information_se
    assert abs(found.knn_information - truth) < 0.05
    assert found.baseline == pytest.approx(0.5, abs=0.01)


def test_no_information_is_reported_where_there_is_none():
    rng = np.random.default_rng(3)
    found = audit(rng.normal(size=(600, 4)), rng.integers(0, 2, 600))
    for result in found.results:
        assert result.information <= 4 * result.information_se
        assert abs(result.accuracy - 0.5) < 5 * result.accuracy_se
    assert found.guarantee.lower < 0.02
    assert knn_information(rng.normal(size=(2000, 3)), rng.integers(0, 3, 2000)) < 0.05


def test_what_a_linear_proof_is_worth():
    """Clusters in a cross: no linear log-loss below a constant's, and a kernel reads it all.

    Accuracy is no convex loss: a line that cuts off one of the four clusters is right in three
    quarters of the cases, and erasure does not forbid it.
    """
    rows, y = two_moons()
    for release in (LinearEraser().fit(rows, y), OracleShift().fit(rows, y)):
        found = audit(release, y, rows, attackers=("linear", "rbf"))
        linear, rbf = found.results
        assert linear.information < 0.02 and 0.6 < linear.accuracy < 0.8
        assert rbf.accuracy > 0.9 and rbf.information > 0.45
        assert found.strongest is rbf and found.draws == 1


def test_digits_linear_proof_against_a_kernel():
    """Ten principal components of handwritten digits (no network), label: 5 or more."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    images, digit = load_digits(return_X_y=True)
    latents = PCA(10, svd_solver="full").fit_transform(images)
    private = digit >= 5
    raw = audit(latents, private, attackers=("linear", "rbf"))
    assert raw.results[0].accuracy > 0.75
    for release in (LinearEraser(), OracleShift()):
        found = audit(release.fit(latents, private), private, latents, ("linear", "rbf"))
        assert found.results[0].accuracy <= 0.53
        assert found.results[1].accuracy >= 0.95


class Noisy:
    def transform(self, rows, *, seed=None):
        return rows + np.random.default_rng(seed).normal(size=np.shape(rows))


def test_noise_is_drawn_anew_and_objects_or_functions_will_do():
    rows, y = gaussian_classes(300, 4.0)
    found = audit(Noisy(), y, rows, attackers=("linear",), draws=3)
    assert found.draws == 3 and 0.8 < found.results[0].accuracy < 0.99
    assert audit(lambda values: values * 0, y, rows, attackers=("knn",)).results[0].accuracy <= 0.51
    again = audit(Noisy(), y, rows, attackers=("linear",), draws=3)
    assert again == found  # deterministic


class Told:
    """Remembers what labels it was given."""

    uses_label = True

    def transform(self, rows, labels):
        self.told = labels
        return rows


def test_a_release_is_told_the_private_labels_whatever_label_is_attacked():
    """The labels attacked were what records were shifted by: a release that nobody makes."""
    rows, private = gaussian_classes(400, 3.0)
    third = (rows[:, 1] > 0).astype(int)
    shift = OracleShift().fit(rows, private)
    found = audit(shift, third, rows, "linear", private_labels=private)
    assert found == audit(shift.transform(rows, private), third, attackers="linear")
    assert found != audit(shift.transform(rows, third), third, attackers="linear")
    told = Told()
    audit(told, third, rows, "linear", private_labels=private.astype(str))
    assert (told.told == private.astype(str)).all()
    audit(told, third, rows, "linear")  # it does not say what it was fitted on
    assert (told.told == third).all()
    text = np.where(third, "hidden-a", "hidden-b")
    assert audit(shift, text, rows, "linear", private_labels=private).n_test == found.n_test
    for labels in (text, private + 7, private.astype(str), private * np.nan):
        with pytest.raises(ValueError, match="give private_labels") as refused:
            audit(shift, labels, rows, "linear")
        assert "hidden" not in str(refused.value)
        with pytest.raises(ValueError, match="private_labels must be among") as refused:
            audit(shift, third, rows, "linear", private_labels=labels)
        assert "hidden" not in str(refused.value)


def test_private_labels_where_they_go_with_nothing():
    rows, private = gaussian_classes(60, 3.0)
    shift = OracleShift().fit(rows, private)
    with pytest.raises(ValueError, match=r"private_labels must have shape \(60,\), as labels"):
        audit(shift, private, rows, private_labels=private[:-1])
    eraser = LinearEraser().fit(rows, private)
    for release, given in ((rows, None), (eraser, rows), (lambda x: x, rows), (shift, None)):
        with pytest.raises(ValueError, match="private_labels go with"):
            audit(release, private, given, private_labels=private)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_released_frames_are_rows_and_not_mechanisms(library):
    """A frame has a ``transform``, which is another thing."""
    frames = pytest.importorskip(library)
    rng = np.random.default_rng(4)
    rows, labels = rng.normal(size=(120, 2)), rng.integers(0, 2, 120)
    frame = frames.DataFrame({"a": rows[:, 0], "b": rows[:, 1]})
    wanted = audit(rows, labels, attackers="linear")
    assert audit(frame, frames.Series(labels), attackers="linear") == wanted
    eraser = LinearEraser().fit(rows, labels)
    erased = audit(eraser, labels, frame, attackers="linear")
    assert erased == audit(eraser.transform(rows), labels, attackers="linear")
    with pytest.raises(TypeError, match="where rows are given"):
        audit(frame, labels, rows)


def test_the_report_is_an_estimate():
    rows, y = gaussian_classes(200, 4.0)
    found = audit(rows, y, attackers=("linear",))
    assert found.guarantee.kind == "mutual-information-estimated"
    assert not found.guarantee.is_private
    assert "not differential privacy" in str(found) and "linear" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["results"][0]["attacker"] == "linear"
    with pytest.raises(AttributeError, match="no epsilon"):
        found.guarantee.epsilon(1e-6)


def test_what_is_refused(monkeypatch):
    rows, y = gaussian_classes(60, 1.0)
    with pytest.raises(ValueError, match="attackers must be"):
        audit(rows, y, attackers=("oracle",))
    with pytest.raises(ValueError, match="two different values"):
        audit(rows, np.zeros(60))
    with pytest.raises(ValueError, match="labels must have shape"):
        audit(rows, y[:-1])
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        audit(rows, y)
