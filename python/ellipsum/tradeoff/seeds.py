"""What may be given as a seed of what is not private: an int, 32 bytes, a generator, or None."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _validate

__all__ = ["number_of", "numpy_generator", "short_number_of"]


def numpy_generator(seed: Any) -> np.random.Generator:
    """NumPy's, from a seed or None (fresh)."""
    return np.random.default_rng(int.from_bytes(seed, "big") if isinstance(seed, bytes) else seed)


def number_of(seed: Any) -> int:
    """A seed as an int of at most 256 bits: of a NumPy generator, from its next 32 bytes."""
    if isinstance(seed, np.random.Generator):
        seed = seed.bytes(32)
    return int.from_bytes(seed, "big") if isinstance(seed, bytes) else _validate.whole("seed", seed)


def short_number_of(seed: Any) -> int:
    """A seed as an int below 2**32, scikit-learn's kind: one that is stays, None is fresh."""
    number = None if seed is None else number_of(seed)
    if number is not None and number < 2**32:
        return number
    return int(np.random.default_rng(number).integers(2**32))
