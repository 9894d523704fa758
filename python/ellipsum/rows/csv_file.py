"""CSV as blocks of rows, one line one record.

A CSV has no schema, and its text is all private, so this reader is made to let no record
touch another, or the error stream: a line with too few or too many cells, or with a cell that
is no number, becomes a row of NaN, which counts as the centre. pyarrow's own reader would stop
there and quote the cell, or let an open quote swallow the lines below (claim rows-4).
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np

from .ahead import mapped_ahead
from .arrow import UsesPyarrow, pyarrow
from .arrow_columns import ArrowBlock
from .columns import ColumnBlock
from .csv_cells import as_numbers
from .csv_chunks import Chunks, Text
from .csv_lines import Parser
from .sources import LabelledBlock, Source, check_labels

__all__ = ["CsvFile"]

#: The most threads that parse: by then cutting chunks takes as long. (Arrow's own threads would
#: share out one chunk, and wait for each other at its end.)
_MOST_PARSERS = 8

_DOUBLES = [np.dtype(np.float64)]

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

#: Characters of no text: of what is compressed, or binary, a line that has none of them is rare.
_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")

_READS = (
    "cells are separated by commas (by tabs in a .tsv), numbers have decimal points, and "
    "no line is a comment"
)


class CsvFile(UsesPyarrow, Source):
    """Numbers in columns, with a line of names or without one.

    The columns' types are not written anywhere, and nothing is refused because of what stands in
    the records, however many of them are no rows: at some number one record would decide it.

    Without names, the first line is a record like any other: only its number of cells is used,
    as public schema: where columns or labels are chosen, and where nobody says d.

    Parameters
    ----------
    path : str
        Commas between cells; tabs if the name ends in ``.tsv``. A name that ends in ``.gz``
        or the like is decompressed.
    columns : sequence of str, optional
        Names from the first line; ``f0``, ``f1``, … without one.
    header : bool
        Whether the first line holds names. It is never read to find that out.
    """

    def __init__(
        self,
        path: str,
        columns: Sequence[str] | None,
        header: bool,
        by: tuple[str, ...] = (),
    ) -> None:
        self._pa = pyarrow("reading CSV")
        super().__init__(path)
        self._delimiter = "\t" if ".tsv" in path.lower() else ","
        self._header = header
        self._given = columns
        self.quotable = columns is not None
        self.by = by
        with self._chunks() as chunks:
            first = chunks.header()
        if header:
            names = self._names(first)
            check_labels(path, names, columns, by)
            self._labels = [names.index(name) for name in by]
            self._width, self._chosen = len(names), self._choose(names)
            self.columns = [names[j] for j in self._chosen]
            known = {"", *self.columns, *by}
            self.others = [name for name in names if name not in known]
        else:
            cells = _cells(first, self._delimiter)
            self._labels = self._places(by)
            self._width, self._chosen = self._choose_by_place(
                max([cells, *(1 + p for p in self._labels)])
            )
            self.columns = None if columns is None else list(columns)
        self.d = len(self._chosen) or (0 if by else None)

    def accepts(self, d: int) -> bool:
        return super().accepts(d) or self._by_place

    @property
    def _by_place(self) -> bool:
        """Whether every cell of a line is a coordinate, however many there are."""
        return not self._header and self._given is None and not self.by

    def _names(self, first: bytes) -> list[str]:
        text = first.decode("utf-8", "replace").rstrip("\r\n")
        if not first:
            raise ValueError(f"{self.path} is empty: its first line must name the columns")
        self._check_dialect(first, text)
        try:
            cells = next(csv.reader([text], delimiter=self._delimiter), [])
        except csv.Error:  # a name longer than the module reads
            cells = []
        # pandas leaves the place over its index empty; where columns are given it is not read.
        named = cells[1:] if self._given is not None and cells[:1] == [""] else cells
        if not named or not all(_is_name(cell) for cell in named):
            raise ValueError(
                f"the first line of {self.path} does not look like column names: "
                "if it is a record, pass --no-header (header=False); if its first cell is empty, "
                "over an index that pandas wrote, name the columns you want or write index=False; "
                "if another one is, as behind a last comma, give it a name"
            )
        if len(cells) == 1 and cells[0] not in (*(self._given or ()), *self.by):
            self._check_one_name(cells[0])
        return cells

    def _check_dialect(self, first: bytes, text: str) -> None:
        """Say what is wrong with the file's encoding or ends of lines, by its line of names."""
        if first.startswith(_UTF16):
            raise ValueError(f"{self.path} is UTF-16: save it as UTF-8")
        if "\r" in text:
            raise ValueError(
                f"the first line of {self.path} has a carriage return in it: end lines by a newline"
            )
        if _NO_TEXT.search(text):
            raise ValueError(
                f"the first line of {self.path} is no text: is it compressed, or another format "
                "under the name of a text file?"
            )

    def _check_one_name(self, name: str) -> None:
        """Say why a line of names is only one, if another separator or a comment shows why."""
        if name.startswith("#"):
            raise ValueError(
                f"the first line of {self.path} is a comment, not the columns' names: "
                "take comments out"
            )
        for mark, called in _SEPARATORS.items():
            if mark in name:
                advice = f"write it anew, as by pandas.read_csv(path, sep={mark!r}) and to_csv(new)"
                raise ValueError(
                    f"the names in the first line of {self.path} are separated by {called}, "
                    f"but {_READS}: {advice}, or give that name by columns if it is one"
                )

    def _choose(self, names: Sequence[str]) -> list[int]:
        # Of names, only those that the caller gave are put into messages: a file without a
        # header has a person's record in its first line.
        if self._given is None:
            if len(set(names)) < len(names):
                raise ValueError(f"a name comes twice in the first line of {self.path}: rename one")
            return [j for j in range(len(names)) if j not in self._labels]
        self._check_given(self._given)
        for name in self._given:
            if names.count(name) != 1:
                raise ValueError(
                    f"{self.path} must have column {name!r} exactly once: check its first line, "
                    "where spaces beside a comma are part of a name"
                )
        return [names.index(name) for name in self._given]

    def _choose_by_place(self, cells: int) -> tuple[int, list[int]]:
        """Cells of a line, and the places of the columns chosen, without a header."""
        if self._given is None:
            return cells, [j for j in range(cells) if j not in self._labels]
        self._check_given(self._given)
        chosen = self._places(self._given)
        return max([cells, *(place + 1 for place in chosen)]), chosen

    def _places(self, names: Sequence[str]) -> list[int]:
        """Where columns are that have no names but f0, f1, and so on."""
        for name in names:
            if not re.fullmatch(r"f(0|[1-9][0-9]{0,5})", name):
                raise ValueError(
                    f"{self.path} has no column {name!r}: without a header its columns are "
                    "f0, f1, and so on"
                )
        return [int(name[1:]) for name in names]

    def _check_given(self, columns: Sequence[str]) -> None:
        for name in columns:
            if list(columns).count(name) != 1:
                raise ValueError(f"columns must name column {name!r} exactly once")

    def _chunks(self) -> Chunks:
        return Chunks(self._pa, self.path, self._delimiter.encode())

    def _labelled(self, d: int) -> Iterator[LabelledBlock]:
        parser = (
            Parser(self._pa, self._delimiter, d, range(d))
            if self._by_place
            else Parser(self._pa, self._delimiter, self._width, self._chosen, self._labels)
        )

        def rows_of(read: tuple[Text, int]) -> tuple[LabelledBlock, int]:
            chunk, position = read
            numbers = parser.numbers(chunk)
            table = parser.parse(chunk)[0] if numbers is None else numbers
            chunks.take_back(chunk)  # the table holds copies
            last = table.num_columns - len(self._labels)
            labels = [table.column(j) for j in range(last, table.num_columns)]
            if not last:
                return (np.empty((table.num_rows, 0)), labels), position
            if numbers is None:
                columns = [as_numbers(self._pa, table.column(j)) for j in range(last)]
                return (ColumnBlock(columns), labels), position
            (batch,) = table.select(range(last)).combine_chunks().to_batches()  # it has one
            return (ArrowBlock(self._pa, batch, _DOUBLES * last), labels), position

        parsers = max(1, min(self._pa.cpu_count() // self.jobs, _MOST_PARSERS))
        with self._chunks() as chunks:
            with closing(mapped_ahead(rows_of, chunks.rest(self._header), parsers)) as blocks:
                for block, self.position in blocks:
                    yield block
            if chunks.position < self.nbytes:
                raise OSError(f"{self.path} was cut short while it was read: write it again")


def _cells(line: bytes, delimiter: str) -> int:
    """Cells of a line, 0 for no line at all: whatever is in it, this does not fail."""
    outside = re.sub(rb'"[^"]*"', b"", line)
    return outside.count(delimiter.encode()) + 1 if line else 0


def _is_name(cell: str) -> bool:
    """Whether a cell has more to it than numbers, and what may separate them."""
    return not all(_is_number(part) for part in re.split(r"[\s,;|]+", cell) if part)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
