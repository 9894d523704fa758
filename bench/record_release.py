"""What is left of records after a local release: share of variance explained, accuracy, speed.

    python bench/record_release.py [--draws 20000] [--splits 12] [--only NAME]

writes ``record_release.md`` and ``record_release.json`` in ``bench/results``. Everything that a
release chooses (shape, radius, reader) it chooses from public rows or a public covariance; what is
measured is measured on others. ``explained``: fresh records N(0, S), fitted on S, the correlation
matrix (of ``digits`` the covariance: pixels share a unit); ``real``: fitted on one half of the
rows, measured on the other half, in units of the public half's deviations; ``steps``: the same for
PrivUnitG on ``breast_cancer``, by what the reader has, with standard errors over the splits;
``accuracy``: a third of the rows (with labels) is public, logistic regression is trained on the
releases of one half of the others and tested on the other half, as in Koehler 2018, section 6.3.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # speeds are those of one thread

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ellipsum import noise
from ellipsum.records import RecordRelease
from ellipsum.records.record_reader import Reader
from ellipsum.records.record_simulation import best_reader
from ellipsum.records.record_sphere import Sphere
from measure import best, machine

RESULTS = Path(__file__).parent / "results"
EPSILONS = (1.0, 4.0, 8.0, 16.0)
ACCURACY_EPSILONS = (1.0, 2.0, 5.0, 10.0, 20.0)
DELTA, ACCURACY_DELTA = 1e-6, 1e-5
#: (name, shape, noise)
WAYS = (
    ("RD, 99 % ball", "rate-distortion", "gaussian"),
    ("RD, best radius", "rate-distortion", "gaussian"),
    ("isotropic", "isotropic", "gaussian"),
    ("shaped Gaussian", "mse", "gaussian"),
    ("PrivUnitG", "mse", "privunit"),
)


def release(shape: str, kind: str, epsilon: float, delta: float, **given) -> RecordRelease:
    budget = {"epsilon": epsilon} | ({"delta": delta} if kind == "gaussian" else {})
    return RecordRelease(shape, kind, **budget, **given)


def tables() -> dict[str, np.ndarray]:
    loaders = (load_breast_cancer, load_wine, load_diabetes, load_digits)
    rows = {f.__name__.removeprefix("load_"): f().data for f in loaders}
    return {name: x[:, x.std(axis=0) > 0] for name, x in rows.items()}


def share(truth: np.ndarray, read: np.ndarray, unit: np.ndarray) -> float:
    error = ((truth - read) / unit) ** 2
    return 1 - float(error.sum() / (((truth - truth.mean(axis=0)) / unit) ** 2).sum())


def explained(draws: int) -> list[dict]:
    lines = []
    for name, table in tables().items():
        # Pixels share a unit; other columns do not.
        law = np.cov(table.T) / table.var() if name == "digits" else np.corrcoef(table.T)
        value, basis = np.linalg.eigh(law)
        root = basis * np.sqrt(np.maximum(value, 0))
        rows = np.random.default_rng(1).normal(size=(draws, len(law))) @ root.T
        ball = float(np.quantile(np.linalg.norm(rows, axis=1), 0.99))
        for epsilon in EPSILONS:
            line: dict = {"data": f"{name} ({len(law)})", "epsilon": epsilon}
            for way, shape, kind in WAYS:
                radius = ball if "99" in way else "best"
                r = release(shape, kind, epsilon, DELTA, radius=radius, seed=2, standardize=False)
                r.fit(covariance=law, center=np.zeros(len(law)))
                read = r.inverse_transform(r.transform(rows))
                line[way] = share(rows, read, np.ones(len(law)))
            lines.append(line)
    return lines


def real(splits: int) -> list[dict]:
    lines = []
    for name, table in tables().items():
        for epsilon in EPSILONS:
            line: dict = {"data": name, "epsilon": epsilon}
            for way, shape, kind in WAYS[2:]:
                found = []
                for split in range(splits):
                    public, private = train_test_split(table, test_size=0.5, random_state=split)
                    keep = public.std(axis=0) > 0
                    public, private = public[:, keep], private[:, keep]
                    r = release(shape, kind, epsilon, DELTA, seed=split).fit(public)
                    many = np.tile(private, (20, 1))
                    read = r.inverse_transform(r.transform(many))
                    found.append(share(many, read, public.std(axis=0)))
                line[way] = float(np.mean(found))
                line[f"{way} s.e."] = float(np.std(found) / math.sqrt(splits))
            lines.append(line)
    return lines


def steps(splits: int) -> list[dict]:
    """Of the same public halves: the linear reader, times h, with curves, with a told length."""
    table, lines = tables()["breast_cancer"], []
    for epsilon in EPSILONS:
        found, slopes = [], []
        for split in range(splits):
            public, private = train_test_split(table, test_size=0.5, random_state=split)
            r = RecordRelease(epsilon=epsilon, seed=split).fit(public)
            slopes.append(r._sphere.slope)
            many, unit = np.tile(private, (20, 1)), public.std(axis=0)
            known = (r._law, r._design, r._channel, r._unit)
            whole = r._reader, r._sphere
            plain = best_reader(*known, "nothing")[1]
            r._sphere = Sphere()
            t = r.transform(many)[:, :-1]
            flat = Reader(plain.factor, plain.weight, np.zeros(1), plain.told, np.ones((1, 1)),
                          plain.back)  # fmt: skip
            readers = (flat, replace(plain, curves=()), plain)
            back = [r._law.center + r._law.unit * reader(t) for reader in readers]
            r._reader, r._sphere = whole
            back.append(r.inverse_transform(r.transform(many)))
            found.append([share(many, read, unit) for read in back])
        names = ("linear", "times h", "and curves", "and a told length (default)")
        line: dict = {"epsilon": epsilon}
        for name, values in zip(names, np.transpose(found), strict=True):
            line[name] = float(values.mean())
            line[f"{name}, s.e."] = float(values.std(ddof=1) / math.sqrt(splits))
        line["its slope, mean"] = float(np.mean(slopes))
        lines.append(line)
    return lines


#: (name, shape, noise, public labels are used)
CLASSIFIERS = (
    ("RD, best radius", "rate-distortion", "gaussian", False),
    ("shaped Gaussian", "mse", "gaussian", False),
    ("PrivUnitG, mse", "mse", "privunit", False),
    ("PrivUnitG, information", "information", "privunit", True),
)


def _score(t: np.ndarray, y: np.ndarray, split: int) -> float:
    a, b, ya, yb = train_test_split(t, y, test_size=0.5, random_state=split, stratify=y)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    return float(model.fit(a, ya).score(b, yb))


def accuracy(splits: int) -> list[dict]:
    x, y = load_breast_cancer(return_X_y=True)
    lines = []
    for epsilon in ACCURACY_EPSILONS:
        scores: dict[str, list[float]] = {name: [] for name, *_ in CLASSIFIERS}
        scores["not private"] = []
        for split in range(splits):
            public, private, known, labels = train_test_split(
                x, y, test_size=2 / 3, random_state=split, stratify=y
            )
            scores["not private"].append(_score(private, labels, split))
            for name, shape, kind, supervised in CLASSIFIERS:
                r = release(shape, kind, epsilon, ACCURACY_DELTA, seed=split)
                r.fit(public, known if supervised else None)
                scores[name].append(_score(r.transform(private), labels, split))
        lines.append({"epsilon": epsilon} | {k: float(np.mean(v)) for k, v in scores.items()})
    return lines


def speed() -> list[dict]:
    """Seconds of this process for each number released, against drawing as many noise samples."""
    lines = []
    for d in (10, 30, 100, 1000):
        rows = np.random.default_rng(0).normal(size=(2_000_000 // d, d))
        law = {"covariance": np.eye(d), "center": np.zeros(d)}
        count, line = rows.size, {"d": d}
        gaussian = release("isotropic", "gaussian", 4.0, DELTA).fit(**law)
        pure = release("isotropic", "privunit", 4.0, DELTA).fit(**law)
        seconds = best(
            lambda: noise.rounded_gaussian(count, 2.0**24),  # noqa: B023
            lambda: gaussian.transform(rows),  # noqa: B023
            lambda: pure.transform(rows),  # noqa: B023
            repeats=3,
        )
        names = ("noise alone, ns", "Gaussian, ns", "PrivUnitG, ns")
        line |= {k: s / count * 1e9 for k, s in zip(names, seconds, strict=True)}
        line["PrivUnitG trials"] = pure._unit.trials
        lines.append(line)
    return lines


def markdown(lines: list[dict]) -> str:
    def cell(value: object) -> str:
        if not isinstance(value, float):
            return str(value)
        return f"{value:.4f}" if abs(value) < 1 else f"{value:.3g}"

    head = list(lines[0])
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    out += ["| " + " | ".join(cell(line[k]) for k in head) + " |" for line in lines]
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--splits", type=int, default=12)
    parser.add_argument("--only", choices=("explained", "real", "steps", "accuracy", "speed"))
    args = parser.parse_args()
    jobs = {
        "explained": lambda: explained(args.draws),
        "real": lambda: real(args.splits),
        "steps": lambda: steps(args.splits),
        "accuracy": lambda: accuracy(args.splits),
        "speed": speed,
    }
    path = RESULTS / "record_release.json"
    for name in [args.only] if args.only else jobs:
        lines = jobs[name]()
        found = json.loads(path.read_text()) if path.exists() else {}
        found[name] = {"machine": machine(), "lines": lines}
        print(name, markdown(found[name]["lines"]), sep="\n")
        path.write_text(json.dumps(found, indent=1) + "\n")
    parts = ["# Record release\n", f"```\n{__doc__.strip()}\n```\n"]
    parts += [
        f"## {name}\n\n{v['machine']}\n\n{markdown(v['lines'])}\n" for name, v in found.items()
    ]
    (RESULTS / "record_release.md").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
