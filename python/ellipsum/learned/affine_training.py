"""How an affine release is trained: by the moments of the rows alone, without a network.

Expectations over the seed are taken in closed form, and so are gradients: a step costs a few
products of matrices of as many rows as there are columns, in NumPy: most of a step was autograd.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.linalg import lapack

from . import networks
from .limit import Limit

__all__ = ["AffineProblem", "Values", "train"]

Array = NDArray[np.float64]

_INNER = 20  # quasi-Newton steps at one price
_FLOOR = 3e-3  # standard deviations of noise that are always there: all is smooth, 1e-5 of cost
_CLOSE = 1e-6  # of the limit: the rest is scaled away
_RIDGE = 1e-9


class Values(NamedTuple):
    """A function of the gain and of the noise's covariance, with its gradients."""

    value: float
    by_gain: Array
    by_noise: Array


class AffineProblem:
    """Covariance of (X, Y, W) with X white, and what is wanted.

    Parameters
    ----------
    sizes : columns of X and of Y
    information : whether the cost is -I(Y; Z)
    """

    def __init__(
        self, moments: Array, sizes: tuple[int, int], limit: float, information: bool
    ) -> None:
        k, n = sizes
        self.limit, self.information = limit, information
        self.own, self.of_y = moments[k : k + n, k : k + n], moments[k : k + n, k + n :]
        self.of_w = moments[k + n :, k + n :]
        self.left_x = self._left(moments[:k, :k], moments[:k, k + n :])
        self.left_y = self._left(self.own, self.of_y)

    def _left(self, own: Array, cross: Array) -> Array:
        """Covariance of W less its estimate from X, or from Y."""
        solved = np.linalg.solve(own + _RIDGE * np.eye(len(own)), cross)
        return np.asarray(self.of_w - cross.T @ solved, dtype=np.float64)

    def values(self, gain: Array, noise: Array) -> tuple[Values, Values]:
        """I(X; Z) and the cost of gain w + noise of this covariance, (X, Y, W) Gaussian."""
        leakage = self._information(gain, noise, self.left_x)
        if self.information:
            kept = self._information(gain, noise, self.left_y)
            return leakage, Values(-kept.value, -kept.by_gain, -kept.by_noise)
        through = gain @ self.of_w
        cost = np.trace(self.own) + np.vdot(through - 2 * self.of_y, gain) + np.trace(noise)
        return leakage, Values(float(cost), 2 * (through - self.of_y), np.eye(len(noise)))

    def _information(self, gain: Array, noise: Array, left: Array) -> Values:
        """Half the log of det Cov(Z) / det Cov(Z | side), ``left`` the covariance of W given it."""
        both = [gain @ part for part in (self.of_w, left)]
        logs, inverses = zip(
            *(_log_determinant(part @ gain.T + noise) for part in both), strict=True
        )
        by_gain = inverses[0] @ both[0] - inverses[1] @ both[1]
        return Values(0.5 * (logs[0] - logs[1]), by_gain, 0.5 * (inverses[0] - inverses[1]))


def _log_determinant(matrix: Array) -> tuple[float, Array]:
    """And the inverse; NaN where it is not positive definite, as far steps of a line search are."""
    root, wrong = lapack.dpotrf(matrix + _RIDGE * np.eye(len(matrix)), lower=1)
    if wrong:
        return math.nan, np.full_like(matrix, math.nan)
    half, _ = lapack.dtrtri(root, lower=1)
    return 2 * float(np.log(root.diagonal()).sum()), half.T @ half


def train(
    problem: AffineProblem, gain: Array, noise: Array, steps: int, progress: bool
) -> tuple[Array, Array]:
    """Gain and root of the noise, from those of a start: quasi-Newton steps, and the price of the
    limit between them."""
    limit, shape, size = Limit(problem.limit), gain.shape, gain.size
    floor = _FLOOR**2 * np.eye(len(noise))

    def parts(x: Array) -> tuple[Array, Array]:
        return x[:size].reshape(shape), x[size:].reshape(noise.shape)

    def found(x: Array) -> tuple[float, Array]:
        gain, root = parts(x)
        leakage, cost = problem.values(gain, root @ root.T + floor)
        added, pull = limit.added(cost.value)
        by_gain = leakage.by_gain + pull * cost.by_gain
        by_root = 2 * (leakage.by_noise + pull * cost.by_noise) @ root
        return leakage.value + added, np.concatenate([by_gain.ravel(), by_root.ravel()])

    options = {"maxiter": _INNER, "maxfun": 2 * _INNER, "maxcor": _INNER, "ftol": 0.0, "gtol": 1e-9}
    x = np.concatenate([gain.ravel(), noise.ravel()])
    with np.errstate(all="ignore"):  # far steps of a line search
        for _ in networks.steps_shown(max(1, steps // _INNER), progress, "affine mechanism"):
            moved = optimize.minimize(found, x, jac=True, method="L-BFGS-B", options=options).x
            if found(moved)[0] <= found(x)[0]:  # else a line search that failed
                x = moved
            gain, root = parts(x)
            cost = problem.values(gain, root @ root.T + floor)[1].value
            limit.move(cost)
            if limit.price > 0 and abs(cost - limit.most) < _CLOSE * abs(limit.most):
                break
    root = np.asarray(np.linalg.cholesky(root @ root.T + floor), dtype=np.float64)
    return (gain, root) if problem.information else _met(problem, gain, root, limit)


def _met(problem: AffineProblem, gain: Array, root: Array, limit: Limit) -> tuple[Array, Array]:
    """What the release lacks of the best estimate P w, and its noise, scaled to the limit.

    E|y - z|^2 = E|y - P w|^2 + E|P w - z|^2, so one factor meets it, whether there is noise or
    (full data) none. Upwards only where the limit has a price: a release that tells nothing stays.
    """
    of_w = problem.of_w
    best = np.linalg.lstsq(of_w, problem.of_y.T, rcond=None)[0].T
    rest = best - gain
    lost = np.vdot(rest @ of_w, rest) + np.vdot(root, root)
    cost = problem.values(gain, root @ root.T)[1].value
    room = (limit.most - (cost - lost)) / lost
    if 0.25 < room < 4 and (room < 1 or limit.price > 0):  # never a large change
        return best - math.sqrt(room) * rest, math.sqrt(room) * root
    return gain, root
