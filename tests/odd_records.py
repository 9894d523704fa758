"""Some 300 records that are no rows, or hardly: what a reader must take one at a time."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np

__all__ = ["CELLS", "LINES", "NUMBERS", "OBJECTS"]


class Raises:
    """An object whose own code fails, with text of the record in the error."""

    def __init__(self, kind: type[Exception]) -> None:
        self._kind = kind

    def _fail(self, *_given: object) -> float:
        raise self._kind("CANARY")

    __float__ = __len__ = __iter__ = __getitem__ = __array__ = __index__ = _fail


class Endless:
    """A record that contains itself."""

    def __new__(cls) -> list:  # type: ignore[misc]
        record: list = []
        record.append(record)
        return record


# ---- text of one cell ------------------------------------------------------------------

BOM = "\ufeff"
CELLS = [
    # numbers, or nearly
    "0", "-0", "+1", "1.", ".5", "-.5e-3", "1e308", "1e309", "-1e400", "1e-320", "5e-324", "1e-400",
    "1e", "e5", "1e+", "--1", "+-1", "1-2", "1.2.3", "0x10", "0b1", "1_000", "1 000", "1'000",
    "1,000", "0,5", "1;2", "1\u00a02", "\u0661", "\uff11", "½", "1/2", "50%", "$5", "1f", "1d5",
    "9" * 400, "0." + "0" * 400 + "1", "1" + "0" * 30, "0.1" + "0" * 800 + "1", "9007199254740993",
    "18446744073709551616", "-9223372036854775809", "1e0000000000000000000005", "00012",
    # words for numbers
    "nan", "NaN", "NAN", "-nan", "nan(1)", "nan()", "inf", "-inf", "Infinity", "+INFINITY",
    "infinit", "1.#QNAN", "1.#INF", "true", "False", "yes",
    # words for nothing
    "", " ", "\t", "NA", "N/A", "#N/A", "null", "NULL", "None", "nil", "-", "?", ".", "n/a", "<NA>",
    # text, dates
    "text", "CANARY", "a b", "é", "日本", "\U0001f600", "2024-01-01", "12:00",
    "2024-01-01T00:00:00Z", "x" * 5000, "# note", "//", "=1+1", "'1'", "\\1", "\\N",
    # quotes
    '"1"', '""', '"', '"1', '1"', '"1""2"', '"a,b"', '"1"2', 'x"y', '"""', '""""', '"1" ', ' "1"',
    '"\t1"', '"NA"', "'",
    # bytes that mean something to a reader
    "\0", "1\x002", "\x001", "\r", "1\r", "\r1", "1\r2", "\x0b1", "1\x0c", "\x1a", "\x1b[31m",
    "\x7f", BOM, BOM + "1", BOM * 2 + "1", "1" + BOM, "\u2028", "\u200b1", "\x85", "\u202e1",
]  # fmt: skip

# ---- whole lines -----------------------------------------------------------------------

LINES = [
    *(cell.encode() for cell in CELLS),
    *(cell.encode() + b",1" for cell in CELLS[:60:2]),
    *(b"1," + cell.encode() for cell in CELLS[1:60:2]),
    *(b"1," + cell.encode() for cell in CELLS if '"' in cell or "\r" in cell),
    b"1,2", b"1,2,3", b"1,2,", b",", b",,", b"," * 5000, b"1\t2", b"1;2", b"1|2", b"1 2", b"a,b",
    b'"1,2', b'1,"2', b'"1,2",', b'"1","2"', b'1,"2""', b'"1"",2', b'"a""b",2', b'"1"x,2', b'","',
    b"\xff\xfe1,2", b"\xfe\xff", b"1,\xff", b"\xc3\x28,1", b"\xed\xa0\x80,1", b"\xf0\x9f",
    b"1,2\x80", b"\xef\xbb\xbf1,2", b"\xef\xbb\xbf\xef\xbb\xbf1,2", b"\xef\xbb1,2",
    b'\xef\xbb\xbf"1",2',
    b"1\x00,\x002\x00", b"PAR1", b"ARROW1\0\0", b"\x93NUMPY\x01\0", b"\x1f\x8b\x08\0",
    b"PK\x03\x04", b"1,2\r", b"\r\r", b"1\r,2", b"1,2\r3,4", b"1" * 100_000 + b",2",
    b"1," + b" " * 70_000 + b"2",
]  # fmt: skip

# ---- numbers of a typed column -----------------------------------------------------------

NUMBERS = [
    None, 0.0, -0.0, 1.0, -1e300, 1e308, 5e-324, 2.0**-1074, 1e-160, float("inf"), -float("inf"),
    float("nan"), 2.0**53 + 2, 0.1, 3.4028235677973366e38, 1.401298464324817e-45, 65504.0, 65520.0,
]  # fmt: skip

# ---- items of a Python list ----------------------------------------------------------------

ERRORS = (RuntimeError, ValueError, TypeError, OverflowError, KeyError, MemoryError, StopIteration)
OBJECTS = [
    *CELLS[:40],
    [1, 2], (1, 2), [1], [1, 2, 3], [], (), [[1, 2]], [[1], [2]], [[[1, 2]]], [1, [2]], [[], []],
    ["1", "2"], ["x", "y"], [b"1", b"2"], [1, "2"], [1, None], [None, None], [1, 2j], [1j, 2j],
    [10**400, 1], [-(10**400), 1], [2**63, 1], [2**64, -1], [2**53 + 1, 1], [True, False],
    [Decimal("0.1"), 1], [Decimal("NaN"), 1], [Decimal("sNaN"), 1], [Fraction(1, 3), 1],
    [float("nan"), 1], [float("inf"), 1], [5e-324, 1e308],
    None, True, 5, 2.5, 10**400, 1j, Decimal(1), Fraction(1, 2), b"12", b"", bytearray(b"12"),
    memoryview(b"12"), memoryview(b""), {1: 2}, {"a": 1, "b": 2}, {1, 2}, frozenset({1, 2}),
    range(2), range(3), object(), ..., NotImplemented, int, len, slice(2), iter([1, 2]),
    datetime.date(2024, 1, 1), datetime.timedelta(1), [datetime.datetime(2024, 1, 1), 1],
    np.float64(1), np.float32(0.1), np.float16(0.1), np.longdouble("1e400"), np.int8(3),
    np.uint64(2**64 - 1), np.bool_(True), np.complex128(2j), np.datetime64(1, "s"),
    np.timedelta64(1, "s"), np.str_("7"), np.bytes_(b"7"), np.void(b"12"),
    [np.float32(0.1), np.float16(0.1)], [np.longdouble("1e400"), 1], [np.complex128(2j), 1],
    [np.datetime64(1, "s"), 1], [np.str_("7"), 1], [np.timedelta64(1, "s")] * 2,
    *(np.ones(2, kind) for kind in ("f2", "f4", ">f8", "g", "i1", "u8", "?", "c16", "O")),
    np.ones(2, "S1"), np.ones(2, "U1"),
    np.ones(1), np.ones(3), np.ones(0), np.array(1.0), np.array("7"), np.ones((2, 2, 2)),
    np.zeros(2, "M8[s]"), np.zeros(2, "m8[s]"), np.zeros(2, "i4,f4"), np.zeros(2, "V3"),
    np.array([1, None]), np.array(["a", 1], object), np.array([[1], 2], object),
    np.array([10**400, 1], object), np.ones(4)[::2], np.broadcast_to(1.0, 2), np.arange(2.0)[::-1],
    np.ma.masked_array([1.0, 2.0], [False, True]), np.ma.masked_all(2), np.ma.masked,
    np.ma.masked_array([1, 2], [True, False]), np.ma.masked_array(["a", "b"], [True, False]),
    [1, np.ma.masked], np.rec.array([(1, 2.0)]), np.frombuffer(bytearray(16)),
    *(Raises(kind) for kind in ERRORS), *([1, Raises(kind)] for kind in ERRORS), Endless(),
]  # fmt: skip
