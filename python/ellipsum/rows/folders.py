"""Columns that the names of folders stand for, as Hive and Spark write them: ``year=2025``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from .arrow import pyarrow

__all__ = ["folder_columns", "folder_names"]


def folder_names(path: str) -> list[str]:
    """The names of columns in those of the folders that a file is in."""
    parts = path.split(os.sep)[:-1]
    return [part.partition("=")[0] for part in parts if "=" in part]


def folder_columns(paths: Sequence[str], wanted: Iterable[str]) -> list[dict[str, Any]]:
    """For each file the Arrow scalars that its folders have of the columns wanted.

    A column is of integers of 64 bits if each of its values in all the files is one (``01`` is 1),
    else of text; Hive's word for a null is one. It follows from the paths alone, which are public.

    Raises
    ------
    ValueError
        Where two folders of a path have the same name.
    """
    found: list[dict[str, Any]] = [{} for _ in paths]
    for name in dict.fromkeys(wanted):
        here = [k for k, path in enumerate(paths) if name in folder_names(path)]
        for k in here:
            if folder_names(paths[k]).count(name) > 1:
                raise ValueError(f"{paths[k]} has {name!r} in two folders' names: rename one")
        if here:
            for k, value in zip(here, _values([paths[k] for k in here], name), strict=True):
                found[k][name] = value
    return found


def _values(paths: Sequence[str], name: str) -> list[Any]:
    pa = pyarrow("a column of folders' names")
    import pyarrow.dataset as ds

    for kind in (pa.int64(), pa.string()):
        folders = ds.HivePartitioning(pa.schema([(name, kind)]))
        try:
            read = [ds.get_partition_keys(folders.parse(PurePath(p).as_posix())) for p in paths]
        except pa.ArrowInvalid:  # no integer
            continue
        return [pa.scalar(one.get(name), kind) for one in read]
    raise ValueError(f"{name!r} in the folders' names is neither an integer nor UTF-8: rename them")
