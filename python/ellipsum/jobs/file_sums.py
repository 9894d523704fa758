"""Sums over files, several at a time or several parts of one, from where a checkpoint stands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from ..rows.ahead import ended, read_ahead
from ..rows.files import Rows
from ..rows.identity import inputs_of
from ..rows.progress import Meter
from ..rows.sources import Place
from .checkpoint import Job

__all__ = ["ROWS_PER_STATE", "FileSums", "Part"]

#: Bytes of rows read between two checkpoints, at least, over those of a checkpoint: so that what is
#: written stays below a quarter of what is read.
ROWS_PER_STATE = 4


class Part(Protocol):
    """What adds up over files: an exact sum, or a table of them."""

    def empty_copy(self) -> Any:
        """Another one of no rows."""

    def merge(self, other: Any) -> Any:
        """Add another one."""

    def partial(self) -> bytes:
        """It as bytes. **Private.**"""

    def merge_partial(self, part: Any) -> Any:
        """Add what another one's ``partial`` returned."""


_Part = TypeVar("_Part", bound=Part)


class FileSums(Generic[_Part]):
    """The sum of the splits of files that are done, and of each other one up to a place (claim
    resume-1).

    Parameters
    ----------
    rows : Rows
    empty : Part of no rows
    d : int, coordinates of a row
    job : Job or None; without one, nothing is kept
    jobs : int, splits that are read at the same time
    add : callable that adds a block of rows, with the columns that label them, to a part
    """

    def __init__(
        self,
        rows: Rows,
        empty: _Part,
        d: int,
        job: Job | None,
        jobs: int,
        add: Callable[[_Part, Any, list[Any]], object],
    ) -> None:
        self.rows, self.d, self.job, self.jobs, self.add = rows, d, job, jobs, add
        rows.check(d)
        self.splits = rows.splits(jobs, d)
        self.done: _Part = empty.empty_copy()
        self.empty = empty
        self.finished: set[int] = set()
        self.places: dict[int, tuple[Place, bytes]] = {}
        self.unsaved, self.stop = 0, False
        self.every = 0 if job is None else max(1, job.every // jobs)
        self.kept_bytes = 0  # of the latest state: a large one is written less often
        self.lock = job.lock if job is not None else threading.RLock()

    def run(self) -> _Part:
        """Read what is left, and return the whole."""
        self._load()
        self.rows.expect(1)
        todo = [k for k in range(len(self.splits)) if k not in self.finished]
        for k, split in enumerate(self.splits):
            split.handed = 0.0 if k in todo else float(split.nbytes)
        self.meter = self.rows.meter() if todo else Meter()
        try:
            self._read(todo)
        finally:
            self.meter.close()
        if self.job is not None and todo:
            self.job.check_inputs(inputs_of(self.rows))
            self._keep()
            self.job.save()
        return self.done

    def _read(self, todo: list[int]) -> None:
        if self.jobs == 1 or len(todo) < 2:
            self._in_turn(todo)
            return
        with ThreadPoolExecutor(min(self.jobs, len(todo))) as pool:
            try:
                for _ in pool.map(self._alone, todo):  # raises what one of them does
                    pass
            except BaseException:
                self.stop = True  # the others end at their next block
                pool.shutdown(cancel_futures=True)
                raise

    def _in_turn(self, todo: list[int]) -> None:
        """While a split's last block is added, the next one's first is read."""
        marked = ((k, block) for k in todo for block in self._blocks(k))
        with closing(read_ahead(marked)) as ahead:
            coming = list(islice(ahead, 1))

            def blocks(k: int) -> Iterator[Any]:
                while coming and coming[0][0] == k:
                    yield coming.pop()[1]  # none is kept while the next one is made
                    coming.extend(islice(ahead, 1))

            for k in todo:
                self._split(k, blocks(k))

    def _alone(self, k: int) -> None:
        with ended(self._blocks(k)) as blocks:
            self._split(k, blocks)

    def _blocks(self, k: int) -> Iterator[Any]:
        start = self.places[k][0] if k in self.places else None
        split = self.splits[k]
        for (block, labels), place in split.labelled_from(self.d, start):
            yield block, labels, place, split.position
            del block, labels  # none is kept while the next one is made

    def _split(self, k: int, blocks: Iterator[Any]) -> None:
        part: _Part = self.empty.empty_copy()
        if k in self.places:
            part.merge_partial(self.places[k][1])
        since = 0
        for block, labels, place, position in blocks:
            if self.stop:
                return
            self.splits[k].handed = position
            if len(block):
                self.add(part, block, labels)
            self.meter.add(len(block))
            since += block.nbytes + sum(column.nbytes for column in labels)
            if self._due(since):
                with self.lock:
                    self.places[k] = (place, bytes(part.partial()))
                    self._keep_soon()
                since = 0
        self.splits[k].handed = float(self.splits[k].nbytes)
        with self.lock:
            self.done.merge(part)
            self.finished.add(k)
            self.places.pop(k, None)
            self.unsaved += since
            if self._due(self.unsaved):
                self._keep_soon()

    def _due(self, unsaved: int) -> bool:
        """Whether so many bytes of rows are worth a checkpoint."""
        enough = max(self.every, ROWS_PER_STATE * self.kept_bytes)
        return self.job is not None and unsaved >= enough and self.job.due

    def _keep_soon(self) -> None:
        assert self.job is not None
        self._keep()
        self.job.save_soon()

    def _load(self) -> None:
        if self.job is None or "sum" not in self.job.blobs:
            return
        self.done.merge_partial(self.job.blobs["sum"])
        self.finished = set(self.job.facts["finished"])
        for name, (unit, inside) in self.job.facts["places"].items():
            self.places[int(name)] = ((unit, inside), self.job.blobs[f"split {name}"])

    def _keep(self) -> None:
        """All of it for one write, as it is under the lock: a block counts in one place."""
        assert self.job is not None
        with self.lock:
            parts = {f"split {k}": part for k, (_, part) in self.places.items()}
            self.job.blobs = {"sum": bytes(self.done.partial()), **parts}
            self.job.facts = {
                "finished": sorted(self.finished),
                "places": {str(k): list(place) for k, (place, _) in self.places.items()},
            }
            self.kept_bytes = sum(map(len, self.job.blobs.values()))
            self.unsaved = 0
