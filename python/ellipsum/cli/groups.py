"""``ellipsum sum`` and ``ellipsum mean`` with ``--group``: a release for each value of a column."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

from .. import __version__
from ..budget.budget import Budget
from ..column_names import captions
from ..gaussian_shape import GaussianShape
from ..groups.key_bytes import plain_key
from ..groups.mechanisms import PrivateGroupMean, PrivateGroupSum
from ..groups.release import GroupRelease, cell_text
from ..guarantee import ROW
from ..jobs.checkpoint import Checkpoint
from ..release import finite_or_none, titled
from ..rows.files import Rows
from ..rows.labels import labels_of
from .exit import Exit, Problem, own_text

__all__ = [
    "GROUPS_PRINTED",
    "aligned",
    "check_usage",
    "head_of",
    "keys_of",
    "more_of",
    "name_of",
    "release_of",
    "result_of",
    "text_of",
]

GROUPS_PRINTED = 50  # on a screen; --json and --out have all
_COLUMNS_PRINTED = 6


def check_usage(arguments: argparse.Namespace) -> None:
    """Refuse what does not go together, before anything is read."""
    if arguments.group is None:
        for name in ("keys", "max_keys"):
            if getattr(arguments, name) is not None:
                raise Problem(Exit.USAGE, f"--{name.replace('_', '-')} goes with --group")
        return
    for name in ("grouped", "max_rows"):
        if getattr(arguments, name):
            flag = name.replace("_", "-")
            raise Problem(Exit.USAGE, f"--{flag} does not go with --group")
    if arguments.bounds is not None and not arguments.one_pass:
        raise Problem(Exit.USAGE, "--bounds with --group is of one pass: give --one-pass too")
    if arguments.max_keys is not None and arguments.user is None:
        raise Problem(Exit.USAGE, "--max-keys goes with --user: a row is in one group")
    if arguments.user == arguments.group:
        raise Problem(Exit.USAGE, "--user and --group must be two columns")


def release_of(
    arguments: argparse.Namespace,
    rows: Rows,
    region: Any,
    d: int,
    units: Sequence[str | None] | None,
    budget: Budget | None,
    resume: Checkpoint | None,
) -> GroupRelease:
    """The release that the arguments ask for.

    Raises
    ------
    Problem
        For parameters that are wrong; what is wrong with the data comes out as it is.
    """
    try:
        mechanism = (PrivateGroupSum if arguments.kind == "sum" else PrivateGroupMean)(
            region.at() if isinstance(region, GaussianShape) else region,
            keys=keys_of(arguments, rows, d),
            max_keys=1 if arguments.max_keys is None else arguments.max_keys,
            epsilon=arguments.epsilon,
            delta=arguments.delta,
            rho=arguments.rho,
            mu=arguments.mu,
            neighbors=arguments.neighbors,
            missing=arguments.missing,
            units=units,
        )
    except (TypeError, ValueError) as error:
        raise Problem(Exit.PARAMETER, own_text(error)) from None
    known = {"key": arguments.group, "user": arguments.user, "seed": arguments.seed}
    return mechanism(rows, **known, budget=budget, resume=resume, jobs=arguments.jobs or 1)


def keys_of(arguments: argparse.Namespace, rows: Rows, d: int) -> list[Any] | None:
    """The public keys, as the column has them: integers, text, or bytes (given in hexadecimal)."""
    given = arguments.keys
    if given is None:
        return None
    if os.path.exists(given):
        try:
            with open(given, encoding="utf-8-sig") as file:
                keys = list(filter(None, (line.rstrip("\r\n") for line in file)))
        except (OSError, UnicodeError):
            raise ValueError(f"--keys: {given} cannot be read as lines of UTF-8 text") from None
    else:
        keys = [key.strip() for key in given.split(",")]
        if "" in keys:
            raise ValueError("--keys has an empty value: give A,B,C, or a file with one on a line")
    kind = _kind(arguments.group, rows, d)
    try:
        return [_READ[kind](key) for key in keys] if kind in _READ else list(keys)
    except ValueError:
        what = "integers" if kind == "integer" else "bytes in hexadecimal digits"
        raise ValueError(f"--keys must be {what}, as column {arguments.group!r} is") from None


_READ: dict[str, Callable[[str], Any]] = {"integer": int, "bytes": bytes.fromhex}


def _kind(column: str, rows: Rows, d: int) -> str:
    """What a column is of: a matter of its type, which the first block has."""
    for file in rows.each_file():  # no progress bar is drawn of them
        for _, (cells, *_) in file.labelled(d):
            return labels_of(f"column {column!r}", cells).kind
    return "text"


def result_of(release: GroupRelease) -> dict[str, Any]:
    """What is written of a release, but for the columns' names."""
    ends = [finite_or_none(end) for end in release.confidence_interval()]
    return {"ellipsum": __version__, **release.to_dict(), "confidence_interval_95": ends}


def text_of(release: GroupRelease, names: Sequence[str]) -> str:
    """Lines for a person: the guarantee, and a row for each group."""
    unit = "rows" if release.guarantee.unit == ROW else "users"
    lines = head_of(release, f", {len(names)} coordinate{'s' * (len(names) != 1)}")
    shown = captions(names, release.units)[:_COLUMNS_PRINTED]
    more = len(names) - len(shown)
    head = ["group"] + ([] if release.sizes is None else [f"{unit} (noisy)"])
    rows = [head + [f"{name} (noise sd)" for name in shown] + ["..."] * (more > 0)]
    printed = min(len(release), GROUPS_PRINTED)
    rows += [_cells(release, i, len(shown), more > 0) for i in range(printed)]
    return "\n".join([*lines, *aligned(rows), *more_of(release)])


def head_of(release: GroupRelease, more: str = "") -> list[str]:
    """Lines of what was released, and under which guarantee."""
    what = f"{release.kind}, {len(release)} group{'s' * (len(release) != 1)}{more}"
    return [
        titled(what, private=release.private),
        f"guarantee: {release.guarantee}",
        *_most(release),
        *([] if release.entry is None else [f"entry {release.entry.number} of the ledger"]),
        *(f"CAVEAT: {caveat}" for caveat in release.caveats),
        "",
    ]


def _most(release: GroupRelease) -> list[str]:
    k: int = release.guarantee.max_keys  # type: ignore[attr-defined]
    if release.guarantee.unit == ROW:
        return []
    return [f"a user counts in {k} group{'s' * (k > 1)} at most (--max-keys)"]


def aligned(rows: list[list[str]]) -> list[str]:
    """Lines of a table, the first column to the left."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = []
    for row in rows:
        others = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *others]).rstrip())
    return lines


def more_of(release: GroupRelease) -> list[str]:
    """What a table of the first groups does not show."""
    if not len(release):
        return ["(no value of the column has enough rows or users for this budget to name it)"]
    rest = len(release) - GROUPS_PRINTED
    return [f"... and {rest} more groups: all of them by --json or --out"] if rest > 0 else []


def name_of(key: Any) -> str:
    """A key as it is printed: a private one is somebody's text, and controls no terminal."""
    name = key.hex() if isinstance(key, bytes) else str(plain_key(key))
    return name if name.isprintable() else name.encode("unicode_escape").decode()


def _cells(release: GroupRelease, i: int, columns: int, more: bool) -> list[str]:
    size = [] if release.sizes is None else [f"{release.sizes[i]:.6g}"]
    sd = release.sd
    values = [
        f"{release.value[i, j]:.6g}" if sd is None else cell_text(release.value[i, j], sd[i, j])
        for j in range(columns)
    ]
    return [name_of(release.keys[i]), *size, *values, *["..."] * more]
