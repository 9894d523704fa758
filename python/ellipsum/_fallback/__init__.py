"""Numba twins of the C++ kernels: same signatures, same integers, no compiler."""

from .clip import clip_sum
from .exact_sum import merge

__all__ = ["clip_sum", "merge"]
