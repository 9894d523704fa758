"""Classifiers that answer a filter: one for each label, trained side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional

from . import networks

__all__ = ["Classifiers"]

_NEVER = -1e9  # the score of a class that a label does not have


class Classifiers:
    """A network of two layers of 48 for each label; each layer of all of them is one product.

    They share the rows and nothing else: as many products of matrices as labels would take as many
    times longer, most of it not spent on numbers.
    """

    def __init__(
        self,
        d: int,
        labels: Sequence[torch.Tensor],
        generator: torch.Generator,
        widths: Sequence[int] = (48, 48),
    ) -> None:
        counts = [int(label.max()) + 1 for label in labels]
        nets = [networks.mlp([d, *widths, count], generator) for count in counts]
        self.parameters: list[torch.Tensor] = []
        for layer in range(0, 2 * len(widths) + 1, 2):
            last = layer == 2 * len(widths)
            weights, biases = [], []
            for net, count in zip(nets, counts, strict=True):
                more = (0, max(counts) - count) if last else (0, 0)
                weights.append(functional.pad(net[layer].weight.detach().T, more))
                biases.append(functional.pad(net[layer].bias.detach(), more, value=_NEVER))
            self.parameters += [torch.stack(weights), torch.stack(biases)[:, None]]
        device = labels[0].device
        self.parameters = [p.to(device).requires_grad_(True) for p in self.parameters]

    def losses(self, seen: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy of each label, from rows (n, d) and class numbers (labels, n)."""
        scores = seen.expand(len(labels), -1, -1)
        for place in range(0, len(self.parameters), 2):
            scores = functional.elu(scores) if place else scores
            weight, bias = self.parameters[place : place + 2]
            scores = torch.baddbmm(bias, scores, weight)
        right = torch.gather(scores, 2, labels[:, :, None])[..., 0]
        return (torch.logsumexp(scores, 2) - right).mean(1)
