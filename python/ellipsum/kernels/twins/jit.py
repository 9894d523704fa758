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


#: Steps that Python takes, some four seconds of an ordinary quadratic form, whose functions compile
#: for a minute; and calls of functions after which it gives a hard one up, about as long.
FEW_STEPS, MOST_CALLS = 20_000, 2_000_000


class _TooManyCalls(Exception):
    pass


def are_few(steps: int) -> bool:
    """Is it Python that takes so many first?"""
    return steps <= FEW_STEPS


def run(steps: int, function: Any, *arguments: Any) -> Any:
    """``function(*arguments)``, by Python itself if its ``steps`` are few.

    The arguments decide, not what is compiled by now or how long it takes, so that a call has the
    same bits in every process. Where Python raises, compiled functions have an infinity or a NaN:
    those take over, and where it would take too long.
    """
    if are_few(steps) and isinstance(function, Dispatcher):
        _calls.left = MOST_CALLS
        try:
            with np.errstate(all="ignore"):
                return _by_python(function)(*arguments)
        except (ArithmeticError, ValueError, _TooManyCalls):
            pass
    return function(*arguments)


_calls = threading.local()
_scopes: dict[str, dict[str, Any]] = {}  # of modules: what their functions see by Python


def _by_python(function: Dispatcher) -> Any:
    """The same function, and all that it calls, as Python runs it."""
    module = function.py_func.__module__
    if module not in _scopes:
        made: dict[str, dict[str, Any]] = {}
        _add_scope(function.py_func.__globals__, made)
        _scopes.update(made)  # at once: an interrupt leaves all of them or none
    return _plain(function, _scopes[module])


def _add_scope(scope: dict[str, Any], made: dict[str, dict[str, Any]]) -> None:
    name = scope["__name__"]
    if name in made:  # modules import each other's functions
        return
    plain = made[name] = dict(scope)
    for key, value in scope.items():
        if isinstance(value, Dispatcher):
            _add_scope(value.py_func.__globals__, made)
            plain[key] = _plain(value, made[value.py_func.__module__])


def _plain(function: Dispatcher, scope: dict[str, Any]) -> Any:
    its = function.py_func
    plain = FunctionType(its.__code__, scope, its.__name__, its.__defaults__)

    def counted(*arguments: Any) -> Any:
        _calls.left -= 1
        if _calls.left < 0:
            raise _TooManyCalls
        return plain(*arguments)

    return counted


def in_parts(call: Callable[[slice], object], n: int, threads: int) -> None:
    """``call`` on slices of n items, each on a thread of its own."""
    edges = [n * i // threads for i in range(threads + 1)]
    parts = [slice(a, b) for a, b in itertools.pairwise(edges) if a < b]
    if len(parts) < 2:
        call(slice(0, n))
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(call, parts))
