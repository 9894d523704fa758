"""The extra is needed where it is used, and nowhere else."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCK = """
import builtins, sys
real = builtins.__import__
def without(name, *rest, **more):
    if name.partition(".")[0] == {missing!r}:
        raise ImportError(name)
    return real(name, *rest, **more)
builtins.__import__ = without
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {missing!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Gone())
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stdout + done.stderr


def test_importing_the_package_does_not_import_pytorch():
    code = "import sys, ellipsum.tradeoff, ellipsum.records; print('torch' in sys.modules)"
    assert run(code).strip() == "False"


@pytest.mark.parametrize("missing", ["torch", "safetensors", "sklearn"])
def test_a_missing_part_is_an_error_that_names_the_extra(missing):
    if missing != "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
    if missing == "sklearn":
        pytest.importorskip("safetensors", reason="safetensors is not installed")
    said = run(BLOCK.format(missing=missing) + "import ellipsum.learned")
    assert "ImportError: ellipsum.learned needs" in said
    assert "pip install 'ellipsum[learned]'" in said
