"""Twin of ``cpp/core/noise/noise.cpp``: the same key stream, and the same integers.

The arithmetic is its own (no fused multiply-add, one sample at a time); what is the same is the
definition, and the error bound that leaves what it cannot decide to the exact resolver.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numba import njit, uint32, uint64

from .gaussian_coefficients import ATANH, DENOMINATOR, NUMERATOR
from .jit import inner, jit

BLOCK_WORDS = 8  # of 64 bits: a block of ChaCha20
CHUNK = 4096  # samples
Z_ERROR = 2.0**-46  # as in gaussian.hpp
MAGIC = 1.5 * 2.0**52
MAGIC_BITS = 0x4338000000000000
HALF_ROOT_BITS = 0x3FE6A09E667F3BCD
_CONSTANT = np.array([0x61707865, 0x3320646E, 0x79622D32, 0x6B206574], dtype=np.uint32)


@njit(inline="always")
def _rotate(a, k):
    return (a << uint32(k)) | (a >> uint32(32 - k))


@njit(inline="always")
def _quarter_round(x, a, b, c, d):
    x[a] += x[b]
    x[d] = _rotate(x[d] ^ x[a], 16)
    x[c] += x[d]
    x[b] = _rotate(x[b] ^ x[c], 12)
    x[a] += x[b]
    x[d] = _rotate(x[d] ^ x[a], 8)
    x[c] += x[d]
    x[b] = _rotate(x[b] ^ x[c], 7)


@inner
def _block(start, x):
    for i in range(16):
        x[i] = start[i]
    for _ in range(10):
        for i in range(4):
            _quarter_round(x, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            _quarter_round(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    for i in range(16):
        x[i] += start[i]


@jit
def _keystream(out, key, nonce, start):
    """Words start, start + 1, ... of the stream (nonce and start are uint64)."""
    state = np.empty(16, np.uint32)
    x = np.empty(16, np.uint32)
    for i in range(4):
        state[i] = _CONSTANT[i]
    for i in range(8):
        state[4 + i] = key[i]
    state[14] = uint32(nonce & uint64(0xFFFFFFFF))
    state[15] = uint32(nonce >> uint64(32))
    place = start % uint64(BLOCK_WORDS)
    block = start // uint64(BLOCK_WORDS)
    i = 0
    while i < out.size:
        state[12] = uint32(block & uint64(0xFFFFFFFF))
        state[13] = uint32(block >> uint64(32))
        _block(state, x)
        while place < BLOCK_WORDS and i < out.size:
            low = uint64(x[2 * place])
            out[i] = low | (uint64(x[2 * place + 1]) << uint64(32))
            place += uint64(1)
            i += 1
        place = uint64(0)
        block += uint64(1)
    state[:] = uint32(0)
    x[:] = uint32(0)


@njit(inline="always")
def _horner(c, x):
    y = c[len(c) - 1]
    for i in range(len(c) - 2, -1, -1):
        y = y * x + c[i]
    return y


@jit  # 2/m at m = 0 is infinite
def _gaussian_of_words(words, sigma, phase, out, doubtful):
    """Samples and, for each, whether the error bound leaves two integers possible."""
    d = sigma.size
    scratch = np.empty(1)
    bits = scratch.view(np.int64)
    for i in range(words.size):
        u = np.int64(words[i])
        m = np.float64(u ^ (u >> 63))
        scratch[0] = m
        exponent = (bits[0] - HALF_ROOT_BITS) >> 52
        bits[0] -= exponent << 52
        f = (scratch[0] - 1.0) / (scratch[0] + 1.0)
        tail_bits = (64.0 - np.float64(exponent)) - f * _horner(ATANH, f * f)
        t = np.sqrt(tail_bits) - 1.0
        z = _horner(NUMERATOR, t) / _horner(DENOMINATOR, t)
        s = sigma[phase]
        phase += 1
        if phase == d:
            phase = 0
        v = s * (z if u < 0 else -z)
        scratch[0] = v + MAGIC
        out[i] = bits[0] - MAGIC_BITS
        off = abs(v - (scratch[0] - MAGIC))
        doubtful[i] = not (off + s * (2.0 / m) < 0.5 - s * Z_ERROR)


def _key_words(key):
    return np.frombuffer(key, dtype="<u4").astype(np.uint32)


def keystream(out, key, nonce, start):
    """Fill ``out`` (uint64) with words start, start + 1, ... of ChaCha20."""
    words = _key_words(key)
    _keystream(out, words, np.uint64(nonce), np.uint64(start))
    words[:] = 0


def _fill(out, sigma, key, start, begin, end):
    """Samples begin to end; returns the indices of those that 64 bits do not decide."""
    words = np.empty(CHUNK, np.uint64)
    doubtful = np.empty(CHUNK, np.bool_)
    found = []
    for i in range(begin, end, CHUNK):
        n = min(CHUNK, end - i)
        _keystream(words[:n], key, np.uint64(0), np.uint64(start + i))
        _gaussian_of_words(words[:n], sigma, i % sigma.size, out[i : i + n], doubtful[:n])
        found.append(np.flatnonzero(doubtful[:n]) + i)
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
    doubtful = np.empty(out.size, np.bool_)
    _gaussian_of_words(first, sigma, 0, out, doubtful)
    return np.flatnonzero(doubtful)
