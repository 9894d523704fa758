"""Banks of filters: what a seed is, what columns are called, what an encoder must not tell."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum.learned import FilterBank, GenerativeFilter, VariationalEncoder  # noqa: E402

torch.set_num_threads(1)


def people(n):
    z = np.random.default_rng(0).normal(size=(n, 4))
    return z, z[:, 0] > 0, z[:, 1] > 0


@pytest.mark.filterwarnings("error")
def test_nothing_escapes_through_an_encoder():
    """A row with a hole counts as latents of 0, and its neighbours do not notice."""
    z, first, second = people(120)
    encoder = VariationalEncoder(3, epochs=2).fit(z)
    users, labels = np.arange(120) % 2, {0: (first, second), 1: (second, first)}
    for uses_label in (False, True):
        one = GenerativeFilter(1.0, clip=2.0, steps=3, uses_label=uses_label)
        bank = FilterBank(one, encoder).fit(z, users, labels)
        given = {0: first, 1: second} if uses_label else None
        whole = bank.transform(z, users, given, seed=None)
        odd = z.copy()
        odd[3, 1], odd[4, 0], odd[5] = np.nan, -np.inf, 1e308
        released = bank.transform(odd, users, given)
        assert released.shape == whole.shape and np.isfinite(released).all()
        latents = encoder.encoded_whatever(odd)
        assert not latents[[3, 4]].any()
        others = np.delete(np.arange(120), [3, 4, 5])
        np.testing.assert_allclose(latents[others], encoder.transform(z)[others], rtol=1e-12)
    plain = FilterBank(GenerativeFilter(1.0, steps=3), encoder).fit(z, users, labels)
    with pytest.raises(ValueError, match="NaN"):
        plain.transform(odd, users)
