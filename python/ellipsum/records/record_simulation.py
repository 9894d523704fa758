"""Releases of records of the public law, in floating point: what a reader is fitted to."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import scipy
from numpy.typing import NDArray

from .priv_unit import PrivUnit
from .record_design import Channel1d, Design
from .record_law import RecordLaw
from .record_reader import Pairs, Reader, fit_reader
from .record_sphere import Sphere, spheres

__all__ = ["Simulation", "best_reader"]

Array = NDArray[np.float64]

_COUNT = 32768  # releases that the reader is fitted to
_TRIED = 8192  # of them for each of the spheres to choose from
_NUMBERS = 1 << 20  # numbers at a time
_KEPT = 1 << 22  # as many in all are drawn once and kept, 48 MiB; more are drawn at each pass
_SEED = 11400358  # any fixed one: nothing private is in it


class Simulation:
    """Blocks (components, public units, releases); with a sphere, what is released of its last
    coordinate is the last one."""

    def __init__(
        self,
        law: RecordLaw,
        design: Design,
        channel: Channel1d,
        unit: PrivUnit | None,
        sphere: Sphere | None,
        count: int = _COUNT,
    ) -> None:
        self.draws, self.design, self.channel, self.unit = law.draws(), design, channel, unit
        self.sphere, self.count = sphere, count
        inverse = np.linalg.pinv(law.covariance)
        self.rows = np.asarray(design.back.T @ inverse) * (design.spread**2)[:, None]
        d, k = law.d, len(design.matrix)
        self.step = max(1, _NUMBERS // (d + k))

    def __call__(self) -> Iterator[tuple[Array, Array, Array]]:
        rng = np.random.default_rng(_SEED)
        order = np.arange(self.count) % len(self.draws)
        for start in range(0, self.count, self.step):
            z = self.draws[order[start : start + self.step]]
            yield z @ self.rows.T, z, self._release(z, rng)

    def lengths(self) -> Array:
        """Norms of the public law's draws, in clip radii."""
        return np.linalg.norm(self.draws @ self.design.matrix.T, axis=1) / self.design.radius

    def _release(self, z: Array, rng: np.random.Generator) -> Array:
        design = self.design
        y = z @ design.matrix.T
        length = np.linalg.norm(y, axis=1) / design.radius
        y *= np.minimum(1.0, 1 / np.maximum(length, np.finfo(float).tiny))[:, None]
        if design.garble is not None:
            return np.asarray(y @ design.garble.T + rng.standard_normal((len(y), design.size.size)))
        if self.unit is None:
            sd = math.sqrt(self.channel.floor) * design.radius
            return np.asarray(y + sd * rng.standard_normal(y.shape))
        v = (self.sphere or Sphere()).points(y / design.radius, length)
        drawn = _model_draw(self.unit, v, rng) * design.radius
        return drawn if self.sphere is not None else drawn[:, :-1]


def best_reader(
    law: RecordLaw, design: Design, channel: Channel1d, unit: PrivUnit | None, tell: str
) -> tuple[Sphere | None, Reader]:
    """The sphere of least squared error on public rows, and its reader.

    ``tell`` is "nothing" (no last coordinate is released: None), "inside" (the plain sphere) or
    "best".
    """

    def fitted(sphere: Sphere | None, count: int) -> tuple[Pairs, Reader]:
        drawn = Simulation(law, design, channel, unit, sphere, count)
        few = count * (law.d + len(design.matrix)) <= _KEPT
        pairs = _kept(list(drawn())) if few else drawn
        return pairs, fit_reader(pairs, design.size, design.spread, design.back)

    def loss(sphere: Sphere) -> float:
        pairs, reader = fitted(sphere, _TRIED)
        return float(sum(((z - reader(t)) ** 2).sum() for _, z, t in pairs()))

    sphere = None if tell == "nothing" else Sphere()
    if tell == "best":
        sphere = min(spheres(Simulation(law, design, channel, unit, sphere).lengths()), key=loss)
    return sphere, fitted(sphere, _COUNT)[1]


def _kept(blocks: list[tuple[Array, Array, Array]]) -> Pairs:
    return lambda: iter(blocks)


def _model_draw(unit: PrivUnit, v: Array, rng: np.random.Generator) -> Array:
    """PrivUnitG in floating point, for the public simulation alone."""
    law = unit.law
    share, u = rng.random(len(v)) < law.probability, rng.random(len(v))
    tail = 0.5 * math.erfc(law.threshold / math.sqrt(2))
    along = np.where(share, -scipy.special.ndtri(tail * u), scipy.special.ndtri((1 - tail) * u))
    z = rng.standard_normal(v.shape)
    z += (along - np.einsum("ij,ij->i", z, v))[:, None] * v
    return np.asarray(z / law.lead)
