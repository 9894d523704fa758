"""Which files a path names: a file, a folder's files, or those that match a pattern; each once."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .sources import reading

__all__ = ["CHECKPOINT_MAGIC", "files_named", "listed", "named_by"]

#: What a checkpoint begins with: it is never read as rows.
CHECKPOINT_MAGIC = b"ELLIPJOB"


def listed(paths: Any) -> list[Any]:
    """One path or several; an open file, or a table, is iterable, too."""
    if isinstance(paths, (str, os.PathLike)):
        return [paths]
    package = type(paths).__module__.partition(".")[0]
    known = isinstance(paths, bytes) or hasattr(paths, "read") or package in ("pandas", "polars")
    named = list(paths) if isinstance(paths, Iterable) and not known else [None]
    if not all(isinstance(path, (str, bytes, os.PathLike)) for path in named):
        raise TypeError(
            f"paths must be a path or several, got {type(paths).__name__}: give the names of the "
            "files; rows in memory are given to the mechanism itself"
        )
    return named


def files_named(names: Iterable[str]) -> list[str]:
    """The files of paths, folders and patterns, in the order given; of each one by name.

    A file may come once: a record that counts twice moves a sum by twice its bound (claim rows-6).

    Raises
    ------
    OSError
        A folder or a pattern has no files.
    ValueError
        A file is named twice, be it by another path or link.
    """
    found = [path for name in names for path in _files(name)]
    known: dict[tuple[int, int], str] = {}
    for path in found:
        with reading(path):
            facts = os.stat(path)
        file = facts.st_dev, facts.st_ino
        if file in known:
            other = "" if known[file] == path else f", also as {known[file]}"
            raise ValueError(f"{path} is named twice{other}: its rows would count twice")
        known[file] = path
    return found


def named_by(names: Iterable[str], *paths: str) -> str | None:
    """The first of the names that stands for a file of one of the paths, were it there, if any.

    By the paths alone. A pattern that matches a folder on the way may be taken to name it too.
    """
    split = [os.path.split(os.path.abspath(path)) for path in paths]
    wanted = [os.path.join(os.path.realpath(folder), own) for folder, own in split]
    return next((name for name in names if any(_names(name, wanted))), None)


def _names(name: str, wanted: Sequence[str]) -> Iterator[bool]:
    """Whether a name stands for each of the paths, which have no links."""
    parts = os.path.abspath(name).split(os.sep)
    marked = [k for k, part in enumerate(parts) if any(mark in part for mark in "*?[")]
    fixed = len(parts) if not marked or os.path.lexists(name) else marked[0]
    head = os.path.realpath(os.sep.join(parts[:fixed]) or os.sep)
    for path in wanted:
        inside = path.startswith(os.path.join(head, "")) and path != head
        rest = os.path.relpath(path, head).split(os.sep) if inside else []
        yield path == head or (inside and _matches(rest, parts[fixed:]))


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a pattern names the path, or a folder that it is in."""
    if not pattern:
        return not any(part.startswith((".", "_")) for part in path)
    if pattern[0] == "**" and _matches(path, pattern[1:]):
        return True
    if not path or (path[0].startswith((".", "_")) and path[0] != pattern[0]):
        return False
    if pattern[0] == "**":
        return _matches(path[1:], pattern)
    return fnmatch.fnmatch(path[0], pattern[0]) and _matches(path[1:], pattern[1:])


def _files(name: str) -> Iterator[str]:
    if os.path.isdir(name):
        files = sorted(_inside(name))
        if not files:
            raise FileNotFoundError(f"{name} is a folder without files: check its name")
        yield from files
    elif os.path.lexists(name) or not any(mark in name for mark in "*?["):
        yield str(name)
    else:
        found = sorted(path for path in glob.glob(name, recursive=True) if not _hidden(path, name))
        if not found:
            raise FileNotFoundError(f"{name} matches no file: check it")
        for path in found:
            if not os.path.isdir(path):
                yield path
            elif not any(other.startswith(os.path.join(path, "")) for other in found):
                yield from _files(path)  # a folder of which nothing else is named


def _inside(folder: str) -> Iterator[str]:
    """The files in a folder and its folders, but for those whose name begins with . or _.

    Links to folders are not followed: they may lead back.
    """
    for entry in os.scandir(folder):
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _inside(entry.path)
        elif not os.path.isdir(entry.path):
            yield entry.path


def _hidden(path: str, pattern: str) -> bool:
    """Whether a name in the path begins with . or _ that the pattern does not spell out."""
    spelt = pattern.split(os.sep)
    return any(n.startswith((".", "_")) and n not in spelt for n in path.split(os.sep) if n != "..")
