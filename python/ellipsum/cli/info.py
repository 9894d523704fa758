"""``ellipsum info``: what runs here, and why."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .. import __version__
from ..kernels.backend import backend, supported_cpus, thread_count
from .exit import Exit

__all__ = ["facts", "run"]

_DEPENDENCIES = ("numpy", "scipy")
#: Optional packages, and the extra of ellipsum that brings each.
_OPTIONAL = {
    "numba": "numba",  # what has the C++ kernels runs without it
    "pyarrow": "arrow",
    "dp-accounting": "accounting",
    "tqdm": "progress",
    "matplotlib": "plot",
    "scikit-learn": "demo",
}


def facts() -> dict[str, Any]:
    """Versions, backend, instruction sets, threads and packages, as plain values."""
    runs = backend()
    return {
        "ellipsum": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}",
        "backend": runs.name,
        "cpu": runs.cpu,
        "reason": runs.reason,
        "cpus supported": supported_cpus(),
        "threads": _threads(),
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in _DEPENDENCIES},
        "optional": {name: _version(name) for name in _OPTIONAL},
    }


def run(*, as_json: bool, compile_now: bool = False) -> int:
    """Print the facts; before that, compile the fallback where it runs and that was asked for."""
    if compile_now:
        from .warm import warm

        warm()
    found = facts()
    print(json.dumps(found) if as_json else _text(found))
    return Exit.OK


_FORCED = ("ELLIPSUM_CPU is for the C++ core", "ELLIPSUM_CPU forces one")


def _text(found: dict[str, Any]) -> str:
    lines = [
        f"ellipsum {found['ellipsum']}, {found['python']} on {found['machine']}",
        f"backend   {found['backend']} ({found['cpu']}): {found['reason']}",
        f"targets   {', '.join(found['cpus supported'])} ({_FORCED[found['backend'] == 'cpp']})",
        f"threads   {found['threads']} of {found['cores']} cores (ELLIPSUM_THREADS, --threads)",
        "packages  " + ", ".join(f"{name} {number}" for name, number in found["packages"].items()),
        "optional  " + "\n          ".join(_optional(found["optional"])),
    ]
    return "\n".join(lines)


def _optional(found: dict[str, str | None]) -> list[str]:
    return [
        f"{name} {number}" if number else f"{name} missing: pip install {name}"
        for name, number in found.items()
    ]


def _threads() -> int | str:
    try:
        return thread_count(None)
    except ValueError as error:
        return str(error)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
