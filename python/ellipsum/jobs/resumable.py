"""Sums over files that go on where a killed run stopped, several files at a time."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..adaptive.domain import Domain
from ..adaptive.part_pass import passes_over
from ..adaptive.passes import Passes
from ..adaptive.plan import Plan
from ..adaptive.release import AdaptiveRelease
from ..adaptive.rounds import run
from ..column_names import Columns
from ..ellipsoid import Ellipsoid
from ..exact_sum import ExactSum
from ..guarantee import GaussianGuarantee
from ..noise_keys import JobKeys, Use, digest
from ..rows.ahead import ended
from ..rows.batches import kernel_batches
from ..rows.divided import dropped
from ..rows.files import Rows
from ..rows.identity import decoder_of
from ..rows.partitioned import Partitioned
from ..users import UserRows, UserUnit
from .checkpoint import CheckpointError, Job
from .file_sums import FileSums
from .inputs import check_rows, engine_of

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

#: The version of what a checkpoint holds, and of how files are cut into blocks: a run of another
#: one does not go on from it.
_FORMAT = 7
#: Of a plan: what was begun before there were marks may have been of other rows, unseen.
_STEPS = "marked"


def binding_of(
    rows: Rows | Partitioned,
    kind: str,
    guarantee: Any,
    region: Ellipsoid | Domain | bytes,
    missing: str,
    users: UserUnit | None = None,
    *,
    counted: bool = False,
    inputs: list[list[Any]],
    **more: Any,
) -> dict[str, Any]:
    """What a job is, as plain values: a checkpoint of another one is refused (claim resume-3).

    ``counted`` says that the users were counted first: their rows are then not read in parts.
    ``inputs`` are the data as they were before that; ``more`` is what else the job is, public.
    """
    if isinstance(region, (Ellipsoid, bytes)):
        shape = region if isinstance(region, bytes) else region.fingerprint()
    else:
        shape = digest(*(getattr(region, field.name) for field in dataclasses.fields(region)))
    return {
        "version": _FORMAT,
        "kind": kind,
        # The noise is bound to the words in which the budget was asked for, too.
        "budget": json.loads(json.dumps(guarantee.to_dict() | {"asked": guarantee.asked})),
        "region": shape.hex(),
        "inputs": inputs,
        "columns": None if rows.columns is None else list(rows.columns),
        **(_read_by(rows) if isinstance(rows, Rows) else engine_of(rows)),
        **({"steps": _STEPS} if isinstance(region, Domain) else {}),
        **({} if missing == "center" else {"missing": missing}),
        **({} if users is None else {"users": [*dataclasses.astuple(users), counted]}),
        **more,
    }


def _read_by(rows: Rows) -> dict[str, Any]:
    """Whether a first line has names; what the folders' names say, which real paths need not;
    what decodes the files, since places count the blocks that it cuts them into."""
    folders = [{name: v.as_py() for name, v in own.items()} for own in rows.folders]
    return {
        **({} if rows.header else {"header": False}),
        **({"folders": folders} if any(rows.folders) else {}),
        **decoder_of(rows),
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
    columns: Columns  #: names and units of the coordinates, which the passes may learn
    on_plan: Callable[[Plan], None] | None  #: told a plan, once it is made
    files: Rows | Partitioned | None = None  #: what is read, where a checkpoint keeps it
    #: Binds a step of an entry to a mark: of a plan that a checkpoint keeps.
    mark: Callable[[Any, int, str], None] = lambda entry, step, mark: None

    def __repr__(self) -> str:
        return "How(secret)"


def by_plan(
    kind: str, promise: GaussianGuarantee, domain: Domain, data: Any, how: How
) -> AdaptiveRelease:
    """The release of a plan of several passes; its budget is drawn before the first noise.

    Where a checkpoint keeps it, so that runs share an entry, each step is bound in the budget to
    the one exact result that its noise is for (claim ledger-6).
    """
    job, entries = how.job, list[Any]()

    def before_noise(step: int, mark: str) -> None:
        if not entries:
            entries.append(how.draw("" if job is None else entry_name(job)))
        if job is not None:
            how.mark(entries[0], step, mark)

    with dropped(data):
        outcome = run(
            data,
            domain,
            promise.mu_to_spend,
            promise.neighbors,
            kind,
            how.root,
            how.threads,
            before_noise=before_noise,
            on_plan=how.on_plan,
            keep=lambda rows: rows if job is None else KeptPasses(rows, job, how.files),
            columns=how.columns,
        )
    release = AdaptiveRelease(kind, outcome, domain, promise, how.caveats)
    release.named(*how.columns.told(domain.center.size))
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
    if isinstance(data, Partitioned):
        return sum_of_parts(data, empty, how)
    if how.job is not None and isinstance(how.files, Rows):
        return sum_of_users(data, empty, how.job, how.files)
    if isinstance(data, ExactSum):
        if data.ellipsoid != empty.ellipsoid:
            raise ValueError(
                "data is an ExactSum over another ellipsoid: use region_for(n) of the mechanism"
            )
        if data.missing != empty.missing:
            raise ValueError(f'data is an ExactSum with missing="{data.missing}": give it here too')
        how.columns.of_sum(data._columns)
        return data
    if isinstance(data, UserRows) or callable(data):
        begun = data.batches() if isinstance(data, UserRows) else data()
        with dropped(data), ended(begun) as rows:
            return _added(rows, empty, how.columns)
    return _added(data, empty, how.columns)


def _added(rows: Any, empty: ExactSum, columns: Columns) -> ExactSum:
    for batch in kernel_batches(rows, empty.ellipsoid.d, columns):
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
    jobs : int, files that are read at the same time, or parts of one
    """
    sums = FileSums(rows, empty, empty.ellipsoid.d, job, jobs, lambda part, rows, _: part.add(rows))
    return sums.run()


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
        raise CheckpointError(
            "the checkpoint is of a job that reads users in parts: discard it first"
        )
    parts = data.parts(done) if isinstance(data, UserRows) else [(None, data())]
    with dropped(data), ended(iter(parts)) as begun:
        for number, rows in begun:
            for batch in rows:
                empty.add(batch)
            if number is not None:  # what has no number is all that is left
                done.add(number)
                if job.due:
                    keep()
                    job.save_soon()
    check_rows(job, files)
    keep(whole=True)
    job.save()
    return empty


def sum_of_parts(data: Partitioned, empty: ExactSum, how: How) -> ExactSum:
    """The exact sum of rows, or users, in an engine: by one pass, or kept (claim resume-7).

    Parameters
    ----------
    data : Partitioned
    empty : ExactSum of no rows
    how : How
    """
    job, region = how.job, empty.ellipsoid
    rows = passes_over(data, region.d, once=True, columns=how.columns)
    if job is not None and "sum" in job.blobs:
        return empty.merge_partial(job.blobs["sum"])
    total = rows.exact_sum(region, how.threads, empty.missing)
    if job is not None and how.files is not None:
        check_rows(job, how.files, total.count if data is how.files else None)
        job.blobs = {"sum": bytes(total.partial())}
        job.save()
    return total


class KeptPasses:
    """Passes over rows whose exact results a checkpoint keeps: a pass that is there is not read.

    With the same key the same results have the same noise, so that a plan that goes on repeats
    its steps bit for bit, and reads on from the pass that was broken off (claim resume-2).

    Parameters
    ----------
    passes : Passes
    job : Job
    rows : Rows, whose files must not change, or Partitioned
    """

    def __init__(self, passes: Passes, job: Job, rows: Rows | Partitioned | None) -> None:
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
            count = self._passes.count_rows()
            # As long for any number of rows, which may be private.
            self._job.facts["rows"] = f"{count:020d}"
            self._finish(count if self._passes.reads(self._rows) else None)  # else of users
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

    def _finish(self, count: int | None = None) -> None:
        if self._rows is not None:
            check_rows(self._job, self._rows, count)
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
