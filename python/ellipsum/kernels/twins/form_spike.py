"""Twin of ``quadratic_form_spike.cpp`` and of the choice in ``quadratic_form_quantile.cpp``."""

from __future__ import annotations

import math

import numpy as np

from .form_few import _log_normal_tail
from .form_quantile import (
    _ERROR,
    _EVALUATIONS,
    _HIGH,
    _LEAST_LOG,
    _LOW,
    _STEPS,
    _TARGET,
    _add,
    _at,
    _difference,
    _last_step,
    _log1mexp,
    _met,
    _next,
    _plain,
    _ratio,
    _search,
    _start,
)
from .jit import jit

_INFINITY = math.inf
_DECENT = 1.0  # a miss of the logit from which the plain chart is safe
_MOST_DOF, _MOST_NONCENTRALITY = 2.0, 30.0  # of the heavy weights of a spike
_NARROW = 0.5  # sd of the rest against the lightest of them
_REACH = 5.0  # of the rest, in its sd
_DEEP = -5.0  # of the log of the rest's tail towards an edge: a power of |x| there
_E_GAMMA = 0.56145948356688516982
_LOG_ROOT = 0.91893853320467274178  # log sqrt(2 pi)
_LOG2 = math.log(2.0)


@jit
def _top(heavy, side):
    return max(np.max(side * heavy[:, 0]), 0.0)


@jit
def _log_number(heavy, side, alone, log_y):
    """Log of the number of jumps above e^log_y, and its slope by log_y."""
    top = _top(heavy, side)
    first = _ratio(log_y - math.log(2 * top))
    total = change = 0.0
    for j in range(heavy.shape[0]):
        mine = side * heavy[j, 0] > 0
        if alone and not mine:
            continue
        w = side * heavy[j, 0] if mine else min(-side * heavy[j, 0], top)
        log_z = log_y - math.log(2 * w)
        z = _ratio(log_z)
        e = math.exp(first - z)
        c = (_E_GAMMA + z) / (1 + z)
        if log_z < -30:
            log, bent = math.log(_E_GAMMA) - log_z, -1.0
        else:
            log = math.log1p(c / z)
            bent = ((1 - _E_GAMMA) / (1 + z) / (1 + z) - c / z) / (1 + c / z)
        dof, noncentral = heavy[j, 1], heavy[j, 2] if mine else 0.0
        total += 0.5 * e * (dof * log + noncentral)
        change += 0.5 * e * (dof * (bent - z * log) - noncentral * z)
    return math.log(total) - first, change / total


@jit
def _log_y(heavy, side, alone, log_wanted):
    low, high = -745.0, 20.0
    for _ in range(56):
        middle = 0.5 * (low + high)
        if _log_number(heavy, side, alone, middle)[0] > log_wanted:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@jit
def _height(limit, rest, log_p, log_other):
    """log(-log(1 - p/limit)), and log(limit - p)."""
    left = log_other
    if limit == 0:
        h = -log_other
    elif log_p >= limit:
        h = _INFINITY
    elif log_p < limit - 0.7 or limit < -0.7:
        d = log_p - limit
        h = -math.log1p(-math.exp(d)) if d < -0.7 else -math.log(-math.expm1(d))
        left = limit - h
    else:
        left = _difference(log_other, rest)
        h = limit - left
    return math.log(h) if h > 1e-300 else log_p - limit, left


@jit
def _side(form, goal, state, heavy, side, alone, centre, limit, rest, known, floor):
    """(whether the root is on this side, beyond e^floor; x)."""
    up = side > 0
    search = _search(_height(limit, rest, goal[1], goal[2])[0])
    if not up:
        search[0][_TARGET] = _height(limit, rest, goal[2], goal[1])[0]
    head = search[0]
    a = head[_TARGET]
    most, most_slope = _log_number(heavy, side, alone, _LEAST_LOG)
    at_most = False
    x = centre
    for step in range(-len(known), _STEPS):
        if step < 0:
            t = known[step]
            log_y = math.log(abs(t[0] - centre))
            a = _log_number(heavy, side, alone, log_y)[0]
        else:
            log_y = _log_y(heavy, side, alone, min(a, most))
            if log_y < floor:
                return False, x
            if a >= most:
                if at_most:  # the doubles end there, or are denormal
                    state[_ERROR] = 0.0
                    return True, centre + side * math.exp(_LEAST_LOG + (a - most) / most_slope)
                at_most, log_y, a = True, _LEAST_LOG, most
            x = centre + side * math.exp(log_y)
            t = _at(form, goal, state, x)
            if math.isnan(t[1]):
                return True, x
            log_y = math.log(abs(x - centre))
        b, left = _height(limit, rest, t[1] if up else t[2], t[2] if up else t[1])
        slope = _log_number(heavy, side, alone, log_y)[1]
        _add(search, a, b, _ratio(t[3] + log_y - left - b) / -slope, b < head[_TARGET])
        if step < 0:
            a += head[_TARGET] - b
            if not head[_LOW] < a < head[_HIGH]:
                a = _next(search)
            continue
        if _met(t, goal, state):
            return True, centre + (x - centre) * math.exp(_last_step(search) / slope)
        following = _next(search)
        if following == a:
            return True, x
        a = following
    return True, x


@jit
def _normal_quantile(log_r, log_other):
    """u with P(Z > u) = r."""
    sign = -1.0 if log_r > log_other else 1.0
    log_r = min(log_r, log_other)
    square = -2 * log_r - 2 * _LOG_ROOT
    u = max(1.25 * (-_LOG2 - log_r), 0.0)
    if log_r < -1.2:
        u = math.sqrt(max(square - math.log(max(square, 1.0)), 0.0))
    for _ in range(6):
        tail = _log_normal_tail(u)
        u += (tail - log_r) / math.exp(-0.5 * u * u - _LOG_ROOT - tail)
    return sign * u


@jit
def _core_chart(below, above, whole, log_tail):
    r = _difference(log_tail, above[1]) - whole
    return -_normal_quantile(r, _difference(below[1], log_tail) - whole)


@jit
def _core(form, goal, state, mean, sd, below, above, known):
    """Among the rest, between below and above: nearly normal."""
    whole = _difference(below[1], above[1])
    search = _search(_core_chart(below, above, whole, goal[1]))
    head = search[0]
    head[_LOW], head[_HIGH] = below[0], above[0]
    x = mean - sd * head[_TARGET]
    x = min(max(x, below[0] + 0.02 * sd), above[0] - 0.02 * sd)
    last = _INFINITY
    seen = [*known, below, above]
    for step in range(-len(known), _STEPS):
        if step < 0:
            t = known[step]
            if not head[_LOW] < t[0] < head[_HIGH]:
                continue
        else:
            if step == 0 and not head[_LOW] < x < head[_HIGH]:
                x = _next(search)
            t = _at(form, goal, state, x)
            if math.isnan(t[1]):
                return x
        b = _core_chart(below, above, whole, t[1])
        slope = -_ratio(t[3] - whole + 0.5 * b * b + _LOG_ROOT)
        _add(search, t[0], b, slope, t[1] > goal[1])
        if step < 0:
            continue
        if _met(t, goal, state):
            return x + _last_step(search)
        seen = [*seen, t]
        following, miss = _next(search), abs(t[1] - t[2] - goal[1] + goal[2])
        if following == x:
            return x
        x = following
        if miss > 0.2 * last:  # not so normal
            return _plain(form, goal, state, x, below[0], above[0], seen)
        last = miss
    return x


@jit
def _bare(form, goal, state, heavy, none):
    """All the weights are heavy: the spike is at 0."""
    for side in (1.0, -1.0):
        if _top(heavy, side) == 0:
            continue
        target = _height(0.0, -_INFINITY, goal[1], goal[2])[0]
        if side < 0:
            target = _height(0.0, -_INFINITY, goal[2], goal[1])[0]
        opposite = _top(heavy, -side)
        floor = -_INFINITY
        if opposite > 0:  # above the other side's weights its jumps do not count
            if not target < _log_number(heavy, side, True, math.log(2 * opposite))[0]:
                continue
            floor = math.log(0.1 * opposite)
        found, x = _side(form, goal, state, heavy, side, True, 0.0, 0.0, -_INFINITY, none, floor)
        if found:
            return x
    zero = _at(form, goal, state, 0.0)
    if math.isnan(zero[1]) or abs(zero[1] - goal[1]) < 1e-13:
        return 0.0
    up = goal[1] < zero[1]
    limit, rest = (zero[1], zero[2]) if up else (zero[2], zero[1])
    side = 1.0 if up else -1.0
    return _side(form, goal, state, heavy, side, False, 0.0, limit, rest, none, -_INFINITY)[1]


@jit
def _beyond(form, goal, state, heavy, mean, t, side):
    """From a point beyond the rest: limit - p is a power of y with half the dof."""
    log_p, other = (t[1], t[2]) if side > 0 else (t[2], t[1])
    more = _ratio(t[3]) * abs(t[0] - mean) / (0.5 * np.sum(heavy[:, 1]))
    limit, rest = 0.0, -_INFINITY
    if more < math.exp(other):
        limit, rest = math.log(math.exp(log_p) + more), _difference(other, math.log(more))
    return _side(form, goal, state, heavy, side, False, mean, limit, rest, [t], -_INFINITY)[1]


@jit
def _spike(form, sign):
    """The heaviest weights of few dof, and mean and sd of the rest."""
    w, k, nc, sd = form[0], form[1], form[2], form[3]
    order = np.argsort(-np.abs(w), kind="mergesort")
    dof = noncentrality = mean = 0.0
    width = 0.0
    count = 0
    for i in range(w.size):
        dof += k[order[i]]
        noncentrality += nc[order[i]]
        if dof > _MOST_DOF * (1 + 1e-9) or noncentrality > _MOST_NONCENTRALITY:
            break
        rest = order[i + 1 :]
        variance = sd * sd + 2 * np.sum(w[rest] * w[rest] * (k[rest] + 2 * nc[rest]))
        if math.sqrt(variance) < _NARROW * abs(w[order[i]]):
            count = i + 1
            width = math.sqrt(variance)
            mean = sign * np.sum(w[rest] * (k[rest] + nc[rest]))
    if dof == 0 or w.size > 64:
        count = 0
    heavy = np.empty((count, 3))
    for i in range(count):
        heavy[i, 0], heavy[i, 1], heavy[i, 2] = sign * w[order[i]], k[order[i]], nc[order[i]]
    return heavy, mean, width


@jit
def _polished(t, goal):
    return t[0] + (t[1] - goal[1]) * _ratio(t[1] - t[3])


@jit
def _about_spike(form, goal, state, heavy, mean, width, known):
    opened = form[3] > 0
    bound = 0.0 if not opened and goal[3] == 0 else -_INFINITY
    ends = known[:0]
    for side in (1.0, -1.0):
        x = mean + side * _REACH * width
        if not (opened or (goal[4] > 0 or x < 0 if side > 0 else goal[3] < 0 or x > 0)):
            continue
        t = _at(form, goal, state, x)
        if _met(t, goal, state) or math.isnan(t[1]):
            return _polished(t, goal)
        ends = [*ends, t]
        if (goal[1] < t[1]) == (side > 0):
            if _top(heavy, side) == 0:
                return _plain(form, goal, state, x, bound, _INFINITY, ends)
            return _beyond(form, goal, state, heavy, mean, t, side)
    if len(ends) == 2:
        return _core(form, goal, state, mean, width, ends[1], ends[0], known)
    if len(ends) == 1 and ends[0][0] > mean:
        edge = (0.0, 0.0, -_INFINITY, 0.0, 0.0)
        return _core(form, goal, state, mean, width, edge, ends[0], known)
    if len(ends) == 1 and goal[1] - ends[0][1] > _DEEP:
        edge = (0.0, -_INFINITY, 0.0, 0.0, 0.0)
        return _core(form, goal, state, mean, width, ends[0], edge, known)
    ends = ends + known
    return _plain(form, goal, state, _start(form, goal), bound, _INFINITY, ends)


@jit
def _quantile(form, log_tail, upper):
    """(q, error, evaluations of the tail)."""
    w, sd, exponent, lowest, highest = form[0], form[3], form[4], form[5], form[6]
    sign = 1.0 if upper else -1.0
    low, high = (lowest, highest) if upper else (-highest, -lowest)
    goal = (sign, log_tail, _log1mexp(log_tail), low, high)
    state = np.array([0.0, 1.0])
    known = [(0.0, 0.0, 0.0, 0.0, 0.0)]
    none = known[:0]
    opened = sd > 0
    bound = 0.0 if not opened and low == 0 else -_INFINITY
    if w.size == 0:
        x = math.sqrt(max(-2 * log_tail - 1, 0.1)) * sd
        x = _plain(form, goal, state, x, -_INFINITY, _INFINITY, none)
        return math.ldexp(sign * x, exponent) + 0.0, state[_ERROR], int(state[_EVALUATIONS])
    heavy, mean, width = _spike(form, sign)
    known = none
    if heavy.shape[0] == 0:
        x = _plain(form, goal, state, _start(form, goal), bound, _INFINITY, none)
    elif width == 0:
        x = _bare(form, goal, state, heavy, none)
    else:
        x = _start(form, goal)
        done = False
        if opened or high > 0 or x < 0:
            t = _at(form, goal, state, x)
            known = [*none, t]
            done = _met(t, goal, state)
            if done:
                x = _polished(t, goal)
            elif abs(t[1] - t[2] - goal[1] + goal[2]) < _DECENT:
                done = True
                x = _plain(form, goal, state, x, bound, _INFINITY, known)
        if not done:
            x = _about_spike(form, goal, state, heavy, mean, width, known)
    return math.ldexp(sign * x, exponent) + 0.0, state[_ERROR], int(state[_EVALUATIONS])
