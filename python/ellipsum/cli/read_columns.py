"""Named columns of files, whole in memory: for commands that describe rows and release none."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rows.files import open_rows
from .exit import Exit, Problem, own_text

__all__ = ["read_columns", "read_labelled"]

#: How tables write that a value is missing, in small letters: among numbers no label of its own.
_MISSING = frozenset(("na", "n/a", "#n/a", "nan", "-nan", "null", "none", "?", "-", "."))

NOT_PRIVATE = "computed from the rows as they are: nothing here is private"

#: A number that a double holds, in the way that most write it.
_PLAIN = re.compile(r"(?!.{16})-?(0|[1-9][0-9]*)(\.[0-9]+)?")


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


def read_labelled(
    files: list[str], names: list[str], label: str
) -> tuple[NDArray[np.float64], NDArray[Any], int]:
    """The complete rows (n, columns) and their labels (n,), and how many were incomplete.

    Labels are numbers where all of the column are, else text: one that mixes both keeps all of
    its rows. What stands for a missing value (``_MISSING``) is no label beside numbers.
    """
    try:
        rows, incomplete = read_columns(files, [*names, label])
    except Problem as problem:
        found = _labelled_by_text(files, names, label, ()) if problem.code == Exit.DATA else None
        if found is None:
            raise
        return found
    if incomplete:
        found = _labelled_by_text(files, names, label, _MISSING)
        if found is not None and found[2] < incomplete:
            return found
    return rows[:, :-1], rows[:, -1], incomplete


def _labelled_by_text(
    files: list[str], names: list[str], label: str, missing: Collection[str]
) -> tuple[NDArray[np.float64], NDArray[Any], int] | None:
    """As `read_labelled`; None where this does not help either."""
    rows: list[NDArray[np.float64]] = [np.empty((0, len(names)))]
    labels: list[str] = []
    try:
        for block, (column,) in open_rows(files, names, by=[label]).labelled(len(names)):
            rows.append(np.asarray(block, dtype=np.float64))
            values = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
            labels += [_text(value) for value in values]
    except (OSError, TypeError, ValueError):
        return None
    read = np.concatenate(rows)
    there = np.array([text != "" and text.lower() not in missing for text in labels], dtype=bool)
    whole = np.logical_and(np.isfinite(read).all(1), there)
    if whole.sum() < 2:
        return None
    kept = np.array([labels[i] for i in np.flatnonzero(whole)])
    return read[whole], kept, int((~whole).sum())


def _text(value: Any) -> str:
    """A label as text, the same for 1, 1.0 and "1.0"; empty where it is missing.

    What is no plain number of up to 15 digits is itself: 007, 1_0, an id of 17 digits.
    """
    if value in (None, "", b""):
        return ""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return f"{float(text):.17g}" if _PLAIN.fullmatch(text) else text
