"""Units of columns: text beside the names, from a schema or from the caller, never from rows.

A unit belongs to a column's name, or to the place of a coordinate where rows have no names. It
labels what is released and decides nothing else: no bytes of a sum or a checkpoint hold it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

__all__ = [
    "NO_UNITS",
    "Units",
    "frame_units",
    "metadata_units",
    "product_unit",
    "ratio_unit",
    "said_units",
    "schema_units",
    "unit_of",
]

#: By a column's name, or by a coordinate's place from 0; an empty text says that there is none.
Units = Mapping[str | int, str]

NO_UNITS: Units = MappingProxyType({})

_KEYS = (b"unit", "unit", b"units", "units")  # of a field's metadata: Arrow's, and Spark's
#: Where pandas keeps a frame's attrs in a schema's metadata, and under which names.
_PANDAS: dict[bytes, tuple[str, ...]] = {
    b"PANDAS_ATTRS": ("units",),
    b"pandas": ("attributes", "units"),
}


def said_units(units: Any, d: int | None = None) -> Units:
    """What a caller says: a mapping by name, or a sequence by place; None stands for unsaid.

    Parameters
    ----------
    units : mapping of names to texts, pandas Series, sequence of d texts, or None
    d : int, coordinates of a row, or None where that is not known yet

    Raises
    ------
    TypeError, ValueError
        For units that are no texts, or not as many as coordinates.
    """
    if units is None:
        return {}
    if hasattr(units, "to_dict"):  # a Series
        units = units.to_dict()
    if isinstance(units, Mapping):
        given: dict[Any, Any] = dict(units)
        if not all(isinstance(name, str) for name in given):
            raise TypeError("units must map columns' names to texts, each name a text")
    else:
        if isinstance(units, (str, bytes)) or not isinstance(units, Sequence):
            kind = type(units).__name__
            raise TypeError(f"units must be a mapping by name, or a sequence of texts, got {kind}")
        if d is not None and len(units) != d:
            raise ValueError(f"units must have {d} entries, a unit or None each, got {len(units)}")
        given = dict(enumerate(units))
    known = {key: unit for key, unit in given.items() if unit is not None}
    if not all(isinstance(unit, str) for unit in known.values()):
        raise TypeError("units must be texts, or None where nothing is said")
    return {key: unit.strip() for key, unit in known.items()}


def schema_units(schema: Any) -> dict[str | int, str]:
    """The units that an Arrow schema tells: of each field's metadata, else of a frame's attrs."""
    found = _of_attrs(schema.metadata or {})
    return found | metadata_units({field.name: field.metadata for field in schema})


def metadata_units(fields: Mapping[str, Any]) -> dict[str | int, str]:
    """The units that fields tell by their metadata, ``unit`` or ``units``, of Arrow or of Spark."""
    found: dict[str | int, str] = {}
    for name, metadata in fields.items():
        texts = (_text(metadata[key]) for key in _KEYS if key in metadata) if metadata else ()
        if text := next(filter(None, texts), ""):
            found[name] = text
    return found


def frame_units(data: Any) -> dict[str | int, str]:
    """The units of a pandas frame's ``attrs["units"]``; none of anything else."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(data, pandas.DataFrame):
        return {}
    return _texts(data.attrs.get("units"))


def unit_of(units: Units, *keys: str | int | None) -> str | None:
    """The unit under the first of these keys that has one; None where nothing is said."""
    return next((units[key] for key in keys if key is not None and key in units), None)


def product_unit(one: str | None, other: str | None) -> str | None:
    """The unit of a product, ``cm*kg`` or ``cm^2``; None where one of them is not known."""
    if not one or not other:
        return None
    return f"{_bracketed(one)}^2" if one == other else f"{_bracketed(one)}*{_bracketed(other)}"


def ratio_unit(one: str | None, other: str | None) -> str | None:
    """The unit of a ratio, ``kg/cm``, or ``1`` of equal ones; None where one is not known."""
    if not one or not other:
        return None
    return "1" if one == other else f"{_bracketed(one)}/{_bracketed(other)}"


def _bracketed(unit: str) -> str:
    return unit if all(c.isalnum() or c in "_%°" for c in unit) else f"({unit})"


def _of_attrs(metadata: Mapping[bytes, bytes]) -> dict[str | int, str]:
    for key, way in _PANDAS.items():
        if b'"units"' not in metadata.get(key, b""):
            continue
        try:
            found = json.loads(metadata[key])
        except (ValueError, RecursionError):  # somebody else's
            continue
        for name in way:
            found = found.get(name) if isinstance(found, dict) else None
        if units := _texts(found):
            return units
    return {}


def _texts(found: Any) -> dict[str | int, str]:
    if not isinstance(found, Mapping):
        return {}
    pairs = ((k, u.strip()) for k, u in found.items() if isinstance(k, str) and isinstance(u, str))
    return {name: unit for name, unit in pairs if unit}


def _text(raw: Any) -> str:
    try:
        text = raw.decode() if isinstance(raw, bytes) else raw
    except UnicodeError:
        return ""
    return text.strip() if isinstance(text, str) else ""
