"""Standard deviations of rows from noisy means and mean absolute deviations about a centre."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["SD_PER_MAD", "spread_of"]

Array = NDArray[np.float64]

#: E|Z| = sqrt(2/pi): from a mean absolute deviation to a standard deviation.
SD_PER_MAD = math.sqrt(math.pi / 2)


@lru_cache(maxsize=1)
def _folded_table() -> tuple[Array, Array]:
    """t, and 2 E(N(t, 1))_- / t: the deviation beyond |mean|, in means, against mean/sd."""
    t = np.logspace(-3, math.log10(6), 400)
    density = np.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    return t, 2 * (density - t * scipy.special.ndtr(-t)) / t


def spread_of(shift: Array, deviation: Array, sd: Array) -> Array:
    """Standard deviations that agree with E(x - c) and E|x - c|, one noise deviation upwards.

    A coordinate whose rows lie all on one side tells only that its deviation is below a part
    of ``shift``: the bound is taken, and the next round sees better.
    """
    folded_t, folded_h = _folded_table()
    beyond = np.maximum(deviation - np.abs(shift), 0) + sd
    ratio = beyond / np.maximum(np.abs(shift), 1e-300)
    inside = np.clip(ratio, folded_h[-1], folded_h[0])
    t = np.exp(np.interp(-np.log(inside), -np.log(folded_h), np.log(folded_t)))
    wide = ratio >= folded_h[0]
    return np.asarray(np.where(wide, beyond * SD_PER_MAD, np.abs(shift) / t))
