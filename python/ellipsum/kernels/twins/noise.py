"""Twin of ``cpp/core/noise/noise.cpp``: the same key stream, and the same integers.

The arithmetic is its own (no fused multiply-add); what is the same is the definition, and the
error bound that leaves what it cannot decide to the exact resolver. Numba compiles the rounds of
the key stream and the polynomials: the rest is as fast in NumPy, which has nothing to compile.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from .gaussian_coefficients import ATANH, DENOMINATOR, NUMERATOR
from .jit import jit

BLOCK_WORDS = 8  # of 64 bits: a block of ChaCha20
CHUNK = 8192  # samples: what NumPy makes of them stays in a core's cache
Z_ERROR = 2.0**-46  # as in gaussian.hpp
MAGIC = 1.5 * 2.0**52
MAGIC_BITS = 0x4338000000000000
HALF_ROOT_BITS = 0x3FE6A09E667F3BCD
_CONSTANT = np.array([0x61707865, 0x3320646E, 0x79622D32, 0x6B206574], dtype=np.uint32)
_WORD = (1 << 64) - 1


@jit
def _rounds(x):
    """The twenty rounds of ChaCha on blocks that lie side by side, (16, n) of uint32, in place."""
    for r in range(20):
        turn = r % 2  # columns, then diagonals
        for i in range(4):
            a = x[i]
            b = x[4 + (i + turn) % 4]
            c = x[8 + (i + 2 * turn) % 4]
            d = x[12 + (i + 3 * turn) % 4]
            for k in range(a.size):
                p = np.uint32(a[k] + b[k])
                s = np.uint32(d[k] ^ p)
                s = np.uint32((s << 16) | (s >> 16))
                q = np.uint32(c[k] + s)
                t = np.uint32(b[k] ^ q)
                t = np.uint32((t << 12) | (t >> 20))
                p = np.uint32(p + t)
                s ^= p
                s = np.uint32((s << 8) | (s >> 24))
                q = np.uint32(q + s)
                t ^= q
                a[k] = p
                b[k] = (t << 7) | (t >> 25)
                c[k] = q
                d[k] = s


def _blocks(key, nonce, first, n):
    """Words of ``n`` blocks of the stream from block ``first`` on, (8 n,) of uint64."""
    start = np.empty((16, n), np.uint32)
    start[:4] = _CONSTANT[:, None]
    start[4:12] = key[:, None]
    number = np.uint64(first & _WORD) + np.arange(n, dtype=np.uint64)
    start[12], start[13] = number & np.uint64(0xFFFFFFFF), number >> np.uint64(32)
    start[14], start[15] = nonce & 0xFFFFFFFF, nonce >> 32
    x = start.copy()
    _rounds(x)
    x += start
    words = np.array(x.T, "<u4", order="C").view("<u8").ravel()  # a copy
    start[:] = x[:] = 0
    return words


@jit
def _quantiles(whole, f, z):
    """|z| of the tails 2^-(whole - log2((1 + f)/(1 - f))), by polynomials."""
    for i in range(z.size):
        ff = f[i] * f[i]
        y = ATANH[-1]
        for k in range(len(ATANH) - 2, -1, -1):
            y = y * ff + ATANH[k]
        t = np.sqrt(whole[i] - f[i] * y) - 1.0
        above, below = NUMERATOR[-1], DENOMINATOR[-1]
        for k in range(len(NUMERATOR) - 2, -1, -1):
            above = above * t + NUMERATOR[k]
        for k in range(len(DENOMINATOR) - 2, -1, -1):
            below = below * t + DENOMINATOR[k]
        z[i] = above / below


def _gaussian_of_words(words, sigma, out):
    """Samples to ``out``; returns where the error bound leaves two integers possible.

    No operation asks what a word is (claim noise-5): all samples take all of them.
    """
    u = words.view(np.int64)
    sign = u >> 63
    m = (u ^ sign).astype(np.float64)
    bits = m.copy().view(np.int64)
    exponent = (bits - HALF_ROOT_BITS) >> 52
    bits -= exponent << 52
    mantissa = bits.view(np.float64)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    z = np.empty(f.size)
    _quantiles(64.0 - exponent, f, z)
    v = sigma * (z * (-1.0 - 2.0 * sign))
    rounded = v + MAGIC
    out[:] = rounded.view(np.int64) - MAGIC_BITS
    off = np.abs(v - (rounded - MAGIC))
    with np.errstate(divide="ignore"):  # 2/m at m = 0 is infinite
        return ~(off + sigma * (2.0 / m) < 0.5 - sigma * Z_ERROR)


def _key_words(key):
    return np.frombuffer(key, dtype="<u4").astype(np.uint32)


def keystream(out, key, nonce, start):
    """Fill ``out`` (uint64) with words start, start + 1, ... of ChaCha20."""
    words = _key_words(key)
    _fill_words(out, words, nonce, start)
    words[:] = 0


def _fill_words(out, key, nonce, start):
    for i in range(0, out.size, CHUNK):
        first, skipped = divmod(start + i, BLOCK_WORDS)
        n = min(CHUNK, out.size - i)
        words = _blocks(key, nonce, first, -(-(skipped + n) // BLOCK_WORDS))
        out[i : i + n] = words[skipped : skipped + n]
        words[:] = 0


def _fill(out, sigma, key, start, begin, end):
    """Samples begin to end; returns the indices of those that 64 bits do not decide."""
    words = np.empty(min(CHUNK, end - begin), np.uint64)
    found = []
    for i in range(begin, end, CHUNK):
        n = min(CHUNK, end - i)
        _fill_words(words[:n], key, 0, start + i)
        own = sigma if sigma.size == 1 else sigma[(i + np.arange(n)) % sigma.size]
        doubtful = _gaussian_of_words(words[:n], own, out[i : i + n])
        found.append(np.flatnonzero(doubtful) + i)
    words[:] = 0
    return found


def rounded_gaussian(out, sigma, key, start, threads):
    """Fill ``out`` (int64), sigma repeating; return the indices left for the exact resolver."""
    words = _key_words(key)
    chunks = -(-out.size // CHUNK)
    count = max(1, min(threads, chunks))
    edges = [min(out.size, chunks * t // count * CHUNK) for t in range(count + 1)]
    if count == 1:
        parts = [_fill(out, sigma, words, start, 0, out.size)]
    else:
        with ThreadPoolExecutor(count) as pool:
            jobs = [pool.submit(_fill, out, sigma, words, start, *ends) for ends in pairwise(edges)]
            parts = [job.result() for job in jobs]
    words[:] = 0
    return np.concatenate([np.empty(0, np.int64), *(found for part in parts for found in part)])


def rounded_gaussian_of_words(out, sigma, first, second):
    """The same from given words of nonces 0 and 1: here ``second`` is the resolver's concern."""
    own = sigma[np.arange(out.size) % sigma.size]
    return np.flatnonzero(_gaussian_of_words(first, own, out))
