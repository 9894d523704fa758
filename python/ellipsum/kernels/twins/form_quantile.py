"""Twin of ``quadratic_form_quantile.cpp``: the search in a chart, and the plain one."""

from __future__ import annotations

import math

import numpy as np

from .form_contour import _saddle_of_tail
from .form_saddle import _scaled_tail
from .jit import jit

_INFINITY = math.inf
_STEPS = 40
_INTERPOLATED = 1e-7  # a miss of the log tail that one more step squares
_LEAST_LOG = -700.0
_EVALUATIONS, _ERROR = 0, 1  # of the state
_COUNT, _TARGET, _LOW, _HIGH, _HALVED, _LOW_B, _HIGH_B, _FRESH = range(8)  # of a search's head


@jit
def _log1mexp(a):
    """log(1 - e^a)."""
    return math.log1p(-math.exp(a)) if a < 0 else -_INFINITY


@jit
def _difference(a, b):
    return a + math.log1p(-math.exp(b - a)) if b < a else -_INFINITY


@jit
def _ratio(x):
    return math.exp(min(x, 709.0))


@jit
def _at(form, goal, state, x):
    """(x, log tail, log of the other, log density, error of the log tail) of sign * Q."""
    small, log_pdf, error, _, upper, _ = _scaled_tail(form, goal[0] * x)
    state[_EVALUATIONS] += 1
    large = _log1mexp(small)
    mine = upper == (goal[0] > 0)
    log_tail, other = (small, large) if mine else (large, small)
    if not mine:
        error *= _ratio(small - large)
    state[_ERROR] = max(error, abs(log_tail - goal[1]))
    return x, log_tail, other, log_pdf, error


@jit
def _met(t, goal, state):
    miss = abs(t[1] - goal[1])
    if not miss < max(_INTERPOLATED, t[4]):
        return False
    state[_ERROR] = t[4] + miss * miss
    return True


@jit
def _search(target):
    """Head and points (a, b, slope) of a search for b(a) = target."""
    head = np.array([0.0, target, -_INFINITY, _INFINITY, 0.0, np.nan, np.nan, 0.0])
    return head, np.zeros((64, 3))


@jit
def _add(search, a, b, slope, root_above):
    head, points = search
    n = int(head[_COUNT])
    head[_FRESH] = math.isfinite(b) and math.isfinite(slope) and slope != 0 and n < 64
    if head[_FRESH]:
        points[n, 0], points[n, 1], points[n, 2] = a, b, slope
        head[_COUNT] += 1
    if root_above:
        head[_LOW], head[_LOW_B] = a, b
    else:
        head[_HIGH], head[_HIGH_B] = a, b


@jit
def _cubic(p, q, b):
    """The cubic a(b) through two points with their slopes; NaN where it need not be monotone."""
    h = q[1] - p[1]
    if h == 0 or q[0] == p[0]:
        return np.nan
    secant = (q[0] - p[0]) / h
    m, n = 1 / (p[2] * secant), 1 / (q[2] * secant)
    if not (m > 0 and n > 0 and ((m <= 3 and n <= 3) or m + n < 4)):
        return np.nan
    t = (b - p[1]) / h
    t2 = t * t
    t3 = t2 * t
    a = p[0] + (q[0] - p[0]) * ((3 * t2 - 2 * t3) + (t3 - 2 * t2 + t) * m + (t3 - t2) * n)
    if 0 <= t <= 1 or abs(a - q[0]) < 2 * abs(q[0] - p[0]):
        return a
    return np.nan


@jit
def _next(search):
    head, points = search
    n, target, low, high = int(head[_COUNT]), head[_TARGET], head[_LOW], head[_HIGH]
    miss = np.abs(points[:n, 1] - target)
    near = np.argsort(miss, kind="mergesort")
    bracketed = math.isfinite(low) and math.isfinite(high)
    if bracketed and n >= head[_HALVED] + 4 and miss[near[0]] > 0.2 * np.min(miss[: n - 2]):
        head[_HALVED] = n - 1
        return 0.5 * (low + high)
    for i in range(1, min(n, 3)):
        a = _cubic(points[near[i]], points[near[0]], target)
        if low < a < high:
            return a
    if n > 0:
        p = points[near[0]]
        a = p[0] + (target - p[1]) / p[2]
        if low < a < high:
            return a
    if bracketed:
        rise = head[_HIGH_B] - head[_LOW_B]
        if n > 0 and math.isfinite(rise) and rise != 0:
            share = min(max((target - head[_LOW_B]) / rise, 0.05), 0.95)
            return low + share * (high - low)
        return 0.5 * (low + high)
    start = low if math.isfinite(low) else high
    away = 2 * abs(start - points[0, 0]) if n > 1 else 0.0
    step = max(away, abs(start), 1e-300)
    return start + step if math.isfinite(low) else start - step


@jit
def _last_step(search):
    """Newton's step from the last point, as a difference: a itself may be rounded."""
    p = search[1][int(search[0][_COUNT]) - 1]
    return (search[0][_TARGET] - p[1]) / p[2] if search[0][_FRESH] else 0.0


@jit
def _plain(form, goal, state, x, low, high, known):
    """By the logit of the tail against x, or at the edge 0 of the support against -log|x|."""
    edge = form[3] == 0 and goal[4] == 0
    if edge and not x < 0:
        state[_ERROR] = 0.0
        return 0.0
    search = _search(goal[1] - goal[2])
    head = search[0]
    head[_LOW], head[_HIGH] = low, high
    if edge:
        head[_LOW] = -math.log(-low) if math.isfinite(low) else -_INFINITY
        head[_HIGH] = -math.log(-high) if high < 0 else _INFINITY
    a = -math.log(-x) if edge else x
    for step in range(-len(known), _STEPS):
        if step < 0:
            t = known[step]
            here = -math.log(-t[0]) if edge else t[0]
        else:
            if step == 0 and not (head[_COUNT] == 0 and head[_LOW] < a < head[_HIGH]):
                a = _next(search)
            if edge and a > -_LEAST_LOG:
                state[_ERROR] = 0.0  # the doubles end there
                return 0.0
            t = _at(form, goal, state, -math.exp(-a) if edge else a)
            if math.isnan(t[1]):
                return t[0]
            here = a
        slope = -_ratio(t[3] - t[1] - t[2]) * (-t[0] if edge else 1.0)
        logit = t[1] - t[2]
        _add(search, here, logit, slope, logit > head[_TARGET])
        if step < 0:
            continue
        if _met(t, goal, state):
            step_on = _last_step(search)
            return t[0] * math.exp(-step_on) if edge else t[0] + step_on
        following = _next(search)
        if following == a:
            return -math.exp(-following) if edge else following
        a = following
    return -math.exp(-a) if edge else a


@jit
def _start(form, goal):
    w, k, nc, sd = form[0], form[1], form[2], form[3]
    x = _saddle_of_tail(w, k, nc, sd, form[9], goal[0], goal[4], goal[1])
    return 0.5 * goal[0] * form[8] if sd == 0 and goal[3] == 0 and not x > 0 else x
