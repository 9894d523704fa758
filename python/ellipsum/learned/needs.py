"""Whether what the extra ``learned`` installs is there; a message that names it where it is not."""

from __future__ import annotations

import importlib

__all__ = ["EXTRA", "check"]

EXTRA = "pip install 'ellipsum[learned]'"


def check() -> None:
    """Raise an ImportError that names the extra unless all of it can be imported."""
    for name, package in (
        ("torch", "PyTorch"),
        ("safetensors", "safetensors"),
        ("sklearn", "scikit-learn"),
    ):
        try:
            importlib.import_module(name)
        except ImportError:
            raise ImportError(f"ellipsum.learned needs {package}: {EXTRA}", name=name) from None
