"""Arrow's decimals as the nearest doubles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["decimals"]

#: 10^22 = 2^22 5^22, and 5^22 < 2^53: the largest power of ten that is a double.
_EXACT_POWER = 22


def decimals(pa: Any, array: Any) -> NDArray[np.float64]:
    """The nearest float64 of each decimal: pyarrow's own cast rounds more than once.

    An integer below 2^53 and a power of ten up to 10^22 are doubles, so that their quotient is
    rounded once; any other decimal is read from its digits. What has more digits than its type
    allows, as only a producer with an error in it writes, is NaN, like a null.
    """
    kind, limbs = array.type, _limbs(array)
    low = limbs[:, 0].view(np.int64)
    small = (
        (abs(low) < 2**53)
        & (low != -(2**63))
        & (limbs[:, 1:].view(np.int64) == low[:, None] >> 63).all(axis=1)
    )
    if abs(kind.scale) > _EXACT_POWER:
        small[:] = False
    power = 10.0 ** min(abs(kind.scale), _EXACT_POWER)
    values: NDArray[np.float64] = low / power if kind.scale >= 0 else low * power
    none = _beyond(limbs, 10**kind.precision)
    if array.null_count:
        none |= array.is_null().to_numpy(zero_copy_only=False)
    values[none] = np.nan
    if (large := ~(small | none)).any():
        digits = array.filter(pa.array(large)).cast(pa.string())
        values[large] = digits.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def _limbs(array: Any) -> NDArray[np.uint64]:
    """The integers of decimals, 64 bits at a time, the lowest first, two's complement."""
    width = array.type.bit_width
    dtype, each = np.dtype(f"i{min(width, 64) // 8}"), max(1, width // 64)
    if not len(array):
        return np.empty((0, each), np.uint64)
    place = array.offset * width // 8
    words = np.frombuffer(array.buffers()[1], dtype, each * len(array), place).reshape(-1, each)
    return words.astype(np.int64, copy=False).view(np.uint64)


def _beyond(limbs: NDArray[np.uint64], limit: int) -> NDArray[np.bool_]:
    """Where the magnitude of an integer is at least ``limit``."""
    negative = limbs[:, -1].view(np.int64) < 0
    # ~v = |v| - 1 for a negative v
    return np.where(negative, _at_least(~limbs, limit - 1), _at_least(limbs, limit))


def _at_least(limbs: NDArray[np.uint64], limit: int) -> NDArray[np.bool_]:
    more, same = np.zeros(len(limbs), bool), np.ones(len(limbs), bool)
    for k in reversed(range(limbs.shape[1])):
        part = np.uint64(limit >> 64 * k & (2**64 - 1))
        more |= same & (limbs[:, k] > part)
        same &= limbs[:, k] == part
    return more | same
