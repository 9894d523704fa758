"""Both tails, the density and the quantiles of a quadratic form."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate
from .parameters import Array, Parameters, Value

__all__ = ["QuadraticFormResult", "QuadraticFormWarning", "Tails", "check_errors"]

_TOLERANCE = 1e-10  # relative error that is promised: above it, a warning (see the class)
#: The log of what is called the smaller tail is no more, but for what a half of it may err by.
_HALF = math.log(0.5) + 1e-9
_LAST_PLACE = 2.0**-52  # of a double next to 1: a tail beside it has that as its absolute error


class QuadraticFormWarning(RuntimeWarning):
    """A value of a :class:`QuadraticForm` whose relative error is above 1e-10, or not known."""


class QuadraticFormResult(NamedTuple):
    """Both tails and the density at one q, with what is known of their errors."""

    cdf: Value  #: P(Q <= q)
    sf: Value  #: P(Q > q)
    logcdf: Value
    logsf: Value
    pdf: Value
    logpdf: Value
    error: Value  #: estimated relative error of the smaller of cdf and sf
    pdf_error: Value  #: the same for the density
    nodes: Value  #: evaluations of the integrand

    @property
    def met(self) -> bool:
        """Whether every error estimate is below 1e-10."""
        return bool(np.all(self.error <= _TOLERANCE) and np.all(self.pdf_error <= _TOLERANCE))


def check_errors(errors: Array) -> None:
    """Warns of estimated relative errors above 1e-10, in the name of the caller's caller."""
    if not (errors <= _TOLERANCE).all():
        worst = float(np.max(errors))
        what = f"estimated relative error {worst:.1e} is above {_TOLERANCE:.0e}"
        warnings.warn(
            "the relative error is not known" if math.isnan(worst) else f"the {what}",
            QuadraticFormWarning,
            stacklevel=4,
        )


def _settled(small: Array, error: Array) -> tuple[Array, Array]:
    """The log of a smaller tail, and its relative error: of one that turned out not to be the
    smaller, what that leaves of the other; where it is no probability, none is known."""
    with np.errstate(all="ignore"):
        of_other = (error + _LAST_PLACE) * np.exp(small) / np.abs(np.expm1(small))
    error = np.where(small > _HALF, of_other, error)
    return np.minimum(small, 0.0), np.where(small > 0, math.nan, error)


class Tails(Parameters):
    """cdf, sf, pdf, their logarithms, ppf and isf; every one warns where an error is not met."""

    def evaluate(self, q: ArrayLike) -> QuadraticFormResult:
        """Both tails, the density, and the error estimates and node count behind them.

        No warning is given here: ask ``result.met``.

        Parameters
        ----------
        q : float or array_like, in the unit of Q

        Returns
        -------
        QuadraticFormResult, each field a float or an array of the shape of q
        """
        out, shape = self._evaluate(q)
        small, log_pdf, error, pdf_error, upper, nodes = out.T
        with np.errstate(divide="ignore"):
            large_log = np.log1p(-np.exp(small))
        values = [
            np.where(upper, -np.expm1(small), np.exp(small)),
            np.where(upper, np.exp(small), -np.expm1(small)),
            np.where(upper, large_log, small),
            np.where(upper, small, large_log),
            np.exp(log_pdf),
            log_pdf,
            error,
            pdf_error,
            nodes.astype(np.int64),
        ]
        return QuadraticFormResult(*(v.reshape(shape)[()] for v in values))

    def _evaluate(self, q: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        points = np.asarray(q, dtype=np.float64)
        flat = np.ascontiguousarray(points.ravel() - self._offset)
        out = np.empty((flat.size, 6))
        self._table.tails(flat, out, self._threads)
        out[:, 0], out[:, 2] = _settled(out[:, 0], out[:, 2])
        for i in np.flatnonzero(flat == 0) if self._atom else ():
            out[i] = self._with_atom(out[i])
        return out, points.shape

    @property
    def _atom(self) -> float:
        """P(Q = offset) where there are no degrees of freedom and no normal term: of Poisson
        mixtures of chi-squares, all of which are of none."""
        if self._normal_sd or not self._dof.size or self._dof.any():
            return 0.0
        return math.exp(-0.5 * math.fsum(self._noncentrality[self._weights != 0]))

    def _with_atom(self, row: Array) -> Array:
        """What was told at the offset, which counts half of the atom, or none of one at an end of
        the support, with all of it in the lower tail."""
        low, high = self.support()
        small, tail = math.exp(row[0]), 0.5 * self._atom
        lower = 1 - small if row[4] else small
        upper = small if row[4] else 1 - small
        lower, upper = lower + tail, upper - tail
        if low == self._offset:
            lower, upper = 2 * tail, 1 - 2 * tail
        elif high == self._offset:
            lower, upper = 1.0, 0.0
        least = min(lower, upper)
        with np.errstate(divide="ignore"):
            log = float(np.log(max(least, 0.0)))
        error = (row[2] + 4 * _LAST_PLACE) * max(small, tail) / least if least > 0 else 0.0
        return np.array([log, row[1], error, row[3], float(upper < lower), row[5]])

    def _value(self, q: ArrayLike, upper: bool, log: bool) -> Value:
        if (type(q) is float or type(q) is int) and not (q == self._offset and self._atom):
            small, _, error, _, is_upper, _ = self._table.tail(q - self._offset)
            if not small <= _HALF:
                small, error = map(float, _settled(np.float64(small), np.float64(error)))
            if not error <= _TOLERANCE:
                check_errors(np.array([error]))
            if is_upper == upper:
                return small if log else math.exp(small)
            if log:
                return -math.inf if small == 0 else math.log1p(-math.exp(small))
            return -math.expm1(small)
        out, shape = self._evaluate(q)
        check_errors(out[:, 2])
        small = out[:, 0]
        mine = (out[:, 4] != 0) == upper
        if log:
            with np.errstate(divide="ignore"):
                value = np.where(mine, small, np.log1p(-np.exp(small)))
        else:
            value = np.where(mine, np.exp(small), -np.expm1(small))
        return value.reshape(shape)[()]

    def cdf(self, q: ArrayLike, method: str = "auto") -> Value:
        """P(Q <= q).

        Parameters
        ----------
        q : float or array_like, in the unit of Q
        method : str
            ``"auto"`` or ``"contour"``: this package's way. ``"ruben"``, ``"davies"``,
            ``"imhof"``, ``"saddlepoint"``, ``"moment"``: a classical one, for comparison (see
            ``docs/quadratic_forms.md``). Most of these have an absolute error, or none that is
            known, and warn where that is not enough.

        Returns
        -------
        float or array of the shape of q: probabilities

        Raises
        ------
        ValueError
            The method is not known, or does not take these parameters.
        """
        if method in ("auto", "contour"):
            return self._value(q, upper=False, log=False)
        return self._classical(q, method, 0)

    def sf(self, q: ArrayLike, method: str = "auto") -> Value:
        """P(Q > q).

        Parameters
        ----------
        q : float or array_like, in the unit of Q
        method : str
            As of :meth:`cdf`, which says what each of them is good for.

        Returns
        -------
        float or array of the shape of q: probabilities

        Raises
        ------
        ValueError
            As :meth:`cdf`.
        """
        if method in ("auto", "contour"):
            return self._value(q, upper=True, log=False)
        return self._classical(q, method, 1)

    def _classical(self, q: ArrayLike, method: str, which: int) -> Value:
        from .classical import METHODS

        _validate.one_of("method", method, ["auto", "contour", *METHODS])
        points = np.asarray(q, dtype=np.float64)
        tails = np.array([METHODS[method](self, float(x)) for x in points.ravel()]).reshape(-1, 3)
        with np.errstate(divide="ignore", invalid="ignore"):  # of the smaller tail, or NaN
            check_errors(
                np.where(tails[:, 2] == 0, 0.0, tails[:, 2] / np.min(tails[:, :2], axis=1))
            )
        return tails[:, which].reshape(points.shape)[()]

    def logcdf(self, q: ArrayLike) -> Value:
        """log P(Q <= q), right where the probability itself underflows.

        Parameters
        ----------
        q : float or array_like, in the unit of Q

        Returns
        -------
        float or array of the shape of q
        """
        return self._value(q, upper=False, log=True)

    def logsf(self, q: ArrayLike) -> Value:
        """log P(Q > q), right where the probability itself underflows.

        Parameters
        ----------
        q : float or array_like, in the unit of Q

        Returns
        -------
        float or array of the shape of q
        """
        return self._value(q, upper=True, log=True)

    def logpdf(self, q: ArrayLike) -> Value:
        """Logarithm of the density at q.

        Parameters
        ----------
        q : float or array_like, in the unit of Q

        Returns
        -------
        float or array of the shape of q: of a density per unit of Q
        """
        out, shape = self._evaluate(q)
        check_errors(out[:, 3])
        return out[:, 1].reshape(shape)[()]

    def pdf(self, q: ArrayLike) -> Value:
        """Density at q; infinite where it is (q = 0 and less than two degrees of freedom).

        Parameters
        ----------
        q : float or array_like, in the unit of Q

        Returns
        -------
        float or array of the shape of q, per unit of Q
        """
        return np.exp(self.logpdf(q))

    # ---- quantiles ----------------------------------------------------------------------

    def ppf(self, p: ArrayLike) -> Value:
        """The q with P(Q <= q) = p.

        Parameters
        ----------
        p : float or array_like, probabilities

        Returns
        -------
        float or array of the shape of p, in the unit of Q; NaN outside [0, 1]
        """
        return self._quantiles(p, upper=False)

    def isf(self, p: ArrayLike) -> Value:
        """The q with P(Q > q) = p.

        Parameters
        ----------
        p : float or array_like, probabilities

        Returns
        -------
        float or array of the shape of p, in the unit of Q; NaN outside [0, 1]
        """
        return self._quantiles(p, upper=True)

    def median(self) -> float:
        """The q that halves the probability, in the unit of Q."""
        return float(self.isf(0.5))

    def interval(self, confidence: float) -> tuple[float, float]:
        """The central interval of this probability.

        Parameters
        ----------
        confidence : float, a probability

        Returns
        -------
        tuple of two floats, in the unit of Q

        Raises
        ------
        ValueError
            It is no probability.
        """
        if not 0 <= confidence <= 1:
            raise ValueError(f"confidence must be from 0 to 1, got {confidence}")
        tail = 0.5 * (1 - confidence)
        return float(self.ppf(tail)), float(self.isf(tail))

    def _quantiles(self, p: ArrayLike, upper: bool) -> Value:
        probability = np.asarray(p, dtype=np.float64)
        flat = probability.ravel()
        low, high = self.support()
        value = np.where((flat == 0) == upper, high, low)  # right at 0 and 1, and for a point
        value[~((flat >= 0) & (flat <= 1))] = math.nan
        inside = (flat > 0) & (flat < 1) & (low < high)
        if self._atom:
            end = float(self.sf(self._offset) if upper else self.cdf(self._offset))
            at = (
                (end <= flat) & (flat < end + self._atom)
                if upper
                else (end - self._atom < flat) & (flat <= end)
            )
            value[inside & at] = self._offset
            inside &= ~at
        some = flat[inside]
        small = some <= 0.5
        log_tail = np.where(small, np.log(some), np.log1p(-some))
        out = np.empty((some.size, 2))
        self._table.quantiles(log_tail, (small == upper).astype(np.float64), out, self._threads)
        check_errors(out[:, 1])
        value[inside] = self._offset + out[:, 0]
        return value.reshape(probability.shape)[()]
