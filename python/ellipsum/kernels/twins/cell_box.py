"""Twin of ``cpp/core/clip/cell_box.inl``: cells moved into a box, and holes to the centre."""

from __future__ import annotations

import numpy as np

#: Numbers that are moved into a box at a time: they stay in the second level of cache.
_MOVED_NUMBERS = 1 << 16


def into_box(rows, center, lower, upper):
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
