"""Twin of ``quantile.cpp``: `_quantile` chooses the search."""

from __future__ import annotations

import math

from .form_saddle import INFINITY
from .form_search import (
    SidedTail,
    is_met,
    is_smooth,
    logit,
    logit_search,
    lowest_of_support,
    newton,
    saddlepoint_start,
    sided_form,
    tail_at,
)
from .form_spike import find_spike, spike_search
from .jit import jit

_NEAR = 1.0  # a miss of the logit from which the logit's chart is safe


@jit
def _normal_search(s, none):
    x = math.sqrt(max(-2 * s.log_tail - 1, 0.1)) * s.form.normal_sd
    return logit_search(s, x, -INFINITY, INFINITY, none)


@jit
def _saddlepoint_or_spike_search(s, spike, none):
    """Tries the saddlepoint approximation first: beside a wide rest it may be right."""
    x = saddlepoint_start(s)
    if not (is_smooth(s) or s.highest > 0 or x < 0):
        return spike_search(s, spike, none)
    t = tail_at(s, x)
    if is_met(t, s):
        return newton(t, s)
    if abs(logit(t) - s.log_tail + s.log_other) < _NEAR:
        return logit_search(s, x, lowest_of_support(s), INFINITY, [t])
    return spike_search(s, spike, [t])


@jit
def _quantile(s):
    """In order; each condition supposes that those above it do not hold."""
    none = [SidedTail(0.0, 0.0, 0.0, 0.0, 0.0)][:0]
    if s.form.weights.size == 0:
        return _normal_search(s, none)
    spike = find_spike(s)
    if spike.heavy.shape[0] == 0:
        return logit_search(s, saddlepoint_start(s), lowest_of_support(s), INFINITY, none)
    if spike.sd > 0:
        return _saddlepoint_or_spike_search(s, spike, none)
    return spike_search(s, spike, none)


@jit
def form_quantile(form, log_tail, upper):
    """(q, error, evaluations of the tail)."""
    s = sided_form(form, log_tail, upper)
    x = _quantile(s)
    return math.ldexp(s.sign * x, form.exponent) + 0.0, s.error[0], s.evaluations[0]
