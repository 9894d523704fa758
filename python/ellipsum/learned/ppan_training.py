"""How a privacy network is trained: least leakage under a limit on the *mean* distortion.

The limit is kept by an augmented Lagrangian: a fixed penalty overshoots, and a penalty on each
sample, as printed in (8) of the paper, aims at another problem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from . import mechanisms, networks
from .adversary import Adversary, LabelAdversary, linear_information

__all__ = ["Limit", "Problem", "sensitive_columns", "train_affine", "train_network"]

Array = NDArray[np.float64]

_PENALTY, _MULTIPLIER_STEP, _MULTIPLIER_EVERY = 5.0, 0.3, 5
_ANSWERS = 2  # adversary steps to each step of the mechanism
_LABEL_ANSWERS = 4  # with two, a fresh attacker reads digits .73 right in place of .45
_ADVERSARY_RATE = 3e-3
_LAST = 0.1  # share of the steps with all rows in each batch
_START_GAIN, _START_NOISE = 0.7, 0.3


class Limit:
    """mean(cost) <= most, as an augmented Lagrangian."""

    def __init__(self, most: float) -> None:
        self.most, self.penalty, self.price = most, _PENALTY / max(abs(most), 1e-3), 0.0
        self._count = 0

    def term(self, cost: torch.Tensor) -> torch.Tensor:
        """What is added to the objective."""
        pull = (self.price + self.penalty * (cost - self.most)).clamp(min=0)
        self._count += 1
        if self._count % _MULTIPLIER_EVERY == 0:
            excess = float(cost.detach()) - self.most
            self.price = max(0.0, self.price + _MULTIPLIER_STEP * self.penalty * excess)
        return (pull**2 - self.price**2) / (2 * self.penalty)


class Problem(NamedTuple):
    """Standardised rows on the device, and what is wanted."""

    sensitive: torch.Tensor  # X, white
    useful: torch.Tensor  # Y, one scale for all columns
    observed: torch.Tensor  # W
    limit: float  # of the mean cost; for information: minus what is wanted
    information: bool  # whether the cost is -I(Y; Z)
    cost: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None  # of (y, z), by row
    discriminator: float
    seeds: torch.Generator
    labels: torch.Tensor | None = None  # class numbers, where X is labels


def sensitive_columns(
    kind: str, X: ArrayLike, n: int, device: Any
) -> tuple[Array, torch.Tensor | None]:
    """Columns of X; of labels, one for each class but the last, and their class numbers."""
    if kind == "numbers":
        return networks.finite_rows("X", X), None
    classes, which = networks.class_numbers("X", X, n)
    return np.eye(len(classes))[which][:, :-1], torch.as_tensor(which).to(device)


def start(problem: Problem, size: int) -> mechanisms.AffineMechanism:
    """0.7 times the best estimate of Y, or for information random directions of W."""
    w, y = problem.observed, problem.useful
    if problem.information:
        gain = networks.normal(problem.seeds, size, w.shape[1], like=w) / w.shape[1] ** 0.5
    else:
        gain = torch.linalg.lstsq(w, y).solution.T
    return mechanisms.AffineMechanism(_START_GAIN * gain, _START_NOISE)


def train_affine(
    problem: Problem, size: int, steps: int, rate: float, progress: bool
) -> mechanisms.AffineMechanism:
    """The affine mechanism. Expectations over its seed are taken in closed form: it needs the
    moments of the rows alone, and neither batches nor a network."""
    made = start(problem, size)
    x, y, w = problem.sensitive, problem.useful, problem.observed
    joint = torch.cat([x, y, w], 1)
    joint = joint - joint.mean(0)
    moments = joint.T @ joint / len(joint)
    limit = Limit(problem.limit)
    adam, cosine = networks.optimizer([made.gain, made.noise], rate, steps)
    sizes = (x.shape[1], y.shape[1])
    for _ in networks.steps_shown(steps, progress, "affine mechanism"):
        leakage, cost = affine_values(moments, sizes, made, problem.information)
        loss = leakage + limit.term(cost)
        adam.zero_grad()
        loss.backward()
        adam.step()
        cosine.step()
    with torch.no_grad():
        made.offset.copy_(y.mean(0) - made.gain @ w.mean(0) if not problem.information else 0)
        if not problem.information:
            _meet(moments, sizes, made, problem.limit)
    return made


def affine_values(
    moments: torch.Tensor,
    sizes: tuple[int, int],
    made: mechanisms.AffineMechanism,
    information: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """I(X; Z) and the cost of an affine mechanism under Gaussian (X, Y, W) of these moments."""
    k, n = sizes
    gain = made.gain
    of_w = moments[:, k + n :]
    cross = of_w @ gain.T
    spread = gain @ cross[k + n :] + made.noise @ made.noise.T
    leakage = linear_information(_joint(moments[:k, :k], cross[:k], spread), k)
    own = moments[k : k + n, k : k + n]
    if information:
        return leakage, -linear_information(_joint(own, cross[k : k + n], spread), n)
    return leakage, own.trace() - 2 * cross[k : k + n].trace() + spread.trace()


def _joint(own: torch.Tensor, cross: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.cat([own, cross], 1), torch.cat([cross.T, spread], 1)], 0)


def _meet(
    moments: torch.Tensor, sizes: tuple[int, int], made: mechanisms.AffineMechanism, limit: float
) -> None:
    """Scale the noise so that the cost is the limit, if the map alone leaves room for that."""
    _, cost = affine_values(moments, sizes, made, False)
    added = (made.noise**2).sum()
    room = limit - (cost - added)
    if room > 0.25 * added:  # never a large change
        made.noise.mul_(torch.sqrt(room / added).clamp(0.5, 2.0))


def train_network(
    problem: Problem,
    made: mechanisms.Mechanism,
    *,
    steps: int,
    batch_size: int,
    rate: float,
    progress: bool,
) -> None:
    """Mechanism against adversary in turns, the adversary first."""
    players = _Players(problem, made, steps)
    limit = Limit(problem.limit)
    adam, cosine = networks.optimizer(made.parameters(), rate, steps)
    n = len(problem.sensitive)
    batches = networks.minibatches(n, batch_size, problem.seeds)
    everyone = torch.arange(n)
    for step in networks.steps_shown(steps, progress, "privacy network"):
        last = step >= (1 - _LAST) * steps
        for _ in range(players.answers):
            players.answer(everyone if last else next(batches))
        rows = everyone if last else next(batches)
        leakage, cost, seen = players.values(rows)
        loss = leakage + limit.term(cost) + seen
        adam.zero_grad()
        loss.backward()
        adam.step()
        cosine.step()


class _Players:
    """Adversary, helper (for information as utility) and discriminator against a mechanism."""

    def __init__(self, problem: Problem, made: mechanisms.Mechanism, steps: int) -> None:
        self.problem, self.made = problem, made
        size, like = len(made.offset), problem.sensitive
        sides = [problem.sensitive] + ([problem.useful] if problem.information else [])
        options = (problem.seeds, like.dtype, like.device)
        self.adversaries: list[Adversary | LabelAdversary] = [
            Adversary(size, side.shape[1], *options) for side in sides
        ]
        self.known, self.answers = like, _ANSWERS
        if problem.labels is not None:
            self.known, self.answers = problem.labels, _LABEL_ANSWERS
            self.adversaries[0] = LabelAdversary(size, int(problem.labels.max()) + 1, *options)
        weights = [w for one in self.adversaries for w in one.net.parameters()]
        self.adam, self.cosine = networks.optimizer(
            weights, _ADVERSARY_RATE, self.answers * steps, 0.1
        )
        self.judge = None
        if problem.discriminator > 0:
            net = networks.mlp([size, 32, 32, 1], problem.seeds, dtype=like.dtype)
            self.judge = net.to(like.device)
            self.judge_adam, _ = networks.optimizer(self.judge.parameters(), _ADVERSARY_RATE, steps)

    def _release(self, rows: torch.Tensor) -> Any:
        p = self.problem
        z, weight = self.made(p.observed[rows], p.seeds)
        return self.known[rows], p.useful[rows], z, weight

    def answer(self, rows: torch.Tensor) -> None:
        """One step of everybody but the mechanism."""
        with torch.no_grad():
            x, y, z, weight = self._release(rows)
        known = [one.information(side, z, weight) for one, side in self._sides(x, y)]
        self.adam.zero_grad()
        (-sum(known)).backward()  # type: ignore[operator]
        self.adam.step()
        self.cosine.step()
        if self.judge is not None:
            real, made = self.judge(y)[:, 0], self.judge(z)[..., 0]
            loss = 0.5 * ((real - 1) ** 2).mean() + 0.5 * (weight * made**2).sum(0).mean()
            self.judge_adam.zero_grad()
            loss.backward()
            self.judge_adam.step()

    def values(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Leakage, cost, and what the discriminator adds."""
        x, y, z, weight = self._release(rows)
        known = [one.information(side, z, weight) for one, side in self._sides(x, y)]
        if self.problem.information:
            cost = -known[1]
        elif self.problem.cost is not None:
            cost = (weight * torch.stack([self.problem.cost(y, part) for part in z])).sum(0).mean()
        else:
            cost = (weight * ((z - y) ** 2).sum(-1)).sum(0).mean()
        seen = torch.zeros((), dtype=z.dtype, device=z.device)
        if self.judge is not None:
            foul = (weight * (self.judge(z)[..., 0] - 1) ** 2).sum(0).mean()
            seen = self.problem.discriminator * 0.5 * foul
        return known[0], cost, seen

    def _sides(
        self, x: torch.Tensor, y: torch.Tensor
    ) -> Sequence[tuple[Adversary | LabelAdversary, torch.Tensor]]:
        return list(zip(self.adversaries, (x, y), strict=False))
