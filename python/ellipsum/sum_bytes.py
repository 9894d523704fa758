"""An exact sum as bytes, and back to a plain state: versioned, checksummed, little-endian."""

from __future__ import annotations

import hashlib
import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["KINDS", "POLICIES", "SumState", "not_a_sum", "pack", "unpack"]

KINDS = ("ball", "box", "ellipsoid", "matrix")
POLICIES = ("center", "raise")

_MAGIC = b"ELLIPSUM"
_VERSION = 1
# magic, version, kind, nonfinite policy, columns of scale, d, count, clipped, nonfinite
# rows, releases, clip_norm
_HEADER = struct.Struct("<8sHBBIQQQQQd")
_CHECKSUM_BYTES = 16
_DTYPES = ("<f8", "<f8", "<f8", "<u8", "<i8")


class SumState(NamedTuple):
    """All that an exact sum is. **Private.**"""

    region: dict[str, Any]  #: as `Ellipsoid.to_state` gives it: public
    nonfinite: str  #: one of POLICIES
    low: NDArray[np.uint64]  #: sums modulo 2^64
    high: NDArray[np.int64]  #: and their upper 64 bits, two's complement
    rows: int
    clipped: int
    nonfinite_rows: int
    releases: int


def pack(state: SumState) -> bytes:
    """The state as bytes, whose length depends on d and the region's shape alone."""
    region = state.region
    header = _HEADER.pack(
        _MAGIC,
        _VERSION,
        KINDS.index(region["kind"]),
        POLICIES.index(state.nonfinite),
        region["scale"].ndim,
        region["center"].size,
        state.rows,
        state.clipped,
        state.nonfinite_rows,
        state.releases,
        region["clip_norm"],
    )
    arrays = (region["center"], region["scale"], region["limit"], state.low, state.high)
    parts = [a.astype(dtype).tobytes() for a, dtype in zip(arrays, _DTYPES, strict=True)]
    body = b"".join([header, *parts])
    return body + _checksum(body)


def unpack(raw: bytes) -> SumState:
    """The state of :func:`pack`'s bytes; what it says is for the caller to check.

    Raises
    ------
    ValueError
        If the bytes are truncated, altered, or of another version.
    """
    if len(raw) < _HEADER.size + _CHECKSUM_BYTES or raw[:8] != _MAGIC:
        raise not_a_sum("it is too short or starts otherwise")
    header = _HEADER.unpack_from(raw)
    _, version, kind, policy, ndim, d, count, clipped, nonfinite, releases, clip_norm = header
    if version != _VERSION:
        raise not_a_sum(f"its version is {version}, and this release reads {_VERSION}")
    if kind >= len(KINDS) or policy >= len(POLICIES) or ndim not in (1, 2) or d == 0:
        raise not_a_sum("its header is altered")
    limits = d if KINDS[kind] == "box" else 0
    sizes = [d, d**ndim, limits, d, d]
    if len(raw) != _HEADER.size + 8 * sum(sizes) + _CHECKSUM_BYTES:
        raise not_a_sum("it is truncated or has been altered")
    if _checksum(raw[:-_CHECKSUM_BYTES]) != raw[-_CHECKSUM_BYTES:]:
        raise not_a_sum("its checksum does not fit")
    arrays, at = [], _HEADER.size
    for size, dtype in zip(sizes, _DTYPES, strict=True):
        arrays.append(np.frombuffer(raw, dtype, size, at).astype(dtype[1:]))
        at += 8 * size
    center, scale, limit, low, high = arrays
    region = {
        "kind": KINDS[kind],
        "center": center,
        "scale": scale.reshape((d,) * ndim),
        "limit": limit,
        "clip_norm": clip_norm,
    }
    return SumState(region, POLICIES[policy], low, high, count, clipped, nonfinite, releases)


def not_a_sum(what: str) -> ValueError:
    """The error for bytes that are no sum."""
    return ValueError(f"data is no ExactSum: {what}; keep the bytes of to_bytes() whole")


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest()
