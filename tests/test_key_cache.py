"""Short keys are found in a cache, and text is read where it lies: what they say is what the table
and Python say without."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ellipsum.groups.keys import KeyBook
from ellipsum.kernels.backend import use_kernels
from ellipsum.rows import cells
from ellipsum.rows.cells import FixedWidth
from ellipsum.rows.distinct import FixedStrings, Numbers, Strings, StringTable, joined, python_texts
from ellipsum.rows.labels import labels_of
from regions import KERNEL_SETS
from test_group_keys import unmixed

#: Code points where the length of UTF-8 changes, surrogates, the last one.
ODD = [0x41, 0x7F, 0x80, 0xFF, 0x100, 0x7FF, 0x800, 0xD800, 0xDFFF, 0xFFFF, 0x10000, 0x10FFFF]


def one_set(strings: Strings | Numbers, *, sets: int) -> list[int]:
    """The places of strings in a table that has so many sets of its cache."""
    table = StringTable()
    table._cache = table._cache[: 8 * sets]
    got = table.find(strings, add=True).tolist()
    return got + table.find(strings, add=False).tolist()


def near_strings() -> list[bytes]:
    """Those of every length up to 18 that differ in one byte, or in their length alone."""
    base = bytes(range(1, 19))
    out = [base[:size] for size in range(19)] + [b"\0" * size for size in range(19)]
    for size in range(1, 19):
        for at in range(size):
            out.append(base[:at] + b"\xff" + base[at + 1 : size])
    return out


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
@pytest.mark.parametrize("sets", [0, 1, 16])
def test_with_a_cache_of_one_set_strings_have_the_places_of_a_dictionary(name, sets):
    """With one set all of them push one another out of it."""
    rng = np.random.default_rng(sets)
    values = near_strings()
    drawn = values + [values[i] for i in rng.integers(0, len(values), 4000)]
    model: dict[bytes, int] = {}
    expected = [model.setdefault(value, len(model)) for value in drawn]
    with use_kernels(name):
        assert one_set(joined(drawn), sets=sets) == 2 * expected


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
@pytest.mark.parametrize("sets", [0, 1, 16])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_have_the_places_of_their_digests(name, sets, dtype):
    rng = np.random.default_rng(1)
    bits = np.concatenate([np.arange(64, dtype=np.uint64), 2 ** np.arange(64, dtype=np.uint64)])
    words = np.concatenate([bits, ~bits, rng.choice(bits, 3000)]).view(dtype)
    model: dict[int, int] = {}
    expected = [model.setdefault(value, len(model)) for value in words.tolist()]
    with use_kernels(name):
        assert one_set(Numbers(words), sets=sets) == 2 * expected
        table = StringTable()  # signed and unsigned, by numbers and by digests, in one table
        both = [Numbers(words), Numbers(words.view(np.uint64))]
        places = [table.find(part, add=True).tolist() for part in both]
        for part, wanted in zip(both, places, strict=True):
            digests = part.digests().tobytes()
            cut = joined([digests[k : k + 16] for k in range(0, len(digests), 16)])
            assert table.find(cut, add=False).tolist() == wanted
        negative = words.astype(object) < 0
        assert (np.array(places[0]) != places[1]).tolist() == negative.tolist()


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_a_cache_is_not_asked_for_what_it_does_not_hold(name):
    """A string that is not added is none, however often it is asked for."""
    with use_kernels(name):
        table = StringTable()
        asked = joined([b"a", b"b", b"a", b"x" * 20] * 20)
        assert table.find(asked, add=False).tolist() == [-1] * 80
        table.find(joined([b"b"]), add=True)
        assert table.find(asked, add=False).tolist() == [-1, 0, -1, -1] * 20


def drawn_texts(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    letters = [*map(chr, ODD), "a", "b"][:: 1 if seed % 2 else -1]
    few = letters[: rng.integers(1, len(letters) + 1)]
    return ["".join(rng.choice(few, rng.integers(0, 20))) for _ in range(60)]


def as_utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def kept(column: np.ndarray, sets: int = 16) -> list[bytes]:
    """NumPy's text or bytes, as a table keeps them."""
    table = StringTable()
    table._cache = table._cache[: 8 * sets]
    for _ in range(2):  # the second time out of the cache
        places = np.empty(len(column), np.int64)
        for _, at, strings in FixedWidth(column).parts():
            table.find(strings, places[at], add=True)
    known = table.known().to_list()
    assert len(set(known)) == len(known)
    return [known[place] for place in places.tolist()]


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_text_is_the_utf_8_that_python_makes_of_it(name):
    with use_kernels(name):
        for seed in range(30):
            texts = drawn_texts(seed)
            wanted = [as_utf8(text) for text in texts]
            column = np.empty(len(texts), object)
            column[:] = texts
            for held in (texts, tuple(texts), column):
                found = python_texts(held)
                assert found is not None and found.to_list() == wanted
            wide = np.array([text.rstrip("\0") for text in texts])
            for fixed in (wide, wide.astype(wide.dtype.newbyteorder(">")), np.repeat(wide, 2)[::2]):
                assert kept(fixed) == wanted


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_nulls_and_what_is_no_text(name):
    with use_kernels(name):
        found = python_texts(["a", None, "", "\xe9"])
        assert found is not None
        assert found.ends.tolist()[1] == -1
        assert found.take(np.array([0, 2, 3])).to_list() == [b"a", b"", "\xe9".encode()]
        for odd in (1, b"a", np.nan, object()):
            assert python_texts(["a", None, odd]) is None
        beyond = np.array([0x41, 0x110000, 0xFFFFFFFF, 0x42], np.uint32).view("U1")
        assert labels_of("k", beyond).rows().any(1).tolist() == [True, False, False, True]


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
@pytest.mark.parametrize("width", [1, 3, 7, 8, 9, 15, 16, 17, 30, 32, 33])
@pytest.mark.parametrize("sets", [0, 1, 16])
def test_bytes_end_before_the_zeros_that_fill_them(name, width, sets):
    rng = np.random.default_rng(width)
    raw = rng.choice([0, 0, 1, 255], (500, width)).astype(np.uint8)
    raw[:width] = np.tri(width, dtype=np.uint8)
    raw[-1] = 0
    column = raw.reshape(-1).view(f"S{width}")
    with use_kernels(name):
        for few in (column, column[-20:], column[:1], column[:0]):
            assert kept(few, sets) == few.tolist()


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
@pytest.mark.parametrize("width", [1, 3, 4, 7, 8, 9, 15, 16, 17, 30, 32, 33])
@pytest.mark.parametrize("sets", [0, 1, 16])
def test_text_of_any_width_ends_before_the_zeros_that_fill_it(name, width, sets):
    """Of ASCII, read sixteen characters at a time, and where one is another: at any place, and
    where the data end with the text."""
    rng = np.random.default_rng(width)
    raw = rng.choice([0, 0, 1, 0x7F], (500, width)).astype(np.uint32)
    raw[:width] = np.tri(width, dtype=np.uint32)
    raw[width : 2 * width] = 0x61 + np.eye(width, dtype=np.uint32) * np.uint32(0x1F)  # one 0x80
    raw[-9:] = 0x62
    raw[-3:, -1] = [0x63, 0xFF, 0x10FFFF]
    column = raw.reshape(-1).view(f"U{width}")
    with use_kernels(name):
        for few in (column, column[:-2], column[-20:], column[-1:], column[:0]):
            assert kept(few, sets) == [as_utf8(text) for text in few.tolist()]


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
@pytest.mark.parametrize("width", [1, 4, 16, 17, 33])
def test_what_is_no_character_has_no_place_at_any_width(name, width):
    raw = np.full((2 * width, width), 0x61, np.uint32)
    raw[np.arange(width), np.arange(width)] = 0x110000
    raw[width:][np.arange(width), np.arange(width)] = [0x80000061 + k for k in range(width)]
    raw = np.concatenate([raw, np.full((1, width), 0x61, np.uint32)])
    with use_kernels(name):
        ((_, _, strings),) = FixedWidth(raw.reshape(-1).view(f"U{width}")).parts()
        assert StringTable().find(strings, add=True).tolist() == [-1] * 2 * width + [0]


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
@pytest.mark.parametrize("rows", [1, 7, cells._BLOCK + 1])
def test_keys_in_records_without_padding(name, rows):
    """A view of one row is contiguous, wherever it lies: so was the last of a block and one row."""
    record = np.zeros(rows, [("p", "i1"), ("k", "U3"), ("b", "S3"), ("n", "i8")])
    record["k"] = record["b"] = np.arange(rows) % 100
    record["n"] = np.arange(rows) % 100 << 40
    with use_kernels(name):
        for field in ("k", "b", "n"):
            expected = (np.arange(rows) % 100).tolist()
            assert KeyBook().index(labels_of(field, record[field])).tolist() == expected
        packed = np.frombuffer(b"x" + np.array(["a", "b"]).tobytes(), "U1", offset=1)
        assert kept(packed) == [b"a", b"b"]


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_a_table_has_room_for_its_texts_and_not_for_their_width(name):
    with use_kernels(name):
        table = StringTable()
        table.find(FixedStrings(np.array([str(i) for i in range(300)], "U10000")), add=True)
        assert table.known().to_list() == [str(i).encode() for i in range(300)]
        assert len(table._arena) <= 1 << 12


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
@pytest.mark.parametrize("dtype", ["U0", "S0"])
def test_text_of_no_characters_is_the_empty_one(name, dtype):
    with use_kernels(name):
        assert kept(np.ndarray((3,), dtype)) == [b""] * 3


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_strings_at_the_end_of_their_data_and_before_other_bytes(name):
    """Short strings are read with what is behind them, where there is something."""
    raw = np.arange(1, 60, dtype=np.uint8)
    spans = [(a, b) for a in range(len(raw) + 1) for b in range(a, min(a + 19, len(raw)) + 1)]
    starts, ends = np.array(spans, np.int64).T
    model: dict[bytes, int] = {}
    expected = [model.setdefault(raw[a:b].tobytes(), len(model)) for a, b in spans]
    with use_kernels(name):
        for sets in (0, 1, 16):
            assert one_set(Strings(raw, starts, ends), sets=sets) == 2 * expected


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("last", ["z", "\xe9", None])
def test_arrow_text_of_every_width_is_python_text(kind, last):
    cells = ["", "a", None, "b" * 20, "a", last]
    array = pa.array(cells, kind)
    for part in (slice(0, 6), slice(1, 6), slice(2, 3), slice(0, 0)):
        got = labels_of("k", array[part]).rows()
        assert (got == labels_of("k", cells[part]).rows()).all()


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_short_strings_that_differ_in_their_first_bytes_alone_are_told_apart(name):
    """Of one length, one end, and one upper half of their hashes: all that a slot has is alike."""
    seed, last, size = 77, 6, 16
    start = (seed + size * 0xD1B54A32D192ED03) % 2**64
    first = [unmixed(unmixed(0x1234567800000000 + 1024 * k) ^ last) ^ start for k in range(20)]
    alike = [word.to_bytes(8, "little") + last.to_bytes(8, "little") for word in first]
    with use_kernels(name):
        table = StringTable()
        table._state[1], table._cache = seed, table._cache[:0]
        assert table.find(joined(alike + alike), add=True).tolist() == 2 * list(range(20))
        assert {int(slot) >> 32 for slot in table._slots if slot} == {0x12345678}
