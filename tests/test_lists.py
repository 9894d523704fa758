"""Lists and pandas tables: what one record is decides nothing about the others."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas
import pytest

from ellipsum.rows.batches import as_batches

CANARY = 987654.321


def gather(data, d):
    return np.concatenate([np.empty((0, d)), *as_batches(data, d)])


class Opaque:
    """An object whose own code tells of its value, by an error or by a warning."""

    def __float__(self):
        warnings.warn(f"value {CANARY}", stacklevel=1)
        raise RuntimeError(f"value {CANARY}")


RECORDS_OF_LISTS = [
    ([1.5, 2], [1.5, 2]),
    ((1, Decimal("2.5")), [1, 2.5]),
    (np.array([1, 2], np.int8), [1, 2]),
    (np.array([1.5, None]), [1.5, np.nan]),
    ([True, Fraction(1, 4)], [1, 0.25]),
    ([2**63 + 1025, 2**53 + 1], [2.0**63 + 2048, 2.0**53]),
    (np.ma.masked_array([1.0, 2.0], [False, True]), [1, np.nan]),
    *(
        (record, [np.nan, np.nan])
        for record in (
            None, 5, "12", b"12", [], [1], [1, 2, 3], [[1, 2]], [1, [2]], {1: 2}, {1, 2},
            ["x", "y"], [1j, 2j], np.ones((2, 2, 2)), np.array(["1", "2"]), np.ones(3),
            np.zeros(2, "M8[s]"), np.zeros(2, "i4,f4"), range(7), object(), float("nan"),
        )
    ),
    ([1, 10**400], [1, np.nan]),
    ([1, "2"], [np.nan, np.nan]),
    ([1, Opaque()], [1, np.nan]),
    ([1, np.complex128(2j)], [np.nan, np.nan]),
]  # fmt: skip


@pytest.mark.parametrize("record, want", RECORDS_OF_LISTS)
def test_a_record_of_a_list_is_the_same_row_alone_and_in_company(record, want):
    good = [[0.25, 1], [2, 3]]
    np.testing.assert_array_equal(gather([record], 2), [want])
    for other, other_want in RECORDS_OF_LISTS:
        for data in ([record, *good, other], [other, good[1], good[0], record]):
            found = gather(data, 2)
            mine, theirs = (0, -1) if data[0] is record else (-1, 0)
            np.testing.assert_array_equal(found[mine], want)
            np.testing.assert_array_equal(found[theirs], other_want)
            assert sorted(found[1:3].tolist()) == good


def test_a_long_list_is_the_same_rows_as_its_parts(monkeypatch):
    monkeypatch.setattr("ellipsum.rows.arrays._RECORDS_PER_BLOCK", 3)
    records = [[1, 2], [3, 4], [5, None], [6.5, 7], [True, 0], [2**63, 1], [1], [8, 9]]
    want = np.concatenate([gather([record], 2) for record in records])
    np.testing.assert_array_equal(gather(records, 2), want)


def test_scalars_are_records_of_one_number():
    np.testing.assert_array_equal(
        gather([5, 6.5, None, "7", [8]], 1)[:, 0], [5, 6.5, *[np.nan] * 2, 8]
    )


# ---- pandas ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cells", [[1, 2], [1, "7"], [1, 10**400], [1, Opaque()], ["a", "b"], [1, None]]
)
def test_a_pandas_column_of_objects_is_refused_whatever_it_holds(cells):
    column = pandas.Series(cells, dtype=object, name="a")
    frame = pandas.DataFrame({"a": column, "b": [1.0, 2.0]})
    for data, d, name in ((frame, 2, "column 'a' of data"), (column, 1, "^data")):
        with pytest.raises(TypeError, match=f"{name} has dtype object") as caught:
            as_batches(data, d)
        assert str(CANARY) not in str(caught.value)


def test_no_index_of_a_pandas_table_is_a_coordinate_or_an_error():
    rows = np.random.default_rng(0).normal(size=(4, 3))
    frame = pandas.DataFrame(rows, columns=list("abc"))
    for index in (None, [5, 6, 7, 8], [1, "x", None, 2.5], pandas.Index(range(1, 5), name="id")):
        data = frame if index is None else frame.set_axis(index)
        np.testing.assert_array_equal(gather(data, 3), rows)
        np.testing.assert_array_equal(gather(data["a"], 1), rows[:4, :1])
    assert list(frame.set_axis([1, "x", None, 2.5]).index) == [1, "x", None, 2.5]
