"""Gaussian noise from a cryptographic key stream, correctly rounded to a grid.

Sample i of a fill is the integer nearest to ``sigma * z``, where ``Phi(z) = U`` and the binary
expansion of U in (0, 1) is word i of the ChaCha20 stream of nonce 0 (64 bits), then word i of the
stream of nonce 1, and so on. It is a rounded *real* number: the fill depends on key and sigma
alone, on no instruction set, thread count, backend or mathematical library.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate
from ._validate import whole
from .kernels import exact_gaussian as _exact_gaussian
from .kernels.backend import kernels, thread_count
from .noise_keys import KEY_BYTES

__all__ = ["gaussian", "keystream", "noisy_count", "rounded_gaussian"]

SIGMA_MAX = 2.0**58  # times |z| < 31.2 (_exact_gaussian.py) fits int64
#: Largest scale / grid of `gaussian`: with |z| < 2^5 a double holds every multiple exactly.
_FINEST = 2.0**48
#: Steps of a noisy count in one row: fine beside any noise, so that rounding does not show in it.
_COUNT_STEPS = 1 << 20
GRID_BITS = 26  # grid of `gaussian`: scale / grid lies in [2^26, 2^27)
WORD_COUNT = 1 << 64  # words and nonces of a key


def rounded_gaussian(
    n: int, sigma: ArrayLike, *, key: Any = None, threads: int | None = None
) -> NDArray[np.int64]:
    """Draw ``n`` samples of N(0, sigma²), each rounded to the nearest integer.

    **Guarantees.** Sample i is the nearest integer to sigma·Φ⁻¹(Uᵢ), as real numbers (see the
    module). Adding it to an integer T gives round(T + Z) for a real Gaussian Z: post-processing
    of the Gaussian mechanism (claim noise-1). Which time and which memory access depend on the
    noise is in docs/guarantees/noise.md (claim noise-5).

    Parameters
    ----------
    n : int
        How many samples.
    sigma : float or array_like of shape (d,)
        Standard deviation in integer steps, above 0 and at most 2⁵⁸; taken as the exact binary
        fraction that it is. With an array, sample i has ``sigma[i % d]``.
    key : bytes-like of 32 bytes, optional
        Key of the stream. By default a fresh one from the operating system (claim noise-6); a
        key of your own makes the noise reproducible, and no longer private to those who know it.
        Give each draw its own: two draws of one key share their noise.
    threads : int, optional
        Threads to use; the samples are the same for any number. Default: the environment
        variable ``ELLIPSUM_THREADS``, else 1.

    Returns
    -------
    ndarray of int64, shape (n,)

    Raises
    ------
    ValueError, TypeError
        For an argument outside its range; the message names it.
    """
    out = np.empty(whole("n", n), dtype=np.int64)
    _fill(out, _deviations("sigma", sigma), key, threads)
    return out


def gaussian(
    size: int | tuple[int, ...],
    scale: ArrayLike,
    *,
    key: Any = None,
    grid: ArrayLike | None = None,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """Draw Gaussian noise as doubles on a grid of a power of two.

    **Guarantees.** An entry is grid·round(z·scale/grid) with z = Φ⁻¹(U), exactly: a real
    Gaussian rounded to the nearest multiple of the grid, so its low bits tell nothing more
    (Mironov 2012 shows what those of a naive sampler tell). Adding it to a value that is itself
    a multiple of the grid keeps that true; adding it to any other double does not.

    Parameters
    ----------
    size : int or tuple of int
        Shape of the result.
    scale : float or array_like of shape (size[-1],)
        Standard deviation, in the unit of the result; an array has one per column.
    key, threads
        As for `rounded_gaussian`.
    grid : float or array_like of shape (size[-1],), optional
        Powers of two. Default: for each scale the largest with scale/grid ≥ 2²⁶.

    Returns
    -------
    ndarray of float64, shape ``size``
    """
    shape = tuple(whole("size", k) for k in (size if isinstance(size, tuple) else (size,)))
    scales = _columns("scale", scale, shape)
    grids = _default_grid(scales) if grid is None else _columns("grid", grid, shape)
    if (np.frexp(grids)[0] != 0.5).any():
        raise ValueError("grid must be a power of two")
    with np.errstate(over="ignore"):
        sigma = np.ascontiguousarray(scales / grids)
    if (sigma > _FINEST).any():
        raise ValueError("grid is too fine: scale / grid must be at most 2**48")
    out = np.empty(math.prod(shape), dtype=np.int64)
    _fill(out, _deviations("scale/grid", sigma), key, threads)
    return np.multiply(out.reshape(shape), grids if grids.size > 1 else grids[0])


def noisy_count(count: int, sigma: float, *, key: Any) -> float:
    """A private number of rows with Gaussian noise: a multiple of 2⁻²⁰ of a row.

    **Guarantees.** The Gaussian mechanism on ``count``, rounded to its grid: a multiple of the
    steps that a row is divided into plus a correctly rounded integer.

    Parameters
    ----------
    count : int
        Rows. Private.
    sigma : float
        Standard deviation of the noise, in rows.
    key : 32 bytes, of this draw alone
    """
    return float(noisy_counts(np.array([count]), [sigma], key=key)[0])


def noisy_counts(counts: NDArray[Any], sigma: Any, *, key: Any) -> NDArray[np.float64]:
    """:func:`noisy_count` of several numbers, with a noise level for each."""
    steps = np.asarray(sigma, dtype=np.float64) * _COUNT_STEPS
    drawn = rounded_gaussian(len(counts), steps, key=key).tolist()
    exact = zip(counts.tolist(), drawn, strict=True)
    return np.array([(count * _COUNT_STEPS + noise) / _COUNT_STEPS for count, noise in exact])


def keystream(n: int, *, key: Any, nonce: int = 0) -> NDArray[np.uint64]:
    """Return the first ``n`` 64-bit little-endian words of a ChaCha20 key stream.

    Parameters
    ----------
    n : int
        How many words.
    key : bytes-like of 32 bytes
    nonce : int, optional
        The 64-bit nonce; the 64-bit block counter starts at 0.

    Returns
    -------
    ndarray of uint64, shape (n,)

    Notes
    -----
    20 rounds, D. J. Bernstein's original layout (ChaCha, a variant of Salsa20, 2008).
    """
    out = np.empty(whole("n", n), dtype=np.uint64)
    nonce = whole("nonce", nonce, most=WORD_COUNT - 1)
    own = _copied(key)
    try:
        kernels().keystream(out, own, nonce, 0)
    finally:
        _wipe(own)
    return out


def fill_rounded(
    out: NDArray[np.int64], sigma: NDArray[np.float64], key: Any, start: int, threads: int
) -> None:
    """:func:`rounded_gaussian` into ``out``, from word ``start`` of the key's streams on."""
    _fill(out, sigma, key, threads, start)


def _fill(
    out: NDArray[np.int64],
    sigma: NDArray[np.float64],
    key: Any,
    threads: int | None,
    start: int = 0,
) -> None:
    """Fill ``out``: sample i from words start + i and sigma[i % d]."""
    workers = thread_count(threads)
    own = _copied(_fresh_key() if key is None else key)
    try:
        undecided = kernels().rounded_gaussian(out, sigma, own, start, workers)
        for i in undecided.tolist():
            out[i] = _resolve(own, start + i, float(sigma[i % sigma.size]))
    finally:
        _wipe(own)


def _resolve(key: bytearray, index: int, sigma: float) -> int:
    word = np.empty(1, dtype=np.uint64)

    def draw(nonce: int) -> int:
        kernels().keystream(word, key, nonce, index)
        return int(word[0])

    return _exact_gaussian.nearest(sigma, draw)


def _fresh_key() -> bytes:
    return os.urandom(KEY_BYTES)


def _copied(key: Any) -> bytearray:
    """Our own copy of the key, to be wiped afterwards (the caller's object is the caller's)."""
    try:
        view = memoryview(key)
    except TypeError:
        kind = type(key).__name__
        raise TypeError(f"key must be {KEY_BYTES} bytes, got an object of type {kind}") from None
    if view.nbytes != KEY_BYTES:
        raise ValueError(f"key must have {KEY_BYTES} bytes, got {view.nbytes}")
    return bytearray(view.cast("B") if view.c_contiguous else view.tobytes())


def _wipe(own: bytearray) -> None:
    own[:] = bytes(KEY_BYTES)


def _deviations(name: str, value: ArrayLike) -> NDArray[np.float64]:
    if type(value) is float and 0 < value <= SIGMA_MAX:
        return np.array([value])
    sigma = _positive_vector(name, value)
    if sigma.max() > SIGMA_MAX:
        raise ValueError(
            f"{name} must be at most 2**58, or samples could leave int64; got {sigma.max():g}"
        )
    return sigma


def _positive_vector(name: str, value: ArrayLike) -> NDArray[np.float64]:
    if np.ndim(value) == 0:
        return np.array([_validate.positive(name, value)])
    return _validate.vector(name, value, above=0.0)


def _columns(name: str, value: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    columns = _positive_vector(name, value)
    if np.ndim(value) and (not shape or columns.size != shape[-1]):
        raise ValueError(
            f"{name} must be a number or have one entry for each column of size {shape}, "
            f"got {columns.size} entries"
        )
    return columns


def _default_grid(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    grids = np.ldexp(1.0, np.frexp(scales)[1] - (GRID_BITS + 1))
    if (grids < np.finfo(np.float64).tiny).any():
        raise ValueError("scale must be above 2**-990 for the default grid: give a grid")
    return np.asarray(grids, dtype=np.float64)
