"""Numba twins of the C++ kernels: same signatures, same integers, no compiler."""

from .clip import CLIP_ROWS_LIMIT, clip_sum
from .exact_sum import merge
from .quadratic_form import FormTable

__all__ = ["CLIP_ROWS_LIMIT", "FormTable", "clip_sum", "merge"]
