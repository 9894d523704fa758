"""A clipped record as a unit vector whose last coordinate tells how long the record was.

A record inside the clip ball is lifted to the sphere: its last coordinate is what its norm lacks of
1. One beyond the ball would be its direction alone, the last coordinate 0. Lower down the sphere
there is room: from a public length on it is turned by an angle that grows with the logarithm of its
length, so that the last coordinate, now negative, tells it. The direction is told a little less
(by the angle's cosine). PrivUnitG releases any unit vector under the same guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sphere", "spheres"]

Array = NDArray[np.float64]

_MOST_ANGLE = 1.2  # its cosine, 0.36, is what is left of the direction of a record however long
_SLOPES = (0.15, 0.3, 0.5)  # radians for each factor e of length
_FIRST = 0.25  # quantile of the public rows' lengths from which on lengths are told


@dataclass(frozen=True)
class Sphere:
    """The map; ``slope`` (0: no length is told) and ``start`` (clip radii, >= 1) are public."""

    slope: float = 0.0
    start: float = 1.0

    def points(self, y: Array, length: Array | None) -> Array:
        """Unit vectors (n, k + 1), to rounding.

        Parameters
        ----------
        y : array (n, k), records clipped to the unit ball
        length : array (n,), norms before the clip, in clip radii, perhaps infinite; None where
            ``slope`` is 0
        """
        rest = np.sqrt(np.maximum(1 - np.einsum("ij,ij->i", y, y), 0.0))
        if length is None or self.slope == 0:
            return np.concatenate([y, rest[:, None]], axis=1)
        beyond = np.log(np.maximum(length / self.start, 1.0))
        angle = np.minimum(self.slope * beyond, _MOST_ANGLE)
        last = np.where(angle > 0, -np.sin(angle), rest)
        return np.concatenate([y * np.cos(angle)[:, None], last[:, None]], axis=1)


def spheres(length: Array) -> tuple[Sphere, ...]:
    """The maps to choose from for public rows of these lengths (clip radii)."""
    start = max(1.0, float(np.quantile(length, _FIRST)))
    return (Sphere(), *(Sphere(slope, start) for slope in _SLOPES))
