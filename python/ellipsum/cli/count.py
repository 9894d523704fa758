"""``ellipsum count``: the number of rows, or users, of each value of a column, or each bin."""

from __future__ import annotations

import argparse

from ..budget.budget import Budget
from ..groups.counts import PrivateCounts
from ..groups.release import GroupRelease
from ..guarantee import ROW
from ..jobs.checkpoint import Checkpoint
from ..rows.files import Rows
from . import groups
from .exit import Exit, Problem, own_text
from .job import check_job, made, publish
from .options import (
    add_groups,
    add_header,
    add_jobs,
    add_output,
    add_release_budget,
    add_resume,
    opened,
    wants_bar,
)
from .parameters import vector

__all__ = ["EPILOG", "add_arguments", "run"]

EPILOG = """\
for example, the patients of each clinic, and a histogram of ages:
  ellipsum count visits.csv --group clinic --keys north,south --user patient --mu 0.5
  ellipsum count visits.csv --group age --edges 0,20,40,60,80 --mu 0.5

data:
  Parquet, Arrow IPC, CSV (one line, one record) and .npz; several files, folders or quoted
  patterns are one data set. Only the columns that are named here are read: of integers, text or
  bytes, with --edges of numbers. With --no-header they are called f0, f1, and so on.
  Rows without a value, outside the edges, or of no user (with --user) are in no group.

"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="the private rows")
    text = (
        "add-remove (default): a user's rows are there or not; replace: they take other values, "
        "and the number of all users (rows) is public"
    )
    add_release_budget(parser, text)
    text = "count the rows (with --user: the users) of each value of this column"
    named = add_groups(parser, "groups", text)
    named.add_argument(
        "--edges",
        metavar="A,B,C|FILE",
        help="in place of values: the ends of bins [A, B), [B, C], which are public, of a column "
        "of numbers; --group may then be left out where there is one column",
    )
    unit = parser.add_argument_group("unit of privacy (default: one row)")
    text = "whose row it is: a user counts once in a group, and the guarantee is for all their rows"
    unit.add_argument("--user", metavar="COLUMN", help=text)
    data = parser.add_argument_group("data")
    add_header(data)
    add_jobs(data)
    add_output(parser)
    add_resume(parser)


def run(arguments: argparse.Namespace) -> int:
    """Count what the arguments ask for, print it, and write it."""
    _check_usage(arguments)
    binned = arguments.edges is not None
    labels = [arguments.user] if arguments.user else []
    columns = [arguments.group] if arguments.group else None
    if not binned:
        labels, columns = [arguments.group, *labels], []
    bar = wants_bar(arguments)
    try:
        rows = opened(arguments, arguments.files, columns, by=labels, progress=bar)
    except Problem as problem:
        if binned and arguments.group is None and "not numeric" in str(problem):
            raise Problem(problem.code, f"{problem} (or name one column by --group)") from None
        raise
    if binned and rows.d not in (1, None):
        what = f"--edges bins one column of numbers, the data have {rows.d}"
        raise Problem(Exit.PARAMETER, f"{what}: name one by --group")
    mechanism = _mechanism(arguments, rows)

    def make(budget: Budget | None, checkpoint: Checkpoint | None) -> GroupRelease:
        known = {"key": arguments.group, "user": arguments.user, "seed": arguments.seed}
        return mechanism(rows, **known, budget=budget, resume=checkpoint, jobs=arguments.jobs or 1)

    release, checkpoint = made(arguments, rows, make)
    publish(arguments, groups.result_of(release), _text(release), checkpoint)
    return Exit.OK


def _check_usage(arguments: argparse.Namespace) -> None:
    """Refuse what does not go together, before anything is read."""
    check_job(arguments)
    if arguments.group is None and arguments.edges is None:
        what = "the rows (with --user: the users) of each of its values are counted"
        raise Problem(Exit.USAGE, f"give --group COLUMN: {what}")
    if arguments.edges is not None and arguments.keys is not None:
        raise Problem(Exit.USAGE, "give --keys, values of a column, or --edges, of bins of numbers")
    if arguments.max_keys is not None and arguments.user is None:
        raise Problem(Exit.USAGE, "--max-keys goes with --user: a row is in one group")
    if arguments.user is not None and arguments.user == arguments.group:
        raise Problem(Exit.USAGE, "--user and --group must be two columns")


def _mechanism(arguments: argparse.Namespace, rows: Rows) -> PrivateCounts:
    try:
        return PrivateCounts(
            keys=groups.keys_of(arguments, rows, 0),
            edges=None if arguments.edges is None else vector("edges", arguments.edges, each="end"),
            max_keys=1 if arguments.max_keys is None else arguments.max_keys,
            epsilon=arguments.epsilon,
            delta=arguments.delta,
            rho=arguments.rho,
            mu=arguments.mu,
            neighbors=arguments.neighbors or "add-remove",
        )
    except (TypeError, ValueError) as error:
        raise Problem(Exit.PARAMETER, own_text(error)) from None


def _text(release: GroupRelease) -> str:
    """Lines for a person: the guarantee, and a row for each group."""
    unit = "rows" if release.guarantee.unit == ROW else "users"
    lower, upper = release.confidence_interval()
    names = release.labels() if release.edges is not None else map(groups.name_of, release.keys)
    rows = [["group", f"{unit} (noisy)", "noise sd", "95 % interval (noise alone)"]]
    shown = list(names)[: groups.GROUPS_PRINTED]
    for i, name in enumerate(shown):
        ends = f"[{lower[i]:.6g}, {upper[i]:.6g}]"
        rows.append([name, f"{release.value[i]:.6g}", f"{release.size_sd:.3g}", ends])
    return "\n".join([*groups.head_of(release), *groups.aligned(rows), *groups.more_of(release)])
