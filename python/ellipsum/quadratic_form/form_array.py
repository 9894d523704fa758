"""Many quadratic forms at once: methods that broadcast over the parameters too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .gradients import Gradient
from .parameters import Array
from .protocols import Distribution, Seed

__all__ = ["FormArray"]


class FormArray:
    """Quadratic forms in an array, each asked by itself: its values are those of the single forms.

    The methods take q (or p) of a shape that broadcasts with :attr:`shape`, and return arrays of
    the common shape. Axes before those of the forms cost little: a form takes all of its q in one
    call. A form is prepared once, when the array is made.

    Parameters
    ----------
    forms : object array of forms
    """

    def __init__(self, forms: NDArray[np.object_]) -> None:
        self._forms = forms

    @classmethod
    def broadcast(
        cls,
        make: Callable[..., Distribution],
        weights: ArrayLike,
        dof: ArrayLike,
        noncentrality: ArrayLike,
        normal_sd: ArrayLike,
        offset: ArrayLike,
    ) -> FormArray:
        """The forms of parameters of shapes (..., d), and (...) for the last two."""
        per_weight = [
            np.atleast_1d(np.asarray(x, np.float64)) for x in (weights, dof, noncentrality)
        ]
        plain = [np.asarray(x, np.float64) for x in (normal_sd, offset)]
        widths = {part.shape[-1] for part in per_weight} - {1}
        if len(widths) > 1:
            raise ValueError("weights, dof and noncentrality must have the same last axis")
        d = widths.pop() if widths else 1
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in per_weight), *(x.shape for x in plain))
        w, k, nc = (np.broadcast_to(x, (*shape, d)) for x in per_weight)
        s, m = (np.broadcast_to(x, shape) for x in plain)
        forms = np.empty(shape, dtype=object)
        for i in np.ndindex(shape):
            forms[i] = make(w[i], k[i], nc[i], float(s[i]), float(m[i]))
        return cls(forms)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the parameters, without the axis of the weights."""
        return self._forms.shape

    def __len__(self) -> int:
        return len(self._forms)

    def __getitem__(self, where: Any) -> Any:
        """One form, or an array of some."""
        found = self._forms[where]
        return FormArray(found) if isinstance(found, np.ndarray) else found

    def __repr__(self) -> str:
        return f"<FormArray of {self._forms.size} quadratic forms, shape {self.shape}>"

    def cdf(self, q: ArrayLike) -> Array:
        """P(Q <= q) of each form."""
        return self._each("cdf", q)

    def sf(self, q: ArrayLike) -> Array:
        """P(Q > q) of each form."""
        return self._each("sf", q)

    def pdf(self, q: ArrayLike) -> Array:
        """Density of each form."""
        return self._each("pdf", q)

    def logcdf(self, q: ArrayLike) -> Array:
        """log P(Q <= q) of each form."""
        return self._each("logcdf", q)

    def logsf(self, q: ArrayLike) -> Array:
        """log P(Q > q) of each form."""
        return self._each("logsf", q)

    def logpdf(self, q: ArrayLike) -> Array:
        """Logarithm of the density of each form."""
        return self._each("logpdf", q)

    def ppf(self, p: ArrayLike) -> Array:
        """The q with P(Q <= q) = p, of each form."""
        return self._each("ppf", p)

    def isf(self, p: ArrayLike) -> Array:
        """The q with P(Q > q) = p, of each form."""
        return self._each("isf", p)

    def mean(self) -> Array:
        """Expectation of each form."""
        return self._single("mean")

    def var(self) -> Array:
        """Variance of each form."""
        return self._single("var")

    def std(self) -> Array:
        """Standard deviation of each form."""
        return self._single("std")

    def skewness(self) -> Array:
        """Third standardised cumulant of each form."""
        return self._single("skewness")

    def kurtosis(self) -> Array:
        """Excess kurtosis of each form."""
        return self._single("kurtosis")

    def median(self) -> Array:
        """The q that halves the probability, of each form."""
        return self._single("median")

    def mode(self) -> Array:
        """Where the density of each form is highest."""
        return self._single("mode")

    def entropy(self) -> Array:
        """Differential entropy of each form, nats."""
        return self._single("entropy")

    def moment(self, order: int = 1, kind: str = "raw") -> Array:
        """As ``QuadraticForm.moment``, of each form."""
        return self._single("moment", order, kind)

    def stats(self, moments: str = "mv") -> tuple[Array, ...] | Array:
        """As ``QuadraticForm.stats``, of each form: an array for each letter."""
        found = self._several(len(set(moments)), "stats", moments)
        return found[0] if len(found) == 1 else found

    def support(self) -> tuple[Array, Array]:
        """Infimum and supremum of each form's support."""
        low, high = self._several(2, "support")
        return low, high

    def interval(self, confidence: float) -> tuple[Array, Array]:
        """The central interval of this probability, of each form."""
        low, high = self._several(2, "interval", confidence)
        return low, high

    def sf_gradient(self, q: ArrayLike) -> Gradient:
        """As :meth:`ellipsum.QuadraticForm.sf_gradient`, of each form: arrays of the common shape.

        Those of the weights, dof and noncentralities have the axis of the weights last.
        """
        given = np.asarray(q, np.float64)
        shape = np.broadcast_shapes(given.shape, self.shape)
        forms: Any = np.broadcast_to(self._forms, shape)
        points = np.broadcast_to(given, shape)
        found = [forms[i].sf_gradient(float(points[i])) for i in np.ndindex(shape)]
        parts = (np.array(part) for part in zip(*found, strict=True))
        return Gradient(*(part.reshape(*shape, *part.shape[1:]) for part in parts))

    def cdf_gradient(self, q: ArrayLike) -> Gradient:
        """:meth:`sf_gradient` with the other sign."""
        return self.sf_gradient(q).negative()

    def isf_gradient(self, p: ArrayLike) -> Array:
        """As :meth:`ellipsum.QuadraticForm.isf_gradient`, of each form, weights last."""
        gradient = self.sf_gradient(self.isf(p))
        return np.asarray(gradient.weights / np.asarray(gradient.offset)[..., None])

    def rvs(self, size: int | tuple[int, ...] | None = None, random_state: Seed = None) -> Array:
        """Draws of each form, shape (size, shape of the forms), one after another from a stream."""
        rng = np.random.default_rng(random_state)
        before = () if size is None else tuple(np.atleast_1d(size))
        out = np.empty((*before, *self.shape))
        for i in np.ndindex(self.shape):
            form: Any = self._forms[i]
            out[(..., *i)] = form.rvs(before, rng)
        return out

    def sample(
        self, shape: int | tuple[int, ...] = (), *, rng: int | np.random.Generator | None = None
    ) -> Array:
        """As :meth:`rvs`, by the newer names of its arguments."""
        return self.rvs(shape, rng)

    def _each(self, method: str, points: ArrayLike) -> Array:
        given = np.asarray(points, np.float64)
        shape = np.broadcast_shapes(given.shape, self.shape)
        before = len(shape) - len(self.shape)
        full, out = np.broadcast_to(given, shape), np.empty(shape)
        for i in np.ndindex(self.shape):
            place = (*(slice(None),) * before, *i)
            out[place] = getattr(self._forms[i], method)(full[place])
        return out

    def _single(self, method: str, *known: Any) -> Array:
        found = [getattr(form, method)(*known) for form in self._forms.flat]
        return np.array(found, np.float64).reshape(self.shape)

    def _several(self, count: int, method: str, *known: Any) -> tuple[Array, ...]:
        """Of a method that has so many values, an array of each."""
        found = [getattr(form, method)(*known) for form in self._forms.flat]
        table = np.array(found, np.float64).reshape(-1, count)
        return tuple(table[:, k].reshape(self.shape) for k in range(count))
