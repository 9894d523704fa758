"""Rows that stay where they are: the parts of an engine's data, to which a pass is sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

__all__ = ["PartPass", "Partitioned", "refuse_far_labels", "refuse_far_rows"]

#: Who holds rows elsewhere, by the first name of its module, and what takes them to a pass.
_ENGINES = {
    "pyspark": "ellipsum.engines.spark.SparkRows(data)",
    "dask": "ellipsum.engines.dask.DaskRows(data)",
    "apache_beam": "ellipsum.engines.beam: data | SumRows(region)",
}


class PartPass(Protocol):
    """One pass over one part of the rows, as a value that is sent to them."""

    @property
    def d(self) -> int:
        """Coordinates of a row."""

    def __call__(self, blocks: Iterator[NDArray[Any]]) -> bytes:
        """What the blocks of one part give. **Private.**"""

    def merge(self, parts: Iterable[bytes]) -> bytes:
        """What several parts give together: the same in any order and grouping."""


class Partitioned(ABC):
    """Rows in parts that are read where they are, as often as wanted.

    Attributes
    ----------
    d : int or None
        Coordinates of a row; None where only the records know.
    columns : sequence of str or None
        Names of the coordinates, where they have some.
    """

    d: int | None = None
    columns: Sequence[str] | None = None

    @abstractmethod
    def gather(self, task: PartPass) -> Iterator[tuple[str, bytes]]:
        """Send ``task`` to every part; yield what each returns, under the part's name.

        What comes back is what one attempt of each part returned: nothing is written on the way,
        so that attempts that fail, run twice, or come late count for nothing.
        """


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
    if isinstance(data, Partitioned) or _engine_of(data) is not None:
        raise TypeError(
            "the rows of data are in an engine, where no pass has users or groups: write them as "
            "Parquet and give open_rows(files, by=[...]); sums and means of groups can be made "
            "there part by part, by exact_sum (docs/guides/users_and_groups.md)"
        )


def _engine_of(data: Any) -> str | None:
    """What takes data that an engine holds to a pass; None for any other."""
    kind = type(data)
    held = {"DataFrame", "Series", "Array", "PCollection"}
    ours = bool(held & {base.__name__ for base in kind.__mro__})
    return _ENGINES.get(kind.__module__.split(".", 1)[0]) if ours else None
