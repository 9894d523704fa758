"""The one solver of every discrete tradeoff: alternating minimisation in logs, with a certificate.

    minimise  I(X; Z) + l E d(W, Z) - b I(Y; Z)   over channels P(z | w)

I(X; Z) is the least divergence of P(w | x) P(z | w) from products q(z) s(w | x, z); both halves
of that minimisation are closed, and together they read

    log P(z | w)  <-  log P(z | w) - sum_x P(x | w) log P(z | x)/P(z) - l d(w, z) - const(w)

(with W = X: Blahut and Arimoto's). With b = 0 the problem is convex, the limit is the optimum and
sum_w P(w) (E g - min_z g), g the gradient, bounds what is missing (Frank and Wolfe). Under a
budget on E d the same step is the tilt that meets it, and the same bound holds with its l. With
b > 0, I(Y; Z) is replaced by its tangent, a lower bound: each step descends, to a local optimum.

Everything is kept in logs: a letter that dies underflows in the linear domain, and its gradient
with it. Steps are extrapolated (Varadhan & Roland 2008), and taken back where that does not help.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Law", "Result", "constant_channel", "descend", "information", "normalised"]

Array = NDArray[np.float64]

_STEPS = 20_000  # of alternation: a guard; the certified gap says what is missing
#: Letters of less than these masses are tried without, the largest first.
_FAINT = (1e-2, 1e-3, 1e-4, 1e-6, 1e-9)
_DEAD = -1e4  # log-probability of a letter that was taken out: exp underflows to 0
_VANISHED = -600.0  # e^-600 and less counts as 0: subnormal numbers are slow
_HIGHEST_PRICE = 1e12  # of distortion, nats a unit: beyond, its least is all that counts


class Law(NamedTuple):
    """P(w), P(x | w) as (|X|, |W|) or None for X = W, the cost (|W|, |Z|), P(y | w) and b."""

    observed: Array
    sensitive: Array | None
    cost: Array
    useful: Array | None = None
    weight: float = 0.0


class Result(NamedTuple):
    """log P(z | w), what it costs, and the multiplier l of the cost."""

    log_channel: Array
    objective: float
    leakage: float
    relevance: float
    distortion: float
    gap: float
    multiplier: float
    steps: int


class _Goal(NamedTuple):
    multiplier: float | None
    budget: float | None


class _State(NamedTuple):
    log_channel: Array
    gradient: Array  # of I(X; Z) - b I(Y; Z), without the cost
    leakage: float
    relevance: float
    distortion: float


def descend(
    law: Law,
    start: Array,
    *,
    multiplier: float | None = None,
    budget: float | None = None,
    tolerance: float = 1e-11,
    steps: int = _STEPS,
) -> Result:
    """Lower the objective from ``start`` until the gap is below ``tolerance`` nats.

    Parameters
    ----------
    law : Law
    start : array (|W|, |Z|)
        log P(z | w), every entry finite.
    multiplier : float, optional
        l; or
    budget : float
        The largest E d.
    """
    goal = _Goal(multiplier, budget)
    state, used, patience = _state(law, normalised(start)), 0, 64
    if budget is not None and state.distortion > budget:
        state, _ = _step(law, goal, state)
    price = _best_price(law, goal, state)
    gap = _gap(law, goal, state, price)
    while gap > tolerance and used < steps:
        state, price = _extrapolated(law, goal, state)
        used += 3
        gap = _gap(law, goal, state, price)
        if used >= patience:
            state, price, gap = _without_faint(law, goal, state, price, gap)
            patience *= 2
    if gap > tolerance:
        price = _best_price(law, goal, state)
        gap = _gap(law, goal, state, price)
    state, price, gap = _without_faint(law, goal, state, price, gap, worst=tolerance)
    value = state.leakage - law.weight * state.relevance
    value += (multiplier or 0.0) * state.distortion
    return Result(
        state.log_channel, value, state.leakage, state.relevance, state.distortion, gap, price, used
    )


def constant_channel(law: Law, masses: Array | None = None) -> Array:
    """log P(z) for every w: the start from which no letter is missing."""
    letters = law.cost.shape[1]
    mass = np.full(letters, 1 / letters) if masses is None else masses
    return np.broadcast_to(np.log(mass), law.cost.shape).copy()


def information(observed: Array, given: Array | None, log_channel: Array) -> tuple[float, Array]:
    """I(X; Z) in nats and log P(z | x)/P(z), of P(w), P(x | w) and log P(z | w)."""
    top = log_channel.max(0)
    shares = _exp(log_channel - top)  # letter by letter: nothing that is alive underflows
    marginal = observed @ shares
    if given is None:
        ratio = log_channel - top - np.log(marginal)
        return float(observed @ (_exp(log_channel) * ratio).sum(1)), ratio
    joint, prior = (given * observed) @ shares, given @ observed
    floor = np.finfo(float).tiny
    ratio = np.log(np.maximum(joint, floor)) - np.log(marginal)
    ratio -= np.log(np.maximum(prior, floor))[:, None]
    return float((joint * _exp(top) * ratio).sum()), ratio


def _exp(logarithm: Array) -> Array:
    return np.exp(np.where(logarithm > _VANISHED, logarithm, -np.inf))


def normalised(log_channel: Array) -> Array:
    """Rows shifted so that their exponentials sum to one."""
    top = log_channel.max(1, keepdims=True)
    return log_channel - top - np.log(_exp(log_channel - top).sum(1, keepdims=True))


def _state(law: Law, log_channel: Array) -> _State:
    leakage, ratio = information(law.observed, law.sensitive, log_channel)
    gradient = ratio if law.sensitive is None else law.sensitive.T @ ratio
    relevance = 0.0
    if law.useful is not None:
        relevance, gained = information(law.observed, law.useful, log_channel)
        gradient = gradient - law.weight * (law.useful.T @ gained)
    distortion = float(law.observed @ (_exp(log_channel) * law.cost).sum(1))
    return _State(log_channel, gradient, leakage, relevance, distortion)


def _step(law: Law, goal: _Goal, state: _State) -> tuple[_State, float]:
    """One alternation; the multiplier that it used."""
    base = state.log_channel - state.gradient
    price = goal.multiplier if goal.multiplier is not None else _price(law, goal.budget, base)
    return _state(law, normalised(base - price * law.cost)), price


def _price(law: Law, budget: float | None, base: Array) -> float:
    """The least l >= 0 whose tilt of ``base`` costs at most the budget, by guarded Newton."""
    assert budget is not None
    low, high, price = 0.0, _HIGHEST_PRICE, 0.0
    for _ in range(200):
        channel = _exp(normalised(base - price * law.cost))
        means = (channel * law.cost).sum(1)
        over = float(law.observed @ means) - budget
        if over <= 0 and price == 0.0:
            return 0.0
        low, high = (price, high) if over > 0 else (low, price)
        if abs(over) <= 1e-14 * (abs(budget) + float(law.observed @ np.abs(means))):
            return price
        spread = (channel * (law.cost - means[:, None]) ** 2).sum(1)
        slope = float(law.observed @ spread)
        price = price + over / slope if slope > 0 else np.inf
        if not low < price < high:
            price = min(0.5 * (low + high), 2 * low + 1.0)
        if high - low <= 1e-15 * high:
            break
    return high


def _value(law: Law, goal: _Goal, state: _State) -> float:
    paid = goal.multiplier * state.distortion if goal.multiplier is not None else 0.0
    return state.leakage - law.weight * state.relevance + paid


def _gap(law: Law, goal: _Goal, state: _State, price: float) -> float:
    """What is proved to be missing at most, for any price (where b = 0)."""
    slope = state.gradient + price * law.cost
    channel = _exp(state.log_channel)
    missing = float(law.observed @ ((channel * slope).sum(1) - slope.min(1)))
    if goal.budget is not None:
        missing += price * (goal.budget - state.distortion)
    return max(0.0, missing)


def _best_price(law: Law, goal: _Goal, state: _State) -> float:
    """The price of the best lower bound, which is concave in it: bisection on its slope."""
    if goal.multiplier is not None:
        return goal.multiplier
    budget = goal.budget
    assert budget is not None

    def over(price: float) -> float:
        letter = (state.gradient + price * law.cost).argmin(1)
        return float(law.observed @ law.cost[np.arange(len(letter)), letter]) - budget

    low, high = 0.0, 1.0
    if over(low) <= 0:
        return low
    while over(high) > 0 and high < _HIGHEST_PRICE:
        low, high = high, 2 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if over(middle) > 0 else (low, middle)
    return min((low, high), key=lambda price: _gap(law, goal, state, price))


def _extrapolated(law: Law, goal: _Goal, state: _State) -> tuple[_State, float]:
    """Two alternations, a jump along both, one alternation; the jump only where it descends."""
    once, _ = _step(law, goal, state)
    twice, price = _step(law, goal, once)
    first = once.log_channel - state.log_channel
    bend = twice.log_channel - once.log_channel - first
    weight = law.observed[:, None] * _exp(twice.log_channel)
    size, curve = float((weight * first**2).sum()), float((weight * bend**2).sum())
    if curve <= 0 or size <= curve:
        return twice, price
    length = np.sqrt(size / curve)
    jump = state.log_channel + 2 * length * first + length**2 * bend
    jump = np.maximum(normalised(jump), _DEAD)
    landed, new_price = _step(law, goal, _state(law, normalised(jump)))
    if _value(law, goal, landed) <= _value(law, goal, twice):
        return landed, new_price
    return twice, price


def _without_faint(
    law: Law,
    goal: _Goal,
    state: _State,
    price: float,
    gap: float,
    worst: float | None = None,
) -> tuple[_State, float, float]:
    """Take out letters of little mass where that lowers the gap (or keeps it below ``worst``).

    A letter that is not in the optimum fades slowly; the gap looks at every letter, also at
    those taken out, so that it stays a proof.
    """
    masses = law.observed @ _exp(state.log_channel)
    for faint in _FAINT:
        out = masses < faint
        if not out.any() or out.all() or (masses[out].max() < 1e-300):
            continue
        trial = np.where(out, _DEAD, state.log_channel)
        moved, new_price = _step(law, goal, _state(law, normalised(trial)))
        found = _gap(law, goal, moved, new_price)
        if found < gap or (worst is not None and found <= worst):
            return moved, new_price, found
    return state, price, gap
