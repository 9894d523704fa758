"""How large the floor of a random projection must be, for the bits that leave.

One row x of the table moves Y = Phi X + w N by phi x', and what the other rows add is the same
in law with and without it: post-processing. So pairs of *one-row* tables are all that count, and of
these the longest rows, at a right angle, are the worst (claim projection-1):

    add-remove   N(0, w^2 I) against N(0, w^2 I + R^2 uu')
    replace      N(0, w^2 I + R^2 vv') against N(0, w^2 I + R^2 uu'),  u at a right angle to v

m times each. Phi is rounded to q = 2^-14. The law of the rounded phi x' + w N is, to a factor
1 +- 2^-1000, that of Gaussians with a uniform error of width q added, which lies between two
multiples of Gaussians (claim projection-2): what that costs of epsilon, delta and the radius is
what :class:`Rounding` says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import scipy

from ..guarantee import DeltaGuarantee, Neighbors
from ..quadratic_form.gaussian_pair import GaussianPair

__all__ = ["PHI_BITS", "ProjectionGuarantee", "largest_ratio"]

#: Phi is rounded to 2^-14: block sums of 512 products with 25-bit rows are then exact in doubles.
PHI_BITS = 14
#: Of R^2/w^2: beyond, the floor would be too small for the lattice of Phi to vanish in it.
_MOST_RATIO = 2.0**16
_UP = 1 + 2.0**-48  # covers the roundings of a few operations
_SMALLEST = math.ulp(0.0)
_LATTICE = 2.0**-900  # far above 4 m theta, theta < 2^-100000


@dataclass(frozen=True)
class Rounding:
    """What rounding Phi costs at the ratio r^2 = R^2/w^2 (claim projection-2).

    Where real Phi is (epsilon', delta') at the ratio ``ratio``, the bits are
    (epsilon' + ``epsilon``, delta' * ``factor``).

    Parameters
    ----------
    r2 : float
    rows : int, m
    bits : int: Phi is rounded to q = 2^-bits
    """

    r2: float
    rows: int
    bits: int = PHI_BITS

    @property
    def _x(self) -> float:
        """q^2/(12 S^2), with S^2 = 1 + 1/r^2 the variance that the rounding error is beside."""
        return 4.0**-self.bits / (12 * (1 + 1 / self.r2)) * _UP

    @property
    def factor(self) -> float:
        """(S'/S)^m: the density with the error is at most so many times a Gaussian one."""
        return math.exp(-0.5 * self.rows * math.log1p(-self._x)) * _UP

    @property
    def epsilon(self) -> float:
        """log of the same, plus m x/2 for the other side (Jensen), and the lattice's 4 m theta."""
        return 0.5 * self.rows * (self._x - math.log1p(-self._x)) * _UP + _LATTICE

    @property
    def ratio(self) -> float:
        """r^2 of the Gaussian that lies above: its variance is 1 + (q^2/12)/(1 - x)."""
        return self.r2 * (1 + 4.0**-self.bits / (12 * (1 - self._x))) * _UP

    def delta(self, epsilon: float, neighbors: Neighbors) -> float:
        """The delta of the bits at ``epsilon``, never below the truth."""
        real = epsilon - self.epsilon
        real -= abs(real) * 2.0**-50
        return min(1.0, self.factor * max(float(p.delta(real)) for p in self.pairs(neighbors)))

    def pairs(self, neighbors: Neighbors) -> tuple[GaussianPair, ...]:
        """The worst pairs of the real mechanism; of ``replace`` the other direction is the same."""
        r2 = self.ratio
        if neighbors is Neighbors.REPLACE:
            smaller = -r2 / (1 + r2) * (1 + 2.0**-50)  # the quotient's roundings, on the safe side
            return (GaussianPair.from_spectrum([r2, smaller], 0, self.rows),)
        pair = GaussianPair.from_spectrum([r2], 0, self.rows)
        return pair, pair.reverse


@lru_cache(maxsize=256)
def largest_ratio(rows: int, epsilon: float, delta: float, neighbors: Neighbors) -> float:
    """The largest R^2/w^2 at which the bits are (epsilon, delta)-DP; at most 2^16.

    Parameters
    ----------
    rows : int, m
    epsilon, delta : float
    neighbors : Neighbors

    Returns
    -------
    float: it passed the check itself; the root finder is not trusted.
    """

    def excess(log_r2: float) -> float:
        found = Rounding(math.exp(log_r2), rows).delta(epsilon, neighbors)
        return math.log(max(found, _SMALLEST)) - math.log(delta)

    low = high = 0.0
    while excess(low) > 0:
        low, high = low - 2.0, low
    while low == high:
        if excess(high := high + 2.0) <= 0:
            if high > math.log(_MOST_RATIO):
                return _MOST_RATIO
            low = high
    root = float(scipy.optimize.brentq(excess, low, high, xtol=1e-14, rtol=1e-14))
    step = 1e-14
    while excess(root) > 0:
        root, step = root - step, 2 * step
    return math.exp(root) * (1 - 2.0**-50)


@dataclass(frozen=True, repr=False)
class ProjectionGuarantee(DeltaGuarantee):
    """(epsilon, delta)-DP of a projection, at every delta: the exact pair, roundings included.

    **Guarantees.** What is returned never understates (claims projection-1, projection-2).

    Parameters
    ----------
    neighbors, asked_epsilon, asked_delta, unit : of :class:`DeltaGuarantee`
    rows : int, m: how many are released
    ratio : float, R^2/w^2
    """

    rows: int = 1
    ratio: float = 1.0

    kind = "projection"

    def delta(self, epsilon: float) -> float:
        """The delta that goes with ``epsilon``."""
        found = Rounding(self.ratio, self.rows).delta(epsilon, self.neighbors)
        return min(found, self.asked_delta) if epsilon >= self.asked_epsilon else found

    def epsilon(self, delta: float) -> float:
        """The epsilon that goes with ``delta``: as asked, else by the exact pair."""
        if delta == self.asked_delta:
            return self.asked_epsilon
        cost = Rounding(self.ratio, self.rows)
        real = [float(pair.epsilon(delta / cost.factor)) for pair in cost.pairs(self.neighbors)]
        return (max(real) + cost.epsilon) * _UP

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values that JSON can hold."""
        return super().to_dict() | {"rows": self.rows, "ratio": self.ratio}
