"""CSV as blocks of rows, one line one record.

A CSV has no schema, and its text is all private, so this reader is made to let no record
touch another, or the error stream: a line with too few or too many cells, with an open quote
or with a cell that is no number becomes a row of NaN, which counts as the centre. pyarrow's
own reader would stop there and quote the cell, or let an open quote swallow the lines below.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._sources import Source, reading
from .arrow import pyarrow, wide_block

__all__ = ["CsvFile"]

#: Bytes of text parsed at once: about 20 ms of work for two threads.
CHUNK_BYTES = 4 << 20

_ASCII = bytes(range(128)) + b"?" * 128


class CsvFile(Source):
    """Numbers in columns, with a line of names or without one.

    The columns' types are not written anywhere: a column is refused as not numeric when more
    than half of its cells in the first chunk are text, a verdict that one record cannot turn
    unless the column is half text.

    Parameters
    ----------
    path : str
        Commas between cells; tabs if the name ends in ``.tsv``. A name that ends in ``.gz``
        or the like is decompressed.
    columns : sequence of str, optional
        Names from the first line; ``f0``, ``f1``, … without one.
    header : bool, optional
        Whether the first line holds names. Left out: it does unless it holds numbers alone.
    """

    def __init__(self, path: str, columns: Sequence[str] | None, header: bool | None) -> None:
        self._pa = pyarrow("reading CSV")
        super().__init__(path)
        self._delimiter = "\t" if ".tsv" in path.lower() else ","
        with self._lines() as lines:
            first = lines.header()
        self._names, self._header = self._name(first, header)
        self._chosen = self._choose(columns)
        self.columns = [self._names[j] for j in self._chosen]
        self.d = len(self._chosen)
        self._check_numeric(columns)

    def _name(self, first: bytes, header: bool | None) -> tuple[list[str], bool]:
        text = first.decode("utf-8-sig", "replace")
        with reading(self.path):
            cells = next(csv.reader([text], delimiter=self._delimiter), [])
        if not any(cells):
            raise ValueError(f"{self.path} is empty: its first line must name the columns")
        if header is None:
            header = not all(_is_number(cell) for cell in cells)
        return (cells if header else [f"f{j}" for j in range(len(cells))]), header

    def _choose(self, columns: Sequence[str] | None) -> list[int]:
        # Of names, only those that the caller gave are put into messages: a file without a
        # header has a person's record in its first line.
        if columns is None:
            if len(set(self._names)) < len(self._names):
                raise ValueError(f"a name comes twice in the first line of {self.path}: rename one")
            return list(range(len(self._names)))
        for name in columns:
            if self._names.count(name) != 1 or list(columns).count(name) != 1:
                raise ValueError(
                    f"{self.path} must have column {name!r} exactly once, and columns must name "
                    "it once: check its first line"
                )
        if not columns:
            raise ValueError(f"columns names no column of {self.path}: name at least one")
        return [self._names.index(name) for name in columns]

    def _check_numeric(self, columns: Sequence[str] | None) -> None:
        with self._lines() as lines:
            lines.header() if self._header else None
            table = self._parse(next(lines.chunks(), b""))
        for j, name in enumerate(table.column_names):
            cells = table.column(name)
            text = np.isnan(_cast(self._pa, cells)).sum() - cells.null_count
            if 2 * text > len(cells):
                what = repr(columns[j]) if columns else f"number {j + 1}"
                raise TypeError(
                    f"column {what} of {self.path} is not numeric: leave it out, "
                    "or check what separates the cells"
                )

    def _lines(self) -> _Lines:
        return _Lines(self._pa, self.path)

    def blocks(self, d: int) -> Iterator[NDArray[Any]]:
        with self._lines() as lines:
            lines.header() if self._header else None
            for chunk in lines.chunks():
                table = self._parse(chunk)
                block = wide_block(
                    [_cast(self._pa, table.column(name)) for name in table.column_names]
                )
                self.position = lines.position
                yield block
            if lines.position < self.nbytes:
                raise OSError(f"{self.path} was cut short while it was read: write it again")

    def _parse(self, chunk: bytes) -> Any:
        """The chosen columns of some lines, as text: a row for each line."""
        wanted = chunk.count(b"\n")
        if not wanted:
            return self._blank(0)
        table, ragged = self._try_parse(chunk)
        if table is not None and table.num_rows + ragged == wanted:
            return self._pa.concat_tables([table, self._blank(ragged)])
        if wanted == 1:
            return self._blank(1)
        # An open quote has swallowed the next line: halve, until its line stands alone.
        middle = chunk.index(b"\n", len(chunk) // 2) + 1
        middle = middle if middle < len(chunk) else chunk.index(b"\n") + 1
        return self._pa.concat_tables([self._parse(chunk[:middle]), self._parse(chunk[middle:])])

    def _try_parse(self, chunk: bytes) -> tuple[Any, int]:
        from pyarrow import csv as reader

        ragged = 0

        def count(_row: Any) -> str:
            nonlocal ragged
            ragged += 1
            return "skip"

        keys = [str(j) for j in range(len(self._names))]
        chosen = [keys[j] for j in self._chosen]
        try:
            table = reader.read_csv(
                self._pa.BufferReader(chunk),
                read_options=reader.ReadOptions(
                    column_names=keys, block_size=len(chunk) + 1, use_threads=True
                ),
                parse_options=reader.ParseOptions(
                    delimiter=self._delimiter,
                    ignore_empty_lines=False,
                    invalid_row_handler=count,
                ),
                convert_options=reader.ConvertOptions(
                    include_columns=chosen,
                    column_types=dict.fromkeys(chosen, self._pa.string()),
                    strings_can_be_null=True,
                ),
            )
        except (self._pa.ArrowException, ValueError):
            return None, 0
        return table, ragged

    def _blank(self, rows: int) -> Any:
        cells = self._pa.nulls(rows, self._pa.string())
        return self._pa.table({str(j): cells for j in self._chosen})


class _Lines:
    """A text file in chunks that end with a line; every line ends with one newline."""

    def __init__(self, pa: Any, path: str) -> None:
        self._pa, self._path = pa, path
        self._rest = b""

    def __enter__(self) -> _Lines:
        with reading(self._path):
            self._file = self._stream = self._pa.OSFile(self._path)
        try:
            codec = self._pa.Codec.detect(self._path)
        except (TypeError, ValueError):  # no suffix of a compression
            return self
        self._stream = self._pa.CompressedInputStream(self._file, codec.name)
        return self

    def __exit__(self, *_error: object) -> None:
        self._stream.close()
        self._file.close()

    @property
    def position(self) -> int:
        return int(self._file.tell())

    def header(self) -> bytes:
        """Take the first line."""
        while b"\n" not in self._rest:
            more = self._read()
            self._rest += more
            if not more:
                break
        line, _, self._rest = self._rest.partition(b"\n")
        return line.strip(b"\r")

    def chunks(self) -> Iterator[bytes]:
        """Yield the lines that are left."""
        while more := self._read():
            whole, newline, tail = more.rpartition(b"\n")
            if newline:
                yield _clean(self._rest + whole + newline)
                self._rest = tail
            else:
                self._rest += more
        if self._rest:
            last = self._rest if self._rest.endswith(b"\n") else self._rest + b"\n"
            yield _clean(last)

    def _read(self) -> bytes:
        with reading(self._path):
            return bytes(self._stream.read(CHUNK_BYTES))


def _clean(chunk: bytes) -> bytes:
    # A lone carriage return would start a new record for pyarrow, and a ragged line that is
    # not UTF-8 makes it print a byte of the line.
    if b"\r" in chunk:
        chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    return chunk if chunk.isascii() else chunk.translate(_ASCII)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _cast(pa: Any, cells: Any) -> NDArray[np.float64]:
    """Text as float64, NaN where it is no number.

    A cell's value depends on that cell alone: what parses with its spaces parses without them
    to the same number, and halving ends at single cells.
    """
    import pyarrow.compute

    try:
        return _cast_all(pa, cells)
    except pa.ArrowInvalid:
        pass
    trimmed = pyarrow.compute.ascii_trim_whitespace(cells)
    try:
        return _cast_all(pa, trimmed)
    except pa.ArrowInvalid:
        pass
    return _cast_halves(pa, pa.chunked_array(trimmed).combine_chunks())


def _cast_all(pa: Any, cells: Any) -> NDArray[np.float64]:
    return cells.cast(pa.float64()).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _cast_halves(pa: Any, cells: Any) -> NDArray[np.float64]:
    try:
        return _cast_all(pa, cells)
    except pa.ArrowInvalid:
        if len(cells) == 1:
            return np.array([np.nan])
    middle = len(cells) // 2
    return np.concatenate(
        [_cast_halves(pa, cells.slice(0, middle)), _cast_halves(pa, cells.slice(middle))]
    )
