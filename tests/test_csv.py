"""CSV without names: the first record is like any other, and no record becomes a name."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest

from ellipsum import PrivateSum
from ellipsum.cli.exit import Exit
from ellipsum.cli.main import main
from ellipsum.ellipsoid import Ellipsoid
from ellipsum.rows.files import open_rows

CANARY = "987654.321"
GOOD = b"0.5,0.25\n" * 3
NAN = float("nan")


def read(path, content, d=2, **options):
    path.write_bytes(content)
    data = open_rows(path, header=False, **options)
    return np.concatenate([np.empty((0, d)), *data.batches(d)])


# ---- the header ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    ["0.7312,,0.25", "a,,b", "a,2", "987654.321", "a,nan", "1e5;2", ",", "", '"0,5",b', "a,-1 2"],
)
def test_a_first_line_that_is_no_line_of_names_is_refused_without_quoting_it(tmp_path, first):
    path = tmp_path / "x.csv"
    path.write_text(f"{first}\n" + "0.1,0.2,0.3\n" * 20)
    with pytest.raises(ValueError) as caught:
        open_rows(path)
    assert str(caught.value) == (
        f"the first line of {path} does not look like column names: "
        "if it is a record, pass --no-header (header=False); if its first cell is empty, "
        "over an index that pandas wrote, name the columns you want or write index=False; if "
        "another one is, as behind a last comma, give it a name"
    )


def test_the_index_of_pandas_does_not_matter_where_columns_are_named(tmp_path):
    pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}).to_csv(tmp_path / "x.csv")
    (found,) = open_rows(tmp_path / "x.csv", ["b", "a"]).batches(2)
    np.testing.assert_array_equal(found, [[3, 1], [4, 2]])
    with pytest.raises(ValueError, match="index=False"):
        open_rows(tmp_path / "x.csv")


def test_names_may_hold_numbers_and_spaces(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("height 2020,x1,%,Größe\n1,2,3,4\n")
    assert open_rows(path).columns == ["height 2020", "x1", "%", "Größe"]


@pytest.mark.parametrize("header", [None, 1, "no"])
def test_header_is_yes_or_no(tmp_path, header):
    with pytest.raises(TypeError, match="header must be True or False"):
        open_rows(tmp_path / "x.csv", header=header)


@pytest.mark.parametrize(
    "first, phrase",
    [
        ("age;height;weight", "separated by semicolons, but cells are separated by commas"),
        ("age\theight", "separated by tabs, but cells are separated by commas"),
        ("age|height", "separated by bars"),
        ("# exported from somewhere", "first line of .* is a comment, not the columns' names"),
        ("age,height\r1,2\r3,4", "has a carriage return in it: end lines by a newline"),
        ("age,height".encode("utf-16"), "is UTF-16: save it as UTF-8"),
    ],
)
def test_a_line_of_names_of_another_dialect_is_refused_by_its_cause(tmp_path, first, phrase):
    path = tmp_path / "x.csv"
    first = first if isinstance(first, bytes) else first.encode()
    path.write_bytes(first + b"\n" + CANARY.encode() + b";0,5\n" * 20)
    with pytest.raises(ValueError, match=phrase) as caught:
        open_rows(path)
    assert CANARY not in str(caught.value)


def test_a_name_with_a_semicolon_is_one_where_the_caller_says_so(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a;b\n1\n2\n")
    assert np.concatenate(list(open_rows(path, ["a;b"]))).tolist() == [[1], [2]]


@pytest.mark.parametrize("line", ["0,5;1,5", "0.5;1.5", "1,5,2,5", "# note", "0.5\t1.5", "a,b"])
@pytest.mark.parametrize("header", ["a,b\n", ""])
@pytest.mark.parametrize("good", [0, 1, 19, 20, 21])
def test_no_number_of_odd_lines_decides_anything(tmp_path, line, header, good):
    """A verdict on the first lines was turned by one record, at most of them or by its length."""
    path = tmp_path / "x.csv"
    path.write_text(header + f"{line}\n" * 20 + "1,2\n" * good)
    data = open_rows(path, header=bool(header))
    assert sum(map(len, data.batches(2))) == 20 + good
    counts = data.count_nonfinite(2)
    assert counts[2] == 20 and counts[:2].max() == 20


def test_the_holder_is_told_of_rows_that_are_no_numbers(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n1,x,2\n1,y,\n1,2,3\n1\n1,2,inf\n")
    assert open_rows(path).count_nonfinite().tolist() == [1, 3, 3, 4]
    assert open_rows(path, ["a"]).count_nonfinite().tolist() == [1, 1]
    path.write_text("a,b,c\n")
    assert open_rows(path).count_nonfinite().tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("size", [3, 60, 70, 200, 5000])
def test_the_length_of_a_line_decides_nothing_about_the_others(tmp_path, size, monkeypatch):
    """A long line ended the first chunk, and turned the verdict that was made from it."""
    monkeypatch.setattr("ellipsum.rows.csv_chunks.CHUNK_BYTES", 64)
    path = tmp_path / "x.csv"
    path.write_text("1," + "0" * size + "\n" + "a,b\n" * 11 + "1,2\n" * 20)
    found = np.concatenate(list(open_rows(path, header=False).batches(2)))
    assert found.shape == (32, 2) and np.isnan(found[:, 0]).sum() == 11


# ---- the first record ------------------------------------------------------------------

ODD = {
    b"1\r5,2": [NAN, 2],
    b",": [NAN, NAN],
    b"": [NAN, NAN],
    b"1" * 140_000 + b",2": [np.inf, 2],
    b"1": [NAN, NAN],
    b"1,2,3": [NAN, NAN],
    b'"1,2': [NAN, NAN],
    b'1,"2': None,
    b"PAR1,2": [NAN, 2],
    b"ARROW1,2": [NAN, 2],
    b"\x93NUMPY,2": [NAN, 2],
    b"a,b": [NAN, NAN],
    b"\xff\xfe\x00,2": [NAN, 2],
}


@pytest.mark.parametrize("line", ODD, ids=lambda line: repr(line[:9]))
def test_an_odd_record_is_the_same_row_on_the_first_line_as_on_a_later_one(tmp_path, line, capfd):
    first = read(tmp_path / "x.csv", line + b"\n" + GOOD)
    later = read(tmp_path / "x.csv", GOOD + line + b"\n")
    assert sorted(map(str, first)) == sorted(map(str, later))
    assert len(first) == 4
    if ODD[line] is not None:
        odd = [row for row in first if not np.array_equal(row, [0.5, 0.25])]
        np.testing.assert_array_equal(odd, [ODD[line]])
    assert capfd.readouterr() == ("", "")


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("header", [b"a,b\n", MARK + b"a,b\r\n", None])
@pytest.mark.parametrize(
    "line, want",
    [(b"1,2", [1, 2]), (b'"1",2', [1, 2]), (MARK + b"1,2", [NAN, 2]), (b"", [NAN] * 2)],
)
@pytest.mark.parametrize("place", range(4))
def test_a_byte_order_mark_begins_any_line(tmp_path, header, line, want, place):
    lines = [b"0.5,0.25"] * 3
    lines.insert(place, MARK + line)
    path = tmp_path / "x.csv"
    path.write_bytes((header or b"") + b"\n".join(lines) + b"\n")
    found = np.concatenate(list(open_rows(path, header=header is not None).batches(2)))
    rest = [row for row in found if not np.array_equal(row, [0.5, 0.25])]
    np.testing.assert_array_equal(rest, [want])
    assert len(found) == 4


def test_a_mark_alone_is_a_blank_line_wherever_it_stands(tmp_path):
    """At the end of a file, without a newline, it was none."""
    path = tmp_path / "x.csv"
    for lines in ([MARK], [b"1,2", MARK], [MARK, MARK], [MARK * 2], [b"1,2", MARK, b"3,4"]):
        for end in (b"", b"\n", b"\r\n"):
            assert len(read(path, b"\n".join(lines) + end)) == len(lines)
    assert len(read(path, b"")) == 0


@pytest.mark.parametrize("line", ODD, ids=lambda line: repr(line[:9]))
def test_an_odd_record_alone_is_a_row(tmp_path, line):
    assert len(read(tmp_path / "x.csv", line + b"\n")) == 1
    assert len(read(tmp_path / "x.csv", line + b"\n", 1, columns=["f1"])) == 1


def test_the_first_line_counts_where_nobody_else_knows_the_number_of_cells(tmp_path):
    path = tmp_path / "x.csv"
    for line, d in ((b"1,2,3", 3), (b'"a,b",2', 2), (b'1,"2', 2), (b"", 1)):
        path.write_bytes(line + b"\n")
        data = open_rows(path, header=False)
        assert (data.d, data.columns) == (d, None)
        assert [block.shape for block in data] == [(1, d)]


def test_a_file_without_a_byte_has_no_rows(tmp_path):
    assert read(tmp_path / "x.csv", b"").shape == (0, 2)
    data = open_rows(tmp_path / "x.csv", header=False)
    assert data.d is None
    with pytest.raises(ValueError, match="does not say how many coordinates"):
        iter(data)
    mechanism = PrivateSum(Ellipsoid.ball(1, d=2), mu=1, neighbors="add-remove")
    assert mechanism(data).value.shape == (2,)


def test_files_agree_whatever_their_first_records_are(tmp_path):
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv", "d.npy")]
    for path, content in zip(paths, (b"", b"1\n0.5,0.25\n", GOOD), strict=False):
        path.write_bytes(content)
    np.save(paths[3], np.ones((1, 2)))
    data = open_rows(paths, header=False)
    assert data.d == 2
    assert sum(map(len, data)) == 6


# ---- the command line ------------------------------------------------------------------


def released(capsys, path, *options):
    arguments = ["sum", str(path), "--mu", "1", "--neighbors", "add-remove", "--no-header"]
    code = main([*arguments, *options, "--json", "--seed", "7"])
    out, err = capsys.readouterr()
    assert (code, err) == (Exit.OK, "")
    return json.loads(out)


@pytest.mark.parametrize(
    "options",
    [
        ["--ball", "1", "--dim", "2"],
        ["--bounds", "-1,1", "--dim", "2", "--one-pass"],
        ["--bounds", "BOX", "--one-pass"],
        ["--bounds", "BOX"],
        ["--sigma", "SIGMA"],
        ["--public", "PUBLIC"],
    ],
)
def test_the_shape_or_dim_say_how_many_coordinates_a_record_has(capsys, tmp_path, options):
    (tmp_path / "BOX").write_text("-1,1\n-1,1\n")
    (tmp_path / "SIGMA").write_text("1\n1\n")
    (tmp_path / "PUBLIC.csv").write_text("0,1\n1,0\n0.5,0.7\n")
    files = {"BOX": "BOX", "SIGMA": "SIGMA", "PUBLIC": "PUBLIC.csv"}
    options = [str(tmp_path / files[o]) if o in files else o for o in options]
    path, found = tmp_path / "x.csv", []
    for line in (*ODD, None):
        path.write_bytes(b"" if line is None else line + b"\n" + GOOD)
        found.append(released(capsys, path, *options))
        assert CANARY not in str(found[-1])
    assert {tuple(result["columns"]) for result in found} == {("[0]", "[1]")}
