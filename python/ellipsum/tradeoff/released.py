"""Releases as arrays, whatever makes them, and the labels that a release is told."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate

__all__ = ["labels_shifted_by", "released_draws", "sized"]

Array = NDArray[np.float64]

_LOST = 1e-6  # spread of a column over its mean: below, standardising would leave rounding


def labels_shifted_by(
    release: Any, rows: ArrayLike | None, attacked: NDArray[Any], private: ArrayLike | None
) -> NDArray[Any] | None:
    """What a release with ``uses_label`` is told: the private labels, or those attacked.

    None where it uses none. Labels of another kind than those that it was fitted on are refused:
    many releases count an unknown one as some label, and what would be measured nobody makes.
    """
    if rows is None or not getattr(release, "uses_label", False):
        if private is not None:
            raise ValueError(
                "private_labels go with rows, and with a release whose uses_label is true: no "
                "other is given labels"
            )
        return None
    told = attacked if private is None else np.asarray(private)
    if told.shape != attacked.shape:
        raise ValueError(
            f"private_labels must have shape {attacked.shape}, as labels, got {told.shape}"
        )
    classes = getattr(release, "classes_", None)
    if classes is not None and not _among(told, np.asarray(classes)):
        if private is None:
            raise ValueError(
                "labels must be those that the release was fitted on, or give private_labels: "
                "they are what it shifts by"
            )
        raise ValueError("private_labels must be among the labels that the release was fitted on")
    return told


def _among(labels: NDArray[Any], classes: NDArray[Any]) -> bool:
    """Whether each is a class, as a dictionary compares: text and numbers are never the same."""
    try:
        return set(labels.tolist()) <= set(classes.tolist())
    except TypeError:  # no label at all
        return False


def released_draws(
    release: Any, rows: ArrayLike | None, told: Any = None, draws: int = 1, seed: int = 0
) -> Array:
    """(draws, n, d) of finite numbers; ``told`` are the labels that the release is given."""
    released_already = hasattr(release, "__array__")  # frames have a transform of their own
    if rows is None:
        if not released_already and (hasattr(release, "transform") or callable(release)):
            raise ValueError("rows must be given: the records that are to be released")
        released = _validate.numbers("release", release)
        released = released[None] if released.ndim == 2 else released
    else:
        transform = getattr(release, "transform", release)
        if released_already or not callable(transform):
            raise TypeError("release must have a transform, or be a function, where rows are given")
        more = () if told is None else (told,)
        seeded = "seed" in inspect.signature(transform).parameters
        stack = [
            _validate.numbers(
                "release", transform(rows, *more, **({"seed": seed + i} if seeded else {}))
            )
            for i in range(_validate.whole("draws", draws, least=1))
        ]
        released = np.array(stack)
        if (released == released[0]).all():
            released = released[:1]
    if released.ndim != 3 or not released.size:
        raise ValueError(f"a release must be rows (n, d), got shape {released.shape}")
    if not np.isfinite(released).all():
        raise ValueError("a release must be finite: leave incomplete rows out, or fill them")
    return released


def sized(released: Array) -> Array:
    """Columns that squares or a large mean would lose, between -1 and 1: attackers then see them.

    Others stay as they are, bit for bit.
    """
    low, high = released.min((0, 1)), released.max((0, 1))
    center, reach = low / 2 + high / 2, high / 2 - low / 2
    lost = (reach < _LOST * np.abs(center)) | (reach < 1e-100) | (reach > 1e100)
    lost &= reach > 0
    if lost.any():
        released = released.copy()
        released[..., lost] = (released[..., lost] - center[lost]) / reach[lost]
    return released
