"""Parts of filter_figures.py: drawings, two users, two useful labels (Tables 4 and 5)."""

from __future__ import annotations

import numpy as np

from learned_baselines import attacked, erased, flipped, label_only, releases_of
from learned_baselines import keep_filters as keep
from learned_data import BUDGET, FACTORS, digits, encoded, shapes


def table4(results: dict) -> None:
    """Eight factors of drawings: each of the others is hidden, "round" is kept."""
    from ellipsum.learned import GenerativeFilter

    data = shapes()
    _, latents = encoded(data, 12)
    rows = results.setdefault("table4", {})
    kept = data.labels["round"]
    for factor in FACTORS[1:]:
        hidden = data.labels[factor]
        seen = (latents[data.train], hidden[data.train], kept[data.train])
        row = rows.setdefault(factor, {})
        row.setdefault("raw", attacked(latents, hidden, data.test, ("rbf",))["strongest"])
        for name, params in {
            "isotropic": {"method": "isotropic"},
            "noise alone": {"shift": "none"},
            "adversarial": {},
        }.items():
            if name in row:
                continue
            made = GenerativeFilter(6.0, steps=500, **params).fit(*seen)
            released = releases_of(made, latents)[:2]
            row[name] = {
                "private": attacked(released, hidden, data.test, ("rbf",))["strongest"],
                "useful": attacked(released, kept, data.test, ("rbf",))["strongest"],
            }
        clip = float(np.median(np.linalg.norm(latents[data.train], axis=1)))
        for name, released in besides(latents, hidden, kept, data.train, clip).items():
            if name not in row:
                row[name] = {
                    "private": attacked(released, hidden, data.test, ("rbf",))["strongest"],
                    "useful": attacked(released, kept, data.test, ("rbf",))["strongest"],
                }
        keep(results)
        print(factor, flush=True)


def besides(
    latents: np.ndarray, hidden: np.ndarray, kept: np.ndarray, train: np.ndarray, clip: float
) -> dict[str, np.ndarray]:
    """Closed forms, the useful label alone, and a proof: two draws of each that is random."""
    from ellipsum.learned import GenerativeFilter

    predicted = label_only(latents, kept, train)
    made = GenerativeFilter(mu=8.0, clip=clip, method="isotropic")
    made.fit(latents[train], hidden[train], kept[train])
    return erased(latents, hidden, train) | {
        "predicted label alone": predicted,
        "randomised response, epsilon = 4": flipped(predicted, 4.0, 2),
        "clip and noise, proved mu = 8": releases_of(made, latents)[:2],
    }


def table5(results: dict) -> None:
    """Two users with opposite choices: attackers trained on the pool, and on the user alone."""
    from ellipsum.learned import FilterBank, GenerativeFilter

    data = digits()
    _, latents = encoded(data)
    users = np.random.default_rng(0).integers(0, 2, len(latents))
    first, second = data.labels["5 or more"], data.labels["odd"]
    train, test = data.train, data.test
    clip = float(np.median(np.linalg.norm(latents[train], axis=1)))
    wanted = {0: (first, second), 1: (second, first)}
    seen = {user: tuple(label[train] for label in both) for user, both in wanted.items()}
    rows = results.setdefault("table5", {})
    banks = {
        f"filter, b = {BUDGET:g}": GenerativeFilter(BUDGET),
        f"isotropic noise, b = {BUDGET:g}": GenerativeFilter(BUDGET, method="isotropic"),
        "clip and noise, proved mu = 8": GenerativeFilter(mu=8.0, clip=clip, method="isotropic"),
    }
    released = {"raw latents": latents}
    for name, made in banks.items():
        if name not in rows:
            bank = FilterBank(made).fit(latents[train], users[train], seen)
            released[name] = np.array([bank.transform(latents, users, seed=i) for i in range(2)])
    own = {user: np.flatnonzero(users == user) for user in wanted}
    for user, (private, useful) in wanted.items():
        inside = np.isin(own[user], train)
        alone = label_only(latents[own[user]], useful[own[user]], np.flatnonzero(inside))
        parts = erased(latents[own[user]], private[own[user]], np.flatnonzero(inside))
        parts["predicted label alone"] = alone
        for name, part in parts.items():
            released.setdefault(name, np.zeros((len(latents), part.shape[1])))[own[user]] = part
    both = flipped(released["predicted label alone"], 4.0, 2)
    released["randomised response, epsilon = 4"] = both
    for name, z in released.items():
        row = rows.setdefault(name, {})
        for user, (private, useful) in wanted.items():
            for what, label in (("private", private), ("useful", useful)):
                key = f"user {user + 1}, {what}"
                if key not in row:
                    row[key] = by_user(z, label, users == user, train, test)
        keep(results)
        print(name, flush=True)


def by_user(
    released: np.ndarray, label: np.ndarray, own: np.ndarray, train: np.ndarray, test: np.ndarray
) -> dict[str, float]:
    """Accuracy on a user's records of attackers trained on the pool, and on the user alone."""
    draws = released if released.ndim == 3 else released[None]
    found = {}
    for name, pool in (("pooled", np.ones(len(own), dtype=bool)), ("informed", own)):
        held = np.zeros(len(own), dtype=bool)
        held[test] = True
        part = np.flatnonzero(pool & ~held | own & held)
        row = attacked(draws[:, part], label[part], np.flatnonzero(held[part]), ("rbf", "knn"))
        found[name] = row["strongest"]
    return found


def several(results: dict) -> None:
    """Two useful labels at once, private >= 5: trained inside, against randomised response."""
    from ellipsum.learned import GenerativeFilter, GuaranteedFilter

    data = digits()
    _, latents = encoded(data)
    rows = results.setdefault("several", {})
    train, private = data.train, data.labels["5 or more"]
    useful = np.c_[data.labels["odd"], data.labels["circle"]]
    made = GuaranteedFilter(4.0, dimension=2, steps=800, useful_weight=2.0)
    made.fit(latents[train], private[train], useful[train])
    predicted = np.hstack([label_only(latents, column, train) for column in useful.T])
    hidden = data.labels["5 or more"]
    clip = float(np.median(np.linalg.norm(latents[train], axis=1)))
    noise, proved = (
        GenerativeFilter(method="isotropic", **params).fit(latents[train], hidden[train])
        for params in ({"budget": BUDGET}, {"mu": 4.0, "clip": clip})
    )
    for name, released in {
        "raw latents": latents,
        **erased(latents, hidden, train),
        "isotropic noise, b = 5": releases_of(noise, latents),
        "clip and noise, proved mu = 4": releases_of(proved, latents),
        "predicted labels alone": predicted,
        "trained inside, proved mu = 4": releases_of(made, latents),
        "randomised response, epsilon = 2 + 2": flipped(predicted, 2.0),
        "randomised response, epsilon = 4 + 4": flipped(predicted, 4.0),
    }.items():
        rows[name] = {
            label: attacked(released, data.labels[label], data.test, ("mlp", "rbf"))
            for label in ("5 or more", "odd", "circle")
        }
    rows["epsilon of mu = 4 at delta 1e-3"] = made.guarantee_.epsilon(1e-3)
    keep(results)
