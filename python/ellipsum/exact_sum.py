"""The exact sum: clipped rows as integers, the same bits for any order, split or merge tree."""

from __future__ import annotations

import hashlib
import struct
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _validate
from .ellipsoid import Ellipsoid
from .kernels.backend import kernels, thread_count

__all__ = ["ExactSum", "add_partial", "as_integers", "kernel_parts"]

#: Numbers converted at a time where the dtype is neither float32 nor float64 (8 MiB).
_NUMBERS_PER_CONVERSION = 1 << 20

_MAGIC = b"ELLIPSUM"
_VERSION = 1
# magic, version, kind, nonfinite policy, columns of scale, d, count, clipped, nonfinite
# rows, releases, clip_norm
_HEADER = struct.Struct("<8sHBBIQQQQQd")
_KINDS = ("ball", "box", "ellipsoid", "matrix")
_POLICIES = ("center", "raise")
_CHECKSUM_BYTES = 16


class ExactSum:
    """Exact sum of rows that are centred, scaled, clipped and quantised.

    **Guarantees.** The integers are a function of the multiset of rows alone: every split,
    order, merge tree, thread count, backend and instruction set gives the same bytes. Between
    neighbours they differ by at most ``ellipsoid.sensitivity(neighbors) / ellipsoid.grid``
    in l2 norm (docs/guarantees/sum.md). Memory is O(d). A call that raises leaves the
    sum as it was.

    *Everything in it is private* (the integers, ``clipped``, its bytes): hand on a
    :class:`Release`, never the sum.

    ================================  =====================================================
    row                               what it adds
    ================================  =====================================================
    inside the region                 its own rounded coordinates
    outside                           the same, moved to the region's boundary
    with a NaN or an infinity         zero: it counts as the centre
    ================================  =====================================================

    Parameters
    ----------
    ellipsoid : Ellipsoid
    nonfinite : ``"center"`` or ``"raise"``
        ``"raise"`` **gives up the guarantee**: an error tells the world about one person's
        row. A release made from such a sum says that it is not private.
    threads : int, optional
        Threads of each :meth:`add`; default ``ELLIPSUM_THREADS``, else one.
    """

    def __init__(
        self, ellipsoid: Ellipsoid, *, nonfinite: str = "center", threads: int | None = None
    ) -> None:
        if not isinstance(ellipsoid, Ellipsoid):
            raise TypeError(f"ellipsoid must be an Ellipsoid, got {type(ellipsoid).__name__}")
        self._ellipsoid = ellipsoid
        self._nonfinite = _validate.one_of("nonfinite", nonfinite, _POLICIES)
        self._threads = thread_count(threads)
        self._region = ellipsoid.kernel_arguments()
        self._low = np.zeros(ellipsoid.d, np.uint64)  # two's complement, 128 bits
        self._high = np.zeros(ellipsoid.d, np.int64)
        self._count = self._clipped = self._nonfinite_rows = self._releases = 0
        self._lock = threading.Lock()

    # ---- in ------------------------------------------------------------------------

    def add(self, batch: Any) -> ExactSum:
        """Add rows: an array (n, d), or one row (d,); float32 and float64 without a copy.

        Parameters
        ----------
        batch : array_like (n, d), data units; any strides, memory-mapped or not

        Returns
        -------
        ExactSum
            Itself, so that calls chain.

        Raises
        ------
        TypeError, ValueError
            For a batch that is not numeric, ragged, empty or of another width. Never for a
            value in it, except under ``nonfinite="raise"``.
        """
        rows = _validate.rows("batch", batch, d=self._ellipsoid.d)
        if len(rows) == 0:
            raise ValueError("batch is empty: give at least one row, or skip the batch")
        low, high = np.zeros_like(self._low), np.zeros_like(self._high)
        clipped = nonfinite = 0
        for part in kernel_parts(rows):
            partial = np.zeros(self._ellipsoid.d, np.int64)
            counts = kernels().clip_sum(part, *self._region, partial, self._threads)
            add_partial(low, high, partial)
            clipped, nonfinite = clipped + counts[0], nonfinite + counts[1]
        if nonfinite and self._nonfinite == "raise":
            raise ValueError('batch has a row with a NaN or an infinity, and nonfinite="raise"')
        with self._lock:
            kernels().merge(self._low, self._high, low, high)
            self._count += len(rows)
            self._clipped += clipped
            self._nonfinite_rows += nonfinite
        return self

    def merge(self, other: ExactSum) -> ExactSum:
        """Add another sum over the same region; the other stays as it is.

        Parameters
        ----------
        other : ExactSum

        Returns
        -------
        ExactSum
            Itself.

        Raises
        ------
        TypeError, ValueError
            If ``other`` is no ExactSum, is this one, or has another region or policy.
        """
        if not isinstance(other, ExactSum):
            raise TypeError(f"other must be an ExactSum, got {type(other).__name__}")
        if other is self:
            raise ValueError("other is this sum itself: its rows would count twice")
        if other._ellipsoid != self._ellipsoid:
            raise ValueError("other has a different ellipsoid: sums merge only over the same one")
        if other._nonfinite != self._nonfinite:
            raise ValueError("other has a different nonfinite policy: use the same in every part")
        low, high, numbers = other._snapshot()
        with self._lock:
            kernels().merge(self._low, self._high, low, high)
            self._count += numbers[0]
            self._clipped += numbers[1]
            self._nonfinite_rows += numbers[2]
            self._releases = max(self._releases, numbers[3])
        return self

    # ---- what can be read ----------------------------------------------------------

    @property
    def ellipsoid(self) -> Ellipsoid:
        """The clip region: public."""
        return self._ellipsoid

    @property
    def count(self) -> int:
        """Rows added. Public for ``replace`` neighbours, private for ``add-remove``."""
        return self._count

    @property
    def clipped(self) -> int:
        """Rows that the clip changed, non-finite ones included. **Private.**"""
        return self._clipped

    @property
    def nonfinite(self) -> str:
        """The policy for rows with a NaN or an infinity: ``"center"`` or ``"raise"``."""
        return self._nonfinite

    def integers(self) -> NDArray[np.object_]:
        """Return the exact sums. **Private.**

        Returns
        -------
        array (d,) of Python ints, in units of ``ellipsoid.grid``, scaled coordinates
        """
        low, high, _ = self._snapshot()
        return as_integers(low, high)

    # ---- handed on -----------------------------------------------------------------

    def claim_release(self, *, again: bool) -> None:
        """Record that a release is made; refuse a second one that was not asked for."""
        with self._lock:
            if self._releases and not again:
                raise ValueError(
                    "this ExactSum was released before, and a second release spends its "
                    "budget again: pass spend_again=True if that is what you want"
                )
            self._releases += 1

    def to_bytes(self) -> bytes:
        """Return the sum and its region as bytes: versioned, checksummed, little-endian.

        The length depends on d and the shape alone. **Private**: they hold the exact sum.
        The checksum finds damage, not malice.
        """
        low, high, numbers = self._snapshot()
        state = self._ellipsoid.to_state()
        scale = state["scale"]
        header = _HEADER.pack(
            _MAGIC,
            _VERSION,
            _KINDS.index(state["kind"]),
            _POLICIES.index(self._nonfinite),
            scale.ndim,
            self._ellipsoid.d,
            *numbers,
            state["clip_norm"],
        )
        arrays = [state["center"], scale, state["limit"]]
        body = b"".join(a.astype("<f8").tobytes() for a in arrays)
        body = header + body + low.astype("<u8").tobytes() + high.astype("<i8").tobytes()
        return body + _checksum(body)

    @classmethod
    def from_bytes(cls, data: bytes, *, threads: int | None = None) -> ExactSum:
        """Rebuild a sum from :meth:`to_bytes`.

        Raises
        ------
        TypeError
            If ``data`` is not bytes-like.
        ValueError
            If ``data`` is truncated, altered, of another version, or says what no sum can be.
        """
        try:
            raw = bytes(memoryview(data))
        except TypeError:
            raise TypeError(f"data must be bytes, got {type(data).__name__}") from None
        return _parse(cls, raw, threads)

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return _unpickle, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"ExactSum(d={self._ellipsoid.d}, kind={self._ellipsoid.kind!r})"

    def _snapshot(self) -> tuple[NDArray[np.uint64], NDArray[np.int64], tuple[int, int, int, int]]:
        with self._lock:
            numbers = (self._count, self._clipped, self._nonfinite_rows, self._releases)
            return self._low.copy(), self._high.copy(), numbers


def add_partial(low: NDArray[np.uint64], high: NDArray[np.int64], partial: NDArray[Any]) -> None:
    """Add what a kernel summed (int64) to totals of 128 bits, in place."""
    kernels().merge(low, high, partial.view(np.uint64), partial >> 63)


def as_integers(low: NDArray[np.uint64], high: NDArray[np.int64]) -> NDArray[np.object_]:
    """Totals of 128 bits as Python integers."""
    total: NDArray[np.object_] = (high.astype(object) << 64) + low.astype(object)
    return total


def kernel_parts(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Parts that one kernel call takes: native float32 or float64, bounded rows."""
    ready = rows.dtype.type in (np.float32, np.float64) and rows.dtype.isnative
    ready = ready and rows.flags.aligned
    step = kernels().CLIP_ROWS_LIMIT if ready else max(1, _NUMBERS_PER_CONVERSION // rows.shape[1])
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        if not ready:
            with np.errstate(all="ignore"):  # a warning would tell of a value that overflows
                part = np.ascontiguousarray(part, dtype=np.float64)
        yield part


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest()


def _unpickle(data: bytes) -> ExactSum:
    return ExactSum.from_bytes(data)


def _parse(cls: type[ExactSum], raw: bytes, threads: int | None) -> ExactSum:
    def wrong(what: str) -> ValueError:
        return ValueError(f"data is no ExactSum: {what}; keep the bytes of to_bytes() whole")

    if len(raw) < _HEADER.size + _CHECKSUM_BYTES or raw[:8] != _MAGIC:
        raise wrong("it is too short or starts otherwise")
    header = _HEADER.unpack_from(raw)
    _, version, kind, policy, ndim, d, count, clipped, nonfinite, releases, clip_norm = header
    if version != _VERSION:
        raise wrong(f"its version is {version}, and this release reads {_VERSION}")
    if kind >= len(_KINDS) or policy >= len(_POLICIES) or ndim not in (1, 2) or d == 0:
        raise wrong("its header is altered")
    limits = d if _KINDS[kind] == "box" else 0
    sizes = [d, d**ndim, limits, d, d]
    if len(raw) != _HEADER.size + 8 * sum(sizes) + _CHECKSUM_BYTES:
        raise wrong("it is truncated or has been altered")
    if _checksum(raw[:-_CHECKSUM_BYTES]) != raw[-_CHECKSUM_BYTES:]:
        raise wrong("its checksum does not fit")
    arrays, at = [], _HEADER.size
    for size, dtype in zip(sizes, ("<f8", "<f8", "<f8", "<u8", "<i8"), strict=True):
        arrays.append(np.frombuffer(raw, dtype, size, at).astype(dtype[1:]))
        at += 8 * size
    center, scale, limit, low, high = arrays
    state = {
        "kind": _KINDS[kind],
        "center": center,
        "scale": scale.reshape((d,) * ndim),
        "limit": limit,
        "clip_norm": clip_norm,
    }
    total = cls(Ellipsoid.from_state(state), nonfinite=_POLICIES[policy], threads=threads)
    total._low, total._high = low, high
    total._count, total._clipped = count, clipped
    total._nonfinite_rows, total._releases = nonfinite, releases
    if nonfinite > clipped or clipped > count or _beyond(total):
        raise wrong("its counts and sums contradict each other")
    return total


def _beyond(total: ExactSum) -> bool:
    """Is a sum larger than ``count`` rows can make it?"""
    bound = total._count * (total._ellipsoid.row_bound() + 1)
    # 2^64 + low would round a small negative sum away: most fit 64 signed bits.
    signed = total._low.view(np.int64)
    wide = total._high.astype(np.float64) * 2.0**64 + total._low.astype(np.float64)
    value = np.where(total._high == signed >> 63, signed.astype(np.float64), wide)
    return bool((np.abs(value) > bound).any())
