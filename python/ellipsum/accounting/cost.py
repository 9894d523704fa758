"""What releases cost together, and whether a budget has room for it: exact fractions.

A cost is a triple (mu^2, epsilon, delta): of Gaussian mechanisms the sum of mu^2, of mechanisms
that promise a pair (epsilon, delta) the sums of both, of selections the sum of delta. Adding is
exact: a float is a fraction, and nothing is rounded until a bound is asked for. Whatever was
answered may choose what is asked next, and how much is spent on it (claim ledger-1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import Any, NamedTuple

from .. import calibrate

__all__ = ["Cost", "Left", "Limit", "exact", "float_up", "sqrt_down", "sqrt_up"]

#: Denominators of sums of 1/s^2 may grow with every s that is new: beyond so many bits the sum is
#: rounded up, to a multiple of 2^-_ROUNDED_BITS.
_MOST_BITS, _ROUNDED_BITS = 1 << 15, 4096

#: mu^2 of a pure epsilon is at most pi/2 epsilon^2 < 11/7 epsilon^2 (claim ledger-2).
_PURE = Fraction(11, 7)


def exact(name: str, value: Any, *, least: int = 0) -> Fraction:
    """A number as the fraction that it is: a float's own value, not the decimal it prints as.

    Raises
    ------
    TypeError, ValueError
        For what is no number, not finite, or below ``least`` (for 0: not above it).
    """
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got bool")
    try:
        number = _fraction(value)
    except (TypeError, OverflowError, ValueError):
        what = type(value).__name__
        raise ValueError(f"{name} must be a finite number above 0, got a {what}") from None
    if number <= least:
        raise ValueError(f"{name} must be a finite number above 0, got {float(number)}")
    return number


def _fraction(value: Any) -> Fraction:
    """In Python's integers: those of NumPy, which a fraction would keep, wrap around."""
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    ratio = getattr(value, "as_integer_ratio", None)  # as NumPy's floats have
    return Fraction(value) if ratio is None else Fraction(*ratio())


@dataclass(frozen=True, repr=False)
class Cost:
    """What a release costs: mu^2 of Gaussian noise, and epsilon and delta of everything else.

    Parameters
    ----------
    mu_squared : Fraction
    epsilon, delta : Fraction
    """

    mu_squared: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if type(number.numerator) is not int:  # of a guarantee made of NumPy's integers
                object.__setattr__(self, name, _fraction(number))
        if min(self.mu_squared, self.epsilon, self.delta) < 0:
            raise ValueError("a cost must not be negative")

    def __repr__(self) -> str:
        known = (math.sqrt(self.mu_squared), float(self.epsilon), float(self.delta))
        return "Cost(about mu={:.6g}, epsilon={:.6g}, delta={:.6g})".format(*known)

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            _bounded(self.mu_squared + other.mu_squared),
            _bounded(self.epsilon + other.epsilon),
            _bounded(self.delta + other.delta),
        )

    @property
    def as_gaussian(self) -> Fraction:
        """mu^2 with the pure epsilons in it, each as the Gaussian that is no more private.

        epsilon-DP is mu-GDP with mu = 2 Phi^-1(1/(1 + e^-epsilon)) <= sqrt(pi/2) epsilon; the
        sum of epsilons bounds the root of the sum of squares.
        """
        return self.mu_squared + _PURE * self.epsilon**2

    def noise_multiplier(self) -> float:
        """1/mu of the Gaussian part, rounded down; inf without one."""
        return sqrt_down(1 / self.mu_squared) if self.mu_squared else math.inf

    def bound_epsilon(self, delta: Fraction) -> float:
        """The least epsilon that goes with ``delta``, rounded up; inf where there is none."""
        rest = delta - self.delta
        if rest < 0 or (rest == 0 and self.mu_squared):
            return math.inf
        extra = _gaussian_epsilon(self.noise_multiplier(), _down(rest)) if self.mu_squared else 0.0
        return float_up(self.epsilon + Fraction(extra)) if math.isfinite(extra) else math.inf

    def bound_delta(self, epsilon: Fraction) -> float:
        """The least delta that goes with ``epsilon``, rounded up; at most 1."""
        rest = epsilon - self.epsilon
        if rest < 0:
            return 1.0
        extra = calibrate.delta(self.noise_multiplier(), _down(rest)) if self.mu_squared else 0.0
        return min(1.0, float_up(self.delta + Fraction(extra)))

    def __str__(self) -> str:
        parts = []
        if self.mu_squared:
            parts.append(f"mu = {sqrt_up(self.mu_squared):.6g}")
        if self.epsilon:
            parts.append(f"epsilon = {float_up(self.epsilon):.6g}")
        if self.delta:
            parts.append(f"delta = {float_up(self.delta):.6g}")
        return ", ".join(parts) or "nothing"


class Left(NamedTuple):
    """What a budget has left, rounded down: for Gaussian noise, *or* a pair, *or* selections.

    Each is what can still be spent if it is spent on that alone.
    """

    mu: float
    epsilon: float
    delta: float

    def __str__(self) -> str:
        mu, epsilon, delta = (_six_digits(number) for number in self)
        return f"mu = {mu}, or epsilon = {epsilon}, or delta = {delta}"


@dataclass(frozen=True)
class Limit:
    """What may be spent together: mu^2 with a delta for selections, or epsilon with delta.

    Parameters
    ----------
    mu_squared : Fraction or None
    epsilon : Fraction or None; exactly one of the two is given
    delta : Fraction
    """

    mu_squared: Fraction | None
    epsilon: Fraction | None
    delta: Fraction

    def allows(self, cost: Cost) -> bool:
        """Whether releases that cost this together keep within the limit: exact."""
        if cost.delta > self.delta:
            return False
        if self.epsilon is None:
            return cost.as_gaussian <= (self.mu_squared or 0)
        if cost.epsilon > self.epsilon:
            return False
        return cost.mu_squared <= _room(self.epsilon - cost.epsilon, self.delta - cost.delta)

    def left(self, cost: Cost) -> Left:
        """What can be spent besides ``cost``, each alone, rounded down."""
        if not self.allows(cost):
            return Left(0.0, 0.0, 0.0)
        if self.epsilon is None:
            rest = (self.mu_squared or Fraction(0)) - cost.as_gaussian
            mu, delta = sqrt_down(rest), _down(self.delta - cost.delta)
            pure = sqrt_down(((self.mu_squared or 0) - cost.mu_squared) / _PURE)
            epsilon = self._most(cost, max(0.0, pure - float(cost.epsilon)), "epsilon")
            return Left(mu, epsilon, delta)
        epsilon_left, delta_left = self.epsilon - cost.epsilon, self.delta - cost.delta
        mu = sqrt_down(max(Fraction(0), _room(epsilon_left, delta_left) - cost.mu_squared))
        used = (cost.bound_epsilon(self.delta), cost.bound_delta(self.epsilon))
        epsilon = self._most(cost, max(0.0, float(self.epsilon) - used[0]), "epsilon")
        delta = self._most(cost, max(0.0, float(self.delta) - used[1]), "delta")
        return Left(mu, epsilon, delta)

    def _most(self, cost: Cost, guess: float, name: str) -> float:
        """A number near the guess, not above what is left: halved gaps towards zero."""
        gap = math.ulp(guess)
        while guess > 0 and not self.allows(cost + Cost(**{name: Fraction(guess)})):
            guess, gap = max(0.0, guess - gap), 2 * gap
        return guess

    def __str__(self) -> str:
        first = (
            f"epsilon = {_down(self.epsilon):.6g}"
            if self.epsilon is not None
            else f"mu = {sqrt_down(self.mu_squared or Fraction(0)):.6g}"
        )
        return first + (f", delta = {_down(self.delta):.6g}" if self.delta else "")


def _room(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest mu^2 known to be (epsilon, delta)-DP: 1/s^2 of the calibrated s, exactly."""
    if epsilon <= 0 or delta <= 0 or _down(epsilon) == 0 or _down(delta) == 0:
        return Fraction(0)
    multiplier = _calibrated(_down(epsilon), min(_down(delta), 1 - 2.0**-53))
    return 1 / Fraction(multiplier) ** 2 if math.isfinite(multiplier) else Fraction(0)


@lru_cache(maxsize=256)
def _calibrated(epsilon: float, delta: float) -> float:
    return calibrate.noise_multiplier(epsilon, delta)


def _gaussian_epsilon(multiplier: float, delta: float) -> float:
    return calibrate.epsilon(multiplier, delta) if 0 < delta < 1 else (0.0 if delta else math.inf)


def _bounded(number: Fraction) -> Fraction:
    """The number itself, or one just above it whose denominator does not grow on."""
    if number.denominator.bit_length() <= _MOST_BITS:
        return number
    unit = 1 << _ROUNDED_BITS
    return Fraction(-((-number.numerator * unit) // number.denominator), unit)


def _down(number: Fraction) -> float:
    """The largest double that is not above a number from 0 on."""
    value = float(number)
    return math.nextafter(value, 0.0) if Fraction(value) > number else value


def _six_digits(number: float) -> str:
    """Six digits, rounded down: read back as a double it is not above the number."""
    short = Context(prec=6, rounding=ROUND_DOWN).create_decimal(repr(float(number)))
    return f"{float(short):.6g}"


def float_up(number: Fraction) -> float:
    """The least double that is not below a number from 0 on."""
    value = float(number)
    return math.nextafter(value, math.inf) if Fraction(value) < number else value


def sqrt_down(number: Fraction) -> float:
    """The largest double whose square is not above the number."""
    if number <= 0:
        return 0.0
    shift = (number.denominator.bit_length() - number.numerator.bit_length()) // 2
    guess = math.ldexp(math.sqrt(float(number * Fraction(4) ** shift)), -shift)
    while Fraction(guess) ** 2 > number:
        guess = math.nextafter(guess, 0.0)
    while Fraction(above := math.nextafter(guess, math.inf)) ** 2 <= number:
        guess = above
    return guess


def sqrt_up(number: Fraction) -> float:
    """The least double whose square is not below the number."""
    low = sqrt_down(number)
    return low if Fraction(low) ** 2 == number else math.nextafter(low, math.inf)
