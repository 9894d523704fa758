"""A lower bound of I(X; Z) by a reader of X that was trained on other rows than it is judged on.

For every q, I(X; Z) >= h(X) + E log q(X | Z) (Barber & Agakov). q is a linear Gaussian posterior
and a small network on top, both of one half of the rows; a fifth of that half says how far to trust
them: the ridge of the first, and when the second stops. So few rows give a low bound, never a high
one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.linalg import solve_triangular

from . import networks
from .adversary import Adversary
from .descent import Adam

__all__ = ["held_out_information"]

Array = NDArray[np.float64]

_STEPS, _BATCH = 600, 2000
_CHECKED = 25  # steps between two looks at the rows that choose
_RATE, _LAST_RATE = 3e-3, 0.02  # of Adam, and the share of it that is left at the end
_RIDGES = (1e-9, 1e-2, 0.1, 1.0, 1e9)  # of white columns; the last one tells nothing
_DOUBT = 1e-3  # share of q that does not look at z: no row can cost more than 7 nats for it
_LEAST = 1e-9  # of the variance of a column, what is left at least


class _Linear(NamedTuple):
    """x given z: normal around a linear map."""

    center_x: torch.Tensor
    center_z: torch.Tensor
    gain: torch.Tensor
    root: torch.Tensor  # of the covariance around it

    def read(self, x: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """log q(x | z) of each row but for a constant, and what is left of x, white."""
        left = x - self.center_x - (z - self.center_z) @ self.gain.T
        white = solve_triangular(self.root, left.T, upper=False).T
        return -0.5 * (white**2).sum(1) - self.root.diagonal().log().sum(), white


def _covariance(x: torch.Tensor) -> torch.Tensor:
    return x.T @ x / len(x) + _LEAST * torch.eye(x.shape[1], dtype=x.dtype)


def _fitted(x: torch.Tensor, z: torch.Tensor, ridge: float) -> _Linear:
    centers = x.mean(0), z.mean(0)
    own, seen = x - centers[0], z - centers[1]
    gain = torch.linalg.solve(
        seen.T @ seen / len(z) + ridge * torch.eye(z.shape[1], dtype=z.dtype), seen.T @ own / len(z)
    ).T
    return _Linear(*centers, gain, torch.linalg.cholesky(_covariance(own - seen @ gain.T)))


def held_out_information(x: Array, z: Array, seed: object) -> tuple[float, float]:
    """Mean and standard error of log q(x | z) - log q(x) on the rows held out, nats.

    q(x) is the normal law of the very rows held out, than which none is larger there.

    Parameters
    ----------
    x, z : arrays (n, k), (n, r), no column of them constant
    seed : int, 32 bytes or numpy Generator

    Returns
    -------
    mean, standard error : float

    Source: Barber & Agakov 2003.
    """
    generator = networks.generator_of(seed)
    xs, zs = (torch.as_tensor((part - part.mean(0)) / part.std(0)) for part in (x, z))
    order = torch.randperm(len(xs), generator=generator)
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    choose, fit = train[: len(train) // 5], train[len(train) // 5 :]
    tried = [_fitted(xs[fit], zs[fit], ridge) for ridge in _RIDGES]
    scores = [float(one.read(xs[choose], zs[choose])[0].mean()) for one in tried]
    linear = tried[int(np.argmax(scores))]
    net = _network(linear, xs, zs, fit, choose, generator)
    with torch.no_grad():
        known, left = linear.read(xs[test], zs[test])
        known = known + net.gain(left[None], zs[test][None], _even(test))
        without, _ = tried[-1].read(xs[test], zs[test])
        known = torch.logaddexp(known + math.log1p(-_DOUBT), without + math.log(_DOUBT))
        alone, _ = _fitted(xs[test], zs[test], _RIDGES[-1]).read(xs[test], zs[test])
        each = known - alone
    return float(each.mean()), float(each.std() / math.sqrt(len(each)))


def _even(rows: torch.Tensor) -> torch.Tensor:
    return torch.ones(1, len(rows), dtype=torch.float64)


def _network(
    linear: _Linear,
    xs: torch.Tensor,
    zs: torch.Tensor,
    fit: torch.Tensor,
    choose: torch.Tensor,
    seeds: torch.Generator,
) -> Adversary:
    """What adds to the linear reader on rows that it was not trained on: at first, nothing."""
    one = Adversary(zs.shape[1], xs.shape[1], seeds, torch.float32, "cpu")
    adam = Adam(one.net.parameters(), _RATE, _STEPS, _LAST_RATE)
    # trained in single precision, which is half of the time, and judged in double
    (left, seen), (rest, met) = (
        (linear.read(xs[rows], zs[rows])[1].float(), zs[rows].float()) for rows in (fit, choose)
    )
    best, kept = 0.0, {name: value.clone() for name, value in one.net.state_dict().items()}
    batches = networks.minibatches(len(fit), _BATCH, seeds)
    for step in range(1, _STEPS + 1):
        rows = next(batches)
        loss = -one.gain(left[rows][None], seen[rows][None], _even(rows).float()).mean()
        adam.descend(loss)
        if step % _CHECKED == 0 or step == _STEPS:
            with torch.no_grad():
                found = float(one.gain(rest[None], met[None], _even(choose).float()).mean())
            if found > best:
                best = found
                kept = {name: value.clone() for name, value in one.net.state_dict().items()}
    one.net.load_state_dict(kept)
    one.net.double()
    return one
