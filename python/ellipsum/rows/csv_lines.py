"""Lines of a CSV as cells: each line is one row, whatever is in it and in the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .csv_chunks import Text

__all__ = ["Parser"]

# Only a quote that begins a cell counts. Each part of a line can match in one way alone, so that
# time grows with the line's length.
# [^"]*(?:""[^"]*)* and not (?:[^"]|"")*, which keeps a hundred bytes for each character.
_CELL = rb'(?:"[^"]*(?:""[^"]*)*"(?!")[^,]*|(?!")[^,]*)'
_OPEN_QUOTE = rb'(?:%s,)*"[^"]*(?:""[^"]*)*' % _CELL


#: Bytes whose newlines are counted at once: they stay in the cache.
_COUNTED_BYTES = 1 << 18

#: After chunks with a cell that is no number so many, at most, are not tried as numbers.
_MOST_PAUSE = 63


def _count_lines(chunk: Text) -> int:
    """Newlines, in vectors: `bytes.count` goes byte by byte."""
    text = np.frombuffer(chunk, np.uint8)
    parts = range(0, len(text), _COUNTED_BYTES)
    return sum(int(np.count_nonzero(text[i : i + _COUNTED_BYTES] == ord("\n"))) for i in parts)


class Parser:
    """Lines to cells of the columns ``chosen`` out of ``width``, and of ``labels`` behind them.

    Several threads may call it: which chunks are tried as numbers may depend on them, and no cell.
    """

    def __init__(
        self,
        pa: Any,
        delimiter: str,
        width: int,
        chosen: Sequence[int],
        labels: Sequence[int] = (),
    ) -> None:
        self._pa, self._delimiter, self._width = pa, delimiter, width
        self._keys = [str(j) for j in range(width)]
        self._chosen = [str(j) for j in (*chosen, *labels)]
        self._text = dict.fromkeys(self._chosen, pa.string())
        numbers = dict.fromkeys((str(j) for j in chosen), pa.float64())
        self._numbers = numbers | dict.fromkeys((str(j) for j in labels), pa.string())
        self._pause = self._waits = 0
        mark = delimiter.encode()
        self._open = re.compile(_OPEN_QUOTE.replace(b",", mark))
        self._next = re.compile(_CELL.replace(b",", mark) + mark)

    def numbers(self, chunk: Text) -> Any:
        """A row for each line, chosen cells as float64: of a chunk all of whose lines are rows and
        all of whose chosen cells are numbers or nulls. None of another one.

        A float64 is what :func:`as_numbers` makes of the cell's text (a test compares the two). A
        chunk that is refused has been read in vain: the more in a row, the more of the next are
        not tried, so that of a file with odd cells everywhere one in 64 is.
        """
        if self._waits:
            self._waits -= 1
            return None
        table = None if self._ends_open(chunk) else self._read(chunk, self._numbers)
        if table is not None and table.num_rows == _count_lines(chunk):
            self._pause = 0
            return table
        self._pause = self._waits = min(2 * self._pause + 1, _MOST_PAUSE)
        return None

    def parse(self, chunk: Text) -> tuple[Any, int]:
        """A row for each line, in their order, all cells as text, and how many lines could not be
        split into ``width`` cells.

        A line that is no row keeps its place: a release of each record by itself tells the order.
        """
        lines = _count_lines(chunk)
        table = None if self._ends_open(chunk) else self._read(chunk, self._text)
        if table is not None and table.num_rows == lines:
            return table, 0
        # An open quote has swallowed the next line, or lines are ragged.
        kept, right = self._straight(chunk)
        rows = int(right.sum())
        table = self._read(kept, self._text) if rows else self._blank(0)
        if table is None or table.num_rows != rows:
            return self._halves(chunk)
        places = np.cumsum(right) - 1
        return table.take(self._pa.array(places, mask=~right)), lines - rows

    def _read(self, chunk: Text, types: dict[str, Any]) -> Any:
        """Whatever pyarrow makes of the lines; no table where it refuses one, or a cell.

        One block: within an open quote, another one would end with the newline in its last cell;
        and columns of several parts are copied once more.
        """
        from pyarrow import csv as reader

        try:
            return reader.read_csv(
                self._pa.BufferReader(chunk),
                read_options=reader.ReadOptions(
                    column_names=self._keys,
                    block_size=len(chunk) + 1,
                    use_threads=False,
                ),
                parse_options=reader.ParseOptions(
                    delimiter=self._delimiter, ignore_empty_lines=False
                ),
                convert_options=reader.ConvertOptions(
                    include_columns=self._chosen,
                    column_types=types,
                    strings_can_be_null=True,
                ),
            )
        except MemoryError:  # Arrow's, too: it says nothing of the lines
            raise
        except (self._pa.ArrowException, ValueError):
            return None

    def _ends_open(self, chunk: Text) -> bool:
        """Whether the last line leaves a quote open, which would take its newline in."""
        end = len(chunk) - 1
        start = chunk.rfind(b"\n", 0, end) + 1
        return b'"' in chunk[start:] and bool(self._open.fullmatch(chunk, start, end))

    def _straight(self, chunk: Text) -> tuple[bytes, NDArray[np.bool_]]:
        """The lines of ``width`` cells, each quote closed, and which of all lines they are."""
        chunk, quoted = self._closed(chunk)
        text = np.frombuffer(chunk, np.uint8)
        ends = np.flatnonzero(text == ord("\n"))
        starts = np.concatenate([[0], ends[:-1] + 1])
        cells = 1 + np.add.reduceat(text == ord(self._delimiter), starts, dtype=np.intp)
        for end, count in quoted.items():
            cells[np.searchsorted(ends, end)] = count
        sizes = np.diff(ends, prepend=-1)
        right = (cells == self._width) | (sizes == 1)  # a blank line is a row of nulls
        kept = text[np.repeat(right, sizes)]
        return kept.tobytes(), right

    def _closed(self, chunk: Text) -> tuple[bytes, dict[int, int]]:
        """The lines, a quote at the end of each that leaves one open; and the cells of each line
        with a quote in it, by where the line then ends."""
        parts: list[Text] = []
        cells: dict[int, int] = {}
        done, at = 0, chunk.find(b'"')
        while at >= 0:
            start, end = chunk.rfind(b"\n", 0, at) + 1, chunk.index(b"\n", at)
            if self._open.fullmatch(chunk, start, end):
                parts += [chunk[done:end], b'"']
                done = end
            cells[end + len(parts) // 2] = self._count(chunk, start, end)
            at = chunk.find(b'"', end)
        return b"".join([*parts, chunk[done:]]), cells

    def _count(self, chunk: Text, start: int, end: int) -> int:
        """Cells of a line."""
        count = 1
        while cell := self._next.match(chunk, start, end):
            start, count = cell.end(), count + 1
        return count

    def _halves(self, chunk: Text) -> tuple[Any, int]:
        """What pyarrow refuses after all, down to the line that it is."""
        if _count_lines(chunk) == 1:
            return self._blank(1), 1
        middle = chunk.index(b"\n", len(chunk) // 2) + 1
        middle = middle if middle < len(chunk) else chunk.index(b"\n") + 1
        parts = [self.parse(chunk[:middle]), self.parse(chunk[middle:])]
        return self._pa.concat_tables([parts[0][0], parts[1][0]]), parts[0][1] + parts[1][1]

    def _blank(self, rows: int) -> Any:
        cells = self._pa.nulls(rows, self._pa.string())
        return self._pa.table({key: cells for key in self._chosen})
