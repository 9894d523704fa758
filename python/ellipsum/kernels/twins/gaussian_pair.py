"""Twin of ``quadratic_form/pair.cpp`` and ``hockey_stick.cpp``: delta of pairs and forms."""

from __future__ import annotations

import math

import numpy as np

from .form_contour import HOCKEY_STICK, Decay, integrate
from .form_saddle import (
    INFINITY,
    LARGEST_CHART,
    Point,
    Saddle,
    add,
    add_product,
    find_saddle,
    log_defect,
    one_minus_2wt,
    point_at,
)
from .jit import in_parts, jit

_UNIT_ROUNDOFF = 2.0**-53  # of a double, to nearest
_FAR = 0.5  # |te| from here on: the second form of K
_SMALLEST = 1e-100  # of kappa - 1, below which a term is normal but for that part of it


@jit
def _defect(x):
    """log(1 - x) + x within 8 units of roundoff up to |x| = 1/2."""
    if abs(x) <= 0.125 or abs(x) > 0.3:
        return log_defect(x)
    s = x / (2 - x)
    s2 = s * s
    series = 0.0
    for n in range(25, 2, -2):
        series = (series + 1.0 / n) * s2
    return -2 * s * (s / (1 + s) + series)


@jit
def _term_at(term, t, gap, top):
    """1 - te of a term, whether |te| is small, and what it adds to K' and K''."""
    e, kappa, shift, dof, defect = term[0], term[1], term[2], term[3], term[4]
    x = t * e
    a = one_minus_2wt(0.5 * e, Point(t, gap), 0.5 * top)
    r, s = e / a, 0.5 * shift / a
    slope = 0.5 * dof * (r * x - defect) + s / a * (1 + t * (1 + (1 - x)))
    bend = 0.5 * dof * r * r + 2 * s * (kappa / a) / a
    return a, abs(x) < _FAR, slope, bend


@jit
def _singular_slope(term, a):
    """K' of a far term, without its linear part."""
    e, kappa, shift, dof = term[0], term[1], term[2], term[3]
    return 0.5 * dof * e / a + 0.5 * shift * (kappa / (a * e)) / a


@jit
def _log_survivor(x, a):
    return math.log1p(-x) if a > 0.5 else math.log(a)


@jit
def _cumulants(terms, normal, top, t):
    log_mgf = 0.5 * normal * t * (1 + t)
    slope = 0.5 * normal * (1 + 2 * t)
    bend = normal
    for j in range(len(terms)):
        a, near, first, second = _term_at(terms[j], t, 1 - t * top, top)
        e, shift, dof, defect = terms[j, 0], terms[j, 2], terms[j, 3], terms[j, 4]
        x = t * e
        here = _defect(x) if near else _log_survivor(x, a) + x
        log_mgf += 0.5 * (shift / a * t * (1 + t) - dof * (here + t * defect))
        slope += first
        bend += second
    return log_mgf, slope, bend


@jit
def _balance_pair(terms, normal, top, epsilon, t, gap):
    other = 1 / (1 + t)
    up, up_slope = 0.5 * normal * (1 + 2 * t), normal * t
    down, down_slope = 1 / t + other, -1 / t - t * other * other
    linear = np.zeros(2)
    add(linear, -epsilon)
    for j in range(len(terms)):
        a, near, slope, bend = _term_at(terms[j], t, gap, top)
        if not near:
            slope = _singular_slope(terms[j], a)
            add(linear, -terms[j, 5])
            add(linear, -terms[j, 7])
        if slope > 0:
            up += slope
            up_slope += t * bend
        else:
            down -= slope
            down_slope -= t * bend
    rest = linear[0] + linear[1]
    if rest > 0:
        up += rest
    else:
        down -= rest
    return up, down, up_slope, down_slope


@jit
def _solve_pair(terms, normal, top, epsilon):
    highest = 0.5 * top
    _, mean, variance = _cumulants(terms, normal, top, 0.0)
    distance = epsilon - mean
    root = math.sqrt(distance * distance + 8 * variance)
    t = (distance + root) / (2 * variance) if distance > 0 else 4 / (root - distance)
    x = math.log(top * t if highest > 0 else t)
    below, above, reach = -INFINITY, INFINITY, 4.0
    for _ in range(200):
        t, gap = point_at(x, highest)
        up, down, up_slope, down_slope = _balance_pair(terms, normal, top, epsilon, t, gap)
        miss = math.log(up / down)
        if miss < 0:
            below = x
        else:
            above = x
        slope = (up_slope / up - down_slope / down) * gap
        dx = -miss / slope if slope > 0 else INFINITY
        if not abs(dx) <= reach:
            dx = reach if miss < 0 else -reach
            reach *= 2
        if not (below < x + dx < above):
            dx = 0.5 * (below + above) - x
        x = min(max(x + dx, -LARGEST_CHART), LARGEST_CHART)
        if abs(dx) < 0.02:
            break
    return point_at(x, highest)


@jit
def _low_part(t, gap, top):
    """What t lacks of the point whose 1 - t e is the gap."""
    if not top > 0 or not gap < 0.5:
        return 0.0
    share = 1 - gap
    lost = np.zeros(2)
    add(lost, share)
    add(lost, (1 - share) - gap)
    add_product(lost, -t, top)
    return (lost[0] + lost[1]) / top


@jit
def _add_linear(log_mgf, drift, t, coefficient, low):
    add_product(log_mgf, -t, coefficient)
    add(log_mgf, -t * low)
    add(drift, -coefficient)
    add(drift, -low)


@jit
def _add_term(term, t, gap, top, roundoff, log_mgf, drift):
    """Adds a term to both sums; their doubts, and its slope as far as it was taken at t."""
    a, near, slope, _ = _term_at(term, t, gap, top)
    e, kappa, shift, half = term[0], term[1], term[2], 0.5 * term[3]
    x = t * e
    drift_doubt = 4 * half * abs(e / a)  # taken off again at every node
    if near:
        log_part, s = -half * (_defect(x) + t * term[4]), 0.5 * shift / a
        smooth, smooth_slope = s * t * (1 + t), s / a * (1 + t * (1 + (1 - x)))
        add(log_mgf, log_part)
        add(log_mgf, smooth)
        add(drift, smooth_slope)
        add(drift, -term[5])
        add(drift, -term[6])
        return 8 * (log_part + smooth), drift_doubt + 8 * smooth_slope, slope
    log_a, rest = _log_survivor(x, a), _singular_slope(term, a)
    bent, bent_slope = 0.5 * shift * (kappa / e) / e * (x / a), rest - half * e / a
    add(log_mgf, -half * log_a)
    add(log_mgf, bent)
    add(drift, bent_slope)
    _add_linear(log_mgf, drift, t, term[5], term[6])
    _add_linear(log_mgf, drift, t, term[7], term[8])
    ends = roundoff * (abs(term[5]) + abs(term[7]))
    doubt_a = 1.0 if e == top or a > 0.5 else 3.0
    doubt = half * (doubt_a + abs(log_a)) + 8 * abs(bent) + t * ends
    by_gap = e > 0 and gap < 0.5
    rest = (0.0 if by_gap else rest) - term[5] - term[7]
    return doubt, drift_doubt + 8 * abs(bent_slope) + ends, rest


@jit
def _describe_pair(terms, normal, top, edge_roundoff, epsilon, t, gap):
    unit = math.frexp(t)[1]
    scale = math.ldexp(1.0, unit)
    t0, second = t / scale, scale / (t + 1)
    spread = normal * scale * scale
    phi2 = spread + 1 / (t0 * t0) + second * second
    phi3 = -2 / (t0 * t0 * t0) - 2 * second * second * second
    right = gap / top / scale if top > 0 else INFINITY
    log_mgf, drift = np.zeros(2), np.zeros(2)
    part, slope = 0.5 * normal * t * (1 + t), 0.5 * normal * (1 + 2 * t)
    _add_linear(log_mgf, drift, t, epsilon, 0.0)
    add(log_mgf, part)
    add(drift, slope)
    doubt, drift_doubt, rest = 8 * part, 8 * slope, slope - epsilon
    r, kappas = np.empty(len(terms)), np.empty(len(terms))
    for j in range(len(terms)):
        a, _, _, _ = _term_at(terms[j], t, gap, top)
        e, kappa, shift, dof = terms[j, 0], terms[j, 1], terms[j, 2], terms[j, 3]
        r[j] = e / a * scale
        kappas[j] = 0.5 * shift * (kappa / (a * e)) / e
        phi2 += r[j] * r[j] * 0.5 * dof + 2 * (kappas[j] * r[j]) * r[j]
        phi3 += r[j] * (r[j] * r[j] * dof + 6 * (kappas[j] * r[j]) * r[j])
        here = _add_term(terms[j], t, gap, top, edge_roundoff / _UNIT_ROUNDOFF, log_mgf, drift)
        doubt += here[0]
        drift_doubt += here[1]
        rest += here[2]
    add(log_mgf, _low_part(t, gap, top) * rest)
    linear, log_factor = drift[0] + drift[1], log_mgf[0] + log_mgf[1]
    at_nodes = (drift_doubt + abs(linear)) * scale / math.sqrt(phi2)
    rounding = _UNIT_ROUNDOFF * (32 + abs(log_factor) + doubt + at_nodes)
    return Saddle(
        t, unit, t0, spread, phi2, phi3, right, linear * scale, log_factor, r, terms[:, 3].copy(),
        kappas, 1.0, second, True, rounding,
    )  # fmt: skip


@jit
def _known(low, high, normal, edge, edge_low, edge_mean, epsilon):
    """(log delta, log slope, error), or NaN as error where it takes an integral."""
    none = -INFINITY
    if math.isnan(epsilon):
        return epsilon, epsilon, 0.0
    if math.isinf(epsilon):
        return (none, none, 0.0) if epsilon > 0 else (0.0, none, 0.0)
    always = (math.log(-math.expm1(edge_mean)) if edge_mean < 0 else none, edge_mean, 4e-16)
    if normal > 0:
        return 0.0, 0.0, math.nan
    if low == 0 and high == 0:
        return always if epsilon < 0 else (none, none, 0.0)
    if high == 0 and (epsilon + edge) + edge_low >= 0:
        return none, none, 0.0
    if low == 0 and (epsilon + edge) + edge_low <= 0:
        return always
    return 0.0, 0.0, math.nan


@jit
def _pair_sticks(law, epsilon, out):
    terms, normal, low, high, edge, edge_low, edge_roundoff = law
    decay = Decay(math.sqrt(normal), np.sum(terms[:, 3]))
    for i in range(epsilon.size):
        x = epsilon[i]
        known = _known(low, high, normal, edge, edge_low, x, x)
        if not math.isnan(known[2]):
            out[i, 0], out[i, 1], out[i, 2], out[i, 3] = known[0], known[1], known[2], 0.0
            continue
        t, gap = _solve_pair(terms, normal, high, x)
        saddle = _describe_pair(terms, normal, high, edge_roundoff, x, t, gap)
        found = integrate(decay, saddle, x + edge, HOCKEY_STICK)
        out[i, 0], out[i, 1] = found.log_value, found.log_pdf
        out[i, 2], out[i, 3] = found.error, found.nodes


@jit
def _form_sticks(form, log_mean, epsilon, out):
    pole = math.ldexp(1.0, form.exponent)
    for i in range(epsilon.size):
        x = math.ldexp(epsilon[i], -form.exponent)
        mean = epsilon[i] + log_mean
        known = _known(form.lowest, form.highest, form.normal_sd, 0.0, 0.0, mean, x)
        if not math.isnan(known[2]):
            out[i, 0], out[i, 1], out[i, 2], out[i, 3] = known[0], known[1], known[2], 0.0
            continue
        found = integrate(form, find_saddle(form, 1.0, x, 1.0, pole), x, HOCKEY_STICK)
        out[i, 0], out[i, 1] = found.log_value, found.log_pdf
        out[i, 2], out[i, 3] = found.error, found.nodes


def form_hockey_sticks(form, log_mean, epsilon, out):
    """Rows of (log delta, log of minus its derivative, error, nodes); log_mean is K(-1)."""
    _form_sticks(form, log_mean, epsilon, out)


class PairTable:
    """The privacy loss of two Gaussians by its spectrum; see ``quadratic_form/pair.hpp``."""

    def __init__(self, rows, edge_roundoff):
        e, log_kappa, low, shift, end, end_low, dof = np.ascontiguousarray(rows.T)
        real = np.abs(e) > _SMALLEST
        normal = float(np.sum(shift[~real]))
        terms = np.zeros((int(np.sum(real)), 9))
        for term, j in zip(terms, np.flatnonzero(real), strict=True):
            kappa = 1 + e[j] if e[j] > -0.5 else math.exp(log_kappa[j])
            defect = _defect(-e[j]) if abs(e[j]) < 0.5 else log_kappa[j] - e[j]
            product = np.zeros(2)
            add_product(product, 0.5 * dof[j], log_kappa[j])
            half_low = product[1] + 0.5 * dof[j] * low[j]
            term[:5] = e[j], kappa, shift[j], dof[j], defect
            term[5:] = product[0], half_low, end[j], end_low[j]
        edge = np.zeros(2)
        for part in terms[:, 5:].ravel():
            add(edge, part)
        total = float(edge[0] + edge[1])
        low, high = min(e[real], default=0.0), max(e[real], default=0.0)
        low, high = min(float(low), 0.0), max(float(high), 0.0)
        edge_low = (edge[0] - total) + edge[1]
        self._law = terms, normal, low, high, total, float(edge_low), edge_roundoff

    def cumulants(self, t):
        """K(t), K'(t) and K''(t) of the loss."""
        terms, normal, _, high, *_ = self._law
        return _cumulants(terms, normal, high, float(t))

    def hockey_sticks(self, epsilon, out, threads=1):
        """(log delta, log of minus its derivative, error, nodes), a row each."""
        in_parts(
            lambda part: _pair_sticks(self._law, epsilon[part], out[part]), epsilon.size, threads
        )

    def hockey_stick(self, epsilon):
        """The same of one, a tuple."""
        out = np.empty((1, 4))
        self.hockey_sticks(np.array([float(epsilon)]), out)
        return tuple(out[0])
