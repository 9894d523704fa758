"""What notebooks show: the one place where HTML is written.

Every public class has a ``_repr_html_`` from here: its text, or what `content` has for its type.
It says no more than ``repr`` and public properties do, so that no private number is in it.
"""

from __future__ import annotations

import html
import inspect
from collections.abc import Mapping, Sequence
from functools import singledispatch
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Content", "as_html", "content", "shown_in_notebooks"]

_SHOWN = 30  # rows of an HTML table
_STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"

Columns = Mapping[str, Sequence[Any]]


class Content(NamedTuple):
    """Lines of text, a table below them, and lines that keep their spaces."""

    head: Sequence[str]
    columns: Columns = MappingProxyType({})
    text: Sequence[str] = ()


@singledispatch
def content(thing: Any) -> Content:
    """What is shown of an object: its text, unless its type is registered here."""
    first, *rest = str(thing).splitlines() or [""]
    name = type(thing).__name__
    return Content([first if name in first else f"{name}: {first}"], text=rest)


def shown_in_notebooks(namespace: Mapping[str, Any], names: Sequence[str]) -> None:
    """Give the classes among these names a ``_repr_html_``, if they have none of their own.

    Parameters
    ----------
    namespace : mapping, a module's ``globals()``
    names : sequence of str, its ``__all__``
    """
    for name in names:
        kind = namespace.get(name)
        if inspect.isclass(kind) and not hasattr(kind, "_repr_html_"):
            kind._repr_html_ = _repr_html_  # type: ignore[attr-defined]


def _repr_html_(self: Any) -> str:
    return as_html(*content(self))


def as_html(head: Sequence[str], columns: Columns, text: Sequence[str] = ()) -> str:
    """Lines of text above a table of the first rows, all of it escaped."""
    title, *lines = [html.escape(line.strip()) for line in head]
    below = f"<pre>{html.escape(chr(10).join(text))}</pre>" if text else ""
    table = _table(columns) if columns else ""
    return f"<div><b>{title}</b><br>{'<br>'.join(lines)}{table}{below}</div>"


def _table(columns: Columns) -> str:
    count = len(next(iter(columns.values()), ()))
    rows = "".join(
        f"<tr>{''.join(_cell(column[i]) for column in columns.values())}</tr>"
        for i in range(min(count, _SHOWN))
    )
    names = "".join(f"<th>{_escaped(name)}</th>" for name in columns)
    more = f"<p>... and {count - _SHOWN} more rows</p>" if count > _SHOWN else ""
    head = f"<thead><tr>{names}</tr></thead>"
    return f'<table style="{_STYLE}">{head}<tbody>{rows}</tbody></table>{more}'


def _cell(value: Any) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, (float, np.floating)):
        return f'<td style="text-align:right">{value:.6g}</td>'
    return f"<td>{_escaped(str(value))}</td>"


def _escaped(text: str) -> str:
    """A key is somebody's text, and may have no UTF-8."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return html.escape(plain)
