"""What the pictures of both papers share: rows of small images, and where a figure is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"


def show(ax, image) -> None:
    """One square image in [0, 1], dark on white."""
    side = round(np.size(image) ** 0.5)
    ax.imshow(np.reshape(image, (side, side)), cmap="gray_r", vmin=0, vmax=1)
    ax.set_xticks([])
    ax.set_yticks([])


def image_rows(lines: Mapping[str, Iterable], size: tuple[float, float]):
    """A figure of equally long lines of images, each with its name before it."""
    import matplotlib.pyplot as plt

    lines = {name: list(images) for name, images in lines.items()}
    figure, axes = plt.subplots(len(lines), len(next(iter(lines.values()))), figsize=size)
    for line, (name, images) in zip(axes, lines.items(), strict=True):
        for ax, image in zip(line, images, strict=True):
            show(ax, image)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    return figure


def save(figure, name: str) -> None:
    """To bench/results, and out of memory."""
    import matplotlib.pyplot as plt

    figure.tight_layout()
    figure.savefig(RESULTS / name, dpi=110)
    plt.close(figure)
