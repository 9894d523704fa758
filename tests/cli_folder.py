"""A folder of files for the tests of the command line, and a way to run it."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from ellipsum.cli.exit import Exit
from ellipsum.cli.main import main

N, D = 4000, 3
NAMES = ["age", "height", "weight"]
SD = np.array([1.0, 10.0, 5.0])
CENTER = np.array([40.0, 170.0, 70.0])
CANARY = "987654.321"
BUDGET = ["--epsilon", "1", "--delta", "1e-6"]
MEAN = ["mean", "rows.parquet", *BUDGET]


@pytest.fixture(scope="module")
def rows():
    values = np.random.default_rng(0).normal(size=(N, D)) * SD + CENTER
    values[::100, 0] = float(CANARY)
    return values


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    table = pa.table({name: rows[:, j] for j, name in enumerate(NAMES)})
    pq.write_table(table, path / "rows.parquet")
    pa.csv.write_csv(table, path / "rows.csv")
    np.save(path / "rows.npy", rows)
    pq.write_table(pa.table({"v": pa.array(list(rows))}), path / "list.parquet")
    pq.write_table(table.slice(1, 99), path / "public.parquet")
    pa.csv.write_csv(table.append_column("name", pa.array([CANARY + "x"] * N)), path / "name.csv")
    (path / "cut.parquet").write_bytes((path / "rows.parquet").read_bytes()[:2000])
    constant = pa.table({name: [1.0, 1.0] for name in NAMES})
    pq.write_table(constant, path / "constant.parquet")
    pq.write_table(constant.slice(0, 1), path / "one.parquet")
    np.save(path / "sigma.npy", SD)
    (path / "center.txt").write_text("# the centre\n40\n170\n70\n")
    (path / "bounds.csv").write_text("0,100\n100,250\n0,200\n")
    bounds = {"weight": [0, 200], "age": [0, 100], "height": [100, 250], "unused": [1, 2]}
    (path / "bounds.json").write_text(json.dumps(bounds))
    (path / "negative.txt").write_text("1\n-1\n1\n")
    (path / "short.txt").write_text("1\n1\n")
    (path / "record.csv").write_text(f"{CANARY},,0.25\n0.1,0.2,0.3\n0.4,0.5,0.6\n")
    (path / "zero.csv").write_bytes(b"")
    (path / "named.csv").write_text("lower,upper\n0,100\n100,250\n0,200\n")
    limits = '"height": [0, 9], "weight": [0, 9]'
    (path / "twice.json").write_text(f'{{{limits}, "height": [0, 9]}}')
    (path / "broken.json").write_text(f"{{{limits}")
    (path / "semicolons.csv").write_text("# lo;hi\n0,5;100\n100;250\n0;200\n")
    (path / "word.csv").write_text("0,100\n100,250\nzero,200\n")
    (path / "short.csv").write_text("age,weight\n1,2\n3,5\n")
    (path / "words.txt").write_text("one\n")
    (path / "empty").mkdir()
    (path / "partial.json").write_text('{"age": 1}')
    return path


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("ELLIPSUM_THREADS", raising=False)


def run(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def released(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json", "--seed", "7")
    assert (code, err) == (Exit.OK, "")
    return json.loads(out)
