"""Pictures of filter_figures.py."""

from __future__ import annotations

import numpy as np

from filter_curves import BUDGETS, CASES, CONFUSED, LEARNED, said
from learned_data import Labelled, Source, encoded
from learned_pictures import Results, image_rows, save

COLORS = {
    "isotropic noise": "0.55",
    "filter": "#1d5fbf",
    "raw latents": "black",
    "LEACE": "#7c3aed",
    "oracle shift (label)": "#c2410c",
    "predicted label alone": "#0f766e",
    "randomised response, epsilon = 4": "#65a30d",
    "clip and noise, proved": "0.3",
    "filter, proved": "#1d5fbf",
}
MARKS = {
    "LEACE": "D",
    "oracle shift (label)": "^",
    "clip and noise, proved": "s",
    "filter, proved": "*",
}

#: Budgets of Figure 4.
MAPPED = (1.5, 5.0)


def draw(results: Results, source: Source) -> None:
    """filter_curve.png, filter_information.png, filter_samples_case_1.png, ..."""
    import matplotlib

    matplotlib.use("Agg")
    if "curve" in results:
        _curve(results)
        _information(results)
    if "confusions" in results:
        _confusions(results)
    if source.of_digits:
        data = source.digits()
        encoder, latents = encoded(data)
        for case in CASES:
            made = _released(data, latents, case)
            _samples(results, data, encoder, made, case)
            _maps(results, data, made, case)
    if not source.own or not source.of_digits:
        _drawings(results, source)


def _lines(ax, rows: dict, label: str, read) -> None:
    """What was read of one label: lines over the budget, marks at their own cost, levels."""
    style = {"private": "--", "useful": "-", "non-target": ":"}[label]
    suffix = ", non-target" if label == "non-target" else ""
    for name in LEARNED:
        points = [rows[f"{name}, b = {b:g}"] for b in BUDGETS if f"{name}, b = {b:g}" in rows]
        values, errors = zip(*(read(row) for row in points), strict=True)
        ax.errorbar([row["cost"] for row in points], values, errors, ls=style, marker="o", ms=4,
                    capsize=2, color=COLORS[name], label=name + suffix)  # fmt: skip
    for name, mark in MARKS.items():
        for key, row in rows.items():
            if key.startswith(name):
                value, error = read(row)
                full = "none" if label == "non-target" else COLORS[name]
                text = name + suffix + (" μ = 8, then 4" if name.endswith("proved") else "")
                again = any(line.get_label() == text for line in ax.containers)
                ax.errorbar(row["cost"], value, error, fmt=mark, ms=8 if mark == "*" else 5,
                            color=COLORS[name], mfc=full, capsize=2,
                            label=None if again else text)  # fmt: skip


def _levels(ax, rows: dict, label: str, read) -> None:
    """Releases that have no budget, and no cost in latents."""
    for name in ("raw latents", "predicted label alone", "randomised response, epsilon = 4"):
        ax.axhline(read(rows[name])[0], color=COLORS[name], lw=0.9,
                   ls=":" if label == "non-target" else "-",
                   label=None if label == "non-target" else name)  # fmt: skip


def _curve(results: Results) -> None:
    """Figures 3c, 7b and 7c: both cases; strongest of three fresh attackers, standard errors."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 8))
    for line, (case, rows) in zip(axes, results["curve"].items(), strict=True):
        private, useful, other = CASES[case]
        for ax, what in zip(line, ("private", "useful"), strict=True):
            for label in (what, *(["non-target"] if what == "useful" and other else [])):

                def read(row: dict, label: str = label) -> tuple[float, float]:
                    return row[label]["strongest"], row[label]["se"]

                _lines(ax, rows, label, read)
                _levels(ax, rows, label, read)
            chance = rows["raw latents"][what]["constant"]
            ax.axhline(chance, color="0.85", zorder=0, label="always the commonest")
            name = private if what == "private" else useful
            also = f" (dotted, open: {other}, told to nobody)" if other and what == "useful" else ""
            ax.set_title(f"{case}: {what} {name}{also}", fontsize=9)
            ax.set_xscale("log")
            ax.set_xlabel("distortion: budget b, or what the release costs")
            ax.set_ylabel("accuracy, strongest of 3 fresh attackers")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, ncols=4, fontsize=7, loc="lower center", frameon=False)
    save(figure, results.folder / "filter_curve.png", below=0.07)


def _information(results: Results) -> None:
    """Figure 9, of the same releases."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6))
    for ax, (case, found) in zip(axes, results["curve"].items(), strict=True):
        rows = {key: row for key, row in found.items() if "estimate" in row}
        told = rows["predicted label alone"]["by response"]
        rows["randomised response, epsilon = 4"] = {"estimate": told}

        def read(row: dict) -> tuple[float, float]:
            return row["estimate"], 0.0

        _lines(ax, rows, "private", read)
        _levels(ax, rows, "private", read)
        for name in LEARNED:
            points = [rows[f"{name}, b = {b:g}"] for b in BUDGETS if f"{name}, b = {b:g}" in rows]
            least = [row["private"]["information"] for row in points]
            ax.plot([row["cost"] for row in points], least, ":", color=COLORS[name],
                    label=f"{name}: at least, by attackers")  # fmt: skip
        ax.set_title(said(case), fontsize=9)
        ax.set_xscale("log")
        ax.set_xlabel("distortion: budget b, or what the release costs")
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel("I(private; release), estimate (nats)")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, ncols=4, fontsize=7, loc="lower center", frameon=False)
    save(figure, results.folder / "filter_information.png", below=0.12)


def _released(data: Labelled, latents: np.ndarray, case: str) -> dict[str, np.ndarray]:
    """One release of every row: raw, noise and filters at the budgets of Figures 4 and 7a."""
    from ellipsum.learned import GenerativeFilter

    hidden, kept = (data.labels[label] for label in CASES[case][:2])
    seen = (latents[data.train], hidden[data.train], kept[data.train])
    made = {"raw": latents}
    for budget in sorted({*MAPPED, CONFUSED}):
        for name, params in LEARNED.items():
            one = GenerativeFilter(budget, **params).fit(*seen)
            made[f"{name}, b = {budget:g}"] = one.transform(latents, seed=0)
    return made


def _samples(results: Results, data: Labelled, encoder, made: dict, case: str) -> None:
    """Figures 2 and 6. The paper names no budget for them; that of its confusions is taken."""
    if round(data.rows.shape[1] ** 0.5) ** 2 != data.rows.shape[1]:
        return
    shown = data.test[:12]
    lines = {"data": data.rows[shown]} | {
        name.replace("raw", "decoded"): encoder.inverse_transform(rows[shown])
        for name, rows in made.items()
        if name == "raw" or name.endswith(f"b = {CONFUSED:g}")
    }
    figure = image_rows(lines, (9, 3.6), said(case))
    save(figure, results.folder / f"filter_samples_{case.replace(' ', '_')}.png")


def _maps(results: Results, data: Labelled, made: dict, case: str) -> None:
    """Figures 4 and 8: neighbours' maps (t-SNE, each release by itself) of records held out."""
    import matplotlib.pyplot as plt
    from sklearn.manifold import TSNE

    columns = ["raw", *(f"filter, b = {b:g}" for b in MAPPED)]
    columns.append(f"isotropic noise, b = {MAPPED[-1]:g}")
    labels = list(dict.fromkeys(("digit", *CASES[case][:2])))
    few = data.test[:2000]
    size = (3 * len(columns), 0.4 + 2.8 * len(labels))
    figure, axes = plt.subplots(len(labels), len(columns), figsize=size)
    for column, name in enumerate(columns):
        flat = TSNE(init="pca", random_state=0).fit_transform(made[name][few])
        for line, label in enumerate(labels):
            ax, value = axes[line, column], data.labels[label][few]
            cmap = "tab10" if label == "digit" else "coolwarm"
            ax.scatter(*flat.T, c=value, s=5, cmap=cmap, alpha=0.8)
            ax.set_title(f"{name}: {label}", fontsize=9)
            ax.set_xticks([])
            ax.set_yticks([])
            if label == "digit":
                for digit in np.unique(value):
                    at = np.median(flat[value == digit], axis=0)
                    ax.text(*at, str(digit), weight="bold", ha="center", va="center")
    figure.suptitle(said(case), fontsize=10)
    save(figure, results.folder / f"filter_latents_{case.replace(' ', '_')}.png")


def _confusions(results: Results) -> None:
    """Figures 3a, 3b and 7a."""
    import matplotlib.pyplot as plt

    columns = ["raw latents", *(f"{name}, b = {CONFUSED:g}" for name in LEARNED)]
    columns.append(f"filter (label), b = {CONFUSED:g}")
    for case, found in results["confusions"].items():
        figure, axes = plt.subplots(1, len(columns), figsize=(12, 3.9))
        for ax, name in zip(axes, columns, strict=True):
            table = np.array(found[name])
            ax.imshow(table, cmap="Blues", vmin=0, vmax=1)
            ticks = range(len(table))
            ax.set_xticks(ticks)
            ax.set_yticks(ticks)
            if len(table) == 2:
                ax.set_xticks(ticks, ("below 5", "5 or more"))
                ax.set_yticks(ticks, ("below 5", "5 or more"), rotation=90, va="center")
            size = 12 if len(table) == 2 else 5
            for i, j in np.ndindex(table.shape):
                if table[i, j] >= 0.005:
                    shade = "white" if table[i, j] > 0.5 else "black"
                    text = f"{table[i, j]:.2f}".removeprefix("0")
                    ax.text(j, i, text, ha="center", va="center", fontsize=size, color=shade)
            ax.set_title(f"{name}: {np.trace(table) / len(table):.2f} right", fontsize=8)
            ax.set_xlabel("guessed by a fresh RBF attacker", fontsize=8)
        axes[0].set_ylabel("true")
        figure.suptitle(said(case), fontsize=10)
        save(figure, results.folder / f"filter_confusions_{case.replace(' ', '_')}.png")


def _drawings(results: Results, source: Source) -> None:
    """Figures 5 and 10 to 13: raw and decoded rows, and filters that hide one factor each."""
    from ellipsum.learned import GenerativeFilter

    data, factors, useful = source.faces()
    if round(data.rows.shape[1] ** 0.5) ** 2 != data.rows.shape[1]:
        return
    encoder, latents = encoded(data, 12)
    lines = {"raw": data.rows, "decoded": encoder.inverse_transform(latents)}
    kept = data.labels[useful][data.train]
    for factor in [f for f in ("large", "slant", "dot") if f in factors] or factors[:3]:
        made = GenerativeFilter(6.0, steps=500)
        made.fit(latents[data.train], data.labels[factor][data.train], kept)
        decoded = encoder.inverse_transform(made.transform(latents, seed=0))
        lines[f"hides {factor}"] = decoded
    shown = data.test[:12]
    title = f"one private factor each, useful: {useful}; b = 6"
    figure = image_rows({name: rows[shown] for name, rows in lines.items()}, (9, 4.0), title)
    save(figure, results.folder / "filter_drawings.png")
