"""A key as bytes, and back, and as text."""

from __future__ import annotations

import struct
from typing import Any

from ..rows.cells import number_text

__all__ = ["key_bytes", "key_text", "keys_at", "plain_key"]

_INTEGER, _TEXT, _BYTES = 0, 1, 2


def key_text(key: Any) -> str:
    """A key as the text that draws are bound to."""
    return repr(key) if isinstance(key, (str, bytes)) else number_text(key)


def plain_key(key: Any) -> Any:
    """A key as it is shown: itself, or text for an integer of more digits than Python prints."""
    text = number_text(key) if isinstance(key, int) else ""
    return text if text.lstrip("-").startswith("0x") else key


def key_bytes(key: Any) -> bytes:
    """Kind, length and data of a key."""
    if isinstance(key, str):
        kind, data = _TEXT, key.encode("utf-8", "surrogatepass")
    elif isinstance(key, bytes):
        kind, data = _BYTES, key
    else:
        kind, data = _INTEGER, number_text(key).encode()
    return struct.pack("<BI", kind, len(data)) + data


def keys_at(body: bytes, at: int, count: int) -> tuple[list[Any], int]:
    """So many keys from a place on, and the place after them.

    Raises
    ------
    ValueError
        For bytes that are no key. It quotes none.
    """
    keys = []
    for _ in range(count):
        key, at = _key_at(body, at)
        keys.append(key)
    return keys, at


def _key_at(body: bytes, at: int) -> tuple[Any, int]:
    try:
        kind, size = struct.unpack_from("<BI", body, at)
        at += 5
        data = body[at : at + size]
        if len(data) == size:
            return _key_of(kind, data), at + size
    except (ValueError, struct.error):  # what they say quotes the bytes
        pass
    raise ValueError("the bytes of a key are damaged: write them again")


def _key_of(kind: int, data: bytes) -> Any:
    if kind == _TEXT:
        return data.decode("utf-8", "surrogatepass")
    if kind == _BYTES:
        return data
    text = data.decode()
    if kind != _INTEGER:
        raise ValueError
    if text.lstrip("-").startswith("0x"):
        return int(text, 16)
    return int(text) if text.lstrip("-").isdigit() else float(text)
