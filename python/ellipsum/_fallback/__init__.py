"""Numba twins of the C++ kernels: same signatures, same integers, no compiler."""

from .clip import clip_sum
from .quadratic_form import FormTable

__all__ = ["FormTable", "clip_sum"]
