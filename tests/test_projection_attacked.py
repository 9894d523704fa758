"""What an attack on a projection and on files of users found, kept from coming back."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ellipsum import (
    Budget,
    Ellipsoid,
    PrivateGroupSum,
    PrivateMean,
    estimate_covariance,
    open_rows,
)
from ellipsum.records import PrivateProjection, PrivateRegression

KEY = bytes(range(32))


def made(d=5):
    return PrivateProjection(rows=20, d=d, radius=4.0, epsilon=2.0, delta=1e-6, key=KEY)


def table(n=300, d=5):
    return np.random.default_rng(0).normal(size=(n, d)) * 2.5


def test_rows_that_fail_on_the_way_are_not_added():
    rows = table(60)

    def damaged():
        yield rows[:20]
        raise OSError("the disk")

    mechanism = made()
    with pytest.raises(OSError):
        mechanism.add(damaged())
    assert mechanism.count == 0 and not mechanism._sketch.sums.any()
    assert np.array_equal(mechanism.add(rows)._sketch.sums, made().add(rows)._sketch.sums)


def test_a_copy_released_meanwhile_is_not_released_again(monkeypatch):
    first = made().add(table())
    second = PrivateProjection.from_bytes(first.to_bytes(), key=KEY)
    budget = Budget(epsilon=9, delta=1e-3)
    drawn = budget.draw

    def while_another_thread(*given, **known):
        second.release()
        return drawn(*given, **known)

    monkeypatch.setattr(budget, "draw", while_another_thread)
    with pytest.raises(ValueError, match="released already"):
        first.release(budget=budget)


def test_bytes_are_not_made_after_the_release():
    mechanism = made().add(table())
    mechanism.release()
    with pytest.raises(ValueError, match="was released"):
        mechanism.to_bytes()


def test_no_two_rows_share_words_of_the_key():
    sketch = made()._sketch
    sketch.rows = 1 << 31  # of Y: a row's column begins at word i m
    with pytest.raises(ValueError, match="below 2"):
        sketch.add(table(2), KEY, (1 << 33) - 1, 1)
    assert sketch.count == 0


def test_no_value_raises_a_warning():
    signalling = np.array([0x7FA00000], np.uint32).view(np.float32)
    rows = np.array([[1, 2]], np.float32).repeat(9, axis=0)
    rows[3, 0] = signalling[0]
    wide = np.ones((9, 2), np.longdouble)
    wide[4, 1] = np.longdouble("1e400")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data in (rows, wide):
            made(d=2).add(data)
            regression = PrivateRegression(3, epsilon=1, delta=1e-6)
            regression.fit(data, data[:, 0])
            owners = {"x": data[:, 0], "y": data[:, 1], "u": np.arange(9)}
            PrivateMean(Ellipsoid.ball(3, d=2), mu=1, by="u")(owners)


def test_files_with_a_column_of_users_are_no_rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("user,x,y\n" + "1,2,3\n" * 9)
    rows = open_rows(path, by="user")
    ball = Ellipsoid.ball(3, d=2)
    with pytest.raises(ValueError, match="opened with by='user'"):
        made(d=2).add(rows)
    with pytest.raises(ValueError, match="opened with by='user'"):
        estimate_covariance(rows, center=[0, 0], radius=3, epsilon=1, delta=1e-6)
    for given in (rows, lambda: rows):
        with pytest.raises(ValueError, match="opened with by='user'"):
            PrivateMean(ball, mu=1)(given)
    with pytest.raises(ValueError, match="which is not used"):
        PrivateGroupSum(ball, keys=[1], mu=1)(open_rows(path, by=["user", "x"]), key="x")
