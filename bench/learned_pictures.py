"""What the figures of both papers share: their options, what is kept, rows of small images."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from learned_data import Source

RESULTS = Path(__file__).parent / "results"


class Results(dict):
    """What a command has found so far: read from FOLDER/NAME.json, and written there by `keep`."""

    def __init__(self, folder: Path, name: str, indent: int | None = None) -> None:
        self.folder, self.file, self.indent = folder, folder / f"{name}.json", indent
        super().__init__(json.loads(self.file.read_text()) if self.file.exists() else {})

    def limit_to(self, names: Iterable[str]) -> None:
        """Forget what no figure writes any more."""
        for name in set(self) - set(names):
            del self[name]

    def keep(self) -> None:
        self.folder.mkdir(exist_ok=True, parents=True)
        self.file.write_text(json.dumps(self, indent=self.indent) + "\n")


def options(
    text: str, jobs: Sequence[str], arguments: list[str] | None = None
) -> argparse.Namespace:
    """``jobs`` that are wanted, the ``source`` of their rows, the folder of their ``results``."""
    line = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    line.add_argument("jobs", nargs="*", metavar="FIGURE", help=f"one of {', '.join(jobs)}")
    line.add_argument("--rows", metavar="PATH", help=".npy, .csv or .parquet: one's own rows")
    line.add_argument("--labels", metavar="PATH", help="their labels, perhaps the same file")
    line.add_argument("--private", metavar="NAME", help="label or labels (a,b) that are hidden")
    line.add_argument("--useful", metavar="NAME", help="label that is kept; NAME>NUMBER cuts it")
    line.add_argument("--records", type=int, default=10_000, help="at most so many of the rows")
    line.add_argument("--again", action="store_true", help="also what is in the results already")
    line.add_argument("--results", type=Path, help="folder; with --rows ./own_results if left out")
    given = line.parse_args(arguments)
    for job in given.jobs:
        if job not in jobs:
            line.error(f"no figure {job!r}: {', '.join(jobs)}")
    if (given.rows is None) != (given.labels is None):
        line.error("--rows and --labels go together")
    if given.rows is not None and not given.jobs:
        line.error("name the figures that --rows are for")
    given.results = given.results or (Path("own_results") if given.rows else RESULTS)
    if given.rows is not None and given.results.resolve() == RESULTS.resolve():
        line.error("--results: bench/results is of the stand-ins")
    private = given.private.split(",") if given.private else ()
    given.source = Source(given.rows, given.labels, private, given.useful, given.records)
    return given


def show(ax, image) -> None:
    """One square image in [0, 1], dark on white."""
    side = round(np.size(image) ** 0.5)
    ax.imshow(np.reshape(image, (side, side)), cmap="gray_r", vmin=0, vmax=1)
    ax.set_xticks([])
    ax.set_yticks([])


def image_rows(lines: Mapping[str, Iterable], size: tuple[float, float], title: str = ""):
    """A figure of equally long lines of images, each with its name before it."""
    import matplotlib.pyplot as plt

    lines = {name: list(images) for name, images in lines.items()}
    figure, axes = plt.subplots(len(lines), len(next(iter(lines.values()))), figsize=size)
    for line, (name, images) in zip(axes, lines.items(), strict=True):
        for ax, image in zip(line, images, strict=True):
            show(ax, image)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    if title:
        figure.suptitle(title, fontsize=9)
    return figure


def save(figure, path: Path, below: float = 0.0) -> None:
    """To a file, and out of memory; ``below`` is the share of the height that a legend takes."""
    import matplotlib.pyplot as plt

    figure.tight_layout(rect=(0, below, 1, 1))
    figure.savefig(path, dpi=110)
    plt.close(figure)
