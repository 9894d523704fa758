"""Rows that somebody holds as an array, or as records of which each is one row."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validate import is_masked
from ..kernels.backend import kernels

__all__ = ["OWN_ERRORS", "numeric_rows", "plain_records", "quiet", "read_others", "read_records"]

#: What a record's own code may raise, which tells of that record. Ctrl-C is the user's.
OWN_ERRORS = (Exception, SystemExit, GeneratorExit)

#: Arrays that NumPy converts at a time: an odd record slows down so many.
_RECORDS_PER_BLOCK = 1 << 12

#: Filters of warnings belong to the process: one thread at a time.
_QUIET = threading.RLock()


def _renew_quiet() -> None:
    """A child of a fork has no thread that would give it back."""
    global _QUIET
    _QUIET = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_quiet)


@contextmanager
def quiet() -> Iterator[None]:
    """Warnings that a record's own code shows are not shown."""
    with _QUIET, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def numeric_rows(name: str, batch: Any, *, d: int) -> NDArray[Any]:
    """A numeric array of shape (n, d), neither copied nor converted where it is an array of
    numbers already. One row of shape (d,) counts as a batch of one.

    Of an array, dtype and width alone decide what is refused. A list has no dtype: each of its
    items is one record, see `read_records`.
    """
    if isinstance(batch, (list, tuple)):
        return read_records(batch, d)
    _refuse_tables(name, batch)
    if is_masked(type(batch)):
        raise TypeError(
            f"{name} is a masked array: fill it first, as by {name}.astype(float).filled(np.nan)"
        )
    array = np.asarray(batch)
    if array.dtype == object:
        raise TypeError(
            f"{name} has dtype object, which may hold anything: convert it to float64 first, "
            "as by .astype(float) or pandas.to_numeric(column, errors='coerce'); where each "
            f"item is a whole row, give list({name})"
        )
    if array.dtype.kind not in "fiub":
        kind = array.dtype.type.__name__  # without the length of a text, which is a value's
        raise TypeError(f"{name} must be numeric, got {kind}: convert it to float64")
    if array.ndim == 1 and (d == 1 or array.size in (0, d)):
        array = array.reshape(-1, d)  # of no numbers: no rows, as where there is one
    if array.ndim != 2 or array.shape[1] != d:
        # Not the shape: it has the number of rows, which may be private.
        got = f"{array.shape[1]} columns" if array.ndim == 2 else f"{array.ndim} dimensions"
        got = "one dimension" if array.ndim == 1 else got
        raise ValueError(f"{name} must have shape (n, {d}), got {got}")
    return array


def _refuse_tables(name: str, batch: Any) -> None:
    """A table whose dtype as an array depends on its values: booleans with or without a null."""
    if isinstance(batch, np.ndarray):
        return
    package = type(batch).__module__.partition(".")[0]
    dtypes = getattr(batch, "dtypes", None)
    kinds = dtypes if np.iterable(dtypes) else [getattr(batch, "dtype", None)]
    if package in ("polars", "pyarrow") or (
        package == "pandas" and not all(isinstance(kind, np.dtype) for kind in kinds)
    ):
        raise TypeError(
            f"{name} is a table whose missing values decide its type as an array: convert it "
            "to float64 first, as by .cast(float) and .to_numpy()"
        )


def plain_records(items: list[Any], d: int) -> tuple[NDArray[np.float64], list[int]]:
    """Rows of records, and the places of those that are none of d plain numbers, whose rows hold
    anything. No code of a record's own is run."""
    rows = np.empty((len(items), d))
    return rows, kernels().plain_records(items, rows)


def read_others(items: Sequence[Any], rows: NDArray[np.float64], odd: list[int]) -> NDArray[Any]:
    """The rows of :func:`plain_records` with those that it left: d numbers, or NaN for any record
    that is not that. Nothing is raised, and no warning shown, whatever a record is."""
    if not odd:
        return rows
    mixed = len(odd) < len(items)
    others = [items[i] for i in odd] if mixed else items
    with quiet():
        starts = range(0, len(others), _RECORDS_PER_BLOCK)
        blocks = [_block(others[k : k + _RECORDS_PER_BLOCK], rows.shape[1]) for k in starts]
        read = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        if not mixed:
            return read
        rows[odd] = read
    return rows


def read_records(items: Sequence[Any], d: int) -> NDArray[Any]:
    """Records as rows, one each: d numbers, or NaN for any record that is not that.

    Nothing is raised, and no warning shown, whatever a record is: it would tell of that record.
    Text is no number. Shape (n, d); float64, or what NumPy makes of arrays of other types.
    """
    items = list(items)
    return read_others(items, *plain_records(items, d))


def _block(items: Sequence[Any], d: int) -> NDArray[Any]:
    """The rows of some records: at once if they are arrays of d numbers, else one by one, so that
    no other decides by its types how numbers of somebody's own are read."""
    shape = (len(items), d)
    if all(type(item) is np.ndarray for item in items):
        with suppress(*OWN_ERRORS):
            array = np.asarray(items)
            if array.dtype.kind in "fiub" and array.dtype.itemsize <= 8 and array.shape == shape:
                return array
    rows = np.full(shape, np.nan)
    for row, item in zip(rows, items, strict=True):
        _read_record(item, row)
    return rows


def _read_record(item: Any, row: NDArray[np.float64]) -> None:
    """Put the numbers of a record into its row of NaN, if it has as many."""
    try:
        if isinstance(item, (str, bytes, bytearray)):
            return
        if isinstance(item, (list, tuple, range)) and len(item) != row.size:
            return
        if is_masked(type(item)):
            kind = np.float64 if item.dtype.kind in "fiub" else object
            item = np.ma.filled(item.astype(kind), np.nan)
        cells = np.asarray(item)
        if row.size == 1 and cells.ndim == 0:
            cells = cells.reshape(1)
        if cells.shape == row.shape and cells.dtype.kind in "fiub":
            row[:] = cells
    except OWN_ERRORS:
        return
    if cells.shape == row.shape and cells.dtype == object:
        for j, cell in enumerate(cells):
            with suppress(*OWN_ERRORS):  # what a cell's own code raises tells of that cell
                row[j] = np.nan if _is_text(cell) else float(cell)


def _is_text(cell: Any) -> bool:
    """Whether it is text or dates, of which Python or NumPy would make a number."""
    if isinstance(cell, (np.ndarray, np.generic)):
        return cell.dtype.kind not in "fiubO"
    return isinstance(cell, (str, bytes, bytearray, memoryview))
