"""What a clip takes from Gaussian rows: tail moments of Q = ||y||^2 together with coordinates.

y_j = sqrt(w_j) (z_j + sqrt(lambda_j)), so that Q = sum w_j chi'^2_1(lambda_j). A row with
Q > C^2 loses the share f = 1 - C/sqrt(Q) of y. Wanted are E[h(Q) y_j^2; Q > q] and
E[h(Q) y_j; Q > q] for h = f and h = f^2. The trick is that the joint transform keeps its form:

    E[y_j^2 e^{tQ}] = M(t) (w_j/(1 - 2 w_j t) + w_j lambda_j/(1 - 2 w_j t)^2),
    E[y_j e^{tQ}] = M(t) sqrt(w_j lambda_j)/(1 - 2 w_j t),      M(t) = E e^{tQ},

so each is the inversion that gives the density of Q, with one factor more. The integral runs over
a contour through the saddlepoint of K(t) - tq (Rice 1980; Helstrom 1996), the trapezoid rule on
it converges exponentially, and everything beyond q is then integrated by Gauss-Legendre
(claim best_region-3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv
from scipy.stats import chi2

__all__ = ["TailDensity"]

Array = NDArray[np.float64]

#: Panels in log q, Gauss-Legendre nodes in each, panels that share a contour, contour nodes.
_PANELS, _NODES, _SHARED, _CONTOUR = 72, 5, 4, 160
_GAUSS_X, _GAUSS_W = np.polynomial.legendre.leggauss(_NODES)

#: Weights within this factor of each other are merged for M(t): cumulants right to 2e-4. The
#: largest ones, whose branch points the contour passes nearby, only within a tenth of that.
_BIN_RATIO, _NEAR = 1.05, 0.5

#: The range of q: from this quantile (a gamma law with Q's mean and variance) to a far tail.
_LOWEST, _FAR = 0.3, 1e-16


@dataclass(frozen=True)
class TailDensity:
    """Density of Q on nodes, with the factors that give joint moments with coordinates.

    Parameters
    ----------
    weights : array (d,), w_j > 0
    noncentrality : array (d,), lambda_j >= 0
    start : float, optional; where the nodes begin, in q (default: the body of the law)
    """

    weights: Array
    noncentrality: Array
    start: float | None = None

    def edges(self) -> Array:
        """Panel edges in q, ascending: the clip radii squared at which moments can be had."""
        w, lam = self.weights, self.noncentrality
        mean, variance = float(np.sum(w * (1 + lam))), float(np.sum(2 * w * w * (1 + 2 * lam)))
        shape, scale = mean**2 / variance, variance / mean
        low = scale * float(gammaincinv(shape, _LOWEST))
        top = np.argmax(w * (1 + lam))
        far = mean + float(w[top]) * (math.sqrt(float(lam[top])) + 9) ** 2
        far = max(far, scale / 2 * float(chi2.isf(_FAR, 2 * shape)))
        low = low if self.start is None else self.start
        return np.geomspace(low, max(far, 2 * low), _PANELS + 1)

    def densities(self, columns: Array, mixed: Array | None = None) -> tuple[Array, ...]:
        """Nodes q (m,), weights (m,), density (m,), and the factored densities.

        ``columns`` (d, k) holds coefficients a: column k of the fourth result is the
        density of Q times E[sum_j a_jk y_j^2 | Q]. With ``mixed`` (d, k) the fifth is the same
        for sum_j a_jk y_j.
        """
        edges = self.edges()
        half, mid = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
        q = (mid[:, None] + half[:, None] * _GAUSS_X).ravel()
        weight = (half[:, None] * _GAUSS_W).ravel()
        step = _NODES * _SHARED
        parts = [self._invert(q[i : i + step], columns, mixed) for i in range(0, q.size, step)]
        return q, weight, *(np.concatenate(part) for part in zip(*parts, strict=True))

    def _invert(self, q: Array, columns: Array, mixed: Array | None) -> tuple[Array, ...]:
        w, lam, count = self._binned()
        center = float(np.median(q))
        t0 = _saddlepoint(w, lam, count, center)
        t, dt = _contour(w, lam, count, t0, float(q[0]))
        log_m = _cumulant(w, lam, count, t)
        kernel = np.exp(log_m[:, None] - t[:, None] * q) * dt[:, None]
        r = 1 / (1 - 2 * np.multiply.outer(t, self.weights))
        square = self.weights * r * (1 + self.noncentrality * r)
        out = [np.imag(kernel.sum(0)) / math.pi, np.imag(kernel.T @ (square @ columns)) / math.pi]
        if mixed is not None:
            first = np.sqrt(self.weights * self.noncentrality) * r
            out.append(np.imag(kernel.T @ (first @ mixed)) / math.pi)
        return tuple(out)

    def _binned(self) -> tuple[Array, Array, Array]:
        """(w, sum of lambda, dof) with near weights merged: mean weight, so the mean is kept."""
        w, lam = self.weights, self.noncentrality
        if w.size <= 48:
            return w, lam, np.ones_like(w)
        steps = np.log(w / w.max()) / math.log(_BIN_RATIO)
        bins = np.floor(np.where(w > _NEAR * w.max(), 10 * steps, steps - 1000)).astype(np.int64)
        _, where, count = np.unique(bins, return_inverse=True, return_counts=True)
        mean = np.bincount(where, w * (1 + lam)) / np.bincount(where, 1 + lam)
        noncentral: Array = np.bincount(where, lam).astype(np.float64)
        return mean, noncentral, count.astype(np.float64)


def _cumulant(
    w: Array, lam: Array, dof: Array, t: NDArray[np.complex128]
) -> NDArray[np.complex128]:
    """K(t) = sum_j -dof_j/2 log(1 - 2 w_j t) + lambda_j w_j t/(1 - 2 w_j t)."""
    wt = np.multiply.outer(t, w)
    return -np.log(1 - 2 * wt) @ (dof / 2) + (wt / (1 - 2 * wt)) @ lam


def _slope(w: Array, lam: Array, dof: Array, t: float) -> tuple[float, float]:
    """K'(t) and K''(t)."""
    r = w / (1 - 2 * w * t)
    first = r * (dof + lam * r / w)
    return float(np.sum(first)), float(np.sum(2 * r * r * (dof + 2 * lam * r / w)))


def _saddlepoint(w: Array, lam: Array, dof: Array, q: float) -> float:
    """The t below every branch point with K'(t) = q, by safeguarded Newton steps."""
    top = 1 / (2 * float(w.max()))
    low, high = top - (float(np.sum(dof)) + float(np.sum(lam)) + 1) / q, top
    while _slope(w, lam, dof, low)[0] > q:
        low = top - 2 * (top - low)
    t = low
    for _ in range(100):
        first, second = _slope(w, lam, dof, t)
        low, high = (t, high) if first < q else (low, t)
        step = t - (first - q) / second
        t_next = step if low < step < high else (low + high) / 2
        if abs(t_next - t) < 1e-3 * (top - t):
            return t_next
        t = t_next
    return t


def _contour(
    w: Array, lam: Array, dof: Array, t0: float, q: float
) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Upper half of the path t0 + sqrt(rho^2 + Y^2) - rho + iY, Y = A sinh u, and dt.

    It leaves the saddlepoint upright and bends to the right, where e^{-tq} falls off.
    """
    width = min(1 / (2 * float(w.max())) - t0, 2.5 / math.sqrt(_slope(w, lam, dof, t0)[1]))
    rho = 4 * width
    end = math.asinh((2 * rho + 40 / q) / width)
    u = (np.arange(_CONTOUR) + 0.5) * (end / _CONTOUR)
    y, dy = width * np.sinh(u), width * np.cosh(u)
    root = np.sqrt(rho**2 + y**2)
    return t0 + root - rho + 1j * y, (y / root + 1j) * dy * (end / _CONTOUR)
