"""How an affine release is trained: by the moments of the rows alone, without a network.

Expectations over the seed are taken in closed form, and so are gradients: a step costs a few
products of matrices of as many rows as there are columns, in NumPy: most of a step was autograd.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
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
_LOUDER = (1.0, 3.0, 0.3)  # noise of the starts: some descents end at a saddle, or far away
_FLOOR = 3e-3  # standard deviations of noise that are always there: all is smooth, 1e-5 of cost
_CLOSE = 1e-6  # of the limit: the rest is scaled away
_SETTLED = 1e-6  # of the price, from one round to the next
_ENDED = 1e-9  # nats that a round gains at its end
_RIDGE = 1e-9  # of the unit variance that everything has here: keeps inverses finite
_TINY = 1e-14  # share of Y's variance: the room of a limit that leaves none
_FAR = 1.01  # times the room used: beyond it a release is also kept as it is
_FACTOR = 5.0  # log of the furthest that a gain is scaled at the end
_SINGULAR = 1e-12  # share of the largest variance: what observes no more than rounding


class Values(NamedTuple):
    """A function of the gain and of the noise's covariance, with its gradients."""

    value: float
    by_gain: Array
    by_noise: Array


class AffineProblem:
    """Covariance of (X, Y, W) with X white, and what is wanted; W is made white here.

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
        own, of_w = moments[k : k + n, k : k + n], moments[k + n :, k + n :]
        sizes_w, basis = np.linalg.eigh(of_w)
        kept = sizes_w > _SINGULAR * sizes_w[-1]
        self.whiten = basis[:, kept].T / np.sqrt(sizes_w[kept])[:, None]
        self.spread = float(np.trace(own))
        self.of_y = moments[k : k + n, k + n :] @ self.whiten.T
        #: Of a limit on the cost: what it leaves beyond the best estimate's own.
        self.room = limit - (self.spread - float(np.vdot(self.of_y, self.of_y)))
        self.room = max(self.room, _TINY * self.spread, _TINY)
        self.left_x = self._left(moments[:k, :k], moments[:k, k + n :] @ self.whiten.T)
        self.left_y = self._left(own, self.of_y)

    def _left(self, own: Array, cross: Array) -> Array:
        """Covariance of white W less its estimate from X, or from Y."""
        solved = np.linalg.solve(own + _RIDGE * np.eye(len(own)), cross)
        return np.asarray(np.eye(cross.shape[1]) - cross.T @ solved, dtype=np.float64)

    def values(self, gain: Array, noise: Array) -> tuple[Values, Values]:
        """I(X; V) and the cost of the best release of V = gain w + noise, (X, Y, W) Gaussian.

        The best release is the estimate of Y from V, which tells of X what V tells: so directions
        that tell nothing have no gain, instead of noise that drowns it.
        """
        seen = gain @ gain.T + noise
        log, inverse = _log_determinant(seen)
        leakage = self._information(gain, noise, self.left_x, log, inverse)
        if self.information:
            kept = self._information(gain, noise, self.left_y, log, inverse)
            return leakage, Values(-kept.value, -kept.by_gain, -kept.by_noise)
        through = self.of_y @ gain.T
        estimate = through @ inverse
        cost = self.spread - float(np.vdot(estimate, through))
        square = estimate.T @ estimate  # at the least, the estimate's own change counts for nothing
        return leakage, Values(cost, 2 * (square @ gain - estimate.T @ self.of_y), square)

    def _information(
        self, gain: Array, noise: Array, left: Array, log: float, inverse: Array
    ) -> Values:
        """Half the log of det Cov(V) / det Cov(V | side), ``left`` the covariance of W given it."""
        given = gain @ left
        less, inner = _log_determinant(given @ gain.T + noise)
        return Values(0.5 * (log - less), inverse @ gain - inner @ given, 0.5 * (inverse - inner))


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
    """Gain and root of the noise: of several descents the end of least leakage within the limit.

    Parameters
    ----------
    gain, noise : arrays (n, m), (n, n)
        A start, for information as what is wanted; for a limit on the cost there are better ones.
    steps : int, quasi-Newton steps of each descent
    """
    rounds = max(1, steps // _INNER)
    shown = networks.steps_shown(len(_LOUDER) * rounds, progress, "affine mechanism")
    ends: list[tuple[Array, Array]] = []
    for begun in _starts(problem, gain @ np.linalg.pinv(problem.whiten), noise):
        ends += _descent(problem, *begun, itertools.islice(shown, rounds))
        if problem.information:
            ends.append((_kept(problem, *begun), begun[1]))
    for _ in shown:
        pass  # what was not needed

    def rank(end: tuple[Array, Array]) -> tuple[bool, float]:
        noisy = end[1] @ end[1].T
        over = _over(problem, end[0], noisy) > _CLOSE * abs(problem.limit)
        return bool(over), problem.values(end[0], noisy)[0].value

    gain, root = min(ends, key=rank)
    return gain @ problem.whiten, root


def _starts(problem: AffineProblem, gain: Array, noise: Array) -> list[tuple[Array, Array]]:
    """Gains of white W, and roots of the noise.

    Of a limit on the cost: the best estimate of Y with noise of the size that the limit leaves, in
    every direction alike, so that small ones are drowned from the beginning. Of information: the
    start given, and what tells most of Y.
    """
    best = problem.of_y
    if problem.information:
        size = np.linalg.norm(best, axis=1, keepdims=True)
        whole = best / np.where(size > 0, size, 1.0)
        return [(gain, noise), *((whole, louder * noise) for louder in _LOUDER[1:])]
    room = math.sqrt(problem.room / len(best))
    return [(best / (louder * room), np.eye(len(best))) for louder in _LOUDER]


def _over(problem: AffineProblem, gain: Array, noise: Array) -> float:
    """The cost of this very release, beyond the limit."""
    if problem.information:
        return problem.values(gain, noise)[1].value - problem.limit
    rest = problem.of_y - gain
    told = np.vdot(problem.of_y, problem.of_y)
    return float(problem.spread - told + np.vdot(rest, rest) + np.trace(noise)) - problem.limit


def _descent(
    problem: AffineProblem, gain: Array, noise: Array, rounds: Iterable[int]
) -> list[tuple[Array, Array]]:
    """Quasi-Newton steps, and the price of the limit between them; for white W. Ends to choose."""
    limit, shape, size = _first(problem, gain, noise), gain.shape, gain.size
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
    x, price = np.concatenate([gain.ravel(), noise.ravel()]), limit.price
    with np.errstate(all="ignore"):  # far steps of a line search
        for _ in rounds:
            end = optimize.minimize(found, x, jac=True, method="L-BFGS-B", options=options)
            here = found(x)[0]
            ended = here - end.fun < _ENDED
            if end.fun <= here:  # else a line search that failed
                x = end.x
            gain, root = parts(x)
            cost, before = problem.values(gain, root @ root.T + floor)[1].value, price
            limit.move(cost)
            price = limit.price
            met = price > 0 and abs(cost - limit.most) < _CLOSE * abs(limit.most)
            if met and abs(price - before) < _SETTLED * price and ended:
                break
    root = np.asarray(np.linalg.cholesky(root @ root.T + floor), dtype=np.float64)
    if problem.information:
        return [(_kept(problem, gain, root), root)]
    estimate = problem.of_y @ gain.T @ np.linalg.inv(gain @ gain.T + root @ root.T)
    root = estimate @ root
    least = _FLOOR**2 * max(limit.most, 0.0) / len(root)  # 1e-5 of the limit
    root = np.asarray(np.linalg.cholesky(root @ root.T + least * np.eye(len(root))))
    return _met(problem, estimate @ gain, root, limit)


def _first(problem: AffineProblem, gain: Array, noise: Array) -> Limit:
    """The limit at the price at which all gains of a start would stay as they are.

    Without a price they would fall to nothing first: a saddle, which some descents leave late.
    """
    unit = 1.0 if problem.information else min(1.0, problem.room)
    limit = Limit(problem.limit, unit)
    leakage, cost = problem.values(gain, noise @ noise.T)
    less = -float(np.vdot(cost.by_gain, gain))  # of the cost, where all gains grow
    if less > 0:
        limit.price = max(0.0, float(np.vdot(leakage.by_gain, gain)) / less)
    return limit


def _kept(problem: AffineProblem, gain: Array, root: Array) -> Array:
    """The gain by the factor that keeps the information wanted, where one does."""

    def short(power: float) -> float:
        return problem.values(math.exp(power) * gain, root @ root.T)[1].value - problem.limit

    with np.errstate(all="ignore"):
        ends = short(-_FACTOR), short(_FACTOR)
        if not (ends[0] > 0 > ends[1]):
            return gain
        return gain * math.exp(optimize.brentq(short, -_FACTOR, _FACTOR, xtol=1e-12))


def _met(
    problem: AffineProblem, gain: Array, root: Array, limit: Limit
) -> list[tuple[Array, Array]]:
    """What the release lacks of the best estimate P w, and its noise, scaled to the limit.

    E|y - z|^2 = E|y - P w|^2 + E|P w - z|^2, so one factor meets it, whether there is noise or
    (full data) none. Upwards only where the limit has a price, and far beyond it not alone: a
    release that tells nothing tells something at another scale.
    """
    best = problem.of_y
    rest = best - gain
    lost = np.vdot(rest, rest) + np.vdot(root, root)
    room = (limit.most - (problem.spread - np.vdot(best, best))) / max(lost, _TINY**2)
    priced = limit.price > 0
    found = [] if 0 < room < (_FAR if priced else 1) else [(gain, root)]
    if 0 < room and (priced or room < 1):
        found.append((best - math.sqrt(room) * rest, math.sqrt(room) * root))
    return found
