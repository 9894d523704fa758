"""The printed recipe of Tripathy, Wang & Ishwar for the scalar setting, as it stands.

ReLU networks of 5 nodes, uniform seeds, an adversary with a Gaussian posterior, 250 epochs of 8,000
samples in batches of 200, 5 adversary steps to each. The penalty is on the batch mean: per sample,
as printed, it aims at another problem and misses the distortion.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

BATCH, PENALTY = 200, 30.0


def train(rows: np.ndarray, distortion: float, epochs: int = 250, answers: int = 5, seed: int = 0):
    """A function from rows y and a seed to releases z."""
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 1)
    ).double()
    adversary = nn.Sequential(
        nn.Linear(1, 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 2)
    ).double()
    data = torch.as_tensor(rows)
    moves = torch.optim.Adam(net.parameters(), lr=1e-3)
    replies = torch.optim.Adam(adversary.parameters(), lr=1e-3)

    def release(y):
        return net(torch.cat([y, 2 * torch.rand_like(y) - 1], 1))

    def log_posterior(x, z):
        mean, log_variance = adversary(z).chunk(2, 1)
        return (-0.5 * log_variance - 0.5 * (x - mean) ** 2 * torch.exp(-log_variance)).mean()

    for _ in range(epochs):
        order = torch.randperm(len(data))
        for start in range(0, len(data), BATCH):
            part = data[order[start : start + BATCH]]
            x, y = part[:, :1], part[:, 1:]
            for _ in range(answers):
                with torch.no_grad():
                    z = release(y)
                replies.zero_grad()
                (-log_posterior(x, z)).backward()
                replies.step()
            z = release(y)
            excess = (((z - y) ** 2).mean() - distortion).clamp(min=0)
            moves.zero_grad()
            (log_posterior(x, z) + PENALTY * excess**2).backward()
            moves.step()

    def released(y: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return release(torch.as_tensor(y)).numpy()

    return released
