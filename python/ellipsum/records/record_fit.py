"""What a record release may be fitted on in place of rows: a covariance, public or private."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..column_names import Columns, named_vectors
from ..estimates import Estimate
from ..guarantee import GaussianGuarantee

__all__ = ["KnownLaw", "known_law"]

Array = NDArray[np.float64]


class KnownLaw(NamedTuple):
    """Center and covariance, the names of their coordinates, and what the estimate has spent."""

    center: Any
    covariance: Any
    mu: float
    caveats: tuple[str, ...]
    names: tuple[str, ...] | None


def known_law(covariance: ArrayLike | Estimate, center: ArrayLike) -> KnownLaw:
    """A covariance and its center, by name where both have names.

    Raises
    ------
    ValueError
        They have other names, or the estimate is none of a Gaussian mechanism.
    """
    if not isinstance(covariance, Estimate):
        names, known = named_vectors(covariance=covariance, center=center)
        return KnownLaw(known["center"], known["covariance"], 0.0, (), names)
    names, known = named_vectors(center=center)
    columns, where = Columns(covariance.columns, "the estimate"), known["center"]
    if (order := columns.order_of(names, "center")) is not None:
        where = where[order]
    matrix = _floored(covariance.value, covariance.sd)
    return KnownLaw(where, matrix, _mu_of(covariance), covariance.caveats, columns.names)


def _mu_of(estimate: Estimate) -> float:
    """mu of a private estimate when one record takes another value."""
    guarantee = estimate.guarantee
    if estimate.sd is None or not isinstance(guarantee, GaussianGuarantee):
        raise ValueError('covariance must come from estimate_covariance(method="gaussian")')
    return guarantee.mu * (1 if guarantee.neighbors.count_is_public else 2)  # one less, one more


def _floored(matrix: Array, sd: Array | None) -> Array:
    """A noisy covariance with each eigenvalue at least a hundredth of the noise in it."""
    value, basis = np.linalg.eigh(matrix)
    floor = max(0.0 if sd is None else 0.01 * float(np.mean(sd)), 1e-9 * value[-1])
    return np.asarray((basis * np.maximum(value, floor)) @ basis.T)
