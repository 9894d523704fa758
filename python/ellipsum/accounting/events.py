"""Costs from the events of Google's ``dp-accounting``, which is optional, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ..calibrate import dp_relation
from .cost import Cost, exact

__all__ = ["cost_of_event", "dp_relation", "event_of_costs"]


def cost_of_event(event: Any, delta: Any, neighbors: str) -> Cost:
    """What an event costs under a relation.

    Gaussian and Laplace events and their compositions are exact. Of any other, the
    epsilon is the one that its privacy loss accountant gives for ``delta`` (an upper bound, as
    its discretisation is pessimistic): a pair, which composes with everything else.

    Parameters
    ----------
    event : dp_accounting.DpEvent
    delta : float or None; needed for events of other kinds
    neighbors : ``"replace"`` or ``"add-remove"``

    Raises
    ------
    ImportError
        Where dp-accounting is not installed.
    ValueError
        For an event that has no finite epsilon, or needs a delta; and for one of a random sample
        under ``"replace"``.
    """
    known = _simple(event)
    if known is not None:
        return known
    if delta is None:
        raise ValueError(f"an event {type(event).__name__} has an epsilon for a delta: give delta")
    from dp_accounting.pld import PLDAccountant

    # Of a sample its REPLACE_SPECIAL bounds a record that becomes 0 alone: one that turns from 5 to
    # 6 shifts both parts of a mixture, and costs a thousand times that.
    if neighbors == "replace" and _is_sampled(event):
        raise ValueError(
            f"an event {type(event).__name__} of a random sample has no known cost under replace: "
            "use a budget of add-remove"
        )
    second = exact("delta", delta)
    accountant = PLDAccountant(dp_relation(neighbors))
    epsilon = accountant.compose(event).get_epsilon(float(second))
    if not math.isfinite(epsilon):
        raise ValueError(f"dp-accounting knows no epsilon of a {type(event).__name__} here")
    return Cost(epsilon=Fraction(float(epsilon)), delta=second)


def event_of_costs(costs: Sequence[Cost]) -> Any:
    """A composed event: Gaussians, and randomised responses for what is purely epsilon-DP.

    Raises
    ------
    ImportError
        Where dp-accounting is not installed.
    ValueError
        For a cost with a delta of its own: it has no event for that.
    """
    try:
        import dp_accounting as dp
    except ImportError as error:
        raise ImportError(
            "dp_event needs dp-accounting: pip install 'ellipsum[accounting]'"
        ) from error
    parts: list[Any] = []
    for cost in costs:
        if cost.delta:
            raise ValueError("dp-accounting has no event for a pair (epsilon, delta)")
        if cost.mu_squared:
            parts.append(dp.GaussianDpEvent(cost.noise_multiplier()))
        if cost.epsilon:  # every pure mechanism is one of these, processed (Kairouz et al. 2015)
            other = 2 / (1 + math.exp(float(cost.epsilon))) * (1 - 2.0**-50)
            parts.append(dp.RandomizedResponseDpEvent(other, 2))
    return parts[0] if len(parts) == 1 else dp.ComposedDpEvent(parts)


def _simple(event: Any) -> Cost | None:
    try:
        import dp_accounting as dp
    except ImportError as error:
        raise ImportError(
            "an event needs dp-accounting: pip install 'ellipsum[accounting]'"
        ) from error
    if not isinstance(event, dp.DpEvent):
        raise TypeError(f"event must be a dp_accounting.DpEvent, got {type(event).__name__}")
    if isinstance(event, dp.NoOpDpEvent):
        return Cost()
    if isinstance(event, dp.GaussianDpEvent):
        return Cost(mu_squared=1 / exact("noise_multiplier", event.noise_multiplier) ** 2)
    if isinstance(event, dp.LaplaceDpEvent):
        return Cost(epsilon=1 / exact("noise_multiplier", event.noise_multiplier))
    if isinstance(event, dp.SelfComposedDpEvent):
        one = _simple(event.event)
        return None if one is None else _times(one, int(event.count))
    if isinstance(event, dp.ComposedDpEvent):
        parts = [_simple(part) for part in event.events]
        known = [part for part in parts if part is not None]
        return sum(known, Cost()) if len(known) == len(parts) else None
    return None


def _is_sampled(event: Any) -> bool:
    """Whether any part is of rows that were sampled, or of a mixture, as those are."""
    parts = [*getattr(event, "events", ()), *filter(None, [getattr(event, "event", None)])]
    own = any(word in type(event).__name__ for word in ("Sampled", "Subsampled", "Mixture"))
    return own or any(map(_is_sampled, parts))


def _times(cost: Cost, count: int) -> Cost:
    return Cost(cost.mu_squared * count, cost.epsilon * count, cost.delta * count)
