"""The clip radius from a noisy histogram of distances: what is lost beyond it, against noise.

The rows' distances t from the present centre, in units of the predicted root mean square, are
counted in bins; the counts carry noise. Everything here is made of noisy counts.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

__all__ = ["EDGES", "SURPRISE", "choose_radius", "first_edges"]

Array = NDArray[np.float64]

#: Upper edges of the distance bins, in units of the predicted root mean square: narrow where
#: the prediction should be right, wide where it may be wrong.
_NEAR = [0.5, 0.6, 0.7, 0.8, 0.86, 0.92, 1, 1.06, 1.12, 1.2, 1.3, 1.45, 1.65, 2, 2.6]
_FAR = [3.5, 5, 8, 16, 32, 64]
EDGES = np.array([0.015, 0.03, 0.06, 0.085, 0.12, 0.17, 0.25, 0.35, *_NEAR, *_FAR])
#: The first histogram knows nothing: bins of ratio sqrt(2) from the corner of the box inwards.
_FIRST_BINS = 30

#: Laws that are fitted to a histogram of distances: two-piece log-normal, of these widths.
_WIDTHS = np.array([0.03, 0.06, 0.1, 0.16, 0.25, 0.4, 0.6, 0.9])
_MODES = 130

#: Nodes and weights for an upper half normal (midpoints, to z = 6).
_TAIL_Z = (np.arange(120) + 0.5) / 20
_TAIL_WEIGHT = np.exp(-(_TAIL_Z**2) / 2) / math.sqrt(2 * math.pi) / 20

#: A usual distance this many times the predicted one means that the centre was wrong. It is
#: believed where its law fits better by this much, in squared noise deviations.
SURPRISE, _EVIDENCE = 1.3, 6.0

#: How far a bin's true share is expected to lie from the fitted law's, at the mode, per squared
#: width of the law; it falls off with the square of the distance, as for tails that hardly have
#: a mean.
_MISFIT = 0.25
#: What a bin says beyond that and its noise counts in full where it exceeds this many deviations.
_DOUBT = 3.0


def first_edges(corner: float) -> Array:
    """Upper edges of the bins where nothing is known but the distance of the corner."""
    return np.asarray(corner * 2.0 ** (np.arange(1 - _FIRST_BINS, 1) / 2) * (1 + 1e-9))


def choose_radius(
    edges: Array, share: Array, sd: float, ratio: float, *, coarse: bool
) -> tuple[float, float, float]:
    """C that minimises (ratio C)^2 + E(loss^2), the usual distance t (the mode), and the loss.

    Noise, and clip losses that all point the same way (the worst case): loss = E(t - C)+ for the
    law of t behind the noisy shares. A two-piece log-normal law is fitted; the shares of the bins
    above its mode may differ from it by tau (:data:`_MISFIT`), and each is moved from the law
    towards what was counted by tau^2/(tau^2 + sd^2), the best linear prediction. What stays
    uncertain, tau^2 sd^2/(tau^2 + sd^2), counts as loss: where the tail cannot be seen, the radius
    is larger. With coarse bins everything counts at its bin's upper edge, because no law can
    tell where inside it lies.
    """
    radius = np.geomspace(edges[0], edges[-1], 240)
    law, (mode, width), tail = _fit_law(edges, share, None if coarse else sd)
    low = np.concatenate([[0.0], edges[:-1]])
    over = np.clip(edges - radius[:, None], 0, None)
    tau2 = np.zeros(edges.size)
    if coarse:
        loss = over @ law
    else:
        over = (over**2 - np.clip(low - radius[:, None], 0, None) ** 2) / (2 * (edges - low))
        loss = np.clip(tail[0] - radius[:, None], 0, None) @ tail[1]
        tau2 = np.where(low < mode, 0, (_MISFIT * width**2) ** 2 / np.maximum(low / mode, 1) ** 4)
    beyond, believed = share - law, tau2 / (tau2 + sd**2)
    surprise = np.maximum(np.abs(beyond) - _DOUBT * np.sqrt(tau2 + sd**2), 0)
    moved = believed * beyond + (1 - believed) * np.sign(beyond) * surprise
    expected, variance = np.maximum(loss + over @ moved, loss / 2), over**2 @ (believed * sd**2)
    square = expected**2 + variance
    best = np.argmin((ratio * radius) ** 2 + square)
    return float(radius[best]), mode, math.sqrt(square[best])


def _fit_law(
    edges: Array, share: Array, sd: float | None
) -> tuple[Array, tuple[float, float], tuple[Array, Array]]:
    """The two-piece log-normal law nearest to the noisy shares: its shares, its mode and
    width to the right, and nodes and weights of its upper piece.

    Least squares in three parameters (mode, widths to the left and to the right): the noise
    averages out where single bins drown in it. Given ``sd``, a mode beyond :data:`SURPRISE` must
    fit significantly better than any before it.
    """
    laws, grid = _two_piece(tuple(edges))
    fit = laws @ share - np.sum(laws**2, axis=1) / 2
    best = int(np.argmax(fit))
    if sd is not None:
        expected = int(np.argmax(np.where(grid[:, 0] <= math.log(SURPRISE), fit, -np.inf)))
        best = expected if fit[best] - fit[expected] < _EVIDENCE * sd**2 else best
    mode, left, right = grid[best]
    nodes = np.exp(mode + right * _TAIL_Z)
    weights = 2 * right / (left + right) * _TAIL_WEIGHT
    return laws[best], (math.exp(mode), float(right)), (nodes, weights)


@lru_cache(maxsize=8)
def _two_piece(bins: tuple[float, ...]) -> tuple[Array, Array]:
    """Bin probabilities of every candidate law, and (log mode, left, right) of each."""
    edges = np.array(bins)
    modes = np.linspace(math.log(edges[0] / 2), math.log(edges[-1]), _MODES)
    grid = np.array([(m, a, b) for m in modes for a in _WIDTHS for b in _WIDTHS if b >= a])
    mode, left, right = grid[:, :1], grid[:, 1:2], grid[:, 2:]
    z = np.log(edges[:-1]) - mode
    lower = 2 * left / (left + right) * ndtr(z / left)
    upper = 1 - 2 * right / (left + right) * ndtr(-z / right)
    return np.diff(np.where(z < 0, lower, upper), axis=1, prepend=0.0, append=1.0), grid
