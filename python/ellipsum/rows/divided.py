"""Rows divided by a digest beside each of them, so that equal ones come together: in memory, or
beyond it in temporary files (claim users-5)."""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .ahead import ended
from .words import nonzero, taken

if TYPE_CHECKING:
    from .files import Rows

__all__ = ["Divided", "Store", "dropped"]

Array = NDArray[Any]
Words = NDArray[np.uint64]

#: Bytes of rows that are kept in memory before they go to files.
MEMORY_BYTES = 256 << 20
#: Files that rows are divided among, by 6 bits of the user's digest at a time.
_PARTS = 64
#: Numbers handed on at a time.
_NUMBERS_PER_BLOCK = 1 << 19
#: What a block takes beside its numbers, at most.
_BYTES_OF_BLOCK = 1 << 9
_PLACES = 10  # of 6 bits each, in the first word of a digest


class Divided:
    """Rows and digests in memory, or divided among files by their digests. Threads may share it.

    Parameters
    ----------
    d : int
    place : int
        Which 6 bits of a digest divide the files: of the first part they are the first.
    done : collection of int
        Parts of the first place whose rows are left out: they are dealt with.
    held : array, optional
        The caller's, which stays as it is: rows that lie in it are not copied, but to files.
    expected : int
        Rows that come at most, 0 where nobody knows: what has room for them need not be joined.
    """

    def __init__(
        self,
        d: int,
        place: int = 0,
        *,
        done: Collection[int] = (),
        held: Array | None = None,
        expected: int = 0,
    ) -> None:
        self.d, self._place, self._held = d, place, held
        self._room: _Room | None = _Room(expected, d) if expected and held is None else None
        self._done = np.array(sorted(done), np.uint64)
        self._lock = threading.Lock()
        self._rows: list[tuple[Array, Words]] = []
        self._bytes = 0
        self._files: list[_File] = []
        self._same = True
        self._first: Words | None = None

    def __enter__(self) -> Divided:
        return self

    def __exit__(self, *_error: object) -> None:
        for file in self._files:
            file.close()
        self._rows, self._room = [], None

    def take(self, batches: Iterator[tuple[Array, Words]]) -> None:
        """Add all batches of rows (n, d) and digests (n, k)."""
        with ended(batches):
            for rows, words in batches:
                self.add(rows, words)

    def add(self, rows: Array, words: Words) -> None:
        """Add rows (n, d) and their digests (n, k); rows whose digest is zeros are left out."""
        if self._done.size:
            left = ~np.isin(self._part_of(words), self._done)
            words = words * left[:, None]
        dtype, stays = _kept_as(rows), self._stays(rows)
        own = 0 if stays else dtype.itemsize * self.d * len(rows)
        step = self._step
        if self._bytes + own + words.nbytes + _BYTES_OF_BLOCK <= MEMORY_BYTES:
            step = max(1, len(rows))  # one part: no copy later
        for start in range(0, len(rows), step):
            part, here = rows[start : start + step], words[start : start + step]
            named = nonzero(here)
            if not (stays or named.all()):  # of what stays, they are left out when it is read
                part, here = taken(part, named), taken(here, named)
            if named.any():
                self._keep(part, here, dtype, stays)

    def _keep(self, rows: Array, words: Words, dtype: np.dtype[Any], stays: bool) -> None:
        own = 0 if stays else dtype.itemsize * self.d * len(rows)
        with np.errstate(all="ignore"):  # a warning would tell of a value
            if not stays and self._room is None:
                rows = np.array(rows, dtype, order="C")
            with self._lock:
                if self._room is not None and not stays:
                    if (all_so_far := self._room.put(rows, words, dtype)) is not None:
                        self._rows = []
                    else:
                        self._room = None
                        all_so_far = np.array(rows, dtype, order="C"), np.array(words)
                    self._rows.append(all_so_far)
                else:
                    self._rows.append((rows, np.array(words)))
                self._count(words, own)
                if self._bytes > MEMORY_BYTES:
                    self._spill()

    def _stays(self, rows: Array) -> bool:
        """Whether rows are kept where they lie."""
        held = self._held
        if held is None or rows.dtype != _kept_as(rows) or not rows.flags.c_contiguous:
            return False
        return np.may_share_memory(rows, held)  # not what was taken out of it

    def _count(self, words: Words, own: int) -> None:
        """What was kept: its digests, and bytes of rows of its own."""
        self._bytes += own + words.nbytes + _BYTES_OF_BLOCK
        self._first = words[-1].copy() if self._first is None else self._first
        ends_alike = self._same and bool((words[-1] == self._first).all())
        self._same = ends_alike and bool((words == self._first).all())

    @property
    def _step(self) -> int:
        """Rows that go to files at a time: many, since each of the files takes some of them."""
        return max(1, MEMORY_BYTES // (8 * 8 * (self.d + 2)))  # and a digest

    def _part_of(self, words: Words) -> Words:
        return words[:, 0] >> np.uint64(6 * self._place) & np.uint64(_PARTS - 1)

    def _spill(self) -> None:
        self._room = None
        if not self._files:
            self._files = [_File() for _ in range(_PARTS)]
        for rows, words in self._blocks():
            part = self._part_of(words).astype(np.uint8)  # whose sort takes a fourth of the time
            order = np.argsort(part, kind="stable")
            if not (named := nonzero(words)).all():
                order = taken(order, taken(named, order))
            found, starts = np.unique(part[order], return_index=True)
            for k, start, end in zip(found, starts, [*starts[1:], len(order)], strict=True):
                here = order[start:end]
                self._files[int(k)].append(taken(rows, here), taken(words, here))
        self._bytes = 0

    def _blocks(self) -> Iterator[tuple[Array, Words]]:
        """What is in memory, which forgets it."""
        parts, self._rows, step = self._rows[::-1], [], self._step
        while parts:
            few = [parts.pop()]
            n = len(few[0][0])
            while parts and (n := n + len(parts[-1][0])) <= step:
                few.append(parts.pop())
            rows, words = _joined(few)
            for start in range(0, len(rows), step):
                yield rows[start : start + step], words[start : start + step]

    def parts(self) -> Iterator[tuple[int | None, Iterator[tuple[Array, Words]]]]:
        """Parts that no digest is in two of, each with equal digests together; None for the number
        of the one part of rows that are in memory."""
        self._room = None
        if not self._files:
            if self._rows:
                yield None, _in_order(self._rows)
            return
        self._spill()
        for k, file in enumerate(self._files):
            yield k, self._sorted(file)
            file.close()

    def _sorted(self, file: _File) -> Iterator[tuple[Array, Words]]:
        blocks = file.blocks(self.d, 0 if self._first is None else self._first.size)
        if file.size <= MEMORY_BYTES:
            yield from _in_order(list(blocks))
        elif self._same:
            yield from blocks  # one user's rows may be any number
        elif self._place + 1 == _PLACES:  # digests alike in 60 bits, which nobody has by chance
            yield from _in_order(list(blocks))
        else:
            with Divided(self.d, self._place + 1) as divided:
                divided.take(blocks)
                for _, batches in divided.parts():
                    yield from batches


class _Room:
    """One array for rows that come batch by batch, and one for their digests.

    Parameters
    ----------
    n : int, rows that it has room for
    d : int
    """

    def __init__(self, n: int, d: int) -> None:
        self._n, self._d, self._used = n, d, 0
        self._arrays: tuple[Array, Words] | None = None

    def put(self, rows: Array, words: Words, dtype: np.dtype[Any]) -> tuple[Array, Words] | None:
        """All rows and digests so far, with these; None where they do not go in."""
        if self._arrays is None:
            if self._n * (self._d * dtype.itemsize + 8 * words.shape[1]) > MEMORY_BYTES:
                return None
            space = np.empty((self._n, self._d), dtype)
            self._arrays = space, np.empty((self._n, words.shape[1]), np.uint64)
        all_rows, all_words = self._arrays
        start, end = self._used, self._used + len(rows)
        if dtype != all_rows.dtype or end > self._n:
            return None
        all_rows[start:end], all_words[start:end] = rows, words
        self._used = end
        return all_rows[:end], all_words[:end]


def _kept_as(rows: Array) -> np.dtype[Any]:
    """The type that rows are kept in: float32 as they are, all others as float64."""
    return np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)


def _in_order(parts: list[tuple[Array, Words]]) -> Iterator[tuple[Array, Words]]:
    if not parts:
        return
    rows, words = _joined(parts)
    order, words = _together(words)
    step = max(1, _NUMBERS_PER_BLOCK // max(1, rows.shape[1]))
    nobodys = 0 if words[:1].any() else int(np.count_nonzero(~nonzero(words)))  # come first
    for start in range(nobodys, len(order), step):
        yield taken(rows, order[start : start + step]), words[start : start + step]


def _joined(parts: list[tuple[Array, Words]]) -> tuple[Array, Words]:
    """All parts as one, which they are lost to: no more than one of them is held twice."""
    if len(parts) == 1:
        return parts.pop()
    n = sum(len(rows) for rows, _ in parts)
    dtype = np.result_type(*(rows for rows, _ in parts))
    all_rows = np.empty((n, parts[0][0].shape[1]), dtype)
    all_words = np.empty((n, parts[0][1].shape[1]), np.uint64)
    while parts:
        rows, words = parts.pop()
        with np.errstate(all="ignore"):  # a warning would tell of a value
            all_rows[n - len(rows) : n], all_words[n - len(rows) : n] = rows, words
        n -= len(rows)
    return all_rows, all_words


@contextmanager
def dropped(data: Any) -> Iterator[None]:
    """What a ``Store`` holds is gone where an error ends its use: who holds the error, as a
    notebook does, holds what it went through."""
    try:
        yield
    except BaseException:
        if isinstance(data, Store):
            data.close()
        raise


def _together(words: Words) -> tuple[NDArray[np.int64], Words]:
    """Places of rows of words in an order in which equal ones stand together, those of one user
    too, and the words in it.

    One sort by the first word tells nearly all apart: it is a digest's.
    """
    order = np.argsort(words[:, 0])
    ordered = taken(words, order)
    same = np.ones(max(len(words) - 1, 0), np.bool_)
    for column in range(1, words.shape[1]):
        before, here = ordered[:, column - 1], ordered[:, column]
        same &= before[1:] == before[:-1]
        if (same & (here[1:] != here[:-1])).any():
            if column == 1 or int(here.max()) >= 1 << 32:
                order = np.lexsort(words.T[::-1])
                return order, taken(words, order)
            run = np.cumsum(np.append(False, ~same)).astype(np.uint64)
            again = np.argsort(run << np.uint64(32) | here)
            order, ordered = order[again], taken(ordered, again)
    return order, ordered


class _File:
    """Blocks of rows in a temporary file: mode 0600, and without a name where that can be."""

    def __init__(self) -> None:
        self._file: Any = tempfile.TemporaryFile(prefix="ellipsum-")
        self._end = weakref.finalize(self, self._file.close)  # also of what nobody closes
        self._blocks: list[tuple[int, np.dtype[Any]]] = []
        self.size = 0

    def append(self, rows: Array, words: Words) -> None:
        for part in (part for part in (rows, words) if part.size):  # no view of nothing
            self._file.write(np.ascontiguousarray(part).data.cast("B"))
            self.size += part.nbytes
        self._blocks.append((len(rows), rows.dtype))

    def blocks(self, d: int, width: int) -> Iterator[tuple[Array, Words]]:
        """The blocks as they were written: ``d`` coordinates, ``width`` words of digest."""
        self._file.seek(0)
        for count, dtype in self._blocks:
            rows = np.frombuffer(self._file.read(dtype.itemsize * count * d), dtype)
            words = np.frombuffer(self._file.read(8 * count * width), np.uint64)
            yield rows.reshape(count, d), words.reshape(count, width)

    def close(self) -> None:
        self._end()


class Store:
    """Rows for several passes: in memory, or beyond 256 MiB in a temporary file.

    Parameters
    ----------
    make : callable that returns the batches (n, d), called when they are first asked for
    d : int
    files : Rows, optional; what they are made of, whose bars go on over these passes
    """

    def __init__(
        self, make: Callable[[], Iterator[Array]], d: int, files: Rows | None = None
    ) -> None:
        self._make, self._d, self._filled = make, d, False
        self._memory: list[Array] = []
        self._file: _File | None = None
        self._files, self._count = files, 0
        if files is not None:
            files.expect(None)

    def expect(self, passes: int) -> None:
        """Say how many more passes there will be, for the bars: one over the files is over."""
        if self._files is not None:
            self._files.expect(passes, done=1)

    def close(self) -> None:
        """Forget the rows, and the file."""
        self._memory, self._filled = [], False
        if self._file is not None:
            self._file.close()

    def __call__(self) -> Iterator[Array]:
        """One pass."""
        watched = self._filled and self._files is not None
        if not self._filled:
            self._fill()
            self._filled = True
        kept = self._memory if self._file is None else self._of_file(self._file)
        batches = (rows for rows in kept if len(rows))
        yield from self._watched(batches) if watched else batches

    def _watched(self, batches: Iterator[Array]) -> Iterator[Array]:
        """The same under a bar; a batch counts when the next one is asked for."""
        assert self._files is not None
        done, total = 0, self._count
        nbytes = 8 * self._d * total
        meter = self._files.meter((total, nbytes, lambda: done / max(total, 1)))
        try:
            for rows in batches:
                yield rows
                done += len(rows)
                meter.add(len(rows))
        finally:
            meter.close()

    def _of_file(self, file: _File) -> Iterator[Array]:
        return (rows for rows, _ in file.blocks(self._d, 0))

    def _fill(self) -> None:
        self._memory, self._file, size, self._count = [], None, 0, 0
        for rows in self._make():
            size += rows.nbytes
            self._count += len(rows)
            if size > MEMORY_BYTES and self._file is None:
                self._file = _File()
                for kept in self._memory:
                    self._file.append(kept, _none(kept))
                self._memory = []
            if self._file is None:
                self._memory.append(rows)
            else:
                self._file.append(rows, _none(rows))


def _none(rows: Array) -> Words:
    return np.empty((len(rows), 0), np.uint64)
