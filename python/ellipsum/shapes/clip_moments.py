"""What a clip takes from Gaussian rows: tail moments of Q = ||y||^2 together with coordinates.

y_j = sqrt(w_j) (z_j + sqrt(lambda_j)), so that Q = sum w_j chi'^2_1(lambda_j). A row with
Q > C^2 loses the share f = 1 - C/sqrt(Q) of y. Wanted are E[h(Q) y_j^2; Q > q] and
E[h(Q) y_j; Q > q] for h = f and h = f^2. The trick is that the joint transform keeps its form:

    E[y_j^2 e^{tQ}] = M(t) (w_j/(1 - 2 w_j t) + w_j lambda_j/(1 - 2 w_j t)^2),
    E[y_j e^{tQ}] = M(t) sqrt(w_j lambda_j)/(1 - 2 w_j t),      M(t) = E e^{tQ},

so each is the inversion that gives the density of Q, with one factor more: a sum over the nodes
and weights of its contour (:meth:`QuadraticForm.contour`), which serve all q of a few panels.
Everything beyond q is then integrated by Gauss-Legendre (claim
best_region-3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from ..quadratic_form.form import QuadraticForm

__all__ = ["TailDensity"]

Array = NDArray[np.float64]

#: Panels in log q, and Gauss-Legendre nodes in each.
_PANELS, _NODES = 72, 5

#: So many q share a contour: those of four panels (one for each q changes no density by 1e-13).
_NODES_SHARED = 4 * _NODES

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
        low = scale * float(scipy.special.gammaincinv(shape, _LOWEST))
        top = np.argmax(w * (1 + lam))
        far = mean + float(w[top]) * (math.sqrt(float(lam[top])) + 9) ** 2
        far = max(far, scale / 2 * float(scipy.stats.chi2.isf(_FAR, 2 * shape)))
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
        x, share = np.polynomial.legendre.leggauss(_NODES)
        q = (mid[:, None] + half[:, None] * x).ravel()
        weight = (half[:, None] * share).ravel()
        step = _NODES_SHARED
        w, noncentrality, dof = self._binned()
        form = QuadraticForm(w, dof, noncentrality)
        parts = [
            self._invert(form, q[i : i + step], columns, mixed) for i in range(0, q.size, step)
        ]
        return q, weight, *(np.concatenate(part) for part in zip(*parts, strict=True))

    def _invert(
        self, form: QuadraticForm, q: Array, columns: Array, mixed: Array | None
    ) -> tuple[Array, ...]:
        """The density of ``form`` at every q, and with one factor more of each coordinate."""
        center = float(np.median(q))
        t, weight = form.contour(center)
        kernel = weight[:, None] * np.exp(-np.multiply.outer(t, q - center))
        r = 1 / (1 - 2 * np.multiply.outer(t, self.weights))
        square = self.weights * r * (1 + self.noncentrality * r)
        out = [np.real(kernel.sum(0)), np.real(kernel.T @ (square @ columns))]
        if mixed is not None:
            first = np.sqrt(self.weights * self.noncentrality) * r
            out.append(np.real(kernel.T @ (first @ mixed)))
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
