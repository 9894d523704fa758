"""PrivUnitG: one unit vector, released with pure epsilon (Asi, Feldman & Talwar 2022)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..noise_keys import JobKeys, root_key
from ..rows.arrays import numeric_rows
from .priv_unit_sampler import NUMBERS_PER_BLOCK, Sampler

__all__ = ["PrivUnit", "UnitLaw"]

Array = NDArray[np.float64]

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_MOST_EPSILON = 128.0  # far beyond use; keeps e^epsilon and the shifts within doubles
_LEAST_EPSILON = 2.0**-36  # the slack is above 2^-38 (priv_unit_sampler), and half at most


@dataclass(frozen=True)
class UnitLaw:
    """U ~ N(0, I/d), its density multiplied by p/Phi(-g) where <U, v> >= g/sqrt(d), and by
    (1-p)/Phi(g) elsewhere, their ratio being e^epsilon: real numbers.

    Parameters
    ----------
    d : int
    epsilon : float
    threshold : float, g
    """

    d: int
    epsilon: float
    threshold: float

    @property
    def probability(self) -> float:
        """p, the chance of the side of v: 1/(1 + e^-epsilon Phi(g)/Phi(-g))."""
        g = self.threshold
        return 1 / (
            1
            + math.exp(
                -self.epsilon + float(scipy.special.log_ndtr(g) - scipy.special.log_ndtr(-g))
            )
        )

    @property
    def lead(self) -> float:
        """sqrt(d) E<U, v> = phi(g)(1 - e^-epsilon)/(Phi(-g) + e^-epsilon Phi(g))."""
        g = self.threshold
        hazard = math.exp(
            -g * g / 2 - _LOG_SQRT_2PI - float(scipy.special.log_ndtr(-g))
        )  # phi/Phi(-g)
        return -math.expm1(-self.epsilon) * self.probability * hazard

    @property
    def scale(self) -> float:
        """E<U, v>: U/scale is unbiased for v."""
        return self.lead / math.sqrt(self.d)

    @property
    def variance(self) -> float:
        """Variance of U/scale, averaged over the coordinates: ((d + g m)/m^2 - 1)/d, m = lead.

        (The second moment along v is 1 + g m times that across it.)
        """
        m = self.lead
        return (self.floor * self.d - 1) / self.d + self.threshold / (m * self.d)

    @property
    def floor(self) -> float:
        """E(U/scale)_i^2 where v_i = 0: 1/lead^2; infinite beyond doubles."""
        square = self.lead**2
        return 1 / square if square > 0 else math.inf

    @property
    def along(self) -> float:
        """What v v^T is multiplied by in E[(U/scale)(U/scale)^T] = floor I + along v v^T."""
        return self.threshold / self.lead


def best_law(d: int, epsilon: float) -> UnitLaw:
    """The law of least variance: a one-dimensional minimisation over the threshold."""

    def loss(g: float) -> float:
        law = UnitLaw(d, epsilon, g)
        return 2 * -math.log(law.lead) + math.log1p(g * law.lead / d)

    high = math.sqrt(2 * epsilon) + 2
    found = scipy.optimize.minimize_scalar(
        loss, bounds=(0.0, high), method="bounded", options={"xatol": 1e-10}
    )
    return UnitLaw(d, epsilon, float(found.x))


class PrivUnit:
    """Release of unit vectors, each epsilon-differentially private by itself (delta = 0).

    Noise variance per coordinate is about a tenth of the Gaussian mechanism's at the same
    epsilon (and delta = 1e-6).

    **Guarantees.** Local model, pure: for any two rows x, x' and any output o, the released
    *bits* satisfy P[o | x] <= e^epsilon P[o | x'], any epsilon. They are integers drawn by
    rejection from :func:`ellipsum.noise.rounded_gaussian`; all that is approximate (the grid, the
    rounding of acceptance probabilities) is in a slack taken off epsilon first
    (claim records-2). A row that is not finite, or 0, counts as the last axis. How many
    trials a row takes does not depend on what is released, nor on the row but for that slack.

    Parameters
    ----------
    d : int, at least 1 and at most 65536
    epsilon : float, from 2^-36 to 128

    Source: Asi, Feldman & Talwar 2022 ("Optimal algorithms for mean estimation under local
    differential privacy"), section 4.
    """

    def __init__(self, d: int, epsilon: float) -> None:
        if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or not 1 <= d <= 1 << 16:
            raise ValueError(f"d must be a whole number from 1 to 65536, got {d!r}")
        self.d, self.epsilon = int(d), _validate.positive("epsilon", epsilon)
        if self.epsilon > _MOST_EPSILON:
            raise ValueError(f"epsilon must be at most {_MOST_EPSILON:g}, got {self.epsilon:g}")
        if self.epsilon < _LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least 2^-36, got {self.epsilon:g}")
        self.law = best_law(self.d, self.epsilon)
        self._sampler = Sampler(self.d, self.epsilon, self.threshold)

    @property
    def threshold(self) -> float:
        """g: the side of v begins at <U, v> = g/sqrt(d)."""
        return self.law.threshold

    @property
    def probability(self) -> float:
        """p: the chance of v's side."""
        return self.law.probability

    @property
    def scale(self) -> float:
        """E<U, v>, by which U is divided."""
        return self.law.scale

    @property
    def variance(self) -> float:
        """Variance per coordinate of a release, averaged over coordinates."""
        return self.law.variance

    @property
    def slack(self) -> float:
        """What is taken off epsilon for the bits; the sampler's law is that of epsilon - slack."""
        return self._sampler.slack

    @property
    def trials(self) -> float:
        """Expected number of draws of d numbers for one row."""
        return self._sampler.trials

    def release(
        self,
        rows: ArrayLike,
        *,
        seed: int | bytes | None = None,
        threads: int | None = None,
    ) -> Array:
        """Release each row's direction, unbiased for row/|row| (to the grid's 2^-22).

        Parameters
        ----------
        rows : array (n, d), any length but 0
        seed : int or 32 bytes, optional; for tests: what is made with a seed is **not private**
        threads : int, optional, for the noise

        Returns
        -------
        array (n, d): integers of a public grid, divided by sqrt(d) scale
        """
        batch = numeric_rows("rows", rows, d=self.d)

        def rows_of(part: slice) -> Array:
            return _validate.doubles(batch[part])

        return self.release_made(len(batch), rows_of, seed, threads)

    def release_made(
        self,
        n: int,
        rows: Callable[[slice], Array],
        seed: int | bytes | None = None,
        threads: int | None = None,
    ) -> Array:
        """The same of n rows that are made a block at a time: ``rows(slice)``, float64. The result
        is the one array of n rows that it takes."""
        with np.errstate(all="ignore"):  # a warning would tell of a value
            directions = self._sampler.quantise(n, rows)
        seen = directions if seed is not None else None  # a fresh root is bound to nothing else
        keys = JobKeys(root_key(seed), "unit vectors", self.d, self.epsilon, seen)
        drawn = self._sampler.draw(directions, keys, threads)
        released, step = drawn.view(np.float64), 1 / (self._sampler.sigma * self.law.lead)
        for start in range(0, n, rows_at_once := max(1, NUMBERS_PER_BLOCK // self.d)):
            part = slice(start, start + rows_at_once)
            released[part] = drawn[part] * step
        return released

    def __repr__(self) -> str:
        return f"PrivUnit(d={self.d}, epsilon={self.epsilon:g})"
