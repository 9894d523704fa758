"""Moments and mode of a quadratic form, and the names that SciPy's newer distributions have."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate
from .parameters import Array, Value
from .tails import Tails

__all__ = ["Moments"]

#: Probabilities at whose quantiles the highest density is looked for.
_GRID = (np.arange(400) + 0.5) / 400

#: Golden sections until an interval is this part of itself: the square root of a rounding, below
#: which two densities beside a maximum cannot be told apart.
_RESOLVED = 2.0**-26


#: Tail probabilities between which the entropy is integrated, and at which it is cut in pieces.
_ENTROPY_ENDS, _ENTROPY_KNOTS = 1e-18, (1e-12, 1e-6, 1e-3, 0.02, 0.1, 0.3)


class Moments(Tails):
    """Moments of any order and kind, the mode, the entropy, and SciPy's two sets of names."""

    def stats(self, moments: str = "mv") -> tuple[float, ...] | float:
        """Mean, variance, skewness and excess kurtosis, as ``scipy.stats`` has them.

        Parameters
        ----------
        moments : str of the letters ``m``, ``v``, ``s``, ``k``

        Returns
        -------
        tuple of floats in the order mean, variance, skewness, kurtosis; one float for one letter
        """
        if not moments or not set(moments) <= set("mvsk"):
            raise ValueError(f"moments must be made of the letters m, v, s, k, got {moments!r}")
        known = {"m": self.mean, "v": self.var, "s": self.skewness, "k": self.kurtosis}
        values = tuple(known[letter]() for letter in "mvsk" if letter in moments)
        return values[0] if len(values) == 1 else values

    def moment(self, order: int = 1, kind: str = "raw") -> float:
        """E Q^order, E (Q - mean)^order, or the latter over std^order; from the cumulants.

        Parameters
        ----------
        order : int, 0 or more
        kind : ``"raw"``, ``"central"`` or ``"standardized"``

        Returns
        -------
        float, in the power of Q's unit; infinite beyond the doubles. Of weights of both signs it
        has the rounding of the largest product of cumulants.
        """
        n = _validate.whole("order", order)
        _validate.one_of("kind", kind, ("raw", "central", "standardized"))
        with np.errstate(over="ignore", invalid="ignore"):
            cumulants = [np.float64(self.cumulant(k)) for k in range(1, n + 1)]
            if kind != "raw" and cumulants:
                cumulants[0] = np.float64(0)
            found = [np.float64(1)]
            for m in range(1, n + 1):
                terms = [math.comb(m - 1, k) * cumulants[k] * found[m - 1 - k] for k in range(m)]
                found.append(np.float64(sum(terms)))
            scale = np.float64(self.std()) ** n if kind == "standardized" else 1.0
            return float(found[n] / scale) if scale else math.nan

    def mode(self) -> float:
        """Where the density is highest, in the unit of Q: the offset where it is infinite there.

        Noncentral terms can give several maxima: the best of 400 quantiles, refined. A peak that
        holds less than 1/400 of the probability may be missed.
        """
        low, high = self.support()
        if low == high:
            return low
        at_offset = float(self._quiet_pdf(np.array([self._offset]))[0])
        if not math.isfinite(at_offset):
            return self._offset
        points = np.unique([*np.asarray(self.ppf(_GRID)), *[x for x in (low, high) if x == x - 0]])
        points = points[np.isfinite(points)]
        best = int(np.argmax(self._quiet_pdf(points)))
        left, right = points[max(best - 1, 0)], points[min(best + 1, points.size - 1)]
        return self._highest(float(left), float(right))

    def _highest(self, low: float, high: float) -> float:
        """The highest point of an interval with one maximum, by golden sections."""
        ends, golden = (low, high), (math.sqrt(5) - 1) / 2
        while high - low > _RESOLVED * max(abs(low), abs(high), ends[1] - ends[0]):
            one, other = high - golden * (high - low), low + golden * (high - low)
            values = self._quiet_pdf(np.array([one, other]))
            low, high = (low, other) if values[0] >= values[1] else (one, high)
        points = np.array([0.5 * (low + high), *ends])
        return float(points[np.argmax(self._quiet_pdf(points))])

    def _quiet_pdf(self, q: Array) -> Array:
        """The density without the warnings of its error: for comparisons alone."""
        out, _ = self._evaluate(q)
        return np.exp(out[:, 1])

    def entropy(self) -> float:
        """Differential entropy, by quadrature over the quantiles; to about 1e-8.

        Returns
        -------
        float, nats; -inf for a point mass
        """
        from scipy import integrate

        low, high = (float(v) for v in (self.ppf(_ENTROPY_ENDS), self.isf(_ENTROPY_ENDS)))
        if low == high:
            return -math.inf
        knots = [self.ppf(p) for p in (*_ENTROPY_KNOTS, 0.5)]
        knots += [self.isf(p) for p in reversed(_ENTROPY_KNOTS)]

        def integrand(q: float) -> float:
            log_pdf = self._table.tail(q - self._offset)[1]
            return -log_pdf * math.exp(log_pdf) if math.isfinite(log_pdf) else 0.0

        edges = sorted({low, *map(float, knots), high})
        pieces = itertools.pairwise(edges)
        return math.fsum(
            integrate.quad(integrand, a, b, epsabs=1e-11, epsrel=1e-9, limit=200)[0]
            for a, b in pieces
        )

    def variance(self) -> float:
        """As :meth:`var`."""
        return self.var()

    def standard_deviation(self) -> float:
        """As :meth:`std`."""
        return self.std()

    def ccdf(self, q: ArrayLike) -> Value:
        """As :meth:`sf`."""
        return self._value(q, upper=True, log=False)

    def logccdf(self, q: ArrayLike) -> Value:
        """As :meth:`logsf`."""
        return self._value(q, upper=True, log=True)

    def icdf(self, p: ArrayLike) -> Value:
        """As :meth:`ppf`."""
        return self._quantiles(p, upper=False)

    def iccdf(self, p: ArrayLike) -> Value:
        """As :meth:`isf`."""
        return self._quantiles(p, upper=True)

    def sample(
        self,
        shape: int | tuple[int, ...] = (),
        *,
        rng: int | np.random.Generator | None = None,
    ) -> Value:
        """As :meth:`rvs`, by the newer names of its arguments."""
        return self.rvs(shape, rng)
