"""A QuadraticForm as a frozen distribution of ``scipy.stats``."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from .parameters import Array, Value
from .protocols import Distribution, Seed

__all__ = ["freeze", "newer"]


class _Generic(stats.rv_continuous):
    """Shape-free distribution whose every method asks the quadratic form."""

    def __init__(self, form: Distribution) -> None:
        self._form = form
        low, high = form.support()
        super().__init__(a=low, b=high, name="quadratic_form")

    def _shape_info(self) -> list[Any]:
        return []

    def _updated_ctor_param(self) -> dict[str, Distribution]:
        return {"form": self._form}

    def _pdf(self, x: Array) -> Value:
        return self._form.pdf(x)

    def _logpdf(self, x: Array) -> Value:
        return self._form.logpdf(x)

    def _cdf(self, x: Array) -> Value:
        return self._form.cdf(x)

    def _sf(self, x: Array) -> Value:
        return self._form.sf(x)

    def _logcdf(self, x: Array) -> Value:
        return self._form.logcdf(x)

    def _logsf(self, x: Array) -> Value:
        return self._form.logsf(x)

    def _ppf(self, p: Array) -> Value:
        return self._form.ppf(p)

    def _isf(self, p: Array) -> Value:
        return self._form.isf(p)

    def _stats(self) -> tuple[float, float, float, float]:
        form = self._form
        return form.mean(), form.var(), form.skewness(), form.kurtosis()

    def _munp(self, n: int) -> np.float64:
        return np.float64(self._form.moment(int(n)))

    def _entropy(self) -> np.float64:
        return np.float64(self._form.entropy())

    def _rvs(self, *, size: tuple[int, ...] | None = None, random_state: Seed = None) -> Value:
        if isinstance(random_state, np.random.RandomState):
            random_state = int(random_state.randint(0, 2**63 - 1))
        return self._form.rvs(size, random_state)


def freeze(form: Distribution) -> Any:
    """``form`` as a frozen ``scipy.stats`` distribution (``loc`` 0, ``scale`` 1)."""
    return _Generic(form)()


def newer(form: Distribution) -> Any:
    """``form`` as a distribution of SciPy's newer infrastructure."""
    if not hasattr(stats, "make_distribution"):
        raise ImportError("distribution() needs SciPy 1.15 or newer: pip install -U scipy")
    found = stats.make_distribution(_Generic(form))()
    found.form = form  # SciPy's parameters are numbers, and a row of weights is none
    return found
