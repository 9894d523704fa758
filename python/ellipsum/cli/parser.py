"""The parser of the command line: an error is one sentence, and names what was perhaps meant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from .exit import Exit

__all__ = ["Parser"]

#: Names of the Python functions' parameters, for which the shell has another option.
_MEANT = {"--lower": "--bounds", "--upper": "--bounds", "--radius": "--ball", "--by": "--user"}


class Parser(argparse.ArgumentParser):
    """Errors are one sentence, without the whole usage before it."""

    def _print_message(self, message: str, file: Any = None) -> None:
        """Help and version, as the base class's, which says nothing of a write that fails."""
        (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        print(f"ellipsum: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(Exit.USAGE)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As the base class's, but a command itself refuses what it does not know."""
        known, others = super().parse_known_args(args, namespace)
        if others:
            self.error(f"unrecognized arguments: {' '.join(others)}{self._meant(others)}")
        return known, others

    def _meant(self, others: Sequence[str]) -> str:
        """The option that each of the unknown ones is perhaps meant as, as far as there is one."""
        options, found = self._option_string_actions, []
        for name in (other.partition("=")[0] for other in others if other.startswith("--")):
            near = [_MEANT[name]] if name in _MEANT else get_close_matches(name, options, 1, 0.75)
            for option in near:
                action = options.get(option)
                if action is not None and action.help is not argparse.SUPPRESS:
                    found.append(" ".join(filter(None, (option, str(action.metavar or "")))))
        return "; meant is perhaps " + " and ".join(dict.fromkeys(found)) if found else ""
