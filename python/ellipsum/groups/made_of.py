"""What a table of groups was made of."""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

__all__ = ["FIELDS", "MadeOf"]

#: The fields as bytes.
FIELDS = struct.Struct("<qB16sB")
_UNKNOWN = bytes(16)


class MadeOf(NamedTuple):
    """What a table was made of, public: the noise of a release is for that."""

    max_keys: int = -1  #: groups of a user; 0 of rows without users, -1 of nothing yet
    counted: bool = False  #: whether ``units`` has their number
    user: bytes = _UNKNOWN  #: digest of the name of the users' column; zeros where it had none
    statistic: int = 0  #: 1 where a user's rows of a group are their mean, 2 for the sum

    @classmethod
    def users(cls, max_keys: int, counted: bool, name: object, divide: bool) -> MadeOf:
        """Of users whose column has this name, or is a column itself."""
        known = _UNKNOWN
        if isinstance(name, str):
            known = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        return cls(max_keys, counted, known, 1 if divide else 2)

    def fits(self, other: MadeOf) -> bool:
        """Whether both are of the same units, as far as their columns had names."""
        if -1 in (self.max_keys, other.max_keys):
            return True
        same = self._replace(user=_UNKNOWN) == other._replace(user=_UNKNOWN)
        return same and (_UNKNOWN in (self.user, other.user) or self.user == other.user)

    def joined(self, other: MadeOf) -> MadeOf:
        """Of two tables together."""
        if not self.fits(other):
            raise ValueError(
                "other was made of other units: rows and users, users of another column or "
                "statistic, or of another max_keys or neighbors, do not add up"
            )
        return max(self, other)  # the one that knows more
