"""Spark: each partition adds up its rows beside its data, and returns a few integers.

A task's result reaches the driver once, whichever attempt was faster: nothing is written on the
way, so that a retry, a killed worker or a speculative copy changes no byte (claim engines-2).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..ellipsoid import Ellipsoid
from ..exact_sum import ExactSum
from ..rows.arrow import Layout
from ..rows.partitioned import PartPass
from .engine_rows import EngineRows, engine, withheld

__all__ = ["SparkRows", "exact_sum"]

_RESULT = "part string, result binary"
#: Where PySpark logs an error of a query, in JSON and with the value that it failed on.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class SparkRows(EngineRows):
    """A Spark DataFrame as data for the mechanisms; its rows stay in Spark.

    **Guarantees.** The same bytes as the same rows in one array, however they are partitioned
    (claim engines-1), after retries and speculation too (claim engines-2). An error quotes nothing
    of a record (claim engines-3); Spark's own logs may (see the guide): a cast that can fail must
    be ``try_cast``.

    Each pass is one Spark job: cache a DataFrame that is costly to compute. A DataFrame whose
    rows differ from run to run (``rand()``, ``limit`` without an order) has no sum of its own:
    write it first.

    Parameters
    ----------
    df : pyspark.sql.DataFrame, classic or Connect
        Numeric columns, or one column of arrays or of ML vectors. Text is cast by ``try_cast``:
        what is no number counts as the centre, as a null does.
    columns : sequence of str, optional
        The columns that make a row, in this order; all of them if left out.
    merge_tasks : int, optional
        Partial sums are first added up by so many tasks, and the driver gets so many of them: for
        thousands of partitions and thousands of coordinates.

    Raises
    ------
    TypeError, ValueError
        For columns that are no numbers, missing, or twice there.
    ImportError
        Without PySpark.
    """

    def __init__(
        self, df: Any, columns: Sequence[str] | None = None, *, merge_tasks: int | None = None
    ) -> None:
        engine("pyspark.sql", "spark")
        if not hasattr(df, "mapInArrow"):
            raise TypeError(f"df must be a Spark DataFrame, got {type(df).__name__}")
        names = _chosen(df, columns)
        fields = {field.name: field for field in df.schema.fields}
        chosen = [_numeric(fields[name], alone=len(names) == 1) for name in names]
        # By number: mapInArrow looks columns up by name, and some names have a syntax.
        self._df = df.select(*(column.alias(f"c{j}") for j, column in enumerate(chosen)))
        self._merge_tasks = merge_tasks
        self.columns, self.d = names, len(names)
        if type(self._df.schema[0].dataType).__name__ == "ArrayType":
            self.d = None

    def __repr__(self) -> str:
        return f"SparkRows(columns={self.columns}, d={self.d})"

    def count_rows(self) -> int:
        """Number of rows, by Spark's own count."""
        with _quiet():
            return int(withheld("Spark", self._df.count))

    def gather(self, task: PartPass) -> Iterator[tuple[str, bytes]]:
        """One Spark job: a result of each partition."""
        partials = self._df.mapInArrow(_on_partition(task), _RESULT)
        if self._merge_tasks is not None:
            merged = partials.repartition(self._merge_tasks, "part")
            partials = merged.mapInArrow(_merge_partials(task), _RESULT)
        with _quiet():
            found = withheld("Spark", partials.collect)
        for row in found:
            yield row[0], bytes(row[1])


def exact_sum(
    df: Any,
    region: Ellipsoid,
    columns: Sequence[str] | None = None,
    *,
    missing: str = "center",
    merge_tasks: int | None = None,
) -> ExactSum:
    """Return the exact sum of a Spark DataFrame's rows over a region: one Spark job.

    **Guarantees.** As :class:`SparkRows`. The sum is **private**: hand it to a mechanism.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
    region : Ellipsoid
        Of a mechanism: ``mechanism.region_for(n)``.
    columns : sequence of str, optional
    missing : ``"center"`` or ``"ignore"``, as of :class:`ellipsum.ExactSum`
    merge_tasks : int, optional
        As for :class:`SparkRows`.

    Returns
    -------
    ExactSum

    Raises
    ------
    TypeError, ValueError
        As :class:`SparkRows`, and for rows of another width than the region's.
    EngineError
        If Spark does not finish; its text is withheld.
    """
    return SparkRows(df, columns, merge_tasks=merge_tasks).exact_sum(region, missing=missing)


def _chosen(df: Any, columns: Sequence[str] | None) -> list[str]:
    if isinstance(columns, str):
        raise TypeError(f"columns must be a sequence of names, got one string: [{columns!r}]?")
    names = list(df.columns if columns is None else columns)
    if not names:
        raise ValueError("df has no columns to read: name at least one")
    for name in names:
        if (times := df.columns.count(name)) != 1:
            has = "has no column" if times == 0 else "has twice the column"
            raise ValueError(f"df {has} {name!r}: choose from its {len(df.columns)} names")
        if names.count(name) > 1:
            raise ValueError(f"column {name!r} comes twice in columns: name each column once")
    return names


def _numeric(field: Any, *, alone: bool) -> Any:
    """The column as numbers, by an expression that fails on no value."""
    types = engine("pyspark.sql.types", "spark")
    column = engine("pyspark.sql.functions", "spark").col(_quoted(field.name))
    kind = field.dataType
    if isinstance(kind, (types.NumericType, types.BooleanType)):
        return column
    if isinstance(kind, types.StringType):
        cast = f"try_cast({_quoted(field.name)} as double)"
        return engine("pyspark.sql.functions", "spark").expr(cast)
    if alone and isinstance(kind, types.ArrayType):
        if isinstance(kind.elementType, (types.NumericType, types.BooleanType)):
            return column
    if alone and type(kind).__name__ == "VectorUDT":
        ml = engine("pyspark.ml.functions", "spark")
        return ml.vector_to_array(column)
    raise TypeError(
        f"column {field.name!r} of df is not numeric, its type is {kind.simpleString()}: leave it "
        "out of columns, or cast it by try_cast; arrays and vectors are read alone"
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _on_partition(task: PartPass) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a worker does with the record batches of one partition."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow
        from pyspark import TaskContext

        context = TaskContext.get()
        name = f"partition {context.partitionId() if context else 0}"
        result = task(block for batch in batches for block in _blocks(batch, task.d))
        yield pyarrow.RecordBatch.from_pydict({"part": [name], "result": [result]})

    return run


def _blocks(batch: Any, d: int) -> Iterator[Any]:
    return Layout(batch.schema).blocks(batch, d)


def _merge_partials(task: PartPass) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a worker does with the results of some partitions, each of which it gets once."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        names: list[str] = []
        parts: list[bytes] = []
        for batch in batches:
            names += batch.column(0).to_pylist()
            parts += batch.column(1).to_pylist()
        if names:
            name = f"{len(names)} from {min(names)}"
            merged = {"part": [name], "result": [task.merge(parts)]}
            yield pyarrow.RecordBatch.from_pydict(merged)

    return run


@contextmanager
def _quiet() -> Iterator[None]:
    """PySpark's own log of failed queries, in this process, switched off for a job."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
