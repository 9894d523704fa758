"""Primal-dual Newton methods that finish what alternating minimisation leaves slow.

Alternation converges at a sublinear rate where a letter of the optimum is just at the point of
dying. Newton's does not care. The Hessian of I(X; Z) in P(z | w) is a block for each letter z,

    P(x, w) diag(1/P(x, z)) P(x, w') - P(w) P(w') / P(z),

so that a step costs |Z| factorisations of |W| rows, joined by the |W| sums to one and, with a limit
on the distortion, by its price.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["channel_by_newton", "output_law"]

Array = NDArray[np.float64]

_STEPS = 150  # a guard; the certified gap says what is missing
_TO_BOUNDARY = 0.95  # share of the way to the boundary that a step may go
_SHRINK = 0.1  # of the barrier's weight, from one step to the next


def channel_by_newton(
    joint: Array, cost: Array, start: Array, tolerance: float, price: float, budget: float | None
) -> Array:
    """The channel of least I(X; Z) + price E d, or of least I(X; Z) with E d <= budget.

    Parameters
    ----------
    joint : array (|X|, |W|), P(x, w), no row and no column of zeros
    cost : array (|W|, |Z|), P(w) d(w, z)
    start : array (|W|, |Z|), a channel
    tolerance : float, nats
        The gap aimed at; the caller proves the one reached.
    price : float
        Nats per unit of cost; with a budget an unknown, and found.
    budget : float or None

    Returns
    -------
    array (|W|, |Z|), every entry above 0
    """
    observed = joint.sum(0)
    channel, spare = 0.9 * start + 0.1 / cost.shape[1], 0.0
    if budget is not None:  # spare = budget - E d, whose dual is the price
        channel = _within(cost, start, budget)
        spare = budget - float(np.vdot(cost, channel))
        price = 0.1 / (channel.size * spare)
    slope = _gradient(joint, channel) + price * cost
    rows = slope.min(1) - 0.1 * observed
    dual = slope - rows[:, None]
    for _ in range(_STEPS):
        slope = _gradient(joint, channel) + price * cost - rows[:, None]
        over = 0.0 if budget is None else float(np.vdot(cost, channel)) + spare - budget
        pairs = float(np.vdot(channel, dual)) + price * spare
        missed = float(np.abs(slope - dual).sum()) + price * abs(over)
        if pairs + missed < 0.1 * tolerance:
            break
        # Not below what the curvature has left of stationarity, or the path is lost.
        mu = (_SHRINK if missed <= pairs else 1.0) * pairs / (channel.size + (budget is not None))
        blocks = _hessian(joint, channel) + (dual / channel).T[:, :, None] * np.eye(len(observed))
        inverse = np.linalg.inv(blocks)
        sums, length = inverse.sum(0), 1.0
        down = _each(inverse, slope - mu / channel)
        row_step = np.linalg.solve(sums, 1 - channel.sum(1) + down.sum(1))
        step = _each(inverse, row_step[:, None] - slope + mu / channel)
        if budget is not None:
            # The cost less what the rows' sums to one take of it, twice: where the curve is
            # straight the blocks are all but singular, and once leaves their rounding.
            own, row_part = cost, np.zeros(len(cost))
            for _ in range(2):
                along = _each(inverse, own)
                shift = np.linalg.solve(sums, along.sum(1))
                own, row_part = own - shift[:, None], row_part + shift
            along = _each(inverse, own)
            bend = float(np.vdot(own, along)) + spare / price
            price_step = (over + mu / price - spare + float(np.vdot(own, step))) / bend
            spare_step = mu / price - spare - spare / price * price_step
            step, row_step = step - price_step * along, row_step + price_step * row_part
            ends = np.array([spare, price]), np.array([spare_step, price_step])
            length = _longest(*ends)
        dual_step = mu / channel - dual - dual / channel * step
        length = min(length, _longest(channel, step), _longest(dual, dual_step))
        channel, dual = channel + length * step, dual + length * dual_step
        rows = rows + length * row_step
        if budget is not None:
            spare, price = spare + length * spare_step, price + length * price_step
    total: Array = channel / channel.sum(1, keepdims=True)
    return total


def _each(inverse: Array, columns: Array) -> Array:
    """A matrix for each letter times that letter's column."""
    product: Array = np.einsum("zwv,vz->wz", inverse, columns)
    return product


def _within(cost: Array, start: Array, budget: float) -> Array:
    """``start``, which costs the budget at most, moved inside: every entry and the rest above 0."""
    cheapest = np.zeros_like(cost)
    cheapest[np.arange(len(cost)), cost.argmin(1)] = 1.0
    room = budget - float(np.vdot(cost, cheapest))
    dearer = max(0.0, float(cost.mean(1).sum()) - budget)
    even = min(0.1, 0.25 * room / max(dearer, 1e-300))
    cheap = even * dearer / room + 0.05
    return (1 - even - cheap) * start + even / cost.shape[1] + cheap * cheapest


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
