"""Pairs that hardly differ: as at a larger scale, where the contour's numbers are no extremes.

With x+ the positive part, delta(epsilon) = E(1 - e^(epsilon - L))+ <= E(L - epsilon)+, and below
kappa - 1 and c of 2^-50 the two are the same to 2^-50. For kappa - 1 and c both 2^k times as large
2^k L <= L', since log(1 + x) is concave and c^2 grows faster; so
delta(epsilon) <= 2^-k E(L' - 2^k epsilon)+, which is delta' but for a factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ScaledPair", "scale_of"]

_UP = 1 + 2.0**-51
_FAR = 2.0**900


class ScaledPair:
    """delta of a pair from that of one 2^power times as far apart.

    Parameters
    ----------
    pair : GaussianPair, the larger one
    power : int
    dof : float, of all terms together; the factor between E(L' - y)+ and delta' grows as its root
    """

    def __init__(self, pair: Any, power: int, dof: float) -> None:
        self._pair, self._power = pair, power
        self._factor = (1 + 2.0**-48 * (1 + dof**0.5)) * _UP

    def delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        """At any epsilon, rounded up; delta(-x) = 1 - e^-x + e^-x delta of the reverse at x."""
        with np.errstate(over="ignore", under="ignore"):
            y = np.minimum(np.ldexp(np.abs(epsilon), self._power), _FAR)
            back = np.minimum(epsilon, 0.0)
            here = self._small(np.asarray(self._pair.delta(y)))
            there = -np.expm1(back) + np.exp(back) * self._small(
                np.asarray(self._pair.reverse.delta(y))
            )
            there = np.where(there > 0, np.nextafter(there * _UP, np.inf), there)
        return np.minimum(np.where(epsilon >= 0, here, there), 1.0)

    def epsilon(self, delta: float) -> float:
        """An epsilon >= 0 for this delta, for a root finder to end with."""
        asked = min(1.0, float(np.ldexp(delta, self._power)) / self._factor)
        found = float(np.ldexp(float(self._pair.epsilon(asked)), -self._power))
        return float(np.nextafter(found, np.inf))

    def _small(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        down = np.nextafter(np.ldexp(value * self._factor, -self._power), np.inf)
        return np.asarray(np.where(value > 0, down, 0.0))


def scale_of(excess: Any, shift: Any) -> int:
    """The power of two that makes the largest of abs(kappa - 1) and c about 2^-50; 0 for none."""
    top = max(float(np.max(np.abs(excess), initial=0.0)), float(np.sqrt(np.max(shift, initial=0))))
    return -50 - int(np.frexp(top)[1]) if 0 < top < 2.0**-51 else 0
