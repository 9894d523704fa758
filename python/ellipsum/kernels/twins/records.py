"""Twin of ``cpp/bindings/bind_records.cpp``, by NumPy: of a block whose records are all alike."""

from __future__ import annotations

from itertools import chain

import numpy as np

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# By their addresses: what a type says of itself, as that it is another, is code of its own.
_ARRAY, _LISTS = {id(np.ndarray)}, {id(list), id(tuple)}
_CELLS = {id(float), id(int), id(bool), id(type(None)), id(np.float64)}


def plain_records(records, rows):
    """Write records of d plain numbers to their rows; return the places of those left, whose rows
    hold anything: all of them, unless all are plain and of one kind."""
    if not records:
        return []
    if _are_arrays(records, rows) or _are_cells(records, rows):
        try:
            rows[:] = np.asarray(records, np.float64)
            return []
        except OverflowError:  # an integer beyond the doubles
            pass
    return list(range(len(records)))


def _kinds(items):
    return set(map(id, map(type, items)))


def _are_arrays(records, rows):
    return _kinds(records) <= _ARRAY and all(
        x.dtype in _FLOATS and x.shape == rows.shape[1:] for x in records
    )


def _are_cells(records, rows):
    if not _kinds(records) <= _LISTS or not set(map(len, records)) <= {rows.shape[1]}:
        return False
    return _kinds(chain.from_iterable(records)) <= _CELLS
