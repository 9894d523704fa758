"""``ellipsum records``: the API's release, written whole, and nothing of a record in a message."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from cli_folder import CANARY, NAMES, N, folder, inside, rows, run
from ellipsum.cli.exit import Exit
from ellipsum.records import RecordRelease
from ellipsum.rows import csv_chunks

__all__ = ["folder", "inside", "rows"]

BUDGET = ["--epsilon", "4", "--public", "public.parquet"]


def test_it_is_the_release_of_the_api(capsys, rows):
    code, out, err = run(
        capsys, "records", "rows.parquet", *BUDGET, "--out", "a.npz", "--seed", "7", "--json"
    )
    assert (code, err) == (Exit.OK, "")
    found = json.loads(out)
    want = RecordRelease(epsilon=4.0, seed=7).fit(rows[1:100])
    with np.load("a.npz") as file:
        released = want.transform(rows)
        np.testing.assert_allclose(file["released"], released, rtol=1e-9)  # of means in blocks
        np.testing.assert_allclose(file["read"], want.inverse_transform(released), rtol=1e-6)
        assert file["columns"].tolist() == NAMES
        assert json.loads(str(file["json"])) == found
    assert found["n"] == N
    assert found["private"] is False
    assert found["guarantee"]["epsilon"] == 4.0
    assert found["guarantee"]["delta"] == 0.0


def test_json_and_csv_hold_the_estimates(capsys):
    for name in ("b.json", "b.csv"):
        budget = ["--mu", "1", "--noise", "gaussian", "--public", "public.parquet", "--seed", "1"]
        code, out, _ = run(capsys, "records", "rows.csv", *budget, "--out", name)
        assert code == Exit.OK
        assert "1-GDP" in out
    with open("b.json") as file:
        read = np.array(json.load(file)["read"])
    lines = np.loadtxt("b.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(lines, read, rtol=1e-9)
    with open("b.csv") as file:
        assert file.readline().strip() == ",".join(NAMES)


def test_errors_have_their_codes_and_quote_no_record(capsys):
    out = ["--out", "c.npz"]
    cases = [
        (["rows.parquet", *BUDGET, "--out", "c.txt"], Exit.USAGE),
        (["rows.parquet", *BUDGET], Exit.USAGE),
        (["rows.parquet", *BUDGET, "--out", "nowhere/c.npz"], Exit.OUTPUT),
        (["rows.parquet", "--epsilon", "-1", "--public", "public.parquet", *out], Exit.PARAMETER),
        (["rows.parquet", *BUDGET, "--delta", "0.1", *out], Exit.PARAMETER),
        (["rows.parquet", "--epsilon", "1", "--public", "constant.parquet", *out], Exit.PARAMETER),
        (["list.parquet", *BUDGET, "--columns", "nothing", *out], Exit.DATA),
        (["name.csv", *BUDGET, *out], Exit.PARAMETER),
        (["cut.parquet", *BUDGET, *out], Exit.DATA),
    ]
    for arguments, want in cases:
        code, _, err = run(capsys, "records", *arguments)
        assert code == want, (arguments, err)
        assert len(err.strip().splitlines()) == 1
        assert CANARY not in err


def test_a_line_that_is_no_record_is_released_as_the_centre(capsys):
    with open("odd.csv", "w") as file:
        file.write(",".join(NAMES) + "\n40,170,70\nnan,1,\n41,171,71\n")
    code, _, err = run(capsys, "records", "odd.csv", *BUDGET, "--out", "d.npz")
    assert (code, err) == (Exit.OK, "")
    with np.load("d.npz") as file:
        assert file["read"].shape == (3, 3)
        assert np.isfinite(file["read"]).all()


def test_a_csv_line_that_is_no_record_keeps_its_place(capsys, monkeypatch, rows):
    """The order is public: were such a line moved, where the others are would tell of it."""
    seen, transform = [], RecordRelease.transform
    monkeypatch.setattr(
        RecordRelease, "transform", lambda self, x: (seen.append(x), transform(self, x))[1]
    )
    lines = [",".join(map(repr, row)) for row in rows[:40].tolist()]
    for odd in ("1", lines[3] + ",1", '"', "x" * 9000):
        with open("odd.csv", "w") as file:
            file.write("\n".join([",".join(NAMES), *lines[:3], odd, *lines[4:]]) + "\n")
        code, _, err = run(capsys, "records", "odd.csv", *BUDGET, "--out", "a.npz")
        assert (code, err) == (Exit.OK, "")
        want = rows[:40].copy()
        want[3] = np.nan
        assert len(seen[-1]) == 40
        np.testing.assert_array_equal(np.delete(seen[-1], 3, 0), np.delete(want, 3, 0))
        assert np.isnan(seen[-1][3]).any()


def test_a_records_place_in_a_batch_does_not_follow_from_others(capsys, monkeypatch, rows):
    sizes, transform = [], RecordRelease.transform
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 512)
    monkeypatch.setattr(
        RecordRelease, "transform", lambda self, x: (sizes.append(len(x)), transform(self, x))[1]
    )
    np.savetxt("many.csv", rows[:200], delimiter=",", header=",".join(NAMES), comments="")
    code, _, err = run(capsys, "records", "many.csv", *BUDGET, "--out", "a.npz")
    assert (code, err, sizes) == (Exit.OK, "", [200])


def test_columns_are_met_by_the_names_of_the_public_file(capsys, rows):
    table = pa.table({name: rows[:, NAMES.index(name)] for name in ("weight", "age", "height")})
    pq.write_table(table, "turned.parquet")
    pa.csv.write_csv(table, "turned.csv")
    read = []
    for file in ("rows.parquet", "turned.parquet", "turned.csv"):
        code, _, err = run(capsys, "records", file, *BUDGET, "--out", "t.npz", "--seed", "7")
        assert (code, err) == (Exit.OK, "")
        with np.load("t.npz") as found:
            assert found["columns"].tolist() == NAMES
            read.append(found["read"])
    np.testing.assert_array_equal(read[0], read[1])
    np.testing.assert_allclose(read[0], read[2], rtol=1e-6)
    renamed = pa.table({name: rows[:, j] for j, name in enumerate(("years", "height", "weight"))})
    pq.write_table(renamed, "renamed.parquet")
    code, _, err = run(capsys, "records", "renamed.parquet", *BUDGET, "--out", "t.npz")
    assert code == Exit.DATA and "has no column 'age', which --public named" in err
    # the first line of a CSV file may be a record
    with open("people.csv", "w") as file:
        file.write("Ann Canary,Bo,Cy\n1,2,3\n")
    code, _, err = run(capsys, "records", "people.csv", *BUDGET, "--out", "t.npz")
    assert code == Exit.DATA and "Canary" not in err and "--public named" in err
