"""What several releases on the same rows promise together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from ..accounting import events
from ..accounting.cost import Cost, exact, float_up, sqrt_up
from ..guarantee import Guarantee, Neighbors, shown_up
from ..privacy_unit import unit_of_rows, unit_text
from ..release import Release

__all__ = ["ComposedGuarantee", "compose"]


@dataclass(frozen=True, repr=False)
class ComposedGuarantee(Guarantee):
    """What several releases on the same rows promise together.

    **Guarantees.** ``epsilon(delta)`` and ``delta(epsilon)`` never understate (claim ledger-1).
    ``mu`` and ``rho`` exist where all of it is Gaussian.

    Parameters
    ----------
    neighbors : Neighbors, or its string
    spent : Cost
    unit : str
    parts : tuple of Guarantee, where they are known one by one
    """

    neighbors: Neighbors
    spent: Cost
    unit: str = "one row"
    parts: tuple[Guarantee, ...] = ()

    kind = "composed"
    is_private = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbors", Neighbors.of(self.neighbors))

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("mu", "rho"):
            raise AttributeError(f"no {name}: not all of it is Gaussian; ask for epsilon(delta)")
        super().__getattr__(name)

    def cost(self) -> Cost:
        """What they cost together."""
        return self.spent

    @property
    def mu(self) -> float:
        """mu-GDP of all of them, rounded up."""
        if self.spent.epsilon or self.spent.delta:
            raise AttributeError  # with the text of __getattr__
        return sqrt_up(self.spent.mu_squared)

    @property
    def rho(self) -> float:
        """rho-zCDP of all of them, rounded up."""
        return sqrt_up((Fraction(self.mu) ** 2 / 2) ** 2)

    def epsilon(self, delta: float) -> float:
        """The epsilon that goes with ``delta``; inf where none is known."""
        return self.spent.bound_epsilon(exact("delta", delta, least=-1))

    def delta(self, epsilon: float) -> float:
        """The delta that goes with ``epsilon``."""
        return self.spent.bound_delta(exact("epsilon", epsilon, least=-1))

    def for_rows(self, k: int) -> ComposedGuarantee:
        """What a person with ``k`` rows has, in all of them together (claim users-4).

        Where the parts are known one by one, it is the composition of what each of them has; of
        the sums alone, as a budget keeps them, k mu and k epsilon.

        Parameters
        ----------
        k : int, rows of one person

        Raises
        ------
        ValueError
            Of sums alone with a delta, which may be that of private keys or of a pair; and where
            a part's delta for k rows is 1 or above.
        """
        if (unit := unit_of_rows(self.unit, k)) is None:
            return self
        known: tuple[Any, ...] = self.parts
        parts: tuple[Guarantee, ...] = tuple(part.for_rows(k) for part in known)
        if parts:
            total = sum((part.cost() for part in parts), Cost())
        elif self.spent.delta:
            raise ValueError(
                "a delta was spent, and what it has for several rows follows from each release: "
                "ask compose(releases).for_rows(k)"
            )
        else:
            total = Cost(k * k * self.spent.mu_squared, k * self.spent.epsilon)
        return ComposedGuarantee(self.neighbors, total, unit, parts)

    def dp_event(self) -> Any:
        """All of it as one ``dp_accounting`` event."""
        return events.event_of_costs([part.cost() for part in self.parts] or [self.spent])

    def dp_relation(self) -> Any:
        """What an accountant must be set to; see :func:`ellipsum.calibrate.dp_relation`."""
        return events.dp_relation(self.neighbors)

    def budget(self) -> dict[str, Any]:
        """mu^2, epsilon and delta as they add up, and the neighbours."""
        spent = self.spent
        pair = {"epsilon": float_up(spent.epsilon), "delta": float_up(spent.delta)}
        return (
            {"mu_squared": float_up(spent.mu_squared)} | pair | {"neighbors": self.neighbors.value}
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold."""
        return {"kind": self.kind, "unit": self.unit} | self.budget()

    def __str__(self) -> str:
        spent = self.spent
        parts = [f"{shown_up(sqrt_up(spent.mu_squared))}-GDP"] if spent.mu_squared else []
        if spent.epsilon or spent.delta:
            pair = f"({shown_up(float_up(spent.epsilon))}, {shown_up(float_up(spent.delta))})-DP"
            parts.append(pair)
        what = " and ".join(parts) or "nothing spent"
        return f"{what}, neighbours: {self.neighbors}{unit_text(self.unit)}"


def compose(releases: Iterable[Release | Guarantee]) -> ComposedGuarantee:
    """What releases on the same rows promise together.

    **Guarantees.** As :class:`ComposedGuarantee`: also where later ones were chosen by the answers
    of the earlier (claim ledger-1). Releases that drew the same ledger entry are one release
    that was repeated, and count once where that entry was one release's own.

    Parameters
    ----------
    releases : releases, or guarantees

    Raises
    ------
    ValueError
        For releases of different neighbours or units, one that is not private (a seed), or none.
    """
    kept: dict[Any, Guarantee] = {}
    for k, item in enumerate(releases):
        name: Any = k
        guarantee = item.guarantee if isinstance(item, Release) else item
        if isinstance(item, Release):
            if not item.private:
                raise ValueError(f"release {k + 1} is not private: {'; '.join(item.caveats)}")
            entry = item.entry
            if entry is not None and entry.ledger and entry.cost == guarantee.cost():
                name = (entry.ledger, entry.chain)
        if not isinstance(guarantee, Guarantee):
            raise TypeError(f"compose takes releases and guarantees, got {type(item).__name__}")
        kept[name] = guarantee
    parts = tuple(kept.values())
    terms: set[tuple[str, str]] = {(str(part.neighbors), part.unit) for part in parts}
    if len(terms) != 1:
        what = "different neighbours or units" if terms else "no release"
        raise ValueError(f"compose takes releases of the same neighbours and unit: got {what}")
    neighbors, unit = terms.pop()
    total = sum((part.cost() for part in parts), Cost())
    return ComposedGuarantee(Neighbors.of(neighbors), total, unit, parts)
