"""Records read without their own code: the same rows as by NumPy, and only those that it can be."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections import namedtuple
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ellipsum.adaptive.passes import one_shot
from ellipsum.kernels.backend import backend, use_kernels
from ellipsum.rows.arrays import plain_records, read_records
from ellipsum.rows.batches import as_batches
from odd_records import OBJECTS

Point = namedtuple("Point", "x y")
SWAPPED = np.dtype(np.float64).newbyteorder()


class Loud(float):
    """A float whose own code must not be run, nor its number taken without it."""

    def __float__(self) -> float:
        raise RuntimeError("CANARY")


class OwnDecimal(Decimal):
    __float__ = Loud.__float__  # type: ignore[assignment]


class OwnInteger(int):
    """An integer that is another number as a float."""

    def __float__(self) -> float:
        return 99.0


class OwnMeta(type):
    """Types that cannot be compared."""

    def __hash__(cls) -> int:
        raise RuntimeError("CANARY")

    __eq__ = __hash__  # type: ignore[assignment]


class OwnKind(metaclass=OwnMeta):
    @property
    def __class__(self) -> Any:
        raise RuntimeError("CANARY")


class OwnArray(np.ndarray):
    pass


class OwnList(list):
    pass


def unaligned() -> np.ndarray:
    return np.frombuffer(b"\0" + np.array([1.5, 2.5]).tobytes(), np.float64, offset=1)


NAN_THAT_SIGNALS = np.array([0x7FF0000000000001, 0], np.uint64).view(np.float64)

PLAIN = [
    [1.5, 2], (3, -0.0), [True, False], [None, 1.0], (None, None), [2**63 - 1, -(2**63)],
    [Decimal("0.1"), 1], [Decimal("-Infinity"), Decimal("1e400")], (Decimal("sNaN"), Decimal(7)),
    [2**53 + 1, -(2**53) - 1], [5e-324, 1e308], [float("nan"), float("-inf")], [np.float64(0.1), 1],
    np.array([1.5, 2.5]), np.array([1.5, 2.5], np.float32), np.arange(4.0)[::2],
    np.arange(4.0)[::-3], np.arange(4, dtype=np.float32).reshape(2, 2)[:, 1],
    np.broadcast_to(np.float64(7), 2), NAN_THAT_SIGNALS,
]  # fmt: skip

#: Left to NumPy, or to one another of which nothing is known.
OTHERS = [
    None, 1.5, 7, "12", [], [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [1.0, [2.0]], [1.0, "2"],
    [2**63, 1], [1, -(2**63) - 1], [1.0, OwnDecimal(2)], [OwnInteger(2), 1], [OwnInteger(2), 1.0],
    (2, np.ma.array(5, mask=True)),
    [1.0, np.int64(2)], [1.0, np.float32(0.1)],
    [1.0, np.bool_(True)], [1.0, 2j], [1.0, Loud(2)], OwnList([1.0, 2.0]), Point(1.0, 2.0),
    np.array([1, 2]), np.array([1.5, 2.5], np.float16), np.array([1.5, 2.5], np.longdouble),
    np.array([1.5, 2.5], SWAPPED), unaligned(), np.array([1.5, None]), np.array(1.5),
    np.array([1.5]), np.ones(3), np.ones((1, 2)), np.array([1.5, 2.5]).view(OwnArray),
    np.ma.masked_array([1.0, 2.0], [False, True]), np.zeros(2, "M8[s]"),
]  # fmt: skip


class Reader:
    """Kernels that read no record: all go by NumPy, one by one."""

    @staticmethod
    def plain_records(records: list[Any], rows: np.ndarray) -> list[int]:
        return list(range(len(records)))


#: Records beside another: plain ones, and such as NumPy would read by another type with it.
COMPANY = [
    [0.5, 1], np.ones(2), [1, 2], [np.float32(0.5), 1.0], [np.int8(1), np.int8(2)], [2**64, 1],
    [Decimal(1), 2], [None, np.float32(1)], ["x", 1.0], np.ones(2, np.int8), np.ones(2, np.float16),
]  # fmt: skip


def by_numpy(records: list[Any], d: int) -> np.ndarray:
    with use_kernels(Reader):
        return np.concatenate([np.empty((0, d)), *(read_records([x], d) for x in records)])


@pytest.fixture(params=["", "numba"], ids=["these kernels", "their twins"])
def kernels_of(request):
    if not request.param:
        yield
        return
    with use_kernels(request.param):
        yield


def bits(rows: np.ndarray) -> list[list[int]]:
    doubles = np.asarray(rows, np.float64)
    return np.where(np.isnan(doubles), np.nan, doubles).view(np.int64).tolist()


@pytest.mark.parametrize("record", [*PLAIN, *OTHERS, *OBJECTS], ids=lambda x: type(x).__name__)
def test_a_record_is_what_numpy_makes_of_it(record, kernels_of):
    for d in (1, 2):
        want = by_numpy([record], d)
        assert bits(read_records([record], d)) == bits(want)
        for other in COMPANY:
            mate = np.resize(other, d) if isinstance(other, np.ndarray) else other[:d]
            assert bits(read_records([mate, record], d)[1:]) == bits(want)
            assert bits(read_records([record, mate, mate], d)[:1]) == bits(want)


@pytest.mark.skipif(backend().name != "cpp", reason="the twin leaves all of them to NumPy")
def test_which_records_are_plain():
    assert plain_records(PLAIN, 2)[1] == []
    assert plain_records(OTHERS, 2)[1] == list(range(len(OTHERS)))
    assert plain_records([1.5, 2, None, True, "3", (4.0,), Decimal(5)], 1)[1] == [4]


@pytest.mark.parametrize("d", [1, 2, 7, 64, 300])
def test_records_of_all_kinds_among_each_other(d):
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(500, d)).astype(np.float32).astype(np.float64)
    kinds = [list, tuple, np.ndarray.tolist, np.array, np.float32, lambda x: np.repeat(x, 3)[::3]]
    records = [kinds[k](x) for k, x in zip(rng.integers(0, len(kinds), 500), rows, strict=True)]
    for i in rng.integers(0, 500, 20):
        records[i] = [[None] * d, "odd", [1] * (d + 1), np.full(d, np.nan)][i % 4]
        rows[i] = np.nan
    np.testing.assert_array_equal(read_records(records, d), rows)
    for data in (records, tuple(records), iter(records)):
        np.testing.assert_array_equal(np.concatenate(list(as_batches(data, d))), rows)
    np.testing.assert_array_equal(by_numpy(records, d), rows)


def test_batches_stand_among_plain_records(monkeypatch):
    monkeypatch.setattr("ellipsum.rows.batches._NUMBERS_PER_BLOCK", 6)
    rows = np.arange(26.0).reshape(13, 2)
    data = [*rows[:4], rows[4:6], list(rows[6]), rows[7], *map(tuple, rows[8:10]), rows[10:]]
    found = list(as_batches(data, 2))
    np.testing.assert_array_equal(np.concatenate(found), rows)
    assert max(map(len, found)) == 3  # no more are copied at once


def test_no_reference_is_kept_or_lost():
    cell, array = 1234.5, np.ones(2)
    records = [[cell, None], array, (cell, cell)]
    before = [sys.getrefcount(x) for x in (cell, array, *records, None)]
    for _ in range(100):
        plain_records(records, 2)
    after = [sys.getrefcount(x) for x in (cell, array, *records, None)]
    assert all(abs(x - y) < 20 for x, y in zip(before, after, strict=True))


def test_what_stands_in_the_place_of_decimals_is_not_trusted(monkeypatch):
    """C code alone is: Python's own may show warnings, or be interrupted."""

    class Interrupted:
        def __float__(self) -> float:
            raise KeyboardInterrupt

    for kind in (Interrupted, str, 5, None):
        for module in ("decimal", "_decimal"):
            monkeypatch.setitem(sys.modules, module, SimpleNamespace(Decimal=kind))
        np.testing.assert_array_equal(read_records([["3.5", 1.0]], 2), [[np.nan] * 2])
        with pytest.raises(KeyboardInterrupt):
            read_records([[Interrupted(), 1.0]], 2)


def test_a_list_with_a_way_of_its_own_is_read_by_it():
    class Without(list):
        def __iter__(self):
            return (x for x in list.__iter__(self) if x is not None)

    rows = list(as_batches(Without([[1.0, 2.0], None, (3, 4)]), 2))
    np.testing.assert_array_equal(np.concatenate(rows), [[1, 2], [3, 4]])


def test_text_is_no_number_however_it_is_held():
    masked = np.ma.array(["1.5", "2.5"])
    repr(masked)
    held = [[None, np.array("7")], bytearray(b"12"), np.ma.array(["1.5", "2.5"]), masked]
    held += [np.ma.array(np.zeros(2, "M8[s]")), np.ma.array([1j, 2j]), [None, np.str_("7")]]
    held += [np.array([bytearray(b"12"), memoryview(b"12")], object), range(10**12)]
    np.testing.assert_array_equal(read_records(held, 2), np.full((len(held), 2), np.nan))
    assert np.isnan(read_records([bytearray(b"1"), [bytearray(b"1")]], 1)).all()
    found = read_records([np.ma.array([1.5, 2], dtype=object, mask=[False, True])], 2)
    np.testing.assert_array_equal(found, [[1.5, np.nan]])


def test_no_records_are_no_rows(kernels_of):
    assert read_records([], 3).shape == (0, 3)
    assert list(as_batches([], 3)) == []


def test_a_record_decides_not_whether_rows_can_be_read_again():
    import pyarrow.dataset

    class Meta(type):
        def __getattr__(cls, name: str) -> Any:
            raise RuntimeError("CANARY")

    class Record(metaclass=Meta):
        pass

    for record in (Record(), OwnKind()):
        assert not one_shot([record, [1.0, 2.0]])
    assert one_shot([[1.0, 2.0], pyarrow.RecordBatchReader.from_batches(pyarrow.schema([]), [])])


def test_a_list_of_any_kind_in_a_list_is_one_record():
    records = [[[1.0, 2.0]], OwnList([[1.0, 2.0], [3.0, 4.0]]), OwnList([5.0, 6.0]), ([7.0], [8.0])]
    for data in (records, iter(records)):
        found = np.concatenate(list(as_batches(data, 2)))
        np.testing.assert_array_equal(found, [[np.nan] * 2, [np.nan] * 2, [5, 6], [np.nan] * 2])


def test_no_warning_of_a_record_is_shown():
    class Loud:
        @property
        def ndim(self) -> int:
            warnings.warn("CANARY", stacklevel=1)
            return 1

        def __array__(self, *_given: object) -> np.ndarray:
            return np.ones(2)

    for data in ([Loud()], iter([Loud(), [1.0, 1.0]])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (np.concatenate(list(as_batches(data, 2))) == 1).all()


def test_a_record_that_does_not_say_what_it_is_decides_nothing(kernels_of):
    dead = weakref.proxy(OwnList())
    for record, row in ((OwnKind(), [np.nan] * 2), ([OwnKind(), 1.0], [np.nan, 1]), (dead, None)):
        for data in ([record, [1.0, 2.0]], iter([record, [1.0, 2.0]])):
            found = np.concatenate(list(as_batches(data, 2)))
            np.testing.assert_array_equal(found, [row or [np.nan] * 2, [1, 2]])
