"""Odd cells and long lines of a CSV: the same numbers as alone, found in one pass."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipsum.rows import csv_cells, csv_chunks, csv_lines
from ellipsum.rows.files import open_rows

NAN = float("nan")
GOOD = b"0.5,0.25\n" * 3


def read(path, content, d=2):
    path.write_bytes(content)
    return np.concatenate([np.empty((0, d)), *open_rows(path, header=False).batches(d)])


# ---- cells -----------------------------------------------------------------------------

CELL = st.text("0123456789.+-eEinfINFatyNAT()_xX #,\x00", max_size=9)
ODD = ["1e", "e5", ".", "+", "-.5", "5.", "+.5e-3", "1_0", "0x10", "infinity", "-inf", "nan(1a)",
       "1d5", "1e+", "--1", "1 2", "\x001", "1e999", "1e-999", "\t7\n", ""]  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(cells=st.lists(st.none() | CELL | st.sampled_from(ODD), min_size=1, max_size=20))
def test_a_cell_is_the_same_number_alone_and_in_company(cells):
    together = csv_cells.as_numbers(pa, pa.array(cells, pa.string()))
    alone = [csv_cells.as_numbers(pa, pa.array([cell], pa.string()))[0] for cell in cells]
    np.testing.assert_array_equal(together, alone)


@settings(max_examples=1000, deadline=None)
@given(cell=CELL | st.sampled_from(ODD))
def test_the_pattern_of_a_number_is_what_pyarrow_reads_as_one(cell):
    column = pa.array([cell.strip(" \t\n\v\f\r")])
    matches = pyarrow.compute.match_substring_regex(column, csv_cells._NUMBER)[0].as_py()
    assert matches == (csv_cells._cast(pa, column) is not None)


@pytest.mark.parametrize("step", [1, 2, 3, 1000, 50_000])
@pytest.mark.parametrize("odd", ["text", "1e", " 7", "", None])
def test_odd_cells_cost_at_most_two_more_looks_at_each_cell(monkeypatch, step, odd):
    cells = ["1.5"] * 100_000
    cells[::step] = [odd] * len(cells[::step])
    looks, cast = [], csv_cells._cast
    monkeypatch.setattr(csv_cells, "_cast", lambda pa, x: (looks.append(len(x)), cast(pa, x))[1])
    found = csv_cells.as_numbers(pa, pa.array(cells))
    want = np.full(len(cells), 1.5)
    want[::step] = 7 if odd == " 7" else NAN
    np.testing.assert_array_equal(found, want)
    assert sum(looks) <= 2 * len(cells) + 3 * csv_cells.BLOCK_CELLS
    assert len(looks) <= 3 * (len(cells) // csv_cells.BLOCK_CELLS + 1)


# ---- lines -----------------------------------------------------------------------------


def test_open_quotes_are_closed_in_one_pass(tmp_path, monkeypatch):
    calls, parse = [], csv_lines.Parser._read
    monkeypatch.setattr(
        csv_lines.Parser, "_read", lambda *given: (calls.append(1), parse(*given))[1]
    )
    found = read(tmp_path / "x.csv", (GOOD + b'1,"2\n"7,3\n"4","5""\n') * 1000)
    assert len(found) == 6000
    assert len(calls) <= 2
    assert np.isfinite(found[:, 0]).sum() == 3000 + 1000 + 1000
    assert (found == [1, 2]).all(axis=1).sum() == 1000


def test_many_ragged_lines_are_taken_out_in_one_pass(tmp_path, monkeypatch):
    calls, parse = [], csv_lines.Parser._read
    monkeypatch.setattr(
        csv_lines.Parser, "_read", lambda *given: (calls.append(1), parse(*given))[1]
    )
    odd = [b"1", b"1,2,3", b"", b'"1,2"', b'1,"2,3",4', b'1,2,"3']
    content = b"\n".join([*odd, *[b"0.5,0.25"] * 9, b'"7",8', b'x"y,"9'] * 1000) + b"\n"
    found = read(tmp_path / "x.csv", content)
    want = [*[[NAN, NAN]] * 6, *[[0.5, 0.25]] * 9, [7, 8], [NAN, 9]]
    np.testing.assert_array_equal(found, np.tile(want, (1000, 1)))
    assert len(calls) <= 2


PLAIN = st.floats().map(repr) | CELL.map(lambda x: x.replace(",", ".")) | st.sampled_from(ODD)


@settings(max_examples=500, deadline=None)
@given(
    lines=st.lists(st.tuples(PLAIN, PLAIN, st.booleans()), min_size=1, max_size=4),
    label=st.booleans(),
)
def test_a_chunk_of_numbers_is_read_as_one_cell_by_cell_would_be(lines, label):
    cells = [(f'"{x}"' if quoted else x, y) for x, y, quoted in lines]
    chunk = "".join(f"{x},{y}\n" for x, y in cells).encode()
    parser = csv_lines.Parser(pa, ",", 2, [0], [1] if label else [])
    if (fast := parser.numbers(chunk)) is None:
        return
    slow, ragged = parser.parse(chunk)
    assert ragged == 0 and fast.column(0).type == pa.float64()
    found, want = (csv_cells.as_numbers(pa, table.column(0)) for table in (fast, slow))
    np.testing.assert_array_equal(found.view(np.int64), want.view(np.int64))
    assert fast.columns[1:] == slow.columns[1:]


def test_a_plain_chunk_is_read_once_and_odd_ones_are_soon_not_tried_as_numbers(monkeypatch):
    calls, read_lines = [], csv_lines.Parser._read
    monkeypatch.setattr(
        csv_lines.Parser, "_read", lambda *given: (calls.append(1), read_lines(*given))[1]
    )
    parser = csv_lines.Parser(pa, ",", 2, [0, 1])
    assert all(parser.numbers(b"1,2\n3, 4e5\n,nan\n") is not None for _ in range(100))
    assert len(calls) == 100
    calls.clear()
    assert all(parser.numbers(b"1,2\n3,x\n") is None for _ in range(64 * 50))
    assert len(calls) <= 50 + 6
    while (table := parser.numbers(b"1,2\n")) is None:
        pass
    assert table.to_pylist() == [{"0": 1.0, "1": 2.0}]


LINE = st.text('0123,"x ', max_size=12).map(str.encode)


@settings(max_examples=300, deadline=None)
@given(lines=st.lists(LINE, min_size=1, max_size=8), d=st.integers(1, 3))
def test_a_line_is_read_alike_and_in_its_place_alone_and_in_company(lines, d):
    parser = csv_lines.Parser(pa, ",", d, range(d))
    together = parser.parse(b"\n".join(lines) + b"\n")
    alone = [parser.parse(line + b"\n") for line in lines]
    assert together[1] == sum(ragged for _, ragged in alone)
    assert together[0].to_pylist() == [row for table, _ in alone for row in table.to_pylist()]


def test_a_line_that_is_too_long_is_a_row_of_nan(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 64)
    monkeypatch.setattr(csv_chunks, "LINE_BYTES", 200)
    path = tmp_path / "x.csv"
    for size, want in ((200, [1, 0]), (201, [NAN, NAN]), (700, [NAN, NAN])):
        line = b"1,0." + b"0" * (size - 4)
        for content in (line + b"\n" + GOOD, GOOD + line + b"\n", GOOD + line):
            found = read(path, content)
            rest = [row for row in found if not np.array_equal(row, [0.5, 0.25])]
            np.testing.assert_array_equal(rest, [want])
            assert len(found) == 4


def test_the_parts_of_a_line_are_joined_once_and_those_of_a_long_one_dropped():
    line, parts = csv_chunks._Line(), [bytes([k]) * 3 for k in range(100)]
    for part in parts:
        line.append(part)
    assert all(mine is given for mine, given in zip(line._parts, parts, strict=True))
    assert line.take() == b"".join(parts)
    assert line.empty and line.take() == b""
    whole = bytes(1 << 20)
    for _ in range(csv_chunks.LINE_BYTES // len(whole) + 1):
        line.append(whole)
    assert not line._parts and not line.empty and line.take() == b" "
