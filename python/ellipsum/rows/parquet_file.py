"""Parquet files, and how many rows of one are decoded at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

from .arrow import PART_BYTES, has_threads_left, pyarrow
from .sources import (
    BLOCK_BYTES,
    LABELS_AS_NUMBERS,
    LabelledBlock,
    SeekableSource,
    labelled_blocks,
    layout_of,
    next_of,
    reading,
)

__all__ = ["ParquetFile", "spans", "wide_rows"]

#: Rows of a column decoded at once, at least, where PART_BYTES has room for them: what a column
#: costs beside its numbers is then little. More than half of PART_BYTES gains nothing.
_COLUMN_ROWS = 4096
#: Bytes of batches of very wide tables after which Arrow's pool gives back what a row group left in
#: it. (Of fewer columns it grows by little, and pages that are given back have to come anew.)
RELEASE_BYTES = 64 << 20
#: Columns beyond which Arrow's threads cost more than they bring: a few kilobytes are one's task.
_MOST_THREADED = 512
#: Bytes read ahead of each column of a Parquet file, least and most, and of all columns.
_PAGE_BUFFER_BYTES, _FILE_BUFFER_BYTES = (16 << 10, 1 << 20), 8 << 20


def wide_rows(d: int, most: int, group: int = 1) -> int:
    """Rows of d Parquet columns that are decoded at once, in at most so many bytes.

    Whole row groups of ``group`` rows, or equal parts of one: what is left over of one takes up to
    half as long again as all of it, and columns of a power of two bytes get in each other's way.
    """
    width = 8 * (d or LABELS_AS_NUMBERS)
    rows = max(1, min(most, max(most // 2, _COLUMN_ROWS * width)) // width)
    if group <= rows:
        return rows // max(1, group) * max(1, group)
    return -(-group // -(-group // rows))


def spans(groups: Sequence[int], parts: range, rows: int) -> Iterator[list[int]]:
    """Row groups, of as many rows as ``groups`` says, that are read together: of ``rows`` at least,
    and of one where one has as many. A batch that goes on in the next group is a copy, beside the
    buffers of both."""
    span, size = [], 0
    for part in parts:
        span.append(part)
        size += groups[part]
        if size >= rows:
            yield span
            span, size = [], 0
    if span:
        yield span


class ParquetFile(SeekableSource):
    """Wide numeric columns or one column of lists; its parts are row groups.

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
                if sum(groups) != told.num_rows:
                    raise EOFError
            self.folders = {name: value for name, value in folders.items() if name not in own}
            for name, value in self.folders.items():
                schema = schema.append(pa.field(name, value.type))
            self._layout = layout_of(path, schema, columns, by)
        self.n, self._groups = sum(groups), groups
        self.parts = range(len(groups))
        self.columns, self.d = self._layout.columns, self._layout.d
        self.others = [name for name in self._layout.others if name not in by]
        self.units = self._layout.units

    def _labelled(self, d: int) -> Iterator[LabelledBlock]:
        with self._opened() as file:
            done, size = 0, self._rows_at_once(d)
            for groups in self._spans(size):
                for batch in self._batches(file, size, groups):
                    done += batch.num_rows
                    self.position = self.nbytes * done / max(1, self.n or 1)
                    yield from labelled_blocks(self._layout, batch, d, self.by)
            self._check_rows(done, self.n or 0)

    def _rows_of(self, parts: range) -> int:
        return sum(self._groups[parts.start : parts.stop])

    @contextmanager
    def _parts_reader(self, d: int) -> Iterator[Callable[[int], Iterator[LabelledBlock]]]:
        with self._opened() as file:
            yield lambda part: self._row_group(file, part, d)

    def _row_group(self, file: Any, part: int, d: int) -> Iterator[LabelledBlock]:
        found = 0
        for batch in self._batches(file, self._rows_at_once(d), [part]):
            found += batch.num_rows
            yield from labelled_blocks(self._layout, batch, d, self.by)
        self._check_rows(found, self._groups[part])

    def _rows_at_once(self, d: int) -> int:
        if self._layout.is_list:
            return max(1, BLOCK_BYTES // (8 * (d or LABELS_AS_NUMBERS)))
        return wide_rows(d, PART_BYTES, max(self._groups, default=0))

    def _spans(self, size: int) -> Sequence[Sequence[int]]:
        """Row groups that are read together: all of them, and of very wide tables a few."""
        if len(self._layout.columns) <= _MOST_THREADED:
            return [list(self.parts)]
        return list(spans(self._groups, self.parts, size))

    def _batches(self, file: Any, size: int, groups: Sequence[int]) -> Iterator[Any]:
        """The columns that are read, of these row groups, at most ``size`` rows at a time."""
        names = [name for name in (*self._layout.columns, *self.by) if name not in self.folders]
        threads = len(names) <= _MOST_THREADED and has_threads_left(self.jobs)
        with reading(self.path):
            batches = file.iter_batches(size, row_groups=groups, columns=names, use_threads=threads)
        while (batch := next_of(self.path, batches)) is not None:
            self._decoded += batch.nbytes
            yield self._completed(batch)
        del batches
        # Else what the next row groups take comes beside it.
        if len(names) > _MOST_THREADED and self._decoded >= RELEASE_BYTES:
            self._decoded = 0
            pyarrow("reading Parquet").default_memory_pool().release_unused()

    def _completed(self, batch: Any) -> Any:
        if not self.folders:
            return batch
        pa = pyarrow("reading Parquet")
        repeated = [_repeated(pa, value, batch.num_rows) for value in self.folders.values()]
        names = [*batch.schema.names, *self.folders]
        return pa.RecordBatch.from_arrays([*batch.columns, *repeated], names)

    def _check_rows(self, found: int, told: int) -> None:
        """Raise where other rows were found than the file's metadata tell."""
        with reading(self.path):
            if found != told:
                raise EOFError

    def _opened(self) -> Any:
        return self._open(len(self._layout.columns) + len(self.by))

    def _open(self, columns: int = 1) -> Any:
        import pyarrow.parquet

        with reading(self.path):
            # Buffered by pages: by default a row group's columns are read whole, and with
            # pre_buffer the whole file stays in memory until the last batch. Every column has a
            # buffer of its own: of a thousand columns they would take a gigabyte.
            least, most = _PAGE_BUFFER_BYTES
            each = max(least, min(most, _FILE_BUFFER_BYTES // max(1, columns)))
            return pyarrow.parquet.ParquetFile(
                self.path,
                pre_buffer=False,
                buffer_size=each,
                page_checksum_verification=True,  # where the file has some
            )


def _repeated(pa: Any, value: Any, times: int) -> Any:
    """A column of one value; text as a dictionary of it, a byte a row."""
    if value.type != pa.string() or not value.is_valid:
        return pa.repeat(value, times)
    return pa.DictionaryArray.from_arrays(np.zeros(times, np.int8), pa.array([value.as_py()]))
