"""Accuracy of a logistic regression on released records: Koehler (2018), section 6.3, twice.

:func:`as_printed`: covariance, unit and R are the private table's own, and beta is the largest
that the printed condition (5.13) allows at the claimed epsilon. Each release comes with what it
really costs: the exact epsilon of that beta, *for that R* (which is private, so it is not even
that). :func:`corrected`: a third of the rows is public and chooses everything; records are clipped.
Both train on one random half of the released rows and test on the other half.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ellipsum.records import Bottleneck, RateDistortion, RecordRelease
from ellipsum.records import printed_bounds as printed
from koehler_data import Records

DELTA = 1e-5
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
PUBLIC = 4  # choices of the public third
#: (name, shape, noise, which columns of the public rows, if any, are the target)
WAYS = {
    "rate-distortion": (
        ("L2 compression, exact, best radius", "rate-distortion", "gaussian", None),
        ("shaped Gaussian", "mse", "gaussian", None),
        ("PrivUnitG (delta = 0)", "mse", "privunit", None),
        ("PrivUnitG, shaped for public labels", "information", "privunit", "labels"),
    ),
    "bottleneck": (
        ("bottleneck, exact, best radius", "bottleneck", "gaussian", "auxiliary"),
        ("shaped for the auxiliary data", "information", "gaussian", "auxiliary"),
        ("PrivUnitG (delta = 0)", "information", "privunit", "auxiliary"),
    ),
}


def score(t: np.ndarray, y: np.ndarray, split: int) -> float:
    a, b, ya, yb = train_test_split(t, y, test_size=0.5, random_state=split, stratify=y)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    return float(model.fit(a, ya).score(b, yb))


def summary(scores: list[float]) -> list[float]:
    """Mean and standard deviation over splits, as the thesis plots them."""
    return [float(np.mean(scores)), float(np.std(scores))]


def centred(table: np.ndarray, standardize: bool) -> np.ndarray:
    table = table - table.mean(axis=0)
    return table / table.std(axis=0) if standardize else table


def model_of(data: Records, method: str) -> tuple[RateDistortion | Bottleneck, np.ndarray, float]:
    """The channel's model with the whole table's moments, its rows centred, and its own R."""
    x = centred(data.rows, data.standardize)
    radius = float(np.linalg.norm(x, axis=1).max())
    if method == "rate-distortion":
        return RateDistortion(x.T @ x / len(x)), x, radius
    y = centred(data.auxiliary, data.standardize)
    n = len(x)
    return Bottleneck(x.T @ x / n, x.T @ y / n, y.T @ y / n), x, radius


def claimed_beta(model: RateDistortion | Bottleneck, radius: float, epsilon: float) -> float:
    """The largest beta that (5.13) allows at this epsilon; its eta has (5.12)'s |A| R.

    For the rate-distortion channel eta jumps to infinity whenever a component is about to be
    kept, so what is allowed is several intervals of beta: the best of a fine grid is taken.
    """
    z = -float(ndtri(DELTA))
    mu = math.sqrt(z * z + 2 * epsilon) - z  # z mu + mu^2/2 = epsilon, mu = sqrt(2 eta)
    if isinstance(model, Bottleneck):  # unit noise: eta is half of (|A| R)^2
        return model.beta(mu=2 * mu, radius=radius)
    # with one component kept eta = (beta - 1/s_max) R^2/2; more of them make it larger
    grid = 1 / model.largest + np.geomspace(1e-4, 1.0, 1200) * (mu / radius) ** 2
    value = [printed.theorem_5_4_1_epsilon(model.channel(b), radius, DELTA) for b in grid.tolist()]
    allowed = grid[np.asarray(value) <= epsilon * (1 + 1e-9)]
    return float(allowed[-1]) if len(allowed) else float("nan")


def as_printed(data: Records, method: str, splits: int) -> dict:
    """For each claimed epsilon: the exact one, components kept, accuracy (mean, deviation)."""
    model, x, radius = model_of(data, method)
    lines = []
    for epsilon in EPSILONS:
        beta = claimed_beta(model, radius, epsilon)
        if math.isnan(beta):
            continue
        channel = model.channel(beta)
        value, basis = np.linalg.eigh(channel.noise)
        root = basis * np.sqrt(np.maximum(value, 0))
        rng = np.random.default_rng(1)
        found = []
        for split in range(splits):
            t = x @ channel.matrix.T + rng.standard_normal((len(x), len(root))) @ root.T
            found.append(score(t, data.labels, split))
        cost = model.epsilon(beta=beta, radius=radius, delta=DELTA)
        line = {"claimed": epsilon, "exact": cost, "kept": model.kept(beta)}
        lines.append(line | {"accuracy": summary(found)})
    plain = summary([score(x, data.labels, split) for split in range(splits)])
    return {"R": radius, "not private": plain, "lines": lines}


def thirds(data: Records) -> list[tuple[np.ndarray, np.ndarray]]:
    """Indices of public and of private rows, 1 to 2."""
    rows = np.arange(len(data.rows))
    return [
        tuple(train_test_split(rows, test_size=2 / 3, random_state=seed, stratify=data.labels))
        for seed in range(PUBLIC)
    ]


def corrected(data: Records, method: str, splits: int) -> dict[str, list]:
    """For each way and epsilon: accuracy (mean, deviation); nothing private chooses anything."""
    out: dict[str, list] = {name: [] for name, *_ in WAYS[method]}
    for name, shape, kind, target in WAYS[method]:
        for epsilon in EPSILONS:
            budget = {"epsilon": epsilon} | ({"delta": DELTA} if kind == "gaussian" else {})
            found: list[float] = []
            for third, (public, private) in enumerate(thirds(data)):
                rows = data.rows[public]
                keep = rows.std(axis=0) > 0
                r = RecordRelease(shape, kind, **budget, standardize=data.standardize)
                r.fit(rows[:, keep], getattr(data, target)[public] if target else None)
                for split in range(third, splits, PUBLIC):
                    r.seed = split  # so that the table can be made again; without one in use
                    t = r.transform(data.rows[private][:, keep])
                    found.append(score(t, data.labels[private], split))
            out[name].append(summary(found))
    return out


def not_private(data: Records, splits: int) -> list[float]:
    """Accuracy on the private two thirds themselves, with the splits of :func:`corrected`."""
    found = []
    for third, (_, private) in enumerate(thirds(data)):
        for split in range(third, splits, PUBLIC):
            found.append(score(data.rows[private], data.labels[private], split))
    return summary(found)
