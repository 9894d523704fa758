"""Twin of ``saddle.cpp``: the saddlepoint of K(t) - tq - p log t and what is said of it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .jit import jit

INFINITY = math.inf
LARGEST_CHART = 700.0  # exp of it is still a double
_NEAR_ENOUGH = 0.02  # last step in the chart: 2 % of t, or of the gap
_FIRST_REACH = 4.0  # of a step in the chart, doubled where it is too short
_MOST_STEPS = 200  # bisection alone takes 60
_CENTERED_BELOW = 0.5  # |2wt| of terms that are summed without their mean
_SERIES_BELOW = 0.125  # |x| where log(1 - x) + x is a series
_TAIL_STEPS, _LOG_NEAR, _STALLED = 100, 0.02, 1e-6  # of the search for a tail


class Form(NamedTuple):
    """A prepared form (``form.hpp``): weights times 2^-exponent, equal ones merged."""

    weights: Any  # float64 (d,)
    dof: Any  # float64 (d,)
    noncentrality: Any  # float64 (d,)
    normal_sd: float
    exponent: int
    lowest: float  # extreme weights; 0 where there is none of that sign
    highest: float
    total_dof: float
    mean: float
    variance: float
    third: float


class Point(NamedTuple):
    """A point of the positive real axis; the relative gap to the branch point is carried along."""

    t: float
    gap: float


class Saddle(NamedTuple):
    """The upper tail of sign * Q seen from a point; lengths in units of 2^unit, near t itself."""

    point_t: float  # of the point
    unit: int
    t: float  # of the point, in the unit
    normal_variance: float
    phi2: float  # derivatives of K(t) - tq - p log t
    phi3: float
    right: float  # distance to the nearest branch point ahead
    drift: float  # s^2 t - q
    log_factor: float  # K(t) - tq
    r: Any  # 2w / (1 - 2wt), float64 (d,)
    dof: Any
    kappa: Any  # noncentrality / (2 (1 - 2wt))
    pole: float  # a second one at t = -pole
    second: float  # one over its distance, in the unit; 0: there is none
    centered: bool  # is the linear part of kappa's share left to `drift`?
    rounding: float  # relative, of exp(log_factor) and of the nodes


@jit
def one_minus_2wt(w, point, highest):
    if w > 0 and point.gap < 0.5:
        return ((highest - w) + w * point.gap) / highest
    return 1 - 2 * w * point.t


@jit
def point_at(chart, highest):
    if not highest > 0:
        return Point(math.exp(chart), 1.0)
    e = math.exp(-abs(chart))
    share = (e if chart < 0 else 1.0) / (1 + e)
    gap = (1.0 if chart < 0 else e) / (1 + e)
    return Point(share / (2 * highest), gap)


@jit
def _highest(form, sign):
    return form.highest if sign > 0 else -form.lowest


@jit
def _balance(form, sign, highest, q, power, pole, point):
    """K'(t) - q - p/t - 1/(t + pole) split by sign, and the slopes of both parts times t."""
    w, k, nc, sd = form.weights, form.dof, form.noncentrality, form.normal_sd
    up = sd * sd * point.t
    other = 1 / (point.t + pole)
    down = power / point.t + other
    up_slope = up
    down_slope = -power / point.t - point.t * other * other
    if q > 0:
        down += q
    else:
        up -= q
    for j in range(w.size):
        v = sign * w[j]
        a = 1 / one_minus_2wt(v, point, highest)
        g = abs(v) * a
        first = g * (k[j] + nc[j] * a)
        second = 2 * g * (g * point.t) * (k[j] + 2 * nc[j] * a)
        if v > 0:
            up += first
            up_slope += second
        else:
            down += first
            down_slope -= second
    return up, down, up_slope, down_slope


@jit
def _solve(form, sign, highest, q, power, pole):
    """Newton's method on log(up/down) = 0 in the chart, bracketed."""
    distance = q - sign * form.mean
    root = math.sqrt(distance * distance + 4 * power * form.variance)
    if distance > 0:
        t = (distance + root) / (2 * form.variance)
    else:
        t = 2 * power / (root - distance)
    x = math.log(2 * highest * t) if highest > 0 else math.log(t)
    below, above, reach = -INFINITY, INFINITY, _FIRST_REACH
    for _ in range(_MOST_STEPS):
        point = point_at(x, highest)
        up, down, up_slope, down_slope = _balance(form, sign, highest, q, power, pole, point)
        miss = math.log(up / down)
        if miss < 0:
            below = x
        else:
            above = x
        slope = (up_slope / up - down_slope / down) * point.gap
        dx = -miss / slope if slope > 0 else INFINITY
        if not abs(dx) <= reach:
            dx = reach if miss < 0 else -reach
            reach *= 2
        if not (below < x + dx < above):
            dx = 0.5 * (below + above) - x
        x = min(max(x + dx, -LARGEST_CHART), LARGEST_CHART)
        if abs(dx) < _NEAR_ENOUGH:
            break
    return point_at(x, highest)


@jit
def log_defect(x):
    """log(1 - x) + x, to full relative accuracy."""
    if abs(x) > _SERIES_BELOW:
        return math.log1p(-x) + x
    s = x / (2 - x)
    s2 = s * s
    series = 0.0
    for n in range(15, 2, -2):
        series = (series + 1.0 / n) * s2
    return -2 * s * (s / (1 + s) + series)


@jit
def add(total, v):
    """Adds v to the sum total[0], and what is rounded away to total[1]."""
    s = total[0] + v
    b = s - total[0]
    total[1] += (total[0] - (s - b)) + (v - b)
    total[0] = s


@jit
def _halves(a):
    high = a * 134217729.0  # 2^27 + 1, Veltkamp
    high -= high - a
    return high, a - high


@jit
def add_product(total, a, b):
    """Adds a b with the product's own rounding (Dekker)."""
    p = a * b
    add(total, p)
    if 1e-200 < abs(p) < 1e200 and abs(a) < 1e200 and abs(b) < 1e200:
        ah, al = _halves(a)
        bh, bl = _halves(b)
        add(total, ((ah * bh - p) + ah * bl + al * bh) + al * bl)


@jit
def _log_factor(form, sign, highest, q, point):
    """K(t) - tq, compensated; terms of small 2wt without their mean, which is added at once."""
    w, k, nc, sd, t = form.weights, form.dof, form.noncentrality, form.normal_sd, point.t
    log_mgf = np.zeros(2)
    center = np.zeros(2)
    add(center, -q)
    add(log_mgf, 0.5 * sd * sd * t * t)
    for j in range(w.size):
        v = sign * w[j]
        x = 2 * v * t
        a = one_minus_2wt(v, point, highest)
        kappa = 0.5 * nc[j] / a
        if abs(x) < _CENTERED_BELOW:
            add(log_mgf, -0.5 * k[j] * log_defect(x))
            add(log_mgf, kappa * x * x)
            add_product(center, v, k[j])
            add_product(center, v, nc[j])
        else:
            add(log_mgf, -0.5 * k[j] * (math.log1p(-x) if a > 0.5 else math.log(a)))
            add(log_mgf, kappa * x)
    add_product(log_mgf, t, center[0] + center[1])
    return log_mgf[0] + log_mgf[1]


@jit
def _describe(form, sign, highest, q, power, pole, point):
    """The terms seen from a point, in units of 2^unit."""
    w, k, nc, sd, t = form.weights, form.dof, form.noncentrality, form.normal_sd, point.t
    unit = math.frexp(t)[1]
    scale = math.ldexp(1.0, unit)
    t0 = t / scale
    normal = sd * sd * scale * scale
    second = scale / (t + pole)
    phi2 = normal + power / (t0 * t0) + second * second
    phi3 = -2 * power / (t0 * t0 * t0) - 2 * second * second * second
    right = 0.5 * point.gap / highest / scale if highest > 0 else INFINITY
    r = np.empty(w.size)
    kappa = np.empty(w.size)
    for j in range(w.size):
        v = sign * w[j]
        a = one_minus_2wt(v, point, highest)
        r[j] = 2 * (v * scale) / a
        kappa[j] = 0.5 * nc[j] / a
        phi2 += r[j] * r[j] * (0.5 * k[j] + 2 * kappa[j])
        phi3 += r[j] * r[j] * r[j] * (k[j] + 6 * kappa[j])
    drift = (sd * sd * t - q) * scale
    log_factor = _log_factor(form, sign, highest, q, point)
    return Saddle(
        t, unit, t0, normal, phi2, phi3, right, drift, log_factor, r, k, kappa, pole, second, False,
        0.0,
    )  # fmt: skip


@jit
def slope_off_axis(saddle, y):
    """Re K'(t + iy) - q."""
    r, k, kappa = saddle.r, saddle.dof, saddle.kappa
    slope = saddle.drift
    for j in range(r.size):
        v = r[j] * y
        inverse = 1 / (1 + v * v)
        slope += r[j] * inverse * (0.5 * k[j] + kappa[j] * (1 - v * v) * inverse)
        if saddle.centered:
            slope -= r[j] * kappa[j]
    return slope


@jit
def find_saddle(form, sign, q, power, pole=INFINITY):
    """The saddlepoint of the upper tail of sign * Q, with a pole of this order at 0."""
    highest = _highest(form, sign)
    point = _solve(form, sign, highest, q, power, pole)
    return _describe(form, sign, highest, q, power, pole, point)


@jit
def saddle_of_tail(form, sign, log_tail):
    """The q where the saddlepoint approximation of the tail has this logarithm."""
    highest = _highest(form, sign)
    below, above, reach, q = -INFINITY, INFINITY, 2.0, 0.0
    x = 0.5 * math.log(max(-2 * log_tail, 1.0) / form.variance)
    if highest > 0:
        x += math.log(2 * highest)
    for _ in range(_TAIL_STEPS):
        point = point_at(x, highest)
        up, down, _, _ = _balance(form, sign, highest, 0.0, 1.0, INFINITY, point)
        q = up - down
        s = _describe(form, sign, highest, q, 1.0, INFINITY, point)
        miss = s.log_factor - math.log(s.t) - 0.5 * math.log(2 * math.pi * s.phi2) - log_tail
        if abs(miss) < _LOG_NEAR:
            break
        if miss > 0:
            below = x
        else:
            above = x
        dx = miss / (s.t * s.t * s.phi2 * point.gap)
        if not abs(dx) <= reach:
            dx = reach if miss > 0 else -reach
            reach *= 2
        if not (below < x + dx < above):
            dx = 0.5 * (below + above) - x
        x = min(max(x + dx, -LARGEST_CHART), LARGEST_CHART)
        if abs(dx) < _STALLED:
            break
    return q
