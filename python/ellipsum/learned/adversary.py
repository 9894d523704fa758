"""What a release tells of an attribute: an exact linear Gaussian part and a small network.

For every q, I(X; Z) >= h(X) + E log q(X | Z) (Barber & Agakov): a lower bound, with equality at the
posterior. The best linear Gaussian q is solved exactly and differentiably in every step; the
network learns only what is left, in coordinates that make it white. A value from training is
never a guarantee.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from . import networks

__all__ = ["Adversary", "LabelAdversary", "linear_posterior"]

_RIDGE = 1e-9
_HIDDEN = (32, 32)
_LABEL_HIDDEN = (128, 128)
_LOG_SCALE = 3.0


def linear_posterior(
    x: torch.Tensor, z: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Least squares of x on weighted samples z (c, n, k).

    Returns
    -------
    information : I of the Gaussian law with these moments, nats
    left : (c, n, size), what is left of x, whitened
    """
    share = weight / weight.sum()
    center_x = x - x.mean(0)
    center_z = z - (share[..., None] * z).sum((0, 1))
    cov_z = torch.einsum("cn,cni,cnj->ij", share, center_z, center_z)
    cross = torch.einsum("cn,ni,cnj->ij", share, center_x, center_z)
    cov_x = center_x.T @ center_x / len(x)
    ridge = _RIDGE * torch.eye(len(cov_z), dtype=z.dtype, device=z.device)
    gain = torch.linalg.solve(cov_z + ridge * (1 + cov_z.trace()), cross.T).T
    rest = cov_x - gain @ cross.T
    rest = rest + _RIDGE * torch.eye(len(rest), dtype=z.dtype, device=z.device)
    root = torch.linalg.cholesky(0.5 * (rest + rest.T))
    information = 0.5 * torch.logdet(cov_x) - root.diagonal().log().sum()
    left = center_x - center_z @ gain.T
    flat = torch.linalg.solve_triangular(root, left.reshape(-1, left.shape[-1]).T, upper=False).T
    return information, flat.reshape(left.shape)


class Adversary:
    """The network part: a Gaussian posterior of the whitened residue."""

    def __init__(
        self, k: int, size: int, generator: torch.Generator, dtype: torch.dtype, device: object
    ) -> None:
        net = networks.mlp([k, *_HIDDEN, 2 * size], generator, dtype=dtype, zero_last=True)
        self.net: nn.Module = net.to(device)

    def gain(self, left: torch.Tensor, z: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """E log q - E log of the linear posterior, nats: what the network adds, (c, n) each."""
        mean, scale = self.net(z).chunk(2, dim=-1)
        scale = _LOG_SCALE * torch.tanh(scale)
        better = 0.5 * (left**2).sum(-1)
        worse = (scale + 0.5 * ((left - mean) * torch.exp(-scale)) ** 2).sum(-1)
        return (weight * (better - worse)).sum(0)

    def information(self, x: torch.Tensor, z: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """The lower bound of I(X; Z) of a batch, differentiable."""
        linear, left = linear_posterior(x, z, weight)
        return linear + self.gain(left, z, weight).mean()


class LabelAdversary:
    """A classifier: I(X; Z) >= H(X) - E[cross-entropy], for labels X."""

    def __init__(
        self, k: int, classes: int, generator: torch.Generator, dtype: torch.dtype, device: object
    ) -> None:
        net = networks.mlp([k, *_LABEL_HIDDEN, classes], generator, dtype=dtype, zero_last=True)
        self.net: nn.Module = net.to(device)

    def information(self, x: torch.Tensor, z: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """The lower bound of I(X; Z) of a batch: x (n,) class numbers, z (c, n, k)."""
        share = torch.bincount(x).to(z.dtype) / len(x)
        entropy = torch.special.entr(share).sum()
        logs = functional.log_softmax(self.net(z), -1)
        right = torch.gather(logs, -1, x.expand(len(z), -1)[..., None])[..., 0]
        return entropy + (weight * right).sum(0).mean()
