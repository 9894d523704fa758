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

from ..tradeoff.frames import names_of
from . import affine_training, mechanisms, networks
from .adversary import Adversary, LabelAdversary
from .descent import Adam
from .leakage import gaussian_information
from .limit import Limit

__all__ = [
    "Problem",
    "check_limit",
    "check_number",
    "check_rows",
    "cost_of",
    "mean_cost",
    "seen_names",
    "sensitive_columns",
    "train_affine",
    "train_network",
    "white_rows",
]

Array = NDArray[np.float64]

_ANSWERS = 2  # adversary steps to each step of the mechanism
_LABEL_ANSWERS = 4  # with two, a fresh attacker reads digits .73 right in place of .45
_ADVERSARY_RATE = 3e-3
_LAST = 0.1  # share of the steps with all rows in each batch
_START_GAIN, _START_NOISE = 0.7, 0.3


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
    unit: float = 1.0  # of the cost, in that of the data


def seen_names(observe: str, X: Any, Y: Any, W: Any) -> tuple[str, ...] | None:
    """Names of the columns of what the mechanism observes, where all of them have one."""
    if observe == "given":
        return names_of(W)
    x, y = names_of(X), names_of(Y)
    if observe == "useful" or y is None:
        return y
    return None if x is None else x + y


def sensitive_columns(
    kind: str, X: ArrayLike, n: int, device: Any
) -> tuple[Array, torch.Tensor | None]:
    """Columns of X; of labels, one for each class but the last, and their class numbers."""
    if kind == "numbers":
        return networks.finite_rows("X", X), None
    classes, which = networks.class_numbers("X", X, n)
    return np.eye(len(classes))[which][:, :-1], torch.as_tensor(which).to(device)


def check_rows(x: Array, y: Array, w: Array) -> None:
    """Raise unless the rows are as many, two at least, and of a size whose squares are numbers."""
    if not len(x) == len(y) == len(w):
        raise ValueError(f"X, Y and W must have the same rows: {len(x)}, {len(y)}, {len(w)}")
    check_number(len(y))
    for name, rows in (("X", x), ("Y", y), ("W", w)):
        networks.check_spread(name, rows)


def check_number(n: int) -> None:
    """Raise for one row, which says nothing of a law: its standard error would be 0."""
    if n < 2:
        raise ValueError(f"X and Y must have 2 rows or more, got {n}")


def white_rows(x: Array) -> Array:
    """Rows with mean 0 and the unit matrix as covariance, whatever the unit of each column."""
    centered = x - x.mean(0)
    size = np.abs(centered).max(0)
    live = size > 1e-14 * np.abs(x).max(0)  # above the rounding of a constant's mean
    centered = np.where(live, centered / np.where(live, size, 1.0), 0.0)
    sd = centered.std(0)
    centered = centered / np.where(sd > 0, sd, 1.0)
    root = np.linalg.cholesky(centered.T @ centered / len(x) + 1e-12 * np.eye(x.shape[1]))
    return np.asarray(np.linalg.solve(root, centered.T).T)


def cost_of(
    utility: Any, center: torch.Tensor, scale: float
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None:
    """Of standardised (y, z), a cost in the data's unit; None for what has a name."""
    if not callable(utility):
        return None

    def cost(y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = utility(center + scale * y, center + scale * z)
        if found.shape != y.shape[:1]:
            raise ValueError("utility must return one cost for each row, of shape (n,)")
        return found

    return cost


def start(problem: Problem, size: int) -> mechanisms.AffineMechanism:
    """0.7 times the best estimate of Y, or for information random directions of W."""
    w, y = problem.observed, problem.useful
    if problem.information:
        gain = networks.normal(problem.seeds, size, w.shape[1], like=w) / w.shape[1] ** 0.5
    else:
        gain = torch.linalg.lstsq(w, y).solution.T
    return mechanisms.AffineMechanism(_START_GAIN * gain, _START_NOISE)


def check_limit(problem: Problem) -> None:
    """Raise where no affine map of W comes as near to Y, or tells as much of it, as is wanted."""
    if problem.information:
        both = networks.as_numpy(torch.cat([problem.useful, problem.observed], 1))
        joint = np.atleast_2d(np.cov(both, rowvar=False, bias=True))
        most = gaussian_information(joint, problem.useful.shape[1])
        if -problem.limit > most * (1 + 1e-6) + 1e-9:
            raise ValueError(
                f"least_information must be at most {most:.6g}, what the best affine release of "
                "what is observed tells of Y"
            )
        return
    y, w = problem.useful, problem.observed - problem.observed.mean(0)
    rest = y - y.mean(0) - w @ torch.linalg.lstsq(w, y - y.mean(0), driver="gelsd").solution
    least = float((rest**2).sum(1).mean())
    if problem.limit < least * (1 - 1e-9) - 1e-12:
        raise ValueError(
            f"distortion must be at least {least * problem.unit:.9g}, what the best linear "
            "estimate of Y from what is observed leaves"
        )


def train_affine(
    problem: Problem, size: int, steps: int, progress: bool
) -> mechanisms.AffineMechanism:
    """The affine mechanism, by the moments of the rows alone (`affine_training`)."""
    made = start(problem, size)
    y, w = problem.useful, problem.observed
    if problem.labels is not None and not problem.information:
        return _even(problem, made)
    joint = torch.cat([problem.sensitive, y, w], 1)
    joint = joint - joint.mean(0)
    moments = networks.as_numpy(joint.T @ joint / len(joint))
    sizes = problem.sensitive.shape[1], y.shape[1]
    found = affine_training.train(
        affine_training.AffineProblem(moments, sizes, problem.limit, problem.information),
        networks.as_numpy(made.gain),
        networks.as_numpy(made.noise),
        steps,
        progress,
    )
    with torch.no_grad():
        for part, value in zip((made.gain, made.noise), found, strict=True):
            part.copy_(torch.as_tensor(value))
        if not problem.information:
            made.offset.copy_(y.mean(0) - made.gain @ w.mean(0))
    return made


def _even(problem: Problem, made: mechanisms.AffineMechanism) -> mechanisms.AffineMechanism:
    """The best estimate of Y with noise of its own shape, at the limit: a start to hide labels.

    The optimum for linear readers leaves directions without noise, where others read.
    """
    y, w = problem.useful, problem.observed
    best = torch.linalg.lstsq(w, y).solution.T
    seen = w @ best.T
    told = max(float((seen**2).sum(1).mean()), 1e-12)
    room = problem.limit - float(((y - seen) ** 2).sum(1).mean())
    share = min(0.99, max(1e-6, room / told))
    sizes, basis = torch.linalg.eigh(seen.T @ seen / len(seen))
    root = basis * sizes.clamp(min=1e-5 * told / len(sizes)).sqrt()
    with torch.no_grad():
        made.gain.copy_((1 - share) * best)
        made.noise.copy_((share * (1 - share)) ** 0.5 * root)
        made.offset.copy_(y.mean(0) - made.gain @ w.mean(0))
    return made


def mean_cost(problem: Problem, made: mechanisms.Mechanism) -> tuple[float, float]:
    """Mean cost of the rows in the data's unit, and its standard error.

    Of an affine map with squared error exactly over its seed, else with one seed for each row.
    """
    y, w = problem.useful, problem.observed
    with torch.no_grad():
        if type(made) is mechanisms.AffineMechanism:
            each = ((w @ made.gain.T + made.offset - y) ** 2).sum(1) + (made.noise**2).sum()
        else:
            z, weight = made(w, problem.seeds)
            cost = problem.cost or (lambda y, z: ((z - y) ** 2).sum(1))
            each = (weight * torch.stack([cost(y, part) for part in z])).sum(0)
    found = networks.as_numpy(each)  # of size 1: squares of squares stay in the doubles
    mean, error = float(found.mean()), float(found.std() / len(found) ** 0.5)
    return problem.unit * mean, problem.unit * error


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
    adam = Adam(made.parameters(), rate, steps)
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
        adam.descend(loss)


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
        self.adam = Adam(weights, _ADVERSARY_RATE, self.answers * steps, 0.1)
        self.judge = None
        if problem.discriminator > 0:
            net = networks.mlp([size, 32, 32, 1], problem.seeds, dtype=like.dtype)
            self.judge = net.to(like.device)
            self.judge_adam = Adam(self.judge.parameters(), _ADVERSARY_RATE, steps)

    def _release(self, rows: torch.Tensor) -> Any:
        p = self.problem
        z, weight = self.made(p.observed[rows], p.seeds)
        return self.known[rows], p.useful[rows], z, weight

    def answer(self, rows: torch.Tensor) -> None:
        """One step of everybody but the mechanism."""
        with torch.no_grad():
            x, y, z, weight = self._release(rows)
        known = [one.information(side, z, weight) for one, side in self._sides(x, y)]
        self.adam.descend(-sum(known))  # type: ignore[arg-type]
        if self.judge is not None:
            real, made = self.judge(y)[:, 0], self.judge(z)[..., 0]
            loss = 0.5 * ((real - 1) ** 2).mean() + 0.5 * (weight * made**2).sum(0).mean()
            self.judge_adam.descend(loss, cool=False)

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
