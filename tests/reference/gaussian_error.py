"""The rounding bound of the fast path, evaluated: what docs/guarantees/noise.md derives.

    python tests/reference/gaussian_error.py

`shortfall` is how far the bound of `z_error` and 2/m is from enough, over L = -log2 p in
[1, 64]; it must be negative for every arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

Array = NDArray[np.float64]

U = 2.0**-53
APPROXIMATION = 2.0**-50.4  # of N/D, over 1 + 2^(L - 17): gaussian_coefficients.py prints it
Z_ERROR = 2.0**-46
#: name: roundings of a Horner step, roundings of the last quotient, error of the logarithm less L u
ARITHMETIC = {
    "avx512": (1, 2, 2.4 * U + 2.0**-48.7),
    "avx2": (1, 1, 5.0 * U + 2.0**-53.1),
    "plain": (2, 1, 4.1 * U + 2.0**-53.1),
}


def horner_roundings(coefficients: Sequence[float], t: Array, per_step: int) -> Array:
    """Roundings of the terms of a polynomial of positive terms, weighted by their shares."""
    terms = np.array([c * t**i for i, c in enumerate(coefficients)])
    weights = per_step * np.arange(len(coefficients))[:, None] + 1
    return np.asarray((weights * terms).sum(0) / terms.sum(0))


def shortfall(
    numerator: Sequence[float], denominator: Sequence[float], name: str, points: int = 6301
) -> float:
    """Largest excess of the error of z over 3/4 z_error + 0.7/m, in z."""
    per_step, quotient, log_error = ARITHMETIC[name]
    bits = np.linspace(1, 64, points)
    z = np.maximum(0, -ndtri_exp(-bits * math.log(2)))
    mills = np.exp(-bits * math.log(2) + z * z / 2) * math.sqrt(2 * math.pi)
    s = np.sqrt(bits)
    t = s - 1
    # dz/dL = ln 2 * Q/phi, dL = 2 s ds; s - 1 is exact up to s = 2.
    root = math.log(2) * mills * (log_error + bits * U + 2 * s * (s + np.where(s > 2, t, 0)) * U)
    rational = horner_roundings(numerator, t, per_step) + horner_roundings(denominator, t, per_step)
    error = z * (rational + quotient + 1) * U + root + APPROXIMATION * (1 + 2.0 ** (bits - 17))
    return float((error - 0.7 * 2.0 ** (bits - 64) - 0.75 * Z_ERROR).max())


if __name__ == "__main__":
    from ellipsum.kernels.twins.gaussian_coefficients import DENOMINATOR, NUMERATOR

    for arithmetic in ARITHMETIC:
        print(f"{arithmetic}: {shortfall(NUMERATOR, DENOMINATOR, arithmetic):.3g}")
