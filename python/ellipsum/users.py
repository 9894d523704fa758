"""Many rows a person to one: the unit of privacy is then the person.

The rows of one user become one row *before* the clip: their correctly rounded mean or sum, a
function of the multiset of the user's rows alone (claim users-1). A user's rows decide nothing
else. So the clip's bound on a row is a bound on a user, and every mechanism on rows is one on
users (claim users-2).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _validate
from .column_names import Columns
from .kernels.backend import kernels
from .rows.ahead import ended
from .rows.batches import OF_USERS
from .rows.cells import CellDigests
from .rows.divided import Divided, Store
from .rows.files import Rows
from .rows.labelled import labelled_batches, one_kind, rows_of_table
from .rows.partitioned import Partitioned
from .rows.words import changes, nonzero, order_within, taken

__all__ = [
    "STATISTICS",
    "UserRows",
    "UserUnit",
    "divide_rows",
    "divided_runs",
    "make_unit",
    "refuse_users",
    "rows_of_users",
    "user_runs",
]

Array = NDArray[Any]
Words = NDArray[np.uint64]

STATISTICS = ("mean", "sum")


@dataclass(frozen=True)
class UserUnit:
    """That the unit of privacy is a user: whose row it is, and what a user's rows become."""

    by: str
    statistic: str
    grouped: bool
    max_rows: int | None = None

    @property
    def unit(self) -> str:
        """The unit, as a guarantee says it."""
        how = " (which stand together, as the caller says)" if self.grouped else ""
        return f"all rows of one value of {self.by}{how}"

    def rows(
        self, data: Any, d: int, users: Any, columns: Columns | None = None, *, jobs: int = 1
    ) -> UserRows:
        """The rows of the users of data: one each, or at most ``max_rows``."""
        known: dict[str, Any] = {"grouped": self.grouped, "columns": columns, "jobs": jobs}
        column = self.by if users is None else users
        if self.max_rows is None:
            known["statistic"] = self.statistic
        return UserRows(data, d, column, most=self.max_rows, **known)


def make_unit(
    by: str | None, statistic: str | None, grouped: bool, max_rows: int | None, *, default: str
) -> UserUnit | None:
    """The unit that was asked for; None where it is a row."""
    if by is None:
        if statistic is not None or grouped or max_rows is not None:
            raise TypeError(
                "statistic, grouped and max_rows need by, the column that says whose row it is"
            )
        return None
    if max_rows is not None:
        max_rows = _validate.whole("max_rows", max_rows, least=1)
        if statistic is not None:
            raise ValueError("give statistic, one row a user, or max_rows, several of them")
    if not isinstance(by, str) or not by:
        raise TypeError("by must be the name of a column: give a column itself by users=")
    if not isinstance(grouped, bool):
        raise TypeError(f"grouped must be True or False, got {type(grouped).__name__}")
    chosen = _validate.one_of("statistic", statistic or default, STATISTICS)
    return UserUnit(by, chosen, grouped, max_rows)


def refuse_users(data: Any, users: Any, unit: UserUnit | None = None) -> None:
    """Raise where a column of users is at hand, and the mechanism would protect single rows."""
    if unit is not None:
        if isinstance(users, str) and users != unit.by:
            raise ValueError(
                "users must be a column itself: the name of one is by=, which the guarantee names"
            )
        return
    if users is not None:
        raise TypeError("users is given, but the mechanism was made without by=, their name")
    if isinstance(data, (Rows, Partitioned)) and data.by:
        raise ValueError(OF_USERS.format(data.by[0]))


class UserRows:
    """One row for each user, to be read as often as wanted.

    Rows without a user (null, NaN) are left out: a row that nobody's name is on cannot weaken
    anybody's guarantee (claim users-3).

    With ``grouped``, each user's rows stand together, and memory is O(d). Otherwise rows are
    collected, but for those of one NumPy array of float32 or float64 in C order, which stay where
    they are, so that it is read until the pass is over;
    beyond 256 MiB they go to temporary files, divided by a hash of the user. The
    files hold the rows as they are, are readable by this user of the machine alone (mode 0600),
    have no name where the system allows it, and are gone when they are closed, whatever ends the
    process. ``TMPDIR`` says where (claim users-5).

    Parameters
    ----------
    data : what :func:`ellipsum.rows.labelled.labelled_batches` takes
    d : int
    user : str, or a column; whose row it is
    statistic : ``"mean"`` or ``"sum"``, of a user's finite numbers in each coordinate
    grouped : bool; the holder of the data says that each user's rows stand together
    columns : Columns, optional; the names of the coordinates
    most : int, optional; in place of one row at most so many of a user's own (claim users-6)
    jobs : int; files of ``Rows``, or parts of one, that are read at the same time
    """

    def __init__(
        self,
        data: Any,
        d: int,
        user: Any,
        *,
        statistic: str = "mean",
        grouped: bool = False,
        columns: Columns | None = None,
        most: int | None = None,
        jobs: int = 1,
    ) -> None:
        if jobs > 1 and grouped:
            raise ValueError(
                "jobs does not go with grouped: a user's rows may go on in the next file"
            )
        self._data, self.d, self._user = data, d, user
        self._most, self._jobs, self._kind = most, jobs, ""
        self._divide = _validate.one_of("statistic", statistic, STATISTICS) == "mean"
        self._grouped, self._columns = grouped, columns

    def batches(self) -> Iterator[Array]:
        """One pass: float64 arrays (n, d), in no order that tells anything."""
        for _, rows in self.parts():
            yield from rows

    def stored(self) -> Store:
        """What begins a pass over the users' rows, which are kept when the first one is made."""
        files = self._data if isinstance(self._data, Rows) else None
        return Store(self.batches, self.d, files)

    def parts(self, done: Collection[int] = ()) -> Iterator[tuple[int | None, Iterator[Array]]]:
        """One pass: the rows of the users of each part, by the part's number.

        A user is in one part, by the user's digest, whatever the order of the rows; None is the
        number of what is not divided, as too few or grouped rows.

        Parameters
        ----------
        done : collection of int, parts whose users are left out
        """
        if self._grouped:
            yield None, self._of_users(_named(self._labelled(self._data)))
            return
        held = self._data if type(self._data) is np.ndarray else None
        expected = rows_of_table(self._data)
        with Divided(self.d, done=done, held=held, expected=expected) as divided:
            self._read(divided)
            for number, batches in divided.parts():
                yield number, self._of_users(batches)

    def _of_users(self, batches: Iterator[tuple[Array, Words]]) -> Iterator[Array]:
        return rows_of_users(batches, self.d, self._divide, self._most)

    def _read(self, divided: Divided) -> None:
        """All rows, from several files at a time."""
        lock = threading.Lock()
        divide_rows(self._data, self._jobs, lambda part: self._labelled(part, lock), divided)

    def _labelled(
        self, data: Any, lock: threading.Lock | None = None
    ) -> Iterator[tuple[Array, Words]]:
        data, digests = data() if callable(data) else data, CellDigests()
        for rows, (labels,) in labelled_batches(data, self.d, [self._user], self._columns):
            if lock is not None:
                with lock:
                    (self._kind,) = one_kind([self._kind], [labels.kind])
            yield rows, labels.rows(digests)


def _named(batches: Iterator[tuple[Array, Words]]) -> Iterator[tuple[Array, Words]]:
    """The rows that have a user: one without is nobody's."""
    with ended(batches):
        for rows, words in batches:
            named = nonzero(words)
            if named.any():
                yield (rows, words) if named.all() else (taken(rows, named), taken(words, named))


def rows_of_users(
    batches: Iterator[tuple[Array, Words]], d: int, divide: bool, most: int | None
) -> Iterator[Array]:
    """One row a user, or at most ``most``, of rows whose equal digests stand together."""
    if most is not None:
        return _least(batches, d, most)
    return (rows for rows, _ in _runs(batches, d, divide))


def divide_rows(
    data: Any, jobs: int, of: Callable[[Any], Iterator[tuple[Array, Words]]], divided: Divided
) -> None:
    """Divide all rows of data; of ``Rows``, so many files, or parts of one, at a time.

    Parameters
    ----------
    data : Rows, or anything where ``jobs`` is 1
    jobs : int
    of : callable that gives the rows of data, or of one part, with their digests; threads call it
    divided : Divided
    """
    parts = data.each_split(jobs, divided.d) if jobs > 1 else [data]
    if len(parts) == 1:
        divided.take(of(data))
        return
    meter, stop = data.meter(), threading.Event()

    def one(part: Rows) -> None:
        for rows, words in of(part):
            if stop.is_set():
                return
            divided.add(rows, words)
            meter.add(len(rows))

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for _ in pool.map(one, parts):  # raises what one of them does
                pass
        finally:
            stop.set()  # after an error the others end at their next block
            pool.shutdown(cancel_futures=True)
            meter.close()


def divided_runs(
    divided: Divided, d: int, divide: bool
) -> Iterator[tuple[int | None, Iterator[tuple[Array, Words]]]]:
    """One row for each distinct digest, part by part, each with its number (``Divided.parts``)."""
    for number, part in divided.parts():
        yield number, _runs(part, d, divide)


def user_runs(
    labelled: Iterator[tuple[Array, Words]], d: int, divide: bool, grouped: bool = False
) -> Iterator[tuple[Array, Words]]:
    """One row for each distinct digest (k words), with its digest.

    Parameters
    ----------
    labelled : iterator of rows (n, d) and digests (n, k), n > 0
    d : int
    divide : bool; the mean, not the sum
    grouped : bool; equal digests stand together
    """
    if grouped:
        yield from _runs(labelled, d, divide)
    else:
        with Divided(d) as divided:
            divided.take(labelled)
            for _, runs in divided_runs(divided, d, divide):
                yield from runs


def _runs(
    batches: Iterator[tuple[Array, Words]], d: int, divide: bool
) -> Iterator[tuple[Array, Words]]:
    """Adjacent rows of one digest to one row, whatever the batches' ends."""
    state = np.zeros((d, kernels().RUN_STATE_WORDS), np.int64)
    open_words: Words | None = None
    for rows, words in batches:
        new = np.flatnonzero(changes(words)) + 1
        if open_words is not None and (words[0] != open_words).any():
            new = np.concatenate([[0], new])
        done = _finished(rows, new, state, divide, words, open_words)
        open_words = words[-1]
        if len(new):
            yield done
    if open_words is not None:
        end, none = np.zeros(1, np.int64), np.empty((0, d))
        yield _finished(none, end, state, divide, open_words[None], open_words)


def _least(batches: Iterator[tuple[Array, Words]], d: int, most: int) -> Iterator[Array]:
    """At most ``most`` of the rows of each run of digests, whatever the batches' ends."""
    rows, words = np.empty((0, d)), np.empty((0, 2), np.uint64)  # of the run that is open
    for more, more_words in batches:
        more = _ready(more)
        if len(rows) and (words[0] == more_words[0]).all():
            more = np.concatenate([rows, _doubles(more)])
            more_words = np.concatenate([words, more_words])
        elif len(rows):
            yield rows
        run = np.cumsum(np.append(False, changes(more_words)))
        kept = _kept(more, more_words, run, most)
        ended, is_open = np.split(kept, [np.searchsorted(run[kept], run[-1])])
        if len(ended):
            yield _doubles(taken(more, ended))
        rows, words = _doubles(taken(more, is_open)), taken(more_words, is_open)
    if len(rows):
        yield rows


def _kept(rows: Array, words: Words, run: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Places of at most ``most`` rows of each run, those of the least hash: a function of the
    multiset of the run's rows, also where rows that differ have one hash, as two can be made to."""
    long = np.flatnonzero((np.bincount(run) > most)[run])
    run, ranks = run[long], _ranks(rows, words, long)
    order = order_within(run, ranks)
    tied = np.flatnonzero((np.diff(run) == 0) & (np.diff(ranks[order]) == 0))
    one, next_one = (_told_apart(taken(rows, long[order[at]])) for at in (tied, tied + 1))
    if (one != next_one).any():
        order = np.lexsort((*_told_apart(taken(rows, long)).T, ranks, run))
    places = np.arange(len(run))
    begins = np.append(True, run[1:] != run[:-1])[: len(run)]
    place = places - np.maximum.accumulate(places * begins)
    dropped = np.zeros(len(rows), np.bool_)
    dropped[long[order[place >= most]]] = True
    return np.flatnonzero(~dropped)


def _ranks(rows: Array, words: Words, which: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A hash (m,) of each of the rows (n, d) at these m places and its user's words (n, 2), of no
    row's place."""
    ranks = np.empty(len(which), np.uint64)
    kernels().row_ranks(rows, np.ascontiguousarray(words), which, ranks)
    return ranks


def _told_apart(rows: Array) -> Words:
    """The bits of copied rows as doubles, with zeros of one kind, and NaNs."""
    with np.errstate(all="ignore"):  # a warning would tell of a value
        own = rows.astype(np.float64) + 0.0
        np.copyto(own, np.nan, where=np.isnan(own))
    return own.view(np.uint64)


def _doubles(rows: Array) -> Array:
    with np.errstate(all="ignore"):  # a warning would tell of a value
        return rows.astype(np.float64, copy=False)


def _ready(rows: Array) -> Array:
    """Rows (n, d) as kernels take them at once: where they lie, or a copy."""
    plain = rows.dtype in (np.float32, np.float64) and rows.dtype.isnative and rows.flags.aligned
    with np.errstate(all="ignore"):  # a warning would tell of a value
        return np.ascontiguousarray(rows, rows.dtype if plain else np.float64)


def _finished(
    rows: Array, ends: Array, state: Array, divide: bool, words: Words, before: Words | None
) -> tuple[Array, Words]:
    out = np.empty((len(ends), state.shape[0]))
    ends = np.ascontiguousarray(ends, np.int64)
    kernels().run_means(_ready(rows), ends, state, out, divide)
    owners = words[ends - 1]
    if before is not None and len(ends) and ends[0] == 0:
        owners[0] = before
    return out, owners
