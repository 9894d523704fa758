"""Shapes from the command line's arguments: everything here is public."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ellipsoid import Ellipsoid
from ..gaussian_shape import GaussianShape
from ..rows.files import Rows, open_rows
from .exit import Exit, Problem, own_text
from .options import split_names
from .parameters import table, two_numbers, vector

__all__ = ["known_of_rows", "shape_name"]

Array = NDArray[np.float64]
Region = Ellipsoid | GaussianShape

_NO_DIMENSION = "the data does not say how many coordinates a row has: give --dim"
_SHAPES = ("ball", "bounds", "sigma", "public")
_GOES_WITH = {
    "center": ("ball", "sigma"),
    "clip_probability": ("sigma", "public"),
    "error": ("bounds", "sigma", "public"),
    "one_pass": ("bounds",),
    "correlated": ("public",),
}


def known_of_rows(arguments: argparse.Namespace, rows: Rows) -> tuple[dict[str, Any], int]:
    """What a mechanism is told of the rows, and d: a region, or bounds that a plan narrows."""
    region = build_shape(arguments, rows)
    if shape_name(arguments) != "bounds" or arguments.one_pass:
        return {"ellipsoid": region}, region.d
    lower, upper = _bounds(arguments, region.d, _coordinate_names(rows, region.d))
    return {"lower": lower, "upper": upper, "error": arguments.error or "box"}, region.d


def build_shape(arguments: argparse.Namespace, rows: Rows) -> Region:
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
            f"--{shape} has d = {region.d}, the data have d = {d}: give one number for each column",
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
        center = vector("center", arguments.center, names)
    elif d is None:
        raise ValueError(_NO_DIMENSION)
    return Ellipsoid.ball(arguments.ball, center, d=d)


def _box(arguments: argparse.Namespace, d: int | None, names: Sequence[str] | None) -> Ellipsoid:
    error = arguments.error or "box"
    if error == "relative":
        error = "box"  # a plan finds the deviations; one pass knows the box alone
        if arguments.one_pass:
            raise ValueError(
                "--error must be box or absolute with --one-pass: no deviation is known"
            )
    return Ellipsoid.box(*_bounds(arguments, d, names), error=error)


def _bounds(
    arguments: argparse.Namespace, d: int | None, names: Sequence[str] | None
) -> tuple[Array, Array]:
    pair = two_numbers("bounds", arguments.bounds)
    if pair is None:
        lower, upper = table("bounds", arguments.bounds, names, width=2).T
        return lower, upper
    if d is None:
        raise ValueError(_NO_DIMENSION)
    return np.full(d, pair[0]), np.full(d, pair[1])


def _gaussian(arguments: argparse.Namespace, d: int | None, names: Sequence[str] | None) -> Region:
    sigma = vector("sigma", arguments.sigma, names)
    center = None
    if arguments.center is not None:
        center = vector("center", arguments.center, names)
    _check_no_box(arguments)
    error = arguments.error or "absolute"
    return _clipped(arguments, GaussianShape(sigma, center, error=error))


def _public(arguments: argparse.Namespace, d: int | None, names: Sequence[str] | None) -> Region:
    """As `GaussianShape.for_sample` has it, read in blocks; incomplete rows are left out."""
    path = arguments.public
    _check_no_box(arguments)
    _check_not_private(path, arguments.files)
    columns = split_names(arguments.columns) or names
    try:
        rows = open_rows(path, None if path.endswith(".npy") else columns, header=arguments.header)
        width = d if arguments.dim is not None or rows.d is None else rows.d
        if width is None:
            raise ValueError(_NO_DIMENSION)
        diagonal, error_in = not arguments.correlated, arguments.error or "absolute"
        blocks = partial(_complete, rows, width)
        shape = GaussianShape.for_sample(
            blocks, d=width, names=names, diagonal=diagonal, error=error_in
        )
    except (OSError, TypeError, ValueError) as error:
        raise Problem(Exit.PARAMETER, f"--public: {own_text(error)}") from None
    return _clipped(arguments, shape)


def _check_no_box(arguments: argparse.Namespace) -> None:
    if arguments.error == "box":
        raise ValueError("--error must be relative or absolute: only --bounds gives a box")


def _complete(rows: Rows, d: int) -> Iterator[Array]:
    """Blocks of the rows without a NaN or an infinity."""
    for batch in rows.batches(d):
        block = np.asarray(batch, dtype=np.float64)
        block = block[np.isfinite(block).all(axis=1)]
        if len(block):
            yield block


def _clipped(arguments: argparse.Namespace, shape: GaussianShape) -> Region:
    """The shape, for the mechanism to complete, or its region for a given share.

    Where the number of rows is private the shape cannot be completed: it clips 1 %.
    """
    p = arguments.clip_probability
    if p is None and arguments.neighbors == "add-remove":
        return shape.at()
    return shape if p is None else shape.at(float(p))


def _check_not_private(path: str, files: Sequence[str]) -> None:
    for file in files:
        if os.path.exists(path) and os.path.exists(file) and os.path.samefile(path, file):
            raise Problem(
                Exit.USAGE, f"--public is {file}, one of the private files: its shape would leak"
            )


_BUILDERS = {"ball": _ball, "bounds": _box, "sigma": _gaussian, "public": _public}
