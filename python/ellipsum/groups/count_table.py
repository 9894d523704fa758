"""The exact sizes of groups: what a table of sums is to sums."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .key_bytes import key_bytes, keys_at
from .keys import KeyBook

__all__ = ["ExactCounts"]

Ints = NDArray[np.int64]

_HEADER = struct.Struct("<QQ")  # groups, units


class ExactCounts:
    """Users, or rows, of each group, and in all. *All of it is private.*

    Parameters
    ----------
    keys : sequence, optional
        The public keys. None: every key that comes.
    """

    d = 1  #: coordinates of the rows that stand for what is counted

    def __init__(self, keys: Sequence[Any] | None = None) -> None:
        self.book, self.units = KeyBook(keys), 0
        self._counts = np.zeros(len(self.book), np.int64)

    def add_indexed(self, _rows: Any, index: Ints) -> None:
        """Count rows by the index of their group in ``book``; -1 is in none."""
        self._add(np.bincount(index[index >= 0], minlength=len(self.book)))

    def _add(self, more: Ints) -> None:
        counts = more.astype(np.int64)
        counts[: len(self._counts)] += self._counts
        self._counts = counts

    def counts(self) -> Ints:
        """Those of each group, in the order of the book's keys."""
        out = np.zeros(len(self.book), np.int64)
        out[: len(self._counts)] = self._counts
        return out

    def order(self) -> list[int]:
        """Indices as released: in the order of the keys, or as they were given."""
        return list(range(len(self.book))) if self.book.closed else self.book.order()

    def merge(self, other: ExactCounts) -> ExactCounts:
        """Add another one of the same public keys, if any."""
        self._merge(self.book.add(other.book.keys), other.counts(), other.units)
        return self

    def _merge(self, places: Ints, counts: Ints, units: int) -> None:
        more = np.zeros(len(self.book), np.int64)
        more[places] = counts
        self._add(more)
        self.units += units

    def to_bytes(self) -> bytes:
        """It as bytes, the same for every order and split."""
        order = self.order()
        keys = [key_bytes(self.book.keys[i]) for i in order]
        counts = self.counts()[order].astype("<i8").tobytes()
        return b"".join([_HEADER.pack(len(order), self.units), *keys, counts])

    def merge_bytes(self, data: bytes) -> None:
        """Add what another one's ``to_bytes`` returned."""
        groups, units = _HEADER.unpack_from(data)
        keys, at = keys_at(data, _HEADER.size, groups)
        counts = np.frombuffer(data, "<i8", groups, at)
        self._merge(self.book.add(keys), counts, units)
