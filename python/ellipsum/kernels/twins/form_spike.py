"""Twin of ``spike.cpp``: quantiles where few degrees of freedom carry the heaviest weights."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .form_normal import LOG_SQRT_2PI, normal_quantile
from .form_saddle import INFINITY
from .form_search import (
    LEAST_LOG,
    MOST_TAILS,
    Point,
    SidedTail,
    add,
    bounded_exp,
    inside,
    is_met,
    is_smooth,
    last_step,
    log_difference,
    logit,
    logit_search,
    lowest_of_support,
    new_search,
    newton,
    next_point,
    saddlepoint_start,
    tail_at,
)
from .jit import jit

# What counts as a spike, and its searches: as in spike.cpp, with their reasons.
_MOST_DOF, _MOST_NONCENTRALITY = 2.0, 30.0  # of the heavy weights
_DOF_ROUNDING = 1 + 1e-9
_MOST_WEIGHTS = 64  # beyond, the C++ has clusters
_NARROW = 0.5  # sd of the rest against the lightest of them
_CORE_REACH, _CORE_MARGIN = 5.0, 0.02  # of the rest, in its sd
_NOT_NORMAL = 0.2  # a miss against the one before
_DEEP = -5.0  # of the log of the rest's tail towards an edge: a power of |x| there
_OPPOSITE_SHARE = 0.1
_KNOWN_LIMIT = 1e-13
_BISECTED_FROM, _BISECTED_TO, _BISECTIONS = -745.0, 20.0, 56  # of log y
_LINEAR_BELOW = -30.0  # of log z: 1 + 1/z is 1/z
_QUARTER_BELOW = -0.7  # of log(p/limit)
_EXP_MINUS_EULER = 0.56145948356688516982


class Spike(NamedTuple):
    """The heaviest weights, of few degrees of freedom in all, and the rest beside them."""

    heavy: Any  # float64 (n, 3): weight as in sign * Q, dof, noncentrality; none: no spike
    mean: float  # of the rest
    sd: float


class Jumps(NamedTuple):
    """Of the Levy process that ends in Q, on one side."""

    heavy: Any
    side: float
    alone: bool  # this side's weights only; else the others' too, which thin it out near 0
    top: float


class Side(NamedTuple):
    """One side of the spike: p = P(Q beyond y), below its limit at y -> 0."""

    jumps: Jumps
    center: float
    log_limit: float  # P(Q beyond 0)
    log_rest: float  # and 1 - that


@jit
def _top(heavy, side):
    return max(np.max(side * heavy[:, 0]), 0.0)


@jit
def _jumps(heavy, side, alone):
    return Jumps(heavy, side, alone, _top(heavy, side))


@jit
def _log_number(jumps, log_y):
    """Log of the number of jumps above e^log_y, and its slope by log_y."""
    heavy, side, top = jumps.heavy, jumps.side, jumps.top
    first = bounded_exp(log_y - math.log(2 * top))
    total = change = 0.0
    for j in range(heavy.shape[0]):
        mine = side * heavy[j, 0] > 0
        if jumps.alone and not mine:
            continue
        w = side * heavy[j, 0] if mine else min(-side * heavy[j, 0], top)
        log_z = log_y - math.log(2 * w)
        z = bounded_exp(log_z)
        e = math.exp(first - z)
        c = (_EXP_MINUS_EULER + z) / (1 + z)
        if log_z < _LINEAR_BELOW:
            log, bent = math.log(_EXP_MINUS_EULER) - log_z, -1.0
        else:
            log = math.log1p(c / z)
            bent = ((1 - _EXP_MINUS_EULER) / (1 + z) / (1 + z) - c / z) / (1 + c / z)
        dof, noncentral = heavy[j, 1], heavy[j, 2] if mine else 0.0
        total += 0.5 * e * (dof * log + noncentral)
        change += 0.5 * e * (dof * (bent - z * log) - noncentral * z)
    return math.log(total) - first, change / total


@jit
def _log_y(jumps, log_wanted):
    low, high = _BISECTED_FROM, _BISECTED_TO
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if _log_number(jumps, middle)[0] > log_wanted:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@jit
def _height_of(side, log_p, log_other):
    """log(-log(1 - p/limit)), and log(limit - p)."""
    limit, left = side.log_limit, log_other
    if limit == 0:
        h = -log_other
    elif log_p >= limit:
        h = INFINITY
    elif log_p < limit + _QUARTER_BELOW or limit < _QUARTER_BELOW:
        d = log_p - limit
        h = -math.log1p(-math.exp(d)) if d < _QUARTER_BELOW else -math.log(-math.expm1(d))
        left = limit - h
    else:
        left = log_difference(log_other, side.log_rest)
        h = limit - left
    return math.log(h) if h > 1e-300 else log_p - limit, left


@jit
def _height(side, t):
    """Of a SidedTail or a SidedForm, the tail of this side."""
    if side.jumps.side > 0:
        return _height_of(side, t.log_tail, t.log_other)
    return _height_of(side, t.log_other, t.log_tail)


@jit
def _put(search, side, t, a):
    """Adds a tail to a side's search; its height and the slope of the jumps."""
    log_y = math.log(abs(t.x - side.center))
    b, left = _height(side, t)
    slope = _log_number(side.jumps, log_y)[1]
    by_a = bounded_exp(t.log_pdf + log_y - left - b) / -slope
    add(search, Point(a, b, by_a), b < search.target)
    return b, slope


@jit
def _first_guess(search, side, known):
    """The logarithm of the jumps to begin with."""
    a = search.target
    for t in known:
        a = _log_number(side.jumps, math.log(abs(t.x - side.center)))[0]
        b, _ = _put(search, side, t, a)
        a += search.target - b
        if not inside(search, a):
            a = next_point(search)
    return a


@jit
def _side_search(s, side, known, floor):
    """(whether the root is on this side, beyond e^floor; x)."""
    search = new_search(_height(side, s)[0], -INFINITY, INFINITY)
    a = _first_guess(search, side, known)
    most, most_slope = _log_number(side.jumps, LEAST_LOG)
    at_most = False
    x = side.center
    for _ in range(MOST_TAILS):
        log_y = _log_y(side.jumps, min(a, most))
        if log_y < floor:
            return False, x
        if a >= most:
            if at_most:  # the doubles end there, or are denormal
                s.error[0] = 0.0
                y = math.exp(LEAST_LOG + (a - most) / most_slope)
                return True, side.center + side.jumps.side * y
            at_most, log_y, a = True, LEAST_LOG, most
        x = side.center + side.jumps.side * math.exp(log_y)
        t = tail_at(s, x)
        if math.isnan(t.log_tail):
            return True, x
        _, slope = _put(search, side, t, a)
        if is_met(t, s):
            return True, side.center + (x - side.center) * math.exp(last_step(search) / slope)
        following = next_point(search)
        if following == a:
            return True, x
        a = following
    return True, x


@jit
def _core_chart(below, above, whole, log_tail):
    r = log_difference(log_tail, above.log_tail) - whole
    return -normal_quantile(r, log_difference(below.log_tail, log_tail) - whole)


@jit
def _put_core(search, s, below, above, whole, t):
    b = _core_chart(below, above, whole, t.log_tail)
    slope = -bounded_exp(t.log_pdf - whole + 0.5 * b * b + LOG_SQRT_2PI)
    add(search, Point(t.x, b, slope), t.log_tail > s.log_tail)


@jit
def _core_search(s, spike, below, above, known):
    """Among the rest, between below and above: nearly normal."""
    whole = log_difference(below.log_tail, above.log_tail)
    search = new_search(_core_chart(below, above, whole, s.log_tail), below.x, above.x)
    for t in known:
        if inside(search, t.x):
            _put_core(search, s, below, above, whole, t)
    margin = _CORE_MARGIN * spike.sd
    x = spike.mean - spike.sd * search.target
    x = min(max(x, below.x + margin), above.x - margin)
    if not inside(search, x):
        x = next_point(search)
    last = INFINITY
    seen = [*known, below, above]
    for _ in range(MOST_TAILS):
        t = tail_at(s, x)
        if math.isnan(t.log_tail):
            return x
        _put_core(search, s, below, above, whole, t)
        if is_met(t, s):
            return x + last_step(search)
        seen = [*seen, t]
        following, miss = next_point(search), abs(logit(t) - s.log_tail + s.log_other)
        if following == x:
            return x
        x = following
        if miss > _NOT_NORMAL * last:
            return logit_search(s, x, below.x, above.x, seen)
        last = miss
    return x


@jit
def _bare_search(s, spike, none):
    """All the weights are heavy: the spike is at 0."""
    heavy = spike.heavy
    for sign in (1.0, -1.0):
        if _top(heavy, sign) == 0:
            continue
        side = Side(_jumps(heavy, sign, True), 0.0, 0.0, -INFINITY)
        opposite = _top(heavy, -sign)
        floor = -INFINITY
        if opposite > 0:  # above the other side's weights its jumps do not count
            if not _height(side, s)[0] < _log_number(side.jumps, math.log(2 * opposite))[0]:
                continue
            floor = math.log(_OPPOSITE_SHARE * opposite)
        found, x = _side_search(s, side, none, floor)
        if found:
            return x
    zero = tail_at(s, 0.0)
    if math.isnan(zero.log_tail) or abs(zero.log_tail - s.log_tail) < _KNOWN_LIMIT:
        return 0.0
    up = s.log_tail < zero.log_tail
    limit, rest = (zero.log_tail, zero.log_other) if up else (zero.log_other, zero.log_tail)
    side = Side(_jumps(heavy, 1.0 if up else -1.0, False), 0.0, limit, rest)
    return _side_search(s, side, none, -INFINITY)[1]


@jit
def _beyond(s, spike, t, sign):
    """From a point beyond the rest: limit - p is a power of y with half the dof."""
    log_p, other = (t.log_tail, t.log_other) if sign > 0 else (t.log_other, t.log_tail)
    more = bounded_exp(t.log_pdf) * abs(t.x - spike.mean) / (0.5 * np.sum(spike.heavy[:, 1]))
    limit, rest = 0.0, -INFINITY
    if more < math.exp(other):
        limit = math.log(math.exp(log_p) + more)
        rest = log_difference(other, math.log(more))
    side = Side(_jumps(spike.heavy, sign, False), spike.mean, limit, rest)
    return _side_search(s, side, [t], -INFINITY)[1]


@jit
def find_spike(s):
    """The heaviest weights of few dof, and mean and sd of the rest."""
    form = s.form
    w, k, nc, sd = form.weights, form.dof, form.noncentrality, form.normal_sd
    order = np.argsort(-np.abs(w), kind="mergesort")
    dof = noncentrality = mean = 0.0
    width = 0.0
    count = 0
    for i in range(w.size):
        dof += k[order[i]]
        noncentrality += nc[order[i]]
        if dof > _MOST_DOF * _DOF_ROUNDING or noncentrality > _MOST_NONCENTRALITY:
            break
        rest = order[i + 1 :]
        variance = sd * sd + 2 * np.sum(w[rest] * w[rest] * (k[rest] + 2 * nc[rest]))
        if math.sqrt(variance) < _NARROW * abs(w[order[i]]):
            count = i + 1
            width = math.sqrt(variance)
            mean = s.sign * np.sum(w[rest] * (k[rest] + nc[rest]))
    if dof == 0 or w.size > _MOST_WEIGHTS:
        count = 0
    heavy = np.empty((count, 3))
    for i in range(count):
        heavy[i, 0] = s.sign * w[order[i]]
        heavy[i, 1], heavy[i, 2] = k[order[i]], nc[order[i]]
    return Spike(heavy, mean, width)


@jit
def spike_search(s, spike, known):
    """x for a spike, whose saddlepoint approximation says nothing."""
    ends = known[:0]
    if spike.sd == 0:
        return _bare_search(s, spike, ends)
    lowest = lowest_of_support(s)
    for sign in (1.0, -1.0):
        x = spike.mean + sign * _CORE_REACH * spike.sd
        if not (is_smooth(s) or (s.highest > 0 or x < 0 if sign > 0 else s.lowest < 0 or x > 0)):
            continue
        t = tail_at(s, x)
        if is_met(t, s) or math.isnan(t.log_tail):
            return newton(t, s)
        ends = [*ends, t]
        if (s.log_tail < t.log_tail) == (sign > 0):
            if _top(spike.heavy, sign) == 0:
                return logit_search(s, x, lowest, INFINITY, ends)
            return _beyond(s, spike, t, sign)
    if len(ends) == 2:
        return _core_search(s, spike, ends[1], ends[0], known)
    if len(ends) == 1 and ends[0].x > spike.mean:
        edge = SidedTail(0.0, 0.0, -INFINITY, 0.0, 0.0)
        return _core_search(s, spike, edge, ends[0], known)
    if len(ends) == 1 and s.log_tail - ends[0].log_tail > _DEEP:
        edge = SidedTail(0.0, -INFINITY, 0.0, 0.0, 0.0)
        return _core_search(s, spike, ends[0], edge, known)
    return logit_search(s, saddlepoint_start(s), lowest, INFINITY, ends + known)
