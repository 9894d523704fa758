"""The convex discrete problem to a certificate: alternation, then Newton where it drags."""

from __future__ import annotations

import numpy as np

from .alternating import Array, Law, Result, constant_channel, descend, normalised
from .newton import channel_by_newton, output_law

__all__ = ["least_cost", "least_leakage"]

_ALTERNATIONS = 600  # before Newton's method is tried: where they converge, they are cheaper
_FEW_ALTERNATIONS = 60  # where a step of Newton's has fewer multiplications than _CHEAP
_CHEAP = 1e6
#: Multiplications of a step of Newton's: beyond this, alternation goes on instead.
_NEWTON_COST = 2e9
_LEAST_PRICE = 1e-9  # of a bracket's start, nats a unit
_HALVINGS = 60  # of a bracket of prices: to the last bit of a double


def least_cost(law: Law) -> float:
    """The smallest E d that any channel has."""
    return float(law.observed @ law.cost.min(1))


def least_leakage(
    law: Law,
    *,
    multiplier: float | None = None,
    budget: float | None = None,
    tolerance: float = 1e-11,
) -> Result:
    """Least I(X; Z) + multiplier E d, or least I(X; Z) with E d <= budget.

    Parameters
    ----------
    law : Law, without a useful part
    budget : float, at least `least_cost`
    tolerance : float, nats
    """
    assert law.useful is None
    if budget is not None:
        floor = least_cost(law)
        if budget <= floor + 1e-13 * (abs(floor) + float(np.abs(law.cost).max())):
            return _at_least_cost(law, tolerance)
    few = law.sensitive is None or (budget is not None and _newton_cost(law) < _CHEAP)
    found = descend(
        law,
        constant_channel(law),
        multiplier=multiplier,
        budget=budget,
        tolerance=tolerance,
        steps=_FEW_ALTERNATIONS if few else _ALTERNATIONS,
    )
    if found.gap <= tolerance:
        return found
    if _newton_cost(law) > _NEWTON_COST:
        return descend(
            law, found.log_channel, multiplier=multiplier, budget=budget, tolerance=tolerance
        )
    if multiplier is not None:
        better = _by_newton(law, found.log_channel, multiplier, tolerance)
    else:
        assert budget is not None
        better = _within_budget(law, found, budget, tolerance)
    return better if better.gap < found.gap else found


def _newton_cost(law: Law) -> float:
    rows, letters = law.cost.shape
    if law.sensitive is None:
        return float(letters) ** 2 * (rows + letters)
    return letters * float(rows) ** 2 * (rows + len(law.sensitive))


def _by_newton(law: Law, start: Array, price: float, tolerance: float) -> Result:
    """At a given price of distortion."""
    if law.sensitive is None:
        kernel = np.exp(-price * (law.cost - law.cost.min(1, keepdims=True)))
        masses = law.observed @ np.exp(start)
        output = output_law(law.observed, kernel, masses, tolerance=tolerance)
        logs = np.log(output) - price * law.cost
    else:
        logs = _by_channel(law, start, price, None, tolerance)
    return descend(law, normalised(logs), multiplier=price, tolerance=tolerance, steps=0)


def _by_channel(
    law: Law, start: Array, price: float, budget: float | None, tolerance: float
) -> Array:
    assert law.sensitive is not None
    joint, cost = law.sensitive * law.observed, law.observed[:, None] * law.cost
    channel = channel_by_newton(joint, cost, np.exp(start), tolerance, price, budget)
    logs: Array = np.log(channel)
    return logs


def _within_budget(law: Law, found: Result, budget: float, tolerance: float) -> Result:
    """The price as one more unknown of Newton's; where that fails, and for W = X, its bisection."""
    if law.sensitive is not None:
        try:
            logs = normalised(_by_channel(law, found.log_channel, 0.0, budget, 0.1 * tolerance))
            direct = descend(law, logs, budget=budget, tolerance=tolerance, steps=30)
            found = direct if direct.gap < found.gap else found
        except np.linalg.LinAlgError:  # the path was lost
            pass
        if found.gap <= tolerance:
            return found
    return _by_prices(law, found, budget, tolerance)


def _by_prices(law: Law, found: Result, budget: float, tolerance: float) -> Result:
    """Bisect the price; the two ends are mixed, which is exact where the curve is straight."""
    low, high, price = 0.0, np.inf, max(found.multiplier, _LEAST_PRICE)
    ends: list[Result | None] = [None, None]  # too costly, within budget
    best, widen = found, 1e-3
    for _ in range(_HALVINGS):
        there = _by_newton(law, found.log_channel, price, 0.1 * tolerance)
        within = there.distortion <= budget
        ends[within] = there
        low, high = (low, price) if within else (price, high)
        mixed = _mix(law, ends[0], ends[1], budget, tolerance)
        best = mixed if mixed.gap < best.gap else best
        if best.gap <= tolerance:
            break
        if ends[0] is None or ends[1] is None:
            price = price / (1 + widen) if within else price * (1 + widen)
            widen *= 4
        else:
            price = 0.5 * (low + high)
    return best


def _mix(
    law: Law, costly: Result | None, cheap: Result | None, budget: float, tolerance: float
) -> Result:
    ends = [end for end in (costly, cheap) if end is not None]
    channel = np.exp(ends[0].log_channel)
    if costly is not None and cheap is not None and costly.distortion > cheap.distortion:
        share = (budget - cheap.distortion) / (costly.distortion - cheap.distortion)
        channel = share * np.exp(costly.log_channel) + (1 - share) * np.exp(cheap.log_channel)
    logs = normalised(np.log(np.maximum(channel, 1e-300)))
    return descend(law, logs, budget=budget, tolerance=tolerance, steps=30)


def _at_least_cost(law: Law, tolerance: float) -> Result:
    """Only the cheapest letters of each w: every other costs more than any information."""
    dearer = law.cost > law.cost.min(1, keepdims=True)
    only = law._replace(cost=np.where(dearer, 1.0, 0.0))
    found = least_leakage(only, multiplier=1e4, tolerance=tolerance)
    return found._replace(distortion=least_cost(law), multiplier=np.inf, objective=found.leakage)
