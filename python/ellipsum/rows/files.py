"""Rows from files: Parquet, Arrow IPC, CSV and NumPy's, any number of them as one data set."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..column_names import Columns, coordinate_names
from ..column_units import NO_UNITS, Units
from .agreement import check_agreement, common_d, common_units, said_of
from .ahead import read_ahead
from .columns import ColumnBlock, as_arrays
from .file_kinds import open_file
from .folders import folder_columns
from .paths import files_named, listed
from .progress import DrawnMeter, Meter, watch
from .sources import LabelledBlock, Source

__all__ = ["MOST_SPLITS", "Rows", "labelled_arrays", "open_rows"]

#: Parts that large files are read in, about, all together: 32 cost a run with checkpoints 5 % more.
MOST_SPLITS = 16

_Path = str | os.PathLike[str]


class Rows:
    """Files as one data set that can be read as often as wanted; made by `open_rows`.

    Iterating yields arrays of shape (n, d), float32 or float64, every row once, file after
    file in the order given.

    Attributes
    ----------
    paths : tuple of str
    columns : list of str or None
        The columns that make a row; None for ``.npy``, and for CSV without names.
    d : int or None
        Coordinates of a row; None for a List column, whose lengths only the records know, and 0
        for labels alone. For CSV without names, the cells of the first line (None if there is no
        line): `batches` takes any other number too.
    n : int or None
        Rows in all, where every file's metadata say so (not CSV, not Arrow IPC). Private if
        neighbours differ by adding or removing a row.
    nbytes : int
        Bytes of the files.
    by : tuple of str
        Columns that say whose row it is, or which group it is in: no coordinates.
    folders : list of dict
        Of each file the columns that are read from its folders' names, and their values.
    header : bool
        Whether the first line of a CSV file names its columns.
    units : mapping of columns' names (or coordinates' places) to texts
        What the files' schemas and the caller say; labels alone.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        progress: bool = False,
        header: bool = True,
        units: Units = NO_UNITS,
    ) -> None:
        self._sources = self._read_as = list(sources)
        self._progress, self.header = progress, header
        self._pass = 0
        self._passes: int | None = None
        self._several = False
        self.paths = tuple(source.path for source in sources)
        self.named: tuple[str, ...] = self.paths  # files, and the folders and patterns asked for
        self.columns = sources[0].columns
        self.by = sources[0].by
        self.folders = [dict(source.folders) for source in sources]
        self._quotable = all(source.quotable for source in sources)
        self.d = common_d(sources)
        counts = [source.n for source in sources]
        self.n = None if None in counts else sum(n for n in counts if n is not None)
        self.nbytes = sum(source.nbytes for source in sources)
        self._said = units
        self.units: Units = {**common_units(sources, units), **units}

    def __iter__(self) -> Iterator[NDArray[Any]]:
        if self.d is None:
            raise ValueError(
                f"{self.paths[0]} does not say how many coordinates a row has, as a List column "
                "or a file without a line: iterate over batches(d), or store a FixedSizeList"
            )
        return self.batches(self.d)

    def __repr__(self) -> str:
        return f"Rows({list(self.paths)}, columns={self.columns}, d={self.d})"

    @property
    def fraction(self) -> float:
        """How much of the latest pass over the files is done, by bytes, from 0 to 1."""
        return min(1.0, sum(source.handed for source in self._read_as) / max(1, self.nbytes))

    @property
    def held_beside(self) -> int:
        """Bytes that blocks may hold beside their own numbers: of the columns that are not read."""
        return sum(source.nbytes for source in self._sources if source.shares_memory)

    def batches(self, d: int) -> Iterator[NDArray[Any]]:
        """Yield every row once, in blocks of shape (n, d).

        In CSV without names every line of d cells is a row, and any other counts as the centre.

        Parameters
        ----------
        d : int, coordinates of a row

        Raises
        ------
        ValueError
            The rows have another number of coordinates.
        OSError
            A file is gone, truncated or damaged.
        """
        return as_arrays(self.kernel_batches(d))

    def kernel_batches(self, d: int) -> Iterator[NDArray[Any] | ColumnBlock]:
        """As :meth:`batches`, but columns where they lie."""
        return (block for block, _ in self._blocks(d))

    def labelled(self, d: int) -> Iterator[LabelledBlock]:
        """Yield the blocks of :meth:`batches`, each with the columns of ``by`` beside it."""
        return labelled_arrays(self._blocks(d))

    def check(self, d: int) -> None:
        """Raise unless the rows can have ``d`` coordinates."""
        if not self.accepts(d):
            raise ValueError(
                f"{self.paths[0]} has {self.d} coordinates in a row, the shape has {d}: "
                "select the columns that the shape was made for"
            )

    def _blocks(self, d: int) -> Iterator[LabelledBlock]:
        self.check(d)
        blocks = self._hand_out(read_ahead(self._read(d)))
        return watch(blocks, self.meter) if self._progress else blocks

    def expect(self, passes: int | None, *, done: int = 0) -> None:
        """Say how many more passes there will be, for their bars.

        Parameters
        ----------
        passes : int, or None for several, whose number is not known yet
        done : int, passes that belong to the same job and are over
        """
        self._pass, self._several = done, passes is None or passes + done > 1
        self._passes = None if passes is None else passes + done

    def meter(self, stored: tuple[int, int, Callable[[], float]] | None = None) -> Meter:
        """The bar of the next pass; a silent one where none is wanted. ``stored`` has the rows,
        bytes and fraction of a pass over rows that were made of these and kept."""
        if not self._progress:
            return Meter()
        if self._passes is not None and self._pass >= self._passes:  # of a job that is over
            self._pass, self._passes, self._several = 0, None, False
        self._pass += 1
        of = "" if self._passes is None else f" of {self._passes}"
        title = f"pass {self._pass}{of}" if self._several or self._pass > 1 else ""
        if stored is not None:
            return DrawnMeter(*stored, title)
        return DrawnMeter(self.n, self.nbytes, lambda: self.fraction, title)

    def each_file(self) -> list[Rows]:
        """The files one by one, each as a data set of its own."""
        return self._each(self._sources)

    def splits(self, jobs: int, d: int) -> list[Source]:
        """The files, large ones in parts, of which so many are read at the same time.

        Which they are follows from the files and ``d`` alone, not from ``jobs``. The next bar is of
        what is read of them.

        Parameters
        ----------
        jobs : int
        d : int, coordinates of a row, where the files do not say
        """
        known, each = d if self.d is None else self.d, MOST_SPLITS / max(1, self.nbytes)
        self._read_as = [
            split
            for source in self._sources
            for split in source.splits(known, max(1, round(each * source.nbytes)))
        ]
        for split in self._read_as:
            split.jobs, split.handed = min(jobs, len(self._read_as)), 0.0
        return self._read_as

    def each_split(self, jobs: int, d: int) -> list[Rows]:
        """As :meth:`splits`, each as a data set of its own."""
        return self._each(self.splits(jobs, d))

    def _each(self, sources: Sequence[Source]) -> list[Rows]:
        return [Rows([source], header=self.header, units=self._said) for source in sources]

    def count_nonfinite(self, d: int | None = None) -> NDArray[np.int64]:
        """Count the rows that count as the centre, one pass. **Private**: for the holder alone.

        No reader refuses a file for what its records are, so a column of text or a wrong
        separator shows here, and nowhere else.

        Parameters
        ----------
        d : int, optional
            Coordinates of a row, where the files do not say.

        Returns
        -------
        array (d + 1,) of int
            For each coordinate the rows in which it is no finite number; last the rows where any
            is not.
        """
        counts: NDArray[np.int64] | None = None
        for batch in iter(self) if d is None else self.batches(d):
            odd = ~np.isfinite(batch)
            found = np.append(odd.sum(axis=0), odd.any(axis=1).sum())
            counts = found if counts is None else counts + found
        return np.zeros((d or self.d or 0) + 1, np.int64) if counts is None else counts

    def accepts(self, d: int) -> bool:
        """Whether the rows can have ``d`` coordinates, as far as the files' schemas tell.

        Parameters
        ----------
        d : int
        """
        return all(source.accepts(d) for source in self._sources)

    def labels_alone(self) -> Rows:
        """Return the same files with the columns of ``by`` alone: rows of no coordinates."""
        return self if self.d == 0 or not self.by else self._with([])

    def arranged(self, columns: Columns, d: int) -> Rows:
        """Return the same files with their columns in the order of ``columns``.

        Parameters
        ----------
        columns : Columns, which learns the names if it has none
        d : int, coordinates of a row

        Raises
        ------
        ValueError
            The files have other columns, or a list whose places are in another order.
        """
        names = coordinate_names(self.columns, d) if self.accepts(d) else self.columns
        known: dict[str, Any] = {"quoted": self._quotable, "units": self.units}
        order = columns.order_of(names, self.paths[0], **known)
        if order is None:
            return self
        if self.columns is None or len(self.columns) != d:
            raise ValueError(f"{self.paths[0]} has the places of its lists in another order")
        return self._with(columns.names)

    def _with(self, columns: Sequence[str] | None) -> Rows:
        if not all(source.whole for source in self._sources):
            raise RuntimeError("a split is opened anew: all of its file would be read")
        known: dict[str, Any] = {"header": self.header, "by": self.by}
        own = columns or ()
        units = {k: unit for k, unit in self._said.items() if isinstance(k, str) and k in own}
        other = open_rows(self.paths, columns, **known, progress=self._progress, units=units)
        other.named = self.named
        for source, again in zip(self._sources, other._sources, strict=True):
            source.check_same(again)
        return other

    def _read(self, d: int) -> Generator[tuple[LabelledBlock, Source, float], None, None]:
        for source in self._sources:
            for block in source.labelled(d):
                yield block, source, source.position
                del block  # no block is kept while the next one is made

    def _hand_out(self, blocks: Generator[Any, None, None]) -> Generator[LabelledBlock, None, None]:
        self._read_as = self._sources
        for source in self._sources:
            source.handed = 0.0
        with closing(blocks):
            for block, source, position in blocks:
                source.handed = position
                yield block
                del block
        for source in self._sources:  # what is behind the last rows of a file
            source.handed = float(source.nbytes)


def _stretch(column: Any, start: int, count: int) -> Any:
    """Entries of a column of labels: Arrow's, or NumPy's."""
    if isinstance(column, np.ndarray):
        return column[start : start + count]
    return column.slice(start, count)


def labelled_arrays(blocks: Iterable[LabelledBlock]) -> Iterator[LabelledBlock]:
    """The same blocks as arrays, which may be several to a block."""
    for block, labels in blocks:
        done = 0
        for rows in as_arrays([block]):
            yield rows, [_stretch(column, done, len(rows)) for column in labels]
            done += len(rows)


def open_rows(
    paths: _Path | Sequence[_Path],
    columns: Sequence[str] | None = None,
    *,
    header: bool = True,
    by: str | Sequence[str] = (),
    progress: bool = False,
    units: Mapping[str, str] | Sequence[str | None] | None = None,
) -> Rows:
    """Open files as rows, which mechanisms take as data.

    Schemas are read and checked here; the rows are read by iterating, a block at a time, so
    memory stays flat. (What reads them several times keeps up to 256 MiB of them.) Parquet,
    Arrow and CSV need pyarrow (``pip install pyarrow``).

    **Guarantees.** Errors depend on the files' schemas and health, never on a value. In CSV,
    one line is one record, and a line that is not d numbers counts as the centre; what is taken
    from the text as its schema is the line of names, or without one the number of cells in the
    first line, where columns or labels are chosen or the caller does not say d.
    Nulls count as the centre too (docs/readers.md).

    Parameters
    ----------
    paths : path or sequence of paths
        Files, folders (all files in them, but for names that begin with a dot or ``_``) and
        patterns (``"2025/**/*.parquet"``); each file once. Their format is known by their first
        bytes, or else by the suffix (``.parquet .pq .arrow .feather .ipc .arrows .csv .tsv .txt
        .npy .npz``; CSV may be compressed: ``.csv.gz``). Together they are one data set with the
        same columns. Names of files are public.
    columns : sequence of str, optional
        Numeric columns to read, in this order, or one column of lists. All of them if left out.
        In CSV without names they are called ``f0``, ``f1``, and so on. In ``.npz``, arrays of one
        dimension are columns, and one of two dimensions is a column of lists. ``[]``, with ``by``,
        reads the labels alone, which is all that counts need.
    header : bool
        For CSV: whether the first line holds names, which are public. Without names, give False:
        the first line is then a record like the others.
    by : str or sequence of str
        Columns that say whose row it is (``PrivateMean(..., by=...)``) or which group it is in:
        integers, text or bytes. They are no coordinates. A Parquet file may have them, and columns
        too, in the names of its folders (``year=2025``): integers where all of them are, else text.
    progress : bool
        Whether each pass draws a bar on standard error, with rows per second and time left:
        for the holder of the data, since the number of rows may be private.
    units : mapping of columns' names to texts, or a sequence of them, one a coordinate, optional
        Labels of what is released, public. They win over the metadata ``unit`` (or ``units``) of a
        Parquet or Arrow field, and a frame's ``attrs["units"]``, which pandas writes; ``""``: none.

    Raises
    ------
    OSError
        A file is not there, truncated, damaged, or of no known format.
    ValueError, TypeError
        A column is missing or not numeric, a CSV's first line should hold names and holds
        numbers, the files do not agree (in columns, or in the unit of one), or one is named twice.
    ImportError
        pyarrow is needed and missing.
    """
    named = listed(paths)
    if not named:
        raise ValueError("paths must name at least one file")
    if isinstance(columns, str):
        raise TypeError(f"columns must be a sequence of names: give [{columns!r}]")
    if columns is not None and not all(isinstance(name, str) for name in columns):
        raise TypeError("columns must be names: without a header they are f0, f1, and so on")
    if not isinstance(header, bool):
        raise TypeError(f"header must be True or False, got {type(header).__name__}")
    if columns is not None and not columns and not by:
        raise ValueError("no columns to read: name one in columns, or one of labels in by")
    labels = (by,) if isinstance(by, str) else tuple(dict.fromkeys(by))
    given = [os.fspath(name) for name in named]
    names = files_named(given)
    folders = folder_columns(names, (*labels, *(columns or ())))
    sources = [open_file(names[0], columns, header, labels, folders[0])]
    for name, own in zip(names[1:], folders[1:], strict=True):
        source = open_file(name, sources[0].columns, header, labels, own)
        check_agreement(source, sources[0], all_columns=columns is None)
        sources.append(source)
    rows = Rows(sources, progress=progress, header=header, units=said_of(sources, units))
    rows.named = tuple(map(os.path.abspath, given))
    return rows
