"""Release of single records in the local model: fit on public knowledge, release, read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate, calibrate, noise
from .._estimator import Estimator
from ..column_names import Columns
from ..estimates import Estimate
from ..guarantee import UP, seed_caveats
from ..noise_keys import JobKeys, Use, root_key
from ..rows.arrays import numeric_rows
from .named_rows import in_order
from .priv_unit import PrivUnit
from .record_clip import RecordClip
from .record_design import SHAPES, Channel1d, choose
from .record_fit import known_law, refuse_far_fit
from .record_guarantee import RecordGuarantee
from .record_law import RecordLaw
from .record_moments import RecordMoments, record_moments
from .record_reader import Reader
from .record_simulation import best_reader
from .record_sphere import Sphere

__all__ = ["RecordRelease"]

Array = NDArray[np.float64]

_MOST_SIGMA = 2.0**46  # with integers of 2^24 a release then stays exact in a double
_TOO_SMALL = "the budget is too small: sigma leaves the exact doubles"


class RecordRelease(Estimator):
    """Release every record by itself, each under its own local guarantee (scikit-learn style).

    ``fit`` on public rows, or on a private covariance; ``transform`` on the device that holds the
    record; ``inverse_transform`` anywhere.

    **Guarantees.** Local differential privacy of one released row, for any two values of the
    record and *for the released bits*: ``noise="gaussian"``: mu-GDP and (epsilon, delta)-DP;
    ``noise="privunit"``: epsilon-DP, delta = 0. The record is clipped to integers whose norm is
    checked exactly, and the noise is :func:`ellipsum.noise.rounded_gaussian`
    (claims records-1, records-2). :attr:`guarantee` includes what a private fit spent. *Every call*
    *of* ``transform`` *spends it again.* A row with a NaN or an infinity is released as the centre.

    ===================== ==================================================================
    shape                 what is optimised
    ===================== ==================================================================
    ``"mse"``             least E|x - x'|^2: snr_i = max(0, sqrt(s_i/theta) - 1)
    ``"information"``     most I(t; y) for a target y (of x itself without one)
    ``"isotropic"``       nothing: a ball
    ``"rate-distortion"`` Koehler's channel of this mu: a garbling of ``"isotropic"``
    ``"bottleneck"``      the same, for a target
    ===================== ==================================================================

    Parameters
    ----------
    shape : str, default ``"mse"``
    noise : ``"gaussian"`` or ``"privunit"`` (a tenth of the noise variance at the same epsilon)
    epsilon, delta : float; delta for Gaussian noise only
    mu : float, in their place, for Gaussian noise
    radius : ``"best"`` or float
        Clip radius. A number is in units of z = (x - center)/unit for the last three shapes, and
        relative to the rms norm of the shaped record for the first two.
    standardize : bool, default True
        The unit is each column's public standard deviation; False: data units.
    seed : int or 32 bytes, optional
        For tests: what is released with a seed is **not private** (``caveats`` says so).
    threads : int, optional, for the noise

    Source: shapes: docs/record_release.md; Asi, Feldman & Talwar 2022; Koehler 2018.
    """

    _learned, _how_to_fit = "_law", "call fit on public rows first"

    def __init__(
        self,
        shape: str = "mse",
        noise: str = "privunit",
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        mu: float | None = None,
        radius: float | str = "best",
        standardize: bool = True,
        seed: int | bytes | None = None,
        threads: int | None = None,
    ) -> None:
        self.shape, self.noise = shape, noise
        self.epsilon, self.delta, self.mu = epsilon, delta, mu
        self.radius, self.standardize = radius, standardize
        self.seed, self.threads = seed, threads

    def fit(
        self,
        rows: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        covariance: ArrayLike | Estimate | None = None,
        center: ArrayLike | None = None,
    ) -> RecordRelease:
        """Choose shape, radius and reader from **public** knowledge, or from a private estimate.

        Parameters
        ----------
        rows : array or table (n, d), **public** rows like those to be released; not the records
            themselves. A table's columns have names, by which the records are then met.
        y : array (n,) or (n, e), optional, public targets of these rows
        covariance : array or frame (d, d), public, or an :class:`Estimate` of
            :func:`ellipsum.estimate_covariance` (``method="gaussian"``), whose budget is then in
            :attr:`guarantee`; in place of rows
        center : array (d,), or a mapping by columns' names, public; with a covariance (for an
            estimate: the one it was made about)

        Returns
        -------
        RecordRelease
            Itself.
        """
        self._check()
        caveats: tuple[str, ...] = ()
        if (rows is None) == (covariance is None):
            raise ValueError("give public rows, or a covariance (and center)")
        if rows is not None:
            if center is not None:
                raise ValueError("center comes with a covariance; public rows have their own")
            refuse_far_fit(rows)
            columns = Columns()
            public = in_order(rows, columns)
            law = RecordLaw.of_rows(public, y, standardize=bool(self.standardize))
            mu_fit, (names, units) = 0.0, columns.told(law.d)
        else:
            if y is not None or center is None or covariance is None:
                raise ValueError("with a covariance give center, and no y")
            known = known_law(covariance, center)
            law = RecordLaw.of_covariance(
                known.center, known.covariance, standardize=bool(self.standardize)
            )
            mu_fit, caveats, names = known.mu, known.caveats, known.names
            units = covariance.units if isinstance(covariance, Estimate) else None
        self._fit_caveats = caveats
        self._fit_law(law, mu_fit)
        self.columns_: tuple[str, ...] | None = names
        self.units_: tuple[str | None, ...] | None = units
        return self

    def fit_transform(self, *_: Any, **__: Any) -> Any:
        """Refused: it would fit on the records that are to be protected."""
        raise TypeError(
            "fit on public rows (or a private covariance), then transform the records: a fit on "
            "the records themselves is not private"
        )

    # ---- what is promised ------------------------------------------------------------

    @property
    def guarantee(self) -> RecordGuarantee:
        """What one released record promises, a private fit included; of a fitted one, as fitted."""
        return getattr(self, "_promise", None) or self._promised(0.0)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Why a release is not private, if so."""
        seed = self.seed if self.seed is not None else getattr(self, "_seed", None)
        return tuple(dict.fromkeys(seed_caveats(seed) + getattr(self, "_fit_caveats", ())))

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: False with a seed."""
        return not self.caveats

    # ---- release ---------------------------------------------------------------------

    def transform(self, rows: Any) -> Array:
        """Release each row: the public record t, (n, r), in the shape's own coordinates (and
        of ``shape="mse"`` under PrivUnitG one more, which tells how long the record is).

        Parameters
        ----------
        rows : array or table (n, d), data units; where the fit knows names, a table's columns
            are met by them (claim rows-5)

        Raises
        ------
        TypeError, ValueError
            For a shape, a dtype or columns that are wrong; never for a value in them.
        """
        law = self._fitted()
        self._seed = self.seed if self.seed is not None else getattr(self, "_seed", None)
        ordered = in_order(rows, Columns(self.columns_, "the fit"), law.d)
        batch = numeric_rows("rows", ordered, d=law.d)
        if self._unit is None:
            keys = self._keys(batch)
            drawn = noise.rounded_gaussian(
                len(batch) * self._clip.k,
                self._sigma,
                key=keys.of(Use.RECORD),
                threads=self.threads,
            )
            released = self._clip.under(drawn.reshape(len(batch), self._clip.k), batch)
            return released if self._garble is None else self._garbled(released, keys)
        # The last axis takes up what a record inside the ball leaves: all have the same norm.
        sphere = self._sphere or Sphere()

        def points(part: slice) -> Array:
            y = np.asarray(self._clip.integers(batch[part]) * 2.0**-23, dtype=np.float64)
            return sphere.points(y, self._clip.lengths(batch[part]) if sphere.slope else None)

        out = self._unit.release_made(len(batch), points, self.seed, self.threads)
        if self._sphere is None:
            return np.asarray(out[:, :-1] * self._clip.clip_norm)
        out *= self._clip.clip_norm
        return out

    def inverse_transform(self, released: ArrayLike) -> Array:
        """The posterior mean of each record given its release, (n, d), data units, the columns in
        the fit's order.

        The best linear reader under the public law, with a radial factor and a curve for each
        column (:mod:`ellipsum.records.record_reader`). Post-processing: it costs nothing.
        """
        law = self._fitted()
        t = self._released(released)
        return np.asarray(law.center + law.unit * self._reader(t))

    def moments(self, released: ArrayLike) -> RecordMoments:
        """Debiased mean and covariance of the clipped records, with standard errors.

        They are those of the clipped components in data units (of the shortened ones, where an
        angle tells lengths): of the records themselves only where the clip changes few of them
        and all components are kept (give a large ``radius``).
        """
        law = self._fitted()
        design, channel = self._design, self._channel
        floor = channel.floor * self._clip.clip_norm**2
        noise_variance = 1.0 if design.garble is not None else floor
        back = law.unit[:, None] * design.back / design.size
        t = self._released(released)[:, : design.size.size]
        found = record_moments(t, law.center, back, channel.along, noise_variance)
        return replace(found, columns=self.columns_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """released0, released1, ...: the coordinates of :meth:`transform`; of ``shape="mse"``
        under PrivUnitG the last one tells the record's length."""
        self._fitted()
        return np.array([f"released{j}" for j in range(self._width)], dtype=object)

    def explained(self) -> float:
        """Share of variance that the best linear reader explains, by the public law."""
        self._fitted()
        return float(np.sum(self._design.gains * self._design.spread**2 * self._metric))

    # ---- inside ----------------------------------------------------------------------

    def _check(self) -> None:
        _validate.one_of("shape", self.shape, SHAPES)
        _validate.one_of("noise", self.noise, ("gaussian", "privunit"))
        if isinstance(self.radius, str):
            _validate.one_of("radius", self.radius, ("best",))
        else:
            _validate.positive("radius", self.radius)
        if self.noise == "gaussian":
            self._multiplier()
            return
        if self.shape in ("rate-distortion", "bottleneck"):
            raise ValueError(f'shape="{self.shape}" is a Gaussian channel: noise="gaussian"')
        if self.mu is not None or self.delta is not None:
            raise ValueError("noise='privunit' takes epsilon alone: its delta is 0")
        _validate.positive("epsilon", self.epsilon)

    def _promised(self, mu_fit: float) -> RecordGuarantee:
        self._check()
        if self.noise == "privunit":
            return RecordGuarantee(0.0, float(self.epsilon or 0.0), mu_fit)
        return RecordGuarantee(calibrate.mu(self._multiplier()), 0.0, mu_fit)

    def _multiplier(self) -> float:
        multiplier = calibrate.noise_multiplier(self.epsilon, self.delta, mu=self.mu)
        if multiplier > _MOST_SIGMA:
            raise ValueError(_TOO_SMALL)
        return multiplier

    def _fit_law(self, law: RecordLaw, mu_fit: float) -> None:
        radius = None if isinstance(self.radius, str) else float(self.radius)
        channel = self._channel_of(law.d)
        design = choose(law, self.shape, channel, radius)
        clip = RecordClip(law.center, design.matrix / law.unit, design.radius)
        unit = PrivUnit(clip.k + 1, float(self.epsilon or 0)) if self.noise == "privunit" else None
        if unit is None:
            self._sigma = self._multiplier() * 2 * clip.row_bound * UP
            if self._sigma > _MOST_SIGMA:
                raise ValueError(_TOO_SMALL)
        else:
            channel = Channel1d(unit.law.along, unit.law.floor)
        self._law, self._promise, self._channel = law, self._promised(mu_fit), channel
        self._design, self._clip, self._unit = design, clip, unit
        self._garble = design.garble
        total = float(law.variances.sum())
        self._metric = (design.back**2).sum(axis=0) / total
        tell = "nothing"
        if unit is not None and self.shape == "mse":
            tell = "best" if radius is None else "inside"
        found = best_reader(law, design, channel, unit, tell)
        self._sphere: Sphere | None = found[0]
        self._reader: Reader = found[1]
        self.n_features_in_ = law.d

    def _channel_of(self, d: int) -> Channel1d:
        if self.noise == "gaussian":
            return Channel1d(1.0, (2 * self._multiplier()) ** 2)
        law = PrivUnit(min(d + 1, 1 << 16), float(self.epsilon or 0)).law
        return Channel1d(law.along, law.floor)

    def _fitted(self) -> RecordLaw:
        self._check_fitted()
        return self._law

    def _keys(self, rows: NDArray[Any]) -> JobKeys:
        """Bound to the mechanism, and with a seed to the rows: a fresh root needs no more."""
        seen = self._clip.integers(rows) if self.seed is not None else None
        clip = self._clip
        job = ("records", self.shape, self._sigma, clip.grid, clip.center, clip.matrix, seen)
        return JobKeys(root_key(self.seed), *job)

    def _garbled(self, released: Array, keys: JobKeys) -> Array:
        """Post-processing: G t + N(0, I - G G^T sd^2); the sum has unit noise."""
        size, own = (len(released), len(self._root)), keys.of(Use.GARBLE)
        extra = noise.gaussian(size, 1.0, key=own, threads=self.threads)
        return np.asarray(released @ np.asarray(self._garble).T + extra @ self._root.T)

    @property
    def _root(self) -> Array:
        """A square root of I - G G^T sd^2, sd the noise of the isotropic release."""
        sd = self._sigma * self._clip.grid
        g = np.asarray(self._garble) * sd
        value, basis = np.linalg.eigh(np.eye(len(g)) - g @ g.T)
        return np.asarray(basis * np.sqrt(np.maximum(value, 0.0)))

    @property
    def _width(self) -> int:
        return int(self._design.size.size) + (self._sphere is not None)

    def _released(self, released: ArrayLike) -> Array:
        r = self._width
        columns = Columns(self.get_feature_names_out().tolist(), "transform")
        t = np.asarray(in_order(released, columns, r), dtype=np.float64)
        if t.ndim != 2 or t.shape[1] != r:
            raise ValueError(f"released must have shape (n, {r}), as transform returns it")
        return t
