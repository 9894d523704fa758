"""Exit codes of the command line, and the one error that carries them."""

from __future__ import annotations

import dis
import os

__all__ = ["Exit", "Problem", "own_text"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_RAISE = dis.opmap["RAISE_VARARGS"]


class Exit:
    """Exit codes."""

    OK = 0
    BUG = 1
    USAGE = 2
    PARAMETER = 3
    DATA = 4
    MISSING = 5
    OUTPUT = 6
    BUDGET = 7
    INTERRUPTED = 130


class Problem(Exception):
    """An error for the user: an exit code and one sentence that quotes no data."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def own_text(error: Exception) -> str:
    """The text of an error that this package raised; any other is raised again, untold.

    Python, NumPy, pyarrow and the kernels quote arguments, and so rows, in their errors. Ours
    are those that come from a ``raise`` statement in one of our files; a call into compiled
    code fails in our files too, but at another instruction.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None:
        code = trace.tb_frame.f_code
        ours = os.path.abspath(code.co_filename).startswith(_PACKAGE)
        if ours and code.co_code[trace.tb_lasti] == _RAISE:
            return str(error)
    raise error
