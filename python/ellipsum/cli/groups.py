"""``ellipsum sum`` and ``ellipsum mean`` with ``--group``: a release for each value of a column."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from ..budget.budget import Budget
from ..gaussian_shape import GaussianShape
from ..groups.mechanisms import PrivateGroupMean, PrivateGroupSum
from ..groups.release import GroupRelease, cell_text
from ..guarantee import ROW
from ..jobs.checkpoint import Checkpoint
from ..rows.files import Rows
from ..rows.labels import labels_of
from .exit import Exit, Problem, own_text

__all__ = ["check_usage", "release_of", "text_of"]

_GROUPS_PRINTED = 50  # on a screen; --json and --out have all
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
            keys=None if arguments.keys is None else _keys(arguments, rows, d),
            max_keys=1 if arguments.max_keys is None else arguments.max_keys,
            epsilon=arguments.epsilon,
            delta=arguments.delta,
            rho=arguments.rho,
            mu=arguments.mu,
            neighbors=arguments.neighbors,
            missing=arguments.missing,
        )
    except (TypeError, ValueError) as error:
        raise Problem(Exit.PARAMETER, own_text(error)) from None
    known = {"key": arguments.group, "user": arguments.user, "seed": arguments.seed}
    return mechanism(rows, **known, budget=budget, resume=resume, jobs=arguments.jobs or 1)


def _keys(arguments: argparse.Namespace, rows: Rows, d: int) -> list[Any]:
    """The public keys, as integers where the column is of integers: a matter of its type."""
    given = arguments.keys
    if os.path.exists(given):
        with open(given, encoding="utf-8-sig") as file:
            keys = [line.rstrip("\r\n") for line in file]
    else:
        keys = given.split(",")
    if _is_integer(arguments.group, rows, d):
        try:
            return [int(key) for key in keys]
        except ValueError:
            raise ValueError(f"--keys must be integers, as column {arguments.group!r} is") from None
    return keys


def _is_integer(column: str, rows: Rows, d: int) -> bool:
    for _, (cells, *_) in rows.labelled(d):
        return labels_of(f"column {column!r}", cells).kind == "integer"
    return False


def text_of(release: GroupRelease, names: Sequence[str]) -> str:
    """Lines for a person: the guarantee, and a row for each group."""
    unit = "rows" if release.guarantee.unit == ROW else "users"
    lines = [
        f"private {release.kind}, {len(release)} group{'s' * (len(release) != 1)}, "
        f"{len(names)} coordinate{'s' * (len(names) != 1)}",
        f"guarantee: {release.guarantee}",
        *([] if release.entry is None else [f"entry {release.entry.number} of the ledger"]),
        *(f"CAVEAT: {caveat}" for caveat in release.caveats),
        "",
    ]
    shown = list(names[:_COLUMNS_PRINTED])
    more = len(names) - len(shown)
    head = ["group"] + ([] if release.sizes is None else [f"{unit} (noisy)"])
    rows = [head + [f"{name} (noise sd)" for name in shown] + ["..."] * (more > 0)]
    printed = min(len(release), _GROUPS_PRINTED)
    rows += [_cells(release, i, len(shown), more > 0) for i in range(printed)]
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    for row in rows:
        others = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *others]).rstrip())
    if len(release) > _GROUPS_PRINTED:
        rest = len(release) - _GROUPS_PRINTED
        lines.append(f"... and {rest} more groups: all of them by --json or --out")
    return "\n".join(lines)


def _cells(release: GroupRelease, i: int, columns: int, more: bool) -> list[str]:
    size = [] if release.sizes is None else [f"{release.sizes[i]:.6g}"]
    sd = release.sd
    values = [
        f"{release.value[i, j]:.6g}" if sd is None else cell_text(release.value[i, j], sd[i, j])
        for j in range(columns)
    ]
    key = release.keys[i]
    name = key.hex() if isinstance(key, bytes) else str(key)
    if not name.isprintable():  # a private key is somebody's text: no control of the terminal
        name = name.encode("unicode_escape").decode()
    return [name, *size, *values, *["..."] * more]
