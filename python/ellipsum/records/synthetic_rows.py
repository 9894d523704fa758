"""Rows drawn from a private covariance: what a projection gives, with a smaller error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..estimates import Estimate
from ..release import Release
from .moment_fits import semidefinite
from .named_rows import matrix_and_center

__all__ = ["synthetic_rows"]

Array = NDArray[np.float64]


def synthetic_rows(
    estimate: Estimate | ArrayLike,
    m: int,
    *,
    center: ArrayLike | None = None,
    exact: bool = False,
    seed: int | None = None,
) -> Release | Array:
    """m rows of N(center, S), S the estimate's nearest positive semidefinite matrix.

    **Guarantees.** Post-processing: the guarantee is the estimate's, which the release carries. The
    seed gives nothing away.

    Parameters
    ----------
    estimate : Estimate of :func:`ellipsum.estimate_covariance`, or a public matrix (d, d)
    m : int
    center : array (d,), or a mapping by the estimate's columns, data units, optional
        What the covariance was taken about, or a private mean of the same people (whose budget
        then is in none of this); 0 by default.
    exact : bool
        Whether the rows' second moments about the center are to be S itself, not near it: the
        rows are a random rotation of it, no independent draws. Needs m >= d.
    seed : int, optional; for repetition

    Returns
    -------
    Release of kind ``"synthetic rows"`` with ``value`` (m, d); an array (m, d) for a matrix.

    Raises
    ------
    ValueError
        For an estimate of no matrix, ``exact`` with m < d, or a center of other columns.
    """
    value, given, names = matrix_and_center("estimate", estimate, center)
    matrix = semidefinite(_validate.square("estimate", value))
    d, m = len(matrix), _validate.whole("m", m, least=1)
    if exact and m < d:
        raise ValueError(f"exact rows need m of at least d = {d}, got {m}")
    where = np.zeros(d) if given is None else _validate.vector("center", given, d=d)
    normal: Any = np.random.default_rng(seed).normal(size=(m, d))
    if exact:  # orthonormal columns times sqrt(m)
        normal = np.linalg.qr(normal)[0] * np.sqrt(m)
    size, basis = np.linalg.eigh(matrix)
    rows = np.asarray(where + (normal * np.sqrt(np.maximum(size, 0.0))) @ basis.T)
    if not isinstance(estimate, Release):
        return rows
    made = Release("synthetic rows", rows, estimate.guarantee, estimate.caveats)
    return made.named(names, estimate.units).drawn_from(estimate.entry)
