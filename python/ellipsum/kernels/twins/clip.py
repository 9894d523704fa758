"""Twin of ``cpp/core/clip``: the same operations in the same order (claim sum-6), row by row."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .jit import inner, jit

CLIP_ROWS_LIMIT = 1 << 31  # rows that one call may add to a partial sum of zero
NORM_LANES = 8
EXCEPTIONAL_NORM2 = 2.0**1000
LARGEST_MATRIX_INPUT = 2.0**400
SMALLEST_MATRIX_INPUT = 2.0**-400
_NO_EXPONENT = -(1 << 30)


@inner
def _round_to_29_bits(h):
    shifted = h * 16777217.0  # 2^24 + 1: Veltkamp's splitting
    return shifted - (shifted - h)


@inner
def _matrix_input(h):
    return 0.0 if abs(h) < SMALLEST_MATRIX_INPUT else _round_to_29_bits(h)


@inner
def _sum_lanes(v):
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))


@inner
def _squared_norm(y, lane):
    lane[:] = 0.0
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
        top = max(top, _split_product(h, scale, j)[1])
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
    if columns.size == 0:
        return _clip_scaled(radius, stretch, h, scale, 2, y, lane)
    exponent = _prepare_matrix_input(h) + 2
    _transform(columns, scale, h, y)
    for j in range(h.size):  # h[:] = y, for which Numba compiles an error's text for 10 s
        h[j] = y[j]
    return _clip_scaled(radius, stretch, h, scale[:0], exponent, y, lane)


@inner
def _scale_row(row, center, scale, columns, h, y):
    """y <- scaled row; False if a matrix cannot take it. Reads each number once."""
    if columns.size == 0:
        for j in range(row.size):
            y[j] = (np.float64(row[j]) - center[j]) * scale[j]
        return True
    inside = True
    for j in range(row.size):
        x = np.float64(row[j]) - center[j]
        inside &= abs(x) < LARGEST_MATRIX_INPUT
        h[j] = _matrix_input(x)
    if inside:
        _transform(columns, scale, h, y)
    return inside


@inner
def _finite(x):
    finite = True
    for j in range(x.size):
        finite &= math.isfinite(x[j])
    return finite


@inner
def _copy_row(row, center, x, absent):
    """x <- the row, each number read once, the centre in its holes (counted): how many?"""
    holes = 0
    for j in range(row.size):
        read = np.float64(row[j])
        hole = not math.isfinite(read)
        x[j] = center[j] if hole else read
        absent[j] += hole
        holes += hole
    return holes


@inner
def _stretch_of(d, holes, stretch):
    """d/k for a row with k > 0 of its d cells present, if asked for."""
    return d / max(d - holes, 1) if stretch else 1.0


@inner
def _clip_box(y, limit):
    changed = False
    for j in range(y.size):
        changed |= abs(y[j]) > limit[j]
        y[j] = min(max(y[j], -limit[j]), limit[j])
    return changed


@inner
def _add(y, partial):
    """Quantised numbers to ``partial``; with 2 d entries, negative ones' magnitudes apart."""
    below = partial.size - y.size
    for j in range(y.size):
        q = np.int64(np.rint(y[j]))
        if below:
            partial[j] += max(q, 0)
            partial[below + j] += max(-q, 0)
        else:
            partial[j] += q


@inner
def _clip_ball(y, n2, radius):
    norm = math.sqrt(n2)
    factor = radius / max(norm, radius)
    for j in range(y.size):
        y[j] *= factor
    return norm > radius


@inner
def _clip_exceptional(row, center, scale, columns, limit, radius, stretch, x, h, y, lane, absent):
    """y <- what the row adds: (clipped, has holes). All of it follows from one copy of the row."""
    count = _copy_row(row, center, x, absent)
    holes, size = np.int64(count > 0), _stretch_of(row.size, count, stretch)
    ordinary = _scale_row(x, center, scale, columns, h, y)
    if limit.size:
        return np.int64(_clip_box(y, limit)), holes
    n2 = _squared_norm(y, lane) * size if ordinary else math.inf
    if n2 < EXCEPTIONAL_NORM2:
        return np.int64(_clip_ball(y, n2, radius)), holes
    return np.int64(_clip_huge_row(x, center, scale, columns, radius, size, h, y, lane)), holes


@inner
def _clip_row(row, center, scale, columns, limit, radius, stretch, x, h, y, lane, absent):
    """y <- what the row adds, not yet rounded: (clipped, has holes)."""
    ordinary = _scale_row(row, center, scale, columns, h, y)
    n2 = _squared_norm(y, lane) if ordinary and limit.size == 0 else 0.0
    if not (ordinary and n2 < EXCEPTIONAL_NORM2 and (limit.size == 0 or _finite(y))):
        shape = center, scale, columns, limit, radius, stretch
        return _clip_exceptional(row, *shape, x, h, y, lane, absent)
    if limit.size:
        return np.int64(_clip_box(y, limit)), 0
    return np.int64(_clip_ball(y, n2, radius)), 0


@jit
def _clip_sum(rows, center, scale, columns, limit, radius, stretch, partial, absent):
    n, d = rows.shape
    x = np.empty(d)
    h = np.empty(d)
    y = np.empty(d)
    lane = np.empty(NORM_LANES)
    clipped = 0
    nonfinite = 0
    for i in range(n):
        shape = center, scale, columns, limit, radius, stretch
        counts = _clip_row(rows[i], *shape, x, h, y, lane, absent)
        clipped += counts[0]
        nonfinite += counts[1]
        _add(y, partial)
    return clipped, nonfinite


@jit
def _group_sums(rows, index, center, scale, columns, limit, radius, stretch, table, counts):
    n, d = rows.shape
    x = np.empty(d)
    h = np.empty(d)
    y = np.empty(d)
    lane = np.empty(NORM_LANES)
    absent = np.zeros(d, np.int64)
    clipped = 0
    nonfinite = 0
    for i in range(n):
        shape = center, scale, columns, limit, radius, stretch
        seen = _clip_row(rows[i], *shape, x, h, y, lane, absent)
        clipped += seen[0]
        nonfinite += seen[1]
        if index[i] >= 0:
            counts[index[i]] += 1
            _add(y, table[index[i]])
    return clipped, nonfinite


@inner
def _exceptional_distance(row, center, scale, columns, stretch, x, h, y, lane, absent):
    """Squared distance of the present cells of one copy of the row: infinite beyond 2^1000."""
    size = _stretch_of(row.size, _copy_row(row, center, x, absent), stretch)
    ordinary = _scale_row(x, center, scale, columns, h, y)
    n2 = _squared_norm(y, lane) * size if ordinary else math.inf
    return n2 if n2 < EXCEPTIONAL_NORM2 else math.inf


@jit
def _distance_counts(rows, center, scale, columns, above, stretch, counts, absent):
    n, d = rows.shape
    x = np.empty(d)
    h = np.empty(d)
    y = np.empty(d)
    lane = np.empty(NORM_LANES)
    for i in range(n):
        ordinary = _scale_row(rows[i], center, scale, columns, h, y)
        n2 = _squared_norm(y, lane) if ordinary else math.inf
        if not n2 < EXCEPTIONAL_NORM2:
            shape = center, scale, columns, stretch
            n2 = _exceptional_distance(rows[i], *shape, x, h, y, lane, absent)
        k = 0
        for start in above:
            k += n2 >= start
        counts[k] += 1


def _shared(kernel, rows, threads, partial, absent):
    """Each thread's share of the rows through ``kernel``, the sums to ``partial`` and, if it has
    entries, ``absent``; its answers."""
    rows = np.asarray(rows)  # columns become blocks of rows
    if len(rows) > CLIP_ROWS_LIMIT:
        raise ValueError("internal: more rows than a partial sum can hold")

    def work(part):
        sums, holes = np.zeros_like(partial), np.zeros(rows.shape[1], np.int64)
        return kernel(part, sums, holes), sums, holes

    parts = np.array_split(rows, min(threads, max(len(rows), 1)))
    if len(parts) == 1:
        results = [work(parts[0])]
    else:
        with ThreadPoolExecutor(len(parts)) as pool:
            results = list(pool.map(work, parts))
    for _, sums, holes in results:
        partial += sums
        if absent.size:
            absent += holes
    return [answer for answer, _, _ in results]


def _columns(scale, matrix, d):
    """Columns of the matrix; or, beside a scale, of V and then of U."""
    if not matrix.size:
        return np.empty((0, 0))
    if not scale.size:
        return np.ascontiguousarray(np.reshape(matrix, (d, d)).T)
    left, right = np.reshape(matrix, (2, d, -1))
    return np.ascontiguousarray(np.vstack([right.T, left.T]))


_NONE = np.empty(0, np.int64)


class FewRows:
    """None: a call of compiled Python costs more than such a short way would save."""

    def __init__(self, center, scale, limit, radius, low, high):
        pass

    def add(self, rows):
        return None


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
):
    """Add the clipped, quantised rows to ``partial`` (int64), and to ``absent`` the rows with a
    hole in a coordinate; return (clipped, nonfinite). With ``stretch`` the squared norm of a row
    counts d/k times, k of its d cells present."""
    d = center.size
    if d == 1 and not (matrix.size or limit.size or halves):
        limit = np.array([radius])  # on the line, ball and box are one set
    shape = center, scale, _columns(scale, matrix, d), limit, float(radius), stretch
    assert partial.size == (2 * d if halves else d)
    counts = _shared(lambda part, *to: _clip_sum(part, *shape, *to), rows, threads, partial, absent)
    return sum(clipped for clipped, _ in counts), sum(nonfinite for _, nonfinite in counts)


def group_sums(rows, index, center, scale, matrix, limit, radius, table, counts, stretch=False):
    """Add each clipped, quantised row to its group's sums; return (clipped, nonfinite)."""
    d = center.size
    if d == 1 and not (matrix.size or limit.size):
        limit = np.array([radius])
    shape = center, scale, _columns(scale, matrix, d), limit, float(radius), stretch
    return _group_sums(rows, index, *shape, table.reshape(counts.size, d), counts)


def distance_counts(
    rows, center, scale, matrix, edges, counts, threads=1, absent=_NONE, stretch=False
):
    """Add to ``counts`` (int64) the rows by the bins, ending at ``edges``, of their distance, and
    to ``absent`` the rows with a hole in a coordinate; ``stretch`` as in ``clip_sum``."""
    cut = (edges[:-1] * edges[:-1]).view(np.int64) >> 32  # the next number of 21 bits is above
    shape = (
        center,
        scale,
        _columns(scale, matrix, center.size),
        ((cut + 1) << 32).view(np.float64),
        stretch,
    )
    _shared(lambda part, *to: _distance_counts(part, *shape, *to), rows, threads, counts, absent)
