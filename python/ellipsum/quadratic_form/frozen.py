"""A QuadraticForm in the clothes of ``scipy.stats``."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

__all__ = ["freeze"]


class _Generic(stats.rv_continuous):
    """Shape-free distribution whose every method asks the quadratic form."""

    def __init__(self, form: Any) -> None:
        self._form = form
        low, high = form.support()
        super().__init__(a=low, b=high, name="quadratic_form")

    def _updated_ctor_param(self) -> dict[str, Any]:
        return {"form": self._form}

    def _pdf(self, x: Any) -> Any:
        return self._form.pdf(x)

    def _logpdf(self, x: Any) -> Any:
        return self._form.logpdf(x)

    def _cdf(self, x: Any) -> Any:
        return self._form.cdf(x)

    def _sf(self, x: Any) -> Any:
        return self._form.sf(x)

    def _logcdf(self, x: Any) -> Any:
        return self._form.logcdf(x)

    def _logsf(self, x: Any) -> Any:
        return self._form.logsf(x)

    def _ppf(self, p: Any) -> Any:
        return self._form.ppf(p)

    def _isf(self, p: Any) -> Any:
        return self._form.isf(p)

    def _stats(self) -> tuple[Any, Any, Any, Any]:
        form = self._form
        return form.mean(), form.var(), form.skewness(), form.kurtosis()

    def _entropy(self) -> Any:
        return np.float64(self._form.entropy())

    def _rvs(self, *, size: Any = None, random_state: Any = None) -> Any:
        seed = random_state.randint(0, 2**63 - 1) if hasattr(random_state, "randint") else None
        return self._form.rvs(size, seed if seed is not None else random_state)


def freeze(form: Any) -> Any:
    """``form`` as a frozen ``scipy.stats`` distribution (``loc`` 0, ``scale`` 1)."""
    return _Generic(form)()
