"""An exact sum as bytes, and back to a plain state: versioned, checksummed, little-endian."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .sealed_bytes import CHECKSUM_BYTES, header_of, is_whole, sealed

__all__ = [
    "KINDS",
    "MISSING",
    "POLICIES",
    "SumState",
    "as_integers",
    "fingerprint_of",
    "not_a_sum",
    "pack",
    "unpack",
]

KINDS = ("ball", "box", "ellipsoid", "matrix", "low-rank")
_LOW_RANK = "low-rank"
POLICIES = ("center", "raise")
MISSING = ("center", "ignore")

_MAGIC = b"ELLIPSUM"
#: What becomes of holes, by the version that says it: version 2 has the counts of the holes, and
#: sums without them are written as before, so that older releases read them.
_MISSING_OF = {1: "center", 2: "ignore"}
# magic, version, kind, nonfinite policy, dimensions of scale (of low rank: its rows, 1 + 2 rank),
# d, count, clipped, nonfinite rows, releases, clip_norm
_HEADER = struct.Struct("<8sHBBIQQQQQd")
_DTYPES = ("<f8", "<f8", "<f8", "<u8", "<i8", "<i8")


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
    missing: str  #: one of MISSING
    absent: NDArray[np.int64]  #: holes of each coordinate; none of them counted for "center"


def fingerprint_of(region: dict[str, Any], grid: float) -> bytes:
    """16 bytes of a region (:meth:`Ellipsoid.to_state`): of two the same where they sum alike."""
    scale = region["scale"]
    rows = scale.ndim if region["kind"] != _LOW_RANK else len(scale)  # 3, 5, ...
    digest = hashlib.blake2b(f"{rows}|{region['center'].size}|".encode(), digest_size=16)
    for part in (region["center"], scale, region["limit"]):
        digest.update(part.astype("<f8").tobytes() + b"|")
    digest.update(np.array([region["clip_norm"], grid], "<f8").tobytes())
    return digest.digest()


def as_integers(low: NDArray[np.uint64], high: NDArray[np.int64]) -> NDArray[np.object_]:
    """Totals of 128 bits as Python integers."""
    total: NDArray[np.object_] = (high.astype(object) << 64) + low.astype(object)
    return total


def pack(state: SumState) -> bytes:
    """The state as bytes, whose length depends on d and the region's shape alone."""
    region = state.region
    header = _HEADER.pack(
        _MAGIC,
        1 + MISSING.index(state.missing),
        KINDS.index(region["kind"]),
        POLICIES.index(state.nonfinite),
        len(region["scale"]) if region["kind"] == _LOW_RANK else region["scale"].ndim,
        region["center"].size,
        state.rows,
        state.clipped,
        state.nonfinite_rows,
        state.releases,
        region["clip_norm"],
    )
    sums = (state.low, state.high, state.absent)
    arrays = (region["center"], region["scale"], region["limit"], *sums)
    parts = [a.astype(dtype).tobytes() for a, dtype in zip(arrays, _DTYPES, strict=True)]
    return sealed(b"".join([header, *parts]))


def unpack(raw: bytes) -> SumState:
    """The state of :func:`pack`'s bytes; what it says is for the caller to check.

    Raises
    ------
    ValueError
        If the bytes are truncated, altered, or of another version.
    """
    fields = header_of(raw, _HEADER, _MAGIC, _MISSING_OF, not_a_sum)
    version, kind, policy, rows, d, count, clipped, nonfinite, releases, clip_norm = fields
    if kind >= len(KINDS) or policy >= len(POLICIES) or d == 0:
        raise not_a_sum("its header is altered")
    shape = (rows, d) if KINDS[kind] == _LOW_RANK else (d,) * rows if rows in (1, 2) else ()
    if not shape:
        raise not_a_sum("its header is altered")
    limits = d if KINDS[kind] == "box" else 0
    sizes = [d, math.prod(shape), limits, d, d, d if version == 2 else 0]
    if len(raw) != _HEADER.size + 8 * sum(sizes) + CHECKSUM_BYTES:
        raise not_a_sum("it is truncated or has been altered")
    if not is_whole(raw):
        raise not_a_sum("its checksum does not fit")
    arrays, at = [], _HEADER.size
    for size, dtype in zip(sizes, _DTYPES, strict=True):
        arrays.append(np.frombuffer(raw, dtype, size, at).astype(dtype[1:]))
        at += 8 * size
    center, scale, limit, low, high, absent = arrays
    region = {
        "kind": KINDS[kind],
        "center": center,
        "scale": scale.reshape(shape),
        "limit": limit,
        "clip_norm": clip_norm,
    }
    counts = (count, clipped, nonfinite, releases)
    return SumState(region, POLICIES[policy], low, high, *counts, _MISSING_OF[version], absent)


def not_a_sum(what: str) -> ValueError:
    """The error for bytes that are no sum."""
    return ValueError(f"data is no ExactSum: {what}; keep the bytes of to_bytes() whole")
