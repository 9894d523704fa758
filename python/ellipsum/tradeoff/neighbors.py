"""Mutual information of continuous attributes from samples, by nearest neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from scipy.special import digamma

from .. import _validate

__all__ = ["ksg_information"]

Array = NDArray[np.float64]


def ksg_information(x: ArrayLike, z: ArrayLike, neighbors: int = 3) -> float:
    """Kraskov, Stögbauer & Grassberger's first estimate of I(X; Z), nats.

    An estimate, no bound. It sees dependence of any form, where a Gaussian plug-in sees that of a
    Gaussian law alone; in few dimensions only.

    Parameters
    ----------
    x : array (n,) or (n, k); z : array (n,) or (n, m)
        Columns of a continuous law; each is standardised.
    neighbors : int

    Source: Kraskov, Stögbauer & Grassberger 2004, (8); distances in the maximum norm.
    """
    left, right = _standard("x", x), _standard("z", z)
    count = _validate.whole("neighbors", neighbors, least=1)
    if len(left) != len(right) or len(left) <= count:
        raise ValueError(f"x and z must have the same rows, more than {count}")
    both = np.hstack([left, right])
    reach = cKDTree(both).query(both, count + 1, p=np.inf)[0][:, -1]
    inside = sum(digamma(_closer(side, reach) + 1).mean() for side in (left, right))
    return float(digamma(count) + digamma(len(both)) - inside)


def _closer(points: Array, reach: Array) -> NDArray[np.int64]:
    """How many other points are strictly closer than the reach of each."""
    if points.shape[1] == 1:
        line = points[:, 0]
        order = np.sort(line)
        up = np.searchsorted(order, line + reach, side="left")
        down = np.searchsorted(order, line - reach, side="right")
        return np.asarray(np.maximum(up - down - 1, 0))
    inside = cKDTree(points).query_ball_point(
        points, np.nextafter(reach, 0), p=np.inf, return_length=True
    )
    return np.asarray(inside) - 1


def _standard(name: str, value: ArrayLike) -> Array:
    rows = np.asarray(value, dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ValueError(f"{name} must be a finite matrix (rows, columns)")
    return (rows - rows.mean(0)) / np.where(rows.std(0) > 0, rows.std(0), 1.0)
