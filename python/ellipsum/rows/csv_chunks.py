"""The text of a CSV in chunks of whole lines, in buffers that are used again and again."""

from __future__ import annotations

import codecs
from collections.abc import Generator
from typing import Any

from .sources import reading

__all__ = ["Chunks", "Text"]

Text = bytes | bytearray

#: Bytes of text that are read, and parsed, at once, behind what was begun: of larger chunks the
#: columns' memory is given back to the system and asked for again, of smaller ones each column
#: costs more. How a file is cut is bound to jobs' format (``resumable._FORMAT``).
CHUNK_BYTES = 5 << 19

#: Towards the end of a file that is not compressed this part of what is left is read at once, and
#: so many bytes at least: one thread parses little of it alone. The place in the file, and its
#: size, decide alone (claim resume-3).
_LAST_PART, _LAST_BYTES = 4, 3 << 18

#: Bytes that are read at once to find the end of the first line.
_HEADER_BYTES = 1 << 16

#: Bytes of the longest line that is read: a longer one is a row of NaN, and is not kept. (pyarrow
#: counts the bytes of a chunk in 31 bits; a line of ten million numbers is shorter.)
LINE_BYTES = 1 << 28

#: What a line that is too long is read as: no number, and too few cells.
_NO_ROW = b" "

#: Bytes of a line that is not UTF-8, whose cells are looked at one by one: so many at a time.
_PART_BYTES = 1 << 20

_BYTE_ORDER_MARK = codecs.BOM_UTF8


class Chunks:
    """A text file in chunks that end with a line; every line ends with one newline.

    Parameters
    ----------
    pa : module, pyarrow
    path : str
    mark : bytes, between two cells
    """

    def __init__(self, pa: Any, path: str, mark: bytes) -> None:
        self._pa, self._path, self._mark = pa, path, mark
        self._ahead = b""
        self._spare: list[bytearray] = []

    def __enter__(self) -> Chunks:
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
        """Bytes of the file that were read."""
        return int(self._file.tell())

    def header(self) -> bytes:
        """Take the first line, newline and all; nothing if there is none."""
        line = _Line()
        while True:
            with reading(self._path):
                more = bytes(self._stream.read(min(_HEADER_BYTES, CHUNK_BYTES)))
            part, newline, self._ahead = more.partition(b"\n")
            line.append(part)
            if newline:
                return (line.take() + newline).removeprefix(_BYTE_ORDER_MARK)
            if not more:
                return line.take().removeprefix(_BYTE_ORDER_MARK)

    def rest(self, header: bool) -> Generator[tuple[Text, int], None, None]:
        """Yield the lines that are left, behind the first one if that is a header, and how far the
        file was read."""
        if header:
            self.header()
        line = _Line()
        while True:
            begun = line.take() if line.size <= min(CHUNK_BYTES // 4, LINE_BYTES) else b""
            chunk = self._read(begun)
            if len(chunk) == len(begun):
                line.append(begun)
                break
            if not line.empty:  # a long one: by itself
                end = chunk.find(b"\n")
                line.append(bytes(chunk[:end] if end >= 0 else chunk))
                if end < 0:
                    continue
                yield self._clean(line.take() + b"\n"), self.position
                del chunk[: end + 1]
            end = chunk.rfind(b"\n") + 1
            line.append(bytes(chunk[end:]))
            del chunk[end:]
            if chunk:
                yield self._clean(chunk), self.position
        if not line.empty:
            yield self._clean(line.take() + b"\n"), self.position

    def take_back(self, chunk: Text) -> None:
        """Use its memory for another one. Any thread may say so."""
        if isinstance(chunk, bytearray):
            self._spare.append(chunk)

    def _read(self, begun: bytes) -> bytearray:
        """What is begun, and the next bytes behind it: none at the end."""
        begun, self._ahead = begun + self._ahead, b""
        with reading(self._path):
            start, size = len(begun), self._next_bytes()
            chunk = self._buffer(start + size)
            chunk[:start] = begun
            with memoryview(chunk) as whole, whole[start:] as free:
                read = self._stream.readinto(free)
            del chunk[start + read :]
            return chunk

    def _next_bytes(self) -> int:
        if self._stream is not self._file:  # how much text is left nobody knows
            return CHUNK_BYTES
        left = (self._file.size() - self.position) // _LAST_PART
        return min(max(left, _LAST_BYTES), CHUNK_BYTES)

    def _buffer(self, size: int) -> bytearray:
        """One that was used before, whose pages the system need not find and clear, or another."""
        while self._spare:
            chunk = self._spare.pop()
            try:
                del chunk[size:], chunk[-1:]
            except BufferError:  # a reader has not let it go yet
                continue
            chunk += bytes(size - len(chunk))
            return chunk
        return bytearray(size)

    def _clean(self, chunk: Text) -> Text:
        # A lone carriage return would start a new record for pyarrow, and a ragged line that is
        # not UTF-8 makes it print a byte of the line. A byte order mark may begin any line: files
        # that are joined bring theirs along, and the first line is a record like the others.
        # Another one behind it is text: pyarrow would take it off the first line of what it is
        # given.
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b" ")
        if chunk.isascii():
            return chunk
        chunk = (b"\n" + chunk).replace(b"\n" + _BYTE_ORDER_MARK, b"\n")
        chunk = chunk.replace(b"\n" + _BYTE_ORDER_MARK, b"\n??")[1:]
        if _is_utf8(chunk):
            return chunk
        return b"\n".join([self._as_utf8(line) for line in chunk.split(b"\n")])

    def _as_utf8(self, line: bytes) -> bytes:
        """The line; what stands between two marks, and is not UTF-8, as Latin-1.

        What a cell is follows from its own bytes, or a note beside an id would make another user
        of it (claim users-2). A long line is looked at in parts that end before a mark.
        """
        if _is_utf8(line):
            return line
        parts, start = [], 0
        while start < len(line):
            end = line.find(self._mark, start + _PART_BYTES)
            part = line[start : end if end >= 0 else len(line)]
            parts.append(self._mark.join(map(_cell_as_utf8, part.split(self._mark))))
            start += len(part)
        return b"".join(parts)


class _Line:
    """One line in parts, joined once; of a line that is too long nothing is kept."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def append(self, part: bytes) -> None:
        self.size += len(part)
        if self.size <= LINE_BYTES:
            self._parts.append(part)
        else:
            self._parts.clear()

    def take(self) -> bytes:
        """The line, and begin another."""
        line = b"".join(self._parts) if self.size <= LINE_BYTES else _NO_ROW
        self._parts, self.size = [], 0
        return line

    @property
    def empty(self) -> bool:
        """Whether there is no line: not a byte of one."""
        return self.size == 0


def _is_utf8(text: Text) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _cell_as_utf8(cell: bytes) -> bytes:
    return cell if _is_utf8(cell) else cell.decode("latin-1").encode()
