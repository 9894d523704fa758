"""Phi X as exact integers: columns of Phi by the row's number, sums modulo 2^64, numbers used."""

from __future__ import annotations

import bisect
import hashlib

import numpy as np
from numpy.typing import NDArray

from ..noise import WORD_COUNT, fill_rounded
from .projection_floor import PHI_BITS
from .record_clip import RecordClip

__all__ = ["MOST_ROWS", "RADIUS_BITS", "Numbers", "Sketch", "mark_of"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Rows of a table. Sums are kept modulo 2^64: a sum of so many rows of 2^25 steps has a standard
#: deviation below 2^18 2^25 2^14 = 2^57, and is larger than 2^63 with a chance below 1e-890.
MOST_ROWS = 1 << 36
RADIUS_BITS = 25
#: Rows of a block. Entries of Phi are below 31.2 * 2^14 (kernels/exact_gaussian.py), and those of a
#: row below 2^25 (1 + 2^-10): any partial sum of 512 products is an integer below 2^53, so that
#: it is exact in doubles, in whatever order and with whatever instructions BLAS adds.
_BLOCK_ROWS = 512
_LEAST_ROWS = 128
_BLOCK_NUMBERS = 1 << 17  # of Phi in a block: 1 MiB
_SCALE = np.array([2.0**PHI_BITS])


class Numbers:
    """Which rows' numbers were used: disjoint ranges, in order."""

    def __init__(self, ranges: list[tuple[int, int]] | None = None) -> None:
        self.ranges = list(ranges or [])

    def take(self, first: int, end: int) -> None:
        """Mark first, ..., end - 1 as used.

        Raises
        ------
        ValueError
            If one of them was used before; nothing is marked then.
        """
        if first == end:
            return
        i = bisect.bisect_right(self.ranges, (first, end))
        before = self.ranges[i - 1][1] if i else 0
        after = self.ranges[i][0] if i < len(self.ranges) else end
        if before > first or after < end:
            raise ValueError(
                "a row's number was used already: two rows with one column of Phi have no "
                "guarantee; give each part of the table its own range by first="
            )
        self.ranges.insert(i, (first, end))
        self._join()

    def union(self, other: Numbers) -> Numbers:
        """All of both; a ValueError where they overlap."""
        both = Numbers(self.ranges)
        for first, end in other.ranges:
            both.take(first, end)
        return both

    @property
    def end(self) -> int:
        """One more than the largest."""
        return self.ranges[-1][1] if self.ranges else 0

    def __len__(self) -> int:
        return sum(end - first for first, end in self.ranges)

    def _join(self) -> None:
        joined: list[tuple[int, int]] = []
        for first, end in self.ranges:
            if joined and joined[-1][1] == first:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((first, end))
        self.ranges = joined


def mark_of(key: bytes) -> bytes:
    """16 bytes that tell one key from another, and nothing else of it."""
    return hashlib.blake2b(key, digest_size=16, person=b"ellipsum-phi").digest()


class Sketch:
    """sum_i phi_i x_i', in steps of 2^-14 of the rows' grid. **Private**, as the rows are.

    Parameters
    ----------
    rows : int, m
    clip : RecordClip, of d coordinates
    """

    def __init__(self, rows: int, clip: RecordClip) -> None:
        self.rows, self.clip = rows, clip
        self.sums = np.zeros((rows, clip.k), dtype=np.int64)
        self.used: dict[bytes, Numbers] = {}  # by the mark of the columns' key
        self._block = max(_LEAST_ROWS, min(_BLOCK_ROWS, _BLOCK_NUMBERS // rows))

    @property
    def count(self) -> int:
        """Rows that are in it. **Private** for ``add-remove`` neighbours."""
        return sum(len(numbers) for numbers in self.used.values())

    def next_number(self, key: bytes) -> int:
        """The number after the largest that this key was used for."""
        numbers = self.used.get(mark_of(key))
        return numbers.end if numbers else 0

    def add(self, batch: NDArray[np.floating], key: bytes, first: int, threads: int) -> None:
        """Add rows number first, first + 1, ...: column i of Phi is words i m, ..., i m + m - 1 of
        the key's stream."""
        end = first + len(batch)
        if end > min(MOST_ROWS, WORD_COUNT // self.rows):  # a key has so many words
            raise ValueError("first and the rows' number must stay below 2^36, and below 2^64 / m")
        self.used.setdefault(mark_of(key), Numbers()).take(first, end)
        phi = np.empty((min(self._block, len(batch)), self.rows), dtype=np.int64)
        real, product = np.empty(phi.shape), np.empty(self.sums.shape)
        for start in range(0, len(batch), self._block):
            with np.errstate(all="ignore"):  # a warning would tell of a value
                rows = np.asarray(batch[start : start + self._block], dtype=np.float64)
            n = len(rows)
            at = (first + start) * self.rows
            fill_rounded(phi[:n].reshape(-1), _SCALE, key, at, threads)
            np.copyto(real[:n], phi[:n])
            np.matmul(real[:n].T, self.clip.block(rows), out=product)
            self.sums += product.astype(np.int64)
        for private in (phi, real, product):
            private[:] = 0

    def merge(self, other: Sketch) -> None:
        """Add the rows of another; a ValueError where a number is in both."""
        joined = {
            mark: self.used.get(mark, Numbers()).union(numbers)
            for mark, numbers in other.used.items()
        }
        self.used |= joined
        self.sums += other.sums
