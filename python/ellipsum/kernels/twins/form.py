"""Twin of ``cpp/core/quadratic_form*.cpp``: the same regimes and contours, the same tolerance."""

from __future__ import annotations

import math

import numpy as np

from .form_contour import _contour, _integrate, _saddle
from .form_saddle import _scaled_tail
from .form_spike import _quantile
from .gaussian_pair import form_hockey_sticks
from .jit import in_parts, jit

_INFINITY = math.inf
_LOG2 = math.log(2.0)
_EXCESS, _SHORTFALL = 1, 3  # moments
_UNITS = (0.0, 1.0, 0.5, 1.0)  # power of the scale in each moment


@jit
def _tail(form, q):
    out = _scaled_tail(form, math.ldexp(q, -form[4]))
    return out[0], out[1] - form[4] * _LOG2, out[2], out[3], out[4], out[5]


@jit
def _tails(form, q, out):
    for i in range(q.size):
        row = _tail(form, q[i])
        out[i, 0] = row[0]
        out[i, 1] = row[1]
        out[i, 2] = row[2]
        out[i, 3] = row[3]
        out[i, 4] = 1.0 if row[4] else 0.0
        out[i, 5] = row[5]


@jit
def _quantiles(form, log_tail, upper, out):
    for i in range(log_tail.size):
        found = _quantile(form, log_tail[i], upper[i])
        out[i, 0] = found[0]
        out[i, 1] = found[1]


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
        return _tail(self._parameters(), float(q))

    def tails(self, q, out, threads=1):
        """The same for many q, a row each."""
        in_parts(lambda part: _tails(self._parameters(), q[part], out[part]), q.size, threads)

    def quantile(self, log_tail, upper):
        """(q, error, evaluations) where the tail's logarithm is log_tail <= log 1/2."""
        return _quantile(self._parameters(), float(log_tail), bool(upper))

    def quantiles(self, log_tail, upper, out, threads=1):
        """(q, error) of many, a row each."""
        parameters = self._parameters()
        in_parts(
            lambda part: _quantiles(parameters, log_tail[part], upper[part] != 0, out[part]),
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

    def hockey_sticks(self, epsilon, out, threads=1):
        """(log E(1 - e^(epsilon - Q))+, log of minus its derivative, error, nodes), a row each."""
        w, k, nc = self._terms
        x = 2 * math.ldexp(1.0, self._exponent) * w
        inside = self._sd == 0 and self._lowest == 0  # else K(-1) is not asked for
        log_mean = float(np.sum(-0.5 * k * np.log1p(x) - 0.5 * nc * x / (1 + x))) if inside else 0.0
        in_parts(
            lambda part: form_hockey_sticks(self._parameters(), log_mean, epsilon[part], out[part]),
            epsilon.size,
            threads,
        )

    def hockey_stick(self, epsilon):
        """The same of one, a tuple."""
        out = np.empty((1, 4))
        self.hockey_sticks(np.array([float(epsilon)]), out)
        return tuple(out[0])
