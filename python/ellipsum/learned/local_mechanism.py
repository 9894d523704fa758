"""The proved part: latents clipped and rounded to integers, integer noise, and what that promises.

The released bits are a function of (integers + correctly rounded Gaussian noise), and the distance
of any two records' integers in the noise's own metric is bounded by `filter_mu` (claims
learned-1 to learned-3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate, calibrate, noise
from ..guarantee import UP, Guarantee, Neighbors, seed_caveats, shown_up
from ..noise_keys import KEY_BYTES, JobKeys, Use, root_key
from ..records.record_clip import RecordClip
from ..release import Release
from ..tradeoff import EstimatedInformation, filter_mu

__all__ = ["LatentRelease", "LocalGuarantee", "LocalMechanism", "together", "unmeasured"]

Array = NDArray[np.float64]

_MOST_SIGMA = 2.0**46  # with integers of 2^24 a release then stays exact in a double


@dataclass(frozen=True)
class LocalGuarantee(Guarantee):
    """Any two records, labels included, are mu-GDP apart: the local model, given the weights.

    **Guarantees.** For the released bits of *one* release of a record: what is returned never
    understates. Weights that were trained on the same people are a release of their own, which
    is not in it.

    Parameters
    ----------
    mu : float
    clip_radius : float
        Norm in ``metric`` that latents are clipped to.
    metric : str
    unit : str
    """

    mu: float
    clip_radius: float
    metric: str = "Euclidean"
    unit: str = "record"

    kind = "local-gdp"
    is_private = True
    neighbors = Neighbors.REPLACE

    @property
    def rho(self) -> float:
        """rho-zCDP: mu^2/2."""
        return self.mu**2 / 2 * UP

    @property
    def _multiplier(self) -> float:
        return 1 / self.mu * (1 - 2.0**-51)

    def epsilon(self, delta: float) -> float:
        """The least epsilon for ``delta`` (the analytic Gaussian bound)."""
        return calibrate.epsilon(self._multiplier, _validate.open_unit("delta", delta))

    def renyi(self, order: float) -> float:
        """Renyi divergence of this order between any two records, at most: order mu^2/2."""
        return _validate.positive("order", order) * self.rho

    @property
    def most_accurate(self) -> float:
        """The best accuracy of any attacker on any yes/no attribute at even odds: Phi(mu/2)."""
        return 0.5 * math.erfc(-self.mu / 2 / math.sqrt(2)) * UP

    def dp_event(self) -> Any:
        """This guarantee as a ``dp_accounting`` event; see :func:`ellipsum.calibrate.dp_event`."""
        return calibrate.dp_event(self._multiplier)

    def dp_relation(self) -> Any:
        """What an accountant must be set to; see :func:`ellipsum.calibrate.dp_relation`."""
        return calibrate.dp_relation(self.neighbors)

    def budget(self) -> dict[str, Any]:
        """rho, mu and the neighbours; epsilon and delta were not asked for."""
        return {
            "epsilon": None,
            "delta": None,
            "rho": self.rho,
            "mu": self.mu,
            "neighbors": self.neighbors.value,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        own = {"kind": self.kind, "private": self.is_private, "unit": self.unit}
        return own | {"clip_radius": self.clip_radius, "metric": self.metric} | self.budget()

    def __str__(self) -> str:
        return (
            f"any two records, labels included, are {shown_up(self.mu)}-GDP apart: latents are "
            f"clipped to radius {self.clip_radius:g} ({self.metric}) and the noise covers it. "
            "Given the weights: weights trained on the same people are not covered"
        )


def unmeasured() -> EstimatedInformation:
    """What is known of a release that no attacker has seen yet: nothing."""
    return EstimatedInformation(0.0, 0.0, ("no attacker yet",), 0)


def together(*guarantees: Guarantee) -> Guarantee:
    """What several releases of the same record promise together.

    Proofs add up: mu^2 = sum of mu_i^2 (Dong, Roth & Su 2022, Corollary 3.3). A proof and an
    estimate together are an estimate: a lower bound of what both tell, with no epsilon (claim
    learned-5).

    Raises
    ------
    ValueError
        For kinds of which nothing follows for the whole: exact information of each, linear
        erasure of each.
    """
    if not guarantees:
        raise ValueError("guarantees must not be empty")
    proofs = [g for g in guarantees if isinstance(g, LocalGuarantee)]
    measured = [g for g in guarantees if isinstance(g, EstimatedInformation)]
    if len(proofs) == len(guarantees):
        if len({g.unit for g in proofs}) > 1:
            raise ValueError("guarantees must be of one unit")
        mu = proofs[0].mu if len(proofs) == 1 else math.hypot(*(g.mu for g in proofs)) * UP
        radius = max(g.clip_radius for g in proofs)
        metrics = " and ".join(dict.fromkeys(g.metric for g in proofs))
        return LocalGuarantee(mu, radius, metrics, proofs[0].unit)
    if measured and len(proofs) + len(measured) == len(guarantees):
        best = max(measured, key=lambda g: g.lower)
        names = tuple(dict.fromkeys(name for g in measured for name in g.attackers))
        return EstimatedInformation(
            best.lower, best.standard_error, names, min(g.n_test for g in measured)
        )
    kinds = ", ".join(dict.fromkeys(g.kind for g in guarantees))
    raise ValueError(f"of these kinds nothing follows for all together: {kinds}; audit them")


class LatentRelease(Release):
    """Released latents and what is promised of each: see ``Release.guarantee``."""


class LocalMechanism:
    """y = basis' z clipped to a radius, plus a shift per label, plus Gaussian noise per axis.

    **Guarantees.** `release` is a function of integers + rounded Gaussian noise; the integers of
    any two records and labels are within ``mu`` of each other in the metric of that noise: the
    bits have the guarantee (claims learned-1, learned-2). No error, warning or shape depends on
    a value (claim learned-4): a row that is not finite counts as 0, an unknown label as the
    first.

    Parameters
    ----------
    into : array (k, d)
        From latents to the axes of the noise.
    radius : float
        Of the clip, in those axes.
    sigma : array (k,), above 0
        Noise standard deviation of each axis.
    shifts : array (k, labels) or None
        In those axes.
    back : array (d, k)
        From the axes to what is released: post-processing.
    """

    def __init__(
        self, into: Array, radius: float, sigma: Array, shifts: Array | None, back: Array
    ) -> None:
        self.clip = RecordClip(np.zeros(into.shape[1]), np.ascontiguousarray(into), radius)
        grid = self.clip.grid
        self.steps = np.ascontiguousarray(np.asarray(sigma, dtype=np.float64) / grid)
        if not (np.isfinite(self.steps).all() and self.steps.min() > 0):
            raise ValueError("the noise must cover every direction: mu would be infinite")
        if self.steps.max() > _MOST_SIGMA:
            raise ValueError("the noise is too large for the radius: sigma leaves exact doubles")
        moved = np.zeros((self.clip.k, 1)) if shifts is None else np.asarray(shifts)
        self.shifts = np.rint(moved / grid).T  # (labels, k), integers, public
        if np.abs(self.shifts).max() > _MOST_SIGMA:
            raise ValueError("the shifts are too large for the radius")
        self.back, self.radius = np.asarray(back), radius
        columns = self.shifts.T if len(self.shifts) > 1 else None
        #: In grid units: every number is what the release adds.
        self.mu = filter_mu(np.diag(self.steps), columns, self.clip.row_bound) * UP

    def release(self, rows: Array, which: NDArray[np.int64] | None, seed: Any) -> Array:
        """Rows (n, d) and class numbers (n,) to released rows (n, d)."""
        if not len(rows):
            return np.empty((0, len(self.back)))
        if isinstance(seed, np.random.Generator):
            seed = seed.bytes(KEY_BYTES)
        integers = self.clip.integers(rows)
        if len(self.shifts) > 1 and which is not None:
            integers += self.shifts[which].astype(np.int64)
        job = ("latents", self.steps, self.clip.grid, self.clip.matrix, self.shifts)
        keys = JobKeys(root_key(seed), *job, integers if seed is not None else None)
        drawn = noise.rounded_gaussian(integers.size, self.steps, key=keys.of(Use.LATENT))
        noisy = (integers + drawn.reshape(integers.shape)) * self.clip.grid
        return np.asarray(noisy @ self.back.T)

    @staticmethod
    def caveats(seed: Any) -> tuple[str, ...]:
        """Why a release is not private, if so."""
        return seed_caveats(seed)
