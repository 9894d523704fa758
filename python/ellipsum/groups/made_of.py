"""What a table of groups was made of."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MadeOf"]


class MadeOf(NamedTuple):
    """What a table was made of, public: the noise of a release is for that."""

    max_keys: int = -1  #: groups of a user; 0 of rows without users, -1 of nothing yet
    counted: bool = False  #: whether ``units`` has their number

    def joined(self, other: MadeOf) -> MadeOf:
        """Of two tables together."""
        if -1 in (self.max_keys, other.max_keys):
            return max(self, other)
        if self != other:
            raise ValueError(
                "other was made of other units: rows and users, or users of another max_keys or "
                "neighbors, do not add up"
            )
        return self
