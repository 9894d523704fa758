"""The parameters of a quadratic form, and what follows from them without an integral."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..kernels.backend import kernels, thread_count

__all__ = ["FormTable", "Parameters", "Value"]

Array = NDArray[np.float64]
#: A float for a scalar argument, else an array of its shape.
Value: TypeAlias = float | NDArray[np.float64]


class FormTable(Protocol):
    """A form that a backend has prepared (``kernels/_core.pyi``); q without the offset."""

    def tail(self, q: float) -> tuple[float, float, float, float, bool, int]: ...
    def tails(self, q: Array, out: Array, threads: int = 1) -> None: ...
    def moment(self, q: float, upper: bool, which: int) -> tuple[float, float, int]: ...
    def quantile(self, log_tail: float, upper: bool) -> tuple[float, float, int]: ...
    def quantiles(self, log_tail: Array, upper: Array, out: Array, threads: int = 1) -> None: ...
    def hockey_sticks(self, epsilon: Array, out: Array, threads: int = 1) -> None: ...
    def contour(self, q: float) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]: ...


def _per_weight(name: str, value: ArrayLike, d: int) -> Array:
    if np.ndim(value) == 0:
        value = np.full(d, _validate.finite(name, value))
    array = np.array(value, dtype=np.float64) if d == 0 else _validate.vector(name, value, d=d)
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative")
    return array


def _readonly(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


class Parameters:
    """Weights, degrees of freedom, noncentralities, normal term and offset; cumulants; draws."""

    def __init__(
        self,
        weights: ArrayLike,
        dof: ArrayLike = 1,
        noncentrality: ArrayLike = 0,
        normal_sd: float = 0,
        offset: float = 0,
        *,
        threads: int | None = None,
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
        self._threads = thread_count(threads)
        self._table: FormTable = kernels().FormTable(
            self._weights, self._dof, self._noncentrality, self._normal_sd
        )

    @property
    def weights(self) -> Array:
        """Weights w, as given; shape (d,), read-only."""
        return _readonly(self._weights)

    @property
    def dof(self) -> Array:
        """Degrees of freedom k of each weight; shape (d,), read-only."""
        return _readonly(self._dof)

    @property
    def noncentrality(self) -> Array:
        """Noncentrality of each weight; shape (d,), read-only."""
        return _readonly(self._noncentrality)

    @property
    def normal_sd(self) -> float:
        """Standard deviation s of the normal term, in the unit of Q."""
        return self._normal_sd

    @property
    def offset(self) -> float:
        """The constant m, in the unit of Q."""
        return self._offset

    def __repr__(self) -> str:
        return f"<QuadraticForm of {self._weights.size} weights, mean {self.mean():.6g}>"

    def support(self) -> tuple[float, float]:
        """Infimum and supremum of the support.

        Returns
        -------
        tuple of two floats, in the unit of Q; infinite where there is no bound
        """
        active = self._weights[(self._dof > 0) | (self._noncentrality > 0)]
        below = self._normal_sd > 0 or (active < 0).any()
        above = self._normal_sd > 0 or (active > 0).any()
        return (-math.inf if below else self._offset, math.inf if above else self._offset)

    # ---- cumulants ------------------------------------------------------------------------

    def cumulant(self, n: int) -> float:
        r"""The n-th cumulant, :math:`2^{n-1}(n-1)!\sum w^n (k + n\lambda)` and the normal part.

        Parameters
        ----------
        n : int, 1 or more

        Returns
        -------
        float, in the n-th power of Q's unit; infinite where it is beyond the doubles

        Raises
        ------
        ValueError
            n is not a whole number from 1.
        """
        if n < 1 or n != int(n):
            raise ValueError(f"n must be a whole number from 1, got {n}")
        unit, value = self._unit(), self._scaled_cumulant(int(n))
        factor = math.factorial(int(n) - 1)
        extra = max(factor.bit_length() - 60, 0)  # the factorial itself is beyond them from 171 on
        with np.errstate(over="ignore"):
            value = float(np.ldexp(value * (factor >> extra), int(n) * unit + extra))
        return value + self._offset if n == 1 else value

    def _unit(self) -> int:
        """The exponent e with every weight and s below 2^e in size."""
        top = max(float(np.max(np.abs(self._weights), initial=0.0)), self._normal_sd)
        return math.frexp(top)[1]

    def _scaled_cumulant(self, n: int) -> float:
        """The n-th cumulant of Q 2^-unit without offset, over (n - 1)!."""
        unit, k, nc = self._unit(), self._dof, self._noncentrality
        w = np.ldexp(self._weights, 1 - unit)
        normal = math.ldexp(self._normal_sd, -unit) ** 2 if n == 2 else 0.0
        return 0.5 * float(np.sum(w**n * (k + n * nc))) + normal

    def mean(self) -> float:
        """Expectation of Q, in its unit."""
        return self.cumulant(1)

    def var(self) -> float:
        """Variance of Q, in its unit squared; infinite beyond the doubles."""
        return self.cumulant(2)

    def std(self) -> float:
        """Standard deviation of Q, in its unit."""
        return float(np.ldexp(math.sqrt(self._scaled_cumulant(2)), self._unit()))

    def skewness(self) -> float:
        """Third standardised cumulant, without unit; NaN of a point mass, as in SciPy."""
        return self._standardised(3, 1.5)

    def kurtosis(self) -> float:
        """Excess kurtosis, without unit; NaN of a point mass, as in SciPy."""
        return self._standardised(4, 2.0)

    def _standardised(self, n: int, power: float) -> float:
        """The n-th cumulant over the power (n/2) of the variance."""
        variance = self._scaled_cumulant(2)
        if variance == 0:
            return math.nan
        value = math.factorial(n - 1) * self._scaled_cumulant(n)
        scale = variance**power
        return value / scale if scale > 0 else value / variance / variance ** (power - 1)

    def mgf(self, t: ArrayLike) -> Value:
        """E exp(tQ).

        Parameters
        ----------
        t : float or array_like, in the inverse of Q's unit

        Returns
        -------
        float or array of the shape of t; infinite beyond the nearest 1/(2w)
        """
        return np.exp(self.cgf(t))

    def cgf(self, t: ArrayLike) -> Value:
        r"""log E exp(tQ) = :math:`\sum -\frac k2 \log(1-2wt) + \lambda wt/(1-2wt)` and the rest.

        Parameters
        ----------
        t : float or array_like, in the inverse of Q's unit

        Returns
        -------
        float or array of the shape of t; infinite beyond the nearest 1/(2w)
        """
        points = np.asarray(t, dtype=np.float64)
        total = points * self._offset + 0.5 * (self._normal_sd * points) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            for w, k, nc in self._blocks(points):
                a = 1 - 2 * w * points
                term = -0.5 * k * np.log1p(-2 * w * points) + nc * w * points / a
                total = total + np.sum(np.where(a > 0, term, np.inf), axis=0)
        return total[()]

    def _blocks(self, beside: NDArray[Any]) -> Iterator[tuple[NDArray[np.float64], ...]]:
        """Weights, dof and noncentralities, along an axis before those of ``beside``, so many at
        a time that temporaries stay in cache."""
        step = max(1, 2**16 // max(beside.size, 1))
        for j in range(0, self._weights.size, step):
            some = (slice(j, j + step), *[None] * beside.ndim)
            yield self._weights[some], self._dof[some], self._noncentrality[some]

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> Value:
        """Random draws.

        Parameters
        ----------
        size : int or tuple of ints, optional: the shape; one number where left out
        random_state : int, Generator or RandomState, optional: the seed, or where to draw from

        Returns
        -------
        float or array of shape ``size``
        """
        rng = np.random.default_rng(random_state)
        shape = () if size is None else tuple(np.atleast_1d(size))
        total = np.full(shape, self._offset) + self._normal_sd * rng.standard_normal(shape)
        for w, k, nc in self._blocks(total):
            extra = 2 * rng.poisson(0.5 * nc, (len(w), *shape))
            total = total + np.sum(w * 2 * rng.standard_gamma(0.5 * (k + extra)), axis=0)
        return total[()]
