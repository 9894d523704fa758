"""Twin of ``search.cpp``: the search for a quantile, in charts where the tail is nearly straight.

Arrays of one element in the tuples here are their fields that change.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .form_saddle import INFINITY, Form, saddle_of_tail
from .form_tail import scaled_tail
from .jit import jit

MOST_TAILS = 40  # of one search
LEAST_LOG = -700.0  # of |x|: the doubles end there
_INTERPOLATED = 1e-7  # a miss of the log tail that one more step squares
_SLOW, _STALL_POINTS = 0.2, 4  # the last two points bring little: the bracket is halved
_LEAST_SHARE = 0.05  # of the bracket, that false position leaves on a side
_SMALLEST_STEP = 1e-300  # outward from 0, where doubling would stay
_LARGEST_EXPONENT = 709.0  # exp of it is still a double
_MOST_POINTS = 64  # that the arrays hold: more than MOST_TAILS


class SidedTail(NamedTuple):
    """Both tails of sign * Q at x, in scaled units."""

    x: float
    log_tail: float
    log_other: float
    log_pdf: float
    error: float  # of the log tail


class SidedForm(NamedTuple):
    """sign * Q, its tails counted; log_tail is what P(sign * Q > x) shall be."""

    form: Form
    sign: float
    log_tail: float
    log_other: float
    lowest: float
    highest: float
    evaluations: Any  # int64 (1,)
    error: Any  # float64 (1,), of the last tail, with its miss


class Point(NamedTuple):
    """Of a search: b(a), and its slope."""

    a: float
    b: float
    slope: float


class Search(NamedTuple):
    """Where b(a) = target, from points that know their slope, kept in a bracket."""

    target: float
    low: Any  # float64 (1,), the bracket
    high: Any
    low_b: Any  # float64 (1,), b at its ends
    high_b: Any
    points: Any  # float64 (64, 3): a, b, slope
    count: Any  # int64 (1,)
    halved: Any  # int64 (1,), the count when the bracket was halved
    fresh: Any  # bool (1,): the last point has a slope


@jit
def log1mexp(a):
    """log(1 - e^a)."""
    return math.log1p(-math.exp(a)) if a < 0 else -INFINITY


@jit
def log_difference(a, b):
    """log(e^a - e^b)."""
    return a + math.log1p(-math.exp(b - a)) if b < a else -INFINITY


@jit
def bounded_exp(x):
    return math.exp(min(x, _LARGEST_EXPONENT))


@jit
def sided_form(form, log_tail, upper):
    sign = 1.0 if upper else -1.0
    lowest, highest = (form.lowest, form.highest) if upper else (-form.highest, -form.lowest)
    other = log1mexp(log_tail)
    evaluations, error = np.zeros(1, np.int64), np.ones(1)
    return SidedForm(form, sign, log_tail, other, lowest, highest, evaluations, error)


@jit
def is_smooth(s):
    return s.form.normal_sd > 0


@jit
def logit(t):
    """Of a SidedTail, or the one that a SidedForm looks for."""
    return t.log_tail - t.log_other


@jit
def tail_at(s, x):
    t = scaled_tail(s.form, s.sign * x)
    s.evaluations[0] += 1
    error, large = t.error, log1mexp(t.log_small)
    mine = t.upper == (s.sign > 0)
    log_tail, other = (t.log_small, large) if mine else (large, t.log_small)
    if not mine:
        error *= bounded_exp(t.log_small - large)
    s.error[0] = max(error, abs(log_tail - s.log_tail))
    return SidedTail(x, log_tail, other, t.log_pdf, error)


@jit
def is_met(t, s):
    """Near enough for one interpolation without a tail?"""
    miss = abs(t.log_tail - s.log_tail)
    if not miss < max(_INTERPOLATED, t.error):
        return False
    s.error[0] = t.error + miss * miss
    return True


@jit
def newton(t, s):
    """Newton's step on the log tail."""
    return t.x + (t.log_tail - s.log_tail) * bounded_exp(t.log_tail - t.log_pdf)


@jit
def new_search(target, low, high):
    return Search(
        target,
        np.full(1, low),
        np.full(1, high),
        np.full(1, np.nan),
        np.full(1, np.nan),
        np.zeros((_MOST_POINTS, 3)),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.bool_),
    )


@jit
def add(search, p, root_above):
    n = search.count[0]
    sloped = math.isfinite(p.b) and math.isfinite(p.slope) and p.slope != 0
    search.fresh[0] = sloped and n < _MOST_POINTS
    if search.fresh[0]:
        search.points[n, 0], search.points[n, 1], search.points[n, 2] = p.a, p.b, p.slope
        search.count[0] += 1
    if root_above:
        search.low[0], search.low_b[0] = p.a, p.b
    else:
        search.high[0], search.high_b[0] = p.a, p.b


@jit
def inside(search, a):
    return search.low[0] < a < search.high[0]


@jit
def _point(search, i):
    return Point(search.points[i, 0], search.points[i, 1], search.points[i, 2])


@jit
def _cubic(p, q, b):
    """The cubic a(b) through two points with their slopes; NaN where it need not be monotone."""
    h = q.b - p.b
    if h == 0 or q.a == p.a:
        return np.nan
    secant = (q.a - p.a) / h
    m, n = 1 / (p.slope * secant), 1 / (q.slope * secant)
    if not (m > 0 and n > 0 and ((m <= 3 and n <= 3) or m + n < 4)):
        return np.nan
    t = (b - p.b) / h
    t2 = t * t
    t3 = t2 * t
    a = p.a + (q.a - p.a) * ((3 * t2 - 2 * t3) + (t3 - 2 * t2 + t) * m + (t3 - t2) * n)
    if 0 <= t <= 1 or abs(a - q.a) < 2 * abs(q.a - p.a):
        return a
    return np.nan


@jit
def _outward(search):
    low, high, n = search.low[0], search.high[0], search.count[0]
    start = low if math.isfinite(low) else high
    away = 2 * abs(start - search.points[0, 0]) if n > 1 else 0.0
    step = max(away, abs(start), _SMALLEST_STEP)
    return start + step if math.isfinite(low) else start - step


@jit
def next_point(search):
    """The inverse cubic, or Newton's method, or false position, in the bracket."""
    n, target, low, high = search.count[0], search.target, search.low[0], search.high[0]
    miss = np.abs(search.points[:n, 1] - target)
    near = np.argsort(miss, kind="mergesort")
    bracketed = math.isfinite(low) and math.isfinite(high)
    if bracketed and n >= search.halved[0] + _STALL_POINTS:
        if miss[near[0]] > _SLOW * np.min(miss[: n - 2]):
            search.halved[0] = n - 1
            return 0.5 * (low + high)
    for i in range(1, min(n, 3)):
        a = _cubic(_point(search, near[i]), _point(search, near[0]), target)
        if low < a < high:
            return a
    if n > 0:
        p = _point(search, near[0])
        a = p.a + (target - p.b) / p.slope
        if low < a < high:
            return a
    if not bracketed:
        return _outward(search)
    rise = search.high_b[0] - search.low_b[0]
    if n > 0 and math.isfinite(rise) and rise != 0:
        share = (target - search.low_b[0]) / rise
        return low + min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE) * (high - low)
    return 0.5 * (low + high)


@jit
def last_step(search):
    """Newton's step from the last point, as a difference: a itself may be rounded."""
    p = _point(search, search.count[0] - 1)
    return (search.target - p.b) / p.slope if search.fresh[0] else 0.0


@jit
def _put(search, t, edge):
    """Adds a tail to a search in the logit's chart."""
    slope = -bounded_exp(t.log_pdf - t.log_tail - t.log_other) * (-t.x if edge else 1.0)
    at = -math.log(-t.x) if edge else t.x
    add(search, Point(at, logit(t), slope), logit(t) > search.target)


@jit
def logit_search(s, x, low, high, known):
    """By the logit of the tail against x, or at the edge 0 of the support against -log|x|."""
    edge = not is_smooth(s) and s.highest == 0
    if edge and not x < 0:
        s.error[0] = 0.0
        return 0.0
    if edge:
        low = -math.log(-low) if math.isfinite(low) else -INFINITY
        high = -math.log(-high) if high < 0 else INFINITY
    search = new_search(logit(s), low, high)
    for t in known:
        _put(search, t, edge)
    a = -math.log(-x) if edge else x
    if not (search.count[0] == 0 and inside(search, a)):
        a = next_point(search)
    for _ in range(MOST_TAILS):
        if edge and a > -LEAST_LOG:
            s.error[0] = 0.0  # the doubles end there
            return 0.0
        t = tail_at(s, -math.exp(-a) if edge else a)
        if math.isnan(t.log_tail):
            return t.x
        _put(search, t, edge)
        if is_met(t, s):
            step = last_step(search)
            return t.x * math.exp(-step) if edge else t.x + step
        following = next_point(search)
        if following == a:
            break
        a = following
    return -math.exp(-a) if edge else a


@jit
def lowest_of_support(s):
    return 0.0 if not is_smooth(s) and s.lowest == 0 else -INFINITY


@jit
def saddlepoint_start(s):
    """Where the saddlepoint approximation has the wanted tail."""
    x = saddle_of_tail(s.form, s.sign, s.log_tail)
    at_edge = not is_smooth(s) and s.lowest == 0 and not x > 0
    return 0.5 * s.sign * s.form.mean if at_edge else x
