"""One row a user and group, and at most so many groups of a user."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..guarantee import Neighbors
from ..rows.ahead import ended
from ..rows.cells import CellDigests
from ..rows.labelled import one_kind
from ..rows.words import nonzero, taken
from .keys import KeyBook, chosen_keys

__all__ = ["Users", "limited"]

Array = NDArray[Any]
Ints = NDArray[np.int64]


class Users:
    """Rows with user and group as three words; and how many users there are, where public.

    Threads may share it: columns of one type alone are then taken, as in one stream.
    """

    def __init__(self, neighbors: Neighbors) -> None:
        self._lock = threading.Lock()
        self._kinds: list[str] | None = None
        self.counted = neighbors.count_is_public  # else nobody asks, and memory is saved
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._seen)

    def of(
        self, batches: Iterator[Any], book: KeyBook, index_of: Callable[[KeyBook, Array, Any], Ints]
    ) -> Iterator[tuple[Array, NDArray[np.uint64]]]:
        digests = CellDigests()
        with ended(batches):
            for rows, labels in batches:
                user = labels[-1].rows(digests)
                named = nonzero(user)
                with self._lock:
                    self._check_kinds([label.kind for label in labels])
                    if self.counted and named.any():
                        self._seen.update(map(bytes, np.unique(taken(user, named).view("V16"))))
                    index = index_of(book, rows, labels)
                kept = named & (index >= 0)
                if kept.any():
                    own = [taken(user, kept), index[kept].astype(np.uint64)]
                    yield taken(rows, kept), np.column_stack(own)

    def _check_kinds(self, kinds: list[str]) -> None:
        self._kinds = one_kind(self._kinds, kinds)


def limited(
    runs: Iterator[tuple[Array, NDArray[np.uint64]]], book: KeyBook, max_keys: int
) -> Iterator[tuple[Array, Ints]]:
    """Rows of users and groups, those of one user together: at most ``max_keys`` of each."""
    rows, words = np.empty((0, 0)), np.empty((0, 3), np.uint64)
    digests = np.empty((0, 2), np.uint64)

    def chosen(end: int) -> tuple[Array, Ints]:
        index = words[:end, 2].astype(np.int64)
        kept = chosen_keys(words[:end, :2], index, digests, max_keys)
        return taken(rows[:end], kept), index[kept]

    for more, more_words in runs:
        rows = more if not len(rows) else np.concatenate([rows, more])
        words = np.concatenate([words, more_words])
        if len(digests) != len(book):
            digests = book.digests()
        other = np.flatnonzero(nonzero(words[:, :2] ^ words[-1, :2]))
        end = int(other[-1]) + 1 if len(other) else 0
        if end:
            yield chosen(end)
            rows, words = rows[end:], words[end:]
    if len(words):
        yield chosen(len(words))
