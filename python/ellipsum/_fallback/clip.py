"""Twin of ``cpp/core/clip_kernels.cpp``: the same operations in the same order."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

NORM_LANES = 8
EXCEPTIONAL_NORM2 = 2.0**1000
_NO_EXPONENT = -(1 << 30)


@njit(cache=True, nogil=True)
def _round_to_29_bits(h):
    shifted = h * 16777217.0  # 2^24 + 1, Veltkamp
    return shifted - (shifted - h)


@njit(cache=True, nogil=True)
def _sum_lanes(v):
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))


@njit(cache=True, nogil=True)
def _squared_norm(y):
    lane = np.zeros(NORM_LANES)
    for j in range(y.size):
        lane[j % NORM_LANES] += y[j] * y[j]
    return _sum_lanes(lane)


@njit(cache=True, nogil=True)
def _transform(matrix, h, y):
    for i in range(y.size):
        total = 0.0
        for k in range(h.size):
            total += matrix[i, k] * h[k]
        y[i] = total


@njit(cache=True, nogil=True)
def _clip_scaled(radius, h, scale, y):
    top = _NO_EXPONENT
    for j in range(y.size):
        mh, eh = math.frexp(h[j])
        ms, es = math.frexp(scale[j]) if scale.size else (1.0, 0)
        if mh * ms != 0.0 and eh + es > top:
            top = eh + es
    for j in range(y.size):
        mh, eh = math.frexp(h[j])
        ms, es = math.frexp(scale[j]) if scale.size else (1.0, 0)
        y[j] = math.ldexp(mh * ms, eh + es - top)
    norm = math.sqrt(_squared_norm(y))
    factor = radius / norm if norm > 0.0 else 0.0
    for j in range(y.size):
        y[j] *= factor


@njit(cache=True, nogil=True)
def _clip_huge_row(row, center, scale, matrix, radius, h, y):
    for j in range(row.size):
        h[j] = 0.25 * np.float64(row[j]) - 0.25 * center[j]
    if matrix.size == 0:
        _clip_scaled(radius, h, scale, y)
        return
    top = _NO_EXPONENT
    for j in range(h.size):
        m, e = math.frexp(h[j])
        if m != 0.0 and e > top:
            top = e
    for j in range(h.size):
        h[j] = _round_to_29_bits(math.ldexp(h[j], -top))
    _transform(matrix, h, y)
    for j in range(h.size):
        h[j] = y[j]
    _clip_scaled(radius, h, scale, y)


@njit(cache=True, nogil=True)
def _clip_sum(rows, center, scale, matrix, limit, radius, partial):
    n, d = rows.shape
    h = np.empty(d)
    y = np.empty(d)
    clipped = 0
    nonfinite = 0
    for i in range(n):
        if matrix.size:
            for j in range(d):
                h[j] = _round_to_29_bits(np.float64(rows[i, j]) - center[j])
            _transform(matrix, h, y)
        else:
            for j in range(d):
                y[j] = (np.float64(rows[i, j]) - center[j]) * scale[j]
        n2 = 0.0 if limit.size else _squared_norm(y)
        if limit.size or not n2 < EXCEPTIONAL_NORM2:
            finite = True
            for j in range(d):
                finite &= math.isfinite(rows[i, j])
            if not finite:
                clipped += 1
                nonfinite += 1
                continue
        if limit.size:
            changed = False
            for j in range(d):
                changed |= not abs(y[j]) <= limit[j]
                y[j] = min(max(y[j], -limit[j]), limit[j])
            clipped += changed
        elif not n2 < EXCEPTIONAL_NORM2:
            _clip_huge_row(rows[i], center, scale, matrix, radius, h, y)
            clipped += 1
        else:
            norm = math.sqrt(n2)
            if norm > radius:
                factor = radius / norm
                for j in range(d):
                    y[j] *= factor
                clipped += 1
        for j in range(d):
            partial[j] += np.int64(np.rint(y[j]))
    return clipped, nonfinite


def clip_sum(rows, center, scale, matrix, limit, radius, partial, threads):
    """Add the clipped, quantised rows to ``partial`` (int64); return (clipped, nonfinite)."""
    d = center.size
    matrix = np.reshape(matrix, (d, d)) if matrix.size else np.empty((0, 0))
    return _clip_sum(rows, center, scale, matrix, limit, float(radius), partial)
