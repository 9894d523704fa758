"""Names of the coordinates: the columns' own, which are schema and public, never data.

A source that has names is read by them, one that has none by the places of its columns.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .column_units import NO_UNITS, Units, unit_of

__all__ = [
    "Columns",
    "captions",
    "check_limits",
    "coordinate_names",
    "frame_names",
    "in_order",
    "named_vectors",
    "printable",
]

Names = tuple[str, ...]

_QUOTED = 8  # names in a message
_LONGEST = 40  # characters of a printed name


class Columns:
    """Names that the coordinates have, in order, or None as long as no source has said any.

    The first names that are seen stay. Rows whose columns are the same in another order are put
    into this one; any other columns are refused (claim rows-5). Units go along with the names:
    what the caller says wins, sources that tell two units of a column are refused.

    Parameters
    ----------
    names : sequence of str, optional
    giver : str, what a message calls who gave them
    units : Units, what the caller says; None where units are not asked for, as of a part
    """

    def __init__(
        self,
        names: Sequence[str] | None = None,
        giver: str = "the bounds or the shape",
        units: Units | None = NO_UNITS,
    ) -> None:
        self.names: Names | None = None if names is None else tuple(names)
        self._giver = giver
        self._quoted = True  # whether a message may quote the names
        self._said = None if units is None else dict(units)  # a proxy could not be pickled
        self.learned: dict[str | int, str] = {}  # units of sources; "" where they cannot be told
        if names is not None:
            self.check_units()

    def order_of(
        self,
        names: Sequence[str] | None,
        source: str = "data",
        *,
        quoted: bool = True,
        units: Units = NO_UNITS,
    ) -> list[int] | None:
        """Which of a source's columns each coordinate is; None where they are in order.

        Parameters
        ----------
        names : sequence of str, or None for a source without names
        source : str, what a message calls it
        quoted : bool
            Whether a message may quote the source's own names: not those of a CSV file, whose
            first line may be a record.
        units : Units, of the source's columns

        Raises
        ------
        ValueError
            The source has other columns, or another unit of one. The message quotes columns' names
            alone.
        """
        if names is None:
            self._learn(units, source, quoted)
            return None
        if self.names is None:
            self.names, self._giver, self._quoted = tuple(names), "what came before", quoted
            self.check_units()
        if tuple(names) == self.names:
            self._learn(units, source, quoted)
            return None
        check_same(self.names, names, self._giver, source, (self._quoted, quoted))
        self._learn(units, source, quoted)
        places = {name: j for j, name in enumerate(names)}
        return [places[name] for name in self.names]

    def of_sum(self, other: Columns) -> None:
        """Learn the names and units of a sum that is made, whose order is what it is."""
        if self.order_of(other.names, units=other.learned) is not None:
            raise ValueError("data has its columns in another order than the mechanism's")

    def joined(self, other: Columns) -> Columns:
        """What the rows of both have; raise where their names or the names' order differ.

        Units decide nothing: of a column that has two there is none.
        """
        if other.names is not None and self.names is not None and other.names != self.names:
            check_same(self.names, other.names, "this sum", "other")
            raise ValueError("other has the same columns in another order: give both the same")
        both = (other if self.names is None else self).copy()
        both._said = {**(other._said or {}), **(self._said or {})}
        both.learned = {**self.learned, **other.learned}
        for key in self.learned.keys() & other.learned.keys():
            if self.learned[key] != other.learned[key]:
                both.learned[key] = ""
        return both

    def copy(self, said: Units | None = None) -> Columns:
        """The same, to be changed apart; with units that the caller says, if some are given."""
        own = {**(self._said or {}), **said} if said else self._said
        same = Columns(self.names, self._giver, own)
        same._quoted, same.learned = self._quoted, dict(self.learned)
        return same

    def untold(self) -> Columns:
        """A copy for what must not be learned: it has no units, and asks for none."""
        same = self.copy()
        same._said, same.learned = None, {}
        return same

    def told(self, d: int) -> tuple[Names | None, tuple[str | None, ...] | None]:
        """Names and units of d coordinates, as far as there are some."""
        if not (self._said or self.learned):
            return self.names, None
        names, one = self.names or (None,) * d, _list_of(self.names)
        units = [self._unit(name, j, one) or None for j, name in zip(range(d), names, strict=False)]
        return self.names, tuple(units) if any(units) else None

    def by_place(self, d: int) -> dict[str | int, str]:
        """The units of d coordinates by their places, for rows that lose their names."""
        return {j: unit for j, unit in enumerate(self.told(d)[1] or ()) if unit}

    def placed(self, units: Units) -> dict[str | int, str]:
        """The same units, those of these names by their places."""
        places: dict[str | int, int] = {name: j for j, name in enumerate(self.names or ())}
        return {places.get(key, key): unit for key, unit in units.items()}

    def check_units(self) -> None:
        """Raise a ValueError where the caller says units of columns that are not there."""
        known = {*(self.names or ()), _list_of(self.names)}
        unknown = [key for key in self._said or () if isinstance(key, str) and key not in known]
        if unknown and self.names is None:
            raise ValueError("units are by name, and the rows have none: give a sequence of units")
        if unknown:
            raise ValueError(f"units has the {_columns(unknown)}, which the rows do not have")

    def _unit(self, name: str | None, place: int, one: str | None) -> str | None:
        said = unit_of(self._said or {}, name, place, one)
        return unit_of(self.learned, name, place, one) if said is None else said

    def _learn(self, units: Units, source: str, quoted: bool) -> None:
        if self._said is None:
            return
        for key, unit in units.items():
            if self.learned.setdefault(key, unit) in (unit, ""):
                continue
            if key not in self._said:
                which = (
                    f"column {key!r}"
                    if quoted and self._quoted and isinstance(key, str)
                    else "a column"
                )
                raise ValueError(
                    f"{source} has {which} in another unit than what came before: convert it, or "
                    "say the unit by units="
                )


def check_same(
    wanted: Sequence[str],
    names: Sequence[str],
    giver: str,
    source: str,
    quoted: tuple[bool, bool] = (True, True),
) -> None:
    """Raise unless both have the same names, each once, in whatever order; a message quotes the
    wanted names, and the source's, where ``quoted`` says so."""
    there, known = set(names), set(wanted)
    if len(there) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        which = f"the column {twice!r}" if quoted[1] else "a column"
        raise ValueError(f"{source} has {which} twice: rename one, or leave it out")
    lacks = [name for name in wanted if name not in there]
    more = [name for name in names if name not in known]
    if (lacks or more) and not all(quoted):
        which = f": it has no column {_quoted(lacks)}" if lacks and quoted[0] else ""
        raise ValueError(
            f"{source} has other columns than {giver} named{which}; columns= reads some of a "
            "file, and header=False says that its first line is a record"
        )
    if lacks and more:
        raise ValueError(
            f"{source} has no {_columns(lacks)}, which {giver} named, and has "
            f"{_quoted(more)}, which {giver} did not: give both the same columns"
        )
    if lacks:
        raise ValueError(
            f"{source} has no {_columns(lacks)}, which {giver} named: give both the same columns"
        )
    if more:
        them = "it" if len(more) == 1 else "them"
        raise ValueError(
            f"{source} has the {_columns(more)}, which {giver} did not name: leave "
            f"{them} out of the rows, or name {them} there too"
        )


def coordinate_names(columns: Sequence[str] | None, d: int | None) -> Names | None:
    """A name for each of d coordinates: its column's, or a list column's with the place in it."""
    if columns is None or d is None:
        return None
    if len(columns) == d:
        return tuple(columns)
    return tuple(f"{columns[0]}[{j}]" for j in range(d)) if len(columns) == 1 else None


def check_limits(low: NDArray[Any], high: NDArray[Any], names: Names | None = None) -> None:
    """Raise ValueError unless ``high`` is above ``low`` in every coordinate."""
    half = 0.5 * high - 0.5 * low  # 0 also where they are too near for a box's own
    if (half > 0).all():
        return
    j = int(np.flatnonzero(~(half > 0))[0])
    where = f"at {j}" if names is None else f"for column {names[j]!r}"
    advice = "exchange them" if high[j] < low[j] else "drop a constant coordinate, or widen the box"
    raise ValueError(
        f"upper must be above lower in every coordinate; {where} upper is {high[j]:g} and lower "
        f"{low[j]:g}: {advice}"
    )


def _list_of(names: Names | None) -> str | None:
    """The list column that coordinates are the places of, if they are."""
    if not names or not names[0].endswith("[0]"):
        return None
    one = names[0][:-3]
    return one if coordinate_names([one], len(names)) == names else None


def frame_names(data: Any) -> Names | None:
    """The columns' names of a pandas frame, if all of them are texts; None for anything else.

    Numbers are places, not names. The name of a series is never taken: of one that was a row it
    is a person's label.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(data, pandas.DataFrame):
        return None
    return _texts(data.columns.tolist())  # a tenth of what a list of pandas' text takes


def in_order(blocks: Iterator[Any], order: Sequence[int] | None) -> Iterator[Any]:
    """The blocks, arrays or ColumnBlocks, with their columns in an order; as they are for None."""
    return blocks if order is None else (_reordered(block, order) for block in blocks)


def _reordered(block: Any, order: Sequence[int]) -> Any:
    return block[:, order] if isinstance(block, np.ndarray) else block.reordered(order)


def printable(name: str) -> str:
    """A name on one line of a screen: no control characters, and not too long."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 3] + "..."


def captions(names: Sequence[str], units: Sequence[str | None] | None) -> list[str]:
    """What a screen calls coordinates: ``name [unit]``, each part as of :func:`printable`."""
    plain = [printable(name) for name in names]
    if units is None:
        return plain
    pairs = zip(plain, units, strict=True)
    return [f"{name} [{printable(unit)}]" if unit else name for name, unit in pairs]


class Named(NamedTuple):
    """Vectors by position, and the names of their entries, if any had names."""

    names: Names | None
    arrays: dict[str, Any]


def named_vectors(**given: Any) -> Named:
    """Parameters with an entry for each coordinate: mappings and Series by name, as arrays.

    The first one with names gives the order. A matrix has names where it is a frame whose rows
    and columns have the same.

    Parameters
    ----------
    **given : mapping of names to numbers, pandas or array_like, or None, by the parameter's name

    Raises
    ------
    ValueError
        Two of them have other names.
    """
    first, names = "", None
    arrays: dict[str, Any] = {}
    for parameter, value in given.items():
        own, entries = _entries(parameter, value)
        if own is None:
            arrays[parameter] = value
            continue
        if names is None:
            first, names = parameter, own
        check_same(names, own, first, parameter)
        places = {name: j for j, name in enumerate(own)}
        order = [places[name] for name in names]
        arrays[parameter] = entries[order] if entries.ndim == 1 else entries[np.ix_(order, order)]
    return Named(names, arrays)


def _entries(parameter: str, value: Any) -> tuple[Names | None, NDArray[Any]]:
    """Names and numbers of a parameter that has names."""
    if isinstance(value, Mapping):
        names = _texts(list(value))
        if not value or names is None:
            raise TypeError(f"{parameter} must map columns' names to numbers, each name a text")
        return names, np.array([_number(parameter, name, value[name]) for name in names])
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, (pandas.Series, pandas.DataFrame)):
        names = _texts(list(value.index))
        if value.ndim == 2:
            own, plain = _texts(list(value.columns)), isinstance(value.index, pandas.RangeIndex)
            names = own if plain else names  # an index that nobody set names nothing
            if names != own:
                raise ValueError(f"{parameter} must have the same names in its rows and columns")
        return names, value.to_numpy()
    if hasattr(value, "__arrow_c_stream__"):
        return _table_entries(parameter, value)
    return None, np.empty(0)


def _table_entries(parameter: str, value: Any) -> tuple[Names | None, NDArray[Any]]:
    """Names and numbers of a matrix that is a Polars or Arrow table: its columns'."""
    labels = getattr(value, "column_names", None) or getattr(value, "columns", None) or ()
    names = _texts(list(labels))
    if names is None:
        return None, np.empty(0)
    entries = np.column_stack([np.asarray(value[name], np.float64) for name in names])
    if len(entries) != len(names):
        raise ValueError(f"{parameter} must have a row for each of its columns, or be a mapping")
    return names, entries


def _number(parameter: str, name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise TypeError(f"{parameter} of column {name!r} must be a number, got {kind}") from None


def _texts(labels: list[Any]) -> Names | None:
    texts = {*map(type, labels)} == {str} or all(isinstance(x, str) for x in labels)
    return tuple(labels) if labels and texts else None


def _columns(names: Sequence[str]) -> str:
    return f"column{'s' * (len(names) > 1)} {_quoted(names)}"


def _quoted(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_QUOTED])
    return shown + (f" and {len(names) - _QUOTED} more" if len(names) > _QUOTED else "")
