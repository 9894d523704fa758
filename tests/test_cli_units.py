"""Units of columns on the command line."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli_folder import BUDGET, MEAN, folder, inside, released, rows, run
from ellipsum.cli.exit import Exit


def test_no_unit_breaks_a_terminal(capsys):
    arguments = [*MEAN, "--ball", "300"]
    code, out, _ = run(capsys, *arguments, "--units", "age=\x1b[2J,weight=\u202e")
    assert code == Exit.OK and "\x1b" not in out and "\u202e" not in out and "weight [" in out
    groups = ["--group", "age", "--keys", "40", "--columns", "height,weight"]
    code, out, _ = run(capsys, *arguments, *groups, "--units", "weight=\x1b")
    assert code == Exit.OK and "\x1b" not in out and "weight [" in out


def test_the_command_line_takes_and_tells_units(capsys):
    said = ["--units", "age=years, weight=kg"]
    arguments = [*MEAN, "--ball", "300"]
    assert released(capsys, *arguments, *said)["units"] == ["years", None, "kg"]
    assert released(capsys, *arguments)["units"] is None
    code, out, _ = run(capsys, *arguments, *said, "--out", "units.npz")
    assert code == Exit.OK and "age [years]" in out and "weight [kg]" in out
    with np.load("units.npz") as stored:
        assert stored["units"].tolist() == ["years", "", "kg"]
        assert json.loads(str(stored["json"]))["units"] == ["years", None, "kg"]
    by_place = ["mean", "rows.npy", *BUDGET, "--ball", "300", "--units", "[1]=cm"]
    assert released(capsys, *by_place)["units"] == [None, "cm", None]
    lists = ["mean", "list.parquet", *BUDGET, "--ball", "300", "--dim", "3", "--units"]
    assert released(capsys, *lists, "v=mV")["units"] == ["mV"] * 3
    assert released(capsys, *lists, "v=mV,v[1]=V")["units"] == ["mV", "V", "mV"]
    box = [*MEAN, "--bounds", "bounds.json", *said]
    assert released(capsys, *box)["units"] == ["years", None, "kg"]


@pytest.mark.parametrize(
    "units, code, text",
    [
        ("age", Exit.PARAMETER, "--units must be NAME=UNIT,NAME=UNIT, got 'age'"),
        ("[3]=kg", Exit.PARAMETER, "--units has '[3]', which is none of the 3 columns"),
        ("w=kg", Exit.DATA, "units has the column 'w', which the rows do not have"),
    ],
)
def test_units_that_are_none_are_refused_in_the_shells_words(capsys, units, code, text):
    refused = run(capsys, *MEAN, "--ball", "300", "--units", units)
    assert refused == (code, "", f"ellipsum: {text}\n")


def test_files_that_disagree_need_the_shells_word(capsys, tmp_path):
    for name, unit in (("a", "cm"), ("b", "mm")):
        schema = pa.schema([pa.field("x", pa.float64(), metadata={"unit": unit})])
        pq.write_table(pa.table([[1.0] * 50], schema=schema), tmp_path / f"{name}.parquet")
    arguments = ["mean", str(tmp_path), *BUDGET, "--ball", "3"]
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (Exit.DATA, "") and "column 'x' in another unit" in err
    assert released(capsys, *arguments, "--units", "x=cm")["units"] == ["cm"]
    assert released(capsys, *arguments, "--units", "x=")["units"] is None
