"""Keys and users are told apart by tables of the core: equal values, and no others, are one key."""

from __future__ import annotations

import enum
import hashlib
import itertools
import uuid
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ellipsum import Ellipsoid, ExactGroupSum, PrivateCounts
from ellipsum.groups.keys import KeyBook
from ellipsum.kernels.backend import use_kernels
from ellipsum.rows import cells as rows_cells
from ellipsum.rows.cells import plain_value
from ellipsum.rows.distinct import Strings, StringTable, joined, python_texts
from ellipsum.rows.divided import _together
from ellipsum.rows.labels import labels_of
from regions import KERNEL_SETS

#: Values that are near one another in some way in which a table may go wrong.
VALUES = [
    *(b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0\0\0\0\0\0\0", b"12345678", b"123456789"),
    *(b"12345678\0", b"1234567812345678", b"2345678123456781", b"x" * 300, b"x" * 301),
    *(bytes(range(k)) for k in range(2, 40)),
]


def found(table: StringTable, strings: Strings, *, add: bool = True) -> list[int]:
    return table.find(strings, add=add).tolist()


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_a_table_knows_each_string_by_the_order_in_which_it_came(name):
    rng = np.random.default_rng(0)
    drawn = [VALUES[i] for i in rng.integers(0, len(VALUES), 3000)]
    drawn += [bytes(v) for v in rng.integers(0, 256, (4000, 5)).astype(np.uint8)]
    rng.shuffle(drawn)
    model: dict[bytes, int] = {}
    expected = [model.setdefault(value, len(model)) for value in drawn]
    with use_kernels(name):
        table, got = StringTable(), []
        for start in range(0, len(drawn), 777):  # with the slots, ends and bytes that grow
            got += found(table, joined(drawn[start : start + 777]))
        assert got == expected and len(table) == len(model)
        assert table.known().to_list() == list(model)
        assert found(table, joined([b"never seen", b"x" * 299]), add=False) == [-1, -1]
        assert len(table) == len(model)


def mixed(x: int) -> int:
    """splitmix64, which the table's hashes go through."""
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def of_one_hash(seed: int, first: int, words: int) -> bytes:
    """A string that begins with ``first`` and has the hash of all others of so many words."""
    before = mixed((seed + 8 * words * 0xD1B54A32D192ED03) % 2**64 ^ first)
    own = [first, before ^ 5, *[6] * (words - 2)]  # from the second word on, all is the same
    return b"".join(word.to_bytes(8, "little") for word in own)


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
@pytest.mark.parametrize("words", [2, 3, 4])
def test_strings_of_one_hash_are_told_apart(name, words):
    """Without the seed nobody can choose them; where chance does, they are different keys."""
    alike = [of_one_hash(77, first, words) for first in range(20)]
    with use_kernels(name):
        table = StringTable()
        table._state[1] = 77
        assert found(table, joined(alike + alike[::-1])) == [*range(20), *range(19, -1, -1)]
        assert len({int(slot) >> 32 for slot in table._slots if slot}) == 1, "they have one hash"
        assert table.known().to_list() == alike


def unmixed(x: int) -> int:
    """What splitmix64 makes x of."""
    x = (x ^ x >> 31 ^ x >> 62) * pow(0x94D049BB133111EB, -1, 2**64) % 2**64
    x = (x ^ x >> 27 ^ x >> 54) * pow(0xBF58476D1CE4E5B9, -1, 2**64) % 2**64
    return ((x ^ x >> 30 ^ x >> 60) - 0x9E3779B97F4A7C15) % 2**64


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
@pytest.mark.parametrize("words", [1, 2, 3])
def test_strings_that_differ_in_their_last_word_alone_are_told_apart(name, words):
    """A slot has half of a hash: these have that half, and their place, in common."""
    before = (77 + 8 * words * 0xD1B54A32D192ED03) % 2**64
    for _ in range(words - 1):
        before = mixed(before ^ 6)
    last = [before ^ unmixed(0x1234567800000000 + 1024 * k) for k in range(20)]
    prefix = (6).to_bytes(8, "little") * (words - 1)
    alike = [prefix + word.to_bytes(8, "little") for word in last]
    with use_kernels(name):
        table = StringTable()
        table._state[1] = 77
        assert found(table, joined(alike + alike[::-1])) == [*range(20), *range(19, -1, -1)]
        assert {int(slot) >> 32 for slot in table._slots if slot} == {0x12345678}


def test_the_backends_know_one_another_s_tables():
    drawn = joined([*VALUES, *VALUES[::-1]])
    for first, then in itertools.product(KERNEL_SETS[:2], repeat=2):
        with use_kernels(first):
            table = StringTable()
            places = found(table, drawn)
        with use_kernels(then):
            assert found(table, drawn, add=False) == places


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_a_stretch_beyond_the_data_has_no_value(name):
    starts = np.array([0, -1, 2, 3, 4, 2**62, -(2**63), 1], np.int64)
    ends = np.array([4, 2, 1, 5, 4, 2**62 + 1, 2**63 - 1, -1], np.int64)
    strings = Strings(np.frombuffer(b"abcd", np.uint8), starts, ends)
    with use_kernels(name):
        assert found(StringTable(), strings) == [0, -1, -1, -1, 1, -1, -1, -1]
        digests = strings.digests(b"text")
    assert digests.any(1).tolist() == [True, False, False, False, True, False, False, False]


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_digests_are_blake2b_of_the_standard_library(name):
    values = [b"y" * k for k in (*range(0, 20), 127, 128, 129, 255, 256, 257, 1000)]
    with use_kernels(name):
        got = joined(values).digests(b"text")
    for value, (low, high) in zip(values, got.tolist(), strict=True):
        raw = hashlib.blake2b(value, digest_size=16, person=b"ellipsum-text").digest()
        assert low == int.from_bytes(raw[:8], "little")
        assert high == int.from_bytes(raw[8:], "little") | 1


class Colour(enum.Enum):
    RED = "red"


class Name(str):
    pass


class Raw(bytes):
    pass


#: Cells of an object column: what is equal is so within a kind, and a number's width is nothing.
CELLS = [
    *(0, 1, -1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 2**64, -(2**63) - 1, 10**40, -(10**40)),
    *(1.0, 0.5, -0.0, 2.0**63, 2.0**64, 1e300, float("inf"), float("nan"), np.float32(0.5)),
    *(np.int8(1), np.uint64(2**64 - 1), True, False, np.bool_(True), None, Colour.RED),
    *("", "1", "a", "a\0", "é", "e\u0301", "\ud800", "\udc80", Name("a"), np.str_("a")),
    *(b"", b"1", b"a", b"a\0", "é".encode(), bytearray(b"a"), Raw(b"a"), np.bytes_(b"a")),
    *(uuid.UUID(int=5), uuid.UUID(int=5).bytes, (1,), [1], {}, object()),
]


def model_of(cells: list) -> list[int]:
    """Which cells are one key, by Python's own dictionary of kinds and values."""
    seen: dict[object, int] = {}
    out = []
    for cell in cells:
        value = plain_value(cell)
        kind = "number" if isinstance(value, (int, float)) else type(value)
        out.append(-1 if value is None else seen.setdefault((kind, value), len(seen)))
    return out


@pytest.mark.parametrize("name", KERNEL_SETS[:2])
def test_mixed_cells_are_keys_by_kind_and_value(name):
    rng = np.random.default_rng(1)
    with use_kernels(name):
        for _ in range(20):
            cells = [CELLS[i] for i in rng.integers(0, len(CELLS), 200)]
            book = KeyBook()
            got = np.concatenate([book.index(labels_of("k", cells[a : a + 50]))
                                  for a in range(0, 200, 50)])  # fmt: skip
            assert got.tolist() == model_of(cells)
            again = KeyBook(book.keys)
            assert again.keys == book.keys and len(again) == max(got) + 1
            assert again.index(labels_of("k", cells)).tolist() == got.tolist()
            assert (again.digests() == book.digests()).all()
            assert [again.place(key) for key in book.keys] == list(range(len(book)))
            rows = labels_of("k", cells).rows()
            assert (rows[got >= 0] == book.digests()[got[got >= 0]]).all()
            assert not rows[got < 0].any()


def test_every_holder_of_text_gives_the_same_keys_and_digests():
    rng = np.random.default_rng(2)
    names = ["", "a", "b" * 7, "c" * 8, "d" * 9, "é", "日本", "a b", "A", "z" * 200]
    texts = [names[i] for i in rng.integers(0, len(names), 3000)]
    holes = [None if i % 7 == 0 else t for i, t in enumerate(texts)]
    arrow = pa.array(holes)
    holders = [
        holes, np.array(holes, object), arrow, arrow.cast(pa.large_string()),
        arrow.cast(pa.string_view()), arrow.dictionary_encode(),
        pa.chunked_array([arrow[:9], arrow[9:]]),
        pl.Series(holes), pl.Series(holes, dtype=pl.Categorical), pd.Series(holes, dtype="string"),
        pd.Series(holes, dtype=object), pd.Series(holes, dtype="category"),
    ]  # fmt: skip
    model = model_of(holes)
    digests = labels_of("k", holes[:500]).rows()
    for holder in holders:
        book, labels = KeyBook(), labels_of("k", holder)
        assert [book.keys[i] if i >= 0 else None for i in book.index(labels)] == holes
        assert sorted(set(book.keys)) == sorted(book.keys) and len(book) == max(model) + 1
        assert (labels[:500].rows() == digests).all()
        part = labels[100:200]
        assert (book.index(part) == book.index(labels)[100:200]).all()
    fixed = labels_of("k", np.array(texts))
    assert (fixed.rows() == labels_of("k", texts).rows()).all()
    raw = labels_of("k", np.array([t.encode() for t in texts]))
    assert (raw.rows() == labels_of("k", [t.encode() for t in texts]).rows()).all()


class Liar(str):
    """A text whose own methods say what it is not."""

    def __len__(self) -> int:
        return 1

    def __str__(self) -> str:
        return "other"

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True


@pytest.mark.parametrize("odd", [
    (), ("",), ("a\0b", "a", "b"), ("\0",), ("\ud800", "é"), ("é", "日本", "\U0001f600"),
    (None,), (b"a", b""), (1, "1"), (np.str_("a"), Name("a"), Liar("abc")), (bytearray(b"a"),),
    (float("nan"), uuid.UUID(int=5)),
], ids=repr)  # fmt: skip
def test_much_text_of_python_is_read_at_once_as_it_is_one_by_one(odd):
    names = ["a", "b" * 9, "abc", *odd]
    cells = [names[i] for i in np.random.default_rng(3).integers(0, len(names), 3000)]
    book, few = KeyBook(), KeyBook()
    labels = labels_of("k", cells)
    got, model = book.index(labels), []
    for start in range(0, 3000, 50):
        model += few.index(labels_of("k", cells[start : start + 50])).tolist()
    wanted = [plain_value(cell) for cell in cells]
    assert [book.keys[i] if i >= 0 else None for i in got] == wanted
    assert got.tolist() == model and book.keys == few.keys
    assert set(map(type, book.keys)) <= {str, bytes, int}
    column = np.empty(len(cells), object)
    column[:] = cells
    assert (labels_of("k", column).rows() == labels.rows()).all()
    assert (labels.rows()[got >= 0] == book.digests()[got[got >= 0]]).all()
    assert (python_texts(cells) is None) == any(
        not isinstance(cell, (str, type(None))) for cell in cells
    )


def test_text_that_is_no_utf_8_is_what_python_reads_it_as():
    odd = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(np.array([0, 1, 2, 3], np.int32)),
                         pa.py_buffer(b"\xff\xfea")],
    )  # fmt: skip
    book = KeyBook()
    assert book.index(labels_of("k", odd)).tolist() == [0, 1, 2]
    assert book.keys == ["\udcff", "\udcfe", "a"]
    assert book.index(labels_of("k", ["\udcfe", "a"])).tolist() == [1, 2]


def test_entries_of_a_dictionary_that_no_row_has_are_no_keys():
    entries = pa.array(["unused", "a", None, "a", "b"])
    column = pa.DictionaryArray.from_arrays(pa.array([1, 3, 4, 2, None], pa.int32()), entries)
    book = KeyBook()
    assert book.index(labels_of("k", column)).tolist() == [0, 0, 1, -1, -1]
    assert book.keys == ["a", "b"]


def test_integers_of_every_width_and_layout_are_the_same_keys():
    values = np.array([5, -3, 5, 0, 2**62, -(2**63), 2**63 - 1, -3])
    model = model_of(values.tolist())
    strided = np.repeat(values, 3)[::3]
    assert not strided.flags.c_contiguous
    swapped = values.astype(">i8")
    for column in (values, strided, swapped, pa.array(values), pl.Series(values), list(values)):
        book = KeyBook()
        assert book.index(labels_of("k", column)).tolist() == model
        assert book.keys == list(dict.fromkeys(values.tolist()))
    near = np.array([2**63, 2**63 + 1, 2**64 - 1, 1], np.uint64)
    both = KeyBook()
    assert both.index(labels_of("k", near)).tolist() == [0, 1, 2, 3]
    assert both.index(labels_of("k", np.array([1, -1, -(2**63)]))).tolist() == [3, 4, 5]
    nullable = pd.Series([1, None, 2**63 - 1], dtype="Int64")
    assert KeyBook().index(labels_of("k", nullable)).tolist() == [0, -1, 1]


def test_keys_that_come_twice_or_are_none_are_refused():
    for keys in (["a", "a"], [1, 1.0], [None], [1, True], [float("nan")], [uuid.UUID(int=1)] * 2):
        with pytest.raises(ValueError, match="each once"):
            KeyBook(keys)


@pytest.mark.parametrize("alike", ["none", "first word", "both words"])
@pytest.mark.parametrize("most", [1, 50, 2**40])
def test_rows_of_one_user_and_group_stand_together_whatever_their_digests(alike, most):
    rng = np.random.default_rng(3)
    users = rng.integers(0, 2**64, (300, 2), dtype=np.uint64)
    users[:, 0] = users[:, 0] if alike == "none" else users[rng.integers(0, 20, 300), 0]
    users[:, 1] = users[:, 1] if alike != "both words" else users[rng.integers(0, 20, 300), 1]
    groups = rng.integers(0, most, 4000, dtype=np.uint64)
    words = np.column_stack([users[rng.integers(0, 300, 4000)], groups])
    for table in (words, words[:, :2], words[:1], words[:0]):
        order, ordered = _together(table)
        assert (ordered == table[order]).all()
        assert sorted(order.tolist()) == list(range(len(table)))
        for width in range(2, table.shape[1] + 1):
            here = table[order, :width]
            runs = int((here[1:] != here[:-1]).any(1).sum()) + bool(len(here))
            assert runs == len({tuple(row) for row in here.tolist()})


@pytest.mark.parametrize("order", ["<", ">"])
def test_wide_and_narrow_blocks_of_numpys_text_know_one_another(order, monkeypatch):
    """A text is one key, whether all characters of its block fit a byte or not."""
    monkeypatch.setattr(rows_cells, "_BLOCK_BYTES", 36)
    cells = [
        "a",
        "\xff",
        "a",
        "b",
        "\u0100",
        "a",
        "\xff",
        "b\u0100",
        "",
        "\U0010ffff",
        "b",
        "\x80",
        "a",
    ]
    column = np.array(cells).astype(f"{order}U3")
    book = KeyBook()
    index = book.index(labels_of("keys", column))
    assert [book.keys[i] for i in index] == cells
    assert sorted(set(index.tolist())) == list(range(len(set(cells))))
    plain = labels_of("keys", cells).rows()
    assert (labels_of("keys", column).rows() == plain).all()


def test_whole_numbers_and_fractions_in_one_column_keep_their_names():
    """Both are of one sort, and come in two parts of a batch: against a Counter, in any order."""
    rng = np.random.default_rng(4)
    column = rng.choice([0.5, 1.0, 1.5, 2.0, -3.0, 1e300], size=500)
    wanted = Counter(column.tolist())
    release = PrivateCounts(epsilon=200, delta=1e-3)
    for order in (slice(None), slice(None, None, -1), np.argsort(column), np.argsort(-column)):
        found = release({"g": column[order]}, key="g", seed=1)
        assert dict(zip(found.keys, found.value.ravel().round(), strict=True)) == wanted
    table = ExactGroupSum(Ellipsoid.ball(1.0, d=1))
    for part in np.array_split(column, 7):
        table.merge(ExactGroupSum(Ellipsoid.ball(1.0, d=1)).add(np.ones((len(part), 1)), part))
    assert dict(zip(table.keys, table.counts().tolist(), strict=True)) == wanted
    public = PrivateCounts(keys=[0.5, 1, 1.5, 2, -3, 1e300], mu=200)({"g": column}, key="g", seed=1)
    assert [round(size) for size in public.value.ravel()] == [wanted[key] for key in public.keys]


def test_a_book_of_numbers_in_turn_and_not_knows_each_key_again():
    for first in ([1, 0.5, 2], [0.5, 1, 1.5, 2], [1, 2, 0.5], [3, 2, 1]):
        book = KeyBook()
        assert book.add(first).tolist() == list(range(len(first)))
        for key in (1, 2, 0.5):
            if key in first:
                assert book.add([key]).tolist() == [first.index(key)]
        assert book.keys == first


def test_a_table_whose_keys_were_broken_off_is_refused(monkeypatch):
    table = ExactGroupSum(Ellipsoid.ball(1.0, d=1)).add(np.ones((2, 1)), [1, 2])

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KeyBook, "_name", broken)
        with pytest.raises(KeyboardInterrupt):
            table.add(np.ones((2, 1)), [3, 2])
    for use in (lambda: table.add(np.ones((1, 1)), [1]), lambda: table.keys, table.to_bytes):
        with pytest.raises(RuntimeError, match="make the table anew"):
            use()
