"""One file as blocks of rows: what every format's reader is.

Files are read, not mapped: a mapped file that is cut short kills the process by a signal,
where a read gives an error, and reading is as fast as the first touch of mapped pages.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import accumulate, islice, pairwise
from types import MappingProxyType
from typing import Any

from ..column_units import NO_UNITS, Units
from .arrow import Layout
from .folders import folder_names

__all__ = [
    "BLOCK_BYTES",
    "LABELS_AS_NUMBERS",
    "LabelledBlock",
    "Place",
    "SeekableSource",
    "Source",
    "check_labels",
    "facts_of",
    "labelled_blocks",
    "layout_of",
    "next_of",
    "reading",
]

#: Bytes of one block read from a file: from 1 to 8 MiB the speed is the same, and falls beyond.
BLOCK_BYTES = 8 << 20
#: Rows of labels alone are read so many at a time as rows of so many numbers.
LABELS_AS_NUMBERS = 8
#: Bytes of numbers that are worth reading apart: a split opens its file, and adds its own sum.
SPLIT_BYTES = 16 << 20

#: Rows (an array or a ColumnBlock), and columns (Arrow arrays) of as many entries.
LabelledBlock = tuple[Any, list[Any]]
#: A unit of a file, and the blocks of it that are done.
Place = tuple[int, int]
Marked = tuple[LabelledBlock, Place]


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn whatever a reader raises into an OSError that quotes nothing of the file."""
    try:
        yield
    except FileNotFoundError:
        far = "copy it here first" if "://" in path else "check its name"
        raise FileNotFoundError(f"{path} is not there: {far}") from None
    except PermissionError:
        raise PermissionError(f"{path} may not be read: check its permissions") from None
    except MemoryError:
        raise OSError(f"{path} asks for more memory than there is, or is damaged") from None
    except Exception:  # a damaged file can raise nearly anything in the code that parses it
        raise OSError(f"{path} is truncated or damaged: write it again") from None


class Source(ABC):
    """What `Rows` needs of a file.

    Attributes
    ----------
    columns : list of str or None
        Names of the columns read; None where a format has no names.
    d : int or None
        Coordinates of a row; None where only the records know (a List column).
    n : int or None
        Rows, where the file's metadata say so.
    by : tuple of str
        Columns that label rows, and are no coordinates.
    folders : dict
        Columns that are read from the names of its folders, and their values.
    units : dict
        Of the columns that its schema tells a unit of.
    others : sequence of str
        Names of columns that are not read.
    quotable : bool
        Whether a message may quote the names: not where they could be a person's record.
    position : float
        Bytes of the file up to the end of the latest block made, which may be one ahead.
    handed : float
        Bytes up to the end of the latest block handed out, for a progress bar.
    jobs : int
        Files, or splits of them, that are read at the same time.
    whole : bool
        Whether all of the file is read: not of a split.
    shares_memory : bool
        Whether a block may lie in one piece of memory with columns that are not read.
    """

    columns: list[str] | None
    d: int | None
    n: int | None = None
    by: tuple[str, ...] = ()
    folders: Mapping[str, Any] = MappingProxyType({})
    units: Units = NO_UNITS
    others: Sequence[str] = ()
    quotable = True
    jobs = 1
    whole = True
    shares_memory = False

    def __init__(self, path: str) -> None:
        self.path, self.position, self.handed = path, 0.0, 0.0
        self._facts = facts_of(path)
        self.nbytes = self._facts[0]

    def accepts(self, d: int) -> bool:
        """Whether the rows can have ``d`` coordinates, as far as the schema tells."""
        return self.d in (None, d)

    def labelled(self, d: int) -> Iterator[LabelledBlock]:
        """Yield the rows from the first to the last, arrays or ColumnBlocks, each block with the
        columns of ``by`` beside it.

        Raises
        ------
        OSError
            The file is damaged, or another one than it was when it was opened first: its parts are
            read at different times, and rows that moved meanwhile would count twice.
        """
        self._check_facts()
        yield from self._labelled(d)
        self._check_facts()

    def labelled_from(self, d: int, start: Place | None = None) -> Generator[Marked, None, None]:
        """As :meth:`labelled`, from a place on, each block with the place after it."""
        self._check_facts()
        yield from self._labelled_from(d, start)
        self._check_facts()

    def splits(self, d: int, most: int) -> list[Source]:
        """Copies of it that are read apart, so many of them at most; which they are follows from
        the file, ``d`` and ``most`` alone."""
        return [copy.copy(self)]

    @abstractmethod
    def _labelled(self, d: int) -> Iterator[LabelledBlock]:
        """The blocks, each with its labels."""

    def _labelled_from(self, d: int, start: Place | None) -> Iterator[Marked]:
        """What is before the place is read again here, and left out."""
        done = 0 if start is None else start[1]
        for k, block in islice(enumerate(self._labelled(d), 1), done, None):
            yield block, (0, k)

    def _check_facts(self) -> None:
        if facts_of(self.path) != self._facts:
            self._raise_changed()

    def check_same(self, again: Source) -> None:
        """Raise OSError unless one that was opened later is of the file as this one knows it."""
        if again._facts != self._facts:
            self._raise_changed()

    def _raise_changed(self) -> None:
        raise OSError(f"{self.path} has changed since it was opened: open it again")


class SeekableSource(Source):
    """A file of parts that need not be read from the first on.

    Attributes
    ----------
    parts : range
        Those that are read, of all of the file's.
    """

    parts: range

    @abstractmethod
    def _parts_reader(
        self, d: int
    ) -> AbstractContextManager[Callable[[int], Iterable[LabelledBlock]]]:
        """The file, opened: what gives the blocks of a part."""

    @abstractmethod
    def _rows_of(self, parts: range) -> int | None:
        """Rows of these parts, where the file's metadata say so."""

    def _labelled(self, d: int) -> Iterator[LabelledBlock]:
        return (block for block, _ in self._labelled_from(d, None))

    def _labelled_from(self, d: int, start: Place | None) -> Iterator[Marked]:
        first, done = start or (self.parts.start, 0)
        with self._parts_reader(d) as blocks_of:
            for part in range(first, self.parts.stop):
                for k, block in enumerate(blocks_of(part), 1):
                    self.position = self._bytes_before(part + 1)
                    if part > first or k > done:
                        yield block, (part, k)

    def splits(self, d: int, most: int) -> list[Source]:
        before = list(accumulate((self._numbers(part, d) for part in self.parts), initial=0.0))
        count = min(most, int(before[-1] / SPLIT_BYTES))
        wanted = [before[-1] * k / count for k in range(1, count)]
        ends = {0, *(bisect_left(before, size) for size in wanted), len(self.parts)}
        if len(ends) < 3:
            return super().splits(d, most)
        return [self._split(self.parts[a:b]) for a, b in pairwise(sorted(ends))]

    def _numbers(self, part: int, d: int) -> float:
        """Bytes of its numbers; of the file, where nobody says how many rows it has."""
        rows = self._rows_of(range(part, part + 1))
        if rows is None:
            return self.nbytes / len(self.parts)
        return 8.0 * max(0, rows) * (d or LABELS_AS_NUMBERS)

    def _split(self, parts: range) -> SeekableSource:
        split = copy.copy(self)
        split.parts, split.n = parts, self._rows_of(parts)
        split.whole = False
        split.nbytes = int(self._bytes_before(parts.stop) - self._bytes_before(parts.start))
        return split

    def _bytes_before(self, part: int) -> float:
        return self.nbytes * (part - self.parts.start) / max(1, len(self.parts))


def facts_of(path: str) -> tuple[int, int, int]:
    """Bytes of a file, the time when it changed, in nanoseconds since 1970, and its number: another
    file in its place may have the time of the first."""
    with reading(path):
        facts = os.stat(path)
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def labelled_blocks(
    layout: Layout, batch: Any, d: int, by: Sequence[str]
) -> Iterator[LabelledBlock]:
    """The blocks of an Arrow batch, each with its stretch of the columns of ``by``."""
    done = 0
    for block in layout.blocks(batch, d):
        yield block, [batch.column(name).slice(done, len(block)) for name in by]
        done += len(block)


def layout_of(path: str, schema: Any, columns: Sequence[str] | None, by: Sequence[str]) -> Layout:
    """How the columns of a file's schema make rows, beside those that label them."""
    with reading(path):
        names = list(schema.names)  # decodes them
    check_labels(path, names, columns, by)
    if by and columns is None:
        columns = [n for n in names if n not in by and not n.startswith("__index_level_")]
    return Layout(schema, columns, source=path)


def check_labels(
    path: str, names: Sequence[str], columns: Sequence[str] | None, by: Sequence[str]
) -> None:
    """Raise unless the file has each column of ``by`` once, and none is a coordinate too.

    Nor are they columns that the names of folders stand for, where the format is not Parquet.
    """
    folders = folder_names(path)
    for name in (*by, *(columns or ())):
        if name in folders and name not in names:
            raise ValueError(
                f"{path} has {name!r} in a folder's name, not as a column: give "
                'pyarrow.dataset.dataset(folder, partitioning="hive") in the place of open_rows, '
                "or write the column into the files"
            )
    for name in by:
        if list(names).count(name) != 1:
            raise ValueError(f"{path} must have the column {name!r}, which labels rows, once")
        if name in (columns or ()):
            raise ValueError(f"column {name!r} labels rows: it cannot be a coordinate too")


def next_of(path: str, batches: Iterator[Any]) -> Any:
    """The next batch of a reader, None behind the last."""
    with reading(path):
        return next(batches, None)
