"""Labels read off latents by a small network: what a filter may shift by and nobody has to tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from . import networks
from .descent import Adam

__all__ = ["LabelReader", "cells_of", "cross_read"]

Array = NDArray[np.float64]

_WIDTHS = (48, 48)
_STEPS, _BATCH, _RATE = 400, 256, 3e-3
_JITTER = 0.1  # standard deviations: keeps the borders between cells away from single records


def cells_of(*labels: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """One number for each combination of class numbers that occurs."""
    given = np.stack([label for label in labels if label is not None], axis=1)
    return np.unique(given, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


class LabelReader:
    """From latents (n, d) to cell numbers 0 ... cells - 1; a function of each row alone.

    Parameters
    ----------
    whiten : array (d, d)
    cells : int
    device : str
    """

    def __init__(self, whiten: Array, cells: int, device: Any) -> None:
        self.whiten, self.cells = whiten, cells
        self._device = device
        generator = networks.generator_of(0)
        self._net = networks.mlp([len(whiten), *_WIDTHS, cells], generator).to(device)
        self._center = np.zeros(len(whiten))

    def fit(
        self, latents: Array, cells: NDArray[np.int64], generator: torch.Generator
    ) -> LabelReader:
        """Train on rows whose cells are known."""
        self._center = latents.mean(0)
        white = (latents - self._center) @ self.whiten.T
        data = networks.tensor_of(white, self._device, torch.float32)
        wanted = torch.as_tensor(cells).to(self._device)
        adam = Adam(self._net.parameters(), _RATE, _STEPS)
        batches = networks.minibatches(len(data), _BATCH, generator)
        for _ in range(_STEPS):
            rows = next(batches)
            noise = networks.normal(generator, len(rows), data.shape[1], like=data)
            loss = functional.cross_entropy(self._net(data[rows] + _JITTER * noise), wanted[rows])
            adam.descend(loss)
        return self

    def read(self, latents: Array) -> NDArray[np.int64]:
        """A cell for every row, whatever is in it: no error or warning depends on a value."""
        with np.errstate(all="ignore"), torch.no_grad():
            white = ((latents - self._center) @ self.whiten.T).astype(np.float32)
            scores = networks.as_numpy(self._net(torch.as_tensor(white).to(self._device)))
        return np.nan_to_num(scores).argmax(1).astype(np.int64)

    def state(self) -> dict[str, np.ndarray]:
        """Arrays by name."""
        weights = {f"net/{n}": w.detach().cpu().numpy() for n, w in self._net.state_dict().items()}
        return weights | {"center": self._center, "whiten": self.whiten}

    @classmethod
    def of_state(cls, arrays: dict[str, np.ndarray], cells: int, device: Any) -> LabelReader:
        """What `state` wrote."""
        made = cls(arrays["whiten"], cells, device)
        made._center = arrays["center"]
        weights = {n.removeprefix("net/"): a for n, a in arrays.items() if n.startswith("net/")}
        networks.fill(made._net, weights)
        return made


def cross_read(
    latents: Array,
    cells: NDArray[np.int64],
    whiten: Array,
    folds: int,
    device: Any,
    generator: torch.Generator,
) -> NDArray[np.int64]:
    """The cell of each row by a reader that was trained on the other folds."""
    found = np.empty_like(cells)
    fold = torch.randperm(len(latents), generator=generator).numpy() % folds
    for held in (fold == number for number in range(min(folds, len(latents)))):
        reader = LabelReader(whiten, int(cells.max()) + 1, device)
        found[held] = reader.fit(latents[~held], cells[~held], generator).read(latents[held])
    return found
