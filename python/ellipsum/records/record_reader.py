"""Reading a released record: the posterior mean, as far as three fitted steps give it.

1. The best linear reader of component j: factor_j t_j.
2. What it misses is radial: how long t is in the directions that records take tells whether the
   noise or the record made it, and a release that tells the record's length says more. So the
   linear answer is multiplied by h(q, s), q^2 = sum (weight_j t_j)^2, s the told length.
3. What both miss is bent: a skew column is underestimated at its long end. So each column's answer
   is moved by a curve of its own.

h and the curves are broken lines, fitted to releases that are simulated from the public law. They
need no Gaussian rows: on rows of heavy tails the last two steps bring most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pairs", "Reader", "fit_reader"]

Array = NDArray[np.float64]
#: Blocks (components w, public units z, released t), the same ones at each call.
Pairs = Callable[[], Iterator[tuple[Array, Array, Array]]]

_KNOTS = 12  # of the reader's curves: each then has thousands of the simulated releases
_LENGTH_KNOTS = 6  # of the told length
_PULL = 1e-4  # of the normal equations' trace, towards h = 1
_CURVE_PULL = 0.03  # of a knot's mean weight, towards no curve: a public row's share of it


@dataclass(frozen=True)
class Reader:
    """x = back (h(q, s) factor * t) and each column's curve, public units; all of it public.

    Parameters
    ----------
    factor, weight : arrays (r,)
    knots, told, heights : arrays (m,), (p,) and (m, p), the surface h; p = 1 where t has no
        coordinate beyond its r components
    back : array (d, r)
    curves : for each column, arrays knots and shifts
    """

    factor: Array
    weight: Array
    knots: Array
    told: Array
    heights: Array
    back: Array
    curves: tuple[tuple[Array, Array], ...] = ()

    def components(self, t: Array) -> Array:
        """Estimates of the components, (n, r)."""
        r = self.factor.size
        along, beside = _surface(t, self.weight, self.knots, self.told)
        radial = np.sum((along @ self.heights) * beside, axis=1)
        return np.asarray(t[:, :r] * self.factor * np.maximum(radial, 0.0)[:, None])

    def __call__(self, t: Array) -> Array:
        read = np.asarray(self.components(t) @ self.back.T)
        for j, (knots, shifts) in enumerate(self.curves):
            read[:, j] += np.interp(read[:, j], knots, shifts)
        return read


def fit_reader(pairs: Pairs, size: Array, spread: Array, back: Array) -> Reader:
    """The reader of least squared error over ``pairs()``."""
    r = size.size
    cross, power = np.zeros_like(size), np.zeros_like(size)
    for w, _, t in pairs():
        cross, power = cross + (w * t[:, :r]).sum(axis=0), power + (t[:, :r] ** 2).sum(axis=0)
    factor = np.maximum(cross, 0.0) / power
    metric = (back * back).sum(axis=0)  # error in public units; components are uncorrelated
    # Which length of t tells most depends on the noise: that of records, or of the linear answer.
    lengths = (size * spread, factor * np.sqrt(metric))
    found = [_radial(pairs, factor, metric, weight) for weight in lengths]
    best = int(np.argmin([loss for loss, *_ in found]))
    _, knots, told, heights = found[best]
    plain = Reader(factor, lengths[best], knots, told, heights, back)
    return Reader(factor, lengths[best], knots, told, heights, back, _curves(pairs, plain))


def _radial(
    pairs: Pairs, factor: Array, metric: Array, weight: Array
) -> tuple[float, Array, Array, Array]:
    """(loss up to a constant, knots, told, heights) of h over the length of weight * t.

    First a line over q alone; then what the told length adds to it, as far as it is not chance.
    """
    r = factor.size
    lengths = np.concatenate([np.sqrt(t[:, :r] ** 2 @ weight**2) for *_, t in pairs()])
    knots = _quantiles(lengths, 0.01, _KNOTS)
    last = np.concatenate([t[:, r:] for *_, t in pairs()])
    told = _quantiles(last, 0.02, _LENGTH_KNOTS) if last.size else np.zeros(1)
    m, p = knots.size, told.size
    normal, right = np.zeros((m * p, m * p)), np.zeros(m * p)
    for w, _, t in pairs():
        linear = t[:, :r] * factor
        a, b = _surface(t, weight, knots, told)
        basis = (a[:, :, None] * b[:, None, :]).reshape(len(t), m * p)
        normal += basis.T @ (basis * (linear * linear @ metric)[:, None])
        right += basis.T @ ((linear * w) @ metric)
    pull = _PULL * float(np.trace(normal)) + np.finfo(float).tiny
    spread = np.repeat(np.eye(m), p, axis=0)  # a line over q as a surface
    whole = spread.T @ normal @ spread + pull * np.eye(m)
    line = np.asarray(np.linalg.solve(whole, spread.T @ right + pull), dtype=np.float64)
    heights = np.asarray(spread @ line, dtype=np.float64)
    if p > 1:
        score = right - normal @ heights
        more = np.linalg.solve(normal + pull * np.eye(m * p), score)
        noise = _score_noise(pairs, factor, metric, weight, (knots, line))
        heights = heights + more * _beyond_chance(float(more @ score), m * p, noise)
    loss = float(heights @ normal @ heights - 2 * right @ heights)
    return loss, knots, told, heights.reshape(m, p)


def _score_noise(
    pairs: Pairs, factor: Array, metric: Array, weight: Array, line: tuple[Array, Array]
) -> float:
    """What the squared score of one release is, beside its weight in the normal equations."""
    found, scale, r = 0.0, 0.0, factor.size
    for w, _, t in pairs():
        linear = t[:, :r] * factor
        height = np.interp(np.sqrt(t[:, :r] ** 2 @ weight**2), *line)
        found += float(np.sum(((linear * (w - height[:, None] * linear)) @ metric) ** 2))
        scale += float(np.sum(linear * linear @ metric))
    return found / max(scale, np.finfo(float).tiny)


def _beyond_chance(gain: float, number: int, noise: float) -> float:
    """The positive part of 1 - 2 m/chi^2, m numbers fitted, chi^2 = gain/noise."""
    by_chance = 2 * number * noise
    return 1 - by_chance / gain if gain > by_chance else 0.0


def _curves(pairs: Pairs, plain: Reader) -> tuple[tuple[Array, Array], ...]:
    """The curve of each column: least squares of what ``plain`` misses over its own answer, as
    far as it is not chance."""
    first = plain(next(pairs())[2])
    knots = [_quantiles(column, 0.005, _KNOTS) for column in first.T]
    normal = [np.zeros((k.size, k.size)) for k in knots]
    right = [np.zeros(k.size) for k in knots]
    missed, count = np.zeros(len(knots)), 0
    for _, z, t in pairs():
        read = plain(t)
        miss = z - read
        missed, count = missed + np.einsum("ij,ij->j", miss, miss), count + len(t)
        for j, at in enumerate(knots):
            hats = _hats(read[:, j], at)
            normal[j] += hats.T @ hats
            right[j] += hats.T @ miss[:, j]
    curves: list[tuple[Array, Array]] = []
    for at, n, r, power in zip(knots, normal, right, missed.tolist(), strict=True):
        pull = _CURVE_PULL * float(np.trace(n)) / at.size + np.finfo(float).tiny
        shifts = np.asarray(np.linalg.solve(n + pull * np.eye(at.size), r), dtype=np.float64)
        gain = float(shifts @ r)
        noise = max(power - gain, 0.0) / count
        curves.append((at, shifts * _beyond_chance(gain, at.size, noise)))
    return tuple(curves)


def _quantiles(values: Array, least: float, count: int) -> Array:
    return np.unique(np.quantile(values, np.linspace(least, 1 - least, count)))


def _surface(t: Array, weight: Array, knots: Array, told: Array) -> tuple[Array, Array]:
    """Broken lines' bases at the lengths of weight * t, (n, m), and at what is told, (n, p)."""
    r = weight.size
    hats = _hats(np.sqrt(t[:, :r] ** 2 @ weight**2), knots)
    return hats, _hats(t[:, r], told) if t.shape[1] > r else np.ones((len(t), 1))


def _hats(q: Array, knots: Array) -> Array:
    """The broken line's basis at q, (n, m)."""
    row, out = np.arange(q.size), np.zeros((q.size, knots.size))
    if knots.size == 1:
        return out + 1.0
    at = np.interp(q, knots, np.arange(knots.size, dtype=np.float64))
    left = np.minimum(at.astype(np.intp), knots.size - 2)
    out[row, left] = 1 - (at - left)
    out[row, left + 1] = at - left
    return out
