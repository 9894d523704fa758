"""Named columns of files, whole in memory: for commands that describe rows and release none."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple

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


class Labelled(NamedTuple):
    """Complete rows (n, columns), their labels (n,), and how many were incomplete: without a number
    in some column, or ``unlabelled``, without a label."""

    rows: NDArray[np.float64]
    labels: NDArray[Any]
    incomplete: int
    unlabelled: int


def read_columns(files: list[str], names: list[str]) -> tuple[NDArray[np.float64], int]:
    """The rows (n, columns) that are complete, and how many were not."""
    rows, there = _read(files, names)
    whole = there.all(1)
    return rows[whole], int((~whole).sum())


def read_labelled(files: list[str], names: list[str], label: str) -> Labelled:
    """The complete rows and their labels, and how many were left out, by reason.

    Labels are numbers where all of the column are, else text: one that mixes both keeps all of
    its rows. What stands for a missing value (``_MISSING``) is no label beside numbers.
    """
    try:
        rows, there = _read(files, [*names, label])
    except Problem as problem:
        found = _labelled_by_text(files, names, label, ()) if problem.code == Exit.DATA else None
        if found is None:
            raise
        return found
    numbered = _labelled(rows[:, :-1], rows[:, -1], there[:, -1])
    if numbered.incomplete:
        found = _labelled_by_text(files, names, label, _MISSING)
        if found is not None and found.incomplete < numbered.incomplete:
            return found
    return numbered


def _read(files: list[str], names: list[str]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """All rows, two complete ones or more, and which cells are numbers."""
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
    if there.all(1).sum() < 2:
        raise Problem(Exit.DATA, "fewer than two rows have a number in every column")
    return rows, there


def _labelled_by_text(
    files: list[str], names: list[str], label: str, missing: Collection[str]
) -> Labelled | None:
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
    there = np.array([text != "" and text.lower() not in missing for text in labels], dtype=bool)
    found = _labelled(np.concatenate(rows), np.array(labels, dtype=object), there)
    if len(found.rows) < 2:
        return None
    return found._replace(labels=found.labels.astype(str))


def _labelled(
    rows: NDArray[np.float64], labels: NDArray[Any], there: NDArray[np.bool_]
) -> Labelled:
    whole = np.logical_and(np.isfinite(rows).all(1), there)
    return Labelled(rows[whole], labels[whole], int((~whole).sum()), int((~there).sum()))


def _text(value: Any) -> str:
    """A label as text, the same for 1, 1.0 and "1.0"; empty where it is missing.

    What is no plain number of up to 15 digits is itself: 007, 1_0, an id of 17 digits.
    """
    if value in (None, "", b""):
        return ""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return f"{float(text):.17g}" if _PLAIN.fullmatch(text) else text
