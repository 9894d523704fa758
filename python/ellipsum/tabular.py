"""Releases as tables for other tools: HTML, pandas, Arrow. Only what was released is in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np

from .notebook import as_html

__all__ = ["as_arrow", "as_html", "as_pandas"]

Columns = Mapping[str, Sequence[Any]]


def as_pandas(
    columns: Columns,
    about: Mapping[str, Any],
    index: str | None,
    units: Mapping[str, str | None] = MappingProxyType({}),
) -> Any:
    """A DataFrame, a column as its index; ``attrs`` has ``about`` as ``"ellipsum"``, and units."""
    known = {name: _numbers(values) for name, values in columns.items()}
    frame = _needed("pandas", "to_pandas()").DataFrame(known)
    frame = frame if index is None else frame.set_index(index)
    frame.attrs["ellipsum"] = dict(about)
    if known_units := {name: unit for name, unit in units.items() if unit}:
        frame.attrs["units"] = known_units
    return frame


def as_arrow(columns: Columns, about: Mapping[str, Any]) -> Any:
    """A pyarrow Table, whose schema's metadata hold ``about`` as JSON."""
    pa = _needed("pyarrow", "to_arrow()")
    arrays = {name: _arrow_column(pa, values) for name, values in columns.items()}
    return pa.table(arrays).replace_schema_metadata({"ellipsum": json.dumps(about)})


def _arrow_column(pa: Any, values: Sequence[Any]) -> Any:
    """Of the type that Arrow finds, or as text: keys are integers of any size, and text beside."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pa.array(values, pa.float64() if values else None)
    for kind in (None, pa.uint64()) if len(kinds) == 1 or kinds == {int, float} else ():
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, OverflowError, UnicodeError):
            pass
    # Text with half a surrogate pair in it has no UTF-8.
    return pa.array([str(value).encode("utf-8", "replace").decode() for value in values])


def _numbers(values: Sequence[Any]) -> Any:
    """A column for pandas: NaN for None among numbers, also where all are None; integers beside
    fractions as they are, since of large ones floats make one."""
    if None in values and {type(value) for value in values} <= {float, type(None)}:
        return np.array(values, np.float64)
    if {int, float} <= {type(value) for value in values}:
        return np.array(values, dtype=object)
    return values


def _needed(package: str, what: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise ImportError(f"{what} needs {package}: pip install {package}") from None
