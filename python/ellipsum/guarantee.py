"""What a release promises, for which neighbours; the budget in its forms; the caveats."""

from __future__ import annotations

import decimal
import enum
import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from . import _validate, calibrate
from .accounting.cost import Cost
from .privacy_unit import (
    ROW,
    delta_of_rows,
    mu_of_rows,
    multiplier_of_rows,
    unit_of_rows,
    unit_text,
)

__all__ = [
    "ROW",
    "UP",
    "DeltaGuarantee",
    "GaussianGuarantee",
    "Guarantee",
    "Neighbors",
    "rounded_up",
    "seed_caveats",
    "shown_up",
]

#: Covers thousands of roundings of a bound that a few functions of doubles make.
UP = 1 + 2.0**-40


class Neighbors(str, enum.Enum):
    """Which two data sets are neighbours. A member equals its string.

    ================  ==============================================  ===============
    member            X and X'                                        number of rows
    ================  ==============================================  ===============
    ``"replace"``     one row takes any other value                   public
    ``"add-remove"``  one row is there or not                         private
    ================  ==============================================  ===============
    """

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"

    @classmethod
    def of(cls, value: str) -> Neighbors:
        """The member that a string names.

        Parameters
        ----------
        value : ``"replace"`` or ``"add-remove"``

        Raises
        ------
        ValueError
            For any other string.
        """
        if isinstance(value, cls):
            return value
        return cls(_validate.one_of("neighbors", value, [member.value for member in cls]))

    @property
    def count_is_public(self) -> bool:
        """Whether the number of rows is the same for all neighbours."""
        return self is Neighbors.REPLACE

    def factor(self, *, no_negative_products: bool = False) -> float:
        """l2 change of a sum between neighbours, in units of the largest norm of a row.

        ``replace`` takes one vector away and adds another: 2. Where no two rows' vectors
        have a negative inner product, ||q - q'||^2 <= ||q||^2 + ||q'||^2: sqrt(2).
        ``add-remove``: 1.

        Parameters
        ----------
        no_negative_products : bool
            Whether no two rows' vectors have a negative inner product.

        Returns
        -------
        float: 1, sqrt(2) or 2
        """
        if self is Neighbors.ADD_REMOVE:
            return 1.0
        return math.sqrt(2) if no_negative_products else 2.0

    def __str__(self) -> str:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)


class Guarantee:
    """What a release promises: the interface that every kind of guarantee has.

    ``kind`` names it. ``is_private`` says whether it is proved for every person, so that a
    release may be called private. Only kinds of differential privacy have ``mu``, ``rho``,
    ``epsilon(delta)`` and ``dp_event()``; asking another kind for one raises an
    AttributeError that says why there is none.
    """

    kind: str = ""
    is_private: bool = False

    def __str__(self) -> str:
        """One line for a person."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ``kind`` among them."""
        raise NotImplementedError

    def cost(self) -> Cost:
        """What it takes from a budget (claim ledger-2).

        Raises
        ------
        TypeError
            For a kind that is no differential privacy.
        """
        raise TypeError(f"a guarantee of kind {self.kind!r} is not differential privacy: no cost")

    def budget(self) -> dict[str, Any]:
        """What was spent, as a release lists it; empty where nothing is."""
        return {}

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("mu", "rho", "epsilon", "dp_event", "dp_relation", "neighbors", "for_rows"):
            raise AttributeError(
                f"a guarantee of kind {self.kind!r} has no {name}: it is not differential privacy"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


@dataclass(frozen=True, repr=False)
class GaussianGuarantee(Guarantee):
    """The guarantee of a Gaussian mechanism, for which neighbours.

    **Guarantees.** ``epsilon(delta)`` never understates: see :mod:`ellipsum.calibrate`.

    Parameters
    ----------
    neighbors : Neighbors, or its string
    noise_multiplier : float, noise standard deviation / sensitivity
    asked_epsilon, asked_delta, asked_rho, asked_mu : the budget as it was asked for
    unit : str, whose change makes neighbours: the unit of privacy
    rows_per_unit : int, rows of a unit that are added by themselves (claim users-6)
    """

    neighbors: Neighbors
    noise_multiplier: float
    asked_epsilon: float | None = None
    asked_delta: float | None = None
    asked_rho: float | None = None
    asked_mu: float | None = None
    unit: str = ROW
    rows_per_unit: int = 1

    kind = "gdp"
    is_private = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbors", Neighbors.of(self.neighbors))

    @classmethod
    def of_budget(
        cls,
        epsilon: float | None,
        delta: float | None,
        rho: float | None,
        mu: float | None,
        neighbors: str,
        unit: str = ROW,
    ) -> GaussianGuarantee:
        """The guarantee of a budget given in exactly one of its forms.

        Parameters
        ----------
        epsilon, delta : float or None; both, or neither
        rho, mu : float or None
        neighbors : ``"replace"`` or ``"add-remove"``
        unit : str, whose change makes neighbours

        Returns
        -------
        GaussianGuarantee

        Raises
        ------
        TypeError, ValueError
            For a budget that is missing, double or out of range.
        """
        epsilon, delta, rho, mu = map(_validate.lowered, (epsilon, delta, rho, mu))
        multiplier = calibrate.noise_multiplier(epsilon, delta, rho=rho, mu=mu)
        return cls(Neighbors.of(neighbors), multiplier, epsilon, delta, rho, mu, unit)

    @functools.cached_property
    def asked(self) -> tuple[float | None, ...]:
        """What the noise levels follow from: the budget as asked, or the noise multiplier.

        Keys are bound to it: the levels' last bit may differ between mathematical libraries.
        """
        budget = (self.asked_epsilon, self.asked_delta, self.asked_rho, self.asked_mu)
        if all(part is None for part in budget):
            return (float(self.noise_multiplier),)
        return tuple(None if part is None else float(part) for part in budget)

    @property
    def mu(self) -> float:
        """mu-GDP: as asked, else 1 / noise_multiplier, rounded up."""
        return self.asked_mu or calibrate.mu(self.noise_multiplier)

    @property
    def mu_to_spend(self) -> float:
        """1 / noise_multiplier, rounded down: what the steps of a plan may share."""
        return (1 - 2.0**-51) / self.noise_multiplier

    @property
    def rho(self) -> float:
        """rho-zCDP: as asked, else 1 / (2 noise_multiplier^2), rounded up."""
        return self.asked_rho or calibrate.rho(self.noise_multiplier)

    def epsilon(self, delta: float) -> float:
        """The epsilon that goes with ``delta``: as asked, else by the analytic Gaussian bound.

        Parameters
        ----------
        delta : float in (0, 1)

        Returns
        -------
        float
        """
        if delta == self.asked_delta and self.asked_epsilon is not None:
            return self.asked_epsilon
        return calibrate.epsilon(self.noise_multiplier, delta)

    def for_rows(self, k: int) -> GaussianGuarantee:
        """What a person with ``k`` rows has: mu becomes k mu where the unit is one row.

        Where the unit is a person's rows, however many, it is this guarantee (claim users-4).

        Parameters
        ----------
        k : int, rows of one person
        """
        if (unit := unit_of_rows(self.unit, k)) is None:
            return self
        multiplier = multiplier_of_rows(self.noise_multiplier, k)
        times = mu_of_rows(self.asked_mu, k)
        return GaussianGuarantee(self.neighbors, multiplier, asked_mu=times, unit=unit)

    def cost(self) -> Cost:
        """mu^2 as asked, or 2 rho, else 1/s^2: exactly, the floats as the fractions they are."""
        if self.asked_mu is not None:
            return Cost(mu_squared=Fraction(self.asked_mu) ** 2)
        if self.asked_rho is not None:
            return Cost(mu_squared=2 * Fraction(self.asked_rho))
        return Cost(mu_squared=1 / Fraction(self.noise_multiplier) ** 2)

    def dp_event(self) -> Any:
        """This guarantee as a ``dp_accounting`` event; see :func:`ellipsum.calibrate.dp_event`
        (claim composition-1)."""
        return calibrate.dp_event(self.noise_multiplier)

    def dp_relation(self) -> Any:
        """What an accountant must be set to; see :func:`ellipsum.calibrate.dp_relation`."""
        return calibrate.dp_relation(self.neighbors)

    def budget(self) -> dict[str, Any]:
        """epsilon and delta as asked (None for rho or mu), rho, mu and the neighbours."""
        return {
            "epsilon": self.asked_epsilon,
            "delta": self.asked_delta,
            "rho": self.rho,
            "mu": self.mu,
            "neighbors": self.neighbors.value,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold."""
        own = {"kind": self.kind, "unit": self.unit, "noise_multiplier": self.noise_multiplier}
        return own | self.budget()

    def __str__(self) -> str:
        parts = []
        if self.asked_epsilon is not None:
            parts.append(f"({shown_up(self.asked_epsilon)}, {shown_up(self.asked_delta)})-DP")
        parts += [f"{shown_up(self.rho)}-zCDP", f"{shown_up(self.mu)}-GDP"]
        return f"{' = '.join(parts)}, neighbours: {self.neighbors}{unit_text(self.unit)}"


@dataclass(frozen=True, repr=False)
class DeltaGuarantee(Guarantee):
    """(epsilon, delta)-DP for one pair alone: what a mechanism that is not Gaussian promises.

    It has no ``mu`` and no ``rho``: some outputs are possible under one neighbour alone.

    Parameters
    ----------
    neighbors : Neighbors, or its string
    asked_epsilon, asked_delta : the budget
    unit : str, whose change makes neighbours: the unit of privacy
    """

    neighbors: Neighbors
    asked_epsilon: float
    asked_delta: float
    unit: str = ROW

    kind = "approximate-dp"
    is_private = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbors", Neighbors.of(self.neighbors))

    def epsilon(self, delta: float) -> float:
        """The epsilon that goes with ``delta``: the one asked for, from its own delta upwards.

        Raises
        ------
        ValueError
            For a smaller delta: nothing is known there.
        """
        if delta >= self.asked_delta:
            return self.asked_epsilon
        raise ValueError(f"this guarantee is for delta = {self.asked_delta:g} and above alone")

    def for_rows(self, k: int) -> DeltaGuarantee:
        """What a person with ``k`` rows has: (k epsilon, delta (e^(k eps) - 1)/(e^eps - 1)).

        Parameters
        ----------
        k : int, rows of one person

        Raises
        ------
        ValueError
            Where that delta is 1 or above: nothing is promised then.
        """
        if (unit := unit_of_rows(self.unit, k)) is None:
            return self
        pair = delta_of_rows(self.asked_epsilon, self.asked_delta, k)
        return DeltaGuarantee(self.neighbors, *pair, unit)

    def cost(self) -> Cost:
        """epsilon and delta as asked."""
        return Cost(epsilon=Fraction(self.asked_epsilon), delta=Fraction(self.asked_delta))

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("mu", "rho", "dp_event", "dp_relation"):
            raise AttributeError(f"a guarantee for one pair (epsilon, delta) alone has no {name}")
        super().__getattr__(name)

    def budget(self) -> dict[str, Any]:
        """epsilon and delta as asked, and the neighbours."""
        return {
            "epsilon": self.asked_epsilon,
            "delta": self.asked_delta,
            "neighbors": self.neighbors.value,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold."""
        return {"kind": self.kind, "unit": self.unit} | self.budget()

    def __str__(self) -> str:
        pair = f"({shown_up(self.asked_epsilon)}, {shown_up(self.asked_delta)})-DP"
        return f"{pair}, neighbours: {self.neighbors}{unit_text(self.unit)}"


def rounded_up(sd: float) -> float:
    """A noise level computed in doubles, with under 8 roundings, moved above its true value."""
    return sd * (1 + 2.0**-50)


def seed_caveats(seed: int | bytes | None) -> tuple[str, ...]:
    """Why a release made with this seed is not private (claim composition-4), if so."""
    return () if seed is None else ("not private: made with a seed",)


def shown_up(x: float | None) -> str:
    """Six digits, rounded up: what is printed is not below what is promised."""
    up = decimal.Context(prec=6, rounding=decimal.ROUND_CEILING)
    nearest = f"{x or 0.0:g}"
    return nearest if float(nearest) == x else f"{float(up.create_decimal(x or 0.0)):g}"
