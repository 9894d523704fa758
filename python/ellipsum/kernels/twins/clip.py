"""Twin of ``cpp/core/clip``: the same operations in the same order (claim sum-6), row by row."""

from __future__ import annotations

import math

import numpy as np

from .jit import inlined, inner, jit
from .shares import shared

NORM_LANES = 8
EXCEPTIONAL_NORM2 = 2.0**1000
LARGEST_MATRIX_INPUT = 2.0**400
SMALLEST_MATRIX_INPUT = 2.0**-400
_NO_EXPONENT = -(1 << 30)
MAGIC = 1.5 * 2.0**52
MAGIC_BITS = 0x4338000000000000


@inner
def _round_to_29_bits(h):
    shifted = h * 16777217.0  # 2^24 + 1: Veltkamp's splitting
    return shifted - (shifted - h)


@inner
def _matrix_input(h):
    return 0.0 if abs(h) < SMALLEST_MATRIX_INPUT else _round_to_29_bits(h)


@inlined
def _sum_lanes(v):
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))


@inner
def _squared_norm(y, lane):
    for k in range(NORM_LANES):
        lane[k] = 0.0
    whole = y.size - y.size % NORM_LANES
    for j in range(0, whole, NORM_LANES):
        for k in range(NORM_LANES):
            lane[k] += y[j + k] * y[j + k]
    for j in range(whole, y.size):
        lane[j - whole] += y[j] * y[j]
    return _sum_lanes(lane)


@inner
def _add_columns(columns, h, y):
    for k in range(h.size):
        for i in range(y.size):
            y[i] += columns[k, i] * h[k]


@inner
def _transform(columns, scale, h, y):
    """y = B h: each y_i is added to in the order of k, many of them at once; with ``scale`` y =
    scale h + U t, t = V' h, the columns of V, then of U."""
    if scale.size == 0:
        y[:] = 0.0
        _add_columns(columns, h, y)
        return
    rank = columns.shape[0] // 2
    t = np.empty(rank)
    for k in range(rank):
        t[k] = 0.0
        for j in range(h.size):
            t[k] += columns[k, j] * h[j]
        t[k] = _matrix_input(t[k])
    for i in range(y.size):
        y[i] = scale[i] * h[i]
    _add_columns(columns[rank:], t, y)


@inner
def _split_product(h, scale, j):
    mh, eh = math.frexp(h[j])
    ms, es = math.frexp(scale[j]) if scale.size else (1.0, 0)
    m = mh * ms
    return m, eh + es if m != 0.0 else _NO_EXPONENT


@inner
def _clip_scaled(radius, stretch, h, scale, exponent, y, lane):
    """y <- z min(1, C/|z|) for z_j = h_j scale_j 2^exponent; was z outside?"""
    top = _NO_EXPONENT
    for j in range(y.size):
        _, e = _split_product(h, scale, j)
        if e > top:  # max() would be compiled by itself
            top = e
    for j in range(y.size):
        m, e = _split_product(h, scale, j)
        y[j] = math.ldexp(m, e - top) if m != 0.0 else 0.0
    norm = math.sqrt(_squared_norm(y, lane) * stretch)
    outside = norm > 0.0 and math.ldexp(norm, top + exponent) > radius
    factor = radius / norm if outside else math.ldexp(1.0, top + exponent)
    for j in range(y.size):
        y[j] = y[j] * factor if norm > 0.0 else 0.0
    return outside


@inner
def _prepare_matrix_input(h):
    top = _NO_EXPONENT
    for j in range(h.size):
        m, e = math.frexp(h[j])
        h[j] = math.ldexp(_round_to_29_bits(m), e)
        m, e = math.frexp(h[j])
        if m != 0.0 and e > top:
            top = e
    for j in range(h.size):
        h[j] = _matrix_input(math.ldexp(h[j], -top))
    return top


@inner
def _clip_huge_row(x, center, scale, columns, radius, stretch, h, y, lane):
    for j in range(x.size):
        h[j] = 0.25 * x[j] - 0.25 * center[j]
    if columns is None:
        return _clip_scaled(radius, stretch, h, scale, 2, y, lane)
    exponent = _prepare_matrix_input(h) + 2
    _transform(columns, scale, h, y)
    for j in range(h.size):  # h[:] = y, for which Numba compiles an error's text for seconds
        h[j] = y[j]
    return _clip_scaled(radius, stretch, h, scale[:0], exponent, y, lane)


@inlined
def _norm2(x, center, scale, columns, h, y, lane):
    """y <- the scaled row; its squared norm, infinite where a matrix cannot take the row."""
    if columns is None:
        for j in range(x.size):
            y[j] = (x[j] - center[j]) * scale[j]
        return _squared_norm(y, lane)
    for j in range(x.size):
        shifted = x[j] - center[j]
        if not abs(shifted) < LARGEST_MATRIX_INPUT:
            return math.inf
        h[j] = _matrix_input(shifted)
    _transform(columns, scale, h, y)
    return _squared_norm(y, lane)


@inner
def _fill_holes(x, center, absent):
    """The centre in the row's holes, which are counted: how many?"""
    holes = 0
    for j in range(x.size):
        if not math.isfinite(x[j]):
            x[j] = center[j]
            absent[j] += 1
            holes += 1
    return holes


@inlined
def _read(row, center, scale, columns, stretch, x, h, y, lane, absent):
    """x <- the row, the centre in its holes, y <- x scaled: (squared norm, holes, stretch).

    Each number is read once: all that follows is of the copy (claim sum-5). The norm is stretched
    by d/k for a row with k > 0 of its d cells present, if asked for.
    """
    for j in range(x.size):
        x[j] = row[j]
    holes = 0
    size = 1.0
    for again in range(2):
        n2 = _norm2(x, center, scale, columns, h, y, lane) * size
        if n2 < EXCEPTIONAL_NORM2 or again:
            break
        holes = _fill_holes(x, center, absent)
        if stretch and holes < x.size:
            size = x.size / (x.size - holes)
    return n2, holes, size


@inner
def _clip_box(y, limit):
    changed = False
    for j in range(y.size):
        changed |= abs(y[j]) > limit[j]
        y[j] = min(max(y[j], -limit[j]), limit[j])
    return changed


@inlined
def _add(y, bits, partial):
    """Quantised numbers to ``partial``; with 2 d entries, negative ones' magnitudes apart.

    1.5 2^52 more has the rounded number in its low bits, and they are those of ``y`` as integers.
    """
    below = partial.size - y.size
    for j in range(y.size):
        y[j] += MAGIC
    for j in range(y.size):
        q = bits[j] - MAGIC_BITS
        if below:
            partial[j] += q if q > 0 else 0
            partial[below + j] += -q if q < 0 else 0
        else:
            partial[j] += q


@inlined
def _clip_ball(y, n2, radius):
    norm = math.sqrt(n2)
    factor = radius / norm if norm > radius else 1.0
    for j in range(y.size):
        y[j] *= factor
    return norm > radius


@jit
def _clip_sum(
    rows,
    index,
    center,
    scale,
    columns,
    limit,
    radius,
    stretch,
    sums,
    sizes,
    absent,
    x,
    h,
    y,
    bits,
    lane,
):
    """Add each row to its group's sums, without an index to the first: (clipped, with holes).

    None for ``columns``, ``limit`` or ``index`` leaves what is for them out of what is compiled.
    """
    clipped = 0
    nonfinite = 0
    for i in range(rows.shape[0]):
        n2, holes, size = _read(rows[i], center, scale, columns, stretch, x, h, y, lane, absent)
        nonfinite += holes > 0
        if limit is not None:
            clipped += _clip_box(y, limit)
        elif n2 < EXCEPTIONAL_NORM2:
            clipped += _clip_ball(y, n2, radius)
        else:
            clipped += _clip_huge_row(x, center, scale, columns, radius, size, h, y, lane)
        group = 0
        if index is not None:
            group = index[i]
        if group >= 0:
            sizes[group] += 1
            _add(y, bits, sums[group])
    return clipped, nonfinite


@jit
def _distance_counts(
    rows, center, scale, columns, above, stretch, counts, absent, x, h, y, bits, lane
):
    for i in range(rows.shape[0]):
        n2, _, _ = _read(rows[i], center, scale, columns, stretch, x, h, y, lane, absent)
        k = 0
        for start in above:  # rows beyond 2^1000 are infinitely far
            k += n2 >= start or not n2 < EXCEPTIONAL_NORM2
        counts[k] += 1


def _scratch(d):
    """x, h, y, the bits of y, lane: what a kernel writes to, made here to compile less."""
    x, h, y = np.empty((3, d))
    return x, h, y, y.view(np.int64), np.empty(NORM_LANES)


def _columns(scale, matrix, d):
    """Columns of the matrix; or, beside a scale, of V and then of U; None without."""
    if not matrix.size:
        return None
    if not scale.size:
        return np.ascontiguousarray(np.reshape(matrix, (d, d)).T)
    left, right = np.reshape(matrix, (2, d, -1))
    return np.ascontiguousarray(np.vstack([right.T, left.T]))


def _limit(limit, radius, d, *, ball=False):
    """Limits of a box; on the line, where ball and box are one set, of a ball too."""
    if limit.size:
        return limit
    return None if d > 1 or ball else np.array([radius])


_NONE = np.empty(0, np.int64)


class FewRows:
    """None: a call of compiled Python costs more than such a short way would save."""

    def __init__(self, center, scale, limit, radius, low, high):
        pass

    def add(self, rows):
        return False


def clip_sum(
    rows,
    center,
    scale,
    matrix,
    limit,
    radius,
    partial,
    threads=1,
    halves=False,
    absent=_NONE,
    stretch=False,
    lower=_NONE,
    upper=_NONE,
):
    """Add the clipped, quantised rows to ``partial`` (int64), and to ``absent`` the rows with a
    hole in a coordinate; return (clipped, nonfinite). With ``stretch`` the squared norm of a row
    counts d/k times, k of its d cells present; with ``lower`` and ``upper`` cells are first moved
    between them, and holes to the centre."""
    d = center.size
    limit = _limit(limit, radius, d, ball=halves or matrix.size > 0)
    shape = center, scale, _columns(scale, matrix, d), limit, float(radius), stretch
    assert partial.size == (2 * d if halves else d)

    def add(part, sums, holes):
        sizes = np.zeros(1, np.int64)
        return _clip_sum(part, None, *shape, sums.reshape(1, -1), sizes, holes, *_scratch(d))

    counts = shared(add, rows, threads, partial, absent, (center, lower, upper))
    return sum(clipped for clipped, _ in counts), sum(nonfinite for _, nonfinite in counts)


def group_sums(rows, index, center, scale, matrix, limit, radius, table, counts, stretch=False):
    """Add each clipped, quantised row to its group's sums; return (clipped, nonfinite)."""
    d = center.size
    limit = _limit(limit, radius, d, ball=matrix.size > 0)
    shape = center, scale, _columns(scale, matrix, d), limit, float(radius), stretch
    sums = table.reshape(counts.size, d), counts, np.zeros(d, np.int64)
    return _clip_sum(rows, index, *shape, *sums, *_scratch(d))


def distance_counts(
    rows,
    center,
    scale,
    matrix,
    edges,
    counts,
    threads=1,
    absent=_NONE,
    stretch=False,
    lower=_NONE,
    upper=_NONE,
):
    """Add to ``counts`` (int64) the rows by the bins, ending at ``edges``, of their distance, and
    to ``absent`` the rows with a hole in a coordinate; the others as in ``clip_sum``."""
    cut = (edges[:-1] * edges[:-1]).view(np.int64) >> 32  # the next number of 21 bits is above
    shape = (
        center,
        scale,
        _columns(scale, matrix, center.size),
        ((cut + 1) << 32).view(np.float64),
        stretch,
    )

    def add(part, bins, holes):
        _distance_counts(part, *shape, bins, holes, *_scratch(center.size))

    shared(add, rows, threads, counts, absent, (center, lower, upper))
