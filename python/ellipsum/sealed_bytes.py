"""Bytes with a header and a checksum: what was cut or altered on the way is seen.

Against accidents only: who can write the bytes can write the checksum.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection
from typing import Any

__all__ = ["CHECKSUM_BYTES", "fields_of", "header_of", "is_whole", "sealed"]

CHECKSUM_BYTES = 16


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CHECKSUM_BYTES).digest()


def sealed(body: bytes) -> bytes:
    """The body, and its checksum after it."""
    return body + _checksum(body)


def is_whole(raw: bytes) -> bool:
    """Does the checksum at the end fit what is before it?"""
    return _checksum(raw[:-CHECKSUM_BYTES]) == raw[-CHECKSUM_BYTES:]


def fields_of(raw: bytes, header: struct.Struct, magic: bytes, error: str) -> tuple[Any, ...]:
    """What a header without a version says after its magic word.

    Raises
    ------
    ValueError
        With the text ``error``, for bytes that are too short, of another kind, or altered.
    """
    short = len(raw) < header.size + CHECKSUM_BYTES
    if short or raw[: len(magic)] != magic or not is_whole(raw):
        raise ValueError(error)
    return header.unpack_from(raw)[1:]


def header_of(
    raw: bytes,
    header: struct.Struct,
    magic: bytes,
    versions: Collection[int],
    error: Callable[[str], ValueError],
) -> tuple[Any, ...]:
    """What a header says after its magic word, from the version on.

    Parameters
    ----------
    raw : bytes
    header : struct.Struct, of the magic word, the version, and more
    magic : 8 bytes
    versions : collection of those that can be read
    error : makes the error of what is wrong

    Raises
    ------
    ValueError
        For bytes that are too short, of another kind, or of another version.
    """
    if len(raw) < header.size + CHECKSUM_BYTES or raw[: len(magic)] != magic:
        raise error("it is too short or starts otherwise")
    fields = header.unpack_from(raw)[1:]
    if fields[0] not in versions:
        known = " and ".join(map(str, versions))
        raise error(f"its version is {fields[0]}, and this release reads {known}")
    return fields
