"""Dask: a task a chunk, a partition or a file, and a tree that adds up what they return."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ..column_names import coordinate_names, frame_names
from ..column_units import frame_units
from ..ellipsoid import Ellipsoid
from ..exact_sum import ExactSum
from ..rows.batches import as_batches
from ..rows.files import Rows, open_rows
from ..rows.labels import labels_of
from ..rows.partitioned import PartPass, ShuffledPass
from .engine_rows import EngineRows, engine, label_names, withheld

__all__ = ["DaskRows", "exact_sum"]

#: Results that one task of the tree adds up.
_FAN_IN = 16
#: Buckets of users on a cluster, where there are as many parts: the graph has parts times buckets
#: pieces.
_BUCKETS = 64


class DaskRows(EngineRows):
    """Rows in Dask as data for the mechanisms; they stay where the scheduler computes them.

    **Guarantees.** The same bytes as the same rows in one array, however they are chunked
    (claim engines-1); a task that runs again, as after a killed worker, changes no byte (claim
    engines-2). An error of a job quotes nothing of a record; Dask's own logs may.

    Parameters
    ----------
    data : one of the following; each pass computes it again, unless it is persisted
        ``dask.array`` of shape (n, d), whose chunks may have unknown lengths; ``dask.dataframe`` of
        numeric columns; paths, or ``ellipsum.open_rows``: a task a file, which the workers must
        see; a sequence of ``dask.delayed`` blocks, each what :meth:`ellipsum.ExactSum.add` takes.
    columns : sequence of str, optional
        Of a frame or of files: the columns that make a row; all of them if left out, but for
        ``by``.
    by : str or sequence of str, optional
        Of a frame, files or blocks that are tables: columns beside them that say whose row it is,
        or which group it is in. For users a pass has a shuffle: rows, and digests in place of the
        users, go from worker to worker.
    d : int, optional
        Coordinates of a row, where the data do not say; else each mechanism's own.

    Raises
    ------
    TypeError, ValueError
        For data of another kind or shape.
    ImportError
        Without Dask.
    """

    def __init__(
        self,
        data: Any,
        columns: Sequence[str] | None = None,
        *,
        by: str | Sequence[str] = (),
        d: int | None = None,
    ) -> None:
        self._dask = engine("dask", "dask")
        self.by = label_names(by)
        if isinstance(data, (str, os.PathLike)) or _are_paths(data):
            data, columns = open_rows(data, columns, by=self.by), None
        elif isinstance(data, Rows):
            self.by = self.by or tuple(data.by)
        if columns is not None:
            if not hasattr(data, "columns") or isinstance(data, Rows):
                raise ValueError("columns are chosen of a frame or of paths: leave them out")
            data = data[[*columns, *self.by]]
        self.files = data if isinstance(data, Rows) else None
        self._types = _types_of(data)
        self._rows = _rows_of(data)
        self._parts, known = self._delayed(data)
        self.d = d if known is None else known
        names = _names_of(data)
        self.columns = None if names is None else [n for n in names if n not in self.by]
        own = frame_units(getattr(data, "_meta", None))
        self.units = data.units if isinstance(data, Rows) else own

    def __repr__(self) -> str:
        return f"DaskRows({len(self._parts)} parts, d={self.d})"

    def _delayed(self, data: Any) -> tuple[list[Any], int | None]:
        """The parts as delayed blocks, and the coordinates of a row."""
        if isinstance(data, Rows):
            if tuple(data.by) != self.by:
                raise ValueError("the files were opened with another by: leave it out here")
            return [self._dask.delayed(one) for one in data.each_file()], data.d
        module = type(data).__module__.split(".")[:2]
        if module == ["dask", "array"]:
            if self.by:
                raise TypeError("an array has no columns by name: give a frame for by=")
            return self._chunks(data)
        if module[0] in ("dask", "dask_expr") and hasattr(data, "npartitions"):
            return list(data.to_delayed()), self._width(data)
        if (
            isinstance(data, (list, tuple))
            and data
            and all(map(self._dask.is_dask_collection, data))
        ):
            return list(data), None
        raise TypeError(
            "data must be a Dask array or frame, paths, open_rows(...) or a list of delayed "
            f"blocks, got {type(data).__name__}"
        )

    def _width(self, frame: Any) -> int:
        """Coordinates of a frame whose columns are of types that can be read."""
        meta = frame._meta
        names = list(getattr(frame, "columns", [None]))
        for name in self.by:
            if names.count(name) != 1:
                raise ValueError(f"data has no column {name!r}: name one that it has")
            labels_of(f"column {name!r}", meta[name])
        rest = meta.drop(columns=list(self.by)) if self.by else meta
        width = len(names) - len(self.by)
        for _ in as_batches(rest, width) if width else ():
            pass
        return width

    @staticmethod
    def _chunks(data: Any) -> tuple[list[Any], int]:
        if data.ndim != 2:
            raise ValueError(
                f"data must have two dimensions, rows and coordinates, got {data.ndim}"
            )
        if data.dtype.kind not in "fiub":
            raise TypeError(f"data must be numeric, its dtype is {data.dtype}")
        if len(data.chunks[1]) > 1:
            data = data.rechunk({1: -1})
        return [block for (block,) in data.to_delayed().tolist()], int(data.shape[1])

    def count_rows(self, d: int | None = None) -> int:
        """Number of rows: that of the chunks, or by a pass where they do not tell."""
        return super().count_rows(d) if self._rows is None else self._rows

    def known(self) -> list[str]:
        """Types of the columns."""
        return self._types

    def gather(self, task: PartPass) -> Iterator[tuple[str, bytes]]:
        """One Dask graph: the tasks, and a tree of merges."""
        send, run = self._dask.delayed(task, pure=False), self._dask.delayed(_one, pure=False)
        return self._merged(send, [run(send, part) for part in self._parts])

    def exchange(self, task: ShuffledPass) -> Iterator[tuple[str, bytes]]:
        """One Dask graph: a task a part, one a bucket, which takes of each part what is its own,
        and a tree of merges."""
        buckets = max(1, min(len(self._parts), self._most_buckets()))
        send = self._dask.delayed(task, pure=False)
        split = self._dask.delayed(_split, pure=False, nout=buckets)
        run = self._dask.delayed(_of_pieces, pure=False)
        pieces = [split(send, part, buckets) for part in self._parts]
        return self._merged(send, [run(send, [p[k] for p in pieces]) for k in range(buckets)])

    def _most_buckets(self) -> int:
        """Without a cluster one for each core: between processes of this machine all pieces of a
        part travel to each bucket."""
        of_client = hasattr(self._dask.base.get_scheduler(), "__self__")
        return _BUCKETS if of_client else os.cpu_count() or 1

    def _merged(self, send: Any, level: list[Any]) -> Iterator[tuple[str, bytes]]:
        merge = self._dask.delayed(_several, pure=False)
        while len(level) > _FAN_IN:
            groups = (level[k : k + _FAN_IN] for k in range(0, len(level), _FAN_IN))
            level = [merge(send, group) for group in groups]
        found = withheld("Dask", lambda: self._dask.compute(*level))
        for number, result in enumerate(found):
            yield f"branch {number}", result


def exact_sum(
    data: Any,
    region: Ellipsoid,
    columns: Sequence[str] | None = None,
    *,
    missing: str = "center",
) -> ExactSum:
    """Return the exact sum of rows in Dask over a region: one graph, computed here.

    **Guarantees.** As :class:`DaskRows`. The sum is **private**: hand it to a mechanism.

    Parameters
    ----------
    data : Dask array or frame, paths, ``open_rows(...)``, or a list of delayed blocks
    region : Ellipsoid
        Of a mechanism: ``mechanism.region_for(n)``.
    columns : sequence of str, optional
        Of a frame or of files.
    missing : ``"center"`` or ``"ignore"``, as of :class:`ellipsum.ExactSum`

    Returns
    -------
    ExactSum

    Raises
    ------
    TypeError, ValueError
        As :class:`DaskRows`, and for rows of another width than the region's.
    EngineError
        If Dask does not finish; its text is withheld.
    """
    return DaskRows(data, columns).exact_sum(region, missing=missing)


def _names_of(data: Any) -> tuple[str, ...] | None:
    """Names of the coordinates, where a frame or files have some."""
    names = data.columns if isinstance(data, Rows) else frame_names(getattr(data, "_meta", None))
    return coordinate_names(names, data.d if isinstance(data, Rows) else len(names or ()))


def _types_of(data: Any) -> list[str]:
    """Types of an array or of the columns of a frame."""
    meta = getattr(data, "_meta", None)
    if meta is not None and hasattr(meta, "dtypes"):
        return [f"{name}: {kind}" for name, kind in meta.dtypes.items()]
    return [str(data.dtype)] if hasattr(data, "dtype") else []


def _rows_of(data: Any) -> int | None:
    """Rows of an array whose chunks have known lengths."""
    size = data.shape[0] if hasattr(data, "chunks") and data.shape else None
    return int(size) if isinstance(size, (int, np.integer)) else None


def _are_paths(data: Any) -> bool:
    if not isinstance(data, (list, tuple)) or not data:
        return False
    return all(isinstance(item, (str, os.PathLike)) for item in data)


def _one(task: PartPass, part: Any) -> bytes:
    """A task: the pass over one part."""
    return task(part)


def _split(task: ShuffledPass, part: Any, buckets: int) -> list[list[bytes]]:
    """A task: the pieces of one part, by their buckets."""
    found: list[list[bytes]] = [[] for _ in range(buckets)]
    for bucket, piece in task.split(part, buckets):
        found[bucket].append(piece)
    return found


def _of_pieces(task: ShuffledPass, pieces: Sequence[Sequence[bytes]]) -> bytes:
    """A task: the pass over one bucket."""
    return task(chain.from_iterable(pieces))


def _several(task: PartPass, parts: Iterable[bytes]) -> bytes:
    """A task: several results as one."""
    return task.merge(parts)
