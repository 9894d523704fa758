"""A budget on disk: a file of lines that only grows, each chained to all before it by a hash.

One spend is one write of two lines, on the disk before any noise is drawn:

    {"spend": {entry, job, mu_squared, epsilon, delta, what, time}} HASH
    {"granted": entry} HASH

so a last line that is torn is one that was spent, to the last digit: its amount stands in the
line before. A write that stops in the first line was never granted, since a grant comes after
the whole write is on the disk; it is spent all the same where its amounts can be read. Of a plan
whose runs share an entry, each step is bound to what it is of before its noise is drawn:

    {"mark": {entry, step, of}} HASH

Whoever writes next closes a torn line by ``{"torn": 1} HASH``, whose hash covers it: nothing is
ever taken away. HASH is BLAKE2b of the hash before and the line (claims ledger-3, ledger-4,
ledger-6).
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from ..accounting.cost import Cost
from ..durable import BINARY, NO_FOLLOW, lock, sync, sync_folder, write_all
from .ledger_lines import (
    LedgerError,
    LedgerState,
    Line,
    describe,
    header_of,
    how_to_make,
    is_start,
    line_of,
    parse,
)

__all__ = ["Ledger", "LedgerError", "Line", "Refused"]

_GONE = "what was spent is no longer all there; put back the file that has all of it"


class Ledger:
    """The file of a budget.

    Parameters
    ----------
    path : path
    terms : dict or None
        The budget, the neighbours and the unit: what the ledger must say, or is made with. None
        to take what it says.
    """

    def __init__(self, path: str | os.PathLike[str], terms: dict[str, Any] | None = None) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self._terms = terms
        self._last = ""  # the hash of all that this object saw, torn lines too

    def read(self) -> LedgerState:
        """What the file says now."""
        with self._opened() as (_, state):
            return state

    def spend(self, cost: Cost, what: str, job: str, time: str) -> Line:
        """Write a spend, and return when it is on the disk; a ``job`` spends once, and no name is
        that of one of its own: no two spends have one hash, in no copy of the ledger.

        Raises
        ------
        Refused
            There is no room for it.
        LedgerError
            The file cannot be written, or is not what it was.
        """
        with self._opened() as (fd, state):
            for line in state.lines:
                if job and line.job == job:
                    sync(fd)  # it may be that whoever wrote it never came to wait for the disk
                    return _repeated(line, cost)
            if not state.limit.allows(state.spent + cost):
                raise Refused(state)
            job = job or secrets.token_hex(16)
            number = 1 + max((line.entry for line in state.lines), default=0)
            names = ("mu_squared", "epsilon", "delta")
            amounts = {name: _ratio(getattr(cost, name)) for name in names}
            body = {"entry": number, "job": job, **amounts, "what": what, "time": time}
            *_, chain, _ = self._write(fd, state, {"spend": body}, {"granted": number})
            return Line(number, cost, what, job, time, chain, True)

    def mark(self, entry: int, step: int, mark: str) -> bool:
        """Bind a step of an entry to a mark, unless it has one, and return when that is on the
        disk: whether it is this one. Noise is drawn under no other (claim ledger-6).

        Raises
        ------
        LedgerError
            The file cannot be written, or is not what it was.
        """
        with self._opened() as (fd, state):
            kept = state.marks.get((entry, step))
            if kept is None:
                self._write(fd, state, {"mark": {"entry": entry, "step": step, "of": mark}})
            else:
                sync(fd)  # it may be that whoever wrote it never came to wait for the disk
            return kept in (None, mark)

    def _write(self, fd: int, state: LedgerState, *bodies: dict[str, Any]) -> list[str]:
        """Add lines by one write, behind one that closes what is torn: the chain after each."""
        text, chain, chains = b"\n" * state.cut, state.open_chain, []
        for body in ([{"torn": state.torn}] if state.torn else []) + list(bodies):
            line, chain = line_of(body, chain)
            text += line
            chains.append(chain.hex())
        _append(fd, text, self.path)
        self._last = chains[-1]
        return chains

    @contextmanager
    def _opened(self) -> Iterator[tuple[int, LedgerState]]:
        """The file, locked, and what it says; made first where it is not there."""
        fd = self._locked()
        try:
            data = _contents(fd)
            header = None if self._terms is None else header_of(self._terms)
            if header is not None and not data.partition(b"\n")[1] and is_start(data, header):
                if data:
                    os.ftruncate(fd, 0)  # it was never finished, so nothing was granted by it
                _append(fd, header, self.path)
                sync_folder(self.path)
                data = header
            state = parse(data, self.path)
            self._check(state)
            self._last = state.open_chain.hex()
            yield fd, state
        finally:
            os.close(fd)

    def _locked(self) -> int:
        """The file under its path, open and locked: not one that was renamed meanwhile."""
        # One that this process has seen, and is gone, is not made anew with its whole budget.
        create = 0 if self._terms is None or self._last else os.O_CREAT
        flags = os.O_RDWR | os.O_APPEND | create | BINARY | NO_FOLLOW
        while True:
            try:
                fd = os.open(self.path, flags, 0o644)
            except OSError as error:
                hint = ""
                if isinstance(error, FileNotFoundError):
                    hint = f"; {_GONE if self._last else how_to_make(self.path)}"
                    hint = "; make its folder first" if create else hint
                raise LedgerError(f"{self.path} cannot be opened: {error.strerror}{hint}") from None
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise LedgerError(
                        f"{self.path} is not a regular file: name the file of a ledger"
                    )
                lock(fd, wait=True)
                if os.path.exists(self.path) and os.path.samestat(os.fstat(fd), os.stat(self.path)):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def _check(self, state: LedgerState) -> None:
        asked = self._terms or {}
        if any(state.terms.get(name) != asked[name] for name in asked):
            raise LedgerError(
                f"{self.path} is the ledger of another budget ({describe(state.terms)}): open it "
                "by its path alone, or give the budget that it was made with"
            )
        if self._last and self._last not in state.seen:
            raise LedgerError(
                f"{self.path} was cut back or replaced since this process last read it: {_GONE}"
            )


class Refused(Exception):
    """There is no room; what the ledger said."""

    def __init__(self, state: LedgerState) -> None:
        super().__init__()
        self.state = state


def _repeated(line: Line, cost: Cost) -> Line:
    """The spend that was made for the same job."""
    if line.cost != cost:
        raise LedgerError(
            f"this job drew entry {line.entry} of the ledger at another cost: discard its "
            "checkpoint (delete the file), and it begins anew, with an entry of its own"
        )
    return line


def _append(fd: int, data: bytes, path: str) -> None:
    """Add to the end, and wait for the disk; what could not be written whole is taken back."""
    before = os.fstat(fd).st_size
    try:
        write_all(fd, data)
    except OSError as error:
        os.ftruncate(fd, before)  # of a write that never was: nothing was granted by it
        text = f"{path} cannot be written: {error.strerror}; nothing was spent, nothing released"
        raise LedgerError(text) from None
    try:
        sync(fd)
    except OSError as error:
        text = f"{path} may not be on the disk: {error.strerror}; nothing was released, but what"
        raise LedgerError(f"{text} it was to cost may be spent") from None


def _contents(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _ratio(number: Fraction) -> str:
    return f"{number.numerator}/{number.denominator}"
