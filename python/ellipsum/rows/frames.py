"""Frames of NumPy's numbers as batches: views of the frame's own memory where it is regular.

pandas keeps columns of one type as the rows of a block, or, made from an array, as that array:
both are one array with strides. Its Arrow export copies them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrow import pyarrow_missing
from .columns import WIDE_BYTES, ColumnBlock, wide_block

__all__ = ["few_polars_rows", "frame_batches", "number_columns"]

Columns = list[NDArray[Any]]

#: Names of pandas' own types of numbers with nulls, and of Arrow's in a frame.
_WHOLE = [f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)]
_OWN = {kind: np.dtype(kind.lower()) for kind in (*_WHOLE, "Float32", "Float64")}
_OWN["boolean"] = np.dtype(np.bool_)
_NULLABLE = {*_OWN} | {
    f"{name}[pyarrow]" for name in ("float", "double", "bool", *map(str.lower, _WHOLE))
}

#: Names that end early by Arrow, that it refuses, or takes for an index.
_ODD_NAME = re.compile(r"[\0\ud800-\udfff]|\A__index_level_\d+__\Z")

#: Rows that are copied in less than the 16 us that pandas takes to find a column.
_FEW_ROWS = 1 << 13


def number_columns(data: Any, d: int) -> Columns | NDArray[Any] | None:
    """A pandas frame of d columns, if all are NumPy floats of 32 or 64 bits, integers or truth
    values: one view (n, d) of it where pandas has one, else a view of each column, or of few rows
    what pandas gives, a copy perhaps; of those with nulls, too, which are NaN. Of more rows, the
    types with nulls that are pandas' own as well, where no cell is null.

    Others go by Arrow, which says what each type means and refuses what is no number.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(data, pandas.DataFrame):
        return None
    if data.shape[1] != d or not data.columns.is_unique:
        return None
    if (view := _of_one_block(data)) is not None:
        return view
    kinds, few = set(data.dtypes), len(data) <= _FEW_ROWS
    if not all(isinstance(kind, np.dtype) and _is_number(kind) for kind in kinds):
        if not all(_is_number_or_null(pandas, kind) for kind in kinds):
            return None
        # Arrow takes no copy, but 30 us a column, and names of its own: neither a null nor the
        # number of rows must decide who reads a frame that only one of the ways refuses.
        if few or pyarrow_missing() or not _arrow_keeps(data.columns):
            return _copied_or_none(data)
        own = all(isinstance(kind, np.dtype) or str(kind) in _OWN for kind in kinds)
        return _without_nulls(data) if own else None
    if few:
        return _read_only(data.to_numpy()) if len(kinds) == 1 else _copied(data)
    return _one_array(data, d) if len(kinds) == 1 else _columns(data)


def few_polars_rows(data: Any, d: int) -> NDArray[Any] | None:
    """A Polars frame of few rows, of d columns of integers, of float32, or of numbers that make
    doubles, as an array, nulls as NaN: down to a fifth of what its columns cost by Arrow."""
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(data, polars.DataFrame):
        return None
    if not data.width == d > 0 or data.height > _FEW_ROWS:
        return None
    kinds = {*map(type, data.dtypes)}  # of 1,000 types themselves a set takes 200 us
    single, double = {polars.Float32}, {polars.Float64}
    integers = {getattr(polars, kind) for kind in _WHOLE}
    if not (kinds <= integers or kinds == single or double <= kinds <= integers | single | double):
        return None
    return _read_only(data.to_numpy())


def frame_batches(columns: Columns | NDArray[Any]) -> Iterator[NDArray[Any] | ColumnBlock]:
    """One view of all columns, or of each, or blocks copied from them."""
    if isinstance(columns, np.ndarray):
        yield columns
    elif all(column.flags.c_contiguous and column.flags.aligned for column in columns):
        if len(columns[0]):
            yield ColumnBlock(columns)
    else:
        size = max(1, WIDE_BYTES // (8 * len(columns)))
        for start in range(0, len(columns[0]), size):
            yield wide_block([column[start : start + size] for column in columns])


def _copied(data: Any) -> NDArray[Any]:
    with np.errstate(all="ignore"):  # a warning would tell of a value
        return np.asarray(data.to_numpy(np.float64, na_value=np.nan))


def _copied_or_none(data: Any) -> NDArray[Any] | None:
    """The same, or None where this pandas has no such way: Arrow has, and what it raises quotes no
    value."""
    try:
        return _copied(data)
    except Exception:
        return None


def _without_nulls(data: Any) -> Columns | None:
    """The columns as pandas holds them; None as above, and where one has a null: a copy without is
    three times as slow as Arrow. pandas' own export by Arrow makes each anew, by threads."""
    columns = []
    try:
        with np.errstate(all="ignore"):
            for kind, (_, column) in zip(data.dtypes, data.items(), strict=True):
                cells = column.array  # a tenth of what the column itself takes to look for nulls
                if isinstance(kind, np.dtype):
                    columns.append(np.asarray(cells.to_numpy()))
                    continue
                if cells.isna().any():
                    return None
                columns.append(np.asarray(cells.to_numpy(_OWN[str(kind)], na_value=0)).view())
    except Exception:
        return None
    return columns


def _arrow_keeps(names: Any) -> bool:
    """Whether a table of Arrow's has columns by the same names, as text, and no warning comes: only
    where they are all text, none of it odd, or all integers."""
    if all(type(name) is str for name in names):
        return not any(_ODD_NAME.search(name) for name in names)
    return all(type(name) is int or isinstance(name, np.integer) for name in names)


def _is_number_or_null(pandas: Any, kind: Any) -> bool:
    """Whether a column holds numbers or truth values, pandas' own included, which have nulls."""
    if isinstance(kind, np.dtype):
        return _is_number(kind)
    return str(kind) in _NULLABLE and isinstance(kind, pandas.api.extensions.ExtensionDtype)


def _is_number(kind: np.dtype[Any]) -> bool:
    return kind.isnative and (kind.kind in "iub" or kind in (np.float32, np.float64))


def _of_one_block(data: Any) -> NDArray[Any] | None:
    """The view of a frame that pandas holds as one array: a microsecond, where its types alone take
    ten. How many arrays there are is pandas' own affair: where it does not say, others look."""
    arrays: Any = getattr(getattr(data, "_mgr", None), "arrays", ())
    if len(arrays) == 1 and type(arrays[0]) is np.ndarray and _is_number(arrays[0].dtype):
        whole = data.to_numpy()
        told = getattr(whole, "dtype", None), getattr(whole, "shape", None)
        if told == (arrays[0].dtype, data.shape):  # of a subclass they may be others
            return _read_only(whole)
    return None


def _columns(data: Any) -> Columns:
    return [np.asarray(column.to_numpy()) for _, column in data.items()]


def _column(data: Any, j: int) -> NDArray[Any]:
    return np.asarray(data.iloc[:, j].to_numpy())


def _one_array(data: Any, d: int) -> NDArray[Any] | Columns:
    """A frame of one type as a view (n, d) of one array, where it is one, or as its columns.

    pandas takes some 15 us to find a column by its place, so it is asked for the whole: but only
    where three columns lie evenly in one array, since of others it would make a copy.
    """
    first, last = _column(data, 0), _column(data, d - 1)
    step = _address(_column(data, 1)) - _address(first) if d > 1 else 0
    if _address(last) - _address(first) == (d - 1) * step and _owner(first) is _owner(last):
        whole = np.asarray(data.to_numpy())
        laid = whole.strides[0] == first.strides[0] and (d == 1 or whole.strides[1] == step)
        if laid and _address(whole) == _address(first):
            return _read_only(whole)
    return _columns(data)


def _read_only(whole: NDArray[Any]) -> NDArray[Any]:
    view = np.asarray(whole).view()
    view.flags.writeable = False
    return view


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _owner(array: Any) -> Any:
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array
