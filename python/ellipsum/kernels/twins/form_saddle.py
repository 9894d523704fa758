"""Twin of ``quadratic_form.cpp``: both tails at one q, in scaled units."""

from __future__ import annotations

import math

from .form_contour import _integrate, _saddle
from .form_few import _few_degrees, _few_tail, _log_normal_tail
from .jit import jit

_INFINITY = math.inf
_LOG2 = math.log(2.0)
_TAIL = 0  # the moment


@jit
def _edge_log_pdf(w, k, nc, total_dof):
    if total_dof != 2:
        return _INFINITY if total_dof < 2 else -_INFINITY
    log_pdf = -_LOG2
    for j in range(w.size):
        log_pdf -= 0.5 * k[j] * math.log(abs(w[j])) + 0.5 * nc[j]
    return log_pdf


@jit
def _contour_tail(w, k, nc, sd, lowest, highest, total_dof, mean, variance, third, q):
    """The side is proven by Chernoff's bound where that is below 1/2."""
    upper = q > mean - third / (6 * variance)
    sign, top = (1.0, highest) if upper else (-1.0, -lowest)
    s = _saddle(w, k, nc, sd, mean, variance, sign, top, sign * q, 1.0)
    if s[8] > -_LOG2:
        back = -lowest if upper else highest
        other = _saddle(w, k, nc, sd, mean, variance, -sign, back, -sign * q, 1.0)
        if other[8] < s[8]:
            s, sign, upper = other, -sign, not upper
    i = _integrate(k, s, sd, total_dof, sign * q, _TAIL)
    if i[0] < -_LOG2:
        return i[0], i[1], i[2], i[3], upper, i[4]
    large = math.exp(i[0])
    if large < 0.9:
        return math.log1p(-large), i[1], i[2] * large / (1 - large), i[3], not upper, i[4]
    top = -lowest if upper else highest
    s = _saddle(w, k, nc, sd, mean, variance, -sign, top, -sign * q, 1.0)
    j = _integrate(k, s, sd, total_dof, -sign * q, _TAIL)
    return j[0], j[1], j[2], j[3], not upper, i[4] + j[4]


@jit
def _scaled_tail(form, q):
    """(log of the smaller tail, log density, their errors, is it the upper?, nodes)."""
    w, k, nc, sd, _, lowest, highest, total_dof, mean, variance, third = form
    none = -_INFINITY
    if math.isnan(q):
        return q, q, 0.0, 0.0, False, 0
    if math.isinf(q):
        return none, none, 0.0, 0.0, q > 0, 0
    if w.size == 0:
        if sd == 0:
            return none, _INFINITY if q == 0 else none, 0.0, 0.0, q >= 0, 0
        x = q / sd
        log_pdf = -0.5 * x * x - 0.5 * math.log(2 * math.pi) - math.log(sd)
        return _log_normal_tail(abs(x)), log_pdf, 4e-16, 4e-16, x > 0, 0
    if sd == 0 and lowest == 0 and q < 0:
        return none, none, 0.0, 0.0, False, 0
    if sd == 0 and highest == 0 and q > 0:
        return none, none, 0.0, 0.0, True, 0
    if sd == 0 and q == 0 and (lowest == 0 or highest == 0):
        return none, _edge_log_pdf(w, k, nc, total_dof), 0.0, 0.0, highest == 0, 0
    if _few_degrees(w, k, nc, sd, total_dof, q):
        return _few_tail(w, k, nc, sd, total_dof, q)
    return _contour_tail(w, k, nc, sd, lowest, highest, total_dof, mean, variance, third, q)
