"""Hashes of rows and their users: the same on every target, of all of a row, and of no place."""

from __future__ import annotations

import numpy as np
import pytest

from ellipsum.kernels.backend import use_kernels
from ellipsum.rows.labels import mixed
from regions import KERNEL_SETS

WIDTHS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 64, 101)


def ranks_of(kernels, rows, words, which=None):
    which = np.arange(len(rows)) if which is None else which
    ranks = np.full(len(which), 7, np.uint64)  # whatever was there
    kernels.row_ranks(rows, words, which, ranks)
    return ranks


def as_defined(rows, words):
    own = rows.astype(np.float64) + 0.0
    own[np.isnan(own)] = np.nan
    places = mixed(np.arange(rows.shape[1], dtype=np.uint64))
    user = mixed(words[:, 0] ^ mixed(words[:, 1]))
    return mixed(user ^ mixed(own.view(np.uint64) ^ places).sum(1, dtype=np.uint64))


@pytest.mark.parametrize("name", KERNEL_SETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_instruction_set_has_the_hashes_as_they_are_defined(name, dtype):
    rng = np.random.default_rng(0)
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    with use_kernels(name) as kernels, np.errstate(all="ignore"):
        for d in WIDTHS:
            most = np.iinfo(bits).max
            rows = rng.integers(0, most, (50, d), dtype=bits, endpoint=True).view(dtype)
            rows[rng.random(rows.shape) < 0.2] = np.nan
            rows[rng.random(rows.shape) < 0.2] = -0.0
            rows[rng.random(rows.shape) < 0.1] = np.inf
            words = rng.integers(0, 2**64, (50, 2), dtype=np.uint64)
            wanted = as_defined(rows, words)
            assert (ranks_of(kernels, rows, words) == wanted).all()
            which = rng.integers(0, 50, 70)
            assert (ranks_of(kernels, rows, words, which) == wanted[which]).all()
            gaps = np.repeat(rows, 3, 0)[::3]
            assert (ranks_of(kernels, gaps, words) == wanted).all()


@pytest.mark.parametrize("name", KERNEL_SETS)
def test_the_hash_is_of_the_whole_row_and_its_user(name):
    rng = np.random.default_rng(0)
    rows, words = rng.normal(size=(1, 20_003)), np.zeros((1, 2), np.uint64)
    with use_kernels(name) as kernels:
        seen = {int(ranks_of(kernels, rows, words)[0])}
        for j in (0, 1, 777, 19_999, 20_002):
            other = rows.copy()
            other[0, j] = np.nextafter(other[0, j], 9)
            seen.add(int(ranks_of(kernels, other, words)[0]))
        seen.add(int(ranks_of(kernels, np.roll(rows, 1), words)[0]))
        for k in (0, 1):
            owner = words.copy()
            owner[0, k] = 1
            seen.add(int(ranks_of(kernels, rows, owner)[0]))
    assert len(seen) == 9


def test_what_lies_elsewhere_is_refused():
    """The core's own check, which guards memory: the Python layer never comes to it."""
    rows, words = np.zeros((5, 4)), np.zeros((5, 2), np.uint64)
    for name in KERNEL_SETS:
        if not name.startswith("cpp"):
            continue
        with use_kernels(name) as kernels:
            for which in ([5], [0, -1], [1 << 62]):
                with pytest.raises(ValueError, match="which"):
                    ranks_of(kernels, rows, words, np.array(which))
            for wrong in (np.asfortranarray(rows), rows[:, ::2]):
                with pytest.raises(ValueError, match="rows"):
                    ranks_of(kernels, wrong, words)
            with pytest.raises(ValueError, match="words"):
                ranks_of(kernels, rows, words[:4])
