"""Twin of ``tail.cpp``: both tails at one q; `scaled_tail` chooses the method."""

from __future__ import annotations

import math

import numpy as np

from .form_contour import TAIL, form_integral, integrate
from .form_low_dof import has_low_dof, low_dof_tail
from .form_normal import LOG2, log_normal_tail
from .form_saddle import INFINITY, find_saddle
from .form_sides import Tail, complement, is_complemented, is_small, more_nodes
from .jit import jit

_ROUNDING = 4e-16  # of erfc and of the exponential: two ulp
_POLE = 1.0  # its order at t = 0
# Of an exponent L: logarithms times dof and roots of noncentralities are then below 2^-53 of it.
_BESIDE_DOF, _BESIDE_NONCENTRALITY = 1e20, 1e33


@jit
def _outside(upper):
    return Tail(-INFINITY, -INFINITY, 0.0, 0.0, upper, 0)


@jit
def _point_mass(q):
    return Tail(-INFINITY, INFINITY if q == 0 else -INFINITY, 0.0, 0.0, q >= 0, 0)


@jit
def _normal_only(q, sd):
    x = q / sd
    log_pdf = -0.5 * x * x - 0.5 * math.log(2 * math.pi) - math.log(sd)
    return Tail(log_normal_tail(abs(x)), log_pdf, _ROUNDING, _ROUNDING, x > 0, 0)


@jit
def _at_edge(form):
    """The density at the edge q = 0 of a one-sided support, where it is a power of q."""
    log_pdf = INFINITY if form.total_dof < 2 else -INFINITY
    if form.total_dof == 2:
        log_pdf = -LOG2
        w, k, nc = form.weights, form.dof, form.noncentrality
        for j in range(w.size):
            log_pdf -= 0.5 * k[j] * math.log(abs(w[j])) + 0.5 * nc[j]
    return Tail(-INFINITY, log_pdf, 0.0, 0.0, form.highest == 0, 0)


@jit
def _far_exponent(form, q):
    """min over t of s^2 t^2/2 - t|q|, t up to the branch point of the largest weight."""
    highest = form.highest if q > 0 else -form.lowest
    s2 = form.normal_sd * form.normal_sd
    branch, size = 0.5 / highest if highest > 0 else INFINITY, abs(q)
    if s2 > 0 and size / s2 <= branch:
        return -0.5 * (q / form.normal_sd) * (q / form.normal_sd)
    return branch * (0.5 * s2 * branch - size)


@jit
def _is_far(form, q):
    """So far out that the logarithm of the tail is that exponent to rounding."""
    if q == 0:
        return False
    size = -_far_exponent(form, q)
    if not size > _BESIDE_DOF * (1 + form.total_dof):
        return False
    return size > _BESIDE_NONCENTRALITY * np.sum(form.noncentrality)


@jit
def _far_tail(form, q):
    log_tail = _far_exponent(form, q)
    return Tail(log_tail, log_tail, 0.0, 0.0, q > 0, 0)


@jit
def _is_upper_smaller(form, q):
    return q > form.mean - form.third / (6 * form.variance)  # the median, to first order


@jit
def _as_tail(i, upper):
    return Tail(i.log_value, i.log_pdf, i.error, i.pdf_error, upper, i.nodes)


@jit
def _contour_tail(form, q):
    """The side is proven by Chernoff's bound where that is below 1/2."""
    upper = _is_upper_smaller(form, q)
    sign = 1.0 if upper else -1.0
    s = find_saddle(form, sign, sign * q, _POLE)
    if s.log_factor > -LOG2:
        other = find_saddle(form, -sign, -sign * q, _POLE)
        if other.log_factor < s.log_factor:
            s, sign, upper = other, -sign, not upper
    t = _as_tail(integrate(form, s, sign * q, TAIL), upper)
    if is_small(t):
        return t
    if is_complemented(t):
        return complement(t)
    small = _as_tail(form_integral(form, -sign * q, -sign, TAIL), not upper)
    return more_nodes(small, t.nodes)


@jit
def scaled_tail(form, q):
    """q in scaled units. In order; each condition supposes that those above it do not hold."""
    smooth, weightless = form.normal_sd > 0, form.weights.size == 0
    if math.isnan(q):
        return Tail(q, q, 0.0, 0.0, False, 0)
    if math.isinf(q):
        return _outside(q > 0)
    if weightless and not smooth:
        return _point_mass(q)
    if weightless:
        return _normal_only(q, form.normal_sd)
    if not smooth and form.lowest == 0 and q < 0:
        return _outside(False)
    if not smooth and form.highest == 0 and q > 0:
        return _outside(True)
    if not smooth and q == 0 and (form.lowest == 0 or form.highest == 0):
        return _at_edge(form)
    if _is_far(form, q):
        return _far_tail(form, q)
    if has_low_dof(form, q):
        return low_dof_tail(form, q)
    return _contour_tail(form, q)


@jit
def form_tail(form, q):
    """q in the caller's units."""
    t = scaled_tail(form, math.ldexp(q, -form.exponent))
    log_pdf = t.log_pdf - form.exponent * LOG2
    return Tail(t.log_small, log_pdf, t.error, t.pdf_error, t.upper, t.nodes)
