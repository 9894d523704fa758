"""Tables 2 and 3 of filter_figures.py on several splits: what one split's standard errors are not.

A standard error over records holds for one split, one filter and one set of attackers; between
splits all of these change. Both are printed.
"""

from __future__ import annotations

import numpy as np

from learned_baselines import attacked, besides, releases_of
from learned_data import Labelled, Source
from learned_pictures import Results

SPLITS = 3
READERS = ("linear", "rbf")


def splits(results: Results, source: Source) -> None:
    """The middle budget of each table on three splits, every filter and attacker trained anew."""
    from ellipsum.learned import GenerativeFilter

    found = results.setdefault("splits", {})
    for seed in range(SPLITS):
        for number in (2, 3):
            whole, private, useful = source.table(number)
            hidden, kept = whole.labels[private], whole.labels[useful]
            rows = found.setdefault(f"table{number}", {})
            half = whole.rows.shape[1] / 2
            if str(seed) in rows:
                continue
            data = split_anew(whole, hidden * (kept.max() + 1) + kept, seed)
            seen = (data.rows[data.train], hidden[data.train], kept[data.train])
            released = {"raw": data.rows} | besides(data.rows, hidden, kept, data.train, (4.0,))
            for name, params in {
                "isotropic noise": {"method": "isotropic"},
                "filter": {"steps": 600},
                "filter, cells across 5 folds": {"steps": 600, "folds": 5},
            }.items():
                made = GenerativeFilter(half, seed=seed, **params).fit(*seen)
                released[f"{name}, b = {half:g}"] = releases_of(made, data.rows)
            rows[str(seed)] = {
                name: {
                    what: (row["strongest"], row["se"])
                    for what, label in (("private", hidden), ("useful", kept))
                    for row in [attacked(z, label, data.test, READERS)]
                }
                for name, z in released.items()
            }
            results.keep()
            print("splits", number, seed, flush=True)


def split_anew(data: Labelled, strata: np.ndarray, seed: int) -> Labelled:
    """The same rows; split 0 is that of the tables."""
    from sklearn.model_selection import train_test_split

    everyone = np.arange(len(data.rows))
    share = len(data.test) / len(everyone)
    train, test = train_test_split(everyone, test_size=share, random_state=seed, stratify=strata)
    return data._replace(train=train, test=test)


def splits_cells(rows: dict) -> list[list[str]]:
    """Release; mean and sd over splits, and the mean standard error over records of one."""
    lines = []
    for name in next(iter(rows.values()), {}):
        cells = [name]
        for what in ("private", "useful"):
            found = np.array([row[name][what] for row in rows.values()])
            cells.append(f"{found[:, 0].mean():.3f} ± {found[:, 0].std(ddof=1):.3f}")
            cells.append(f"{found[:, 1].mean():.3f}")
        lines.append(cells)
    return lines
