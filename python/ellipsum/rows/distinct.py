"""Strings of bytes, and a table of the distinct ones: what tells labels apart."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import lines
from ..kernels.backend import kernels

__all__ = [
    "Distinct",
    "FixedStrings",
    "Numbers",
    "StringTable",
    "Strings",
    "fixed_width",
    "joined",
    "newcomers",
    "python_texts",
]

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_DIGEST_BYTES = 16


class Strings:
    """Stretches [start, end) of bytes; one that is not within the data has no value.

    Parameters
    ----------
    data : array of uint8
    starts, ends : arrays (n,) of int64
    """

    def __init__(self, data: NDArray[np.uint8], starts: Ints, ends: Ints) -> None:
        self.data, self.starts, self.ends = data, starts, ends

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, part: slice) -> Strings:
        return Strings(self.data, self.starts[part], self.ends[part])

    def take(self, places: Ints) -> Strings:
        """These of them, in this order."""
        return Strings(self.data, self.starts[places], self.ends[places])

    def find(self, done: int, table: tuple[Any, ...], add: bool, places: Ints) -> int:
        """How many from one of them on had room; their places are written."""
        edges = (np.ascontiguousarray(a[done:], np.int64) for a in (self.starts, self.ends))
        return int(kernels().find_strings(self.data, *edges, *table, add, places))

    def size(self, i: int) -> int:
        """The bytes of one of them, or more."""
        return int(self.ends[i] - self.starts[i])

    def digests(self, kind: bytes) -> Words:
        """128 bits of each (n, 2), zeros without a value; ``kind`` keeps kinds apart."""
        out = np.empty((len(self), 2), np.uint64)
        arguments = (np.ascontiguousarray(a, np.int64) for a in (self.starts, self.ends))
        kernels().string_digests(self.data, *arguments, b"ellipsum-" + kind[:7], out)
        return out

    def to_list(self) -> list[bytes]:
        """Their bytes; every one has a value."""
        raw = self.data.tobytes()
        pairs = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [raw[start:end] for start, end in pairs]


class Numbers:
    """Integers of 64 bits, whose strings are their digests.

    Parameters
    ----------
    integers : contiguous array of int64 or uint64
    """

    def __init__(self, integers: NDArray[Any]) -> None:
        self.words, self.signed = integers.view(np.uint64), integers.dtype.kind == "i"

    def __len__(self) -> int:
        return len(self.words)

    def find(self, done: int, table: tuple[Any, ...], add: bool, places: Ints) -> int:
        """As of :class:`Strings`."""
        return int(kernels().find_integers(self.words[done:], self.signed, *table, add, places))

    def size(self, _i: int) -> int:
        """The bytes of each."""
        return _DIGEST_BYTES

    def digests(self, _kind: bytes = b"") -> Words:
        """128 bits of each (n, 2), one to one."""
        out = np.empty((len(self), 2), np.uint64)
        kernels().integer_digests(self.words, self.signed, out)
        return out


class FixedStrings:
    """NumPy's text, as UTF-8, or bytes, without the zeros that fill them; 32 bits that are no
    character are no text, and have no value.

    Parameters
    ----------
    cells : array (n,) of ``U`` or ``S``
    """

    def __init__(self, cells: NDArray[Any]) -> None:
        if not cells.dtype.itemsize:  # of no characters, which an array of NumPy's can have
            cells = cells.astype(f"{cells.dtype.kind}1")
        native = np.require(cells, cells.dtype.newbyteorder("="), ["C", "A"])
        unit = np.dtype(np.uint8 if cells.dtype.kind == "S" else np.uint32)
        self._rows, self._width = len(native), native.itemsize // unit.itemsize
        self._units = native.view(unit).reshape(-1)

    def __len__(self) -> int:
        return self._rows

    def find(self, done: int, table: tuple[Any, ...], add: bool, places: Ints) -> int:
        """As of :class:`Strings`."""
        units = self._units[done * self._width :]
        return int(kernels().find_fixed(units, self._width, *table, add, places))

    def size(self, i: int) -> int:
        """As of :class:`Strings`."""
        held = self._units[i * self._width : (i + 1) * self._width].nonzero()[0]
        return (int(held[-1]) + 1) * self._units.itemsize if len(held) else 0


#: What a table finds.
Distinct = Strings | Numbers | FixedStrings


def joined(strings: Sequence[bytes]) -> Strings:
    """Python's bytes objects, one after the other."""
    ends = np.cumsum([len(s) for s in strings], dtype=np.int64)
    data = np.frombuffer(b"".join(strings), np.uint8)
    return Strings(data, np.concatenate([[0], ends[:-1]]).astype(np.int64)[: len(ends)], ends)


def python_texts(texts: Sequence[Any] | NDArray[Any]) -> Strings | None:
    """Python's texts as UTF-8, all at once, and no value for None; None where one is no text."""
    starts, ends = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64)
    data = kernels().python_texts(texts, starts, ends)
    return None if data is None else Strings(data, starts, ends)


def fixed_width(data: NDArray[Any], width: int) -> Strings:
    """A contiguous array as strings of ``width`` bytes each."""
    raw = data.reshape(-1).view(np.uint8)
    starts = np.arange(0, raw.size, width, dtype=np.int64)
    return Strings(raw, starts, starts + width)


def newcomers(places: NDArray[np.int64], before: int) -> NDArray[np.int64]:
    """Where places of ``before`` and above come first: they are given in that order."""
    if not len(places):
        return places
    top = np.maximum.accumulate(places[: int(places.argmax()) + 1])  # the last of them
    return np.flatnonzero((top >= before) & (np.diff(top, prepend=-2) > 0))


#: Words of a set of the table's cache, a cache line; and most of its sets: 2 MiB.
_SET_WORDS, _MOST_SETS = 8, 1 << 15


class StringTable:
    """Distinct strings, by the order in which they came; 25 bytes each, and their own.

    And a cache of at most 2 MiB of those that came last.
    """

    def __init__(self) -> None:
        self._slots = np.zeros(64, np.uint64)
        self._arena = np.empty(1 << 10, np.uint8)
        self._ends = np.zeros(33, np.int64)
        self._cache = lines.zeros((_SET_WORDS * (len(self._slots) // 2),), np.uint64)
        # How many, and where the hashes begin: no key of noise, and in nothing that leaves.
        self._state = np.array([0, secrets.randbits(64)], np.uint64)

    def __len__(self) -> int:
        return int(self._state[0])

    def find(self, strings: Distinct, places: Ints | None = None, *, add: bool) -> Ints:
        """The place of each string, -1 for none; with ``add`` a new one gets the next. They are
        written to ``places``, where it is given."""
        done = 0
        if places is None:
            places = np.empty(len(strings), np.int64)
        while done < len(strings):
            done += strings.find(done, self._parts(), add, places[done:])
            if done < len(strings):
                self._grow(strings.size(done))
        return places

    def _parts(self) -> tuple[Any, ...]:
        return self._slots, self._arena, self._ends, self._state, self._cache

    def known(self, start: int = 0) -> Strings:
        """The strings of the table, from a place on."""
        edges = self._ends[start : len(self) + 1]
        return Strings(self._arena[: int(edges[-1])], edges[:-1], edges[1:])

    def _grow(self, size: int) -> None:
        """Twice the room of what is short for a string of ``size`` bytes."""
        count = len(self)
        if 2 * (count + 1) > len(self._slots):
            self._slots = np.zeros(2 * len(self._slots), np.uint64)
            kernels().seat_strings(self._slots, self._arena, self._ends, self._state)
            if len(self._cache) < _SET_WORDS * _MOST_SETS:
                self._cache = lines.zeros((_SET_WORDS * (len(self._slots) // 2),), np.uint64)
        if count + 1 >= len(self._ends):
            self._ends = np.concatenate([self._ends, np.zeros(len(self._ends), np.int64)])
        used = int(self._ends[count])
        if used + size > len(self._arena):
            arena = np.empty(max(2 * len(self._arena), used + size), np.uint8)
            arena[:used] = self._arena[:used]
            self._arena = arena
