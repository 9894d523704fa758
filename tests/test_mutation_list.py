"""The mutations of ``bench/mutations.py`` fit today's code, so that a run of them can begin."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from mutation_list import MUTATIONS

ROOT = Path(__file__).parent.parent


@cache
def functions_of(path: str) -> list[str]:
    tree = ast.parse((ROOT / path).read_text())
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def test_each_text_stands_once_in_its_file_and_something_else_takes_its_place():
    counts = {m.name: (ROOT / m.file).read_text().count(m.old) for m in MUTATIONS}
    assert {name: count for name, count in counts.items() if count != 1} == {}
    assert [m.name for m in MUTATIONS if m.old == m.new] == []
    assert len(counts) == len(MUTATIONS), "every name is another one"


def test_a_changed_file_of_the_package_is_still_python():
    """Else a mutation would be seen by every test, whatever that test says."""
    for m in MUTATIONS:
        if m.file.endswith(".py"):
            compile((ROOT / m.file).read_text().replace(m.old, m.new), m.file, "exec")


def test_the_named_tests_exist():
    for m in MUTATIONS:
        files, _, word = m.tests.partition(" -k ")
        for path in files.split():
            assert (ROOT / path).is_file(), (m.name, path)
        names = [name for path in files.split() for name in functions_of(path)]
        assert any(name.startswith("test_") and word in name for name in names), m.name


def test_the_table_has_every_mutation_and_names_tests_that_exist():
    table = ROOT / "bench/results/mutations.md"
    if not table.exists():
        pytest.skip("the tables of bench/results are not beside the tests (sdist)")
    lines = table.read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][1:]
    assert [row[:2] for row in rows] == [[m.name, f"`{m.file}`"] for m in MUTATIONS]
    for name, _, seen, *_ in rows:
        if "::" in seen:
            path, _, test = seen.strip("`").partition("::")
            assert test.partition("[")[0] in functions_of(path), name
