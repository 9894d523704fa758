"""A quadratic form as a quadratic function of a standard normal vector: the way back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .parameters import Array

__all__ = ["NormalForm", "normal_form"]


class NormalForm(NamedTuple):
    """x^T A x + b^T x + c, of x ~ N(0, I)."""

    matrix: Array  #: A, diagonal, shape (n, n)
    linear: Array  #: b, shape (n,)
    constant: float  #: c


def normal_form(
    weights: Array, dof: Array, noncentrality: Array, normal_sd: float, offset: float
) -> NormalForm:
    """Coordinates for each degree of freedom, the first of a weight with all its noncentrality;
    one more for a normal term.

    w (x + delta)^2 = w x^2 + 2 w delta x + w delta^2, delta^2 = lambda.
    """
    odd = np.flatnonzero((np.floor(dof) != dof) | (dof < 1) | (dof >= 2.0**63))
    if odd.size:
        j = int(odd[0])
        raise ValueError(
            "only whole degrees of freedom, 1 or more, are those of normal variables; "
            f"dof[{j}] is {dof[j]:g}"
        )
    whole = dof.astype(np.int64)
    delta = np.zeros(int(whole.sum()))
    delta[np.cumsum(whole) - whole] = np.sqrt(noncentrality)
    diagonal = np.repeat(weights, whole)
    linear = 2 * diagonal * delta
    if normal_sd:
        diagonal, linear = np.append(diagonal, 0.0), np.append(linear, normal_sd)
    constant = offset + float(np.sum(weights * noncentrality))
    return NormalForm(np.diag(diagonal), linear, constant)
