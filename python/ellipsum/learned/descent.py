"""Optimisers of the learned releases: Adam on one flat vector, and L-BFGS.

PyTorch's own take an import of two seconds at their first step, and for networks of a few thousand
weights longer for each step than the gradient does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from scipy import optimize

__all__ = ["Adam", "quasi_newton"]

_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8


class Adam:
    """Adam, with a cosine schedule of `cool` calls down to ``least`` of the rate.

    The parameters become views of one vector, so that a step is a handful of operations. Gradients
    are taken of these parameters alone: those of an opponent's networks are never computed.
    """

    def __init__(
        self, parameters: Iterable[torch.Tensor], rate: float, steps: int, least: float = 0.01
    ) -> None:
        self._parts = list(parameters)
        self._whole = torch.cat([part.detach().reshape(-1) for part in self._parts])
        sizes = [part.numel() for part in self._parts]
        for part, piece in zip(self._parts, self._whole.split(sizes), strict=True):
            part.data = piece.view(part.shape)
        self._mean, self._square = torch.zeros_like(self._whole), torch.zeros_like(self._whole)
        self._most, self._least, self._steps = rate, rate * least, max(1, steps)
        self._moved = self._cooled = 0

    @property
    def rate(self) -> float:
        """At this point of the schedule."""
        turned = math.cos(math.pi * min(1.0, self._cooled / self._steps))
        return self._least + (self._most - self._least) * (1 + turned) / 2

    def descend(self, loss: torch.Tensor, *, cool: bool = True) -> None:
        """One step down."""
        slopes = torch.autograd.grad(loss, self._parts, allow_unused=True)
        with torch.no_grad():
            slope = torch.cat(
                [
                    (torch.zeros_like(part) if found is None else found).reshape(-1)
                    for part, found in zip(self._parts, slopes, strict=True)
                ]
            )
            self._moved += 1
            self._mean.lerp_(slope, 1 - _FIRST)
            self._square.mul_(_SECOND).addcmul_(slope, slope, value=1 - _SECOND)
            scale = math.sqrt(1 - _SECOND**self._moved)
            size = self._square.sqrt().div_(scale).add_(_TINY)
            self._whole.addcdiv_(self._mean, size, value=-self.rate / (1 - _FIRST**self._moved))
        if cool:
            self.cool()

    def cool(self) -> None:
        """One step along the schedule."""
        self._cooled += 1


def quasi_newton(
    parameters: Sequence[torch.Tensor], value: Callable[[], torch.Tensor], steps: int
) -> None:
    """So many steps of L-BFGS on a smooth function without noise."""
    shapes = [part.shape for part in parameters]
    ends = np.cumsum([part.numel() for part in parameters])[:-1]

    def put(x: np.ndarray) -> None:
        with torch.no_grad():
            for part, shape, piece in zip(parameters, shapes, np.split(x, ends), strict=True):
                part.copy_(torch.as_tensor(piece).reshape(shape))

    def flat(parts: Iterable[torch.Tensor]) -> np.ndarray:
        return torch.cat([part.detach().reshape(-1) for part in parts]).to("cpu").double().numpy()

    def found(x: np.ndarray) -> tuple[float, np.ndarray]:
        put(x)
        at = value()
        return float(at.detach()), flat(torch.autograd.grad(at, list(parameters)))

    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": steps, "ftol": 0.0, "gtol": 1e-9}
    put(optimize.minimize(found, flat(parameters), jac=True, method="L-BFGS-B", options=options).x)
