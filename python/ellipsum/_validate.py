"""The one place for checks of what users give; every message names the argument and the fix.

No message quotes data: arguments here are public parameters, and of rows only the shape and
the dtype are ever named.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["finite", "one_of", "open_unit", "positive", "rows", "threads", "vector"]


def finite(name: str, value: Any) -> float:
    """A finite real number."""
    number = _number(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number


def positive(name: str, value: Any) -> float:
    """A finite real number above zero."""
    number = _number(name, value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number above 0, got {number}")
    return number


def open_unit(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    number = _number(name, value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {number}")
    return number


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of the named choices."""
    if value not in allowed:
        choices = " or ".join(repr(choice) for choice in allowed)
        raise ValueError(f"{name} must be {choices}, got {value!r}")
    return str(value)


def vector(
    name: str, value: ArrayLike, *, d: int | None = None, above: float | None = None
) -> NDArray[np.float64]:
    """A finite one-dimensional float64 array of length ``d``, every entry above ``above``."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a sequence of numbers") from None
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be one-dimensional and not empty, got shape {array.shape}")
    if d is not None and array.size != d:
        raise ValueError(f"{name} must have {d} entries, one for each coordinate, got {array.size}")
    bad = ~np.isfinite(array) if above is None else ~(np.isfinite(array) & (array > above))
    if bad.any():
        j = int(np.flatnonzero(bad)[0])
        kind = "finite" if above is None else f"finite and above {above:g}"
        raise ValueError(f"{name} must be {kind} in every coordinate; {name}[{j}] is {array[j]}")
    return array


def rows(name: str, batch: Any, *, d: int) -> NDArray[Any]:
    """A batch of rows as a float32 or float64 array of shape (n, d), without a copy where it
    is one already. One row of shape (d,) counts as a batch of one."""
    try:
        array = np.asarray(batch)
    except ValueError:
        raise ValueError(f"{name} is ragged: every row must have {d} coordinates") from None
    if array.dtype == object:
        raise TypeError(f"{name} holds objects: give numbers, the same number of them in each row")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numeric, got dtype {array.dtype}: convert it to float64")
    if array.ndim == 1 and array.size == d:
        array = array.reshape(1, d)
    if array.ndim != 2 or array.shape[1] != d:
        raise ValueError(f"{name} must have shape (n, {d}), got {array.shape}")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    return array


def threads(name: str, value: int | None) -> int:
    """A number of threads; None takes ``ELLIPSUM_THREADS``, else 1."""
    if value is None:
        name, text = "ELLIPSUM_THREADS", os.environ.get("ELLIPSUM_THREADS", "").strip() or "1"
        if not text.isdecimal():
            raise ValueError(f"{name} must be a whole number of at least 1, got {text!r}")
        value = int(text)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return int(value)


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, str, bytes)) or np.ndim(value) != 0:
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}") from None
