"""Several exact sums from one pass: sets of columns, each with a region of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .column_names import Columns
from .ellipsoid import Ellipsoid
from .exact_sum import ExactSum
from .rows.batches import kernel_batches
from .rows.files import Rows
from .rows.queries import shape_of

__all__ = ["sums_of"]

_NUMBERS_AT_ONCE = 1 << 18  #: of columns that do not stand together, which are copied


def sums_of(
    data: Any,
    sums: Mapping[str, tuple[Sequence[str] | Sequence[int], Ellipsoid]],
    *,
    missing: str = "center",
    threads: int | None = None,
) -> dict[str, ExactSum]:
    """Exact sums of several sets of columns, each over a region of its own, from one pass.

    **Guarantees.** Each sum has the bytes of a pass of its own over its columns (claim sum-2). A
    release of one is a release of the same rows as that of another: what they promise together
    is :func:`compose` of them.

    Parameters
    ----------
    data : array, table, stream of these, or ``open_rows(...)``; in the data's own units
        Tables and files have just the columns that are named, in any order.
    sums : mapping of names to (columns, region)
        ``columns`` are names, or places from 0 in the rows, all of one kind; public. A column may
        be in several sets.
    missing : ``"center"`` or ``"ignore"``, as of :class:`ExactSum`
    threads : int, optional

    Returns
    -------
    dict of ExactSum by name: hand each to a mechanism with the same region. **Private.**

    Raises
    ------
    TypeError, ValueError
        Columns that are no names or places, as many as the region has coordinates; data without
        them, or with others.
    """
    totals, sets = dict[str, ExactSum](), dict[str, list[Any]]()
    for name, (columns, region) in sums.items():
        totals[name] = ExactSum(region, missing=missing, threads=threads)
        sets[name] = _columns_of(name, columns, region.d)
    wanted = list(dict.fromkeys(column for own in sets.values() for column in own))
    kinds = {isinstance(column, str) for column in wanted}
    if len(kinds) != 1:
        raise TypeError("sums must name columns, or their places, in all sets alike")
    named = kinds == {True}
    known = Columns(wanted if named else None, "the sums")
    d = len(wanted) if named else _width(data, 1 + max(wanted))
    if not named and max(wanted) >= d:
        raise ValueError(f"sums have the place {max(wanted)}, the rows have {d} coordinates")
    orders: dict[str, list[int]] = {}
    for block in kernel_batches(data, d, known):
        if not orders:
            orders = {name: _places(known, own, totals[name]) for name, own in sets.items()}
        for name, order in orders.items():
            for part in _taken(block, order):
                totals[name].add(part)
    return totals


def _columns_of(name: str, columns: Any, d: int) -> list[Any]:
    whole = (str, int, np.integer)
    if isinstance(columns, str) or not all(
        isinstance(c, whole) and not isinstance(c, bool) for c in columns
    ):
        raise TypeError(f"columns of {name!r} must be a sequence of names or of places")
    own = [c if isinstance(c, str) else int(c) for c in columns]
    if len(own) != d or len(set(own)) != d:
        raise ValueError(
            f"{name!r} has a region of {d} coordinates: give it {d} columns, once each"
        )
    if any(not isinstance(c, str) and c < 0 for c in own):
        raise ValueError(f"places of {name!r} must count from 0")
    return own


def _width(data: Any, least: int) -> int:
    """Coordinates of a row: what the data say, else as many as the places need."""
    shape = shape_of(data)
    if len(shape) == 2:
        return int(shape[1])
    return data.d or least if isinstance(data, Rows) else least


def _places(known: Columns, own: Sequence[Any], total: ExactSum) -> list[int]:
    """Where a block has the coordinates of a sum, in the region's order if that has names."""
    names = known.names
    places = [names.index(c) if names and isinstance(c, str) else c for c in own]
    if names is None:
        return places
    order = total._columns.order_of([names[j] for j in places])
    return places if order is None else [places[j] for j in order]


def _taken(block: Any, order: Sequence[int]) -> Iterator[Any]:
    """The block's columns of these places: where they lie, if they can be."""
    if not isinstance(block, np.ndarray):
        yield block.reordered(order)
    elif list(order) == list(range(order[0], order[0] + len(order))):
        yield block[:, order[0] : order[0] + len(order)]
    else:
        rows = max(1, _NUMBERS_AT_ONCE // len(order))
        for start in range(0, len(block), rows):
            yield block[start : start + rows, order]
