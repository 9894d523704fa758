"""The unit of privacy: a row, unless a guarantee says otherwise; what k rows of a person have."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from . import _validate

__all__ = [
    "RECORD",
    "ROW",
    "delta_of_rows",
    "mu_of_rows",
    "multiplier_of_rows",
    "unit_of_rows",
    "unit_text",
]

#: The unit of privacy of mechanisms that take rows as they come, or release each by itself.
ROW, RECORD = "one row", "one record"


def unit_text(unit: str) -> str:
    """What a guarantee's line says of its unit: nothing where it is a row."""
    return "" if unit == ROW else f", unit: {unit}"


def unit_of_rows(unit: str, k: int) -> str | None:
    """The unit of ``k`` rows of a person, from a guarantee's own; None where that covers them.

    Raises
    ------
    ValueError
        For a unit of fewer rows of one person: what it was made of says more.
    """
    rows = _validate.whole("k", k, least=1)
    if unit in (ROW, RECORD):
        return None if rows == 1 else f"{rows} {unit.removeprefix('one ')}s of one person"
    several = re.fullmatch(r"(\d+) (?:row|record)s of one person", unit)
    if several is not None and int(several[1]) < rows:
        raise ValueError(f"this guarantee is for {unit}: ask the one that it was made from")
    return None


def multiplier_of_rows(multiplier: float, k: int) -> float:
    """The noise multiplier that k rows of a person have: never above the quotient by k."""
    return multiplier / k * (1 - 2.0**-51)


def mu_of_rows(mu: float | None, k: int) -> float | None:
    """k mu, where that is a double exactly."""
    if mu is None or Fraction(mu * k) != k * Fraction(mu):
        return None
    return mu * k


def delta_of_rows(epsilon: float, delta: float, k: int) -> tuple[float, float]:
    """(k epsilon, delta (e^(k epsilon) - 1)/(e^epsilon - 1)), both rounded up.

    Raises
    ------
    ValueError
        Where that delta is 1 or above: nothing is promised then.
    """
    total = k * epsilon
    factor = k if epsilon == 0 else math.expm1(min(total, 700.0)) / math.expm1(epsilon)
    wider = delta * factor * (1 + 2.0**-48)
    if not wider < 1:
        raise ValueError(f"for {k} rows delta would be 1 or above: they have no guarantee")
    return total * (1 + 2.0**-51), wider
