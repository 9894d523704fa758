"""What every command that makes a release does around it: checks, ledger, checkpoint, output."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..budget.budget import Budget, BudgetError
from ..budget.ledger import LedgerError
from ..jobs.checkpoint import Checkpoint, CheckpointError
from ..rows.files import Rows
from .exit import Exit, Problem, own_text
from .ledger import open_ledger
from .options import refuse_over, write_whole

__all__ = ["check_job", "made", "publish"]

_SUFFIXES = (".json", ".npz")
_AS_THEY_ARE = (
    "columns",
    "units",
    "keys",
    "sizes",
    "edges",
)  # arrays of a .npz, where a release has them

_Release = TypeVar("_Release")


def check_job(arguments: argparse.Namespace) -> None:
    """Refuse what does not go together, or can be of no job, before anything is read."""
    if arguments.jobs is not None and arguments.jobs < 1:
        raise Problem(Exit.PARAMETER, f"--jobs must be at least 1, got {arguments.jobs}")
    for name in ("resume_key", "discard"):
        if getattr(arguments, name) and arguments.resume is None:
            raise Problem(Exit.USAGE, f"--{name.replace('_', '-')} goes with --resume")
    if arguments.resume is not None and arguments.seed is not None:
        raise Problem(Exit.USAGE, "give --resume or --seed: a checkpoint has a key of its own")
    names = ("epsilon", "delta", "rho", "mu")
    given = {name for name in names if getattr(arguments, name) is not None}
    if given not in ({"epsilon", "delta"}, {"rho"}, {"mu"}):
        raise Problem(Exit.USAGE, "give one budget: --epsilon and --delta, or --rho, or --mu")
    if arguments.out is None:
        return
    if not arguments.out.endswith(_SUFFIXES):
        raise Problem(Exit.USAGE, f"--out must end in {' or '.join(_SUFFIXES)}")
    if not os.access(os.path.dirname(arguments.out) or ".", os.W_OK):
        raise Problem(Exit.OUTPUT, "--out is in a folder that is not there or not writable")


def made(
    arguments: argparse.Namespace,
    rows: Rows,
    make: Callable[[Budget | None, Checkpoint | None], _Release],
) -> tuple[_Release, Checkpoint | None]:
    """The release that ``make`` makes of the rows, and the checkpoint of the job, if any.

    Raises
    ------
    Problem
        For what is wrong with the ledger, the checkpoint or the data.
    """
    named = {"--ledger": [arguments.ledger], "--resume": [arguments.resume]}
    refuse_over(arguments.out, named | {"a file of rows": rows.paths})
    try:
        if (checkpoint := _checkpoint(arguments)) is not None:
            checkpoint.inputs(rows)  # refuses what does not go, before anything is read
        budget = None if arguments.ledger is None else open_ledger(arguments.ledger)
        return make(budget, checkpoint), checkpoint
    except (BudgetError, LedgerError) as error:
        raise Problem(Exit.BUDGET, own_text(error)) from None
    except CheckpointError as error:
        raise Problem(Exit.OUTPUT, own_text(error)) from None
    except (OSError, TypeError, ValueError) as error:
        raise Problem(Exit.DATA, own_text(error)) from None


def _checkpoint(arguments: argparse.Namespace) -> Checkpoint | None:
    """The checkpoint that the arguments name, with its key."""
    if arguments.resume is None:
        return None
    key = None
    if arguments.resume_key is not None:
        try:
            with open(arguments.resume_key, "rb") as file:
                key = file.read(33)
        except OSError as error:
            text = f"--resume-key cannot be read: {error.strerror}"
            raise Problem(Exit.PARAMETER, text) from None
        if len(key) != 32:
            raise Problem(Exit.PARAMETER, "--resume-key must hold 32 bytes")
    return Checkpoint(arguments.resume, key=key)


def publish(
    arguments: argparse.Namespace,
    result: dict[str, Any],
    text: str,
    checkpoint: Checkpoint | None,
) -> None:
    """Write the release, print it, and discard its checkpoint if that was asked for.

    An interrupt from here on cannot say that nothing left.
    """
    path = arguments.out
    try:
        if path:
            write_whole(path, lambda file: _dump(path, file, result))
        print(json.dumps(result) if arguments.json else text, flush=True)
    except KeyboardInterrupt:
        raise Problem(
            Exit.INTERRUPTED,
            "interrupted while the release was written: count its budget as spent",
        ) from None
    if checkpoint is not None and arguments.discard:
        checkpoint.discard()


def _dump(path: str, file: Any, result: dict[str, Any]) -> None:
    if path.endswith(".json"):
        file.write(json.dumps(result, indent=1).encode())
        return
    lower, upper = (np.array(end, dtype=np.float64) for end in result["confidence_interval_95"])
    named = {name: _plain(result[name]) for name in _AS_THEY_ARE if result.get(name) is not None}
    np.savez(
        file,
        value=result["value"],
        sd=np.array(result["sd"], dtype=np.float64),
        lower=lower,
        upper=upper,
        **named,
        json=json.dumps(result),
    )


def _plain(values: list[Any]) -> Any:
    """An array that needs no pickle: text, where it would be one of objects; none is empty."""
    array = np.array(["" if value is None else value for value in values])
    return array.astype(str) if array.dtype == object else array
