"""What the ``ellipsum`` command starts: it imports nothing heavy before it can answer for it.

The package itself takes a second to import. An interrupt in that second, or an environment
variable that the import refuses, would print a traceback from the script that pip writes.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn

__all__ = ["main"]

# As in ellipsum.cli.exit, which cannot be imported yet.
_PARAMETER, _MISSING, _INTERRUPTED = 3, 5, 130
_SETTINGS = ("ELLIPSUM_BACKEND", "ELLIPSUM_CPU")


def main() -> int:
    """Run the command line with the process's arguments and return the exit code."""
    before = signal.getsignal(signal.SIGINT)
    try:
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, _leave)
        from ellipsum.cli.main import main as run

        signal.signal(signal.SIGINT, before)
        return run()
    except KeyboardInterrupt:  # between two lines of ours: before the first row is read
        return _fail(_INTERRUPTED, "interrupted; nothing was released")
    except ImportError as error:
        text = " ".join(str(error).split())
        if text.startswith(_SETTINGS):
            return _fail(_PARAMETER, text)
        name = error.name or "that this needs"
        return _fail(_MISSING, f"the package {name} cannot be imported: reinstall it")


def _leave(*_: Any) -> NoReturn:
    """Nothing is open or half written while modules are imported, and an exception raised in
    the middle of an import can be swallowed or turned into another."""
    os.write(2, b"ellipsum: interrupted; nothing was released\n")
    os._exit(_INTERRUPTED)


def _fail(code: int, message: str) -> int:
    print(f"ellipsum: {message}", file=sys.stderr)
    return code
