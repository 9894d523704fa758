"""Rows that stay where they are: the parts of an engine's data, to which a pass is sent."""

from __future__ import annotations

import hashlib
import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Protocol

from ..column_names import Columns, coordinate_names
from ..column_units import NO_UNITS, Units
from .files import Rows

__all__ = [
    "InOnePiece",
    "NamesSeen",
    "PartPass",
    "Partitioned",
    "ShuffledPass",
    "check_coordinates",
    "check_labels",
    "is_far",
    "once_each",
    "refuse_far_labels",
    "refuse_far_rows",
]

_MARK_BYTES = 16

#: Who holds rows elsewhere, by the first name of its module, and what takes them to a pass.
_ENGINES = {
    "pyspark": "ellipsum.engines.spark.SparkRows(data)",
    "dask": "ellipsum.engines.dask.DaskRows(data)",
    "apache_beam": "ellipsum.engines.beam: data | SumRows(region)",
}


class InOnePiece:
    """A dataclass that is pickled as one string of bytes.

    Arrays that travel in frames of their own, as Dask sends them, come out wherever a frame begins,
    and the kernels want doubles where doubles may lie.
    """

    def __reduce__(self) -> tuple[Any, tuple[Any, bytes]]:
        state = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]
        return _sent, (type(self), pickle.dumps(state, protocol=4))


def _sent(kind: Any, state: bytes) -> Any:
    return kind(*pickle.loads(state))


class PartPass(Protocol):
    """One pass over one part of the rows, as a value that is sent to them."""

    @property
    def d(self) -> int:
        """Coordinates of a row; 0 where labels alone are read."""

    @property
    def by(self) -> tuple[str, ...]:
        """Columns of labels that are read beside the coordinates."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the coordinates, as far as they are known."""

    def __call__(self, data: Any) -> bytes:
        """What one part gives: of its blocks, records or tables; with ``by`` of its tables, whose
        columns have names. **Private.**"""

    def merge(self, parts: Iterable[bytes]) -> bytes:
        """What several parts give together: the same in any order and grouping."""


class ShuffledPass(PartPass, Protocol):
    """A pass for which rows of one user come together first.

    It is called with the pieces of one or more whole buckets, in any order.
    """

    def split(self, data: Any, buckets: int) -> Iterator[tuple[int, bytes]]:
        """The rows of one part as pieces, each with its bucket below ``buckets``. **Private.**"""


class Partitioned(ABC):
    """Rows in parts that are read where they are, as often as wanted.

    Attributes
    ----------
    d : int or None
        Coordinates of a row; None where only the records know.
    columns : sequence of str or None
        Names of the coordinates, where they have some.
    by : tuple of str
        Columns of labels beside them: users, keys.
    units : mapping of names to texts, where the engine's schema tells some
    files : Rows, where the parts are files that this process sees, too
    """

    d: int | None = None
    columns: Sequence[str] | None = None
    units: Units = NO_UNITS
    by: tuple[str, ...] = ()
    files: Rows | None = None

    def count_rows(self, d: int | None = None) -> int:
        """Number of rows, with and without labels; ``d`` where the data do not say it."""
        raise TypeError(f"{type(self).__name__} does not count its rows: resume needs that")

    def known(self) -> list[str]:
        """What tells the rows from others before they are read: types, names of files."""
        return []

    @abstractmethod
    def gather(self, task: PartPass) -> Iterator[tuple[str, bytes]]:
        """Send ``task`` to every part; yield what each returns, under the part's name.

        What comes back is what one attempt of each part returned: nothing is written on the way,
        so that attempts that fail, run twice, or come late count for nothing.
        """

    def exchange(self, task: ShuffledPass) -> Iterator[tuple[str, bytes]]:
        """Split every part, bring the pieces of each bucket together, and send ``task`` to them.

        Names are those of what came together; what holds for :meth:`gather` holds here.

        Raises
        ------
        TypeError
            Where that is not implemented.
        """
        raise TypeError(
            f"{type(self).__name__} does not bring the rows of a user together: write them as "
            "Parquet and give open_rows(files, by=[...])"
        )


class NamesSeen:
    """The mark of the coordinates' names that parts have, which is one; and 0 without names.

    A sum does not tell which column was which: parts with other names, or the same in another
    order, must not add up (claim rows-5).
    """

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self.mark = bytes(_MARK_BYTES)
        if names is not None:
            told = ascii(tuple(map(str, names))).encode()
            self.mark = hashlib.blake2b(told, digest_size=_MARK_BYTES).digest()

    def behind(self, part: bytes) -> bytes:
        """What stands behind the mark of a part, as of :meth:`take`."""
        self.take(part[:_MARK_BYTES])
        return part[_MARK_BYTES:]

    def take(self, mark: bytes) -> None:
        """Add the mark of a part.

        Raises
        ------
        ValueError
            It is another one than before.
        """
        if any(self.mark) and any(mark) and mark != self.mark:
            raise ValueError(
                "parts of data have other columns, or the same in another order: name the "
                "coordinates where the bounds or the region are made, or give arrays"
            )
        self.mark = mark if any(mark) else self.mark


def once_each(parts: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """What each part gives, once, however often it is delivered (claim engines-2).

    Raises
    ------
    ValueError
        For a part that comes twice with other bytes.
    """
    digests: dict[str, bytes] = {}
    for name, part in parts:
        digest = hashlib.blake2b(part, digest_size=32).digest()
        if name not in digests:
            digests[name] = digest
            yield part
        elif digests[name] != digest:
            raise ValueError(
                f"part {name!r} came twice with other bytes: its rows are not the same "
                "whenever they are read; write them to files first"
            )


def check_coordinates(data: Partitioned, d: int, columns: Columns) -> None:
    """Refuse rows of another width than asked for, or of columns in another order.

    Raises
    ------
    ValueError
        For these.
    """
    if data.d not in (None, d):
        raise ValueError(
            f"data must have {d} coordinates in a row, got {data.d}: "
            "select the columns that the shape was made for"
        )
    names = coordinate_names(data.columns, d)
    if columns.order_of(names, units=data.units) is not None:
        raise ValueError("data has the columns in another order: choose them in the bounds' own")


def check_labels(data: Partitioned, by: Sequence[Any]) -> None:
    """Refuse labels that the rows do not have, and labels of theirs that are not used.

    Raises
    ------
    TypeError, ValueError
        For a label that is no name; for one that is missing or left over.
    """
    name = type(data).__name__
    for label in by:
        if not isinstance(label, str):  # it is somebody's, and is not quoted
            raise TypeError(f"rows in an engine have their labels by name: {name}(..., by=[...])")
        if label not in data.by:
            raise ValueError(f"data has no column {label!r} of labels: {name}(..., by=[...])")
    if unused := [label for label in data.by if label not in by]:
        raise ValueError(
            f"data was made with by={unused[0]!r}, which is not used: name it here as the user or "
            "the key, or leave it out there"
        )


def refuse_far_rows(data: Any) -> None:
    """Refuse data whose rows are elsewhere, and would all come to this process to be read.

    Raises
    ------
    TypeError
        For a Spark DataFrame, a Dask array or frame, a Beam PCollection.
    """
    if (engine := _engine_of(data)) is not None:
        raise TypeError(
            "the rows of data are in an engine, and would all come to this process: "
            f"give {engine}, which sends the work to them"
        )


def refuse_far_labels(data: Any) -> None:
    """Refuse data whose rows are elsewhere where they have labels: users, keys, numbers to bin.

    Raises
    ------
    TypeError
        As :func:`refuse_far_rows`, and for ``Partitioned``.
    """
    if is_far(data):
        raise TypeError(
            "the rows of data are in an engine, and would all come to this process: give "
            "SparkRows, DaskRows or BeamRows with by=[...], the columns of users and keys "
            "(docs/guides/users_and_groups.md)"
        )


def is_far(data: Any) -> bool:
    """Whether an engine holds the rows of data."""
    return isinstance(data, Partitioned) or _engine_of(data) is not None


def _engine_of(data: Any) -> str | None:
    """What takes data that an engine holds to a pass; None for any other."""
    kind = type(data)
    held = {"DataFrame", "Series", "Array", "PCollection"}
    ours = bool(held & {base.__name__ for base in kind.__mro__})
    return _ENGINES.get(kind.__module__.split(".", 1)[0]) if ours else None
