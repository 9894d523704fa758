"""Arrays that begin on a cache line: vectors of a line each take two of them otherwise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["longer", "zeros"]

_LINE = 64


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Zeros that begin on a cache line; pages of them are touched where they are written."""
    kind = np.dtype(dtype)
    size = math.prod(shape)
    raw = np.zeros(size + _LINE // kind.itemsize, kind)
    first = -raw.ctypes.data % _LINE // kind.itemsize
    return raw[first : first + size].reshape(shape)


def longer(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """A copy of so many rows, zeros behind the old ones."""
    more = zeros((rows, *array.shape[1:]), array.dtype)
    more[: len(array)] = array
    return more
