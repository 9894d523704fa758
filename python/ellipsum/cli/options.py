"""What several commands share: options of the budget and the data, opening rows, writing files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

from ..rows.files import Rows, open_rows
from .exit import Exit, Problem, own_text

__all__ = [
    "add_budget",
    "add_data",
    "add_groups",
    "add_json",
    "add_output",
    "opened",
    "split_names",
    "write_whole",
]

_BUDGET = {
    "epsilon": ("E", "of (epsilon, delta)-DP"),
    "delta": ("D", "of (epsilon, delta)-DP"),
    "rho": ("R", "of rho-zCDP"),
    "mu": ("M", "of mu-GDP"),
}


def add_budget(
    parser: argparse.ArgumentParser, title: str, **known: str
) -> argparse._ArgumentGroup:
    """Options of a budget: those named, each with what there is to say beside its meaning."""
    group = parser.add_argument_group(title)
    for name, more in known.items():
        letter, text = _BUDGET[name]
        group.add_argument(
            f"--{name}", type=float, metavar=letter, help=", ".join(filter(None, (text, more)))
        )
    return group


def add_data(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Options of how rows are read."""
    group = parser.add_argument_group("data")
    group.add_argument("--columns", metavar="A,B,C", help="numeric columns, or one of lists")
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether the first line of a CSV holds the columns' names, which are public",
    )
    group.add_argument("--threads", type=int, metavar="N", help="default: ELLIPSUM_THREADS, or 1")
    return group


def add_groups(parser: argparse.ArgumentParser) -> None:
    """Options of a release by group."""
    groups = parser.add_argument_group("groups (default: one release of all rows)")
    groups.add_argument(
        "--group", metavar="COLUMN", help="release one for each value of this column"
    )
    groups.add_argument(
        "--keys",
        metavar="A,B,C|FILE",
        help="the values, which are public: each is released, those without a row too. Left out, "
        "the values are private, and those that enough users (rows) have are released",
    )
    groups.add_argument(
        "--max-keys", type=int, metavar="K", help="with --user: groups of a user (default: 1)"
    )


def add_output(output: argparse._ArgumentGroup) -> None:
    """What is written and shown of a release."""
    output.add_argument("--out", metavar="FILE", help="write the release too: .json or .npz")
    output.add_argument(
        "--plan",
        action="store_true",
        help="with --bounds in several passes and --neighbors replace, without --user: print each "
        "step and its budget first, on standard error",
    )
    output.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="rows per second and time left, on standard error (default: if it is a terminal); "
        "for the holder's eyes, since with add-remove the number of rows is private",
    )
    output.add_argument("--seed", type=int, help=argparse.SUPPRESS)  # for tests: not private


def add_json(parser: argparse._ActionsContainer) -> None:
    """The option for JSON on standard output."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def split_names(columns: str | None) -> list[str] | None:
    """The names in ``--columns``, or None where it was not given."""
    return None if columns is None else [name.strip() for name in columns.split(",")]


def opened(
    arguments: argparse.Namespace,
    paths: list[str],
    *,
    by: Sequence[str] = (),
    progress: bool = False,
) -> Rows:
    """The rows of files, by the options of `add_data`."""
    names = split_names(arguments.columns)
    try:
        return open_rows(paths, names, header=arguments.header, by=by, progress=progress)
    except (OSError, TypeError, ValueError) as error:
        raise Problem(Exit.DATA, own_text(error)) from None


def write_whole(path: str, dump: Callable[[IO[bytes]], None]) -> None:
    """Write under another name, then rename: a reader sees all of it or nothing."""
    part = f"{path}.{os.getpid()}.part"
    try:
        try:
            with open(part, "xb") as file:
                dump(file)
            os.replace(part, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)
    except OSError as error:
        raise Problem(Exit.OUTPUT, f"--out cannot be written: {error.strerror}") from None
