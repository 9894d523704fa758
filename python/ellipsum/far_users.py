"""Users whose rows are in an engine: one row a user, made where the rows of the user meet.

The engine brings the rows of each user to one task, which makes them one row, as
:mod:`ellipsum.users` does here, and hands the users' rows to the pass that is asked for
(claims engines-1, engines-4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .column_names import Columns
from .rows.cells import CellDigests
from .rows.divided import Divided
from .rows.labelled import labelled_batches, one_kind
from .rows.partitioned import InOnePiece, Partitioned, PartPass, check_labels, once_each
from .rows.pieces import Seen, last_piece, pieces_of, read_pieces
from .rows.words import nonzero, taken
from .users import UserRows, UserUnit, rows_of_users

__all__ = ["FarUsers", "UserTask", "rows_of_unit"]

Array = NDArray[Any]
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class UserTask(InOnePiece):
    """A pass over the rows of users, whose own rows lie in many parts.

    Parameters
    ----------
    task : PartPass, over one row a user
    user : str, the column
    divide : bool; a user's mean, not sum
    most : int, optional; in place of one row at most so many of a user's own
    """

    task: PartPass
    user: str
    divide: bool
    most: int | None = None

    @property
    def d(self) -> int:
        """Coordinates of a row."""
        return self.task.d

    @property
    def by(self) -> tuple[str, ...]:
        """The column of users."""
        return (self.user,)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Those of the pass."""
        return self.task.names

    def split(self, data: Any, buckets: int) -> Iterator[tuple[int, bytes]]:
        """Rows of one part by the user's bucket; a row without a user is nobody's."""
        kinds, columns = [""], Columns(self.names, units=None)
        digests = CellDigests()

        def named() -> Iterator[tuple[Array, Words]]:
            for rows, (labels,) in labelled_batches(data, self.d, self.by, columns):
                kinds[:] = one_kind(kinds, [labels.kind])
                words = labels.rows(digests)
                if (known := nonzero(words)).any():
                    yield taken(rows, known), taken(words, known)

        yield from pieces_of(named(), buckets, 1)
        if any(kinds):
            yield last_piece(kinds, columns, self.d, 2)

    def __call__(self, data: Iterator[bytes]) -> bytes:
        """What the users of some buckets give."""
        seen = Seen(1)
        with Divided(self.d) as divided:
            for piece in read_pieces(data, seen, self.d, 2):
                divided.add(piece.rows, piece.words)
            found = self.task(
                rows
                for _, batches in divided.parts()
                for rows in rows_of_users(batches, self.d, self.divide, self.most)
            )
        return seen.to_bytes(found)

    def merge(self, parts: Iterable[bytes]) -> bytes:
        """What several of them give together."""
        seen = Seen(1)
        inner = [seen.merge(part) for part in parts]
        return seen.to_bytes(self.task.merge(inner))


class FarUsers(Partitioned):
    """The rows of the users of data in an engine, as data for any pass.

    Each pass shuffles the rows by their user again.

    Parameters
    ----------
    data : Partitioned, with the column of users in ``by``
    user : str
    divide, most : as of :class:`UserTask`
    """

    def __init__(self, data: Partitioned, user: Any, divide: bool, most: int | None) -> None:
        check_labels(data, [user])
        self._data, self._user, self._divide, self._most = data, user, divide, most
        self.d, self.columns, self.units = data.d, data.columns, data.units

    def gather(self, task: PartPass) -> Iterator[tuple[str, bytes]]:
        """What the users that came together give."""
        seen, shuffled = Seen(1), UserTask(task, self._user, self._divide, self._most)
        for k, part in enumerate(once_each(self._data.exchange(shuffled))):
            yield f"bucket {k}", seen.merge(part)

    def stored(self) -> FarUsers:
        """What several passes read: itself, where :class:`ellipsum.users.UserRows` keep rows."""
        return self


def rows_of_unit(
    unit: UserUnit, data: Any, d: int, users: Any, columns: Columns, *, jobs: int = 1
) -> UserRows | FarUsers:
    """The rows of the users of any data, here or in an engine.

    Parameters
    ----------
    unit : UserUnit
    data, d, users, columns, jobs : as of its ``rows``

    Raises
    ------
    TypeError, ValueError
        For ``users`` or ``grouped`` with rows in an engine.
    """
    if not isinstance(data, Partitioned):
        return unit.rows(data, d, users, columns, jobs=jobs)
    if users is not None:
        raise TypeError(
            "rows in an engine have their users by the name that by= has: leave users out"
        )
    if unit.grouped:
        raise ValueError(
            "grouped does not go with rows in an engine: nothing shows whether a user is in two of "
            "its parts, and would count twice there; leave it out, and by= shuffles by user"
        )
    return FarUsers(data, unit.by, unit.statistic == "mean", unit.max_rows)
