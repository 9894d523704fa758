"""Tables of groups: of one pass over any rows, or of several files at a time, from where a
checkpoint stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..column_names import Columns
from ..jobs.checkpoint import Job
from ..jobs.file_sums import ROWS_PER_STATE, FileSums
from ..noise_keys import digest
from ..rows.divided import Divided
from ..rows.files import Rows, labelled_arrays
from ..rows.identity import inputs_of
from ..rows.labelled import label_places, one_kind
from ..rows.labels import KINDS, Labels, labels_of
from ..users import divide_rows, divided_runs
from .bounded import Users, limited
from .key_bytes import key_bytes
from .keys import KeyBook

__all__ = ["Grouping", "Table", "by_key", "keys_digest", "table_of"]

Array = NDArray[Any]
Ints = NDArray[np.int64]


class Table(Protocol):
    """Exact sums of groups, or their sizes."""

    book: KeyBook
    units: int

    @property
    def d(self) -> int:
        """Coordinates of a row that is added."""

    def add_indexed(self, rows: Array, index: Ints) -> None:
        """Add rows by the index of their group; -1 is in none."""

    def merge(self, other: Any) -> Any:
        """Add another one."""

    def to_bytes(self) -> bytes:
        """It as bytes. **Private.**"""

    def merge_bytes(self, data: bytes) -> Any:
        """Add what another one's ``to_bytes`` returned."""


class Grouping(NamedTuple):
    """How the rows of data come, and which group each is in."""

    by: list[Any]  #: key and user: those that are labels, the user last
    d: int  #: coordinates of a row of files
    batches: Callable[[Any], Iterator[tuple[Array, list[Labels]]]]  #: rows of data, and ``by``
    groups: Callable[[KeyBook, Array, list[Labels]], Ints]  #: of the group of each row of these
    columns: Columns | None = None  #: names of the coordinates, as far as they are known


def keys_digest(keys: list[Any] | None) -> str | None:
    """What tells public keys, in their order, from others."""
    return None if keys is None else digest(*map(key_bytes, keys)).hex()


def by_key(book: KeyBook, _: Array, labels: list[Labels]) -> Ints:
    """The group of each row, by the first of its labels."""
    return book.index(labels[0])


def table_of(
    data: Any,
    grouping: Grouping,
    make: Callable[[], Table],
    users: Users | None,
    known: tuple[bool, int],
    job: Job | None = None,
    jobs: int = 1,
) -> Any:
    """The table of the rows of data, or of its users.

    Parameters
    ----------
    data : what ``grouping.batches`` takes; Rows for ``job`` and ``jobs``
    grouping : Grouping
    make : callable that returns a table of no rows, with the units that it is of
    users : Users, or None for rows
    known : whether a user's rows become their mean, and max_keys
    job : Job, optional; without one, nothing is kept
    jobs : int, files of Rows, or parts of one, that are read at the same time
    """
    if users is not None:
        return _of_users(data, grouping, make(), users, known, job, jobs)
    if job is not None or jobs > 1:
        return _of_files(data, grouping, make, job, jobs)
    table = make()
    for rows, labels in grouping.batches(data):
        table.add_indexed(rows, grouping.groups(table.book, rows, labels))
        table.units += len(rows)
    return table


class _TablePart:
    """A table of the rows of some blocks of files, and the kind that their keys have."""

    def __init__(
        self, make: Callable[[], Table], grouping: Grouping, places: dict[str, int]
    ) -> None:
        self._make, self._grouping, self._places = make, grouping, places
        self.table, self._kind = make(), ""

    def empty_copy(self) -> _TablePart:
        return _TablePart(self._make, self._grouping, self._places)

    def add(self, block: Any, columns: list[Any]) -> None:
        for rows, parts in labelled_arrays([(block, columns)]):
            labels = [labels_of(f"column {k!r}", parts[p]) for k, p in self._places.items()]
            for label in labels:
                self._check(label.kind)
            self.table.add_indexed(rows, self._grouping.groups(self.table.book, rows, labels))
            self.table.units += len(rows)

    def _check(self, kind: str) -> None:
        (self._kind,) = one_kind([self._kind], [kind])

    def merge(self, other: _TablePart) -> None:
        self._check(other._kind)
        self.table.merge(other.table)

    def partial(self) -> bytes:
        kind = KINDS.index(self._kind) + 1 if self._kind else 0
        return bytes([kind]) + bytes(self.table.to_bytes())

    def merge_partial(self, part: bytes) -> None:
        self._check(["", *KINDS][part[0]])
        self.table.merge_bytes(part[1:])


def _of_files(
    rows: Rows, grouping: Grouping, make: Callable[[], Table], job: Job | None, jobs: int
) -> Table:
    """The table of the rows of files, from where the job's checkpoint stands (claim resume-6)."""
    places = dict(zip(grouping.by, label_places(rows, grouping.by), strict=True))
    empty = _TablePart(make, grouping, places)
    return FileSums(rows, empty, grouping.d, job, jobs, _TablePart.add).run().table


def _of_users(
    data: Any,
    grouping: Grouping,
    table: Table,
    users: Users,
    known: tuple[bool, int],
    job: Job | None,
    jobs: int,
) -> Table:
    """The table of one row a user and group, from the users that a checkpoint lacks.

    The checkpoint holds no row: a run that goes on reads the files again, for their keys and the
    number of their users too, and leaves out the users that are in its table (claim resume-6).
    """
    divide, max_keys = known
    done: set[int] = set()
    if job is not None and "sum" in job.blobs:
        table.merge_bytes(job.blobs["sum"])
        done |= set(job.facts["parts"])
        if job.facts.get("whole"):
            return table

    def keep(to: Job, **more: bool) -> int:
        to.blobs = {"sum": bytes(table.to_bytes())}
        to.facts = {"parts": sorted(done), **more}
        return len(to.blobs["sum"])

    with Divided(table.d, done=done) as divided:
        divide_rows(
            data,
            jobs,
            lambda part: users.of(grouping.batches(part), table.book, grouping.groups),
            divided,
        )
        size = since = 0
        for number, runs in divided_runs(divided, table.d, divide):
            for block, index in limited(runs, table.book, max_keys):
                table.add_indexed(block, index)
                since += block.nbytes
            if number is None:  # what has no number is all that is left
                continue
            done.add(number)
            if job is not None and since >= ROWS_PER_STATE * size and job.due:
                size, since = keep(job), 0
                job.save_soon()
    table.units = len(users)
    if job is not None:
        job.check_inputs(inputs_of(data))
        keep(job, whole=True)
        job.save()
    return table
