"""Shapes from the command line's arguments: everything here is public."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ellipsoid import Ellipsoid
from ..rows.files import Rows, open_rows
from .exit import Exit, Problem, own_text

__all__ = ["known_of_rows", "moments", "shape_name", "split_names"]

Array = NDArray[np.float64]

_NO_DIMENSION = "the data does not say how many coordinates a row has: give --dim"
_SHAPES = ("ball", "bounds", "sigma", "public")
_GOES_WITH = {
    "center": ("ball", "sigma"),
    "clip_probability": ("sigma", "public"),
    "error": ("sigma", "public"),
    "one_pass": ("bounds",),
    "correlated": ("public",),
}


def known_of_rows(arguments: argparse.Namespace, rows: Rows) -> tuple[dict[str, Any], int]:
    """What a mechanism is told of the rows, and d: a region, or bounds that a plan narrows."""
    region = build_shape(arguments, rows)
    if shape_name(arguments) != "bounds" or arguments.one_pass:
        return {"ellipsoid": region}, region.d
    lower, upper = _bounds(arguments, region.d, _coordinate_names(rows, region.d))
    return {"lower": lower, "upper": upper}, region.d


def build_shape(arguments: argparse.Namespace, rows: Rows) -> Ellipsoid:
    """The region that the arguments describe, checked against the rows' dimension."""
    shape = shape_name(arguments)
    d = _dimension(arguments, rows)
    names = _coordinate_names(rows, d)
    try:
        region = _BUILDERS[shape](arguments, d, names)
    except (TypeError, ValueError) as error:
        raise Problem(Exit.PARAMETER, own_text(error)) from None
    free = arguments.dim is None and rows.accepts(region.d)
    if d is not None and region.d != d and not free:
        raise Problem(
            Exit.PARAMETER,
            f"--{shape} has {region.d} coordinates, the data {d}: give one for each column",
        )
    return region


def _coordinate_names(rows: Rows, d: int | None) -> Sequence[str] | None:
    """The columns' names, where each coordinate is a column."""
    return rows.columns if rows.columns is not None and len(rows.columns) == d else None


def shape_name(arguments: argparse.Namespace) -> str:
    """Which shape is asked for: exactly one, with nothing that belongs to another."""
    given = [shape for shape in _SHAPES if getattr(arguments, shape) is not None]
    if len(given) != 1:
        what = " and ".join(f"--{shape}" for shape in given) or "none"
        raise Problem(
            Exit.USAGE, f"give one shape, --ball, --bounds, --sigma or --public (given: {what})"
        )
    for option, shapes in _GOES_WITH.items():
        if getattr(arguments, option) is not None and given[0] not in shapes:
            flag = option.replace("_", "-")
            raise Problem(
                Exit.USAGE, f"--{flag} goes with --{' or --'.join(shapes)}, not --{given[0]}"
            )
    return given[0]


def _dimension(arguments: argparse.Namespace, rows: Rows) -> int | None:
    if arguments.dim is not None and arguments.dim < 1:
        raise Problem(Exit.PARAMETER, f"--dim must be at least 1, got {arguments.dim}")
    if arguments.dim is not None and not rows.accepts(arguments.dim):
        raise Problem(
            Exit.PARAMETER, f"--dim is {arguments.dim}, but the data has {rows.d}: leave it out"
        )
    return rows.d if arguments.dim is None else int(arguments.dim)


def _ball(arguments: argparse.Namespace, d: int | None, names: Sequence[str] | None) -> Ellipsoid:
    center = None
    if arguments.center is not None:
        center = _vector("center", arguments.center, names)
    elif d is None:
        raise ValueError(_NO_DIMENSION)
    return Ellipsoid.ball(arguments.ball, center, d=d)


def _box(arguments: argparse.Namespace, d: int | None, names: Sequence[str] | None) -> Ellipsoid:
    return Ellipsoid.box(*_bounds(arguments, d, names))


def _bounds(
    arguments: argparse.Namespace, d: int | None, names: Sequence[str] | None
) -> tuple[Array, Array]:
    pair = _two_numbers(arguments.bounds)
    if pair is None:
        lower, upper = _table("bounds", arguments.bounds, names, width=2).T
        return lower, upper
    if d is None:
        raise ValueError(_NO_DIMENSION)
    return np.full(d, pair[0]), np.full(d, pair[1])


def _gaussian(
    arguments: argparse.Namespace, d: int | None, names: Sequence[str] | None
) -> Ellipsoid:
    sigma = _vector("sigma", arguments.sigma, names)
    center = np.zeros(sigma.size)
    if arguments.center is not None:
        center = _vector("center", arguments.center, names)
    clip = _clip_probability(arguments)
    if arguments.error != "relative":
        return Ellipsoid.for_gaussian(sigma, center, clip_probability=clip)
    if not (sigma > 0).all():
        raise ValueError("sigma must be above 0 in every coordinate")
    unit = Ellipsoid.for_gaussian(np.ones(sigma.size), clip_probability=clip)
    return unit.in_units(sigma, center)


def _public(arguments: argparse.Namespace, d: int | None, names: Sequence[str] | None) -> Ellipsoid:
    public = _public_moments(arguments, d, names)
    clip = _clip_probability(arguments)
    # Shapes are made in the unit of each column's error: its own sd, or the data's.
    unit = public.sigma if arguments.error == "relative" else np.ones(public.sigma.size)
    if public.covariance is not None:
        covariance = public.covariance / np.outer(unit, unit)
        return Ellipsoid.for_covariance(covariance, clip_probability=clip).in_units(
            unit, public.center
        )
    # The sample mean is off by about sigma / sqrt(count): the clip radius allows for it.
    sigma = public.sigma / unit
    region = Ellipsoid.for_gaussian(
        sigma, center_error=sigma / np.sqrt(public.count), clip_probability=clip
    )
    return region.in_units(unit, public.center)


def _public_moments(
    arguments: argparse.Namespace, d: int | None, names: Sequence[str] | None
) -> Moments:
    path = arguments.public
    _check_not_private(path, arguments.files)
    columns = split_names(arguments.columns) or names
    try:
        rows = open_rows(path, None if path.endswith(".npy") else columns, header=arguments.header)
        width = d if arguments.dim is not None or rows.d is None else rows.d
        if width is None:
            raise ValueError(_NO_DIMENSION)
        public = moments(rows.batches(width), width, crossed=bool(arguments.correlated))
    except (OSError, TypeError, ValueError) as error:
        raise Problem(Exit.PARAMETER, f"--public: {own_text(error)}") from None
    needed = 2 * width if arguments.correlated else 2
    if public.count < needed:
        raise ValueError(
            f"--public needs {needed} complete rows or more, {path} has {public.count}"
        )
    if not (public.sigma > 0).all():
        j = int(np.flatnonzero(~(public.sigma > 0))[0])
        which = repr(names[j]) if names else f"number {j + 1}"
        raise ValueError(f"column {which} of {path} is constant: leave it out by --columns")
    return public


def _check_not_private(path: str, files: Sequence[str]) -> None:
    for file in files:
        if os.path.exists(path) and os.path.exists(file) and os.path.samefile(path, file):
            raise Problem(
                Exit.USAGE, f"--public is {file}, one of the private files: its shape would leak"
            )


_BUILDERS = {"ball": _ball, "bounds": _box, "sigma": _gaussian, "public": _public}


def _clip_probability(arguments: argparse.Namespace) -> float | str:
    return "best" if arguments.clip_probability is None else float(arguments.clip_probability)


@dataclass(frozen=True)
class Moments:
    """Mean, standard deviation and, if asked for, covariance of public rows."""

    count: int
    center: Array
    sigma: Array
    covariance: Array | None


def moments(batches: Iterator[NDArray[Any]], d: int, *, crossed: bool) -> Moments:
    """Moments of the rows without NaN or infinity.

    Batches are combined by their own mean and squared deviations (Chan, Golub & LeVeque 1983).
    """
    count, mean = 0, np.zeros(d)
    squares = np.zeros((d, d) if crossed else d)
    for batch in batches:
        rows = np.asarray(batch, dtype=np.float64)
        rows = rows[np.isfinite(rows).all(axis=1)]
        if not len(rows):
            continue
        own = rows.mean(axis=0)
        step, total = own - mean, count + len(rows)
        away = rows - own
        squares += away.T @ away if crossed else (away**2).sum(axis=0)
        squares += (np.outer(step, step) if crossed else step**2) * (count * len(rows) / total)
        mean += step * (len(rows) / total)
        count = total
    squares /= max(1, count - 1)
    variance = np.diag(squares) if crossed else squares
    return Moments(count, mean, np.sqrt(variance), squares if crossed else None)


def _two_numbers(text: str) -> tuple[float, float] | None:
    parts = text.split(",")
    try:
        low, high = (float(part) for part in parts)
    except ValueError:
        if os.path.exists(text):
            return None
        raise ValueError(
            f"bounds must be two numbers LO,HI or an existing file, got {text!r}"
        ) from None
    return low, high


def _vector(option: str, path: str, names: Sequence[str] | None) -> Array:
    return _table(option, path, names, width=1)[:, 0]


def _table(option: str, path: str, names: Sequence[str] | None, *, width: int) -> Array:
    """A parameter file as an array (d, width)."""
    try:
        values = _load(path, names)
        table = np.array(values, dtype=np.float64)
    except OSError as error:
        raise ValueError(f"--{option}: {path} cannot be read: {error.strerror}") from None
    except KeyError as error:
        raise ValueError(f"--{option}: {path} has nothing for column {error.args[0]!r}") from None
    except (ValueError, TypeError) as error:
        what = "as .npy, .json or text with one coordinate on each line"
        raise ValueError(
            f"--{option}: {path} must hold {'one number' if width == 1 else 'lo,hi'} for each "
            f"coordinate, {error if isinstance(error, _BadLine) else what}"
        ) from None
    if width == 1 and table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] != width or not len(table):
        raise ValueError(f"--{option}: {path} must have shape (d, {width}), got {table.shape}")
    return table


def _load(path: str, names: Sequence[str] | None) -> Any:
    if path.endswith(".npy"):
        return np.load(path, allow_pickle=False)
    with open(path, encoding="utf-8-sig") as file:
        if not path.endswith(".json"):
            cells = (_numbers(k, line.split("#")[0]) for k, line in enumerate(file, 1))
            return [numbers for numbers in cells if numbers]
        values = json.load(file)
    if isinstance(values, dict):
        return [values[name] for name in names or sorted(values)]
    return values


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
        why = "holds no numbers: if it names the columns, take it out or begin it with #"
    else:
        why = "holds something that is no number"
    raise _BadLine(f"but line {number} {why}")


def split_names(columns: str | None) -> list[str] | None:
    """The names in ``--columns``, or None where it was not given."""
    return None if columns is None else [name.strip() for name in columns.split(",")]
