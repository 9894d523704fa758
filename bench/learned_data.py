"""Data for the learned releases: stand-ins that need no download, and loaders of local files.

MNIST, Adult, Abalone and CelebA are in no package. Each stand-in keeps what its experiment is
about: a private and a useful label that depend on each other, and records that are not Gaussian.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Labelled(NamedTuple):
    """Rows, labels by name, and which rows train encoders, filters and attackers."""

    rows: np.ndarray
    labels: dict[str, np.ndarray]
    train: np.ndarray
    test: np.ndarray


def _split(
    rows: np.ndarray, labels: dict[str, np.ndarray], strata: np.ndarray, seed: int = 0
) -> Labelled:
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(
        np.arange(len(rows)), test_size=0.4, random_state=seed, stratify=strata
    )
    return Labelled(rows, labels, train, test)


def digits(seed: int = 0) -> Labelled:
    """1,797 digits of 8 x 8 pixels in [0, 1], split by a seed; stands for MNIST."""
    from sklearn.datasets import load_digits

    images, digit = load_digits(return_X_y=True)
    return _split(images / 16.0, _digit_labels(digit), digit, seed)


def _digit_labels(digit: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "5 or more": (digit >= 5).astype(int),
        "odd": digit % 2,
        "circle": np.isin(digit, (0, 6, 8, 9)).astype(int),
        "digit": digit,
    }


def diabetes() -> Labelled:
    """442 people; stands for Abalone: sex is private, progression above the median useful."""
    from sklearn.datasets import load_diabetes

    rows, progression = load_diabetes(return_X_y=True)
    sex = (rows[:, 1] > 0).astype(int)
    useful = (progression > np.median(progression)).astype(int)
    rest = np.delete(rows, 1, axis=1)
    return _split(_standard(rest), {"sex": sex, "progression": useful}, 2 * sex + useful)


def breast_cancer() -> Labelled:
    """569 biopsies without size and texture; stands for Adult: size private, diagnosis useful."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = list(data.feature_names)
    size = data.data[:, names.index("mean radius")]
    kept = [
        i
        for i, name in enumerate(names)
        if not any(word in name for word in ("radius", "perimeter", "area", "texture"))
    ]
    labels = {"size": (size > np.median(size)).astype(int), "malignant": 1 - data.target}
    return _split(_standard(data.data[:, kept]), labels, 2 * labels["size"] + labels["malignant"])


#: Of a label, and of texts in a column.
MOST_CLASSES = 100

FACTORS = ("round", "large", "high", "slant", "thick", "ring", "bright", "dot")


def shapes(n: int = 2000, seed: int = 0, tie: float = 0.3) -> Labelled:
    """Drawings of 16 x 16 pixels with eight binary factors; stands for CelebA.

    Neighbours in `FACTORS` agree with probability (1 + tie)/2, so the dependence is known.
    """
    rng = np.random.default_rng(seed)
    factor = np.empty((n, len(FACTORS)), dtype=int)
    factor[:, 0] = rng.integers(0, 2, n)
    for j in range(1, len(FACTORS)):
        same = rng.random(n) < (1 + tie) / 2
        factor[:, j] = np.where(same, factor[:, j - 1], 1 - factor[:, j - 1])
    y, x = np.mgrid[-1:1:16j, -1:1:16j]
    images = np.empty((n, 256))
    for i, (is_round, large, high, slant, thick, ring, bright, dot) in enumerate(factor):
        cx, cy = rng.normal(0, 0.08, 2)
        cy += -0.25 if high else 0.25
        u, v = x - cx + (0.5 if slant else 0.0) * (y - cy), y - cy
        far = np.hypot(u, v) if is_round else np.maximum(abs(u), abs(v))
        radius = (0.6 if large else 0.38) * (1 + 0.05 * rng.normal())
        width = 0.16 if thick else 0.08
        body = 1 / (1 + np.exp((far - radius) / (0.5 * width)))
        hole = 1 / (1 + np.exp((far - 0.55 * radius) / (0.5 * width)))
        image = (1.0 if bright else 0.6) * (body - (0.9 * hole if ring else 0.0))
        if dot:
            image = np.maximum(image, np.exp(-((x - 0.8) ** 2 + (y - 0.8) ** 2) / 0.02))
        images[i] = np.clip(image + 0.05 * rng.normal(size=image.shape), 0, 1).ravel()
    labels = {name: factor[:, j] for j, name in enumerate(FACTORS)}
    return _split(images, labels, 2 * factor[:, 0] + factor[:, 1])


class Source:
    """Where rows come from: the stand-ins, or one's own files in place of every one of them."""

    def __init__(
        self,
        rows: str | Path | None = None,
        labels: str | Path | None = None,
        private: Sequence[str] = (),
        useful: str | None = None,
        most: int = 10_000,
    ) -> None:
        self.own, self.of_digits = rows is not None, rows is None or not private
        self._private, self._useful = tuple(private), useful
        if rows is None or labels is None:
            return
        wanted = (*private, useful) if private and useful else ()
        self._rows, self._labels = from_files(rows, labels, wanted)
        few = np.random.default_rng(0).permutation(len(self._rows))[:most]
        self._rows = self._rows[np.sort(few)]
        self._labels = {name: column[np.sort(few)] for name, column in self._labels.items()}

    def digits(self, seed: int = 0) -> Labelled:
        """MNIST's images and digits, or those of scikit-learn."""
        if not self.own:
            return digits(seed)
        if not self.of_digits or len(self._labels) != 1:
            raise ValueError("this figure is of digits: give --labels one column, and no --private")
        digit = next(iter(self._labels.values()))
        if digit.dtype.kind not in "iuf" or not np.isin(digit, np.arange(10)).all():
            raise ValueError("--labels must hold the digits 0 to 9")
        pixels = self._rows / max(self._rows.max(), 1.0)
        return _split(pixels, _digit_labels(digit.astype(int)), digit, seed)

    def table(self, number: int) -> tuple[Labelled, str, str]:
        """Table 2 (Adult) or 3 (Abalone): rows, and the names of the private and useful label."""
        if not self.own:
            stand_in = {
                2: (breast_cancer, "size", "malignant"),
                3: (diabetes, "sex", "progression"),
            }
            make, private, useful = stand_in[number]
            return make(), private, useful
        if len(self._private) != 1 or self._useful is None:
            raise ValueError("this table wants --private NAME and --useful NAME")
        return self._named(_standard(self._rows)), self._private[0], self._useful

    def faces(self) -> tuple[Labelled, tuple[str, ...], str]:
        """Table 4 (CelebA): rows, the labels that are hidden one by one, the one that is kept."""
        if not self.own:
            return shapes(), FACTORS[1:], FACTORS[0]
        if not self._private or self._useful is None:
            raise ValueError("this table wants --private NAME,NAME,... and --useful NAME")
        return self._named(self._rows / max(self._rows.max(), 1.0)), self._private, self._useful

    def _named(self, rows: np.ndarray) -> Labelled:
        labels = {name: classes(name, column) for name, column in self._labels.items()}
        if labels[self._useful].max() != 1:
            raise ValueError("--useful must have two classes: cut numbers as NAME>NUMBER")
        hidden = labels[self._private[0]]
        return _split(rows, labels, 2 * hidden + labels[self._useful])


def from_files(
    rows: str | Path, labels: str | Path, wanted: Sequence[str] = ()
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Rows (n, d) and label columns by name, from local ``.npy``, CSV (with a header) or Parquet.

    Text columns of the rows become a column for each text. ``wanted`` names the labels, as NAME or
    as NAME>NUMBER; columns of these names are left out of the rows, which may be the same file.
    Without it all columns of ``labels`` are read.
    """
    found = columns_of(labels)
    names = [spec.partition(">")[0] for spec in wanted]
    for name in names:
        if name not in found:
            raise ValueError(f"--labels has no column {name!r}: it has {', '.join(found)}")
    picked = {spec: _cut(found[n], spec) for spec, n in zip(wanted, names, strict=True)} or found
    parts = [
        _numbers(name, column)
        for name, column in columns_of(rows).items()
        if name not in (names or found)
    ]
    if not parts:
        raise ValueError("--rows has no column beside the labels")
    table = np.hstack(parts)
    for name, column in picked.items():
        if len(column) != len(table):
            raise ValueError(f"{name!r} has {len(column)} labels, --rows has {len(table)} rows")
    return table, picked


def columns_of(path: str | Path) -> dict[str, np.ndarray]:
    """Columns by name; those of an array without names are one block called "label" or "rows"."""
    path = Path(path)
    if path.suffix == ".npy":
        array = np.load(path, allow_pickle=False)
        if array.dtype.names:
            return {name: array[name] for name in array.dtype.names}
        return {"label" if array.ndim == 1 else "rows": array}
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            head, *lines = [line for line in csv.reader(file) if line]
        if any(len(line) != len(head) for line in lines):
            raise ValueError("every line of a CSV must have as many cells as its header")
        table = zip(*lines, strict=True)
        return {name.strip(): _typed(cells) for name, cells in zip(head, table, strict=True)}
    if path.suffix == ".parquet":
        from pyarrow import parquet

        read = parquet.read_table(path)
        return {name: np.array(read.column(name).to_pylist()) for name in read.column_names}
    raise ValueError("files must end in .npy, .csv or .parquet")


def classes(name: str, column: np.ndarray) -> np.ndarray:
    """Class numbers from 0 on."""
    found, which = np.unique(column, return_inverse=True)
    if not 2 <= len(found) <= MOST_CLASSES:
        raise ValueError(f"{name!r} must have 2 to {MOST_CLASSES} classes: cut it as NAME>NUMBER")
    return which


def _typed(cells: Sequence[str]) -> np.ndarray:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return np.array([cell.strip() for cell in cells])


def _cut(column: np.ndarray, spec: str) -> np.ndarray:
    _, over, number = spec.partition(">")
    if over and column.dtype.kind not in "biuf":
        raise ValueError(f"{spec!r} cuts a column of texts: name it alone")
    return (column > float(number)).astype(int) if over else column


def _numbers(name: str, column: np.ndarray) -> np.ndarray:
    """(n, columns) of finite numbers; of text, a column for each."""
    if column.dtype.kind in "biuf":
        block = column.reshape(len(column), -1).astype(np.float64)
        if not np.isfinite(block).all():
            raise ValueError(f"{name!r} has cells that are missing: leave these rows out")
        return block
    texts = np.unique(column)
    if len(texts) > MOST_CLASSES:
        raise ValueError(f"{name!r} has over {MOST_CLASSES} texts: leave it out, or code it")
    return (column[:, None] == texts).astype(np.float64)


def _standard(rows: np.ndarray) -> np.ndarray:
    spread = rows.std(0)
    return (rows - rows.mean(0))[:, spread > 0] / spread[spread > 0]


#: The budget b of the filters that are compared.
BUDGET = 5.0


def encoded(data: Labelled, latent: int = 10, seed: int = 0) -> tuple[object, np.ndarray]:
    """An encoder that was trained on the training rows, and the latents of all rows."""
    from ellipsum.learned import VariationalEncoder

    encoder = VariationalEncoder(latent, seed=seed).fit(data.rows[data.train])
    return encoder, encoder.transform(data.rows)
