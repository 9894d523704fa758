"""The generalized chi-square distribution, right in both tails."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate
from ._backend import kernels

__all__ = ["QuadraticForm", "QuadraticFormResult", "QuadraticFormWarning"]

_TOLERANCE = 1e-10
_EXCESS, _ROOT, _SHORTFALL = 1, 2, 3  # moments of the kernel


class QuadraticFormWarning(RuntimeWarning):
    """A value of a :class:`QuadraticForm` whose error estimate is above 1e-10."""


class QuadraticFormResult(NamedTuple):
    """Both tails and the density at one q, with what is known of their errors."""

    cdf: Any  #: P(Q <= q)
    sf: Any  #: P(Q > q)
    logcdf: Any
    logsf: Any
    pdf: Any
    logpdf: Any
    error: Any  #: estimated relative error of the smaller of cdf and sf
    pdf_error: Any  #: the same for the density
    nodes: Any  #: evaluations of the integrand

    @property
    def met(self) -> bool:
        """Whether every error estimate is below 1e-10."""
        return bool(np.all(self.error <= _TOLERANCE) and np.all(self.pdf_error <= _TOLERANCE))


def _per_weight(name: str, value: ArrayLike, d: int) -> NDArray[np.float64]:
    if np.ndim(value) == 0:
        value = np.full(d, _validate.finite(name, value))
    array = np.array(value, dtype=np.float64) if d == 0 else _validate.vector(name, value, d=d)
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative")
    return array


class QuadraticForm:
    r"""The distribution of :math:`Q = \sum_j w_j \chi'^2(k_j, \lambda_j) + s Z + m`.

    Parameters
    ----------
    weights : array_like, shape (d,)
        Weights w of any sign; zeros are dropped; may be empty.
    dof : float or array_like, shape (d,)
        Degrees of freedom k, positive; 0 where a noncentrality makes a Poisson-mixed term.
    noncentrality : float or array_like, shape (d,)
        Noncentralities: the squared means, summed over the degrees of freedom.
    normal_sd, offset : float
        Standard deviation s of the normal term, and the constant m.
    """

    def __init__(
        self,
        weights: ArrayLike,
        dof: ArrayLike = 1,
        noncentrality: ArrayLike = 0,
        normal_sd: float = 0,
        offset: float = 0,
    ) -> None:
        if np.size(weights):
            self._weights = _validate.vector("weights", np.atleast_1d(weights))
        else:
            self._weights = np.empty(0)
        d = self._weights.size
        self._dof = _per_weight("dof", dof, d)
        self._noncentrality = _per_weight("noncentrality", noncentrality, d)
        self._normal_sd = _validate.finite("normal_sd", normal_sd)
        if self._normal_sd < 0:
            raise ValueError("normal_sd must not be negative")
        self._offset = _validate.finite("offset", offset)
        self._table = kernels.FormTable(
            self._weights, self._dof, self._noncentrality, self._normal_sd
        )

    # ---- tails and density ------------------------------------------------------------

    def _evaluate(self, q: ArrayLike) -> tuple[NDArray[np.float64], tuple[int, ...]]:
        points = np.asarray(q, dtype=np.float64)
        flat = np.ascontiguousarray(points.ravel() - self._offset)
        out = np.empty((flat.size, 6))
        self._table.tails(flat, out)
        return out, points.shape

    def _column(self, q: ArrayLike, upper: bool, log: bool) -> Any:
        out, shape = self._evaluate(q)
        _check(out[:, 2])
        small = out[:, 0]
        mine = (out[:, 4] != 0) == upper
        if log:
            with np.errstate(divide="ignore"):
                value = np.where(mine, small, np.log1p(-np.exp(small)))
        else:
            value = np.where(mine, np.exp(small), -np.expm1(small))
        return value.reshape(shape)[()]

    def cdf(self, q: ArrayLike) -> Any:
        """P(Q <= q)."""
        return self._column(q, upper=False, log=False)

    def sf(self, q: ArrayLike) -> Any:
        """P(Q > q)."""
        return self._column(q, upper=True, log=False)

    def logcdf(self, q: ArrayLike) -> Any:
        """log P(Q <= q)."""
        return self._column(q, upper=False, log=True)

    def logsf(self, q: ArrayLike) -> Any:
        """log P(Q > q)."""
        return self._column(q, upper=True, log=True)

    def logpdf(self, q: ArrayLike) -> Any:
        """Logarithm of the density at q."""
        out, shape = self._evaluate(q)
        _check(out[:, 3])
        return out[:, 1].reshape(shape)[()]

    def pdf(self, q: ArrayLike) -> Any:
        """Density at q."""
        return np.exp(self.logpdf(q))

    # ---- quantiles ----------------------------------------------------------------------

    def ppf(self, p: ArrayLike) -> Any:
        """The q with P(Q <= q) = p."""
        return self._quantiles(p, upper=False)

    def isf(self, p: ArrayLike) -> Any:
        """The q with P(Q > q) = p."""
        return self._quantiles(p, upper=True)

    def _quantiles(self, p: ArrayLike, upper: bool) -> Any:
        probability = np.asarray(p, dtype=np.float64)
        flat = [self._quantile(float(x), upper) for x in probability.ravel()]
        return np.array(flat).reshape(probability.shape)[()]

    def _quantile(self, p: float, upper: bool) -> float:
        if not 0 <= p <= 1:
            return math.nan
        low, high = self.support()
        if p in (0, 1):
            return high if (p == 0) == upper else low
        if low == high:
            return low
        small_upper = upper if p <= 0.5 else not upper
        target = math.log(p) if p <= 0.5 else math.log1p(-p)
        return self._offset + self._solve(target, small_upper, low, high)

    def _solve(self, target: float, upper: bool, low: float, high: float) -> float:
        """Newton on the log tail, bracketed."""
        low, high = low - self._offset, high - self._offset
        z = math.sqrt(-2 * target)
        mean, sd = self.mean() - self._offset, self.std()
        q = mean + (sd * z if upper else -sd * z)
        if not low < q < high:
            q = 0.5 * (mean + (low if q <= low else high))
        sign = 1.0 if upper else -1.0
        for _ in range(200):
            small, log_pdf, _, _, is_upper, _ = self._table.tail(q)
            log_tail = small if is_upper == upper else math.log1p(-math.exp(small))
            miss = log_tail - target
            if sign * miss > 0:
                low = q
            else:
                high = q
            step = sign * miss * math.exp(min(log_tail - log_pdf, 700.0))
            new = q + step
            if abs(step) <= 1e-15 * abs(q) or abs(miss) < 1e-14:
                return new
            if not low < new < high or not math.isfinite(new):
                if math.isinf(low) or math.isinf(high):
                    edge = low if math.isinf(high) else high
                    new = q + (1 if math.isinf(high) else -1) * max(sd, 2 * abs(q - edge))
                elif low >= 0 and high > 4 * low:
                    new = math.sqrt(max(low, 1e-320) * high)
                elif high <= 0 and low < 4 * high:
                    new = -math.sqrt(max(-high, 1e-320) * -low)
                else:
                    new = 0.5 * (low + high)
            q = new
        return q

    # ---- moments --------------------------------------------------------------------------

    def cumulant(self, n: int) -> float:
        r"""The n-th cumulant, :math:`2^{n-1}(n-1)!\sum w^n (k + n\lambda)` and the normal part."""
        if n < 1 or n != int(n):
            raise ValueError(f"n must be a whole number from 1, got {n}")
        w, k, nc = self._weights, self._dof, self._noncentrality
        value = 2.0 ** (n - 1) * math.factorial(n - 1) * float(np.sum(w**n * (k + n * nc)))
        return value + (self._offset if n == 1 else self._normal_sd**2 if n == 2 else 0.0)

    def mean(self) -> float:
        """Expectation of Q."""
        return self.cumulant(1)

    def var(self) -> float:
        """Variance of Q."""
        return self.cumulant(2)

    def std(self) -> float:
        """Standard deviation of Q."""
        return math.sqrt(self.var())

    def skewness(self) -> float:
        """Third standardised cumulant."""
        return self.cumulant(3) / self.var() ** 1.5

    def kurtosis(self) -> float:
        """Excess kurtosis."""
        return self.cumulant(4) / self.var() ** 2

    def support(self) -> tuple[float, float]:
        """Infimum and supremum of the support."""
        active = self._weights[(self._dof > 0) | (self._noncentrality > 0)]
        below = self._normal_sd > 0 or (active < 0).any()
        above = self._normal_sd > 0 or (active > 0).any()
        return (-math.inf if below else self._offset, math.inf if above else self._offset)

    def partial_mean(self, q: float) -> float:
        """E[Q; Q > q], the part of the mean that lies above q."""
        q = _validate.finite("q", q)
        if self._upper_side(q):
            return q * float(self.sf(q)) + self._moment(q, True, _EXCESS)
        return self.mean() - (q * float(self.cdf(q)) - self._moment(q, False, _EXCESS))

    def partial_root_mean(self, q: float) -> float:
        """E[sqrt(Q); Q > q] for q >= 0 and no offset."""
        return self._moment(self._radius("q", q), True, _ROOT)

    def clip_loss(self, radius: float) -> float:
        r"""E[(1 - C/sqrt(Q))^2 Q; Q > C^2]: mean squared length that clipping to C takes away.

        ``radius`` is C >= 0, in the unit of sqrt(Q); the distribution must have no offset.
        """
        return self._moment(self._radius("radius", radius) ** 2, True, _SHORTFALL)

    def _radius(self, name: str, value: float) -> float:
        number = _validate.finite(name, value)
        if number < 0 or self._offset != 0:
            raise ValueError(f"{name} must not be negative, and the distribution have no offset")
        return number

    def _upper_side(self, q: float) -> bool:
        return bool(self._table.tail(q - self._offset)[4])

    def _moment(self, q: float, upper: bool, which: int) -> float:
        log_value, error, _ = self._table.moment(q - self._offset, upper, which)
        _check(np.array([error]))
        return math.exp(log_value)

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Random draws; ``random_state`` is a seed or a :class:`numpy.random.Generator`."""
        rng = np.random.default_rng(random_state)
        shape = () if size is None else tuple(np.atleast_1d(size))
        total = np.full(shape, self._offset) + self._normal_sd * rng.standard_normal(shape)
        for w, k, nc in zip(self._weights, self._dof, self._noncentrality, strict=True):
            extra = 2 * rng.poisson(0.5 * nc, shape) if nc else 0
            total = total + w * 2 * rng.standard_gamma(0.5 * (k + extra), shape)
        return total[()]


def _check(errors: NDArray[np.float64]) -> None:
    worst = np.max(errors, initial=0.0)
    if worst > _TOLERANCE:
        warnings.warn(
            f"the estimated relative error {worst:.1e} is above {_TOLERANCE:.0e}",
            QuadraticFormWarning,
            stacklevel=4,
        )
