"""The commands of ``ellipsum``: their options, and what runs each."""

from __future__ import annotations

import argparse

from .exit import Exit, Problem
from .options import (
    add_data,
    add_groups,
    add_jobs,
    add_json,
    add_output,
    add_release_budget,
    add_resume,
)
from .parser import Parser

__all__ = ["make_parser"]

_EXIT_CODES = """\
exit codes:
    0  done
    1  a bug in ellipsum
    2  the command line is incomplete or contradicts itself
    3  a parameter is out of range, or its file cannot be read
    4  the data cannot be read as rows of numbers
    5  an optional package is missing (the message names it)
    6  the output cannot be written, or a checkpoint cannot be used
    7  the ledger is of another unit or other neighbours, has no budget left for the release,
       or cannot be read or written
  130  interrupted; nothing was released, unless the message says otherwise
"""

_RELEASE_HELP = """\
for example, with nothing known but bounds, or with public rows of the same kind:
  ellipsum {kind} rows.csv --columns age,height --epsilon 1 --delta 1e-6 --bounds 0,300
  ellipsum {kind} rows.csv --columns age,height --epsilon 1 --delta 1e-6 --public old.csv

shape (public; one of):
  --ball R          rows lie within R of the centre (--center, else the origin)
  --bounds LO,HI    every coordinate lies in [LO, HI]; or a file with "lo,hi" on each line.
                    Several passes find centre and scale within it, by a plan (--plan prints it);
                    --one-pass clips at the bounds themselves, and is done
  --sigma S1,S2     rows are about Gaussian with these standard deviations around --center;
                    one number for each column, or a file of them
  --public FILE     the same, centre and sigma computed from public rows of the same columns;
                    with --correlated their correlations too

With --bounds, --sigma and --public, --error says which errors are made small: "box", every
column's error against the width of its bounds; "relative", against its own standard deviation
(with --bounds: as far as it is seen); or "absolute", the sum of the squared errors in the data's
own unit (all columns then need the same unit).

--center takes numbers, as --center 170,70, or a file. A parameter file is .npy, .json (a list, or
an object keyed by column name), or text with one coordinate on each line.

data:
  Parquet, Arrow IPC, CSV (one line, one record), .npy and .npz; several files, folders or
  quoted patterns are one data set.
  The first line of a CSV names its columns: with --no-header it is a record like the others.
  The number of coordinates is then that of --dim or the shape, else of the first line's cells.
  A missing cell counts as the centre of its column, a CSV line of another length as the centre
  of the shape: an error about one person's record would tell the world about that record.
  With --missing ignore, and always with --bounds but for --one-pass, a mean is one of the
  present cells, whose noisy number is released too.

"""


def make_parser() -> argparse.ArgumentParser:
    """The parser of a whole command line; the namespace it makes has a ``run``."""
    from .. import __version__

    parser = Parser(
        prog="ellipsum",
        description="Differentially private sums and means of vectors.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"ellipsum {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for kind in ("sum", "mean"):
        _add_release(commands, kind)
    _add_count(commands)
    _add_records(commands)
    _add_tradeoff(commands)
    _add_audit(commands)
    _add_ledger(commands)
    _add_info(commands)
    _add_demo(commands)
    return parser


def _add_command(commands: argparse._SubParsersAction[Parser], name: str, text: str) -> Parser:
    return commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _add_release(commands: argparse._SubParsersAction[Parser], kind: str) -> None:
    parser = _add_command(commands, kind, f"release the private {kind} of the rows of files")
    parser.usage = "%(prog)s FILE [FILE ...] BUDGET SHAPE [OPTION ...]"
    parser.epilog = _RELEASE_HELP.format(kind=kind) + _EXIT_CODES
    parser.add_argument("files", nargs="+", metavar="FILE", help="the private rows")

    text = (
        "replace (default): the number of rows is public; add-remove: it is private "
        "(default with --group)"
    )
    add_release_budget(parser, text)
    _add_shape(parser)
    data = add_data(parser, units=True)
    data.add_argument(
        "--dim", type=int, metavar="D", help="coordinates of a row, for lists and --no-header"
    )
    add_jobs(data)
    _add_users(parser)
    title = "groups (default: one release of all rows)"
    add_groups(parser, title, "release one for each value of this column")
    output = add_output(parser)
    output.add_argument(
        "--plan",
        action="store_true",
        help="with --bounds in several passes and --neighbors replace, without --user: print each "
        "step and its budget first, on standard error",
    )
    add_resume(parser)
    parser.set_defaults(run=_release, kind=kind)


def _add_count(commands: argparse._SubParsersAction[Parser]) -> None:
    from . import count

    parser = _add_command(commands, "count", "release the private number of rows of each group")
    parser.usage = "%(prog)s FILE [FILE ...] BUDGET --group COLUMN [OPTION ...]"
    parser.epilog = count.EPILOG + _EXIT_CODES
    count.add_arguments(parser)
    parser.set_defaults(run=count.run)


def _add_shape(parser: argparse.ArgumentParser) -> None:
    shape = parser.add_argument_group("shape (see below)")
    shape.add_argument(
        "--missing",
        choices=("center", "ignore"),
        default="center",
        help="a missing cell counts as the centre of its column (default), or in a mean not at all",
    )
    shape.add_argument("--ball", type=float, metavar="R", help="radius, in the data's unit")
    shape.add_argument("--bounds", metavar="LO,HI|FILE", help="a box: lower and upper bounds")
    shape.add_argument(
        "--one-pass", action="store_true", default=None, help="with --bounds: clip there, sum once"
    )
    shape.add_argument("--sigma", metavar="S1,S2|FILE", help="standard deviations of the columns")
    shape.add_argument("--public", metavar="FILE", help="public rows of the same columns")
    shape.add_argument("--center", metavar="C1,C2|FILE", help="the centre, with --ball or --sigma")
    shape.add_argument(
        "--clip-probability",
        type=float,
        metavar="P",
        help="with --sigma or --public: share of the rows that the clip may change",
    )

    shape.add_argument(
        "--error",
        choices=("box", "relative", "absolute"),
        help="which errors are made small (default: box with --bounds, else absolute)",
    )
    shape.add_argument(
        "--correlated",
        action="store_const",
        const=True,
        help="with --public: fit the shape to the correlations, which are shrunk",
    )


def _add_users(parser: argparse.ArgumentParser) -> None:
    users = parser.add_argument_group("unit of privacy (default: one row)")
    users.add_argument(
        "--user",
        metavar="COLUMN",
        help="whose row it is: each user's rows become one, their mean (of a sum: their total), "
        "and the guarantee is for all rows of a user",
    )
    users.add_argument(
        "--grouped",
        action="store_true",
        help="with --user: each user's rows stand together, as in sorted files",
    )
    text = (
        "with --user, --neighbors add-remove and a region of one pass: count at most K rows of a "
        "user, each by itself"
    )
    users.add_argument("--max-rows", type=int, metavar="K", help=text)


def _add_records(commands: argparse._SubParsersAction[Parser]) -> None:
    from . import records

    parser = _add_command(commands, "records", "release every row of files by itself")
    parser.usage = "%(prog)s FILE [FILE ...] --public FILE --out FILE --epsilon E [OPTION ...]"
    parser.epilog = records.EPILOG + _EXIT_CODES
    records.add_arguments(parser)
    parser.set_defaults(run=records.run)


def _add_tradeoff(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = _add_command(commands, "tradeoff", "print the least leakage at each distortion")
    parser.epilog = _EXIT_CODES
    parser.add_argument("files", nargs="+", metavar="FILE", help="rows (.parquet, .csv, .arrow)")
    parser.add_argument("--private", required=True, metavar="A,B", help="sensitive columns")
    parser.add_argument("--useful", required=True, metavar="C,D", help="columns to release")
    parser.add_argument(
        "--observe",
        choices=("useful", "full"),
        default="useful",
        help="what the release is computed from: the useful columns (default), or all",
    )
    parser.add_argument(
        "--standardize",
        action="store_true",
        help="measure the error of each useful column against its own standard deviation",
    )
    parser.add_argument("--points", type=int, default=17, help="default: %(default)s")
    parser.add_argument("--out", metavar="PNG", help="draw the curve too")
    add_json(parser)
    parser.set_defaults(run=_tradeoff)


def _add_audit(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = _add_command(commands, "audit", "train attackers on a release, and measure them")
    parser.epilog = _EXIT_CODES
    parser.add_argument("files", nargs="+", metavar="FILE", help="rows (.parquet, .csv, .arrow)")
    parser.add_argument(
        "--label", required=True, metavar="A", help="what is guessed: numbers or text"
    )
    parser.add_argument("--columns", required=True, metavar="B,C", help="what was released")
    parser.add_argument(
        "--attackers", default="linear,mlp,rbf,knn", metavar="A,B", help="default: %(default)s"
    )
    add_json(parser)
    parser.add_argument("--seed", type=int, default=0, help="of the split and the attackers")
    parser.set_defaults(run=_audit)


def _add_ledger(commands: argparse._SubParsersAction[Parser]) -> None:
    from . import ledger

    parser = _add_command(commands, "ledger", "make a budget that lasts, and show what it holds")
    parser.epilog = _EXIT_CODES
    ledger.add_arguments(parser)


def _add_info(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = _add_command(commands, "info", "print versions, backend, instruction sets, threads")
    add_json(parser)
    parser.add_argument(
        "--warm",
        action="store_true",
        help="compile the Numba fallback first, where this install has no C++ kernels",
    )
    parser.set_defaults(run=_info)


def _add_demo(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = _add_command(commands, "demo", "release the private mean of a real table")
    parser.add_argument(
        "--out",
        default="ellipsum-demo.png",
        metavar="PNG",
        help="the picture (default: %(default)s)",
    )
    parser.add_argument("--no-plot", action="store_true", help="print the table alone")
    parser.add_argument("--epsilon", type=float, default=1.0, help="default: %(default)s")
    parser.add_argument("--delta", type=float, default=1e-6, help="default: %(default)s")
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.set_defaults(run=_demo)


def _release(arguments: argparse.Namespace) -> int:
    from .release import run

    return run(arguments)


def _tradeoff(arguments: argparse.Namespace) -> int:
    from .tradeoff import run

    return run(arguments)


def _audit(arguments: argparse.Namespace) -> int:
    from .audit import run

    return run(arguments)


def _info(arguments: argparse.Namespace) -> int:
    from .info import run

    return run(as_json=arguments.json, compile_now=arguments.warm)


def _demo(arguments: argparse.Namespace) -> int:
    from .demo import run_demo

    try:
        return run_demo(
            epsilon=arguments.epsilon,
            delta=arguments.delta,
            picture=None if arguments.no_plot else arguments.out,
            seed=arguments.seed,
        )
    except ValueError as error:  # the table is public: matplotlib's text will do
        raise Problem(Exit.PARAMETER, str(error)) from None
    except OSError as error:
        raise Problem(Exit.OUTPUT, f"--out cannot be written: {error.strerror}") from None
