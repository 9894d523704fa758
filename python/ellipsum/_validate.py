"""The one place for checks of what users give; every message names the argument and the fix.

No message quotes data: arguments here are public parameters, and of rows only the shape and
the dtype are ever named.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from numbers import Real
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

__all__ = [
    "classes",
    "doubles",
    "eigenbasis",
    "finite",
    "is_masked",
    "lowered",
    "nonnegative",
    "numbers",
    "one_of",
    "open_unit",
    "own_init",
    "places",
    "positive",
    "public_rows",
    "square",
    "vector",
    "whole",
]


def own_init(cls: type[T]) -> type[T]:
    """Give a subclass a copy of its parent's ``__init__`` under its own name, which is the one
    that Python's error about an unknown argument says."""
    inherited = cls.__init__
    own = FunctionType(
        inherited.__code__,
        inherited.__globals__,
        inherited.__name__,
        inherited.__defaults__,
        inherited.__closure__,
    )
    own.__kwdefaults__, own.__annotations__ = inherited.__kwdefaults__, inherited.__annotations__
    own.__doc__, own.__qualname__ = inherited.__doc__, f"{cls.__name__}.__init__"
    setattr(cls, inherited.__name__, own)
    return cls


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


def lowered(number: Any) -> Any:
    """A number as the largest double that is not above it; what is none as it is, to be refused.

    A budget is never spent beyond what was asked for, and its words are floats.
    """
    if isinstance(number, bool) or not isinstance(number, Real):
        return number
    try:
        double = float(number)
    except OverflowError:
        return number
    return math.nextafter(double, -math.inf) if double > number else double


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


def numbers(name: str, value: Any) -> NDArray[np.float64]:
    """Real numbers of any shape, as float64; NumPy's own error would quote a cell."""
    try:
        given = np.asarray(value)
        array = None if given.dtype.kind == "c" else doubles(given)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} as an argument must be numbers: convert a string to a number first, as by "
            ".astype(float) or pandas.to_numeric(column)"
        ) from None
    if array is None:
        raise ValueError(f"Complex data not supported: {name} must be real")
    return array


def doubles(array: Any) -> NDArray[np.float64]:
    """As float64; a long double beyond it is infinite, and no warning tells of it."""
    with np.errstate(all="ignore"):
        return np.asarray(array, dtype=np.float64)


def function(name: str, given: Any) -> None:
    """Raise TypeError for what is neither None nor can be called, before anything is spent."""
    if given is not None and not callable(given):
        raise TypeError(f"{name} must be a function, got {type(given).__name__}")


def classes(name: str, labels: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The sorted classes of labels (n,), and the number of each one's class."""
    given = np.asarray(labels)
    if given.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {given.shape}")
    try:
        found, which = np.unique(given, return_inverse=True)
        if (found != found).any():  # NaN and NaT, which are not the same as themselves
            raise TypeError
    except TypeError:
        raise TypeError(f"{name} must be labels of one type, none of them missing") from None
    return found, which.astype(np.int64)


def places(labels: Any, known: NDArray[Any]) -> NDArray[np.int64] | None:
    """The place of each label (n,) among the sorted ones; None where one is not among them."""
    given = np.asarray(labels)
    try:
        found = np.minimum(np.searchsorted(known, given), len(known) - 1)
        right = given.ndim == 1 and not (known[found] != given).any()
    except TypeError:  # of another type, or missing
        return None
    return found.astype(np.int64) if right else None


def vector(
    name: str, value: ArrayLike, *, d: int | None = None, above: float | None = None
) -> NDArray[np.float64]:
    """A finite one-dimensional float64 array of length ``d``, every entry above ``above``."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a sequence of numbers") from None
    if array.ndim == 0:
        raise ValueError(
            f"{name} must have one number for each coordinate, as a list, got a single number"
        )
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


def public_rows(name: str, value: Any) -> NDArray[np.float64]:
    """**Public** rows (m, d), m >= 2, all finite; a message may say where they are not."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be numbers: convert text first, as by .astype(float) or "
            "pandas.to_numeric(column)"
        ) from None
    if array.ndim != 2 or len(array) < 2 or array.shape[1] == 0:
        raise ValueError(
            f"{name} must have shape (m, d), at least 2 rows and 1 column, got {array.shape}"
        )
    if (bad := np.argwhere(~np.isfinite(array))).size:
        i, j = bad[0]
        raise ValueError(
            f"{name} must be finite; row {i}, column {j} is {array[i, j]}: "
            "leave incomplete rows out"
        )
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


def is_masked(kind: type) -> bool:
    """Is it the type of a masked array? Where nobody has made one, NumPy's module for them, which
    takes 7 ms to load, is not asked for."""
    # Another thread may be loading it: then it has no such type yet, and nobody an array of it.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return masked is not None and issubclass(kind, masked)


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, str, bytes)) or np.ndim(value) != 0:
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}") from None
