"""Named columns of files, whole in memory: for commands that describe rows and release none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..rows.files import open_rows
from .exit import Exit, Problem, own_text

__all__ = ["read_columns"]

NOT_PRIVATE = "computed from the rows as they are: nothing here is private"


def read_columns(files: list[str], names: list[str]) -> tuple[NDArray[np.float64], int]:
    """The rows (n, columns) that are complete, and how many were not."""
    if len(set(names)) < len(names):
        raise Problem(Exit.USAGE, "a column is named twice")
    try:
        batches = [np.asarray(batch, dtype=np.float64) for batch in open_rows(files, names)]
    except (OSError, TypeError, ValueError) as error:
        raise Problem(Exit.DATA, own_text(error)) from None
    rows = np.concatenate(batches) if batches else np.empty((0, len(names)))
    there = np.isfinite(rows)
    empty = [name for j, name in enumerate(names) if not there[:, j].any()]
    if empty and len(rows):
        raise Problem(
            Exit.DATA, f"the column {empty[0]!r} has no number: text must be coded as numbers first"
        )
    whole = there.all(1)
    if whole.sum() < 2:
        raise Problem(Exit.DATA, "fewer than two rows have a number in every column")
    return rows[whole], int((~whole).sum())
