"""A noisy sum or mean over one region: its noise, intervals and parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from . import _validate
from .ellipsoid import Ellipsoid
from .guarantee import ROW, GaussianGuarantee
from .low_rank import LowRankScale
from .release import Release, rows_text

__all__ = [
    "MISSING_CENTER",
    "NoisySum",
    "SumRelease",
    "fieller",
    "interval_columns",
    "interval_dict",
]

Array = NDArray[np.float64]

#: What every release says whose holes count as the centre.
MISSING_CENTER = (
    "a missing cell counts as the centre of its coordinate: where cells are missing, the value is "
    "drawn to the centre"
)


@dataclass(frozen=True)
class NoisySum:
    """The integers as released, and what turns them into data units. All of it is public."""

    ellipsoid: Ellipsoid
    integers: NDArray[np.object_]  # grid units
    sum_sigma: float  # grid units
    count: float | None  # public, noisy, or none
    count_sigma: float | None  # rows; none where the count is public or absent

    def shift(self) -> Array:
        """g (T + N) / b: the noisy sum of x - c, data units."""
        return self.ellipsoid.unscale(self.integers.astype(np.float64) * self.ellipsoid.grid)

    def shift_sd(self) -> float:
        """Noise standard deviation of a scaled coordinate of the sum."""
        return self.ellipsoid.grid * self.sum_sigma

    def count_sd(self) -> float:
        """Noise standard deviation of the count: 0 where it is public or absent."""
        return 0.0 if self.count_sigma is None else self.count_sigma

    def shift_covariance(self) -> Array:
        """Noise covariance of :meth:`shift`, (d, d)."""
        inverse = self.ellipsoid.unscale(np.eye(self.ellipsoid.d))
        return np.asarray(self.shift_sd() ** 2 * (inverse.T @ inverse))

    def shift_sds(self) -> Array:
        """Square roots of the diagonal of :meth:`shift_covariance`, without d x d memory."""
        scale = self.ellipsoid.scale
        if isinstance(scale, LowRankScale):
            return np.asarray(self.shift_sd() * scale.inverse_row_norms())
        if scale.ndim == 1:
            return np.asarray(self.shift_sd() / scale)
        return np.sqrt(np.diag(self.shift_covariance()))


class SumRelease(Release):
    """A differentially private sum or mean of clipped rows, with its noise and parameters.

    **Guarantees.** Everything in it is a function of the noisy integers and of public
    parameters: it may be published whole (claim mechanism-2).

    The noise levels and intervals speak of the *added noise* alone: not of sampling, nor of
    what the clip took away.

    Parameters
    ----------
    kind : ``"sum"`` or ``"mean"``
    noisy : NoisySum
    guarantee : GaussianGuarantee
    caveats : tuple of str, why it is not private, if so
    """

    def __init__(
        self,
        kind: str,
        noisy: NoisySum,
        guarantee: GaussianGuarantee,
        caveats: tuple[str, ...] = (),
    ) -> None:
        self._noisy = noisy
        count = 0 if noisy.count is None else noisy.count
        self._divisor = max(count, 1) if kind == "mean" else 1
        offset = 1.0 if kind == "mean" else float(count)
        value = noisy.ellipsoid.center * offset + noisy.shift() / self._divisor
        super().__init__(kind, value, guarantee, caveats, n=noisy.count)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Why it is not private, if so, and what the value stands for."""
        return (*self._caveats, *self._remarks())

    def _remarks(self) -> tuple[str, ...]:
        return (MISSING_CENTER,)

    @property
    def integers(self) -> NDArray[np.object_]:
        """The noisy integers (d,), grid units: the bits that the guarantee speaks of."""
        return self._noisy.integers

    @property
    def sd(self) -> Array:
        """Noise standard deviation of each coordinate, shape (d,), data units.

        For a mean over a noisy count it is the first-order value at the released mean.
        """
        extra = self._count_leverage() * self._noisy.count_sd()
        return np.asarray(np.hypot(self._noisy.shift_sds(), extra) / self._divisor)

    @property
    def covariance(self) -> Array:
        """Noise covariance, shape (d, d), data units squared (first order, as ``sd``)."""
        extra = self._count_leverage() * self._noisy.count_sd()
        total = self._noisy.shift_covariance() + np.outer(extra, extra)
        return np.asarray(total / self._divisor**2)

    def confidence_interval(self, level: float = 0.95, of: str = "rows") -> tuple[Array, Array]:
        """Return an interval for each coordinate of the clipped sum or mean.

        One region measures nothing of what it clips: the interval is that of the rows *as
        clipped*, so that ``"rows"`` and ``"noise"`` are the same here. A box alone
        (:class:`PrivateMean` with ``lower`` and ``upper``) measures it.

        For a mean over a noisy count it is Fieller's interval, which covers with at least
        ``level``; it is unbounded where the count does not stand out from its noise (claim
        count-4).

        Parameters
        ----------
        level : float in (0, 1), for each coordinate by itself
        of : ``"rows"`` or ``"noise"``

        Returns
        -------
        (lower, upper) : arrays (d,), data units

        Raises
        ------
        ValueError
            For ``"population"``: no spread was measured.
        """
        if of == "population":
            raise ValueError('of="population" needs a spread, which one region does not measure')
        _validate.one_of("of", of, ("noise", "rows"))
        return self._interval(
            float(scipy.special.ndtri(0.5 + _validate.open_unit("level", level) / 2))
        )

    def _interval(self, z: float) -> tuple[Array, Array]:
        """The interval of z standard deviations of noise."""
        if self._kind == "mean" and self._noisy.count_sigma is not None:
            return self._fieller(z)
        return self._value - z * self.sd, self._value + z * self.sd

    def _count_leverage(self) -> Array:
        """What one row more in the count does to the value (times the divisor)."""
        center = self._noisy.ellipsoid.center
        return self._value - center if self._kind == "mean" else center

    def _fieller(self, z: float) -> tuple[Array, Array]:
        count = (float(self._noisy.count or 0), self._noisy.count_sd())
        low, high = fieller(self._noisy.shift(), self._noisy.shift_sds(), *count, z)
        return self._noisy.ellipsoid.center + low, self._noisy.ellipsoid.center + high

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters of the release, as plain numbers and strings."""
        region, guarantee = self._noisy.ellipsoid, self.guarantee
        return {
            "shape": region.kind,
            "d": region.d,
            "clip_norm": region.clip_norm,
            "grid": region.grid,
            "sensitivity": region.sensitivity(guarantee.neighbors),
            "noise_multiplier": guarantee.noise_multiplier,
            "sum_sigma": self._noisy.sum_sigma,
            "count_sigma": self._noisy.count_sigma,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values that JSON can hold."""
        return super().to_dict() | interval_dict(self)

    def _head(self) -> list[str]:
        return [*super()._head(), *(f"  {remark}" for remark in self._remarks())]

    def _title(self) -> str:
        noisy = self._noisy.count_sigma is not None
        unit = self.guarantee.unit if self.guarantee.rows_per_unit == 1 else ROW
        rows = rows_text(self.n, noisy=noisy, unit=unit)
        return f"{self.kind}{rows}, d = {self.value.size}"

    def _more_columns(self, shown: int) -> tuple[str, list[str]]:
        return interval_columns(self, shown)


def fieller(
    shift: Array, shift_sd: Array, count: Array | float, count_sd: Array | float, z: float
) -> tuple[Array, Array]:
    """Fieller's interval of ``shift / count``, both with independent Gaussian noise: unbounded
    where the count does not stand out from z of its sd."""
    lead = np.square(count) - np.square(z * np.asarray(count_sd))
    bounded = np.broadcast_to((np.asarray(count) > 0) & (lead > 0), shift.shape)
    lead = np.where(bounded, lead, 1.0)
    # (shift count)^2 - lead (shift^2 - (z sds)^2), without its cancellation
    half = z * np.sqrt(lead * np.square(shift_sd) + np.square(shift * count_sd))
    low, high = (shift * count - half) / lead, (shift * count + half) / lead
    return np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)


def interval_columns(release: Any, shown: int, of: str = "the noise") -> tuple[str, list[str]]:
    """A heading, and the 95 % interval of each of the first coordinates."""
    lower, upper = release.confidence_interval()
    ends = [f"   [{lower[j]:.6g}, {upper[j]:.6g}]" for j in range(shown)]
    return f"   95 % interval of {of}", ends


def interval_dict(release: Any) -> dict[str, Any]:
    """The 95 % interval as JSON holds it: None stands for an unbounded end."""
    ends = release.confidence_interval()
    plain = [[float(b) if math.isfinite(b) else None for b in end] for end in ends]
    return {"confidence_interval_95": plain}
