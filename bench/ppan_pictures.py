"""Pictures and tables of ppan_figures.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ellipsum.tradeoff import DiscreteTradeoff, GaussianTradeoff
from learned_settings import covariances, pairs_observed, symmetric_pair

RESULTS = Path(__file__).parent / "results"


def draw(results: dict) -> None:
    """ppan_tradeoffs.png, ppan_recipe.png, ppan_components.png, ppan_geometry.png, ..."""
    import matplotlib

    matplotlib.use("Agg")
    for name, paint in {
        "affine": _tradeoffs,
        "recipe": _recipe,
        "components": _components,
        "images": _images,
    }.items():
        if name in results:
            paint(results)
    _geometry()


def _tradeoffs(results: dict) -> None:
    """Figures 3 to 6: the optimum as a line, what was learned as points."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.4))
    for ax, (name, (observe, covariance, k)) in zip(axes.flat, covariances().items(), strict=False):
        total = float(np.trace(covariance[k:, k:]))
        line = GaussianTradeoff(observe, distortion=total).from_covariance(covariance, k)
        curve = line.curve(np.linspace(0.03 * total, total, 40))
        ax.plot(curve.distortion, curve.leakage, color="0.4", label="optimum")
        rows = [r for r in results["affine"] if r["setting"] == name and r["rows"] == 8000]
        ax.plot([r["distortion"] for r in rows], [r["leakage"] for r in rows], "o", ms=4,
                color="#1d5fbf", label="affine, 3 seeds")  # fmt: skip
        nets = [v for key, v in results.get("network", {}).items() if key.startswith(name + ";")]
        best = [
            max(v["held-out network"], v["neighbours"] or 0.0) if k == 1 else v["held-out network"]
            for v in nets
        ]
        ax.plot([v["distortion"] for v in nets], best, "x", color="#c2410c", label="network")
        ax.set_title(name, fontsize=9)
        ax.set_xlabel("distortion")
        ax.set_ylabel("leakage (nats)")
    axes.flat[0].legend(fontsize=8, frameon=False)
    ax = axes.flat[5]
    joint, cost = symmetric_pair(), 1 - np.eye(10)
    for observe, color in (("useful", "0.4"), ("full", "0.7")):
        table, costs = (joint, cost) if observe == "useful" else pairs_observed(joint, cost)
        ends = np.linspace(0.01, 0.65, 14)
        best = [DiscreteTradeoff(distortion=e).fit(table, costs).leakage_ for e in ends]
        ax.plot(ends, best, color=color, label=f"optimum, {observe}")
        for name, mark in (("exact", "o"), ("10,000 samples", "x")):
            rows = [r[name] for r in results["discrete"] if r["observe"] == observe]
            ax.plot([r["distortion"] for r in rows], [r["leakage"] for r in rows], mark, ms=4,
                    color="#1d5fbf" if name == "exact" else "#c2410c")  # fmt: skip
    ax.set_title("ten letters: o exact law, x 10,000 samples", fontsize=9)
    ax.set_xlabel("Pr[Y ≠ Z]")
    ax.legend(fontsize=8, frameon=False)
    _save(figure, "ppan_tradeoffs.png")


def _recipe(results: dict) -> None:
    """Plug-in against neighbours, and what the released values look like."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.5))
    rows = results["recipe"]
    place = np.arange(len(rows))
    for shift, (name, color) in enumerate(
        {"optimum": "0.6", "plug-in": "#1d5fbf", "neighbours": "#c2410c"}.items()
    ):
        values = [row[name] for row in rows.values()]
        axes[0].bar(place + 0.26 * (shift - 1), values, 0.25, color=color, label=name)
    axes[0].set_xticks(place, [f"distortion {row['distortion']:.2f}" for row in rows.values()])
    axes[0].set_ylabel("leakage (nats)")
    axes[0].set_ylim(0, 1.4 * max(row["neighbours"] for row in rows.values()))
    axes[0].set_xlim(-1, len(rows))
    axes[0].legend(fontsize=8, frameon=False, loc="upper left")
    points = np.array(next(iter(rows.values()))["points"])
    axes[1].plot(*points.T, ".", ms=2, color="#1d5fbf")
    axes[1].set_xlabel("useful y")
    axes[1].set_ylabel("released z (uniform seed)")
    _save(figure, "ppan_recipe.png")


def _components(results: dict) -> None:
    """Figure 12."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharex=True, sharey=True)
    for ax, (rho, points) in zip(axes, results["components"].items(), strict=True):
        ax.plot(*np.array(points).T, ".", ms=3, color="#1d5fbf")
        ax.set_title(f"ρ = {rho}", fontsize=9)
        ax.set_xlabel("useful y")
    axes[0].set_ylabel("released z")
    _save(figure, "ppan_components.png")


def _geometry() -> None:
    """Figures 10 and 11: unit vectors of X, Y and the release; I = -log sin(theta + phi)."""
    import matplotlib.pyplot as plt

    theta, phi = np.arccos(0.85), np.arcsin(0.3**0.5)
    figure, ax = plt.subplots(figsize=(4.2, 3.6))
    for angle, name in ((0.0, "X"), (theta, "Y"), (theta + phi, "Z")):
        ax.annotate("", (np.cos(angle), np.sin(angle)), (0, 0), arrowprops={"arrowstyle": "->"})
        ax.text(1.06 * np.cos(angle), 1.06 * np.sin(angle), name, ha="center", va="center")
    for start, end, radius, name in ((0, theta, 0.35, "θ"), (theta, theta + phi, 0.5, "φ")):
        arc = np.linspace(start, end, 50)
        ax.plot(radius * np.cos(arc), radius * np.sin(arc), color="#1d5fbf")
        middle = (start + end) / 2
        ax.text(1.14 * radius * np.cos(middle), 1.14 * radius * np.sin(middle), name)
    arc = np.linspace(0, np.pi / 2, 100)
    ax.plot(np.cos(arc), np.sin(arc), color="0.85", zorder=0)
    leakage = -np.log(np.sin(theta + phi))
    ax.set_title(f"cos θ = 0.85, sin² φ = 0.3: leakage {leakage:.3f} nats", fontsize=9)
    ax.set_aspect("equal")
    ax.axis("off")
    _save(figure, "ppan_geometry.png")


def _images(results: dict) -> None:
    """Digits before and after."""
    import matplotlib.pyplot as plt

    rows = results["images"]
    figure, axes = plt.subplots(len(rows) + 1, 8, figsize=(7, 1.0 * (len(rows) + 1)))
    lines = [next(iter(rows.values()))["samples"][0]] + [r["samples"][1] for r in rows.values()]
    names = ["data"] + [f"error {r['squared error']:.1f}" for r in rows.values()]
    for line, images, name in zip(axes, lines, names, strict=True):
        for ax, image in zip(line, images, strict=True):
            ax.imshow(np.reshape(image, (8, 8)), cmap="gray_r", vmin=0, vmax=1)
            ax.set_xticks([])
            ax.set_yticks([])
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    _save(figure, "ppan_images.png")


def _save(figure, name: str) -> None:
    import matplotlib.pyplot as plt

    figure.tight_layout()
    figure.savefig(RESULTS / name, dpi=110)
    plt.close(figure)


def affine_lines(results: dict) -> list[str]:
    """Worst of three seeds, by setting and rows."""
    lines = [
        "| setting | rows | target | worst excess (nats) | of optimum | distortion off | CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = results.get("affine", [])
    for key in dict.fromkeys((r["setting"], r["rows"], r["target"]) for r in rows):
        same = [r for r in rows if (r["setting"], r["rows"], r["target"]) == key]
        worst = max(same, key=lambda r: r["leakage"] - r["optimum"])
        excess = worst["leakage"] - worst["optimum"]
        off = max(abs(r["distortion"] / r["target"] - 1) for r in same)
        lines.append(
            f"| {key[0]} | {key[1]:,} | {key[2]:g} | {excess:.5f} | "
            f"{excess / worst['optimum']:.2%} | {off:.1%} | {max(r['seconds'] for r in same)} |"
        )
    return lines


def recipe_lines(results: dict) -> list[str]:
    """The paper's recipe."""
    lines = [
        "| distortion | optimum | plug-in | over the optimum | neighbours | over the optimum |",
        "|---|---|---|---|---|---|",
    ]
    for row in results.get("recipe", {}).values():
        cells = []
        for name in ("plug-in", "neighbours"):
            cells += [f"{row[name]:.4f}", f"{row[name] / row['optimum'] - 1:+.1%}"]
        lines.append(
            f"| {row['distortion']:.3f} | {row['optimum']:.4f} | " + " | ".join(cells) + " |"
        )
    return lines


def write_tables(results: dict) -> str:
    """All tables as Markdown, also to bench/results/ppan_figures.md."""
    parts = ["# Privacy networks beside the optimum", "", "`python bench/ppan_figures.py`", ""]
    parts += ["## Affine, exact on the true covariance", "", *affine_lines(results), ""]
    parts += ["## Networks, 40,000 new rows (nats)", ""]
    parts += ["| run | distortion | optimum | plug-in | held-out network | neighbours | CPU s |"]
    parts += ["|---|---|---|---|---|---|---|"]
    for name, r in results.get("network", {}).items():
        near = "" if r["neighbours"] is None else f"{r['neighbours']:.4f}"
        parts.append(
            f"| {name} | {r['distortion']:.4f} | {r['optimum']:.4f} | {r['plug-in']:.4f} | "
            f"{r['held-out network']:.4f} ± {r['se']:.4f} | {near} | {r['seconds']} |"
        )
    parts += ["", "## Ten letters (Figure 3): leakage, excess over the optimum there", ""]
    parts += ["| observed | target | exact law | excess | 10,000 samples | excess |"]
    parts += ["|---|---|---|---|---|---|"]
    for r in results.get("discrete", []):
        cells = []
        for name in ("exact", "10,000 samples"):
            cells += [f"{r[name]['leakage']:.4f}", f"{r[name]['leakage'] - r[name]['optimum']:.5f}"]
        parts.append(f"| {r['observe']} | {r['target']} | " + " | ".join(cells) + " |")
    parts += ["", "## The paper's own recipe", "", *recipe_lines(results), ""]
    if "images" in results:
        parts += ["## Digits 8 x 8: hide the digit, keep the pixels", ""]
        parts += ["| squared error (of variance) | learned: network / RBF | noise, same error |"]
        parts += ["|---|---|---|"]
        for r in results["images"].values():
            cells = [
                " / ".join(f"{r[n][a]:.3f}" for a in ("mlp", "rbf"))
                for n in ("learned", "plain noise")
            ]
            share = f"{r['squared error']:.2f} ({r['squared error'] / r['variance']:.0%})"
            parts.append(f"| {share} | {cells[0]} | {cells[1]} |")
    text = "\n".join(parts) + "\n"
    (RESULTS / "ppan_figures.md").write_text(text)
    return text
