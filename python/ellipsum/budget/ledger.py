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

import hashlib
import json
import os
import re
import shlex
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from ..accounting.cost import Cost, Limit
from ..durable import BINARY, NO_FOLLOW, lock, sync, sync_folder, write_all

__all__ = ["Ledger", "LedgerError", "LedgerState", "Line", "Refused", "describe", "parse"]

_VERSION = 1
_HASH_BYTES = 16
_CLOSING = b'{"torn":'
_GONE = "what was spent is no longer all there; put back the file that has all of it"
_AMOUNTS = re.compile(
    rb'^\{"spend":\{"entry":(\d+),"job":"(\w*)","mu_squared":"(\d+/\d+)",'
    rb'"epsilon":"(\d+/\d+)","delta":"(\d+/\d+)"'
)


class LedgerError(ValueError):
    """A ledger that cannot be read or written, or is not the one asked for."""


@dataclass(frozen=True)
class Line:
    """One spend of a ledger.

    Parameters
    ----------
    entry : int, from 1
    cost : Cost
    what, job, time : str
    chain : str, the hash of its line: that of the whole ledger up to it
    granted : bool, whether the grant's own line is whole; it is spent in any case
    """

    entry: int
    cost: Cost
    what: str = ""
    job: str = ""
    time: str = ""
    chain: str = ""
    granted: bool = False


@dataclass
class LedgerState:
    """What a ledger says: its terms, its spends, and how it ends."""

    terms: dict[str, Any]
    lines: list[Line] = field(default_factory=list)
    marks: dict[tuple[int, int], str] = field(default_factory=dict)  # of an entry's steps
    chain: bytes = b""
    seen: set[str] = field(default_factory=set)  # every hash of the chain
    torn: int = 0  # unfinished last lines that nobody has closed yet
    cut: bool = False  # whether the last line has no end
    open_chain: bytes = b""  # the hash that covers them too
    void: int = 0  # torn first lines whose amounts cannot be read: never granted

    @property
    def spent(self) -> Cost:
        """All that was spent."""
        return sum((line.cost for line in self.lines), Cost())

    @property
    def limit(self) -> Limit:
        """What may be spent."""
        budget = self.terms["budget"]
        number = {name: Fraction(text) for name, text in budget.items()}
        return Limit(number.get("mu_squared"), number.get("epsilon"), number["delta"])


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
        """Write a spend, and return when it is on the disk; a ``job`` spends once.

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
            line, chain = _line(body, chain)
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
            header = None if self._terms is None else _header(self._terms)
            if header is not None and not data.partition(b"\n")[1] and _is_start(data, header):
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
                    hint = f"; {_GONE if self._last else _make(self.path)}"
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


def describe(terms: dict[str, Any]) -> str:
    """The terms in a few words."""
    limit = LedgerState(terms).limit
    return f"{limit}, neighbours: {terms['neighbors']}, unit: {terms['unit']}"


def parse(data: bytes, path: str) -> LedgerState:
    """What the bytes of a ledger say.

    Raises
    ------
    LedgerError
        Where a line is not what its hash says, and no later line says that it was torn.
    """
    *whole, tail = data.split(b"\n")
    if not whole:
        what = "it is empty, or its first line is not whole"
        raise LedgerError(f"{path} is no ledger: {what}; move it away, and {_make(path)}")
    terms, chain = _checked(whole[0], b"")
    if terms is None or terms.get("ellipsum ledger") != _VERSION:
        raise LedgerError(f"{path} is no ledger, or one of another version of the package")
    state = LedgerState(terms, chain=chain, open_chain=chain, seen={chain.hex()})
    for number, line in enumerate([*whole[1:], *([tail] if tail else [])], 2):
        body, chain = _checked(line, state.open_chain)
        if body is None or (state.torn and body.get("torn") != state.torn):
            if state.torn and not (line.startswith(_CLOSING) or _CLOSING.startswith(line)):
                what = f"line {number - 1} is not what its hash says"
                raise LedgerError(
                    f"{path} was altered: {what}; put back a copy that has all that was spent, or "
                    "begin another ledger with what is left for certain"
                )
            _take_fragment(state, line)
        else:
            state.torn = 0
            _take(state, body, chain)
    state.cut = bool(tail)
    return state


def _take(state: LedgerState, body: dict[str, Any], chain: bytes) -> None:
    """One whole line."""
    state.chain = state.open_chain = chain
    state.seen.add(chain.hex())
    if "spend" in body:
        known = body["spend"]
        amounts = (Fraction(known[name]) for name in ("mu_squared", "epsilon", "delta"))
        about = (known["what"], known["job"], known["time"], chain.hex())
        state.lines.append(Line(known["entry"], Cost(*amounts), *about))
    elif "granted" in body and state.lines and state.lines[-1].entry == body["granted"]:
        state.lines[-1] = replace(state.lines[-1], granted=True)
    elif "mark" in body:
        known = body["mark"]
        state.marks.setdefault((known["entry"], known["step"]), known["of"])


def _take_fragment(state: LedgerState, fragment: bytes) -> None:
    """A torn line: spent where its amounts can be read."""
    state.torn += 1
    state.open_chain = _link(state.open_chain, fragment)
    state.seen.add(chain := state.open_chain.hex())
    found = _AMOUNTS.match(fragment)
    if found is not None:
        amounts = (Fraction(found[k].decode()) for k in (3, 4, 5))
        known = "(torn)", found[2].decode(), "", chain
        state.lines.append(Line(int(found[1]), Cost(*amounts), *known))
    elif fragment.startswith(b'{"s'):
        state.void += 1


def _repeated(line: Line, cost: Cost) -> Line:
    """The spend that was made for the same job."""
    if line.cost != cost:
        raise LedgerError(
            f"this job drew entry {line.entry} of the ledger at another cost: discard its "
            "checkpoint (delete the file), and it begins anew, with an entry of its own"
        )
    return line


def _make(path: str) -> str:
    """How a ledger is made, in words."""
    budget = "--epsilon E --delta D (or --mu M)"
    return f"make it by: ellipsum ledger create {shlex.quote(path)} {budget}"


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


def _header(terms: dict[str, Any]) -> bytes:
    known = {"ellipsum ledger": _VERSION, **terms, "id": uuid.uuid4().hex}
    return _line(known, b"")[0]


def _is_start(data: bytes, header: bytes) -> bool:
    """Whether the bytes are how a header of these terms begins: all but its id and hash."""
    fixed = header.partition(b'"id":')[0]
    return data.startswith(fixed) or fixed.startswith(data)


def _line(body: dict[str, Any], chain: bytes) -> tuple[bytes, bytes]:
    """A line, its end included, and the hash that it brings the chain to."""
    text = json.dumps(body, separators=(",", ":")).encode()
    linked = _link(chain, text)
    return text + b" " + linked.hex().encode() + b"\n", linked


def _checked(line: bytes, chain: bytes) -> tuple[dict[str, Any] | None, bytes]:
    """The body of a whole line and its hash, or None where the hash does not fit."""
    text, _, said = line.rpartition(b" ")
    linked = _link(chain, text)
    if linked.hex().encode() != said:
        return None, linked
    try:
        body = json.loads(text)
    except ValueError:
        return None, linked
    return (body if isinstance(body, dict) else None), linked


def _link(chain: bytes, text: bytes) -> bytes:
    state = hashlib.blake2b(digest_size=_HASH_BYTES, person=b"ellipsum-ledger")
    state.update(chain + text)
    return state.digest()


def _ratio(number: Fraction) -> str:
    return f"{number.numerator}/{number.denominator}"
