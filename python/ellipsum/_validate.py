"""The one place for checks of what users give; every message names the argument and the fix.

No message quotes data: arguments here are public parameters, and of rows only the shape and
the dtype are ever named.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "eigenbasis",
    "finite",
    "nonnegative",
    "one_of",
    "open_unit",
    "positive",
    "rows",
    "square",
    "vector",
    "whole",
]


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


def nonnegative(name: str, value: Any) -> float:
    """A finite real number, 0 or above."""
    number = _number(name, value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be a finite number, 0 or above, got {number}")
    return number


def open_unit(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    number = _number(name, value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {number}")
    return number


def whole(name: str, value: Any, *, least: int = 0, most: int | None = None) -> int:
    """A whole number from ``least`` on: an int, not a float that would be cut off."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a whole number, got {type(value).__name__}")
    if number < least or (most is not None and number > most):
        upper = "" if most is None else f" and at most {most}"
        raise ValueError(f"{name} must be at least {least}{upper}, got {number}")
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


def square(name: str, value: ArrayLike, *, d: int | None = None) -> NDArray[np.float64]:
    """A finite matrix of shape (d, d), its rows contiguous."""
    array = np.array(value, dtype=np.float64, order="C")
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise ValueError(f"{name} must be a square matrix, got shape {array.shape}")
    if d is not None and len(array) != d:
        raise ValueError(f"{name} must be {d} x {d}, like the rows, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite in every entry")
    return array


def eigenbasis(
    name: str, value: ArrayLike, *, d: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Standard deviations along the axes of a covariance, ascending, and the axes (columns)."""
    cov = square(name, value, d=d)
    if not np.allclose(cov, cov.T, rtol=1e-8, atol=0):
        raise ValueError(f"{name} must be symmetric: use (S + S.T) / 2")
    variance, basis = np.linalg.eigh((cov + cov.T) / 2)
    if not variance[0] > len(cov) * 2.0**-53 * variance[-1]:
        raise ValueError(
            f"{name} must be positive definite: add a floor to its diagonal "
            f"(smallest eigenvalue {variance[0]:.3g}, largest {variance[-1]:.3g})"
        )
    return np.sqrt(variance), basis


def rows(name: str, batch: Any, *, d: int) -> NDArray[Any]:
    """A numeric array of shape (n, d), neither copied nor converted where it is an array of
    numbers already. One row of shape (d,) counts as a batch of one."""
    items = batch if isinstance(batch, (list, tuple)) else [batch]
    if any(isinstance(item, np.ma.MaskedArray) for item in items):
        raise TypeError(f"{name} is a masked array: fill it first, e.g. with {name}.filled(np.nan)")
    try:
        with np.errstate(all="ignore"):  # a warning would tell of a value
            array = np.asarray(batch)
    except ValueError:
        raise ValueError(f"{name} is ragged: every row must have {d} coordinates") from None
    if array.dtype == object:
        array = _from_objects(name, array)
    if array.dtype.kind not in "fiub":
        kind = array.dtype.type.__name__  # without the length of a text, which is a value's
        raise TypeError(f"{name} must be numeric, got {kind}: convert it to float64")
    if array.ndim == 1 and array.size == d:
        array = array.reshape(1, d)
    if array.ndim != 2 or array.shape[1] != d:
        raise ValueError(f"{name} must have shape (n, {d}), got {array.shape}")
    return array


def _from_objects(name: str, array: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers held as Python objects; a None is one person's missing value: NaN, no error."""
    try:
        with np.errstate(all="ignore"):
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"{name} holds objects that are no numbers: give float arrays, NaN where one is missing"
        ) from None


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, str, bytes)) or np.ndim(value) != 0:
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}") from None
