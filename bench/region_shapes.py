"""What the shape of a best region costs against shapes that are not to be had.

    python bench/region_shapes.py shape    # the family b_j^2 = sqrt(tau^2 + sigma_j^-2) - tau
    python bench/region_shapes.py sample   # m = 2 d public rows in place of the covariance
    python bench/region_shapes.py factors  # rank=r and a diagonal in place of the matrix

``shape``: how much less the cost that ``for_gaussian`` minimises is for the best b without a
family, by descent on log b, in percent. ``sample``: the noise energy of the shape over that of the
known covariance, when E||y||^2 = 1 (in percent above it), and the least that these eigenvectors
allow, whatever is made of the eigenvalues. ``factors``: the predicted error of a mean of 100,000
rows, (1, 1e-6)-DP, over that with the full matrix.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ellipsum import Ellipsoid, LowRankScale, calibrate
from ellipsum.shapes import best as best_region
from ellipsum.shapes.best import Assumptions
from ellipsum.shapes.clip_moments import TailDensity
from ellipsum.shapes.factors import along_its_axes
from ellipsum.shapes.law import GaussianModel
from ellipsum.shapes.models import covariance_model
from ellipsum.shapes.sample import sample_moments

Array = NDArray[np.float64]

MULTIPLIER = calibrate.noise_multiplier(1.0, 1e-6)


# --- shape ---


def cost(b: Array, assumed: Assumptions) -> float:
    """The cost that best_region minimises (docs/guarantees/best_region.md), for the radius 1."""
    model, n = assumed.model, assumed.n
    tail = TailDensity((b * model.sigma) ** 2, (model.center_error / model.sigma) ** 2, start=1.0)
    q, dq, density, square = tail.densities((1 / b**2)[:, None])
    f, energy = 1 - 1 / np.sqrt(q), dq * square[:, 0]
    noise = assumed.noise_per_radius**2 * float(np.sum(1 / b**2))
    return noise + n * float(f**2 @ energy + (n - 1) * ((f * dq) @ density) * (f @ energy))


def gain_of_a_free_shape(sigma: Array, n: int) -> tuple[float, float]:
    """(share of the cost that the best b without a family saves, share of the rows clipped)."""
    assumed = Assumptions(GaussianModel(sigma, np.zeros_like(sigma)), n, MULTIPLIER)
    b, radius = best_region.best_region(assumed)
    ours = cost(b / radius, assumed)

    def value(log_b: Array) -> float:
        return math.log(cost(np.exp(log_b), assumed) / ours)

    def slope(log_b: Array, step: float = 1e-3) -> Array:
        moves = step * np.eye(sigma.size)
        return np.array([value(log_b + m) - value(log_b - m) for m in moves]) / (2 * step)

    start = np.log(b / radius)
    found = minimize(value, start, jac=slope, method="L-BFGS-B", options={"ftol": 1e-11})
    share = best_region.predict(b, radius, assumed).clip_probability
    return -math.expm1(float(found.fun)), share


def print_shapes() -> None:
    print("| d | alpha | n | rows clipped | a free b saves |")
    print("|---|---|---|---|---|")
    for d in (2, 4, 8, 16):
        for alpha in (0.5, 1.0, 2.0):
            for n in (1000, 10_000, 100_000, 1_000_000):
                saved, share = gain_of_a_free_shape(np.arange(1, d + 1.0) ** -alpha, n)
                print(f"| {d} | {alpha:g} | {n} | {share:.2g} | {100 * saved:.3f} % |", flush=True)


# --- sample ---


def covariances(d: int, rng: np.random.Generator) -> dict[str, Array]:
    """Tables of deviations 1/j but for the last two: a spectrum 1/j^2 in random directions, and
    equal deviations with correlations 0.9^|i - j|."""
    sd, place = 1 / np.arange(1, d + 1.0), np.arange(d)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    rows = rng.standard_normal((d, 2 * d))
    loose = rows @ rows.T / np.outer(*[np.linalg.norm(rows, axis=1)] * 2)
    return {
        "independent": np.diag(sd**2),
        "correlations 0.6": np.outer(sd, sd) * (0.4 * np.eye(d) + 0.6),
        "random correlations": np.outer(sd, sd) * loose,
        "random axes": (turn * sd**2) @ turn.T,
        "neighbours alike": 0.9 ** np.abs(np.subtract.outer(place, place)),
    }


def excess_energy(covariance: Array, shape: Array) -> float:
    """Noise energy of B = shape^(-1/4) over that of the true one, for E||y||^2 = 1, less one."""
    value, basis = np.linalg.eigh(shape)
    along = np.einsum("ij,ik,kj->j", basis, covariance, basis, optimize=True)
    least = np.sum(np.sqrt(np.maximum(np.linalg.eigvalsh(covariance), 0))) ** 2
    return float(np.sum(np.sqrt(value)) * np.sum(along / np.sqrt(value)) / least) - 1


def sample_costs(covariance: Array, trials: int, seed: int = 0) -> tuple[float, float]:
    """Mean excess energy of ``sample_moments`` from 2 d rows, and the least with its axes."""
    rng, d = np.random.default_rng(seed), len(covariance)
    root, costs = np.linalg.cholesky(covariance), []
    for _ in range(trials):
        rows = rng.standard_normal((2 * d, d)) @ root.T
        public = sample_moments(lambda rows=rows: [rows], d, correlated=True)
        shape = public.correlation * np.outer(public.sd, public.sd)
        basis = np.linalg.eigh(shape)[1]
        along = np.einsum("ij,ik,kj->j", basis, covariance, basis, optimize=True)
        best = (basis * along) @ basis.T
        costs.append((excess_energy(covariance, shape), excess_energy(covariance, best)))
    mean = np.mean(costs, axis=0)
    return float(mean[0]), float(mean[1])


def print_samples() -> None:
    print("| d | table | 2 d rows cost | at least, with their eigenvectors |")
    print("|---|---|---|---|")
    for d in (20, 50, 200):
        for name, covariance in covariances(d, np.random.default_rng(1)).items():
            ours, least = sample_costs(covariance, trials=400 // d)
            print(f"| {d} | {name} | {100 * ours:.1f} % | {100 * least:.1f} % |", flush=True)


# --- factors ---


def factor_tables(d: int, rng: np.random.Generator) -> dict[str, Array]:
    """Four or 16 common factors beside variances of their own, and a spectrum without a break."""
    own = np.diag(rng.uniform(0.3, 3.0, d) ** 2)
    loadings = 2 * rng.standard_normal((d, 16))
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return {
        "4 factors": own + loadings[:, :4] @ loadings[:, :4].T,
        "16 factors": own + loadings @ loadings.T,
        "variances 1/j in random axes": (turn / np.arange(1, d + 1.0)) @ turn.T,
    }


def error_of_a_diagonal(covariance: Array, n: int, noise_multiplier: float) -> float:
    """Of a mean with b_j = Sigma_jj^(-1/4), the best without a matrix for E||y||^2 = 1, and the
    best radius for rows of this covariance."""
    d = len(covariance)
    scale = LowRankScale(np.diag(covariance) ** -0.25, np.zeros((d, 1)), np.ones((d, 1)))
    made = along_its_axes(covariance_model(covariance)[1], scale)
    assumed, b = Assumptions(made, n, noise_multiplier), made.along_axes(scale)
    radius = best_region._best_radius(b, assumed, 1.0)[0]
    return best_region.predict(b, radius, assumed, "mean").total


def print_factors() -> None:
    known = {"n": 100_000, "noise_multiplier": MULTIPLIER}
    print("| d | table | rank 4 | rank 16 | a diagonal |")
    print("|---|---|---|---|---|")
    for d in (64, 256):
        for name, covariance in factor_tables(d, np.random.default_rng(1)).items():
            regions = [Ellipsoid.for_covariance(covariance, rank=r, **known) for r in (None, 4, 16)]
            full, *others = (region.predicted_error().total for region in regions)
            others.append(error_of_a_diagonal(covariance, **known))
            cells = " | ".join(f"{error / full:.3f}" for error in others)
            print(f"| {d} | {name} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tables = {"shape": print_shapes, "sample": print_samples, "factors": print_factors}
    parser.add_argument("what", nargs="?", choices=list(tables), help="default: all")
    what = parser.parse_args().what
    for name, table in tables.items():
        if what in (None, name):
            table()


if __name__ == "__main__":
    main()
