"""How many rows of a Parquet file are decoded at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["LABELS_AS_NUMBERS", "spans", "wide_rows"]

#: Rows of labels alone are read so many at a time as rows of so many numbers.
LABELS_AS_NUMBERS = 8
#: Rows of a column decoded at once, at least, where PART_BYTES has room for them: what a column
#: costs beside its numbers is then little. More than half of PART_BYTES gains nothing.
_COLUMN_ROWS = 4096


def wide_rows(d: int, most: int, group: int = 1) -> int:
    """Rows of d Parquet columns that are decoded at once, in at most so many bytes.

    Whole row groups of ``group`` rows, or equal parts of one: what is left over of one takes up to
    half as long again as all of it, and columns of a power of two bytes get in each other's way.
    """
    width = 8 * (d or LABELS_AS_NUMBERS)
    rows = max(1, min(most, max(most // 2, _COLUMN_ROWS * width)) // width)
    if group <= rows:
        return rows // max(1, group) * max(1, group)
    return -(-group // -(-group // rows))


def spans(metadata: Any, rows: int) -> Iterator[list[int]]:
    """Row groups that are read together: of ``rows`` at least, and of one where one has as many. A
    batch that goes on in the next group is a copy, beside the buffers of both."""
    span, size = [], 0
    for group in range(metadata.num_row_groups):
        span.append(group)
        size += metadata.row_group(group).num_rows
        if size >= rows:
            yield span
            span, size = [], 0
    if span:
        yield span
