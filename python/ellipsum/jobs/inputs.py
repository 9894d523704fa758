"""What a job is of: files as they are now, or what is known of the rows of an engine.

Those cannot be fingerprinted: that they are the same at each run is the caller's word, and noise is
bound to the exact results in case they are not (claim resume-7).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .. import _validate
from ..noise_keys import digest
from ..rows.files import Rows
from ..rows.identity import inputs_of
from ..rows.partitioned import Partitioned
from .checkpoint import Checkpoint, CheckpointError, Job

__all__ = ["check_rows", "engine_of", "inputs_before", "refuse_job"]


def refuse_job(data: Any, resumed: bool, jobs: Any, *, seeded: bool = False) -> int:
    """Refuse a checkpoint, or several files at a time, where they do not go with the rest.

    Returns
    -------
    int, how many files at a time

    Raises
    ------
    TypeError, ValueError
        For other data than files, and than rows in an engine with a checkpoint; for a seed beside
        a checkpoint.
    """
    workers = _validate.whole("jobs", jobs, least=1)
    if workers > 1 and isinstance(data, Partitioned):
        raise TypeError("jobs is for files: an engine reads several parts at a time by itself")
    if (resumed or workers > 1) and not isinstance(data, (Rows, Partitioned)):
        raise TypeError(
            "resume and jobs need files as data, open_rows(...); resume takes rows in an engine, "
            "as SparkRows(...), too"
        )
    if resumed and seeded:
        raise ValueError("give resume or seed: a checkpoint has a key of its own")
    return workers


def engine_of(rows: Rows | Partitioned) -> dict[str, str]:
    """The engine in a job's binding; nothing for files, whose places another job keeps."""
    return {"engine": type(rows).__name__} if isinstance(rows, Partitioned) else {}


def inputs_before(checkpoint: Checkpoint, rows: Rows | Partitioned, d: int) -> list[list[Any]]:
    """What a job is of, as it is now: the rows of an engine are counted, files are not read.

    Raises
    ------
    CheckpointError
        The checkpoint is, or would be, one of the files.
    """
    if isinstance(rows, Partitioned) and rows.files is None:
        _refuse_beside(checkpoint, rows)
        return _known(rows, rows.count_rows(d))
    files = rows if isinstance(rows, Rows) else rows.files
    assert files is not None
    return checkpoint.inputs(files)


def check_rows(job: Job, rows: Rows | Partitioned, count: int | None = None) -> None:
    """Refuse to go on where the data are not what they were when the job began.

    Parameters
    ----------
    job : Job
    rows : Rows or Partitioned
    count : int, optional; rows of an engine that a pass came upon

    Raises
    ------
    CheckpointError
        For a file that changed, or another number of rows.
    """
    if (files := _files_of(rows)) is not None:
        job.check_inputs(inputs_of(files))
    elif count is not None:
        job.check_inputs(_known(rows, count))


def _refuse_beside(checkpoint: Checkpoint, rows: Partitioned) -> None:
    """Refuse a checkpoint that the engine would read as rows the next time."""
    from urllib.request import url2pathname  # it imports http, email and ssl

    path = Path(checkpoint.path).absolute()
    names = [name for name in rows.known() if name.startswith("file:")]
    read = {Path(url2pathname(urlsplit(name).path)).parent.resolve() for name in names}
    if not path.name.startswith((".", "_")) and path.parent.resolve() in read:
        raise CheckpointError(
            f"{checkpoint.path} lies beside the files that the engine reads: put the checkpoint "
            "elsewhere, or give it a name that begins with a dot"
        )


def _files_of(rows: Rows | Partitioned) -> Rows | None:
    return rows if isinstance(rows, Rows) else rows.files


def _known(rows: Any, count: int) -> list[list[Any]]:
    """A name for errors, and a digest: the number of rows may be private."""
    name = f"the rows of {type(rows).__name__} (their number, types or files)"
    return [[name, digest(count, *rows.by, *rows.known()).hex()]]
