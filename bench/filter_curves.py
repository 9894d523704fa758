"""Parts of filter_figures.py on digits: accuracy over the budget, who is taken for whom, splits."""

from __future__ import annotations

import numpy as np

from learned_baselines import (
    attacked,
    besides,
    cost_of,
    releases_of,
    tabled,
)
from learned_data import BUDGET, Labelled, Source, encoded
from learned_pictures import Results

#: Private and useful label of the paper's two cases on digits; of the second, Figure 7c's circle.
CASES = {"case 1": ("digit", "circle", None), "case 2": ("5 or more", "odd", "circle")}
BUDGETS = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
READERS = ("linear", "rbf", "knn")
LEARNED = {"isotropic noise": {"method": "isotropic"}, "filter": {}}
MUS = (4.0, 8.0)

#: The budget of Figure 7a.
CONFUSED = 3.0


def said(case: str) -> str:
    """The case and its labels, for a title."""
    private, useful, other = CASES[case]
    more = f", told to nobody: {other}" if other else ""
    return f"{case}: private {private}, useful {useful}{more}"


def curve(results: Results, source: Source) -> None:
    """Figures 3c, 7b, 7c and 9: the same releases read by attackers, and by nearest neighbours."""
    from ellipsum.learned import GenerativeFilter

    data = source.digits()
    _, latents = encoded(data)
    train = data.train
    for case, (private, useful, _) in CASES.items():
        rows = results.setdefault("curve", {}).setdefault(case, {})
        seen = (data.labels[private], data.labels[useful])
        jobs = {
            name: released
            for name, released in proved_and_plain(latents, *seen, train).items()
            if name not in rows
        }
        for name, released in jobs.items():
            cost = 0.0 if name == "raw latents" else None
            if released.shape[-1] == latents.shape[1] and cost is None:
                cost = round(cost_of(latents, released, train), 3)
            rows[name] = {"cost": cost} | read(data, case, released, name)
            results.keep()
        for budget in BUDGETS:
            for name, params in LEARNED.items():
                key = f"{name}, b = {budget:g}"
                if key in rows:
                    continue
                made = GenerativeFilter(budget, **params)
                made.fit(latents[train], *(label[train] for label in seen))
                released = releases_of(made, latents)
                rows[key] = {"cost": budget} | read(data, case, released, key)
                results.keep()
                print(case, key, rows[key]["private"]["strongest"], flush=True)


def proved_and_plain(
    latents: np.ndarray, hidden: np.ndarray, kept: np.ndarray, train: np.ndarray
) -> dict[str, np.ndarray]:
    """Raw latents, what stands beside a filter, and filters with a proof."""
    from ellipsum.learned import GenerativeFilter

    found = {"raw latents": latents} | besides(latents, hidden, kept, train, MUS)
    clip = float(np.median(np.linalg.norm(latents[train], axis=1)))
    for mu in MUS:
        made = GenerativeFilter(mu=mu, clip=clip)
        made.fit(latents[train], hidden[train], kept[train])
        found[f"filter, proved mu = {mu:g}"] = releases_of(made, latents)
    return found


def read(data: Labelled, case: str, released: np.ndarray, name: str) -> dict:
    """What attackers read of the labels of a case, and an estimate of what is told of the private.

    Nearest neighbours on the records held out; of a bit, the frequencies there.
    """
    from ellipsum.tradeoff.neighbors import knn_information

    private, useful, other = CASES[case]
    row = {
        what: attacked(released, data.labels[label], data.test, READERS)
        for what, label in (("private", private), ("useful", useful), ("non-target", other))
        if label is not None
    }
    hidden = data.labels[private][data.test]
    draws = released if released.ndim == 3 else released[None]
    if "randomised" in name:
        return row  # of its bit exactly, beside the predicted label
    if draws.shape[2] == 1:
        bits = draws[0, data.test, 0]
        told = tabled(bits, hidden)
        return row | {"estimate": round(told, 4), "by response": round(tabled(bits, hidden, 4), 4)}
    told = [knn_information(draw[data.test], hidden) for draw in draws]
    return row | {"estimate": round(float(np.mean(told)), 4)}


def confusions(results: Results, source: Source) -> None:
    """Figures 3a, 3b and 7a: guesses of an RBF attacker by true class, at b = 3."""
    from sklearn.metrics import confusion_matrix
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    data = source.digits()
    _, latents = encoded(data)
    for case in CASES:
        rows = results.setdefault("confusions", {}).setdefault(case, {})
        private = data.labels[CASES[case][0]]
        for name, released in at_one_budget(data, latents, case, CONFUSED).items():
            draws = released if released.ndim == 3 else released[None]
            seen = np.concatenate(draws[:, data.train])
            attacker = make_pipeline(StandardScaler(), SVC(C=10.0))
            attacker.fit(seen, np.tile(private[data.train], len(draws)))
            guessed = attacker.predict(np.concatenate(draws[:, data.test]))
            true = np.tile(private[data.test], len(draws))
            table = confusion_matrix(true, guessed, normalize="true")
            rows[name] = table.round(4).tolist()
            results.keep()
        print(case, "confusions", flush=True)


def at_one_budget(
    data: Labelled, latents: np.ndarray, case: str, budget: float
) -> dict[str, np.ndarray]:
    """Filters and noise of one budget, and what stands beside them."""
    from ellipsum.learned import GenerativeFilter

    hidden, kept = (data.labels[label] for label in CASES[case][:2])
    found = proved_and_plain(latents, hidden, kept, data.train)
    for name, params in {**LEARNED, "filter (label)": {"uses_label": True}}.items():
        made = GenerativeFilter(budget, **params)
        made.fit(latents[data.train], hidden[data.train], kept[data.train])
        told = hidden if made.uses_label else None
        found[f"{name}, b = {budget:g}"] = releases_of(made, latents, told)
    return found


def seeds(results: Results, source: Source) -> None:
    """Case 2 on five splits of the records, each with its own encoder and attackers."""
    from ellipsum.learned import GenerativeFilter

    rows = results.setdefault("seeds", {})
    for seed in range(5):
        if str(seed) in rows:
            continue
        data = source.digits(seed)
        _, latents = encoded(data, seed=seed)
        private, useful = data.labels["5 or more"], data.labels["odd"]
        seen = (latents[data.train], private[data.train], useful[data.train])
        found = {}
        for name, params in LEARNED.items():
            made = GenerativeFilter(BUDGET, seed=seed, **params).fit(*seen)
            found[f"{name}, b = {BUDGET:g}"] = releases_of(made, latents)
        found |= besides(latents, private, useful, data.train, MUS)
        rows[str(seed)] = {
            name: {
                what: attacked(released, label, data.test, READERS)["strongest"]
                for what, label in (("private", private), ("useful", useful))
            }
            for name, released in found.items()
        }
        results.keep()
        print("seed", seed, flush=True)
