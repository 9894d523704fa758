"""The privacy network for finite alphabets: a softmax table, trained on the exact expectation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..tradeoff import DiscreteTradeoff
from . import networks
from .descent import Adam
from .limit import Limit

__all__ = ["channel_values", "reader_of", "train_channel"]

Array = NDArray[np.float64]

_TINY = 1e-300


def train_channel(
    p_xw: Array,
    cost: Array,
    useful: Array | None,
    *,
    limit: float | None,
    price: float | None,
    steps: int,
    rate: float,
    generator: torch.Generator,
    progress: bool,
) -> Array:
    """P(z | w) of least I(X; Z) + price E d, or with E d <= limit.

    The adversary of a finite law is the posterior itself, so that no second network is needed:
    the sum over z is exact, as in (6) of the paper. With ``useful`` (the law of Y and W) the cost
    is -I(Y; Z).
    """
    logits = 0.1 * torch.randn(cost.shape, generator=generator, dtype=torch.float64)
    logits = (logits - torch.as_tensor(cost) / max(float(np.ptp(cost)), 1e-300)).requires_grad_(
        True
    )
    tables = [torch.as_tensor(t) for t in (p_xw, cost)]
    other = None if useful is None else torch.as_tensor(useful)
    keeper = None if limit is None else Limit(limit)
    adam = Adam([logits], rate, steps, least=1e-3)
    for _ in networks.steps_shown(steps, progress, "channel"):
        channel = torch.softmax(logits, 1)
        leakage, spent = _values(channel, tables[0], tables[1], other)
        loss = leakage + (keeper.term(spent) if keeper is not None else (price or 0.0) * spent)
        adam.descend(loss)
    return networks.as_numpy(torch.softmax(logits, 1))


def channel_values(
    channel: Array, p_xw: Array, cost: Array, useful: Array | None
) -> tuple[float, float]:
    """I(X; Z) and the cost of a channel."""
    other = None if useful is None else torch.as_tensor(useful)
    found = _values(torch.as_tensor(channel), torch.as_tensor(p_xw), torch.as_tensor(cost), other)
    return float(found[0]), float(found[1])


def _values(
    channel: torch.Tensor, p_xw: torch.Tensor, cost: torch.Tensor, useful: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    leakage = _information(p_xw @ channel)
    if useful is not None:
        return leakage, -_information(useful @ channel)
    return leakage, (p_xw.sum(0)[:, None] * channel * cost).sum()


def _information(joint: torch.Tensor) -> torch.Tensor:
    apart = joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True)
    logs = torch.log(joint.clamp(min=_TINY)) - torch.log(apart.clamp(min=_TINY))
    return (joint * logs).sum()


def reader_of(channel: Array, letters: Any, guarantee: Any) -> DiscreteTradeoff:
    """The same table in the exact solver's object, which knows how to draw."""
    made = DiscreteTradeoff(multiplier=0.0).set_output(transform="default")
    made.channel_, made.guarantee_ = channel, guarantee
    if letters is not None:
        made.observed_values_ = letters
    return made
