"""A sketch as bytes, and back: versioned, checksummed, little-endian."""

from __future__ import annotations

import json
import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..sealed_bytes import CHECKSUM_BYTES, header_of, is_whole, sealed
from .projection_sketch import MOST_ROWS, Numbers

__all__ = ["SketchState", "pack", "unpack"]

_MAGIC = b"ELLIPROJ"
_RELATIONS = ("replace", "add-remove")
# magic, version, neighbours, what it was made with, rows m, d, keys, bytes of names, epsilon,
# delta, radius, fingerprint
_HEADER = struct.Struct("<8sHBBIIIIddd16s")
_KEY = struct.Struct("<16sI")
_RANGE = struct.Struct("<QQ")


class SketchState(NamedTuple):
    """All that a sketch is, but for its keys. **Private.**"""

    neighbors: str
    epsilon: float
    delta: float
    radius: float
    center: NDArray[np.float64]
    fingerprint: bytes  #: of the public parameters, and of the floor that follows from them
    sums: NDArray[np.int64]
    used: dict[bytes, Numbers]
    columns: tuple[str, ...] | None = None  #: names, where a source had some
    seeded: bool = False  #: made with a seed, a part of it at least: not private
    budgeted: bool = False  #: its release was to be drawn from a budget


def pack(state: SketchState) -> bytes:
    """The state as bytes; their length tells how many ranges of numbers were used, and of the
    columns' names."""
    m, d = state.sums.shape
    numbers = (state.epsilon, state.delta, state.radius)
    names = b"" if state.columns is None else json.dumps(state.columns).encode()
    sizes = (m, d, len(state.used), len(names))
    made = state.seeded | state.budgeted << 1
    head = (_RELATIONS.index(state.neighbors), made, *sizes, *numbers, state.fingerprint)
    parts = [_HEADER.pack(_MAGIC, 1, *head), state.center.astype("<f8").tobytes(), names]
    for mark, used in sorted(state.used.items()):
        parts.append(_KEY.pack(mark, len(used.ranges)))
        parts += [_RANGE.pack(first, end) for first, end in used.ranges]
    return sealed(b"".join([*parts, state.sums.astype("<i8").tobytes()]))


def unpack(raw: bytes) -> SketchState:
    """The state of :func:`pack`'s bytes.

    Raises
    ------
    ValueError
        For bytes that are truncated, altered, or of another version.
    """
    fields = header_of(raw, _HEADER, _MAGIC, (1,), _no_sketch)
    _, relation, made, m, d, keys, named, epsilon, delta, radius, mark = fields
    if not is_whole(raw):
        raise _no_sketch("its checksum does not fit")
    try:
        neighbors, known = _RELATIONS[relation], (bool(made & 1), bool(made & 2))
        if made > 3:
            raise ValueError("made with what is not known")
        at = _HEADER.size + 8 * d
        columns = _names(raw[at : at + named], d)
        used, at = _used(raw, keys, at + named)
        if len(raw) != at + 8 * m * d + CHECKSUM_BYTES:
            raise ValueError("another length")
    except (struct.error, ValueError, IndexError, RecursionError):
        raise _no_sketch("it is truncated or has been altered") from None
    sums = np.frombuffer(raw, "<i8", m * d, at).astype(np.int64).reshape(m, d)
    center = np.frombuffer(raw, "<f8", d, _HEADER.size).astype(np.float64)
    return SketchState(neighbors, epsilon, delta, radius, center, mark, sums, used, columns, *known)


def _names(raw: bytes, d: int) -> tuple[str, ...] | None:
    if not raw:
        return None
    names = json.loads(raw)
    if not isinstance(names, list) or len(names) != d or not all(type(x) is str for x in names):
        raise ValueError("no names")
    return tuple(names)


def _used(raw: bytes, keys: int, at: int) -> tuple[dict[bytes, Numbers], int]:
    used: dict[bytes, Numbers] = {}
    for _ in range(keys):
        mark, ranges = _KEY.unpack_from(raw, at)
        at += _KEY.size
        numbers = used.setdefault(mark, Numbers())
        for _ in range(ranges):
            first, end = _RANGE.unpack_from(raw, at)
            if not first < end <= MOST_ROWS:
                raise ValueError("no range")
            numbers.take(first, end)
            at += _RANGE.size
    return used, at


def _no_sketch(what: str) -> ValueError:
    return ValueError(f"data is no projection: {what}; keep the bytes of to_bytes() whole")
