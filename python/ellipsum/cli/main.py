"""The command line: ``ellipsum sum|mean|count|records|tradeoff|audit|ledger|info|demo``.

Standard output carries the release, standard error the progress bar and one-sentence errors.
No traceback is ever printed: an exception's text could quote a record.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from .commands import make_parser
from .exit import Exit, Problem, own_text
from .options import join_numbers

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code (see `Exit`).

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process if left out.
    """
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of standard output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OUTPUT
    except KeyboardInterrupt:  # a release is flushed by then
        return _fail(Exit.INTERRUPTED, "interrupted")
    return code


def _run(argv: Sequence[str]) -> int:
    try:
        arguments = make_parser().parse_args(join_numbers(argv))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning could depend on, or quote, the data
            return int(arguments.run(arguments))
    except SystemExit as stop:  # argparse: help, version, usage
        return int(stop.code or 0)
    except Problem as problem:
        return _fail(problem.code, str(problem))
    except ImportError as error:
        return _fail(Exit.MISSING, _import_text(error))
    except KeyboardInterrupt:
        return _fail(Exit.INTERRUPTED, "interrupted; nothing was released")
    except BrokenPipeError:
        raise
    except Exception as error:
        # Its text is withheld: it may quote what it failed on.
        return _fail(Exit.BUG, f"internal error ({type(error).__name__}): please report it")


def _import_text(error: ImportError) -> str:
    try:
        return own_text(error)
    except ImportError:
        return f"the package {error.name or 'that this needs'} cannot be imported: reinstall it"


def _fail(code: int, message: str) -> int:
    print(f"ellipsum: {message}", file=sys.stderr)
    return code
