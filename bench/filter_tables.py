"""Tables of filter_figures.py."""

from __future__ import annotations

import numpy as np

from filter_curves import CASES, said
from filter_splits import splits_cells
from learned_pictures import Results

USERS = """\
User 1 hides "5 or more" and keeps "odd", user 2 the opposite. Accuracy of the attacker trained on
the pool, and of one who knows the user. The other rows are closed forms of each user's records."""
OPTIMUM = """\
No table here has an optimum beside it: the law of the latents is not known. Where it is (Gaussian
numbers, letters) it stands in ppan_figures.md."""
CURVE = """\
Digits; accuracy ± standard error over records of the strongest of three fresh attackers (linear,
RBF, nearest neighbours). What is told of the private label, in nats: by the nearest neighbours'
estimate of Figure 9 (of one bit, by its frequencies), and at least, by what the attackers learned:
where the second is larger, the estimate is too low. Costs: the budget, or half the mean square of
the change in the metric of the latents. What has neither budget nor cost is not of latents."""
CONFUSIONS = """\
A fresh RBF attacker on the private label. Case 1: the digit guessed right, and the share of the
wrong guesses that are of the same class (with a circle, or without one; evenly wrong: .47).
Case 2: 5 or more that were missed, and that were guessed of smaller ones."""
AREAS = """\
Accuracy and area under the ROC, the larger of a linear and an RBF attacker's; ± standard errors
over the records held out (DeLong's for areas), of one split; raw is b = 0."""
SPLITS = """\
The same at one budget on three splits: accuracy of the stronger attacker, mean ± standard deviation
over splits (filter, attackers and records held out are new in each), and beside it the mean of the
standard errors over records, which one split tells."""
FACTORS = """\
Drawings with eight factors stand for CelebA's faces: one is kept (round) and the other seven are
hidden, one at a time; the paper hides eight labels beside the one it keeps. RBF attacker, b = 6,
± standard errors over the records held out; of an average, the mean of them, since the records
are the same: an upper bound."""


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def _accuracy(row: dict) -> str:
    return f"{row['strongest']:.3f} ± {row['se']:.3f}"


def _area(row: dict) -> str:
    return f"{row['auroc']:.3f} ± {row['auroc se']:.3f}" if "auroc" in row else ""


def _cells(row: dict) -> str:
    return " / ".join(f"{row[k]:.3f}"[1:] for k in ("linear", "mlp", "rbf", "knn") if k in row)


def table1_lines(results: dict) -> list[str]:
    """Digits, all releases: linear / network / RBF / neighbours."""
    lines = [
        "| release | private (5 or more) | useful (odd) | circle, RBF | proof allows |",
        "|---|---|---|---|---|",
    ]
    for name, row in results.get("table1", {}).items():
        allowed = f"{row['most, by the proof']:.3f}" if "mu" in row else ""
        circle = f"{row['non-target']['strongest']:.3f}"[1:]
        both = f"{_cells(row['private'])} | {_cells(row['useful'])}"
        lines.append(f"| {name} | {both} | {circle} | {allowed} |")
    return lines


def table5_lines(results: dict) -> list[str]:
    """Two users."""
    rows = results.get("table5", {})
    parts = list(next(iter(rows.values()), {}))
    lines = ["| release | " + " | ".join(parts) + " |", "|---" * (1 + len(parts)) + "|"]
    for name, row in rows.items():
        cells = [f"{row[k]['pooled']:.3f}, {row[k]['informed']:.3f}" for k in parts]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def curve_lines(rows: dict) -> list[str]:
    """A case over the budget."""
    parts = [what for what in ("private", "useful", "non-target") if what in rows["raw latents"]]
    lines = []
    for name, row in rows.items():
        cost = "" if row["cost"] is None else f"{row['cost']:.3g}"
        told = f"{row['estimate']:.3f}" if "estimate" in row else ""
        if name.startswith("randomised"):
            told = f"{rows['predicted label alone']['by response']:.3f}"
        least = f"{row['private']['information']:.3f}"
        lines.append([name, cost, *(_accuracy(row[what]) for what in parts), told, least])
    return _table(["release", "cost", *parts, "told, estimate", "told, at least"], lines)


def confusion_lines(rows: dict) -> list[str]:
    """What was taken for what."""
    circle = np.isin(np.arange(10), (0, 6, 8, 9))
    same = (circle[:, None] == circle) & ~np.eye(10, dtype=bool)
    lines = []
    for name, found in rows.items():
        table = np.array(found)
        if len(table) == 10:
            wrong = (table * ~np.eye(10, dtype=bool)).sum()
            share = f"{(table * same).sum() / wrong:.2f}" if wrong else ""
            lines.append([name, f"{np.trace(table) / 10:.3f}", share])
        else:
            lines.append([name, f"{table[1, 0]:.3f}", f"{table[0, 1]:.3f}"])
    ten = len(table) == 10
    head = ["right", "wrong, same class"] if ten else ["missed", "false"]
    return _table(["release", *head], lines)


def seeds_lines(rows: dict) -> list[str]:
    """Splits, each with its own encoder; mean and standard deviation over them."""
    lines = []
    for name in next(iter(rows.values()), {}):
        both = np.array([[row[name]["private"], row[name]["useful"]] for row in rows.values()])
        cells = [f"{hidden:.3f}, {kept:.3f}" for hidden, kept in both]
        spread = zip(both.mean(0), both.std(0, ddof=1), strict=True)
        lines.append([name, *(f"{mean:.3f} ± {sd:.3f}" for mean, sd in spread), *cells])
    head = ["release", "private", "useful", *(f"seed {seed}" for seed in rows)]
    return _table(head, lines)


def splits_lines(rows: dict) -> list[str]:
    """Table 2 or 3 over splits."""
    head = ["release", "private, ± over splits", "se over records", "useful", "se over records"]
    return _table(head, splits_cells(rows))


def small_lines(rows: dict) -> list[str]:
    """Table 2 or 3: what has no budget, then a group of rows for each."""
    rows = dict(sorted(rows.items(), key=lambda row: float(row[0].partition("b = ")[2] or 0)))
    lines = [
        [name, *(cell(row[what]) for what in ("private", "useful") for cell in (_accuracy, _area))]
        for name, row in rows.items()
        if name != "labels"
    ]
    chance = [f"{rows['raw'][what]['constant']:.3f}" for what in ("private", "useful")]
    lines.insert(0, ["always the commonest", chance[0], "0.500", chance[1], "0.500"])
    head = ["release", "private: accuracy", "auROC", "useful: accuracy", "auROC"]
    return _table(head, lines)


def table4_lines(rows: dict, what: str, error: str, cell) -> list[str]:
    """Factors as columns, as in the paper, and averages."""
    first = next(iter(rows.values()))
    lines = []
    if what == "strongest":
        chance = [row["raw"]["private"]["constant"] for row in rows.values()]
        kept = first["raw"]["useful"]["constant"]
        cells = [f"{c:.3f}" for c in (*chance, np.mean(chance), kept)]
        lines.append(["always the commonest", *cells])
    for name in first:
        private = [row[name]["private"] for row in rows.values()]
        useful = [row[name]["useful"] for row in rows.values()]
        mean = [
            {key: np.mean([one[key] for one in part]) for key in (what, error)}
            for part in (private, useful)
        ]
        lines.append([name, *map(cell, (*private, *mean))])
    return _table(["release", *(f"{n} hidden" for n in rows), "average", "kept: average"], lines)


def several_lines(rows: dict) -> list[str]:
    """Two useful labels."""
    lines = [
        [name, *(f"{row[k]['strongest']:.3f}" for k in row)]
        for name, row in rows.items()
        if isinstance(row, dict)
    ]
    epsilon = rows["epsilon of mu = 4 at delta 1e-3"]
    text = f"mu = 4 is epsilon = {epsilon:.2f} at delta = 1e-3."
    return [*_table(["release", "private: 5 or more", "odd", "circle"], lines), text, ""]


def write_tables(results: Results) -> str:
    """All tables as Markdown, also to filter_figures.md beside the results."""
    parts = ["# Generative filter on stand-ins", "", "`python bench/filter_figures.py`", ""]
    if "encoder" in results:
        parts += [f"Encoder on digits: {results['encoder']}", ""]
    parts += [OPTIMUM, ""]
    if "table1" in results:
        parts += ["## Table 1: digits, accuracy of linear / network / RBF / neighbours", ""]
        parts += [*table1_lines(results), ""]
    if "curve" in results:
        parts += ["## Over the budget (Figures 3c, 7b, 7c, 9)", "", CURVE, ""]
        for case in CASES:
            parts += [f"{said(case)[0].upper()}{said(case)[1:]}.", ""]
            parts += curve_lines(results["curve"][case])
    if "confusions" in results:
        parts += ["## Who is taken for whom, b = 3 (Figures 3a, 3b, 7a)", "", CONFUSIONS, ""]
        for case in CASES:
            parts += [f"{said(case)[0].upper()}{said(case)[1:]}.", ""]
            parts += confusion_lines(results["confusions"][case])
    if "seeds" in results:
        parts += ["## Case 2 on five splits (private, useful: strongest of the same three)", ""]
        parts += seeds_lines(results["seeds"])
    for table in ("table2", "table3"):
        if table in results:
            told = results[table]["labels"]
            title = f"Table {table[-1]}: private {told['private']}, useful {told['useful']}"
            parts += [f"## {title}", "", AREAS, "", *small_lines(results[table])]
        if table in results.get("splits", {}):
            parts += [SPLITS, "", *splits_lines(results["splits"][table])]
    if "table4" in results:
        parts += ["## Table 4: one factor hidden, one kept", "", FACTORS, "", "Accuracy.", ""]
        parts += table4_lines(results["table4"], "strongest", "se", _accuracy)
        parts += ["Area under the ROC.", ""]
        parts += table4_lines(results["table4"], "auroc", "auroc se", _area)
    if "several" in results:
        parts += ["## Two useful labels at once (strongest of network and RBF)", ""]
        parts += several_lines(results["several"])
    if "table5" in results:
        parts += ["## Table 5: two users with opposite choices", "", USERS, ""]
        parts += table5_lines(results)
    text = "\n".join(parts).rstrip() + "\n"
    (results.folder / "filter_figures.md").write_text(text)
    return text
