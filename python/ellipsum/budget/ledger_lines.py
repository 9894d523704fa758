"""The lines of a ledger: what its bytes say, each chained to all before it by a hash.

Nothing is read or written here: bytes go in and a state comes out, or a body and a line.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import uuid
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from ..accounting.cost import Cost, Limit

__all__ = [
    "LedgerError",
    "LedgerState",
    "Line",
    "describe",
    "header_of",
    "how_to_make",
    "is_start",
    "line_of",
    "parse",
]

_VERSION = 1
_HASH_BYTES = 16
_CLOSING = b'{"torn":'
_AMOUNTS = re.compile(
    rb'^\{"spend":\{"entry":(\d+),"job":"(\w*)","mu_squared":"(\d+/[1-9]\d*)",'
    rb'"epsilon":"(\d+/[1-9]\d*)","delta":"(\d+/[1-9]\d*)"'
)
_HASHED = re.compile(rb"(\}.| )[0-9a-f]{32}.?$")
#: A spend torn in the words of its user, which may end as if by a hash. A whole line that has
#: another byte goes on: there are more quotes behind them.
_IN_WORDS = re.compile(
    rb'^\{"spend":\{"entry":\d+,"job":"([^"\\]|\\.)*'
    rb'(","mu_squared":"[^"]*","epsilon":"[^"]*","delta":"[^"]*","what":"([^"\\]|\\.)*)?["\\]?$'
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


def describe(terms: dict[str, Any]) -> str:
    """The terms in a few words."""
    limit = LedgerState(terms).limit
    return f"{limit}, neighbours: {terms['neighbors']}, unit: {terms['unit']}"


def parse(data: bytes, path: str) -> LedgerState:
    """What the bytes of a ledger say.

    Raises
    ------
    LedgerError
        Where a line is not what its hash says, and it is not the last or was whole (of a step, a
        whole one was answered), and no later line says that it was torn.
    """
    *whole, tail = data.split(b"\n")
    if not whole:
        what = "it is empty, or its first line is not whole"
        raise LedgerError(f"{path} is no ledger: {what}; move it away, and {how_to_make(path)}")
    terms, chain = _checked(whole[0], b"")
    if terms is None or terms.get("ellipsum ledger") != _VERSION:
        raise LedgerError(f"{path} is no ledger, or one of another version of the package")
    state = LedgerState(terms, chain=chain, open_chain=chain, seen={chain.hex()})
    broken = 0
    for number, line in enumerate([*whole[1:], *([tail] if tail else [])], 2):
        body, chain = _checked(line, state.open_chain)
        if body is None or (state.torn and body.get("torn") != state.torn):
            if state.torn and not (line.startswith(_CLOSING) or _CLOSING.startswith(line)):
                raise _altered(path, number - 1)
            ended = number == len(whole) and not tail  # else zeros may stand for what was to come
            part = line if ended else line.rstrip(b"\0")
            broken = broken or (number if _was_whole(part, state.open_chain) else 0)
            _take_fragment(state, line)
        else:
            state.torn = broken = 0
            _take(state, body, chain)
    if broken:
        raise _altered(path, broken)
    state.cut = bool(tail)
    return state


def _was_whole(line: bytes, chain: bytes) -> bool:
    """Whether a line that is not what its hash says has one all the same: a torn one is a part of
    what it was to be."""
    try:
        _, end = json.JSONDecoder().raw_decode(line.decode("latin-1"))
    except ValueError:
        return _HASHED.search(line) is not None and _IN_WORDS.match(line) is None
    said = f" {_link(chain, line[:end]).hex()}".encode()
    return line[end:] == said or not said.startswith(line[end:])


def _altered(path: str, number: int) -> LedgerError:
    return LedgerError(
        f"{path} was altered: line {number} is not what its hash says; put back a copy that has "
        "all that was spent, or begin another ledger with what is left for certain"
    )


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


def how_to_make(path: str) -> str:
    """How a ledger is made, in words."""
    budget = "--epsilon E --delta D (or --mu M)"
    return f"make it by: ellipsum ledger create {shlex.quote(path)} {budget}"


def header_of(terms: dict[str, Any]) -> bytes:
    known = {"ellipsum ledger": _VERSION, **terms, "id": uuid.uuid4().hex}
    return line_of(known, b"")[0]


def is_start(data: bytes, header: bytes) -> bool:
    """Whether the bytes are how a header of these terms begins: all but its id and hash."""
    fixed = header.partition(b'"id":')[0]
    return data.startswith(fixed) or fixed.startswith(data)


def line_of(body: dict[str, Any], chain: bytes) -> tuple[bytes, bytes]:
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
