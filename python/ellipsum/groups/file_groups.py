"""Tables of groups over files: several files at a time, from where a checkpoint stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..jobs.checkpoint import Job
from ..jobs.file_sums import ROWS_PER_STATE, FileSums
from ..noise_keys import digest
from ..rows.divided import Divided
from ..rows.files import Rows, labelled_arrays
from ..rows.labelled import OTHER_TYPE, label_places, labelled_batches
from ..rows.labels import KINDS, labels_of
from ..rows.seek import inputs_of
from ..users import divide_rows, divided_runs
from .bounded import Users, limited
from .key_bytes import key_bytes
from .table import ExactGroupSum

__all__ = ["keys_digest", "table_of_files", "table_of_users"]


def keys_digest(keys: list[Any] | None) -> str | None:
    """What tells public keys, in their order, from others."""
    return None if keys is None else digest(*map(key_bytes, keys)).hex()


class _TablePart:
    """A table of the rows of some blocks of files, and the kind that their keys have."""

    def __init__(self, make: Callable[[], ExactGroupSum], key: str, place: int) -> None:
        self._make, self._key, self._place = make, key, place
        self.table, self._kind = make(), ""

    def empty_copy(self) -> _TablePart:
        return _TablePart(self._make, self._key, self._place)

    def add(self, block: Any, columns: list[Any]) -> None:
        for rows, parts in labelled_arrays([(block, columns)]):
            labels = labels_of(f"column {self._key!r}", parts[self._place])
            self._check(labels.kind)
            self.table.add_indexed(rows, self.table.book.index(labels))
            self.table.units += len(rows)

    def _check(self, kind: str) -> None:
        if kind and self._kind not in ("", kind):
            raise TypeError(OTHER_TYPE)
        self._kind = self._kind or kind

    def merge(self, other: _TablePart) -> None:
        self._check(other._kind)
        self.table.merge(other.table)

    def partial(self) -> bytes:
        kind = KINDS.index(self._kind) + 1 if self._kind else 0
        return bytes([kind]) + bytes(self.table.to_bytes())

    def merge_partial(self, part: bytes) -> None:
        self._check(["", *KINDS][part[0]])
        self.table.merge(self.table.from_bytes(part[1:], self._make().own_regions()))


def table_of_files(
    rows: Rows, key: Any, make: Callable[[], ExactGroupSum], job: Job | None, jobs: int
) -> ExactGroupSum:
    """The table of the rows of files, from where the job's checkpoint stands (claim resume-6).

    Parameters
    ----------
    rows : Rows
    key : str, a name in ``rows.by``
    make : callable that returns a table of no rows, with the units that it is of
    job : Job or None; without one, nothing is kept
    jobs : int, files that are read at the same time
    """
    (place,) = label_places(rows, [key])
    empty = _TablePart(make, key, place)
    sums = FileSums(rows, empty, empty.table.d, job, jobs, _TablePart.add)
    return sums.run().table


def table_of_users(
    data: Any,
    by: list[Any],
    table: ExactGroupSum,
    users: Users,
    known: tuple[bool, int],
    job: Job | None = None,
    jobs: int = 1,
) -> ExactGroupSum:
    """Add to the table one row a user and group, from the users that a checkpoint lacks.

    The checkpoint holds no row: a run that goes on reads the files again, for their keys and the
    number of their users too, and leaves out the users that are in its table (claim resume-6).

    Parameters
    ----------
    data : what :func:`ellipsum.rows.labelled.labelled_batches` takes; Rows for ``job`` and ``jobs``
    by : key and user
    table : ExactGroupSum of no rows, with the units that it is of
    users : Users
    known : whether a user's rows become their mean, and max_keys
    job : Job, optional
    jobs : int, files that are read at the same time
    """
    divide, max_keys = known
    done: set[int] = set()
    if job is not None and "sum" in job.blobs:
        table.merge(table.from_bytes(job.blobs["sum"], table.own_regions()))
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
            lambda part: users.of(labelled_batches(part, table.d, by, table.columns), table.book),
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
            if job is not None and since >= ROWS_PER_STATE * size:
                size, since = keep(job), 0
                job.save_soon()
    table.units = len(users)
    if job is not None:
        job.check_inputs(inputs_of(data))
        keep(job, whole=True)
        job.save()
    return table
