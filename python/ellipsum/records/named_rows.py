"""Tables whose columns are met by name (claim rows-5), and what has no names as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..column_names import Columns, frame_names
from ..rows.batches import as_batches
from ..rows.queries import shape_of

__all__ = ["in_order"]


def in_order(rows: Any, columns: Columns, d: int | None = None) -> Any:
    """A table's rows (n, d) with its columns in the order of ``columns``, which learns their names
    if it has none; anything else as it is. ``d`` is the table's own width if it is not given.

    Raises
    ------
    TypeError, ValueError
        A column's type is not numeric, or the table has other columns. No message tells of a value.
    """
    table = hasattr(rows, "__arrow_c_stream__") or frame_names(rows) is not None
    if not table or len(shape_of(rows)) != 2:
        return rows
    width = int(rows.shape[1]) if d is None else d
    return np.concatenate([np.empty((0, width)), *as_batches(rows, width, columns)])
