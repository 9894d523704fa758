"""Numba twins of the C++ kernels: same signatures, same integers, no compiler."""

from .clip import clip_sum
from .noise import keystream, rounded_gaussian, rounded_gaussian_of_words

__all__ = ["clip_sum", "keystream", "rounded_gaussian", "rounded_gaussian_of_words"]
