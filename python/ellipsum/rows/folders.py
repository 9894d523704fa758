"""Columns that the names of folders stand for, as Hive and Spark write them: ``year=2025``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote

from .arrow import pyarrow

__all__ = ["folder_columns", "folder_names"]

#: Hive's word for a null.
_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile("-?[0-9]{1,19}", re.ASCII)


def folder_names(path: str) -> list[str]:
    """The names of columns in those of the folders that a file is in, as the path is written."""
    return [name for name, _ in _pairs(path)]


def _pairs(path: str) -> list[tuple[str, str]]:
    """(name, value as written) of each folder; ``folder/..`` is none."""
    parts = re.split(r"[/\\]" if os.sep == "\\" else "/", os.path.normpath(path))[:-1]
    both = (part.partition("=") for part in parts if "=" in part)
    return [(unquote(name), value) for name, _, value in both]


def folder_columns(paths: Sequence[str], wanted: Iterable[str]) -> list[dict[str, Any]]:
    """For each file the Arrow scalars that its folders have of the columns wanted.

    A column is of integers of 64 bits if each of its values in all the files is one in decimal
    digits (``01`` is 1), else of text, percent signs decoded; Hive's word for a null is one. It
    follows from the paths alone, which are public.

    Raises
    ------
    ValueError
        Where two folders of a path have the same name, or a value is no UTF-8.
    """
    found: list[dict[str, Any]] = [{} for _ in paths]
    pairs = [_pairs(path) for path in paths]
    for name in dict.fromkeys(wanted):
        texts: dict[int, str] = {}
        for k, own in enumerate(pairs):
            values = [value for other, value in own if other == name]
            if len(values) > 1:
                raise ValueError(f"{paths[k]} has {name!r} in two folders' names: rename one")
            if values:
                texts[k] = values[0]
        for k, value in zip(texts, _scalars(name, list(texts.values())), strict=True):
            found[k][name] = value
    return found


def _scalars(name: str, texts: list[str]) -> list[Any]:
    """Values as written, as Arrow's."""
    if not texts:
        return []
    pa = pyarrow("a column of folders' names")
    try:
        known = [None if t == _NULL else unquote(t, errors="strict") for t in texts]
        for text in known:
            (text or "").encode()
    except UnicodeError:
        message = f"a value of {name!r} in the folders' names is no UTF-8: rename the folder"
        raise ValueError(message) from None
    whole = [None if t is None else int(t) for t in known if t is None or _INTEGER.fullmatch(t)]
    if len(whole) == len(known) and all(x is None or -(1 << 63) <= x < 1 << 63 for x in whole):
        return [pa.scalar(x, pa.int64()) for x in whole]
    return [pa.scalar(t, pa.string()) for t in known]
