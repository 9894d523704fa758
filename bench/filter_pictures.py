"""Pictures and tables of filter_figures.py."""

from __future__ import annotations

import numpy as np

from learned_pictures import RESULTS, image_rows, save

USERS = """\
User 1 hides "5 or more" and keeps "odd", user 2 the opposite. Accuracy of the attacker trained on
the pool, and of one who knows the user. The other rows are closed forms of each user's records."""
OPTIMUM = """\
No table here has an optimum beside it: the law of the latents is not known. Where it is (Gaussian
numbers, letters) it stands in ppan_figures.md."""


def draw(results: dict) -> None:
    """filter_curve.png, filter_information.png, filter_samples.png, filter_latents.png, ..."""
    import matplotlib

    matplotlib.use("Agg")
    if "curve" in results:
        _curve(results["curve"], results["table1"]["predicted label alone"])
    if "information" in results:
        _information(results["information"])
    _digits()
    _drawings()


def _information(rows: dict) -> None:
    """Figure 9."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(rows), figsize=(9, 3.4))
    for ax, (case, found) in zip(axes, rows.items(), strict=True):
        for name, color in (("isotropic", "0.5"), ("adversarial", "#1d5fbf")):
            points = sorted((float(b), value) for b, value in found[name].items())
            label = "filter" if name == "adversarial" else "isotropic noise"
            ax.plot(*np.transpose(points), "o-", color=color, label=label)
        hidden = "the digit, 10 values" if case == "case 1" else "5 or more"
        ax.set_title(f"{case}: {hidden}", fontsize=9)
        ax.set_xlabel("distortion budget b")
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel("I(private; release) (nats)")
    axes[0].legend(fontsize=8, frameon=False)
    save(figure, "filter_information.png")


def _drawings() -> None:
    """Figures 10 to 13: raw drawings, decoded ones, and filters that hide one factor each."""

    from ellipsum.learned import GenerativeFilter
    from learned_data import encoded, shapes

    data = shapes()
    encoder, latents = encoded(data, 12)
    lines = {"raw": data.rows, "decoded": encoder.inverse_transform(latents)}
    kept = data.labels["round"][data.train]
    for factor in ("large", "slant", "dot"):
        made = GenerativeFilter(6.0, steps=500)
        made.fit(latents[data.train], data.labels[factor][data.train], kept)
        decoded = encoder.inverse_transform(made.transform(latents, seed=0))
        lines[f"hides {factor}"] = decoded
    shown = data.test[:12]
    figure = image_rows({name: rows[shown] for name, rows in lines.items()}, (9, 4.0))
    save(figure, "filter_drawings.png")


def _curve(rows: dict, alone: dict) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
    color = {"isotropic": "0.5", "adversarial": "#1d5fbf"}
    for name in color:
        points = sorted((float(k.split()[1]), v) for k, v in rows.items() if k.startswith(name))
        budgets = [b for b, _ in points]
        for what, style in (("useful", "-"), ("private", "--")):
            values = [v[what]["strongest"] for _, v in points]
            label = f"{what}, {'filter' if name == 'adversarial' else 'isotropic noise'}"
            axes[0].plot(budgets, values, style, color=color[name], marker="o", label=label)
            values = [v[what]["information"] for _, v in points]
            axes[1].plot(budgets, values, style, color=color[name], marker="o")
    for key, v in rows.items():
        name, _, at = key.rpartition(" ")
        if name not in color:
            mark = "D" if name == "LEACE" else "^"
            for what, full in (("useful", color["isotropic"]), ("private", "none")):
                axes[0].plot(float(at), v[what]["strongest"], mark, mec="0.3", mfc=full, ms=5)
                axes[1].plot(float(at), v[what]["information"], mark, mec="0.3", mfc=full, ms=5)
    figure.suptitle(
        "◆ LEACE, ▲ oracle shift, green: predicted label alone; open or dashed: private", fontsize=8
    )
    for what, style in (("useful", "-"), ("private", "--")):
        axes[0].axhline(alone[what]["rbf"], color="#0f766e", ls=style, lw=0.8)
        axes[1].axhline(alone[what]["information"], color="#0f766e", ls=style, lw=0.8)
    axes[0].axhline(0.5, color="0.8", zorder=0)
    axes[0].set_ylabel("accuracy of an RBF attacker")
    axes[1].set_ylabel("information, lower bound (nats)")
    for ax in axes:
        ax.set_xscale("log")
        ax.set_xlabel("distortion budget b")
    axes[0].legend(fontsize=8, frameon=False)
    save(figure, "filter_curve.png")


def _digits() -> None:
    """Samples, latent maps and confusions of digits: raw, isotropic noise, filter."""
    import matplotlib.pyplot as plt
    from sklearn.decomposition import PCA
    from sklearn.metrics import confusion_matrix
    from sklearn.svm import SVC

    from ellipsum.learned import GenerativeFilter
    from learned_data import BUDGET, digits, encoded

    data = digits()
    encoder, latents = encoded(data)
    private, useful = data.labels["5 or more"], data.labels["odd"]
    seen = (latents[data.train], private[data.train], useful[data.train])
    made = {"raw": latents}
    for name, params in {
        "isotropic noise": {"method": "isotropic"},
        "filter": {},
        "filter (label)": {"uses_label": True},
    }.items():
        one = GenerativeFilter(BUDGET, **params).fit(*seen)
        made[name] = one.transform(latents, *([private] if one.uses_label else []), seed=0)
    shown = data.test[:12]
    pictures = {"data": data.rows} | {k: encoder.inverse_transform(v) for k, v in made.items()}
    figure = image_rows({name: rows[shown] for name, rows in pictures.items()}, (9, 4.2))
    save(figure, "filter_samples.png")
    figure, axes = plt.subplots(2, len(made), figsize=(11, 5.4))
    axis = PCA(2).fit(latents)
    for column, (name, rows) in enumerate(made.items()):
        flat = axis.transform(rows[data.test])
        for line, (label, value) in enumerate((("5 or more", private), ("odd", useful))):
            ax = axes[line, column]
            ax.scatter(*flat.T, c=value[data.test], s=6, cmap="coolwarm", alpha=0.7)
            ax.set_title(f"{name}: {label}", fontsize=8)
            ax.set_xticks([])
            ax.set_yticks([])
    save(figure, "filter_latents.png")
    figure, axes = plt.subplots(1, len(made), figsize=(11, 3.2))
    digit = data.labels["digit"]
    for ax, (name, rows) in zip(axes, made.items(), strict=True):
        attacker = SVC(C=10.0).fit(rows[data.train], digit[data.train])
        table = confusion_matrix(
            digit[data.test], attacker.predict(rows[data.test]), normalize="true"
        )
        ax.imshow(table, cmap="Blues", vmin=0, vmax=1)
        guessed = SVC(C=10.0).fit(rows[data.train], private[data.train]).predict(rows[data.test])
        high, low = (guessed[private[data.test] == k].mean() for k in (1, 0))
        said = f"{name}: digit {np.trace(table) / 10:.2f} right"
        ax.set_title(f"{said}\n5 or more: missed {1 - high:.2f}, false {low:.2f}", fontsize=8)
        ax.set_xlabel("digit guessed")
        ax.set_xticks(range(0, 10, 3))
        ax.set_yticks(range(0, 10, 3))
    axes[0].set_ylabel("digit")
    save(figure, "filter_confusions.png")


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


def seeds_lines(results: dict) -> list[str]:
    """Splits, each with its own encoder."""
    lines = ["| seed | filter: private, useful | noise of its size: private, useful |"]
    lines += ["|---|---|---|"]
    for seed, row in results.get("seeds", {}).items():
        cells = " | ".join(f"{one['private']:.3f}, {one['useful']:.3f}" for one in row.values())
        lines.append(f"| {seed} | {cells} |")
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


def write_tables(results: dict) -> str:
    """All tables as Markdown, also to bench/results/filter_figures.md."""
    parts = ["# Generative filter on stand-ins", "", "`python bench/filter_figures.py`", ""]
    if "encoder" in results:
        parts += [f"Encoder on digits: {results['encoder']}", ""]
    parts += [OPTIMUM, ""]
    parts += ["## Table 1: digits, accuracy of linear / network / RBF / neighbours", ""]
    parts += [*table1_lines(results), ""]
    parts += ["## The same budget on three splits (strongest of network and RBF)", ""]
    parts += [*seeds_lines(results), ""]
    for table in ("table2", "table3"):
        rows = results.get(table, {})
        if rows:
            said = rows["labels"]
            parts += [f"## {table}: private {said['private']}, useful {said['useful']}", ""]
            parts += ["| release | private | useful |", "|---|---|---|"]
            for name, row in rows.items():
                if name != "labels":
                    private, useful = row["private"]["strongest"], row["useful"]["strongest"]
                    parts.append(f"| {name} | {private:.3f} | {useful:.3f} |")
            parts.append("")
    if "table4" in results:
        parts += ["## Table 4: drawings, one factor hidden, round kept (RBF, b = 6)", ""]
        parts += ["(private, useful)", ""]
        names = {"isotropic": "isotropic noise", "noise alone": "filter, noise alone"}
        names |= {"adversarial": "filter"}
        names |= {k: k for k in next(iter(results["table4"].values())) if k not in names}
        del names["raw"]
        parts += ["| hidden | raw | " + " | ".join(names.values()) + " |"]
        parts += ["|---" * (2 + len(names)) + "|"]
        for name, row in results["table4"].items():
            both = [
                f"{row[k]['private']:.3f}, {row[k]['useful']:.3f}" if k in row else ""
                for k in names
            ]
            parts.append(f"| {name} | {row['raw']:.3f} | {' | '.join(both)} |")
        parts.append("")
    if "several" in results:
        parts += ["## Two useful labels at once (strongest of network and RBF)", ""]
        parts += ["| release | private: 5 or more | odd | circle |", "|---|---|---|---|"]
        for name, row in results["several"].items():
            if isinstance(row, dict):
                cells = " | ".join(f"{row[k]['strongest']:.3f}" for k in row)
                parts.append(f"| {name} | {cells} |")
        epsilon = results["several"]["epsilon of mu = 4 at delta 1e-3"]
        parts += ["", f"mu = 4 is epsilon = {epsilon:.2f} at delta = 1e-3.", ""]
    parts += ["## Table 5: two users with opposite choices", "", USERS, ""]
    parts += [*table5_lines(results)]
    text = "\n".join(parts) + "\n"
    (RESULTS / "filter_figures.md").write_text(text)
    return text
