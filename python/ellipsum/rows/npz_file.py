"""``.npz`` files: arrays of one dimension are columns, one of two dimensions has the rows."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .columns import ColumnBlock
from .sources import BLOCK_BYTES, LabelledBlock, Source, check_labels, reading

__all__ = ["NpzFile"]

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


_LABELS = "iufSU"  # kinds of types


class _Array(NamedTuple):
    """What an array's header says, which is public."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


class NpzFile(Source):
    """Arrays of one archive, read side by side a block at a time, compressed or not.

    One array of two dimensions is read as the ``.npy`` file that it is, without names where nobody
    chose it by its name; in Fortran order it is held in memory whole.
    """

    def __init__(self, path: str, columns: Sequence[str] | None, by: tuple[str, ...] = ()) -> None:
        super().__init__(path)
        self.by, self._heads = by, _heads(path)
        check_labels(path, list(self._heads), columns, by)
        chosen = [name for name in self._heads if name not in by] if columns is None else columns
        self._chosen = list(chosen)
        arrays = [self._head(name) for name in self._chosen]
        self._table = len(arrays) == 1 and len(arrays[0].shape) == 2
        named = arrays or by  # labels alone are rows of no coordinates
        if not (self._table or all(len(array.shape) == 1 for array in arrays)) or not named:
            names = ", ".join(map(repr, list(self._heads)[:8])) or "no array"
            raise ValueError(
                f"{path} must give one array of two dimensions, rows and coordinates, or arrays of "
                f"one, a column each: choose by columns=; it has {names}"
            )
        for name, array in zip(self._chosen, arrays, strict=True):
            if array.dtype.kind not in "fiub":
                raise TypeError(
                    f"array {name!r} of {path} is not numeric, its dtype is {array.dtype.kind!r}: "
                    "leave it out, by columns="
                )
        for name in by:
            if self._heads[name].dtype.kind not in _LABELS:
                raise TypeError(
                    f"array {name!r} of {path} cannot say whose a row is: make it text, bytes or "
                    "whole numbers"
                )
        lengths = {self._heads[name].shape[:1] for name in [*self._chosen, *by]}
        if len(lengths) > 1 or any(len(self._heads[name].shape) != 1 for name in by):
            raise ValueError(f"the arrays read from {path} must have an entry for each row")
        ((self.n,),) = lengths
        self.columns = None if self._table and columns is None else self._chosen
        self.d = arrays[0].shape[1] if self._table else len(arrays)

    def _head(self, name: str) -> _Array:
        if name not in self._heads:
            raise ValueError(f"{self.path} has no array {name!r}: choose from its own")
        if self._chosen.count(name) > 1:
            raise ValueError(f"array {name!r} comes twice in columns: name each once")
        return self._heads[name]

    def _labelled(self, d: int) -> Iterator[LabelledBlock]:
        n, names = self.n or 0, [*self._chosen, *self.by]
        width = sum(self._heads[name].dtype.itemsize for name in names)
        size = max(1, BLOCK_BYTES // max(1, width * (d if self._table else 1)))
        with ExitStack() as stack:
            with reading(self.path):
                file = stack.enter_context(zipfile.ZipFile(self.path))
                streams = [stack.enter_context(file.open(f"{name}.npy")) for name in names]
                for name, stream in zip(names, streams, strict=True):
                    if _read_head(stream) != self._heads[name]:
                        raise EOFError  # it is another array now
            readers = [
                _blocks(self.path, stream, self._heads[name], size)
                for name, stream in zip(names, streams, strict=True)
            ]
            done = 0
            for parts in zip(*readers, strict=True):
                done += len(parts[0])
                self.position = self.nbytes * done / n
                numbers = [_plain(part) for part in parts[: len(self._chosen)]]
                labels = list(parts[len(self._chosen) :])
                yield self._rows(numbers, len(parts[0])), labels

    def _rows(self, numbers: list[NDArray[Any]], n: int) -> Any:
        if self._table:
            return numbers[0]
        return ColumnBlock(numbers) if numbers else np.empty((n, 0))


def _heads(path: str) -> dict[str, _Array]:
    with reading(path), zipfile.ZipFile(path) as file:
        heads = {}
        for member in file.namelist():
            name = member.removesuffix(".npy")
            if name == member or name in heads:
                raise EOFError  # no array, or a second one of the name
            with file.open(member) as stream:
                heads[name] = _read_head(stream)
        return heads


def _read_head(stream: Any) -> _Array:
    """The header of an array; the stream is then at its numbers."""
    head = _Array(*_HEADERS[np.lib.format.read_magic(stream)](stream))
    if min(head.shape, default=0) < 0:
        raise EOFError
    return head


def _blocks(path: str, stream: Any, array: _Array, size: int) -> Iterator[NDArray[Any]]:
    """The entries, or rows, of an array; its checksum is looked at behind the last one."""
    n = array.shape[0]
    if array.fortran and len(array.shape) == 2:
        whole = _filled(path, stream, np.empty(array.shape[::-1], array.dtype)).T
        blocks = (whole[start : start + size] for start in range(0, n, size))
    else:
        shapes = ((min(size, n - start), *array.shape[1:]) for start in range(0, n, size))
        blocks = (_filled(path, stream, np.empty(shape, array.dtype)) for shape in shapes)
    yield from blocks
    with reading(path):
        if stream.read(1):
            raise EOFError


def _filled(path: str, stream: Any, out: NDArray[Any]) -> NDArray[Any]:
    view = memoryview(out.view(np.uint8).reshape(-1).data) if out.size else memoryview(b"")
    with reading(path):
        while len(view):
            count = stream.readinto(view)
            if not count:
                raise EOFError
            view = view[count:]
    return out


def _plain(part: NDArray[Any]) -> NDArray[Any]:
    if part.dtype in (np.float32, np.float64) and part.dtype.isnative:
        return part
    with np.errstate(all="ignore"):  # a warning would tell of a value
        return part.astype(np.float64)
