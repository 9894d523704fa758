"""The convex discrete problem to a certificate: alternation, then Newton where it drags."""

from __future__ import annotations

import numpy as np

from .alternating import Array, Law, Result, constant_channel, descend, normalised
from .newton import channel_by_newton, output_law

__all__ = ["least_cost", "least_leakage"]

_ALTERNATIONS = 600  # before Newton's method is tried: where they converge, they are cheaper
#: Multiplications of a step of Newton's: beyond this, alternation goes on instead.
_NEWTON_COST = 2e9
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
    found = descend(
        law,
        constant_channel(law),
        multiplier=multiplier,
        budget=budget,
        tolerance=tolerance,
        steps=_ALTERNATIONS if law.sensitive is not None else _ALTERNATIONS // 10,
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
        charge = price * law.observed[:, None] * law.cost
        joint = law.sensitive * law.observed
        logs = np.log(channel_by_newton(joint, charge, np.exp(start), tolerance))
    return descend(law, normalised(logs), multiplier=price, tolerance=tolerance, steps=0)


def _within_budget(law: Law, found: Result, budget: float, tolerance: float) -> Result:
    """Bisect the price; the two ends are mixed, which is exact where the curve is straight."""
    low, high, price = 0.0, np.inf, max(found.multiplier, 1e-9)
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
