"""The one place that chooses: C++ kernels where they were built, Numba twins where not.

``ELLIPSUM_BACKEND=cpp|numba`` forces a backend, ``ELLIPSUM_CPU=baseline|avx2|avx512`` an
instruction set of the C++ one. Both give the same integers for the same input and key.
"""

from __future__ import annotations

import operator
import os
from types import ModuleType
from typing import NamedTuple

__all__ = ["Backend", "backend", "kernels", "thread_count"]


class Backend(NamedTuple):
    """Which kernels run, and why."""

    name: str  #: ``"cpp"`` or ``"numba"``
    cpu: str  #: instruction set of the kernels: ``"baseline"``, ``"avx2"``, ``"avx512"``, ``"jit"``
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
    from . import _fallback

    return _fallback, Backend("numba", "jit", reason)


#: The kernels in use: a module with the functions that ``_core.pyi`` lists.
kernels, _backend = _choose()


def backend() -> Backend:
    """Return which kernels run (``name``, ``cpu``) and why (``reason``).

    Returns
    -------
    Backend
        A named tuple; ``str()`` of it is one line for a person.
    """
    return _backend


def thread_count(threads: int | None) -> int:
    """Return the threads to use: ``threads``, else ``ELLIPSUM_THREADS``, else one."""
    name = "threads"
    if threads is None:
        name, threads = "ELLIPSUM_THREADS", os.environ.get("ELLIPSUM_THREADS", "1")  # type: ignore
    try:
        number = operator.index(threads) if name == "threads" else int(str(threads))  # type: ignore
    except (TypeError, ValueError):
        number = 0
    if isinstance(threads, bool) or not 1 <= number <= 1024:
        raise ValueError(f"{name} must be a whole number from 1 to 1024, got {threads!r}")
    return number
