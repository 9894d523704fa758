"""Mutual information from samples, by nearest neighbours: of continuous values, tied ones, or both.

Each estimate is psi(n) plus a mean of psi(near) - psi(near in one) - psi(near in the other), where
near counts the records that are closer than the k-th neighbour, itself among them: k of them if no
two distances are the same. Where they are tied it is as many as there are, and where the k-th
neighbour is at distance 0, all that are there: for a finite table this is the plug-in, with psi
in place of the logarithm, which takes most of its bias.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from scipy.special import digamma

from .. import _validate
from .released import sized

__all__ = ["knn_information", "ksg_information"]

Array = NDArray[np.float64]


def knn_information(values: ArrayLike, labels: ArrayLike, neighbors: int = 3) -> float:
    """Ross's estimate of I(label; value), nats: values (n,) or (n, d) of few dimensions, any unit.

    An estimate, no bound. Values may be tied, some or all of them. Records of labels with
    ``neighbors`` records or fewer are left out; 0 where none is left.

    Source: Ross 2014; distances in the maximum norm. Ties as Gao, Kannan, Oh & Viswanath 2017
    count them at distance 0, and at any other.
    """
    count = _validate.whole("neighbors", neighbors, least=1)
    points = _columns("values", values)
    _, which = _validate.classes("labels", labels)
    if len(which) != len(points):
        raise ValueError(f"labels must have shape ({len(points)},), got {which.shape}")
    if not len(points):
        return 0.0
    points = points / np.where(points.std(0) > 0, points.std(0), 1.0)
    kept = np.bincount(which)[which] > count
    points, which = points[kept], which[kept]
    if not len(points):
        return 0.0
    reach, near = np.empty(len(points)), np.empty(len(points))
    for label in np.unique(which):
        same = which == label
        reach[same], near[same] = _reach(points[same], count)
    value = digamma(len(points)) + _mean_digamma(near, count)
    value -= digamma(np.bincount(which)[which]).mean() + digamma(_within(points, reach)).mean()
    return max(0.0, float(value))


def ksg_information(x: ArrayLike, z: ArrayLike, neighbors: int = 3) -> float:
    """Kraskov, Stögbauer & Grassberger's first estimate of I(X; Z), nats.

    An estimate, no bound. It sees dependence of any form, where a Gaussian plug-in sees that of a
    Gaussian law alone; in few dimensions only. Values may be tied, some or all of them.

    Parameters
    ----------
    x : array (n,) or (n, k); z : array (n,) or (n, m)
        Columns, of any size; each is standardised.
    neighbors : int

    Source: Kraskov, Stögbauer & Grassberger 2004, (8); distances in the maximum norm. Ties as Gao,
    Kannan, Oh & Viswanath 2017 count them at distance 0, and at any other.
    """
    left, right = _columns("x", x), _columns("z", z)
    count = _validate.whole("neighbors", neighbors, least=1)
    if len(left) != len(right) or len(left) <= count:
        raise ValueError(f"x and z must have the same rows, more than {count}")
    left, right = _standard(left), _standard(right)
    reach, near = _reach(np.hstack([left, right]), count)
    inside = sum(digamma(_within(side, reach)).mean() for side in (left, right))
    return float(_mean_digamma(near, count) + digamma(len(left)) - inside)


def _reach(points: Array, count: int) -> tuple[Array, NDArray[np.int64]]:
    """The largest distance below that of each point's neighbour of this number, or 0, and how many
    points are within it."""
    tree = cKDTree(points)
    reach = np.nextafter(tree.query(points, count + 1, p=np.inf)[0][:, -1], 0)
    near = tree.query_ball_point(points, reach, p=np.inf, return_length=True)
    return reach, np.asarray(near)


def _mean_digamma(near: NDArray[np.float64] | NDArray[np.int64], usual: int) -> float:
    """Of what is mostly ``usual``; if it is so everywhere, without the rounding of a mean."""
    return float(digamma(usual) + (digamma(near) - digamma(usual)).mean())


def _within(points: Array, reach: Array) -> NDArray[np.int64]:
    """How many points are within the reach of each, itself among them."""
    if points.shape[1] > 1:
        tree = cKDTree(points)
        return np.asarray(tree.query_ball_point(points, reach, p=np.inf, return_length=True))
    line = points[:, 0]
    values, counts = np.unique(line, return_counts=True)
    below = np.concatenate([[0], np.cumsum(counts)])
    first = np.searchsorted(values, line - reach, side="left")
    last = np.searchsorted(values, line + reach, side="right") - 1
    # Both ends are rounded, differences are not: the value next to each is in or out by its own.
    first -= line - values[np.maximum(first - 1, 0)] <= reach
    first = np.maximum(first, 0)
    first += line - values[first] > reach
    last += values[np.minimum(last + 1, len(values) - 1)] - line <= reach
    last = np.minimum(last, len(values) - 1)
    last -= values[last] - line > reach
    return np.asarray(below[last + 1] - below[first])


def _columns(name: str, value: ArrayLike) -> Array:
    """Finite numbers (rows, columns), of a size whose squares are numbers."""
    rows = _validate.numbers(name, value)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or not rows.shape[1] or not np.isfinite(rows).all():
        raise ValueError(f"{name} must be a finite matrix (rows, columns), of one column or more")
    return sized(rows[None])[0] if len(rows) else rows


def _standard(rows: Array) -> Array:
    return np.asarray((rows - rows.mean(0)) / np.where(rows.std(0) > 0, rows.std(0), 1.0))
