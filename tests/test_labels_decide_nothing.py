"""An odd user, key or record beside them decides nothing: no error, no warning, no other row."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

from ellipsum import Ellipsoid, ExactSum, PrivateCounts, PrivateGroupMean, PrivateMean, open_rows
from ellipsum.rows.labels import labels_of
from ellipsum.users import UserRows
from odd_records import LINES, OBJECTS

BALL = Ellipsoid.ball(2.0, d=2)


class Hostile:
    """Whatever is asked of it raises."""

    def __getattribute__(self, name):
        raise RuntimeError("a value of mine")

    def __eq__(self, other):
        raise RuntimeError("a value of mine")

    __hash__ = None


class Number(int):
    def __int__(self):
        raise RuntimeError("a value of mine")

    __index__ = __float__ = __int__


ODD = [*OBJECTS, Hostile(), Number(3), "\udc80", "", b"", 10**400, -0.0, 1e300, np.float16(2)]


def integers(rows, users) -> tuple:
    total = ExactSum(BALL)
    for batch in UserRows(rows, 2, users).batches():
        total.add(batch)
    return total.count, tuple(total.integers())


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_an_odd_user_is_a_user_or_none_and_touches_no_other():
    rows = np.array([[0.5, 0.25], [1.0, 0.5], [0.25, 0.25]])
    base = integers(rows[:2], ["a", "b"])
    alone = integers(rows[2:], ["c"])
    for odd in ODD:
        count, sums = integers(rows, ["a", "b", odd])
        if count == 2:
            assert sums == base[1]
        else:
            assert count == 3
            assert sums == tuple(x + y for x, y in zip(base[1], alone[1], strict=True))


def test_odd_keys_and_users_never_raise():
    cells = [*ODD, "x", "y"]
    rows = np.ones((len(cells), 2))
    array = np.empty(len(cells), object)
    for i, cell in enumerate(cells):
        array[i] = cell
    for column in (cells, array):
        PrivateMean(BALL, mu=1.0, by="u", neighbors="add-remove")(rows, users=column)
        for keys in (None, ["x", 3]):
            budget = {"epsilon": 1.0, "delta": 1e-6}
            PrivateGroupMean(BALL, keys=keys, **budget)(rows, key=column, user=column)
            PrivateCounts(keys=keys, **budget)(column)


def test_odd_records_beside_users_are_one_row_each():
    users = [f"u{i}" for i in range(len(OBJECTS))]
    count, _ = integers(list(OBJECTS), users)
    assert count == len(OBJECTS)
    twice = integers([*OBJECTS, [0.5, 0.5]], [*users, "u"])
    assert twice[0] == len(OBJECTS) + 1


@pytest.mark.parametrize("header", [True, False])
def test_an_odd_line_of_a_csv_is_its_own_user_or_nobody(tmp_path, header):
    good = [b"0.5,ann,0.25", b"-1,bob,2e3", b"7,ann,8"]
    path = tmp_path / "x.csv"
    head = b"a,u,b\n" if header else b""

    def read(lines):
        path.write_bytes(head + b"".join(line + b"\n" for line in lines))
        user = "u" if header else "f1"
        return integers(open_rows(path, header=header, by=user), user)

    base = read(good)
    for line in LINES:
        if b"\n" in line:
            continue
        count, sums = read([*good, line])
        assert count in (2, 3)
        if count == 2:
            assert sums == base[1]


def test_no_error_quotes_a_label():
    secret = "ann@example.org"
    wrong = pa.table({"a": [1.0], "b": [secret], "u": [secret]})
    for call in (
        lambda: PrivateMean(BALL, mu=1.0, by="u")(wrong),
        lambda: PrivateMean(BALL, mu=1.0, by="v")(wrong),
        lambda: PrivateMean(BALL, mu=1.0, by="u")(np.ones((2, 2)), users=[secret]),
        lambda: PrivateGroupMean(BALL, keys=[1], mu=1.0)(np.ones((1, 2)), key=np.array([secret])),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            call()
        assert secret not in str(caught.value)
        assert caught.value.__cause__ is None


def test_which_type_a_column_has_decides_and_no_cell():
    for cells in (["a", None], ["a", 1], [1, 2.5], [None, None], []):
        assert labels_of("u", cells).kind == "object"
    assert labels_of("u", np.array([1.0, np.nan])).kind == labels_of("u", np.array([1])).kind
