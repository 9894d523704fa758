"""The max-det program behind every Gaussian tradeoff, solved to a certificate.

    minimise  f(N) = -1/2 log det(I - G N G')   over  0 <= N <= I,  tr(C N) = tau.

N is the share of the (whitened) observation's variance that the release makes known, G the
regression of the (whitened) sensitive attributes on it and C = H'H that of the useful ones.
f is convex, so that at any N, with P = 1/2 G'(I - G N G')^{-1} G its gradient and any multiplier
l, the optimum is at least f(N) - tr(P N) + l tau - tr(l C - P)_+ : that difference is the gap
reported, whatever found N.

The path: barrier -mu (log det N + log det(I - N)), tangent predictor in mu, Newton corrector.
Newton's operator is D -> 1/2 Q D Q + B * D in the eigenbasis of N (Q = 2 P, * entrywise). It is
factorised where N has at most ``_DENSE`` rows; beyond, conjugate gradients with its own diagonal
as preconditioner: in the eigenbasis of N that leaves a condition number below 10 in every case
looked at, at any mu (two products of matrices a step, 10 to 30 steps).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["Problem", "Solution", "certificate", "leakage", "shrunk", "solve"]

Array = NDArray[np.float64]

#: Rows of N up to which Newton's equations are factorised: r(r+1)/2 unknowns, 465 at 30.
_DENSE = 30
#: Weight of the barrier at a cold start, and from a neighbour of the curve.
_FIRST_MU, _WARM_MU = 0.1, 1e-3
#: How far one predictor lowers mu: the corrector then takes two or three steps.
_REDUCTION = 0.02
_TO_BOUNDARY = 0.95  # share of the way to the boundary that a step may go
#: Newton decrement (in units of the barrier) at which a point counts as centred.
_CENTRED = 0.05
#: Guards; the certified gap says what is missing. The inner solve, by conjugate gradients, is of a
#: Newton step: its relative residual need not be below what the step itself neglects.
_MOST_STEPS, _MOST_INNER = 400, 500
_INNER_TOLERANCE = 1e-4
#: mu stays above this share of the multiplier: the smallest eigenvalues of N and I - N are about
#: their quotient, and must stay above the rounding of N.
_SMALLEST_SHARE = 1e-13
_MOST_TANGENTS = 20  # a guard: three or four do, or the gap is below the rounding of its terms


class Problem(NamedTuple):
    """``regression`` G (k, r) with singular values <= 1; ``useful`` C (r, r), trace 1; tau < 1."""

    regression: Array
    useful: Array
    tau: float


class Solution(NamedTuple):
    """``share`` N (r, r), f(N) in nats, the certified gap, a point to start neighbours from, and
    the multiplier of tr(C N) = tau."""

    share: Array
    leakage: float
    gap: float
    warm: Array | None = None
    price: float = 0.0


class _Point(NamedTuple):
    """N = V diag(n) V', with Q, C and b(N) = -1/N + 1/(I - N) in the eigenbasis V."""

    basis: Array
    share: Array  # eigenvalues n
    rest: Array  # 1 - n
    curvature: Array  # Q
    useful: Array  # C


def leakage(regression: Array, share: Array) -> float:
    """-1/2 log det(I - G N G'), infinite where the release determines a sensitive direction."""
    kept = np.eye(len(regression)) - regression @ share @ regression.T
    sign, logarithm = np.linalg.slogdet(kept)
    return max(0.0, float(-0.5 * logarithm)) if sign > 0 else np.inf


def certificate(problem: Problem, share: Array, multiplier: float) -> float:
    """f(N) minus a proved lower bound of the optimum: any feasible N, any multiplier."""
    return _bound(problem, share, 0.5 * _curvature(problem.regression, share), multiplier)[0]


def _bound(
    problem: Problem, share: Array, gradient: Array, multiplier: float
) -> tuple[float, float]:
    """The gap at a multiplier, and its slope there."""
    slack, basis = np.linalg.eigh(multiplier * problem.useful - gradient)
    above = basis[:, slack > 0]
    bound = multiplier * problem.tau - slack[slack > 0].sum()
    slope = float(np.vdot(problem.useful @ above, above)) - problem.tau
    return float(max(0.0, np.vdot(gradient, share) - bound)), slope


def _best_bound(
    problem: Problem, share: Array, multiplier: float, tolerance: float
) -> tuple[float, float]:
    """The least gap over multipliers, and where: the one of the path misses by its mu.

    The gap is convex in the multiplier, with a kink at the optimum's: tangents are followed to 0,
    and from both sides of the least to where they meet.
    """
    gradient = 0.5 * _curvature(problem.regression, share)
    gap, slope = _bound(problem, share, gradient, multiplier)
    best, sides = (gap, multiplier), {slope > 0: (multiplier, gap, slope)}
    for _ in range(_MOST_TANGENTS):
        if best[0] <= tolerance or slope == 0:
            break
        at = multiplier - gap / slope
        if len(sides) == 2:
            (low, left, down), (high, right, up) = sides[False], sides[True]
            at = (right - left + down * low - up * high) / (down - up)
            least = left + down * (at - low)  # no gap is below, but for rounding
            if not low < at < high or best[0] - least <= tolerance + 0.01 * best[0]:
                break
        multiplier = max(at, 0.0)
        gap, slope = _bound(problem, share, gradient, multiplier)
        sides[slope > 0] = (multiplier, gap, slope)
        best = min(best, (gap, multiplier))
    return best


def _curvature(regression: Array, share: Array) -> Array:
    kept = np.eye(len(regression)) - regression @ share @ regression.T
    return regression.T @ np.linalg.solve(kept, regression)


def solve(problem: Problem, *, tolerance: float = 1e-11, warm: Array | None = None) -> Solution:
    """Follow the central path until the gap is below ``tolerance`` nats.

    Parameters
    ----------
    problem : Problem, with 0 < tau < 1
    tolerance : float, nats
    warm : array (r, r), optional
        `Solution.warm` of the same G and C at another tau.
    """
    rows = len(problem.useful)
    mu, share = _FIRST_MU, problem.tau * np.eye(rows)
    if warm is not None:
        mu, share = _WARM_MU, _move(warm, problem)
    wanted = tolerance / (2 * rows + 1)
    kept: Array | None = None
    for _ in range(_MOST_STEPS):
        share, multiplier = _recentered(problem, share, mu)
        if kept is None and mu <= _WARM_MU:
            kept = share
        last = max(wanted, _SMALLEST_SHARE * multiplier)
        if mu <= last:
            break
        share, mu = _predict(problem, share, mu, last)
    ends = [share, _limit(problem, share, mu)]
    found = [_finish(problem, end, multiplier, kept, tolerance) for end in ends]
    return min(found, key=lambda solution: solution.gap)


def _finish(
    problem: Problem, share: Array, multiplier: float, warm: Array | None, tolerance: float
) -> Solution:
    share = _onto_budget(share, problem)
    gap, multiplier = _best_bound(problem, share, multiplier, tolerance)
    return Solution(share, leakage(problem.regression, share), gap, warm, multiplier)


def shrunk(problem: Problem, whole: Array) -> Solution:
    """tau of ``whole``, the least N with tr(C N) = 1, and the best of its bounds."""
    share = problem.tau * whole
    found = scipy.optimize.minimize_scalar(
        lambda price: certificate(problem, share, np.exp(price)),
        bounds=(-40.0, 80.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return Solution(
        share, leakage(problem.regression, share), float(found.fun), None, float(np.exp(found.x))
    )


def _limit(problem: Problem, share: Array, mu: float) -> Array:
    """The path's tangent followed to mu = 0, clipped to 0 <= N <= I: an error of order mu^2."""
    at = _point(problem, share)
    step, _ = _newton(at, mu, -mu * np.diag(1 / at.rest - 1 / at.share))
    values, basis = np.linalg.eigh(np.diag(at.share) + step)
    basis = at.basis @ basis
    return (basis * np.clip(values, 0.0, 1.0)) @ basis.T


def _move(share: Array, problem: Problem) -> Array:
    """A strictly feasible point for this tau from one for another."""
    known = float(np.vdot(problem.useful, share))
    if known >= problem.tau:
        return share * (problem.tau / known)
    eye = np.eye(len(share))
    return eye - (eye - share) * ((1 - problem.tau) / (1 - known))


def _onto_budget(share: Array, problem: Problem) -> Array:
    """Undo the rounding of tr(C N) = tau, which conserves 0 <= N <= I."""
    return _move(0.5 * (share + share.T), problem)


def _point(problem: Problem, share: Array) -> _Point:
    values, basis = np.linalg.eigh(0.5 * (share + share.T))
    turned = problem.regression @ basis
    curvature = _curvature(turned, np.diag(values))
    return _Point(basis, values, 1 - values, curvature, basis.T @ problem.useful @ basis)


def _recentered(problem: Problem, share: Array, mu: float) -> tuple[Array, float]:
    """Newton's method on the barrier at mu; also the multiplier of tr(C N) = tau."""
    multiplier = 0.0
    for _ in range(_MOST_STEPS):
        at = _point(problem, share)
        slope = 0.5 * at.curvature + mu * np.diag(1 / at.rest - 1 / at.share)
        step, multiplier = _newton(at, mu, slope)
        decrement = np.sqrt(max(0.0, -float(np.vdot(slope, step)) / mu))
        length = 1.0 if decrement < 0.25 else _length(problem, at, mu, step, decrement)
        share = at.basis @ (np.diag(at.share) + length * step) @ at.basis.T
        if decrement < _CENTRED:
            break
    return share, multiplier


def _predict(problem: Problem, share: Array, mu: float, last: float) -> tuple[Array, float]:
    """Along the path's tangent to a smaller mu."""
    at = _point(problem, share)
    lowest = max(_REDUCTION * mu, last * 0.999)
    tangent = mu * np.diag(1 / at.rest - 1 / at.share)
    step, _ = _newton(at, mu, -(1 - lowest / mu) * tangent)
    length = min(1.0, _TO_BOUNDARY * _reach(at, step))
    moved = at.basis @ (np.diag(at.share) + length * step) @ at.basis.T
    return moved, mu - length * (mu - lowest)


def _reach(at: _Point, step: Array) -> float:
    """The length of ``step`` at which N or I - N becomes singular."""
    low = np.linalg.eigvalsh(step / np.sqrt(np.outer(at.share, at.share)))[0]
    high = np.linalg.eigvalsh(-step / np.sqrt(np.outer(at.rest, at.rest)))[0]
    return float(1 / max(-low, -high, 1e-300))


def _length(problem: Problem, at: _Point, mu: float, step: Array, decrement: float) -> float:
    """Backtrack from the boundary; 1 / (1 + decrement) always lowers a self-concordant barrier."""
    sure = 1 / (1 + decrement)
    length = min(1.0, _TO_BOUNDARY * _reach(at, step))
    regression = problem.regression @ at.basis
    here = _barrier(regression, np.diag(at.share), mu)
    while length > sure:
        there = _barrier(regression, np.diag(at.share) + length * step, mu)
        if there < here - 0.1 * length * mu * decrement**2:
            return length
        length *= 0.7
    return sure


def _barrier(regression: Array, share: Array, mu: float) -> float:
    values = np.linalg.eigvalsh(share)
    if values[0] <= 0 or values[-1] >= 1:
        return np.inf
    return leakage(regression, share) - mu * float(np.log(values * (1 - values)).sum())


def _newton(at: _Point, mu: float, slope: Array) -> tuple[Array, float]:
    """D and l with H D = l C - slope and tr(C D) = 0."""
    barrier = mu * (1 / np.outer(at.share, at.share) + 1 / np.outer(at.rest, at.rest))
    if len(slope) <= _DENSE:
        return _newton_dense(at, barrier, slope)
    return _newton_iterative(at, barrier, slope)


def _newton_dense(at: _Point, barrier: Array, slope: Array) -> tuple[Array, float]:
    q, (i, j) = at.curvature, np.triu_indices(len(slope))
    size = np.where(i == j, 1.0, np.sqrt(2.0))  # an orthonormal basis of symmetric matrices
    half = 1 / (np.sqrt(2.0) * np.where(i == j, np.sqrt(2.0), 1.0))
    matrix = q[np.ix_(i, i)] * q[np.ix_(j, j)] + q[np.ix_(i, j)] * q[np.ix_(j, i)]
    matrix *= np.outer(half, half)
    matrix[np.diag_indices_from(matrix)] += barrier[i, j]
    scale = 1 / np.sqrt(matrix.diagonal())
    factor = scipy.linalg.cho_factor(
        matrix * np.outer(scale, scale), check_finite=False, overwrite_a=True
    )
    sides = np.column_stack([at.useful[i, j] * size, slope[i, j] * size]) * scale[:, None]
    along, down = scipy.linalg.cho_solve(factor, sides, check_finite=False).T
    multiplier = float(along @ sides[:, 1] / (along @ sides[:, 0]))
    packed = (multiplier * along - down) * scale / size
    step = np.zeros_like(slope)
    step[i, j] = packed
    step[j, i] = packed
    return step, multiplier


def _newton_iterative(at: _Point, barrier: Array, slope: Array) -> tuple[Array, float]:
    """Conjugate gradients inside tr(C D) = 0 (a constraint preconditioner keeps them there)."""
    q = at.curvature
    inverse = 1 / (0.5 * (np.outer(q.diagonal(), q.diagonal()) + q**2) + barrier)
    along = inverse * at.useful
    scale = float(np.vdot(along, at.useful))
    multiplier, step, residual = 0.0, np.zeros_like(slope), -slope
    direction, first, before = np.zeros_like(slope), 0.0, 1.0
    for inner in range(_MOST_INNER):
        # C's part of the residual is the multiplier's business: taken off at once, or what is
        # left drowns in its rounding. Twice, as orthogonalisation wants it.
        for _ in range(2):
            share = float(np.vdot(along, residual)) / scale
            residual, multiplier = residual - share * at.useful, multiplier - share
        towards = inverse * residual
        size = float(np.vdot(towards, residual))
        first = first or size
        if size <= _INNER_TOLERANCE**2 * first:
            break
        direction = towards + (size / before if inner else 0.0) * direction
        applied = 0.5 * q @ direction @ q + barrier * direction
        length = size / float(np.vdot(direction, applied))
        step, residual, before = step + length * direction, residual - length * applied, size
    return 0.5 * (step + step.T), multiplier
