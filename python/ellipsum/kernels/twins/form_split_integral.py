"""Twin of ``split_integral.cpp``: the integral of low degrees of freedom, apart from P(Q0 > q)."""

from __future__ import annotations

import cmath
import math
from typing import Any, NamedTuple

import numpy as np

from .form_contour import Convergence, Level, relative_change
from .form_saddle import INFINITY, LARGEST_CHART, Point, one_minus_2wt, point_at
from .jit import jit

# The path and the rule: as in split_integral.cpp, with their reasons.
_CHART_ACCURACY = 1e-9
_WIDTHS_IN_SD = 3.0
_LARGEST_BEND, _NORMAL_BEND, _NORMAL_BEND_SOFTENING = 1.4, 0.7, 1.5
_FAR_U, _FAR_U_FROM = 300.0, 20.0  # u beyond which t is kept as its logarithm
_LARGEST_LOG, _LARGEST_EXPONENT = 650.0, 300.0
_BEYOND = 100.0  # log |p| where 1 - p = -p
_FIRST_STEP = 0.1  # of the trapezoid rule in v
_SPACING = 1.5  # of u about a scale where the step doubles
_APART = 4.0  # of two scales, in log t
_PLAIN_LENGTH = 8.0  # of a path that needs no second scale
_NEGLIGIBLE = 1e-17
_TAIL_MET, _DENSITY_MET = 1e-13, 1e-12
_MOST_NODES = 20000
_ROUNDING = 1e-11  # of a change that no step reduces


class SignedTerms(NamedTuple):
    """sign * Q: weights with that sign, and the rest of it."""

    weights: Any
    dof: Any
    noncentrality: Any
    normal_sd: float
    total_dof: float


class SplitIntegral(NamedTuple):
    """P(Q > q) - P(Q0 > q) and the density at q."""

    log_tail: float
    log_pdf: float
    error: float
    pdf_error: float
    nodes: int


class Slopes(NamedTuple):
    """First and second derivative of K, of the positive weights and of the rest."""

    up_first: float
    up_second: float
    down_first: float
    down_second: float


class Saddlepoint(NamedTuple):
    """A point, and the largest weight, whose branch point it keeps clear of."""

    point: Point
    highest: float


class Node(NamedTuple):
    """A node of the path: t = t0 + z, or far out exp(log_t) * direction."""

    far: bool
    z: complex
    log_t: float
    direction: complex
    over_t: complex  # (dt/du) / (i t)


class Path(NamedTuple):
    """What is fixed along a path."""

    saddle: Saddlepoint
    q: float
    width: float
    bend: float
    base: float  # K0 at the saddlepoint
    top: float  # K+ there, where it is above 1
    by_slope: bool  # the density by parts
    log_unit: float  # of the density
    split: bool  # are there positive weights?
    scale_points: Any  # of u, from 0 upwards; none: v = u


@jit
def _slopes(s, saddle):
    w, k, nc = s.weights, s.dof, s.noncentrality
    up1 = up2 = down1 = down2 = 0.0
    for j in range(w.size):
        a = 1 / one_minus_2wt(w[j], saddle.point, saddle.highest)
        g = w[j] * a
        first = g * (k[j] + nc[j] * a)
        second = 2 * g * g * (k[j] + 2 * nc[j] * a)
        if w[j] > 0:
            up1 += first
            up2 += second
        else:
            down1 += first
            down2 += second
    return Slopes(up1, up2, down1, down2)


@jit
def _find_saddlepoint(s, highest, q):
    """Of K+'(t) exp(K(t) - tq)/t, by bisection: every part of its slope increases."""
    sd = s.normal_sd
    low, high = -LARGEST_CHART, LARGEST_CHART
    while high - low > _CHART_ACCURACY:
        x = 0.5 * (low + high)
        point = point_at(x, highest)
        at = _slopes(s, Saddlepoint(point, highest))
        ratio = at.up_second / at.up_first if at.up_first > 0 else 0.0
        if ratio + at.up_first + at.down_first + sd * sd * point.t - q - 1 / point.t > 0:
            high = x
        else:
            low = x
    return Saddlepoint(point_at(0.5 * (low + high), highest), highest)


@jit
def _exponent(s, positive, saddle, node):
    """K of the weights of one sign at a node, and t K'(t)."""
    w, k, nc, t0 = s.weights, s.dof, s.noncentrality, saddle.point.t
    value = slope = 0j
    for j in range(w.size):
        if (w[j] > 0) != positive:
            continue
        toward = node.direction if w[j] > 0 else -node.direction
        size = node.log_t + math.log(2 * abs(w[j])) if node.far else 0.0
        share = -1.0 + 0j
        if size > _BEYOND:
            log = size + cmath.log(-toward)
        else:
            if node.far:
                p = math.exp(size) * toward
                rest = 1 - p
            else:
                p = 2 * w[j] * (t0 + node.z)
                rest = one_minus_2wt(w[j], saddle.point, saddle.highest) - 2 * w[j] * node.z
            norm = p.real * p.real + p.imag * p.imag
            if norm < 0.25:
                log = complex(0.5 * math.log1p(norm - 2 * p.real), math.atan2(rest.imag, rest.real))
            else:
                log = complex(math.log(abs(rest)), math.atan2(rest.imag, rest.real))
            share = p / rest
        value += 0.5 * (nc[j] * share - k[j] * log)
        slope += 0.5 * share * (k[j] + nc[j] * (1 + share))
    return value, slope


@jit
def _expm1(x):
    s = math.sin(0.5 * x.imag)
    real = math.expm1(x.real) * math.cos(x.imag) - 2 * s * s
    return complex(real, math.exp(x.real) * math.sin(x.imag))


@jit
def _chart(u, scale_points):
    """v(u) and its slope."""
    if scale_points.size == 0:
        return u, 1.0
    v = slope = 0.0
    for m in scale_points:
        x = (u - m) / _SPACING
        v += _SPACING * math.asinh(x)
        slope += 1 / math.sqrt(1 + x * x)
        if m > 0:
            x = (u + m) / _SPACING
            v += _SPACING * math.asinh(x)
            slope += 1 / math.sqrt(1 + x * x)
    return v, slope


@jit
def _inverse(v, u, scale_points):
    """u at v, by Newton's method from a smaller one."""
    for _ in range(100):
        at, slope = _chart(u, scale_points)
        du = (v - at) / slope
        u += du
        if abs(du) < 1e-13 * (1 + u):
            break
    return u


@jit
def _scale_points(w, width, unit):
    """Where |t| passes 1/(2|w|), and where the path ends: 1/|q| or 1/s."""
    end = math.log(2 / unit) - math.log(width) if unit > 0 else INFINITY
    scales = np.sort(-np.log(np.abs(w)) - math.log(width))
    points = np.zeros(w.size + 2)
    count = 1
    for u in scales:
        if u > points[count - 1] + _APART and u < end - _APART:
            points[count] = u
            count += 1
    if end < INFINITY and end > _PLAIN_LENGTH:
        points[count] = end
        count += 1
    if count == 1 and end < INFINITY:
        count = 0
    return points[:count], end


@jit
def _scaled(log_t, x):
    return math.exp(min(log_t + math.log(x), _LARGEST_EXPONENT)) if x > 0 else 0.0


@jit
def _node_at(u, t0, path):
    far = u > _FAR_U_FROM and u > min(_FAR_U, _LARGEST_LOG - math.log(path.width))
    direction = complex(path.bend, 1.0)
    if far:
        log_t = u + math.log(0.5 * path.width)
        return Node(far, 0j, log_t, direction, -1j)
    y = path.width * math.sinh(u)
    root = math.hypot(path.width, y)
    slope = path.bend * y / root
    z = complex(slope * (y / (1 + path.width / root)), y)
    over_t = path.width * math.cosh(u) * complex(1.0, -slope) / (t0 + z)
    return Node(far, z, 0.0, direction, over_t)


@jit
def _drift(node, t0, sd, q):
    """The linear and normal part of the exponent, from the saddlepoint."""
    if not node.far:
        return -node.z * q + 0.5 * sd * sd * node.z * (2 * t0 + node.z)
    st = _scaled(node.log_t, sd) * node.direction
    drift = 0.5 * st * st - math.copysign(_scaled(node.log_t, abs(q)), q) * node.direction
    drift += t0 * (q - 0.5 * sd * sd * t0)
    return drift


@jit
def _integrands(u, s, path):
    """The integrands of the tail and of the density at u, times du."""
    t0, sd = path.saddle.point.t, s.normal_sd
    node = _node_at(u, t0, path)
    down, down_slope = _exponent(s, False, path.saddle, node)
    up, up_slope = _exponent(s, True, path.saddle, node)
    rest = cmath.exp(down - path.base + _drift(node, t0, sd, path.q))
    whole = rest * cmath.exp(up - path.top)
    tail = rest
    if path.split:
        tail = rest * _expm1(up) if path.top == 0 else whole - rest * math.exp(-path.top)
    if path.by_slope:
        st = 0j if node.far else sd * (t0 + node.z)
        density = node.over_t * (down_slope + up_slope + st * st)
        if path.q < 0:
            density = -density
    elif node.far:
        scale = math.exp(min(node.log_t - path.log_unit, _LARGEST_EXPONENT))
        density = node.over_t * scale * node.direction
    else:
        density = node.over_t * (t0 + node.z) * math.exp(-path.log_unit)
    return tail * node.over_t, whole * density


@jit
def _bend_towards(q, sd):
    if q == 0:
        return 0.0
    if sd == 0:
        return math.copysign(_LARGEST_BEND, q)
    return _NORMAL_BEND * q / (abs(q) + _NORMAL_BEND_SOFTENING * sd)


@jit
def _width(s, saddle, lowest):
    """As wide as the next branch point allows, or three standard deviations."""
    at, t0 = _slopes(s, saddle), saddle.point.t
    left, right = t0, INFINITY
    curvature = at.up_second + at.down_second + s.normal_sd * s.normal_sd
    if saddle.highest > 0:
        right = 0.5 * saddle.point.gap / saddle.highest
        left = t0 - 0.5 / lowest if lowest < 0 else INFINITY
    else:
        curvature += 1 / t0 / t0
    width = min(left, right)
    in_sd = _WIDTHS_IN_SD * _WIDTHS_IN_SD
    return _WIDTHS_IN_SD / math.sqrt(curvature) if curvature * width * width > in_sd else width


@jit
def _make_path(s, q):
    w, sd = s.weights, s.normal_sd
    highest, lowest = max(np.max(w), 0.0), min(np.min(w), 0.0)
    saddle = _find_saddlepoint(s, highest, q)
    width = _width(s, saddle, lowest)
    origin = Node(False, 0j, 0.0, 0j, 0j)
    base = _exponent(s, False, saddle, origin)[0].real
    top = _exponent(s, True, saddle, origin)[0].real
    top = top if top > 1 else 0.0
    by_slope = abs(q) > 3 * sd and abs(q) ** (0.5 * s.total_dof) > s.total_dof
    unit = max(abs(q), sd)
    scale_points, end = _scale_points(w, width, unit)
    if by_slope:
        log_unit = -math.log(abs(q))
    else:
        log_unit = -math.log(unit) if end > _PLAIN_LENGTH and unit > 0 else math.log(width)
    bend = _bend_towards(q, sd)
    return Path(saddle, q, width, bend, base, top, by_slope, log_unit, highest > 0, scale_points)


@jit
def _error(levels):
    """Halving squares the error, but for a factor."""
    change = levels.change
    return min(change, 1e3 * change * change) + 1e-15 if levels.previous < 1e-2 else change


@jit
def _met(tail, density, q):
    enough = q == 0 or _error(density) < _DENSITY_MET
    rounding = tail.change < tail.noise and tail.change > 0.1 * tail.previous
    return enough and (rounding or _error(tail) < _TAIL_MET)


@jit
def _first_level(s, path):
    """The rule with the first step, to where two nodes in a row are negligible."""
    u = tail = density = even = even_density = fourth = fourth_density = 0.0
    largest = largest_density = 0.0
    n = quiet = 0
    while quiet < 2 and n < _MOST_NODES:
        u = _inverse(n * _FIRST_STEP, u, path.scale_points)
        share = (0.5 if n == 0 else 1.0) / _chart(u, path.scale_points)[1]
        a, b = _integrands(u, s, path)
        a *= share
        b *= share
        tail += a.real
        density += b.real
        if n % 2 == 0:
            even += a.real
            even_density += b.real
        if n % 4 == 0:
            fourth += a.real
            fourth_density += b.real
        largest, largest_density = max(largest, abs(a)), max(largest_density, abs(b))
        over = path.q == 0 or abs(b) < _NEGLIGIBLE * largest_density
        quiet = quiet + 1 if over and abs(a) < _NEGLIGIBLE * largest else 0
        n += 1
    return Level(tail, density, even, even_density, fourth, fourth_density, n)


@jit
def _add_midpoints(s, path, n, h, tail, density):
    """The sums with the nodes that halve the step h."""
    u = 0.0
    for i in range(n):
        u = _inverse((i + 0.5) * h, u, path.scale_points)
        share = 1 / _chart(u, path.scale_points)[1]
        a, b = _integrands(u, s, path)
        tail += share * a.real
        density += share * b.real
    return tail, density


@jit
def split_integral(s, q):
    """P(Q > q) - P(Q0 > q) where there are positive weights, else P(Q > q); and the density."""
    path = _make_path(s, q)
    h = _FIRST_STEP
    first = _first_level(s, path)
    tail, density, n = first.value, first.pdf, first.count
    levels = Convergence(
        relative_change(tail, 2 * first.even),
        relative_change(first.even, 2 * first.fourth),
        _ROUNDING,
    )
    density_levels = Convergence(
        relative_change(density, 2 * first.even_pdf),
        relative_change(first.even_pdf, 2 * first.fourth_pdf),
        _ROUNDING,
    )
    while 2 * n < _MOST_NODES and not _met(levels, density_levels, q):
        old, old_density = tail, density
        tail, density = _add_midpoints(s, path, n, h, tail, density)
        h *= 0.5
        n *= 2
        levels = Convergence(relative_change(tail, 2 * old), levels.change, _ROUNDING)
        density_levels = Convergence(
            relative_change(density, 2 * old_density), density_levels.change, _ROUNDING
        )
    t0, sd = path.saddle.point.t, s.normal_sd
    factor = path.base + path.top + t0 * (0.5 * sd * sd * t0 - q) + math.log(h / math.pi)
    log_tail = factor + math.log(abs(tail)) if tail != 0 else -INFINITY
    log_pdf = factor + math.log(density) + path.log_unit if density > 0 else -INFINITY
    return SplitIntegral(log_tail, log_pdf, _error(levels), _error(density_levels), n)
