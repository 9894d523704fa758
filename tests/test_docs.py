"""The documents run: every example prints what its page shows, and the site names every name."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
import re

import pytest

import ellipsum
from doc_pages import ROOT, blocks, fixed_randomness, run_page

PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if any(b.info in ("python", "console") for b in blocks(page.read_text(encoding="utf-8")))
]
HAS_TORCH = importlib.util.find_spec("torch") and importlib.util.find_spec("safetensors")
NEEDS_TORCH = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")


def where_torch_is(name, uses_it):
    """A parameter that is skipped, with a word, where it needs PyTorch and there is none."""
    return pytest.param(name, marks=[NEEDS_TORCH] if uses_it else [])


MODULES = [
    module.name
    for module in pkgutil.walk_packages(ellipsum.__path__, "ellipsum.")
    if not re.search(r"__main__|twins|_core|engines\.beam", module.name)  # Beam is no test's need
]
GUIDES = [
    "first_mean", "choosing_a_region", "from_a_box", "pipeline", "production",
    "auditing", "generalized_chi_square", "other_libraries",
]  # fmt: skip


@pytest.mark.parametrize(
    "page",
    [where_torch_is(p, "ellipsum.learned import" in p.read_text(encoding="utf-8")) for p in PAGES],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_a_page_prints_what_it_shows(page):
    for wrong in run_page(page):
        pytest.fail(
            f"{page.relative_to(ROOT)}, line {wrong.block.line} shows\n{wrong.shown}\n"
            f"but prints\n{wrong.printed}\n(python tests/doc_pages.py writes outputs anew)"
        )


def test_every_guide_has_code_that_runs():
    for guide in GUIDES:
        assert ROOT / f"docs/guides/{guide}.md" in PAGES


def test_a_wrong_output_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n\n```python\nprint(3)\n```\n")
    assert [(w.shown, w.printed) for w in run_page(page)] == [("2\n", "1\n"), ("", "3\n")]


@pytest.mark.parametrize(
    "name", [where_torch_is(n, "learned" in n) for n in ["ellipsum", *MODULES]]
)
def test_the_examples_in_docstrings_hold(name):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    with fixed_randomness():
        assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0


def test_the_reference_documents_every_public_name():
    pages = "".join(p.read_text() for p in (ROOT / "docs/reference").glob("*.rst"))
    documented = set(re.findall(r"^\.\. auto\w+:: ellipsum\.(\w+)$", pages, re.M))
    assert documented == set(ellipsum.__all__) - {"__version__"}
