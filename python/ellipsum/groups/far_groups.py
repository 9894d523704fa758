"""Tables of groups of rows in an engine: each part gives the bytes of its own, which add up by key.

Without users a part's rows are in its table. With them the engine first brings the rows of each
user together, and a bucket's users are in its table; the integers are those of the same rows in one
place (claims engines-1, engines-4).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..column_names import Columns
from ..jobs.checkpoint import Job
from ..jobs.inputs import check_rows
from ..rows.batches import as_batches
from ..rows.cells import CellDigests
from ..rows.divided import Divided
from ..rows.files import Rows
from ..rows.labelled import label_batches, labelled_batches
from ..rows.labels import Labels
from ..rows.partitioned import InOnePiece, NamesSeen, Partitioned, check_labels, once_each
from ..rows.pieces import Seen, last_piece, pieces_of, read_pieces
from ..rows.words import nonzero, taken
from ..users import divided_runs
from .bounded import Users, limited
from .file_groups import Grouping, Table, table_of
from .key_bytes import key_bytes, keys_at
from .keys import KeyBook

__all__ = ["GroupTask", "UserGroupTask", "table_anywhere"]

Array = NDArray[Any]
Words = NDArray[np.uint64]
Batches = Iterator[tuple[Array, list[Labels]]]

_COUNT = struct.Struct("<Q")
#: The place of the key of a row that is in no group, and is there for its user to be counted.
_NO_GROUP = np.uint64((1 << 64) - 1)
_DAMAGED = "the piece is damaged: run the job again"


class _State:
    """A table, and what is known of the rows that it is of."""

    def __init__(self, table: Table, labels: int) -> None:
        self.table, self.seen = table, Seen(labels)

    def to_bytes(self) -> bytes:
        return self.seen.to_bytes(bytes(self.table.to_bytes()))

    def merge(self, raw: bytes) -> None:
        self.table.merge_bytes(self.seen.merge(raw))


@dataclass(frozen=True)
class GroupTask(InOnePiece):
    """The table of the rows of one part.

    Parameters
    ----------
    d : int; 0 for labels alone
    labels : tuple of str; the key, then the user, where there are such columns
    make : callable that returns a table of no rows
    groups : callable that gives the group of each row of a batch (``Grouping.groups``)
    names : tuple of str or None, of the coordinates
    """

    d: int
    labels: tuple[str, ...]
    make: Callable[[], Table]
    groups: Callable[[KeyBook, Array, list[Labels]], NDArray[np.int64]]
    names: tuple[str, ...] | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """The columns of labels, each once: a user may be the key."""
        return tuple(dict.fromkeys(self.labels))

    def __call__(self, data: Any) -> bytes:
        """The table of a part's rows, and the kinds of its labels."""
        state, columns = self._empty(), Columns(self.names, units=None)
        for rows, labels in self.batches(data, columns):
            state.seen.add([label.kind for label in labels])
            state.table.add_indexed(rows, self.groups(state.table.book, rows, labels))
            state.table.units += len(rows)
        state.seen.names.take(NamesSeen(columns.names).mark)
        return state.to_bytes()

    def merge(self, parts: Iterable[bytes]) -> bytes:
        """Tables of several parts, key by key."""
        return self.merged(parts).to_bytes()

    def merged(self, parts: Iterable[bytes]) -> _State:
        """As :meth:`merge`, not as bytes."""
        state = self._empty()
        for part in parts:
            state.merge(part)
        return state

    def _empty(self) -> _State:
        return _State(self.make(), len(self.labels))

    def batches(self, data: Any, columns: Columns) -> Batches:
        """Rows of a part, with their labels; ``columns`` learns their names."""
        if not self.labels:
            return ((block, []) for block in as_batches(data, self.d, columns, told=True))
        if self.d:
            return labelled_batches(data, self.d, self.labels, columns)
        return label_batches(data.labels_alone() if isinstance(data, Rows) else data, self.labels)


@dataclass(frozen=True)
class UserGroupTask(GroupTask):
    """The table of the users of some buckets: one row a user and group.

    Parameters
    ----------
    d, labels, make, groups, names : as of :class:`GroupTask`
    divide : bool; the mean of a user's rows in a group, not their sum
    max_keys : int
    counted : bool; whether the number of users is asked for, in a group or not
    """

    divide: bool = True
    max_keys: int = 1
    counted: bool = False

    def split(self, data: Any, buckets: int) -> Iterator[tuple[int, bytes]]:
        """Rows of one part by the user's bucket, with their keys; those of nobody stay here."""
        state, columns = self._empty(), Columns(self.names, units=None)
        book, sent, digests = state.table.book, bytearray(), CellDigests()

        def known() -> Iterator[tuple[Array, Words]]:
            for rows, labels in self.batches(data, columns):
                state.seen.add([label.kind for label in labels])
                user, index = labels[-1].rows(digests), self.groups(book, rows, labels)
                kept = nonzero(user) & (self.counted | (index >= 0))
                if kept.any():
                    place = np.where(index >= 0, index.astype(np.uint64), _NO_GROUP)
                    yield taken(rows, kept), np.column_stack([taken(user, kept), place[kept]])

        def mark() -> NDArray[np.uint8]:
            """Of each key, whether a piece has it."""
            sent.extend(bytes(len(book) - len(sent)))
            return np.frombuffer(sent, np.uint8)

        def named(words: Words) -> tuple[Words, bytes]:
            """The piece's own keys, and its rows' places among them."""
            place, own = np.unique(words[:, 2], return_inverse=True)
            none = place == _NO_GROUP
            mark()[place[~none].astype(np.int64)] = 1
            own = np.where(none[own], _NO_GROUP, own.astype(np.uint64))
            return np.column_stack([words[:, :2], own]), _keys_out(book, place[~none])

        yield from pieces_of(known(), buckets, len(self.labels), named)
        # A key that nobody's rows alone have is in the table, too, without a row.
        left = np.flatnonzero(mark() == 0)[: 0 if book.closed else None]
        if any(state.seen.kinds) or len(left):
            yield last_piece(state.seen.kinds, columns, state.table.d, 3, _keys_out(book, left))

    def __call__(self, data: Iterator[bytes]) -> bytes:
        """The table of the users of some buckets."""
        state, users_seen = self._empty(), set[bytes]()
        table = state.table
        with Divided(table.d) as divided:
            for piece in read_pieces(data, state.seen, table.d, 3):
                places = table.book.add(_keys_in(piece.more)).astype(np.uint64)
                users, own = np.ascontiguousarray(piece.words[:, :2]), piece.words[:, 2]
                if self.counted:
                    users_seen.update(map(bytes, np.unique(users.view("V16"))))
                if (kept := own != _NO_GROUP).any():
                    if (own[kept] >= len(places)).any():
                        raise ValueError(_DAMAGED)
                    at = places[own[kept].astype(np.int64)]
                    words = np.column_stack([taken(users, kept), at])
                    divided.add(taken(piece.rows, kept), words)
            for _, runs in divided_runs(divided, table.d, self.divide):
                for rows, index in limited(runs, table.book, self.max_keys):
                    table.add_indexed(rows, index)
        table.units = len(users_seen)
        return state.to_bytes()


def _keys_out(book: KeyBook, places: NDArray[Any]) -> bytes:
    keys = [key_bytes(book.keys[place]) for place in places.tolist()]
    return b"".join([_COUNT.pack(len(keys)), *keys])


def _keys_in(data: bytes) -> list[Any]:
    try:
        (count,), at = _COUNT.unpack_from(data), _COUNT.size
    except struct.error:
        raise ValueError(_DAMAGED) from None
    return keys_at(data, at, count)[0]


def table_anywhere(
    data: Any,
    grouping: Grouping,
    make: Callable[[], Table],
    users: Users | None,
    known: tuple[bool, int],
    job: Job | None = None,
    jobs: int = 1,
) -> Any:
    """The table of the rows of any data, here or in an engine, or of their users.

    Parameters
    ----------
    data : Partitioned, or as of :func:`ellipsum.groups.file_groups.table_of`
    grouping, make, users, known, job, jobs : as there
    """
    if not isinstance(data, Partitioned):
        return table_of(data, grouping, make, users, known, job, jobs)
    check_labels(data, grouping.by)
    if job is not None and "sum" in job.blobs:
        table = make()
        table.merge_bytes(job.blobs["sum"])
        return table
    table = _far_table(data, grouping, make, users, known)
    if job is not None:
        check_rows(job, data, table.units if users is None else None)
        job.blobs = {"sum": bytes(table.to_bytes())}
        job.save()
    return table


def _far_table(
    data: Partitioned,
    grouping: Grouping,
    make: Callable[[], Table],
    users: Users | None,
    known: tuple[bool, int],
) -> Table:
    names = None if grouping.columns is None else grouping.columns.names
    common = grouping.d, tuple(grouping.by), make, grouping.groups, names
    if users is None:
        task = GroupTask(*common)
        return task.merged(once_each(data.gather(task))).table
    divide, max_keys = known
    of_users = UserGroupTask(*common, divide, max_keys, users.counted)
    return of_users.merged(once_each(data.exchange(of_users))).table
