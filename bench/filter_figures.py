"""Figures and tables of Chen, Navidi & Rajagopal (generative filter) on stand-ins.

python bench/filter_figures.py            everything that is not in bench/results yet
python bench/filter_figures.py table1     digits at one budget, all releases, four attackers
                               seeds      the same budget on three splits and encoders
                               curve      the budget (Figures 3c, 7b, 7c, 9)
                               information   nearest neighbours' estimate over it (Figure 9)
                               table2 table3 table4 table5
                               several    two useful labels at once
                               pictures   samples, maps, confusions (Figures 2 to 8, 10 to 13)
                               show       print the tables that were written

Every attacker is trained afresh on four releases of the training records and tested on records
that neither encoder, filter nor attacker has seen. The largest of four accuracies is the one to
read. Results: bench/results/filter_figures.json and .md, filter_*.png.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from scipy.special import ndtr

from ellipsum.tradeoff import LinearEraser, OracleShift
from filter_more import several, table4, table5
from learned_baselines import (
    DRAWS,
    attacked,
    cost_of,
    erased,
    flipped,
    label_only,
    releases_of,
)
from learned_baselines import FILTER_FILE as FILE
from learned_baselines import keep_filters as keep
from learned_data import BUDGET, Labelled, breast_cancer, diabetes, digits, encoded

#: Private and useful labels of the paper's two cases on digits.
CASES = {"case 1": ("digit", "circle"), "case 2": ("5 or more", "odd")}


def table1_releases(data: Labelled, latents: np.ndarray):
    """Name and job, which gives releases (draws, n, d) or (n, d) and what is known of them."""
    from ellipsum.learned import GenerativeFilter, GuaranteedFilter

    train = data.train
    private, useful = data.labels["5 or more"], data.labels["odd"]
    seen = (latents[train], private[train], useful[train])
    clip = float(np.median(np.linalg.norm(latents[train], axis=1)))

    def trained(made, **more):
        fitted, seconds = timed(lambda: made.fit(*seen))
        labels = private if getattr(made, "uses_label", False) else None
        return releases_of(fitted, latents, labels), more | {"seconds": seconds}

    def predicted():
        return label_only(latents, useful, train)

    yield "raw latents", lambda: (latents, {})
    yield "LEACE", lambda: (LinearEraser().fit(*seen[:2]).transform(latents), {})
    shifted = "oracle shift (label)"
    yield shifted, lambda: (OracleShift().fit(*seen[:2]).transform(latents, private), {})
    for name, params in {
        "isotropic noise": {"method": "isotropic"},
        "filter": {},
        "filter, cells across 5 folds": {"folds": 5},
        "filter, noise alone": {"shift": "none", "steps": 1500},
        "filter (label)": {"uses_label": True, "steps": 1500},
        "kernel posterior, noise alone": {"method": "kernel", "shift": "none", "steps": 500},
    }.items():
        yield f"{name}, b = 5", lambda p=params: trained(GenerativeFilter(BUDGET, **p))
    yield "predicted label alone", lambda: (predicted(), {})
    said = "randomised response, epsilon = 4"
    yield said, lambda: (flipped(predicted(), 4.0), {"epsilon": 4.0})
    for name, params in {"clip and noise": {"method": "isotropic"}, "filter": {}}.items():
        for mu in (4.0, 8.0):
            made = GenerativeFilter(mu=mu, clip=clip, **params)
            yield f"{name}, proved mu = {mu:g}", lambda f=made, m=mu: trained(f, mu=m)
    for mu, dimension in ((2.6, 1), (4.0, 1), (4.0, 3)):
        made = GuaranteedFilter(mu, dimension=dimension, steps=800, useful_weight=1.0)
        name = f"trained inside, proved mu = {mu:g}, {dimension} numbers"
        yield name, lambda f=made, m=mu: trained(f, mu=m)


def timed(job):
    """The job's result and its CPU seconds."""
    start = time.process_time()
    made = job()
    return made, time.process_time() - start


def table1(results: dict) -> None:
    """Table 1 and the must-show table: digits, private >= 5, useful odd, non-target circle."""
    data = digits()
    encoder, latents = encoded(data)
    test = data.test
    error = ((encoder.inverse_transform(latents[test]) - data.rows[test]) ** 2).mean()
    results["encoder"] = {
        "pixel MSE": round(float(error), 4),
        "latents of variance > 0.2": int((latents.var(0) > 0.2).sum()),
    }
    rows = results.setdefault("table1", {})
    names = []
    for name, job in table1_releases(data, latents):
        names.append(name)
        if name in rows:
            continue
        released, row = job()
        for what, label in (("private", "5 or more"), ("useful", "odd")):
            row[what] = attacked(released, data.labels[label], test)
        row["non-target"] = attacked(released, data.labels["circle"], test, ("rbf",))
        if "mu" in row:
            row["most, by the proof"] = round(float(ndtr(row["mu"] / 2)), 4)
        rows[name] = row
        keep(results)
        print(f"{name:42} private {row['private']['strongest']:.3f}", flush=True)
    results["table1"] = {name: rows[name] for name in names}
    keep(results)


def seeds(results: dict) -> None:
    """The default filter and noise of its size on three splits, each with its own encoder."""
    from ellipsum.learned import GenerativeFilter

    rows = results.setdefault("seeds", {})
    for seed in range(3):
        if str(seed) in rows:
            continue
        data = digits(seed)
        _, latents = encoded(data, seed=seed)
        private, useful = data.labels["5 or more"], data.labels["odd"]
        seen = (latents[data.train], private[data.train], useful[data.train])
        row = {}
        for name, params in {"filter": {}, "isotropic noise": {"method": "isotropic"}}.items():
            made = GenerativeFilter(BUDGET, seed=seed, **params).fit(*seen)
            released = releases_of(made, latents)
            row[name] = {
                what: attacked(released, label, data.test, ("mlp", "rbf"))["strongest"]
                for what, label in (("private", private), ("useful", useful))
            }
        rows[str(seed)] = row
        keep(results)
        print("seed", seed, row, flush=True)


def curve(results: dict) -> None:
    """Accuracy and information over the budget, by the RBF attacker."""
    from ellipsum.learned import GenerativeFilter

    data = digits()
    _, latents = encoded(data)
    rows = results.setdefault("curve", {})
    seen = (
        latents[data.train],
        data.labels["5 or more"][data.train],
        data.labels["odd"][data.train],
    )
    for name, released in erased(latents, data.labels["5 or more"], data.train).items():
        key = f"{name} {cost_of(latents, released, data.train):.3g}"
        if key not in rows:
            rows[key] = {
                what: attacked(released, data.labels[label], data.test, ("rbf",))
                for what, label in (("private", "5 or more"), ("useful", "odd"))
            }
    for budget in (0.5, 1.0, 2.0, 5.0, 10.0):
        for name in ("isotropic", "adversarial"):
            key = f"{name} {budget:g}"
            if key in rows:
                continue
            made = GenerativeFilter(budget, method=name, steps=600).fit(*seen)
            released = releases_of(made, latents)
            rows[key] = {
                what: attacked(released, data.labels[label], data.test, ("rbf",))
                for what, label in (("private", "5 or more"), ("useful", "odd"))
            }
            keep(results)
            print(key, flush=True)


def information(results: dict) -> None:
    """Figure 9: I(private; release) by nearest neighbours, both cases, over the budget."""
    from ellipsum.learned import GenerativeFilter
    from ellipsum.tradeoff.attackers import knn_information

    data = digits()
    _, latents = encoded(data)
    rows = results.setdefault("information", {})
    for case, (private, useful) in CASES.items():
        hidden, kept = data.labels[private], data.labels[useful]
        raw = {"isotropic": {"0": round(knn_information(latents[data.test], hidden[data.test]), 4)}}
        found = rows.setdefault(case, raw | {"adversarial": dict(raw["isotropic"])})
        for budget in (0.5, 1.0, 2.0, 5.0, 10.0):
            for name in ("isotropic", "adversarial"):
                if f"{budget:g}" in found[name]:
                    continue
                made = GenerativeFilter(budget, method=name, steps=400)
                made.fit(latents[data.train], hidden[data.train], kept[data.train])
                seen = [
                    knn_information(made.transform(latents, seed=i)[data.test], hidden[data.test])
                    for i in range(DRAWS)
                ]
                found[name][f"{budget:g}"] = round(float(np.mean(seen)), 4)
                keep(results)
        print(case, found, flush=True)


def small(results: dict, table: str, data: Labelled, private: str, useful: str) -> None:
    """Tables 2 and 3: a table of numbers, the columns themselves as latents."""
    from ellipsum.learned import GenerativeFilter, GuaranteedFilter

    rows = results.setdefault(table, {})
    rows.clear()
    hidden, kept = data.labels[private], data.labels[useful]
    seen = (data.rows[data.train], hidden[data.train], kept[data.train])
    half = data.rows.shape[1] / 2
    clip = float(np.median(np.linalg.norm(seen[0], axis=1)))
    predicted = label_only(data.rows, kept, data.train)

    def released(made) -> np.ndarray:
        return releases_of(made.fit(*seen), data.rows)

    inside = {"dimension": 1, "steps": 400, "useful_weight": 1.0, "hidden": (16,)}
    for name, rows_out in {
        "raw": data.rows,
        "LEACE": LinearEraser().fit(*seen[:2]).transform(data.rows),
        "oracle shift (label)": OracleShift().fit(*seen[:2]).transform(data.rows, hidden),
        "isotropic noise": released(GenerativeFilter(half, method="isotropic")),
        "filter": released(GenerativeFilter(half, steps=600)),
        "filter, cells across 5 folds": released(GenerativeFilter(half, steps=600, folds=5)),
        "filter, noise alone": released(GenerativeFilter(half, steps=600, shift="none")),
        "predicted label alone": predicted,
        "randomised response, epsilon = 4": flipped(predicted, 4.0),
        "clip and noise, proved mu = 4": released(
            GenerativeFilter(mu=4.0, clip=clip, method="isotropic")
        ),
        "trained inside, proved mu = 4": released(GuaranteedFilter(4.0, **inside)),
    }.items():
        rows[name] = {
            "private": attacked(rows_out, hidden, data.test, ("linear", "rbf")),
            "useful": attacked(rows_out, kept, data.test, ("linear", "rbf")),
        }
    rows["labels"] = {"private": private, "useful": useful}
    keep(results)


def main() -> None:
    import torch

    torch.set_num_threads(1)
    results = json.loads(FILE.read_text()) if FILE.exists() else {}
    jobs = {
        "table1": table1,
        "seeds": seeds,
        "curve": curve,
        "information": information,
        "table2": lambda r: small(r, "table2", breast_cancer(), "size", "malignant"),
        "table3": lambda r: small(r, "table3", diabetes(), "sex", "progression"),
        "table4": table4,
        "table5": table5,
        "several": several,
    }
    wanted = sys.argv[1:] or [*jobs, "pictures", "show"]
    for name in wanted:
        if name in jobs:
            jobs[name](results)
        elif name == "pictures":
            from filter_pictures import draw

            draw(results)
        else:
            from filter_pictures import write_tables

            print(write_tables(results))


if __name__ == "__main__":
    main()
