"""The values of a column of labels, as they are held: integers, strings, Python's own objects.

Each gives its values as strings of bytes of three sorts, equal for equal values and for no
others: numbers by 128 bits (one to one for integers of 64 bits), text as UTF-8, bytes as they are.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..kernels.backend import kernels
from .distinct import Distinct, FixedStrings, Numbers, Strings, StringTable, fixed_width, joined

__all__ = [
    "BYTES",
    "NUMBER",
    "TEXT",
    "CellDigests",
    "Cells",
    "Column",
    "FixedWidth",
    "Integers",
    "Mixed",
    "number_digest",
    "number_text",
    "plain_value",
]

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Places = Any  # a slice, or an array of int64
Part = tuple[str, Places, Distinct]

NUMBER, TEXT, BYTES = "number", "text", "bytes"

_DIGEST_BYTES = 16
_WORD = (1 << 64) - 1
#: Integers from so many bits on are written in base 16: Python may refuse to print more than 4,300
#: digits, and takes a time that grows with their square.
_PRINTED_BITS = 2048
#: Distinct texts whose digests are kept (some 64 MiB), of a batch and from one to the next.
_MOST_KNOWN = 1 << 20
#: Cells that are looked at together: what is made of them stays in the cache.
_BLOCK = 1 << 15
#: Bytes of NumPy's text, or bytes, that are looked at together: what a copy of them takes at most.
_BLOCK_BYTES = 1 << 22


class Cells(Protocol):
    """Values of a column: what all ways to hold them do."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice) -> Any: ...

    def take(self, places: Ints) -> Cells:
        """These of them."""

    def parts(self) -> Iterator[Part]:
        """Sort of value, which of the cells, and their strings; together all that have a value."""

    def plain(self, places: Ints) -> list[Any]:
        """These of them as Python's own integers, text and bytes."""


class Integers:
    """An array of integers of any width."""

    def __init__(self, column: NDArray[Any]) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, part: slice) -> Integers:
        return Integers(self._column[part])

    def take(self, places: Ints) -> Integers:
        return Integers(self._column[places])

    def parts(self) -> Iterator[Part]:
        wide = np.int64 if self._column.dtype.kind == "i" else np.uint64
        for start in range(0, len(self), _BLOCK):
            here = np.require(self._column[start : start + _BLOCK], wide, ["C", "A"])
            yield NUMBER, slice(start, start + len(here)), Numbers(here)

    def plain(self, places: Ints) -> list[Any]:
        return list(self._column[places].tolist())


class Column:
    """Text (as UTF-8) or bytes of one buffer, as Arrow has them.

    Parameters
    ----------
    kind : TEXT or BYTES
    strings : Strings
    """

    def __init__(self, kind: str, strings: Strings) -> None:
        self._kind, self._strings = kind, strings

    def __len__(self) -> int:
        return len(self._strings)

    def __getitem__(self, part: slice) -> Column:
        return Column(self._kind, self._strings[part])

    def take(self, places: Ints) -> Column:
        return Column(self._kind, self._strings.take(places))

    def parts(self) -> Iterator[Part]:
        for start in range(0, len(self), _BLOCK):
            here = self._strings[start : start + _BLOCK]
            yield self._kind, slice(start, start + len(here)), here

    def plain(self, places: Ints) -> list[Any]:
        found = self._strings.take(places).to_list()
        return found if self._kind == BYTES else [value.decode() for value in found]


class FixedWidth:
    """NumPy's text or bytes."""

    def __init__(self, column: NDArray[Any]) -> None:
        self._column = column
        self._kind = TEXT if column.dtype.kind == "U" else BYTES

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, part: slice) -> FixedWidth:
        return FixedWidth(self._column[part])

    def take(self, places: Ints) -> FixedWidth:
        return FixedWidth(self._column[places])

    def parts(self) -> Iterator[Part]:
        rows = max(1, min(_BLOCK, _BLOCK_BYTES // max(1, self._column.itemsize)))
        for start in range(0, len(self), rows):
            here = self._column[start : start + rows]
            yield self._kind, slice(start, start + len(here)), FixedStrings(here)

    def plain(self, places: Ints) -> list[Any]:
        return list(self._column[places].tolist())


class Mixed:
    """Python's own integers, fractions, text and bytes: what :func:`plain_value` returns."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, part: slice) -> Mixed:
        return Mixed(self._values[part])

    def take(self, places: Ints) -> Mixed:
        return Mixed([self._values[i] for i in places.tolist()])

    def parts(self) -> Iterator[Part]:
        of: dict[type, tuple[str, Callable[[list[Any]], Strings | Numbers]]] = {
            str: (TEXT, lambda v: joined([x.encode("utf-8", "surrogatepass") for x in v])),
            bytes: (BYTES, joined),
            int: (NUMBER, _of_integers),
            float: (NUMBER, _of_numbers),
        }
        kinds = list(map(type, self._values))
        for kind in dict.fromkeys(kinds):
            if kinds.count(kind) == len(kinds):
                yield of[kind][0], slice(None), of[kind][1](list(self._values))
                return
            here = [i for i, each in enumerate(kinds) if each is kind]
            strings = of[kind][1]([self._values[i] for i in here])
            yield of[kind][0], np.array(here, np.int64), strings

    def plain(self, places: Ints) -> list[Any]:
        return [self._values[i] for i in places.tolist()]


def _of_integers(numbers: list[int]) -> Strings | Numbers:
    try:
        words = np.array(numbers, np.int64)
    except OverflowError:
        return _of_numbers(numbers)
    return Numbers(words)


def _of_numbers(numbers: list[Any]) -> Strings:
    return fixed_width(np.array([number_digest(x) for x in numbers], np.uint64), _DIGEST_BYTES)


class CellDigests:
    """128 bits of each cell (n, 2), never (0, 0) for a value: for text and bytes BLAKE2b.

    Each text is digested once, in later batches too, as long as there are not too many.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Digested] = {}

    def __call__(self, cells: Cells) -> Words:
        out = np.zeros((len(cells), 2), np.uint64)
        for kind, at, strings in cells.parts():
            if kind != NUMBER:
                if kind not in self._known or len(self._known[kind].table) > _MOST_KNOWN:
                    self._known[kind] = _Digested(kind.encode())
                out[at] = self._known[kind](strings)
            elif isinstance(strings, Numbers):
                out[at] = strings.digests()
            elif isinstance(strings, Strings):  # fractions, and integers of more bits
                out[at] = strings.data.view(np.uint64).reshape(-1, 2)
        return out


class _Digested:
    """Distinct texts, or bytes, with their digests."""

    def __init__(self, kind: bytes) -> None:
        self.table, self._kind = StringTable(), kind
        self._digests = np.zeros((1 << 10, 2), np.uint64)  # the first is of none

    def __call__(self, strings: Distinct) -> Words:
        before = len(self.table)
        places = self.table.find(strings, add=True)
        end = len(self.table) + 1
        if end > len(self._digests):
            grown = np.empty((2 * end, 2), np.uint64)
            grown[: before + 1] = self._digests[: before + 1]
            self._digests = grown
        if end > before + 1:
            self._digests[before + 1 : end] = self.table.known(before).digests(self._kind)
        return self._digests.take(places + 1, axis=0)


def number_text(number: int | float) -> str:
    """An integer of any size, or a fraction's shortest digits."""
    whole = isinstance(number, int) and number.bit_length() >= _PRINTED_BITS
    return hex(number) if whole else repr(number)  # type: ignore[arg-type]


def number_digest(number: int | float) -> tuple[int, int]:
    """128 bits of an integer of any size, or of a fraction."""
    if isinstance(number, float):
        return _hashed(b"float", number.hex().encode())
    if not -(1 << 63) <= number <= _WORD:
        return _hashed(b"integer", number_text(number).encode())
    out = np.empty((1, 2), np.uint64)
    kernels().integer_digests(np.array([number & _WORD], np.uint64), number < 0, out)
    return int(out[0, 0]), int(out[0, 1])


def _hashed(kind: bytes, data: bytes) -> tuple[int, int]:
    raw = hashlib.blake2b(data, digest_size=_DIGEST_BYTES, person=b"ellipsum-" + kind[:7]).digest()
    return int.from_bytes(raw[:8], "little"), int.from_bytes(raw[8:], "little") | 1


def plain_value(value: Any) -> Any:
    """The value as every reader has it, of Python's own types; None for no value.

    A whole float is an integer, a UUID its bytes, a member of an enumeration its number or text.
    """
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if number.is_integer():
            return int(number)
        return None if number != number else number
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, uuid.UUID):
        return value.bytes
    return bytes(value) if type(value) in (bytes, bytearray, np.bytes_) else None
