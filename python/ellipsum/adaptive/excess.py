"""What the last region clips: one noisy number, and what it says of the rows that are lost.

Each row gives g(t) = min((t - T)+ / L, 1), by how far its scaled distance t lies beyond T. Where
t^2 P(t) does not grow beyond T, P(t) the share of rows further out than t, what a radius C >= T
clips is E(t - C)+ <= T (T + L)/C E g (docs/adaptive.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .radius import Laws

__all__ = ["FOLLOWED", "POWERS", "STEPS", "Excess", "Ramp", "choose_ramp", "seen_apart"]

Array = NDArray[np.float64]

#: Steps of the ramp: a row counts 0 to so many.
STEPS = 64

#: The law of the rows is followed outwards from the ramp over no more than this factor.
FOLLOWED = 4.0

# The second power and the three numbers after `_CHOSEN_FOR`: the largest power, and the rules that
# doubt the least, with which columns of 50 to 99 % of zeros among log-normal claims, 1,000 to
# 100,000 rows, were covered in all of twenty settings (other seeds than in the tables).

#: The power of the distance by which the share of rows further out falls at least: of rows that
#: may hide in the noise (next to the least with which they have a variance), and of those that are
#: seen to be there, from so many deviations on.
POWERS, _SEEN_FROM = (2.0, 1.25), 2.0

#: The second of these as the ramp is chosen for it.
_CHOSEN_FOR = 1.5

#: A share of the rows that is no tail any more.
_BODY = 0.05

#: So much of what is seen beyond the ramp must be near it, where it can have a tail's law.
_NEAR = 0.7

#: Rows further out contradict the ramp from so many deviations on.
_STANDS_OUT = 2.5

#: Ramps that are compared: where they begin, and how long they are, in clip radii.
_STARTS, _LENGTHS = np.geomspace(0.35, 1.0, 16), np.geomspace(0.05, 2.5, 12)

#: The deviations of noise that an interval will add.
_NOISE = 2.0

#: How far out the fitted law is looked at, in clip radii.
_OUTWARDS = np.geomspace(0.35, 8.0, 60)


@dataclass(frozen=True)
class Ramp:
    """From where on rows count, and over what distance they come to count fully, scaled units."""

    start: float
    length: float

    @property
    def edges(self) -> Array:
        """The distances at which a row counts one more, the first at the start."""
        return self.start + self.length * np.arange(STEPS) / STEPS

    def clipped(self, radius: float, power: float = POWERS[0]) -> float:
        """The most that a radius from the start on clips, for each unit of E g, where the share
        of rows further out than t falls as t^-power or faster."""
        rest = power - 1
        ends = self.start**-rest - (self.start + self.length) ** -rest
        return float(self.length * radius**-rest / ends)


def seen_apart(share: float, sd: float) -> tuple[float, float]:
    """(what of an excess may be noise, what is seen to be there)."""
    hidden = min(max(share, 0.0), _SEEN_FROM * sd)
    return hidden, max(share - hidden, 0.0)


@dataclass(frozen=True, eq=False)
class Excess:
    """The answer: E g over the rows, about the last round's center."""

    ramp: Ramp
    share: float  #: may be negative
    sd: float  #: its noise
    center: Array  #: of the region, offset along the axes
    scale: Array  #: b of the region
    expected: float = 0.0  #: E g of the laws that were fitted to the histograms

    def explains(self, edges: Array, share: Array, sd: float) -> bool:
        """Whether all may be as assumed, as far as the excess and a noisy histogram tell.

        Not where the last region was laid about a part of the rows: where too many are seen beyond
        the ramp for a tail; where what the laws do not have is not near the ramp; where more lie
        further out than can by the ramp: P(t > x) <= (a - 1) `Ramp.clipped`(x, a)/x E g.

        Parameters
        ----------
        edges : array (k,), upper ends of the bins
        share : array (k,), of the rows in each
        sd : float, the noise of each share
        """
        seen = self.share - _SEEN_FROM * self.sd
        if seen > self.expected + _BODY:
            return False
        below = np.append(0.0, edges[:-1])
        ends = np.clip([below, edges], self.ramp.start, FOLLOWED * self.ramp.start)
        near = (ends[1] - ends[0]) / (edges - below)  # the part of each bin that is near
        if seen > self.expected and float(near @ share) < _NEAR * seen:
            return False
        most = max(self.share, 0.0) + _SEEN_FROM * self.sd
        for k in np.flatnonzero(edges[:-1] >= FOLLOWED * self.ramp.start) + 1:
            start = float(edges[k - 1])
            there = float(np.sum(share[k:])) - _STANDS_OUT * sd * math.sqrt(edges.size - k)
            power = POWERS[1]
            if there > (power - 1) * self.ramp.clipped(start, power) / start * most:
                return False
        return True

    def beyond(self, radius: float, share: float) -> float:
        """The most rows beyond a radius, ``share`` being E g."""
        radius = min(radius, FOLLOWED * self.ramp.start)
        return self.ramp.clipped(radius) / radius * share


def expected(laws: Laws, ramp: Ramp) -> float:
    """E g of fitted laws.

    Parameters
    ----------
    laws : Laws
    ramp : Ramp, in their unit
    """
    ends = laws.loss(ramp.start + np.array([0.0, ramp.length]))
    return float(ends[0] - ends[1]) / ramp.length


def choose_ramp(laws: Laws, radius: float, sd: float) -> Ramp:
    """The ramp with the smallest bound on what is clipped, as far as the fitted laws tell.

    It begins where their t^2 P(t) falls, or at the radius.

    Parameters
    ----------
    laws : Laws
    radius : float, scaled units
    sd : float, the noise that E g will have
    """
    far = radius * _OUTWARDS
    moment = far**2 * laws.beyond(far)
    falls = moment >= np.append(np.maximum.accumulate(moment[::-1])[::-1][1:], 0.0)
    rises = far[~falls]
    first = float(rises[-1]) if rises.size else 0.0
    starts = np.array([start for start in radius * _STARTS if start > first] or [radius])
    lengths = radius * _LENGTHS
    ends = starts[:, None] + lengths
    mean = (laws.loss(starts)[:, None] - laws.loss(ends.ravel()).reshape(ends.shape)) / lengths
    bound = np.empty_like(mean)
    for (k, j), share in np.ndenumerate(mean):
        ramp = Ramp(float(starts[k]), float(lengths[j]))
        hidden, seen = seen_apart(share, sd)
        far_off = min(radius, FOLLOWED * ramp.start)
        bound[k, j] = ramp.clipped(far_off) * (hidden + _NOISE * sd)
        bound[k, j] += ramp.clipped(far_off, _CHOSEN_FOR) * seen
    k, j = np.unravel_index(int(np.argmin(bound)), bound.shape)
    return Ramp(float(starts[k]), float(lengths[j]))
