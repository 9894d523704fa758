"""A column that says whose row it is, or which group it is in: equal values, equal digests.

What is equal is decided within the column's kind: integers (of any width; whole floats are
integers, as pandas makes them of a column with a null), text by its code points, bytes (a UUID is
its 16 bytes). Null, NaN and what is no value of these kinds is *no value*. Nothing raises for a
cell: only a column's type does (claim users-3).
"""

from __future__ import annotations

import hashlib
import sys
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrow import pyarrow

__all__ = ["KINDS", "Labels", "digest_of", "labels_of", "mixed", "plain_value"]

Words = NDArray[np.uint64]

#: What a column can hold; cells of an object column are each of their own kind.
KINDS = ("integer", "text", "bytes", "object")

#: Largest span of integers that become codes by subtraction, per row.
_DENSE = 4

_WORD = (1 << 64) - 1


class Labels:
    """One column of a batch: codes into distinct values, with their digests.

    Attributes
    ----------
    kind : one of KINDS
    codes : array (n,) of int64; -1 for a row without a value
    digests : array (m, 2) of uint64: 128 bits a value, never (0, 0)
    values : sequence of m Python values
    """

    def __init__(self, kind: str, codes: NDArray[np.int64], digests: Words, values: Any) -> None:
        self.kind, self.codes, self.digests, self.values = kind, codes, digests, values

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, part: slice) -> Labels:
        return Labels(self.kind, self.codes[part], self.digests, self.values)

    def rows(self) -> Words:
        """The digest of each row (n, 2); zeros for one without a value."""
        if not len(self.digests):
            return np.zeros((len(self.codes), 2), np.uint64)
        out = self.digests[self.codes]
        out[self.codes < 0] = 0
        return out


def labels_of(name: str, column: Any) -> Labels:
    """Read a column: a NumPy array, a list, a pandas or Polars Series, or an Arrow array.

    Raises
    ------
    TypeError
        For a column whose type is none of the kinds, as dates and booleans.
    """
    if isinstance(column, np.ndarray):
        return _of_numpy(name, column)
    package = type(column).__module__.partition(".")[0]
    if package == "pandas":
        return _of_pandas(name, column)
    if package in ("polars", "pyarrow"):
        pa = pyarrow("an Arrow column")
        array = column.to_arrow() if package == "polars" else column
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        return _of_arrow(pa, name, array)
    if isinstance(column, (list, tuple)):
        return _of_cells(column)
    raise TypeError(
        f"{name} must be a column, got {type(column).__name__}: give an array or a list"
    )


def digest_of(value: Any) -> tuple[int, int] | None:
    """128 bits of one value; None for no value. The one rule: arrays do the same at once."""
    kind = type(value)
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if not number.is_integer():  # NaN, infinities and fractions too
            return None if number != number else _hashed(b"float", number.hex().encode())
        value = int(number)
    if isinstance(value, (int, np.integer)):
        number = int(value)
        if not -(1 << 63) <= number <= _WORD:
            return _hashed(b"integer", str(number).encode())
        words = integer_digests(np.array([number & _WORD], np.uint64), np.array([number < 0]))
        return int(words[0, 0]), int(words[0, 1])
    if isinstance(value, str):
        return _hashed(b"text", value.encode("utf-8", "surrogatepass"))
    if isinstance(value, uuid.UUID):
        return _hashed(b"bytes", value.bytes)
    if kind in (bytes, bytearray, np.bytes_):
        return _hashed(b"bytes", bytes(value))
    return None


def integer_digests(words: Words, negative: NDArray[np.bool_]) -> Words:
    """Digests (n, 2) of integers modulo 2^64: one to one, by two rounds of a bijection."""
    out = np.empty((len(words), 2), np.uint64)
    out[:, 0] = mixed(words)
    sign = np.where(negative, np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03))
    out[:, 1] = mixed(out[:, 0] ^ sign) | np.uint64(1)  # never (0, 0)
    return out


def mixed(words: Words) -> Words:
    """A bijection of 64 bits without visible structure (splitmix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        z = words + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _hashed(kind: bytes, data: bytes) -> tuple[int, int]:
    raw = hashlib.blake2b(data, digest_size=16, person=b"ellipsum-" + kind[:7]).digest()
    return int.from_bytes(raw[:8], "little"), int.from_bytes(raw[8:], "little") | 1


def _of_numpy(name: str, column: NDArray[Any]) -> Labels:
    if column.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one value for each row")
    kind = column.dtype.kind
    if kind == "O":
        return _of_cells(column.tolist())
    if kind in "SU":
        return _of_cells(column.tolist(), "text" if kind == "U" else "bytes")
    if kind == "f":
        with np.errstate(all="ignore"):  # a warning would tell of a value
            column = column.astype(np.float64, copy=False)  # as cells of it are read
        whole = np.isfinite(column) & (np.abs(column) < 2.0**63) & (column == np.rint(column))
        if not whole[~np.isnan(column)].all():
            return _of_cells(column.tolist(), "integer")
        integers = np.where(whole, column, 0).astype(np.int64)
        return _of_integers(integers, ~whole)
    if kind in "iu":
        return _of_integers(column, None)
    raise TypeError(_wrong_type(name, column.dtype.type.__name__))


def _of_integers(column: NDArray[Any], missing: NDArray[np.bool_] | None) -> Labels:
    known = column if missing is None else column[~missing]
    if not len(known):
        none = np.empty((0, 2), np.uint64)
        return Labels("integer", np.full(len(column), -1, np.int64), none, [])
    low, high = int(known.min()), int(known.max())
    if high - low < _DENSE * len(column) and high < 1 << 63:
        codes = column.astype(np.int64) - low
        # Counted from 0: 2^63 as an end would make doubles of them all.
        values: NDArray[Any] = np.arange(high - low + 1, dtype=np.int64) + low
    else:
        codes, values = np.arange(len(column), dtype=np.int64), column
    if missing is not None:
        codes = np.where(missing, -1, codes)
    digests = integer_digests(values.astype(np.uint64), values < 0)
    return Labels("integer", codes, digests, values)


def _of_cells(cells: Sequence[Any], kind: str = "object") -> Labels:
    codes = np.empty(len(cells), np.int64)
    digests: list[tuple[int, int]] = []
    values: list[Any] = []
    known: dict[tuple[int, int], int] = {}
    for i, cell in enumerate(cells):
        try:
            digest, value = digest_of(cell), plain_value(cell)
        except Exception:  # what a cell's own code raises tells of that cell
            digest = None
        if digest is None:
            codes[i] = -1
            continue
        code = known.setdefault(digest, len(values))
        if code == len(values):
            digests.append(digest)
            values.append(value)
        codes[i] = code
    return Labels(kind, codes, np.array(digests, np.uint64).reshape(-1, 2), values)


def plain_value(value: Any) -> Any:
    """The value as the other readers have it, of Python's own types: a whole float is an
    integer, a UUID its bytes, a member of an enumeration its number or text."""
    if isinstance(value, (bool, np.bool_)):
        return value
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return int(number) if number.is_integer() else number
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, uuid.UUID):
        return value.bytes
    return bytes(value) if isinstance(value, (bytes, bytearray)) else value


def _of_pandas(name: str, column: Any) -> Labels:
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        return _of_numpy(name, column.to_numpy())
    pandas = sys.modules["pandas"]
    if isinstance(dtype, pandas.CategoricalDtype):
        categories = _of_pandas(name, column.cat.categories.to_series())
        codes = column.cat.codes.to_numpy().astype(np.int64)
        places = np.append(categories.codes, -1)  # -1 stays -1
        return Labels(categories.kind, places[codes], categories.digests, categories.values)
    cells = column.to_numpy(dtype=object, na_value=None).tolist()
    numeric = pandas.api.types.is_integer_dtype(dtype)
    if not (numeric or pandas.api.types.is_string_dtype(dtype)):
        raise TypeError(_wrong_type(name, str(dtype).split("[")[0]))
    return _of_cells(cells, "integer" if numeric else "text")


def _of_arrow(pa: Any, name: str, array: Any) -> Labels:
    kind, types = array.type, pa.types
    if isinstance(array, pa.ExtensionArray):
        return _of_arrow(pa, name, array.storage)
    if types.is_null(kind):
        return _of_cells([None] * len(array))
    if types.is_integer(kind) or types.is_floating(kind):
        missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        if types.is_floating(kind):
            return _of_numpy(name, array.to_numpy(zero_copy_only=False).astype(np.float64))
        plain = array if missing is None else array.fill_null(0)
        return _of_integers(plain.to_numpy(zero_copy_only=False), missing)
    if types.is_dictionary(kind):
        return _of_dictionary(pa, name, array)
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    if text or binary or types.is_fixed_size_binary(kind):
        if types.is_string_view(kind) or types.is_binary_view(kind):
            array = array.cast(pa.large_string() if text else pa.large_binary())
        return _of_dictionary(pa, name, array.dictionary_encode(), "text" if text else "bytes")
    raise TypeError(_wrong_type(name, str(kind).split("[")[0]))


def _of_dictionary(pa: Any, name: str, array: Any, kind: str = "") -> Labels:
    if kind:
        binary = array.dictionary.cast(pa.large_binary()).to_pylist()
        values = (
            [v.decode("utf-8", "surrogateescape") for v in binary] if kind == "text" else binary
        )
        entries = _of_cells(values, kind)
    else:
        entries = _of_arrow(pa, name, array.dictionary)
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    places = np.append(entries.codes, -1)
    return Labels(entries.kind, places[codes], entries.digests, entries.values)


def _wrong_type(name: str, kind: str) -> str:
    return (
        f"{name} must be integers, text or bytes, its type is {kind}: cast it to one of them "
        "(as a date to text)"
    )
