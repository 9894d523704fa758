"""Mutual information as utility: the information bottleneck, the privacy funnel, and between.

    minimise  I(X; Z) - b I(Y; Z)   over channels P(z | w)

is not convex. It is the lower convex envelope, at P(w), of phi(q) = -H(A q) + b H(B q) over laws q
of W, with A = P(x | w) and B = P(y | w). The descent ends at a local optimum; how far that can be
from the best is bounded by branch and bound on phi minus the optimum's supporting plane: on
a simplex the convex half lies above its tangent, the concave half above its chords.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .alternating import Array, Law, Result, constant_channel, descend, normalised
from .seeds import numpy_generator

__all__ = ["best_of", "proved_gap"]

_MOST_SIMPLICES = 50_000  # of branch and bound: a guard; the gap says what is missing
_MOST_HALVINGS = 150  # of the simplices: a guard, as above
_POLISH = 3000  # steps of descent from the best start: linear convergence, to rounding


def best_of(law: Law, restarts: int, seed: Any, tolerance: float = 1e-11) -> Result:
    """The lowest of several descents: from every w apart, and from random channels."""
    assert law.useful is not None
    rng = numpy_generator(seed)
    rows, letters = law.cost.shape
    starts = [constant_channel(law)]
    if letters >= rows:  # each w its own letter, and a little of every other
        apart = np.full(law.cost.shape, 1e-3)
        apart[np.arange(rows), np.arange(rows)] = 1.0
        starts.append(np.log(apart))
    starts += [np.log(rng.dirichlet(np.ones(letters), rows) + 1e-6) for _ in range(restarts)]
    found = [
        descend(law, normalised(start), multiplier=0.0, tolerance=tolerance) for start in starts
    ]
    best = min(found, key=lambda result: result.objective)
    # The objective is flat at the bottom, the channel is not: it is taken to the last digits.
    return descend(law, best.log_channel, multiplier=0.0, tolerance=1e-16, steps=_POLISH)


def proved_gap(law: Law, result: Result, target: float = 1e-10) -> float:
    """How far ``result`` can be from the global optimum, nats: a bound, however it was found.

    Parameters
    ----------
    target : float, nats
        Where the search may stop. It also stops at a number of simplices, then with what it
        has proved so far: with more than three or four letters w that is often loose.
    """
    plane = _supporting_plane(law, result)
    simplices = np.eye(len(law.observed))[None]
    for _ in range(_MOST_HALVINGS):
        bounds = _bounds(law, plane, simplices)
        left = bounds < -target
        if not left.any():
            return target
        if 2 * left.sum() > _MOST_SIMPLICES:
            break
        simplices = _halved(simplices[left])
    return float(-_bounds(law, plane, simplices).min())


def _given(law: Law) -> tuple[Array, Array]:
    assert law.useful is not None
    sensitive = np.eye(len(law.observed)) if law.sensitive is None else law.sensitive
    return sensitive, law.useful


def _entropy_terms(values: Array) -> Array:
    """sum v log v over the last axis."""
    terms: Array = (values * np.log(np.where(values > 0, values, 1.0))).sum(-1)
    return terms


def _supporting_plane(law: Law, result: Result) -> Array:
    """Values at the corners of a plane through the letters' phi: any plane would be valid."""
    sensitive, useful = _given(law)
    channel = np.exp(result.log_channel)
    masses = law.observed @ channel
    alive = masses > 1e-300
    channel = channel[:, alive]
    laws = law.observed[:, None] * channel / masses[alive]
    tiny = np.finfo(float).tiny
    slopes = sensitive.T @ np.log(np.maximum(sensitive @ laws, tiny))
    slopes -= law.weight * (useful.T @ np.log(np.maximum(useful @ laws, tiny)))
    plane: Array = (channel * slopes).sum(1)
    return plane


def _bounds(law: Law, plane: Array, simplices: Array) -> Array:
    """Lower bounds of phi - plane on each simplex, corners as rows."""
    sensitive, useful = _given(law)
    center = simplices.mean(1) @ sensitive.T
    slope = np.log(np.where(center > 0, center, 1.0))
    corners = simplices @ sensitive.T
    convex = (corners * (slope[:, None] + 1)).sum(-1) - center.sum(-1)[:, None]
    concave = -law.weight * _entropy_terms(simplices @ useful.T)
    bounds: Array = (convex + concave - simplices @ plane).min(1)
    return bounds


def _halved(simplices: Array) -> Array:
    """Each simplex cut in two at its longest edge."""
    count, corners, _ = simplices.shape
    apart = ((simplices[:, :, None] - simplices[:, None]) ** 2).sum(-1).reshape(count, -1)
    first, second = np.divmod(apart.argmax(1), corners)
    which = np.arange(count)
    middle = 0.5 * (simplices[which, first] + simplices[which, second])
    left, right = simplices.copy(), simplices.copy()
    left[which, first], right[which, second] = middle, middle
    return np.concatenate([left, right])
