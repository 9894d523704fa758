"""CSV files: one line, one record, whatever stands in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ellipsum import Ellipsoid, PrivateCounts, PrivateMean
from ellipsum.rows import csv_chunks
from ellipsum.rows.files import open_rows
from file_rows import CANARY, fails, gather

# ---- CSV: one line, one record ---------------------------------------------------------

GOOD = 50
MARK = b"\xef\xbb\xbf"


def read_csv(tmp_path, lines, **options):
    """What becomes of ``lines`` below enough good ones to settle the columns' types."""
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\n" + b"0,0\n" * GOOD + b"\n".join(lines) + b"\n")
    found = gather(open_rows(path, **options), 2)
    return found[np.argsort([not (row == 0).all() for row in found], kind="stable")][GOOD:]


@pytest.mark.parametrize(
    "line, want",
    [
        (b"1,2", [1, 2]),
        (b" 1 ,\t2", [1, 2]),
        (b"1,2\r", [1, 2]),
        (b'"1","2"', [1, 2]),
        (b"+1,-2e3", [1, -2000]),
        (b"1,", [1, np.nan]),
        (b"1,NA", [1, np.nan]),
        (b"1," + CANARY.encode() + b"x", [1, np.nan]),
        (b"1,\xff\xfe", [1, np.nan]),
        (b"\xff", [np.nan, np.nan]),
        (b"1", [np.nan, np.nan]),
        (b"1,2,3", [np.nan, np.nan]),
        (b"", [np.nan, np.nan]),
        (b"1,2\r3", [1, np.nan]),
        (b"1," + b"9" * 400, [1, np.inf]),
    ],
)
def test_a_line_that_is_no_record_is_a_row_of_nan(tmp_path, capfd, line, want):
    np.testing.assert_array_equal(read_csv(tmp_path, [line]), [want])
    assert capfd.readouterr() == ("", "")


LINE = st.text("0123456789.,\"' -eE\rxé\t", max_size=8).map(lambda s: s.encode("latin-1"))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=st.lists(LINE, min_size=1, max_size=12))
def test_what_becomes_of_a_line_depends_on_that_line_alone(tmp_path, lines):
    lines = [b"7" + line for line in lines]  # no row of zeros, no blank line at the end
    together = read_csv(tmp_path, lines)
    alone = np.concatenate([read_csv(tmp_path, [line]) for line in lines])
    assert sorted(map(str, together)) == sorted(map(str, alone))
    assert len(together) == len(lines)


NAMES = ["ä", "ö", "Ω", "日本", "a", "ÿ", "\ufeffa", "Ã¤"]
LABEL = st.tuples(st.sampled_from(NAMES), st.sampled_from(["utf-8", "latin-1"]), st.booleans())


def label_of(name, coding, marked):
    """A line's bytes, and the name that they are: UTF-8 if they can be, else Latin-1."""
    try:
        raw = name.encode(coding)
    except UnicodeEncodeError:
        raw = name.encode()
    line = MARK * marked + raw  # the first mark of a line is taken off, a second one is text
    rest = line.removeprefix(MARK)
    rest = b"??" + rest.removeprefix(MARK) if rest.startswith(MARK) else rest
    try:
        return line, rest.decode()
    except UnicodeDecodeError:
        return line, rest.decode("latin-1")


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    labels=st.lists(LABEL, min_size=1, max_size=9),
    beside=st.lists(st.sampled_from([b"x", b"caf\xe9", "é".encode(), b'"a,\xe9"']), min_size=9),
    ragged=st.booleans(),
)
def test_what_a_label_is_depends_on_its_cell_alone(tmp_path, labels, beside, ragged):
    names, wanted = zip(*(label_of(*label) for label in labels), strict=True)
    path = tmp_path / "x.csv"
    lines = [name + b",1," + note for name, note in zip(names, beside, strict=False)]
    path.write_bytes(b"\n".join([*lines, *[b"\xff"] * ragged]) + b"\n")
    rows = open_rows(path, ["f1"], header=False, by="f0")
    found = [x for _, (cells,) in rows.labelled(1) for x in cells.to_pylist()]
    assert found == [*wanted, *[None] * ragged]
    keys = sorted(set(wanted))
    sizes = PrivateCounts(keys=keys, mu=1e5)(rows, key="f0").sizes
    assert np.allclose(sizes, [wanted.count(key) for key in keys], atol=1e-2)


def test_a_note_beside_an_id_makes_no_other_user_of_it(tmp_path):
    path, region = tmp_path / "x.csv", Ellipsoid.ball(1.0, d=1)
    for note in (b"caf\xc3\xa9", b"caf\xe9", b'"caf\xe9, \xff"', b"x" * (3 << 20) + b"\xe9"):
        path.write_bytes(b"id,x,note\nJos\xc3\xa9,1,ok\nJos\xc3\xa9,1," + note + b"\nAnn,0,y\n")
        assert PrivateMean(region, mu=1, by="id")(open_rows(path, ["x"], by="id")).n == 2


@pytest.mark.parametrize("mark, name", [(b",", "x.csv"), (b"\t", "x.tsv")])
def test_a_long_line_of_cells_that_are_not_utf8_is_read_in_parts(tmp_path, monkeypatch, mark, name):
    monkeypatch.setattr(csv_chunks, "_PART_BYTES", 7)
    cells = [b"\xe9", "ä".encode(), b"a"] * 20
    (tmp_path / name).write_bytes(mark.join([*cells, "Ω".encode()]) + b"\n")
    rows = open_rows(tmp_path / name, ["f0"], header=False, by=[f"f{k}" for k in range(1, 61)])
    (labels,) = [[column.to_pylist() for column in found] for _, found in rows.labelled(1)]
    assert labels == [[x] for x in (["é", "ä", "a"] * 20)[1:]] + [["Ω"]]


def test_an_open_quote_does_not_swallow_the_lines_below(tmp_path):
    lines = [b'1,"2', b"3,4", b'x"y,"5', b"5,6"]
    found = read_csv(tmp_path, lines)
    assert len(found) == 4
    assert {(3.0, 4.0), (5.0, 6.0)} <= set(map(tuple, found))


@pytest.mark.parametrize("open_line", [b'1,"Ann', b'1,"Ann"",\'', b'1,"'])
def test_an_open_quote_in_a_label_is_no_users_line_below(tmp_path, open_line):
    """All other cells are numbers, so that nothing but the count of lines tells."""
    path = tmp_path / "x.csv"
    path.write_bytes(b"\n".join([b"x,id", b"0,Ann", open_line, b'2,Bob"', b"3,Cid", b""]))
    rows = open_rows(path, ["x"], by="id")
    found = [
        pair
        for x, (id_,) in rows.labelled(1)
        for pair in zip(x[:, 0], id_.to_pylist(), strict=True)
    ]
    assert len(found) == 4
    assert found[0] == (0.0, "Ann") and found[2] == (2.0, 'Bob"') and found[3] == (3.0, "Cid")


@pytest.mark.parametrize(
    "text, options, columns, want",
    [
        (b"a,b\n", {}, ["a", "b"], []),
        (b"a,b", {}, ["a", "b"], []),
        (b"1,2\n3,4", {"header": False}, None, [[1, 2], [3, 4]]),
        (b"x,2\n3,4\n5,6\n", {"header": False}, None, [[np.nan, 2], [3, 4], [5, 6]]),
        (b"1,2\n3,4", {"header": False, "columns": ["f1"]}, ["f1"], [[2], [4]]),
        (b"\xef\xbb\xbf1,2\r\n3,4\r\n", {"header": False}, None, [[1, 2], [3, 4]]),
        (b"\xef\xbb\xbfa,b\r\n3,4\r\n", {}, ["a", "b"], [[3, 4]]),
        (b'"a,1",b\n3,4\n', {}, ["a,1", "b"], [[3, 4]]),
        (b'name,b\n"Doe, J",4\n', {"columns": ["b"]}, ["b"], [[4]]),
        (b"a\n1\n\n2\n", {}, ["a"], [[1], [np.nan], [2]]),
        (b"a,a\n3,4\n", {"columns": ["b"]}, None, "exactly once"),
        (b"a,a\n3,4\n", {}, None, "name comes twice"),
        (b"1,2\n3,4", {"header": False, "columns": ["a"]}, None, "no column 'a': without a header"),
        (b"1,2\n3,4", {"header": False, "columns": []}, None, "no columns to read"),
        (b"1,2\n3,4", {"header": False, "columns": ["f1", "f1"]}, None, "exactly once"),
    ],
)
def test_first_lines(tmp_path, text, options, columns, want):
    (tmp_path / "x.csv").write_bytes(text)
    if isinstance(want, str):
        fails(ValueError, want, lambda: open_rows(tmp_path / "x.csv", **options))
        return
    data = open_rows(tmp_path / "x.csv", **options)
    assert data.columns == columns
    np.testing.assert_array_equal(gather(data, data.d), np.reshape(want, (-1, data.d)))


def test_a_column_of_text_is_no_error_at_any_number_of_lines(tmp_path):
    path = tmp_path / "x.csv"
    for first, header in (("CANARY,CANARY1", True), ("CANARY,1", False)):
        for text in (0, 1, 9, 10, 19, 20, 21, 40):
            path.write_text(f"{first}\n" + "CANARY2,2\n" * text + "1,2\n" * (40 - text))
            found = gather(open_rows(path, header=header), 2)
            assert np.isnan(found[:, 0]).sum() == text + (not header)
