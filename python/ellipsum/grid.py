"""The quantum of the exact sum, and the 24 bits that scales and matrices are kept to."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["SCALE_MAX", "SCALE_MIN", "grid_of", "round_bits", "round_matrix"]

Array = NDArray[np.float64]

#: C/g lies in [2^23, 2^24): quantising adds at most sqrt(d) 2^-24 to a relative sensitivity of 1,
#: which is 6.1e-5 at d = 2^20; from there on the grid gets finer with sqrt(d).
_CLIP_NORM_BITS = 23
_LOG2_D_OF_COARSEST_GRID = 20

#: Scales are kept to 24 significant bits and matrices too: products with a 29-bit row
#: entry are then exact in double, with or without a fused multiply-add.
_SCALE_BITS = 24

#: Scale factors (1/data unit) allowed: anything that a sane unit gives, and far from overflow.
SCALE_MIN, SCALE_MAX = 2.0**-400, 2.0**400


def grid_of(clip_norm: float, d: int) -> float:
    """The power of two with C/g in [2^23, 2^24), for the radius C; finer beyond d = 2^20."""
    extra = max(0, math.ceil((math.log2(d) - _LOG2_D_OF_COARSEST_GRID) / 2))
    exponent = math.frexp(clip_norm)[1] - 1  # C in [2^exponent, 2^(exponent + 1))
    if abs(exponent) > 400:
        raise ValueError(f"clip_norm must lie within 2^-400..2^400, got {clip_norm}")
    return math.ldexp(1.0, exponent - (_CLIP_NORM_BITS + extra))


def round_matrix(matrix: Array) -> Array:
    """A matrix in grid units as the kernels take it: their products with rows are then exact."""
    return np.ascontiguousarray(round_bits(np.where(np.abs(matrix) < SCALE_MIN, 0.0, matrix)))


def round_bits(x: Array) -> Array:
    """Round to 24 significant bits, half to even: a public parameter, chosen once."""
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, _SCALE_BITS)), exponent - _SCALE_BITS))
