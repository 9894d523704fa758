"""What an exact tradeoff promises: mutual information under a stated law, an average over people.

It is not differential privacy: it bounds what the release says of the sensitive attribute on
average, if the law is the one stated. So there is no epsilon, no delta and no accounting event.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..guarantee import Guarantee

__all__ = ["EstimatedInformation", "LinearErasure", "MutualInformation"]


@dataclass(frozen=True)
class MutualInformation(Guarantee):
    """I(sensitive; release) under a law that is taken as known.

    **Guarantees.** Under ``model`` the release has this leakage, and no release of the same
    distortion has less than ``leakage - gap``. Nothing is said of one person's worst case, nor
    of another law.

    Parameters
    ----------
    leakage : float, nats
    gap : float, nats
        How far above the least possible leakage it is at most.
    model : str
        The law, in words.
    """

    leakage: float
    gap: float
    model: str

    kind = "mutual-information-exact"  # type: ignore[misc]

    def __str__(self) -> str:
        return (
            f"I(sensitive; release) = {self.leakage:.6g} nats (within {self.gap:.1g} of the least "
            f"possible) under {self.model}; an average over people, not differential privacy"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"kind": self.kind, "private": self.is_private, **asdict(self)}


@dataclass(frozen=True)
class LinearErasure(Guarantee):
    """No linear attacker has a smaller log-loss than a constant, on the rows that were fitted.

    **Guarantees.** The covariance of the release and the labels is zero on the rows fitted, so
    that no linear predictor has a smaller convex loss (log-loss, squared error) than a constant
    (Belrose et al. 2023, Theorem 3.1). Its accuracy, which is no convex loss, can still be above
    a constant's. Of other attackers nothing is said: measure them with
    :func:`ellipsum.tradeoff.audit`.

    Parameters
    ----------
    rank : int
        Directions that were erased.
    """

    rank: int

    kind = "erasure-linear"  # type: ignore[misc]

    def __str__(self) -> str:
        return (
            f"{self.rank} direction(s) erased: no linear attacker has a smaller log-loss than a "
            "constant on the rows fitted; other attackers may read the label in full, and nothing "
            "here is differential privacy"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"kind": self.kind, "private": self.is_private, **asdict(self)}


@dataclass(frozen=True)
class EstimatedInformation(Guarantee):
    """What the attackers tried have learned of the label: a lower bound, measured.

    **Guarantees.** None: a better attacker may learn more. In expectation over the rows held out,
    I(label; release) is at least what each attacker has; ``lower`` is the most of them, and 0,
    which is above it by the sampling.

    Parameters
    ----------
    lower : float, nats
        Entropy of the label less the held-out log-loss of the best attacker.
    standard_error : float, nats
    attackers : tuple of str
    n_test : int
        Records held out.
    """

    lower: float
    standard_error: float
    attackers: tuple[str, ...]
    n_test: int

    kind = "mutual-information-estimated"  # type: ignore[misc]

    def __str__(self) -> str:
        return (
            f"I(label; release) >= {self.lower:.3g} nats (standard error "
            f"{self.standard_error:.2g}) by {', '.join(self.attackers)} on {self.n_test} records "
            "held out; a better attacker may learn more; not differential privacy"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"kind": self.kind, "private": self.is_private, **asdict(self)}
