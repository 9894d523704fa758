"""Twin of ``cpp/core/keys``: a table of distinct strings of bytes, and 128 bits of values."""

from __future__ import annotations

import hashlib

import numpy as np

from .jit import jit

_PLACE = np.uint64(0xFFFFFFFF)


@jit
def mixed(x):
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@jit
def _word_at(data, at, size):
    w = np.uint64(0)
    for k in range(size):
        w |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return w


@jit
def _hashed(data, start, end, seed):
    h = seed + np.uint64(end - start) * np.uint64(0xD1B54A32D192ED03)
    i = start
    while i + 8 < end:
        h = mixed(h ^ _word_at(data, i, 8))
        i += 8
    last = max(end - 8, start)
    return mixed(h ^ _word_at(data, last, end - last))


@jit
def _same(data, start, size, arena, at):
    for k in range(size):
        if data[start + k] != arena[at + k]:
            return False
    return True


@jit
def _slot_of(data, start, size, h, slots, arena, known):
    mask = np.uint64(slots.size - 1)
    at = h & mask
    while slots[at] != 0:
        if (slots[at] ^ h) <= _PLACE:
            place = np.int64(slots[at] & _PLACE) - 1
            if known[place + 1] - known[place] == size and _same(
                data, start, size, arena, known[place]
            ):
                return at
        at = (at + np.uint64(1)) & mask
    return at


def find_strings(data, starts, ends, slots, arena, known, state, cache, add, places):
    """Write the place of each string in a table, -1 for none; return how many had room.

    The core's cache changes no place: it is left alone.
    """
    return _find_strings(data, starts, ends, slots, arena, known, state, add, places)


def find_integers(words, is_signed, slots, arena, known, state, cache, add, places):
    """The same of integers, whose strings are their digests."""
    digests = np.empty((words.size, 2), np.uint64)
    _integer_digests(words, is_signed, digests)
    starts = np.arange(0, digests.nbytes, 16)
    data = digests.reshape(-1).view(np.uint8)
    return _find_strings(data, starts, starts + 16, slots, arena, known, state, add, places)


def find_fixed(units, width, slots, arena, known, state, cache, add, places):
    """The same of strings of so many bytes, or code points, which zeros fill."""
    starts, ends = np.arange(0, units.size, width), np.empty(units.size // width, np.int64)
    if units.itemsize == 1:
        data = units
        _trimmed_ends(data, width, ends)
    else:
        data = np.empty(units.nbytes, np.uint8)
        _wide_texts(units, width, data, starts, ends)
    return _find_strings(data, starts, ends, slots, arena, known, state, add, places)


@jit
def _find_strings(data, starts, ends, slots, arena, known, state, add, places):
    for i in range(starts.size):
        places[i] = -1
        start, end = starts[i], ends[i]
        if start < 0 or end < start or end > data.size:
            continue
        size = end - start
        h = _hashed(data, start, end, state[1])
        at = _slot_of(data, start, size, h, slots, arena, known)
        if slots[at] == 0:
            if not add:
                continue
            count = np.int64(state[0])
            full = 2 * (count + 1) > slots.size or count >= known.size - 1
            if full or size > arena.size - known[count]:
                return i
            arena[known[count] : known[count] + size] = data[start:end]
            known[count + 1] = known[count] + size
            slots[at] = (h & ~_PLACE) | np.uint64(count + 1)
            state[0] = np.uint64(count + 1)
        places[i] = np.int64(slots[at] & _PLACE) - 1
    return starts.size


@jit
def seat_strings(slots, arena, known, state):
    """Put all strings of a table into its slots, which are zeros."""
    mask = np.uint64(slots.size - 1)
    for i in range(np.int64(state[0])):
        h = _hashed(arena, known[i], known[i + 1], state[1])
        at = h & mask
        while slots[at] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = (h & ~_PLACE) | np.uint64(i + 1)


def string_digests(data, starts, ends, person, out):
    """Write 128 bits of BLAKE2b of each string, by the standard library."""
    raw = data.data
    words = out.reshape(-1, 2)
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        words[i] = 0
        if 0 <= start <= end <= len(raw):
            digest = hashlib.blake2b(raw[start:end], digest_size=16, person=person).digest()
            words[i] = np.frombuffer(digest, "<u8")
            words[i, 1] |= np.uint64(1)


@jit
def _integer_digests(words, is_signed, out):
    minus, plus = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
    for i in range(words.size):
        out[i, 0] = mixed(words[i])
        sign = minus if is_signed and words[i] >> np.uint64(63) else plus
        out[i, 1] = mixed(out[i, 0] ^ sign) | np.uint64(1)


@jit
def _utf8(words, size, to, end):
    """Where the code points end that are written from ``end`` on; -1 for what is none."""
    for k in range(size):
        c = words[k]
        if c > 0x10FFFF:
            return -1
        if c < 0x80:
            to[end] = c
            end += 1
            continue
        more = 1 if c < 0x800 else 2 if c < 0x10000 else 3
        to[end] = ((0xF0 << (3 - more)) & 0xFF) | (c >> (6 * more))
        for m in range(more):
            to[end + 1 + m] = 0x80 | ((c >> (6 * (more - 1 - m))) & 0x3F)
        end += 1 + more
    return end


@jit
def _wide_texts(words, width, data, starts, ends):
    """Write texts of so many code points as UTF-8, without the zeros at their ends."""
    to = 0
    for i in range(starts.size):
        text = words[i * width : (i + 1) * width]
        size = width
        while size > 0 and text[size - 1] == 0:
            size -= 1
        starts[i] = to
        ends[i] = _utf8(text, size, data, to)
        if ends[i] >= 0:
            to = ends[i]


@jit
def _trimmed_ends(data, width, ends):
    """Write where stretches of so many bytes end, without the zeros at their ends."""
    for i in range(ends.size):
        end = (i + 1) * width
        while end > i * width and data[end - 1] == 0:
            end -= 1
        ends[i] = end


def python_texts(cells, starts, ends):
    """UTF-8 of Python's texts, with their starts and ends, -1 for None; None with another cell."""
    listed = cells.tolist() if isinstance(cells, np.ndarray) else cells
    if not all(cell is None or isinstance(cell, str) for cell in listed):
        return None
    encode = str.encode
    texts = [b"" if c is None else encode(c, "utf-8", "surrogatepass") for c in listed]
    ends[:] = np.cumsum([len(text) for text in texts])
    starts[0] = 0
    starts[1:] = ends[:-1]
    ends[[cell is None for cell in listed]] = -1
    return np.frombuffer(b"".join(texts), np.uint8)


def integer_digests(words, is_signed, out):
    """Write 128 bits of each integer: one to one."""
    _integer_digests(words, is_signed, out.reshape(-1, 2))
