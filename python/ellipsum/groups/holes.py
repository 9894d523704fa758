"""Holes of each group and coordinate, and the noise of their numbers (claim groups-7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import noise
from ..ellipsoid import Ellipsoid
from ..guarantee import Neighbors, rounded_up
from ..present import absence_weights

__all__ = ["IGNORED_WHERE", "absent_levels", "count_holes", "noisy_holes"]

Ints = NDArray[np.int64]

#: What is said where a release of groups does not count holes apart.
IGNORED_WHERE = 'missing="ignore" goes with a mean of groups: use PrivateGroupMean'


def count_holes(absent: Ints, rows: NDArray[Any], index: Ints) -> None:
    """Add the holes of rows (n, d) to those of their groups in ``absent`` (groups, d), in place.

    The rows must be a copy that nobody else writes to: the kernel reads it after this.
    """
    holes = ~np.isfinite(rows)
    here = np.flatnonzero(holes.any(1) & (index >= 0))
    if not len(here):
        return
    here = here[np.argsort(index[here], kind="stable")]
    group = index[here]
    starts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    absent[group[starts]] += np.add.reduceat(holes[here], starts, axis=0, dtype=np.int64)


def absent_levels(region: Ellipsoid, sum_sigma: float) -> NDArray[np.float64]:
    """Noise of a group's numbers of holes, cells, beside a sum of that noise (claim groups-7).

    The weights are those of a row that is there or not, for ``replace`` too: a user may leave a
    group, and the holes of the row that is left behind are paid by its norm.
    """
    weights = absence_weights(region, Neighbors.ADD_REMOVE)
    return np.array([rounded_up(sum_sigma / weight) for weight in weights])


def noisy_holes(
    absent: Ints, levels: Sequence[NDArray[np.float64]], key: bytes
) -> NDArray[np.float64]:
    """Numbers of holes (groups, d) with noise; levels of each group, or one for all."""
    if not absent.size:
        return np.empty(absent.shape)
    sigma = np.broadcast_to(np.array(levels), absent.shape).ravel()
    return noise.noisy_counts(absent.ravel(), sigma, key=key).reshape(absent.shape)
