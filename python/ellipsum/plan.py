"""The fixed plan for a mean when nothing is known but a box: steps, passes, shares of the budget.

A plan is a function of public numbers alone (n, d, mu, the neighbours). Everything that the
steps find out moves and shapes the *regions* of later steps, never their shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Plan", "Step", "count_share", "make_plan"]

#: Shares of mu^2 are multiples of 2^-20, so that they add up to one exactly.
_SHARE_UNITS = 1 << 20

#: What the radii may take together, and how well each bin of one is wanted (share of the rows).
_RADIUS_SHARE, _RADIUS_SD = 0.07, 0.004

#: Centring steps: 3 to polish the scales after the ones that shrink the box by ``_DEPTH``.
_MIN_STEPS, _MAX_STEPS, _POLISH, _DEPTH = 4, 12, 3, 1e-4

#: Later steps clip closer, so a share there buys more: each gets this many times the one before.
_GROWTH = 1.2

#: Above this noise-to-radius ratio nothing is learned: the plan answers the centre of the box.
#: So it does where a noisy count stands out from its noise less than this many times.
_HOPELESS, _COUNT_STANDS_OUT = 0.9, 4.0

#: The share of the noisy count, which add-remove neighbours need before the plan is made: a
#: mean divides small shifts by it, a sum multiplies the whole centre.
_COUNT_SHARE = {"mean": Fraction(1, 64), "sum": Fraction(1, 8)}


@dataclass(frozen=True)
class Step:
    """One step of a plan: one Gaussian mechanism, one pass over the data.

    ``share`` is its part of mu^2; ``name`` is ``"count"``, ``"radius"``, ``"center"`` or
    ``"final"``.
    """

    name: str
    share: Fraction
    what: str


@dataclass(frozen=True)
class Plan:
    """What will be done, in order, and what each step costs.

    **Guarantees.** The shares add up to one exactly, so the steps together are mu-GDP
    (docs/guarantees.md). A hopeless plan has no steps but the count: it answers the
    centre of the domain.
    """

    n: int
    d: int
    mu: float
    neighbors: str
    steps: tuple[Step, ...]

    @property
    def passes(self) -> int:
        """How often the rows are read: once for each step."""
        return len(self.steps)

    @property
    def hopeless(self) -> bool:
        """Too few rows for the budget: the centre of the domain is answered."""
        return not any(step.name == "final" for step in self.steps)

    @property
    def rho(self) -> float:
        """The zCDP equivalent of mu: mu^2 / 2."""
        return self.mu**2 / 2

    @property
    def noise_ratio(self) -> float:
        """Noise of a clipped mean over the radius of its region, if it had the whole budget."""
        return _noise_ratio(self.n, self.d, self.mu, self.neighbors)

    def step_mu(self, step: Step) -> float:
        """mu of one step: mu sqrt(share)."""
        return self.mu * math.sqrt(step.share)

    def __str__(self) -> str:
        head = f"plan for {self.n} rows of {self.d} coordinates, {self.mu:.4g}-GDP, "
        head += f"neighbours: {self.neighbors}; {self.passes} passes over the data"
        lines = [head, f"  {'pass':>4}  {'step':<7} {'of mu^2':>8}  {'mu':>8}"]
        for number, step in enumerate(self.steps, 1):
            share = f"{100 * float(step.share):.2f} %"
            lines.append(
                f"  {number:>4}  {step.name:<7} {share:>8}  {self.step_mu(step):>8.4g}  {step.what}"
            )
        if self.hopeless:
            lines.append("  too few rows for this budget: the centre of the domain is answered")
        return "\n".join(lines)

    def summary(self) -> str:
        """One line: what was spent on what."""
        if self.hopeless:
            return "too few rows for this budget: the centre of the domain is answered"
        spent: dict[str, Fraction] = {}
        for step in self.steps:
            spent[step.name] = spent.get(step.name, Fraction(0)) + step.share
        words = {"count": "the count", "radius": "radii", "center": "centre and scale"}
        parts = [
            f"{100 * float(share):.1f} % on {words.get(name, 'the final pass')}"
            for name, share in spent.items()
        ]
        return f"of mu^2: {', '.join(parts)}; {self.passes} passes over the data"


def make_plan(n: int, d: int, mu: float, neighbors: str, kind: str = "mean") -> Plan:
    """The plan for n rows (for add-remove: a noisy number of them).

    The noise of a centring step with share s is r = r_1/sqrt(s) times the radius of its region,
    r_1 = 2 sqrt(d)/(n mu) (sqrt(2) sqrt(d)/(n mu) for add-remove). K equal steps shrink the box by
    r^K, which is least at r = e^(-1/2): more than K = 1/(e r_1^2) steps make it worse.
    """
    count = count_share(kind, neighbors)
    counting = [Step("count", count, "noisy number of rows")] if count else []
    ratio = _noise_ratio(n, d, mu, neighbors) / math.sqrt((1 - count) * (1 - _RADIUS_SHARE))
    vague = count > 0 and n * mu * math.sqrt(count) < _COUNT_STANDS_OUT
    steps = 0 if ratio >= _HOPELESS or vague else _step_count(ratio)
    radius = min(_RADIUS_SHARE / max(steps, 1), 2 / (_RADIUS_SD * n * mu) ** 2)
    growth = _GROWTH if steps < _best_steps(ratio) / 2 else 1.0
    weights: list[float] = []
    for k in range(steps):
        weights += [radius, (1 - steps * radius) * growth**k * _first_term(growth, steps)]
    shares = _exact_shares(weights, 1 - count)
    return Plan(n, d, mu, neighbors, tuple(counting + _rounds(shares)))


def count_share(kind: str, neighbors: str) -> Fraction:
    """Share of the noisy count: none where n is public."""
    return _COUNT_SHARE[kind] if neighbors == "add-remove" else Fraction(0)


def _first_term(growth: float, steps: int) -> float:
    """The first of ``steps`` geometric terms that add up to one."""
    return 1 / sum(growth**k for k in range(steps))


def _noise_ratio(n: int, d: int, mu: float, neighbors: str) -> float:
    sensitivity = 2.0 if neighbors == "replace" else math.sqrt(2)
    return sensitivity * math.sqrt(d) / (max(n, 1) * mu)


def _best_steps(ratio: float) -> float:
    return 1 / (math.e * ratio**2)


def _step_count(ratio: float) -> int:
    most = max(1, min(_MAX_STEPS, round(_best_steps(ratio))))
    for steps in range(_MIN_STEPS, most):
        if (ratio * math.sqrt(steps)) ** (steps - _POLISH) <= _DEPTH:
            return steps
    return most


def _exact_shares(weights: list[float], total: Fraction) -> list[Fraction]:
    """Multiples of 2^-20 near the weights, none zero, that add up to ``total`` exactly."""
    if not weights:
        return []
    units = int(total * _SHARE_UNITS)
    parts = [max(1, math.floor(w * units)) for w in weights]
    parts[-1] += units - sum(parts)
    return [Fraction(part, _SHARE_UNITS) for part in parts]


def _rounds(shares: list[Fraction]) -> list[Step]:
    out = []
    for k in range(0, len(shares), 2):
        where = "the new centre" if k else "the centre of the domain"
        name = "final" if k == len(shares) - 2 else "center"
        out.append(Step("radius", shares[k], f"noisy histogram of distances from {where}"))
        out.append(Step(name, shares[k + 1], "noisy sums of clipped rows, above and below it"))
    return out
