"""A part of an exact sum as bytes without its region: 16 d bytes, a header, a checksum."""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .sum_bytes import POLICIES

__all__ = ["FINGERPRINT_BYTES", "PartState", "not_a_part", "pack_part", "unpack_part"]

_MAGIC = b"ELLIPART"
_VERSION = 1
FINGERPRINT_BYTES = 16
# magic, version, nonfinite policy, d, rows, clipped, nonfinite rows, releases, fingerprint
_HEADER = struct.Struct("<8sHBxIQQQQ16s")
_CHECKSUM_BYTES = 16


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


def pack_part(state: PartState) -> bytes:
    """The part as bytes, whose length depends on d alone."""
    header = _HEADER.pack(
        _MAGIC,
        _VERSION,
        POLICIES.index(state.nonfinite),
        state.low.size,
        state.rows,
        state.clipped,
        state.nonfinite_rows,
        state.releases,
        state.fingerprint,
    )
    body = header + state.low.astype("<u8").tobytes() + state.high.astype("<i8").tobytes()
    return body + _checksum(body)


def unpack_part(raw: bytes) -> PartState:
    """The part of :func:`pack_part`'s bytes; whether a sum can be so is for the caller to check.

    Raises
    ------
    ValueError
        For bytes that are truncated, altered, or of another version.
    """
    if len(raw) < _HEADER.size + _CHECKSUM_BYTES or raw[:8] != _MAGIC:
        raise not_a_part("it is too short or starts otherwise")
    _, version, policy, d, rows, clipped, nonfinite, releases, mark = _HEADER.unpack_from(raw)
    if version != _VERSION:
        raise not_a_part(f"its version is {version}, and this release reads {_VERSION}")
    if len(raw) != _HEADER.size + 16 * d + _CHECKSUM_BYTES or policy >= len(POLICIES):
        raise not_a_part("it is truncated or has been altered")
    if _checksum(raw[:-_CHECKSUM_BYTES]) != raw[-_CHECKSUM_BYTES:]:
        raise not_a_part("its checksum does not fit")
    low = np.frombuffer(raw, "<u8", d, _HEADER.size).astype(np.uint64)
    high = np.frombuffer(raw, "<i8", d, _HEADER.size + 8 * d).astype(np.int64)
    return PartState(mark, POLICIES[policy], low, high, rows, clipped, nonfinite, releases)


def not_a_part(what: str) -> ValueError:
    """The error for bytes that are no part."""
    return ValueError(f"this is no part of a sum: {what}; keep the bytes of partial() whole")


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest()
