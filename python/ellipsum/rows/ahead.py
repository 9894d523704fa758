"""Reading ahead: the next block is decoded while the kernel runs on the one before."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["read_ahead"]


def read_ahead(blocks: Generator[Any, None, None]) -> Iterator[Any]:
    """Yield the same blocks; each next one is made by another thread meanwhile, one and no more.

    What making a block raises is raised where that block would come. Where the rows are left
    early, the block under way is waited for, and the generator closed.
    """
    try:
        first = next(blocks, None)  # without a thread: there may be no more than this one
        if first is None:
            return
        with ThreadPoolExecutor(1, "ellipsum-read-ahead") as worker:
            coming = worker.submit(next, blocks, None)
            yield first
            del first
            while (block := coming.result()) is not None:
                coming = worker.submit(next, blocks, None)
                yield block
                del block
    finally:
        blocks.close()
