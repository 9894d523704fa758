"""Beam: an exact sum as a combiner; each bundle adds up its rows, and hands on a few integers."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..adaptive.part_pass import PartTask
from ..ellipsoid import Ellipsoid
from ..exact_sum import ExactSum
from ..rows.partitioned import PartPass, ShuffledPass
from .engine_rows import EngineRows, label_names, missing, withheld

try:
    import apache_beam as beam
    from apache_beam.io.filesystems import FileSystems
except ImportError:
    raise missing("apache_beam", "beam") from None

__all__ = ["BeamRows", "SumRows", "SumRowsFn"]

#: Numbers of single rows that are kept until they are added together (4 MiB).
_NUMBERS_KEPT = 1 << 19
#: Buckets of users: a runner may give each to another worker, and holds one at a time in memory.
_BUCKETS = 256


class SumRows(beam.PTransform):
    """``rows | SumRows(region)``: a PCollection of one :class:`ellipsum.ExactSum`.

    **Guarantees.** The same bytes as the same rows in one array, however they are bundled
    (claim engines-1). The runner commits one attempt of each bundle, so that a retry changes no
    byte; an element that comes twice, as from a source of another kind than exactly once, counts
    twice. The sum is **private**, and so are the runner's shuffle and temporary files.

    An element of the PCollection is a batch by its type (an array of two dimensions, a pyarrow
    RecordBatch or Table, a frame), as ``ReadFromParquetBatched`` yields, and anything else one
    row, as an item of a list is for :meth:`ellipsum.ExactSum.add`: batches are much faster.

    Parameters
    ----------
    region : Ellipsoid
        Of a mechanism: ``mechanism.region_for(n)``.
    missing : ``"center"`` or ``"ignore"``, as of :class:`ellipsum.ExactSum`
    """

    def __init__(self, region: Ellipsoid, *, missing: str = "center") -> None:
        super().__init__()
        self._fn = SumRowsFn(region, missing=missing)

    def expand(self, rows: Any) -> Any:
        """One sum over all rows."""
        return rows | beam.CombineGlobally(self._fn)


class _PassFn(beam.CombineFn):
    """One pass over a PCollection. Accumulators travel as bytes, without the region."""

    def __init__(self, task: Any) -> None:
        self._task = task

    def create_accumulator(self) -> _Bundle:
        return _Bundle(self._task)

    def add_input(self, bundle: _Bundle, element: Any) -> _Bundle:
        bundle = bundle if isinstance(bundle, _Bundle) else _Bundle(self._task, bundle)
        bundle.add(element)
        return bundle

    def merge_accumulators(self, bundles: Iterable[Any]) -> bytes:
        return self._task.merge(map(bytes, bundles))

    def compact(self, bundle: Any) -> bytes:
        return bytes(bundle)

    def extract_output(self, bundle: Any) -> Any:
        return bytes(bundle)


class SumRowsFn(_PassFn):
    """:class:`SumRows` as a ``CombineFn``, for ``CombineGlobally`` and ``CombinePerKey``.

    Parameters
    ----------
    region : Ellipsoid
    missing : ``"center"`` or ``"ignore"``, as of :class:`ellipsum.ExactSum`
    """

    def __init__(self, region: Ellipsoid, *, missing: str = "center") -> None:
        if not isinstance(region, Ellipsoid):
            raise TypeError(f"region must be an Ellipsoid, got {type(region).__name__}")
        super().__init__(PartTask(region.d, "exact_sum", (region, None, missing)))

    def extract_output(self, bundle: Any) -> ExactSum:
        return self._task.summed([bytes(bundle)])


class _Bundle:
    """The rows of one bundle so far: what is added up, and single rows that wait. **Private.**"""

    def __init__(self, task: PartPass, done: bytes | None = None) -> None:
        self._task, self._done = task, done
        self._waiting: list[Any] = []

    def add(self, element: Any) -> None:
        if isinstance(element, dict):
            raise TypeError(
                "elements must be batches or rows of numbers, got dict: read Parquet by "
                "ReadFromParquetBatched, or make each a tuple of its columns first"
            )
        self._waiting.append(element)
        if _is_batch(element) or len(self._waiting) * self._task.d >= _NUMBERS_KEPT:
            self._add_up()

    def _add_up(self) -> None:
        waiting, self._waiting = self._waiting, []
        new = self._task(waiting)
        self._done = new if self._done is None else self._task.merge([self._done, new])

    def __bytes__(self) -> bytes:
        if self._waiting or self._done is None:
            self._add_up()
        assert self._done is not None
        return self._done

    def __reduce__(self) -> tuple[Any, tuple[PartPass, bytes]]:
        return _Bundle, (self._task, bytes(self))


def _is_batch(element: Any) -> bool:
    """Whether not to wait for more; as_batches alone decides what is a batch of rows."""
    return not isinstance(element, (list, tuple)) and not (
        isinstance(element, np.ndarray) and element.ndim == 1
    )


class BeamRows(EngineRows):
    """What a pipeline reads, as data for the mechanisms: each pass is a pipeline of its own.

    **Guarantees.** As :class:`SumRows`. A pipeline returns nothing to who started it, so that the
    result of each pass goes through one file in ``folder``, removed once read. It is **private**.
    An error of a job quotes nothing of a record; the runner's logs may.

    Parameters
    ----------
    read : callable of a Pipeline, which returns a PCollection
        For instance ``lambda p: p | beam.io.ReadFromParquetBatched("folder/*.parquet", ...)``.
        It must read the same rows every time.
    folder : str
        Where the runner's workers can write and this process can read; for holders of the data
        alone.
    d : int, optional
        Coordinates of a row; else each mechanism's own.
    by : str or sequence of str, optional
        Columns that say whose row it is, or which group it is in; each element is then a table
        (frames, Arrow data), whose other columns are the coordinates. For users a pass has a
        shuffle: rows, and digests in place of the users, are then in the runner's.
    options : PipelineOptions, optional
    """

    def __init__(
        self,
        read: Callable[[Any], Any],
        folder: str,
        *,
        d: int | None = None,
        by: str | Sequence[str] = (),
        options: Any = None,
    ) -> None:
        if not callable(read):
            raise TypeError(
                f"read must be a function of a pipeline that returns a PCollection, got "
                f"{type(read).__name__}"
            )
        self._read, self._folder, self._options, self.d = read, folder, options, d
        self.by = label_names(by)

    def __repr__(self) -> str:
        return f"BeamRows({self._folder!r}, d={self.d})"

    def gather(self, task: PartPass) -> Iterator[tuple[str, bytes]]:
        """One pipeline, and the one line that it writes."""
        step = beam.CombineGlobally(_PassFn(task))
        yield "pipeline", withheld("Beam", lambda: self._run(step))

    def exchange(self, task: ShuffledPass) -> Iterator[tuple[str, bytes]]:
        """One pipeline with a ``GroupByKey``, by the buckets of the users."""
        step = _ByBucket(task)
        yield "pipeline", withheld("Beam", lambda: self._run(step))

    def _run(self, step: Any) -> bytes:
        job = FileSystems.join(self._folder, f"ellipsum-{uuid.uuid4().hex}")
        FileSystems.mkdirs(job)
        try:
            prefix = FileSystems.join(job, "result")
            with beam.Pipeline(options=self._options) as pipeline:
                (
                    self._read(pipeline)
                    | "Pass" >> step
                    | "Text" >> beam.Map(_text)
                    | "One line" >> beam.io.WriteToText(prefix, num_shards=1)
                )
            (written,) = FileSystems.match([f"{prefix}*"])[0].metadata_list
            with FileSystems.open(written.path) as file:
                return base64.b64decode(file.read())
        finally:
            FileSystems.delete([job])  # with what a run that failed left in it


class _ByBucket(beam.PTransform):
    """Tables to one result: pieces, all of a bucket together, and their results added up."""

    def __init__(self, task: ShuffledPass) -> None:
        super().__init__()
        self._task = task

    def expand(self, tables: Any) -> Any:
        task = self._task
        return (
            tables
            | "Split" >> beam.FlatMap(_split, task).with_output_types(tuple[int, bytes])
            | "Bucket" >> beam.GroupByKey()
            | "Users" >> beam.Map(_of_bucket, task).with_output_types(bytes)
            | "Merge" >> beam.CombineGlobally(_MergeFn(task))
        )


class _MergeFn(beam.CombineFn):
    """Results of a task as one; None is the result of nothing."""

    def __init__(self, task: Any) -> None:
        self._task = task

    def create_accumulator(self) -> bytes | None:
        return None

    def add_input(self, done: bytes | None, result: bytes) -> bytes:
        return result if done is None else self._task.merge([done, result])

    def merge_accumulators(self, several: Iterable[bytes | None]) -> bytes | None:
        found = [done for done in several if done is not None]
        return self._task.merge(found) if found else None

    def extract_output(self, done: bytes | None) -> bytes:
        return self._task(iter(())) if done is None else done


def _split(table: Any, task: ShuffledPass) -> Iterator[tuple[int, bytes]]:
    return task.split([table], _BUCKETS)


def _of_bucket(pieces: tuple[int, Iterable[bytes]], task: ShuffledPass) -> bytes:
    return task(iter(pieces[1]))


def _text(result: bytes) -> str:
    return base64.b64encode(result).decode()
