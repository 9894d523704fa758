"""Pictures of ppan_figures.py."""

from __future__ import annotations

import numpy as np

from ellipsum.tradeoff import DiscreteTradeoff, GaussianTradeoff
from learned_baselines import letters_response, noise_leakage, shift_distortion, shift_leakage
from learned_pictures import Results, image_rows, save, show
from learned_settings import covariances, pairs_observed, symmetric_pair

MARKS = {
    "LEACE": ("D", "#7c3aed"),
    "oracle shift (label)": ("^", "#c2410c"),
    "clip and noise": ("s", "0.3"),
}


def draw(results: Results) -> None:
    """ppan_tradeoffs.png, ppan_recipe.png, ppan_components.png, ppan_geometry.png, ..."""
    import matplotlib

    matplotlib.use("Agg")
    for name, paint in {
        "affine": _tradeoffs,
        "discrete": _letters,
        "recipe": _recipe,
        "components": _components,
        "images": _images,
    }.items():
        if name in results:
            paint(results)
    _geometry(results)


def _tradeoffs(results: Results) -> None:
    """Figures 4 to 6: the optimum as a line, what was learned as points."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.4))
    for ax, (name, (observe, covariance, k)) in zip(axes.flat, covariances().items(), strict=False):
        total = float(np.trace(covariance[k:, k:]))
        line = GaussianTradeoff(observe, distortion=total).from_covariance(covariance, k)
        curve = line.curve(np.linspace(0.03 * total, total, 40))
        ax.plot(curve.distortion, curve.leakage, color="0.4", label="optimum")
        noisy = [noise_leakage(covariance, k, at) for at in curve.distortion]
        ax.plot(curve.distortion, noisy, "--", color="0.6", label="isotropic noise")
        mark = "oracle shift" if observe == "full" else "LEACE"
        whole = shift_distortion(covariance, k) if observe == "full" else total
        ax.plot(whole, 0.0, "D", ms=5, color="0.4")
        if observe == "full":
            ends = np.linspace(0.02 * whole, whole, 60)
            part = [shift_leakage(covariance, k, at) for at in ends]
            ax.plot(ends, part, ":", color="0.4", label="part of the oracle shift")
        same = [r for r in results["affine"] if r["setting"] == name]
        for kind, rows, style in (
            ("affine, 8,000 rows, 3 seeds", [r for r in same if r["rows"] == 8000], "o"),
            ("affine, law known", [r for r in same if r["rows"] is None], "+"),
        ):
            ax.plot([r["distortion"] for r in rows], [r["leakage"] for r in rows], style, ms=4,
                    color="#1d5fbf" if style == "o" else "black", label=kind)  # fmt: skip
        nets = [v for key, v in results.get("network", {}).items() if key.startswith(name + ";")]
        best = [max(v["quadrature"], v["held-out network"]) for v in nets]
        ax.plot([v["distortion"] for v in nets], best, "x", color="#c2410c", label="network")
        ax.set_title(f"{name}; ◆ {mark}", fontsize=9)
        ax.set_xlabel("distortion")
        ax.set_ylabel("leakage (nats)")
    axes.flat[5].axis("off")
    axes.flat[5].legend(*axes.flat[1].get_legend_handles_labels(), fontsize=9, frameon=False)
    save(figure, results.folder / "ppan_tradeoffs.png")


def _letters(results: Results) -> None:
    """Figure 3: what was learned and the plug-in, under the true law."""
    import matplotlib.pyplot as plt

    joint, cost = symmetric_pair(), 1 - np.eye(10)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2))
    names = {
        "exact": ("o", "#1d5fbf", "learned, exact law"),
        "10,000 samples": ("x", "#c2410c", "learned, 10,000 samples"),
        "plug-in, 10,000 samples": ("+", "#c2410c", "plug-in, 10,000 samples"),
        "1,000 samples": ("v", "#7c3aed", "learned, 1,000 samples"),
        "plug-in, 1,000 samples": ("1", "#7c3aed", "plug-in, 1,000 samples"),
    }
    for ax, observe in zip(axes, ("useful", "full"), strict=True):
        table, costs = (joint, cost) if observe == "useful" else pairs_observed(joint, cost)
        ends = np.linspace(0.01, 0.65, 14)
        best = [DiscreteTradeoff(distortion=e).fit(table, costs).leakage_ for e in ends]
        ax.plot(ends, best, color="0.4", label="optimum")
        told = [letters_response(joint, e)[0] for e in ends]
        ax.plot(ends, told, "--", color="#65a30d", label="randomised response")
        for name, (mark, color, label) in names.items():
            rows = [r[name] for r in results["discrete"] if r["observe"] == observe]
            ax.plot([r["distortion"] for r in rows], [r["leakage"] for r in rows], mark, ms=7,
                    mfc="none", color=color, label=label)  # fmt: skip
        ax.set_title(
            f"ten letters, observed: {'Y' if observe == 'useful' else '(X, Y)'}", fontsize=9
        )
        ax.set_xlabel("Pr[Y ≠ Z]")
    axes[0].set_ylabel("leakage (nats)")
    axes[0].legend(fontsize=8, frameon=False)
    save(figure, results.folder / "ppan_letters.png")


def _recipe(results: Results) -> None:
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
    save(figure, results.folder / "ppan_recipe.png")


def _components(results: Results) -> None:
    """Figure 12: what is sensitive, what is released, and the line through what is released."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), sharex=True, sharey=True)
    found = results["components"]
    for ax, (rho, points) in zip(axes, found["points"].items(), strict=True):
        useful, released, sensitive = np.array(points).T
        ax.plot(useful, sensitive, ".", ms=3, color="0.6", label="sensitive x")
        ax.plot(useful, released, ".", ms=3, color="#1d5fbf", label="released z")
        slope, at_zero = np.polyfit(useful, released, 1)
        ends = np.array([-3.0, 3.0])
        ax.plot(ends, at_zero + slope * ends, color="#c2410c", label="least squares of z")
        spread = (released - at_zero - slope * useful).std()
        ax.set_title(f"ρ = {rho}: slope {slope:.2f}, noise {spread:.2f}", fontsize=9)
        ax.set_xlabel("useful y")
    axes[0].legend(fontsize=7, frameon=False)
    figure.suptitle(
        f"distortion {found['distortion']:.3f}: leakage {found['leakage']:.3f} nats, "
        f"optimum {found['optimum']:.3f}, isotropic noise {found['isotropic noise']:.3f}",
        fontsize=9,
    )
    save(figure, results.folder / "ppan_components.png")


def _geometry(results: Results) -> None:
    """Figures 10 and 11: unit vectors of X and Y, and the release within sqrt(delta) of Y."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.9))
    for ax, rho, delta in ((axes[0], 0.4, 0.3), (axes[1], 0.85, 0.3)):
        theta, phi = np.arccos(rho), np.arcsin(delta**0.5)
        hidden = rho**2 <= delta  # then z = y - rho x tells nothing
        angle = np.pi / 2 if hidden else theta + phi
        size = np.sin(theta) if hidden else np.cos(phi)
        ends = {"x": (0.0, 1.0), "y": (theta, 1.0), "z": (angle, size)}
        for name, (turn, length) in ends.items():
            tip = length * np.array([np.cos(turn), np.sin(turn)])
            ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "->"})
            ax.text(*(tip + 0.08 * tip / length), name, ha="center", va="center")
        around = np.linspace(0, 2 * np.pi, 200)
        near = delta**0.5
        ax.plot(np.cos(theta) + near * np.cos(around), np.sin(theta) + near * np.sin(around),
                color="#1d5fbf", lw=0.8)  # fmt: skip
        for start, end, radius, name in ((0, theta, 0.3, "θ"), (theta, angle, 0.42, "φ")):
            arc = np.linspace(start, end, 50)
            ax.plot(radius * np.cos(arc), radius * np.sin(arc), color="0.6", lw=0.8)
            if not (hidden and name == "φ"):
                middle = (start + end) / 2
                ax.text(1.2 * radius * np.cos(middle), 1.2 * radius * np.sin(middle), name)
        leakage = 0.0 if hidden else -np.log(np.sin(theta + phi))
        ax.set_title(f"ρ = {rho:g}, δ = {delta:g}: leakage {leakage:.3f} nats", fontsize=9)
        ax.set_aspect("equal")
        ax.axis("off")
    save(figure, results.folder / "ppan_geometry.png")


def _images(results: Results) -> None:
    """Figures 7 to 9: one digit with noise of the same size, the tradeoff, and all digits."""
    import matplotlib.pyplot as plt

    rows = results["images"]
    _one_digit(results, next(r for key, r in rows.items() if key == "0; 3.5"))
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.6))
    for weight, color, name in (("0", "#1d5fbf", "learned"), ("2", "#0f766e", "discriminator")):
        same = [r for key, r in rows.items() if key.split(";")[0] == weight]
        at = [r["squared error"] / r["variance"] for r in same]
        for ax, read in zip(axes, ("rbf", "information"), strict=True):
            ax.plot(at, [r["learned"][read] for r in same], "o-", color=color, label=name)
            if weight == "0":
                values = [r["plain noise"][read] for r in same]
                ax.plot(at, values, "s--", color="0.5", label="noise of the same size")
    variance = next(iter(rows.values()))["variance"]
    for name, r in results.get("erasers", {}).items():
        at = r["squared error"] / variance
        if 0 < at < 2:
            kind, _, proved = name.partition(", ")
            mark, color = MARKS[kind]
            known = [line.get_label() for line in axes[0].lines]
            for ax, read in zip(axes, ("rbf", "information"), strict=True):
                ax.plot(at, r[read], mark, color=color, label=None if kind in known else kind)
                side = 1 if at < 1 else -1
                ax.annotate(proved.replace("proved mu", "μ"), (at, r[read]), (6 * side, -12),
                            textcoords="offset points", fontsize=7,
                            ha="left" if side > 0 else "right")  # fmt: skip
    axes[0].set_ylabel("digit read by an RBF attacker")
    axes[0].axhline(0.1, color="0.85", zorder=0)
    axes[1].set_ylabel("information, lower bound (nats)")
    for ax in axes:
        ax.set_xlabel("squared error / variance of the pixels")
    axes[0].set_ylim(0, 1.05)
    axes[1].set_ylim(bottom=0)
    axes[0].legend(fontsize=7, frameon=False, loc="lower left")
    save(figure, results.folder / "ppan_image_tradeoff.png")
    lines = {"data": next(iter(rows.values()))["samples"][0]}
    for key, row in rows.items():
        said = "" if key.startswith("0") else ", discr."
        lines[f"error {row['squared error']:.1f}{said}"] = row["samples"][1]
    save(image_rows(lines, (7, 0.78 * len(lines))), results.folder / "ppan_images.png")


def _one_digit(results: Results, row: dict) -> None:
    """Figure 7: a 4, its release, and noise of the same size."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(5.4, 2.1))
    titles = ("data", f"released, error {row['squared error']:.1f}", "noise of the same size")
    for ax, image, title in zip(axes, row["samples"], titles, strict=True):
        show(ax, image[4])
        ax.set_title(title, fontsize=8)
    save(figure, results.folder / "ppan_one_digit.png")
