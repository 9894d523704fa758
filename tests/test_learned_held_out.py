"""The held-out bound of a network's leakage: on few rows low, never high."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum.learned import held_out, leakage  # noqa: E402
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


def test_attributes_that_all_but_follow_from_each_other_tell_no_more():
    """A floor under their covariance read 1 nat there, 65 standard errors above nothing."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4000))
    for apart in (1e-4, 1e-5, 1e-6, 1e-8):
        x, y = np.c_[a, a + apart * b], rng.normal(size=(4000, 1))
        found = leakage.measured(x, y, y, 0.0, 0)
        assert found.held_out < 5 * found.standard_error and found.plug_in < 0.01


@pytest.mark.parametrize("unit", [1e-200, 1e-10, [1e-10, 1e5], 1e200])
def test_the_unit_of_a_release_changes_nothing(unit):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 2))
    z = x + rng.normal(size=x.shape)
    plain, moved = (leakage.measured(x, z, part, 0.0, 0) for part in (z, z * unit))
    assert moved.plug_in == pytest.approx(plain.plug_in, rel=1e-9)
    assert moved.held_out == pytest.approx(plain.held_out, abs=0.02) and plain.held_out > 0.5
