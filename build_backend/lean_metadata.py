"""Numba as a requirement only of what runs on it: a package without the C++ kernels.

It and LLVM take 200 MB, and with the compiled kernels nothing uses them. A wheel's own content says
whether it has them; before it is built, what a compiler makes of a line says whether it will.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import zipfile
from pathlib import Path

__all__ = ["compiles", "without_numba", "without_numba_in"]

_LINE = re.compile(rb"^Requires-Dist: numba(?![\w.-])(?![^\n]*extra *==)[^\n]*\n", re.M)
_CORE = re.compile(r"ellipsum/kernels/_core\.[^/]*(so|pyd)$")
_PROBE = """#include <Python.h>
#include <vector>
typedef double eight __attribute__((vector_size(64)));
eight twice(eight x) { return x + x; }
std::vector<int> some(1);
"""


def compiles() -> bool:
    """Whether a C++ compiler with Python's headers is here, as CMake would find it."""
    named = os.environ.get("CXX", "").split()
    found = [named] if named else [[name] for name in ("c++", "g++", "clang++")]
    compiler = next((c for c in found if shutil.which(c[0])), None)
    if compiler is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text(_PROBE)
        include = f"-I{sysconfig.get_path('include')}"
        command = [*compiler, "-std=c++17", include, "-c", "-w", str(source), "-o", f"{source}.o"]
        try:
            run = subprocess.run(command, capture_output=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return run.returncode == 0


def without_numba(metadata: Path) -> None:
    """Take the requirement out of a METADATA file; extras keep theirs."""
    metadata.write_bytes(_lean(metadata.read_bytes()))


def _lean(text: bytes) -> bytes:
    head, blank, description = text.partition(b"\n\n")
    return _LINE.sub(b"", head + b"\n")[:-1] + blank + description


def without_numba_in(wheel: Path) -> None:
    """The same in a wheel, if it has the C++ kernels."""
    with zipfile.ZipFile(wheel) as old:
        held = {info.filename: (info, old.read(info)) for info in old.infolist()}
    if not any(_CORE.search(name) for name in held):
        return
    name = next(n for n in held if n.endswith(".dist-info/METADATA"))
    record = name.removesuffix("METADATA") + "RECORD"
    text = _lean(held[name][1])
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
    line = f"{name},sha256={digest},{len(text)}"
    lines = held[record][1].decode().splitlines()
    lines = [line if each.startswith(f"{name},") else each for each in lines]
    held[name] = held[name][0], text
    held[record] = held[record][0], ("\n".join(lines) + "\n").encode()
    made = wheel.with_suffix(".part")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for info, content in held.values():
            new.writestr(info, content)
    os.replace(made, wheel)
