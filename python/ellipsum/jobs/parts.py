"""Parts of one sum, made anywhere and delivered any number of times: each counts once."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from typing import Any

from ..ellipsoid import Ellipsoid
from ..exact_sum import ExactSum

__all__ = ["Parts"]

_NAMES_SHOWN = 5


class Parts:
    """The parts of one exact sum, by name, exactly once each.

    **Guarantees.** :meth:`total` is the sum of the rows of each named part once, whatever order
    the parts come in and however often (claims parts-1, parts-2): the same name with the
    same bytes is the same part, with other bytes it is an error. With ``names`` a part that is
    missing, or that is not among them, is an error (claim parts-3). Memory is O(d), and 32
    bytes a name.

    It holds the exact sum: **private**, like the parts.

    A name must stand for rows: that of a file, of a partition, a range of keys. A task's or an
    attempt's number does not, and two names for the same rows count them twice.

    Parameters
    ----------
    region : Ellipsoid
    names : iterable of str, optional
        All the parts that there are, public: the manifest.
    nonfinite, missing : as the parts were made (:class:`ExactSum`)
    """

    def __init__(
        self,
        region: Ellipsoid,
        *,
        names: Iterable[str] | None = None,
        nonfinite: str = "center",
        missing: str = "center",
    ) -> None:
        self._total = ExactSum(region, nonfinite=nonfinite, missing=missing)
        self._names: frozenset[str] | None = None
        if isinstance(names, str):
            raise TypeError("names must be a sequence of names, got one text")
        if names is not None:
            listed = [_name(name) for name in names]
            self._names = frozenset(listed)
            if len(self._names) < len(listed):
                raise ValueError("names has a name twice: each part has one of its own")
        self._digests: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def add(self, name: str, part: Any) -> Parts:
        """Add the part of this name, or nothing where it is there already.

        Parameters
        ----------
        name : str, public
        part : bytes-like
            Of :meth:`ExactSum.partial`.

        Returns
        -------
        Parts
            Itself, so that calls chain.

        Raises
        ------
        TypeError, ValueError
            For bytes that are no part, or of another region or policy; a name that is not in
            the manifest, or came with other bytes; rows that another name brought already (known
            of parts made in this process). Nothing is added then.
        """
        known = _name(name)
        if self._names is not None and known not in self._names:
            raise ValueError(f"part {known!r} is not in the manifest: it would count further rows")
        try:
            raw = bytes(memoryview(part))
        except TypeError:
            raise TypeError(f"part must be bytes, got {type(part).__name__}") from None
        digest = hashlib.blake2b(raw, digest_size=32).digest()
        with self._lock:
            before = self._digests.get(known)
            if before is None:
                self._total.merge_partial(part)
                self._digests[known] = digest
            elif before != digest:
                raise ValueError(
                    f"part {known!r} came before with other bytes: its task does not give the "
                    "same rows every time, or two parts share the name"
                )
        return self

    def total(self) -> ExactSum:
        """Return the sum of all parts: a copy, which is released once like any other.

        Raises
        ------
        ValueError
            Where a part of the manifest is missing.
        """
        with self._lock:
            missing = sorted((self._names or frozenset()) - self._digests.keys())
            if missing:
                shown = ", ".join(map(repr, missing[:_NAMES_SHOWN]))
                more = f" and {len(missing) - _NAMES_SHOWN} more" * (len(missing) > _NAMES_SHOWN)
                raise ValueError(f"the total lacks {shown}{more}: add every part of the manifest")
            return self._total.empty_copy().merge(self._total)

    @property
    def missing(self) -> frozenset[str]:
        """Names of the manifest whose parts have not come; empty without one."""
        with self._lock:
            return (self._names or frozenset()) - self._digests.keys()

    def __len__(self) -> int:
        return len(self._digests)

    def __contains__(self, name: object) -> bool:
        return name in self._digests

    def __repr__(self) -> str:
        of = "" if self._names is None else f" of {len(self._names)}"
        return f"Parts(d={self._total.ellipsoid.d}, {len(self)}{of} parts)"


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, got {type(name).__name__}")
    return name
