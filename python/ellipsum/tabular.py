"""Releases as tables for other tools: HTML, pandas, Arrow. Only what was released is in them."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

__all__ = ["as_arrow", "as_html", "as_pandas"]

_SHOWN = 30  # rows of an HTML table
_STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"

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
        mixed = len(kinds) > 1 and bool(kinds & {str, bytes})
        plain = [str(value) for value in values] if mixed else values
        arrays[name] = pa.array(plain, pa.float64() if values and not kinds else None)
    return pa.table(arrays).replace_schema_metadata({"ellipsum": json.dumps(about)})


def as_html(head: Sequence[str], columns: Columns) -> str:
    """Lines of text above a table of the first rows, all of it escaped."""
    title, *lines = [html.escape(line.strip()) for line in head]
    count = len(next(iter(columns.values()), ()))
    rows = "".join(
        f"<tr>{''.join(_cell(column[i]) for column in columns.values())}</tr>"
        for i in range(min(count, _SHOWN))
    )
    names = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    more = f"<p>... and {count - _SHOWN} more rows</p>" if count > _SHOWN else ""
    return (
        f"<div><b>{title}</b><br>{'<br>'.join(lines)}"
        f'<table style="{_STYLE}"><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>'
        f"{more}</div>"
    )


def _numbers(values: Sequence[Any]) -> Any:
    """A column for pandas: NaN for None among numbers, also where all are None."""
    if None in values and {type(value) for value in values} <= {float, type(None)}:
        return np.array(values, np.float64)
    return values


def _cell(value: Any) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, (float, np.floating)):
        return f'<td style="text-align:right">{value:.6g}</td>'
    return f"<td>{html.escape(str(value))}</td>"


def _needed(package: str, what: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise ImportError(f"{what} needs {package}: pip install {package}") from None
