"""The one place that chooses: C++ kernels where they were built, Numba twins where not.

``ELLIPSUM_BACKEND=cpp|numba`` forces a backend, ``ELLIPSUM_CPU=baseline|avx2|avx512`` an
instruction set of the C++ one, ``ELLIPSUM_CPU=avx512:4-near`` one arrangement of its passes over
long rows too; left out, the fastest is found by measuring. All give the same integers for the same
input and key.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

from .._validate import whole

__all__ = ["Backend", "backend", "kernels", "supported_cpus", "thread_count", "use_kernels"]


class Backend(NamedTuple):
    """Which kernels run, and why."""

    name: str  #: ``"cpp"`` or ``"numba"``
    cpu: str  #: instruction set: ``"baseline"``, ``"avx2"``, ``"avx512"``, ``"jit"``; as forced
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.cpu}): {self.reason}"


def _choose() -> tuple[ModuleType, Backend]:
    wanted = os.environ.get("ELLIPSUM_BACKEND", "").strip().lower()
    cpu = os.environ.get("ELLIPSUM_CPU", "").strip().lower()
    if wanted not in ("", "cpp", "numba"):
        raise ImportError(f"ELLIPSUM_BACKEND={wanted} is unknown: use cpp or numba")
    if wanted != "numba":
        try:
            from . import _core
        except ImportError as error:
            if wanted == "cpp":
                raise ImportError(
                    "ELLIPSUM_BACKEND=cpp, but this install has no C++ kernels: "
                    "reinstall where a C++17 compiler is found, or unset ELLIPSUM_BACKEND"
                ) from error
            reason = "the C++ kernels were not built by this install"
        else:
            try:
                target = _core.choose_target(cpu)
            except ValueError as error:
                raise ImportError(str(error)) from None
            why = "forced by ELLIPSUM_CPU" if cpu else "the best that this machine runs"
            if wanted:
                why = f"forced by ELLIPSUM_BACKEND; {target} {why}"
            return _core, Backend("cpp", target, why)
    else:
        reason = "forced by ELLIPSUM_BACKEND"
    try:
        from . import twins
    except ImportError as error:
        if error.name != "numba":
            raise
        why = "ELLIPSUM_BACKEND=numba" if wanted else f"{reason}; without them it"
        raise ImportError(f"{why} needs numba: pip install numba", name="numba") from None

    return twins, Backend("numba", "jit", reason)


_kernels, _backend = _choose()


def kernels() -> Any:
    """Return the kernels in use: a module with the functions that ``_core.pyi`` lists."""
    return _kernels


@contextmanager
def use_kernels(name: Any) -> Iterator[Any]:
    """Run with other kernels inside a ``with`` block: for tests and benches, one thread.

    Parameters
    ----------
    name : ``"numba"``, ``"cpp"``, ``"cpp-TARGET"``, ``"cpp-TARGET:ARRANGEMENT"``, or an object with
        the kernels' functions
    """
    global _kernels
    before, target = _kernels, os.environ.get("ELLIPSUM_CPU", "").strip().lower()
    if not isinstance(name, str):
        _kernels = name
    elif name == "numba":
        from . import twins

        _kernels = twins
    else:
        from . import _core

        _core.choose_target(name.partition("-")[2] or target)
        _kernels = _core
    try:
        yield _kernels
    finally:
        if hasattr(_kernels, "choose_target"):
            _kernels.choose_target(target)
        _kernels = before


def backend() -> Backend:
    """Return which kernels run (``name``, ``cpu``) and why (``reason``).

    Returns
    -------
    Backend
        A named tuple; ``str()`` of it is one line for a person.
    """
    return _backend


def supported_cpus() -> list[str]:
    """Instruction sets that ``ELLIPSUM_CPU`` may force here, best first."""
    return list(_kernels.targets()) if _backend.name == "cpp" else [_backend.cpu]


#: More threads than any machine has cores; and far below what the kernels take.
_MOST_THREADS = 1024


def thread_count(value: Any = None) -> int:
    """How many threads to use: ``value``, or else ``ELLIPSUM_THREADS``, or else one."""
    if value is None:
        text = os.environ.get("ELLIPSUM_THREADS", "").strip() or "1"
        if not (text.isascii() and text.isdigit() and 0 < int(text) <= _MOST_THREADS):
            raise ValueError(
                f"ELLIPSUM_THREADS must be a whole number above 0, at most {_MOST_THREADS}, "
                f"got {text!r}"
            )
        return int(text)
    return whole("threads", value, least=1, most=_MOST_THREADS)
