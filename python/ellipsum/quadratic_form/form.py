"""The generalized chi-square distribution, right in both tails."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..kernels.backend import kernels, thread_count

__all__ = ["QuadraticForm", "QuadraticFormResult", "QuadraticFormWarning"]

_TOLERANCE = 1e-10
_EXCESS, _ROOT, _SHORTFALL = 1, 2, 3  # moments of the kernel


class QuadraticFormWarning(RuntimeWarning):
    """A value of a :class:`QuadraticForm` whose relative error is above 1e-10, or not known."""


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
    threads : int, optional
        How many share the work on many q or probabilities at once: ``ELLIPSUM_THREADS``, or
        else one. The results are the same bits for any number.
    """

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
        self._table = kernels().FormTable(
            self._weights, self._dof, self._noncentrality, self._normal_sd
        )

    def __reduce__(self) -> tuple[Any, ...]:
        parameters = (self._weights, self._dof, self._noncentrality)
        return QuadraticForm, (*parameters, self._normal_sd, self._offset)

    def __repr__(self) -> str:
        return f"<QuadraticForm of {self._weights.size} weights, mean {self.mean():.6g}>"

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        mean: ArrayLike,
        cov: ArrayLike,
        linear: ArrayLike | None = None,
        constant: float = 0,
        *,
        threads: int | None = None,
    ) -> QuadraticForm:
        r"""The distribution of :math:`x^T A x + b^T x + c` for x ~ N(mean, cov).

        ``cov`` may be singular; only the symmetric part of ``matrix`` counts. Eigenvalues of
        the quadratic part below 1e-13 of the largest are rounding, and count as zero.

        Parameters
        ----------
        matrix, cov : array_like, shape (n, n)
            A, and the covariance of x.
        mean, linear : array_like, shape (n,)
            The mean of x, and b (0 if left out).
        constant : float
            c.
        """
        return cls(**_diagonal(matrix, mean, cov, linear, constant), threads=threads)

    # ---- tails and density ------------------------------------------------------------

    def evaluate(self, q: ArrayLike) -> QuadraticFormResult:
        """Both tails, the density, and the error estimates and node count behind them.

        No warning is given here: ask ``result.met``.
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

    def frozen(self) -> Any:
        """This distribution as a frozen ``scipy.stats`` one, for ``kstest``, plots and fits."""
        from .frozen import freeze

        return freeze(self)

    def _evaluate(self, q: ArrayLike) -> tuple[NDArray[np.float64], tuple[int, ...]]:
        points = np.asarray(q, dtype=np.float64)
        flat = np.ascontiguousarray(points.ravel() - self._offset)
        out = np.empty((flat.size, 6))
        self._table.tails(flat, out, self._threads)
        return out, points.shape

    def _value(self, q: ArrayLike, upper: bool, log: bool) -> Any:
        if type(q) is float or type(q) is int:  # the short way for one number
            small, _, error, _, is_upper, _ = self._table.tail(q - self._offset)
            if not error <= _TOLERANCE:
                _check(np.array([error]))
            if is_upper == upper:
                return small if log else math.exp(small)
            if log:
                return -math.inf if small == 0 else math.log1p(-math.exp(small))
            return -math.expm1(small)
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

    def cdf(self, q: ArrayLike, method: str = "auto") -> Any:
        """P(Q <= q). ``method`` other than ``"auto"`` (``"contour"`` is the same) computes it
        in a classical way, for comparison: ``"ruben"``, ``"davies"``, ``"imhof"``,
        ``"saddlepoint"``, ``"moment"``; see ``docs/quadratic_forms.md``. Most of these have an
        absolute error, or none that is known, and warn where that is not enough.
        """
        if method in ("auto", "contour"):
            return self._value(q, upper=False, log=False)
        return self._classical(q, method, 0)

    def sf(self, q: ArrayLike, method: str = "auto") -> Any:
        """P(Q > q); ``method`` as in :meth:`cdf`."""
        if method in ("auto", "contour"):
            return self._value(q, upper=True, log=False)
        return self._classical(q, method, 1)

    def _classical(self, q: ArrayLike, method: str, which: int) -> Any:
        from .classical import METHODS

        _validate.one_of("method", method, ["auto", "contour", *METHODS])
        points = np.asarray(q, dtype=np.float64)
        tails = np.array([METHODS[method](self, float(x)) for x in points.ravel()]).reshape(-1, 3)
        with np.errstate(divide="ignore", invalid="ignore"):  # of the smaller tail, or NaN
            _check(np.where(tails[:, 2] == 0, 0.0, tails[:, 2] / np.min(tails[:, :2], axis=1)))
        return tails[:, which].reshape(points.shape)[()]

    def logcdf(self, q: ArrayLike) -> Any:
        """log P(Q <= q)."""
        return self._value(q, upper=False, log=True)

    def logsf(self, q: ArrayLike) -> Any:
        """log P(Q > q)."""
        return self._value(q, upper=True, log=True)

    def logpdf(self, q: ArrayLike) -> Any:
        """Logarithm of the density at q."""
        out, shape = self._evaluate(q)
        _check(out[:, 3])
        return out[:, 1].reshape(shape)[()]

    def pdf(self, q: ArrayLike) -> Any:
        """Density at q; infinite where it is (q = 0 and few degrees of freedom)."""
        return np.exp(self.logpdf(q))

    # ---- quantiles ----------------------------------------------------------------------

    def ppf(self, p: ArrayLike) -> Any:
        """The q with P(Q <= q) = p; NaN outside [0, 1]."""
        return self._quantiles(p, upper=False)

    def isf(self, p: ArrayLike) -> Any:
        """The q with P(Q > q) = p; NaN outside [0, 1]."""
        return self._quantiles(p, upper=True)

    def median(self) -> float:
        """The q that halves the probability."""
        return float(self.isf(0.5))

    def interval(self, confidence: float) -> tuple[float, float]:
        """The central interval of this probability."""
        tail = 0.5 * (1 - confidence)
        return float(self.ppf(tail)), float(self.isf(tail))

    def isf_gradient(self, p: float) -> NDArray[np.float64]:
        r"""Derivative of ``isf(p)`` with respect to every weight, shape (d,).

        :math:`\partial q/\partial w_j = (k_j f_{+2}(q) + \lambda_j f_{+4}(q))/f(q)`, where
        :math:`f_{+n}` is the density with n more degrees of freedom at weight j: one pass
        over the contour of the density, since :math:`\partial K/\partial w` multiplies it.
        """
        q = self.isf(_validate.open_unit("p", p))
        t, weight = self._table.contour(q - self._offset)
        total = float(np.sum(weight.real))
        out = np.empty(self._weights.size)
        for j in range(0, out.size, 256):
            some = slice(j, j + 256)
            a = 1 / (1 - 2 * np.outer(self._weights[some], t))
            k, nc = self._dof[some, None], self._noncentrality[some, None]
            out[some] = np.sum((weight * (a * (k + nc * a))).real, axis=1) / total
        return out

    def _quantiles(self, p: ArrayLike, upper: bool) -> Any:
        probability = np.asarray(p, dtype=np.float64)
        flat = probability.ravel()
        low, high = self.support()
        value = np.where((flat == 0) == upper, high, low)  # right at 0 and 1, and for a point
        value[~((flat >= 0) & (flat <= 1))] = math.nan
        inside = (flat > 0) & (flat < 1) & (low < high)
        some = flat[inside]
        small = some <= 0.5
        log_tail = np.where(small, np.log(some), np.log1p(-some))
        out = np.empty((some.size, 2))
        self._table.quantiles(log_tail, (small == upper).astype(np.float64), out, self._threads)
        _check(out[:, 1])
        value[inside] = self._offset + out[:, 0]
        return value.reshape(probability.shape)[()]

    # ---- moments --------------------------------------------------------------------------

    def cumulant(self, n: int) -> float:
        r"""The n-th cumulant, :math:`2^{n-1}(n-1)!\sum w^n (k + n\lambda)` and the normal part.

        Infinite where it is beyond the doubles.
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
        """Expectation of Q."""
        return self.cumulant(1)

    def var(self) -> float:
        """Variance of Q."""
        return self.cumulant(2)

    def std(self) -> float:
        """Standard deviation of Q."""
        return float(np.ldexp(math.sqrt(self._scaled_cumulant(2)), self._unit()))

    def skewness(self) -> float:
        """Third standardised cumulant."""
        return 2 * self._scaled_cumulant(3) / self._scaled_cumulant(2) ** 1.5

    def kurtosis(self) -> float:
        """Excess kurtosis."""
        return 6 * self._scaled_cumulant(4) / self._scaled_cumulant(2) ** 2

    def mgf(self, t: ArrayLike) -> Any:
        """E exp(tQ); infinite beyond the nearest 1/(2w)."""
        return np.exp(self.cgf(t))

    def cgf(self, t: ArrayLike) -> Any:
        r"""log E exp(tQ) = :math:`\sum -\frac k2 \log(1-2wt) + \lambda wt/(1-2wt)` and the rest."""
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

    def entropy(self) -> float:
        """Differential entropy in nats, by quadrature over the quantiles; to about 1e-8."""
        from scipy import integrate

        low, high = (float(v) for v in (self.ppf(1e-18), self.isf(1e-18)))
        if low == high:
            return -math.inf
        knots = [self.ppf(p) for p in (1e-12, 1e-6, 1e-3, 0.02, 0.1, 0.3, 0.5)]
        knots += [self.isf(p) for p in (0.3, 0.1, 0.02, 1e-3, 1e-6, 1e-12)]

        def integrand(q: float) -> float:
            log_pdf = self._table.tail(q - self._offset)[1]
            return -log_pdf * math.exp(log_pdf) if math.isfinite(log_pdf) else 0.0

        edges = sorted({low, *map(float, knots), high})
        pieces = itertools.pairwise(edges)
        return math.fsum(
            integrate.quad(integrand, a, b, epsabs=1e-11, epsrel=1e-9, limit=200)[0]
            for a, b in pieces
        )

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

    def hockey_stick(self, epsilon: ArrayLike) -> Any:
        r"""E (1 - exp(epsilon - Q))+, of any shape.

        Of a privacy loss this is delta(epsilon), by one integral of a positive kernel,

        .. math:: \frac{1}{2\pi i}\int e^{K(t) - t\varepsilon}\frac{dt}{t(1+t)}, \quad \Re t > 0,

        relatively right however small it is, as far as Q's parameters are; the loss of two
        Gaussians has more digits in :class:`~ellipsum.records.GaussianPair`.
        """
        points = np.asarray(epsilon, dtype=np.float64)
        flat = np.ascontiguousarray(points.ravel() - self._offset)
        out = np.empty((flat.size, 4))
        self._table.hockey_sticks(flat, out, self._threads)
        _check(out[:, 2])
        return np.exp(out[:, 0]).reshape(points.shape)[()]

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
        for w, k, nc in self._blocks(total):
            extra = 2 * rng.poisson(0.5 * nc, (len(w), *shape))
            total = total + np.sum(w * 2 * rng.standard_gamma(0.5 * (k + extra)), axis=0)
        return total[()]


def _diagonal(
    matrix: ArrayLike, mean: ArrayLike, cov: ArrayLike, linear: ArrayLike | None, constant: float
) -> dict[str, Any]:
    """The parameters of a quadratic function of a Gaussian: x = mean + Bz, then eigenvectors."""
    mu = _validate.vector("mean", mean)
    n = mu.size
    a, sigma = (_square(name, m, n) for name, m in (("matrix", matrix), ("cov", cov)))
    b = np.zeros(n) if linear is None else _validate.vector("linear", linear, d=n)
    a = 0.5 * (a + a.T)
    variances, axes = np.linalg.eigh(0.5 * (sigma + sigma.T))
    if variances[0] < -1e-12 * max(variances[-1], 0):
        raise ValueError("cov must be positive semidefinite")
    root = axes * np.sqrt(np.maximum(variances, 0))
    values, vectors = np.linalg.eigh(root.T @ a @ root)
    slope = vectors.T @ (root.T @ (2 * a @ mu + b))
    real = np.abs(values) > 1e-13 * np.max(np.abs(values), initial=0)
    w, s = values[real], slope[real]
    shift = s / (2 * w)
    return {
        "weights": w,
        "dof": np.ones(w.size),
        "noncentrality": shift**2,
        "normal_sd": float(np.linalg.norm(slope[~real])),
        "offset": float(mu @ a @ mu + b @ mu + constant - np.sum(w * shift**2)),
    }


def _square(name: str, value: ArrayLike, n: int) -> NDArray[np.float64]:
    array = np.asarray(value, dtype=np.float64)
    if array.shape != (n, n) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a finite array of shape ({n}, {n}), got {array.shape}")
    return array


def _check(errors: NDArray[np.float64]) -> None:
    if not (errors <= _TOLERANCE).all():
        worst = float(np.max(errors))
        what = f"estimated relative error {worst:.1e} is above {_TOLERANCE:.0e}"
        warnings.warn(
            "the relative error is not known" if math.isnan(worst) else f"the {what}",
            QuadraticFormWarning,
            stacklevel=4,
        )
