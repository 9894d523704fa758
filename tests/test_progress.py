"""The progress bar: rows per second and time left, on standard error, for the holder alone."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import pytest

from ellipsum import Ellipsoid, PrivateMean
from ellipsum.cli.exit import Exit
from ellipsum.cli.main import main
from ellipsum.rows import progress as _progress
from ellipsum.rows.files import open_rows

CANARY = "987654.321"


@pytest.fixture
def path(tmp_path):
    values = np.full((500, 2), float(CANARY))
    np.savetxt(tmp_path / "rows.csv", values, delimiter=",", header="a,b", comments="")
    return str(tmp_path / "rows.csv")


def released(capsys, path, *options):
    arguments = ["sum", path, "--mu", "1", "--ball", "9", "--json", "--seed", "7", *options]
    assert main(arguments) == Exit.OK
    out, err = capsys.readouterr()
    return json.loads(out), err


@pytest.mark.parametrize("tqdm", [True, False])
def test_the_bar_goes_to_standard_error_and_changes_nothing(capsys, monkeypatch, path, tqdm):
    if not tqdm:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    watched, err = released(capsys, path, "--progress")
    assert "rows/s" in err and "100%" in err and CANARY not in err
    assert released(capsys, path) == (watched, "")


def test_there_is_no_bar_unless_standard_error_is_a_terminal(capsys, monkeypatch, path):
    assert released(capsys, path)[1] == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert "rows/s" in released(capsys, path)[1]
    assert released(capsys, path, "--no-progress")[1] == ""


def test_every_pass_draws_a_bar(capsys, path):
    data = open_rows(path, progress=True)
    for _ in range(2):
        assert sum(map(len, data)) == 500
        assert "100%" in capsys.readouterr().err


def test_a_pass_that_is_broken_off_closes_its_bar(capsys, monkeypatch, path):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    batches = iter(open_rows(path, progress=True))
    next(batches)
    batches.close()
    assert capsys.readouterr().err.endswith("\n")


def test_the_plain_bar_tells_rate_and_time_left(capsys, monkeypatch):
    clock = iter([0.0, 10.0, 10.05])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    bar = _progress._PlainBar()
    bar.show(2_000_000, 8_000_000, 1e9)
    assert " 25% |#####" in capsys.readouterr().err
    assert bar._line.endswith("| 2M rows, 200k rows/s, 100MB/s, 0:30 left")
    bar.show(2_000_001, 8_000_000, 1e9)
    assert capsys.readouterr().err == ""  # too soon to draw again


def test_clock_and_short_numbers():
    assert [_progress._clock(s) for s in (0.4, 65, 3661)] == ["0:00", "1:05", "1:01:01"]
    assert [_progress._short(x) for x in (7, 1234, 5e9, 2e15)] == ["7", "1.23k", "5G", "2e+03T"]


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_a_plan_says_which_pass_it_is_of_how_many(capsys, monkeypatch, tmp_path, kind, neighbors):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    rows = np.random.default_rng(0).normal(size=(4000, 2))
    np.save(tmp_path / "rows.npy", rows)
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b", comments="")
    mechanism = PrivateMean(lower=[-9, -9], upper=[9, 9], mu=1, neighbors=neighbors)
    last = sum(step.name != "count" for step in mechanism.plan(4000).steps) + (kind == "csv")
    data = open_rows(str(tmp_path / f"rows.{kind}"), progress=True)
    for _ in range(2):
        capsys.readouterr()
        mechanism(data, seed=1)
        bars = [bar.split("\r")[-1] for bar in capsys.readouterr().err.split("\n")[:-1]]
        titles = [bar.split(":")[0] for bar in bars if "100%" in bar]
        wanted = [f"pass {k} of {last}" for k in range(1, last + 1)]
        if kind == "csv":  # how many more there are follows from the rows that it counts
            wanted[0] = "pass 1"
        assert titles == wanted


def test_a_plan_by_users_says_which_pass_it_is(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    rows = np.random.default_rng(0).normal(size=(4000, 2))
    lines = [f"{a},{b},{k % 1000}" for k, (a, b) in enumerate(rows)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,u", *lines]))
    data = open_rows(str(tmp_path / "rows.csv"), ["a", "b"], by="u", progress=True)
    mechanism = PrivateMean(lower=[-9, -9], upper=[9, 9], mu=1, by="u")
    last = mechanism.plan(1000).passes + 1  # to match the users takes one, too
    for _ in range(2):  # each job counts its own
        capsys.readouterr()
        mechanism(data, seed=1)
        bars = [bar.split("\r")[-1] for bar in capsys.readouterr().err.split("\n")[:-1]]
        first, *others = bars
        assert first.startswith("pass 1: 100%") and " 4k rows" in first
        assert [bar.split(":")[0] for bar in others] == [
            f"pass {k} of {last}" for k in range(2, last + 1)
        ]
        assert all("100%" in bar and " 1k rows" in bar for bar in others)
    PrivateMean(Ellipsoid.ball(9.0, d=2), mu=1, by="u")(data)
    assert "pass" not in capsys.readouterr().err
