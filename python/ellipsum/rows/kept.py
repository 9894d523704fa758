"""Rows of files for several passes: decoded once, where there is room for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import divided
from .columns import ColumnBlock
from .files import Rows

__all__ = ["KeptRows"]

#: Bytes that the objects about an array or a column take, at most, beside its numbers.
_BYTES_OF_ARRAY = 1 << 10


class KeptRows:
    """The blocks of the first pass, in memory if they take no more than `divided.MEMORY_BYTES`;
    else nothing, and each pass reads the files.

    Parameters
    ----------
    rows : Rows, whose bars go on over the passes that read no file
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._blocks: list[Any] | None = None
        self._large = False

    def over(self, read: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """One pass; ``read`` is one over the files."""
        return self._first(read()) if self._blocks is None else self._again(self._blocks)

    def _first(self, blocks: Iterator[Any]) -> Iterator[Any]:
        kept: list[Any] = []
        size = self._rows.held_beside
        try:
            for block in blocks:
                size += _bytes_of(block)
                self._large |= size > divided.MEMORY_BYTES
                if self._large:
                    kept.clear()
                else:
                    kept.append(_protected(block))
                yield block
                del block
        except BaseException:
            kept.clear()  # which the error's frames hold
            raise
        self._blocks = None if self._large else kept

    def _again(self, blocks: list[Any]) -> Iterator[Any]:
        done, total = 0, sum(map(len, blocks))
        stored = total, sum(block.nbytes for block in blocks), lambda: done / max(total, 1)
        meter = self._rows.meter(stored)
        try:
            for block in blocks:
                yield block.fresh() if isinstance(block, ColumnBlock) else block
                done += len(block)
                meter.add(len(block))
        finally:
            meter.close()


def _bytes_of(block: Any) -> int:
    """What a block takes: its numbers, and what NumPy and Arrow hold for each of its arrays."""
    arrays = block.shape[1] if isinstance(block, ColumnBlock) else 1
    return int(block.nbytes + len(block) * arrays // 8 + _BYTES_OF_ARRAY * (arrays + 1))


def _protected(block: Any) -> Any:
    """The same, which nobody may write to, and without what is made of it meanwhile: it is read
    again."""
    if isinstance(block, ColumnBlock):
        return block.fresh()
    block.flags.writeable = False
    return block
