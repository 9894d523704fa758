"""Exit codes of the command line, and the one error that carries them."""

from __future__ import annotations

__all__ = ["Exit", "Problem"]


class Exit:
    """Exit codes."""

    OK = 0
    BUG = 1
    USAGE = 2
    PARAMETER = 3
    DATA = 4
    MISSING = 5
    OUTPUT = 6
    INTERRUPTED = 130


class Problem(Exception):
    """An error for the user: an exit code and one sentence that quotes no data."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
