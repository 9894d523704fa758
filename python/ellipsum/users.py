"""Many rows a person to one: the unit of privacy is then the person.

The rows of one user become one row *before* the clip: their correctly rounded mean or sum, a
function of the multiset of the user's rows alone (claim users-1). A user's rows decide nothing
else. So the clip's bound on a row is a bound on a user, and every mechanism on rows is one on
users (claim users-2).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _validate
from .column_names import Columns
from .kernels.backend import kernels
from .rows.batches import OF_USERS
from .rows.distinct import fixed_width
from .rows.files import Rows
from .rows.labelled import labelled_batches
from .rows.labels import mixed

__all__ = ["STATISTICS", "UserRows", "UserUnit", "make_unit", "refuse_users", "user_runs"]

Array = NDArray[Any]
Words = NDArray[np.uint64]

STATISTICS = ("mean", "sum")

#: Bytes of rows that are kept in memory before they go to files.
MEMORY_BYTES = 256 << 20
#: Files that rows are divided among, by 6 bits of the user's digest at a time.
_PARTS = 64
#: Numbers handed on at a time.
_NUMBERS_PER_BLOCK = 1 << 19
_PLACES = 10  # of 6 bits each, in the first word of a digest


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
        self, data: Any, d: int, users: Any, columns: Columns | None = None, *, several: bool
    ) -> Any:
        """One row a user: an iterator, or what begins ``several`` passes when it is called."""
        column = self.by if users is None else users
        if self.max_rows is not None:
            most = UserRows(data, d, column, grouped=self.grouped, columns=columns)
            return most.least(self.max_rows)
        one = UserRows(
            data, d, column, statistic=self.statistic, grouped=self.grouped, columns=columns
        )
        return one.stored() if several else one.batches()


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
        _validate.whole("max_rows", max_rows, least=1)
        if statistic is not None:
            raise ValueError("give statistic, one row a user, or max_rows, several of them")
    if not isinstance(by, str) or not by:
        raise TypeError("by must be the name of a column: give a column itself by users=")
    if not isinstance(grouped, bool):
        raise TypeError(f"grouped must be True or False, got {type(grouped).__name__}")
    chosen = _validate.one_of("statistic", statistic or default, STATISTICS)
    return UserUnit(by, chosen, grouped, max_rows)


def refuse_users(data: Any, users: Any) -> None:
    """Raise where a column of users is at hand, and the mechanism would protect single rows."""
    if users is not None:
        raise TypeError("users is given, but the mechanism was made without by=, their name")
    if isinstance(data, Rows) and data.by:
        raise ValueError(OF_USERS.format(data.by[0]))


class UserRows:
    """One row for each user, to be read as often as wanted.

    Rows without a user (null, NaN) are left out: a row that nobody's name is on cannot weaken
    anybody's guarantee (claim users-3).

    With ``grouped``, each user's rows stand together, and memory is O(d). Otherwise rows are
    collected; beyond 256 MiB they go to temporary files, divided by a hash of the user. The
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
    ) -> None:
        self._data, self.d, self._user = data, d, user
        self._divide = _validate.one_of("statistic", statistic, STATISTICS) == "mean"
        self._grouped, self._columns = grouped, columns

    def batches(self) -> Iterator[Array]:
        """One pass: float64 arrays (n, d), a row a user, in no order that tells anything."""
        for rows, _ in user_runs(self._labelled(), self.d, self._divide, self._grouped):
            yield rows

    def stored(self) -> Callable[[], Iterator[Array]]:
        """The users' rows, kept for several passes; each call begins another."""
        return _Store(self.batches(), self.d).batches

    def least(self, most: int) -> Iterator[Array]:
        """One pass: float64 arrays (n, d), at most ``most`` rows a user (claim users-6)."""
        if self._grouped:
            yield from _least(self._labelled(), self.d, most)
            return
        with _Parts(self.d) as parts:
            parts.take(self._labelled())
            for part in parts.sorted():
                yield from _least(part, self.d, most)

    def _labelled(self) -> Iterator[tuple[Array, Words]]:
        data = self._data() if callable(self._data) else self._data
        for rows, (labels,) in labelled_batches(data, self.d, [self._user], self._columns):
            words = labels.rows()
            if (named := words.any(1)).any():  # a row without a user is nobody's
                yield rows[named], words[named]


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
        with _Parts(d) as parts:
            parts.take(labelled)
            for part in parts.sorted():
                yield from _runs(part, d, divide)


def _runs(
    batches: Iterator[tuple[Array, Words]], d: int, divide: bool
) -> Iterator[tuple[Array, Words]]:
    """Adjacent rows of one digest to one row, whatever the batches' ends."""
    state = np.zeros((d, kernels().RUN_STATE_WORDS), np.int64)
    open_words: Words | None = None
    for rows, words in batches:
        new = np.flatnonzero((words[1:] != words[:-1]).any(1)) + 1
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
    rows, words, rank = np.empty((0, d)), np.empty((0, 2), np.uint64), np.empty(0, np.uint64)
    for more, more_words in batches:
        with np.errstate(all="ignore"):  # a warning would tell of a value
            plain = np.ascontiguousarray(more, np.float64)
        rank = np.concatenate([rank, _ranks(plain, more_words)])
        rows, words = np.concatenate([rows, plain]), np.concatenate([words, more_words])
        run = np.cumsum(np.append(False, (words[1:] != words[:-1]).any(1)))
        order = np.lexsort((rank, run))
        place = np.arange(len(run)) - np.searchsorted(run, run)
        kept = order[place < most]
        done = kept[run[kept] < run[-1]]
        if len(done):
            yield rows[done]
        rest = kept[run[kept] == run[-1]]
        rows, words, rank = rows[rest], words[rest], rank[rest]
    if len(rows):
        yield rows


def _ranks(rows: Array, words: Words) -> NDArray[np.uint64]:
    """A hash of each user and row: alike for equal rows of one user, and of no row's place."""
    with np.errstate(all="ignore"):
        alike = np.where(np.isnan(rows), np.nan, rows + 0.0)  # zeros, and NaNs, of one kind
    digests = fixed_width(alike, alike.itemsize * alike.shape[1]).digests(b"row")
    user = mixed(words[:, 0] ^ mixed(words[:, 1]))
    return mixed(user ^ mixed(digests[:, 0] ^ mixed(digests[:, 1])))


def _finished(
    rows: Array, ends: Array, state: Array, divide: bool, words: Words, before: Words | None
) -> tuple[Array, Words]:
    out = np.empty((len(ends), state.shape[0]))
    ends = np.ascontiguousarray(ends, np.int64)
    ready = rows.dtype in (np.float32, np.float64) and rows.dtype.isnative and rows.flags.aligned
    with np.errstate(all="ignore"):  # a warning would tell of a value
        plain = rows if ready else np.ascontiguousarray(rows, np.float64)
    kernels().run_means(plain, ends, state, out, divide)
    owners = words[ends - 1]
    if before is not None and len(ends) and ends[0] == 0:
        owners[0] = before
    return out, owners


class _Parts:
    """Rows and digests in memory, or divided among files by their digests."""

    def __init__(self, d: int, place: int = 0) -> None:
        self._d, self._place = d, place
        self._rows: list[tuple[Array, Words]] = []
        self._bytes = 0
        self._files: list[_File] = []
        self._same = True
        self._first: Words | None = None

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, *_error: object) -> None:
        for file in self._files:
            file.close()
        self._rows = []

    def take(self, batches: Iterator[tuple[Array, Words]]) -> None:
        for rows, words in batches:
            self._first = words[0] if self._first is None else self._first
            self._same &= bool((words == self._first).all())
            step = max(1, _NUMBERS_PER_BLOCK // self._d)
            for start in range(0, len(rows), step):
                with np.errstate(all="ignore"):  # a warning would tell of a value
                    part = np.array(rows[start : start + step], np.float64)
                self._rows.append((part, words[start : start + step]))
                self._bytes += part.nbytes + words[start : start + step].nbytes
                if self._bytes > MEMORY_BYTES:
                    self._spill()

    def _spill(self) -> None:
        if not self._files:
            self._files = [_File() for _ in range(_PARTS)]
        for rows, words in self._rows:
            part = words[:, 0] >> np.uint64(6 * self._place) & np.uint64(_PARTS - 1)
            for k in np.unique(part):
                here = part == k
                self._files[int(k)].append(rows[here], words[here])
        self._rows, self._bytes = [], 0

    def sorted(self) -> Iterator[Iterator[tuple[Array, Words]]]:
        """Parts that no digest is in two of, each with equal digests together."""
        if not self._files:
            yield from [_in_order(self._rows)] if self._rows else []
            return
        self._spill()
        for file in self._files:
            width = 0 if self._first is None else self._first.size
            blocks = file.blocks(self._d, width)
            if file.size <= MEMORY_BYTES:
                yield _in_order(list(blocks))
            elif self._same:
                yield blocks  # one user's rows may be any number
            elif self._place + 1 == _PLACES:  # digests alike in 60 bits, which nobody has by chance
                yield _in_order(list(blocks))
            else:
                with _Parts(self._d, self._place + 1) as parts:
                    parts.take(blocks)
                    yield from parts.sorted()
            file.close()


def _in_order(parts: list[tuple[Array, Words]]) -> Iterator[tuple[Array, Words]]:
    if not parts:
        return
    rows = np.concatenate([part for part, _ in parts])
    words = np.concatenate([part for _, part in parts])
    order = _together(words)
    step = max(1, _NUMBERS_PER_BLOCK // rows.shape[1])
    for start in range(0, len(order), step):
        here = order[start : start + step]
        yield rows[here], words[here]


def _together(words: Words) -> NDArray[np.int64]:
    """Rows in an order in which equal ones stand together, and those of one user too.

    One sort by the first word tells nearly all apart: it is a digest's.
    """
    order = np.argsort(words[:, 0])
    same = np.ones(max(len(words) - 1, 0), np.bool_)
    for column in range(1, words.shape[1]):
        before, here = words[order, column - 1], words[order, column]
        same &= before[1:] == before[:-1]
        if (same & (here[1:] != here[:-1])).any():
            if column == 1 or int(here.max()) >= 1 << 32:
                return np.lexsort(words.T[::-1])
            run = np.cumsum(np.append(False, ~same)).astype(np.uint64)
            order = order[np.argsort(run << np.uint64(32) | here)]
    return order


class _File:
    """Blocks of rows in a temporary file: mode 0600, and without a name where that can be."""

    def __init__(self) -> None:
        self._file: Any = tempfile.TemporaryFile(prefix="ellipsum-")
        self._counts: list[int] = []
        self.size = 0

    def append(self, rows: Array, words: Words) -> None:
        for part in (rows, words):
            self._file.write(np.ascontiguousarray(part).data.cast("B"))
            self.size += part.nbytes
        self._counts.append(len(rows))

    def blocks(self, d: int, width: int) -> Iterator[tuple[Array, Words]]:
        """The blocks as they were written: ``d`` coordinates, ``width`` words of digest."""
        self._file.seek(0)
        for count in self._counts:
            rows = np.frombuffer(self._file.read(8 * count * d), np.float64)
            words = np.frombuffer(self._file.read(8 * count * width), np.uint64)
            yield rows.reshape(count, d), words.reshape(count, width)

    def close(self) -> None:
        self._file.close()


class _Store:
    """Rows for several passes: in memory, or beyond 256 MiB in a temporary file."""

    def __init__(self, batches: Iterator[Array], d: int) -> None:
        self._d = d
        self._memory: list[Array] = []
        self._file: _File | None = None
        size = 0
        for rows in batches:
            size += rows.nbytes
            if size > MEMORY_BYTES and self._file is None:
                self._file = _File()
                for kept in self._memory:
                    self._file.append(kept, _none(kept))
                self._memory = []
            if self._file is None:
                self._memory.append(rows)
            else:
                self._file.append(rows, _none(rows))

    def batches(self) -> Iterator[Array]:
        if self._file is None:
            return iter([rows for rows in self._memory if len(rows)])
        return (rows for rows, _ in self._file.blocks(self._d, 0) if len(rows))


def _none(rows: Array) -> Words:
    return np.empty((len(rows), 0), np.uint64)
