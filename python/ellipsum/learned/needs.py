"""Whether what the extra ``learned`` installs is there; a message that names it where it is not."""

from __future__ import annotations

import importlib
import importlib.util

__all__ = ["EXTRA", "check"]

EXTRA = "pip install 'ellipsum[learned]'"

_NEEDED = {"torch": "PyTorch", "safetensors": "safetensors", "sklearn": "scikit-learn"}


def check() -> None:
    """Raise an ImportError that names the extra unless all of it can be imported.

    All are looked for before the first is imported: that takes seconds.
    """
    for there in (importlib.util.find_spec, importlib.import_module):
        for name, package in _NEEDED.items():
            try:
                found = there(name)
            except ImportError:
                found = None
            if found is None:
                raise ImportError(f"ellipsum.learned needs {package}: {EXTRA}", name=name) from None
