"""Least leakage for a given squared error, for jointly Gaussian attributes.

With D = E Cov(W | Z) the sensitive X keeps the covariance R_x + K_x D K_x' and the useful Y the
error tr(R_y + K_y D K_y'), K the regressions on what is observed, W. The least
I(X; Z) over *all* releases Z with E|Y - Z|^2 <= distortion is a max-det program in D: entropy is
at most that of a Gaussian with the mean covariance, and a Gaussian Z attains it. In whitened
coordinates, N = I - D: see ``ellipsum.tradeoff.maxdet``. W = Y: Tripathy, Wang & Ishwar,
Propositions 1 and 2, without their special case; W = (X, Y): Proposition 3 and vectors;
W = X = Y: reverse water-filling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..column_names import Names
from . import maxdet
from .frames import Framed, names_of
from .gaussian_law import Law, covariance_of, law_of, span
from .guarantee import MutualInformation
from .seeds import numpy_generator

__all__ = ["GaussianTradeoff", "TradeoffCurve", "gaussian_bottleneck"]

Array = NDArray[np.float64]

#: Of 1 - tau, for each dimension: below, the best estimate of Y is released as it is.
_ROUNDING = 2.0**-50
#: Of 1 - tau: a part of the best estimate of Y is tried, too; and alone, where the central path
#: drowns in rounding.
_NEAR, _LAST = 1e-6, 1e-12
#: Of a column of a sample: below, squares lose their digits.
_LEAST_VARIANCE = 1e-280
#: Canonical correlations below this leak less than 1e-18 nats each: none.
_NO_CORRELATION = 1e-9
_NO_INFORMATION_UTILITY = (
    "utility='information' has no meaningful optimum for continuous attributes: where the release "
    "sees Y itself, the fractional part of a multiple of Y carries as much of I(Y; Z) as one likes "
    "at no leakage. Use the squared error, gaussian_bottleneck (the release sees X), or "
    "DiscreteTradeoff on bins"
)


@dataclass(frozen=True)
class TradeoffCurve:
    """Least leakage (nats) at each distortion, and the certified gap of each point."""

    distortion: Array
    leakage: Array
    gap: Array

    def plot(self, ax: Any = None) -> Any:
        """Draw leakage over distortion on a matplotlib axis and return the axis."""
        if ax is None:
            from ..plot import check_matplotlib

            check_matplotlib()
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        ax.plot(self.distortion, self.leakage)
        ax.set_xlabel("distortion")
        ax.set_ylabel("leakage (nats)")
        return ax


class GaussianTradeoff(Framed):
    """The release of least mutual information with X at a given squared error of Y.

    **Guarantees.** Under the Gaussian law fitted, ``leakage_`` is I(X; Z) of the release that
    `transform` makes (in real numbers), and no release of any kind with the same distortion
    leaks less than ``leakage_ - gap_``: ``gap_`` is what the solver leaves, by duality, and to
    first order what rounding does to the law. It is below 1e-8 where the correlations' least
    variance is above 1e-7 of the largest and the distortion is not all but the least; else about
    (k + n) 2^-51 over that share (``docs/tradeoff.md``). Directions with less than (k + n) 2^-48 of
    the largest variance count as none, of which ``gap_`` has nothing: X and Y that differ by less
    are the same. It is an average over people, not differential privacy (claim tradeoff-1).

    Parameters
    ----------
    observe : {"useful", "full"} or array (m, k + n)
        What the release is computed from: Y, (X, Y), or a matrix times (X, Y).
    noise_variance : float
        Variance of independent noise that is already in each observed coordinate.
    distortion : float
        Largest E|Y - Z|^2, in the squared unit of Y.
    utility : {"squared-error"}
        ``"information"`` is refused, with the reason.

    Attributes
    ----------
    leakage_, gap_ : float, nats
        Infinite leakage: the release determines a direction of X.
    distortion_, distortion_error_ : float
        And the standard error with which it stands for that of the rows' law, from which no way
        to learn from n rows is free; 0 for a law that is known.
    matrix_ : array (n, m)
        The release is mean of Y + ``matrix_`` (w - mean of W) + noise.
    noise_covariance_ : array (n, n)
    least_distortion_ : float
        What the best estimate of Y from W leaves.
    guarantee_ : MutualInformation

    Source: Tripathy, Wang & Ishwar, *Privacy-preserving adversarial networks*, problem (1).
    """

    def __init__(
        self,
        observe: str | ArrayLike = "useful",
        noise_variance: float = 0.0,
        distortion: float | None = None,
        utility: str = "squared-error",
    ) -> None:
        self.observe = observe
        self.noise_variance = noise_variance
        self.distortion = distortion
        self.utility = utility

    def fit(self, X: ArrayLike, Y: ArrayLike) -> GaussianTradeoff:
        """Estimate mean and covariance from rows, and solve.

        Parameters
        ----------
        X : array (rows, k), sensitive
        Y : array (rows, n), useful

        Raises
        ------
        ValueError
            As `from_covariance`, and where the rows do not match or are not finite.
        """
        x, y = _columns("X", X), _columns("Y", Y)
        if len(x) != len(y) or len(x) < 2:
            raise ValueError(f"X and Y must have the same rows, 2 or more: {len(x)} and {len(y)}")
        both = np.hstack([x, y])
        with np.errstate(over="ignore", invalid="ignore"):
            covariance = np.atleast_2d(np.cov(both, rowvar=False))
        variance = covariance.diagonal()
        lost = (variance < _LEAST_VARIANCE) & (both != both[0]).any(0)
        if lost.any() or not np.isfinite(covariance).all():
            raise ValueError("columns must vary by 1e-140 to 1e140: measure them in another unit")
        self.from_covariance(covariance, x.shape[1], mean=both.mean(0))
        self.columns_ = self._observed_names(names_of(X), names_of(Y))
        left = y - self.mean_useful_ - (both @ self._seen.T - self.mean_observed_) @ self.matrix_.T
        self.distortion_error_ = float((left**2).sum(1).std() / len(left) ** 0.5)
        return self

    def from_covariance(
        self, covariance: ArrayLike, n_sensitive: int, mean: ArrayLike | None = None
    ) -> GaussianTradeoff:
        """Solve for a law that is known.

        Parameters
        ----------
        covariance : array (k + n, k + n)
            Of (X, Y), the sensitive coordinates first.
        n_sensitive : int
            k.
        mean : array (k + n,), optional
            Zero if left out.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the matrix is no covariance, if no release has so small a distortion, or for
            mutual information as utility.
        """
        _validate.one_of("utility", self.utility, ("squared-error", "information"))
        if self.utility == "information":
            raise ValueError(_NO_INFORMATION_UTILITY)
        joint = covariance_of(covariance)
        k = _whole("n_sensitive", n_sensitive, 1, len(joint) - 1)
        observed = self._observed(len(joint), k)
        self._model = law_of(joint, k, observed, self._noise())
        center = np.zeros(len(joint)) if mean is None else _validate.vector("mean", mean)
        if len(center) != len(joint):
            raise ValueError(f"mean must have {len(joint)} entries, got {len(center)}")
        self.mean_useful_, self.mean_observed_ = center[k:], observed @ center
        self._learn_columns(None, len(observed))
        self._seen, self.distortion_error_ = observed, 0.0
        self.least_distortion_ = self._model.least_distortion
        if self.distortion is None:
            raise ValueError("distortion must be given: the largest E|Y - Z|^2 of the release")
        self._set(_solve(self._model, _validate.nonnegative("distortion", self.distortion)))
        return self

    def transform(self, W: ArrayLike, *, seed: Any = None) -> Any:
        """Release rows of what is observed.

        Parameters
        ----------
        W : array (rows, m)
            Rows of Y for ``observe="useful"``, of (X, Y) for ``"full"``; after `fit` on frames,
            a frame's columns meet by name.
        seed : int, 32 bytes, numpy Generator or None

        Returns
        -------
        array (rows, n), in the unit of Y; a frame after ``set_output(transform="pandas")``
        """
        self._check_fitted()
        rows = _columns("W", self._in_order("W", W), len(self.mean_observed_))
        rng = numpy_generator(seed)
        inner, kept, outer = self._parts
        told = np.ascontiguousarray(rows - self.mean_observed_) @ inner  # the same from any layout
        # The noise is in before the map to Y, so that what that map rounds tells of nothing else:
        # in a direction without noise the sum of two maps has the last bits of W.
        drawn = kept * told + np.sqrt(1 - kept**2) * rng.standard_normal(told.shape)
        return self._framed(self.mean_useful_ + (kept * drawn) @ outer.T, W)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """released0, released1, ..."""
        self._check_fitted()
        return np.array([f"released{i}" for i in range(len(self.matrix_))], dtype=object)

    def curve(
        self, distortions: Sequence[float] | Array | None = None, *, points: int = 33
    ) -> TradeoffCurve:
        """The least leakage at many distortions, each started from its neighbour.

        Parameters
        ----------
        distortions : sequence of float, optional
            By default ``points`` of them, from the least to the variance of Y.
        """
        self._check_fitted()
        model = self._model
        if distortions is None:
            low, high = model.least_distortion, model.total
            budgets = np.linspace(low + 0.01 * (high - low), high, points)
        else:
            budgets = _validate.vector("distortions", np.asarray(distortions, dtype=float))
        leakage, gap = np.empty(len(budgets)), np.empty(len(budgets))
        warm = None
        for i in np.argsort(-budgets):
            found = _solve(model, float(budgets[i]), warm)
            leakage[i], gap[i] = found.leakage, found.gap
            warm = found.warm if found.warm is not None else warm
        return TradeoffCurve(budgets, leakage, gap)

    def _observed_names(self, x: Names | None, y: Names | None) -> Names | None:
        """Of the columns of W, where they have a name each."""
        if not isinstance(self.observe, str) or y is None:
            return None
        if self.observe == "useful":
            return y
        return None if x is None or set(x) & set(y) else x + y

    def _observed(self, size: int, k: int) -> Array:
        if isinstance(self.observe, str):
            _validate.one_of("observe", self.observe, ("useful", "full"))
            return np.eye(size)[k:] if self.observe == "useful" else np.eye(size)
        matrix = np.atleast_2d(np.asarray(self.observe, dtype=np.float64))
        if matrix.ndim != 2 or matrix.shape[1] != size or not np.isfinite(matrix).all():
            raise ValueError(f"observe must be a finite matrix of {size} columns, (X, Y) in order")
        return matrix

    def _noise(self) -> float:
        return _validate.nonnegative("noise_variance", self.noise_variance)

    def _set(self, solution: maxdet.Solution) -> None:
        model, share = self._model, solution.share
        values, basis = np.linalg.eigh(share)
        values = np.clip(values, 0.0, 1.0)
        self.matrix_ = model.useful @ share @ model.whiten.T
        self._parts = model.whiten @ basis, np.sqrt(values), model.useful @ basis
        self._noise_root = model.useful @ basis * np.sqrt(values * (1 - values))
        self.noise_covariance_ = self._noise_root @ self._noise_root.T
        self.leakage_, self.gap_ = solution.leakage, solution.gap
        known = float(np.vdot(model.useful @ share, model.useful))
        self.distortion_ = max(0.0, model.total - known)
        self.guarantee_ = MutualInformation(
            self.leakage_, self.gap_, "the Gaussian law of this covariance"
        )


def gaussian_bottleneck(correlations: ArrayLike, rate: float) -> tuple[float, Array]:
    """The most I(Y; Z) for I(X; Z) = rate, where the release sees X (the information bottleneck).

    Parameters
    ----------
    correlations : array (n,)
        Canonical correlations of X and Y, each in [0, 1).
    rate : float, nats

    Returns
    -------
    relevance : float, nats
    rates : array (n,), nats
        I(X_i; Z_i) of each canonical pair; they sum to ``rate``.

    Source: Chechik, Globerson, Tishby & Weiss 2005:
    e^{2 I_i} = rho_i^2 (1 - b) / (b (1 - rho_i^2)) where that is above 1.
    """
    rho2 = _validate.vector("correlations", correlations) ** 2
    budget = _validate.nonnegative("rate", rate)
    if (rho2 >= 1).any():
        raise ValueError("correlations must lie in [0, 1): at 1 the relevance is not bounded")
    if budget == 0 or not rho2.any():
        return 0.0, np.zeros(len(rho2))
    kept = rho2 > 0
    level = np.where(kept, np.log(np.where(kept, rho2, 1.0)) - np.log1p(-rho2), -np.inf)

    def spent(odds: float) -> float:
        return float(0.5 * np.maximum(0.0, level - odds).sum()) - budget

    top = float(level.max())
    rates = 0.5 * np.maximum(
        0.0, level - scipy.optimize.brentq(spent, top - 2 * budget - 1, top, xtol=1e-15)
    )
    return float(-0.5 * np.log1p(rho2 * np.expm1(-2 * rates)).sum()), rates


def _solve(law: Law, distortion: float, warm: Array | None = None) -> maxdet.Solution:
    rows = law.useful.shape[1]
    if distortion >= law.total:
        return maxdet.Solution(np.zeros((rows, rows)), 0.0, 0.0)
    tau = (law.total - distortion) / law.known if law.known > 0 else np.inf
    if tau > 1 + 1e-12:
        raise ValueError(
            f"distortion must be at least {law.least_distortion:.9g}, "
            f"what the best estimate of Y from what is observed leaves; got {distortion:.9g}"
        )
    if tau >= 1 - _ROUNDING * rows:
        share = span(law.useful)
        leakage = law.leakage(share)
        gap = law.rounding(share, 0.0) if np.isfinite(leakage) else 0.0
        return maxdet.Solution(share, leakage, gap)
    gram = law.useful.T @ law.useful / law.known
    free = np.eye(rows) - _correlated(law.sensitive)
    silent = float(np.vdot(free, gram))
    if silent >= tau:  # what is independent of X is enough
        return maxdet.Solution(free * (tau / silent), 0.0, 0.0)
    problem = maxdet.Problem(law.sensitive, gram, tau)
    found = []
    if tau > 1 - _NEAR:
        found.append(maxdet.shrunk(problem, span(law.useful)))
    if tau <= 1 - _LAST:
        found.append(maxdet.solve(problem, warm=warm))
    best = min(found, key=lambda solution: solution.gap)
    gap = best.gap + law.rounding(best.share, best.price / law.known)
    return best._replace(leakage=law.leakage(best.share), gap=gap)


def _correlated(regression: Array) -> Array:
    """The projector onto what tells of X."""
    _, values, rows = np.linalg.svd(regression, full_matrices=False)
    kept = rows[values > _NO_CORRELATION]
    return kept.T @ kept


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if not isinstance(value, (int, np.integer)) or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}, got {value!r}")
    return int(value)


def _columns(name: str, value: ArrayLike, d: int | None = None) -> Array:
    array = _validate.numbers(name, value)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or (d is not None and array.shape[1] != d):
        wanted = "(rows, columns)" if d is None else f"(rows, {d})"
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array
