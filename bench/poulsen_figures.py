"""Figures 1 and 2 of Poulsen (2023) again, with the factor d that its section 5 lost.

    python bench/poulsen_figures.py

writes ``poulsen_figure_1.png``, ``poulsen_figure_2.png`` and ``poulsen_figures.json`` in
``bench/results``. Standard deviations sigma_i = i^-alpha / sum; the improvement is the expected
squared error of the Gaussian mechanism on clipped rows over that of Algorithm 3, with known
centre:

* as in the report, noise alone, clip probability 1/n: d C_n^2 / (C_t^2 (sum sigma)^2), where
  C_n^2 and C_t^2 are quantiles of quadratic forms with weights sigma^2 and sigma / sum sigma;
* with the best of the shapes b_j^2 = sqrt(tau^2 + sigma_j^-2) - tau in place of sigma^(-1/2);
* with the error of clipping counted, at clip probability 1/n;
* the same, each side at its own best clip probability up to 1/2 (above, clipping to the known
  centre would be called an estimate).

The first lies in [1, d] to 1e-9, which is asserted. The last two need sigma_opt: here that of
(1, 1e-6).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from ellipsum import QuadraticForm, calibrate

Array = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"
DIMENSIONS, ROWS = (10, 100, 1000), (10**2, 10**3, 10**6)
ALPHAS = np.logspace(-2, 2, 41)
EPSILON, DELTA = 1.0, 1e-6
CURVES = ("as in the report", "best shape", "clipping counted", "clipping counted, best p")
_EVERY = 4  # the last curve is computed at every fourth alpha
BOUND_SLACK = 1e-9

_GAUSS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(6)
_PIECES = np.array([0, 1, 3, 8, 20, 50])  # times the length on which the tail falls by e
_STEP = 1e-4  # of the central difference below: its error is (_STEP C^2/2w)^2 / 6, under 1e-6


def zipf(d: int, alpha: float) -> Array:
    sigma = np.arange(1, d + 1.0) ** -alpha
    return np.asarray(sigma / sigma.sum())


class Shape:
    """b_j^2 = sqrt(tau^2 + sigma_j^-2) - tau: tau = 0 is Lemma 4.1, -inf a ball.

    With h(x) = sqrt(1 + x^2) - x, so that h(x) h(-x) = 1, the weights (b sigma)^2 are
    sigma h(tau sigma) and 1/b^2 = sigma h(-tau sigma): nothing overflows where sigma_j is tiny.
    """

    def __init__(self, sigma: Array, tau: float) -> None:
        x = tau * sigma
        self.weights = sigma * _h(x)
        self.noise = float(np.sum(sigma * _h(-x)))


class Ball(Shape):
    """b = 1: noise alike in all d directions."""

    def __init__(self, sigma: Array) -> None:
        self.weights = sigma**2
        self.noise = float(sigma.size)


def _h(x: Array) -> Array:
    root = np.hypot(1, x)
    return np.where(x > 0, 1 / (root + np.abs(x)), root - x)


def radius2(shape: Shape, p: float) -> float:
    """C^2, exceeded with probability p."""
    return float(QuadraticForm(shape.weights).isf(p))


def noise_error(shape: Shape, p: float) -> float:
    """Expected squared noise over (2 sigma_opt)^2: C^2 sum b_j^-2 (the report's eq. 24)."""
    return radius2(shape, p) * shape.noise


def clip_error(shape: Shape, sigma: Array, c2: float) -> float:
    """E[(1 - C/sqrt Q)^2 ||x||^2; Q > C^2], what clipping one row costs.

    For Q_e with weights w + e sigma^2, d/de E[G(Q_e)] at 0 is E[G'(Q) ||x||^2]; with
    G' = (1 - C/sqrt q)^2 above C^2, E[G(Q_e)] is the integral of G'(q) P(Q_e > q).
    """
    variance, form = sigma**2, QuadraticForm(shape.weights)
    step = _STEP * float(shape.weights[0] / variance[0])
    length = float(form.sf(c2) / form.pdf(c2))
    tails = [tail_integral(shape.weights + e * variance, c2, length) for e in (-step, step)]
    return (tails[1] - tails[0]) / (2 * step)


def tail_integral(weights: Array, c2: float, length: float) -> float:
    """Integral over q > C^2 of (1 - C/sqrt q)^2 P(Q > q), by Gauss-Legendre on pieces."""
    edges = c2 + length * _PIECES
    half, middle = np.diff(edges)[:, None] / 2, (edges[:-1] + edges[1:])[:, None] / 2
    q = middle + half * _GAUSS
    sf = QuadraticForm(weights).sf(q.ravel()).reshape(q.shape)
    return float(np.sum(half * _GAUSS_WEIGHTS * (1 - np.sqrt(c2 / q)) ** 2 * sf))


def total_error(shape: Shape, sigma: Array, p: float, n: int, sigma_opt: float) -> float:
    """Expected squared error of the sum: noise, and n rows clipped around the known centre."""
    c2 = radius2(shape, p)
    return (2 * sigma_opt) ** 2 * c2 * shape.noise + n * clip_error(shape, sigma, c2)


def best_shape(sigma: Array, p: float) -> Shape:
    """The shape of the family with the least noise at this clip probability."""

    def at(t: float) -> float:
        return math.log(noise_error(Shape(sigma, math.sinh(t) / sigma[0]), p))

    found = minimize_scalar(at, bounds=(-8, 8), method="bounded", options={"xatol": 1e-3})
    return Shape(sigma, math.sinh(float(found.x)) / float(sigma[0]))


def at_best_p(error: Callable[[float], float], n: int) -> float:
    """The least of an error over clip probabilities from 1/(100 n) to 1/2."""
    found = minimize_scalar(
        lambda log_p: math.log(error(math.exp(log_p))),
        bounds=(-math.log(100 * n), math.log(0.5)),
        method="bounded",
        options={"xatol": 0.1},
    )
    return math.exp(float(found.fun))


def improvements(sigma: Array, n: int, sigma_opt: float) -> dict[str, float]:
    """Three of the four curves at one point."""
    ball, lemma, p = Ball(sigma), Shape(sigma, 0.0), 1 / n
    noise = noise_error(ball, p)
    counted = [total_error(shape, sigma, p, n, sigma_opt) for shape in (ball, lemma)]
    return {
        "as in the report": noise / noise_error(lemma, p),
        "best shape": noise / noise_error(best_shape(sigma, p), p),
        "clipping counted": counted[0] / counted[1],
    }


def tuned_improvement(sigma: Array, n: int, sigma_opt: float) -> dict[str, float]:
    """The fourth, which costs most."""

    def least(shape: Shape) -> float:
        return at_best_p(lambda p: total_error(shape, sigma, p, n, sigma_opt), n)

    return {"clipping counted, best p": least(Ball(sigma)) / least(Shape(sigma, 0.0))}


Point = dict[str, float]


def compute(dimensions: list[int], alphas: Array) -> list[Point]:
    sigma_opt = calibrate.noise_multiplier(EPSILON, DELTA)
    points = []
    for d, n in itertools.product(dimensions, ROWS):
        for i, alpha in enumerate(alphas):
            sigma = zipf(d, float(alpha))
            point = {"d": d, "n": n, "alpha": float(alpha), **improvements(sigma, n, sigma_opt)}
            value = point["as in the report"]
            assert 1 - BOUND_SLACK <= value <= d * (1 + BOUND_SLACK), point
            if i % _EVERY == 0:
                point |= tuned_improvement(sigma, n, sigma_opt)
            points.append(point)
        print(f"d={d} n={n}: done", flush=True)
    return points


# --- pictures ---


def draw_figure_1(path: Path) -> None:
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharey=True)
    for axis, alpha in zip(axes, (0.1, 1.0, 3.0), strict=True):
        axis.bar(np.arange(1, 101), zipf(100, alpha), width=1.0)
        axis.set(title=f"alpha = {alpha:g}", xlabel="coordinate i", yscale="log")
    axes[0].set_ylabel("sigma_i")
    fig.tight_layout()
    fig.savefig(path, dpi=130)
    plt.close(fig)


def draw_figure_2(points: list[Point], path: Path) -> None:
    import matplotlib.pyplot as plt

    dimensions = sorted({int(point["d"]) for point in points})
    fig, axes = plt.subplots(
        len(CURVES),
        len(dimensions),
        figsize=(3.6 * len(dimensions), 2.6 * len(CURVES)),
        sharex=True,
        sharey="col",
        squeeze=False,
    )
    for row, curve in zip(axes, CURVES, strict=True):
        for axis, d in zip(row, dimensions, strict=True):
            for n, style in zip(ROWS, ("-", "--", ":"), strict=True):
                here = [p for p in points if p["d"] == d and p["n"] == n and curve in p]
                label = f"$n = 10^{round(math.log10(n))}$"
                axis.plot([p["alpha"] for p in here], [p[curve] for p in here], style, label=label)
            for bound in (1, d):
                axis.axhline(bound, color="black", linewidth=0.6)
            axis.set(xscale="log", yscale="log", title=f"{curve}, d = {d}")
            axis.title.set_fontsize(9)
    for axis in axes[-1]:
        axis.set_xlabel("alpha")
    for row in axes:
        row[0].set_ylabel("improvement")
    axes[0][0].legend(frameon=False, fontsize=8)
    fig.tight_layout()
    fig.savefig(path, dpi=130)
    plt.close(fig)


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--d", type=int, nargs="+", default=list(DIMENSIONS))
    parser.add_argument("--points", type=int, default=ALPHAS.size, help="values of alpha")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    points = compute(args.d, np.logspace(-2, 2, args.points))
    args.out.mkdir(parents=True, exist_ok=True)
    draw_figure_1(args.out / "poulsen_figure_1.png")
    draw_figure_2(points, args.out / "poulsen_figure_2.png")
    (args.out / "poulsen_figures.json").write_text(json.dumps(points, indent=1) + "\n")
    report = [p["as in the report"] for p in points]
    share = [p["as in the report"] / p["d"] for p in points]
    print(f"improvement - 1 >= {min(report) - 1:.3g}, improvement / d - 1 <= {max(share) - 1:.3g}")


if __name__ == "__main__":
    main()
