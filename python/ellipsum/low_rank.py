"""What a region scales its rows with: a vector, a matrix, or numbers and a matrix of low rank."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate
from .grid import (
    SCALE_MAX,
    SCALE_MIN,
    WORST_CONDITION,
    flushed_matrix,
    positive_scale,
    round_bits,
)

__all__ = ["LowRankScale", "grid_scale", "kernel_scale", "unscaled"]

Array = NDArray[np.float64]

_TOO_LARGE = "scale is too large for clip_norm: change the unit of the data"


class LowRankScale:
    """The matrix B = diag(diagonal) + left @ right.T, as its parts: O(d r) for each row.

    Hand it to :class:`Ellipsoid` in the place of a matrix; ``for_covariance(..., rank=r)`` makes
    one. All entries are kept to 24 significant bits, and each column of ``right`` below 1 and
    from 1/2 on at its largest (a power of two goes to ``left``).

    **Guarantees.** None of its own: the sensitivity of a region does not depend on it (claim
    sum-1). All of it is public.

    Parameters
    ----------
    diagonal : array (d,), above zero, 1/data unit
    left : array (d, r), 1 <= r <= d, 1/data unit
    right : array (d, r), no unit; or both with the units otherwise between them

    Raises
    ------
    ValueError
        For shapes that do not agree, numbers out of range, or a B that is close to singular
        beside its diagonal: where I + left @ right.T / diagonal has a condition number, or columns
        that cancel, above 1e6.
    """

    def __init__(self, diagonal: ArrayLike, left: ArrayLike, right: ArrayLike) -> None:
        given = _validate.vector("diagonal", diagonal)
        self._diagonal = round_bits(positive_scale("diagonal", given, d=given.size))
        u, v = _factor("left", left, given.size), _factor("right", right, given.size)
        if u.shape != v.shape:
            raise ValueError(f"right must have {u.shape[1]} columns, as left, got {v.shape[1]}")
        v = round_bits(v)
        exponent = np.frexp(np.max(np.abs(v), axis=0))[1]
        v = np.ldexp(v, -exponent)
        self._right = np.where(np.abs(v) < SCALE_MIN, 0.0, v)
        with np.errstate(over="ignore"):  # an infinity is refused with the condition
            self._left = round_bits(np.ldexp(u, exponent))
        self._basis, self._core = _inverse(self._diagonal, self._left, self._right)
        for array in (self._diagonal, self._left, self._right, self._basis, self._core):
            array.setflags(write=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return LowRankScale, (self._diagonal, self._left, self._right)

    @property
    def diagonal(self) -> Array:
        """D, shape (d,), 1/data unit."""
        return self._diagonal

    @property
    def left(self) -> Array:
        """U, shape (d, r)."""
        return self._left

    @property
    def right(self) -> Array:
        """V, shape (d, r)."""
        return self._right

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self._diagonal.size

    @property
    def rank(self) -> int:
        """r, the number of columns of U and V."""
        return int(self._left.shape[1])

    def matrix(self) -> Array:
        """B itself, shape (d, d)."""
        return np.asarray(np.diag(self._diagonal) + self._left @ self._right.T)

    def times(self, x: Array) -> Array:
        """B x for columns x, shape (d, m)."""
        return np.asarray(self._diagonal[:, None] * x + self._left @ (self._right.T @ x))

    def unscale(self, y: Array) -> Array:
        """B^-1 y for y in the last axis, by Woodbury's identity in an orthonormal basis."""
        more = ((y @ self._basis) @ self._core.T) @ self._basis.T
        return np.asarray((y + more) / self._diagonal)

    def inverse_row_norms(self) -> Array:
        """Norm of each row of B^-1, shape (d,), data units, in O(d r^2)."""
        inside = self._basis + self._basis @ self._core  # rows of the basis times its inverse
        outside = np.maximum(1 - np.sum(self._basis**2, axis=1), 0)
        return np.sqrt(outside + np.sum(inside**2, axis=1)) / self._diagonal

    def on_grid(self, grid: float) -> LowRankScale:
        """The same with its entries in grid units within 2^-400..2^400, or 0 in ``left``."""
        with np.errstate(over="ignore", under="ignore"):
            size, step = np.abs(self._left) / grid, self._diagonal / grid
        if not max(float(size.max()), float(step.max())) <= SCALE_MAX:
            raise ValueError(_TOO_LARGE)
        if not float(step.min()) >= SCALE_MIN:
            raise ValueError("diagonal is too small for clip_norm: change the unit of the data")
        if not (size[size > 0] < SCALE_MIN).any():
            return self
        return LowRankScale(
            self._diagonal, np.where(size < SCALE_MIN, 0.0, self._left), self._right
        )

    def stacked(self) -> Array:
        """The diagonal, the columns of U and those of V as rows, shape (1 + 2 r, d)."""
        return np.vstack([self._diagonal, self._left.T, self._right.T])

    @classmethod
    def from_stacked(cls, rows: Array) -> LowRankScale:
        """Rebuild it from :meth:`stacked`; everything is checked again."""
        if rows.ndim != 2 or len(rows) < 3 or len(rows) % 2 == 0:
            raise ValueError("scale must have a diagonal, and as many columns of left as of right")
        rank = len(rows) // 2
        return cls(rows[0], rows[1 : 1 + rank].T, rows[1 + rank :].T)

    def __repr__(self) -> str:
        return f"LowRankScale(d={self.d}, rank={self.rank})"


def grid_scale(scale: Any, grid: float, d: int) -> tuple[str, Any]:
    """The kind of a region, and its scale in the 24 bits that the kernels take."""
    if isinstance(scale, LowRankScale):
        if scale.d != d:
            raise ValueError(f"scale must have {d} coordinates, like center, got {scale.d}")
        return "low-rank", scale.on_grid(grid)
    if np.ndim(scale) == 2:
        kind, square = "matrix", round_bits(_validate.square("scale", scale, d=d))
        made = flushed_matrix(square, grid)
    else:
        kind, made = "ellipsoid", round_bits(positive_scale("scale", scale, d=d))
    made.setflags(write=False)
    return kind, made


def kernel_scale(scale: Any, grid: float) -> tuple[Array, Array]:
    """(scale, matrix) in grid units as the kernels take them: one, or of low rank both."""
    if isinstance(scale, LowRankScale):
        return scale.diagonal / grid, np.stack([scale.left / grid, scale.right])
    step, none = scale / grid, np.empty(0)  # exact: the grid is a power of two
    return (none, step) if step.ndim == 2 else (step, none)


def unscaled(scale: Any, y: Array) -> Array:
    """B^-1 y for y in the last axis."""
    if isinstance(scale, LowRankScale):
        return scale.unscale(y)
    if scale.ndim == 1:
        return np.asarray(y / scale)
    return np.asarray(np.linalg.solve(scale, np.asarray(y).T).T)


def _factor(name: str, value: ArrayLike, d: int) -> Array:
    array = np.array(value, dtype=np.float64, order="C")
    if array.ndim != 2 or len(array) != d or not 1 <= array.shape[1] <= d:
        raise ValueError(
            f"{name} must have {d} rows, like the diagonal, and 1 to {d} columns, "
            f"got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite in every entry")
    return array


def _inverse(diagonal: Array, left: Array, right: Array) -> tuple[Array, Array]:
    """(Q, N) with B^-1 = diag(1/D) (I + Q N Q'), the columns of Q orthonormal.

    B = C diag(D) with C = I + U (V/D)'. C is the identity off the span of U and V/D, of which Q is
    a basis: its condition is that of Q' C Q, of order 2 r at most.
    """
    with np.errstate(all="ignore"):  # what is not finite is refused
        other = right / diagonal[:, None]
        sizes = np.linalg.norm(left, axis=0), np.linalg.norm(other, axis=0)
        cancelling = float(np.sum(sizes[0] * sizes[1]))
        if not (math.isfinite(cancelling) and all(np.isfinite(s).all() for s in sizes)):
            raise ValueError("left and right are out of range: change the unit of the data")
        left, other = (a / np.where(s > 0, s, 1) for a, s in zip((left, other), sizes, strict=True))
    basis = np.linalg.qr(np.hstack([left, other]))[0]
    between = (sizes[0] * sizes[1])[:, None] * (other.T @ basis)
    core = np.eye(basis.shape[1]) + (basis.T @ left) @ between
    values = np.linalg.svd(core, compute_uv=False)
    if not max(values[0], cancelling, 1.0) < WORST_CONDITION * min(values[-1], 1.0):
        raise ValueError(
            "diag(diagonal) + left @ right.T must be invertible: its condition number beside the "
            f"diagonal is above {WORST_CONDITION:g}"
        )
    return basis, np.linalg.inv(core) - np.eye(basis.shape[1])
