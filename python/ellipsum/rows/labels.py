"""A column that says whose row it is, or which group it is in: equal values, equal digests.

What is equal is decided within the column's kind: integers (of any width; whole floats are
integers, as pandas makes them of a column with a null), text by its code points, bytes (a UUID is
its 16 bytes). Null, NaN and what is no value of these kinds is *no value*. Nothing raises for a
cell: only a column's type does (claim users-3).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validate import is_masked
from .arrow import pyarrow
from .c_stream import MOST_ROWS
from .cells import (
    BYTES,
    TEXT,
    CellDigests,
    Cells,
    Column,
    FixedWidth,
    Integers,
    Mixed,
    plain_value,
)
from .distinct import Strings, python_texts

__all__ = ["KINDS", "Labels", "labels_of", "labels_of_cells", "mixed"]

Words = NDArray[np.uint64]

#: What a column can hold; cells of an object column are each of their own kind.
KINDS = ("integer", "text", "bytes", "object")

#: Largest span of integers that become codes by subtraction, per row.
_DENSE = 4

_ASCII = 0x80

_DAMAGED = "{} is damaged, or not readable as Arrow data: write it again"

#: Python's texts that are worth a copy into one buffer.
_MANY = 1 << 10

#: Types of cells that are equal only to cells of the same type, and are their own values.
_PLAIN = {str, int, bytes, type(None)}


class Labels:
    """One column of a batch: codes into values, some of which may be equal, or in no row.

    Attributes
    ----------
    kind : one of KINDS; "" of Arrow's nulls, and of pandas' floats without a number
    codes : array (n,) of int64, -1 for a row without a value; None: each row its own
    cells : Cells
    """

    def __init__(self, kind: str, codes: NDArray[np.int64] | None, cells: Cells) -> None:
        self.kind, self.codes, self.cells = kind, codes, cells

    def __len__(self) -> int:
        return len(self.cells) if self.codes is None else len(self.codes)

    def __getitem__(self, part: slice) -> Labels:
        if self.codes is None:
            return Labels(self.kind, None, self.cells[part])
        return Labels(self.kind, self.codes[part], self.cells)

    def rows(self, digests: CellDigests | None = None) -> Words:
        """The digest of each row (n, 2): 128 bits of its value; zeros without one. Batches of one
        pass share the ``digests`` that they come from."""
        return self.each(digests or CellDigests(), 0)

    def codes_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Codes of other rows, by the row of these that each is equal to; -1 stays -1."""
        return places if self.codes is None else np.append(self.codes, -1)[places]

    def each(self, of: Callable[[Cells], NDArray[Any]], missing: int) -> NDArray[Any]:
        """What ``of`` says of the cells that rows have, for each row; ``missing`` without one."""
        if self.codes is None:
            return of(self.cells)
        present = np.zeros(len(self.cells) + 1, np.bool_)
        present[self.codes] = True
        present[-1] = False  # of code -1
        here = np.flatnonzero(present)
        found = of(self.cells.take(here))
        out = np.full((len(present), *found.shape[1:]), missing, found.dtype)
        out[here] = found
        return out.take(self.codes, axis=0)


def labels_of(name: str, column: Any) -> Labels:
    """Read a column: a NumPy array, a list, a pandas or Polars Series, or an Arrow array.

    Raises
    ------
    TypeError
        For a column whose type is none of the kinds, as dates and booleans, and for masked arrays.
    """
    if is_masked(type(column)):  # as of rows: what lies below is nobody's value
        raise TypeError(f"{name} is a masked array: give a list with None where it masks")
    if isinstance(column, np.ndarray):
        return _of_numpy(name, column)
    package = type(column).__module__.partition(".")[0]
    if package == "pandas":
        if column.ndim != 1:
            raise TypeError(
                f"{name} must be a column, got a table of {column.shape[1]}: name its column (by "
                "key=, or by= for users), or give that one alone"
            )
        return _of_pandas(name, column)
    if package in ("polars", "pyarrow"):
        pa = pyarrow("an Arrow column")
        array = column.to_arrow() if package == "polars" else column
        return _of_arrow(pa, name, _one_array(pa, array))
    if isinstance(column, (list, tuple)):
        return labels_of_cells(column)
    raise TypeError(
        f"{name} must be a column, got {type(column).__name__}: give an array or a list"
    )


def mixed(words: Words) -> Words:
    """A bijection of 64 bits without visible structure (splitmix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        z = words + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _of_numpy(name: str, column: NDArray[Any]) -> Labels:
    if column.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one value for each row")
    kind = column.dtype.kind
    if kind == "O":
        return _of_much_text(np.ascontiguousarray(column)) or labels_of_cells(column.tolist())
    if kind in "SU":
        sort = "text" if kind == "U" else "bytes"
        empty = column.itemsize == 0 or not len(column)
        if empty:
            return labels_of_cells(column.tolist(), sort)
        return Labels(sort, None, FixedWidth(column))
    if kind == "f":
        with np.errstate(all="ignore"):  # a warning would tell of a value
            column = column.astype(np.float64, copy=False)  # as cells of it are read
        whole = np.isfinite(column) & (np.abs(column) < 2.0**63) & (column == np.rint(column))
        if not whole[~np.isnan(column)].all():
            return labels_of_cells(column.tolist(), "integer")
        integers = np.where(whole, column, 0).astype(np.int64)
        return _of_integers(integers, ~whole)
    if kind in "iu":
        return _of_integers(column, None)
    raise TypeError(_wrong_type(name, column.dtype.type.__name__))


def _of_integers(column: NDArray[Any], missing: NDArray[np.bool_] | None) -> Labels:
    known = column if missing is None else column[~missing]
    if not len(known):
        none = np.empty(0, np.int64)
        return Labels("integer", np.full(len(column), -1, np.int64), Integers(none))
    low, high = int(known.min()), int(known.max())
    codes: NDArray[np.int64] | None = None
    if high - low < _DENSE * len(column) and high < 1 << 63:
        codes = column.astype(np.int64) - low
        # Counted from 0: 2^63 as an end would make doubles of them all.
        values: NDArray[Any] = np.arange(high - low + 1, dtype=np.int64) + low
    else:
        values = column
    if missing is not None:
        codes = np.where(missing, -1, np.arange(len(column)) if codes is None else codes)
    return Labels("integer", codes, Integers(values))


def labels_of_cells(cells: Sequence[Any], kind: str = "object") -> Labels:
    """Labels of Python objects, each of its own kind."""
    if (labels := _of_much_text(cells, kind)) is not None:
        return labels
    types = set(map(type, cells))
    if types <= _PLAIN:
        places = dict.fromkeys(cells)
        places.pop(None, None)
        values = list(places)
        places = {value: i for i, value in enumerate(values)}
        places[None] = -1
        codes = np.fromiter(map(places.__getitem__, cells), np.int64, len(cells))
        return Labels(kind, codes, Mixed(values))
    codes, values = np.empty(len(cells), np.int64), []
    known: dict[tuple[type, Any], int] = {}
    for i, cell in enumerate(cells):
        try:
            value = plain_value(cell)
        except Exception:  # what a cell's own code raises tells of that cell
            value = None
        if value is None:
            codes[i] = -1
            continue
        codes[i] = code = known.setdefault((type(value), value), len(values))
        if code == len(values):
            values.append(value)
    return Labels(kind, codes, Mixed(values))


def _of_much_text(cells: Any, kind: str = "object") -> Labels | None:
    """Labels of many texts and nulls of Python: a look at each of them would take most of the
    time."""
    if len(cells) <= _MANY or (strings := python_texts(cells)) is None:
        return None
    return Labels(kind, None, Column(TEXT, strings))


def _of_no_kind(rows: int) -> Labels:
    return Labels("", np.full(rows, -1, np.int64), Mixed([]))


def _of_pandas(name: str, column: Any) -> Labels:
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        array = column.to_numpy()
        # What pandas makes of a piece without a value, beside text in the others.
        none = dtype.kind == "f" and bool(np.isnan(array).all())
        return _of_no_kind(len(array)) if none else _of_numpy(name, array)
    pandas = sys.modules["pandas"]
    if isinstance(dtype, pandas.CategoricalDtype):
        categories = _of_pandas(name, column.cat.categories.to_series())
        codes = column.cat.codes.to_numpy().astype(np.int64)
        return Labels(categories.kind, categories.codes_of(codes), categories.cells)
    types = pandas.api.types
    if types.is_integer_dtype(dtype):
        missing = column.isna().to_numpy()
        plain = column.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
        return _of_integers(plain, missing if missing.any() else None)
    if not types.is_string_dtype(dtype):
        raise TypeError(_wrong_type(name, str(dtype).split("[")[0]))
    try:
        pa = pyarrow("pandas text")
        array = pa.array(column.array, pa.large_string(), from_pandas=True)
    except Exception:  # without pyarrow, or text that has no UTF-8
        return labels_of_cells(column.to_numpy(dtype=object, na_value=None).tolist(), "text")
    return _of_arrow(pa, name, _one_array(pa, array))


def _of_arrow(pa: Any, name: str, array: Any) -> Labels:
    kind, types = array.type, pa.types
    if isinstance(array, pa.ExtensionArray):
        return _of_arrow(pa, name, array.storage)
    _check(pa, name, array)
    if types.is_null(kind):
        return _of_no_kind(len(array))
    if types.is_integer(kind) or types.is_floating(kind):
        missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        if types.is_floating(kind):
            return _of_numpy(name, array.to_numpy(zero_copy_only=False).astype(np.float64))
        plain = array if missing is None else array.fill_null(0)
        return _of_integers(plain.to_numpy(zero_copy_only=False), missing)
    if types.is_dictionary(kind):
        entries = _of_arrow(pa, name, array.dictionary)
        indices = array.indices.cast(pa.int64())  # Polars' are unsigned
        codes = indices.fill_null(-1).to_numpy(zero_copy_only=False)
        if len(codes) and not -1 <= codes.min() <= codes.max() < len(array.dictionary):
            raise OSError(_DAMAGED.format(name))
        return Labels(entries.kind, entries.codes_of(codes), entries.cells)
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    if text or binary or types.is_fixed_size_binary(kind):
        return _of_strings(pa, name, array, TEXT if text else BYTES)
    raise TypeError(_wrong_type(name, str(kind).split("[")[0]))


def _check(pa: Any, name: str, array: Any) -> None:
    """Raise unless all that an array says of its buffers lies in them (text's edges aside)."""
    kind, types = array.type, pa.types
    if not 0 <= array.offset <= MOST_ROWS - len(array):  # which pyarrow lets pass
        raise OSError(_DAMAGED.format(name))
    if types.is_string_view(kind):  # as bytes: what is no UTF-8 is read as such
        array = pa.Array.from_buffers(
            pa.binary_view(), len(array), array.buffers(), offset=array.offset
        )
    try:
        array.validate(full=types.is_binary_view(array.type))
    except pa.ArrowException:
        raise OSError(_DAMAGED.format(name)) from None


def _one_array(pa: Any, array: Any) -> Any:
    """The chunks of a column as one array; text with offsets of 64 bits, so that all of it fits."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        array = array.cast(pa.large_string() if array.type == pa.string() else pa.large_binary())
    return array.combine_chunks()


def _of_strings(pa: Any, name: str, array: Any, kind: str) -> Labels:
    """Text or bytes where Arrow has them: no copy of the data."""
    wide = pa.large_string() if kind == TEXT else pa.large_binary()
    narrow = pa.string() if kind == TEXT else pa.binary()
    if array.type not in (wide, narrow) or not len(array):
        array = array.cast(wide)
    edges, raw = _edges_of(pa, array, wide)
    if not 0 <= edges[0] <= edges[-1] <= len(raw) or (edges[1:] < edges[:-1]).any():
        raise OSError(_DAMAGED.format(name))
    if kind == TEXT and not _is_ascii(edges, raw):
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:  # no UTF-8
            cells = array.cast(pa.large_binary()).to_pylist()
            texts = [None if c is None else c.decode("utf-8", "surrogateescape") for c in cells]
            return labels_of_cells(texts, kind)
    ends = edges[1:]
    if array.null_count:
        ends = np.where(array.is_null().to_numpy(zero_copy_only=False), -1, ends)
    return Labels(kind, None, Column(kind, Strings(raw, edges[:-1], ends)))


def _edges_of(pa: Any, array: Any, wide: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where the strings of an array begin, and the last one ends; and their bytes."""
    _, offsets, data = array.buffers()
    dtype = np.int64 if array.type == wide else np.int32
    edges = np.zeros(1, np.int64)
    if len(array):
        edges = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * dtype().itemsize)
    known: NDArray[np.int64] = np.require(edges, np.int64, "A")
    return known, np.frombuffer(data or b"", np.uint8)


def _is_ascii(edges: NDArray[np.int64], raw: NDArray[np.uint8]) -> bool:
    """Whether all strings are, which is then known in a tenth of the time of UTF-8's rules."""
    first, last = int(edges[0]), int(edges[-1])
    return first == last or int(raw[first:last].max()) < _ASCII


def _wrong_type(name: str, kind: str) -> str:
    return (
        f"{name} must be integers, text or bytes, its type is {kind}: cast it to one of them "
        "(as a date to text)"
    )
