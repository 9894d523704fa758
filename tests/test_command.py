"""The ``ellipsum`` command as a process: what can go wrong before the package is imported."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import ellipsum_command
from ellipsum.cli import job as cli_job
from ellipsum.cli.exit import Exit
from ellipsum.cli.main import main

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def command(*arguments, **environment):
    """The process that the script of the install starts, with a clean environment of ours."""
    base = {k: v for k, v in os.environ.items() if not k.startswith("ELLIPSUM_")}
    return subprocess.Popen(
        [sys.executable, "-m", "ellipsum_command", *arguments],
        env=base | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_script_of_the_project_is_this_command():
    module, name = re.search(r'^ellipsum = "(\w+):(\w+)"', PROJECT.read_text(), re.M).groups()
    assert getattr(import_module(module), name) is ellipsum_command.main
    assert f'"python/{module}"' in PROJECT.read_text()  # and the wheel holds it


def test_it_has_the_exit_codes_of_the_command_line():
    ours = ellipsum_command
    codes = (ours._PARAMETER, ours._MISSING, ours._INTERRUPTED)
    assert codes == (Exit.PARAMETER, Exit.MISSING, Exit.INTERRUPTED)


def test_it_runs_the_command_line(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((50, 2)))
    child = command("sum", str(tmp_path / "x.npy"), "--mu", "1", "--ball", "9", "--json")
    out, err = child.communicate()
    assert (child.returncode, err) == (Exit.OK, "") and '"private": true' in out
    child = command("sum")
    out, err = child.communicate()
    assert (child.returncode, out) == (Exit.USAGE, "") and err.count("\n") == 1


@pytest.mark.parametrize(
    "setting",
    [{"ELLIPSUM_BACKEND": "fortran"}, {"ELLIPSUM_BACKEND": "a\nb"}, {"ELLIPSUM_CPU": "sse9"}],
)
def test_a_bad_setting_is_one_line_and_exit_code_3(setting):
    if "ELLIPSUM_CPU" in setting:
        pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")
    child = command("info", **setting)
    out, err = child.communicate()
    assert (child.returncode, out) == (Exit.PARAMETER, "")
    (name,) = setting
    assert err.startswith(f"ellipsum: {name}=") and "unknown: use" in err and err.count("\n") == 1


def test_a_package_that_cannot_be_imported_is_one_line_and_exit_code_5(tmp_path):
    (tmp_path / "numpy.py").write_text("raise ImportError('secret', name='numpy')")
    child = command("info", PYTHONPATH=with_path(tmp_path))
    out, err = child.communicate()
    assert (child.returncode, out) == (Exit.MISSING, "")
    assert err == "ellipsum: the package numpy cannot be imported: reinstall it\n"


def with_path(folder):
    """PYTHONPATH with a folder in front of everything else."""
    return os.pathsep.join([str(folder), *(p for p in sys.path if p)])


SLOW_IMPORT = """\
import os, sys
sys.stdout.write("importing\\n"); sys.stdout.flush()
try:
    sys.stdin.read()
except BaseException as error:  # as an import may do with an interrupt
    raise ImportError("a broken install") from error
"""


def test_an_interrupt_while_the_package_is_imported_is_one_line(tmp_path):
    (tmp_path / "numpy.py").write_text(SLOW_IMPORT)
    child = command("info", PYTHONPATH=with_path(tmp_path))
    assert child.stdout.readline() == "importing\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    assert (child.returncode, out) == (Exit.INTERRUPTED, "")
    assert err == "ellipsum: interrupted; nothing was released\n"


def test_an_interrupt_that_is_ignored_stays_ignored(tmp_path):
    """A shell starts background jobs so."""
    (tmp_path / "numpy.py").write_text(SLOW_IMPORT.replace("raise ", "print(error); raise "))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        child = command("info", PYTHONPATH=with_path(tmp_path))
    finally:
        signal.signal(signal.SIGINT, before)
    assert child.stdout.readline() == "importing\n"
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate("go on")
    assert child.returncode == Exit.MISSING and "Interrupt" not in out


@pytest.mark.parametrize("stage", ["_dump", "print"])
def test_an_interrupt_while_the_release_is_written_does_not_say_that_nothing_left(
    capsys, monkeypatch, tmp_path, stage
):
    def interrupt(*_given, **options):
        if "file" not in options:  # not the message itself
            raise KeyboardInterrupt

    np.save(tmp_path / "x.npy", np.ones((50, 2)))
    monkeypatch.setattr(cli_job, stage, interrupt, raising=False)
    out = str(tmp_path / "out.json")
    code = main(["sum", str(tmp_path / "x.npy"), "--mu", "1", "--ball", "9", "--out", out])
    err = capsys.readouterr().err
    assert code == Exit.INTERRUPTED
    assert "count its budget as spent" in err and "nothing" not in err
