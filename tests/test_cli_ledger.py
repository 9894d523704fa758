"""The command line with a ledger: create, draw, be refused, show."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest

from ellipsum import Budget
from ellipsum.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", np.random.default_rng(0).normal(size=(100, 2)))
    assert main(["ledger", "create", "a.ledger", "--mu", "1"]) == 0
    return tmp_path


MEAN = ["mean", "rows.npy", "--ball", "3", "--ledger", "a.ledger", "--json"]


def test_releases_draw_from_a_ledger_until_it_has_no_room(folder, capsys):
    capsys.readouterr()
    for k, mu in enumerate(("0.6", "0.7"), 1):
        assert main([*MEAN, "--mu", mu]) == 0
        assert json.loads(capsys.readouterr().out)["entry"]["entry"] == k
    assert main([*MEAN, "--mu", "0.6"]) == 7
    told = capsys.readouterr()
    assert told.out == ""
    assert "left is mu = 0.387" in told.err and "Traceback" not in told.err
    assert main(["ledger", "show", "a.ledger"]) == 0
    shown = capsys.readouterr().out
    assert "mean: mu = 0.6" in shown and "spent: mu = 0.921954" in shown
    assert main(["ledger", "show", "a.ledger", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert len(plain["entries"]) == 2
    assert plain["left"]["mu"] == Budget(path="a.ledger").left.mu


def test_what_is_wrong_with_a_ledger_is_one_sentence_and_a_code(folder, capsys):
    cases = [
        (["ledger", "create", "a.ledger", "--mu", "1"], 7, "is there already"),
        (["ledger", "create", "b.ledger"], 2, "give one budget"),
        (["ledger", "create", "b.ledger", "--mu", "-1"], 3, "above 0"),
        (["ledger", "show", "none.ledger"], 7, "by: ellipsum ledger create"),
        (["ledger", "show", "rows.npy"], 7, "no ledger"),
        (["ledger"], 2, "ACTION"),
        ([*MEAN[:-2], "none.ledger", "--mu", "0.1"], 7, "by: ellipsum ledger create"),
        ([*MEAN, "--mu", "0.1", "--neighbors", "add-remove"], 7, "--neighbors add-remove"),
        (["mean", "none.npy", *MEAN[2:], "--mu", "0.1"], 4, "none.npy"),
    ]
    for argv, code, message in cases:
        capsys.readouterr()
        assert main(argv) == code, argv
        error = capsys.readouterr().err
        assert message in error and len(error.splitlines()) == 1
    assert Budget(path="a.ledger").spent.mu_squared == 0


def test_a_refusal_says_which_ledger_it_needs_and_that_one_is_taken(folder, capsys):
    np.savez("people.npz", x=np.ones((4, 1)), u=np.array(["a", "a", "b", "c"]))
    asked = ["mean", "people.npz", "--ball", "3", "--mu", "0.1", "--columns", "x"]
    asked += ["--user", "u", "--neighbors", "add-remove", "--json", "--ledger"]
    for known, create in (("a.ledger", "b.ledger"), ("b.ledger", "c.ledger")):
        capsys.readouterr()
        assert main([*asked, known]) == (7 if known == "a.ledger" else 0)
        error = capsys.readouterr().err
        if known == "a.ledger":
            command = error.partition("by: ellipsum ")[2].replace("MU", "1").replace("FILE", create)
            assert main(shlex.split(command)) == 0


def test_a_release_is_not_written_over_what_it_is_made_from(folder, capsys):
    assert main(["ledger", "create", "a.json", "--mu", "1"]) == 0
    (folder / "job.json").symlink_to("a.json")
    np.savez("rows.npz", x=np.ones((4, 2)))
    before = {name: (folder / name).read_bytes() for name in ("a.json", "rows.npz")}
    mean = ["mean", "rows.npz", "--ball", "3", "--mu", "0.1", "--out"]
    records = ["records", "rows.npz", "--epsilon", "4", "--public", "rows.npy", "--out"]
    for argv, what in [
        ([*mean, "a.json", "--ledger", "a.json"], "--out is --ledger too"),
        ([*mean, "job.json", "--ledger", "./a.json"], "--out is --ledger too"),
        ([*mean, "b.json", "--resume", "b.json"], "--out is --resume too"),
        ([*mean, "rows.npz", "--ledger", "a.json"], "--out is a file of rows too"),
        ([*records, "rows.npz"], "--out is a file of rows too"),
    ]:
        capsys.readouterr()
        assert main(argv) == 6, argv
        assert what in capsys.readouterr().err
    assert before == {name: (folder / name).read_bytes() for name in before}
    assert not (folder / "b.json").exists() and Budget(path="a.json").spent.mu_squared == 0
