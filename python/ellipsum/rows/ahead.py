"""Reading ahead: next blocks are decoded while the kernel runs on the one before."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, TypeVar

__all__ = ["ended", "mapped_ahead", "read_ahead"]

_T = TypeVar("_T")


@contextmanager
def ended(blocks: Iterator[_T]) -> Iterator[Iterator[_T]]:
    """Close a generator at the end: an error, while it is held, holds its frames, and so what they
    iterate with its threads."""
    try:
        yield blocks
    finally:
        if isinstance(blocks, Generator):
            blocks.close()


def read_ahead(blocks: Generator[Any, None, None]) -> Generator[Any, None, None]:
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
        _close(blocks)


def _close(blocks: Generator[Any, None, None]) -> None:
    # An interrupt while the executor starts its thread leaves one that nobody waits for.
    while True:
        while getattr(blocks, "gi_running", False):
            time.sleep(0.001)
        try:
            return blocks.close()
        except ValueError as error:
            if str(error) != "generator already executing":
                raise


def mapped_ahead(
    work: Callable[[Any], Any], items: Generator[Any, None, None], workers: int
) -> Generator[Any, None, None]:
    """Yield ``work(item)`` of each item, in their order, made by so many threads at the same time.

    Two items more wait for a thread: one is there when another is done while a block is used.
    Errors and early ends are as of :func:`read_ahead`.
    """
    coming: deque[Future[Any]] = deque()
    with closing(items), ThreadPoolExecutor(workers, "ellipsum-read-ahead") as pool:
        failed: Exception | None = None
        try:
            while True:
                try:
                    item = next(items)
                except StopIteration:
                    break
                except Exception as error:  # behind the blocks of the items before it
                    failed = error
                    break
                coming.append(pool.submit(work, item))
                if len(coming) > workers + 1:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            for made in coming:
                made.cancel()
        if failed is not None:
            raise failed
