"""`ellipsum count`: the release of the library, on files of labels alone, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from ellipsum import PrivateCounts, open_rows
from ellipsum.cli.exit import Exit
from ellipsum.cli.main import main

BUDGET = ["--epsilon", "1", "--delta", "1e-6"]
KNOWN = {"epsilon": 1, "delta": 1e-6}
BYTES = {0: b"\x00\x1b", 1: b"\xff\x00"}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 5000
    shops = ["north", "south", "e\u0301st\x1b[31m", "lone"]
    return pd.DataFrame(
        {
            "who": [f"p{k}" for k in rng.integers(0, 900, n)],
            "store": rng.choice(shops, n, p=[0.5, 0.3, 0.1999, 0.0001]),
            "year": rng.integers(2020, 2024, n),
            "tag": [BYTES[k] for k in rng.integers(0, 2, n)],
            "age": rng.uniform(-5, 90, n),
        }
    )


@pytest.fixture
def here(frame, tmp_path, monkeypatch):
    text = frame[["who", "store"]]
    text.to_csv(tmp_path / "t.csv", index=False)
    text.to_csv(tmp_path / "bare.csv", index=False, header=False)
    text.to_parquet(tmp_path / "t.parquet")
    text.to_feather(tmp_path / "t.feather")
    np.savez(tmp_path / "t.npz", **{name: text[name].to_numpy(str) for name in text})
    frame[["store"]].to_csv(tmp_path / "one.csv", index=False)
    frame.to_parquet(tmp_path / "wide.parquet")
    frame[["age"]].to_csv(tmp_path / "age.csv", index=False)
    np.save(tmp_path / "age.npy", frame[["age"]].to_numpy())
    (tmp_path / "keys.txt").write_text("north\n\nwest, or not\n\n")
    (tmp_path / "edges.txt").write_text("# years\n-5\n20\n90\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*argv):
    return main(["count", *map(str, argv)])


def printed(capsys, *argv):
    assert run(*argv, "--json", "--seed", 3) == Exit.OK
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


FILES = ["t.csv", "bare.csv", "t.parquet", "t.feather", "t.npz", "wide.parquet"]


@pytest.mark.parametrize(
    ("name", "user"), [("one.csv", None), *((name, u) for name in FILES for u in (None, "who"))]
)
def test_files_of_text_alone_are_counted_as_the_library_counts_a_table(
    name, user, here, frame, capsys
):
    group, who, more = ("f1", "f0", ["--no-header"]) if name == "bare.csv" else ("store", "who", [])
    argv = [name, *more, "--group", group, *BUDGET, "--jobs", 2]
    argv += ["--user", who, "--max-keys", 2] if user else []
    known = {**KNOWN, "max_keys": 2 if user else 1}
    for keys, text in ([["north", "west"], "north,west"], [None, None]):
        wanted = PrivateCounts(keys=keys, **known)(frame, key="store", user=user, seed=3)
        found = printed(capsys, *argv, *([] if text is None else ["--keys", text]))
        assert found["keys"] == wanted.keys and found["value"] == wanted.value.tolist()
        assert found["neighbors"] == "add-remove" and found["kind"] == "counts"
        assert found["confidence_interval_95"] == [
            end.tolist() for end in wanted.confidence_interval()
        ]
    rows = open_rows(name, [], by=[group], header=name != "bare.csv")
    assert rows.d == 0 and sum(map(len, rows)) == len(frame)


def test_only_the_columns_named_are_read(here, frame, monkeypatch):
    """A column of text that nobody asked for is no reason to refuse a file."""
    wide = open_rows("wide.parquet", ["age"], by=["store"])  # its numbers are not read either
    seen = []
    labelled = type(wide).labelled
    monkeypatch.setattr(
        type(wide),
        "labelled",
        lambda self, d: (seen.append((d, self.columns)), labelled(self, d))[1],
    )
    wanted = PrivateCounts(keys=["north"], mu=1.0)(frame, key="store", seed=1)
    found = PrivateCounts(keys=["north"], mu=1.0)(wide, key="store", seed=1)
    assert found.value == wanted.value and seen == [(0, [])]


def test_public_keys_are_as_the_column_has_them(here, frame, capsys):
    of_year = [*BUDGET, "--group", "year", "--keys"]
    assert printed(capsys, "wide.parquet", *of_year, "2023,2020,1")["keys"] == [2023, 2020, 1]
    of_tag = [*BUDGET, "--group", "tag", "--keys"]
    found = printed(capsys, "wide.parquet", *of_tag, "ff00,0a")
    wanted = PrivateCounts(keys=[BYTES[1], b"\n"], **KNOWN)(
        {"tag": frame.tag.to_numpy()}, key="tag", seed=3
    )
    assert (found["keys"], found["value"]) == (["ff00", "0a"], wanted.value.tolist())
    of_store = [*BUDGET, "--group", "store", "--keys"]
    assert printed(capsys, "t.csv", *of_store, "keys.txt")["keys"] == ["north", "west, or not"]
    for argv, phrase in (
        (["wide.parquet", *of_year, "2020,x"], "must be integers, as column 'year' is"),
        (["wide.parquet", *of_tag, "x"], "must be bytes in hexadecimal digits, as column 'tag'"),
        (["t.csv", *of_store, "a,a"], "each once"),
        (["t.csv", *of_store, "a,"], "--keys has an empty value"),
        (["t.csv", *of_store, ""], "--keys has an empty value"),
        (["t.csv", *of_store, "."], "cannot be read as lines of UTF-8"),
    ):
        assert run(*argv) == Exit.PARAMETER
        assert phrase in capsys.readouterr().err


@pytest.mark.parametrize(
    "given",
    [["age.csv"], ["age.npy"], ["age.csv", "--group", "age"], ["wide.parquet", "--group", "age"]],
)
def test_a_histogram_is_of_one_column_of_numbers(given, here, frame, capsys):
    wanted = PrivateCounts(edges=[-5, 20, 90], mu=0.5)(frame.age.to_numpy(), seed=3)
    for edges in ("-5,20,90", "edges.txt"):
        found = printed(capsys, *given, "--mu", 0.5, "--edges", edges)
        assert found["value"] == wanted.value.tolist() and found["edges"] == [-5, 20, 90]
    assert run(*given, "--mu", 0.5, "--edges", "-5,20,90") == Exit.OK
    assert "\n[-5, 20)  " in (out := capsys.readouterr().out) and "\n[20, 90]  " in out


def test_a_histogram_of_users(here, frame, capsys):
    told = ["--group", "age", "--user", "who", "--max-keys", 2, "--neighbors", "replace"]
    found = printed(capsys, "wide.parquet", "--mu", 0.5, "--edges", "-5,20,90", *told)
    known = {"edges": [-5, 20, 90], "max_keys": 2, "mu": 0.5, "neighbors": "replace"}
    wanted = PrivateCounts(**known)(frame, key="age", user="who", seed=3)
    assert found["value"] == wanted.value.tolist() and found["n"] == frame.who.nunique()


def test_a_person_reads_a_row_for_each_group_and_no_control_characters(here, capsys):
    argv = ["t.csv", "--group", "store", "--user", "who", "--max-keys", 3, *BUDGET]
    assert run(*argv, "--out", "r.npz", "--seed", 3) == Exit.OK
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\\x1b[31m" in out
    assert "\nlone" not in out, "a key of one user is not named"
    assert "users (noisy)" in out and "unit: all rows of one value of who" in out
    assert "a user counts in 3 groups at most (--max-keys)" in out
    with np.load("r.npz") as saved:
        assert saved["keys"].tolist() == json.loads(str(saved["json"]))["keys"]
        assert (saved["lower"] < saved["value"]).all() and (saved["value"] < saved["upper"]).all()
    assert run("t.csv", "--group", "who", "--epsilon", 0.1, "--delta", 1e-12) == Exit.OK
    assert "no value of the column has enough" in capsys.readouterr().out


def test_it_is_drawn_from_a_ledger_and_goes_on_from_a_checkpoint(here, capsys):
    ledger = ["create", "l", "--mu", "0.5", "--neighbors", "add-remove"]
    assert main(["ledger", *ledger, "--unit", "all rows of one value of who"]) == Exit.OK
    argv = ["t.csv", "--group", "store", "--user", "who", "--keys", "north", "--mu", "0.4"]
    capsys.readouterr()
    told = []
    for more in ([], ["--jobs", "2"], ["--discard"]):
        assert run(*argv, "--ledger", "l", "--resume", "c.ck", *more) == Exit.OK
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] == told[2] and "entry 1 of the ledger" in told[0]
    assert not (here / "c.ck").exists()
    assert run(*argv, "--ledger", "l") == Exit.BUDGET
    assert run("t.csv", *argv[1:], "--resume", "t.csv") == Exit.OUTPUT


@pytest.mark.parametrize(
    ("argv", "code", "phrase"),
    [
        (["t.csv"], Exit.USAGE, "give --group COLUMN: the rows"),
        (["t.csv", "--group", "store", "--mu", "1"], Exit.USAGE, "one budget"),
        (["t.csv", "--group", "store", "--max-keys", "2"], Exit.USAGE, "goes with --user"),
        (["t.csv", "--group", "who", "--user", "who"], Exit.USAGE, "two columns"),
        (["t.csv", "--group", "store", "--jobs", "0"], Exit.PARAMETER, "at least 1"),
        (["t.csv", "--group", "store", "--discard"], Exit.USAGE, "goes with --resume"),
        (["t.csv", "--group", "store", "--out", "r.txt"], Exit.USAGE, "must end in"),
        (["t.csv", "--group", "shop"], Exit.DATA, "must have the column 'shop'"),
        (["none.csv", "--group", "shop"], Exit.DATA, "is not there"),
        (["age.csv", "--edges", "1,2", "--keys", "1"], Exit.USAGE, "--keys, values"),
        (["age.csv", "--edges", "2,1"], Exit.PARAMETER, "ascending"),
        (["age.csv", "--edges", "1,x"], Exit.PARAMETER, "--edges: 1,x cannot be read"),
        (["age.csv", "--edges", "keys.txt"], Exit.PARAMETER, "one number for each end, but line 1"),
        (["wide.parquet", "--edges", "1,2"], Exit.DATA, "or name one column by --group"),
        (["t.csv", "--edges", "1,2"], Exit.PARAMETER, "the data have 2: name one by --group"),
        (["age.npy", "--edges", "1,2", "--group", "a"], Exit.DATA, "leave out columns and labels"),
    ],
)
def test_what_does_not_go_together_is_said(argv, code, phrase, here, capsys):
    assert run(*argv, *BUDGET) == code
    out, err = capsys.readouterr()
    assert phrase in err and err.count("\n") == 1 and out == ""


def test_private_keys_need_epsilon_and_delta(here, capsys):
    assert run("t.csv", "--mu", "1", "--group", "store") == Exit.PARAMETER
    assert "public keys" in capsys.readouterr().err


def test_rows_of_labels_alone_are_of_no_region(here):
    rows = open_rows("one.csv", by="store")
    assert (rows.d, rows.columns) == (0, [])
    assert PrivateCounts(keys=["north"], mu=1.0)(rows, key="store").keys == ["north"]
    for name in ("t.csv", "t.parquet", "t.npz"):
        with pytest.raises(ValueError, match="no columns to read"):
            open_rows(name, [])
