"""Rows as the twins of ``cpp/core/clip`` take them: shared out among threads, and in their box."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

CLIP_ROWS_LIMIT = 1 << 31  # rows that one call may add to a partial sum of zero
#: Numbers that are moved into a box at a time: they stay in the second level of cache.
_MOVED_NUMBERS = 1 << 16


def _into_box(rows, center, lower, upper):
    """Blocks of the rows, their cells moved into the box, and holes to the centre."""
    step = max(1, _MOVED_NUMBERS // lower.size)
    for start in range(0, len(rows), step):
        with np.errstate(all="ignore"):  # a warning would tell of a value
            block = np.array(rows[start : start + step], dtype=np.float64, order="C")
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
        moved = box is not None and box[1].size
        blocks = _into_box(part, *box) if moved else [part]
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
