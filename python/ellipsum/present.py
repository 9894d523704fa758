"""The mean of the present cells: a noisy sum over noisy numbers of cells, in one mechanism."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ellipsoid import Ellipsoid
from .guarantee import GaussianGuarantee, Neighbors
from .sum_release import NoisySum, SumRelease, fieller

__all__ = ["IGNORED_WHERE", "PresentMean", "absence_weights"]

Array = NDArray[np.float64]

#: What is said where a mechanism does not count missing cells apart.
IGNORED_WHERE = 'missing="ignore" goes with a mean, not with a sum: use PrivateMean'

#: Covers the roundings of a weight (under 8 of 2^-53): it is never too large.
_WEIGHT_SLACK = 1 - 2.0**-49

#: Standard deviations by which a number of cells must stand out from its noise.
_STANDS_OUT = 1.959963984540054  # Phi^-1(0.975)


def absence_weights(ellipsoid: Ellipsoid, neighbors: Neighbors) -> Array:
    """What one missing cell of each coordinate may weigh beside the sum at no cost, grid units.

    **Guarantees.** The integer sum and the numbers of missing cells times these weights have
    together the sensitivity of the sum alone (claim missing-2): for R = C/g
    sqrt(2/d) R (``replace``) or R / sqrt(d) (``add-remove``); for a box with the corner r
    sqrt(3) r_j, or r_j.

    Parameters
    ----------
    ellipsoid : Ellipsoid
    neighbors : Neighbors

    Returns
    -------
    array (d,)

    Raises
    ------
    ValueError
        For a box with a coordinate so narrow beside the others that the grid does not resolve it.
    """
    replace = neighbors.count_is_public
    if ellipsoid.kind == "box":
        corner = np.rint(ellipsoid.kernel_arguments()[3])
        if not corner.all():
            raise ValueError(
                'missing="ignore" needs widths within a factor of 1e13 of each other: take the '
                "narrow columns apart"
            )
        return np.asarray(corner * (math.sqrt(3) if replace else 1.0) * _WEIGHT_SLACK)
    radius = ellipsoid.clip_norm / ellipsoid.grid
    weight = radius * math.sqrt((2 if replace else 1) / ellipsoid.d)
    return np.full(ellipsoid.d, weight * _WEIGHT_SLACK)


class PresentMean(SumRelease):
    """A differentially private mean of the present cells of each coordinate.

    **Guarantees.** As :class:`SumRelease` (claims missing-1 to missing-4). The value is the noisy
    sum over the noisy number of present cells. Where that number does not stand out from its noise
    (1.96 standard deviations) the value is the centre, ``sd`` infinite and the interval unbounded.

    Parameters
    ----------
    noisy : NoisySum
    absent : array (d,), noisy numbers of missing cells
    absent_sigma : array (d,), their noise standard deviations, cells
    guarantee : GaussianGuarantee
    caveats : tuple of str
    """

    def __init__(
        self,
        noisy: NoisySum,
        absent: Array,
        absent_sigma: Array,
        guarantee: GaussianGuarantee,
        caveats: tuple[str, ...] = (),
    ) -> None:
        super().__init__("mean", noisy, guarantee, caveats)
        self._absent_sigma = absent_sigma
        self._present = float(noisy.count or 0) - absent
        self._present_sd = np.hypot(absent_sigma, noisy.count_sd())
        self._known = self._present > np.maximum(_STANDS_OUT * self._present_sd, 1.0)
        self._cells = np.where(self._known, self._present, 1.0)  # what is divided by
        mean = noisy.shift() / self._cells
        self._value = noisy.ellipsoid.center + np.where(self._known, mean, 0.0)

    def _remarks(self) -> tuple[str, ...]:
        lost = self._known.size - int(self._known.sum())
        if not lost:
            return ()
        return (
            f"{lost} of {self._known.size} coordinates have too few present cells for their noise: "
            "their value is the centre, and nothing is known of them",
        )

    @property
    def present(self) -> Array:
        """Noisy number of present cells of each coordinate, shape (d,); it may be negative."""
        return self._present

    @property
    def present_sd(self) -> Array:
        """Noise standard deviation of :attr:`present`, shape (d,), cells."""
        return self._present_sd

    @property
    def sd(self) -> Array:
        """Noise standard deviation of each coordinate, to first order, (d,), data units."""
        leverage = (self._value - self._noisy.ellipsoid.center) * self._present_sd
        sd = np.hypot(self._noisy.shift_sds(), leverage) / self._cells
        return np.where(self._known, sd, np.inf)

    @property
    def covariance(self) -> Array:
        """Noise covariance (first order), (d, d); infinite variance where nothing is known."""
        leverage = self._value - self._noisy.ellipsoid.center
        total = self._noisy.shift_covariance() + np.diag((leverage * self._absent_sigma) ** 2)
        total += np.outer(leverage, leverage) * self._noisy.count_sd() ** 2
        total = np.where(np.outer(self._known, self._known), total, 0.0)
        total /= np.outer(self._cells, self._cells)
        total[np.diag(~self._known)] = np.inf
        return np.asarray(total)

    def _interval(self, z: float) -> tuple[Array, Array]:
        """Fieller's, of each coordinate's mean of present cells."""
        sums = (self._noisy.shift(), self._noisy.shift_sds())
        low, high = fieller(*sums, self._present, self._present_sd, z)
        return self._noisy.ellipsoid.center + low, self._noisy.ellipsoid.center + high

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters of the release, as plain numbers and strings."""
        own = {"missing": "ignore", "absent_sigma": self._absent_sigma.tolist()}
        return super().parameters | own

    def table(self, level: float = 0.95) -> dict[str, Any]:
        """As :meth:`Release.table`, with ``present``, the noisy numbers of present cells."""
        return super().table(level) | {"present": self._present.tolist()}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values that JSON can hold; None for an infinite sd."""
        sd = [float(v) if math.isfinite(v) else None for v in self.sd]
        present = {"present": self._present.tolist(), "present_sd": self._present_sd.tolist()}
        return super().to_dict() | {"sd": sd} | present
