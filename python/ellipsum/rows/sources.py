"""One file as blocks of rows: Parquet, Arrow IPC and ``.npy`` (CSV has its own module).

Files are read, not mapped: a mapped file that is cut short kills the process by a signal,
where a read gives an error, and reading is as fast as the first touch of mapped pages.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..column_units import NO_UNITS, Units
from .arrow import PART_BYTES, Layout, has_threads_left, pyarrow, validate
from .folders import folder_names
from .parquet_batches import LABELS_AS_NUMBERS, spans, wide_rows

__all__ = [
    "ArrowFile",
    "LabelledBlock",
    "NumpyFile",
    "ParquetFile",
    "Source",
    "check_labels",
    "labelled_blocks",
    "reading",
]

#: Bytes of one block read from a file: from 1 to 8 MiB the speed is the same, and falls beyond.
BLOCK_BYTES = 8 << 20
#: Bytes of batches of very wide tables after which Arrow's pool gives back what a row group left in
#: it. (Of fewer columns it grows by little, and pages that are given back have to come anew.)
RELEASE_BYTES = 64 << 20
#: Columns beyond which Arrow's threads cost more than they bring: a few kilobytes are one's task.
_MOST_THREADED = 512
#: Bytes read ahead of each column of a Parquet file, least and most, and of all columns.
_PAGE_BUFFER_BYTES, _FILE_BUFFER_BYTES = (16 << 10, 1 << 20), 8 << 20


#: Rows (an array or a ColumnBlock), and columns (Arrow arrays) of as many entries.
LabelledBlock = tuple[Any, list[Any]]


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn whatever a reader raises into an OSError that quotes nothing of the file."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is not there: check its name") from None
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
    quotable : bool
        Whether a message may quote the names: not where they could be a person's record.
    position : float
        Bytes of the file read so far, for a progress bar.
    jobs : int
        Files that are read at the same time.
    """

    columns: list[str] | None
    d: int | None
    n: int | None = None
    by: tuple[str, ...] = ()
    folders: Mapping[str, Any] = MappingProxyType({})
    units: Units = NO_UNITS
    quotable = True
    jobs = 1

    def __init__(self, path: str) -> None:
        self.path = path
        with reading(path):
            self.nbytes = os.stat(path).st_size
        self.position = 0.0

    def accepts(self, d: int) -> bool:
        """Whether the rows can have ``d`` coordinates, as far as the schema tells."""
        return self.d in (None, d)

    def blocks(self, d: int) -> Iterator[Any]:
        """Yield the rows from the first to the last, arrays or ColumnBlocks."""
        return (block for block, _ in self.labelled(d))

    @abstractmethod
    def labelled(self, d: int) -> Iterator[LabelledBlock]:
        """Yield the rows, each block with the columns of ``by`` beside it."""


def labelled_blocks(
    layout: Layout, batch: Any, d: int, by: Sequence[str]
) -> Iterator[LabelledBlock]:
    """The blocks of an Arrow batch, each with its stretch of the columns of ``by``."""
    done = 0
    for block in layout.blocks(batch, d):
        yield block, [batch.column(name).slice(done, len(block)) for name in by]
        done += len(block)


def _repeated(pa: Any, value: Any, times: int) -> Any:
    """A column of one value; text as a dictionary of it, a byte a row."""
    if value.type != pa.string() or not value.is_valid:
        return pa.repeat(value, times)
    return pa.DictionaryArray.from_arrays(np.zeros(times, np.int8), pa.array([value.as_py()]))


class ParquetFile(Source):
    """Wide numeric columns or one column of lists, read a row group at a time.

    ``folders`` are columns that the names of its folders stand for, as Arrow scalars: read from
    there where the file has none of the name.
    """

    def __init__(
        self,
        path: str,
        columns: Sequence[str] | None,
        by: tuple[str, ...] = (),
        folders: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        pa = pyarrow("reading Parquet")
        super().__init__(path)
        self.by, self._decoded = by, 0
        with self._open() as file:
            schema = file.schema_arrow
            with reading(path):
                own, told = set(schema.names), file.metadata
                groups = [told.row_group(k).num_rows for k in range(told.num_row_groups)]
            self.folders = {name: value for name, value in folders.items() if name not in own}
            for name, value in self.folders.items():
                schema = schema.append(pa.field(name, value.type))
            self._layout = _layout(path, schema, columns, by)
            self.n, self._group = told.num_rows, max(groups, default=0)
        self.columns, self.d = self._layout.columns, self._layout.d
        self.units = self._layout.units

    def opened(self) -> Any:
        """The file, to be read by :meth:`batches` and closed."""
        return self._open(len(self._layout.columns) + len(self.by))

    def rows_at_once(self, d: int, list_bytes: int, wide_bytes: int) -> int:
        """Rows of a batch: of lists, or of wide columns, of at most so many bytes."""
        if self._layout.is_list:
            return max(1, list_bytes // (8 * (d or LABELS_AS_NUMBERS)))
        return wide_rows(d, wide_bytes, self._group)

    def batches(self, file: Any, size: int, groups: Sequence[int] | None = None) -> Iterator[Any]:
        """The columns that are read, of these row groups, at most ``size`` rows at a time."""
        names = [name for name in (*self._layout.columns, *self.by) if name not in self.folders]
        threads = len(names) <= _MOST_THREADED and has_threads_left(self.jobs)
        with reading(self.path):
            batches = file.iter_batches(size, row_groups=groups, columns=names, use_threads=threads)
        while (batch := _next(self.path, batches)) is not None:
            self._decoded += batch.nbytes
            yield self._completed(batch)
        del batches
        # Else what the next row groups take comes beside it.
        if len(names) > _MOST_THREADED and self._decoded >= RELEASE_BYTES:
            self._decoded = 0
            pyarrow("reading Parquet").default_memory_pool().release_unused()

    def _spans_of(self, file: Any, size: int) -> Sequence[Sequence[int] | None]:
        """Row groups that are read together: all of them, and of very wide tables a few."""
        if len(self._layout.columns) <= _MOST_THREADED:
            return [None]
        with reading(self.path):
            return list(spans(file.metadata, size))

    def _completed(self, batch: Any) -> Any:
        if not self.folders:
            return batch
        pa = pyarrow("reading Parquet")
        repeated = [_repeated(pa, value, batch.num_rows) for value in self.folders.values()]
        names = [*batch.schema.names, *self.folders]
        return pa.RecordBatch.from_arrays([*batch.columns, *repeated], names)

    def _open(self, columns: int = 1) -> Any:
        import pyarrow.parquet

        with reading(self.path):
            # Buffered by pages: by default a row group's columns are read whole, and with
            # pre_buffer the whole file stays in memory until the last batch. Every column has a
            # buffer of its own: of a thousand columns they would take a gigabyte.
            least, most = _PAGE_BUFFER_BYTES
            each = max(least, min(most, _FILE_BUFFER_BYTES // max(1, columns)))
            return pyarrow.parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=each)

    def labelled(self, d: int) -> Iterator[LabelledBlock]:
        with self.opened() as file:
            done = 0
            size = self.rows_at_once(d, BLOCK_BYTES, PART_BYTES)
            for groups in self._spans_of(file, size):
                for batch in self.batches(file, size, groups):
                    done += batch.num_rows
                    self.position = self.nbytes * done / max(1, self.n or 1)
                    yield from labelled_blocks(self._layout, batch, d, self.by)
            self.check_rows(done, self.n or 0)

    def check_rows(self, found: int, told: int) -> None:
        """Raise where other rows were found than the file's metadata tell."""
        with reading(self.path):
            if found != told:
                raise EOFError


class ArrowFile(Source):
    """Arrow IPC, as a file or as a stream."""

    def __init__(
        self,
        path: str,
        columns: Sequence[str] | None,
        by: tuple[str, ...] = (),
        *,
        stream: bool,
    ) -> None:
        self._pa = pyarrow("reading Arrow files")
        super().__init__(path)
        self._stream = stream
        self._fields: list[int] | None = None
        with self._pa.OSFile(path) as file:
            schema = self._open(file).schema
        self.by = by
        self._layout = _layout(path, schema, columns, by)
        self.columns, self.d = self._layout.columns, self._layout.d
        self.units = self._layout.units
        self._fields = sorted(schema.get_field_index(name) for name in [*self.columns, *by])

    def _open(self, file: Any) -> Any:
        options = self._pa.ipc.IpcReadOptions(included_fields=self._fields)
        opener = self._pa.ipc.open_stream if self._stream else self._pa.ipc.open_file
        with reading(self.path):
            return opener(file, options=options)

    def labelled(self, d: int) -> Iterator[LabelledBlock]:
        with reading(self.path):
            file = self._pa.OSFile(self.path)
        with file:
            reader = self._open(file)
            batches = iter(reader) if self._stream else self._by_index(reader)
            while (batch := _next(self.path, batches)) is not None:
                with reading(self.path):
                    validate(batch)  # the format has no checksums
                if self._stream:
                    self.position = file.tell()
                yield from labelled_blocks(self._layout, batch, d, self.by)

    def _by_index(self, reader: Any) -> Iterator[Any]:
        for i in range(reader.num_record_batches):
            self.position = self.nbytes * (i + 1) / reader.num_record_batches
            yield reader.get_batch(i)


class NumpyFile(Source):
    """A two-dimensional array in a ``.npy`` file, in C or Fortran order."""

    columns = None

    def __init__(self, path: str) -> None:
        super().__init__(path)
        with reading(path):
            header = np.load(path, mmap_mode="r", allow_pickle=False)
        if header.dtype.kind not in "fiub":
            raise TypeError(f"{path} is not numeric, its dtype is {header.dtype.kind!r}")
        if header.ndim != 2:
            raise ValueError(
                f"{path} must have two dimensions, rows and coordinates, got {header.ndim}: "
                "reshape it before saving"
            )
        self.n, self.d = header.shape
        self._dtype = header.dtype
        self._offset = header.offset
        self._fortran = header.flags.f_contiguous and not header.flags.c_contiguous

    def labelled(self, d: int) -> Iterator[LabelledBlock]:
        n = self.n or 0
        size = max(1, BLOCK_BYTES // (self._dtype.itemsize * d))
        with reading(self.path):
            file = open(self.path, "rb", buffering=0)
        with file:
            for start in range(0, n, size):
                block = self._block(file, start, min(size, n - start), d)
                self.position = self.nbytes * (start + len(block)) / n
                yield block, []

    def _block(self, file: Any, start: int, count: int, d: int) -> NDArray[Any]:
        if self._fortran:
            block = np.empty((d, count), self._dtype)
            for j in range(d):
                self._fill(file, j * (self.n or 0) + start, block[j])
            block = block.T
        else:
            block = np.empty((count, d), self._dtype)
            self._fill(file, start * d, block)
        kept = self._dtype in (np.float32, np.float64) and self._dtype.isnative
        if kept:
            return block
        with np.errstate(all="ignore"):  # a warning would tell of a value
            return block.astype(np.float64)

    def _fill(self, file: Any, start: int, out: NDArray[Any]) -> None:
        view = memoryview(out.view(np.uint8).reshape(-1).data)
        with reading(self.path):
            file.seek(self._offset + start * self._dtype.itemsize)
            while len(view):
                count = file.readinto(view)
                if not count:
                    raise EOFError
                view = view[count:]


def _layout(path: str, schema: Any, columns: Sequence[str] | None, by: Sequence[str]) -> Layout:
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


def _next(path: str, batches: Iterator[Any]) -> Any:
    with reading(path):
        return next(batches, None)
