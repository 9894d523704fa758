"""Rows with digests beside them as bytes, in pieces that an engine's shuffle takes to one bucket.

A bucket has all rows of its users: it follows from the user's digest alone, which is the one that
tells users apart on a single machine (claim users-3). What a column's type or value becomes in the
engine's own hash is nowhere asked.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..column_names import Columns
from ..sealed_bytes import CHECKSUM_BYTES, fields_of, is_whole, sealed
from .labelled import one_kind
from .labels import KINDS, mixed
from .partitioned import NamesSeen
from .words import nonzero, taken

__all__ = ["Piece", "Seen", "last_piece", "pieces_of", "read_pieces"]

Array = NDArray[Any]
Words = NDArray[np.uint64]

_MAGIC = b"ELLIPIEC"
# magic, kinds, bucket, rows, coordinates, words, bytes more, mark of the columns' names
_HEADER = struct.Struct("<8sBIIIIQ16s")
_COUNT = struct.Struct("<I")

#: Bytes of rows that are collected before they are divided.
_COLLECTED = 16 << 20
#: Bytes of rows in one piece: some thousand pieces may be one batch of the engine's.
_PIECE = 16 << 10

_DAMAGED = "rows came out of a shuffle truncated or altered: run the job again"


class Piece(NamedTuple):
    """Some rows of some users of one bucket. **Private.**"""

    kinds: list[str]  #: of the columns of labels, in the last piece of a part; "" in others
    rows: Array  #: (n, d), float64
    words: Words  #: (n, k), the user's digest first
    more: bytes = b""  #: what else there is to say of them
    bucket: int = 0
    mark: bytes = bytes(16)  #: of the coordinates' names, in the last piece of a part

    def to_bytes(self) -> bytes:
        """It as bytes."""
        (n, d), k = self.rows.shape, self.words.shape[1]
        sizes = len(self.kinds), self.bucket, n, d, k, len(self.more)
        head = _HEADER.pack(_MAGIC, *sizes, self.mark)
        numbers = [np.ascontiguousarray(self.rows, "<f8"), np.ascontiguousarray(self.words, "<u8")]
        parts = [head, _codes_of(self.kinds), *(a.tobytes() for a in numbers), self.more]
        return sealed(b"".join(parts))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Piece:
        """What :meth:`to_bytes` wrote.

        Raises
        ------
        ValueError
            For other bytes.
        """
        kinds, bucket, n, d, k, more, mark = fields_of(raw, _HEADER, _MAGIC, _DAMAGED)
        at = _HEADER.size + kinds
        if len(raw) != at + 8 * n * (d + k) + more + CHECKSUM_BYTES:
            raise ValueError(_DAMAGED)
        rows = np.frombuffer(raw, "<f8", n * d, at).reshape(n, d)
        words = np.frombuffer(raw, "<u8", n * k, at + rows.nbytes).reshape(n, k)
        end = at + rows.nbytes + words.nbytes
        own = _kinds_of(raw[_HEADER.size : at])
        return cls(own, rows, words, raw[end : end + more], bucket, mark)


class Seen:
    """Which buckets a task had, the kinds of the labels in them, and the coordinates' names.

    No bucket may be in two tasks: a user would be two, and the guarantee is for one.

    Parameters
    ----------
    labels : int, columns of labels
    """

    def __init__(self, labels: int) -> None:
        self.kinds, self.buckets, self.names = [""] * labels, set[int](), NamesSeen()

    def add(self, kinds: list[str], bucket: int | None = None, mark: bytes = b"") -> None:
        """What one piece, or a batch of rows, says."""
        self.kinds = one_kind(self.kinds, kinds)
        self.names.take(mark)
        if bucket is not None:
            self.buckets.add(bucket)

    def to_bytes(self, found: bytes) -> bytes:
        """It and what the task found, as bytes."""
        buckets = np.array(sorted(self.buckets), "<u4").tobytes()
        told = self.names.mark + _codes_of(self.kinds) + _COUNT.pack(len(self.buckets))
        return sealed(told + buckets + found)

    def merge(self, raw: bytes) -> bytes:
        """Add what another one wrote at the start of these bytes; what its task found.

        Raises
        ------
        ValueError
            For other bytes, and for a bucket that both had.
        """
        at = len(self.kinds) + _COUNT.size
        if len(raw) < len(self.names.mark) + at + CHECKSUM_BYTES or not is_whole(raw):
            raise ValueError("a part's result came back truncated or altered: run the job again")
        raw = self.names.behind(raw[:-CHECKSUM_BYTES])
        (count,) = _COUNT.unpack_from(raw, len(self.kinds))
        buckets = set(np.frombuffer(raw, "<u4", count, at).tolist())
        if not self.buckets.isdisjoint(buckets):
            raise ValueError("rows of a user came to two tasks, which the engine must not do")
        self.add(_kinds_of(raw[: len(self.kinds)]))
        self.buckets |= buckets
        return raw[at + 4 * count :]


def _codes_of(kinds: Iterable[str]) -> bytes:
    """Kinds of columns of labels, a byte each."""
    return bytes(KINDS.index(kind) + 1 if kind else 0 for kind in kinds)


def _kinds_of(codes: bytes) -> list[str]:
    """What :func:`_codes_of` wrote."""
    known = ["", *KINDS]
    if any(code >= len(known) for code in codes):
        raise ValueError(_DAMAGED)
    return [known[code] for code in codes]


def read_pieces(data: Iterable[bytes], seen: Seen, d: int, words: int) -> Iterator[Piece]:
    """The pieces of some buckets, which ``seen`` is told of.

    Parameters
    ----------
    data : iterable of bytes, of :func:`pieces_of`
    seen : Seen
    d, words : int, coordinates of a row, and words beside it

    Raises
    ------
    ValueError
        For pieces of another task, or without a user.
    """
    for raw in data:
        piece = Piece.from_bytes(raw)
        shapes = len(piece.kinds), piece.rows.shape[1], piece.words.shape[1]
        fits = shapes == (len(seen.kinds), d, words)
        if not fits or not nonzero(piece.words[:, :2]).all():
            raise ValueError("the piece is damaged, or another task's: run the job again")
        seen.add(piece.kinds, piece.bucket, piece.mark)
        yield piece


def pieces_of(
    batches: Iterable[tuple[Array, Words]],
    buckets: int,
    labels: int,
    named: Callable[[Words], tuple[Words, bytes]] = lambda words: (words, b""),
) -> Iterator[tuple[int, bytes]]:
    """Rows in pieces by the bucket of their user.

    Parameters
    ----------
    batches : iterable of rows (n, d) and words (n, k), n > 0, the user's digest first
    buckets : int
    labels : int, columns of labels
    named : callable, optional
        Of a piece's words: the words that are written, and what is written beside them.
    """
    kept: list[tuple[Array, Words]] = []
    size = 0
    for rows, words in batches:
        with np.errstate(all="ignore"):  # a warning would tell of a value
            plain = np.array(rows, np.float64)
        kept.append((plain, words))
        size += plain.nbytes + words.nbytes
        if size >= _COLLECTED:
            yield from _divided(kept, buckets, labels, named)
            kept, size = [], 0
    if kept:
        yield from _divided(kept, buckets, labels, named)


def last_piece(
    kinds: list[str], columns: Columns, d: int, words: int, more: bytes = b""
) -> tuple[int, bytes]:
    """The kinds and names of a part's columns, to the one bucket that those of all parts meet in.

    A part sends them whether or not any of its rows has a user: it would be a record that decides.
    The other pieces have none, which would be those of the rows before them, in their order.
    """
    none = np.empty((0, d)), np.empty((0, words), np.uint64)
    return 0, Piece(kinds, *none, more, mark=NamesSeen(columns.names).mark).to_bytes()


def _divided(
    kept: list[tuple[Array, Words]],
    buckets: int,
    labels: int,
    named: Callable[[Words], tuple[Words, bytes]],
) -> Iterator[tuple[int, bytes]]:
    rows = np.concatenate([part for part, _ in kept])
    words = np.concatenate([part for _, part in kept])
    # Both words, mixed: the first word's bits by themselves divide the bucket's own files.
    bucket = mixed(words[:, 0] ^ mixed(words[:, 1])) % np.uint64(buckets)
    order = np.argsort(bucket, kind="stable")
    found, starts = np.unique(bucket[order], return_index=True)
    step = max(1, _PIECE // (8 * rows.shape[1] + 8 * words.shape[1]))
    for number, start, end in zip(found, starts, [*starts[1:], len(order)], strict=True):
        for first in range(start, end, step):
            here = order[first : min(first + step, end)]
            own, more = named(taken(words, here))
            piece = Piece([""] * labels, taken(rows, here), own, more, int(number))
            yield piece.bucket, piece.to_bytes()
