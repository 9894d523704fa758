"""Private regressions and principal axes that are compared: each from clipped second moments.

A method gets a table's rows and the budget, and gives coefficients or axes. Noise is drawn as the
mechanism's own law says, in doubles: the bits are the package's concern, not of this comparison.
``add-remove`` neighbours, delta = 1e-6. Radii, weights and ridges are chosen on other rows.
"""

from __future__ import annotations

import math

import numpy as np

from ellipsum import calibrate
from ellipsum.guarantee import Neighbors
from ellipsum.records import second_pass
from ellipsum.records.moment_fits import LEAST_RIDGE, chosen_ridge, stretch_terms
from ellipsum.records.projection_floor import largest_ratio
from ellipsum.wishart import best_wishart
from mixing_methods import (
    DELTA,
    ROWS_PER_COLUMN,
    STEPS,
    ada_ssp,
    clipped,
    hessian_mixing,
    linear_mixing,
    symmetric,
)

RADII = (0.25, 0.35, 0.5, 0.7, 1.0)  # of sqrt(d)
RIDGES = (1.0, 2.0)  # of sd sqrt(d), about the norm of the noise
OWN_RIDGES = ("stein", 1.0, 2.0, 4.0)
STRETCHES = (1.0, 1.5, 2.0, 3.0, "stein")  # of ours
ROWS = (3000, 30_000)  # of a projection
BOUNDS = (0.5, 1.0, 2.0)  # of the target or a residual, where it is clipped by itself
WEIGHTS = (1.0, 2.0)  # of the target, where it is clipped with the columns


def gaussian(rng, gram, radius, epsilon):
    """Exact symmetric sensitivity: the packed vector's norm is radius^2."""
    sd = radius**2 * calibrate.noise_multiplier(epsilon, DELTA)
    return gram + symmetric(rng, len(gram), sd, sd / math.sqrt(2)), sd


def as_printed(rng, gram, radius, epsilon):
    """Analyze Gauss as printed (Dwork, Talwar, Thakurta & Zhang 2014): the same in all entries."""
    sd = radius**2 * calibrate.noise_multiplier(epsilon, DELTA)
    return gram + symmetric(rng, len(gram), sd, sd), sd


def wishart(rng, gram, radius, epsilon):
    dof, r2 = best_wishart(len(gram), epsilon, DELTA)
    g = rng.normal(size=(dof, len(gram))) * radius / math.sqrt(r2)
    return gram + g.T @ g - dof * radius**2 / r2 * np.eye(len(gram)), math.sqrt(
        dof
    ) * radius**2 / r2


def projection(rng, gram, radius, epsilon, m):
    """Y'Y/m - w^2 I, Y'Y by Bartlett's factors: m may be large."""
    w2 = radius**2 / largest_ratio(m, epsilon, DELTA, Neighbors.ADD_REMOVE)
    d = len(gram)
    root = np.linalg.cholesky(gram + w2 * np.eye(d))
    lower = np.tril(rng.normal(size=(d, d)), -1)
    lower[np.diag_indices(d)] = np.sqrt(rng.chisquare(m - np.arange(d)))
    factor = root @ lower
    return factor @ factor.T / m - w2 * np.eye(d), w2 * math.sqrt(2 / m)


def ridge(gram, penalty, least):
    """Coefficients of the last column; no eigenvalue of what is inverted counts as below least."""
    value, basis = np.linalg.eigh(gram[:-1, :-1])
    return basis @ ((basis.T @ gram[:-1, -1]) / np.maximum(value + penalty, least))


def choices(method, d):
    """To choose from: radius, weight or bound of the target, ridge or rows, m, stretch or steps."""
    root = math.sqrt(d)
    if method.startswith("AdaSSP"):
        return [(c * root, b, None, None) for c in RADII for b in BOUNDS]
    if method == "Hessian mixing":
        return [
            (c * root, b, k, t)
            for c in RADII for b in BOUNDS for k in ROWS_PER_COLUMN for t in STEPS
        ]  # fmt: skip
    joint = math.sqrt(d + 1)
    if method == "linear mixing":
        return [(c * joint, a, k, None) for c in RADII for a in WEIGHTS for k in ROWS_PER_COLUMN]
    auto = {"default": ("auto",), "one pass": ("auto",)}
    ridges = {"ours": OWN_RIDGES, "Stein alone": ("stein",), **auto}.get(method, RIDGES)
    last = {"projection": ROWS, "ours": STRETCHES, **auto}.get(method, (None,))
    return [(c * joint, a, s, m) for c in RADII for a in WEIGHTS for s in ridges for m in last]


MECHANISMS = {
    "ours": gaussian,
    "one pass": gaussian,
    "Stein alone": gaussian,
    "Analyze Gauss": gaussian,
    "as printed": as_printed,
    "Wishart": wishart,
}


def two_passes(rng, whole, radius, epsilon):
    """`PrivateRegression`'s default: coefficients and what they are stretched by."""
    d, share = whole.shape[1] - 1, second_pass.SECOND_SHARE
    z, sd = clipped(whole, radius), radius**2 * calibrate.noise_multiplier(epsilon, DELTA)
    sd /= math.sqrt(1 - share)
    noisy = z.T @ z + symmetric(rng, d + 1, sd, sd / math.sqrt(2))
    columns, least = tuple(range(d)), LEAST_RIDGE * sd * math.sqrt(d)
    penalty, stretch = chosen_ridge(noisy, d, columns, sd, weak=second_pass.START)
    coef = ridge(noisy, penalty, least)
    squares = stretch**2 * stretch_terms(noisy, d, columns, sd, penalty, least)[1]
    unit = calibrate.noise_multiplier(epsilon, DELTA) / math.sqrt(share)
    reach = second_pass.reach_of(squares, unit)
    found = second_pass.slopes(np.zeros(d + 1), np.ones(d + 1), coef * stretch, whole)
    first, second = clipped(found, reach).sum(axis=0) + reach * unit * rng.normal(size=2)
    return coef, stretch * second_pass.factor_of(first, second, reach * unit)


def regress(method, rng, rows, choice, epsilon):
    """Coefficients (d,) of the last column."""
    radius, weight, penalty, last = choice
    if method == "default":
        whole = rows * np.append(np.ones(rows.shape[1] - 1), weight)
        coef, stretch = two_passes(rng, whole, radius, epsilon)
        return coef * stretch / weight
    if method.startswith("AdaSSP"):
        return ada_ssp(rng, rows, (radius, weight), epsilon, exact=method != "AdaSSP")
    if method in ("linear mixing", "Hessian mixing"):
        mixing = linear_mixing if method == "linear mixing" else hessian_mixing
        return mixing(rng, rows, choice, epsilon)
    d = rows.shape[1] - 1
    z = clipped(rows * np.append(np.ones(d), weight), radius)
    if method == "projection":
        noisy, sd = projection(rng, z.T @ z, radius, epsilon, last)
    else:
        noisy, sd = MECHANISMS[method](rng, z.T @ z, radius, epsilon)
    columns, least = tuple(range(d)), LEAST_RIDGE * sd * math.sqrt(d)
    stretch = last if method in ("ours", "one pass") else 1.0
    penalty, stretch = chosen_ridge(noisy, d, columns, sd, penalty, stretch)
    return ridge(noisy, penalty, least) * stretch / weight


def axes(method, rng, rows, choice, epsilon, k):
    """The first k axes (d, k)."""
    radius, _, _, m = choice
    z = clipped(rows, radius)
    if method == "projection":
        noisy, _ = projection(rng, z.T @ z, radius, epsilon, m)
    else:
        noisy, _ = MECHANISMS[method](rng, z.T @ z, radius, epsilon)
    return np.linalg.eigh(noisy)[1][:, ::-1][:, :k]
