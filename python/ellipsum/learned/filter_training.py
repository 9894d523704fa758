"""How a linear filter z + A w + v_y is trained, on whitened latents."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..tradeoff import filter_mu, scale_to_budget
from . import networks
from .classifiers import Classifiers
from .descent import Adam

__all__ = ["Budget", "FilterData", "train_adversarial", "train_kernel"]

Array = NDArray[np.float64]
Scaling = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

_CLASSIFIER_STEPS = 3
_CLASSIFIER_RATE = 3e-3
_REFERENCES = 512  # latents that the kernel posterior is taken over


class FilterData(NamedTuple):
    """Whitened latents and class numbers, on the device."""

    latents: torch.Tensor
    private: torch.Tensor
    useful: torch.Tensor | None
    shifted_by: torch.Tensor  # the label that v belongs to: private, or all 0

    def rows(self, which: torch.Tensor) -> FilterData:
        """Some of the rows."""
        useful = None if self.useful is None else self.useful[which]
        return FilterData(self.latents[which], self.private[which], useful, self.shifted_by[which])


class Budget:
    """Scales a filter to its distortion, or to its mu, and lets gradients through the scale.

    With c(s) the cost at scale s and s* its root, the scale that autograd sees is
    s* - (c(s*) - b) / c'(s*), the second term zero with the right gradient (implicit functions).
    """

    def __init__(
        self,
        divergence: str,
        amount: float,
        order: float,
        priors: Array,
        labels: bool,
    ) -> None:
        self.divergence, self.amount, self.order = divergence, amount, order
        self.priors, self.labels = priors, labels
        self._scale: float | None = None

    def exact(self, noise: Array, shifts: Array) -> tuple[Array, Array]:
        """The filter at its budget, in the whitened metric, to rounding."""
        moved = shifts if self.labels else None
        a, v, self._scale = scale_to_budget(
            noise,
            moved,
            np.eye(len(noise)),
            self.amount,
            divergence=self.divergence,
            order=self.order,
            priors=self.priors if self.labels else None,
        )
        return a, v if self.labels else np.zeros_like(shifts)

    def scale(self, noise: torch.Tensor, shifts: torch.Tensor) -> torch.Tensor:
        """The scale that meets the budget, differentiable in noise and shifts."""
        if self.divergence == "realised":
            return torch.sqrt(self.amount / self._cost(noise, shifts, torch.ones(())))
        target = self._target()
        start = torch.tensor(self._scale or 0.0, dtype=noise.dtype)
        for attempt in range(2):
            if attempt or self._scale is None:
                self.exact(networks.as_numpy(noise), networks.as_numpy(shifts))
                start = torch.tensor(self._scale or 1.0, dtype=noise.dtype)
            start.requires_grad_(True)
            missing = self._cost(noise, shifts, start) - target
            (slope,) = torch.autograd.grad(missing, start, retain_graph=True)
            moved = start.detach() - missing / slope.detach()
            close = abs(float(missing.detach())) < 0.05 * target
            if close and math.isfinite(float(slope)) and float(moved.detach()) > 0:
                break
        self._scale = float(moved.detach())
        return moved

    def _target(self) -> float:
        return math.log1p(2 * self.amount) if self.divergence == "chi2" else self.amount

    def _cost(self, noise: torch.Tensor, shifts: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """As `scale_to_budget` counts, in whitened coordinates; chi2 as its Renyi divergence."""
        scale = scale.to(noise)
        added = scale**2 * (noise @ noise.T)
        moved = scale * shifts  # (d, labels)
        share = torch.as_tensor(self.priors, dtype=noise.dtype, device=noise.device)
        eye = torch.eye(len(noise), dtype=noise.dtype, device=noise.device)
        if self.divergence == "realised":
            return 0.5 * (added.trace() + (share * (moved**2).sum(0)).sum())
        if self.divergence == "kl":
            squares = (share * (moved**2).sum(0)).sum()
            return 0.5 * (added.trace() - torch.logdet(eye + added) + squares)
        if self.divergence == "reverse-kl":
            released = eye + added
            left = torch.linalg.solve(released, moved)
            squares = (share * (moved * left).sum(0)).sum()
            base = torch.linalg.inv(released).trace() - len(noise)
            return 0.5 * (torch.logdet(released) + base + squares)
        order = 2.0 if self.divergence == "chi2" else self.order
        mixed = eye - (order - 1) * added
        squares = (moved * torch.linalg.solve(mixed, moved)).sum(0)
        logs = torch.logdet(mixed) + (order - 1) * torch.logdet(eye + added)
        each = 0.5 * order * squares - logs / (2 * (order - 1))
        return torch.logsumexp(torch.log(share) + (order - 1) * each, 0) / (order - 1)


class LocalBudget:
    """Scales the noise of a filter so that the mu of its integers is the one asked for."""

    def __init__(self, mu: float, radius: float, unwhiten: Array, labels: bool) -> None:
        d = len(unwhiten)
        # what rounding to the grid adds to the radius (`RecordClip.bound2`), and to mu
        grown = radius * (1 + (math.sqrt(d) / 2 + 2) * 2.0**-23)
        self.mu, self.radius, self.labels = mu * (1 - 2.0**-30), grown, labels
        self.unwhiten = unwhiten

    def exact(self, noise: Array, shifts: Array) -> tuple[Array, Array]:
        """mu is inversely proportional to the scale of the noise, the shifts kept."""
        a = self.unwhiten @ noise
        v = self.unwhiten @ shifts if self.labels else None
        return noise * (filter_mu(a, v, self.radius) / self.mu), shifts

    def scale(self, noise: torch.Tensor, shifts: torch.Tensor) -> torch.Tensor:
        """By the bound (2R + max ||v_i - v_j||) / s_min(A), exact without labels."""
        back = torch.as_tensor(self.unwhiten, dtype=noise.dtype, device=noise.device)
        least = torch.linalg.svdvals(back @ noise)[-1]
        reach = torch.as_tensor(2 * self.radius, dtype=noise.dtype, device=noise.device)
        if self.labels:
            moved = (back @ shifts).T
            reach = reach + torch.sqrt(((moved[:, None] - moved[None]) ** 2).sum(2).max() + 1e-12)
        return reach / (self.mu * least)


def _applied(
    filter_: tuple[torch.Tensor, torch.Tensor], budget: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    noise, shifts = filter_
    scale = budget.scale(noise, shifts)
    return noise * scale, shifts if isinstance(budget, LocalBudget) else shifts * scale


def released(
    data: FilterData, noise: torch.Tensor, shifts: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """Filtered latents, with fresh noise."""
    drawn = networks.normal(generator, len(data.latents), noise.shape[1], like=data.latents)
    return data.latents + drawn @ noise.T + shifts.T[data.shifted_by]


def start_of(d: int, labels: int, generator: torch.Generator, device: Any) -> tuple[Any, Any]:
    """Nearly isotropic noise and small shifts, as leaves."""
    noise = torch.eye(d) + 0.1 * torch.randn(d, d, generator=generator)
    shifts = 0.1 * torch.randn(d, labels, generator=generator)
    return noise.to(device).requires_grad_(True), shifts.to(device).requires_grad_(True)


def train_adversarial(
    data: FilterData,
    budget: Any,
    labels: int,
    weight: float,
    *,
    steps: int,
    batch_size: int,
    rate: float,
    generator: torch.Generator,
    progress: bool,
) -> tuple[Array, Array]:
    """Game (1): the filter against classifiers that answer it, three steps to each of its own.

    max over filters of [least loss of the private label - weight * least loss of the useful one].
    """
    d, device = data.latents.shape[1], data.latents.device
    noise, shifts = start_of(d, labels, generator, device)
    moving = [noise, shifts] if labels > 1 else [noise]
    adam = Adam(moving, rate, steps)
    targets = [data.private] + ([] if data.useful is None else [data.useful])
    nets, known = Classifiers(d, targets, generator), torch.stack(targets)
    answers = Adam(nets.parameters, _CLASSIFIER_RATE, steps, least=0.1)
    batches = networks.minibatches(len(data.latents), batch_size, generator)
    still = shifts if labels > 1 else torch.zeros_like(shifts)
    for _ in networks.steps_shown(steps, progress, "filter"):
        a, v = _applied((noise, still), budget)
        for _ in range(_CLASSIFIER_STEPS):
            rows = next(batches)
            seen = released(data.rows(rows), a.detach(), v.detach(), generator)
            answers.descend(nets.losses(seen, known[:, rows]).sum(), cool=False)
        rows = next(batches)
        losses = nets.losses(released(data.rows(rows), a, v, generator), known[:, rows])
        loss = -losses[0] + (weight * losses[1] if len(losses) > 1 else 0.0)
        adam.descend(loss)
        answers.cool()
    return budget.exact(networks.as_numpy(noise), networks.as_numpy(still))


def train_kernel(
    data: FilterData,
    budget: Any,
    labels: int,
    weight: float,
    *,
    steps: int,
    batch_size: int,
    rate: float,
    generator: torch.Generator,
    progress: bool,
) -> tuple[Array, Array]:
    """No network: the posterior of a release under the empirical law, which is known exactly.

    Given its record the release is Gaussian, so p(label | release) is a ratio of sums of
    Gaussian densities over reference records (each left out of its own sum).
    """
    noise, shifts = start_of(data.latents.shape[1], labels, generator, data.latents.device)
    moving = [noise, shifts] if labels > 1 else [noise]
    adam = Adam(moving, rate, steps)
    batches = networks.minibatches(len(data.latents), batch_size, generator)
    references = networks.minibatches(len(data.latents), _REFERENCES, generator)
    still = shifts if labels > 1 else torch.zeros_like(shifts)
    for _ in networks.steps_shown(steps, progress, "filter"):
        a, v = _applied((noise, still), budget)
        rows, others = next(batches), next(references)
        losses = _kernel_losses(data.rows(rows), data.rows(others), rows, others, a, v, generator)
        loss = -losses[0] + (weight * losses[1] if len(losses) > 1 else 0.0)
        adam.descend(loss)
    return budget.exact(networks.as_numpy(noise), networks.as_numpy(still))


def _kernel_losses(
    data: FilterData,
    known: FilterData,
    rows: torch.Tensor,
    others: torch.Tensor,
    noise: torch.Tensor,
    shifts: torch.Tensor,
    generator: torch.Generator,
) -> list[torch.Tensor]:
    seen = released(data, noise, shifts, generator)
    d = seen.shape[1]
    root = torch.linalg.cholesky(noise @ noise.T + 1e-6 * torch.eye(d).to(noise))
    white = torch.linalg.solve_triangular(root, seen.T, upper=False).T
    moved = known.latents + shifts.T[known.shifted_by]
    centers = torch.linalg.solve_triangular(root, moved.T, upper=False).T
    logs = -0.5 * torch.cdist(white, centers) ** 2
    logs = logs.masked_fill((rows[:, None] == others[None]).to(logs.device), -1e9)
    losses = []
    for own, theirs in ((data.private, known.private), (data.useful, known.useful)):
        if own is not None and theirs is not None:
            same = own[:, None] == theirs[None]
            right = torch.logsumexp(logs.masked_fill(~same, -1e9), 1)
            losses.append((torch.logsumexp(logs, 1) - right).clamp(max=20.0).mean())
    return losses
