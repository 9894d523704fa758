"""The held-out bound of a network's leakage: on few rows low, never high."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum.learned import held_out  # noqa: E402
from ellipsum.learned.held_out import held_out_information  # noqa: E402

torch.set_num_threads(1)


def pair(rng, n, size, correlation):
    x, other = rng.normal(size=(2, n, size))
    return x, correlation * x + (1 - correlation**2) ** 0.5 * other


def test_few_rows_of_nothing_are_not_read_as_something(monkeypatch):
    """Fitted on the rows that judge, the linear part alone reads .25 here, 10 standard errors."""
    monkeypatch.setattr(held_out, "_STEPS", 50)
    rng = np.random.default_rng(0)
    found = [held_out_information(*pair(rng, 100, 5, 0.0), seed)[0] for seed in range(12)]
    assert max(found) < 0 and np.mean(found) > -0.7


@pytest.mark.parametrize("n, error", [(200, 0.15), (4000, 0.03)])
def test_what_is_there_is_found(n, error):
    rng = np.random.default_rng(1)
    found = [held_out_information(*pair(rng, n, 1, 0.85), seed)[0] for seed in range(4)]
    truth = -0.5 * np.log(1 - 0.85**2)
    assert np.mean(found) == pytest.approx(truth, abs=error)


def test_what_is_not_gaussian_is_found():
    """Z = |X| tells nothing to a linear reader, and all but the sign to a network."""
    x = np.random.default_rng(2).normal(size=(3000, 1))
    z = np.abs(x) + 0.3 * np.random.default_rng(3).normal(size=x.shape)
    found, error = held_out_information(x, z, 0)
    assert 5 * error < found < 1.2


@pytest.mark.parametrize("n", [20, 21, 30])
def test_a_single_row_cannot_make_it_minus_infinity(n):
    """Ten rows train a network that is sure of itself far outside of them."""
    rng = np.random.default_rng(4)
    for seed in range(6):
        found, error = held_out_information(*pair(rng, n, 1, 0.85), seed)
        assert -12 < found < 1 and np.isfinite(error)
