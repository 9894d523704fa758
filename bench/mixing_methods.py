"""Private regressions that adapt to the least eigenvalue: AdaSSP and two that mix rows.

- AdaSSP (Wang 2018, Algorithm 2, rho = 0.05), with the noise as printed, and with the whole budget
  by Gaussian privacy and the symmetric sensitivity;
- linear mixing (Lev, Srinivasan, Shenfeld, Ligett, Sekhari & Wilson 2025, arXiv 2505.24603);
- iterative Hessian mixing (Lev, Shenfeld, Srinivasan, Ligett & Wilson 2026, arXiv 2601.07545).

The mixing ones as their authors calibrate them: Renyi, with a third of delta for each of the
conversion, the least eigenvalue's noise and its failure. Their constants come from the authors'
public programs, where two things differ from what is here: linear mixing scales rows to norm 1
before (there the eigenvalue's noise is short by the root of the joint norm), and the number of rows
and of steps is chosen on other rows (there fixed).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.optimize import brentq

from ellipsum import calibrate

DELTA = 1e-6
RHO = 0.05  # failure of what only concerns accuracy
ROWS_PER_COLUMN = (2.5, 6.0, 30.0)
STEPS = (1, 3)


def clipped(rows, radius):
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1, radius / np.maximum(size, 1e-300))


def symmetric(rng, d, diagonal, other):
    """Gaussian noise with these deviations on and off the diagonal."""
    upper = np.triu(rng.normal(size=(d, d)), 1) * other
    return upper + upper.T + np.diag(rng.normal(size=d) * diagonal)


def ada_ssp(rng, rows, radii, epsilon, *, exact):
    """A third of the budget each for the least eigenvalue, the moments and the products.

    As printed: deviation sqrt(log(6/delta))/(epsilon/3) of each in units of its sensitivity, the
    same in all entries. ``exact``: sqrt(3) noise multipliers, 1/sqrt(2) of it off the diagonal.
    """
    x, y = clipped(rows[:, :-1], radii[0]), np.clip(rows[:, -1], -radii[1], radii[1])
    d, tail = x.shape[1], math.sqrt(math.log(6 / DELTA))
    sd = math.sqrt(3) * calibrate.noise_multiplier(epsilon, DELTA) if exact else 3 * tail / epsilon
    unit = sd * radii[0] ** 2
    least = max(0.0, np.linalg.eigvalsh(x.T @ x)[0] + unit * (rng.normal() - tail))
    inner = x.T @ x + symmetric(rng, d, unit, unit / math.sqrt(2) if exact else unit)
    cross = x.T @ y + sd * radii[0] * radii[1] * rng.normal(size=d)
    wanted = unit * math.sqrt(d * math.log(2 * d * d / RHO))
    return np.linalg.solve(inner + max(0.0, wanted - least) * np.eye(d), cross)


@cache
def mixing_floor(rows, steps, epsilon, delta):
    """gamma: least X'X + floor, in squared row norms, so that all is (epsilon, delta)-DP.

    Renyi bound of ``steps`` sketches of ``rows`` rows, its best conversion at delta/3, and the
    least eigenvalue under noise gamma/sqrt(rows) at delta/3.
    """
    third = delta / 3

    def spent(log_excess):
        gamma = 1 + math.exp(log_excess)
        alpha = 1 + (gamma - 1) * np.geomspace(1e-7, 1 - 1e-7, 4000)
        sketch = alpha * math.log1p(-1 / gamma) - np.log1p(-alpha / gamma)
        convert = -math.log(third) + (alpha - 1) * np.log1p(-1 / alpha) - np.log(alpha)
        renyi = np.min((steps * rows / 2 * sketch + convert) / (alpha - 1))
        return renyi + math.sqrt(2 * rows * math.log(1.25 / third)) / gamma

    return 1 + math.exp(brentq(lambda v: spent(v) - epsilon, -10, 40, xtol=1e-9))


def wishart(rng, gram, rows):
    """S'S for ``rows`` rows N(0, gram) S, which may be fewer than columns."""
    d = len(gram)
    value, basis = np.linalg.eigh(gram)
    root = basis * np.sqrt(np.maximum(value, 0))
    if rows < d:
        drawn = rng.normal(size=(rows, d)) @ root.T
        return drawn.T @ drawn
    lower = np.tril(rng.normal(size=(d, d)), -1)
    lower[np.diag_indices(d)] = np.sqrt(rng.chisquare(rows - np.arange(d)))
    return root @ lower @ lower.T @ root.T


def added_floor(rng, gram, gamma, rows):
    """What of gamma the data do not have already, by a private lower bound of their least
    eigenvalue that fails with probability delta/3."""
    least = np.linalg.eigvalsh(gram)[0]
    tail = math.sqrt(2 * math.log(3 / DELTA))
    return max(0.0, gamma - max(0.0, least - gamma / math.sqrt(rows) * (tail - rng.normal())))


def sketch_rows(per_column, d):
    return round(per_column * max(d, math.log(2 / RHO)))


def linear_mixing(rng, rows, choice, epsilon):
    """Least squares on one sketch of columns and target, the floor left in."""
    radius, weight, per_column, _ = choice
    d = rows.shape[1] - 1
    z = clipped(rows * np.append(np.ones(d), weight), radius) / radius
    k = sketch_rows(per_column, d)
    gram = z.T @ z
    floor = added_floor(rng, gram, mixing_floor(k, 1, epsilon, DELTA), k)
    drawn = wishart(rng, gram + floor * np.eye(d + 1), k)
    return np.linalg.solve(drawn[:-1, :-1], drawn[:-1, -1]) / weight


def hessian_mixing(rng, rows, choice, epsilon):
    """Newton's steps: a new sketch of the columns and a new noisy gradient, residuals clipped."""
    radius, bound, per_column, steps = choice
    x, d = clipped(rows[:, :-1], radius) / radius, rows.shape[1] - 1
    k, gram = sketch_rows(per_column, d), x.T @ x
    # Of the noise of the sketches epsilon/2, 3/4 delta; of the gradients' epsilon/2, delta/4.
    gamma = mixing_floor(k, steps, epsilon / 2, 0.75 * DELTA)
    sd = bound * calibrate.noise_multiplier(epsilon / 2, DELTA / 4) * math.sqrt(steps)
    inner = gram + added_floor(rng, gram, gamma, k) * np.eye(d)
    coef = np.zeros(d)
    for _ in range(steps):
        gradient = x.T @ np.clip(rows[:, -1] - x @ coef, -bound, bound) + sd * rng.normal(size=d)
        coef = coef + np.linalg.solve(wishart(rng, inner, k) / k, gradient)
    return coef / radius
