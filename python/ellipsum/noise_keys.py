"""The one place where noise keys are made: from the operating system, a seed, or other keys.

A key that two draws share gives the difference of their sums away: with the same 32 bytes under
two noise levels 2a - b is the raw sum. So no draw takes the root key itself. Each has a key that
is bound, by derivation, to what it is for: its use, the region, the budget (and so the noise
levels), the kind, and a digest of the exact sum that it hides. The same root and the same job
give the same release again; anything else gives independent noise, as far as BLAKE2b is a
pseudorandom function (claim composition-3).
"""

from __future__ import annotations

import enum
import hashlib
import secrets
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["KEY_BYTES", "JobKeys", "Told", "Use", "digest", "root_key"]

KEY_BYTES = 32
_NOISE, _DIGEST = b"ellipsum-noise", b"ellipsum-digest"  # what BLAKE2b is personalised with


class Use(enum.Enum):
    """What a key is for. No two draws of one release share a use and a context."""

    SUM = b"sum"
    COUNT = b"count"
    ABSENT = b"missing cells"
    STEP = b"step of a plan"
    MOMENTS = b"second moments"
    WISHART = b"wishart"
    RECORD = b"record"
    GARBLE = b"record, further noise"
    PROPOSAL = b"unit vector, proposals"
    COIN = b"unit vector, coins"
    ENTRY = b"name of a budget's entry"  # public, and no noise
    MARK = b"mark of a budget's entry"  # public, and no noise
    LATENT = b"latents"
    COLUMN = b"columns of a projection"
    FLOOR = b"floor of a projection"
    SLOPE = b"slope of a regression"


def root_key(seed: int | bytes | None) -> bytes:
    """The 256-bit key that a release's keys come from: fresh, or from the seed.

    Raises
    ------
    TypeError
        For a seed that is neither an int nor 32 bytes.
    """
    if seed is None:
        return secrets.token_bytes(KEY_BYTES)
    if isinstance(seed, bytes) and len(seed) == KEY_BYTES:
        return seed
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError("seed must be an int or 32 bytes")
    text = _whole(seed).encode()
    return hashlib.blake2b(text, digest_size=KEY_BYTES, person=b"ellipsum-seed").digest()


class JobKeys:
    """The keys of one job: each draw has one of its own, bound to all that the job is.

    Parameters
    ----------
    root : 32 bytes, from :func:`root_key`. Secret.
    *job : bytes, str, bool, int, float, None or arrays of numbers
        All that the draws depend on: kind, neighbours, region, noise levels, exact sums.
    after : Told, optional; what comes before that
    """

    def __init__(self, root: bytes, *job: Any, after: Told | None = None) -> None:
        self._root, self._job = root, (Told() if after is None else after).digest(*job)

    def of(self, use: Use, *draw: Any) -> bytes:
        """The key of one draw: BLAKE2b under the root key of the use, the job and the draw."""
        told = _joined((use.value, self._job, *draw))
        bound = hashlib.blake2b(told, digest_size=KEY_BYTES, key=self._root, person=_NOISE)
        return bound.digest()


class Told:
    """Parts of a context, to which more are added: what is told at each of many steps is encoded
    once. **As private as the parts.**

    Parameters
    ----------
    *parts : as of :class:`JobKeys`
    """

    def __init__(self, *parts: Any) -> None:
        self._state = hashlib.blake2b(_joined(parts), digest_size=KEY_BYTES, person=_DIGEST)

    def add(self, *parts: Any) -> None:
        """Go on with these."""
        self._state.update(_joined(parts))

    def digest(self, *parts: Any) -> bytes:
        """That of all parts so far and these: :func:`digest` of all of them."""
        state = self._state.copy()
        state.update(_joined(parts))
        return state.digest()


def digest(*parts: Any) -> bytes:
    """32 bytes that tell one context from another. **As private as the parts.**"""
    return Told().digest(*parts)


def _joined(parts: tuple[Any, ...]) -> bytes:
    """Kind, length and data of each: no two tuples of parts share them."""
    pieces: list[bytes] = []
    for part in parts:
        kind, data = _ENCODED.get(type(part), _of_another_type)(part)
        pieces += (kind, len(data).to_bytes(8, "little"), data)
    return b"".join(pieces)


def _array(array: NDArray[Any]) -> tuple[bytes, bytes]:
    if array.dtype == object:  # integers wider than 64 bits
        numbers = [_whole(x) for x in array.ravel()]
        return b"o", f"({array.shape}, [{', '.join(numbers)}])".encode()
    if array.dtype.char in "VgG":  # it does not tell its names, or has bytes that mean nothing
        raise _refused(f"array of {array.dtype}")
    if array.dtype.str[0] == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    head, body = f"{array.dtype.str}{array.shape}".encode(), array.tobytes()
    return b"a", struct.pack("<Q", len(head)) + head + body


def _whole(number: Any) -> str:
    """An integer's digits; of one that has too many for Python to write, hexadecimal ones."""
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
        raise _refused(type(number).__name__)
    number = int(number)
    return str(number) if number.bit_length() < _MOST_BITS else f"{number:#x}"


def _refused(kind: Any) -> TypeError:
    return TypeError(f"no key is bound to a {kind}: give text, bytes, numbers or arrays of them")


#: Fewer digits than Python refuses to write at its strictest setting, 640.
_MOST_BITS = 2048

#: A letter for the type, and the value's bytes: no two values share both.
_ENCODED: dict[type, Callable[[Any], tuple[bytes, bytes]]] = {
    type(None): lambda part: (b"n", b""),
    bytes: lambda part: (b"b", part),
    str: lambda part: (b"s", part.encode("utf-8", "surrogatepass")),
    bool: lambda part: (b"t", bytes([part])),
    int: lambda part: (b"i", _whole(part).encode()),
    float: lambda part: (b"f", struct.pack("<d", part)),
    np.ndarray: _array,
}


def _of_another_type(part: Any) -> tuple[bytes, bytes]:
    """A subclass, or a number of NumPy's, by its value; no other type has one that is sure."""
    if isinstance(part, np.ma.MaskedArray):
        raise _refused(type(part).__name__)
    if isinstance(part, (np.bool_, np.ndarray)):
        return _array(np.asarray(part))
    if isinstance(part, np.integer):
        return _ENCODED[int](int(part))
    if isinstance(part, (np.float16, np.float32)):
        return _ENCODED[float](float(part))
    for kind in (bytes, str, int, float):
        if isinstance(part, kind):
            return _ENCODED[kind](part)
    raise _refused(type(part).__name__)
