"""The release of a plan of several steps: a mean or a sum, its noise, what was spent on what."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from .. import _validate
from ..column_names import printable
from ..guarantee import GaussianGuarantee, Neighbors
from ..release import Release, finite_or_none, rows_text
from ..sum_release import interval_columns, interval_dict
from .domain import Domain
from .interval import INTERVALS, averaged, half_widths
from .outcome import Outcome
from .plan import Plan
from .pooling import FEWEST, located

__all__ = ["AdaptiveRelease"]

Array = NDArray[np.float64]

_NAMED = 8  # columns in a caveat

#: How many noise deviations a coordinate may be drawn to the others: less than its interval's.
_DRAWN = 1.9

#: Of each kind: what the value is without an estimate, and where cells are missing.
_MEANING = {
    "mean": ("the domain's centre", "the value is the mean of the present ones"),
    "sum": (
        "the domain's centre times the number of rows",
        "each counts as the mean of the present ones",
    ),
    "center": ("the domain's centre", "the value is the centre of the present ones"),
    "scale": ("zero and says nothing", "the value is the scale of the present ones"),
}


class AdaptiveRelease(Release):
    """A differentially private mean or sum from a plan of several steps.

    **Guarantees.** Everything in it, the transcript of every step included, is a function of
    noisy integers and public parameters. The value never leaves the domain (times n for a
    sum): it is projected onto it, which is post-processing (claim adaptive-4).

    It is the mean of the present cells of each coordinate, rows outside the box moved into it
    (coordinate by coordinate; of a ball, into the box around it). ``sd`` and ``covariance``
    speak of the *added noise* of the weighted average of all steps; :meth:`confidence_interval`
    of the mean of the rows, or of the population that they were drawn from.

    The value of eight coordinates and more is drawn to where these lie in the box together, as far
    as their noise hides how they differ (empirical Bayes; docs/adaptive.md): a coordinate by no
    more than 1.9 times its noise (limited translation, Efron & Morris 1972), of which what
    contradicts a round is a part; it may lie outside intervals of a level below 0.95. That of
    three to seven is drawn towards the domain's centre by
    1 - (d - 2)/d ||sd||^2/||value - centre||^2 (James & Stein 1961), a coordinate by no more than
    its own ``sd``.

    Parameters
    ----------
    kind : ``"sum"`` or ``"mean"``
    outcome : Outcome, of all steps
    domain : Domain, the box or ball
    guarantee : GaussianGuarantee
    caveats : tuple of str; those of what was found are added
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
        value = self._factor * domain.project(domain.back(_drawn(outcome, domain)))
        super().__init__(kind, value, guarantee, caveats, n=outcome.count)

    @property
    def covers(self) -> str:
        """What the printed intervals count: the mean of the rows, with noise and clips."""
        return "the rows"

    @property
    def plan(self) -> Plan:
        """The plan that was carried out."""
        return self._outcome.plan

    @property
    def caveats(self) -> tuple[str, ...]:
        """Why it is not private, if so, and what the value cannot say."""
        return (*self._caveats, *self.remarks(self._kind))

    @property
    def spread(self) -> Array:
        """Standard deviation of the rows along each axis, as far as the noise lets it be seen.

        It is what shaped the regions: from mean absolute deviations, right for Gaussian rows,
        and no smaller than the noise; data units. With ``covariance`` given, along its
        eigenvectors, and in the unit of ``error``.
        """
        unit = self._domain.unit if self._domain.basis is None else 1.0
        return np.asarray(unit * self._outcome.spread)

    @property
    def present_share(self) -> Array:
        """Share of the rows that have a finite number in each coordinate, as far as seen."""
        return self._outcome.cells.present

    @property
    def transcript(self) -> tuple[NDArray[np.object_], ...]:
        """The noisy integers of each step, in order: the bits that the guarantee speaks of."""
        return tuple(self._outcome.integers)

    @property
    def sd(self) -> Array:
        """Noise standard deviation of each coordinate, shape (d,), data units.

        Infinite where the plan was infeasible. For a sum under ``add-remove`` with what the noisy
        count adds, to first order.
        """
        if self.plan.infeasible:
            return np.full(self.value.size, np.inf)
        rotated = self._domain.rotated(self._outcome.sd)
        return np.asarray(np.hypot(self._factor * rotated, self._counted()))

    @property
    def clip_loss(self) -> Array:
        """How far the clips may have moved each coordinate, shape (d,), data units.

        The part of the 95 % interval of the rows that allows for it: a bound on what the last
        region lost, from the noisy excess of the rows beyond it, 1.96 deviations up, as if all rows
        lost it in the same direction; of rows whose excess is all noise it is mostly that
        noise. Infinite where the plan was infeasible.
        """
        if self.plan.infeasible:
            return np.full(self.value.size, np.inf)
        return np.abs(self._factor) * half_widths(self._outcome, self._domain, "rows", 0.95)[2]

    @property
    def covariance(self) -> Array:
        """Noise covariance, shape (d, d), data units squared."""
        if self.plan.infeasible:
            return np.diag(np.full(self.value.size, np.inf))
        own = self._domain.covariance((self._factor * self._outcome.sd) ** 2)
        return np.asarray(own + np.outer(self._counted(), self._counted()))

    def _counted(self) -> Array:
        """What one standard deviation of the count moves: a sum, by its mean."""
        moved = self._outcome.count_sd if self._kind == "sum" else 0.0
        return np.asarray(moved * self._raw)

    def confidence_interval(self, level: float = 0.95, of: str = "rows") -> tuple[Array, Array]:
        """Return an interval for each coordinate, cut at the box.

        It assumes of the rows' distances t what docs/adaptive.md says: beyond the clips the share
        of rows further out falls as t^-2 or faster, as t^-1.25 where rows are seen there. So rows
        very far out with nothing between, fewer than some 20/mu, may not be covered; 4.3/mu over
        the root of ``excess``'s share, where the plan gives it less than 3/64. Where a
        coordinate's spread does not stand out, nothing is assumed. Of a ball and few rows (a plan
        with one round), rows outside count as on the ball. An infeasible plan has the domain as
        its interval.

        Parameters
        ----------
        level : float in (0, 1), for each coordinate by itself
        of : ``"noise"``, ``"rows"`` or ``"population"``
            What is covered: the added noise alone; the mean of the rows themselves (noise,
            clipping, missing cells); or the mean of the law that they were drawn from (sampling
            too).

        Returns
        -------
        (lower, upper) : arrays (d,), data units
        """
        _validate.open_unit("level", level)
        _validate.one_of("of", of, INTERVALS)
        ends = self._ends()
        if self.plan.infeasible:
            return ends
        if of == "noise":
            point, half = (
                self._factor * self._raw,
                float(scipy.special.ndtri((1 + level) / 2)) * self.sd,
            )
        else:
            mean, width, _ = half_widths(self._outcome, self._domain, of, level)
            counted = float(scipy.special.ndtri((3 + level) / 4)) * self._counted()
            point, half = self._factor * mean, np.hypot(self._factor * width, counted)
        return np.clip(point - half, *ends), np.clip(point + half, *ends)

    def _ends(self) -> tuple[Array, Array]:
        """The box of the domain, times n for a sum."""
        assert self._domain.box is not None
        ends = [self._factor * end for end in self._domain.box]
        return np.minimum(*ends), np.maximum(*ends)  # a noisy count may be negative

    def remarks(self, kind: str) -> tuple[str, ...]:
        """What to know of the estimate, where it is given out as a ``kind``."""
        nothing, present = _MEANING[kind]
        if self.plan.infeasible:
            return (f"no estimate: too few rows for this budget, so the value is {nothing}",)
        remarks = []
        missing = 1 - self._outcome.cells.present
        if self._domain.basis is None and (missing > 0).any():
            remarks.append(
                f"where cells are missing, {present} (noisy shares of cells: present_share)"
            )
        unseen = np.flatnonzero(self._outcome.cells.unseen()) if remarks else np.empty(0, int)
        if unseen.size:
            names = self.coordinates()
            which = ", ".join(printable(names[j]) for j in unseen[:_NAMED])
            more = f" and {unseen.size - _NAMED} more" if unseen.size > _NAMED else ""
            remarks.append(
                f"too few present cells in {unseen.size} of {missing.size} columns to be told "
                f"from none ({which}{more}): nothing is known of their values, whatever the noise "
                "sd says"
            )
        return tuple(remarks)

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
            "error_unit": (np.ones(self._value.size) * self._domain.unit).tolist(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values that JSON can hold."""
        found = {
            "sd": self.sd,
            "clip_loss": self.clip_loss,
            "spread": self.spread,
            "present_share": self.present_share,
        }
        plain = {name: finite_or_none(values) for name, values in found.items()}
        return super().to_dict() | {"caveats": list(self.caveats)} | plain | interval_dict(self)

    def __str__(self) -> str:
        return f"{super().__str__()}\n  {self.plan.summary()}"

    def _head(self) -> list[str]:
        return [*super()._head(), *(f"  {remark}" for remark in self.remarks(self._kind))]

    def _title(self) -> str:
        noisy = "" if Neighbors.of(self.neighbors).count_is_public else " (noisy count)"
        rows = rows_text(self.n, noisy=False, unit=self.guarantee.unit)
        return f"{self.kind}{rows}{noisy}, d = {self.value.size}"

    def _more_columns(self, shown: int) -> tuple[str, list[str]]:
        return interval_columns(self, shown, "the rows")


def _drawn(outcome: Outcome, domain: Domain) -> Array:
    """The offset drawn to where all coordinates lie, or to zero where these are few, as far as it
    does not stand out from its noise."""
    d, energy = outcome.offset.size, float(np.dot(outcome.offset, outcome.offset))
    if d < 3 or energy == 0 or outcome.plan.infeasible:
        return outcome.offset
    if d < FEWEST:
        away = -min(1.0, (d - 2) / d * float(np.sum(outcome.sd**2)) / energy) * outcome.offset
        return outcome.offset + _limited(away, outcome.sd, domain)
    mean, noise = averaged(outcome.rounds)
    return mean + _limited(located(mean, noise, domain)[0] - mean, _DRAWN * noise, domain)


def _limited(away: Array, most: Array, domain: Domain) -> Array:
    """A way along the axes that moves no coordinate further than its root mean square of ``most``:
    of axes that mix them, each within its own, many may move one coordinate."""
    if domain.basis is None:
        return np.clip(away, -most, most)
    limit = np.sqrt(domain.basis**2 @ most**2)
    return np.asarray(domain.basis.T @ np.clip(domain.basis @ away, -limit, limit))
