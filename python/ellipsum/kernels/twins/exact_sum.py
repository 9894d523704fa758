"""Twin of ``cpp/core/clip/exact_sum.hpp``, in NumPy: there is nothing to compile."""

from __future__ import annotations


def merge(low, high, other_low, other_high):
    """Add 128-bit totals (uint64 low words, int64 high words) in place."""
    low += other_low
    high += other_high
    high += low < other_low  # the carry of a sum that went round
