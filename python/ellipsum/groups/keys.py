"""Keys to indices: which group a row is in, and what the groups are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rows.cells import BYTES, NUMBER, TEXT, Cells
from ..rows.distinct import StringTable, newcomers
from ..rows.labels import Labels, labels_of_cells, mixed
from ..rows.words import changes, order_within, taken

__all__ = ["KeyBook", "chosen_keys", "key_order"]

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_SORTS = {"integer": NUMBER, "text": TEXT, "bytes": BYTES}


def key_order(key: Any) -> tuple[int, Any]:
    """Keys in an order that depends on no row: numbers, text, bytes."""
    if isinstance(key, (int, float)):
        return 0, key
    return (1, key) if isinstance(key, str) else (2, bytes(key))


class _Sort:
    """The keys of one sort: numbers, text or bytes."""

    def __init__(self, sort: str) -> None:
        self.sort, self.table = sort, StringTable()
        self.numbers: list[Any] = []  # the table of numbers has their digests alone
        self._places = np.empty(0, np.int64)
        self._size = 0
        self.keys_read = self.digests_read = 0

    @property
    def places(self) -> Ints:
        """The index in the book of each key."""
        return self._places[: self._size]

    def placed(self, places: Ints) -> None:
        """The indices in the book of the keys that came last."""
        end = self._size + len(places)
        if end > len(self._places):
            more = np.empty(max(end, 2 * len(self._places)), np.int64)
            more[: self._size] = self.places
            self._places = more
        self._places[self._size : end] = places
        self._size = end

    def values(self, start: int) -> list[Any]:
        """The keys from one of them on."""
        if self.sort == NUMBER:
            return self.numbers[start:]
        raw = self.table.known(start).to_list()
        return raw if self.sort == BYTES else [v.decode("utf-8", "surrogatepass") for v in raw]

    def digests(self, start: int) -> Words:
        """Their digests (n, 2), from one of them on."""
        known = self.table.known(start)
        if self.sort != NUMBER or not len(known):
            return known.digests(self.sort.encode())
        return known.data[int(known.starts[0]) :].view(np.uint64).reshape(-1, 2)


class KeyBook:
    """Keys and their indices, in the order in which they came first, or as given.

    No key is looked at by Python: a table of the core knows them by their bytes (claim groups-6).

    Parameters
    ----------
    keys : sequence, optional
        The public keys; any other key is in no group. None: every key that comes is one.
    """

    def __init__(self, keys: Sequence[Any] | None = None) -> None:
        self.closed = False
        self._sorts = {sort: _Sort(sort) for sort in (NUMBER, TEXT, BYTES)}
        self._size, self._in_turn = 0, True  # whether a sort's table has the book's own order
        self._half = False
        self._keys: list[Any] = []
        self._digests = np.empty((0, 2), np.uint64)
        if keys is not None:
            places = self.add(list(keys))
            if (places != np.arange(len(places))).any():
                raise ValueError("keys must be integers, text or bytes, each once")
            self.closed = True

    def __len__(self) -> int:
        return self._size

    @property
    def keys(self) -> list[Any]:
        """The keys, by their indices."""
        self.refuse_half()
        if len(self._keys) < self._size:
            self._keys += [None] * (self._size - len(self._keys))
            for sort in self._sorts.values():
                new = sort.places[sort.keys_read :].tolist()
                for place, key in zip(new, sort.values(sort.keys_read), strict=True):
                    self._keys[place] = key
                sort.keys_read += len(new)
        return self._keys

    def digests(self) -> Words:
        """The digest of each key (n, 2)."""
        self.refuse_half()
        if len(self._digests) < self._size:
            more = np.empty((self._size - len(self._digests), 2), np.uint64)
            self._digests = np.concatenate([self._digests, more])
            for sort in self._sorts.values():
                new = sort.places[sort.digests_read :]
                self._digests[new] = sort.digests(sort.digests_read)
                sort.digests_read += len(new)
        return self._digests

    def index(self, labels: Labels) -> Ints:
        """The group of each row, -1 for none; keys that are new get the next index.

        Raises
        ------
        TypeError
            Where the column is of one type and the public keys are of another.
        """
        kind = labels.kind
        if self.closed and kind in _SORTS and not len(self._sorts[_SORTS[kind]].table):
            raise TypeError(
                f"the column of keys is of {kind}, the keys given are not: "
                "give them as the data have them"
            )
        return labels.each(lambda cells: self._find(cells, add=not self.closed), -1)

    def place(self, key: Any) -> int:
        """The index of a key.

        Raises
        ------
        KeyError
            For a key that is in no group.
        """
        place = int(labels_of_cells([key]).each(lambda cells: self._find(cells, add=False), -1)[0])
        if place < 0:
            raise KeyError("no group has this key")
        return place

    def add(self, keys: Sequence[Any]) -> Ints:
        """The indices of keys, which are new ones if need be.

        Raises
        ------
        ValueError
            For a key that is not among the public ones.
        """
        closed = self.closed
        found = labels_of_cells(keys).each(lambda cells: self._find(cells, add=not closed), -1)
        if closed and (found < 0).any():
            raise ValueError("a table of public keys has another key: its bytes are damaged")
        return found

    def order(self) -> list[int]:
        """Indices in the order of the keys' values."""
        keys = self.keys
        if len(set(map(type, keys))) < 2:
            return sorted(range(len(keys)), key=keys.__getitem__)
        return sorted(range(len(keys)), key=lambda i: key_order(keys[i]))

    def _find(self, cells: Cells, *, add: bool) -> Ints:
        """The index of each cell; new keys in the order in which they come first."""
        if not add:
            self.refuse_half()
            return self._places_of(cells, add)
        with self.changing():
            return self._places_of(cells, add)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """What breaks off here leaves the keys, or what is kept for each of them, with a part of
        what was added: nothing is told of them from then on."""
        self.refuse_half()
        self._half = True
        yield
        self._half = False

    def refuse_half(self) -> None:
        """Raise RuntimeError where a change was broken off."""
        if self._half:
            raise RuntimeError("adding rows was broken off: make the table anew from the rows")

    def _places_of(self, cells: Cells, add: bool) -> Ints:
        out, size = np.empty(len(cells), np.int64), 0
        found: list[tuple[_Sort, Any, Ints]] = []
        fresh: list[tuple[_Sort, Ints]] = []
        for name, at, strings in cells.parts():
            sort = self._sorts[name]
            before = len(sort.table)
            here = out[at] if isinstance(at, slice) else np.empty(len(at), np.int64)
            local = sort.table.find(strings, here, add=add)
            size += len(local) if isinstance(at, slice) else 0
            found.append((sort, at, local))
            if len(sort.table) > before:
                first = newcomers(local, before)
                fresh.append(
                    (sort, first + (at.start or 0) if isinstance(at, slice) else at[first])
                )
        if fresh:
            self._name(cells, fresh)
        # Keys of one sort alone that came in their order have the same indices in both.
        same = self._in_turn and all(len(sort.table) == len(self) for sort, _, _ in found)
        if same and size == len(cells):
            return out
        placed = np.full(len(cells), -1, np.int64)
        for sort, at, local in found:
            placed[at] = np.append(sort.places, -1)[local]
        return placed

    def _name(self, cells: Cells, fresh: list[tuple[_Sort, Ints]]) -> None:
        """Indices for new keys, of the sort and cells where each came first."""
        rank = np.empty(sum(len(first) for _, first in fresh), np.int64)
        rank[np.argsort(np.concatenate([first for _, first in fresh]))] = np.arange(len(rank))
        done = self._size
        self._size += len(rank)
        self._in_turn &= bool((rank[1:] > rank[:-1]).all())
        for sort, first in fresh:
            if sort.sort == NUMBER:
                sort.numbers += cells.plain(first)
            sort.placed(done + rank[: len(first)])
            rank = rank[len(first) :]


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
    key = taken(digests, index)
    rank = mixed(users[:, 0] ^ mixed(users[:, 1] ^ mixed(key[:, 0] ^ mixed(key[:, 1]))))
    new = np.append(True, changes(users))
    run = np.cumsum(new) - 1
    order = order_within(run, rank, key[:, 0], key[:, 1])
    start = np.flatnonzero(new)
    place = np.empty(len(users), np.int64)
    place[order] = np.arange(len(users)) - start[run]
    return place < max_keys
