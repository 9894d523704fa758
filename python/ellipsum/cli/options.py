"""What several commands share: options of the budget and the data, opening rows, writing files."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from ..rows.files import Rows, open_rows
from .exit import Exit, Problem, own_text

__all__ = [
    "add_budget",
    "add_data",
    "add_groups",
    "add_header",
    "add_jobs",
    "add_json",
    "add_output",
    "add_release_budget",
    "add_resume",
    "join_numbers",
    "opened",
    "refuse_over",
    "split_names",
    "split_units",
    "units_in_order",
    "wants_bar",
    "write_whole",
]

_NUMBERS = ("--bounds", "--center", "--edges")
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


def add_release_budget(parser: argparse.ArgumentParser, neighbors: str) -> None:
    """Options of the budget of a release; ``neighbors`` says what they mean, and the default."""
    title = "budget (epsilon with delta, or rho, or mu)"
    budget = add_budget(parser, title, epsilon="", delta="", rho="", mu="")
    budget.add_argument("--neighbors", choices=("replace", "add-remove"), help=neighbors)
    budget.add_argument("--ledger", metavar="FILE", help="draw it from this ledger, or be refused")


def add_data(parser: argparse.ArgumentParser, *, units: bool = False) -> argparse._ArgumentGroup:
    """Options of how rows are read, and of the columns' units if they are carried on."""
    group = parser.add_argument_group("data")
    group.add_argument("--columns", metavar="A,B,C", help="numeric columns, or one of lists")
    if units:
        _add_units(group)
    add_header(group)
    group.add_argument("--threads", type=int, metavar="N", help="default: ELLIPSUM_THREADS, or 1")
    return group


def add_header(group: argparse._ArgumentGroup) -> None:
    """Whether a CSV names its columns."""
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether the first line of a CSV holds the columns' names, which are public",
    )


def add_jobs(group: argparse._ArgumentGroup) -> None:
    """How many files are read at once."""
    group.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="files, or parts of a large one, that are read at the same time (default: 1)",
    )


def add_groups(parser: argparse.ArgumentParser, title: str, group: str) -> argparse._ArgumentGroup:
    """Options of a release by group; ``group`` says what ``--group`` does."""
    groups = parser.add_argument_group(title)
    groups.add_argument("--group", metavar="COLUMN", help=group)
    groups.add_argument(
        "--keys",
        metavar="A,B,C|FILE",
        help="the values, which are public: each is released, those without a row too. Left out, "
        "the values are private, and those that enough users (rows) have are released",
    )
    groups.add_argument(
        "--max-keys", type=int, metavar="K", help="with --user: groups of a user (default: 1)"
    )
    return groups


def _add_units(group: argparse._ArgumentGroup) -> None:
    """What the columns are measured in."""
    group.add_argument(
        "--units",
        metavar="A=UNIT,B=UNIT",
        help="units of columns, which the release shows beside their names; they are public, and "
        "win over those that a Parquet or Arrow file tells",
    )


def add_resume(parser: argparse.ArgumentParser) -> None:
    """Options of a checkpoint."""
    resume = parser.add_argument_group("a run that survives")
    resume.add_argument(
        "--resume",
        metavar="FILE",
        help="a secret file: a run that was killed goes on from it, and repeats the same release",
    )
    resume.add_argument("--resume-key", metavar="FILE", help="32 bytes that it is encrypted with")
    resume.add_argument(
        "--discard",
        action="store_true",
        help="remove it once the release is written: the next run is another release",
    )


def add_output(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """What is written and shown of a release."""
    output = parser.add_argument_group("output")
    add_json(output)
    output.add_argument("--out", metavar="FILE", help="write the release too: .json or .npz")
    output.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="rows per second and time left, on standard error (default: if it is a terminal); "
        "for the holder's eyes, since with add-remove the number of rows is private",
    )
    output.add_argument("--seed", type=int, help=argparse.SUPPRESS)  # for tests: not private
    return output


def join_numbers(argv: Sequence[str]) -> list[str]:
    """``--bounds -1,1`` as ``--bounds=-1,1``: argparse takes -1,1 for an option."""
    joined: list[str] = []
    for argument in argv:
        if joined and joined[-1] in _NUMBERS and re.match(r"-[\d.]", argument):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def wants_bar(arguments: argparse.Namespace) -> bool:
    """Whether a progress bar is drawn."""
    return sys.stderr.isatty() if arguments.progress is None else bool(arguments.progress)


def add_json(parser: argparse._ActionsContainer) -> None:
    """The option for JSON on standard output."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def split_names(columns: str | None) -> list[str] | None:
    """The names in ``--columns``, or None where it was not given."""
    return None if columns is None else [name.strip() for name in columns.split(",")]


def split_units(units: str | None) -> dict[str, str]:
    """The units in ``--units`` by column.

    Raises
    ------
    Problem
        For what is no NAME=UNIT.
    """
    pairs = [] if units is None else [part.rpartition("=") for part in units.split(",")]
    if not all(between for _, between, _ in pairs):
        raise Problem(Exit.PARAMETER, f"--units must be NAME=UNIT,NAME=UNIT, got {units!r}")
    return {name.strip(): unit.strip() for name, _, unit in pairs}


def units_in_order(
    units: Mapping[str, str], names: Sequence[str], columns: Sequence[str] | None
) -> list[str | None]:
    """A unit or None for each of the coordinates; a list's column may have one for all of them.

    Raises
    ------
    Problem
        For a name of no coordinate.
    """
    if unknown := [name for name in units if name not in {*names, *(columns or ())}]:
        text = f"--units has {unknown[0]!r}, which is none of the {len(names)} columns"
        raise Problem(Exit.PARAMETER, text)
    return [units.get(name) for name in names]


def opened(
    arguments: argparse.Namespace,
    paths: list[str],
    columns: Sequence[str] | None,
    *,
    by: Sequence[str] = (),
    progress: bool = False,
    units: Mapping[str, str] | None = None,
) -> Rows:
    """The rows of these columns of files, and the units of named ones."""
    known: dict[str, Any] = {"header": arguments.header, "by": by, "progress": progress}
    try:
        return open_rows(paths, columns, units=units, **known)
    except (OSError, TypeError, ValueError) as error:
        raise Problem(Exit.DATA, own_text(error)) from None


def refuse_over(out: str | None, named: Mapping[str, Iterable[str | None]]) -> None:
    """Refuse to write a release over what it is made from: with a ledger all that it says is lost.

    Parameters
    ----------
    out : str or None
    named : mapping of what files are to their paths, where there are any
    """
    for what, paths in named.items():
        real = [os.path.realpath(path) for path in paths if path is not None]
        if out is not None and os.path.realpath(out) in real:
            text = f"--out is {what} too, which the release would replace: name another file"
            raise Problem(Exit.OUTPUT, text)


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
