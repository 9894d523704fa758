"""Twin of ``cpp/core/quadratic_form*.cpp``: the same regimes and contours, the same tolerance."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_INFINITY = math.inf
_LOG2 = math.log(2.0)
_WIDEST = 700.0  # of the chart: exp(_WIDEST) is still a double
_BLOCK = 8
_MOST_BLOCKS = 200
_LEVELS = 6
_TAIL, _EXCESS, _ROOT, _SHORTFALL = 0, 1, 2, 3
_UNITS = (0.0, 1.0, 0.5, 1.0)  # power of the scale in each moment

_jit = njit(cache=True, nogil=True)


@_jit
def _survivor(w, t, gap, highest):
    if w > 0 and gap < 0.5:
        return ((highest - w) + w * gap) / highest
    return 1 - 2 * w * t


@_jit
def _point_at(chart, highest):
    if not highest > 0:
        return math.exp(chart), 1.0
    e = math.exp(-abs(chart))
    share = (e if chart < 0 else 1.0) / (1 + e)
    gap = (1.0 if chart < 0 else e) / (1 + e)
    return share / (2 * highest), gap


@_jit
def _balance(w, k, nc, sd, sign, highest, q, power, t, gap):
    up = sd * sd * t
    down = power / t
    up_slope = up
    down_slope = -down
    if q > 0:
        down += q
    else:
        up -= q
    for j in range(w.size):
        v = sign * w[j]
        a = 1 / _survivor(v, t, gap, highest)
        g = abs(v) * a
        first = g * (k[j] + nc[j] * a)
        second = 2 * g * (g * t) * (k[j] + 2 * nc[j] * a)
        if v > 0:
            up += first
            up_slope += second
        else:
            down += first
            down_slope -= second
    return up, down, up_slope, down_slope


@_jit
def _solve(w, k, nc, sd, mean, variance, sign, highest, q, power):
    distance = q - sign * mean
    root = math.sqrt(distance * distance + 4 * power * variance)
    if distance > 0:
        t = (distance + root) / (2 * variance)
    else:
        t = 2 * power / (root - distance)
    x = math.log(2 * highest * t) if highest > 0 else math.log(t)
    below, above, reach = -_INFINITY, _INFINITY, 4.0
    for _ in range(200):
        t, gap = _point_at(x, highest)
        up, down, up_slope, down_slope = _balance(w, k, nc, sd, sign, highest, q, power, t, gap)
        miss = math.log(up / down)
        if miss < 0:
            below = x
        else:
            above = x
        slope = (up_slope / up - down_slope / down) * gap
        dx = -miss / slope if slope > 0 else _INFINITY
        if not abs(dx) <= reach:
            dx = reach if miss < 0 else -reach
            reach *= 2
        if not (below < x + dx < above):
            dx = 0.5 * (below + above) - x
        x = min(max(x + dx, -_WIDEST), _WIDEST)
        if abs(dx) < 0.02:
            break
    return _point_at(x, highest)


@_jit
def _log_defect(x):
    """log(1 - x) + x, to full relative accuracy."""
    if abs(x) > 0.125:
        return math.log1p(-x) + x
    s = x / (2 - x)
    s2 = s * s
    series = 0.0
    for n in range(15, 2, -2):
        series = (series + 1.0 / n) * s2
    return -2 * s * (s / (1 + s) + series)


@_jit
def _add(total, v):
    s = total[0] + v
    b = s - total[0]
    total[1] += (total[0] - (s - b)) + (v - b)
    total[0] = s


@_jit
def _saddle(w, k, nc, sd, mean, variance, sign, highest, q, power):
    """The point and the terms seen from it, in units of 2^unit (see form_saddle.hpp)."""
    t, gap = _solve(w, k, nc, sd, mean, variance, sign, highest, q, power)
    unit = math.frexp(t)[1]
    scale = math.ldexp(1.0, unit)
    t0 = t / scale
    normal = sd * sd * scale * scale
    phi2 = normal + power / (t0 * t0)
    phi3 = -2 * power / (t0 * t0 * t0)
    right = 0.5 * gap / highest / scale if highest > 0 else _INFINITY
    r = np.empty(w.size)
    kappa = np.empty(w.size)
    log_mgf = np.zeros(2)
    centre = np.zeros(2)
    _add(centre, -q)
    _add(log_mgf, 0.5 * sd * sd * t * t)
    for j in range(w.size):
        v = sign * w[j]
        x = 2 * v * t
        a = _survivor(v, t, gap, highest)
        r[j] = 2 * (v * scale) / a
        kappa[j] = 0.5 * nc[j] / a
        phi2 += r[j] * r[j] * (0.5 * k[j] + 2 * kappa[j])
        phi3 += r[j] * r[j] * r[j] * (k[j] + 6 * kappa[j])
        if abs(x) < 0.5:
            _add(log_mgf, -0.5 * k[j] * _log_defect(x))
            _add(log_mgf, kappa[j] * x * x)
            _add(centre, v * k[j])
            _add(centre, v * nc[j])
        else:
            _add(log_mgf, -0.5 * k[j] * (math.log1p(-x) if a > 0.5 else math.log(a)))
            _add(log_mgf, kappa[j] * x)
    _add(log_mgf, t * (centre[0] + centre[1]))
    drift = (sd * sd * t - q) * scale
    return t, unit, t0, normal, phi2, phi3, right, drift, log_mgf[0] + log_mgf[1], r, kappa


@_jit
def _slope_off_axis(r, k, kappa, drift, y):
    slope = drift
    for j in range(r.size):
        v = r[j] * y
        inverse = 1 / (1 + v * v)
        slope += r[j] * inverse * (0.5 * k[j] + kappa[j] * (1 - v * v) * inverse)
    return slope


@_jit
def _path(k, r, kappa, t0, right, phi2, phi3, drift, sd, q):
    A = min(min(t0, right), 2.5 / math.sqrt(phi2))
    wanted = phi3 / (3 * phi2) * A
    direction = 1.0 if q > 0 else (-1.0 if q < 0 else 0.0)
    if wanted * direction >= 0:
        limit = 0.5 if sd > 0 else 1.0
        return A, direction * min(limit, max(abs(wanted), 0.1)), A
    y = A
    for _ in range(400):
        if not direction * _slope_off_axis(r, k, kappa, drift, y) > 0:
            break
        y *= 2
    return A, direction * 0.5, 2 * y


@_jit
def _exponent(k, r, kappa, x, y):
    """K(t0 + z) - K(t0), the normal term left out."""
    re = 0.0
    im = 0.0
    for j in range(r.size):
        u = r[j] * x
        v = r[j] * y
        big = max(abs(u), abs(v))
        if big > 1e150:
            re -= 0.5 * k[j] * (math.log(big) + math.log(math.hypot(u / big, v / big)))
            re -= kappa[j]
        else:
            re -= 0.25 * k[j] * math.log1p((u * u - 2 * u) + v * v)
            if kappa[j] > 0:
                a = 1 - u
                square = a * a + v * v
                re += kappa[j] * ((u * a - v * v) / square)
                im += kappa[j] * (v / square)
        im -= 0.5 * k[j] * math.atan2(-v, 1 - u)
    return re, im


@_jit
def _gauss_cauchy(z, squared):
    """(1/pi) int e^{-x^2} g(x^2) / (z^2 + x^2) dx by the midpoint rule of step 1/2."""
    z2 = z * z
    total = 0j
    for i in range(13):
        x2 = (0.25 + 0.5 * i) ** 2
        total += math.exp(-x2) * (x2 if squared else 1.0) / (z2 + x2)
    total /= math.pi
    if z.real < 2 * math.pi:
        pole = 2.0 * np.exp(z2) / (1.0 + np.exp(4 * math.pi * z))
        total += -z * pole if squared else pole / z
    return total


@_jit
def _weigh(moment, ratio, t, root_q):
    if moment == _EXCESS:
        return ratio * ratio
    root_t = np.sqrt(t / ratio)
    z = root_t * root_q
    root_pi = math.sqrt(math.pi)
    if moment == _SHORTFALL:
        return ratio * ratio * root_pi * _gauss_cauchy(z, True)
    erfcx = z * _gauss_cauchy(z, False) if root_q > 0 else 1.0 + 0j
    return ratio * (root_q + 0.5 * root_pi * erfcx / root_t)


@_jit
def _node(u, k, r, kappa, path, t, t0, normal, drift, moment, root_q):
    """Real parts of the two integrands at u, and their magnitudes."""
    A, c, rho = path
    y = A * math.sinh(u)
    root = math.sqrt(rho * rho + y * y)
    x = c * y * (y / (root + rho))
    bend = c * y / root
    re, im = _exponent(k, r, kappa, x, y)
    size = math.exp(re + drift * x + 0.5 * normal * (x - y) * (x + y)) * A * math.cosh(u)
    angle = im + drift * y + normal * x * y
    g = size * complex(math.cos(angle), math.sin(angle)) * complex(1.0, -bend)
    ratio = 1 / complex(1 + x / t0, y / t0)
    weight = ratio if moment == _TAIL else _weigh(moment, ratio, t, root_q)
    return (g * weight).real, g.real, size * abs(weight), size


@_jit
def _integral(w, k, nc, sd, mean, variance, total_dof, sign, highest, q, moment):
    """(log value, log density, error, density error, nodes) of the upper tail of sign * Q."""
    order = 2.0 if moment == _EXCESS or moment == _SHORTFALL else 1.0
    t, unit, t0, normal, phi2, phi3, right, drift, log_factor, r, kappa = _saddle(
        w, k, nc, sd, mean, variance, sign, highest, q, order
    )
    path = _path(k, r, kappa, t0, right, phi2, phi3, drift, sd, q)
    root_q = math.sqrt(q) if q > 0 else 0.0
    no_density = q == 0 and sd == 0 and total_dof <= 2
    h = 0.4
    sum_value = sum_pdf = best = best_pdf = 0.0
    count = 0
    for _ in range(_MOST_BLOCKS):
        top = top_pdf = 0.0
        for _ in range(_BLOCK):
            a, b, size_a, size_b = _node(
                count * h, k, r, kappa, path, t, t0, normal, drift, moment, root_q
            )
            half = 1.0 if count else 0.5
            sum_value += half * a
            sum_pdf += half * b
            top = max(top, size_a)
            top_pdf = max(top_pdf, size_b)
            count += 1
        best = max(best, top)
        best_pdf = max(best_pdf, top_pdf)
        if top < 1e-18 * best and (no_density or top_pdf < 1e-18 * best_pdf):
            break
    value = sum_value * h
    pdf = sum_pdf * h
    error = pdf_error = 1.0
    for _ in range(_LEVELS):
        worst_before = error if no_density else max(error, pdf_error)
        for i in range(count):
            a, b, _, _ = _node(
                (i + 0.5) * h, k, r, kappa, path, t, t0, normal, drift, moment, root_q
            )
            sum_value += a
            sum_pdf += b
        h *= 0.5
        count *= 2
        error = abs(sum_value * h - value) / abs(sum_value * h)
        pdf_error = abs(sum_pdf * h - pdf) / abs(sum_pdf * h)
        value = sum_value * h
        pdf = sum_pdf * h
        worst = error if no_density else max(error, pdf_error)
        if worst < 2e-14:
            break
        if worst < 1e-8 and worst_before < 1e-3 and worst < 10 * worst_before * worst_before:
            error = 10 * error * error + 1e-15
            pdf_error = 10 * pdf_error * pdf_error + 1e-15
            break
    log_value = log_factor - math.log(t0) - (order - 1) * math.log(t)
    log_value += math.log(value / math.pi) if value > 0 else -_INFINITY
    log_pdf = log_factor + unit * _LOG2
    log_pdf += math.log(pdf / math.pi) if pdf > 0 else -_INFINITY
    if no_density:
        return log_value, _INFINITY, error, 0.0, count
    return log_value, log_pdf, error, pdf_error, count


@_jit
def _log_normal_tail(x):
    if x < 5:
        return math.log(0.5 * math.erfc(x * math.sqrt(0.5)))
    fraction = 0.0
    for n in range(60, 0, -1):
        fraction = n / (x + fraction)
    return -0.5 * x * x - math.log((x + fraction) * math.sqrt(2 * math.pi))


@_jit
def _edge_log_pdf(w, k, nc, total_dof):
    if total_dof != 2:
        return _INFINITY if total_dof < 2 else -_INFINITY
    log_pdf = -_LOG2
    for j in range(w.size):
        log_pdf -= 0.5 * k[j] * math.log(abs(w[j])) + 0.5 * nc[j]
    return log_pdf


@_jit
def _tail(w, k, nc, sd, exponent, lowest, highest, total_dof, mean, variance, third, q):
    q = math.ldexp(q, -exponent)
    none = -_INFINITY
    if math.isnan(q):
        return q, q, q, q, False, 0
    if math.isinf(q):
        return none, none, 0.0, 0.0, q > 0, 0
    if w.size == 0:
        if sd == 0:
            return none, _INFINITY if q == 0 else none, 0.0, 0.0, q >= 0, 0
        x = q / sd
        log_pdf = -0.5 * x * x - 0.5 * math.log(2 * math.pi) - math.log(sd) - exponent * _LOG2
        return _log_normal_tail(abs(x)), log_pdf, 4e-16, 4e-16, x > 0, 0
    if sd == 0 and lowest == 0 and q < 0:
        return none, none, 0.0, 0.0, False, 0
    if sd == 0 and highest == 0 and q > 0:
        return none, none, 0.0, 0.0, True, 0
    if sd == 0 and q == 0 and (lowest == 0 or highest == 0):
        log_pdf = _edge_log_pdf(w, k, nc, total_dof) - exponent * _LOG2
        return none, log_pdf, 0.0, 0.0, highest == 0, 0
    upper = q > mean - third / (6 * variance)
    out = (0.0, 0.0, 0.0, 0.0, 0)
    for attempt in range(2):
        sign, top = (1.0, highest) if upper else (-1.0, -lowest)
        out = _integral(w, k, nc, sd, mean, variance, total_dof, sign, top, sign * q, _TAIL)
        if not out[0] > -_LOG2 or attempt:
            break
        upper = not upper
    return out[0], out[1] - exponent * _LOG2, out[2], out[3], upper, out[4]


@_jit
def _tails(w, k, nc, sd, exponent, lowest, highest, dof, mean, variance, third, q, out):
    for i in range(q.size):
        row = _tail(w, k, nc, sd, exponent, lowest, highest, dof, mean, variance, third, q[i])
        out[i, 0] = row[0]
        out[i, 1] = row[1]
        out[i, 2] = row[2]
        out[i, 3] = row[3]
        out[i, 4] = 1.0 if row[4] else 0.0
        out[i, 5] = row[5]


class FormTable:
    """A prepared quadratic form: zero weights dropped, equal ones merged, scaled by 2^-exponent."""

    def __init__(self, weights, dof, noncentrality, normal_sd):
        top = max(np.max(np.abs(weights), initial=0.0), normal_sd)
        self._exponent = math.frexp(top)[1] if top > 0 else 0
        scaled = np.ldexp(weights, -self._exponent)
        kept = (scaled != 0) & ((dof > 0) | (noncentrality > 0))
        w, where = np.unique(scaled[kept], return_inverse=True)
        k = np.bincount(where, dof[kept], w.size).astype(np.float64)
        nc = np.bincount(where, noncentrality[kept], w.size).astype(np.float64)
        sd = math.ldexp(normal_sd, -self._exponent)
        self._sd, self._terms = sd, (w, k, nc)
        self._lowest = float(min(np.min(w, initial=0.0), 0.0))
        self._highest = float(max(np.max(w, initial=0.0), 0.0))
        self._dof = float(np.sum(k))
        self._mean = float(np.sum(w * (k + nc)))
        self._variance = sd * sd + 2 * float(np.sum(w * w * (k + 2 * nc)))
        self._third = 8 * float(np.sum(w * w * w * (k + 3 * nc)))

    def _parameters(self):
        return (
            *self._terms, self._sd, self._exponent, self._lowest, self._highest,
            self._dof, self._mean, self._variance, self._third,
        )  # fmt: skip

    def tail(self, q):
        """(log of the smaller tail, log density, their errors, is it the upper?, nodes)."""
        return _tail(*self._parameters(), float(q))

    def tails(self, q, out):
        """The same for many q, a row each."""
        _tails(*self._parameters(), q, out)

    def moment(self, q, upper, which):
        """(log E[g(Q); Q beyond q], its error, nodes); g as in quadratic_form.hpp."""
        sign, highest = (1.0, self._highest) if upper else (-1.0, -self._lowest)
        q = sign * math.ldexp(q, -self._exponent)
        if highest == 0 and self._sd == 0 and q >= 0:
            return -_INFINITY, 0.0, 0
        log_value, _, error, _, nodes = _integral(
            *self._terms, self._sd, self._mean, self._variance, self._dof, sign, highest, q, which
        )
        return log_value + _UNITS[which] * self._exponent * _LOG2, error, nodes
