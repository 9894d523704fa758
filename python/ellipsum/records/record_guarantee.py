"""What the release of one record promises, the fit of the mechanism included."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import scipy

from .. import _validate, calibrate
from ..accounting.cost import Cost, sqrt_up
from ..guarantee import UP, Guarantee, Neighbors, shown_up
from ..privacy_unit import RECORD, unit_of_rows

__all__ = ["RecordGuarantee"]


@dataclass(frozen=True, repr=False)
class RecordGuarantee(Guarantee):
    """Local differential privacy of one record: any two values of it, one release.

    **Guarantees.** What is returned never understates. A fit on private rows of the same people is
    in it: mu^2 = mu_fit^2 + mu_release^2 (Dong, Roth & Su 2022, Corollary 3.3; the release may
    depend on the fit). Two releases of the same record are two of these.

    Parameters
    ----------
    mu_release : float, of Gaussian noise; 0 for a pure release
    pure_epsilon : float, of PrivUnitG (delta = 0); 0 for Gaussian noise
    mu_fit : float, of a private fit under ``replace`` neighbours; 0 for a fit on public rows
    unit : str, whose change makes neighbours: the unit of privacy
    """

    mu_release: float = 0.0
    pure_epsilon: float = 0.0
    mu_fit: float = 0.0
    unit: str = RECORD

    kind = "local"
    is_private = True
    neighbors = Neighbors.REPLACE

    @property
    def mu(self) -> float:
        """mu-GDP of release and fit together.

        Pure epsilon gives mu = 2 Phi^-1(1/(1 + e^-epsilon)): its tradeoff curve is two chords
        of the (convex) Gaussian one through (1/(1 + e^epsilon), 1/(1 + e^epsilon)).
        """
        log_half = scipy.special.log_expit(-self.pure_epsilon)  # of any size
        pure = -2 * float(scipy.special.ndtri_exp(log_half)) if self.pure_epsilon else 0.0
        parts = [x for x in (self.mu_release, self.mu_fit, pure) if x > 0]
        return parts[0] if parts == [self.mu_release] else math.hypot(*parts) * UP

    @property
    def rho(self) -> float:
        """rho-zCDP: mu^2/2."""
        return self.mu**2 / 2 * UP

    def epsilon(self, delta: float = 0.0) -> float:
        """The least epsilon for ``delta``; delta = 0 for a pure release with a public fit."""
        if self.mu_release == 0 and self.mu_fit == 0:
            return self.pure_epsilon
        target = _validate.open_unit("delta", delta)
        if self.pure_epsilon == 0:
            return calibrate.epsilon(1 / self.mu * (1 - 2.0**-51), target)
        if self.delta(0.0) <= target:
            return 0.0
        high = 1.0
        while self.delta(high) > target:
            high *= 2
        root = scipy.optimize.brentq(lambda e: self.delta(e) - target, 0.0, high, xtol=1e-12)
        while self.delta(root) > target:
            root = root * (1 + 1e-10) + 1e-12
        return float(root)

    def delta(self, epsilon: float) -> float:
        """The delta for ``epsilon``.

        A pure release is a post-processing of randomised response with e^epsilon0 : 1 (Kairouz,
        Oh & Viswanath 2015), so beside a Gaussian fit
        delta(e) = p delta_G(e - epsilon0) + (1 - p) delta_G(e + epsilon0), exactly.
        """
        e = _validate.nonnegative("epsilon", epsilon)
        pure = self.pure_epsilon
        if pure == 0:
            return calibrate.delta(1 / self.mu * (1 - 2.0**-51), e)
        p, rest = 1 / (1 + math.exp(-pure)), 1 / (1 + math.exp(min(pure, 700.0)))
        if self.mu_fit == 0:  # p - e^e (1 - p), without its cancellation
            return min(1.0, -math.expm1(e - pure) * p * UP) if e < pure else 0.0
        both = p * self._fit_delta(e - pure) + rest * self._fit_delta(e + pure)
        return min(1.0, both * UP)

    def _fit_delta(self, epsilon: float) -> float:
        """delta_G of the fit alone, for epsilon of either sign: 1 - e^x + e^x delta_G(-x)."""
        multiplier = 1 / self.mu_fit * (1 - 2.0**-51)
        beyond = calibrate.delta(multiplier, abs(epsilon))
        if epsilon >= 0:
            return beyond
        return -math.expm1(epsilon) + math.exp(epsilon) * beyond

    def for_rows(self, k: int) -> RecordGuarantee:
        """What a person with ``k`` records has, each released once (claim users-4).

        Every record has noise of its own: sqrt(k) mu_release, or k epsilon; a private fit on all
        of them is one release of k rows: k mu_fit.

        Parameters
        ----------
        k : int, records of one person
        """
        if (unit := unit_of_rows(self.unit, k)) is None:
            return self
        release = sqrt_up(k * Fraction(self.mu_release) ** 2)
        pure, fit = (sqrt_up((k * Fraction(x)) ** 2) for x in (self.pure_epsilon, self.mu_fit))
        return RecordGuarantee(release, pure, fit, unit)

    def cost(self) -> Cost:
        """mu^2 of release and fit, and the pure epsilon."""
        gaussian = Fraction(self.mu_release) ** 2 + Fraction(self.mu_fit) ** 2
        return Cost(gaussian, Fraction(self.pure_epsilon))

    def budget(self) -> dict[str, Any]:
        """epsilon and delta where the release is pure, rho, mu and the neighbours."""
        pure = self.mu_release == 0 and self.mu_fit == 0
        asked = {"epsilon": self.pure_epsilon, "delta": 0.0} if pure else {}
        known = {"epsilon": None, "delta": None} | asked
        return known | {"rho": self.rho, "mu": self.mu, "neighbors": self.neighbors.value}

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold."""
        own = {"kind": self.kind, "unit": self.unit, "mu_fit": self.mu_fit}
        return own | {"pure_epsilon": self.pure_epsilon} | self.budget()

    def __str__(self) -> str:
        if self.mu_fit == 0 and self.mu_release == 0:
            return f"{shown_up(self.pure_epsilon)}-DP (delta = 0), any two values of {self.unit}"
        fit = f", of which {shown_up(self.mu_fit)} is the fit's" if self.mu_fit else ""
        return f"{shown_up(self.mu)}-GDP{fit}, any two values of {self.unit}"
