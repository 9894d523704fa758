"""Twin of ``quadratic_form_few.cpp``: few degrees of freedom, a spike at 0."""

from __future__ import annotations

import cmath
import math

import numpy as np

from .form_contour import _change, _point_at, _survivor
from .jit import jit

_INFINITY = math.inf
_LOG2 = math.log(2.0)
_MOST = 2.0  # degrees of freedom, and noncentrality
_TINY = 0.2  # dof of one sign that the contour would lose digits to
_NEAR_ZERO = 1e-4  # q and s, where the contour takes thousands of nodes
_STEP = 0.1  # of the trapezoid rule in v
_SPACING = 1.5  # of u about a scale where the step doubles
_WIDEST_BEND = 1.4
_APART = 4.0  # of two scales, in log t
_PLAIN_LENGTH = 8.0  # of a path that needs no second scale
_FARTHEST = 300.0  # u beyond which t is kept as its logarithm
_LARGEST_LOG = 650.0
_BEYOND = 100.0  # log |p| where 1 - p = -p
_MOST_NODES = 20000
_NEGLIGIBLE = 1e-17


@jit
def _log_normal_tail(x):
    if x < 5:
        return math.log(0.5 * math.erfc(x * math.sqrt(0.5)))
    fraction = 0.0
    for n in range(60, 0, -1):
        fraction = n / (x + fraction)
    return -0.5 * x * x - math.log((x + fraction) * math.sqrt(2 * math.pi))


@jit
def _slopes(w, k, nc, t, gap, highest):
    """First and second derivative of K, of the positive weights and of the rest."""
    up1 = up2 = down1 = down2 = 0.0
    for j in range(w.size):
        a = 1 / _survivor(w[j], t, gap, highest)
        g = w[j] * a
        first = g * (k[j] + nc[j] * a)
        second = 2 * g * g * (k[j] + 2 * nc[j] * a)
        if w[j] > 0:
            up1 += first
            up2 += second
        else:
            down1 += first
            down2 += second
    return up1, up2, down1, down2


@jit
def _apex(w, k, nc, sd, highest, q):
    low, high = -700.0, 700.0
    while high - low > 1e-9:
        x = 0.5 * (low + high)
        t, gap = _point_at(x, highest)
        up1, up2, down1, _ = _slopes(w, k, nc, t, gap, highest)
        ratio = up2 / up1 if up1 > 0 else 0.0
        if ratio + up1 + down1 + sd * sd * t - q - 1 / t > 0:
            high = x
        else:
            low = x
    return _point_at(0.5 * (low + high), highest)


@jit
def _exponent(w, k, nc, positive, apex, far, z, log_t, direction):
    """K of the weights of one sign at a node, and t K'(t)."""
    t0, gap, highest = apex
    value = slope = 0j
    for j in range(w.size):
        if (w[j] > 0) != positive:
            continue
        toward = direction if w[j] > 0 else -direction
        size = log_t + math.log(2 * abs(w[j])) if far else 0.0
        share = -1.0 + 0j
        if size > _BEYOND:
            log = size + cmath.log(-toward)
        else:
            if far:
                p = math.exp(size) * toward
                rest = 1 - p
            else:
                p = 2 * w[j] * (t0 + z)
                rest = _survivor(w[j], t0, gap, highest) - 2 * w[j] * z
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
def _chart(u, marks):
    """v(u) and its slope."""
    if marks.size == 0:
        return u, 1.0
    v = slope = 0.0
    for m in marks:
        x = (u - m) / _SPACING
        v += _SPACING * math.asinh(x)
        slope += 1 / math.sqrt(1 + x * x)
        if m > 0:
            x = (u + m) / _SPACING
            v += _SPACING * math.asinh(x)
            slope += 1 / math.sqrt(1 + x * x)
    return v, slope


@jit
def _inverse(v, u, marks):
    for _ in range(100):
        at, slope = _chart(u, marks)
        du = (v - at) / slope
        u += du
        if abs(du) < 1e-13 * (1 + u):
            break
    return u


@jit
def _marks(w, width, unit):
    """Where |t| passes 1/(2|w|), and where the path ends: 1/|q| or 1/s."""
    end = math.log(2 / unit) - math.log(width) if unit > 0 else _INFINITY
    scales = np.sort(-np.log(np.abs(w)) - math.log(width))
    marks = np.zeros(w.size + 2)
    count = 1
    for u in scales:
        if u > marks[count - 1] + _APART and u < end - _APART:
            marks[count] = u
            count += 1
    if end < _INFINITY and end > _PLAIN_LENGTH:
        marks[count] = end
        count += 1
    if count == 1 and end < _INFINITY:
        count = 0
    return marks[:count], end


@jit
def _scaled(log_t, x):
    return math.exp(min(log_t + math.log(x), 300.0)) if x > 0 else 0.0


@jit
def _node(u, w, k, nc, sd, q, apex, path):
    """The integrands of the tail and of the density, times du."""
    t0 = apex[0]
    width, bend, base, top, by_slope, log_unit, split = path
    far = u > 20 and u > min(_FARTHEST, _LARGEST_LOG - math.log(width))
    direction = complex(bend, 1.0)
    log_t, z = 0.0, 0j
    if far:
        log_t = u + math.log(0.5 * width)
        over_t = -1j
        st = _scaled(log_t, sd) * direction
        drift = 0.5 * st * st - math.copysign(_scaled(log_t, abs(q)), q) * direction
        drift += t0 * (q - 0.5 * sd * sd * t0)
    else:
        y = width * math.sinh(u)
        root = math.hypot(width, y)
        slope = bend * y / root
        z = complex(slope * (y / (1 + width / root)), y)
        over_t = width * math.cosh(u) * complex(1.0, -slope) / (t0 + z)
        drift = -z * q + 0.5 * sd * sd * z * (2 * t0 + z)
    down, down_slope = _exponent(w, k, nc, False, apex, far, z, log_t, direction)
    up, up_slope = _exponent(w, k, nc, True, apex, far, z, log_t, direction)
    rest = cmath.exp(down - base + drift)
    whole = rest * cmath.exp(up - top)
    tail = rest
    if split:
        tail = rest * _expm1(up) if top == 0 else whole - rest * math.exp(-top)
    if by_slope:
        st = 0j if far else sd * (t0 + z)
        density = over_t * (down_slope + up_slope + st * st)
        if q < 0:
            density = -density
    elif far:
        density = over_t * math.exp(min(log_t - log_unit, 300.0)) * direction
    else:
        density = over_t * (t0 + z) * math.exp(-log_unit)
    return tail * over_t, whole * density


@jit
def _few_error(change, previous):
    """Halving squares the error, but for a factor."""
    return min(change, 1e3 * change * change) + 1e-15 if previous < 1e-2 else change


@jit
def _few_integral(w, k, nc, sd, total_dof, q):
    """(log of the tail less that of the rest, log density, their errors, nodes)."""
    highest, lowest = max(np.max(w), 0.0), min(np.min(w), 0.0)
    t0, gap = _apex(w, k, nc, sd, highest, q)
    apex = (t0, gap, highest)
    split = highest > 0
    _, up2, _, down2 = _slopes(w, k, nc, t0, gap, highest)
    left, right = t0, _INFINITY
    curvature = up2 + down2 + sd * sd
    if split:
        right = 0.5 * gap / highest
        left = t0 - 0.5 / lowest if lowest < 0 else _INFINITY
    else:
        curvature += 1 / t0 / t0
    width = min(left, right)
    width = 3 / math.sqrt(curvature) if curvature * width * width > 9 else width
    bend = 0.0
    if q != 0:
        bend = math.copysign(_WIDEST_BEND, q) if sd == 0 else 0.7 * q / (abs(q) + 1.5 * sd)
    base = _exponent(w, k, nc, False, apex, False, 0j, 0.0, 0j)[0].real
    top = _exponent(w, k, nc, True, apex, False, 0j, 0.0, 0j)[0].real
    top = top if top > 1 else 0.0
    by_slope = abs(q) > 3 * sd and abs(q) ** (0.5 * total_dof) > total_dof
    unit = max(abs(q), sd)
    marks, end = _marks(w, width, unit)
    if by_slope:
        log_unit = -math.log(abs(q))
    else:
        log_unit = -math.log(unit) if end > _PLAIN_LENGTH and unit > 0 else math.log(width)
    path = (width, bend, base, top, by_slope, log_unit, split)
    h = _STEP
    u = tail = density = even = even_density = fourth = fourth_density = 0.0
    largest = largest_density = 0.0
    n = quiet = 0
    while quiet < 2 and n < _MOST_NODES:
        u = _inverse(n * h, u, marks)
        share = (0.5 if n == 0 else 1.0) / _chart(u, marks)[1]
        a, b = _node(u, w, k, nc, sd, q, apex, path)
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
        over = q == 0 or abs(b) < _NEGLIGIBLE * largest_density
        quiet = quiet + 1 if over and abs(a) < _NEGLIGIBLE * largest else 0
        n += 1
    change, previous = _change(tail, 2 * even), _change(even, 2 * fourth)
    density_change = _change(density, 2 * even_density)
    density_previous = _change(even_density, 2 * fourth_density)
    while 2 * n < _MOST_NODES:
        enough = q == 0 or _few_error(density_change, density_previous) < 1e-12
        rounding = change < 1e-11 and change > 0.1 * previous
        if enough and (rounding or _few_error(change, previous) < 1e-13):
            break
        old, old_density = tail, density
        u = 0.0
        for i in range(n):
            u = _inverse((i + 0.5) * h, u, marks)
            share = 1 / _chart(u, marks)[1]
            a, b = _node(u, w, k, nc, sd, q, apex, path)
            tail += share * a.real
            density += share * b.real
        h *= 0.5
        n *= 2
        previous, density_previous = change, density_change
        change, density_change = _change(tail, 2 * old), _change(density, 2 * old_density)
    factor = base + top + t0 * (0.5 * sd * sd * t0 - q) + math.log(h / math.pi)
    log_tail = factor + math.log(abs(tail)) if tail != 0 else -_INFINITY
    log_pdf = factor + math.log(density) + log_unit if density > 0 else -_INFINITY
    error = _few_error(change, previous)
    return log_tail, log_pdf, error, _few_error(density_change, density_previous), n


@jit
def _log_sum(a, b):
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@jit
def _one_side(w, k, nc, sd, total_dof, q):
    """P(Q > q) as P(Q0 > q) and the rest (see quadratic_form_few.cpp)."""
    tail, log_pdf, error, pdf_error, nodes = -_INFINITY, 0.0, 0.0, 0.0, 0
    below = w < 0
    some = not below.all()
    if some:
        tail, log_pdf, error, pdf_error, nodes = _few_integral(w, k, nc, sd, total_dof, q)
    normal = _log_normal_tail(q / sd) if sd > 0 else (0.0 if q < 0 else -_INFINITY)
    if normal > tail - 40:
        rest, rest_pdf, rest_error, rest_pdf_error, more = normal, 0.0, 4e-16, 0.0, 0
        if below.any():
            rest, rest_pdf, rest_error, rest_pdf_error, more = _few_integral(
                w[below], k[below], nc[below], sd, total_dof, q
            )
        if not some:
            log_pdf, pdf_error = rest_pdf, rest_pdf_error
        total = _log_sum(tail, rest)
        error = error * math.exp(tail - total) + rest_error * math.exp(rest - total)
        tail = total
        nodes += more
    if q == 0 and sd == 0:
        log_pdf, pdf_error = _INFINITY, 0.0
    return tail, log_pdf, error, pdf_error, nodes


@jit
def _few_degrees(w, k, nc, sd, total_dof, q):
    if not 0 < total_dof <= _MOST or np.sum(nc) > _MOST:
        return False
    up, down = np.sum(k[w > 0]), np.sum(k[w < 0])
    both = (w > 0).any() and (w < 0).any()
    if q == 0 and sd == 0 and not (up > 0 and down > 0):
        return False
    if 0 < up < _TINY or 0 < down < _TINY:
        return True
    return (both or sd > 0) and max(abs(q), sd) < _NEAR_ZERO


@jit
def _few_tail(w, k, nc, sd, total_dof, q):
    sign = 1.0 if q > 0 else -1.0
    if q == 0:
        sign = 1.0 if np.sum(k[w > 0]) < np.sum(k[w < 0]) else -1.0
    else:
        jumps = 0.0
        for j in range(w.size):
            if sign * w[j] > 0:
                x = abs(0.5 * q / w[j])
                jumps += 0.5 * k[j] * math.exp(-x) * math.log1p(0.7 / x)
        if jumps > _LOG2:
            sign = -sign
    tail, log_pdf, error, pdf_error, nodes = _one_side(sign * w, k, nc, sd, total_dof, sign * q)
    if tail < -_LOG2:
        return tail, log_pdf, error, pdf_error, sign > 0, nodes
    large = math.exp(tail)
    if large < 0.9:
        small = math.log1p(-large)
        return small, log_pdf, error * large / (1 - large), pdf_error, sign < 0, nodes
    out = _one_side(-sign * w, k, nc, sd, total_dof, -sign * q)
    return out[0], out[1], out[2], out[3], sign < 0, nodes + out[4]
