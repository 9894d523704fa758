"""Claims of docs/guarantees: what code cites exists; what is claimed is cited and attacked."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = {p.stem: p for p in (ROOT / "docs/guarantees").glob("*.md") if p.stem != "README"}
CODE = [
    path
    for folder in ("python", "cpp")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".pyi", ".cpp", ".hpp", ".inl")
]
_NAME = re.compile(rf"\b(?:{'|'.join(map(re.escape, PAGES))})-\d+\b")
_CLAIM = re.compile(r"^\*\*Claim ([\w-]+)\.?\*\*", re.M)


def claims_of(text: str) -> dict[str, str]:
    """Each claim's name and its text, up to the next claim or heading."""
    found = [*_CLAIM.finditer(text)]
    ends = [*(m.start() for m in found[1:]), len(text)]
    return {
        m[1]: re.split(r"^#", text[m.end() : end], flags=re.M)[0]
        for m, end in zip(found, ends, strict=False)
    }


def attackers(claim: str) -> list[str]:
    """What stands behind "Attacked by" in a claim's text, to the end of the paragraph."""
    line = re.search(r"^\*Attacked by:\*(.*?)(?:\n\n|\Z)", claim, re.M | re.S)
    return re.findall(r"`([^`]+)`", line[1]) if line else []


@cache
def functions_of(path: Path) -> set[str]:
    """Names of the test functions of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


def is_there(test: str) -> bool:
    """Whether ``test_file.py::test_name``, or a file of C++ tests, exists."""
    file, _, name = test.partition("::")
    path = ROOT / "tests" / file
    return path.is_file() and (
        not name or (name.startswith("test_") and name in functions_of(path))
    )


CLAIMS = {
    name: text
    for page in PAGES.values()
    for name, text in claims_of(page.read_text(encoding="utf-8")).items()
}
CITED = Counter(name for path in CODE for name in _NAME.findall(path.read_text(encoding="utf-8")))


def test_claims_are_numbered_by_page_from_one():
    for stem, page in PAGES.items():
        names = _CLAIM.findall(page.read_text(encoding="utf-8"))
        assert names == [f"{stem}-{i + 1}" for i in range(len(names))]
        assert names, f"{page.name} claims nothing"


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_names_tests_that_exist(claim):
    tests = attackers(CLAIMS[claim])
    assert tests, f"claim {claim} has no line *Attacked by:*"
    missing = [test for test in tests if not is_there(test)]
    assert not missing, f"claim {claim} names {missing}"


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_is_cited_by_code(claim):
    assert CITED[claim], f"no file under python/ or cpp/ names {claim}"


def test_what_code_and_pages_cite_is_claimed():
    for path in [*CODE, *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").glob("*.py")]:
        if path != Path(__file__):
            cited = set(_NAME.findall(path.read_text(encoding="utf-8")))
            assert cited <= CLAIMS.keys(), f"{path.name} cites {cited - CLAIMS.keys()}"


def test_pages_name_tests_that_exist():
    named = re.compile(r"`(test_\w+\.py::\w+)`")
    for page in (ROOT / "docs").rglob("*.md"):
        missing = [t for t in named.findall(page.read_text(encoding="utf-8")) if not is_there(t)]
        assert not missing, f"{page.name} names {missing}"


def test_a_claim_that_drifts_is_seen():
    page = "**Claim sum-1.** x\n\n*Attacked by:* `test_claims.py::test_no_such`,\n`no.py`.\n\n# b\n"
    (text,) = claims_of(page).values()
    assert attackers(text) == ["test_claims.py::test_no_such", "no.py"]
    assert not any(map(is_there, attackers(text)))
    assert is_there("test_claims.py::test_a_claim_that_drifts_is_seen")
