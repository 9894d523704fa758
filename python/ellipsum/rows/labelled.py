"""Rows with the labels beside them: whose they are, and which group they are in.

The same containers as :func:`ellipsum.rows.batches.as_batches` takes. A label is a column's name,
where the data have columns with names; or a column itself, for an array.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..column_names import Columns, in_order
from .arrow import Layout, is_arrow, named_batches, pyarrow
from .batches import as_batches
from .columns import as_arrays
from .files import Rows
from .labels import Labels, labels_of
from .partitioned import refuse_far_labels

__all__ = [
    "column_of",
    "label_batches",
    "label_places",
    "labelled_batches",
    "number_batches",
    "one_kind",
    "rows_of_table",
]

_Batch = tuple[NDArray[Any], list[Labels]]

_OTHER_TYPE = (
    "a column of labels (users, groups) has another type in a later batch or file: cast it first"
)


def labelled_batches(
    data: Any, d: int, by: Sequence[Any], coordinates: Columns | None = None
) -> Iterator[_Batch]:
    """Yield batches (n, d) of rows, with one :class:`Labels` for each entry of ``by``.

    ==================================  ==================================================
    data                                a label is
    ==================================  ==================================================
    array (n, d), list of records       a column: array, list, Series, Arrow array
    mapping of names to columns,        a name in it, or a column; the other columns
    pandas, Polars, Arrow tables and    are the coordinates
    streams, structured arrays
    list or iterator of tables          a name in each of them
    ``open_rows(..., by=[...])``        a name that ``by`` has
    ==================================  ==================================================

    ``coordinates`` are the names of the other columns, as :func:`as_batches` has them.

    Raises
    ------
    TypeError, ValueError
        For data that have no such column, or a column of another length or type.
    """
    refuse_far_labels(data)
    coordinates = Columns() if coordinates is None else coordinates
    names = [label for label in by if isinstance(label, str)]
    if isinstance(data, Rows):
        parts = _of_files(data.arranged(coordinates, d), d, by)
    elif isinstance(data, Mapping) or _is_structured(data):
        parts = _of_mapping(_columns_of(data), d, by, coordinates)
    elif _is_pandas(data):
        columns = [_pandas_column(data, label) for label in by]
        rest = data.drop(columns=list(dict.fromkeys(names)))
        parts = _beside(rest, columns, d, coordinates)
    elif is_arrow(data) and names:
        parts = _of_stream(data, d, by, coordinates)
    elif names and _is_run(data):
        parts = _of_tables(data, by, partial(labelled_batches, d=d, by=by, coordinates=coordinates))
    elif names:
        raise TypeError(
            f"data of type {type(data).__name__} have no column {names[0]!r}: give a table, or the "
            "column itself"
        )
    else:
        labels = [labels_of("a column of labels", column) for column in by]
        parts = _beside(data, labels, d, coordinates)
    return _of_one_kind(parts)


def label_batches(data: Any, by: Sequence[Any]) -> Iterator[_Batch]:
    """The labels alone, each batch behind as many rows of nothing: what counts need.

    Parameters
    ----------
    data : as :func:`labelled_batches` takes; not read where every label is a column itself
    by : sequence of str or columns
    """
    parts: Iterator[_Batch]
    refuse_far_labels(data)
    if isinstance(data, Rows):
        parts = ((_blank(rows), labels) for rows, labels in _of_files(data, data.d or 0, by))
    elif _is_stream(data, by):
        _, batches = named_batches(data)
        parts = (_labels_of_batch(batch, by) for batch in batches)
    elif _is_run(data) and any(isinstance(x, str) for x in by):
        parts = _of_tables(data, by, partial(label_batches, by=by))
    else:
        columns = [column_of(data, x) if isinstance(x, str) else x for x in by]
        named = [labels_of("a column of labels", column) for column in columns]
        if len({len(column) for column in named}) > 1:
            raise ValueError(_LENGTHS)
        parts = iter([(np.zeros((len(named[0]), 1)), named)])
    return _of_one_kind(parts)


def number_batches(data: Any, key: Any, by: Sequence[Any]) -> Iterator[_Batch]:
    """One column of numbers, batches (n, 1), with the labels beside it: what histograms need.

    Parameters
    ----------
    data : as :func:`labelled_batches` takes; without ``key`` the column itself
    key : str, the column's name; the column; or None
    by : sequence of str or columns
    """
    refuse_far_labels(data)
    if isinstance(data, Rows):
        return labelled_batches(data, 1, by)
    if isinstance(key, str) and _is_stream(data, [key, *by]):
        _, batches = named_batches(data)
        return _of_one_kind(_numbers_of_batches(batches, key, by))
    if isinstance(key, str) and _is_run(data):
        parts = _of_tables(data, [key, *by], partial(number_batches, key=key, by=by))
        return _of_one_kind(parts)
    column = data if key is None else (column_of(data, key) if isinstance(key, str) else key)
    labels = [column_of(data, x) if isinstance(x, str) else x for x in by]
    if not labels:
        return ((batch, []) for batch in as_batches(column, 1))
    return labelled_batches(column, 1, labels)


def _numbers_of_batches(batches: Iterator[Any], key: str, by: Sequence[str]) -> Iterator[_Batch]:
    for batch in batches:
        _, labels = _labels_of_batch(batch, by)
        _check_column(batch.schema, key)
        yield from _beside(batch.select([key]), labels, 1)


def _is_stream(data: Any, by: Sequence[Any]) -> bool:
    """Whether data are Arrow's, and every label is a column of theirs."""
    named = bool(by) and all(isinstance(label, str) for label in by)
    return named and is_arrow(data) and not _is_pandas(data)


def _is_run(data: Any) -> bool:
    """Whether data may be a list or an iterator of tables."""
    whole = (str, bytes, Mapping, np.ndarray)
    return isinstance(data, Iterable) and not isinstance(data, whole) and not _is_table(data)


def _is_table(data: Any) -> bool:
    return _is_pandas(data) or is_arrow(data) or _is_structured(data)


def _of_tables(
    tables: Iterable[Any], names: Sequence[Any], of: Callable[[Any], Iterator[_Batch]]
) -> Iterator[_Batch]:
    """What ``of`` gives of each table that has columns of these names."""
    if not all(isinstance(name, str) for name in names):
        raise TypeError("give every label of a table by its column's name")
    for table in tables:
        if not _is_table(table):
            raise TypeError(
                f"data of type {type(tables).__name__} have no columns by name: give a table, or "
                "an iterator of tables (frames, Arrow data)"
            )
        yield from of(table)


def _blank(rows: NDArray[Any]) -> NDArray[Any]:
    return np.zeros((len(rows), 1))


def _labels_of_batch(batch: Any, by: Sequence[Any]) -> _Batch:
    for name in by:
        _check_column(batch.schema, name)
    labels = [labels_of(f"column {name!r}", batch.column(name)) for name in by]
    return np.zeros((batch.num_rows, 1)), labels


def column_of(data: Any, name: str) -> Any:
    """A column by its name, of whatever has such columns."""
    try:
        return data[name]
    except (KeyError, TypeError, IndexError, ValueError):
        raise _missing(name) from None


def rows_of_table(data: Any) -> int:
    """How many rows a table of a known library has, whatever batches it comes in; 0 of others."""
    tables = {"pandas": ["DataFrame"], "polars": ["DataFrame"], "pyarrow": ["Table", "RecordBatch"]}
    for package, names in tables.items():
        module = sys.modules.get(package)
        if module is not None and type(data) in [getattr(module, name, None) for name in names]:
            return int(data.shape[0])
    return 0


def one_kind(known: list[str] | None, here: list[str]) -> list[str]:
    """The kinds of columns after a batch with kinds of its own; "" goes with any.

    Raises
    ------
    TypeError
        For a column that is integers in one batch and text in another: a matter of types.
    """
    if known is None:
        return here
    if any(a and b and a != b for a, b in zip(known, here, strict=True)):
        raise TypeError(_OTHER_TYPE)
    return [a or b for a, b in zip(known, here, strict=True)]


def _of_one_kind(parts: Iterator[_Batch]) -> Iterator[_Batch]:
    """The same batches, each of whose columns is to be of one kind in all of them."""
    kinds: list[str] | None = None
    for rows, labels in parts:
        if len(rows):  # a piece without rows has no type that matters
            kinds = one_kind(kinds, [label.kind for label in labels])
            yield rows, labels


def _beside(
    data: Any, columns: Sequence[Labels], d: int, coordinates: Columns | None = None
) -> Iterator[_Batch]:
    """Rows from ``as_batches``, in their order, and the same stretch of each column."""
    done = 0
    for batch in as_batches(data, d, coordinates):
        end = done + len(batch)
        if any(len(column) < end for column in columns):
            raise ValueError(_LENGTHS)
        yield batch, [column[done:end] for column in columns]
        done = end
    if any(len(column) != done for column in columns):
        raise ValueError(_LENGTHS)


_LENGTHS = "a column of labels must have one entry for each row of data"


def _is_structured(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.dtype.names is not None


def _columns_of(data: Any) -> dict[str, Any]:
    names = data.dtype.names if isinstance(data, np.ndarray) else list(data)
    return {name: data[name] for name in names}


def _is_pandas(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _missing(name: str) -> ValueError:
    return ValueError(f"data has no column {name!r}: name one that it has")


def _check_column(schema: Any, name: str) -> None:
    if schema.names.count(name) != 1:
        raise _missing(name)


def _pandas_column(data: Any, label: Any) -> Labels:
    if not isinstance(label, str):
        return labels_of("a column of labels", label)
    if list(data.columns).count(label) != 1:
        raise _missing(label)
    return labels_of(f"column {label!r}", data[label])


def _of_mapping(
    columns: dict[str, Any], d: int, by: Sequence[Any], coordinates: Columns
) -> Iterator[_Batch]:
    labels = []
    for label in by:
        if isinstance(label, str) and label not in columns:
            raise _missing(label)
        name = f"column {label!r}" if isinstance(label, str) else "a column of labels"
        labels.append(labels_of(name, columns[label] if isinstance(label, str) else label))
    others = {n: c for n, c in columns.items() if n not in _names(by)}
    if len(others) == d and coordinates.order_of(list(others)) is not None:
        others = {n: others[n] for n in coordinates.names or ()}
    rest = [np.asarray(_rows_of(column)) for column in others.values()]
    if len({len(column) for column in rest}) > 1:
        raise ValueError("the columns of data have different lengths")
    whole = np.concatenate(rest, axis=1) if rest else np.empty((0, 0))
    return _beside(whole, labels, d)


def _names(by: Sequence[Any]) -> set[str]:
    return {label for label in by if isinstance(label, str)}


def _rows_of(column: Any) -> NDArray[Any]:
    """A column as (n, k): its batches as one array."""
    width = np.ndim(column) if isinstance(column, np.ndarray) else 1
    d = column.shape[1] if width == 2 else 1
    batches = list(as_batches(list(column) if isinstance(column, tuple) else column, d))
    with np.errstate(all="ignore"):  # a warning would tell of a value
        return np.concatenate([np.asarray(b, np.float64) for b in batches] or [np.empty((0, d))])


def _of_stream(data: Any, d: int, by: Sequence[Any], coordinates: Columns) -> Iterator[_Batch]:
    if not all(isinstance(label, str) for label in by):
        raise TypeError("give every label of a table by its column's name")
    pa = pyarrow("Arrow data")
    schema, batches = named_batches(data)
    with closing(batches):  # a database is not free for others while its rows are held
        yield from _of_record_batches(pa, schema, batches, d, by, "data", coordinates)


def _of_record_batches(
    pa: Any,
    schema: Any,
    batches: Iterator[Any],
    d: int,
    by: Sequence[str],
    source: str,
    coordinates: Columns,
) -> Iterator[_Batch]:
    for name in by:
        _check_column(schema, name)
    rest = [n for n in schema.names if n not in set(by) and not n.startswith("__index_level_")]
    layout = Layout(schema, rest, source=source)
    order = layout.arrange(coordinates, d)
    for batch in batches:
        labels = [labels_of(f"column {name!r}", batch.column(name)) for name in by]
        done = 0
        for block in as_arrays(in_order(layout.blocks(batch, d), order)):
            yield block, [label[done : done + len(block)] for label in labels]
            done += len(block)


def label_places(rows: Rows, by: Sequence[Any]) -> list[int]:
    """Where the labels are among the columns that files were opened with; both name the same.

    Raises
    ------
    TypeError, ValueError
        For a label that is no name, or none of the columns, and for one that is not used.
    """
    for label in by:
        if not isinstance(label, str):  # it is somebody's, and is not quoted
            raise TypeError("files have their labels by name: open_rows(..., by=[...])")
        if label not in rows.by:
            raise ValueError(
                f"the files were opened without the column {label!r}: "
                f"open_rows(..., by=[{label!r}])"
            )
    unused = [name for name in rows.by if name not in by]
    if unused:
        raise ValueError(
            f"the files were opened with by={unused[0]!r}, which is not used: name it here as the "
            "user or the key, or leave it out there"
        )
    return [rows.by.index(label) for label in by]


def _of_files(rows: Rows, d: int, by: Sequence[Any]) -> Iterator[_Batch]:
    places = label_places(rows, by)
    for block, columns in rows.labelled(d):
        yield block, [labels_of(f"column {by[k]!r}", columns[p]) for k, p in enumerate(places)]
