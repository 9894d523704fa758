"""`ellipsum mean … --group`: the release of the library, and what does not go together."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from ellipsum import Ellipsoid, PrivateGroupMean, PrivateGroupSum, open_rows
from ellipsum.cli.exit import Exit
from ellipsum.cli.main import main

BUDGET = ["--epsilon", "1", "--delta", "1e-6"]
SHAPE = ["--ball", "4", "--center", "0,1"]
LEDGER = ["--neighbors", "add-remove", "--unit", "all rows of one value of who"]
REGION = Ellipsoid.ball(4.0, [0, 1])


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 5000
    return pd.DataFrame(
        {
            "who": rng.integers(0, 900, n),
            "store": rng.choice(["north", "south", "e\u0301st\x1b[31m", "lone"], n,
                                p=[0.5, 0.3, 0.1999, 0.0001]),
            "number": rng.integers(1, 4, n),
            "a": rng.normal(size=n),
            "b": rng.normal(1, 1, n),
        }
    )  # fmt: skip


@pytest.fixture
def here(frame, tmp_path, monkeypatch):
    frame.drop(columns="number").to_csv(tmp_path / "t.csv", index=False)
    frame.drop(columns="store").to_parquet(tmp_path / "t.parquet")
    (tmp_path / "keys.txt").write_text("north\nsouth\nwest, or not\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*argv):
    return main([str(a) for a in argv])


def printed(capsys, *argv):
    assert run(*argv, "--json", "--seed", 3) == Exit.OK
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("kind", ["mean", "sum"])
def test_it_is_the_release_of_the_library(kind, here, frame, capsys):
    make = PrivateGroupMean if kind == "mean" else PrivateGroupSum
    rows = open_rows("t.csv", by=["store", "who"])  # in a CSV users are text
    known = {"max_keys": 2, "epsilon": 1, "delta": 1e-6}
    argv = [kind, "t.csv", "--group", "store", "--user", "who", *SHAPE, *BUDGET]
    for keys, text in ([["north", "west"], "north,west"], [None, None]):
        mechanism = make(REGION, keys=keys, **known)
        release = mechanism(rows, key="store", user="who", seed=3)
        given = [] if text is None else ["--keys", text]
        found = printed(capsys, *argv, "--max-keys", 2, *given)
        assert found["value"] == release.value.tolist() and found["keys"] == release.keys
        assert found["columns"] == ["a", "b"] and found["neighbors"] == "add-remove"
    replace = make(REGION, keys=["north"], neighbors="replace", epsilon=1, delta=1e-6)
    plain = frame.drop(columns=["number", "who"])
    release = replace(plain, key="store", seed=3)
    plain.to_csv("plain.csv", index=False)
    argv = [kind, "plain.csv", "--group", "store", *SHAPE, *BUDGET, "--keys", "north"]
    assert printed(capsys, *argv, "--neighbors", "replace")["value"] == release.value.tolist()


def test_public_keys_are_of_the_column_s_type_and_may_be_in_a_file(here, capsys):
    argv = ["mean", "t.parquet", "--group", "number", "--user", "who", *SHAPE, *BUDGET]
    assert printed(capsys, *argv, "--keys", "3,1,77")["keys"] == [3, 1, 77]
    assert run(*argv, "--keys", "1,x") == Exit.PARAMETER
    assert "must be integers" in capsys.readouterr().err
    argv = ["mean", "t.csv", "--group", "store", "--user", "who", *SHAPE, *BUDGET]
    found = printed(capsys, *argv, "--keys", "keys.txt")
    assert found["keys"] == ["north", "south", "west, or not"]
    assert run(*argv, "--keys", "a,a") == Exit.PARAMETER
    assert "each once" in capsys.readouterr().err


def test_a_person_reads_a_row_for_each_group_and_no_control_characters(here, capsys):
    argv = ["mean", "t.csv", "--group", "store", "--user", "who", "--max-keys", 3]
    assert run(*argv, *SHAPE, *BUDGET, "--out", "r.npz") == Exit.OK
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\\x1b[31m" in out
    assert "lone" not in out, "a key of one user is not named"
    assert "users (noisy)" in out and "unit: all rows of one value of who" in out
    saved = np.load("r.npz")
    assert saved["value"].shape == (3, 2) and len(json.loads(str(saved["json"]))["keys"]) == 3


def test_it_is_drawn_from_a_ledger(here, capsys):
    assert run("ledger", "create", "l", "--mu", "0.5", *LEDGER) == Exit.OK
    argv = ["mean", "t.csv", "--group", "store", "--user", "who", *SHAPE, "--keys", "north"]
    assert run(*argv, "--mu", "0.4", "--ledger", "l") == Exit.OK
    assert "entry 1 of the ledger" in capsys.readouterr().out
    assert run(*argv, "--mu", "0.4", "--ledger", "l") == Exit.BUDGET


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (["--keys", "a"], Exit.USAGE),
        (["--max-keys", "2"], Exit.USAGE),
        (["--group", "store", "--max-keys", "2"], Exit.USAGE),
        (["--group", "store", "--user", "store"], Exit.USAGE),
        (["--group", "store", "--jobs", "0"], Exit.PARAMETER),
        (["--group", "store", "--user", "who", "--jobs", "2"], Exit.OK),
        (["--group", "store", "--user", "who", "--missing", "ignore"], Exit.OK),
        (["--group", "store", "--user", "who", "--grouped"], Exit.USAGE),
        (["--group", "store", "--user", "who", "--max-keys", "0"], Exit.PARAMETER),
        (["--group", "shop", "--user", "who"], Exit.DATA),
    ],
)
def test_what_does_not_go_together_is_said(more, code, here, capsys):
    assert run("mean", "t.csv", *SHAPE, *BUDGET, *more) == code
    assert capsys.readouterr().err.count("\n") == (code != Exit.OK)
    if "--missing" in more:
        assert run("sum", "t.csv", *SHAPE, *BUDGET, *more) == Exit.USAGE
    if more[:2] == ["--group", "store"]:
        argv = ["mean", "t.csv", "--bounds", "-4,4", *BUDGET, "--group", "store"]
        assert run(*argv) == Exit.USAGE and "--one-pass" in capsys.readouterr().err


def test_private_keys_need_epsilon_and_delta(here, capsys):
    argv = ["mean", "t.csv", *SHAPE, "--mu", "1", "--group", "store", "--user", "who"]
    assert run(*argv) == Exit.PARAMETER
    assert "public keys" in capsys.readouterr().err
