"""Rows as the twins of ``cpp/core/clip`` take them: shared out among threads, and in their box."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

CLIP_ROWS_LIMIT = 1 << 31  # rows that one call may add to a partial sum of zero
#: Numbers made of others at a time: they stay in the second level of cache.
_MADE_NUMBERS = 1 << 16


def _as_doubles(rows):
    """Blocks of the rows, in copies."""
    step = max(1, _MADE_NUMBERS // rows.shape[1])
    for start in range(0, len(rows), step):
        with np.errstate(all="ignore"):  # a warning would tell of a value
            yield np.array(rows[start : start + step], dtype=np.float64, order="C")


def _into_box(rows, center, lower, upper):
    """The same, their cells moved into the box, and holes to the centre."""
    for block in _as_doubles(rows):
        with np.errstate(all="ignore"):
            holes = ~np.isfinite(block)
            np.maximum(block, lower, out=block)  # in vectors; np.clip is not
            np.minimum(block, upper, out=block)
            if holes.any():
                np.copyto(block, center, where=holes)
        yield block


def shared(kernel, rows, threads, partial, absent, box=None):
    """Each thread's share of the rows through ``kernel``, the sums to ``partial`` and, if it has
    entries, ``absent``; its answers. With a box (center, lower, upper) cells are moved into it."""
    rows = np.asarray(rows)  # columns become blocks of rows
    if len(rows) > CLIP_ROWS_LIMIT:
        raise ValueError("internal: more rows than a partial sum can hold")

    def work(part):
        sums, holes = np.zeros_like(partial), np.zeros(rows.shape[1], np.int64)
        if box is not None and box[1].size:
            blocks = _into_box(part, *box)
        else:
            blocks = [part] if part.dtype.kind == "f" else _as_doubles(part)
        return [kernel(block, sums, holes) for block in blocks], sums, holes

    parts = np.array_split(rows, min(threads, max(len(rows), 1)))
    if len(parts) == 1:
        results = [work(parts[0])]
    else:
        with ThreadPoolExecutor(len(parts)) as pool:
            results = list(pool.map(work, parts))
    for _, sums, holes in results:
        partial += sums
        if absent.size:
            absent += holes
    return [answer for answers, _, _ in results for answer in answers]
