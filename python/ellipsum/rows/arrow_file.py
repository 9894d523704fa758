"""Arrow IPC files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .arrow import UsesPyarrow, pyarrow, validate
from .sources import (
    LabelledBlock,
    SeekableSource,
    Source,
    labelled_blocks,
    layout_of,
    next_of,
    reading,
)

__all__ = ["ArrowFile", "ArrowStream"]


#: What a stream ends with: a message of no bytes.
_END = b"\xff\xff\xff\xff\0\0\0\0"


class _ArrowSource(UsesPyarrow, Source):
    """Arrow IPC, as a file or as a stream."""

    _opener: str

    def __init__(self, path: str, columns: Sequence[str] | None, by: tuple[str, ...] = ()) -> None:
        self._pa = pyarrow("reading Arrow files")
        super().__init__(path)
        self._fields: list[int] | None = None
        with self._opened() as file:
            reader = self._reader(file)
            schema = reader.schema
            self._found(reader)
        self.by = by
        self._layout = layout_of(path, schema, columns, by)
        self.columns, self.d = self._layout.columns, self._layout.d
        self.others = [name for name in self._layout.others if name not in by]
        self.units = self._layout.units
        self.shares_memory = bool(self.others)  # a batch is one piece, as far as its reader tells
        self._fields = sorted(schema.get_field_index(name) for name in [*self.columns, *by])

    def _found(self, reader: Any) -> None:
        """Learn of a file what its format tells."""

    def _opened(self) -> Any:
        with reading(self.path):
            return self._pa.OSFile(self.path)

    def _reader(self, file: Any) -> Any:
        options = self._pa.ipc.IpcReadOptions(included_fields=self._fields)
        with reading(self.path):
            return getattr(self._pa.ipc, self._opener)(file, options=options)

    def _blocks(self, batch: Any, d: int) -> Iterator[LabelledBlock]:
        with reading(self.path):
            validate(batch)  # the format has no checksums
        return labelled_blocks(self._layout, batch, d, self.by)


class ArrowFile(SeekableSource, _ArrowSource):
    """Arrow IPC as a file; its parts are record batches."""

    _opener = "open_file"

    def _found(self, reader: Any) -> None:
        self.parts = range(reader.num_record_batches)

    def _rows_of(self, parts: range) -> None:
        return None

    @contextmanager
    def _parts_reader(self, d: int) -> Iterator[Callable[[int], Iterator[LabelledBlock]]]:
        with self._opened() as file:
            reader = self._reader(file)
            yield lambda part: self._blocks(self._batch(reader, part), d)

    def _batch(self, reader: Any, part: int) -> Any:
        with reading(self.path):
            return reader.get_batch(part)


class ArrowStream(_ArrowSource):
    """Arrow IPC as a stream, which is read from its beginning."""

    _opener = "open_stream"

    def _labelled(self, d: int) -> Iterator[LabelledBlock]:
        with self._opened() as file:
            batches = iter(self._reader(file))
            while (batch := next_of(self.path, batches)) is not None:
                self.position = file.tell()
                yield from self._blocks(batch, d)
            with reading(self.path):
                if file.tell() < self.nbytes:  # zeros, as a broken disk leaves them, are an end
                    raise EOFError
                file.seek(max(0, self.nbytes - len(_END)))
                ended = file.read(len(_END)) == _END
            if not ended:  # as one that was cut between two batches does
                raise OSError(
                    f"{self.path} lacks the mark of a stream's end: write it again, whole"
                )
