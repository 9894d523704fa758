"""The best region for Gaussian rows: shape and radius with the least predicted error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from .. import _validate, calibrate
from ..guarantee import Neighbors
from .clip_moments import TailDensity
from .factors import factored
from .law import GaussianModel

__all__ = [
    "Assumptions",
    "ErrorPrediction",
    "best_region",
    "predict",
    "region_of",
    "shape_and_radius",
]

Array = NDArray[np.float64]

#: The clip may change at most this share of the rows, in the model.
MAX_CLIP_PROBABILITY = 0.5

#: Where tau is looked for, in units of 1/sigma: beyond, the shape is that of a limit.
_TAU_LOW, _TAU_HIGH = 1e-3, 1e3

#: The share clipped by default where n and the noise are not known.
_CLIP_PROBABILITY = 0.01


@dataclass(frozen=True)
class Assumptions:
    """A model of the rows, how many there are, and the noise: what a prediction rests on.

    Parameters
    ----------
    model : GaussianModel
    n : int, rows
    noise_multiplier : float
    neighbors : ``"replace"`` or ``"add-remove"``
    """

    model: GaussianModel
    n: int
    noise_multiplier: float
    neighbors: str = "replace"

    @classmethod
    def given(
        cls,
        model: GaussianModel,
        n: int | None = None,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbors: str = "replace",
    ) -> Assumptions | None:
        """The assumptions where n and a noise level are given; None where neither is."""
        relation = Neighbors.of(neighbors)
        if noise_multiplier is None and (epsilon is not None or delta is not None):
            if epsilon is None or delta is None:
                raise ValueError("give epsilon and delta together, or noise_multiplier")
            noise_multiplier = calibrate.noise_multiplier(epsilon, delta)
        if n is None and noise_multiplier is None:
            return None
        if n is None or noise_multiplier is None:
            raise ValueError(
                "the best region depends on both: give n (rows), and noise_multiplier or "
                "epsilon and delta"
            )
        rows = _validate.whole("n", n, least=1)
        return cls(model, rows, _validate.positive("noise_multiplier", noise_multiplier), relation)

    @property
    def noise_per_radius(self) -> float:
        """Noise standard deviation of a scaled coordinate of the sum, per unit of C."""
        return Neighbors.of(self.neighbors).factor() * self.noise_multiplier


@dataclass(frozen=True, repr=False)
class ErrorPrediction:
    """Predicted mean squared error against the sum (or mean) of the rows themselves.

    Coordinates add up to the total.

    Parameters
    ----------
    noise : array (d,), data units squared
        (2 C sigma_opt)^2 / b_j^2 (C for add-remove; what a noisy count adds is not in it).
    clipping : array (d,), data units squared
        n Var(l_j): the scatter of what the clip takes, l = (1 - C/||y||)+ (x - c).
    bias : array (d,), data units squared
        n^2 (E l_j)^2: what it takes from every row alike, where the center is not the mean.
    clip_probability : float, the share of rows that the clip changes
    kind : ``"sum"`` or ``"mean"``
    """

    noise: Array
    clipping: Array
    bias: Array
    clip_probability: float
    kind: str

    def __repr__(self) -> str:
        return f"ErrorPrediction({self})"

    @property
    def total(self) -> float:
        """Sum of the terms over coordinates."""
        return float(np.sum(self.by_coordinate))

    @property
    def by_coordinate(self) -> Array:
        """noise + clipping + bias, shape (d,)."""
        return np.asarray(self.noise + self.clipping + self.bias)

    def __str__(self) -> str:
        terms = [("noise", self.noise), ("clipping", self.clipping), ("bias", self.bias)]
        parts = ", ".join(f"{name} {float(np.sum(term)):.3g}" for name, term in terms)
        return (
            f"mean squared error of the {self.kind}: {self.total:.4g} ({parts}); "
            f"{100 * self.clip_probability:.3g} % of the rows clipped"
        )


def shape_and_radius(
    model: GaussianModel, clip_probability: float | str | None, assumed: Assumptions | None
) -> tuple[Array, float]:
    """Scale b along the axes and radius C: the best ones, or those that clip a given share.

    By default the best where the rows and the noise are assumed, else a share of 0.01.

    Raises
    ------
    ValueError
        For ``"best"`` with nothing assumed, or a share that is not in (0, 1).
    """
    share = _clip_share(clip_probability, assumed)
    if share is None and assumed is not None:
        return best_region(assumed)
    return model.quantile_region(share or _CLIP_PROBABILITY)


def region_of(
    model: GaussianModel, clip_probability: float | str | None, assumed: Assumptions | None
) -> tuple[GaussianModel, Assumptions | None, Any, float]:
    """The model and what is assumed as the region has them, its scale and its radius.

    With a rank the shape is what :func:`factored` makes of the best one, with a radius of its own.
    """
    b, radius = shape_and_radius(model, clip_probability, assumed)
    if model.rank is None:
        return model, assumed, model.scale(b), radius
    made, scale = factored(model, b)
    share, b = _clip_share(clip_probability, assumed), made.along_axes(scale)
    assumed = None if assumed is None else replace(assumed, model=made)
    if share is None and assumed is not None:
        return made, assumed, scale, _best_radius(b, assumed, 1.0)[0]
    return made, assumed, scale, made.quantile_radius(b, share or _CLIP_PROBABILITY)


def _clip_share(clip_probability: float | str | None, assumed: Assumptions | None) -> float | None:
    """The share of the rows to clip; None for the best region."""
    if isinstance(clip_probability, str):
        _validate.one_of("clip_probability", clip_probability, ("best",))
        if assumed is None:
            raise ValueError(
                "the best region depends on the rows and the noise: give n, and "
                "noise_multiplier or epsilon and delta, or hand a mechanism a GaussianShape"
            )
        return None
    if clip_probability is None:
        return None if assumed is not None else _CLIP_PROBABILITY
    return _validate.open_unit("clip_probability", clip_probability)


def best_region(assumed: Assumptions) -> tuple[Array, float]:
    """Scale b along the axes and radius C that minimise the worst predicted error.

    b_j^2 = sqrt(tau^2 + sigma_j^-2) - tau over tau >= 0 (tau = 0 is b = sigma^(-1/2), the best
    for the noise alone; tau -> infinity is b ~ 1/sigma, whose clip hurts all coordinates alike),
    and C, both by one-dimensional searches.

    **What is minimised.** With a centre that is known exactly and symmetric rows the losses of
    a clip cancel, and p near 1 would look best: the release would just repeat the assumed
    center. So losses are counted as if they all pointed the same way,
    n E||l||^2 + n (n - 1) E f E[f ||x - c||^2] with f = (1 - C/||y||)+, which bounds E||sum l||^2
    for *any* distribution with these moments, skewed ones and wrong centers included (claim
    best_region-4). And p is at most 1/2. The region depends on public numbers alone (claim
    best_region-1).
    """
    unit = float(np.mean(assumed.model.sigma))
    sigma = assumed.model.sigma / unit

    def cost(log_tau: float) -> float:
        return _best_radius(_shape(sigma, math.exp(log_tau)), assumed, unit)[1]

    tau = 0.0
    if float(np.ptp(sigma)) > 1e-9 * float(sigma.max()):
        span = (math.log(_TAU_LOW / sigma.max()), math.log(_TAU_HIGH / sigma.min()))
        found = scipy.optimize.minimize_scalar(
            cost, bounds=span, method="bounded", options={"xatol": 0.05}
        )
        tau = math.exp(float(found.x)) if found.fun < cost(-math.inf) else 0.0
    b = _shape(sigma, tau) / unit
    b = b / math.sqrt(
        float(np.sum(b**2 * (assumed.model.sigma**2 + assumed.model.center_error**2)))
    )
    return b, _best_radius(b, assumed, 1.0)[0]


def predict(b: Array, clip_norm: float, assumed: Assumptions, kind: str = "sum") -> ErrorPrediction:
    """The error of a region with scale b along the axes and radius C, term by term
    (claim best_region-2)."""
    weights, noncentral = (
        (b * assumed.model.sigma) ** 2,
        (assumed.model.center_error / assumed.model.sigma) ** 2,
    )
    tail = TailDensity(weights, noncentral, start=clip_norm**2)
    identity = np.eye(b.size)
    q, dq, density, square, first = tail.densities(identity, identity)
    f = 1 - clip_norm / np.sqrt(q)
    loss2, loss = (dq * f**2) @ square / b**2, (dq * f) @ first / b
    noise = (assumed.noise_per_radius * clip_norm / b) ** 2
    rotate, rotate_mean = _to_data(assumed.model)
    n, scale = assumed.n, 1.0 if kind == "sum" else 1.0 / assumed.n**2
    return ErrorPrediction(
        scale * rotate(noise),
        scale * n * (rotate(loss2 - loss**2)),
        scale * n**2 * rotate_mean(loss) ** 2,
        float(np.sum(dq * density)),
        kind,
    )


def _shape(sigma: Array, tau: float) -> Array:
    """b with b^2 = sqrt(tau^2 + sigma^-2) - tau, without cancellation."""
    return np.asarray(np.sqrt(sigma**-2.0 / (np.sqrt(tau**2 + sigma**-2.0) + tau)))


def _best_radius(b: Array, assumed: Assumptions, unit: float) -> tuple[float, float]:
    """(C, cost) for the shape b, sigma and data in units of ``unit``."""
    sigma, error = assumed.model.sigma / unit, assumed.model.center_error / unit
    tail = TailDensity((b * sigma) ** 2, (error / sigma) ** 2)
    q, dq, density, square = tail.densities((1 / b**2)[:, None])
    radius = np.sqrt(tail.edges())
    f = np.clip(1 - radius[:, None] / np.sqrt(q), 0, None)
    loss, loss1 = f**2 @ (dq * square[:, 0]), f @ (dq * square[:, 0])
    share, clipped = f @ (dq * density), (f > 0) @ (dq * density)
    n = assumed.n
    noise = (assumed.noise_per_radius * radius) ** 2 * float(np.sum(1 / b**2))
    cost = noise + n * loss + n * (n - 1) * share * loss1
    allowed = clipped <= MAX_CLIP_PROBABILITY
    k = int(np.argmin(np.where(allowed, cost, np.inf)))
    return _refined(np.log(radius), cost, k, allowed)


def _refined(
    log_radius: Array, cost: Array, k: int, allowed: NDArray[np.bool_]
) -> tuple[float, float]:
    """The minimum near the least value, on the polynomial through it and its neighbours."""
    reach = min(2, k, cost.size - 1 - k)
    if reach == 0 or not allowed[k - 1]:
        return math.exp(log_radius[k]), float(cost[k])
    step, near = log_radius[k + 1] - log_radius[k], slice(k - reach, k + reach + 1)
    places = np.arange(-reach, reach + 1.0)
    fit = np.polyfit(places, np.log(cost[near] / cost[k]), 2 * reach)
    fine = np.linspace(-1, 1, 201)
    values = np.polyval(fit, fine)
    best = int(np.argmin(values))
    return math.exp(log_radius[k] + step * fine[best]), float(cost[k] * math.exp(values[best]))


def _to_data(model: GaussianModel) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """What takes variances, and means, from the model's axes and unit to those of the data."""
    basis, unit = model.basis, np.asarray(model.unit)
    if basis is None:
        return (lambda v: unit**2 * v), (lambda m: unit * m)
    return (lambda v: unit**2 * (basis**2 @ v)), (lambda m: unit * (basis @ m))
