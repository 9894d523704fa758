"""What two steps of a plan cost its value: beside a plan whose rounds have all of the budget.

    python bench/plan_cost.py                       # all 36 cells, ten minutes
    python bench/plan_cost.py --d 16 128 --n 1000   # some of them

writes ``bench/results/plan_cost.md``. Cells, rows and budget of ``mean_comparison.py``, *box
alone*. The steps *cells* and *excess* tell of missing cells and of what is clipped; the value of
rows without holes could do without. Both plans see the same rows in each trial.

A trial's squared error |N + x + b|^2 has the noise N, the rows' sampling error x and what the clips
take, b. What N and x have in it by themselves is known on average: var N, which is released, var x,
and none of the product. So |N|^2 - var N, |x|^2 - var x and 2 N.x are taken away from each error,
which changes no average; standard errors fall to a tenth. A median has no such help.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ellipsum import PrivateMean
from ellipsum.adaptive import interval, rounds
from ellipsum.adaptive.plan import Plan
from mean_comparison import ALPHAS, DIMENSIONS, ROWS
from mean_methods import DELTA, EPSILON, Array, Cell, Problem

RESULTS = Path(__file__).parent / "results"
STEPS = ("cells", "excess")
#: Resamples of a median's standard error.
_RESAMPLES = 400
_make_plan = rounds.make_plan


def without(*public: Any) -> Plan:
    """The same plan, the two steps' budget given to the others in their proportion."""
    plan = _make_plan(*public)
    kept = [step for step in plan.steps if step.name not in STEPS]
    whole = sum((step.share for step in kept), Fraction(0))
    return replace(plan, steps=tuple(replace(step, share=step.share / whole) for step in kept))


@dataclass
class Noise:
    """The noise of each step of the last release, in integers."""

    steps: list[Array]

    def watch(self) -> None:
        noisy = rounds._Run._noisy

        def watched(run: Any, exact: Array, *rest: float) -> Any:
            out = noisy(run, exact, *rest)
            if len(run.integers) == 1:
                self.steps.clear()
            self.steps.append((out - exact.astype(object)).astype(np.float64))
            return out

        rounds._Run._noisy = watched  # type: ignore[method-assign]

    def of(self, outcome: Any, half: Array) -> tuple[Array, float]:
        """(the noise of the value, its variance in all coordinates together)."""
        d, own = half.size, []
        sums = [k for k, step in enumerate(outcome.plan.steps) if step.name in ("center", "final")]
        for k, region in zip(sums, outcome.regions, strict=True):
            above, below = region.unscale(self.steps[k].reshape(2, d) * region.grid)
            own.append((above - below) / (outcome.count * outcome.cells.present))
        kept = [k for k, each in enumerate(outcome.rounds) if not each.tail.coarse]
        kept = kept or list(range(len(own)))
        averaged = [outcome.rounds[k] for k in kept]
        weights = interval._weights(averaged, interval._different(averaged))
        parts = weights / (1 / half**2 + np.sum(weights, axis=0))
        sds = np.array([each.sd for each in averaged])
        noise = np.sum(parts * np.array([own[k] for k in kept]), axis=0)
        return noise, float(np.sum((parts * sds) ** 2))


def errors(
    cell: Cell, trials: int, noise: Noise, plans: list[Callable[..., Plan]]
) -> tuple[Array, Array]:
    """Squared errors, and the same without what is known on average: shapes (plans, trials)."""
    plain, steady = np.empty((2, len(plans), trials))
    for trial in range(trials):
        problem, rows = cell.draw([cell.d, cell.n, int(2 * cell.alpha), trial])
        sampled = np.mean(rows, axis=0) - problem.mean
        for k, plan in enumerate(plans):
            rounds.make_plan = plan  # type: ignore[assignment]
            value, drawn, variance = release(problem, rows, noise, trial)
            known = drawn @ drawn - variance + 2 * drawn @ sampled + sampled @ sampled
            plain[k, trial] = np.sum((value - problem.mean) ** 2)
            steady[k, trial] = plain[k, trial] - known + np.sum(problem.sigma**2) / cell.n
    rounds.make_plan = _make_plan
    return plain, steady


def release(problem: Problem, rows: Array, noise: Noise, seed: int) -> tuple[Array, Array, float]:
    """(value, its noise, the noise's variance)."""
    side = np.full(problem.d, problem.bound)
    found = PrivateMean(lower=-side, upper=side, epsilon=EPSILON, delta=DELTA)(rows, seed=seed)
    return np.asarray(found.value), *noise.of(found._outcome, side)


def line(cell: Cell, plain: Array, steady: Array) -> tuple[float, str]:
    """The first plan over the second: the ratio of root mean squares, and a line of the table."""
    trials = plain.shape[1]
    now, then = steady
    squared = float(now.mean() / then.mean())
    off = squared * float(np.std(now / now.mean() - then / then.mean())) / math.sqrt(trials)
    ratio = math.sqrt(squared)
    median = float(np.divide(*np.median(plain, axis=1)))
    again = plain[:, np.random.default_rng(0).integers(0, trials, (_RESAMPLES, trials))]
    scatter = float(np.std(np.divide(*np.median(again, axis=2))))
    fields = [str(cell.d), str(cell.n), f"{cell.alpha:g}", str(trials)]
    fields += [f"{ratio:.3f} ± {off / ratio / 2:.3f}", f"{squared:.3f} ± {off:.3f}"]
    fields += [f"{median:.2f} ± {scatter:.2f}", f"{100 * share(cell):.1f} %"]
    return ratio, "| " + " | ".join(fields) + " |"


def share(cell: Cell) -> float:
    """What the two steps have of the budget."""
    side = np.ones(cell.d)
    plan = PrivateMean(lower=-side, upper=side, epsilon=EPSILON, delta=DELTA).plan(cell.n)
    return float(sum(step.share for step in plan.steps if step.name in STEPS))


def table(found: list[tuple[Cell, float, str]]) -> str:
    head = ["d", "n", "alpha", "trials", "root mean square", "mean square", "median square"]
    worst = max(found, key=lambda each: each[1])
    cell, ratio, _ = worst
    lines = [
        "# What the steps *cells* and *excess* cost a mean from a box alone",
        "",
        "Errors of the plan over those of the same plan with these steps' budget given to the "
        f"rounds, on the same rows; replace-one, ({EPSILON:g}, {DELTA:g})-DP; ± one standard "
        "error. Made by `python bench/plan_cost.py`, whose head says how.",
        "",
        f"Worst: {ratio:.3f} times the root mean square error, at d = {cell.d}, n = {cell.n}, "
        f"alpha = {cell.alpha:g}.",
        "",
        "| " + " | ".join([*head, "the steps' budget"]) + " |",
        "|" + "---|" * (len(head) + 1),
    ]
    return "\n".join([*lines, *(text for _, _, text in found)]) + "\n"


def wanted(args: argparse.Namespace) -> Iterator[tuple[Cell, int]]:
    """Cells, and trials: fewer where many coordinates or rows make each one steadier."""
    for d, n, alpha in itertools.product(args.d, args.n, args.alpha):
        trials = args.trials or int(min(300, 6e4 / d, max(6e7 / (n * d), 8)))
        yield Cell(d, n, alpha, trials, {}), trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--d", type=int, nargs="+", default=list(DIMENSIONS))
    parser.add_argument("--n", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--alpha", type=float, nargs="+", default=list(ALPHAS))
    parser.add_argument("--trials", type=int)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    noise, found = Noise([]), []
    noise.watch()
    args.out.mkdir(parents=True, exist_ok=True)
    for cell, trials in wanted(args):
        ratio, text = line(cell, *errors(cell, trials, noise, [_make_plan, without]))
        print(text, flush=True)
        found.append((cell, ratio, text))
        (args.out / "plan_cost.md").write_text(table(found))


if __name__ == "__main__":
    main()
