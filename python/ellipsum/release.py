"""What leaves the machine: a value, its noise, its guarantee, its parameters."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from . import _validate, calibrate
from .ellipsoid import Ellipsoid

__all__ = ["Guarantee", "Release"]

Array = NDArray[np.float64]

_ROWS_PRINTED = 12


@dataclass(frozen=True)
class Guarantee:
    """What a mechanism promises, for which neighbours.

    **Guarantees.** ``epsilon(delta)`` never understates: see :mod:`ellipsum.calibrate`.

    Parameters
    ----------
    neighbors : ``"replace"`` or ``"add-remove"``
    noise_multiplier : float, noise standard deviation / sensitivity
    asked_epsilon, asked_delta, asked_rho, asked_mu : the budget as it was asked for
    """

    neighbors: str
    noise_multiplier: float
    asked_epsilon: float | None = None
    asked_delta: float | None = None
    asked_rho: float | None = None
    asked_mu: float | None = None

    @property
    def mu(self) -> float:
        """mu-GDP: as asked, else 1 / noise_multiplier, rounded up."""
        return self.asked_mu or calibrate.mu(self.noise_multiplier)

    @property
    def rho(self) -> float:
        """rho-zCDP: as asked, else 1 / (2 noise_multiplier^2), rounded up."""
        return self.asked_rho or calibrate.rho(self.noise_multiplier)

    def epsilon(self, delta: float) -> float:
        """The epsilon that goes with ``delta``: as asked, else by the analytic Gaussian bound."""
        if delta == self.asked_delta and self.asked_epsilon is not None:
            return self.asked_epsilon
        return calibrate.epsilon(self.noise_multiplier, delta)

    def __str__(self) -> str:
        parts = []
        if self.asked_epsilon is not None:
            parts.append(f"({_rounded_up(self.asked_epsilon)}, {_rounded_up(self.asked_delta)})-DP")
        parts += [f"{_rounded_up(self.rho)}-zCDP", f"{_rounded_up(self.mu)}-GDP"]
        return " = ".join(parts) + f", neighbours: {self.neighbors}"


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
        if self.ellipsoid.scale.ndim == 1:
            return np.asarray(self.shift_sd() / self.ellipsoid.scale)
        return np.sqrt(np.diag(self.shift_covariance()))


class Release:
    """A differentially private sum or mean, with its noise, guarantee and parameters.

    **Guarantees.** Everything in it is a function of the noisy integers and of public
    parameters: it may be published whole. ``private`` is False, and ``caveats`` says why, where
    the guarantee was given up (a seed, ``nonfinite="raise"``).

    The noise levels and intervals speak of the *added noise* alone: not of sampling, nor of
    what the clip took away.
    """

    def __init__(
        self, kind: str, noisy: NoisySum, guarantee: Guarantee, caveats: tuple[str, ...] = ()
    ) -> None:
        self._kind, self._noisy, self._guarantee, self._caveats = kind, noisy, guarantee, caveats
        count = 0 if noisy.count is None else noisy.count
        self._divisor = max(count, 1) if kind == "mean" else 1
        offset = 1.0 if kind == "mean" else float(count)
        self._value = noisy.ellipsoid.center * offset + noisy.shift() / self._divisor

    # ---- the answer ----------------------------------------------------------------

    @property
    def kind(self) -> str:
        """``"sum"`` or ``"mean"``."""
        return self._kind

    @property
    def value(self) -> Array:
        """The noisy sum or mean, shape (d,), data units."""
        return self._value

    @property
    def n(self) -> float | None:
        """Rows: public for ``replace``, noisy for ``add-remove``, None where not released."""
        return self._noisy.count

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

    def confidence_interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return an interval for each coordinate of the clipped sum or mean.

        For a mean over a noisy count it is Fieller's interval, which covers with at least
        ``level``; it is unbounded where the count does not stand out from its noise.

        Parameters
        ----------
        level : float in (0, 1), for each coordinate by itself

        Returns
        -------
        (lower, upper) : arrays (d,), data units
        """
        z = float(ndtri(0.5 + _validate.open_unit("level", level) / 2))
        if self._kind == "mean" and self._noisy.count_sigma is not None:
            return self._fieller(z)
        return self._value - z * self.sd, self._value + z * self.sd

    def _count_leverage(self) -> Array:
        """What one row more in the count does to the value (times the divisor)."""
        center = self._noisy.ellipsoid.center
        return self._value - center if self._kind == "mean" else center

    def _fieller(self, z: float) -> tuple[Array, Array]:
        shift, count = self._noisy.shift(), float(self._noisy.count or 0)
        lead = count**2 - (z * self._noisy.count_sd()) ** 2
        if count <= 0 or lead <= 0:
            endless = np.full(shift.size, np.inf)
            return -endless, endless
        # (shift count)^2 - lead (shift^2 - (z sds)^2), without its cancellation
        count_term = shift * self._noisy.count_sd()
        half = z * np.sqrt(lead * self._noisy.shift_sds() ** 2 + count_term**2)
        center = self._noisy.ellipsoid.center
        return center + (shift * count - half) / lead, center + (shift * count + half) / lead

    # ---- the guarantee -------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee as an object that converts between its forms."""
        return self._guarantee

    @property
    def epsilon(self) -> float | None:
        """epsilon as asked; None where the budget was given as rho or mu."""
        return self._guarantee.asked_epsilon

    @property
    def delta(self) -> float | None:
        """delta as asked; None where the budget was given as rho or mu."""
        return self._guarantee.asked_delta

    @property
    def rho(self) -> float:
        """rho-zCDP."""
        return self._guarantee.rho

    @property
    def mu(self) -> float:
        """mu-GDP."""
        return self._guarantee.mu

    @property
    def neighbors(self) -> str:
        """The neighbouring relation: ``"replace"`` or ``"add-remove"``."""
        return self._guarantee.neighbors

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: False for a seeded release."""
        return not self._caveats

    @property
    def caveats(self) -> tuple[str, ...]:
        """Why it is not private, if so."""
        return self._caveats

    def dp_event(self) -> Any:
        """Return the release as a ``dp_accounting`` event, for composition.

        Raises
        ------
        ImportError
            Where dp-accounting is not installed (extra ``accounting``).
        """
        return calibrate.dp_event(self._guarantee.noise_multiplier)

    # ---- handed on -----------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters of the release, as plain numbers and strings."""
        region, guarantee = self._noisy.ellipsoid, self._guarantee
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
        lower, upper = self.confidence_interval()
        return {
            "kind": self._kind,
            "value": self._value.tolist(),
            "sd": self.sd.tolist(),
            "confidence_interval_95": [_plain(lower), _plain(upper)],
            "n": self.n,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "mu": self.mu,
            "neighbors": self.neighbors,
            "private": self.private,
            "caveats": list(self._caveats),
            "parameters": self.parameters,
        }

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the values with their intervals; return the matplotlib axes (extra ``plot``)."""
        from .plot import plot_release

        return plot_release(self, ax=ax, **options)

    def __repr__(self) -> str:
        return f"Release(kind={self._kind!r}, d={self._value.size}, {self._guarantee})"

    def __str__(self) -> str:
        return self._text(noisy_count=self._noisy.count_sigma is not None)

    def _text(self, *, noisy_count: bool) -> str:
        rows = "" if self.n is None else f" of {self.n:.12g} rows"
        if noisy_count:
            rows += " (noisy count)"
        lines = [f"private {self._kind}{rows}, d = {self._value.size}", f"  {self._guarantee}"]
        lines += [f"  {caveat.upper()}" for caveat in self._caveats]
        lower, upper = self.confidence_interval()
        lines.append(f"  {'':>6} {'value':>13} {'noise sd':>11}   95 % interval of the noise")
        for j in range(min(self._value.size, _ROWS_PRINTED)):
            lines.append(
                f"  {f'[{j}]':>6} {self._value[j]:>13.6g} {self.sd[j]:>11.3g}   "
                f"[{lower[j]:.6g}, {upper[j]:.6g}]"
            )
        if self._value.size > _ROWS_PRINTED:
            lines.append(f"  ... and {self._value.size - _ROWS_PRINTED} more coordinates")
        return "\n".join(lines)


def _plain(bounds: Array) -> list[float | None]:
    """Infinities have no JSON: None stands for an unbounded end."""
    return [float(b) if math.isfinite(b) else None for b in bounds]


def _rounded_up(x: float | None) -> str:
    """Six digits, rounded up: what is printed is not below what is promised."""
    up = decimal.Context(prec=6, rounding=decimal.ROUND_CEILING)
    nearest = f"{x or 0.0:g}"
    return nearest if float(nearest) == x else f"{float(up.create_decimal(x or 0.0)):g}"
