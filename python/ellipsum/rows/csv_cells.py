"""Cells of a CSV as numbers: what one cell becomes does not depend on the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_numbers"]

#: Cells cast at once: one that is no number costs a second look at so many, some 2 ms.
BLOCK_CELLS = 1 << 14

#: What pyarrow casts to float64 (tests compare the two): a match is never refused, and what
#: does not match is no number.
_NUMBER = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan(\([0-9a-z_]*\))?)$"


def as_numbers(pa: Any, cells: Any) -> NDArray[np.float64]:
    """Text as float64, NaN where it is no number; spaces around it do not matter.

    Three ways give the same numbers, each slower and less easily refused: as it is, without
    spaces, and with what is no number taken out. A block starts with the way that the one
    before it needed, so that odd cells cost no more than one look at each.
    """
    out = np.empty(len(cells))
    way = 0
    for start in range(0, len(cells), BLOCK_CELLS):
        block = cells.slice(start, BLOCK_CELLS)
        values, way = _block(pa, block, way)
        out[start : start + len(values)] = values
    return out


def _block(pa: Any, cells: Any, way: int) -> tuple[NDArray[np.float64], int]:
    """The numbers of a block, and the way that its successor should start with."""
    import pyarrow.compute as compute

    if way == 0 and (values := _cast(pa, cells)) is not None:
        return values, 0
    cells = compute.ascii_trim_whitespace(cells)
    if way <= 1 and (values := _cast(pa, cells)) is not None:
        return values, 1
    numbers = compute.match_substring_regex(cells, _NUMBER)
    values = _cast(pa, compute.if_else(numbers, cells, None))
    if values is None:
        return _one_by_one(pa, cells), 2
    return values, 1 if compute.all(numbers).as_py() else 2


def _cast(pa: Any, cells: Any) -> NDArray[np.float64] | None:
    try:
        return cells.cast(pa.float64()).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    except pa.ArrowInvalid:
        return None


def _one_by_one(pa: Any, cells: Any) -> NDArray[np.float64]:
    """Where pyarrow refuses a number after all, as one of another version may."""
    found = [_cast(pa, cells.slice(j, 1)) for j in range(len(cells))]
    return np.concatenate([np.array([np.nan]) if x is None else x for x in found])
