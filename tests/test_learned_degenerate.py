"""Information as utility where W tells Y: refused, with the reason, and only there."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum.learned import PrivacyNetwork  # noqa: E402
from ellipsum.learned.ppan_parameters import check_unseen  # noqa: E402

torch.set_num_threads(1)


def tells(x, y, w, law=False):
    """Whether W counts as telling Y."""
    try:
        check_unseen(x, y, w, law=law)
    except ValueError as error:
        assert "fractional part" in str(error)
        return True
    return False


def test_information_of_what_a_given_w_tells_is_refused():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 2))
    y = x @ [[0.5], [0.2]] + rng.normal(size=(400, 1))
    other, near = rng.normal(size=(400, 1)), y + 1e-3 * rng.normal(size=(400, 1))
    made = PrivacyNetwork(
        "affine", observe="given", utility="information", least_information=0.5, steps=2
    )
    for w in (y, np.hstack([x, y]), np.hstack([other + 3 * y, other - y]), 5 - 1e9 * y):
        with pytest.raises(ValueError, match="fractional part"):
            made.fit(x, y, w)
        assert tells(x, np.hstack([y + other, other]), np.hstack([w, other]))
    assert tells(x, y, y.astype(np.float32).astype(float))
    made.fit(x, y, near)
    assert not tells(x, y, x)
    joint = np.eye(3) + 0.5
    with pytest.raises(ValueError, match="fractional part"):
        made.fit_covariance(joint, 2, [[0, 0, 1.0]])
    made.set_params(least_information=0.05).fit_covariance(joint, 2, [[1.0, 0, 0]])


def test_what_is_no_such_direction_is_not_refused():
    """Labels, few rows, what X determines, constant columns."""
    rng = np.random.default_rng(6)
    x, label = rng.normal(size=(300, 1)), rng.integers(0, 4, (300, 1)).astype(float)
    assert not tells(x, label, np.hstack([label, x]))
    assert not tells(x, np.hstack([label, rng.normal(size=(300, 1))]), label)
    assert not tells(x, 2 * x, x)  # it leaks as much as it carries
    assert tells(x, np.hstack([2 * x, label + x**2]), np.hstack([x, label + x**2]))
    assert not tells(x, np.ones((300, 1)), np.hstack([x, np.ones((300, 1))]))
    for seed in range(50):  # as many columns as rows: a regression fits anything
        few = np.random.default_rng(seed).normal(size=(6, 9))
        assert not tells(few[:, :1], few[:, 1:2], few[:, 2:])
        assert not tells(few[:, :1], few[:, 1:2], few[:, 2:6])
        assert tells(few[:, :1], few[:, 1:2], few[:, 1:])
