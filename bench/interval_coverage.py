"""Do the intervals of a mean from a box alone cover? Laws, rows, budgets, holes, places, units.

    python bench/interval_coverage.py           # some of the grid, 40 runs a cell: 5 CPU minutes
    python bench/interval_coverage.py --full    # all of it, 200 runs a cell: hours

writes ``bench/results/coverage.md`` (of the mean of the rows) and ``coverage_population.md`` (of
the law's mean), from the same releases, with ``.json`` and ``.png`` of each. Setting: ``replace``
neighbours, delta = 1e-6; columns of spread about 1 in a box of half width 20 about 0, in units of
their own where ``decades`` says so, every other one of a spread smaller by ``narrow`` decades;
rows outside the box count as moved into it. An interval is
judged against the mean of the present cells, or the mean of the law moved into the box,
coordinate by coordinate. Nothing was chosen on the seeds of the default ``--first``. A cell is
*missed* where its worst coordinate is so far below the level that the runs have a probability
under 1e-3 of it (with all coordinates tried). The width is the median over that of an oracle, who
knows mean and sigma: a normal quantile times the noise of the ball that clips one row in a
thousand, and the sampling error beside it for the law's mean.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ellipsum import PrivateMean

RESULTS = Path(__file__).parent / "results"
LEVEL, DELTA, HALF = 0.95, 1e-6, 20.0
#: What is covered, and the name of its table.
FILES = {"rows": "coverage", "population": "coverage_population"}

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]


def _correlated(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    common = rng.standard_normal((shape[0], 1))
    return math.sqrt(0.9) * common + math.sqrt(0.1) * rng.standard_normal(shape)


#: Laws of a spread of about 1, one for all columns; "mixed" has another one in each column.
LAWS: dict[str, Draw] = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "exponential": lambda rng, shape: rng.standard_exponential(shape) - 1,
    "log-normal": lambda rng, shape: (rng.lognormal(size=shape) - math.exp(0.5)) / 2.1612,
    "t3": lambda rng, shape: rng.standard_t(3, shape) / math.sqrt(3),
    "two points": lambda rng, shape: 2.0 * rng.integers(0, 2, shape) - 1,
    "far mixture": lambda rng, shape: (
        0.05 * rng.standard_normal(shape) + np.where(rng.random(shape) < 0.7, -0.6, 1.4)
    ),
    "constant": lambda rng, shape: np.zeros(shape),
    "integers": lambda rng, shape: rng.poisson(3, shape) - 3.0,
    "heavy zeros": lambda rng, shape: np.where(
        rng.random(shape) < 0.85, 0.0, rng.lognormal(size=shape)
    ),
    "correlated": _correlated,
}


#: The same laws as mixtures of points and of densities.
PARTS: dict[str, list[tuple[float, Any]]] = {
    "gaussian": [(1.0, stats.norm())],
    "exponential": [(1.0, stats.expon(loc=-1))],
    "log-normal": [(1.0, stats.lognorm(1, -math.exp(0.5) / 2.1612, 1 / 2.1612))],
    "t3": [(1.0, stats.t(3, scale=1 / math.sqrt(3)))],
    "two points": [(0.5, -1.0), (0.5, 1.0)],
    "far mixture": [(0.7, stats.norm(-0.6, 0.05)), (0.3, stats.norm(1.4, 0.05))],
    "constant": [(1.0, 0.0)],
    "integers": [(float(stats.poisson.pmf(k, 3)), k - 3.0) for k in range(60)],
    "heavy zeros": [(0.85, 0.0), (0.15, stats.lognorm(1))],
    "correlated": [(1.0, stats.norm())],
}


MIXED = tuple(PARTS)


def _mixed(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    draws = itertools.islice(itertools.cycle(LAWS[name] for name in MIXED), shape[1])
    return np.concatenate([draw(rng, (shape[0], 1)) for draw in draws], axis=1)


LAWS["mixed"] = _mixed
#: Few claims among zeros: what a region that has drawn together on the zeros does not see.
LAWS["rare claims"] = lambda rng, shape: np.where(
    rng.random(shape) < 0.97, 0.0, rng.lognormal(size=shape)
)
PARTS["rare claims"] = [(0.97, 0.0), (0.03, stats.lognorm(1))]


@dataclass(frozen=True)
class Cell:
    """What is drawn, and the budget."""

    law: str
    n: int
    d: int = 3
    epsilon: float = 1.0
    holes: float = 0.0
    center: float = 0.0  #: in half widths of the box
    decades: float = 0.0  #: between the largest and the smallest unit
    narrow: float = 0.0  #: decades by which every other column is narrower than the rest
    error: str = "box"

    @property
    def unit(self) -> Array:
        """Of the boxes."""
        return 10.0 ** np.linspace(-self.decades / 2, self.decades / 2, self.d)

    @property
    def spread(self) -> Array:
        """Of the rows, in units of the boxes."""
        return np.asarray(10.0 ** (-self.narrow * (np.arange(self.d) % 2)))

    def draw(self, seed: int) -> tuple[Array, Array]:
        """Rows, in the columns' units, and the mean of their present cells."""
        rng = np.random.default_rng([seed, self.n, self.d])
        rows = LAWS[self.law](rng, (self.n, self.d)) * self.spread + self.center * HALF
        missing = rng.random(rows.shape) < self.holes
        inside = np.where(missing, np.nan, np.clip(rows, -HALF, HALF))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a column without a cell has no mean
            return np.where(missing, np.nan, rows) * self.unit, np.nanmean(inside, axis=0)


@dataclass
class Found:
    """A cell's coverage."""

    cell: Cell
    runs: int
    worst: float  #: coverage of the worst coordinate
    mean: float
    width: float  #: median half width over the oracle's
    error: float  #: root mean square error of the value

    @property
    def missed(self) -> bool:
        limit = 1e-3 / self.cell.d
        return bool(stats.binom.cdf(round(self.worst * self.runs), self.runs, LEVEL) < limit)


def oracle(cell: Cell, mechanism: PrivateMean, of: str = "rows") -> float:
    """Half width of the interval of one that knows mean and sigma (1 for each column)."""
    reach = math.sqrt(stats.chi2.isf(1e-3, cell.d))
    noise = 2 * reach / (cell.n * mechanism.guarantee.mu)
    sampling = 1 / math.sqrt(cell.n) if of == "population" else 0.0
    return float(stats.norm.ppf((1 + LEVEL) / 2) * math.hypot(noise, sampling))


def judge(cell: Cell, seeds: range) -> dict[str, Found]:
    """Both intervals of the same releases."""
    box = HALF * cell.unit
    mechanism = PrivateMean(
        lower=-box, upper=box, epsilon=cell.epsilon, delta=DELTA, error=cell.error
    )
    hits = {of: np.zeros(cell.d) for of in FILES}
    widths: dict[str, list[Array]] = {of: [] for of in FILES}
    errors: dict[str, list[Array]] = {of: [] for of in FILES}
    off = 1e-9 * HALF  # of the arithmetic in other units
    law = population(cell)
    for seed in seeds:
        rows, mean = cell.draw(seed)
        release = mechanism(rows, seed=seed)
        for of, truth in (("rows", mean), ("population", law)):
            lower, upper = (end / cell.unit for end in release.confidence_interval(LEVEL, of))
            hits[of] += np.isnan(truth) | ((lower - off <= truth) & (truth <= upper + off))
            widths[of].append((upper - lower) / 2 / cell.spread)
            errors[of].append((release.value / cell.unit - truth) / cell.spread)
    found = {}
    for of in FILES:
        share = hits[of] / len(seeds)
        width = float(np.median(widths[of])) / oracle(cell, mechanism, of)
        error = math.sqrt(float(np.nanmean(np.square(errors[of]))))
        found[of] = Found(cell, len(seeds), float(share.min()), float(share.mean()), width, error)
    return found


def population(cell: Cell) -> Array:
    """The law's mean after its values have been moved into the box."""
    names = MIXED if cell.law == "mixed" else (cell.law,)
    cycle = itertools.islice(itertools.cycle(names), cell.d)
    place = cell.center * HALF
    return np.array(
        [moved_mean(name, place, spread) for name, spread in zip(cycle, cell.spread, strict=True)]
    )


@cache
def moved_mean(law: str, center: float, spread: float = 1.0) -> float:
    """E of a value of one law about ``center``, moved into the box: by its parts, in closed form.

    A narrow one inside the box is not moved: t3 has E(x - y)+ of 0.11/y^2 spreads, others less.
    """
    mean = 0.0
    for weight, part in PARTS[law]:
        if isinstance(part, float):
            mean += weight * min(max(spread * part + center, -HALF), HALF)
            continue
        if spread < 1 and abs(center) <= HALF / 2:
            mean += weight * (center + spread * float(part.mean()))
            continue
        at = np.linspace(-HALF, HALF, 400_001)
        moved = np.trapezoid(part.sf((at - center) / spread), at)
        mean += weight * (-HALF + float(moved))
    return mean


def grid(full: bool) -> list[Cell]:
    """The cells: all, or lines through the middle of the grid."""
    counts = (10, 30, 100, 300, 1000, 10_000, 100_000)
    holes, places = (0.0, 0.01, 0.1, 0.5), (0.0, 0.5, 1.0, 1.2)
    if full:
        sizes = itertools.product(LAWS, counts, (1, 3, 20, 100), (0.1, 1.0, 10.0))
        cells = [
            Cell(*size, holes=h, center=c, decades=u)
            for size in sizes
            for h, c, u in itertools.product(holes, places, (0.0, 12.0))
        ]
        return cells
    cells = [Cell(law, n) for law in (*MIXED, "mixed") for n in counts[:-1]]
    cells += [Cell(law, 100_000) for law in ("gaussian", "log-normal", "heavy zeros", "mixed")]
    some = ("gaussian", "log-normal", "heavy zeros")
    cells += [Cell(law, n, d) for law in some for d in (1, 20) for n in (300, 1000, 10_000)]
    cells += [Cell(law, 10_000, 100) for law in some]
    cells += [Cell(law, n, epsilon=e) for law in some for e in (0.1, 10.0) for n in (300, 3000)]
    cells += [
        Cell(law, 3000, holes=h, epsilon=e) for law in some for h in holes[1:] for e in (1, 10)
    ]
    cells += [Cell(law, n, center=c) for law in some for c in places[1:] for n in (300, 3000)]
    cells += [
        Cell(law, 3000, 10, decades=12.0, holes=h) for law in (*some, "mixed") for h in (0, 0.1)
    ]
    cells += [
        Cell("mixed", n, d, epsilon=e, decades=12.0)
        for n in (3000, 10_000)
        for d in (10, 20)
        for e in (1.0, 10.0)
    ]
    zeros = ("heavy zeros", "rare claims")
    cells += [Cell(law, n, 1, center=0.5) for law in zeros for n in (1000, 2000, 4000, 20_000)]
    cells += [
        Cell(law, n, 10, decades=12.0, narrow=narrow, error="relative")
        for law in (*some, "mixed")
        for n in (3000, 20_000)
        for narrow in (0.0, 6.0)
    ]
    return list(dict.fromkeys(cells))


def table(found: list[Found], of: str, first: int) -> str:
    missed = [each for each in found if each.missed]
    lines = [
        "# Coverage of the intervals of a mean from a box alone",
        "",
        f'Nominal level {LEVEL:g}, `of="{of}"`; {found[0].runs} runs a cell, seeds from {first}; '
        "made by `python bench/interval_coverage.py`, whose head says what the columns mean.",
        "",
        f"Cells below the level by more than the runs explain: {len(missed)} of {len(found)}"
        + ("." if not missed else ": " + "; ".join(str(each.cell) for each in missed) + "."),
        "",
        "| law | n | d | epsilon | holes | center | decades | narrow | error | worst coordinate | "
        "all | width | rms error |",
        "|" + "---|" * 13,
    ]
    for each in found:
        c = each.cell
        setting = (
            f"{c.law} | {c.n} | {c.d} | {c.epsilon:g} | {c.holes:g} | {c.center:g} | {c.decades:g}"
            f" | {c.narrow:g} | {c.error}"
        )
        figures = f"{each.worst:.3f} | {each.mean:.3f} | {each.width:.2g} | {each.error:.2g}"
        lines.append(f"| {setting} | {figures} |")
    return "\n".join(lines) + "\n"


def picture(found: list[Found], of: str, path: Path) -> None:
    """Coverage and width against n, one line a law, d = 3."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, (above, below) = plt.subplots(2, 1, figsize=(8, 7), sharex=True)
    for i, law in enumerate((*MIXED, "mixed")):
        here = [each for each in found if each.cell == Cell(law, each.cell.n)]
        counts = [each.cell.n for each in here]
        style = {"marker": "osD^vPX*<>h"[i % 11], "ms": 5, "lw": 1, "label": law}
        style["color"] = f"C{i}" if i < 10 else "black"
        above.plot(counts, [each.worst for each in here], **style)
        below.plot(counts, [each.width for each in here], **style)
    above.axhline(LEVEL, color="black", lw=0.8)
    above.set(
        ylabel="coverage of the worst coordinate",
        ylim=(min(0.8, *(each.worst for each in found)), 1.01),
        xscale="log",
    )
    below.set(ylabel="half width / the oracle's", xlabel="rows", yscale="log")
    below.legend(fontsize=8, ncols=3, loc="lower left")
    above.set_title(
        f"95 % intervals of the {of}, d = 3, epsilon = 1, box of 20 spreads to each side",
        fontsize=10,
    )
    fig.tight_layout()
    fig.savefig(path, dpi=110)
    plt.close(fig)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--first", type=int, default=70_000, help="the first seed")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    args = parser.parse_args()
    runs = args.runs or (200 if args.full else 40)
    found: dict[str, list[Found]] = {of: [] for of in FILES}
    args.out.mkdir(parents=True, exist_ok=True)
    cells = grid(args.full)
    seeds = itertools.repeat(range(args.first, args.first + runs))
    with ProcessPoolExecutor(args.jobs) as pool:
        for cell, both in zip(cells, pool.map(judge, cells, seeds), strict=True):
            for of, each in both.items():
                found[of].append(each)
                missed = " MISSED" * each.missed
                print(f"{cell}, {of}: {each.worst:.3f}, width {each.width:.2g}{missed}", flush=True)
                write(found[of], of, args.out, args.first)
    for of, name in FILES.items():
        picture(found[of], of, args.out / f"{name}.png")


def write(found: list[Found], of: str, out: Path, first: int) -> None:
    """The table as far as it is."""
    (out / f"{FILES[of]}.md").write_text(table(found, of, first))
    plain = json.dumps([asdict(each) for each in found], indent=0)
    (out / f"{FILES[of]}.json").write_text(plain)


if __name__ == "__main__":
    main()
