"""The clip radius from a noisy histogram of distances: what is lost beyond it, against noise.

The rows' distances t from the present centre, in units of the predicted root mean square, are
counted in bins; the counts carry noise. Everything here is made of noisy counts.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["EDGES", "SURPRISE", "Choice", "Laws", "choose_radius", "first_edges"]

Array = NDArray[np.float64]

#: Upper edges of the distance bins, in units of the predicted root mean square: narrow where
#: the prediction should be right, wide where it may be wrong.
_NEAR = [0.5, 0.6, 0.7, 0.8, 0.86, 0.92, 1, 1.06, 1.12, 1.2, 1.3, 1.45, 1.65, 2, 2.6]
_FAR = [3.5, 5, 8, 16, 32, 64, *(64.0 * 4.0**k for k in range(1, 11))]
EDGES = np.array([0.015, 0.03, 0.06, 0.085, 0.12, 0.17, 0.25, 0.35, *_NEAR, *_FAR])
#: The first histogram knows nothing: bins of ratio sqrt(2) from the corner of the box inwards.
_FIRST_BINS = 30

#: Laws that are fitted to a histogram of distances: two-piece log-normal, of these widths.
_WIDTHS = np.array([0.03, 0.06, 0.1, 0.16, 0.25, 0.4, 0.6, 0.9])
_MODES, _LARGEST_MODE = 130, 64.0

#: What intervals allow for in a bin beyond the fitted law, at the mode and per squared width,
#: and the power of the distance that it falls off with.
_TAIL_SHARE, _TAIL_POWER, _LOW_MODE = 0.4, 1.5, 0.6
#: Radii that are compared.
_RADII = 280
#: Laws that are kept beside the best one: how many, and of what log-likelihood below its.
_LAWS_KEPT, _LEAST_EVIDENCE = 100, -8.0

#: A usual distance this many times the predicted one means that the centre was wrong. It is
#: believed where its law fits better by this much, in squared noise deviations.
SURPRISE, _EVIDENCE = 1.3, 6.0

#: How far a bin's true share is expected to lie from the fitted law's, at the mode, per squared
#: width of the law; it falls off with the square of the distance, as for tails that hardly have
#: a mean.
_MISFIT = 0.25
#: What a bin says beyond that and its noise counts in full where it exceeds this many deviations.
_DOUBT = 3.0
#: Rows beyond some distance, of any of some thirty, are believed from so many deviations on.
_STANDS_OUT = 4.0


def first_edges(corner: float) -> Array:
    """Upper edges of the bins where nothing is known but the distance of the corner."""
    return np.asarray(corner * 2.0 ** (np.arange(1 - _FIRST_BINS, 1) / 2) * (1 + 1e-9))


class Laws(NamedTuple):
    """Laws that the noise does not tell apart, with their probabilities."""

    shapes: Array  #: (log mode, left, right) of each
    weights: Array

    def loss(self, radius: Array) -> Array:
        """E(t - C)+ for each C."""
        return self.weights @ _losses(self.shapes, radius)

    def beyond(self, distance: Array) -> Array:
        """P(t > distance)."""
        mode, left, right = (self.shapes[:, k : k + 1] for k in range(3))
        z = np.log(distance) - mode
        upper = 2 * right / (left + right) * scipy.special.ndtr(-z / right)
        lower = 1 - 2 * left / (left + right) * scipy.special.ndtr(z / left)
        return self.weights @ np.where(z < 0, lower, upper)


class Choice(NamedTuple):
    """A clip radius, and what is known of the rows beyond it."""

    radius: float
    usual: float  #: the mode of the distances
    expected: float  #: E(t - C)+
    most: float  #: the same for laws with tails as heavy as any,
    sd: float  #: and what it may be off by
    laws: Laws


def choose_radius(
    edges: Array, share: Array, sd: float, ratio: float, *, coarse: bool, reach: float = np.inf
) -> Choice:
    """C that minimises (ratio C)^2 + E(loss^2), the usual distance t (the mode), and the loss.

    Noise, and clip losses that all point the same way (the worst case): loss = E(t - C)+ for the
    law of t behind the noisy shares. Two-piece log-normal laws are fitted, each with the
    probability that the noise leaves it; the shares of the bins
    above the mode may differ from the best one by tau (:data:`_MISFIT`), and each is moved from the
    law towards what was counted by tau^2/(tau^2 + sd^2), the best linear prediction. What stays
    uncertain, tau^2 sd^2/(tau^2 + sd^2), counts as loss: where the tail cannot be seen, the radius
    is larger. Where more rows than the law has stand out beyond some distance, the loss is no less
    than was counted up to there. With coarse bins everything counts at its bin's upper edge,
    because no law can tell where inside it lies. No row lies beyond ``reach``.
    """
    low = np.concatenate([[0.0], edges[:-1]])
    possible = low < reach
    upper = np.where(possible, np.minimum(edges, reach), low)
    radius = np.geomspace(edges[0], min(float(edges[-1]), reach), _RADII)
    fitted = _fit_law(edges, share, sd, coarse=coarse)
    mode, over = fitted.mode, np.clip(upper - radius[:, None], 0, None)
    direct, tau2 = over, np.zeros(edges.size)
    if coarse:
        losses = fitted.laws @ over.T
    else:
        width = np.maximum(upper - low, 1e-9 * edges)
        over = (over**2 - np.clip(low - radius[:, None], 0, None) ** 2) / (2 * width)
        over = np.where(possible, over, 0.0)
        losses = _losses(fitted.shapes, radius)
        width2 = fitted.width**2
        tau2 = np.where(low < mode, 0, (_MISFIT * width2) ** 2 / np.maximum(low / mode, 1) ** 4)
    beyond, believed = share - fitted.law, tau2 / (tau2 + sd**2)
    doubt = np.where(low < _LARGEST_MODE, _DOUBT, _STANDS_OUT)
    surprise = np.maximum(np.abs(beyond) - doubt * np.sqrt(tau2 + sd**2), 0)
    moved = believed * beyond + (1 - believed) * np.sign(beyond) * surprise
    loss = fitted.weights @ losses
    scatter = fitted.weights @ (losses - loss) ** 2
    likeliest = losses[0]
    expected = np.maximum(likeliest + over @ moved, likeliest / 2)
    variance = over**2 @ (believed * sd**2)
    heavy = _heavy(low, fitted) if not coarse else np.ones(edges.size)
    trusted = heavy**2 / (heavy**2 + sd**2)
    most = np.maximum(expected, loss + direct @ (trusted * np.where(low >= mode, beyond, 0)))
    wide = direct**2 @ (trusted * sd**2) + scatter
    counted = _stands_out(np.where(possible & (low >= mode), beyond, 0.0), possible, sd)
    if counted:
        expected = np.maximum(expected, direct[:, :counted] @ share[:counted])
        most = np.maximum(most, expected)
        variance += sd**2 * np.sum(direct[:, :counted] ** 2, axis=1)
        wide += sd**2 * np.sum(direct[:, :counted] ** 2, axis=1)
    best = np.argmin((ratio * radius) ** 2 + expected**2 + variance)
    chosen, usual, likely = float(radius[best]), float(mode), float(expected[best])
    doubtful = float(most[best]), math.sqrt(wide[best])
    return Choice(chosen, usual, likely, *doubtful, Laws(fitted.shapes, fitted.weights))


def _heavy(low: Array, fitted: _Fit) -> Array:
    """Shares of the bins that a law of heavy tails may have beyond the fitted one's.

    A mode far below the predicted distance is part of a wide law.
    """
    width2 = fitted.width**2 + max(0.0, math.log(_LOW_MODE / fitted.mode)) ** 2
    start = max(fitted.mode, _LOW_MODE)
    return _TAIL_SHARE * min(width2, 1.0) * np.maximum(low / start, 1) ** -_TAIL_POWER


def _stands_out(beyond: Array, possible: NDArray[np.bool_], sd: float) -> int:
    """Up to which bin rows are counted, where more of them than the law has lie beyond some
    distance than their noise explains; else 0."""
    excess = np.cumsum(beyond[::-1])[::-1]
    noise = sd * np.sqrt(np.maximum(np.cumsum((possible & (beyond != 0))[::-1])[::-1], 1))
    seen = np.flatnonzero(excess > _STANDS_OUT * noise)
    return int(min(seen[-1] + 2, np.count_nonzero(possible))) if seen.size else 0


class _Fit(NamedTuple):
    """The best law, and those that the noise does not tell from it with their probabilities."""

    law: Array
    mode: float
    width: float
    laws: Array
    shapes: Array  # (log mode, left, right) of each
    weights: Array


def _fit_law(edges: Array, share: Array, sd: float, *, coarse: bool) -> _Fit:
    """Two-piece log-normal laws near to the noisy shares.

    Least squares in three parameters (mode, widths to the left and to the right): the noise
    averages out where single bins drown in it. A mode beyond :data:`SURPRISE` must
    fit significantly better than any before it, but where nothing was predicted (``coarse``).
    """
    unit = float(edges[-1])  # laws in units of the last edge are made once
    laws, grid, energy = _two_piece(tuple(edges / unit), 1.0 if coarse else _LARGEST_MODE / unit)
    grid = grid + np.array([math.log(unit), 0.0, 0.0])
    fit = laws @ share - energy / 2
    best = int(np.argmax(fit))
    if not coarse:
        near = np.where(grid[:, 0] <= math.log(SURPRISE), fit, -np.inf)
        expected = int(np.argmax(near))
        if fit[best] - fit[expected] < _EVIDENCE * sd**2:
            best, fit = expected, near
    evidence = (fit - fit[best]) / sd**2
    likely = np.flatnonzero(evidence > _LEAST_EVIDENCE)
    kept = likely[np.argsort(-evidence[likely])[:_LAWS_KEPT]]
    weights = np.exp(evidence[kept])
    mode, _, right = grid[best]
    shares = weights / np.sum(weights)
    return _Fit(laws[best], math.exp(mode), float(right), laws[kept], grid[kept], shares)


def _losses(shapes: Array, radius: Array) -> Array:
    """E(t - C)+ of two-piece log-normal laws, for each law and each C."""
    mode, left, right = (shapes[:, k : k + 1] for k in range(3))
    z = np.log(radius) - mode
    above = 2 * right / (left + right)
    up, down = np.maximum(z, 0), np.minimum(z, 0)
    tail = np.exp(mode + right**2 / 2) * scipy.special.ndtr(
        right - up / right
    ) - radius * scipy.special.ndtr(-up / right)
    body = np.exp(mode + left**2 / 2) * (
        scipy.special.ndtr(-left) - scipy.special.ndtr(down / left - left)
    )
    body -= radius * (0.5 - scipy.special.ndtr(down / left))
    return np.asarray(above * tail + (2 - above) * body)


@lru_cache(maxsize=8)
def _two_piece(bins: tuple[float, ...], largest: float) -> tuple[Array, Array, Array]:
    """Bin probabilities of every candidate law, (log mode, left, right) of each, and the sums of
    squares of the probabilities."""
    edges = np.array(bins)
    modes = np.linspace(math.log(edges[0] / 2), math.log(largest), _MODES)
    grid = np.array([(m, a, b) for m in modes for a in _WIDTHS for b in _WIDTHS if b >= a])
    mode, left, right = grid[:, :1], grid[:, 1:2], grid[:, 2:]
    z = np.log(edges[:-1]) - mode
    lower = 2 * left / (left + right) * scipy.special.ndtr(z / left)
    upper = 1 - 2 * right / (left + right) * scipy.special.ndtr(-z / right)
    laws = np.diff(np.where(z < 0, lower, upper), axis=1, prepend=0.0, append=1.0)
    return laws, grid, np.sum(laws**2, axis=1)
