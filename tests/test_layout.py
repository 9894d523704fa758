"""What the architecture promises about its files, checked on a source checkout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = [
    p
    for d in ("cpp", "python", "tests", "bench")
    for p in (ROOT / d).rglob("*")
    if p.suffix in (".py", ".cpp", ".hpp", ".inl")
]


def test_no_file_is_over_500_lines():
    long = {p.name: n for p in CODE if (n := len(p.read_text().splitlines())) > 500}
    assert not long


def test_the_core_knows_no_python_and_does_not_print():
    for path in (ROOT / "cpp/core").iterdir():
        text = path.read_text()
        assert not re.search(r"Python\.h|pybind|numpy/|std::cout|printf\(", text), path.name


def imports(module):
    text = (ROOT / f"python/ellipsum/{module}.py").read_text()
    inside = re.findall(r"^\s*from \.(\w*) import (.+)$", text, re.M)
    return {
        name
        for package, names in inside
        for name in ([package] if package else re.findall(r"\w+", names))
    }


STAGES = ["ellipsoid", "calibrate", "quadratic_form", "noise", "exact_sum"]


@pytest.mark.parametrize("module", STAGES)
def test_no_arrow_goes_up_from_a_stage_to_a_mechanism(module):
    assert not imports(module) & {"private_sum", "release", "cli", "demo", "plot"}


def test_the_version_is_written_once():
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)[1]
    holders = [p.name for p in CODE if version in p.read_text()]
    assert not holders


def test_the_example_in_the_readme_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    exec(compile(blocks[0], "README.md", "exec"), {})
    assert "private mean of 10000 rows, d = 2" in capsys.readouterr().out
