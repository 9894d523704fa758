"""Spark: each partition adds up its rows beside its data, and returns a few integers.

A task's result reaches the driver once, whichever attempt was faster: nothing is written on the
way, so that a retry, a killed worker or a speculative copy changes no byte (claim engines-2).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

from ..column_units import metadata_units
from ..ellipsoid import Ellipsoid
from ..exact_sum import ExactSum
from ..rows.arrow import Layout
from ..rows.partitioned import PartPass, ShuffledPass
from .engine_rows import EngineRows, engine, label_names, withheld

__all__ = ["SparkRows", "exact_sum"]

_RESULT = "part string, result binary"
_PIECES = "bucket int, piece binary"
#: Buckets of users: several for each of the 200 tasks that Spark puts behind a shuffle.
_BUCKETS = 1024
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
        The columns that make a row, in this order; all of them if left out, but for ``by``.
    by : str or sequence of str, optional
        Columns beside them that say whose row it is, or which group it is in: integers, text or
        bytes. For users a pass has a shuffle: rows, and digests in place of the users, are then in
        Spark's shuffle files.
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
        self,
        df: Any,
        columns: Sequence[str] | None = None,
        *,
        by: str | Sequence[str] = (),
        merge_tasks: int | None = None,
    ) -> None:
        engine("pyspark.sql", "spark")
        if not hasattr(df, "mapInArrow"):
            raise TypeError(f"df must be a Spark DataFrame, got {type(df).__name__}")
        self.by = label_names(by)
        names = _chosen(df, columns, self.by)
        fields = {field.name: field for field in df.schema.fields}
        chosen = [_numeric(fields[name], alone=len(names) == 1) for name in names]
        # By number: mapInArrow looks columns up by name, and some names have a syntax.
        chosen += [_label(fields[name]) for name in self.by]
        self._df = df.select(*(column.alias(f"c{j}") for j, column in enumerate(chosen)))
        self._merge_tasks = merge_tasks
        self.columns: list[str] = names
        self._types = [fields[name].dataType.simpleString() for name in [*names, *self.by]]
        self.units = metadata_units({name: fields[name].metadata for name in names})
        self.d = len(names)
        if names and type(self._df.schema[0].dataType).__name__ == "ArrayType":
            self.d = None

    def __repr__(self) -> str:
        by = f", by={list(self.by)}" if self.by else ""
        return f"SparkRows(columns={self.columns}, d={self.d}{by})"

    def count_rows(self, d: int | None = None) -> int:
        """Number of rows, by Spark's own count."""
        with _quiet():
            return int(withheld("Spark", self._df.count))

    def known(self) -> list[str]:
        """Types of the columns, and the files that Spark reads, as far as it tells them."""
        with _quiet():
            return [*self._types, *sorted(withheld("Spark", self._df.inputFiles))]

    def gather(self, task: PartPass) -> Iterator[tuple[str, bytes]]:
        """One Spark job: a result of each partition."""
        return self._collected(self._read(task, _on_partition, _RESULT), task)

    def exchange(self, task: ShuffledPass) -> Iterator[tuple[str, bytes]]:
        """One Spark job with one shuffle: pieces to buckets, and a result of each partition."""
        pieces = self._read(task, _split_partition, _PIECES).repartition("bucket")
        return self._collected(pieces.mapInArrow(_on_pieces(task), _RESULT), task)

    def _read(self, task: Any, of: Callable[..., Any], schema: str) -> Any:
        """What ``of`` makes of the partitions of those columns that a task reads."""
        k = len(self.columns)
        places = [*(range(k) if task.d else ()), *(k + self.by.index(name) for name in task.by)]
        names = [[*self.columns, *self.by][j] for j in places]
        df = self._df.select(*(f"c{j}" for j in places))
        return df.mapInArrow(of(task, names), schema)

    def _collected(self, partials: Any, task: PartPass) -> Iterator[tuple[str, bytes]]:
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


def _chosen(df: Any, columns: Sequence[str] | None, by: tuple[str, ...]) -> list[str]:
    if isinstance(columns, str):
        raise TypeError(f"columns must be a sequence of names, got one string: [{columns!r}]?")
    rest = [name for name in df.columns if name not in by]
    names = list(rest if columns is None else columns)
    if not names and not by:
        raise ValueError("df has no columns to read: name at least one")
    for name in [*names, *by]:
        if (times := df.columns.count(name)) != 1:
            has = "has no column" if times == 0 else "has twice the column"
            raise ValueError(f"df {has} {name!r}: choose from its {len(df.columns)} names")
        if names.count(name) + by.count(name) > 1:
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


def _label(field: Any) -> Any:
    """The column as it is: no cast, which would change who is who."""
    types = engine("pyspark.sql.types", "spark")
    kinds = types.IntegralType, types.FractionalType, types.StringType, types.BinaryType
    if not isinstance(field.dataType, kinds) or isinstance(field.dataType, types.DecimalType):
        raise TypeError(
            f"column {field.name!r} of df must be integers, text or bytes to be in by, its type is "
            f"{field.dataType.simpleString()}: cast it to one of them (as a date to text)"
        )
    return engine("pyspark.sql.functions", "spark").col(_quoted(field.name))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _on_partition(task: PartPass, names: list[str]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a worker does with the record batches of one partition."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        yield _result(task(_data(task, names, batches)))

    return run


def _split_partition(
    task: ShuffledPass, names: list[str]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a worker does with one partition whose users are shuffled: the same rows go to the same
    buckets at every attempt, in whatever order they come."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        pieces = task.split(_data(task, names, batches), _BUCKETS)
        types = [pyarrow.int32(), pyarrow.binary()]
        while some := list(islice(pieces, _BUCKETS)):
            columns = [
                pyarrow.array(c, t) for c, t in zip(zip(*some, strict=True), types, strict=True)
            ]
            yield pyarrow.RecordBatch.from_arrays(columns, ["bucket", "piece"])

    return run


def _on_pieces(task: ShuffledPass) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a worker does with the pieces of some buckets, all of which it gets."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        pieces = (piece.as_py() for batch in batches for piece in batch.column(1))
        if (first := next(pieces, None)) is not None:
            yield _result(task(chain([first], pieces)))

    return run


def _result(result: bytes) -> Any:
    import pyarrow
    from pyspark import TaskContext

    context = TaskContext.get()
    name = f"partition {context.partitionId() if context else 0}"
    return pyarrow.RecordBatch.from_pydict({"part": [name], "result": [result]})


def _data(task: PartPass, names: list[str], batches: Iterator[Any]) -> Iterator[Any]:
    """Record batches as blocks, or as tables with the columns' own names."""
    if task.by:
        import pyarrow

        return (pyarrow.RecordBatch.from_arrays(b.columns, names=names) for b in batches)
    return (block for b in batches for block in Layout(b.schema).blocks(b, task.d))


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
