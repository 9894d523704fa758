"""One record to bounded integers: what a record release adds its noise to."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .. import _validate

__all__ = ["RecordClip", "refuse_far_radius"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

_RADIUS_BITS = 23  # the clip radius is 2^23 grid units: rounding adds sqrt(k) 2^-24 of it
_MOST_RADIUS_BITS = 25  # squared norms, and the sums that they are compared by, stay below 2^53
_NUMBERS_PER_BLOCK = 1 << 16  # temporaries of 512 KiB stay in cache
_HUGE = 2.0**1000  # a squared norm from here on is computed again without overflow
_ROUNDING = 1.0  # grid units, far above the rounding of a norm and of the products


def refuse_far_radius(clip_norm: float) -> None:
    """Refuse a clip radius whose square, times the noise of a unit ball, is no normal double."""
    if not 2.0**-400 < clip_norm < 2.0**400:
        raise ValueError(f"radius must lie within 2^-400..2^400, got {clip_norm:g}")


class RecordClip:
    """y = matrix (x - center), clipped to |y| <= clip_norm and rounded to clip_norm/2^radius_bits.

    **Guarantees.** Each row of integers is a function of that record alone (and of its place in
    the batch, which is public), and its squared norm is at most ``bound2``. That is *checked on
    the integers*, exactly, whatever the floating-point steps before did: a row that fails
    becomes 0. A row with a NaN or an infinity is 0: it counts as the centre.

    Parameters
    ----------
    center : array (d,); matrix : array (k, d), or (d,) for a diagonal one, 1/data unit;
    clip_norm : float. All public.
    radius_bits : int, at most 25
    """

    def __init__(
        self, center: Array, matrix: Array, clip_norm: float, radius_bits: int = _RADIUS_BITS
    ) -> None:
        refuse_far_radius(clip_norm)
        if radius_bits > _MOST_RADIUS_BITS:
            raise ValueError(f"radius_bits must be at most {_MOST_RADIUS_BITS}, got {radius_bits}")
        self.center, self.matrix, self.clip_norm = center, matrix, clip_norm
        self.k = len(matrix)
        self._radius = 2.0**radius_bits
        self.grid = clip_norm / self._radius
        self._step = np.ascontiguousarray((matrix / self.grid).T)
        #: Squares of integers below 2^53 add exactly in doubles, in any order.
        self.bound2 = math.floor((self._radius + math.sqrt(self.k) / 2 + _ROUNDING) ** 2)

    @property
    def row_bound(self) -> float:
        """Largest l2 norm of one record's integers (upper bound)."""
        return math.sqrt(self.bound2) * (1 + 2.0**-50)

    def integers(self, rows: NDArray[np.floating]) -> Integers:
        """The bounded integers of each row, (n, k). **Private.**"""
        out = np.empty((len(rows), self.k), dtype=np.int64)
        for part, q in self._blocks(rows):
            out[part] = q
        return out

    def lengths(self, rows: NDArray[np.floating]) -> Array:
        """|matrix (x - center)| over clip_norm of each row, infinity if it overflows; 0 of a row
        that counts as the centre. **Private.**"""
        out = np.empty(len(rows))
        step = self._rows_per_block(rows)
        for start in range(0, len(rows), step):
            part = _validate.doubles(rows[start : start + step])
            with np.errstate(all="ignore"):  # a warning would tell of a value
                y = self._scaled(np.subtract(part, self.center, order="C"), self._step)
                norm = np.sqrt(_squares(y)) / self._radius
            norm[np.isnan(norm)] = np.inf  # of overflows of both signs
            norm[~np.isfinite(part).all(axis=1)] = 0.0
            out[start : start + step] = norm
        return out

    def under(self, noise: Integers, rows: NDArray[np.floating]) -> Array:
        """(integers + noise) grid, in the noise's own memory: a sum below 2^53 is exact."""
        released = noise.view(np.float64)
        for part, q in self._blocks(rows):
            q += noise[part]
            np.multiply(q, self.grid, out=released[part])
        return released

    def block(self, rows: Array) -> Array:
        """The bounded integers of each row as doubles, (n, k), rows contiguous. **Private.**"""
        with np.errstate(all="ignore"):  # a warning would tell of a value
            return self._block(rows)

    def _blocks(self, rows: NDArray[np.floating]) -> Iterator[tuple[slice, Array]]:
        step = self._rows_per_block(rows)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            yield part, self.block(_validate.doubles(rows[part]))

    def _rows_per_block(self, rows: NDArray[np.floating]) -> int:
        return max(1, _NUMBERS_PER_BLOCK // max(rows.shape[1], self.k))

    def _block(self, rows: Array) -> Array:
        y = self._scaled(np.subtract(rows, self.center, order="C"), self._step)
        norm2 = _squares(y)
        for i in np.flatnonzero(~(norm2 < _HUGE)).tolist():
            y[i] = self._far(rows[i])
            norm2[i] = self._radius**2
        y *= (self._radius / np.sqrt(np.maximum(norm2, self._radius**2)))[:, None]
        np.rint(y, out=y)
        failed = ~(np.einsum("ij,ij->i", y, y) <= self.bound2)
        y[failed] = 0.0
        return y

    def _far(self, row: Array) -> Array:
        """The direction of a row whose norm overflows, times the radius; 0 if it is not finite."""
        if not np.isfinite(row).all():
            return np.zeros(self.k)
        h = row * 2.0**-600 - self.center * 2.0**-600
        h /= np.abs(h).max()
        y = self._scaled(h, self._step / np.abs(self._step).max())
        top = np.abs(y).max()
        y = y / top
        y *= self._radius / math.sqrt(float(y @ y))
        return y if np.isfinite(y).all() else np.zeros(self.k)

    @staticmethod
    def _scaled(rows: Array, step: Array) -> Array:
        return np.multiply(rows, step, out=rows) if step.ndim == 1 else rows @ step


def _squares(y: Array) -> Array:
    """|y|^2 of each row, the same whatever stands beside it: einsum adds a row that is alone in
    pieces of a buffer of 8192 numbers, and so in another order than one among others."""
    both = np.concatenate([y, y]) if len(y) == 1 else y
    return np.asarray(np.einsum("ij,ij->i", both, both)[: len(y)])
