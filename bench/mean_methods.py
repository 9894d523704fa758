"""What ``mean_comparison.py`` compares: the problems, the laws of their rows, and the methods."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import mean_baselines as published
from ellipsum import PrivateMean, calibrate
from mean_baselines import Array, Ledger

EPSILON, DELTA = 1.0, 1e-6
Medians = dict[str, dict[str, float]]


@dataclass
class Cell:
    """One line of the table; ``alpha`` is 0 and d, n are the table's for a real one."""

    d: int
    n: int
    alpha: float
    trials: int
    medians: Medians  #: column, variant: median squared error
    data: str = "gaussian"

    @property
    def key(self) -> tuple[str, int, int, float, int]:
        return (self.data, self.d, self.n, self.alpha, self.trials)

    def draw(self, seed: list[int]) -> tuple[Problem, Array]:
        if self.data in TABLES:
            return real_table(self.data)
        return synthetic(self, np.random.default_rng(seed))


@dataclass(frozen=True)
class Problem:
    """What one cell is about; a method may use of it what its name says that it knows."""

    n: int
    mean: Array
    sigma: Array
    bound: float  #: the box is [-bound, bound] in every coordinate
    rho: float  #: the budget of a plan of Gaussian steps: mu^2 / 2
    rho_zcdp: float  #: the budget of a plan that is only known to be zCDP

    @property
    def d(self) -> int:
        return int(self.sigma.size)


Method = Callable[[Problem, Array, Ledger], Array]
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]

#: Laws of mean 0 and variance 1; the log-normal has the skewness 6.2 of exp(Z).
LAWS: dict[str, Draw] = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "gaussian, even means": lambda rng, shape: rng.standard_normal(shape),
    "log-normal": lambda rng, shape: (
        (rng.lognormal(size=shape) - math.exp(0.5)) / math.sqrt(math.e * (math.e - 1))
    ),
    "exponential": lambda rng, shape: rng.standard_exponential(shape) - 1,
    "t3": lambda rng, shape: rng.standard_t(3, shape) / math.sqrt(3),
}
#: Tables that ship with scikit-learn: their own mean is what is sought.
TABLES = ("breast_cancer", "digits")


def synthetic(cell: Cell, rng: np.random.Generator) -> tuple[Problem, Array]:
    sigma = np.arange(1, cell.d + 1.0) ** -cell.alpha
    sigma /= sigma.sum()
    mean = 10 * sigma[0] * rng.choice([-1.0, 1.0], size=cell.d)
    if cell.data == "gaussian, even means":  # not at two places, which can be found together
        mean = 10 * sigma[0] * rng.uniform(-1.0, 1.0, size=cell.d)
    rows = mean + sigma * LAWS[cell.data](rng, (cell.n, cell.d))
    return make_problem(mean, sigma, cell.n), rows


def real_table(name: str) -> tuple[Problem, Array]:
    import sklearn.datasets

    rows = np.array(getattr(sklearn.datasets, f"load_{name}")().data, dtype=float)
    rows = rows[:, rows.std(axis=0) > 0]
    return make_problem(rows.mean(axis=0), rows.std(axis=0), len(rows)), rows


def make_problem(mean: Array, sigma: Array, n: int) -> Problem:
    return Problem(
        n=n,
        mean=mean,
        sigma=sigma,
        bound=50 * float(sigma.max()),
        rho=calibrate.rho(calibrate.noise_multiplier(EPSILON, DELTA)),
        rho_zcdp=published.zcdp_budget(EPSILON, DELTA),
    )


# --- methods ---


def _oracle_ellipsoid(p: Problem, rows: Array, ledger: Ledger) -> Array:
    return published.oracle_ellipsoid(ledger, rows, p.mean, p.sigma, p.rho)


def _oracle_ball(p: Problem, rows: Array, ledger: Ledger) -> Array:
    return published.oracle_ball(ledger, rows, p.mean, p.sigma, p.rho)


def _plan(p: Problem, rows: Array, ledger: Ledger) -> Array:
    return published.plan(ledger, rows, p.bound, p.rho_zcdp)


def _shifted(shares: tuple[float, float, float], outliers: float) -> Method:
    return lambda p, rows, ledger: published.shifted_clipped_mean(
        ledger, rows, p.bound, p.rho, shares=shares, outliers=outliers
    )


def _coinpress(steps: int) -> Method:
    return lambda p, rows, ledger: published.coinpress(
        ledger, rows, float(p.sigma.max()), p.bound * math.sqrt(p.d), p.rho, steps
    )


def _adaptive(knows_sigma: bool) -> Method:
    def method(p: Problem, rows: Array, ledger: Ledger) -> Array:
        side, sigma = np.full(p.d, p.bound), p.sigma if knows_sigma else None
        mean = PrivateMean(lower=-side, upper=side, sigma=sigma, epsilon=EPSILON, delta=DELTA)
        release = mean(rows, seed=int(ledger.rng.integers(2**63)))
        ledger.spent += release.plan.rho
        return np.asarray(release.value)

    return method


def _center_of_box(p: Problem, rows: Array, ledger: Ledger) -> Array:
    return np.zeros(p.d)


REFERENCE = "oracle ellipsoid"
#: Columns of the table; where a column has several variants, the best median counts.
METHODS: dict[str, dict[str, Method]] = {
    REFERENCE: {"": _oracle_ellipsoid},
    "oracle ball": {"": _oracle_ball},
    "PLAN": {"": _plan},
    "shifted-clipped-mean": {
        "paper's constants": _shifted((1 / 4, 3 / 16, 9 / 16), 2.0),
        "four times as many rows clipped": _shifted((1 / 4, 3 / 16, 9 / 16), 8.0),
        "the same, more for the mean": _shifted((1 / 8, 1 / 8, 3 / 4), 8.0),
    },
    "CoinPress": {f"{steps} steps": _coinpress(steps) for steps in (2, 3, 4, 6, 10)},
    "ellipsum, sigma known": {"": _adaptive(True)},
    "ellipsum, box alone": {"": _adaptive(False)},
    "centre of the box": {"": _center_of_box},
}
#: What each column may use beside the rows.
KNOWS = {
    REFERENCE: "mean and sigma; Algorithm 3, clip share min(1/2, 4 s sqrt(d_eff)/n)",
    "oracle ball": "mean and sigma; the best radius by the same rule with d for d_eff",
    "PLAN": "the box; its budget is zCDP, as an exponential mechanism is in it",
    "shifted-clipped-mean": "the box; best of the paper's constants and two that clip more",
    "CoinPress": "the box and sigma_max; best of 2, 3, 4, 6 and 10 steps",
    "ellipsum, box alone": "the box: `PrivateMean(lower=..., upper=...)`",
    "ellipsum, sigma known": "the box and sigma: `PrivateMean(..., sigma=...)`",
    "centre of the box": "the box, and no row",
}
