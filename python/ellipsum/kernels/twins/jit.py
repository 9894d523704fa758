"""The twins' decorator: compiled, and cached under a name that their sources decide.

Numba compiles a function's callees into it, but checks only its own file's time before it
takes it from the cache. So the hash of all the sources here is part of the name in the cache.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from numba import njit

_SOURCES = sorted(Path(__file__).parent.glob("*.py"))
_STAMP = hashlib.sha256(b"".join(p.read_bytes() for p in _SOURCES)).hexdigest()[:16]


def jit(function: Any = None, **options: Any) -> Any:
    """``njit`` without the GIL, cached; with options, a decorator that has them."""
    if function is None:
        return functools.partial(jit, **options)
    function.__qualname__ += f"_{_STAMP}"
    return njit(cache=True, nogil=True, **options)(function)


def in_parts(call: Callable[[slice], object], n: int, threads: int) -> None:
    """``call`` on slices of n items, each on a thread of its own."""
    edges = [n * i // threads for i in range(threads + 1)]
    parts = [slice(a, b) for a, b in itertools.pairwise(edges) if a < b]
    if len(parts) < 2:
        call(slice(0, n))
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(call, parts))
