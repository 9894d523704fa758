"""Sphinx: the guides, the guarantees and the API reference as a site.

    python -m sphinx -W --keep-going -b html docs build/site

Formulas are written in Unicode, here and in docstrings, so that a page reads alike in a
terminal, in a repository and on the site, and needs no script from anywhere.
"""

from __future__ import annotations

import importlib.util
import re
from importlib.metadata import version as _version
from pathlib import Path
from typing import Any

project = "ellipsum"
author = "the ellipsum developers"
copyright = author
release = version = _version("ellipsum")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx.ext.viewcode",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]

# ---- docstrings ----------------------------------------------------------------------
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes and units stand in the text, where a type would not hold them
autodoc_class_signature = "mixed"
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False
default_role = "py:obj"
viewcode_line_numbers = True
# Pages of learned releases and of engines are built where PyTorch and Beam are missing, too.
autodoc_mock_imports = [
    name
    for name in ("torch", "safetensors", "sklearn", "apache_beam")
    if importlib.util.find_spec(name) is None
]

# ---- references: every one of them must be found --------------------------------------
nitpicky = True
smartquotes = False  # X' is a neighbour of X
# The types of a numpy docstring are words ("array (d,), data units"), not references.
nitpick_ignore_regex = [
    ("py:class", r"(?!ellipsum\.).*"),
    ("py:exc", r"\w+"),
    ("py:mod", r"ellipsum(\.\w+)+"),  # modules that have no page
]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

# ---- pages ---------------------------------------------------------------------------
html_theme = "furo"
html_title = f"ellipsum {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1d5fbf",
        "color-brand-content": "#1d5fbf",
        "color-brand-visited": "#1d5fbf",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7fb0ff",
        "color-brand-content": "#7fb0ff",
        "color-brand-visited": "#7fb0ff",
    },
}


_CLAIM_PAGES = "|".join(page.stem for page in Path(__file__).parent.glob("guarantees/*.md"))


def _without_repository_links(app: Any, page: str, source: list[str]) -> None:
    """A link to a file that is no page (a folder, a test, a licence) becomes its name."""
    folder = re.compile(r"\[([^\]]+)\]\((?:\.\./)*(?:LICENSE|tests|bench|python|cpp)[^)]*\)")
    source[0] = folder.sub(r"\1", source[0])


_TEX = {
    "sum": "Σ", "chi": "χ", "lambda": "λ", "partial": "∂", "pi": "π", "int": "∫", "log": "log",
    "kappa": "κ", "sqrt": "√", "infty": "∞", "le": "≤", "ge": "≥", "cdot": "·",
}  # fmt: skip


def _unicode(math: re.Match[str]) -> str:
    """A formula of a docstring as text: a page then needs no script to show it."""
    text = re.sub(r"\\frac\{(.*?)\}\{(.*?)\}", r"(\1)/(\2)", math[1])
    text = re.sub(r"\\frac ?(\w)(\w)", r"\1/\2", text)
    text = re.sub(r"\\([a-z]+) ?", lambda word: _TEX[word[1]] + " " * (word[1] == "log"), text)
    return f"*{text.replace('^T', 'ᵀ').replace('^2', '²').replace('{', '(').replace('}', ')')}*"


def _read_docstring(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """The paragraph "Source: ..." as the section that numpydoc knows; links to pages and claims."""
    text = re.sub(r":math:`([^`]*)`", _unicode, "\n".join(lines))
    text = re.sub(r"(?m)^Source(: |\n-+\n)", "References\n----------\n", text, count=1)
    text = re.sub(r"(``)?\bdocs/([\w/]+)\.md\b(?(1)``)", r":doc:`/\2`", text)
    text = re.sub(
        rf"\b(claims? )?({_CLAIM_PAGES})-(\d+)\b", r":doc:`\1\2-\3 </guarantees/\2>`", text
    )
    text = re.sub(r"(``[^`]*``)|\|", lambda bar: bar[1] or r"\|", text)  # |x| is a length here
    lines[:] = text.split("\n")


def setup(app: Any) -> None:
    """Register the above with Sphinx."""
    app.connect("source-read", _without_repository_links)
    app.connect("autodoc-process-docstring", _read_docstring, priority=400)
