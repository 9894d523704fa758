"""Figures and tables of Chen, Navidi & Rajagopal (generative filter) on stand-ins.

python bench/filter_figures.py            everything that is not in bench/results yet
python bench/filter_figures.py table1     digits at one budget, all releases, four attackers
                               seeds      the same budget on five splits and encoders
                               splits     Tables 2 and 3 at one budget on three splits
                               curve      both cases over the budget (Figures 3c, 7b, 7c, 9)
                               confusions both cases at b = 3 (Figures 3a, 3b, 7a)
                               table2 table3 table4 table5
                               several    two useful labels at once
                               (--again: those of them that are in bench/results, too)
                               pictures   draw these; samples, maps (2, 4 to 6, 8, 10 to 13)
                               show       print the tables that were written

The paper's own data, where they are at hand: results go to ./own_results or --results FOLDER.

    filter_figures.py curve table1 --rows mnist_images.npy --labels mnist_digits.npy
    filter_figures.py table2 --rows adult.csv --labels adult.csv --private sex --useful income
    filter_figures.py table3 --rows abalone.csv --labels abalone.csv --private sex \\
                             --useful "rings>10"
    filter_figures.py table4 --rows faces.npy --labels attributes.csv --private Male,Young \\
                             --useful Smiling

Every attacker is trained afresh on four releases of the training records and tested on records
that neither encoder, filter nor attacker has seen. The largest of their accuracies is the one to
read. Results: bench/results/filter_figures.json and .md, filter_*.png.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.special import ndtr

from ellipsum.tradeoff import LinearEraser, OracleShift
from filter_curves import confusions, curve, seeds
from filter_more import several, table4, table5
from filter_splits import splits
from learned_baselines import attacked, besides, flipped, label_only, releases_of
from learned_data import BUDGET, Labelled, Source, encoded
from learned_pictures import Results, options

#: Budgets of Table 3, and what its rows and those of Table 2 are learned by.
TABLE3 = (0.01, 0.1, 1.0, 10.0)
SMALL = {
    "isotropic noise": {"method": "isotropic"},
    "filter": {"steps": 600},
    "filter, cells across 5 folds": {"steps": 600, "folds": 5},
    "filter, noise alone": {"steps": 600, "shift": "none"},
}


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


def table1(results: Results, source: Source) -> None:
    """Table 1 and the must-show table: digits, private >= 5, useful odd, non-target circle."""
    data = source.digits()
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
        results.keep()
        print(f"{name:42} private {row['private']['strongest']:.3f}", flush=True)
    results["table1"] = {name: rows[name] for name in names}
    results.keep()


def small(results: Results, source: Source, number: int) -> None:
    """Tables 2 and 3: a table of numbers, the columns themselves as latents."""
    from ellipsum.learned import GenerativeFilter, GuaranteedFilter

    data, private, useful = source.table(number)
    rows = results[f"table{number}"] = {}
    hidden, kept = data.labels[private], data.labels[useful]
    seen = (data.rows[data.train], hidden[data.train], kept[data.train])
    half = data.rows.shape[1] / 2
    made = {
        f"{name}, b = {budget:g}": GenerativeFilter(budget, **params)
        for budget in (half, *(TABLE3 if number == 3 else ()))
        for name, params in SMALL.items()
    }
    inside = {"dimension": 1, "steps": 400, "useful_weight": 1.0, "hidden": (16,)}
    found = {"raw": data.rows} | besides(data.rows, hidden, kept, data.train, (4.0,))
    found["trained inside, proved mu = 4"] = GuaranteedFilter(4.0, **inside)
    for name, one in (found | made).items():
        released = one
        if not isinstance(one, np.ndarray):
            released = releases_of(one.fit(*seen), data.rows)
        rows[name] = {
            what: attacked(released, label, data.test, ("linear", "rbf"), area=True)
            for what, label in (("private", hidden), ("useful", kept))
        }
        print(f"table{number}", name, flush=True)
    results[f"table{number}"] |= {"labels": {"private": private, "useful": useful}}
    results.keep()


def main(arguments: list[str] | None = None) -> None:
    import torch

    torch.set_num_threads(1)
    jobs = {
        "table1": table1,
        "seeds": seeds,
        "splits": splits,
        "curve": curve,
        "confusions": confusions,
        "table2": lambda r, s: small(r, s, 2),
        "table3": lambda r, s: small(r, s, 3),
        "table4": table4,
        "table5": table5,
        "several": several,
    }
    known = [*jobs, "pictures", "show"]
    given = options(__doc__, known, arguments)
    results, source = Results(given.results, "filter_figures", indent=1), given.source
    results.limit_to([*jobs, "encoder"])
    for name in given.jobs or known:
        if name in jobs:
            if given.again:
                results.pop(name, None)
            jobs[name](results, source)
        elif name == "pictures":
            from filter_pictures import draw

            draw(results, source)
        else:
            from filter_tables import write_tables

            print(write_tables(results))


if __name__ == "__main__":
    main()
