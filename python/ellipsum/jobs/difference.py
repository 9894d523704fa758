"""Why a job cannot go on from a checkpoint, in words: what differs between two bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["OTHER_VERSION", "changed", "difference"]

OTHER_VERSION = (
    "was begun by another version of the package: finish it with that one, or discard it (delete "
    "the file) and begin again; what it drew from a budget stays spent"
)


def difference(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> str | None:
    """What a checkpoint of a job ``kept`` says to a job ``asked``, None where they are the same."""
    other = [name for name in {**kept, **asked} if kept.get(name) != asked.get(name)]
    if other == ["inputs"]:
        what = changed(kept["inputs"], asked["inputs"])
        return f"was made before {what}: discard it (delete the file) to begin again"
    begun_before = other == ["pyarrow"] and "pyarrow" not in kept  # that it was bound
    if other in (["version"], ["steps"]) or begun_before:
        return OTHER_VERSION
    if other == ["pyarrow"]:
        return (
            f"was begun with pyarrow {kept['pyarrow']}, and {asked['pyarrow']} may cut files into "
            "other blocks, so that rows would count twice: go on with that version, or discard it "
            "(delete the file) and begin again; what it drew from a budget stays spent"
        )
    if other:
        what = f"is of another job (other {', '.join(sorted(other))})"
        return f"{what}: name another file, or discard it (delete the file) first"
    return None


def changed(kept: list[list[Any]], asked: list[list[Any]]) -> str:
    """Which file is not what it was."""
    if [row[0] for row in kept] != [row[0] for row in asked]:
        return "the list of files changed"
    names = [new[0] for old, new in zip(kept, asked, strict=True) if old != new]
    return f"{names[0] if names else 'a file'} changed"
