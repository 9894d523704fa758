"""Weights of a quadratic form from a sample, by maximum likelihood, where the dof are known.

The sum of the log densities is climbed by L-BFGS-B in the logarithms of the weights, from the best
of some starts whose mean or variance is the sample's. Each draw's score is a central difference of
its log density, whose relative error of about 1e-13 leaves it eight digits; the scores' products
give the standard errors (Berndt, Hall, Hall & Hausman 1974).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate
from .parameters import Array

__all__ = ["FormFit", "Model", "fit_form", "model_of"]

_STEP = 2.0**-16  #: of a central difference, in logarithms or standard deviations
_SPREADS = (0.9, 0.4, 0.1)  #: of the weights of a start: equal ones would stay equal
#: Starts: all orders of four weights, or so many of more; draws that rank them, at even quantiles;
#: and climbs from the best (where two maxima are near, the second or third start finds the higher).
_MOST_ORDERS, _RANKED_BY, _STARTS = 24, 512, 3
#: Share of a start's variance that a free normal part has, and the least that the weights have.
_NORMAL_SHARE, _LEAST_SHARE = 0.2, 0.1
#: Ends of a logarithm of a weight, or of a gap, over the sample's standard deviation.
_SMALLEST, _LARGEST = math.log(1e-7), math.log(1e3)


class FormFit(NamedTuple):
    """A quadratic form fitted to a sample, and how sure its parameters are."""

    form: Any  #: QuadraticForm
    weights_error: Array  #: standard errors of the weights, shape (d,)
    normal_sd_error: float  #: 0 where it was given
    offset_error: float  #: 0 where it was given
    log_likelihood: float  #: of the sample, at the maximum


@dataclass(frozen=True)
class Model:
    """What is known, and how the free numbers make a form: make(weights, dof, nc, s, m)."""

    make: Callable[..., Any]
    sample: Array
    dof: Array
    noncentrality: Array
    signs: Array
    normal_sd: float | None
    offset: float | None

    @property
    def unit(self) -> float:
        """The sample's standard deviation: the unit of every free number."""
        return float(np.std(self.sample))

    @property
    def side(self) -> float:
        """+1 or -1 where the support ends at the offset, else 0."""
        one = self.normal_sd == 0 and abs(float(np.sum(self.signs))) == self.signs.size
        return float(self.signs[0]) if one else 0.0

    def natural(self, free: Array) -> tuple[Array, float, float, Array]:
        """Weights, normal_sd and offset of the free numbers, and each one's derivative."""
        d, unit = self.dof.size, self.unit
        slopes = unit * np.exp(free)
        weights, rest = self.signs * slopes[:d], list(slopes[d:])
        sd = self.normal_sd if self.normal_sd is not None else rest.pop(0)
        offset = self.offset
        if offset is None:
            if self.side:
                end = self.sample.min() if self.side > 0 else self.sample.max()
                offset = float(end - self.side * rest[0])
            else:
                slopes[-1] = unit
                offset = float(np.mean(self.sample) + unit * free[-1])
        return weights, float(sd), offset, slopes

    def log_density(self, free: Array, some: Array | None = None) -> Array:
        """Of each draw."""
        weights, sd, offset, _ = self.natural(free)
        form = self.make(weights, self.dof, self.noncentrality, sd, offset)
        out, _ = form._evaluate(self.sample if some is None else some)
        return np.asarray(out[:, 1])

    def scores(self, free: Array) -> Array:
        """Derivative of each draw's log density in each free number, (n, p)."""
        out = np.empty((self.sample.size, free.size))
        for j in range(free.size):
            ends = []
            for sign in (1, -1):
                moved = free.copy()
                moved[j] += sign * _STEP
                ends.append(self.log_density(moved))
            out[:, j] = (ends[0] - ends[1]) / (2 * _STEP)
        return out

    def objective(self, free: Array) -> tuple[float, Array]:
        """Mean negative log density and its gradient."""
        value = -float(np.mean(self.log_density(free)))
        if not math.isfinite(value):
            return math.inf, np.zeros(free.size)
        return value, -np.mean(self.scores(free), axis=0)

    def bounds(self) -> list[tuple[float, float]]:
        """Of the free numbers."""
        ends = [(_SMALLEST, _LARGEST)] * (self.dof.size + (self.normal_sd is None))
        if self.offset is None:
            ends.append((_SMALLEST, _LARGEST) if self.side else (-1e3, 1e3))
        return ends

    def starts(self) -> Iterator[Array]:
        """Weights of some spreads and orders, scaled to the sample's variance, or its mean."""
        d, unit = self.dof.size, self.unit
        orders = itertools.islice(itertools.permutations(range(d)), _MOST_ORDERS)
        for order, spread in itertools.product(list(orders), _SPREADS):
            shape = self.signs * spread ** np.asarray(order, np.float64)
            room = 1.0 - (_NORMAL_SHARE if self.normal_sd is None else 0.0)
            spent = (self.normal_sd or 0.0) / unit
            room = max(room - spent * spent, _LEAST_SHARE)
            energy = float(np.sum(2 * shape**2 * (self.dof + 2 * self.noncentrality)))
            scale = math.sqrt(room / energy)
            mean = float(np.sum(shape * (self.dof + self.noncentrality)))
            if self.side and self.offset is not None:
                scale = float(np.mean(self.sample) - self.offset) / mean / unit
            free = list(np.log(np.abs(shape) * scale))
            if self.normal_sd is None:
                free.append(0.5 * math.log(_NORMAL_SHARE))
            if self.offset is None:
                middle = (float(np.mean(self.sample)) / unit) - scale * mean
                if self.side:
                    end = self.sample.min() if self.side > 0 else self.sample.max()
                    gap = self.side * (float(end) / unit - middle)
                    free.append(math.log(max(gap, 1e-3)))
                else:
                    free.append(-scale * mean)
            yield np.clip(np.array(free), _SMALLEST + 1, _LARGEST - 1)


def fit_form(model: Model) -> FormFit:
    """The form of the highest likelihood; see :meth:`QuadraticForm.fit`."""
    from scipy import optimize

    ranked = np.sort(model.sample)[:: max(1, model.sample.size // _RANKED_BY)]

    def rank(free: Array) -> float:
        value = float(np.sum(model.log_density(free, ranked)))
        return -value if math.isfinite(value) else math.inf

    best = None
    for start in sorted(model.starts(), key=rank)[:_STARTS]:
        found = optimize.minimize(
            model.objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=model.bounds(),
            options={"ftol": 1e-13, "gtol": 1e-7, "maxiter": 500},
        )
        if best is None or found.fun < best.fun:
            best = found
    if best is None or not math.isfinite(best.fun):
        raise ValueError("sample has no density under weights of these signs and dof")
    return _result(model, _ordered(model, np.asarray(best.x)))


def _result(model: Model, free: Array) -> FormFit:
    weights, sd, offset, slopes = model.natural(free)
    errors = np.abs(slopes) * _errors(model.scores(free), free)
    d = model.dof.size
    rest = list(errors[d:])
    sd_error = float(rest.pop(0)) if model.normal_sd is None else 0.0
    offset_error = float(rest.pop(0)) if model.offset is None else 0.0
    form = model.make(weights, model.dof, model.noncentrality, sd, offset)
    total = float(np.sum(model.log_density(free)))
    return FormFit(form, errors[:d], sd_error, offset_error, total)


def _errors(scores: Array, free: Array) -> Array:
    """Standard errors from the scores' products; inf in what the sample does not tell."""
    value, basis = np.linalg.eigh(scores.T @ scores)
    told = value > 1e-10 * value[-1]
    squared = np.full(free.size, 0.0)
    for v, axis, known in zip(value, basis.T, told, strict=True):
        squared += axis**2 / v if known else np.where(np.abs(axis) > 1e-6, np.inf, 0.0)
    return np.sqrt(squared)


def _ordered(model: Model, free: Array) -> Array:
    """Weights of the same dof, noncentrality and sign are in descending order of size."""
    out, kinds = free.copy(), np.stack([model.dof, model.noncentrality, model.signs], axis=1)
    for kind in np.unique(kinds, axis=0):
        where = np.flatnonzero((kinds == kind).all(axis=1))
        out[where] = np.sort(free[where])[::-1]
    return out


def model_of(
    make: Callable[..., Any],
    sample: ArrayLike,
    dof: ArrayLike,
    noncentrality: ArrayLike,
    signs: ArrayLike,
    normal_sd: float | None,
    offset: float | None,
) -> Model:
    """What :meth:`QuadraticForm.fit` was given, checked."""
    draws = _validate.vector("sample", sample)
    known = _validate.vector("dof", np.atleast_1d(dof), above=0)
    nc = _validate.vector("noncentrality", np.broadcast_to(noncentrality, known.shape))
    side = _validate.vector("signs", np.broadcast_to(signs, known.shape))
    if (nc < 0).any():
        raise ValueError("noncentrality must not be negative")
    if not np.isin(side, (-1, 1)).all():
        raise ValueError("signs must be 1 or -1, one for each weight")
    if normal_sd is not None and _validate.finite("normal_sd", normal_sd) < 0:
        raise ValueError("normal_sd must not be negative")
    if offset is not None:
        _validate.finite("offset", offset)
    free = known.size + (normal_sd is None) + (offset is None)
    if draws.size <= free or np.ptp(draws) == 0:
        raise ValueError(f"sample must have more than {free} draws, which are not all equal")
    model = Model(make, draws, known, nc, side, normal_sd, offset)
    if offset is None and normal_sd in (None, 0) and (known.min() < 2 or known.sum() <= 4):
        raise ValueError(
            "offset=None needs dof of 2 or more, above 4 together, or a normal_sd: else the "
            "likelihood has no maximum, or one without standard errors"
        )
    if offset is not None and model.side and (model.side * (draws - offset) <= 0).any():
        where = "above" if model.side > 0 else "below"
        raise ValueError(f"sample must lie {where} the offset, where weights of these signs do")
    return model
