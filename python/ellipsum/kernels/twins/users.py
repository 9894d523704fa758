"""Twin of ``cpp/core/users``: exact sums in limbs of 32 bits, rounded once; and hashes of rows."""

from __future__ import annotations

import math

import numpy as np

from .jit import jit
from .keys import mixed

_LIMBS = 68
RUN_STATE_WORDS = _LIMBS + 4
_RUN_LIMIT = 1 << 29
_MASK = 0xFFFFFFFF
_LARGEST = np.finfo(np.float64).max
# Indices of the state behind its limbs; `_BOTTOM` counts from the top, so that zeros are empty.
_BOTTOM, _HIGHEST, _COUNT, _LAST = _LIMBS, _LIMBS + 1, _LIMBS + 2, _LIMBS + 3


@jit
def _add(s, bits):
    exponent = (bits >> 52) & 0x7FF
    if exponent == 0x7FF or s[_COUNT] >= _RUN_LIMIT:
        s[_COUNT] += exponent != 0x7FF
        return
    m = bits & ((1 << 52) - 1)
    position = 0
    if exponent:
        m |= 1 << 52
        position = exponent - 1
    limb = position >> 5
    shift = position & 31
    low = (m & _MASK) << shift
    high = (m >> 32) << shift
    sign = -1 if bits < 0 else 1
    s[limb] += sign * (low & _MASK)
    s[limb + 1] += sign * (((low >> 32) & _MASK) + (high & _MASK))
    s[limb + 2] += sign * (high >> 32)
    s[_BOTTOM] = max(s[_BOTTOM], _LIMBS - limb)
    s[_HIGHEST] = max(s[_HIGHEST], limb + 5)
    s[_COUNT] += 1
    s[_LAST] = bits


@jit
def _carried(s, carry, flip):
    """Carries done, from ``carry`` on, of the limbs or of their complements; the last carry."""
    for i in range(_LIMBS - s[_BOTTOM], s[_HIGHEST]):
        v = ((~s[i] & _MASK) if flip else s[i]) + carry
        carry = v >> 32
        s[i] = v & _MASK
    return carry


@jit
def _divide_by(s, k):
    rest = 0
    for i in range(s[_HIGHEST] - 1, -1, -1):
        if i < _LIMBS - s[_BOTTOM] and rest == 0:
            break
        v = (rest << 32) | s[i]
        s[i] = v // k
        rest = v % k
    return rest


@jit
def _bits_from(s, at, many):
    m = 0
    for i in range(at + many - 1, at - 1, -1):
        m = (m << 1) | ((s[i >> 5] >> (i & 31)) & 1)
    return m


@jit
def _nearest(s, rest, k):
    top = s[_HIGHEST] - 1
    while top >= 0 and s[top] == 0:
        top -= 1
    if top < 0:
        return 5e-324 if 2 * rest > k else 0.0
    length = 32 * top
    v = s[top]
    while v:
        length += 1
        v >>= 1
    if length <= 53:
        m = (s[1] << 32) | s[0]
        m += 2 * rest > k or (2 * rest == k and m & 1 == 1)
        return math.ldexp(float(m), -1074)
    shift = length - 53
    limb = (shift - 1) >> 5
    half = 1 << ((shift - 1) & 31)
    below = rest != 0 or (s[limb] & (half - 1)) != 0
    for i in range(limb):
        below |= s[i] != 0
    m = _bits_from(s, shift, 53)
    m += (s[limb] & half) != 0 and (below or m & 1 == 1)
    if shift > 2045 or (shift == 2045 and m == 1 << 53):
        return _LARGEST
    return math.ldexp(float(m), shift - 1074)


@jit
def _finish(s, divide, value):
    """Put the run's number into ``value`` (one entry), and clear the state."""
    k = s[_COUNT]
    value[0] = np.nan
    if k == 1:
        value.view(np.int64)[0] = s[_LAST]
    elif 1 < k <= _RUN_LIMIT:
        negative = _carried(s, 0, False) != 0
        if negative:
            _carried(s, 1, True)
        divisor = k if divide else 1
        nearest = _nearest(s, _divide_by(s, divisor), divisor)
        value[0] = -nearest if negative else nearest
    s[:] = 0


@jit
def _run_means(rows, ends, state, out, divide):
    one = np.empty(1)
    bits = one.view(np.int64)
    i = 0
    for r in range(ends.size + 1):
        end = ends[r] if r < ends.size else len(rows)
        while i < end:
            for j in range(rows.shape[1]):
                one[0] = rows[i, j]
                _add(state[j], bits[0])
            i += 1
        if r < ends.size:
            for j in range(rows.shape[1]):
                _finish(state[j], divide, one)
                out[r, j] = one[0]


def run_means(rows, ends, state, out, divide):
    """Write to ``out`` (runs, d) the correctly rounded mean, or sum, of each run of rows."""
    d = rows.shape[1]
    _run_means(rows, ends, state.reshape(d, RUN_STATE_WORDS), out.reshape(ends.size, d), divide)


@jit
def row_ranks(rows, words, which, ranks):
    """Write to ``ranks`` (m,) a hash of each of the rows (n, d) at ``which`` (m,), and of its
    ``words`` (n, 2)."""
    one = np.empty(1)
    bits = one.view(np.uint64)
    for k in range(which.size):
        i = which[k]
        total = np.uint64(0)
        for j in range(rows.shape[1]):
            one[0] = rows[i, j] + 0.0  # -0 is 0
            if np.isnan(one[0]):
                one[0] = np.nan
            total += mixed(bits[0] ^ mixed(np.uint64(j)))
        ranks[k] = mixed(mixed(words[i, 0] ^ mixed(words[i, 1])) ^ total)
