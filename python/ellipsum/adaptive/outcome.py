"""What a plan leaves: each round's answer, with what is needed to say how far it may be off."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..ellipsoid import Ellipsoid
from .cells import Cells
from .excess import Excess
from .plan import Plan

__all__ = ["Counts", "Outcome", "Round", "Tail"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Counts:
    """A noisy histogram of the rows' distances, in scaled units."""

    edges: Array  #: upper ends of the bins
    share: Array  #: of the rows in each; may be negative
    sd: float  #: the noise of each share


@dataclass(frozen=True)
class Tail:
    """What a noisy histogram says of the rows beyond the clip radius, in scaled units."""

    radius: float
    expected: float = 0.0  #: E(t - C)+, rows lost in one direction
    sd: float = 0.0  #: what the expectation may be off by
    beyond: float = 0.0  #: share of the rows beyond the radius, as counted
    beyond_sd: float = 0.0  #: its noise
    coarse: bool = False  #: the first histogram, whose bins tell nothing of tails
    counts: Counts | None = None  #: None where nothing was counted


@dataclass(frozen=True)
class Round:
    """One round, along the domain's axes and in its units."""

    mean: Array  #: offset of the mean, as this round alone has it
    sd: Array  #: its noise
    shift: Array  #: from the round's centre to it
    deviation: Array  #: noisy mean absolute deviation from the round's centre
    scale: Array  #: b
    reach: Array  #: how far from the round's centre a row of the domain may lie
    tail: Tail


@dataclass
class Outcome:
    """What a plan found, after noise: offsets along the domain's axes."""

    plan: Plan
    count: int  # public, or noisy
    count_sd: float  # 0 where it is public
    offset: Array  # of the mean
    sd: Array  # noise of the offset
    spread: Array  # standard deviation of the rows, as far as seen
    cells: Cells
    rounds: list[Round] = field(default_factory=list)
    excess: Excess | None = None  # None where nothing is clipped
    integers: list[NDArray[np.object_]] = field(default_factory=list)
    regions: list[Ellipsoid] = field(default_factory=list)
