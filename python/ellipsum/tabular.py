"""Releases as tables for other tools: HTML, pandas, Arrow. Only what was released is in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from .notebook import as_html

__all__ = ["as_arrow", "as_html", "as_pandas"]

Columns = Mapping[str, Sequence[Any]]


def as_pandas(columns: Columns, about: Mapping[str, Any], index: str | None) -> Any:
    """A DataFrame, a column as its index; ``attrs["ellipsum"]`` holds ``about``."""
    known = {name: _numbers(values) for name, values in columns.items()}
    frame = _needed("pandas", "to_pandas()").DataFrame(known)
    frame = frame if index is None else frame.set_index(index)
    frame.attrs["ellipsum"] = dict(about)
    return frame


def as_arrow(columns: Columns, about: Mapping[str, Any]) -> Any:
    """A pyarrow Table, whose schema's metadata hold ``about`` as JSON."""
    pa = _needed("pyarrow", "to_arrow()")
    arrays = {}
    for name, values in columns.items():
        kinds = {type(value) for value in values} - {type(None)}
        kind = pa.float64() if values and not kinds else None
        text = len(kinds) > 1 and bool(kinds & {str, bytes})
        if kinds == {int}:
            least, most = min(filter(None, values), default=0), max(filter(None, values), default=0)
            kind = pa.uint64() if most >= 1 << 63 else pa.int64()
            text = most >= 1 << 64 or least < (-(1 << 63) if most < 1 << 63 else 0)
        kind = pa.string() if text else kind
        arrays[name] = pa.array([str(value) for value in values] if text else values, kind)
    return pa.table(arrays).replace_schema_metadata({"ellipsum": json.dumps(about)})


def _numbers(values: Sequence[Any]) -> Any:
    """A column for pandas: NaN for None among numbers, also where all are None."""
    if None in values and {type(value) for value in values} <= {float, type(None)}:
        return np.array(values, np.float64)
    return values


def _needed(package: str, what: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise ImportError(f"{what} needs {package}: pip install {package}") from None
