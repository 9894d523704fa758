"""Which format a file has, and the reader of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NoReturn

from .arrow_file import ArrowFile, ArrowStream
from .csv_file import CsvFile
from .npz_file import NpzFile
from .numpy_file import NumpyFile
from .parquet_file import ParquetFile
from .paths import CHECKPOINT_MAGIC
from .sources import Source, reading

__all__ = ["open_file"]

_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\x93NUMPY": "npy"}
#: Compressions of text, and what files of each begin with: those that are read, and others.
_READ = {
    ".gz": b"\x1f\x8b",
    ".bz2": b"BZh",
    ".zst": b"\x28\xb5\x2f\xfd",
    ".lz4": b"\x04\x22\x4d\x18",
}
_UNREAD = {".xz": b"\xfd7zXZ", ".zip": b"PK\x03\x04", ".7z": b"7z\xbc\xaf", ".rar": b"Rar!"}
_UNREAD_SUFFIXES = (*_UNREAD, ".tar", ".tgz", ".br", ".lzma", ".z", ".sz", ".snappy")
_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "stream",
    ".npy": "npy",
    ".npz": "npz",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
}


def open_file(
    path: str,
    columns: Sequence[str] | None,
    header: bool,
    by: tuple[str, ...],
    folders: dict[str, Any],
) -> Source:
    """The reader of a file, by what it begins with and its suffix; as :func:`~.files.open_rows`."""
    kind = _format(path, header)
    if kind == "npy":
        if columns is not None or by:
            raise ValueError(
                f"{path} has no column names: leave out columns and labels, and read it apart "
                "from files that have them"
            )
        return NumpyFile(path)
    if kind == "parquet":
        return ParquetFile(path, columns, by, folders)
    if kind == "csv":
        return CsvFile(path, columns, header, by)
    if kind == "npz":
        return NpzFile(path, columns, by)
    return (ArrowStream if kind == "stream" else ArrowFile)(path, columns, by)


def _format(path: str, header: bool) -> str:
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{path} is not a regular file: write it as one first")
    with reading(path), open(path, "rb") as file:
        start = file.read(8)
    kind = next((_SUFFIXES[s] for s in _suffixes(path) if s in _SUFFIXES), "")
    if kind == "csv" and _suffixes(path)[0] in _UNREAD_SUFFIXES:
        _raise_unread(path, _suffixes(path)[0])
    if kind == "csv" and not header:  # it begins with a record, which decides nothing
        return kind
    for magic, known in _MAGIC.items():
        if start.startswith(magic):
            return known
    if start == CHECKPOINT_MAGIC:
        raise OSError(f"{path} is a checkpoint, no rows: move it and its .lock elsewhere")
    if kind == "csv":
        _refuse_compressed(path, start)
    if kind == "csv" or (kind == "npz" and start.startswith(b"PK")):
        return kind
    if kind in ("arrow", "stream") and start[:4] in (b"\xff\xff\xff\xff", b""):
        return "stream"
    if kind:
        raise OSError(f"{path} is not what its suffix says: write it again, or rename it")
    known = ", ".join(_SUFFIXES)
    raise OSError(f"{path} has no known format: give {known}, text also as .csv.gz and alike")


def _refuse_compressed(path: str, start: bytes) -> None:
    """Raise OSError for text that is compressed in another way than its name says: what it begins
    with is no record, but a line of names."""
    for suffix, magic in _READ.items():
        if start.startswith(magic) and suffix != _suffixes(path)[0]:
            raise OSError(f"{path} is compressed: give it a name that ends in .csv{suffix}")
    for suffix, magic in _UNREAD.items():
        if start.startswith(magic):
            _raise_unread(path, suffix)


def _raise_unread(path: str, suffix: str) -> NoReturn:
    raise OSError(
        f"{path} is compressed as {suffix[1:]}, which is not read: decompress it, or write it as "
        f"{', '.join('.csv' + each for each in _READ)}"
    )


def _suffixes(path: str) -> list[str]:
    """The last suffix, and the one before it in case the last is of a compression."""
    stem, last = os.path.splitext(path.lower())
    return [last, os.path.splitext(stem)[1]]
