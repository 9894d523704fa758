"""Twin of ``cpp/core/clip/exact_sum.hpp``."""

from __future__ import annotations

from .jit import jit


@jit
def merge(low, high, other_low, other_high):
    """Add 128-bit totals (uint64 low words, int64 high words) in place."""
    for j in range(low.size):
        total = low[j] + other_low[j]
        if total < low[j]:
            high[j] += 1
        low[j] = total
        high[j] += other_high[j]
