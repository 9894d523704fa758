"""Rows that are fetched when they are asked for: pyarrow's Dataset and Scanner, Polars' LazyFrame.

Each is opened as an Arrow stream: a query runs once for each pass, and its batches are taken as
they come. (DuckDB's relations and Polars' ``collect_batches`` are such streams by themselves.)
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["is_query", "opened_query", "refuse_inferred", "scans_once", "shape_of"]

# What is fetched ahead: pyarrow's own defaults hold 16 batches of each of 4 files.
_ROWS_OF_A_BATCH, _BATCHES_AHEAD, _FILES_AHEAD = 1 << 16, 2, 1

_INFERRED = (
    "data is a data set of {} files, whose columns' types and errors follow from their records: "
    "give open_rows(paths), by which no record decides anything, or write them as Parquet"
)


def _is(data: Any, module: str, *names: str) -> bool:
    """Whether data is an instance of a class of a module, where that was imported."""
    found = sys.modules.get(module)
    kinds = tuple(getattr(found, name) for name in names) if found is not None else ()
    return isinstance(data, kinds)


def is_query(data: Any) -> bool:
    """Whether data is a Dataset, a Scanner or a LazyFrame: by its type."""
    arrow = _is(data, "pyarrow.dataset", "Dataset", "Scanner")
    return arrow or _is(data, "polars", "LazyFrame")


def shape_of(data: Any) -> tuple[int, ...]:
    """The shape that data have without being read; none of a query, which would run for it."""
    if is_query(data) or _is(data, "duckdb", "DuckDBPyRelation"):
        return ()
    shape = getattr(data, "shape", ())
    return shape if isinstance(shape, tuple) else ()


def scans_once(data: Any) -> bool:
    """Whether data may be a scan of something that can be read once: no Scanner says it."""
    return _is(data, "pyarrow.dataset", "Scanner")


_UNLIKE = (
    "the files of a data set have columns of other types than its first: whether their cells fit "
    "is a matter of single records; give open_rows(paths), or write them with one schema"
)


def refuse_inferred(data: Any) -> None:
    """Refuse a Dataset whose records decide what fits: CSV, JSON, unlike files (claim rows-1).

    Raises
    ------
    TypeError
    """
    for child in getattr(data, "children", ()) if _is(data, "pyarrow.dataset", "Dataset") else ():
        refuse_inferred(child)
    if _is(data, "pyarrow.dataset", "FileSystemDataset"):
        for name in ("Csv", "Json"):
            if _is(data.format, "pyarrow.dataset", f"{name}FileFormat"):
                raise TypeError(_INFERRED.format(name.upper()))
        for fragment in data.get_fragments():
            try:
                own = {field.name: field.type for field in fragment.physical_schema}
            except Exception:  # what a damaged file raises may quote it
                raise OSError(f"data: {fragment.path} is not there, or is damaged") from None
            if any(own.get(field.name, field.type) != field.type for field in data.schema):
                raise TypeError(_UNLIKE)


def opened_query(data: Any) -> Any:
    """A new Arrow stream of the query's rows, in batches; data that are no query as they are."""
    if _is(data, "pyarrow.dataset", "Dataset"):
        ahead = {"batch_readahead": _BATCHES_AHEAD, "fragment_readahead": _FILES_AHEAD}
        data = data.scanner(batch_size=_ROWS_OF_A_BATCH, **ahead)
    if _is(data, "pyarrow.dataset", "Scanner"):
        return data.to_reader()
    if _is(data, "polars", "LazyFrame"):  # older ones have no batches
        return data.collect_batches() if hasattr(data, "collect_batches") else data.collect()
    return data
