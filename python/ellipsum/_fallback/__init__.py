"""Numba twins of the C++ kernels: same signatures, same integers, no compiler."""

from .clip import clip_sum

__all__ = ["clip_sum"]
