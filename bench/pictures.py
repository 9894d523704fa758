"""The pictures of bench/README.md, from the tables of report.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLOURS = {"float32": "tab:blue", "float64": "tab:orange"}


def _save(figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def roofline(lines: list[dict], peers: list[dict], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for dtype, colour in COLOURS.items():
        mine = [line for line in lines if line["dtype"] == dtype]
        ds = [line["d"] for line in mine]
        axes.plot(ds, [line["GB/s"] for line in mine], "o-", color=colour, label=f"ours, {dtype}")
        axes.plot(ds, [line["read GB/s"] for line in mine], "--", color=colour, alpha=0.6,
                  label=f"reading alone, {dtype}")  # fmt: skip
    # Of fewer rows than the lines, which a large third level of cache holds: ours beside them, too.
    names = dict.fromkeys(["ellipsum", *(line["who"] for line in peers)])
    for name, marker in zip(names, "*sv^<>Pd", strict=False):
        points = [(line["d"], line["GB/s"]) for line in peers if line["who"] == name]
        ours = {"color": COLOURS["float32"], "label": "ours, float32, fewer rows", "markersize": 10}
        theirs = {"color": "0.4", "label": f"{name}, float32, fewer rows"}
        axes.plot(*zip(*points, strict=True), marker, **(ours if name == "ellipsum" else theirs))
    axes.set(xscale="log", xlabel="d, coordinates of a row", ylabel="GB/s of rows, one thread",
             ylim=(0, None), title="Clip and exact sum")  # fmt: skip
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    _save(figure, path)


def growth(lines: list[dict], path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.5))
    numbers = [line["numbers"] for line in lines]
    left.loglog(numbers, [line["seconds"] for line in lines], "o-")
    left.set(xlabel="numbers summed", ylabel="seconds", title="time")
    right.semilogx(numbers, [line["resident MB"] for line in lines], "o-")
    right.set(xlabel="numbers summed", ylabel="MB", title="resident memory")
    right.set_ylim(0, 1.1 * right.get_ylim()[1])
    _save(figure, path)


def noise(lines: list[dict], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6, 2.5))
    axes.barh([line["who"] for line in lines], [line["ns"] for line in lines])
    axes.invert_yaxis()
    axes.set(xlabel="ns per sample, one thread", title="Gaussian noise")
    _save(figure, path)


def draw(tables: dict[str, list[dict]], folder: Path) -> None:
    roofline(tables["Speed against reading alone"], tables["Peers, float32"],
             folder / "clip_sum.png")  # fmt: skip
    growth(tables["Growth"], folder / "growth.png")
    noise(tables["Noise"], folder / "noise.png")
