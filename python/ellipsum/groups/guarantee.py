"""What a release of groups promises: for all groups together, and with the choice of keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import scipy

from .. import calibrate
from ..accounting.cost import Cost
from ..guarantee import ROW, DeltaGuarantee, GaussianGuarantee, Neighbors
from .selection import KeySelection, calibrated

__all__ = ["GroupGuarantee", "group_guarantee"]


@dataclass(frozen=True, repr=False)
class GroupGuarantee(GaussianGuarantee):
    """The guarantee of a release of groups, for all groups together.

    The groups compose in parallel: a user is in at most ``max_keys`` of them, and the noise is
    for all of these (claim groups-1). What is said of a group's number of users is noisy: with
    ``replace`` neighbours a user may move from one group to another, so that only the number of
    all users is public, and no release takes a group's number as public (claim groups-2).

    Where keys are private, naming them costs delta: there is no mu and no rho, and
    ``epsilon(delta)`` is that of keys, numbers and sums together (claim groups-4).

    Parameters
    ----------
    max_keys : int, groups of a user
    selection : KeySelection, where the keys are private
    Others as of :class:`ellipsum.GaussianGuarantee`.
    """

    max_keys: int = 1
    selection: KeySelection | None = None

    @property
    def kind(self) -> str:  # type: ignore[override]
        """``"gdp"``; ``"approximate-dp"`` where keys are private."""
        return "gdp" if self.selection is None else "approximate-dp"

    @property
    def mu(self) -> float:
        """mu-GDP of all groups together."""
        return self._gaussian("mu")

    @property
    def rho(self) -> float:
        """rho-zCDP of all groups together."""
        return self._gaussian("rho")

    def _gaussian(self, name: str) -> float:
        if self.selection is not None:
            self._none(name)
        return float(getattr(super(), name))

    def _none(self, name: str) -> NoReturn:
        raise AttributeError(f"private keys cost delta: there is no {name}, see epsilon(delta)")

    def __getattr__(self, name: str) -> NoReturn:  # of properties that raise, too
        if name in ("mu", "rho"):
            self._none(name)
        super().__getattr__(name)

    def delta(self, epsilon: float) -> float:
        """The delta that goes with ``epsilon``, exact but for rounding up (claim groups-4)."""
        if self.selection is None:
            return calibrate.delta(self.noise_multiplier, epsilon)
        return self.selection.total_delta(epsilon, self.noise_multiplier)

    def epsilon(self, delta: float) -> float:
        """The epsilon that goes with ``delta``.

        Raises
        ------
        ValueError
            For a delta that naming the keys takes up.
        """
        if self.selection is None or delta == self.asked_delta:
            return super().epsilon(delta)
        if not delta > self.selection.delta:
            raise ValueError(
                f"delta must be above {self.selection.delta:.3g}, which naming the keys takes"
            )
        high = 1.0
        while self.delta(high) > delta:
            high *= 2
        if self.delta(0.0) <= delta:
            return 0.0
        found = float(scipy.optimize.brentq(lambda e: self.delta(e) - delta, 0.0, high, rtol=1e-12))
        while self.delta(found) > delta:
            found = found * (1 + 1e-11) + 1e-300
        return found

    def for_rows(self, k: int) -> GaussianGuarantee | DeltaGuarantee:  # type: ignore[override]
        """What a person with ``k`` rows has (claim users-4).

        With private keys it is that of the pair (epsilon, delta) as asked for: other rows of the
        same person may name the same key, so that keys have no guarantee of their own for k rows.
        """
        if self.selection is None:
            return super().for_rows(k)
        pair = (self.asked_epsilon or 0.0, self.asked_delta or 0.0)
        several = DeltaGuarantee(self.neighbors, *pair, self.unit).for_rows(k)
        return self if several.unit == self.unit else several

    def dp_event(self) -> Any:
        """A ``dp_accounting`` event, where the keys are public.

        With private keys there is none for the choice of keys: to compose by hand, take the
        Gaussian mechanism of ``noise_multiplier``, and add ``selection.delta`` to delta and
        ``-log(1 - selection.delta)`` to epsilon (claim groups-5).

        Raises
        ------
        AttributeError
            With private keys.
        """
        return super().dp_event() if self.selection is None else self._none("dp_event")

    def cost(self) -> Cost:
        """mu^2, and what naming private keys takes of epsilon and delta (claim groups-5)."""
        if self.selection is None:
            return super().cost()
        named = Fraction(self.selection.delta)
        pure = Fraction(-math.log1p(-self.selection.delta) * (1 + 2.0**-40))
        return Cost(1 / Fraction(self.noise_multiplier) ** 2, pure, named)

    def budget(self) -> dict[str, Any]:
        """epsilon and delta as asked, rho and mu where they are, and the neighbours."""
        if self.selection is None:
            return super().budget()
        return {
            "epsilon": self.asked_epsilon,
            "delta": self.asked_delta,
            "rho": None,
            "mu": None,
            "neighbors": self.neighbors.value,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold."""
        keys = {"max_keys": self.max_keys, "covers": "all groups together"}
        chosen = None if self.selection is None else self.selection.delta
        return super().to_dict() | keys | {"selection_delta": chosen}

    def __str__(self) -> str:
        if self.selection is None:
            text = super().__str__()
        else:
            pair = f"({self.asked_epsilon:g}, {self.asked_delta:g})-DP"
            unit = "" if self.unit == ROW else f", unit: {self.unit}"
            text = f"{pair}, keys private, neighbours: {self.neighbors}{unit}"
        return f"{text}, all groups together"


def group_guarantee(
    budget: tuple[float | None, float | None, float | None, float | None],
    neighbors: str,
    unit: str,
    max_keys: int,
    private_keys: bool,
    count_factor: float,
) -> tuple[GroupGuarantee, int | None]:
    """The guarantee of a budget, and the threshold in steps where keys are private."""
    if not private_keys:
        plain = GaussianGuarantee.of_budget(*budget, neighbors, unit)
        return GroupGuarantee(**vars(plain), max_keys=max_keys), None
    plain = GaussianGuarantee.of_budget(*budget, neighbors)  # its checks
    epsilon, delta = plain.asked_epsilon, plain.asked_delta
    if epsilon is None or delta is None:
        raise ValueError("private keys cost delta: give epsilon and delta, or the public keys=")
    relation = Neighbors.of(neighbors)
    multiplier, threshold, selection = calibrated(epsilon, delta, relation, max_keys, count_factor)
    whole = GroupGuarantee(
        relation, multiplier, epsilon, delta, unit=unit, max_keys=max_keys, selection=selection
    )
    return whole, threshold
