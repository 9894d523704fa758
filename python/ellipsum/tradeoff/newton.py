"""Primal-dual Newton methods that finish what alternating minimisation leaves slow.

Alternation converges at a sublinear rate where a letter of the optimum is just at the point of
dying. Newton's does not care. The Hessian of I(X; Z) in P(z | w) is a block for each letter z,

    P(x, w) diag(1/P(x, z)) P(x, w') - P(w) P(w') / P(z),

so that a step costs |Z| factorisations of |W| rows, joined by the |W| sums to one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["channel_by_newton", "output_law"]

Array = NDArray[np.float64]

_STEPS = 150  # a guard; the certified gap says what is missing
_TO_BOUNDARY = 0.95  # share of the way to the boundary that a step may go
_SHRINK = 0.1  # of the barrier's weight, from one step to the next


def channel_by_newton(joint: Array, charge: Array, start: Array, tolerance: float) -> Array:
    """The channel of least I(X; Z) + sum of ``charge`` times P(z | w).

    Parameters
    ----------
    joint : array (|X|, |W|), P(x, w), no row and no column of zeros
    charge : array (|W|, |Z|), P(w) l d(w, z)
    start : array (|W|, |Z|), a channel
    tolerance : float, nats
        The gap aimed at; the caller proves the one reached.

    Returns
    -------
    array (|W|, |Z|), every entry above 0
    """
    observed = joint.sum(0)
    channel = 0.9 * start + 0.1 / charge.shape[1]
    slope = _gradient(joint, channel) + charge
    rows = slope.min(1) - 0.1 * observed
    dual = slope - rows[:, None]
    for _ in range(_STEPS):
        slope = _gradient(joint, channel) + charge - rows[:, None]
        pairs, missed = float(np.vdot(channel, dual)), float(np.abs(slope - dual).sum())
        if pairs + missed < 0.1 * tolerance:
            break
        # Not below what the curvature has left of stationarity, or the path is lost.
        mu = (_SHRINK if missed <= pairs else 1.0) * pairs / channel.size
        blocks = _hessian(joint, channel) + (dual / channel).T[:, :, None] * np.eye(len(observed))
        inverse = np.linalg.inv(blocks)
        down = np.einsum("zwv,vz->wz", inverse, slope - mu / channel)
        row_step = np.linalg.solve(inverse.sum(0), 1 - channel.sum(1) + down.sum(1))
        step = np.einsum("zwv,v->wz", inverse, row_step) - down
        dual_step = mu / channel - dual - dual / channel * step
        length = min(_longest(channel, step), _longest(dual, dual_step))
        channel, dual = channel + length * step, dual + length * dual_step
        rows = rows + length * row_step
    total: Array = channel / channel.sum(1, keepdims=True)
    return total


def _gradient(joint: Array, channel: Array) -> Array:
    """d I(X; Z) / d P(z | w) up to a function of w, times P(w)."""
    sensitive, letters = joint @ channel, joint.sum(0) @ channel
    return joint.T @ np.log(sensitive) - np.outer(joint.sum(0), np.log(letters))


def _hessian(joint: Array, channel: Array) -> Array:
    observed = joint.sum(0)
    sensitive, letters = joint @ channel, observed @ channel
    blocks: Array = np.einsum("xw,xz,xv->zwv", joint, 1 / sensitive, joint, optimize=True)
    return blocks - np.outer(observed, observed) / letters[:, None, None]


def _longest(value: Array, step: Array) -> float:
    falling = step < 0
    if not falling.any():
        return 1.0
    return float(min(1.0, _TO_BOUNDARY * (value[falling] / -step[falling]).min()))


def output_law(source: Array, kernel: Array, start: Array, *, tolerance: float = 1e-11) -> Array:
    """The law q of the output that maximises sum_x p(x) log sum_z q(z) K(x, z).

    With W = X the channel is q(z) K(x, z) / sum, K = e^{-l d}: q alone is unknown (the same
    program as the weights of a mixture).

    Parameters
    ----------
    source : array (|X|,)
    kernel : array (|X|, |Z|), each row's largest entry 1
    start : array (|Z|,), above 0
    """
    law = 2 * (0.5 * start + 0.5 / len(start))  # twice a law: every slope is then 1/2 or more
    law *= float((source @ (kernel / (kernel @ law)[:, None])).max())
    dual = 1 - source @ (kernel / (kernel @ law)[:, None]) + 0.1
    for _ in range(_STEPS):
        share = kernel / (kernel @ law)[:, None]
        slope = 1 - source @ share
        pairs, missed = float(law @ dual), float(np.abs(slope - dual).max())
        if pairs + missed < 0.1 * tolerance:
            break
        mu = (_SHRINK if missed <= pairs else 1.0) * pairs / len(law)
        matrix = (share.T * source) @ share + np.diag(dual / law)
        step: Array = np.linalg.solve(matrix, mu / law - slope).astype(np.float64)
        dual_step = mu / law - dual - dual / law * step
        law = law + _longest(law, step) * step
        dual = dual + _longest(dual, dual_step) * dual_step
    found: Array = law / law.sum()
    return found
