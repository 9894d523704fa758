"""Files of one data set have the same columns, in the same units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..column_names import Columns, coordinate_names
from ..column_units import Units, said_units
from .sources import Source

__all__ = ["check_agreement", "common_d", "common_units", "said_of"]


def said_of(sources: Sequence[Source], units: Any) -> Units:
    """What the caller says of the units, by name where the coordinates are columns."""
    names, d = sources[0].columns, common_d(sources)
    said = said_units(units, d)
    if not said:
        return {}
    place = f"{names[0]}[" if d is None and names else None  # of a list of unknown length
    told = {k: v for k, v in said.items() if not (place and str(k).startswith(place))}
    Columns(coordinate_names(names, d) or names, units=told).check_units()
    by_name = names is not None and len(names) == d
    return {names[k] if by_name and names and isinstance(k, int) else k: v for k, v in said.items()}


def common_units(sources: Sequence[Source], said: Units) -> Units:
    """What the files' schemas tell, where the caller does not."""
    units: dict[str | int, str] = {}
    for source in sources:
        for name, unit in source.units.items():
            if units.setdefault(name, unit) != unit and name not in said:
                which = f"column {name!r}" if source.quotable else "a column"
                raise ValueError(
                    f"{source.path} has {which} in another unit than the files before it: convert "
                    "it, or say the unit by units="
                )
    return units


def check_agreement(source: Source, first: Source, *, all_columns: bool) -> None:
    """Raise ValueError unless a file can be of one data set with the first, whose columns it was
    opened with; of ``all_columns`` it may have no others."""
    same_d = source.d == first.d or common_d([source, first]) is not None
    if source.columns != first.columns or not same_d:
        raise ValueError(
            f"{source.path} and {first.path} do not agree: the files of one data set "
            "must have the same columns and dimension"
        )
    if all_columns and source.others:
        raise ValueError(
            f"{source.path} has more columns than {first.path}: name those that you want by "
            "columns, or leave one of the files out"
        )


def common_d(sources: Sequence[Source]) -> int | None:
    """The first of the sources' d that suits them all."""
    known = (source.d for source in sources if source.d is not None)
    return next((d for d in known if all(source.accepts(d) for source in sources)), None)
