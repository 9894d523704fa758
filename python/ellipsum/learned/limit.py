"""A limit on a mean, kept while something else is minimised."""

from __future__ import annotations

from typing import Any

__all__ = ["Limit"]

_PENALTY, _MULTIPLIER_STEP, _MULTIPLIER_EVERY = 5.0, 0.3, 5


class Limit:
    """mean(cost) <= most, as an augmented Lagrangian; of a cost whose unit is 1 or ``unit``."""

    def __init__(self, most: float, unit: float = 1.0) -> None:
        self.most, self.penalty, self.price = most, _PENALTY / max(abs(most), 1e-3 * unit), 0.0
        self._count = 0

    def term(self, cost: Any) -> Any:
        """What is added to the objective at a cost that is a tensor; every few calls the price
        moves."""
        self._count += 1
        pull = (self.price + self.penalty * (cost - self.most)).clamp(min=0)
        value = (pull**2 - self.price**2) / (2 * self.penalty)
        if self._count % _MULTIPLIER_EVERY == 0:
            self.move(float(cost.detach()), _MULTIPLIER_STEP)
        return value

    def added(self, cost: float) -> tuple[float, float]:
        """What is added to the objective at this price, and its slope in the cost."""
        pull = max(0.0, self.price + self.penalty * (cost - self.most))
        return (pull**2 - self.price**2) / (2 * self.penalty), pull

    def move(self, cost: float, share: float = 1.0) -> None:
        """Towards the price at which the limit is met."""
        self.price = max(0.0, self.price + share * self.penalty * (cost - self.most))
