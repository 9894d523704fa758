"""A part of an exact sum as bytes without its region: its numbers, a header, a checksum."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .sealed_bytes import CHECKSUM_BYTES, header_of, is_whole, sealed
from .sum_bytes import MISSING, POLICIES, SumState, as_integers

__all__ = [
    "FINGERPRINT_BYTES",
    "PartState",
    "is_impossible",
    "not_a_part",
    "pack_part",
    "unpack_part",
]

_MAGIC = b"ELLIPART"
FINGERPRINT_BYTES = 16
# magic, version, nonfinite policy, d, rows, clipped, nonfinite rows, releases, fingerprint
_HEADER = struct.Struct("<8sHBxIQQQQ16s")


class PartState(NamedTuple):
    """What a part says. **Private.**"""

    fingerprint: bytes  #: of the region: public
    nonfinite: str
    low: NDArray[np.uint64]
    high: NDArray[np.int64]
    rows: int
    clipped: int
    nonfinite_rows: int
    releases: int
    missing: str
    absent: NDArray[np.int64]  #: as in a SumState


def pack_part(state: PartState) -> bytes:
    """The part as bytes, whose length depends on d and ``missing`` alone."""
    header = _HEADER.pack(
        _MAGIC,
        1 + MISSING.index(state.missing),
        POLICIES.index(state.nonfinite),
        state.low.size,
        state.rows,
        state.clipped,
        state.nonfinite_rows,
        state.releases,
        state.fingerprint,
    )
    body = header + state.low.astype("<u8").tobytes() + state.high.astype("<i8").tobytes()
    body += state.absent.astype("<i8").tobytes()
    return sealed(body)


def unpack_part(raw: bytes) -> PartState:
    """The part of :func:`pack_part`'s bytes; whether a sum can be so is for the caller to check.

    Raises
    ------
    ValueError
        For bytes that are truncated, altered, or of another version.
    """
    fields = header_of(raw, _HEADER, _MAGIC, range(1, 1 + len(MISSING)), not_a_part)
    version, policy, d, rows, clipped, nonfinite, releases, mark = fields
    holes = d if version == 2 else 0
    size = _HEADER.size + 16 * d + 8 * holes + CHECKSUM_BYTES
    if len(raw) != size or policy >= len(POLICIES):
        raise not_a_part("it is truncated or has been altered")
    if not is_whole(raw):
        raise not_a_part("its checksum does not fit")
    low = np.frombuffer(raw, "<u8", d, _HEADER.size).astype(np.uint64)
    high = np.frombuffer(raw, "<i8", d, _HEADER.size + 8 * d).astype(np.int64)
    absent = np.frombuffer(raw, "<i8", holes, _HEADER.size + 16 * d).astype(np.int64)
    counts = (rows, clipped, nonfinite, releases)
    return PartState(mark, POLICIES[policy], low, high, *counts, MISSING[version - 1], absent)


def is_impossible(state: SumState | PartState, row_bound: float) -> bool:
    """Do counts contradict each other, or is the norm larger than rows can make it?"""
    if max(state.nonfinite_rows, state.clipped) > state.rows:
        return True
    if state.missing == "ignore":  # each row with holes has one at least
        holes = state.absent.tolist()
        some = sum(holes) >= state.nonfinite_rows
        if min(holes) < 0 or max(holes) > state.nonfinite_rows or not some:
            return True
    bound = Fraction(row_bound) * state.rows  # a row with holes adds its other cells
    # Of 2^30 coordinates below 2^127 each the norm is right to 2^-20: most need no integers.
    signed = state.low.view(np.int64)
    values = state.high.astype(np.float64) * 2.0**64 + state.low.astype(np.float64)
    small = state.high == signed >> 63
    values[small] = signed[small]
    if float(values @ values) * (1 + 2.0**-20) <= float(bound) ** 2 * (1 - 2.0**-20):
        return False
    return sum(int(v) ** 2 for v in as_integers(state.low, state.high)) > bound**2


def not_a_part(what: str) -> ValueError:
    """The error for bytes that are no part."""
    return ValueError(f"this is no part of a sum: {what}; keep the bytes of partial() whole")
