"""Rows in: whatever a user holds, as numeric batches of shape (n, d)."""

from __future__ import annotations

import io
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..column_names import Columns, frame_names, in_order
from ..column_units import frame_units
from .arrays import OWN_ERRORS, numeric_rows, plain_records, quiet, read_others, read_records
from .arrow import is_arrow, pyarrow_missing, stream_batches
from .columns import ColumnBlock, as_arrays
from .files import Rows
from .frames import few_polars_rows, frame_batches, number_columns
from .partitioned import refuse_far_rows

__all__ = ["as_batches", "has_batches", "kernel_batches"]

#: What is said where files have a column that says whose row it is, and rows are taken one by one.
OF_USERS = (
    "data was opened with by={!r}, and single rows would be protected: use a mechanism with "
    "by= (or key=, user=), or open it without"
)

#: Numbers of records that are converted at once (4 MiB).
_NUMBERS_PER_BLOCK = 1 << 19


def as_batches(
    data: Any, d: int, columns: Columns | None = None, *, told: bool = False
) -> Iterator[NDArray[Any]]:
    """Yield ``data`` as numeric arrays of shape (n, d), without a copy where its layout allows
    (from Arrow and files: float32 or float64).

    **Guarantees.** What is raised depends on shapes, types and the reader's health, never on
    a value, nor on what one record of a list is: nulls, and records of another length than
    ``d`` or of no numbers, come out as rows with NaN, which count as the centre. Copying them
    takes longer than not having to, so the *time* of a batch tells whether it holds one
    (claims rows-1, rows-2, channels-1).

    ================================  =====================================================
    data                              batches
    ================================  =====================================================
    array or memory map, (n, d)       itself, whole, any strides and numeric dtype
    one row, (d,)                     itself, as (1, d)
    list, iterator, generator         what its items are, one after the other: a batch by its
                                      type (a 2-D array, a tensor, a frame, Arrow data) gives
                                      its own rows, **anything else one row**, whatever it is
    ``__arrow_c_stream__``            one or more for each record batch: pyarrow, polars,
    or ``__arrow_c_array__``          DuckDB, pandas; see `Layout` for the columns
    pyarrow Dataset, Scanner          the same: a query runs once for each pass, and its batches
    Polars LazyFrame                  are taken as they come (a Scanner for one pass alone)
    pandas frame of NumPy's numbers   itself, whole, where its columns lie evenly in one array
    few rows of pandas or Polars      the array that they make of it
    ``Rows`` (`ellipsum.open_rows`)   blocks of the files
    ================================  =====================================================

    Tables have their coordinates by name: where ``columns`` knows names, or an earlier batch had
    some, the same columns in another order are put into that one, and others are refused (claim
    rows-5). Arrays have none, and are taken as they are.

    So a list inside an iterator is one record: make batches arrays. Arrays and pandas columns of
    dtype object are refused, whatever they hold. A pandas index is no coordinate.

    Parameters
    ----------
    data : array, iterable of records or batches, Arrow data or Rows
        n records of d coordinates, in the data's own unit.
    d : int
        The number of coordinates that every row must have.
    columns : Columns, optional
        Their names, as far as they are known; names that are seen are put there.
    told : bool
        Whether those of a batch in a list or an iterator are, too.

    Raises
    ------
    TypeError
        The data is of no such kind, or a column's type is not numeric. What a producer of
        Arrow data raises comes out as this, without its text.
    ValueError
        The rows of an array or a table have another number of coordinates, or other names.
    OSError
        An Arrow stream breaks off.
    ImportError
        Arrow data without pyarrow.
    """
    return as_arrays(kernel_batches(data, d, columns, told=told))


def kernel_batches(
    data: Any, d: int, columns: Columns | None = None, *, told: bool = False
) -> Iterator[NDArray[Any] | ColumnBlock]:
    """Yield ``data`` as the kernels take it: as :func:`as_batches`, but columns where they lie."""
    columns = Columns() if columns is None else columns
    if isinstance(data, Rows):
        if data.by:
            raise ValueError(OF_USERS.format(data.by[0]))
        return data.arranged(columns, d).kernel_batches(d)
    if isinstance(data, ColumnBlock):
        if data.shape[1] != d:
            raise ValueError(f"data must have shape (n, {d}), got {data.shape[1]} columns")
        return iter([data])
    if type(data) is np.ndarray:
        return iter([numeric_rows("data", data, d=d)])
    refuse_far_rows(data)
    _refuse_known(data)
    names = frame_names(data)
    if (numbers := number_columns(data, d)) is not None:
        order = columns.order_of(names, units=frame_units(data))
        return in_order(frame_batches(numbers), order)
    if (few := few_polars_rows(data, d)) is not None:
        return in_order(iter([few]), columns.order_of(data.columns))
    if is_arrow(data) and not (hasattr(data, "__array__") and pyarrow_missing()):
        named = names is not None or not _is_frame(data)
        return stream_batches(_without_index(data), d, columns, named=named)
    if type(data) in (list, tuple):
        return _listed(data, d, columns, told)
    if isinstance(data, (list, tuple)):
        return _runs(data, d, columns, told)
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        order = columns.order_of(names, units=frame_units(data))
        return in_order(iter([numeric_rows("data", data, d=d)]), order)
    if isinstance(data, Iterable):
        return _runs(data, d, columns, told)
    raise TypeError(
        f"data must be an array, an iterable of rows or Arrow data, got {type(data).__name__}"
    )


def _refuse_known(data: Any) -> None:
    """Raise TypeError for what is iterable and no rows, by its type: each item would be a record of
    no numbers, and the release one of noise."""
    kind = type(data)
    package, _, module = kind.__module__.partition(".")
    if isinstance(data, (str, bytes, io.IOBase)) or hasattr(data, "__fspath__"):
        advice = "read files by open_rows(paths)"
    elif isinstance(data, (Mapping, set, frozenset)):
        advice = "read files by open_rows(paths), and make a mapping an array or a table first"
    elif package == "scipy" and module.startswith("sparse"):
        advice = "make it dense first, or batch by batch: by toarray()"
    elif package in ("pandas", "polars") and not _is_table(data):
        # Groups and windows: each has rows of its own, or some of them again and again.
        advice = "give the table itself; of groups there are PrivateGroupSum and PrivateGroupMean"
    elif package == "_csv":
        advice = "its cells are text: read the file by open_rows(paths)"
    elif isinstance(data, (range, array)):
        advice = "make it an array of shape (n, d) first"
    else:
        return
    raise TypeError(f"data must be rows of numbers, got {kind.__name__}: {advice}")


def _is_table(data: Any) -> bool:
    """Whether it is pandas' or Polars' rows, or what a query gives."""
    return is_arrow(data) or hasattr(data, "__array__") or hasattr(data, "__array_interface__")


def _is_frame(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, (pandas.DataFrame, pandas.Series))


def _without_index(data: Any) -> Any:
    """A pandas table without its index, which is no coordinate and whose dtype, like an object
    column's, Arrow would infer from the values."""
    if not _is_frame(data):
        return data
    pandas = sys.modules["pandas"]
    # The name of a series is not told: of one that was a row it is a person's label.
    frame = isinstance(data, pandas.DataFrame)
    kinds = zip(data.columns, data.dtypes, strict=True) if frame else [(None, data.dtype)]
    for name, kind in kinds:
        if kind == np.dtype(object):
            what = "data" if name is None else f"column {name!r} of data"
            raise TypeError(
                f"{what} has dtype object, which may hold anything: convert it first, as by "
                "pandas.to_numeric(column, errors='coerce'); where each cell is a whole row, "
                "give list(column)"
            )
    if frame and not data.columns.is_unique:
        twice = data.columns[data.columns.duplicated()][0]
        raise ValueError(f"column {twice!r} comes twice in data: rename one, or leave it out")
    plain = data.copy(deep=False)
    plain.index = pandas.RangeIndex(len(data))
    return plain


def _listed(
    data: Sequence[Any], d: int, columns: Columns, told: bool
) -> Iterator[NDArray[Any] | ColumnBlock]:
    """The rows of a list: a stretch at a time where all of its items are records."""
    columns = columns if told else columns.untold()
    every, step = iter(data), max(1, _NUMBERS_PER_BLOCK // d)
    while items := list(islice(every, step)):
        rows, odd = plain_records(items, d)
        if odd and has_batches(items[i] for i in odd):
            yield from _runs(items, d, columns, told=True)
        else:
            yield read_others(items, rows, odd)


def _runs(
    data: Iterable[Any], d: int, columns: Columns, told: bool
) -> Iterator[NDArray[Any] | ColumnBlock]:
    """Batches by themselves, and what stands between them as records.

    They agree on the columns' names, which ``columns`` does not learn unless it is ``told``:
    whether there is a batch at all may be for one person to say.
    """
    columns = columns if told else columns.untold()
    step, records = max(1, _NUMBERS_PER_BLOCK // d), []
    for item in data:
        kind = type(item)  # a call for each item would take as long as reading it
        known = kind is tuple or kind is list or (kind is np.ndarray and item.ndim != 2)
        record = known or not has_batches([item])
        if record:
            records.append(item)
            if len(records) < step:
                continue
        if records:
            yield read_records(records, d)
            records = []
        if not record:
            yield from kernel_batches(item, d, columns)
    if records:
        yield read_records(records, d)


def has_batches(items: Iterable[Any]) -> bool:
    """Whether one of the items is a batch and no record, by its type: arrays (n, d), Arrow data,
    files."""
    with quiet():
        return any(map(_is_batch, items))


def _is_batch(item: Any) -> bool:
    kind = type(item)  # of the item itself, whose own code may say another one
    if issubclass(kind, (list, tuple)):
        return False
    if kind is np.ndarray:  # what follows takes 2 us
        return bool(item.ndim == 2)
    if issubclass(kind, Rows):
        return True
    try:
        return bool(is_arrow(item) or (hasattr(item, "__array__") and item.ndim == 2))
    except OWN_ERRORS:
        return False
