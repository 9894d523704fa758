"""Derivatives of the tails in every parameter: one pass over the nodes of the density.

The upper tail is (1/2 pi i) int e^{K(t) - tq} dt/t, so its derivative in a parameter has dK/t under
the integral, which has no pole at 0: a functional of the density's contour.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .parameters import Array, Value

__all__ = ["Gradient", "tail_gradient"]

Nodes = NDArray[np.complex128]

#: Weights whose gradients are computed at once: temporaries stay in cache.
_BLOCK = 256


class Gradient(NamedTuple):
    """Derivatives of a probability in each parameter of a quadratic form, or of many."""

    weights: Array  #: shape (..., d), per unit of a weight
    dof: Array  #: shape (..., d)
    noncentrality: Array  #: shape (..., d)
    normal_sd: Value  #: per unit of Q; 0 where normal_sd is 0
    offset: Value  #: per unit of Q
    q: Value  #: per unit of Q

    def negative(self) -> Gradient:
        """Of the other tail."""
        known = (-self.weights, -self.dof, -self.noncentrality)
        return Gradient(*known, -self.normal_sd, -self.offset, -self.q)


def tail_gradient(
    weights: Array,
    dof: Array,
    noncentrality: Array,
    normal_sd: float,
    nodes: tuple[Nodes, Nodes],
) -> Gradient:
    """Derivatives of the upper tail.

    ====================  =================================================
    parameter             dK/t, with a = 1/(1 - 2wt)
    ====================  =================================================
    weight                k a + lambda a^2
    degrees of freedom    -log(1 - 2wt)/(2t), which is w at t = 0
    noncentrality         w a
    normal_sd             s t
    offset, and -q        1: the density
    ====================  =================================================

    Parameters
    ----------
    weights, dof, noncentrality : arrays (d,)
    normal_sd : float
    nodes : t and weights of the density's integral at q, arrays (n,)

    Returns
    -------
    Gradient
    """
    t, weight = nodes
    parts = np.empty((3, weights.size))
    for j in range(0, weights.size, _BLOCK):
        some = slice(j, j + _BLOCK)
        w, k, nc = weights[some, None], dof[some, None], noncentrality[some, None]
        z = -2 * w * t
        a = 1 / (1 + z)
        slope = np.where(t == 0, w, -_log1p(z) / np.where(t == 0, 2, 2 * t))
        for part, factor in zip(parts, (a * (k + nc * a), slope, w * a), strict=True):
            part[some] = np.sum((weight * factor).real, axis=1)
    density = float(np.sum(weight.real))
    normal = normal_sd * float(np.sum((weight * t).real))
    return Gradient(parts[0], parts[1], parts[2], normal, density, -density)


def _log1p(z: Nodes) -> Nodes:
    """log(1 + z), relatively right near 0, where NumPy's is not."""
    x, y = z.real, z.imag
    return np.asarray(0.5 * np.log1p(x * (2 + x) + y * y) + 1j * np.arctan2(y, 1 + x))
