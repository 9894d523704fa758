"""All numbers of an exact sum in one pair of arrays: what changes them changes all of them or none,
whatever interrupts it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .kernels.backend import kernels

__all__ = ["Totals"]

#: Rows, those that were clipped, and those with a hole.
_COUNTS = 3


class Totals:
    """Integers of 128 bits, two's complement: sums (d), three counts, holes of each coordinate.

    Parameters
    ----------
    d : int
    holes : int, coordinates whose holes are counted: d, or none
    """

    def __init__(self, d: int, holes: int) -> None:
        self.d, self.holes = d, holes
        self.low = np.zeros(d + _COUNTS + holes, np.uint64)
        self.high = np.zeros(d + _COUNTS + holes, np.int64)

    @property
    def sums(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Low and high words of the sums: views."""
        return self.low[: self.d], self.high[: self.d]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Rows, clipped, nonfinite rows."""
        rows, clipped, nonfinite = self.low[self.d : self.d + _COUNTS].tolist()
        return rows, clipped, nonfinite

    @property
    def absent(self) -> NDArray[np.int64]:
        """Holes of each coordinate: a copy."""
        return self.low[self.d + _COUNTS :].astype(np.int64)

    def with_counts(
        self, rows: int, clipped: int, nonfinite: int, absent: NDArray[np.int64]
    ) -> Totals:
        """Set them; return itself."""
        self.low[self.d : self.d + _COUNTS] = rows, clipped, nonfinite
        self.low[self.d + _COUNTS :] = absent
        return self

    def plus(self, more: Totals) -> Totals:
        """Both together: others than these, which stay as they are."""
        both = Totals(self.d, self.holes)
        both.low[:], both.high[:] = self.low, self.high
        kernels().merge(both.low, both.high, more.low, more.high)
        return both
