"""What a record release may be fitted on in place of rows: a covariance, public or private."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..estimates import Estimate
from ..guarantee import GaussianGuarantee
from ..release import Release
from ..rows.partitioned import is_far
from .named_rows import matrix_and_center

__all__ = ["KnownLaw", "known_law", "refuse_far_fit"]

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
    TypeError
        It is a release of something else: what that has spent would be lost.
    ValueError
        They have other names, or the estimate is none of a Gaussian mechanism.
    """
    if isinstance(covariance, Release) and not isinstance(covariance, Estimate):
        raise TypeError("covariance must be a public matrix, or come from estimate_covariance")
    matrix, where, names = matrix_and_center("covariance", covariance, center)
    if not isinstance(covariance, Estimate):
        return KnownLaw(where, matrix, 0.0, (), names)
    mu, caveats = _mu_of(covariance), covariance.caveats
    return KnownLaw(where, _floored(matrix, covariance.sd), mu, caveats, names)


def refuse_far_fit(rows: Any) -> None:
    """Refuse rows that are in an engine: a fit reads public rows here.

    Raises
    ------
    TypeError
        For these, with what can be given instead.
    """
    if is_far(rows):
        raise TypeError(
            "rows are in an engine, and fit reads public rows here: collect a sample of them; of "
            "private rows give covariance=estimate_covariance(rows, ...) and its center"
        )


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
