"""Parts of filter_figures.py: drawings, two users, two useful labels (Tables 4 and 5)."""

from __future__ import annotations

import numpy as np

from learned_baselines import attacked, besides, erased, flipped, label_only, releases_of
from learned_data import BUDGET, Source, encoded
from learned_pictures import Results


def table4(results: Results, source: Source) -> None:
    """Factors of drawings (or of faces): each of seven is hidden, "round" is kept."""
    from ellipsum.learned import GenerativeFilter

    data, factors, useful = source.faces()
    _, latents = encoded(data, 12)
    rows = results.setdefault("table4", {})
    kept = data.labels[useful]
    for factor in factors:
        hidden = data.labels[factor]
        seen = (latents[data.train], hidden[data.train], kept[data.train])
        row = rows.setdefault(factor, {})
        found = {"raw": latents}
        found |= besides(latents, hidden, kept, data.train, (8.0,), draws=2)
        for name, params in {
            "isotropic noise": {"method": "isotropic"},
            "filter, noise alone": {"shift": "none"},
            "filter": {},
        }.items():
            if name not in row:
                made = GenerativeFilter(6.0, steps=500, **params).fit(*seen)
                found[name] = releases_of(made, latents)[:2]
        for name, released in found.items():
            if name not in row:
                row[name] = {
                    what: attacked(released, label, data.test, ("rbf",), area=True)
                    for what, label in (("private", hidden), ("useful", kept))
                }
        results.keep()
        print("table4", factor, flush=True)


def table5(results: Results, source: Source) -> None:
    """Two users with opposite choices: attackers trained on the pool, and on the user alone."""
    from ellipsum.learned import FilterBank, GenerativeFilter

    data = source.digits()
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
        results.keep()
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


def several(results: Results, source: Source) -> None:
    """Two useful labels at once, private >= 5: trained inside, against randomised response."""
    from ellipsum.learned import GenerativeFilter, GuaranteedFilter

    data = source.digits()
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
    results.keep()
