"""Twin of ``cpp/core/quadratic_form*.cpp``: the same regimes and contours, the same tolerance."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ._jit import jit
from .quadratic_form_contour import _contour, _integrate, _saddle, _saddle_of_tail
from .quadratic_form_few import _few_degrees, _few_tail, _log_normal_tail

_INFINITY = math.inf
_LOG2 = math.log(2.0)
_TAIL, _EXCESS, _ROOT, _SHORTFALL = 0, 1, 2, 3
_UNITS = (0.0, 1.0, 0.5, 1.0)  # power of the scale in each moment


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
def _tail(w, k, nc, sd, exponent, lowest, highest, total_dof, mean, variance, third, q):
    q = math.ldexp(q, -exponent)
    none = -_INFINITY
    if math.isnan(q):
        return q, q, 0.0, 0.0, False, 0
    if math.isinf(q):
        return none, none, 0.0, 0.0, q > 0, 0
    if w.size == 0:
        if sd == 0:
            return none, _INFINITY if q == 0 else none, 0.0, 0.0, q >= 0, 0
        x = q / sd
        log_pdf = -0.5 * x * x - 0.5 * math.log(2 * math.pi) - math.log(sd) - exponent * _LOG2
        return _log_normal_tail(abs(x)), log_pdf, 4e-16, 4e-16, x > 0, 0
    if sd == 0 and lowest == 0 and q < 0:
        return none, none, 0.0, 0.0, False, 0
    if sd == 0 and highest == 0 and q > 0:
        return none, none, 0.0, 0.0, True, 0
    if sd == 0 and q == 0 and (lowest == 0 or highest == 0):
        log_pdf = _edge_log_pdf(w, k, nc, total_dof) - exponent * _LOG2
        return none, log_pdf, 0.0, 0.0, highest == 0, 0
    if _few_degrees(w, k, nc, sd, total_dof, q):
        out = _few_tail(w, k, nc, sd, total_dof, q)
    else:
        out = _contour_tail(w, k, nc, sd, lowest, highest, total_dof, mean, variance, third, q)
    return out[0], out[1] - exponent * _LOG2, out[2], out[3], out[4], out[5]


@jit
def _tails(w, k, nc, sd, exponent, lowest, highest, dof, mean, variance, third, q, out):
    for i in range(q.size):
        row = _tail(w, k, nc, sd, exponent, lowest, highest, dof, mean, variance, third, q[i])
        out[i, 0] = row[0]
        out[i, 1] = row[1]
        out[i, 2] = row[2]
        out[i, 3] = row[3]
        out[i, 4] = 1.0 if row[4] else 0.0
        out[i, 5] = row[5]


@jit
def _inside(x, near, far, sign, edge):
    if math.isinf(far):
        return 0.1 * x if edge else x + sign * abs(x)
    if math.isinf(near):
        return x - sign * abs(x)
    return -sign * math.sqrt(near * far) if edge else 0.5 * sign * (near + far)


@jit
def _quantile(w, k, nc, sd, exponent, lowest, highest, dof, mean, variance, third, log_tail, upper):
    """Newton's method on the log tail (see quadratic_form_quantile.cpp)."""
    sign, top = (1.0, highest) if upper else (-1.0, -lowest)
    edge = sd == 0 and top == 0
    from_zero = sd == 0 and (lowest if upper else highest) == 0
    if w.size == 0:
        q = sd * math.sqrt(max(-2 * log_tail - 1, 0.1))
    else:
        q = _saddle_of_tail(w, k, nc, sd, variance, sign, top, log_tail)
    if from_zero and not q > 0:
        q = 0.5 * sign * mean
    x = math.ldexp(sign * q, exponent)
    near, far, reach = 0.0 if from_zero else -_INFINITY, _INFINITY, 2.0
    error = 1.0
    evaluations = 0
    for _ in range(60):
        if edge and x == 0:
            break
        t = _tail(w, k, nc, sd, exponent, lowest, highest, dof, mean, variance, third, x)
        log_value = t[0] if t[4] == upper else math.log1p(-math.exp(t[0]))
        miss = log_value - log_tail
        evaluations += 1
        if miss > 0:
            near = sign * x
        else:
            far = sign * x
        dx = sign * miss * math.exp(min(log_value - t[1], 700.0))
        following = x + dx
        if edge:
            turn = min(max(dx / x, -reach), reach)
            if turn != dx / x:
                reach *= 4
            following = x * math.exp(turn)
        error = t[2] + miss * miss if abs(miss) < 1e-8 else abs(miss)
        if abs(miss) < 1e-8:
            return following, error, evaluations
        if not (near < sign * following < far):
            following = _inside(x, near, far, sign, edge)
        if following == x:
            break
        x = following
    return x, error, evaluations


@jit
def _quantiles(w, k, nc, sd, exponent, low, high, dof, mean, variance, third, log_tail, upper, out):
    for i in range(log_tail.size):
        found = _quantile(
            w, k, nc, sd, exponent, low, high, dof, mean, variance, third, log_tail[i], upper[i]
        )
        out[i, 0] = found[0]
        out[i, 1] = found[1]


def _in_parts(call, n, threads):
    """``call`` on slices of n items, each on a thread of its own."""
    edges = [n * i // threads for i in range(threads + 1)]
    parts = [slice(a, b) for a, b in itertools.pairwise(edges) if a < b]
    if len(parts) < 2:
        call(slice(0, n))
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(call, parts))


class FormTable:
    """A prepared quadratic form: zero weights dropped, equal ones merged, scaled by 2^-exponent."""

    def __init__(self, weights, dof, noncentrality, normal_sd):
        top = max(np.max(np.abs(weights), initial=0.0), normal_sd)
        self._exponent = math.frexp(top)[1] if top > 0 else 0
        scaled = np.ldexp(weights, -self._exponent)
        kept = (scaled != 0) & ((dof > 0) | (noncentrality > 0))
        w, where = np.unique(scaled[kept], return_inverse=True)
        k = np.bincount(where, dof[kept], w.size).astype(np.float64)
        nc = np.bincount(where, noncentrality[kept], w.size).astype(np.float64)
        sd = math.ldexp(normal_sd, -self._exponent)
        self._sd, self._terms = sd, (w, k, nc)
        self._lowest = float(min(np.min(w, initial=0.0), 0.0))
        self._highest = float(max(np.max(w, initial=0.0), 0.0))
        self._dof = float(np.sum(k))
        self._mean = float(np.sum(w * (k + nc)))
        self._variance = sd * sd + 2 * float(np.sum(w * w * (k + 2 * nc)))
        self._third = 8 * float(np.sum(w * w * w * (k + 3 * nc)))

    def _parameters(self):
        return (
            *self._terms, self._sd, self._exponent, self._lowest, self._highest,
            self._dof, self._mean, self._variance, self._third,
        )  # fmt: skip

    def tail(self, q):
        """(log of the smaller tail, log density, their errors, is it the upper?, nodes)."""
        return _tail(*self._parameters(), float(q))

    def tails(self, q, out, threads=1):
        """The same for many q, a row each."""
        _in_parts(lambda part: _tails(*self._parameters(), q[part], out[part]), q.size, threads)

    def quantile(self, log_tail, upper):
        """(q, error, evaluations) where the tail's logarithm is log_tail <= log 1/2."""
        return _quantile(*self._parameters(), float(log_tail), bool(upper))

    def quantiles(self, log_tail, upper, out, threads=1):
        """(q, error) of many, a row each."""
        parameters = self._parameters()
        _in_parts(
            lambda part: _quantiles(*parameters, log_tail[part], upper[part] != 0, out[part]),
            log_tail.size,
            threads,
        )

    def _saddle(self, q, upper, power):
        sign, highest = (1.0, self._highest) if upper else (-1.0, -self._lowest)
        moments = (self._mean, self._variance)
        return _saddle(*self._terms, self._sd, *moments, sign, highest, sign * q, power)

    def contour(self, q):
        """Nodes t and weights whose real parts, times G(t), sum to a functional at q."""
        q = math.ldexp(q, -self._exponent)
        upper = q > self._mean
        saddle, sign = self._saddle(q, upper, 1.0), 1.0 if upper else -1.0
        t, weight = _contour(self._terms[1], saddle, self._sd, self._dof, sign * q)
        scale = math.ldexp(1.0, -self._exponent)
        return sign * scale * t, scale * weight

    def moment(self, q, upper, which):
        """(log E[g(Q); Q beyond q], its error, nodes); g as in quadratic_form.hpp."""
        sign, highest = (1.0, self._highest) if upper else (-1.0, -self._lowest)
        q = math.ldexp(q, -self._exponent)
        if highest == 0 and self._sd == 0 and sign * q >= 0:
            return -_INFINITY, 0.0, 0
        saddle = self._saddle(q, upper, 2.0 if which in (_EXCESS, _SHORTFALL) else 1.0)
        log_value, _, error, _, nodes, _ = _integrate(
            self._terms[1], saddle, self._sd, self._dof, sign * q, which
        )
        return log_value + _UNITS[which] * self._exponent * _LOG2, error, nodes
