"""The release of a plan of several steps: a mean or a sum, its noise, what was spent on what."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .. import _validate
from ..guarantee import GaussianGuarantee, Neighbors
from ..release import Release
from ..sum_release import interval_columns, interval_dict
from .domain import Domain
from .plan import Plan
from .rounds import Outcome

__all__ = ["AdaptiveRelease"]

Array = NDArray[np.float64]


class AdaptiveRelease(Release):
    """A differentially private mean or sum from a plan of several steps.

    **Guarantees.** Everything in it, the transcript of every step included, is a function of
    noisy integers and public parameters. The value never leaves the domain (times n for a
    sum): it is projected onto it, which is post-processing (claim adaptive-4).

    The noise levels and intervals speak of the *added noise* of the weighted average of all
    steps: not of sampling, or of the shrinking below, and not of what the clips took away, which
    skewed rows lose in one direction: :attr:`clip_loss` says how much that may be.

    The value is drawn towards the domain's centre by 1 - (d - 2)/d ||sd||^2/||value - centre||^2
    (James & Stein 1961): nothing where the data speak, everything where only noise does.
    """

    def __init__(
        self,
        kind: str,
        outcome: Outcome,
        domain: Domain,
        guarantee: GaussianGuarantee,
        caveats: tuple[str, ...] = (),
    ) -> None:
        self._outcome, self._domain = outcome, domain
        self._factor = float(outcome.count) if kind == "sum" else 1.0
        self._raw = domain.back(outcome.offset)
        value = self._factor * domain.project(domain.back(_shrunk(outcome)))
        super().__init__(kind, value, guarantee, caveats, n=outcome.count)

    @property
    def plan(self) -> Plan:
        """The plan that was carried out."""
        return self._outcome.plan

    @property
    def spread(self) -> Array:
        """Standard deviation of the rows along each axis, as far as the noise lets it be seen.

        It is what shaped the regions: from mean absolute deviations, right for Gaussian rows,
        and no smaller than the noise. With ``covariance`` given, along its eigenvectors.
        """
        return self._outcome.spread

    @property
    def transcript(self) -> tuple[NDArray[np.object_], ...]:
        """The noisy integers of each step, in order: the bits that the guarantee speaks of."""
        return tuple(self._outcome.integers)

    @property
    def sd(self) -> Array:
        """Noise standard deviation of each coordinate, shape (d,), data units.

        For a sum under ``add-remove`` with what the noisy count adds, to first order.
        """
        basis, own = self._domain.basis, self._outcome.sd
        turned = own if basis is None else np.sqrt(basis**2 @ own**2)
        return np.asarray(np.hypot(self._factor * turned, self._counted()))

    @property
    def clip_loss(self) -> Array:
        """How far the clips may have moved each coordinate, shape (d,), data units.

        An estimate, not a bound: what the noisy histograms say was lost, as if all rows lost it
        in the same direction, and each coordinate all of it. Rows that lie evenly about their
        mean lose much less; of very skewed ones (log-normal) the most skewed coordinate was seen
        to lose up to twice as much.
        """
        basis, own = self._domain.basis, self._outcome.lost
        turned = own if basis is None else np.sqrt(basis**2 @ own**2)
        return np.asarray(self._factor * turned)

    @property
    def covariance(self) -> Array:
        """Noise covariance, shape (d, d), data units squared."""
        variance = (self._factor * self._outcome.sd) ** 2
        basis = self._domain.basis
        own = np.diag(variance) if basis is None else (basis * variance) @ basis.T
        return np.asarray(own + np.outer(self._counted(), self._counted()))

    def _counted(self) -> Array:
        """What one standard deviation of the count moves: a sum, by its mean."""
        moved = self._outcome.count_sd if self._kind == "sum" else 0.0
        return np.asarray(moved * self._raw)

    def confidence_interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return an interval for each coordinate, from the added noise, cut at the box.

        Parameters
        ----------
        level : float in (0, 1), for each coordinate by itself
        """
        z = float(ndtri(0.5 + _validate.open_unit("level", level) / 2))
        low, high = self._raw * self._factor - z * self.sd, self._raw * self._factor + z * self.sd
        if self._domain.lower is None or self._domain.upper is None:
            return low, high
        ends = self._factor * self._domain.lower, self._factor * self._domain.upper
        bottom, top = np.minimum(*ends), np.maximum(*ends)  # a noisy count may be negative
        return np.clip(low, bottom, top), np.clip(high, bottom, top)

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters, the plan's steps among them, as plain numbers and strings."""
        steps = [
            {"name": step.name, "share": float(step.share), "mu": self.plan.step_mu(step)}
            for step in self.plan.steps
        ]
        return {
            "shape": "adaptive",
            "d": self._value.size,
            "passes": self.plan.passes,
            "steps": steps,
            "clip_norms": [region.clip_norm for region in self._outcome.regions],
            "noise_multiplier": self.guarantee.noise_multiplier,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values that JSON can hold."""
        return super().to_dict() | interval_dict(self)

    def __str__(self) -> str:
        return f"{super().__str__()}\n  {self.plan.summary()}"

    def _head(self) -> list[str]:
        noisy = "" if Neighbors.of(self.neighbors).count_is_public else " (noisy count)"
        others = super()._head()[1:]
        return [f"private {self.kind} of {self.n} rows{noisy}, d = {self.value.size}", *others]

    def _more_columns(self, shown: int) -> tuple[str, list[str]]:
        return interval_columns(self, shown)


def _shrunk(outcome: Outcome) -> Array:
    """The offset drawn towards zero where it does not stand out from its noise."""
    d = outcome.offset.size
    energy = float(np.dot(outcome.offset, outcome.offset))
    if d < 3 or energy == 0:
        return outcome.offset
    return outcome.offset * max(0.0, 1 - (d - 2) / d * float(np.sum(outcome.sd**2)) / energy)
