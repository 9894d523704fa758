"""Arrays in ``.npy`` files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .sources import BLOCK_BYTES, LabelledBlock, SeekableSource, reading

__all__ = ["NumpyFile"]


class NumpyFile(SeekableSource):
    """A two-dimensional array in a ``.npy`` file, in C or Fortran order; its parts are blocks."""

    columns = None
    n: int

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
        if header.offset + header.nbytes != self.nbytes:  # a bit of the header may have changed
            raise OSError(f"{path} is longer than its header says, or damaged: write it again")
        self._all, self.d = header.shape
        self.n = self._all
        self._dtype = header.dtype
        self._offset = header.offset
        self._fortran = header.flags.f_contiguous and not header.flags.c_contiguous
        self._size = max(1, BLOCK_BYTES // max(1, self._dtype.itemsize * header.shape[1]))
        self.parts = range(-(-self.n // self._size))

    def _rows_of(self, parts: range) -> int:
        return max(0, min(self._all, parts.stop * self._size) - parts.start * self._size)

    @contextmanager
    def _parts_reader(self, d: int) -> Iterator[Callable[[int], list[LabelledBlock]]]:
        with reading(self.path):
            file = open(self.path, "rb", buffering=0)
        with file:
            yield lambda part: [(self._block(file, part, d), [])]

    def _block(self, file: Any, part: int, d: int) -> NDArray[Any]:
        start, count = part * self._size, self._rows_of(range(part, part + 1))
        if self._fortran:
            block = np.empty((d, count), self._dtype)
            for j in range(d):
                self._fill(file, j * self._all + start, block[j])
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
