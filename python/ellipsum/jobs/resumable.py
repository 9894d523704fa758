"""Sums over files that go on where a killed run stopped, several files at a time."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..adaptive.domain import Domain
from ..adaptive.part_pass import passes_over
from ..adaptive.passes import Passes
from ..adaptive.release import AdaptiveRelease
from ..adaptive.rounds import run
from ..column_names import Columns
from ..ellipsoid import Ellipsoid
from ..exact_sum import ExactSum
from ..guarantee import GaussianGuarantee
from ..noise_keys import JobKeys, Use, digest
from ..rows.ahead import read_ahead
from ..rows.batches import kernel_batches
from ..rows.files import Rows
from ..rows.partitioned import Partitioned
from ..rows.progress import Meter
from ..rows.seek import Place, blocks_from, inputs_of, sources_of
from ..users import UserRows, UserUnit
from .checkpoint import CheckpointError, Job

__all__ = [
    "How",
    "KeptPasses",
    "binding_of",
    "by_plan",
    "entry_name",
    "sum_of",
    "sum_of_files",
    "sum_of_users",
]

#: The version of what a checkpoint holds: a run of another one does not go on from it.
_FORMAT = 2


def binding_of(
    rows: Rows,
    kind: str,
    guarantee: Any,
    region: Ellipsoid | Domain,
    missing: str,
    users: UserUnit | None = None,
    *,
    counted: bool = False,
    inputs: list[list[Any]] | None = None,
) -> dict[str, Any]:
    """What a job is, as plain values: a checkpoint of another one is refused (claim resume-3).

    ``counted`` says that the users were counted first: their rows are then not read in parts.
    ``inputs`` are the files as they were before that.
    """
    if isinstance(region, Ellipsoid):
        shape = region.fingerprint()
    else:
        shape = digest(*(getattr(region, field.name) for field in dataclasses.fields(region)))
    return {
        "version": _FORMAT,
        "kind": kind,
        "budget": json.loads(json.dumps(guarantee.to_dict())),
        "region": shape.hex(),
        "inputs": inputs_of(rows) if inputs is None else inputs,
        "columns": rows.columns,
        **({} if rows.header else {"header": False}),
        **({} if missing == "center" else {"missing": missing}),
        **({} if users is None else {"users": [*dataclasses.astuple(users), counted]}),
    }


def entry_name(job: Job) -> str:
    """The public name of a plan's entry in a budget: the job draws it once."""
    text = json.dumps(job.binding, sort_keys=True)
    return JobKeys(job.root, "plan", text).of(Use.ENTRY).hex()


class How(NamedTuple):
    """How a release is made. ``root`` and ``job`` are secret."""

    job: Job | None
    root: bytes
    jobs: int
    threads: int | None
    draw: Callable[[str], Any]  #: takes an entry's name, gives the entry
    caveats: tuple[str, ...]
    columns: Columns  #: names of the coordinates, which the passes may learn
    files: Rows | None = None  #: what is read, where a checkpoint keeps what it gives

    def __repr__(self) -> str:
        return "How(secret)"


def by_plan(
    kind: str, promise: GaussianGuarantee, domain: Domain, data: Any, how: How
) -> AdaptiveRelease:
    """The release of a plan of several passes; its budget is drawn before the first noise."""
    job, entries = how.job, list[Any]()
    outcome = run(
        data,
        domain,
        promise.mu_to_spend,
        promise.neighbors,
        kind,
        how.root,
        how.threads,
        before_noise=lambda: entries.append(how.draw("" if job is None else entry_name(job))),
        keep=lambda rows: rows if job is None else KeptPasses(rows, job, how.files),
        columns=how.columns,
    )
    release = AdaptiveRelease(kind, outcome, domain, promise, how.caveats).named(how.columns.names)
    return release.drawn_from(entries[0] if entries else None)


def sum_of(data: Any, empty: ExactSum, how: How) -> ExactSum:
    """The exact sum of any data.

    Parameters
    ----------
    data : as for :class:`PrivateSum`, or the rows of users of files
    empty : ExactSum of no rows: what region and policies the sum has, and threads
    how : How
    """
    if isinstance(data, Rows) and (how.job is not None or how.jobs > 1):
        return sum_of_files(data, empty, how.job, jobs=how.jobs)
    if how.job is not None and how.files is not None:
        return sum_of_users(data, empty, how.job, how.files)
    if isinstance(data, ExactSum):
        if data.ellipsoid != empty.ellipsoid:
            raise ValueError("data is an ExactSum over another ellipsoid: use region_for(n)")
        if data.missing != empty.missing:
            raise ValueError(f'data is an ExactSum with missing="{data.missing}": use the same')
        how.columns.of_sum(data.columns)
        return data
    if empty.missing == "center":
        rows = passes_over(data, empty.ellipsoid.d, once=True, columns=how.columns)
        return rows.exact_sum(empty.ellipsoid, how.threads)
    if isinstance(data, Partitioned):
        raise ValueError(
            'missing="ignore" does not go with rows in an engine: make an ExactSum of each part, '
            'and add their partial() to Parts(region, missing="ignore")'
        )
    rows = data() if callable(data) else data  # of users, that were counted first
    for batch in kernel_batches(rows, empty.ellipsoid.d, how.columns):
        empty.add(batch)
    return empty


def sum_of_files(rows: Rows, empty: ExactSum, job: Job | None, *, jobs: int) -> ExactSum:
    """The exact sum of the rows of files, from where the job's checkpoint stands.

    **Guarantees.** Every block of every file counts once (claim resume-1); the sum has the bytes
    of any other way to add the rows (claim sum-2).

    Parameters
    ----------
    rows : Rows
    empty : ExactSum of no rows: what region and policies the sum has, and threads
    job : Job or None; without one, nothing is kept
    jobs : int, files that are read at the same time
    """
    return _SumOfFiles(rows, empty, job, jobs).run()


def sum_of_users(data: Any, empty: ExactSum, job: Job, files: Rows) -> ExactSum:
    """The exact sum of the rows of users, from the parts of the users that a checkpoint lacks.

    **Guarantees.** Each user counts once (claim resume-5). The checkpoint holds no row: a run that
    goes on reads the files again, and leaves out the users of the parts that are in the sum.

    Parameters
    ----------
    data : UserRows, or a callable that begins a pass over their rows
    empty : ExactSum of no rows
    job : Job
    files : Rows, which must not change
    """
    done: set[int] = set()
    if "sum" in job.blobs:
        empty.merge_partial(job.blobs["sum"])
        done |= set(job.facts["parts"])
    if job.facts.get("whole"):
        return empty

    def keep(**more: bool) -> None:
        job.blobs = {"sum": bytes(empty.partial())}
        job.facts = {"parts": sorted(done), **more}

    if done and not isinstance(data, UserRows):
        raise CheckpointError("the checkpoint is of a job that reads users in parts: discard it")
    parts = data.parts(done) if isinstance(data, UserRows) else [(None, data())]
    for number, rows in parts:
        for batch in rows:
            empty.add(batch)
        if number is not None:  # what has no number is all that is left
            done.add(number)
            keep()
            job.save_soon()
    job.check_inputs(inputs_of(files))
    keep(whole=True)
    job.save()
    return empty


class _SumOfFiles:
    """The sum of the files that are done, and of each other one up to a place."""

    def __init__(self, rows: Rows, empty: ExactSum, job: Job | None, jobs: int) -> None:
        self.rows, self.d, self.job, self.jobs = rows, empty.ellipsoid.d, job, jobs
        self.sources = sources_of(rows, self.d)
        self.done, self.empty = empty.empty_copy(), empty
        self.finished: set[int] = set()
        self.places: dict[int, tuple[Place, bytes]] = {}
        self.unsaved, self.stop = 0, False
        self.every = 0 if job is None else max(1, job.every // jobs)
        self.lock = job.lock if job is not None else threading.RLock()

    def run(self) -> ExactSum:
        self._load()
        self.rows.expect(1)
        todo = [k for k in range(len(self.sources)) if k not in self.finished]
        for k, source in enumerate(self.sources):
            source.position = 0.0 if k in todo else float(source.nbytes)
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
            for k in todo:
                self._file(k)
            return
        with ThreadPoolExecutor(min(self.jobs, len(todo))) as pool:
            try:
                for result in [pool.submit(self._file, k) for k in todo]:
                    result.result()
            except BaseException:
                self.stop = True  # the others end at their next block
                pool.shutdown(cancel_futures=True)
                raise

    def _file(self, k: int) -> None:
        source, start = self.sources[k], (0, 0)
        part = self.empty.empty_copy()
        if k in self.places:
            start, kept = self.places[k]
            part.merge_partial(kept)
        since = 0
        blocks = blocks_from(source, self.d, start)
        for block, place in blocks if self.jobs > 1 else read_ahead(blocks):
            if self.stop:
                return
            if len(block):
                part.add(block)
            self.meter.add(len(block))
            since += block.nbytes
            if self.job is not None and since >= self.every:
                with self.lock:
                    self.places[k] = (place, bytes(part.partial()))
                    self._keep()
                    self.job.save_soon()
                since = 0
        source.position = float(source.nbytes)
        with self.lock:
            self.done.merge(part)
            self.finished.add(k)
            self.places.pop(k, None)
            self.unsaved += since
            if self.job is not None and self.unsaved >= self.every:
                self._keep()
                self.job.save_soon()

    def _load(self) -> None:
        if self.job is None or "sum" not in self.job.blobs:
            return
        self.done.merge_partial(self.job.blobs["sum"])
        self.finished = set(self.job.facts["finished"])
        for name, (unit, inside) in self.job.facts["places"].items():
            self.places[int(name)] = ((unit, inside), self.job.blobs[f"file {name}"])

    def _keep(self) -> None:
        """All of it for one file, as it is under the lock: a block counts in one place."""
        assert self.job is not None
        with self.lock:
            parts = {f"file {k}": part for k, (_, part) in self.places.items()}
            self.job.blobs = {"sum": bytes(self.done.partial()), **parts}
            self.job.facts = {
                "finished": sorted(self.finished),
                "places": {str(k): list(place) for k, (place, _) in self.places.items()},
            }
            self.unsaved = 0


class KeptPasses:
    """Passes over rows whose exact results a checkpoint keeps: a pass that is there is not read.

    With the same key the same results have the same noise, so that a plan that goes on repeats
    its steps bit for bit, and reads on from the pass that was broken off (claim resume-2).

    Parameters
    ----------
    passes : Passes
    job : Job
    rows : Rows, whose files must not change
    """

    def __init__(self, passes: Passes, job: Job, rows: Any) -> None:
        self._passes, self._job, self._rows = passes, job, rows
        self._index = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._passes, name)
        if name in ("histogram", "halves", "cells", "excess"):
            return lambda *known: self._kept(name, found, known)
        return found

    def count_rows(self) -> int:
        """Number of rows: counted once in a job."""
        if "rows" not in self._job.facts:
            self._job.facts["rows"] = self._passes.count_rows()
            self._finish()
        self._passes.count = int(self._job.facts["rows"])
        return self._passes.count

    def _kept(self, name: str, read: Callable[..., NDArray[Any]], known: Any) -> NDArray[Any]:
        self._index += 1
        place = f"pass {self._index}"
        asked = digest(name, *_numbers(known))
        if place in self._job.blobs:
            if self._job.blobs[place][: len(asked)] != asked:
                raise CheckpointError(
                    "the checkpoint's steps are not those of this run (it was made on another "
                    "machine, or by another version): discard it, and count its budget as spent"
                )
            return _array(self._job.blobs[place][len(asked) :])
        exact = read(*known)
        self._job.blobs[place] = asked + _bytes(exact)
        self._finish()
        return exact

    def _finish(self) -> None:
        self._job.check_inputs(inputs_of(self._rows))
        self._job.save()


def _numbers(known: Any) -> list[Any]:
    """What the result of a pass depends on: not the number of threads."""
    flat: list[Any] = []
    for part in known:
        if isinstance(part, tuple):
            flat += _numbers(part)
        elif not (part is None or isinstance(part, int)):
            flat.append(part)
    return flat


def _bytes(exact: NDArray[Any]) -> bytes:
    """Integers of up to 128 bits, and whether the array holds Python's."""
    wide = exact.dtype == object
    values = b"".join(int(x).to_bytes(17, "little", signed=True) for x in exact.ravel())
    return bytes([wide]) + values


def _array(raw: bytes) -> NDArray[Any]:
    values = [
        int.from_bytes(raw[k : k + 17], "little", signed=True) for k in range(1, len(raw), 17)
    ]
    return np.array(values, dtype=object if raw[0] else np.int64)
