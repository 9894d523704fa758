"""Numba twins of the C++ kernels: same signatures, same integers, no compiler."""

from .clip import CLIP_ROWS_LIMIT, clip_sum, distance_counts
from .exact_sum import merge
from .form import FormTable
from .gaussian_pair import PairTable
from .noise import keystream, rounded_gaussian, rounded_gaussian_of_words

__all__ = [
    "CLIP_ROWS_LIMIT",
    "FormTable",
    "PairTable",
    "clip_sum",
    "distance_counts",
    "keystream",
    "merge",
    "rounded_gaussian",
    "rounded_gaussian_of_words",
]
