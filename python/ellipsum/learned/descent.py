"""How the learned releases descend: PyTorch's Adam on a schedule."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch.optim.adam import adam

from .. import _validate

__all__ = ["Adam"]

_ADAM: dict[str, Any] = {
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 0.0,
    "amsgrad": False,
    "maximize": False,
    "fused": True,
}


class Adam:
    """Adam, with a cosine schedule of ``steps`` calls of `cool` down to ``least`` of the rate.

    Gradients are taken of these parameters alone: those of an opponent's networks are never
    computed.

    Parameters
    ----------
    parameters : iterable of tensors that require gradients
    rate : float, at the start
    steps : int
    least : float, a share of the rate
    """

    def __init__(
        self, parameters: Iterable[torch.Tensor], rate: float, steps: int, least: float = 0.01
    ) -> None:
        self._parts = list(parameters)
        rate = _validate.positive("learning_rate", rate)
        self._first, self._second = ([torch.zeros_like(p) for p in self._parts] for _ in range(2))
        self._counts = [torch.zeros((), device=p.device) for p in self._parts]
        self._rate, self._least, self._steps = rate, least, max(1, steps)
        self._cooled = 0

    @property
    def rate(self) -> float:
        """At this point of the schedule."""
        turned = math.cos(math.pi * min(1.0, self._cooled / self._steps))
        return self._rate * (self._least + (1 - self._least) * (1 + turned) / 2)

    def descend(self, loss: torch.Tensor, *, cool: bool = True) -> None:
        """One step down."""
        for part in self._parts:
            part.grad = None
        # Not autograd.grad: the fused step takes a gradient to lie as its parameter does.
        loss.backward(inputs=self._parts)  # type: ignore[no-untyped-call]
        used = [j for j, part in enumerate(self._parts) if part.grad is not None]
        # Not the class around it, whose first use imports PyTorch's compiler: 1.6 s.
        lists = self._parts, self._first, self._second, self._counts
        parts, first, second, counts = ([one[j] for j in used] for one in lists)
        with torch.no_grad():
            slopes = [part.grad for part in parts]
            adam(parts, slopes, first, second, [], counts, lr=self.rate, **_ADAM)  # type: ignore[arg-type]
        if cool:
            self.cool()

    def cool(self) -> None:
        """One step along the schedule."""
        self._cooled += 1
