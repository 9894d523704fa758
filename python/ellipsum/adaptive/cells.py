"""Cells that are missing: what a plan knows of them, from one noisy count for each coordinate.

A missing cell lies at the centre of its coordinate, wherever a round has that. So a round moves
its centre by p_j (m_j - c_j), with p_j the share of present cells and m_j their mean: divided by
p_j it is the shift to the mean of the present cells. What p_j is off by counts by m_j - c_j alone,
which falls from round to round.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..guarantee import Neighbors, rounded_up

__all__ = ["Cells", "cells_sensitivity", "read_cells"]

Array = NDArray[np.float64]

#: A share of missing cells, or of empty rows, is believed from so many noise deviations on.
_BELIEVED = 2.0

#: Shares of present cells are taken as no smaller.
_LEAST = 0.01


class Cells(NamedTuple):
    """Shares of the rows, after noise."""

    present: Array  #: (d,), in (0, 1]
    sd: Array  #: what they may be off by
    empty: float  #: rows without any cell
    drawn: Array  #: (d,), as ``present``, those that do not stand out from all among them
    counted: Array  #: (d,), one by one
    noise: float  #: of each of these

    def inverse(self, z: float, whole: bool, rows: int) -> tuple[Array, Array]:
        """1/p at least and at most, p the share of present cells, z deviations to both sides.

        As counted: where holes hide in the noise, or one coordinate has more than the others,
        ``present`` is off by more than ``sd``.

        Parameters
        ----------
        z : float
        whole : bool, no share is above one: the number of rows is not noisy
        rows : int
        """
        low = np.maximum(self.counted - z * self.noise, 1 / rows)  # at least one cell
        high = np.maximum(self.counted + z * self.noise, low)
        return 1 / (np.minimum(high, 1.0) if whole else high), 1 / low

    def too_few(self, z: float, rows: int) -> Array:
        """How many times more a cell may count than it does, shape (d,): from 1 on."""
        low = np.maximum(self.drawn - z * self.sd, 1 / rows)
        return np.maximum(self.present / low, 1.0)

    def unseen(self) -> NDArray[np.bool_]:
        """Coordinates whose present cells do not stand out from the noise of their number."""
        return np.asarray((self.present < 1) & (self.present <= _BELIEVED * self.sd))


def cells_sensitivity(d: int, neighbors: Neighbors) -> float:
    """l2 sensitivity of the numbers of present cells of d coordinates, and of the empty rows.

    A row has either up to d cells or the mark of an empty row; of two rows' vectors no
    more than d + 1 entries differ, of a row and none no more than d (claim adaptive-1).
    """
    return rounded_up(math.sqrt(d + 1 if neighbors is Neighbors.REPLACE else d))


def read_cells(noisy: NDArray[np.object_], n: int, noise: float) -> Cells:
    """What noisy numbers of cells say, ``noise`` their standard deviation.

    The coordinates' shares are drawn together as far as they do not differ by more than the noise
    (James & Stein); a share that does not stand out from it counts as all.
    """
    share, sd = noisy.astype(np.float64) / n, noise / n
    each, d = share[:-1], share.size - 1
    pooled = float(np.mean(each))
    between = max(0.0, float(np.mean((each - pooled) ** 2)) - sd**2)
    kept = between / (between + sd**2) if d > 2 else 1.0
    present = pooled + kept * (each - pooled)
    off = np.full(d, sd * math.sqrt(kept + (1 - kept) / d))
    drawn, present = present, np.where(1 - present > _BELIEVED * off, present, 1.0)
    empty = float(share[-1]) if share[-1] > _BELIEVED * sd else 0.0
    present = np.clip(present, _LEAST, 1.0)
    return Cells(present, off, min(empty, 1 - _LEAST), drawn, each, sd)
