"""What a learned release leaks: exactly where the law is known, else by fresh attackers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..tradeoff import EstimatedInformation, GaussianTradeoff
from ..tradeoff.neighbors import ksg_information
from .held_out import held_out_information

__all__ = [
    "LEAST_ROWS",
    "Leakage",
    "LearnedPoint",
    "affine_point",
    "gaussian_information",
    "law_of",
    "measured",
    "moment_rows",
]

Array = NDArray[np.float64]

#: Of `measured`: half train, half are held out.
LEAST_ROWS = 20

#: Share of the largest variance below which a combination of columns is rounding; and what one less
#: a squared correlation is of, of two coordinates that tell each other.
_DEPENDENT, _TOLD = 1e-12, 1e-15

#: Share of a column's largest number below which its deviation is rounding.
_FLAT = 1e-13


@dataclass(frozen=True)
class LearnedPoint:
    """A learned release beside the optimum at the distortion that it reached, nats."""

    leakage: float
    distortion: float
    optimum: float
    gap: float

    @property
    def excess(self) -> float:
        """Leakage above the least possible."""
        return 0.0 if self.leakage == self.optimum else self.leakage - self.optimum  # infinite ones


@dataclass(frozen=True)
class Leakage:
    """What a release leaks, measured on rows that were not trained on; nats.

    Parameters
    ----------
    distortion : float
    plug_in : float
        Of the Gaussian law with the same covariance: a lower bound up to sampling, blind to
        everything that is not Gaussian.
    held_out, standard_error : float
        A fresh linear reader and a network on top, on rows that neither has seen.
    neighbors : float or None
        Nearest-neighbour estimate: of I(X; Z) for scalars, of the sum of I(X_i; Z_i) over
        paired coordinates where there are as many (below I(X; Z) for independent X_i).
    n_test : int
    """

    distortion: float
    plug_in: float
    held_out: float
    standard_error: float
    neighbors: float | None
    n_test: int

    @property
    def guarantee(self) -> EstimatedInformation:
        """An estimate, never a promise."""
        return EstimatedInformation(
            max(0.0, self.held_out), self.standard_error, ("network",), self.n_test
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"guarantee": self.guarantee.to_dict()}


def gaussian_information(joint: Array, size: int) -> float:
    """I(X; Z) of jointly Gaussian (X, Z) with this covariance, nats; X the first coordinates.

    By canonical correlations, so that a coordinate which others determine counts once; infinite
    where one of them is 1.
    """
    x, z = independent(joint[:size, :size]), independent(joint[size:, size:])
    shared = np.linalg.svd(x.T @ joint[:size, size:] @ z, compute_uv=False)
    rest = (1 - shared) * (1 + shared)
    if (rest < _TOLD).any():
        return math.inf
    return max(0.0, -0.5 * float(np.log(rest).sum()))


def independent(covariance: Array) -> Array:
    """A map (d, r) of the coordinates to as many as are independent, with variance 1 each."""
    unit = np.sqrt(covariance.diagonal())
    unit = np.where(unit > 0, unit, 1.0)
    values, basis = np.linalg.eigh(covariance / np.outer(unit, unit))
    kept = values > _DEPENDENT * values[-1]
    return np.asarray(basis[:, kept] / np.sqrt(values[kept]) / unit[:, None])


def affine_point(
    parts: tuple[Array, Array, Array], joint: Array, k: int, observe: str | Array
) -> LearnedPoint:
    """`LearnedPoint` of matrix w + root u + offset under N(0, joint) of (X, Y), X the first k."""
    matrix, root, offset = parts
    eye = np.eye(len(joint))
    seen = {"useful": eye[k:], "full": eye}[observe] if isinstance(observe, str) else observe
    gain = matrix @ seen  # of (X, Y)
    spread = gain @ joint @ gain.T + root @ root.T
    cross = joint[:k] @ gain.T
    leakage = gaussian_information(np.block([[joint[:k, :k], cross], [cross.T, spread]]), k)
    own = np.trace(joint[k:, k:]) - 2 * np.trace(joint[k:] @ gain.T)
    distortion = float(own + np.trace(spread) + offset @ offset)
    best = GaussianTradeoff(observe, distortion=distortion).from_covariance(joint, k)
    return LearnedPoint(leakage, distortion, best.leakage_, best.gap_)


def law_of(name: str, value: ArrayLike, k: int) -> Array:
    """A covariance of (X, Y), X the first k, that is one."""
    joint = _validate.square(name, value)
    if not 1 <= _validate.whole("n_sensitive", k) < len(joint):
        raise ValueError(f"n_sensitive must be from 1 to {len(joint) - 1}, got {k}")
    size = np.abs(joint).max()
    if np.abs(joint - joint.T).max() > 1e-8 * size:
        raise ValueError(f"{name} must be symmetric")
    if np.linalg.eigvalsh(joint)[0] < -1e-8 * size:
        raise ValueError(f"{name} must have no negative eigenvalue")
    return joint


def moment_rows(covariance: Array) -> Array:
    """2m rows with mean 0 and exactly this m x m covariance: all that an affine map is made of."""
    sd = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    sd = np.where(sd > 0, sd, 1.0)
    values, basis = np.linalg.eigh(covariance / np.outer(sd, sd))  # columns of any unit
    root = (basis * np.sqrt(len(values) * np.maximum(values, 0.0))).T * sd
    return np.vstack([root, -root])


def measured(x: Array, y: Array, z: Array, distortion: float, seed: Any) -> Leakage:
    """`Leakage` of releases z (n, m) of rows with attributes x (n, k), y (n, r)."""
    x, moved = x[:, (x != x[0]).any(0)], z - z.mean(0)
    live = np.abs(moved).max(0) > _FLAT * np.abs(z).max(0)
    x, z = x - x.mean(0), moved[:, live]
    x, z = (part / np.abs(part).max(0, initial=0.0) for part in (x, z))  # of any size
    if not (x.shape[1] and z.shape[1]):
        return Leakage(distortion, 0.0, 0.0, 0.0, 0.0, len(x))
    x = _without_copies(x)
    joint = np.atleast_2d(np.cov(np.hstack([x, z]), rowvar=False))
    gain, error = held_out_information(_white(x), _white(z), seed)
    near = None
    if x.shape[1] == z.shape[1]:
        near = max(0.0, sum(ksg_information(a, b) for a, b in zip(x.T, z.T, strict=True)))
    plug_in = gaussian_information(joint, x.shape[1])
    return Leakage(distortion, plug_in, gain, error, near, len(x) // 2)


def _white(x: Array) -> Array:
    """As many columns as are independent, each of variance 1: what they tell is the same."""
    centered = x - x.mean(0)
    scaled = centered / np.abs(centered).max(0)
    return scaled @ independent(np.atleast_2d(np.cov(scaled, rowvar=False)))


def _without_copies(x: Array) -> Array:
    """Columns as they are; if some follow from others, as many combinations as are independent."""
    reduced = independent(np.atleast_2d(np.cov(x, rowvar=False)))
    return x if reduced.shape[1] == x.shape[1] else x @ reduced
