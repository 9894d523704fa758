"""Twin of ``prepare.cpp`` and ``batch.cpp``: a prepared form, and many q at once.

The same regimes, contours and tolerances as the C++; each weight is evaluated by itself (no
clusters, no shared contours). A few tails and quantiles are Python's: some compile for a minute.
"""

from __future__ import annotations

import math

import numpy as np

from .form_contour import form_contour, form_moment
from .form_quantile import form_quantile
from .form_saddle import Form
from .form_tail import form_tail
from .gaussian_pair import form_hockey_sticks
from .jit import are_few, in_parts, jit, run


@jit
def _tails(form, q, out):
    for i in range(q.size):
        t = form_tail(form, q[i])
        out[i, 0] = t.log_small
        out[i, 1] = t.log_pdf
        out[i, 2] = t.error
        out[i, 3] = t.pdf_error
        out[i, 4] = 1.0 if t.upper else 0.0
        out[i, 5] = t.nodes


@jit
def _quantiles(form, log_tail, upper, out):
    for i in range(log_tail.size):
        found = form_quantile(form, log_tail[i], upper[i])
        out[i, 0] = found[0]
        out[i, 1] = found[1]


class FormTable:
    """A prepared quadratic form: zero weights dropped, equal ones merged, scaled by 2^-exponent."""

    def __init__(self, weights, dof, noncentrality, normal_sd):
        top = max(np.max(np.abs(weights), initial=0.0), normal_sd)
        exponent = math.frexp(top)[1] if top > 0 else 0
        scaled = np.ldexp(weights, -exponent)
        kept = (scaled != 0) & ((dof > 0) | (noncentrality > 0))
        w, where = np.unique(scaled[kept], return_inverse=True)
        k = np.bincount(where, dof[kept], w.size).astype(np.float64)
        nc = np.bincount(where, noncentrality[kept], w.size).astype(np.float64)
        sd = math.ldexp(normal_sd, -exponent)
        self._form = Form(
            weights=w,
            dof=k,
            noncentrality=nc,
            normal_sd=sd,
            exponent=exponent,
            lowest=float(min(np.min(w, initial=0.0), 0.0)),
            highest=float(max(np.max(w, initial=0.0), 0.0)),
            total_dof=float(np.sum(k)),
            mean=float(np.sum(w * (k + nc))),
            variance=sd * sd + 2 * float(np.sum(w * w * (k + 2 * nc))),
            third=8 * float(np.sum(w * w * w * (k + 3 * nc))),
        )

    def _steps(self, evaluations):
        """Of so many tails or quantiles: one takes about as long as ten weights more."""
        return evaluations * (10 + self._form.weights.size)

    def _each(self, function, threads, out, *given):
        """A function of the form and of each of ``given``, a row of ``out`` each.

        Few of them in one part: no number of threads decides what Python computes.
        """
        steps = self._steps(len(out))
        parts = 1 if are_few(steps) else threads
        in_parts(
            lambda part: run(steps, function, self._form, *(of[part] for of in given), out[part]),
            len(out),
            parts,
        )

    def tail(self, q):
        """(log of the smaller tail, log density, their errors, is it the upper?, nodes)."""
        return tuple(run(self._steps(1), form_tail, self._form, float(q)))

    def tails(self, q, out, threads=1):
        """The same for many q, a row each."""
        self._each(_tails, threads, out, q)

    def quantile(self, log_tail, upper):
        """(q, error, evaluations) where the tail's logarithm is log_tail <= log 1/2."""
        return run(self._steps(1), form_quantile, self._form, float(log_tail), bool(upper))

    def quantiles(self, log_tail, upper, out, threads=1):
        """(q, error) of many, a row each."""
        self._each(_quantiles, threads, out, log_tail, upper != 0)

    def contour(self, q):
        """Nodes t and weights whose real parts, times G(t), sum to a functional at q."""
        t, weight, sign = form_contour(self._form, float(q))
        scale = math.ldexp(1.0, -self._form.exponent)
        return sign * scale * t, scale * weight

    def moment(self, q, upper, which):
        """(log E[g(Q); Q beyond q], its error, nodes); g as in contour.hpp."""
        return form_moment(self._form, float(q), 1.0 if upper else -1.0, which)

    def hockey_sticks(self, epsilon, out, threads=1):
        """(log E(1 - e^(epsilon - Q))+, log of minus its derivative, error, nodes), a row each."""
        form = self._form
        w, k, nc = form.weights, form.dof, form.noncentrality
        x = 2 * math.ldexp(1.0, form.exponent) * w
        inside = form.normal_sd == 0 and form.lowest == 0  # else K(-1) is not asked for
        log_mean = float(np.sum(-0.5 * k * np.log1p(x) - 0.5 * nc * x / (1 + x))) if inside else 0.0
        in_parts(
            lambda part: form_hockey_sticks(form, log_mean, epsilon[part], out[part]),
            epsilon.size,
            threads,
        )

    def hockey_stick(self, epsilon):
        """The same of one, a tuple."""
        out = np.empty((1, 4))
        self.hockey_sticks(np.array([float(epsilon)]), out)
        return tuple(out[0])
