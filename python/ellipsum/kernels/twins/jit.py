"""The twins' decorator: compiled, and cached under a name that their sources decide.

Numba compiles a function's callees into it, but checks only its own file's time before it
takes it from the cache. So the hash of all the sources here is part of the name in the cache.
What would take longer to compile than Python needs for all of it, Python runs: `run`.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher
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


#: Steps that Python takes: some four seconds, where a quadratic form's functions compile for a
#: minute.
FEW_STEPS = 20_000


def run(steps: int, function: Any, *arguments: Any) -> Any:
    """``function(*arguments)``, by Python itself if its ``steps`` are few.

    They alone decide, not what is compiled by now, so that a call has the same bits in every
    process. Where Python raises, compiled functions have an infinity or a NaN: they take over.
    """
    if steps <= FEW_STEPS:
        try:
            with _lock:
                by_python = _by_python(function)
            with np.errstate(all="ignore"):
                return by_python(*arguments)
        except (ArithmeticError, ValueError):
            pass
    return function(*arguments)


_scopes: dict[str, dict[str, Any]] = {}
_lock = threading.Lock()


def _by_python(function: Dispatcher) -> FunctionType:
    """The same function, and all that it calls, as Python runs it."""
    plain = function.py_func
    scope = _scope_by_python(plain.__globals__)
    return FunctionType(plain.__code__, scope, plain.__name__, plain.__defaults__)


def _scope_by_python(scope: dict[str, Any]) -> dict[str, Any]:
    name = scope["__name__"]
    if name not in _scopes:
        _scopes[name] = dict(scope)  # first, since modules import each other's functions
        ours = {k: v for k, v in scope.items() if isinstance(v, Dispatcher)}
        _scopes[name] |= {k: _by_python(v) for k, v in ours.items()}
    return _scopes[name]


def in_parts(call: Callable[[slice], object], n: int, threads: int) -> None:
    """``call`` on slices of n items, each on a thread of its own."""
    edges = [n * i // threads for i in range(threads + 1)]
    parts = [slice(a, b) for a, b in itertools.pairwise(edges) if a < b]
    if len(parts) < 2:
        call(slice(0, n))
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(call, parts))
