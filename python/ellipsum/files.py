"""Rows from files: Parquet, Arrow IPC, CSV and ``.npy``, any number of them as one data set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

__all__ = ["Rows"]


class Rows:
    """Rows that can be read as often as wanted."""

    def batches(self, d: int) -> Iterator[NDArray[Any]]:
        """Yield every row once, in blocks of shape (n, d)."""
        raise NotImplementedError
