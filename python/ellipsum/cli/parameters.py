"""Parameters of the command line, as numbers in it or in a file: everything here is public."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["table", "two_numbers", "vector"]

Array = NDArray[np.float64]


def two_numbers(option: str, text: str) -> tuple[float, float] | None:
    """The numbers of ``LO,HI``; None for the name of a file."""
    parts = text.split(",")
    try:
        low, high = (float(part) for part in parts)
    except ValueError:
        if os.path.exists(text):
            return None
        raise ValueError(
            f"--{option} must be two numbers LO,HI or an existing file, got {text!r}"
        ) from None
    if not high > low:
        raise ValueError(f"--{option}: HI must be above LO, got {text}")
    return low, high


def vector(
    option: str, given: str, names: Sequence[str] | None = None, *, each: str = "coordinate"
) -> Array:
    """Numbers with commas between them, else the name of a parameter file."""
    try:
        return np.array([float(part) for part in given.split(",")])
    except ValueError:
        path = given
    return table(option, path, names, width=1, each=each)[:, 0]


def table(
    option: str,
    path: str,
    names: Sequence[str] | None = None,
    *,
    width: int,
    each: str = "coordinate",
) -> Array:
    """A parameter file as an array (d, width): ``width`` numbers for ``each`` line's thing."""
    try:
        values = _load(path, names)
        array = np.array(values, dtype=np.float64)
    except OSError as error:
        raise ValueError(f"--{option}: {path} cannot be read: {error.strerror}") from None
    except KeyError as error:
        raise ValueError(f"--{option}: {path} has nothing for column {error.args[0]!r}") from None
    except (ValueError, TypeError) as error:
        what = f"as .npy, .json or text with one {each} on each line"
        raise ValueError(
            f"--{option}: {path} must hold {'one number' if width == 1 else 'lo,hi'} for each "
            f"{each}, {error if isinstance(error, _BadLine) else what}"
        ) from None
    if width == 1 and array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != width or not len(array):
        raise ValueError(f"--{option}: {path} must have shape (d, {width}), got {array.shape}")
    return array


def _load(path: str, names: Sequence[str] | None) -> Any:
    if path.endswith(".npy"):
        return np.load(path, allow_pickle=False)
    with open(path, encoding="utf-8-sig") as file:
        if not path.endswith(".json"):
            cells = (_numbers(k, line.split("#")[0]) for k, line in enumerate(file, 1))
            return [numbers for numbers in cells if numbers]
        try:
            values = json.load(file, object_pairs_hook=_named)
        except json.JSONDecodeError as error:
            raise _BadLine(f"but line {error.lineno} is no JSON: {error.msg}") from None
    if isinstance(values, dict):
        return [values[name] for name in names or sorted(values)]
    return values


def _named(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        twice = next(name for k, (name, _) in enumerate(pairs) if name in dict(pairs[:k]))
        raise _BadLine(f"but has {twice!r} twice")
    return named


class _BadLine(ValueError):
    """What is wrong with a line of a parameter file."""


def _numbers(number: int, line: str) -> list[float]:
    """The numbers of a parameter file's line, which is public."""
    try:
        return [float(cell) for cell in line.replace(",", " ").split()]
    except ValueError:
        pass
    if ";" in line:
        why = "separates its numbers by a semicolon: use commas, and points in numbers"
    elif number == 1:
        why = (
            "is no line of numbers alone: if it names the columns, take it out or begin it with #; "
            "limits by name go into a .json file"
        )
    else:
        why = "holds something that is no number"
    raise _BadLine(f"but line {number} {why}")
