"""Numba is required by what runs on it, and by nothing else."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "build_backend" / "lean_metadata.py"
NEEDS = b"""Metadata-Version: 2.4
Name: ellipsum
Requires-Dist: numpy>=1.26
Requires-Dist: numba>=0.59
Requires-Dist: scipy>=1.11
Provides-Extra: test
Requires-Dist: numba>=0.59; extra == "test"
Requires-Dist: numbagg>=1

Requires-Dist: numba is what the description says
"""
LEAN = NEEDS.replace(b"Requires-Dist: numba>=0.59\n", b"", 1)


@pytest.fixture(scope="module")
def lean():
    spec = importlib.util.spec_from_file_location("lean_metadata", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_requirement_goes_and_those_of_extras_stay(lean, tmp_path):
    (tmp_path / "METADATA").write_bytes(NEEDS)
    lean.without_numba(tmp_path / "METADATA")
    assert (tmp_path / "METADATA").read_bytes() == LEAN


@pytest.mark.parametrize("core", ["_core.cpython-311-x86_64-linux-gnu.so", "_core.pyd", None])
def test_a_wheel_loses_it_if_it_has_the_kernels(lean, tmp_path, core):
    path = tmp_path / "ellipsum-1-py3-none-any.whl"
    held = {
        "ellipsum/kernels/_core.pyi": b"stub",
        "ellipsum-1.dist-info/METADATA": NEEDS,
        "ellipsum-1.dist-info/RECORD": b"",
    }
    if core:
        held[f"ellipsum/kernels/{core}"] = bytes(1000)
    record = "".join(f"{name},{_digest(raw)},{len(raw)}\n" for name, raw in held.items())
    held["ellipsum-1.dist-info/RECORD"] = record.encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, raw in held.items():
            file.writestr(name, raw)
    before = path.read_bytes()
    lean.without_numba_in(path)
    if core is None:
        assert path.read_bytes() == before
        return
    with zipfile.ZipFile(path) as file:
        found = {name: file.read(name) for name in file.namelist()}
        assert file.testzip() is None
    assert found.keys() == held.keys() and os.listdir(tmp_path) == [path.name]
    assert found["ellipsum-1.dist-info/METADATA"] == LEAN
    lines = found["ellipsum-1.dist-info/RECORD"].decode().splitlines()
    assert f"ellipsum-1.dist-info/METADATA,{_digest(LEAN)},{len(LEAN)}" in lines
    assert len(lines) == len(held)


def _digest(raw):
    digest = base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def test_without_a_compiler_it_stays(lean, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for named in ("", str(tmp_path / "none"), "none -O2"):
        monkeypatch.setenv("CXX", named)
        assert not lean.compiles()
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.delenv("CXX")
    assert not lean.compiles()


@pytest.mark.parametrize("forced, said", [("numba", "BACKEND=numba needs"), ("", "without them")])
def test_without_numba_and_kernels_the_error_says_what_to_install(forced, said, tmp_path):
    code = (
        "import sys\n"
        "sys.modules['numba'] = sys.modules['ellipsum.kernels._core'] = None\n"
        "import ellipsum"
    )
    known = os.environ | {"ELLIPSUM_BACKEND": forced}
    run = subprocess.run([sys.executable, "-c", code], env=known, capture_output=True, text=True)
    last = run.stderr.strip().splitlines()[-1]
    assert run.returncode and said in last and "needs numba: pip install numba" in last
