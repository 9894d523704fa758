"""Release mechanisms of a privacy network: from what is observed and a seed to the release.

Each gives samples z of shape (components, n, k) and their weights (components, n), which sum to 1
over the components: the gradient of an expectation over components is then exact, as in
Tripathy, Wang & Ishwar, (29). All contain an affine map, which is the whole optimum for Gaussian
data; the network starts at zero on top of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from . import networks

__all__ = ["MECHANISMS", "AffineMechanism", "Mechanism", "build"]

_LOG_SCALE = 3.0  # log standard deviations stay within this of the affine map's


class AffineMechanism(nn.Module):  # type: ignore[misc]
    """z = K w + c + B u, u standard normal."""

    def __init__(self, start: torch.Tensor, noise: float) -> None:
        super().__init__()
        k = len(start)
        eye = torch.eye(k, dtype=start.dtype, device=start.device)
        self.gain = nn.Parameter(start.clone())
        self.noise = nn.Parameter(noise * eye)
        self.offset = nn.Parameter(torch.zeros(k, dtype=start.dtype, device=start.device))

    def forward(
        self, w: torch.Tensor, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        u = networks.normal(generator, len(w), len(self.offset), like=w)
        z = w @ self.gain.T + self.offset + u @ self.noise.T
        return z[None], torch.ones(1, len(w), dtype=w.dtype, device=w.device)


class UniversalMechanism(AffineMechanism):
    """z = affine + net(w, u): any law that a network can draw."""

    def __init__(
        self,
        affine: AffineMechanism,
        hidden: Sequence[int],
        generator: torch.Generator,
        components: int,
    ) -> None:
        super().__init__(affine.gain.detach(), 0.0)
        self.load_state_dict(affine.state_dict())
        k, m = self.gain.shape
        net = networks.mlp([m + k, *hidden, k], generator, dtype=self.gain.dtype, zero_last=True)
        self.net = net.to(self.gain.device)

    def forward(
        self, w: torch.Tensor, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        u = networks.normal(generator, len(w), len(self.offset), like=w)
        z = w @ self.gain.T + self.offset + u @ self.noise.T + self.net(torch.cat([w, u], 1))
        return z[None], torch.ones(1, len(w), dtype=w.dtype, device=w.device)


class MixtureMechanism(AffineMechanism):
    """z given w: a mixture of Gaussians whose weights, means and scales a network sets.

    One component is the conditional Gaussian mechanism.
    """

    def __init__(
        self,
        affine: AffineMechanism,
        hidden: Sequence[int],
        generator: torch.Generator,
        components: int,
    ) -> None:
        super().__init__(affine.gain.detach(), 0.0)
        self.load_state_dict(affine.state_dict())
        k, m = self.gain.shape
        self.components = components
        outputs = components * (1 + 2 * k)
        net = networks.mlp([m, *hidden, outputs], generator, dtype=w_dtype(self), zero_last=True)
        self.net = net.to(self.gain.device)
        apart = torch.randn(components, 1, k, generator=generator, dtype=w_dtype(self))
        apart = apart - apart.mean(0)
        self.apart = nn.Parameter(0.1 * apart.to(self.gain.device))

    def forward(
        self, w: torch.Tensor, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        n, k, c = len(w), len(self.offset), self.components
        out = self.net(w).reshape(n, c, 1 + 2 * k).permute(1, 0, 2)
        weight = torch.softmax(out[..., 0], 0)
        moved, scale = out[..., 1 : 1 + k], _LOG_SCALE * torch.tanh(out[..., 1 + k :])
        u = networks.normal(generator, c, n, k, like=w) * torch.exp(scale)
        middle = w @ self.gain.T + self.offset
        return middle + self.apart + moved + u @ self.noise.T, weight


def w_dtype(mechanism: AffineMechanism) -> torch.dtype:
    """The dtype of a mechanism's numbers."""
    return mechanism.gain.dtype


Mechanism = AffineMechanism
MECHANISMS = ("affine", "gaussian", "mixture", "universal")


def build(
    name: str,
    affine: AffineMechanism,
    hidden: Sequence[int],
    components: int,
    generator: torch.Generator,
) -> Mechanism:
    """The mechanism of that name, its network at zero: it starts as the affine one."""
    hidden = networks.sizes_of("hidden", hidden)
    if name == "affine":
        return affine
    if name == "universal":
        return UniversalMechanism(affine, hidden, generator, components)
    return MixtureMechanism(affine, hidden, generator, 1 if name == "gaussian" else components)


def draw(mechanism: Mechanism, w: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """One release of each row, (n, k): a component is drawn by its weight."""
    z, weight = mechanism(w, generator)
    if len(z) == 1:
        return z[0]
    u = torch.rand(len(w), generator=generator, dtype=torch.float64).to(weight)
    which = (weight.cumsum(0) < u).sum(0).clamp(max=len(z) - 1)
    return z[which, torch.arange(len(w), device=z.device)]
