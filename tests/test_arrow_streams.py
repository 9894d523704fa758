"""Streams of Arrow's C interface that are not what they say: refused alike, and given back."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactSum, PrivateGroupSum
from ellipsum.rows.c_stream import _Array, _Next, _pointer, _Release, _Stream
from file_rows import fails

pa = pytest.importorskip("pyarrow")


class Forged:
    """A stream of two rows of a column of doubles and one of labels, with a struct that lies about
    the latter; ``null``: a row is null."""

    def __init__(self, null, **lies):
        k = pa.array([1, 2], pa.int8())
        whole = pa.StructArray.from_arrays([pa.array([1.0, 2.0]), k], ["a", "k"])
        if null:
            bits = pa.py_buffer(b"\x01")
            whole = pa.StructArray.from_buffers(whole.type, 2, [bits], children=whole.flatten())
        self.stream = pa.chunked_array([whole]).__arrow_c_stream__()
        at = _pointer(self.stream, b"arrow_array_stream")
        stream = _Stream.from_address(at)
        self.given = self.released = 0
        true_next = _Next(ctypes.cast(stream.get_next, ctypes.c_void_p).value)

        def next_one(source, to):
            code = true_next(source, to)
            array = _Array.from_address(to)
            if array.release:
                true_release = _Release(array.release)

                def release(at):
                    self.released += 1
                    true_release(at)

                self.given, self.release = self.given + 1, _Release(release)
                array.release = ctypes.cast(self.release, ctypes.c_void_p).value
                children = (ctypes.c_void_p * 2).from_address(array.children)
                for name, value in lies.items():
                    setattr(_Array.from_address(children[1]), name, value)
            return code

        self.next = stream.get_next = _Next(next_one)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.stream


NOWHERE = [
    {"offset": 1 << 62},
    {"offset": 1 << 46},
    {"offset": -1},
    {"length": 1},
    {"length": 1 << 60},
]


@pytest.mark.parametrize("lies", NOWHERE, ids=str)
@pytest.mark.parametrize("null", [False, True])
def test_a_stream_whose_columns_lie_nowhere_is_refused_whichever_rows_are_null(null, lies):
    """Labels, too, which no kernel looks at; and the error is the same."""
    groups = PrivateGroupSum(Ellipsoid.ball(9.0, d=1), keys=[1, 2], mu=1.0)
    fails(OSError, "broke off", lambda: groups(Forged(null, **lies), key="k"))
    columns = ExactSum(Ellipsoid.ball(9.0, d=2))
    fails(OSError, "broke off", lambda: columns.add(Forged(null, **lies)))
    assert columns.add(Forged(null)).count == 2


def test_what_is_refused_is_given_back():
    forged = Forged(False, offset=-1)
    fails(OSError, "broke off", lambda: ExactSum(Ellipsoid.ball(9.0, d=2)).add(forged))
    assert forged.given == forged.released == 1


def test_no_metadata_of_a_stream_switch_its_names_off():
    table = pa.table({"b": [40.0], "a": [1.0]})
    table = table.replace_schema_metadata({b"ellipsum": b"no names"})

    class Holder:
        __arrow_c_stream__ = table.__arrow_c_stream__

    box = Ellipsoid.box({"a": -9, "b": -99}, {"a": 9, "b": 99})
    wanted = ExactSum(box).add(np.array([[1.0, 40.0]])).integers()
    for data in (Holder(), table):
        assert (ExactSum(box).add(data).integers() == wanted).all()


@pytest.mark.parametrize("start", [0, 1])
def test_columns_of_a_stream_that_go_on_behind_its_rows_are_cut(start):
    kind = pa.struct([("a", pa.float64()), ("b", pa.float32())])
    columns = [pa.array([1.0, 2, 3, 4, 5]), pa.array([1, 2, 3, 4], pa.float32())]
    rows = pa.Array.from_buffers(kind, 3, [None], children=columns)[start:]

    class Holder:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.chunked_array([rows]).__arrow_c_stream__(requested_schema)

    region = Ellipsoid.ball(9.0, d=2)
    wanted = np.array([[1.0, 1], [2, 2], [3, 3]])[start:]
    total = ExactSum(region).add(Holder()).integers()
    np.testing.assert_array_equal(total, ExactSum(region).add(wanted).integers())
