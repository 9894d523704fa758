"""Keys to indices: which group a row is in, and what the groups are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rows.labels import KINDS, Labels, digest_of, mixed, plain_value

__all__ = ["KeyBook", "chosen_keys", "key_order"]

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]


_KINDS = {int: "integer", float: "integer", str: "text", bytes: "bytes"}


def key_order(key: Any) -> tuple[int, Any]:
    """Keys in an order that depends on no row: numbers, text, bytes."""
    if isinstance(key, (int, float)):
        return 0, key
    return (1, key) if isinstance(key, str) else (2, bytes(key))


class KeyBook:
    """Keys and their indices, in the order of their first rows, or as given.

    Parameters
    ----------
    keys : sequence, optional
        The public keys; any other key is in no group. None: every key that comes is one.
    """

    def __init__(self, keys: Sequence[Any] | None = None) -> None:
        self.closed = keys is not None
        self.keys: list[Any] = []
        self._places: dict[tuple[int, int], int] = {}
        for key in keys or ():
            before = len(self.keys)
            if self._place(key, add=True) != before:
                raise ValueError("keys must be integers, text or bytes, each once")

    def __len__(self) -> int:
        return len(self.keys)

    def index(self, labels: Labels) -> Ints:
        """The group of each row, -1 for none; keys that are new get the next index.

        Raises
        ------
        TypeError
            Where the column is of one type and the public keys are of another.
        """
        if self.closed and labels.kind in KINDS[:3] and not self._has(labels.kind):
            raise TypeError(
                f"the column of keys is of {labels.kind}, the keys given are not: "
                "give them as the data have them"
            )
        known = labels.codes >= 0
        if len(labels.digests) > len(labels) // 4 and isinstance(labels.values, np.ndarray):
            first, codes = _distinct(labels)
        else:
            first, codes = np.unique(labels.codes[known]), None
        places = np.full(len(labels.digests) + 1, -1, np.int64)  # the last is that of code -1
        for code in first.tolist():
            digest = (int(labels.digests[code, 0]), int(labels.digests[code, 1]))
            place = self._places.get(digest, -1)
            if place < 0 and not self.closed:
                place = self._add(digest, plain_value(labels.values[code]))
            places[code] = place
        return places[labels.codes if codes is None else codes]

    def place(self, key: Any) -> int:
        """The index of a key.

        Raises
        ------
        KeyError
            For a key that is in no group.
        """
        place = self._place(key, add=False)
        if place < 0:
            raise KeyError("no group has this key")
        return place

    def digests(self) -> Words:
        """The digest of each key (n, 2)."""
        return np.array(list(self._places), np.uint64).reshape(-1, 2)

    def add(self, key: Any) -> int:
        """The index of a key, which is a new one if need be."""
        return self._place(key, add=True)

    def order(self) -> list[int]:
        """Indices in the order of the keys' values."""
        return sorted(range(len(self.keys)), key=lambda i: key_order(self.keys[i]))

    def _has(self, kind: str) -> bool:
        """Whether a key is of this kind: a matter of types, so of public things."""
        return not self.keys or any(_KINDS[type(key)] == kind for key in self.keys)

    def _place(self, key: Any, *, add: bool) -> int:
        digest = digest_of(key)
        if digest is None:
            return -1
        place = self._places.get(digest, -1)
        return self._add(digest, plain_value(key)) if place < 0 and add else place

    def _add(self, digest: tuple[int, int], key: Any) -> int:
        self._places[digest] = len(self.keys)
        self.keys.append(key)
        return len(self.keys) - 1


def _distinct(labels: Labels) -> tuple[Ints, Ints]:
    """Of codes that may repeat a value: one code a value, and it for each row."""
    words = labels.digests[:, 0] ^ mixed(labels.digests[:, 1])
    _, first, inverse = np.unique(words, return_index=True, return_inverse=True)
    code = np.append(first[inverse.ravel()], -1)[labels.codes]
    kept = code[code >= 0]
    return np.unique(kept), code


def chosen_keys(users: Words, index: Ints, digests: Words, max_keys: int) -> NDArray[np.bool_]:
    """Which rows stay where each user may be in ``max_keys`` groups; one row a user and group.

    Those with the least hash of user and key: a function of the user's own keys, that favours
    no key over all users (claim groups-3).

    Parameters
    ----------
    users : array (n, 2), digests; rows of one user stand together
    index : array (n,)
    digests : array (groups, 2), of the keys
    max_keys : int
    """
    key = digests[index]
    rank = mixed(users[:, 0] ^ mixed(users[:, 1] ^ mixed(key[:, 0] ^ mixed(key[:, 1]))))
    new = np.append(True, (users[1:] != users[:-1]).any(1))
    run = np.cumsum(new) - 1
    order = np.lexsort((key[:, 1], key[:, 0], rank, run))
    start = np.flatnonzero(new)
    place = np.empty(len(users), np.int64)
    place[order] = np.arange(len(users)) - start[run]
    return place < max_keys
