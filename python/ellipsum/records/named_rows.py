"""Tables whose columns are met by name (claim rows-5), and what has no names as it is."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..column_names import Columns, frame_names, named_vectors
from ..release import Release
from ..rows.arrays import numeric_rows
from ..rows.batches import as_batches
from ..rows.queries import shape_of

__all__ = ["as_numbers", "beside", "in_order", "matrix_and_center", "width_of"]


def in_order(rows: Any, columns: Columns, d: int | None = None) -> Any:
    """A table's rows (n, d) with its columns in the order of ``columns``, which learns their names
    if it has none; anything else as it is. ``d`` is the table's own width if it is not given.

    Raises
    ------
    TypeError, ValueError
        A column's type is not numeric, or the table has other columns. No message tells of a value.
    """
    if (order := _order_of_one(rows, columns)) is not None:
        return rows.to_numpy()[order]
    table = hasattr(rows, "__arrow_c_stream__") or frame_names(rows) is not None
    if not table or len(shape_of(rows)) != 2:
        return rows
    width = int(rows.shape[1]) if d is None else d
    batches = list(as_batches(rows, width, columns))
    with np.errstate(all="ignore"):  # a warning would tell of a value
        return np.concatenate([np.empty((0, width)), *batches])


def as_numbers(rows: Any, columns: Columns, d: int | None = None) -> NDArray[np.float64]:
    """The same as an array of doubles, ``d`` in each row if that is given; no message quotes a
    cell, or tells how many rows there are."""
    given = in_order(rows, columns)
    try:
        with np.errstate(all="ignore"):
            array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("rows must be numbers, as many in each row") from None
    if d is not None and array.shape[-1:] != (d,):
        raise ValueError(f"rows must have shape (n, {d}), as the columns of the fit")
    return array


def width_of(data: Any, **given: Any) -> int:
    """How many columns there are: by the first of the vectors that is ``given``, else the data's.

    Raises
    ------
    TypeError, ValueError
        For a vector that is none, or has another length than an array's rows, and where nothing
        says it.
    """
    shape = shape_of(data)
    for name, value in given.items():
        if isinstance(value, Mapping):
            return len(value)
        if value is not None:
            known = int(shape[1]) if isinstance(data, np.ndarray) and len(shape) == 2 else None
            return _validate.vector(name, value, d=known).size
    if len(shape) != 2:
        names = " or ".join(given)
        raise ValueError(f"give {names}, which say how many columns there are")
    return int(shape[1])


def beside(rows: Any, y: Any) -> NDArray[np.float64]:
    """Columns and target as one table; a shape that does not fit is refused without its numbers."""
    shape = shape_of(rows)
    if len(shape) != 2:
        raise ValueError("rows must be an array of shape (n, d) beside y")
    x, target = numeric_rows("rows", rows, d=int(shape[1])), numeric_rows("y", y, d=1)
    if len(x) != len(target):
        raise ValueError("rows and y must have as many entries")
    with np.errstate(all="ignore"):  # a warning would tell of a value
        return np.column_stack([x.astype(np.float64), target.astype(np.float64)])


def _order_of_one(rows: Any, columns: Columns) -> list[int] | None:
    """The order of one record that is a pandas Series with the columns' names as its labels. Of
    any others nothing is said: they may be people's."""
    pandas, names = sys.modules.get("pandas"), columns.names
    if pandas is None or names is None or not isinstance(rows, pandas.Series):
        return None
    places = {label: j for j, label in enumerate(rows.index)}
    return [places[name] for name in names] if places.keys() == set(names) else None


def matrix_and_center(
    name: str, matrix: Any, center: Any
) -> tuple[Any, Any, tuple[str, ...] | None]:
    """A matrix (d, d), public or released, and a center (d,) or None, in the matrix's order; and
    the names of their coordinates, if any.

    Raises
    ------
    ValueError
        They have other names.
    """
    if not isinstance(matrix, Release):
        names, known = named_vectors(**{name: matrix}, center=center)
        return known[name], known["center"], names
    names, known = named_vectors(center=center)
    columns, where = Columns(matrix.columns, "the estimate"), known["center"]
    order = columns.order_of(names, "center")
    return matrix.value, where if order is None else where[order], columns.names
