"""The twins' decorator: compiled, and cached under a name that their sources decide.

Numba compiles a function's callees into it, but checks only its own file's time before it
takes it from the cache. So the hash of all the sources here is part of the name in the cache.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.event import Listener, register

_SOURCES = sorted(Path(__file__).parent.glob("*.py"))
_STAMP = hashlib.sha256(b"".join(p.read_bytes() for p in _SOURCES)).hexdigest()[:16]


class _Told(Listener):
    """Says once, on a terminal, that the fallback compiles: a first call takes long."""

    def __init__(self) -> None:
        self._told = False

    def on_start(self, event: Any) -> None:
        function = getattr(event.data.get("dispatcher"), "py_func", None)
        ours = getattr(function, "__module__", "").startswith(__package__)
        if ours and not self._told and sys.stderr is not None and sys.stderr.isatty():
            self._told = True
            print(
                "ellipsum: compiling its fallback kernels, once on this machine, since this "
                "install has no C++ ones ('ellipsum info --warm' compiles all of them)",
                file=sys.stderr,
            )

    def on_end(self, event: Any) -> None:
        pass


register("numba:compile", _Told())


def jit(function: Any = None, **options: Any) -> Any:
    """``njit`` without the GIL, cached; with options, a decorator that has them.

    A quotient by 0 is infinite or NaN, as in the core: Numba's own rule raises.
    """
    if function is None:
        return functools.partial(jit, **options)
    function.__qualname__ += f"_{_STAMP}"
    return njit(cache=True, nogil=True, error_model="numpy", **options)(function)


#: ``jit`` of a function that only compiled ones call: Python has no way in, which takes as long to
#: compile as a small function.
inner = functools.partial(jit, no_cpython_wrapper=True)

#: ``jit`` of a short function that is written into those that call it: it compiles with them.
inlined = functools.partial(jit, inline="always")


def in_parts(call: Callable[[slice], object], n: int, threads: int) -> None:
    """``call`` on slices of n items, each on a thread of its own."""
    edges = [n * i // threads for i in range(threads + 1)]
    parts = [slice(a, b) for a, b in itertools.pairwise(edges) if a < b]
    if len(parts) < 2:
        call(slice(0, n))
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(call, parts))
