"""Data for the learned releases: stand-ins that need no download, and loaders of local files.

MNIST, Adult, Abalone and CelebA are in no package. Each stand-in keeps what its experiment is
about: a private and a useful label that depend on each other, and records that are not Gaussian.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np


class Labelled(NamedTuple):
    """Rows, binary labels by name, and which rows train encoders, filters and attackers."""

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
    labels = {
        "5 or more": (digit >= 5).astype(int),
        "odd": digit % 2,
        "circle": np.isin(digit, (0, 6, 8, 9)).astype(int),
        "digit": digit,
    }
    return _split(images / 16.0, labels, digit, seed)


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


def from_files(rows: str | Path, labels: dict[str, str | Path]) -> Labelled:
    """The papers' own data from local ``.npy`` files: rows (n, d), and each label (n,)."""
    table = np.load(rows, allow_pickle=False).astype(np.float64)
    read = {name: np.load(path, allow_pickle=False) for name, path in labels.items()}
    return _split(table.reshape(len(table), -1), read, next(iter(read.values())))


def _standard(rows: np.ndarray) -> np.ndarray:
    return (rows - rows.mean(0)) / rows.std(0)


#: The budget b of the filters that are compared.
BUDGET = 5.0


def encoded(data: Labelled, latent: int = 10, seed: int = 0) -> tuple[object, np.ndarray]:
    """An encoder that was trained on the training rows, and the latents of all rows."""
    from ellipsum.learned import VariationalEncoder

    encoder = VariationalEncoder(latent, seed=seed).fit(data.rows[data.train])
    return encoder, encoder.transform(data.rows)
