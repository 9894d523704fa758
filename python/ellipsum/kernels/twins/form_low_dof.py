"""Twin of ``low_dof.cpp``: low degrees of freedom, a spike at 0."""

from __future__ import annotations

import math

import numpy as np

from .form_normal import LOG2, log_normal_tail
from .form_saddle import INFINITY
from .form_sides import Tail, complement, is_complemented, is_small, more_nodes
from .form_split_integral import SignedTerms, SplitIntegral, split_integral
from .jit import jit

_MOST = 2.0  # degrees of freedom, and noncentrality
_LOSSY_DOF = 0.2  # of one sign: the contour loses a digit to so few
_NEAR_ZERO = 1e-4  # q and s, where the contour takes thousands of nodes
_UNCOUNTED = 40.0  # of a log tail below another: e^-40 = 4e-18
_E1 = 0.7  # E1(x) is 0.95 to 1.43 times e^-x log(1 + _E1/x)


@jit
def _log_sum(a, b):
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@jit
def _one_side(form, q, sign):
    """P(sign Q > q), q times sign by the caller, as P(Q0 > q) and the rest."""
    w, k, nc, sd = sign * form.weights, form.dof, form.noncentrality, form.normal_sd
    whole = SplitIntegral(-INFINITY, 0.0, 0.0, 0.0, 0)
    below = w < 0
    some = not below.all()
    if some:
        whole = split_integral(SignedTerms(w, k, nc, sd, form.total_dof), q)
    tail, log_pdf, error = whole.log_tail, whole.log_pdf, whole.error
    pdf_error, nodes = whole.pdf_error, whole.nodes
    normal = log_normal_tail(q / sd) if sd > 0 else (0.0 if q < 0 else -INFINITY)
    if normal > tail - _UNCOUNTED:
        rest = SplitIntegral(normal, 0.0, 4e-16, 0.0, 0)
        if below.any():
            others = SignedTerms(w[below], k[below], nc[below], sd, form.total_dof)
            rest = split_integral(others, q)
        if not some:
            log_pdf, pdf_error = rest.log_pdf, rest.pdf_error
        total = _log_sum(tail, rest.log_tail)
        error = error * math.exp(tail - total) + rest.error * math.exp(rest.log_tail - total)
        tail = total
        nodes += rest.nodes
    if q == 0 and sd == 0:
        log_pdf, pdf_error = INFINITY, 0.0
    return Tail(tail, log_pdf, error, pdf_error, sign > 0, nodes)


@jit
def _settle(form, q, sign):
    """The smaller tail, first tried on this side."""
    t = _one_side(form, sign * q, sign)
    if is_small(t):
        return t
    if is_complemented(t):
        return complement(t)
    return more_nodes(_one_side(form, -sign * q, -sign), t.nodes)


@jit
def _expected_jumps(form, q, sign):
    """Jumps above |q| of the Levy process that ends in Q: k/2 E1(|q|/2w) a weight."""
    w, k = form.weights, form.dof
    jumps = 0.0
    for j in range(w.size):
        if sign * w[j] > 0:
            x = abs(0.5 * q / w[j])
            jumps += 0.5 * k[j] * math.exp(-x) * math.log1p(_E1 / x)
    return jumps


@jit
def has_low_dof(form, q):
    """Whether q (in scaled units) belongs to the regime."""
    w, k, sd = form.weights, form.dof, form.normal_sd
    if not 0 < form.total_dof <= _MOST or np.sum(form.noncentrality) > _MOST:
        return False
    up, down = np.sum(k[w > 0]), np.sum(k[w < 0])
    both = (w > 0).any() and (w < 0).any()
    if q == 0 and sd == 0 and not (up > 0 and down > 0):
        return False
    if 0 < up < _LOSSY_DOF or 0 < down < _LOSSY_DOF:
        return True
    return (both or sd > 0) and max(abs(q), sd) < _NEAR_ZERO


@jit
def low_dof_tail(form, q):
    """Both tails at q by the split integral."""
    sign = 1.0 if q > 0 else -1.0
    if q == 0:
        w, k = form.weights, form.dof
        sign = 1.0 if np.sum(k[w > 0]) < np.sum(k[w < 0]) else -1.0
    elif _expected_jumps(form, q, sign) > LOG2:
        sign = -sign
    return _settle(form, q, sign)
