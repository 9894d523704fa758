"""The exact privacy of any two Gaussians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ..kernels.backend import kernels, thread_count
from ..plot import check_matplotlib
from .form import QuadraticForm
from .pair_scaled import ScaledPair, scale_of
from .pair_spectrum import (
    EXTENDED_ROUNDOFF,
    Spectrum,
    empty,
    of_covariances,
    of_leverages,
    of_terms,
)

__all__ = ["GaussianPair"]

_UNIT_ROUNDOFF = 2.0**-53  # of a double, to nearest
_SMALLEST, _SMALLEST_NORMAL = math.ulp(0.0), 2.0**-1022
#: The least margin, units of roundoff for each unit of log delta: without it, some tails of 1e-70
#: and deeper came out below.
_CAUTION = 4.5
_DOUBTFUL = 0.5  # of the error of a logarithm: beyond, Chernoff's bound is asked, too
_NEARLY_NORMAL = 1e-8  # kappa - 1 of a shifted term, which the loss takes for 0
_WIDE, _WIDE_MARGIN = 6.0, 2.0**-41  # of log kappa: there, and next to 1, values were 8e-14 low


class GaussianPair:
    r"""How well P = N(mean1, cov1) can be told from Q = N(mean2, cov2).

    With the privacy loss :math:`L = \log dP/dQ` and :math:`K(t) = \log E_P e^{tL}`,

    .. math:: \delta(\varepsilon) = \sup_E P(E) - e^\varepsilon Q(E)
       = \frac{1}{2\pi i}\int e^{K(t) - t\varepsilon}\frac{dt}{t(1+t)}, \quad \Re t > 0,

    on the contour of :class:`~ellipsum.QuadraticForm`. A mechanism whose output is N(mean1, cov1)
    on a database and N(mean2, cov2) on its neighbour is (epsilon, delta)-DP for this pair if and
    only if delta is at least ``delta(epsilon)`` and ``reverse.delta(epsilon)``. Covariances that
    depend on the data are what it is for.

    **Guarantees.** ``delta`` and ``epsilon`` are never below the true values of the spectrum that
    they are computed from; ``docs/guarantees/gaussian_pair.md`` says by how much above, and what of
    that is proved and what is measured. Gaussians on different affine spaces have delta 1 at
    every epsilon.

    Parameters
    ----------
    mean1, mean2 : array_like, shape (d,)
    cov1, cov2 : array_like, shape (d, d) or (d,)
        Covariances, maybe singular; a vector holds the variances of independent coordinates, whose
        spectrum is exact to a few roundings. The eigenvalues of matrices have an absolute error
        of some 1e-16 of the largest of abs(S1 - S2) in the metric of S1 + S2: where the spectrum is
        known otherwise, use :meth:`from_spectrum` or :meth:`from_leverage`.
    rows : float
        How many independent draws of the same pair are released together.
    threads : int, optional
        How many share the work on many epsilons at once.

    Source: ``docs/records.md``; Balle & Wang (2018), Theorem 5, for the loss.
    """

    def __init__(
        self,
        mean1: ArrayLike,
        cov1: ArrayLike,
        mean2: ArrayLike,
        cov2: ArrayLike,
        rows: float = 1,
        *,
        threads: int | None = None,
    ) -> None:
        self._take(of_covariances(mean1, cov1, mean2, cov2, rows), threads)

    @classmethod
    def from_spectrum(
        cls,
        kappa_minus_one: ArrayLike,
        shift2: ArrayLike = 0,
        dof: ArrayLike = 1,
        *,
        threads: int | None = None,
    ) -> GaussianPair:
        """From the eigenvalues of cov1 against cov2.

        Parameters
        ----------
        kappa_minus_one : array_like, shape (n,)
            kappa - 1 of the eigenvalues kappa of cov2^-1 cov1: above -1. (-1 and infinity stand
            for a direction in which one of the two does not vary.)
        shift2 : array_like, shape (n,)
            c^2: the squared mean difference along each, in the metric of cov1; summed over its
            multiplicity.
        dof : array_like, shape (n,)
            Multiplicity of each, above 0.
        """
        return cls._of(of_terms(kappa_minus_one, shift2, dof), threads)

    @classmethod
    def from_leverage(
        cls,
        out: float = 0,
        into: float = 0,
        cross: float = 0,
        rows: float = 1,
        *,
        threads: int | None = None,
    ) -> GaussianPair:
        """Of ``rows`` draws of N(0, G) against N(0, G - xx' + yy'): row x replaced by y.

        ``out`` alone removes a row, ``into`` alone adds one; the other direction is ``reverse``.

        Parameters
        ----------
        out : float
            Leverage x'G^-1 x of the row that leaves, 0 to 1.
        into : float
            Leverage y'G^-1 y of the row that comes, 0 or above.
        cross : float
            x'G^-1 y, of size sqrt(out * into) at most.
        rows : float
            Draws: the m of a projection to m rows.
        """
        return cls._of(of_leverages(out, into, cross, rows), threads)

    @classmethod
    def _of(cls, spectrum: Spectrum | None, threads: int | None) -> GaussianPair:
        pair = cls.__new__(cls)
        pair._take(spectrum, threads)
        return pair

    def _take(self, spectrum: Spectrum | None, threads: int | None) -> None:
        held = None if spectrum is None else spectrum.covered()
        self._apart = held is None
        self._s = s = empty() if held is None else held.merged()
        self._threads = thread_count(threads)
        self._scaled: ScaledPair | None = None
        if power := scale_of(s.excess, s.shift):
            larger = GaussianPair._of(s.scaled(power), threads)
            self._scaled = ScaledPair(larger, power, float(s.dof.sum()))
        self._table = kernels().PairTable(s.rows(), EXTENDED_ROUNDOFF)
        self._reverse: GaussianPair | None = None
        self._caution = _WIDE_MARGIN if (np.abs(s.log_kappa) > _WIDE).any() else 0.0
        self._bounded = bool(s.excess.size and (s.excess < 0).all())  # L is, from above
        parts = np.concatenate([0.5 * s.dof * s.log_kappa, s.end])
        self._end = -float(np.sum(parts))  # of L's support, where it is bounded
        doubt = EXTENDED_ROUNDOFF * (3 + parts.size) * np.sum(np.abs(parts))
        self._end_doubt = float(doubt) + 2 * _UNIT_ROUNDOFF * abs(self._end)

    def __reduce__(self) -> tuple[Any, ...]:
        return GaussianPair._of, (None if self._apart else self._s, None)

    def __repr__(self) -> str:
        if self._apart:
            return "<GaussianPair on different spaces>"
        e = self._s.excess
        what = f"kappa - 1 from {e.min():.3g} to {e.max():.3g}" if e.size else "equal"
        return f"<GaussianPair of {e.size} terms, {what}>"

    @property
    def reverse(self) -> GaussianPair:
        """The pair (Q, P): the other direction of the guarantee."""
        if self._reverse is None:
            other = None if self._apart else self._s.reversed()
            self._reverse = GaussianPair._of(other, self._threads)
            self._reverse._reverse = self
        return self._reverse

    # ---- delta and epsilon --------------------------------------------------------------

    def delta(self, epsilon: ArrayLike) -> Any:
        """The least delta, rounded up; at any epsilon, also below 0, of any shape.

        **Guarantees**: claims gaussian_pair-1, gaussian_pair-2 and gaussian_pair-3. 0 where L
        cannot exceed epsilon at all; 1 for Gaussians on different spaces.
        """
        points = np.asarray(epsilon, dtype=np.float64)
        if np.isnan(points).any():
            raise ValueError("epsilon must not be NaN")
        if self._scaled:
            return self._scaled.delta(points)[()]
        log_delta, _, error = self._curve(points.ravel())
        with np.errstate(under="ignore"):
            value = np.exp(log_delta + error) * (1 + 4 * _UNIT_ROUNDOFF)
        value = np.where(value < _SMALLEST_NORMAL, np.nextafter(value, 1.0), value)
        value = np.where(np.isneginf(log_delta), 0.0, np.clip(value, _SMALLEST, 1.0))
        return value.reshape(points.shape)[()]

    def _curve(self, epsilon: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """log delta, the log of its derivative's size, and what to add to be above the truth."""
        if self._apart:
            zero = np.zeros(epsilon.size)
            return zero, zero - np.inf, zero
        points = self._inside(epsilon)
        out = np.empty((points.size, 4))
        self._table.hockey_sticks(points, out, self._threads)
        log_delta, log_slope, error = out[:, 0].copy(), out[:, 1], out[:, 2].copy()
        for i in np.flatnonzero(~(error < _DOUBTFUL) | np.isnan(log_delta)):
            bound = self._chernoff(float(points[i]))
            if not (log_delta[i] + error[i] <= bound):
                log_delta[i], error[i] = bound, 0.0
        sure = points < -2 * (29 + self._table.cumulants(-0.5)[0])  # 1 - delta < e^-29
        log_delta[sure], error[sure] = 0.0, 0.0
        finite = np.isfinite(log_delta)
        near, size = log_delta[finite] > -1, _UNIT_ROUNDOFF * np.abs(log_delta[finite])
        least = np.maximum(_CAUTION * size, np.where(near, _WIDE_MARGIN, self._caution))
        error[finite] = np.maximum(error[finite] + size, least) + 16 * _UNIT_ROUNDOFF
        return log_delta, log_slope, error

    def _inside(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
        """A smaller epsilon where rounding could put this one beyond the end of the support."""
        if not self._bounded:
            return np.ascontiguousarray(epsilon)
        near = np.abs(epsilon - self._end) <= self._end_doubt
        return np.where(near, self._end - 2 * self._end_doubt, epsilon)

    def _chernoff(self, epsilon: float) -> float:
        """log of the least exp(K(t) - t epsilon) t^t / (1+t)^(1+t) that is found: a bound at any t,
        as (1 - e^-x)+ <= e^(tx) t^t / (1+t)^(1+t)."""
        top = float(np.max(self._s.excess, initial=0.0))
        end = -math.log(top) if top > 0 else 60.0

        def bound(log_t: float) -> float:
            t = math.exp(log_t)
            factor = t * (math.log(t) - math.log1p(t)) - math.log1p(t)
            value = self._table.cumulants(t)[0] - t * epsilon + factor
            return float(value) if math.isfinite(value) else 700.0

        ends = (min(0.0, end) - 40.0, end - 1e-9)
        found = scipy.optimize.minimize_scalar(bound, bounds=ends, method="bounded")
        return min(0.0, float(found.fun) + 1e-9 * (1 + abs(float(found.fun))))

    def epsilon(self, delta: ArrayLike) -> Any:
        """The least epsilon >= 0 with ``delta(epsilon)`` at most ``delta``, rounded up.

        **Guarantees**: claim gaussian_pair-1. 0.0 where none is needed, ``inf`` where none helps.
        """
        targets = np.asarray(delta, dtype=np.float64)
        if not ((targets >= 0) & (targets <= 1)).all():
            raise ValueError("delta must be from 0 to 1")
        flat = [self._epsilon(float(p)) for p in targets.ravel()]
        return np.array(flat).reshape(targets.shape)[()]

    def _epsilon(self, target: float) -> float:
        if float(self.delta(0.0)) <= target:
            return 0.0
        if self._apart:
            return math.inf
        if self._scaled is not None:
            return self._least(self._scaled.epsilon(target), target)
        if target == 0:
            return self._beyond() if self._bounded else math.inf
        return self._solve(math.log(target), target)

    def _solve(self, log_target: float, target: float) -> float:
        """Newton's method on log delta, from Chernoff's bound: log delta is concave, so a step from
        the right of the root stays there. A bracket guards the end of the support."""
        low, high = 0.0, self._enough(log_target)
        x = high
        for _ in range(200):
            log_delta, log_slope, error = (float(v[0]) for v in self._curve(np.array([x])))
            miss = log_delta + error - log_target
            if miss > 0:
                low = x
            else:
                high = x
            hazard = math.exp(min(log_slope - log_delta, 700.0)) if log_delta > -math.inf else 0
            step = miss / hazard if hazard > 0 else -math.inf
            small = abs(miss) <= 4 * _UNIT_ROUNDOFF * (4 + abs(log_target))
            if small or abs(step) <= 4 * _UNIT_ROUNDOFF * x:
                return self._least(max(x, x + step), target)
            x = x + step if low < x + step < high else 0.5 * (low + high)
            if not low < x < high:
                break
        return self._least(high, target)

    def _enough(self, log_target: float) -> float:
        """An epsilon with delta at most the target: (K(t) - log target)/t at the best of some t."""
        spread = math.sqrt(self._table.cumulants(0.0)[2])
        top = float(np.max(self._s.excess, initial=0.0))
        best = self._beyond() if self._bounded else math.inf
        for k in range(-8, 24):
            s = 2.0**k / spread
            t = s / (1 + top * s)
            best = min(best, (self._table.cumulants(t)[0] - log_target) / t)
        return best

    def _beyond(self) -> float:
        """Just above the end of the support."""
        return math.nextafter(self._end + 2 * self._end_doubt, math.inf)

    def _least(self, x: float, target: float) -> float:
        """The first of x and a little more whose rounded delta is not above the target."""
        step = 2 * _UNIT_ROUNDOFF * max(x, _SMALLEST)
        while x < math.inf and float(self.delta(x)) > target:
            x, step = x + step, 2 * step
        return x

    # ---- other views ----------------------------------------------------------------------

    def renyi(self, alpha: ArrayLike) -> Any:
        """The Rényi divergence of P from Q of order alpha > 0: K(alpha - 1)/(alpha - 1).

        At 1 the Kullback-Leibler divergence, at infinity the largest loss. Infinite where
        (alpha - 1)(kappa - 1) >= 1 for some kappa.
        """
        orders = np.asarray(alpha, dtype=np.float64)
        if not (orders > 0).all():
            raise ValueError("alpha must be above 0")
        flat = [self._renyi(float(a)) for a in orders.ravel()]
        return np.array(flat).reshape(orders.shape)[()]

    def _renyi(self, alpha: float) -> float:
        top = float(np.max(self._s.excess, initial=0.0))
        if self._apart:
            return math.inf
        if self._s.excess.size == 0:
            return 0.0
        if math.isinf(alpha):
            return self._end if self._bounded else math.inf
        if (alpha - 1) * top >= 1:
            return math.inf
        if alpha < 0.5:  # K(-1) = 0 would cancel
            return alpha / (1 - alpha) * self.reverse._renyi(1 - alpha)
        log_mgf, slope, bend = self._table.cumulants(alpha - 1)
        if abs(alpha - 1) < 1e-9:
            return float(slope + 0.5 * (alpha - 1) * bend)
        return float(log_mgf / (alpha - 1))

    def tradeoff(self, fpr: ArrayLike) -> Any:
        """The trade-off function T(P, Q): the least false negative rate of a test of P (the null)
        against Q whose false positive rate is ``fpr`` (Dong, Roth & Su 2022).

        To the accuracy of :class:`~ellipsum.QuadraticForm`, 1e-10; not rounded to a safe side.
        """
        rates = np.asarray(fpr, dtype=np.float64)
        if not ((rates >= 0) & (rates <= 1)).all():
            raise ValueError("fpr must be from 0 to 1")
        if self._apart:
            return np.zeros(rates.shape)[()]
        if self._s.excess.size == 0:
            return (1 - rates)[()]
        inside = (rates > 0) & (rates < 1)
        out = np.where(rates == 0, 1.0, 0.0)
        threshold = np.asarray(self.loss().ppf(rates[inside]))  # the test rejects P where L is low
        out[inside] = self.reverse.loss().cdf(-threshold)
        return out[()]

    def loss(self) -> QuadraticForm:
        """The law of the privacy loss L = log dP/dQ under P.

        Terms with a shift and abs(kappa - 1) below 1e-8 are taken as normal: there, and where a
        shifted kappa is nearly 1, the law is right to about 1e-8, ``delta`` to all digits.
        """
        if self._apart:
            raise ValueError("the loss is infinite: the Gaussians live on different spaces")
        e, log_kappa, shift, end, dof = self._s
        normal = (shift > 0) & (np.abs(e) < _NEARLY_NORMAL)
        bent = np.where(normal, 0.0, shift)
        curved = np.where(e == 0, 1.0, e)
        offsets = [*(0.5 * shift[normal]), *(-0.5 * dof * log_kappa), *(-end[~normal])]
        return QuadraticForm(
            0.5 * e[e != 0],
            dof[e != 0],
            (self._s.kappa() * bent / curved**2)[e != 0],
            normal_sd=math.sqrt(math.fsum(shift[normal])),
            offset=float(np.sum(np.array(offsets, dtype=np.longdouble))),
            threads=self._threads,
        )

    def plot(self, ax: Any = None, epsilon: ArrayLike | None = None) -> Any:
        """Draw delta of both directions against epsilon, and return the axes.

        ``epsilon`` is where; by default up to where delta is 1e-10.
        """
        if ax is None:
            check_matplotlib()
            from matplotlib import pyplot as plt

            _, ax = plt.subplots()
        both = (self, self.reverse)
        if epsilon is None:
            ends = [float(pair.epsilon(1e-10)) for pair in both]
            end = max([e for e in ends if math.isfinite(e)], default=1.0)
            epsilon = np.linspace(0, end or 1.0, 300)
        points = np.asarray(epsilon, dtype=np.float64)
        for pair, name in zip(both, ("P against Q", "Q against P"), strict=True):
            value = np.asarray(pair.delta(points))
            ax.plot(points, np.where(value > 0, value, np.nan), label=name)
        ax.set(xlabel="epsilon", ylabel="delta", yscale="log")
        ax.legend(frameon=False)
        return ax
