"""A pass that is sent to rows in parts, what each part gives back, and all parts together.

The task of one part reads its blocks by the same :class:`Passes` as an array's, so that what a row
becomes is written once. Everything that comes back is a list of integers, which add up to the same
in any order and grouping (claims sum-2, engines-1).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..column_names import Columns
from ..ellipsoid import Ellipsoid
from ..exact_sum import ExactSum
from ..rows.batches import OF_USERS, as_batches
from ..rows.files import Rows
from ..rows.labelled import label_batches
from ..rows.partitioned import InOnePiece, NamesSeen, Partitioned, check_coordinates, once_each
from ..sealed_bytes import fields_of, sealed
from .domain import Frame
from .passes import Passes

__all__ = ["LabelCount", "PartTask", "PartitionedPasses", "Tally", "passes_over"]

Array = NDArray[np.float64]

_MAGIC = b"ELLITALY"
_HEADER = struct.Struct("<8sQQ")  # magic, rows, numbers
_NUMBER_BYTES = 16
_DAMAGED = "a part of a pass came back truncated or altered: run the job again"


class Tally(NamedTuple):
    """What a pass counted or added up over some rows. **Private.**"""

    rows: int
    values: list[int]  #: each of 128 bits

    def to_bytes(self) -> bytes:
        """As bytes, whose length depends on how many numbers there are alone."""
        numbers = (v.to_bytes(_NUMBER_BYTES, "little", signed=True) for v in self.values)
        return sealed(_HEADER.pack(_MAGIC, self.rows, len(self.values)) + b"".join(numbers))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Tally:
        """What :meth:`to_bytes` wrote.

        Raises
        ------
        ValueError
            For other bytes.
        """
        rows, size = fields_of(raw, _HEADER, _MAGIC, _DAMAGED)
        at = range(_HEADER.size, _HEADER.size + size * _NUMBER_BYTES, _NUMBER_BYTES)
        return cls(
            rows, [int.from_bytes(raw[k : k + _NUMBER_BYTES], "little", signed=True) for k in at]
        )


@dataclass(frozen=True)
class PartTask(InOnePiece):
    """One pass of :class:`Passes` over one part: rows in, bytes out.

    Parameters
    ----------
    d : int
    method : str
        Of :class:`Passes`: it returns an ExactSum, an array of integers or a count.
    arguments : tuple, of the method; the first one of a sum is its region
    options : dict, of :class:`Passes` itself
    names : tuple of str or None, of the coordinates: columns in another order are put into this one
    """

    d: int
    method: str
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """No labels."""
        return ()

    @property
    def region(self) -> Ellipsoid | None:
        """The region of a sum; None for a pass that counts."""
        first = self.arguments[0] if self.arguments else None
        return first if isinstance(first, Ellipsoid) else None

    @property
    def missing(self) -> str:
        """What holes count for in a sum."""
        more = self.arguments[2:] if self.method == "exact_sum" else ()
        return more[0] if more else "center"

    def __call__(self, data: Any) -> bytes:
        """What the rows of one part give: of its blocks, records or tables. **Private.**"""
        columns = Columns(self.names, units=None)
        blocks = as_batches(data, self.d, columns, told=True)
        rows = Passes(blocks, self.d, once=True, **self.options)
        found = getattr(rows, self.method)(*self.arguments)
        if isinstance(found, ExactSum):
            given = bytes(found.partial())  # a plain copy: a mark would tell two attempts apart
        else:
            values = [int(value) for value in np.ravel(found)]
            given = Tally(rows.count or 0, values).to_bytes()
        return NamesSeen(columns.names).mark + given

    def merge(self, parts: Iterable[bytes]) -> bytes:
        """What several parts give together."""
        seen = NamesSeen()
        if self.region is not None:
            merged = bytes(self.summed(parts, seen).partial())
        else:
            merged = self.tallied(parts, seen).to_bytes()
        return seen.mark + merged

    def summed(self, parts: Iterable[bytes], seen: NamesSeen | None = None) -> ExactSum:
        """The exact sum of the parts of a sum."""
        assert self.region is not None
        total, seen = ExactSum(self.region, missing=self.missing), seen or NamesSeen()
        for part in parts:
            total.merge_partial(seen.behind(part))
        return total

    def tallied(self, parts: Iterable[bytes], seen: NamesSeen | None = None) -> Tally:
        """The numbers of all parts, added up."""
        seen, none = seen or NamesSeen(), NamesSeen().behind(self(iter(())))
        rows, values = 0, [0] * len(Tally.from_bytes(none).values)
        for part in parts:
            tally = Tally.from_bytes(seen.behind(part))
            if len(tally.values) != len(values):
                raise ValueError("a part came back from another pass: run the job again")
            rows += tally.rows
            values = [a + b for a, b in zip(values, tally.values, strict=True)]
        return Tally(rows, values)


@dataclass(frozen=True)
class LabelCount(InOnePiece):
    """The number of rows of data that have labels, by their columns alone."""

    by: tuple[str, ...]
    d: int = 0
    names: tuple[str, ...] | None = None

    def __call__(self, data: Any) -> bytes:
        """Rows of a part. **Private.**"""
        tables = data.labels_alone() if isinstance(data, Rows) else data
        return self._of(sum(len(rows) for rows, _ in label_batches(tables, self.by)))

    def merge(self, parts: Iterable[bytes]) -> bytes:
        """Rows of several parts."""
        return self._of(self.total(parts))

    def total(self, parts: Iterable[bytes]) -> int:
        """As :meth:`merge`, as a number."""
        return sum(Tally.from_bytes(part).rows for part in parts)

    def _of(self, rows: int) -> bytes:
        return Tally(rows, []).to_bytes()


class PartitionedPasses(Passes):
    """The passes over rows in parts: each one a job of the engine that holds them.

    Parameters
    ----------
    data : Partitioned
    d : int
    options : of :class:`Passes`
    """

    def __init__(self, data: Partitioned, d: int, **options: Any) -> None:
        if data.by:
            raise ValueError(OF_USERS.format(data.by[0]))
        super().__init__(data, d, **{**options, "once": True})
        options.pop("once", None)
        options.pop("columns", None)
        check_coordinates(data, d, self.columns)
        self._parts_of, self._options = data, options
        self._cells: NDArray[np.int64] | None = None

    def check(self) -> None:
        """One pass that counts the rows, and from a box their cells, which the plan asks for next:
        an engine can read its rows again."""
        if self.box is not None:
            self.cells()
        else:
            self._tally("count_rows")

    def exact_sum(
        self, region: Ellipsoid, threads: int | None = None, missing: str = "center"
    ) -> ExactSum:
        """As :meth:`Passes.exact_sum`; each task has one thread, whatever ``threads`` says."""
        return self._sum("exact_sum", region, None, missing)

    def sum_of(
        self, region: Ellipsoid, transform: Callable[[Array], Array], width: int
    ) -> ExactSum:
        """As :meth:`Passes.sum_of`; ``transform`` is sent to the parts."""
        return self._sum("sum_of", region, transform, width)

    def halves(
        self, frame: Frame, radius: float, threads: int | None = None
    ) -> NDArray[np.object_]:
        """As :meth:`Passes.halves`."""
        return np.array(self._tally("halves", frame, radius), dtype=object)

    def histogram(
        self, frame: Frame, edges: Array, threads: int | None = None
    ) -> NDArray[np.int64]:
        """As :meth:`Passes.histogram`."""
        return np.array(self._tally("histogram", frame, edges), dtype=np.int64)

    def cells(self, threads: int | None = None) -> NDArray[np.int64]:
        """As :meth:`Passes.cells`; no pass where :meth:`check` has made it."""
        if self._cells is None:
            self._cells = np.array(self._tally("cells"), dtype=np.int64)
        return self._cells

    def _sum(self, method: str, *arguments: Any) -> ExactSum:
        task = PartTask(self.d, method, arguments, self._options, self.columns.names)
        total = task.summed(once_each(self._parts_of.gather(task)))
        self._check(total.count)
        return total

    def _tally(self, method: str, *arguments: Any) -> list[int]:
        task = PartTask(self.d, method, arguments, self._options, self.columns.names)
        tally = task.tallied(once_each(self._parts_of.gather(task)))
        self._check(tally.rows)
        return tally.values


def passes_over(data: Any, d: int, **options: Any) -> Passes:
    """The passes over ``data``: where the rows are, be it here or in an engine.

    Parameters
    ----------
    data : what :class:`Passes` takes, or Partitioned
    d : int
    options : of :class:`Passes`
    """
    if isinstance(data, Partitioned):
        return PartitionedPasses(data, d, **options)
    return Passes(data, d, **options)
