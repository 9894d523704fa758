"""The exact sums of groups: one table of integers, the same bytes for any order and split."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate, lineage
from ..column_names import Columns
from ..ellipsoid import Ellipsoid
from ..exact_sum import as_integers, kernel_parts
from ..kernels import lines
from ..kernels.backend import kernels
from ..rows.arrays import numeric_rows
from ..rows.labels import labels_of
from ..sealed_bytes import CHECKSUM_BYTES, header_of, is_whole, sealed
from ..sum_bytes import MISSING
from .holes import count_holes
from .key_bytes import key_bytes, keys_at
from .keys import KeyBook
from .made_of import FIELDS, MadeOf

__all__ = ["ExactGroupSum"]

Ints = NDArray[np.int64]

_MAGIC = b"ELLIPGRP"
#: What becomes of holes, by the version that says it: of version 5 are tables that count them.
_MISSING_OF = {4: "center", 5: "ignore"}
# magic, version, whether the keys are given, digest of the regions, d, groups, units, made of
_HEADER = struct.Struct("<8sHB32sIQQ" + FIELDS.format[1:])
_CONVERSION = 1 << 19


def _no_table(what: str) -> ValueError:
    return ValueError(f"data is no ExactGroupSum: {what}; keep the bytes of to_bytes() whole")


class ExactGroupSum:
    """Exact sums of rows by group: what :class:`ellipsum.ExactSum` is to one sum.

    **Guarantees.** A row adds to its group the integers that it would add to a sum of its own
    (claim groups-1), so the table is a function of the multiset of (key, row): any order, split
    and merge tree gives the same bytes. A copy of a table, or of a part of it, that was made in
    this process is neither merged with it nor released again (claim composition-2). A table whose
    :meth:`add` or :meth:`merge` was broken off, as by Ctrl-C, has a part of its rows, and does
    nothing from then on but raise RuntimeError.

    *Everything in it is private.* Memory: 8 d + 8 bytes a group, 24 d beyond 2^31 rows, and some
    100 bytes of keys; both may be there twice while they grow.

    Parameters
    ----------
    ellipsoid : Ellipsoid, or a mapping of keys to Ellipsoids
        One region for all groups, or one for each (the keys are then those of the mapping).
    keys : sequence, optional
        The keys, public; rows of other keys are left out. None: every key that comes.
    missing : ``"center"`` or ``"ignore"``
        ``"ignore"`` counts the holes of each group and coordinate beside the sums, as
        :class:`ellipsum.ExactSum` does: 8 d bytes a group more.
    """

    def __init__(
        self,
        ellipsoid: Ellipsoid | Mapping[Any, Ellipsoid],
        keys: Sequence[Any] | None = None,
        *,
        missing: str = "center",
    ) -> None:
        self._missing = _validate.one_of("missing", missing, MISSING)
        self._regions: list[Ellipsoid] | None = None
        if isinstance(ellipsoid, Mapping):
            keys, self._regions = _own_regions(ellipsoid, keys)
            ellipsoid = self._regions[0]
        if not isinstance(ellipsoid, Ellipsoid):
            kind = type(ellipsoid).__name__
            hint = ": give shape.at(0.01)" if hasattr(ellipsoid, "at") else ""
            raise TypeError(f"ellipsoid must be an Ellipsoid, got {kind}{hint}")
        self._ellipsoid, self.book = ellipsoid, KeyBook(keys)
        self.d = ellipsoid.d
        groups = len(self.book)
        self._partial = lines.zeros((groups, self.d), np.int64)
        self._counts = lines.zeros((groups,), np.int64)
        self._absent = lines.zeros((groups, self._holes), np.int64)
        self._low: NDArray[np.uint64] | None = None
        self._high: Ints | None = None
        self._waiting = 0  # rows in the partial sums
        self.units = 0  #: rows, or users, that were added in all: public for ``replace`` alone
        self.made_of = MadeOf()
        #: Names of the coordinates, where the region or rows had some: public.
        self.columns = Columns(ellipsoid.columns)
        self._marks: lineage.Marks = frozenset()

    @property
    def missing(self) -> str:
        """What holes count for: ``"center"`` or ``"ignore"``."""
        return self._missing

    @property
    def _holes(self) -> int:
        """Coordinates whose holes are counted: all of them, or none."""
        return self.d if self._missing == "ignore" else 0

    @property
    def keys(self) -> list[Any]:
        """The keys, in the table's order. **Private** unless they were given."""
        return list(self.book.keys)

    def region(self, group: int) -> Ellipsoid:
        """The clip region of a group."""
        return self._ellipsoid if self._regions is None else self._regions[group]

    def add(self, rows: Any, key: Any) -> ExactGroupSum:
        """Add rows (n, d), with the key of each: an array, list, Series or Arrow array.

        Raises
        ------
        TypeError, ValueError
            For what :meth:`ellipsum.ExactSum.add` refuses, and keys of another length or type.
        """
        block, labels = numeric_rows("rows", rows, d=self.d), labels_of("key", key)
        if len(labels) != len(block):
            raise ValueError("key must have one entry for each row")
        self.made_of = self.made_of.joined(MadeOf(0, True))
        index = self.book.index(labels)
        with self.book.changing():
            self._add(block, index)
            self.units += len(block)
        return self

    def add_indexed(self, rows: NDArray[Any], index: Ints) -> None:
        """Add rows by the index of their group in ``book``; -1 is in none."""
        with self.book.changing():
            self._add(rows, index)

    def _add(self, rows: NDArray[Any], index: Ints) -> None:
        self.mark()
        self._grow()
        done = 0
        for part in kernel_parts(rows, in_rows=True):
            self._room(len(part))
            self._add_part(part, index[done : done + len(part)])
            done += len(part)

    def mark(self) -> None:
        """Make it a table of rows of its own, whether any come or not."""
        self._marks = self._marks or lineage.new_marks()

    def claim_release(self, *, again: bool, only_ask: bool = False) -> None:
        """Record that a release is made; refuse a second one that was not asked for.

        Raises
        ------
        ValueError
            For a table, or a copy or part of it, that was released.
        """
        if not lineage.claim(self._marks, again=again, only_ask=only_ask):
            raise ValueError(
                "this ExactGroupSum (or a copy or part of it) was released before, and a second "
                "release spends its budget again: pass spend_again=True if that is what you want"
            )

    def _add_part(self, part: NDArray[Any], index: Ints) -> None:
        # The kernel reads rows of contiguous numbers; and where holes are counted here, nobody may
        # write to what it reads.
        if not self._holes and part.strides[1] == part.itemsize:
            self._add_rows(part, index)
            return
        step = max(1, _CONVERSION // self.d)
        for start in range(0, len(part), step):
            block = np.array(part[start : start + step], order="C")  # new strides for d = 1, too
            here = index[start : start + step]
            if self._holes:
                count_holes(self._absent, block, here)
            self._add_rows(block, here)

    def _add_rows(self, part: NDArray[Any], index: Ints) -> None:
        index = np.ascontiguousarray(index)
        table, counts, stretch = self._partial, self._counts, bool(self._holes)
        if self._regions is None:
            arguments = self._ellipsoid.kernel_arguments()
            kernels().group_sums(part, index, *arguments, table, counts, stretch)
            return
        for group, region in enumerate(self._regions):
            here = np.flatnonzero(index == group)
            if len(here):
                own, one = table[group : group + 1], counts[group : group + 1]
                rows, first = np.ascontiguousarray(part[here]), np.zeros(len(here), np.int64)
                arguments = region.kernel_arguments()
                kernels().group_sums(rows, first, *arguments, own, one, stretch)

    def _settle(self) -> None:
        """All of what was added, with room for it; RuntimeError where a part is."""
        self.book.refuse_half()
        self._grow()

    def _grow(self) -> None:
        """Room for the book's keys: twice as much as is there, at least."""
        groups = len(self.book)
        if groups <= len(self._counts):
            return
        rows = max(groups, 2 * len(self._counts))
        self._partial = lines.longer(self._partial, rows)
        self._counts = lines.longer(self._counts, rows)
        self._absent = lines.longer(self._absent, rows)
        if self._low is not None and self._high is not None:
            self._low, self._high = lines.longer(self._low, rows), lines.longer(self._high, rows)

    def _room(self, rows: int) -> None:
        """Partial sums into 128 bits before they can hold no more rows."""
        if self._waiting + rows > kernels().CLIP_ROWS_LIMIT:
            self._low, self._high = self._wide()
            self._partial[:] = 0
            self._waiting = 0
        self._waiting += rows

    def _wide(self) -> tuple[NDArray[np.uint64], Ints]:
        """All sums in 128 bits: low words, high words (groups, d)."""
        flat = self._partial.reshape(-1)
        if self._low is None or self._high is None:
            low, high = np.zeros(flat.size, np.uint64), np.zeros(flat.size, np.int64)
        else:
            low, high = self._low.reshape(-1).copy(), self._high.reshape(-1).copy()
        kernels().merge(low, high, flat.view(np.uint64), flat >> 63)
        return low.reshape(-1, self.d), high.reshape(-1, self.d)

    def merge(self, other: ExactGroupSum) -> ExactGroupSum:
        """Add another table of the same region, key by key.

        Raises
        ------
        TypeError, ValueError
            For what is no such table, or has another region, other public keys, other units, or
            rows that this one has.
        """
        if not isinstance(other, ExactGroupSum):
            raise TypeError(f"other must be an ExactGroupSum, got {type(other).__name__}")
        if other is self:
            raise ValueError("other is this table itself: its rows would count twice")
        if not self.alike(other):
            raise ValueError("other has another region, missing policy, or other public keys")
        if not self._marks.isdisjoint(other._marks):
            raise ValueError("other has rows that this table has: they would count twice")
        columns = self.columns.joined(other.columns)
        self.made_of = self.made_of.joined(other.made_of)
        self.columns = columns
        places = self.book.add(other.book.keys)
        with self.book.changing():
            self._merge(other, places)
        return self

    def _merge(self, other: ExactGroupSum, places: Ints) -> None:
        self._grow()
        low, high = self._wide()
        more_low, more_high = other._wide()
        groups = len(places)
        mine_low, mine_high = low[places].reshape(-1), high[places].reshape(-1)
        theirs = more_low[:groups].reshape(-1), more_high[:groups].reshape(-1)
        kernels().merge(mine_low, mine_high, *theirs)
        low[places], high[places] = mine_low.reshape(-1, self.d), mine_high.reshape(-1, self.d)
        self._low, self._high, self._waiting = low, high, 0
        self._partial[:] = 0
        self._counts[places] += other._counts[:groups]
        self._absent[places] += other._absent[:groups]
        self.units += other.units
        self._marks |= other._marks

    def merge_bytes(self, data: bytes) -> ExactGroupSum:
        """Add what another one's :meth:`to_bytes` returned: as :meth:`merge`."""
        return self.merge(self.from_bytes(data, self.own_regions()))

    def alike(self, other: ExactGroupSum) -> bool:
        """Whether another table has the same regions, public keys, if any, and ``missing``."""
        if self._missing != other._missing:
            return False
        if self.book.closed != other.book.closed or self._ellipsoid != other._ellipsoid:
            return False
        if self.book.closed and self.book.keys != other.book.keys:
            return False
        return self._regions == other._regions

    def counts(self) -> Ints:
        """Rows of each group, in the order of :attr:`keys`. **Private.**"""
        self._settle()
        return self._counts[: len(self.book)].copy()

    def integers(self) -> NDArray[np.object_]:
        """The exact sums (groups, d), each in units of its region's grid. **Private.**"""
        self._settle()
        low, high = self._wide()
        groups = len(self.book)
        return as_integers(low[:groups], high[:groups])

    def ordered(self) -> tuple[list[int], NDArray[np.uint64], Ints, Ints]:
        """Indices in the order of the keys; low and high words and counts in it. **Private.**"""
        self._settle()
        order = self.book.order() if not self.book.closed else list(range(len(self.book)))
        low, high = self._wide()
        return order, low[order], high[order], self._counts[order]

    def absent(self, order: Sequence[int]) -> Ints:
        """Holes (groups, d) of the groups of these indices; none are counted for
        ``missing="center"``. **Private.**"""
        return self._absent[order]

    def to_bytes(self) -> bytes:
        """The table as bytes, without its region: the same for every order and split. **Private.**

        :meth:`from_bytes` is given the region again, and refuses another. The object remembers
        which table it was made from (:mod:`ellipsum.lineage`); its bytes do not.
        """
        order, low, high, counts = self.ordered()
        keys = [key_bytes(self.book.keys[i]) for i in order]
        closed, size = self.book.closed, len(order)
        version = next(v for v, missing in _MISSING_OF.items() if missing == self._missing)
        first = (_MAGIC, version, closed, self.fingerprint(), self.d, size, self.units)
        head = _HEADER.pack(*first, *self.made_of)
        arrays = (low, high, counts, self.absent(order))
        numbers = [a.astype(f"<{a.dtype.str[1:]}").tobytes() for a in arrays]
        return lineage.MarkedBytes.of(sealed(b"".join([head, *keys, *numbers])), self._marks)

    def own_regions(self) -> Ellipsoid | dict[Any, Ellipsoid]:
        """The region, or each key's: what :meth:`from_bytes` is given."""
        if self._regions is None:
            return self._ellipsoid
        return dict(zip(self.book.keys, self._regions, strict=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_copy, (bytes(self.to_bytes()), self.own_regions(), self._marks, self.columns)

    def fingerprint(self) -> bytes:
        """What tells its regions from others: 32 bytes, public."""
        regions = [self._ellipsoid] if self._regions is None else self._regions
        state = hashlib.blake2b(digest_size=32)
        for region in regions:
            state.update(region.fingerprint())
        return state.digest()

    @classmethod
    def from_bytes(
        cls, data: bytes, ellipsoid: Ellipsoid | Mapping[Any, Ellipsoid]
    ) -> ExactGroupSum:
        """The table of :meth:`to_bytes`, over the same region.

        Raises
        ------
        ValueError
            If ``data`` is truncated, altered, of another version or region.
        """
        raw = bytes(memoryview(data))
        fields = header_of(raw, _HEADER, _MAGIC, _MISSING_OF, _no_table)
        version, closed, mark, d, groups, units, *made = fields
        if not is_whole(raw):
            raise _no_table("it is truncated or has been altered")
        body = raw[:-CHECKSUM_BYTES]
        keys, at = keys_at(body, _HEADER.size, groups)
        table = cls(ellipsoid, keys if closed else None, missing=_MISSING_OF[version])
        table.book.add(keys)
        table._grow()
        if table.fingerprint() != mark or table.d != d or len(table.book) != groups:
            raise ValueError("data is a table over another region: give the one it was made with")
        table.units, table.made_of = units, MadeOf(*made)
        table._marks = lineage.marks_of(data)
        words = np.frombuffer(body, "<u8", groups * d, at)
        table._low = np.zeros((len(table._counts), d), np.uint64)
        table._high = np.zeros((len(table._counts), d), np.int64)
        table._low[:groups] = words.reshape(groups, d)
        at += words.nbytes
        table._high[:groups] = np.frombuffer(body, "<i8", groups * d, at).reshape(groups, d)
        at += words.nbytes
        table._counts[:groups] = np.frombuffer(body, "<i8", groups, at)
        holes = np.frombuffer(body, "<i8", groups * table._holes, at + 8 * groups)
        table._absent[:groups] = holes.reshape(groups, table._holes)
        return table

    def __repr__(self) -> str:
        return f"ExactGroupSum(d={self.d}, kind={self._ellipsoid.kind!r})"


def _of_copy(raw: bytes, regions: Any, marks: lineage.Marks, columns: Columns) -> ExactGroupSum:
    table = ExactGroupSum.from_bytes(lineage.MarkedBytes.of(raw, marks), regions)
    table.columns = columns
    return table


def _own_regions(
    regions: Mapping[Any, Ellipsoid], keys: Sequence[Any] | None
) -> tuple[list[Any], list[Ellipsoid]]:
    chosen = list(regions) if keys is None else list(keys)
    if not chosen or set(chosen) != set(regions):
        raise ValueError("a mapping of regions must have one for each key, and no other")
    own = [regions[key] for key in chosen]
    if not all(isinstance(region, Ellipsoid) and region.d == own[0].d for region in own):
        raise ValueError("a mapping of regions must have Ellipsoids of the same d")
    return chosen, own
