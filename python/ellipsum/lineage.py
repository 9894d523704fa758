"""Which exact sums hold the same rows, and which rows were released: marks, never data.

A sum gets a mark of its own with its first batch; merging joins marks, and a copy keeps them. So
a part that is merged twice, and a copy that is released again, are refused. (Copies of a sum to
which nothing was ever added, not even a batch without rows, are sums of their own: that is how a
zero is handed to many workers.) Whether two sums share a
mark depends on where they came from, never on what is in them: an error that told of equal
integers would tell of rows, and two honest parts may well be equal (claim composition-2).

Marks are no part of a sum's bytes, which are the same for every split and order. They go along
with a pickle, and with the bytes object that ``to_bytes`` returns; bytes that come back from a
file or a network are those of another sum, as far as anybody can tell: name the parts there.
"""

from __future__ import annotations

import secrets
import threading
from typing import Any

__all__ = ["MarkedBytes", "Marks", "claim", "marks_of", "new_marks"]

Marks = frozenset[int]

_lock = threading.Lock()
_released: set[int] = set()


def new_marks() -> Marks:
    """The mark of a sum that gets its first batch: 128 random bits, unlike any other anywhere."""
    return frozenset([secrets.randbits(128)])


class MarkedBytes(bytes):
    """Bytes that remember the marks of the sum that they were made from."""

    marks: Marks

    @classmethod
    def of(cls, raw: bytes, marks: Marks) -> MarkedBytes:
        """These bytes, with these marks."""
        marked = cls(raw)
        marked.marks = marks
        return marked


def marks_of(data: Any) -> Marks:
    """The marks that came along with bytes, a view of them too; others get new ones."""
    whole = data.obj if isinstance(data, memoryview) else data
    return whole.marks if isinstance(whole, MarkedBytes) else new_marks()


def claim(marks: Marks, *, again: bool, only_ask: bool = False) -> bool:
    """Mark rows as released (or only ask); whether they may be: not twice, unless asked for."""
    with _lock:
        if not again and not marks.isdisjoint(_released):
            return False
        if not only_ask:
            _released.update(marks)
        return True
