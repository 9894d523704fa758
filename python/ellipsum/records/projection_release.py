"""What a projection releases, and what can be learned from it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..estimates import Estimate
from ..guarantee import Guarantee
from ..release import Release
from .moment_fits import MomentRegression, NoisyMoments, PrincipalAxes

__all__ = ["ProjectionRelease"]

Array = NDArray[np.float64]


class ProjectionRelease(Release):
    """m rows of N(0, X'X + w^2 I), X the clipped rows about the center.

    **Guarantees.** All of it is post-processing of ``value``, which may be published whole.
    Standard deviations are plug-in estimates, to first order in 1/sqrt(m).

    ``value`` (m, d), data units; ``rows`` is the same. ``n`` is public for ``replace``, None for
    ``add-remove``.
    """

    def __init__(
        self,
        value: Array,
        guarantee: Guarantee,
        caveats: tuple[str, ...] = (),
        *,
        floor: float,
        n: float | None = None,
    ) -> None:
        super().__init__("projection", value, guarantee, caveats, n=n)
        self._floor = floor

    @property
    def rows(self) -> Array:
        """Y, (m, d), data units."""
        return self._value

    @property
    def floor(self) -> float:
        """w, data units: its square is what Y'Y/m has more than X'X."""
        return self._floor

    @property
    def parameters(self) -> dict[str, Any]:
        """The floor."""
        return {"floor": self._floor}

    def second_moments(self) -> Estimate:
        """X'X without bias: Y'Y/m - w^2 I, data units squared; a sum over rows, no mean.

        ``sd`` of its entries: Var = (S_ii S_jj + S_ij^2)/m with S = X'X + w^2 I estimated by Y'Y/m.
        It may have negative eigenvalues.
        """
        raw = self._raw
        diagonal = np.diag(raw)
        sd = np.sqrt((np.outer(diagonal, diagonal) + raw**2) / len(self.rows))
        what = ("second moments", self._moments.value, self._guarantee, self._caveats)
        made = Estimate(*what, sd=sd, n=self._n)
        return made.named(self._columns, self._units).drawn_from(self._entry)

    def pca(self, k: int) -> PrincipalAxes:
        """The k first principal axes of X'X: the eigenvectors of Y'Y, which the floor leaves alone.

        Parameters
        ----------
        k : int, from 1 to d
        """
        return self._moments.axes(_validate.whole("k", k, least=1, most=self.rows.shape[1]))

    def regression(
        self,
        target: int | str = -1,
        *,
        columns: Any = None,
        ridge: float = 0.0,
        lasso: float | None = None,
    ) -> MomentRegression:
        """Regress one coordinate on others, about the center, without an intercept.

        Parameters
        ----------
        target : int or str, which coordinate; negative ones count from the last, texts are names
        columns : sequence of int or str, optional; which predict it: by default all others
        ridge : float, added to the diagonal of X'X, data units squared; ``floor**2`` leaves the
            floor in
        lasso : float, optional: the weight of sum |b_j| beside half the squared error of the sum

        Returns
        -------
        MomentRegression: coefficients with standard deviations and intervals
        """
        d = self.rows.shape[1]
        which = self._place("target", target)
        chosen = tuple(j for j in range(d) if j != which) if columns is None else tuple(columns)
        chosen = tuple(self._place("columns", j) for j in chosen)
        if not chosen or which in chosen or len(set(chosen)) < len(chosen):
            raise ValueError("columns must be different coordinates, at least one, and no target")
        if lasso is None:
            return self._moments.ridge(which, chosen, _validate.nonnegative("ridge", ridge))
        if ridge:
            raise ValueError("give ridge or lasso, not both")
        return self._moments.lasso(which, chosen, _validate.nonnegative("lasso", lasso))

    def _place(self, parameter: str, column: int | str) -> int:
        d = self.rows.shape[1]
        if not isinstance(column, str):
            return range(d)[_validate.whole(parameter, column, least=-d, most=d - 1)]
        if self._columns is None or column not in self._columns:
            known = "none" if self._columns is None else ", ".join(map(repr, self._columns))
            raise ValueError(f"{parameter} must be a place or a column's name: {known}")
        return self._columns.index(column)

    @property
    def _raw(self) -> Array:
        return np.asarray(self.rows.T @ self.rows / len(self.rows))

    @property
    def _moments(self) -> NoisyMoments:
        raw, m = self._raw, len(self.rows)

        def spread(v: Array) -> Array:
            """Of rows N(0, S): Cov(G v) = (S v'Sv + Sv v'S)/m."""
            moved = raw @ v
            return np.asarray((raw * float(v @ moved) + np.outer(moved, moved)) / m)

        return NoisyMoments(
            raw - self._floor**2 * np.eye(len(raw)), spread, self._columns, self._units
        )

    def _rows(self) -> list[str]:
        m, d = self.rows.shape
        size = math.sqrt(float(np.mean(self.rows**2)))
        return [f"  {m} rows of {d}; floor {self._floor:.6g}, root mean square {size:.6g}"]
