"""Files that are read on from a place: each block comes with the place after it.

A place is (unit, blocks of it): row groups of Parquet, record batches of Arrow IPC files, blocks of
``.npy``. CSV and Arrow streams have one unit: what was read before is read again, and left out.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from itertools import islice
from typing import Any

from .arrow import PART_BYTES, pyarrow
from .files import Rows
from .npz_file import NpzFile
from .sources import (
    BLOCK_BYTES,
    NumpyFile,
    ParquetFile,
    Source,
    labelled_blocks,
    reading,
)

__all__ = ["Place", "blocks_from", "decoder_of", "inputs_of", "labelled_from", "sources_of"]

Place = tuple[int, int]
Marked = tuple[Any, Place]


def sources_of(rows: Rows, d: int) -> list[Source]:
    """The files of rows of ``d`` coordinates, in order.

    Raises
    ------
    ValueError
        The rows have another number of coordinates.
    """
    rows.batches(d)  # refuses what does not fit; nothing is read
    return rows._sources


def inputs_of(rows: Rows) -> list[list[Any]]:
    """Path, size and time of change of each file, and the columns read: what a job is of."""
    found = []
    for path in rows.paths:
        with reading(path):
            facts = os.stat(path)
        found.append([os.path.realpath(path), facts.st_size, facts.st_mtime_ns])
    return found


def decoder_of(rows: Rows) -> dict[str, str]:
    """The version of pyarrow, where it decodes a file: how it cuts batches is nowhere promised, and
    a place is a number of them."""
    if all(isinstance(source, (NumpyFile, NpzFile)) for source in rows._sources):
        return {}
    return {"pyarrow": str(pyarrow("reading files").__version__)}


def blocks_from(source: Source, d: int, start: Place = (0, 0)) -> Generator[Marked, None, None]:
    """Yield the rows from a place on, each block with the place after it."""
    for (block, _), place in labelled_from(source, d, start):
        yield block, place


def labelled_from(source: Source, d: int, start: Place = (0, 0)) -> Generator[Marked, None, None]:
    """As :func:`blocks_from`, each block with the columns that label its rows beside it."""
    if isinstance(source, NumpyFile):
        return _numpy(source, d, start)
    if isinstance(source, ParquetFile):
        return _parquet(source, d, start)
    return _again(source, d, start)


def _again(source: Source, d: int, start: Place) -> Generator[Marked, None, None]:
    blocks = enumerate(source.labelled(d), 1)
    for k, block in islice(blocks, start[1], None):
        yield block, (0, k)


def _numpy(source: NumpyFile, d: int, start: Place) -> Generator[Marked, None, None]:
    n = source.n or 0
    size = max(1, BLOCK_BYTES // (source._dtype.itemsize * d))
    with reading(source.path):
        file = open(source.path, "rb", buffering=0)
    with file:
        for unit in range(start[0], -(-n // size)):
            block = source._block(file, unit * size, min(size, n - unit * size), d)
            source.position = source.nbytes * (unit * size + len(block)) / n
            yield (block, []), (unit + 1, 0)


def _parquet(source: ParquetFile, d: int, start: Place) -> Generator[Marked, None, None]:
    size = source.rows_at_once(d, BLOCK_BYTES, PART_BYTES)
    with source.opened() as file:
        groups = file.metadata.num_row_groups
        for group in range(start[0], groups):
            skipped = start[1] if group == start[0] else 0
            batches = source.batches(file, size, [group])
            blocks = enumerate(_decoded(source, batches, d), 1)
            found = 0
            for k, block in blocks:
                found += len(block[0])
                if k > skipped:
                    yield block, (group, k)
            source.check_rows(found, file.metadata.row_group(group).num_rows)
            source.position = source.nbytes * (group + 1) / groups


def _decoded(source: ParquetFile, batches: Any, d: int) -> Iterator[Any]:
    for batch in batches:
        yield from labelled_blocks(source._layout, batch, d, source.by)
