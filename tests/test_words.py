"""Rows and words by NumPy's faster ways: what its plain ways say."""

from __future__ import annotations

import sys
import tracemalloc
from types import ModuleType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ellipsum.rows import cells, divided
from ellipsum.rows.arrays import numeric_rows, read_records
from ellipsum.rows.divided import Divided
from ellipsum.rows.labelled import rows_of_table
from ellipsum.rows.labels import labels_of
from ellipsum.rows.words import changes, nonzero, order_within, taken
from ellipsum.users import UserRows


@pytest.mark.parametrize("k", [1, 2, 3])
def test_words_are_compared_as_whole_rows(k):
    rng = np.random.default_rng(k)
    for n in (0, 1, 2, 500):
        words = rng.integers(0, 2, (n, k)).astype(np.uint64)
        assert nonzero(words).tolist() == words.any(1).tolist()
        assert changes(words).tolist() == (words[1:] != words[:-1]).any(1).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ">f8", np.int64])
def test_rows_are_taken_by_place_and_by_mask(dtype):
    rows = np.arange(60).reshape(20, 3).astype(dtype)[:, ::2]
    mask = np.arange(20) % 3 == 0
    for where in (mask, np.flatnonzero(mask)[::-1], mask & False):
        assert taken(rows, where).tolist() == rows[where].tolist()


@pytest.mark.parametrize("seed", range(60))
def test_order_within_runs_is_that_of_a_sort_by_all_keys(seed):
    """Ranks that differ at all, or in bits that the one key has no room for, or not at all."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 400))
    runs = np.cumsum(rng.random(n) < rng.choice([0.0, 0.1, 1.0]))
    runs -= runs[0] if n else 0
    first = rng.integers(0, 2**64, n, dtype=np.uint64)
    if seed % 3:
        first &= np.uint64(rng.choice([0x3, 0xFFFF000000000003, 0xF000000000000001]))
    second = rng.integers(0, 3, n).astype(np.uint64)
    for ranks in ((first,), (first, second)):
        wanted = np.lexsort((*ranks[::-1], runs))
        got = order_within(runs, *ranks)
        assert sorted(got.tolist()) == list(range(n))
        for key in (runs, *ranks):
            assert key[got].tolist() == key[wanted].tolist()


def test_digests_of_texts_are_the_same_whatever_was_seen_before(monkeypatch):
    monkeypatch.setattr(cells, "_MOST_KNOWN", 300)
    rng, digests = np.random.default_rng(0), cells.CellDigests()
    for batch in range(40):
        texts = [f"user {k}" for k in rng.integers(0, 50 * batch + 1, 100).tolist()]
        mixed = [None if k % 7 == 0 else k if k % 5 == 0 else t for k, t in enumerate(texts)]
        for column in (texts, np.array(texts), mixed, [t.encode() for t in texts]):
            labels = labels_of("users", column)
            assert (labels.rows(digests) == labels.rows()).all()
    known = {kind: len(digested.table) for kind, digested in digests._known.items()}
    assert set(known) == {"text", "bytes"} and max(known.values()) <= 400


def test_parts_that_are_joined_are_in_their_order():
    rng = np.random.default_rng(0)
    rows, words = rng.normal(size=(100, 3)), rng.integers(1, 9, (100, 1)).astype(np.uint64)
    with Divided(3) as divided:
        divided.take(iter([(rows[:7], words[:7]), (rows[7:8], words[7:8]), (rows[8:], words[8:])]))
        ((number, batches),) = divided.parts()
        found = np.concatenate([np.column_stack([w[:, 0], r]) for r, w in batches])
    assert number is None
    assert sorted(found.tolist()) == sorted(np.column_stack([words, rows]).tolist())


@pytest.mark.parametrize("d", [1, 2, 16])
def test_one_large_array_takes_no_more_memory_than_its_budget_and_a_few_blocks(monkeypatch, d):
    """Its rows are in files then, and what divides them is made block by block."""
    monkeypatch.setattr(divided, "MEMORY_BYTES", 1 << 21)
    monkeypatch.setattr(divided, "_NUMBERS_PER_BLOCK", 1 << 13)
    rows = np.ones((1 << 20) // d * d, np.float32).reshape(-1, d)
    words = np.random.default_rng(0).integers(0, 2**64, (len(rows), 2), np.uint64)
    with Divided(d) as kept:
        tracemalloc.start()
        kept.add(rows, words)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert sum(len(w) for _, part in kept.parts() for _, w in part) == len(rows)
    assert peak < 4 << 20


@pytest.mark.parametrize("memory", [1 << 30, 3000])
def test_rows_of_several_types_come_back_as_their_numbers(monkeypatch, memory):
    """float32 is kept as it is, in memory and in files, beside float64."""
    monkeypatch.setattr(divided, "MEMORY_BYTES", memory)
    rng, kinds = np.random.default_rng(1), ("f4", "f4", "f8", ">f4", "i8", "f4")
    parts = [
        ((9 * rng.normal(size=(40, 3))).astype(kind), rng.integers(0, 2**64, (40, 2), np.uint64))
        for kind in kinds
    ]
    with Divided(3) as kept:
        kept.take(iter(parts))
        got = [np.column_stack([words, rows]) for _, part in kept.parts() for rows, words in part]
    wanted = np.concatenate([np.column_stack([words, rows]) for rows, words in parts])
    assert sorted(np.concatenate(got).tolist()) == sorted(wanted.tolist())
    with Divided(3) as kept:
        kept.take(iter(parts[:2]))
        assert {rows.dtype for _, part in kept.parts() for rows, _ in part} == {np.dtype("f4")}


@pytest.mark.parametrize("memory", [1 << 30, 3000])
def test_a_nan_that_signals_warns_of_nothing_where_types_meet(monkeypatch, memory):
    """(Warnings are errors here.)"""
    monkeypatch.setattr(divided, "MEMORY_BYTES", memory)
    rows = np.ones((40, 2), np.float32)
    rows.view(np.uint32)[7, 0] = 0x7F800001
    words = np.arange(80, dtype=np.uint64).reshape(40, 2)
    with Divided(2) as kept:
        kept.take(iter([(rows, words), (np.ones((7, 2)), words[:7])]))
        got = np.concatenate([rows for _, part in kept.parts() for rows, _ in part])
    assert np.isnan(got).sum() == 1 and len(got) == 47


def test_blocks_count_by_what_they_take_beside_their_numbers(monkeypatch):
    monkeypatch.setattr(divided, "MEMORY_BYTES", 1 << 18)
    with Divided(1) as kept:
        tracemalloc.start()
        for k in range(4000):
            kept.add(np.ones((1, 1)), np.array([[k, k + 1]], np.uint64))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert sum(len(rows) for _, part in kept.parts() for rows, _ in part) == 4000
    assert peak < 1 << 20


def test_words_that_are_reused_are_copied():
    rows, words = np.ones((3, 1)), np.arange(1, 7, dtype=np.uint64).reshape(3, 2)
    with Divided(1) as kept:
        kept.add(rows, words)
        rows[:], words[:] = np.nan, 0
        ((_, batches),) = kept.parts()
        ((found, labels),) = batches
    assert (found == 1).all() and sorted(labels[:, 0].tolist()) == [1, 3, 5]


def test_numpys_masked_arrays_may_be_on_their_way_in_another_thread(monkeypatch):
    """The module is there, and its type not yet."""
    monkeypatch.setitem(sys.modules, "numpy.ma", ModuleType("numpy.ma"))
    rows = read_records([(1.0, 2.0), (3.0,), np.ones(2)], 2)
    np.testing.assert_array_equal(rows, [[1, 2], [np.nan, np.nan], [1, 1]])
    assert labels_of("users", np.arange(3)).kind == "integer"
    assert numeric_rows("rows", np.ones((2, 2)), d=2).shape == (2, 2)


LAYOUTS = {
    "as it is": (lambda rows: rows, True),
    "float32": (lambda rows: rows.astype(np.float32), True),
    "rows of a larger one": (lambda rows: np.repeat(rows, 2, axis=0)[: len(rows)], True),
    "every second row": (lambda rows: np.repeat(rows, 2, axis=0)[::2], False),
    "Fortran order": (np.asfortranarray, False),
    "float16": (lambda rows: rows.astype(np.float16), False),
    "integers": (lambda rows: (100 * rows).astype(np.int64), False),
    "another byte order": (lambda rows: rows.astype(">f8"), False),
}


@pytest.mark.parametrize("memory", [1 << 30, 1 << 17, 1 << 14])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("case", LAYOUTS)
def test_rows_of_an_array_stay_where_they_are(monkeypatch, case, named, memory):
    """They are not copied, nor written to files, where digests alone have room; and nothing else
    than without that comes out."""
    monkeypatch.setattr(divided, "MEMORY_BYTES", memory)
    rng = np.random.default_rng(0)
    layout, stays = LAYOUTS[case]
    data = layout(rng.normal(size=(2000, 16)))
    users = np.where(rng.random(2000) < (0 if named else 0.1), np.nan, rng.integers(0, 300, 2000))
    before, kept, files = data.copy(), [], []
    real, file = divided._joined, divided._File
    monkeypatch.setattr(divided, "_joined", lambda some: kept.append([*some]) or real(some))
    monkeypatch.setattr(divided, "_File", lambda: files.append(file()) or files[-1])
    means = np.concatenate(list(UserRows(data, 16, users).batches()))
    in_place = [np.may_share_memory(part, data) for part, _ in kept[0]]  # before files
    assert all(in_place) if stays else not any(in_place)
    assert bool(files) is (memory < 1 << 17 or (memory < 1 << 30 and not all(in_place)))
    assert (data == before).all()
    for user in range(0, 300, 30):
        own = data[users == user].astype(np.float64)
        assert (np.abs(means - own.mean(0)).max(1) < 1e-12 * (1 + np.abs(own).max())).sum() == 1
    assert len(means) == len(np.unique(users[~np.isnan(users)]))


@pytest.mark.parametrize("memory", [1 << 30, 1 << 17])
@pytest.mark.parametrize("kinds", [["f8"] * 5, ["f4"] * 5, ["f4", "f4", "f8", "f4", "f8"]])
@pytest.mark.parametrize("expected", [0, 10, 2500, 10**12])
def test_rows_whose_number_is_known_are_the_same_as_others(monkeypatch, kinds, expected, memory):
    """However many come, of whatever types, and whether they fit the memory or not."""
    monkeypatch.setattr(divided, "MEMORY_BYTES", memory)
    rng, joined = np.random.default_rng(0), []
    parts = [
        ((9 * rng.normal(size=(500, 3))).astype(kind), rng.integers(0, 2**64, (500, 2), np.uint64))
        for kind in kinds
    ]
    real = divided._joined
    monkeypatch.setattr(divided, "_joined", lambda some: joined.append(len(some)) or real(some))
    with Divided(3, expected=expected) as kept:
        for rows, words in parts:
            changed, there = rows.copy(), words.copy()
            kept.add(changed, there)
            changed[:], there[:] = 7, 7  # the caller's own, to be used again
        got = [np.column_stack([words, rows]) for _, part in kept.parts() for rows, words in part]
    wanted = np.concatenate([np.column_stack([words, rows]) for rows, words in parts])
    assert sorted(np.concatenate(got).tolist()) == sorted(wanted.tolist())
    if expected == 2500 and len(set(kinds)) == 1 and memory > 1 << 20:
        assert joined == [1]


def test_tables_tell_how_many_rows_come():
    frame = pd.DataFrame({"g": [0, 1, 1], "shape": np.ones(3), "b": np.ones(3)})
    tables = [frame, pl.DataFrame(frame), pa.Table.from_pandas(frame)]
    assert [rows_of_table(table) for table in tables] == [3, 3, 3]
    others = [frame["b"], frame.groupby("g"), frame.rolling(2), pl.LazyFrame({"a": [1]}), [frame]]
    assert [rows_of_table(other) for other in others] == [0] * 5
    pretended = type("DataFrame", (), {"__module__": "pandas", "shape": ("secret", 2)})
    assert rows_of_table(pretended()) == 0


def test_rows_of_an_array_take_the_memory_of_their_digests_whoever_has_no_name(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(20_000, 64))
    users = np.arange(20_000.0) % 300
    monkeypatch.setattr(divided, "MEMORY_BYTES", 1 << 20)
    monkeypatch.setattr(divided, "_NUMBERS_PER_BLOCK", 1 << 12)
    monkeypatch.setattr(divided, "_File", None)  # none is opened
    for nameless in (users < 0, users == 7, users >= 7):
        given = np.where(nameless, np.nan, users)
        tracemalloc.start()
        kept = sum(len(batch) for batch in UserRows(rows, 64, given).batches())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert kept == len(np.unique(given[~np.isnan(given)]))
        assert peak < rows.nbytes // 2


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, lambda x: pa.table(pd.DataFrame(x))])
@pytest.mark.parametrize("done", [[], [0], range(63), range(64)])
def test_users_of_parts_that_are_done_are_left_out(monkeypatch, make, done):
    """Whole batches of them, too."""
    users = np.repeat(np.arange(40), 500)
    rows = np.random.default_rng(0).normal(size=(20_000, 3))
    data = make(rows)
    if isinstance(data, pa.Table):
        data = pa.Table.from_batches(data.to_batches(max_chunksize=100))
    found = [b for _, part in UserRows(data, 3, users).parts(done) for b in part]
    words = labels_of("users", np.arange(40)).rows()
    left = ~np.isin(words[:, 0] & np.uint64(63), np.array(list(done), np.uint64))
    means = rows.reshape(40, 500, 3).mean(1)[left]
    assert sum(map(len, found)) == left.sum()
    if left.any():
        sorts = [np.sort(x, axis=0) for x in (np.concatenate(found), means)]
        np.testing.assert_allclose(*sorts, rtol=1e-9, atol=1e-12)


def test_who_holds_an_error_holds_no_rows():
    with divided.Divided(2, expected=50_000) as kept:
        kept.add(np.ones((10, 2)), np.ones((10, 2), np.uint64))
        assert kept._room is not None
    assert kept._room is None and not kept._rows


def test_what_stays_and_what_does_not_are_both_there():
    rows, words = np.random.default_rng(0).normal(size=(20, 2)), np.arange(2, 42, dtype=np.uint64)
    with divided.Divided(2, held=rows, expected=40) as kept:
        kept.add(rows[:10], words.reshape(20, 2)[:10])
        kept.add(rows[10:].copy(), words.reshape(20, 2)[10:])
        assert kept._bytes == 20 * 16 + 10 * 16 + 2 * divided._BYTES_OF_BLOCK
        found = np.concatenate([r for _, part in kept.parts() for r, _ in part])
    assert sorted(found.tolist()) == sorted(rows.tolist())


def test_no_coordinates_are_no_error():
    assert [len(b) for b in UserRows(np.empty((5, 0)), 0, [1, 1, 2, 3, 3]).batches()]


def test_rows_without_a_user_are_in_no_file(monkeypatch):
    monkeypatch.setattr(divided, "MEMORY_BYTES", 1 << 14)
    written, append = [], divided._File.append

    def seen(self, rows, words):
        written.append(nonzero(words))
        append(self, rows, words)

    monkeypatch.setattr(divided._File, "append", seen)
    users = np.where(np.arange(4000) % 7 == 0, np.nan, np.arange(4000) % 300)
    assert sum(len(batch) for batch in UserRows(np.ones((4000, 3)), 3, users).batches()) == 300
    assert written and all(named.all() for named in written)
