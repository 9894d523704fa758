"""The command line on bad input: one sentence, an exit code, nothing of the data."""

from __future__ import annotations

import os
import re
import sys
from types import SimpleNamespace

import pytest

from cli_folder import BUDGET, CANARY, MEAN, folder, inside, rows, run
from ellipsum.cli import job as _cli_job
from ellipsum.cli import options
from ellipsum.cli import release as _cli_release
from ellipsum.cli.exit import Exit
from ellipsum.cli.main import main
from ellipsum.kernels.backend import use_kernels
from ellipsum.rows.files import open_rows

# ---- exit codes and messages -----------------------------------------------------------

BAD = {
    "no command": ([], Exit.USAGE, "COMMAND"),
    "unknown command": (["median"], Exit.USAGE, "median"),
    "no file": (["mean"], Exit.USAGE, "FILE"),
    "no budget": (["mean", "rows.parquet", "--ball", "1"], Exit.USAGE, "one budget"),
    "half a budget": (["mean", "rows.npy", "--epsilon", "1", "--ball", "1"], Exit.USAGE, "--delta"),
    "two budgets": ([*MEAN, "--rho", "1", "--ball", "1"], Exit.USAGE, "one budget"),
    "no number": (["mean", "rows.npy", "--epsilon", "one"], Exit.USAGE, "--epsilon"),
    "abbreviation": (
        [*MEAN, "--bal", "1"],
        Exit.USAGE,
        r"--bal 1; meant is perhaps --ball R \(see ellipsum mean",
    ),
    "lower bound": (
        [*MEAN, "--lower", "0"],
        Exit.USAGE,
        r"unrecognized arguments: --lower 0; meant is perhaps --bounds LO,HI\|FILE \(see",
    ),
    "both bounds": (
        [*MEAN, "--lower=0", "--upper=300"],
        Exit.USAGE,
        r"--lower=0 --upper=300; meant is perhaps --bounds LO,HI\|FILE \(see",
    ),
    "option of another command": (["count", "rows.csv", "--upper", "3"], Exit.USAGE, r"r 3 \(see"),
    "English": ([*MEAN, "--neighbours", "replace"], Exit.USAGE, r"perhaps --neighbors \(see"),
    "hidden option": ([*MEAN, "--seeds", "1"], Exit.USAGE, r"--seeds 1 \(see"),
    "neighbors": ([*MEAN, "--ball", "1", "--neighbors", "swap"], Exit.USAGE, "--neighbors"),
    "no shape": (MEAN, Exit.USAGE, "one shape"),
    "two shapes": ([*MEAN, "--ball", "1", "--sigma", "sigma.npy"], Exit.USAGE, "--sigma"),
    "stray center": ([*MEAN, "--bounds", "0,1", "--center", "center.txt"], Exit.USAGE, "--center"),
    "stray clip": ([*MEAN, "--ball", "1", "--clip-probability", "0.1"], Exit.USAGE, "--clip-prob"),
    "out suffix": ([*MEAN, "--ball", "1", "--out", "x.txt"], Exit.USAGE, "--out must end"),
    "epsilon": (
        ["mean", "rows.npy", "--epsilon", "-1", "--delta", "1e-6", "--ball", "1"],
        Exit.PARAMETER,
        "epsilon must be",
    ),
    "delta": (
        ["mean", "rows.npy", "--epsilon", "1", "--delta", "1", "--ball", "1"],
        Exit.PARAMETER,
        "delta must",
    ),
    "radius": ([*MEAN, "--ball", "-1"], Exit.PARAMETER, "radius must be"),
    "nan radius": ([*MEAN, "--ball", "nan"], Exit.PARAMETER, "radius must be"),
    "zero-width box": ([*MEAN, "--bounds", "1,1"], Exit.PARAMETER, "HI must be above LO, got 1,1"),
    "swapped box": (
        [*MEAN, "--bounds", "5,1"],
        Exit.PARAMETER,
        "--bounds: HI must be above LO, got 5,1",
    ),
    "no such bounds": (
        [*MEAN, "--bounds", "x.csv"],
        Exit.PARAMETER,
        "--bounds must be two numbers",
    ),
    "negative sigma": ([*MEAN, "--sigma", "negative.txt"], Exit.PARAMETER, r"sigma\[1\] is -1"),
    "short sigma": ([*MEAN, "--sigma", "short.txt"], Exit.PARAMETER, "d = 2, the data have d = 3"),
    "no such sigma": ([*MEAN, "--sigma", "x.npy"], Exit.PARAMETER, "--sigma: x.npy cannot be read"),
    "sigma of words": ([*MEAN, "--sigma", "words.txt"], Exit.PARAMETER, "one number for each"),
    "two-column sigma": ([*MEAN, "--sigma", "bounds.csv"], Exit.PARAMETER, r"\(d, 1\)"),
    "partial sigma": ([*MEAN, "--sigma", "partial.json"], Exit.PARAMETER, "column 'height'"),
    "clip": ([*MEAN, "--sigma", "sigma.npy", "--clip-probability", "2"], Exit.PARAMETER, "clip_pr"),
    "threads": ([*MEAN, "--ball", "1", "--threads", "0"], Exit.PARAMETER, "threads must be"),
    "dim": ([*MEAN, "--ball", "1", "--dim", "2"], Exit.PARAMETER, "--dim is 2"),
    "dim 0": ([*MEAN, "--ball", "1", "--dim", "0"], Exit.PARAMETER, "--dim must be"),
    "no dim": (["mean", "list.parquet", *BUDGET, "--ball", "1"], Exit.PARAMETER, "--dim"),
    "constant": ([*MEAN, "--public", "constant.parquet"], Exit.PARAMETER, "'age' .* constant"),
    "no such file": (["mean", "x.parquet", *BUDGET, "--ball", "1"], Exit.DATA, "is not there"),
    "folder": (["mean", "empty", *BUDGET, "--ball", "1"], Exit.DATA, "a folder without files"),
    "column": ([*MEAN, "--ball", "1", "--columns", "age,zz"], Exit.DATA, "no column 'zz'"),
    "truncated": (["mean", "cut.parquet", *BUDGET, "--ball", "1"], Exit.DATA, "truncated"),
    "disagreeing": (
        ["mean", "rows.npy", "rows.csv", *BUDGET, "--ball", "1"],
        Exit.DATA,
        "do not agree",
    ),
    "a record as header": (
        ["mean", "record.csv", *BUDGET, "--ball", "1"],
        Exit.DATA,
        "first line of record.csv does not look like column names: .* pass --no-header",
    ),
    "no dim without a line": (
        ["sum", "zero.csv", "--mu", "1", "--ball", "1", "--no-header"],
        Exit.PARAMETER,
        "give --dim",
    ),
    "dim of a header": (
        ["mean", "rows.csv", *BUDGET, "--ball", "1", "--dim", "2"],
        Exit.PARAMETER,
        "--dim is 2",
    ),
    "private shape": ([*MEAN, "--public", "./rows.parquet"], Exit.USAGE, "shape would leak"),
    "stray error": ([*MEAN, "--ball", "1", "--error", "relative"], Exit.USAGE, "--error goes with"),
    "few public rows": (
        [*MEAN, "--public", "one.parquet", "--correlated"],
        Exit.PARAMETER,
        "public rows must be at least 2 complete ones, got 1",
    ),
    "public file": ([*MEAN, "--public", "x.parquet"], Exit.PARAMETER, "--public: x.parquet is not"),
    "public columns": (
        [*MEAN, "--public", "short.csv"],
        Exit.PARAMETER,
        "--public: short.csv must have column 'height' exactly once",
    ),
    "bounds with names": (
        [*MEAN, "--bounds", "named.csv"],
        Exit.PARAMETER,
        "named.csv must hold lo,hi .*, but line 1 is no line of numbers alone: if it names the",
    ),
    "bounds of a column twice": (
        [*MEAN, "--bounds", "twice.json"],
        Exit.PARAMETER,
        "twice.json must hold lo,hi .*, but has 'height' twice",
    ),
    "bounds that are no JSON": (
        [*MEAN, "--bounds", "broken.json"],
        Exit.PARAMETER,
        "broken.json must hold lo,hi .*, but line 1 is no JSON",
    ),
    "bounds with semicolons": (
        [*MEAN, "--bounds", "semicolons.csv"],
        Exit.PARAMETER,
        "semicolons.csv must .*, but line 2 separates its numbers by a semicolon",
    ),
    "bounds with a word": (
        [*MEAN, "--bounds", "word.csv"],
        Exit.PARAMETER,
        "word.csv must .*, but line 3 holds something that is no number",
    ),
    "no folder": ([*MEAN, "--ball", "1", "--out", "no/x.json"], Exit.OUTPUT, "--out"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_an_exit_code(capfd, case):
    arguments, want, phrase = BAD[case]
    code = main(arguments)
    out, err = capfd.readouterr()
    assert (code, out) == (want, "")
    assert err.startswith("ellipsum: ") and err.count("\n") == 1
    assert CANARY not in err and "Traceback" not in err
    assert re.search(phrase, err)


def test_a_file_cut_short_half_way_leaves_nothing_behind(capsys, folder, tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_bytes((folder / "rows.csv").read_bytes())
    monkeypatch.setattr("ellipsum.rows.csv_chunks.CHUNK_BYTES", 1000)
    shape = _cli_release.known_of_rows
    monkeypatch.setattr(
        _cli_release,
        "known_of_rows",
        lambda *given: (os.truncate(path, 3000), shape(*given))[1],
    )
    out = tmp_path / "x.json"
    code, printed, err = run(
        capsys, "sum", str(path), "--mu", "1", "--ball", "9", "--out", str(out)
    )
    assert (code, printed) == (Exit.DATA, "") and "has changed since it was opened" in err
    assert not out.exists()


def test_a_missing_package_has_its_own_exit_code(capsys, monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] == "pyarrow":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = run(capsys, *MEAN, "--ball", "1")
    assert code == Exit.MISSING and "pip install pyarrow" in err


def test_an_unforeseen_error_is_named_by_type_alone(capsys, monkeypatch):
    def fail(*_given, **_options):
        raise RuntimeError(f"value {CANARY}")

    monkeypatch.setattr(options, "open_rows", fail)
    code, out, err = run(capsys, *MEAN, "--ball", "1")
    assert (code, out) == (Exit.BUG, "")
    assert err == "ellipsum: internal error (RuntimeError): please report it\n"


@pytest.mark.parametrize("stage", ["opened", "known_of_rows", "_announce", "PrivateMean"])
@pytest.mark.parametrize("kind", [TypeError, ValueError, OSError, ImportError])
def test_no_text_but_our_own_is_printed(capsys, monkeypatch, stage, kind):
    def fail(*_given, **_options):
        raise kind(f"Invoked with: array([[{CANARY}")

    monkeypatch.setattr(_cli_release, stage, fail)
    code, out, err = run(capsys, *MEAN, "--bounds", "0,1")
    assert (code, out) == (Exit.MISSING if kind is ImportError else Exit.BUG, "")
    assert CANARY not in err and err.count("\n") == 1


def test_a_kernel_that_refuses_its_arguments_quotes_none_of_them(capsys):
    core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")
    kernels = SimpleNamespace(**vars(core))
    kernels.clip_sum = core.merge  # it cannot take these arguments, and pybind11 shows them all
    with use_kernels(kernels):
        code, out, err = run(capsys, *MEAN, "--ball", "1")
    assert (code, out) == (Exit.BUG, "")
    assert err == "ellipsum: internal error (TypeError): please report it\n"


def test_a_warning_is_not_shown(capfd, monkeypatch):
    def warn(*_given, **_options):
        import warnings

        warnings.warn(f"value {CANARY}", stacklevel=1)
        return open_rows("gone.parquet")

    monkeypatch.setattr(options, "open_rows", warn)
    assert main([*MEAN, "--ball", "1"]) == Exit.DATA
    assert capfd.readouterr().err == "ellipsum: gone.parquet is not there: check its name\n"


def test_an_output_that_cannot_be_written_is_an_error(capsys, tmp_path, monkeypatch):
    def full(*_given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_cli_job, "_dump", full)
    code, out, err = run(capsys, *MEAN, "--ball", "1", "--out", str(tmp_path / "x.json"))
    assert (code, out) == (Exit.OUTPUT, "") and "No space left" in err
    assert list(tmp_path.iterdir()) == []
