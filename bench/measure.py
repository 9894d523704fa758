"""Timing: what is measured, on which machine, against reading the same array."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic

import ellipsum

Clock = Callable[[], float]

MEGABYTES = 512
REPEATS = 7


@njit(nogil=True)
def _sum_of_words(words):
    total = np.int64(0)
    for i in range(words.size):
        total += words[i]
    return total


def read_alone(array: np.ndarray) -> int:
    """Read an array once and do next to nothing: vector loads, one addition each."""
    numbers = array.reshape(-1)
    return _sum_of_words(numbers[: numbers.size // 2 * 2].view(np.int64))


@intrinsic
def _words_at(typing, address):  # type: ignore[no-untyped-def]
    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.int64)(types.intp), code


@njit(nogil=True)
def _sum_of_columns(addresses, words, block):
    total = np.int64(0)
    for start in range(0, words, block):
        size = min(block, words - start)
        for address in addresses:
            part = carray(_words_at(address + 8 * start), size)
            for i in range(size):
                total += part[i]
    return total


class Columns:
    """Columns of one type, wherever each of them lies, to be read alone. An even number of rows."""

    def __init__(self, columns: Sequence[np.ndarray]) -> None:
        self._columns = columns
        self._at = np.array([c.__array_interface__["data"][0] for c in columns], np.intp)

    def read_alone(self, block_bytes: int) -> int:
        """Read them by blocks of rows, column by column, as a kernel has to that needs a row's
        norm before it scales the row. ``block_bytes``: of a block in doubles."""
        first = self._columns[0]
        rows = max(block_bytes // (8 * len(self._columns)), 8)
        words = first.nbytes // 8
        return _sum_of_columns(self._at, words, min(rows * first.itemsize // 8, words))


def best(
    *jobs: Callable[[], object], repeats: int = REPEATS, clock: Clock = time.process_time
) -> list[float]:
    """Least seconds of each job, taken in turns so that all see the same machine.

    The default clock counts this process alone: time given to other programs is not in it
    (their use of the memory still is). It adds up threads: those want time.perf_counter.
    """
    for job in jobs:
        job()
    least = [float("inf")] * len(jobs)
    for _ in range(repeats):
        for k, job in enumerate(jobs):
            start = clock()
            job()
            least[k] = min(least[k], clock() - start)
    return least


_ROWS: dict[str, np.ndarray] = {}


def rows_of(d: int, dtype: str, megabytes: int = MEGABYTES) -> np.ndarray:
    """Rows of d Gaussian numbers, all of them views of one array of each type."""
    size = megabytes << 20
    if dtype not in _ROWS or _ROWS[dtype].nbytes < size:
        block = np.random.default_rng(0).standard_normal((1 << 20) + 1).astype(dtype)
        _ROWS[dtype] = np.resize(block, size // block.itemsize)
    numbers = _ROWS[dtype][: size // np.dtype(dtype).itemsize]
    return numbers[: numbers.size // d * d].reshape(-1, d)


def half_clipped(d: int) -> ellipsum.Ellipsoid:
    """A ball around 0 that clips about half of the rows of :func:`rows_of`."""
    return ellipsum.Ellipsoid.ball(float(np.sqrt(d)), d=d)


def half_clipped_ellipsoid(d: int) -> ellipsum.Ellipsoid:
    """The same of a region whose coordinates have centres and scales of their own."""
    scale = np.linspace(0.8, 1.2, d) if d > 1 else np.ones(1)
    radius = float(np.linalg.norm(scale))
    return ellipsum.Ellipsoid(np.linspace(-0.01, 0.01, d), scale, radius)


def resident_megabytes() -> float:
    """Resident memory of this process now (Linux; elsewhere NaN)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} not installed"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def family() -> str:
    """Maker, family and model of the processor: what a tuned kernel depends on."""
    wanted = {"vendor_id": "", "cpu family": "family", "model": "model"}
    found: dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() in wanted:
                found.setdefault(key.strip(), value.strip())
    except OSError:
        pass
    words = [f"{word} {found[key]}".strip() for key, word in wanted.items() if key in found]
    return " ".join(words) or platform.machine() or "unknown"


def load() -> str:
    """What else runs: the load of the last minute, and the cores (a figure beside a full machine
    is no figure of an idle one)."""
    try:
        return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    except OSError:
        return "unknown"


def machine() -> str:
    """One line for the machine, the build and the versions."""
    packages = ("numpy", "numba", "torch", "jax", "opendp")
    parts = [_cpu(), f"{os.cpu_count()} cores", platform.system(), f"ellipsum {ellipsum.backend()}"]
    parts += ["-O3 -ffp-contract=off", f"Python {platform.python_version()}"]
    return "; ".join(parts + [_installed(package) for package in packages])
